/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors: what is recorded, what is copied, what is refused. */
#include "expect.h"

#include "aclnn/acl_meta.h"
#include "aclnn/opdev/op_errno.h"

/* The sanitizers bring a C++ runtime into the process, and with one there the getters' arrays come
 * from new[].  C programs release them with free() all the same, as the header says. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "alloc_dealloc_mismatch=0"; }

static int64_t memory[128];

/* A float NCHW tensor over `memory`, its storage like its view. */
static aclTensor *make(const int64_t *dims, uint64_t rank, const int64_t *strides) {
  aclTensor *tensor =
      aclCreateTensor(dims, rank, ACL_FLOAT, strides, 0, ACL_FORMAT_NCHW, dims, rank, memory);
  assert_non_null(tensor);
  return tensor;
}

static aclTensor *make_any(void) { return make((const int64_t[]){2, 3}, 2, NULL); }

static void destroy(aclTensor *tensor) { OK_OR_SAY(aclDestroyTensor(tensor)); }

typedef aclnnStatus array_getter(const aclTensor *, int64_t **, uint64_t *);

static void expect_array(array_getter *get, const aclTensor *tensor, const int64_t *values,
                         uint64_t count) {
  int64_t *found = NULL;
  uint64_t found_count = 99;
  OK_OR_SAY(get(tensor, &found, &found_count));
  assert_non_null(found);
  assert_int_equal(found_count, count);
  if (count > 0) assert_memory_equal(found, values, count * sizeof *values);
  free(found);
}

static void expect_format(const aclTensor *tensor, int expected) {
  aclFormat format;
  OK_OR_SAY(aclGetFormat(tensor, &format));
  assert_int_equal(format, expected);
}

static void expect_data_type(const aclTensor *tensor, int expected) {
  aclDataType type;
  OK_OR_SAY(aclGetDataType(tensor, &type));
  assert_int_equal(type, expected);
}

static void expect_offset(const aclTensor *tensor, int64_t expected) {
  int64_t offset;
  OK_OR_SAY(aclGetViewOffset(tensor, &offset));
  assert_int_equal(offset, expected);
}

static void expect_address(const aclTensor *tensor, const void *expected) {
  void *address = memory;
  OK_OR_SAY(aclGetRawTensorAddr(tensor, &address));
  assert_ptr_equal(address, expected);
}

static void counted_dims_that_are_missing_give_no_tensor(void **state) {
  (void)state;
  const int64_t dims[] = {2, 3};
  assert_null(aclCreateTensor(NULL, 2, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, dims, 2, memory));
  assert_non_null(strstr(aclGetRecentErrMsg(), "viewDims is NULL"));
  assert_null(aclCreateTensor(dims, 2, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, NULL, 2, memory));
  assert_non_null(strstr(aclGetRecentErrMsg(), "storageDims is NULL"));
}

static void nothing_is_judged_at_creation(void **state) {
  (void)state;
  const int64_t dims[] = {-1, INT64_MIN}, strides[] = {-7, INT64_MAX};
  aclTensor *tensor = aclCreateTensor(dims, 2, (aclDataType)999, strides, -3, (aclFormat)-77, dims,
                                      1, (void *)(uintptr_t)13);
  assert_non_null(tensor);
  expect_array(aclGetViewShape, tensor, dims, 2);
  expect_array(aclGetViewStrides, tensor, strides, 2);
  expect_array(aclGetStorageShape, tensor, dims, 1);
  expect_data_type(tensor, 999);
  expect_format(tensor, -77);
  expect_offset(tensor, -3);
  expect_address(tensor, (void *)(uintptr_t)13);
  destroy(tensor);
}

static void absurd_dims_do_not_trap_the_contiguous_strides(void **state) {
  (void)state;
  aclTensor *tensor = make((const int64_t[]){INT64_MAX, INT64_MAX, INT64_MIN}, 3, NULL);
  destroy(tensor);
}

static void without_strides_a_tensor_is_contiguous(void **state) {
  (void)state;
  aclTensor *tensor = make((const int64_t[]){2, 3, 4, 5}, 4, NULL);
  expect_array(aclGetViewStrides, tensor, (const int64_t[]){60, 20, 5, 1}, 4);
  destroy(tensor);
}

static void an_axis_of_length_zero_makes_the_strides_outside_it_zero(void **state) {
  (void)state;
  aclTensor *tensor = make((const int64_t[]){2, 6, 0, 3}, 4, NULL);
  expect_array(aclGetViewStrides, tensor, (const int64_t[]){0, 0, 3, 1}, 4);
  destroy(tensor);
}

