/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptions: data buffers, tensors, scalars, arrays and lists. */
#include <stdlib.h>
#include <string.h>

#include "stress.h"

/* --- data buffers --- */

/* Only its maker changes a buffer; everybody may look at it, or destroy it. */
static void create_buffer(struct turn *t) {
  aclDataBuffer *buffer = MAKE(t, aclCreateDataBuffer, (&stress_words, 8));
  CALL(t, aclUpdateDataBuffer, (buffer, &stress_words, sizeof stress_words), 0);
  shelf_destroy(t, BUFFERS, shelf_put(t, BUFFERS, buffer));
}

static void destroy_buffer(struct turn *t) { shelf_destroy(t, BUFFERS, shelf_any(t, BUFFERS)); }

static void ask_about_buffer(struct turn *t) {
  const aclDataBuffer *buffer = shelf_any(t, BUFFERS);
  const void *address = TELL(t, aclGetDataBufferAddr, (buffer));
  const size_t size = TELL(t, aclGetDataBufferSizeV2, (buffer));
  (void)TELL(t, aclGetDataBufferSize, (buffer));
  if (address != NULL && address != &stress_words)
    complain(t, "a data buffer has another address than it was given");
  if (size != 0 && size != sizeof stress_words) complain(t, "a data buffer has %zu bytes", size);
}

/* --- tensors --- */

#define OBJECT_CODES 161001, 161002

/* Shapes that operators may or may not like. */
static aclTensor *some_tensor(struct turn *t) {
  int64_t dims[5], strides[5] = {1000, 200, 40, 8, 1};
  const uint64_t rank = pick(t, 4) + 2;
  for (uint64_t i = 0; i < rank; i++) dims[i] = (int64_t)pick(t, 5);
  const aclDataType types[] = {ACL_FLOAT, ACL_FLOAT16, ACL_BF16, ACL_INT32, ACL_INT64};
  const aclDataType type = types[pick(t, 5)];
  return MAKE(t, aclCreateTensor,
              (dims, rank, type, chance(t, 2) ? strides : NULL, (int64_t)pick(t, 3),
               rank == 4 ? ACL_FORMAT_NCHW : ACL_FORMAT_ND, dims, rank, fresh(t, 64)));
}

static void create_tensor(struct turn *t) {
  aclTensor *tensor = some_tensor(t);
  const int64_t dims[] = {2, 3, 4};
  if (chance(t, 4))
    CALL(t, aclInitTensor,
         (tensor, dims, 3, ACL_FLOAT, NULL, 0, ACL_FORMAT_NCL, dims, 3, &stress_words), 0);
  shelf_destroy(t, TENSORS, shelf_put(t, TENSORS, tensor));
}

static void destroy_tensor(struct turn *t) { shelf_destroy(t, TENSORS, shelf_any(t, TENSORS)); }

static void ask_about_tensor(struct turn *t) {
  aclTensor *tensor = shelf_any(t, TENSORS);
  int64_t *shape = NULL, *storage = NULL, *strides = NULL, offset = 0;
  uint64_t rank = 0, storage_rank = 0, strides_rank = 0;
  aclFormat format;
  aclDataType type;
  void *address = NULL;
  CALL(t, aclGetViewShape, (tensor, &shape, &rank), OBJECT_CODES);
  CALL(t, aclGetStorageShape, (tensor, &storage, &storage_rank), OBJECT_CODES);
  CALL(t, aclGetViewStrides, (tensor, &strides, &strides_rank), OBJECT_CODES);
  if (shape != NULL && (rank < 2 || rank > 5)) complain(t, "a tensor has %d axes", (int)rank);
  free(shape);
  free(storage);
  free(strides);
  CALL(t, aclGetViewOffset, (tensor, &offset), OBJECT_CODES);
  CALL(t, aclGetFormat, (tensor, &format), OBJECT_CODES);
  CALL(t, aclGetDataType, (tensor, &type), OBJECT_CODES);
  CALL(t, aclGetRawTensorAddr, (tensor, &address), OBJECT_CODES);
  CALL(t, aclSetRawTensorAddr, (tensor, address), OBJECT_CODES);
}

