/* SPDX-License-Identifier: Apache-2.0 */
#include "aclnn/array.h"

#include <stdlib.h>
#include <string.h>

#include "aclnn/opdev/op_errno.h"
#include "core/checked.h"

static void destroy(struct pg_object *self) { free(self); }

/* NULL values make an empty array, whatever the size says: as in CANN. */
static void *create_array(const char *api, enum pg_kind kind, const void *values, uint64_t size,
                          size_t element) {
  size_t bytes;
  if (values == NULL) size = 0;
  if (pg_mul_size(size, element, &bytes) && pg_add_size(bytes, sizeof(struct pg_array), &bytes)) {
    struct pg_array *array = malloc(bytes);
    if (array != NULL) {
      atomic_init(&array->object.refs, 1);
      array->object.destroy = destroy;
      array->size = size;
      if (size > 0) memcpy(array->values, values, size * element);
      void *handle = pg_handle_open(kind, &array->object);
      if (handle != NULL) return handle;
      pg_release(&array->object);
    }
  }
  (void)pg_fail_titled(ACL_ERROR_BAD_ALLOC, api, ACLNN_ERR_INNER,
                       "no memory for an array of %llu values", (unsigned long long)size);
  return NULL;
}

static aclnnStatus destroy_handle(const char *api, const void *handle, enum pg_kind kind) {
  if (handle == NULL) return ACLNN_SUCCESS;
  struct pg_object *object = pg_handle_close(handle, kind);
  if (object == NULL)
    return pg_fail(api, ACLNN_ERR_PARAM_INVALID, "%s is %s, which cannot be destroyed so",
                   kind == PG_SCALAR ? "scalar" : "array", pg_handle_what(handle));
  pg_release(object);
  return ACLNN_SUCCESS;
}

static aclnnStatus array_size(const char *api, const void *handle, enum pg_kind kind,
                              uint64_t *size) {
  if (handle == NULL) return pg_fail_null(api, ACLNN_ERR_PARAM_NULLPTR, "array");
  if (size == NULL) return pg_fail_null(api, ACLNN_ERR_PARAM_NULLPTR, "size");
  struct pg_array *array = pg_acquire(handle, kind);
  if (array == NULL)
    return pg_fail(api, ACLNN_ERR_PARAM_INVALID, "array is %s, a live one of its kind is required",
                   pg_handle_what(handle));
  *size = array->size;
  pg_release(&array->object);
  return ACLNN_SUCCESS;
}

aclIntArray *aclCreateIntArray(const int64_t *value, uint64_t size) {
  return create_array(__func__, PG_INT_ARRAY, value, size, sizeof *value);
}
aclFloatArray *aclCreateFloatArray(const float *value, uint64_t size) {
  return create_array(__func__, PG_FLOAT_ARRAY, value, size, sizeof *value);
}
aclBoolArray *aclCreateBoolArray(const bool *value, uint64_t size) {
  return create_array(__func__, PG_BOOL_ARRAY, value, size, sizeof *value);
}

aclnnStatus aclDestroyIntArray(const aclIntArray *array) {
  return destroy_handle(__func__, array, PG_INT_ARRAY);
}
aclnnStatus aclDestroyFloatArray(const aclFloatArray *array) {
  return destroy_handle(__func__, array, PG_FLOAT_ARRAY);
}
aclnnStatus aclDestroyBoolArray(const aclBoolArray *array) {
  return destroy_handle(__func__, array, PG_BOOL_ARRAY);
}

aclnnStatus aclGetIntArraySize(const aclIntArray *array, uint64_t *size) {
  return array_size(__func__, array, PG_INT_ARRAY, size);
}
aclnnStatus aclGetFloatArraySize(const aclFloatArray *array, uint64_t *size) {
  return array_size(__func__, array, PG_FLOAT_ARRAY, size);
}
aclnnStatus aclGetBoolArraySize(const aclBoolArray *array, uint64_t *size) {
  return array_size(__func__, array, PG_BOOL_ARRAY, size);
}

/* Types that a single value can have. */
static bool is_scalar_type(aclDataType type) {
  switch (type) {
    case ACL_FLOAT:
    case ACL_FLOAT16:
    case ACL_BF16:
    case ACL_DOUBLE:
    case ACL_INT8:
    case ACL_INT16:
    case ACL_INT32:
    case ACL_INT64:
    case ACL_UINT8:
    case ACL_UINT16:
    case ACL_UINT32:
    case ACL_UINT64:
    case ACL_BOOL:
    case ACL_COMPLEX32:
    case ACL_COMPLEX64:
    case ACL_COMPLEX128:
      return true;
    default:
      return false;
  }
}