static void given_strides_are_kept(void **state) {
  (void)state;
  const int64_t channels_last[] = {60, 1, 15, 3};
  aclTensor *tensor = make((const int64_t[]){2, 3, 4, 5}, 4, channels_last);
  expect_array(aclGetViewStrides, tensor, channels_last, 4);
  destroy(tensor);
}

static void no_axes_make_a_scalar(void **state) {
  (void)state;
  aclTensor *tensor = aclCreateTensor(NULL, 0, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, NULL, 0, memory);
  assert_non_null(tensor);
  expect_array(aclGetViewShape, tensor, NULL, 0);
  expect_array(aclGetViewStrides, tensor, NULL, 0);
  expect_array(aclGetStorageShape, tensor, NULL, 0);
  destroy(tensor);
}

static void twenty_five_axes_are_the_most(void **state) {
  (void)state;
  int64_t dims[26];
  for (int i = 0; i < 26; i++) dims[i] = i + 1;
  aclTensor *tensor = make(dims, 25, dims);
  expect_array(aclGetViewShape, tensor, dims, 25);
  expect_array(aclGetViewStrides, tensor, dims, 25);
  expect_array(aclGetStorageShape, tensor, dims, 25);
  destroy(tensor);
  assert_null(aclCreateTensor(dims, 26, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, dims, 1, memory));
  assert_non_null(strstr(aclGetRecentErrMsg(), "26"));
  assert_null(aclCreateTensor(dims, 1, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, dims, 26, memory));
  assert_non_null(strstr(aclGetRecentErrMsg(), "26"));
  assert_null(
      aclCreateTensor(dims, UINT64_MAX, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, dims, 1, memory));
  (void)aclGetRecentErrMsg();
}

static void a_flat_storage_may_lie_under_a_view_of_four_axes(void **state) {
  (void)state;
  const int64_t dims[] = {1, 3, 2, 2}, strides[] = {12, 1, 6, 3}, storage[] = {14};
  aclTensor *tensor =
      aclCreateTensor(dims, 4, ACL_FLOAT16, strides, 2, ACL_FORMAT_NCHW, storage, 1, memory);
  assert_non_null(tensor);
  expect_array(aclGetViewShape, tensor, dims, 4);
  expect_array(aclGetStorageShape, tensor, storage, 1);
  expect_offset(tensor, 2);
  destroy(tensor);
}

static void the_arrays_given_are_copied(void **state) {
  (void)state;
  int64_t dims[] = {2, 3}, strides[] = {3, 1}, storage[] = {6};
  aclTensor *tensor =
      aclCreateTensor(dims, 2, ACL_FLOAT, strides, 0, ACL_FORMAT_ND, storage, 1, memory);
  dims[0] = strides[0] = storage[0] = 77;
  expect_array(aclGetViewShape, tensor, (const int64_t[]){2, 3}, 2);
  expect_array(aclGetViewStrides, tensor, (const int64_t[]){3, 1}, 2);
  expect_array(aclGetStorageShape, tensor, (const int64_t[]){6}, 1);
  destroy(tensor);
}

static void returned_arrays_belong_to_the_caller(void **state) {
  (void)state;
  aclTensor *tensor = make((const int64_t[]){4, 5}, 2, NULL);
  int64_t *dims;
  uint64_t count;
  OK_OR_SAY(aclGetViewShape(tensor, &dims, &count));
  dims[0] = 99;
  expect_array(aclGetViewShape, tensor, (const int64_t[]){4, 5}, 2);
  destroy(tensor);
  assert_int_equal(dims[0], 99);
  free(dims);
}

