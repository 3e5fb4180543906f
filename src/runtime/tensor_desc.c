/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor descriptions: type, shape and format of a tensor, without its memory. */
#include <stdlib.h>
#include <string.h>

#include "acl/acl_base_mdl.h"
#include "core/checked.h"
#include "core/handle.h"
#include "core/status.h"

enum { DIMS_MAX = 25, SIZE_UNKNOWN = -1, RANK_UNKNOWN = -2 };

struct shape {
  int count;
  int64_t dims[DIMS_MAX];
};

/* The caller keeps one thread from changing a description while another one uses it. */
struct tensor_desc {
  struct pg_object object;
  aclDataType type;
  aclFormat format, storage_format;
  struct shape shape, storage_shape;
  aclMemType placement;
  char *name; /* NULL: "" */
};

static void destroy(struct pg_object *self) {
  struct tensor_desc *desc = (struct tensor_desc *)self;
  free(desc->name);
  free(desc);
}

/* The description with a reference for the caller; a sentence and NULL when there is none. */
static struct tensor_desc *acquire(const char *api, const aclTensorDesc *handle) {
  struct tensor_desc *desc = pg_acquire(handle, PG_TENSOR_DESC);
  if (desc == NULL)
    pg_fail_with(api, ACL_ERROR_INVALID_PARAM, "desc is %s, a live tensor description is required",
                 pg_handle_what(handle));
  return desc;
}

static aclError read_shape(const char *api, int count, const int64_t *dims, struct shape *out) {
  PG_CHECK_AS(api, count >= 0 && count <= DIMS_MAX, ACL_ERROR_INVALID_PARAM,
              "numDims is %d, allowed is 0 to %d", count, DIMS_MAX);
  if (count > 0 && dims == NULL) return pg_fail_null(api, ACL_ERROR_INVALID_PARAM, "dims");
  for (int i = 0; i < count; i++) {
    const int64_t least = count == 1 ? RANK_UNKNOWN : SIZE_UNKNOWN;
    PG_CHECK_AS(api, dims[i] >= least, ACL_ERROR_INVALID_PARAM,
                "dims[%d] is %lld, at least %lld is required", i, (long long)dims[i],
                (long long)least);
  }
  out->count = count;
  if (count > 0) memcpy(out->dims, dims, (size_t)count * sizeof dims[0]);
  return ACL_SUCCESS;
}

static bool has_rank(const struct shape *shape) {
  return shape->count != 1 || shape->dims[0] != RANK_UNKNOWN;
}

/* 0 while a size is not known, and if 64 bits cannot hold it. */
static size_t element_count(const struct shape *shape) {
  int64_t count = 1;
  for (int i = 0; i < shape->count; i++) {
    if (shape->dims[i] < 0) return 0;
    if (shape->dims[i] == 0) count = 0;
  }
  for (int i = 0; i < shape->count && count > 0; i++)
    if (!pg_mul(count, shape->dims[i], &count)) return 0;
  return (size_t)count;
}

aclTensorDesc *aclCreateTensorDesc(aclDataType dataType, int numDims, const int64_t *dims,
                                   aclFormat format) {
  struct shape shape;
  if (read_shape(__func__, numDims, dims, &shape) != ACL_SUCCESS) return NULL;
  struct tensor_desc *desc = calloc(1, sizeof *desc);
  if (desc != NULL) {
    atomic_init(&desc->object.refs, 1);
    desc->object.destroy = destroy;
    desc->type = dataType;
    desc->format = desc->storage_format = format;
    desc->shape = desc->storage_shape = shape;
    aclTensorDesc *handle = pg_handle_open(PG_TENSOR_DESC, &desc->object);
    if (handle != NULL) return handle;
    pg_release(&desc->object);
  }
  pg_fail_with(__func__, ACL_ERROR_BAD_ALLOC, "no memory for a tensor description");
  return NULL;
}

void aclDestroyTensorDesc(const aclTensorDesc *desc) {
  struct pg_object *object = pg_handle_close(desc, PG_TENSOR_DESC);
  if (object == NULL && desc != NULL)
    pg_fail_with(__func__, ACL_ERROR_INVALID_PARAM,
                 "desc is %s, a live tensor description is required", pg_handle_what(desc));
  pg_release(object);
}

aclDataType aclGetTensorDescType(const aclTensorDesc *desc) {
  struct tensor_desc *found = acquire(__func__, desc);
  if (found == NULL) return ACL_DT_UNDEFINED;
  const aclDataType type = found->type;
  pg_release(&found->object);
  return type;
}

aclFormat aclGetTensorDescFormat(const aclTensorDesc *desc) {
  struct tensor_desc *found = acquire(__func__, desc);
  if (found == NULL) return ACL_FORMAT_UNDEFINED;
  const aclFormat format = found->format;
  pg_release(&found->object);
  return format;
}

