/* SPDX-License-Identifier: Apache-2.0 */
/* What a stream can be told about itself: configuration handles before it exists, attributes
 * afterwards. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/fork.h"
#include "runtime/stream.h"

/* A configuration handle is a struct that clients may read, so it is a real address; the list
 * of live ones is what tells it from a stale one. */
struct config {
  aclrtStreamConfigHandle value; /* first: its address is the handle */
  struct config *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list and the values */
static struct config *configs;

PG_HOLD_ACROSS_FORK(lock, PG_FORK_INNER);

aclrtStreamConfigHandle *aclrtCreateStreamConfigHandle(void) {
  struct config *config = calloc(1, sizeof *config);
  if (config == NULL) {
    pg_fail_with(__func__, ACL_ERROR_BAD_ALLOC, "no memory for a stream configuration");
    return NULL;
  }
  pthread_mutex_lock(&lock);
  config->next = configs;
  configs = config;
  pthread_mutex_unlock(&lock);
  return &config->value;
}

/* Lock held.  Compares addresses only: the handle may be stale. */
static struct config **find_config(const aclrtStreamConfigHandle *handle) {
  struct config **link = &configs;
  while (*link != NULL && &(*link)->value != handle) link = &(*link)->next;
  return link;
}

static aclError refuse_config(const char *api) {
  return pg_fail(api, ACL_ERROR_RT_INVALID_HANDLE,
                 "handle is not a live configuration of aclrtCreateStreamConfigHandle");
}

aclError pg_stream_config_read(const char *api, const aclrtStreamConfigHandle *handle,
                               aclrtStreamConfigHandle *copy) {
  if (handle == NULL) return pg_fail_null(api, ACL_ERROR_INVALID_PARAM, "handle");
  pthread_mutex_lock(&lock);
  const struct config *config = *find_config(handle);
  if (config != NULL) *copy = config->value;
  pthread_mutex_unlock(&lock);
  return config != NULL ? ACL_SUCCESS : refuse_config(api);
}

aclError aclrtDestroyStreamConfigHandle(aclrtStreamConfigHandle *handle) {
  PG_CHECK_PTR(handle, ACL_ERROR_INVALID_PARAM);
  pthread_mutex_lock(&lock);
  struct config **link = find_config(handle);
  struct config *config = *link;
  if (config != NULL) *link = config->next;
  pthread_mutex_unlock(&lock);
  if (config == NULL) return refuse_config(__func__);
  free(config);
  return ACL_SUCCESS;
}

aclError aclrtSetStreamConfigOpt(aclrtStreamConfigHandle *handle, aclrtStreamConfigAttr attr,
                                 const void *attrValue, size_t valueSize) {
  PG_CHECK_PTR(handle, ACL_ERROR_INVALID_PARAM);
  PG_CHECK_PTR(attrValue, ACL_ERROR_INVALID_PARAM);
  static const struct {
    size_t offset, bytes;
  } fields[] = {
      [ACL_RT_STREAM_WORK_ADDR_PTR] = {offsetof(aclrtStreamConfigHandle, workptr), sizeof(void *)},
      [ACL_RT_STREAM_WORK_SIZE] = {offsetof(aclrtStreamConfigHandle, workSize), sizeof(size_t)},
      [ACL_RT_STREAM_FLAG] = {offsetof(aclrtStreamConfigHandle, flag), sizeof(size_t)},
      [ACL_RT_STREAM_PRIORITY] = {offsetof(aclrtStreamConfigHandle, priority), sizeof(uint32_t)}};
  PG_CHECK((int)attr >= 0 && (size_t)attr < sizeof fields / sizeof fields[0],
           ACL_ERROR_INVALID_PARAM, "attr is %d, allowed is 0 to %d", (int)attr,
           ACL_RT_STREAM_PRIORITY);
  PG_CHECK(valueSize == fields[attr].bytes, ACL_ERROR_INVALID_PARAM,
           "valueSize is %zu, attr %d has %zu bytes", valueSize, (int)attr, fields[attr].bytes);
  pthread_mutex_lock(&lock);
  struct config *config = *find_config(handle);
  if (config != NULL) memcpy((char *)&config->value + fields[attr].offset, attrValue, valueSize);
  pthread_mutex_unlock(&lock);
  return config != NULL ? ACL_SUCCESS : refuse_config(__func__);
}

static aclError set_failure_mode(const char *api, const char *name, struct pg_stream *stream,
                                 uint64_t mode) {
  if (mode > ACL_STOP_ON_FAILURE)
    return pg_fail(api, ACL_ERROR_RT_PARAM_INVALID,
                   "%s is %llu, allowed is 0 (continue) or 1 (stop)", name,
                   (unsigned long long)mode);
  atomic_store(&stream->failure_mode, mode);
  stream->backend->set_stop_on_failure(stream->queue, mode == ACL_STOP_ON_FAILURE);
  return ACL_SUCCESS;
}

static aclError set_overflow_switch(const char *api, const char *name, struct pg_stream *stream,
                                    uint32_t flag) {
  if (flag > 1)
    return pg_fail(api, ACL_ERROR_RT_PARAM_INVALID, "%s is %u, allowed is 0 or 1", name, flag);
  atomic_store(&stream->overflow_switch, flag);
  return ACL_SUCCESS;
}

static aclError unknown_attribute(const char *api, aclrtStreamAttr attribute) {
  return pg_fail(api, ACL_ERROR_INVALID_PARAM, "stmAttrType is %d, allowed is %d to %d",
                 (int)attribute, ACL_STREAM_ATTR_FAILURE_MODE, ACL_STREAM_ATTR_PRIORITY);
}

static aclError set_attribute(const char *api, struct pg_stream *stream, aclrtStreamAttr attribute,
                              const aclrtStreamAttrValue *value) {
  switch (attribute) {
    case ACL_STREAM_ATTR_FAILURE_MODE:
      return set_failure_mode(api, "value->failureMode", stream, value->failureMode);
    case ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK:
      return set_overflow_switch(api, "value->overflowSwitch", stream, value->overflowSwitch);
    case ACL_STREAM_ATTR_USER_CUSTOM_TAG:
      atomic_store(&stream->user_tag, value->userCustomTag);
      return ACL_SUCCESS;
    case ACL_STREAM_ATTR_CACHE_OP_INFO:
      atomic_store(&stream->cache_op_info, value->cacheOpInfoSwitch);
      return ACL_SUCCESS;
    case ACL_STREAM_ATTR_PRIORITY:
      atomic_store(&stream->priority, value->priority);
      return ACL_SUCCESS;
    default:
      return unknown_attribute(api, attribute);
  }
}

aclError aclrtSetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType,
                                 aclrtStreamAttrValue *value) {
  struct pg_stream *found;
  PG_CHECK_PTR(value, ACL_ERROR_INVALID_PARAM);
  PG_TRY(pg_stream_resolve(__func__, stream, &found));
  const aclError status = set_attribute(__func__, found, stmAttrType, value);
  pg_stream_release(found);
  return status;
}