static void getters_want_every_pointer_and_write_nothing_without(void **state) {
  (void)state;
  aclTensor *tensor = make_any();
  static array_getter *const getters[] = {aclGetViewShape, aclGetStorageShape, aclGetViewStrides};
  for (size_t i = 0; i < 3; i++) {
    int64_t *values = memory;
    uint64_t count = 99;
    FAILS(getters[i](NULL, &values, &count), ACLNN_ERR_PARAM_NULLPTR, "tensor");
    FAILS(getters[i](tensor, NULL, &count), ACLNN_ERR_PARAM_NULLPTR, "NULL");
    FAILS(getters[i](tensor, &values, NULL), ACLNN_ERR_PARAM_NULLPTR, "NULL");
    assert_ptr_equal(values, memory);
    assert_int_equal(count, 99);
  }
  int64_t offset;
  aclFormat format;
  aclDataType type;
  void *address;
  FAILS(aclGetViewOffset(NULL, &offset), ACLNN_ERR_PARAM_NULLPTR, "aclGetViewOffset", "tensor");
  FAILS(aclGetViewOffset(tensor, NULL), ACLNN_ERR_PARAM_NULLPTR, "aclGetViewOffset", "offset");
  FAILS(aclGetFormat(NULL, &format), ACLNN_ERR_PARAM_NULLPTR, "aclGetFormat", "tensor");
  FAILS(aclGetFormat(tensor, NULL), ACLNN_ERR_PARAM_NULLPTR, "aclGetFormat", "format");
  FAILS(aclGetDataType(NULL, &type), ACLNN_ERR_PARAM_NULLPTR, "aclGetDataType", "tensor");
  FAILS(aclGetDataType(tensor, NULL), ACLNN_ERR_PARAM_NULLPTR, "aclGetDataType", "dataType");
  FAILS(aclGetRawTensorAddr(NULL, &address), ACLNN_ERR_PARAM_NULLPTR, "aclGetRawTensorAddr");
  FAILS(aclGetRawTensorAddr(tensor, NULL), ACLNN_ERR_PARAM_NULLPTR, "aclGetRawTensorAddr", "addr");
  FAILS(aclSetRawTensorAddr(NULL, memory), ACLNN_ERR_PARAM_NULLPTR, "aclSetRawTensorAddr");
  destroy(tensor);
}

static void the_raw_address_is_the_one_given_without_the_offset(void **state) {
  (void)state;
  const int64_t dims[] = {2};
  aclTensor *tensor = aclCreateTensor(dims, 1, ACL_FLOAT, NULL, 5, ACL_FORMAT_ND, dims, 1, NULL);
  assert_non_null(tensor);
  expect_address(tensor, NULL);
  OK_OR_SAY(aclSetRawTensorAddr(tensor, &memory[3]));
  expect_address(tensor, &memory[3]);
  OK_OR_SAY(aclSetRawTensorAddr(tensor, NULL));
  expect_address(tensor, NULL);
  destroy(tensor);
}

static void describing_anew_replaces_what_is_given(void **state) {
  (void)state;
  aclTensor *tensor = make((const int64_t[]){2, 3, 4, 5}, 4, NULL);
  const int64_t dims[] = {7, 8}, storage[] = {60};
  OK_OR_SAY(
      aclInitTensor(tensor, dims, 2, ACL_INT64, NULL, 4, ACL_FORMAT_ND, storage, 1, &memory[1]));
  expect_array(aclGetViewShape, tensor, dims, 2);
  expect_array(aclGetViewStrides, tensor, (const int64_t[]){8, 1}, 2);
  expect_array(aclGetStorageShape, tensor, storage, 1);
  expect_data_type(tensor, ACL_INT64);
  expect_format(tensor, ACL_FORMAT_ND);
  expect_offset(tensor, 4);
  expect_address(tensor, &memory[1]);
  destroy(tensor);
}

static void describing_anew_keeps_what_is_not_given(void **state) {
  (void)state;
  const int64_t dims[] = {2, 3};
  aclTensor *tensor = make(dims, 2, NULL);
  OK_OR_SAY(aclInitTensor(tensor, NULL, 2, ACL_INT8, NULL, 0, ACL_FORMAT_ND, NULL, 9, NULL));
  expect_array(aclGetViewShape, tensor, dims, 2);
  expect_array(aclGetStorageShape, tensor, dims, 2);
  expect_address(tensor, memory);
  OK_OR_SAY(aclInitTensor(tensor, dims, 0, ACL_INT8, (const int64_t[]){1, 2}, 0, ACL_FORMAT_ND,
                          dims, 0, NULL));
  expect_array(aclGetViewShape, tensor, dims, 2);
  expect_array(aclGetViewStrides, tensor, (const int64_t[]){1, 2}, 2);
  expect_array(aclGetStorageShape, tensor, dims, 2);
  expect_data_type(tensor, ACL_INT8);
  destroy(tensor);
}

static void describing_anew_with_too_many_axes_changes_nothing(void **state) {
  (void)state;
  int64_t dims[26] = {0};
  aclTensor *tensor = make_any();
  FAILS(aclInitTensor(NULL, dims, 1, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, dims, 1, memory),
        ACLNN_ERR_PARAM_NULLPTR, "aclInitTensor", "tensor");
  FAILS(aclInitTensor(tensor, dims, 26, ACL_INT8, NULL, 9, ACL_FORMAT_ND, dims, 1, dims),
        ACLNN_ERR_PARAM_INVALID, "aclInitTensor", "26");
  expect_array(aclGetViewShape, tensor, (const int64_t[]){2, 3}, 2);
  expect_data_type(tensor, ACL_FLOAT);
  expect_offset(tensor, 0);
  expect_address(tensor, memory);
  destroy(tensor);
}