static void dump_tensors(struct turn *t) {
  aclTensor *tensors[] = {shelf_any(t, TENSORS), shelf_any(t, TENSORS)};
  CALL(t, aclDumpOpTensors, ("type", "name", tensors, 1, 1, NULL), OBJECT_CODES, 361001);
}

static void use_tensor_list(struct turn *t) {
  const aclTensor *members[] = {some_tensor(t), NULL, shelf_any(t, TENSORS)};
  uint64_t size = 0;
  if (chance(t, 2)) {
    aclTensorList *list = MAKE(t, aclCreateTensorList, (members, 3));
    shelf_destroy(t, TENSOR_LISTS, shelf_put(t, TENSOR_LISTS, list));
  } else {
    CALL(t, aclDestroyTensor, (members[0]), 0);
    aclTensorList *list = shelf_any(t, TENSOR_LISTS);
    CALL(t, aclGetTensorListSize, (list, &size), OBJECT_CODES);
    if (chance(t, 2)) shelf_destroy(t, TENSOR_LISTS, list);
  }
}

/* --- scalars and arrays --- */

static void use_scalars(struct turn *t) {
  double value = 1.5;
  uint64_t size = 0;
  aclScalar *scalar = MAKE(t, aclCreateScalar, (&value, ACL_DOUBLE));
  shelf_destroy(t, SCALARS, shelf_put(t, SCALARS, scalar));
  if (chance(t, 4)) {
    const aclScalar *members[] = {shelf_any(t, SCALARS)};
    aclScalarList *list = MAKE(t, aclCreateScalarList, (members, 1));
    CALL(t, aclGetScalarListSize, (list, &size), 0);
    shelf_destroy(t, SCALAR_LISTS, shelf_put(t, SCALAR_LISTS, list));
  }
  if (chance(t, 2)) shelf_destroy(t, SCALARS, shelf_any(t, SCALARS));
  if (chance(t, 4)) shelf_destroy(t, SCALAR_LISTS, shelf_any(t, SCALAR_LISTS));
}

static void use_arrays(struct turn *t) {
  const int64_t ints[] = {2, 2, 2};
  const float floats[] = {1, 2, 3};
  const bool bools[] = {true, false, true};
  uint64_t size = 0;
  const uint64_t count = pick(t, 3) + 1;
  shelf_destroy(t, INT_ARRAYS, shelf_put(t, INT_ARRAYS, MAKE(t, aclCreateIntArray, (ints, count))));
  shelf_destroy(t, FLOAT_ARRAYS,
                shelf_put(t, FLOAT_ARRAYS, MAKE(t, aclCreateFloatArray, (floats, count))));
  shelf_destroy(t, BOOL_ARRAYS,
                shelf_put(t, BOOL_ARRAYS, MAKE(t, aclCreateBoolArray, (bools, count))));
  CALL(t, aclGetIntArraySize, (shelf_any(t, INT_ARRAYS), &size), OBJECT_CODES);
  CALL(t, aclGetFloatArraySize, (shelf_any(t, FLOAT_ARRAYS), &size), OBJECT_CODES);
  CALL(t, aclGetBoolArraySize, (shelf_any(t, BOOL_ARRAYS), &size), OBJECT_CODES);
  if (size > 3) complain(t, "an array has %d values", (int)size);
  const enum shelf shelf = (enum shelf)(INT_ARRAYS + pick(t, 3));
  shelf_destroy(t, shelf, shelf_any(t, shelf));
}

static void convert_numbers(struct turn *t) {
  const float value = (float)pick(t, 2000);
  if (TELL(t, aclFloat16ToFloat, (aclFloatToFloat16(value))) != value)
    complain(t, "%d does not survive as a half", (int)value);
  if (TELL(t, aclDataTypeSize, (ACL_DOUBLE)) != 8) complain(t, "a double has not 8 bytes");
}

