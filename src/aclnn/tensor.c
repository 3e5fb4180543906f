/* SPDX-License-Identifier: Apache-2.0 */
#include "aclnn/tensor.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aclnn/opdev/op_errno.h"
#include "core/checked.h"

static void destroy(struct pg_object *self) { free(self); }

aclnnStatus pg_tensor_get(const char *api, const char *name, const aclTensor *handle,
                          struct pg_tensor **out) {
  if (handle == NULL) return pg_fail_null(api, ACLNN_ERR_PARAM_NULLPTR, name);
  *out = pg_acquire(handle, PG_TENSOR);
  if (*out != NULL) return ACLNN_SUCCESS;
  return pg_fail(api, ACLNN_ERR_PARAM_INVALID, "%s is %s, a live aclTensor is required", name,
                 pg_handle_what(handle));
}

const char *pg_shape_text(int rank, const int64_t *dims, char text[PG_SHAPE_TEXT]) {
  size_t used = 0;
  text[used++] = '[';
  for (int i = 0; i < rank && used < PG_SHAPE_TEXT - 24; i++)
    used += (size_t)snprintf(text + used, PG_SHAPE_TEXT - used, i == 0 ? "%lld" : ",%lld",
                             (long long)dims[i]);
  text[used++] = ']';
  text[used] = '\0';
  return text;
}

/* Row-major.  An axis of length 0 makes the strides outside it 0; the wrap of absurd shapes is
 * defined and refused later by the operators' checked arithmetic. */
static void contiguous_strides(struct pg_tensor *t) {
  uint64_t stride = 1;
  for (int i = t->rank - 1; i >= 0; i--) {
    t->strides[i] = (int64_t)stride;
    stride *= (uint64_t)t->dims[i];
  }
}

struct view {
  const int64_t *dims;
  uint64_t rank;
  const int64_t *strides, *storage;
  uint64_t storage_rank;
};

static bool is_describable(const char *api, const struct view *v) {
  const bool missing =
      (v->dims == NULL && v->rank > 0) || (v->storage == NULL && v->storage_rank > 0);
  if (missing)
    pg_fail_with(api, ACLNN_ERR_PARAM_NULLPTR, "%s is NULL while its count is %llu",
                 v->dims == NULL && v->rank > 0 ? "viewDims" : "storageDims",
                 (unsigned long long)(v->dims == NULL && v->rank > 0 ? v->rank : v->storage_rank));
  else if (v->rank > PG_RANK_MAX || v->storage_rank > PG_RANK_MAX)
    pg_fail_with(api, ACLNN_ERR_PARAM_INVALID,
                 "there are %llu view and %llu storage dims, allowed are %d",
                 (unsigned long long)v->rank, (unsigned long long)v->storage_rank, PG_RANK_MAX);
  else
    return true;
  return false;
}

static void set_view(struct pg_tensor *t, const struct view *v) {
  t->rank = (int)v->rank;
  if (v->rank > 0) memcpy(t->dims, v->dims, v->rank * sizeof *v->dims);
}

static void set_strides(struct pg_tensor *t, const int64_t *strides) {
  if (strides == NULL)
    contiguous_strides(t);
  else if (t->rank > 0)
    memcpy(t->strides, strides, (size_t)t->rank * sizeof *strides);
}

static void set_storage(struct pg_tensor *t, const struct view *v) {
  t->storage_rank = (int)v->storage_rank;
  if (v->storage_rank > 0)
    memcpy(t->storage_dims, v->storage, v->storage_rank * sizeof *v->storage);
}

/* How far the last element is from the data address, in elements; false when that or their number
 * overflows.  No dim is negative. */
static bool reach(const struct pg_tensor *t, int64_t *end) {
  int64_t elements = 1, last = t->offset, far;
  *end = t->offset;
  if (t->empty) return true;
  for (int i = 0; i < t->rank; i++)
    if (!pg_mul(elements, t->dims[i], &elements) || !pg_mul(t->dims[i] - 1, t->strides[i], &far) ||
        !pg_add(last, far, &last))
      return false;
  return pg_add(last, 1, end);
}

/* Is each stride longer than all the smaller ones reach together?  It spans 64 bits at most, and
 * no stride is negative. */
static bool is_nested(const struct pg_tensor *t) {
  int order[PG_RANK_MAX], count = 0;
  for (int i = t->rank - 1; i >= 0; i--) { /* mostly in rising order already */
    if (t->dims[i] <= 1) continue;
    int at = count++;
    for (; at > 0 && t->strides[order[at - 1]] > t->strides[i]; at--) order[at] = order[at - 1];
    order[at] = i;
  }
  int64_t reached = 0;
  for (int i = 0; i < count; i++) {
    const int64_t stride = t->strides[order[i]];
    if (stride <= reached) return false;
    reached += (t->dims[order[i]] - 1) * stride;
  }
  return true;
}