static void destroying_null_is_fine(void **state) {
  (void)state;
  OK_OR_SAY(aclDestroyTensor(NULL));
}

static void destroying_leaves_the_memory_alone(void **state) {
  (void)state;
  memory[0] = 42;
  destroy(make_any());
  assert_int_equal(memory[0], 42);
}

static void a_destroyed_tensor_is_refused_everywhere(void **state) {
  (void)state;
  aclTensor *tensor = make_any();
  int64_t *values = NULL, offset;
  uint64_t count;
  aclFormat format;
  aclDataType type;
  void *address;
  destroy(tensor);
  FAILS(aclDestroyTensor(tensor), ACLNN_ERR_PARAM_INVALID, "aclDestroyTensor", "destroyed tensor");
  FAILS(aclGetViewShape(tensor, &values, &count), ACLNN_ERR_PARAM_INVALID, "aclGetViewShape");
  FAILS(aclGetStorageShape(tensor, &values, &count), ACLNN_ERR_PARAM_INVALID, "aclGetStorageShape");
  FAILS(aclGetViewStrides(tensor, &values, &count), ACLNN_ERR_PARAM_INVALID, "aclGetViewStrides");
  FAILS(aclGetViewOffset(tensor, &offset), ACLNN_ERR_PARAM_INVALID, "aclGetViewOffset");
  FAILS(aclGetFormat(tensor, &format), ACLNN_ERR_PARAM_INVALID, "aclGetFormat");
  FAILS(aclGetDataType(tensor, &type), ACLNN_ERR_PARAM_INVALID, "aclGetDataType");
  FAILS(aclGetRawTensorAddr(tensor, &address), ACLNN_ERR_PARAM_INVALID, "aclGetRawTensorAddr");
  FAILS(aclSetRawTensorAddr(tensor, memory), ACLNN_ERR_PARAM_INVALID, "aclSetRawTensorAddr");
  FAILS(aclInitTensor(tensor, NULL, 0, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, NULL, 0, NULL),
        ACLNN_ERR_PARAM_INVALID, "aclInitTensor");
}

static void garbage_and_other_objects_are_no_tensors(void **state) {
  (void)state;
  int on_the_stack = 0;
  aclIntArray *array = aclCreateIntArray(memory, 3);
  FAILS(aclDestroyTensor((aclTensor *)(void *)&on_the_stack), ACLNN_ERR_PARAM_INVALID,
        "not a handle");
  FAILS(aclDestroyTensor((aclTensor *)(uintptr_t)1), ACLNN_ERR_PARAM_INVALID, "not a handle");
  FAILS(aclDestroyTensor((aclTensor *)(void *)array), ACLNN_ERR_PARAM_INVALID, "an int array");
  uint64_t size = 0;
  OK_OR_SAY(aclGetIntArraySize(array, &size));
  assert_int_equal(size, 3);
  OK_OR_SAY(aclDestroyIntArray(array));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(counted_dims_that_are_missing_give_no_tensor),
      cmocka_unit_test(nothing_is_judged_at_creation),
      cmocka_unit_test(absurd_dims_do_not_trap_the_contiguous_strides),
      cmocka_unit_test(without_strides_a_tensor_is_contiguous),
      cmocka_unit_test(an_axis_of_length_zero_makes_the_strides_outside_it_zero),
      cmocka_unit_test(given_strides_are_kept),
      cmocka_unit_test(no_axes_make_a_scalar),
      cmocka_unit_test(twenty_five_axes_are_the_most),
      cmocka_unit_test(a_flat_storage_may_lie_under_a_view_of_four_axes),
      cmocka_unit_test(the_arrays_given_are_copied),
      cmocka_unit_test(returned_arrays_belong_to_the_caller),
      cmocka_unit_test(getters_want_every_pointer_and_write_nothing_without),
      cmocka_unit_test(the_raw_address_is_the_one_given_without_the_offset),
      cmocka_unit_test(describing_anew_replaces_what_is_given),
      cmocka_unit_test(describing_anew_keeps_what_is_not_given),
      cmocka_unit_test(describing_anew_with_too_many_axes_changes_nothing),
      cmocka_unit_test(destroying_null_is_fine),
      cmocka_unit_test(destroying_leaves_the_memory_alone),
      cmocka_unit_test(a_destroyed_tensor_is_refused_everywhere),
      cmocka_unit_test(garbage_and_other_objects_are_no_tensors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
