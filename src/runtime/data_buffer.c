/* SPDX-License-Identifier: Apache-2.0 */
/* Data buffers: an address and a size that belong to the caller. */
#include <stdlib.h>

#include "acl/acl_rt.h"
#include "core/handle.h"
#include "core/status.h"

struct data_buffer {
  struct pg_object object;
  void *data;
  size_t size;
};

static void destroy(struct pg_object *self) { free(self); }

aclDataBuffer *aclCreateDataBuffer(void *data, size_t size) {
  struct data_buffer *buffer = calloc(1, sizeof *buffer);
  if (buffer != NULL) {
    atomic_init(&buffer->object.refs, 1);
    buffer->object.destroy = destroy;
    buffer->data = data;
    buffer->size = size;
    aclDataBuffer *handle = pg_handle_open(PG_DATA_BUFFER, &buffer->object);
    if (handle != NULL) return handle;
    pg_release(&buffer->object);
  }
  pg_fail_with(__func__, ACL_ERROR_BAD_ALLOC, "no memory for a data buffer");
  return NULL;
}

aclError aclDestroyDataBuffer(const aclDataBuffer *dataBuffer) {
  PG_CHECK_PTR(dataBuffer, ACL_ERROR_INVALID_PARAM);
  struct pg_object *object = pg_handle_close(dataBuffer, PG_DATA_BUFFER);
  PG_CHECK(object != NULL, ACL_ERROR_INVALID_PARAM,
           "dataBuffer is %s, a live data buffer is required", pg_handle_what(dataBuffer));
  pg_release(object);
  return ACL_SUCCESS;
}

aclError aclUpdateDataBuffer(aclDataBuffer *dataBuffer, void *data, size_t size) {
  PG_CHECK_PTR(dataBuffer, ACL_ERROR_INVALID_PARAM);
  struct data_buffer *buffer = pg_acquire(dataBuffer, PG_DATA_BUFFER);
  PG_CHECK(buffer != NULL, ACL_ERROR_INVALID_PARAM,
           "dataBuffer is %s, a live data buffer is required", pg_handle_what(dataBuffer));
  buffer->data = data;
  buffer->size = size;
  pg_release(&buffer->object);
  return ACL_SUCCESS;
}

void *aclGetDataBufferAddr(const aclDataBuffer *dataBuffer) {
  struct data_buffer *buffer = pg_acquire(dataBuffer, PG_DATA_BUFFER);
  if (buffer == NULL) {
    pg_fail_with(__func__, ACL_ERROR_INVALID_PARAM,
                 "dataBuffer is %s, a live data buffer is required", pg_handle_what(dataBuffer));
    return NULL;
  }
  void *data = buffer->data;
  pg_release(&buffer->object);
  return data;
}

size_t aclGetDataBufferSizeV2(const aclDataBuffer *dataBuffer) {
  struct data_buffer *buffer = pg_acquire(dataBuffer, PG_DATA_BUFFER);
  if (buffer == NULL) {
    pg_fail_with(__func__, ACL_ERROR_INVALID_PARAM,
                 "dataBuffer is %s, a live data buffer is required", pg_handle_what(dataBuffer));
    return 0;
  }
  const size_t size = buffer->size;
  pg_release(&buffer->object);
  return size;
}

uint32_t aclGetDataBufferSize(const aclDataBuffer *dataBuffer) {
  return (uint32_t)aclGetDataBufferSizeV2(dataBuffer);
}