/* What every operator asks of a tensor, found out once. */
static void set_facts(struct pg_tensor *t) {
  const int64_t bytes = (int64_t)aclDataTypeSize(t->dtype);
  bool counts = true, good = t->offset >= 0;
  int64_t end;
  t->element = (size_t)bytes;
  t->empty = false;
  for (int i = 0; i < t->rank; i++) {
    t->empty = t->empty || t->dims[i] == 0;
    counts = counts && t->dims[i] >= 0;
    good = good && t->strides[i] >= 0;
  }
  t->spans = counts && reach(t, &end) && pg_mul(end, bytes, &t->end) &&
             pg_mul(t->offset, bytes, &t->begin);
  t->plain = good && t->spans && (t->empty || is_nested(t));
}

aclTensor *aclCreateTensor(const int64_t *viewDims, uint64_t viewDimsNum, aclDataType dataType,
                           const int64_t *stride, int64_t offset, aclFormat format,
                           const int64_t *storageDims, uint64_t storageDimsNum, void *tensorData) {
  const struct view v = {viewDims, viewDimsNum, stride, storageDims, storageDimsNum};
  if (!is_describable(__func__, &v)) return NULL;
  struct pg_tensor *t = calloc(1, sizeof *t);
  if (t != NULL) {
    atomic_init(&t->object.refs, 1);
    t->object.destroy = destroy;
    t->dtype = dataType;
    t->format = format;
    t->offset = offset;
    atomic_init(&t->data, tensorData);
    set_view(t, &v);
    set_strides(t, stride);
    set_storage(t, &v);
    set_facts(t);
    aclTensor *handle = pg_handle_open(PG_TENSOR, &t->object);
    if (handle != NULL) return handle;
    pg_release(&t->object);
  }
  (void)pg_fail_titled(ACL_ERROR_BAD_ALLOC, __func__, ACLNN_ERR_INNER, "no memory for a tensor");
  return NULL;
}

void pg_tensor_set_length(struct pg_tensor *t, int64_t length) {
  t->rank = 1;
  t->dims[0] = length;
  t->strides[0] = 1;
  set_facts(t);
}

aclnnStatus aclDestroyTensor(const aclTensor *tensor) {
  if (tensor == NULL) return ACLNN_SUCCESS;
  struct pg_object *object = pg_handle_close(tensor, PG_TENSOR);
  PG_CHECK(object != NULL, ACLNN_ERR_PARAM_INVALID, "tensor is %s, a live aclTensor is required",
           pg_handle_what(tensor));
  pg_release(object);
  return ACLNN_SUCCESS;
}

aclnnStatus aclInitTensor(aclTensor *tensor, const int64_t *viewDims, uint64_t viewDimsNum,
                          aclDataType dataType, const int64_t *stride, int64_t offset,
                          aclFormat format, const int64_t *storageDims, uint64_t storageDimsNum,
                          void *tensorDataAddr) {
  const struct view v = {viewDims, viewDims == NULL ? 0 : viewDimsNum, stride, storageDims,
                         storageDims == NULL ? 0 : storageDimsNum};
  struct pg_tensor *t;
  PG_TRY(pg_tensor_get(__func__, "tensor", tensor, &t));
  if (!is_describable(__func__, &v)) {
    pg_release(&t->object);
    return ACLNN_ERR_PARAM_INVALID;
  }
  t->dtype = dataType;
  t->format = format;
  t->offset = offset;
  if (v.rank > 0) set_view(t, &v);
  set_strides(t, stride);
  if (v.storage_rank > 0) set_storage(t, &v);
  set_facts(t);
  if (tensorDataAddr != NULL) atomic_store(&t->data, tensorDataAddr);
  pg_release(&t->object);
  return ACLNN_SUCCESS;
}

/* The caller releases the array with delete[], as CANN's callers do, or with free() where there
 * is no C++ in the process: so it comes from operator new[] when a C++ runtime is loaded. */
static int64_t *new_array(size_t count) {
  const size_t bytes = count == 0 ? sizeof(int64_t) : count * sizeof(int64_t);
  void *(*new_nothrow)(size_t, const void *) = NULL; /* operator new[](size_t, std::nothrow_t &) */
  const void *nothrow = dlsym(RTLD_DEFAULT, "_ZSt7nothrow");
  if (nothrow != NULL) {
    void *symbol = dlsym(RTLD_DEFAULT, "_ZnamRKSt9nothrow_t");
    memcpy(&new_nothrow, &symbol, sizeof symbol); /* a cast would be no ISO C */
  }
  return new_nothrow != NULL ? new_nothrow(bytes, nothrow) : malloc(bytes);
}