static aclError get_attribute(const char *api, struct pg_stream *stream, aclrtStreamAttr attribute,
                              aclrtStreamAttrValue *value) {
  aclrtStreamAttrValue found = {.reserve = {0}};
  switch (attribute) {
    case ACL_STREAM_ATTR_FAILURE_MODE:
      found.failureMode = atomic_load(&stream->failure_mode);
      break;
    case ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK:
      found.overflowSwitch = atomic_load(&stream->overflow_switch);
      break;
    case ACL_STREAM_ATTR_USER_CUSTOM_TAG:
      found.userCustomTag = atomic_load(&stream->user_tag);
      break;
    case ACL_STREAM_ATTR_CACHE_OP_INFO:
      found.cacheOpInfoSwitch = atomic_load(&stream->cache_op_info);
      break;
    case ACL_STREAM_ATTR_PRIORITY:
      found.priority = atomic_load(&stream->priority);
      break;
    default:
      return unknown_attribute(api, attribute);
  }
  *value = found;
  return ACL_SUCCESS;
}

aclError aclrtGetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType,
                                 aclrtStreamAttrValue *value) {
  struct pg_stream *found;
  PG_CHECK_PTR(value, ACL_ERROR_INVALID_PARAM);
  PG_TRY(pg_stream_resolve(__func__, stream, &found));
  const aclError status = get_attribute(__func__, found, stmAttrType, value);
  pg_stream_release(found);
  return status;
}

aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode) {
  struct pg_stream *found;
  PG_TRY(pg_stream_resolve(__func__, stream, &found));
  const aclError status = set_failure_mode(__func__, "mode", found, mode);
  pg_stream_release(found);
  return status;
}

aclError aclrtSetStreamOverflowSwitch(aclrtStream stream, uint32_t flag) {
  struct pg_stream *found;
  PG_TRY(pg_stream_resolve(__func__, stream, &found));
  const aclError status = set_overflow_switch(__func__, "flag", found, flag);
  pg_stream_release(found);
  return status;
}

aclError aclrtGetStreamOverflowSwitch(aclrtStream stream, uint32_t *flag) {
  struct pg_stream *found;
  PG_CHECK_PTR(flag, ACL_ERROR_INVALID_PARAM);
  PG_TRY(pg_stream_resolve(__func__, stream, &found));
  *flag = atomic_load(&found->overflow_switch);
  pg_stream_release(found);
  return ACL_SUCCESS;
}