/* Its name and its storage may be changed by one thread at a time, so no shelf has them. */
static void use_tensor_desc(struct turn *t) {
  const int64_t dims[] = {2, (int64_t)pick(t, 5) + 1};
  int64_t size = 0;
  aclTensorDesc *desc = MAKE(t, aclCreateTensorDesc, (ACL_FLOAT, 2, dims, ACL_FORMAT_ND));
  TELL(t, aclSetTensorDescName, (desc, "x"));
  CALL(t, aclSetTensorFormat, (desc, ACL_FORMAT_NCHW), 0);
  CALL(t, aclSetTensorShape, (desc, 1, dims), 0);
  CALL(t, aclSetTensorPlaceMent, (desc, ACL_MEMTYPE_HOST), 0);
  if (CALL(t, aclGetTensorDescDimV2, (desc, 1, &size), 0) == 0 && size != dims[1])
    complain(t, "a size of a description is %d", (int)size);
  if (TELL(t, aclGetTensorDescDim, (desc, 0)) != 2 || TELL(t, aclGetTensorDescNumDims, (desc)) != 2)
    complain(t, "a description has another shape than it was given");
  if (TELL(t, aclGetTensorDescSize, (desc)) != 4 * TELL(t, aclGetTensorDescElementCount, (desc)))
    complain(t, "the size of a description is wrong");
  if (TELL(t, aclGetTensorDescType, (desc)) != ACL_FLOAT ||
      TELL(t, aclGetTensorDescFormat, (desc)) != ACL_FORMAT_ND ||
      strcmp(TELL(t, aclGetTensorDescName, (desc)), "x") != 0)
    complain(t, "a description is not as it was made");
  TELL(t, aclDestroyTensorDesc, (desc));
}

/* The operator is refused, whatever its attributes. */
static void compile_operator(struct turn *t) {
  const int64_t ints[] = {1, 2};
  const int64_t *const lists[] = {ints};
  const uint8_t bools[] = {1, 0};
  const float floats[] = {1};
  const int two = 2;
  aclopAttr *attr = MAKE(t, aclopCreateAttr, ());
  CALL(t, aclopSetAttrBool, (attr, "a", 1), 0);
  CALL(t, aclopSetAttrInt, (attr, "b", 1), 0);
  CALL(t, aclopSetAttrFloat, (attr, "c", 1), 0);
  CALL(t, aclopSetAttrString, (attr, "d", "e"), 0);
  CALL(t, aclopSetAttrDataType, (attr, "f", ACL_FLOAT), 0);
  CALL(t, aclopSetAttrListBool, (attr, "g", 2, bools), 0);
  CALL(t, aclopSetAttrListInt, (attr, "h", 2, ints), 0);
  CALL(t, aclopSetAttrListFloat, (attr, "i", 1, floats), 0);
  CALL(t, aclopSetAttrListListInt, (attr, "j", 1, &two, lists), 0);
  if (CALL(t, aclopCompileAndExecute,
           ("Pooling", 0, NULL, NULL, 0, NULL, NULL, attr, ACL_ENGINE_SYS, ACL_COMPILE_SYS, NULL,
            NULL),
           ACL_ERROR_API_NOT_SUPPORT) == 0)
    complain(t, "an operator was compiled");
  TELL(t, aclopDestroyAttr, (attr));
}

const struct row object_rows[] = {
    ROW(create_buffer, 15, ANY_WEATHER),    ROW(destroy_buffer, 8, ANY_WEATHER),
    ROW(ask_about_buffer, 15, ANY_WEATHER), ROW(create_tensor, 40, ANY_WEATHER),
    ROW(destroy_tensor, 20, ANY_WEATHER),   ROW(ask_about_tensor, 30, ANY_WEATHER),
    ROW(dump_tensors, 4, ANY_WEATHER),      ROW(use_tensor_list, 20, ANY_WEATHER),
    ROW(use_scalars, 15, ANY_WEATHER),      ROW(use_arrays, 20, ANY_WEATHER),
    ROW(convert_numbers, 4, ANY_WEATHER),   ROW(use_tensor_desc, 8, ANY_WEATHER),
    ROW(compile_operator, 4, ANY_WEATHER),  {NULL, 0, 0, NULL},
};