aclnnStatus pg_tensor_copy_out(const char *api, const int64_t *values, int count, int64_t **out,
                               uint64_t *out_count) {
  int64_t *copy = new_array((size_t)count);
  if (copy == NULL)
    return pg_fail_titled(ACL_ERROR_BAD_ALLOC, api, ACLNN_ERR_INNER, "no memory for %d values",
                          count);
  memcpy(copy, values, (size_t)count * sizeof *values);
  *out = copy;
  *out_count = (uint64_t)count;
  return ACLNN_SUCCESS;
}

aclnnStatus aclGetViewShape(const aclTensor *tensor, int64_t **viewDims, uint64_t *viewDimsNum) {
  struct pg_tensor *t;
  PG_CHECK_PTR(viewDims, ACLNN_ERR_PARAM_NULLPTR);
  PG_CHECK_PTR(viewDimsNum, ACLNN_ERR_PARAM_NULLPTR);
  PG_TRY(pg_tensor_get(__func__, "tensor", tensor, &t));
  const aclnnStatus status = pg_tensor_copy_out(__func__, t->dims, t->rank, viewDims, viewDimsNum);
  pg_release(&t->object);
  return status;
}

aclnnStatus aclGetStorageShape(const aclTensor *tensor, int64_t **storageDims,
                               uint64_t *storageDimsNum) {
  struct pg_tensor *t;
  PG_CHECK_PTR(storageDims, ACLNN_ERR_PARAM_NULLPTR);
  PG_CHECK_PTR(storageDimsNum, ACLNN_ERR_PARAM_NULLPTR);
  PG_TRY(pg_tensor_get(__func__, "tensor", tensor, &t));
  const aclnnStatus status =
      pg_tensor_copy_out(__func__, t->storage_dims, t->storage_rank, storageDims, storageDimsNum);
  pg_release(&t->object);
  return status;
}

aclnnStatus aclGetViewStrides(const aclTensor *tensor, int64_t **stridesValue,
                              uint64_t *stridesNum) {
  struct pg_tensor *t;
  PG_CHECK_PTR(stridesValue, ACLNN_ERR_PARAM_NULLPTR);
  PG_CHECK_PTR(stridesNum, ACLNN_ERR_PARAM_NULLPTR);
  PG_TRY(pg_tensor_get(__func__, "tensor", tensor, &t));
  const aclnnStatus status =
      pg_tensor_copy_out(__func__, t->strides, t->rank, stridesValue, stridesNum);
  pg_release(&t->object);
  return status;
}

aclnnStatus aclGetViewOffset(const aclTensor *tensor, int64_t *offset) {
  struct pg_tensor *t;
  PG_CHECK_PTR(offset, ACLNN_ERR_PARAM_NULLPTR);
  PG_TRY(pg_tensor_get(__func__, "tensor", tensor, &t));
  *offset = t->offset;
  pg_release(&t->object);
  return ACLNN_SUCCESS;
}

aclnnStatus aclGetFormat(const aclTensor *tensor, aclFormat *format) {
  struct pg_tensor *t;
  PG_CHECK_PTR(format, ACLNN_ERR_PARAM_NULLPTR);
  PG_TRY(pg_tensor_get(__func__, "tensor", tensor, &t));
  *format = t->format;
  pg_release(&t->object);
  return ACLNN_SUCCESS;
}

aclnnStatus aclGetDataType(const aclTensor *tensor, aclDataType *dataType) {
  struct pg_tensor *t;
  PG_CHECK_PTR(dataType, ACLNN_ERR_PARAM_NULLPTR);
  PG_TRY(pg_tensor_get(__func__, "tensor", tensor, &t));
  *dataType = t->dtype;
  pg_release(&t->object);
  return ACLNN_SUCCESS;
}

aclnnStatus aclSetRawTensorAddr(aclTensor *tensor, void *addr) {
  struct pg_tensor *t;
  PG_TRY(pg_tensor_get(__func__, "tensor", tensor, &t));
  atomic_store(&t->data, addr);
  pg_release(&t->object);
  return ACLNN_SUCCESS;
}

aclnnStatus aclGetRawTensorAddr(const aclTensor *tensor, void **addr) {
  struct pg_tensor *t;
  PG_CHECK_PTR(addr, ACLNN_ERR_PARAM_NULLPTR);
  PG_TRY(pg_tensor_get(__func__, "tensor", tensor, &t));
  *addr = atomic_load(&t->data);
  pg_release(&t->object);
  return ACLNN_SUCCESS;
}