aclScalar *aclCreateScalar(void *value, aclDataType dataType) {
  if (value == NULL) {
    pg_fail_null_with(__func__, ACLNN_ERR_PARAM_NULLPTR, "value");
    return NULL;
  }
  if (!is_scalar_type(dataType)) {
    pg_fail_with(__func__, ACLNN_ERR_PARAM_INVALID,
                 "dataType is %d, a scalar is a float, integer, bool or complex value",
                 (int)dataType);
    return NULL;
  }
  struct pg_scalar *scalar = calloc(1, sizeof *scalar);
  if (scalar != NULL) {
    atomic_init(&scalar->object.refs, 1);
    scalar->object.destroy = destroy;
    scalar->dtype = dataType;
    memcpy(scalar->value, value, aclDataTypeSize(dataType));
    aclScalar *handle = pg_handle_open(PG_SCALAR, &scalar->object);
    if (handle != NULL) return handle;
    pg_release(&scalar->object);
  }
  (void)pg_fail_titled(ACL_ERROR_BAD_ALLOC, __func__, ACLNN_ERR_INNER, "no memory for a scalar");
  return NULL;
}

aclnnStatus aclDestroyScalar(const aclScalar *scalar) {
  return destroy_handle(__func__, scalar, PG_SCALAR);
}

static void *create_list(const char *api, enum pg_kind kind, enum pg_kind element,
                         const void *const *value, uint64_t size) {
  size_t bytes;
  if (value == NULL) size = 0;
  if (pg_mul_size(size, sizeof *value, &bytes) &&
      pg_add_size(bytes, sizeof(struct pg_list), &bytes)) {
    struct pg_list *list = malloc(bytes);
    if (list != NULL) {
      atomic_init(&list->object.refs, 1);
      list->object.destroy = destroy;
      list->element = element;
      list->size = size;
      for (uint64_t i = 0; i < size; i++) list->elements[i] = value[i];
      void *handle = pg_handle_open(kind, &list->object);
      if (handle != NULL) return handle;
      pg_release(&list->object);
    }
  }
  (void)pg_fail_titled(ACL_ERROR_BAD_ALLOC, api, ACLNN_ERR_INNER, "no memory for a list of %llu",
                       (unsigned long long)size);
  return NULL;
}

/* Elements that were destroyed before their list are passed over. */
static aclnnStatus destroy_list(const char *api, const void *handle, enum pg_kind kind) {
  if (handle == NULL) return ACLNN_SUCCESS;
  struct pg_list *list = pg_handle_close(handle, kind);
  if (list == NULL)
    return pg_fail(api, ACLNN_ERR_PARAM_INVALID, "array is %s, which cannot be destroyed so",
                   pg_handle_what(handle));
  for (uint64_t i = 0; i < list->size; i++)
    pg_release(pg_handle_close(list->elements[i], list->element));
  pg_release(&list->object);
  return ACLNN_SUCCESS;
}

static aclnnStatus list_size(const char *api, const void *handle, enum pg_kind kind,
                             uint64_t *size) {
  const char *name = kind == PG_TENSOR_LIST ? "tensorList" : "scalarList";
  if (handle == NULL) return pg_fail_null(api, ACLNN_ERR_PARAM_NULLPTR, name);
  if (size == NULL) return pg_fail_null(api, ACLNN_ERR_PARAM_NULLPTR, "size");
  struct pg_list *list = pg_acquire(handle, kind);
  if (list == NULL)
    return pg_fail(api, ACLNN_ERR_PARAM_INVALID, "%s is %s, a live one of its kind is required",
                   name, pg_handle_what(handle));
  *size = list->size;
  pg_release(&list->object);
  return ACLNN_SUCCESS;
}

aclTensorList *aclCreateTensorList(const aclTensor *const *value, uint64_t size) {
  return create_list(__func__, PG_TENSOR_LIST, PG_TENSOR, (const void *const *)value, size);
}
aclScalarList *aclCreateScalarList(const aclScalar *const *value, uint64_t size) {
  return create_list(__func__, PG_SCALAR_LIST, PG_SCALAR, (const void *const *)value, size);
}
aclnnStatus aclDestroyTensorList(const aclTensorList *array) {
  return destroy_list(__func__, array, PG_TENSOR_LIST);
}
aclnnStatus aclDestroyScalarList(const aclScalarList *array) {
  return destroy_list(__func__, array, PG_SCALAR_LIST);
}
aclnnStatus aclGetTensorListSize(const aclTensorList *tensorList, uint64_t *size) {
  return list_size(__func__, tensorList, PG_TENSOR_LIST, size);
}
aclnnStatus aclGetScalarListSize(const aclScalarList *scalarList, uint64_t *size) {
  return list_size(__func__, scalarList, PG_SCALAR_LIST, size);
}