size_t aclGetTensorDescNumDims(const aclTensorDesc *desc) {
  struct tensor_desc *found = acquire(__func__, desc);
  if (found == NULL) return 0;
  const size_t count = has_rank(&found->shape) ? (size_t)found->shape.count : ACL_UNKNOWN_RANK;
  pg_release(&found->object);
  return count;
}

size_t aclGetTensorDescElementCount(const aclTensorDesc *desc) {
  struct tensor_desc *found = acquire(__func__, desc);
  if (found == NULL) return 0;
  const size_t count = element_count(&found->shape);
  pg_release(&found->object);
  return count;
}

size_t aclGetTensorDescSize(const aclTensorDesc *desc) {
  size_t bytes;
  struct tensor_desc *found = acquire(__func__, desc);
  if (found == NULL) return 0;
  if (!pg_mul_size(element_count(&found->shape), aclDataTypeSize(found->type), &bytes)) bytes = 0;
  pg_release(&found->object);
  return bytes;
}

static aclError get_dim(const char *api, const aclTensorDesc *desc, size_t index, int64_t *out) {
  struct tensor_desc *found = acquire(api, desc);
  if (found == NULL) return ACL_ERROR_INVALID_PARAM;
  aclError status = ACL_SUCCESS;
  if (!has_rank(&found->shape))
    status = pg_fail(api, ACL_ERROR_INVALID_PARAM,
                     "desc has the shape -2, which has no known dimensions");
  else if (index >= (size_t)found->shape.count)
    status = pg_fail(api, ACL_ERROR_INVALID_PARAM, "index is %zu, desc has %d dimensions", index,
                     found->shape.count);
  else
    *out = found->shape.dims[index];
  pg_release(&found->object);
  return status;
}

int64_t aclGetTensorDescDim(const aclTensorDesc *desc, size_t index) {
  int64_t size = -1;
  (void)get_dim(__func__, desc, index, &size);
  return size;
}

aclError aclGetTensorDescDimV2(const aclTensorDesc *desc, size_t index, int64_t *dimSize) {
  PG_CHECK_PTR(desc, ACL_ERROR_INVALID_PARAM);
  PG_CHECK_PTR(dimSize, ACL_ERROR_INVALID_PARAM);
  return get_dim(__func__, desc, index, dimSize);
}

void aclSetTensorDescName(aclTensorDesc *desc, const char *name) {
  struct tensor_desc *found = acquire(__func__, desc);
  if (found == NULL) return;
  char *copy = strdup(name == NULL ? "" : name);
  if (copy == NULL) {
    pg_fail_with(__func__, ACL_ERROR_BAD_ALLOC, "no memory for the name");
  } else {
    free(found->name);
    found->name = copy;
  }
  pg_release(&found->object);
}

const char *aclGetTensorDescName(aclTensorDesc *desc) {
  struct tensor_desc *found = acquire(__func__, desc);
  if (found == NULL) return NULL;
  const char *name = found->name == NULL ? "" : found->name;
  pg_release(&found->object);
  return name;
}

aclError aclSetTensorFormat(aclTensorDesc *desc, aclFormat format) {
  PG_CHECK_PTR(desc, ACL_ERROR_INVALID_PARAM);
  struct tensor_desc *found = acquire(__func__, desc);
  if (found == NULL) return ACL_ERROR_INVALID_PARAM;
  found->storage_format = format;
  pg_release(&found->object);
  return ACL_SUCCESS;
}

aclError aclSetTensorShape(aclTensorDesc *desc, int numDims, const int64_t *dims) {
  struct shape shape;
  PG_CHECK_PTR(desc, ACL_ERROR_INVALID_PARAM);
  PG_TRY(read_shape(__func__, numDims, dims, &shape));
  struct tensor_desc *found = acquire(__func__, desc);
  if (found == NULL) return ACL_ERROR_INVALID_PARAM;
  found->storage_shape = shape;
  pg_release(&found->object);
  return ACL_SUCCESS;
}

aclError aclSetTensorPlaceMent(aclTensorDesc *desc, aclMemType memType) {
  PG_CHECK_PTR(desc, ACL_ERROR_INVALID_PARAM);
  PG_CHECK((int)memType >= ACL_MEMTYPE_DEVICE && memType <= ACL_MEMTYPE_HOST_COMPILE_INDEPENDENT,
           ACL_ERROR_INVALID_PARAM, "memType is %d, allowed is 0, 1 or 2", (int)memType);
  struct tensor_desc *found = acquire(__func__, desc);
  if (found == NULL) return ACL_ERROR_INVALID_PARAM;
  found->placement = memType;
  pg_release(&found->object);
  return ACL_SUCCESS;
}
