/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays, scalars and lists: values are copied, lists own their members. */
#include "expect.h"

#include "aclnn/array.h"
#include "aclnn/opdev/op_errno.h"

/* The values an array holds, compared with these. */
static void expect_values(const void *array, enum pg_kind kind, const void *values, size_t bytes) {
  struct pg_array *found = pg_acquire(array, kind);
  assert_non_null(found);
  assert_memory_equal(found->values, values, bytes);
  pg_release(&found->object);
}

static void an_int_array_copies_its_values(void **state) {
  (void)state;
  int64_t values[] = {1, -2, INT64_MAX};
  const int64_t expected[] = {1, -2, INT64_MAX};
  uint64_t size;
  aclIntArray *array = aclCreateIntArray(values, 3);
  memset(values, 0, sizeof values);
  OK_OR_SAY(aclGetIntArraySize(array, &size));
  assert_int_equal(size, 3);
  expect_values(array, PG_INT_ARRAY, expected, sizeof expected);
  OK_OR_SAY(aclDestroyIntArray(array));
}

static void a_float_array_copies_its_values(void **state) {
  (void)state;
  float values[] = {1.5f, -2.0f};
  const float expected[] = {1.5f, -2.0f};
  uint64_t size;
  aclFloatArray *array = aclCreateFloatArray(values, 2);
  memset(values, 0, sizeof values);
  OK_OR_SAY(aclGetFloatArraySize(array, &size));
  assert_int_equal(size, 2);
  expect_values(array, PG_FLOAT_ARRAY, expected, sizeof expected);
  OK_OR_SAY(aclDestroyFloatArray(array));
}

static void a_bool_array_copies_its_values(void **state) {
  (void)state;
  bool values[] = {true, false, true, true, false};
  const bool expected[] = {true, false, true, true, false};
  uint64_t size;
  aclBoolArray *array = aclCreateBoolArray(values, 5);
  memset(values, 0, sizeof values);
  OK_OR_SAY(aclGetBoolArraySize(array, &size));
  assert_int_equal(size, 5);
  expect_values(array, PG_BOOL_ARRAY, expected, sizeof expected);
  OK_OR_SAY(aclDestroyBoolArray(array));
}

static void expect_empty_ints(aclIntArray *array) {
  uint64_t size = 9;
  assert_non_null(array);
  OK_OR_SAY(aclGetIntArraySize(array, &size));
  assert_int_equal(size, 0);
  OK_OR_SAY(aclDestroyIntArray(array));
}

static void expect_empty_floats(aclFloatArray *array) {
  uint64_t size = 9;
  assert_non_null(array);
  OK_OR_SAY(aclGetFloatArraySize(array, &size));
  assert_int_equal(size, 0);
  OK_OR_SAY(aclDestroyFloatArray(array));
}

static void expect_empty_bools(aclBoolArray *array) {
  uint64_t size = 9;
  assert_non_null(array);
  OK_OR_SAY(aclGetBoolArraySize(array, &size));
  assert_int_equal(size, 0);
  OK_OR_SAY(aclDestroyBoolArray(array));
}

static void null_values_or_no_size_make_an_empty_array(void **state) {
  (void)state;
  expect_empty_ints(aclCreateIntArray(NULL, 4));
  expect_empty_ints(aclCreateIntArray(NULL, 0));
  expect_empty_ints(aclCreateIntArray((const int64_t[]){1}, 0));
  expect_empty_floats(aclCreateFloatArray(NULL, 4));
  expect_empty_floats(aclCreateFloatArray((const float[]){1}, 0));
  expect_empty_bools(aclCreateBoolArray(NULL, 4));
  expect_empty_bools(aclCreateBoolArray((const bool[]){true}, 0));
}

static void an_array_too_large_to_address_is_refused(void **state) {
  (void)state;
  const int64_t value = 1;
  assert_null(aclCreateIntArray(&value, UINT64_MAX / 8 + 2));
  assert_non_null(strstr(aclGetRecentErrMsg(), "aclCreateIntArray"));
  assert_null(aclCreateBoolArray((const bool *)&value, UINT64_MAX));
  assert_non_null(strstr(aclGetRecentErrMsg(), "aclCreateBoolArray"));
}

static void destroying_null_is_fine(void **state) {
  (void)state;
  OK_OR_SAY(aclDestroyIntArray(NULL));
  OK_OR_SAY(aclDestroyFloatArray(NULL));
  OK_OR_SAY(aclDestroyBoolArray(NULL));
  OK_OR_SAY(aclDestroyScalar(NULL));
  OK_OR_SAY(aclDestroyTensorList(NULL));
  OK_OR_SAY(aclDestroyScalarList(NULL));
}

static void sizes_want_both_pointers(void **state) {
  (void)state;
  uint64_t size;
  aclIntArray *ints = aclCreateIntArray(NULL, 0);
  aclFloatArray *floats = aclCreateFloatArray(NULL, 0);
  aclBoolArray *bools = aclCreateBoolArray(NULL, 0);
  aclTensorList *tensors = aclCreateTensorList(NULL, 0);
  aclScalarList *scalars = aclCreateScalarList(NULL, 0);
  FAILS(aclGetIntArraySize(NULL, &size), ACLNN_ERR_PARAM_NULLPTR, "aclGetIntArraySize", "array");
  FAILS(aclGetIntArraySize(ints, NULL), ACLNN_ERR_PARAM_NULLPTR, "aclGetIntArraySize", "size");
  FAILS(aclGetFloatArraySize(NULL, &size), ACLNN_ERR_PARAM_NULLPTR, "aclGetFloatArraySize");
  FAILS(aclGetFloatArraySize(floats, NULL), ACLNN_ERR_PARAM_NULLPTR, "aclGetFloatArraySize");
  FAILS(aclGetBoolArraySize(NULL, &size), ACLNN_ERR_PARAM_NULLPTR, "aclGetBoolArraySize");
  FAILS(aclGetBoolArraySize(bools, NULL), ACLNN_ERR_PARAM_NULLPTR, "aclGetBoolArraySize");
  FAILS(aclGetTensorListSize(NULL, &size), ACLNN_ERR_PARAM_NULLPTR, "aclGetTensorListSize");
  FAILS(aclGetTensorListSize(tensors, NULL), ACLNN_ERR_PARAM_NULLPTR, "aclGetTensorListSize");
  FAILS(aclGetScalarListSize(NULL, &size), ACLNN_ERR_PARAM_NULLPTR, "aclGetScalarListSize");
  FAILS(aclGetScalarListSize(scalars, NULL), ACLNN_ERR_PARAM_NULLPTR, "aclGetScalarListSize");
  OK_OR_SAY(aclDestroyIntArray(ints));
  OK_OR_SAY(aclDestroyFloatArray(floats));
  OK_OR_SAY(aclDestroyBoolArray(bools));
  OK_OR_SAY(aclDestroyTensorList(tensors));
  OK_OR_SAY(aclDestroyScalarList(scalars));
}

static void stale_arrays_are_refused(void **state) {
  (void)state;
  uint64_t size = 7;
  aclIntArray *array = aclCreateIntArray((const int64_t[]){1}, 1);
  OK_OR_SAY(aclDestroyIntArray(array));
  FAILS(aclDestroyIntArray(array), ACLNN_ERR_PARAM_INVALID, "aclDestroyIntArray", "destroyed");
  FAILS(aclGetIntArraySize(array, &size), ACLNN_ERR_PARAM_INVALID, "destroyed int array");
  assert_int_equal(size, 7);
}

static void an_array_of_another_kind_is_refused_and_lives_on(void **state) {
  (void)state;
  uint64_t size;
  aclIntArray *array = aclCreateIntArray((const int64_t[]){1, 2}, 2);
  FAILS(aclDestroyFloatArray((aclFloatArray *)(void *)array), ACLNN_ERR_PARAM_INVALID,
        "aclDestroyFloatArray", "an int array");
  FAILS(aclGetBoolArraySize((aclBoolArray *)(void *)array, &size), ACLNN_ERR_PARAM_INVALID,
        "aclGetBoolArraySize", "an int array");
  FAILS(aclDestroyTensorList((aclTensorList *)(void *)array), ACLNN_ERR_PARAM_INVALID,
        "aclDestroyTensorList", "an int array");
  FAILS(aclDestroyScalar((aclScalar *)(void *)array), ACLNN_ERR_PARAM_INVALID, "aclDestroyScalar");
  OK_OR_SAY(aclGetIntArraySize(array, &size));
  assert_int_equal(size, 2);
  OK_OR_SAY(aclDestroyIntArray(array));
}

static void a_scalar_copies_one_value_of_its_type(void **state) {
  (void)state;
  static const aclDataType types[] = {ACL_FLOAT, ACL_FLOAT16,   ACL_BF16,      ACL_DOUBLE,
                                      ACL_INT8,  ACL_INT16,     ACL_INT32,     ACL_INT64,
                                      ACL_UINT8, ACL_UINT16,    ACL_UINT32,    ACL_UINT64,
                                      ACL_BOOL,  ACL_COMPLEX32, ACL_COMPLEX64, ACL_COMPLEX128};
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    const size_t bytes = aclDataTypeSize(types[i]);
    unsigned char *value = malloc(bytes); /* exactly: one byte more would be an overrun */
    for (size_t b = 0; b < bytes; b++) value[b] = (unsigned char)(b + 1);
    aclScalar *scalar = aclCreateScalar(value, types[i]);
    memset(value, 0, bytes);
    struct pg_scalar *found = pg_acquire(scalar, PG_SCALAR);
    assert_non_null(found);
    assert_int_equal(found->dtype, types[i]);
    for (size_t b = 0; b < bytes; b++) assert_int_equal(found->value[b], b + 1);
    pg_release(&found->object);
    OK_OR_SAY(aclDestroyScalar(scalar));
    free(value);
  }
}

static void a_scalar_needs_a_value_and_a_type_it_can_have(void **state) {
  (void)state;
  static const int types[] = {ACL_DT_UNDEFINED, ACL_STRING, ACL_INT4, ACL_FLOAT4_E2M1, 5, 999};
  int64_t value[2] = {0};
  assert_null(aclCreateScalar(NULL, ACL_FLOAT));
  assert_non_null(strstr(aclGetRecentErrMsg(), "value is NULL"));
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    assert_null(aclCreateScalar(value, (aclDataType)types[i]));
    assert_non_null(strstr(aclGetRecentErrMsg(), "dataType"));
  }
}

static void a_stale_scalar_is_refused(void **state) {
  (void)state;
  float one = 1;
  aclScalar *scalar = aclCreateScalar(&one, ACL_FLOAT);
  OK_OR_SAY(aclDestroyScalar(scalar));
  FAILS(aclDestroyScalar(scalar), ACLNN_ERR_PARAM_INVALID, "aclDestroyScalar", "destroyed scalar");
}

static aclTensor *any_tensor(void) {
  aclTensor *tensor =
      aclCreateTensor((const int64_t[]){2}, 1, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, NULL, 0, NULL);
  assert_non_null(tensor);
  return tensor;
}

static void a_tensor_list_destroys_its_members(void **state) {
  (void)state;
  const aclTensor *members[] = {any_tensor(), NULL, any_tensor()};
  const aclTensor *const first = members[0], *const last = members[2];
  uint64_t size;
  aclTensorList *list = aclCreateTensorList(members, 3);
  memset(members, 0, sizeof members); /* the array stays the caller's */
  OK_OR_SAY(aclGetTensorListSize(list, &size));
  assert_int_equal(size, 3);
  assert_true(pg_is_live(first, PG_TENSOR));
  OK_OR_SAY(aclDestroyTensorList(list));
  assert_false(pg_is_live(first, PG_TENSOR));
  assert_false(pg_is_live(last, PG_TENSOR));
  FAILS(aclDestroyTensor(first), ACLNN_ERR_PARAM_INVALID, "destroyed tensor");
}

static void a_scalar_list_destroys_its_members(void **state) {
  (void)state;
  int64_t value = 1;
  const aclScalar *members[] = {NULL, aclCreateScalar(&value, ACL_INT64)};
  uint64_t size;
  aclScalarList *list = aclCreateScalarList(members, 2);
  OK_OR_SAY(aclGetScalarListSize(list, &size));
  assert_int_equal(size, 2);
  OK_OR_SAY(aclDestroyScalarList(list));
  assert_false(pg_is_live(members[1], PG_SCALAR));
}

static void members_destroyed_before_their_list_are_passed_over(void **state) {
  (void)state;
  const aclTensor *members[] = {any_tensor(), any_tensor()};
  aclTensorList *list = aclCreateTensorList(members, 2);
  OK_OR_SAY(aclDestroyTensor(members[0]));
  const aclTensor *successor = any_tensor(); /* may get the slot that became free */
  OK_OR_SAY(aclDestroyTensorList(list));
  assert_false(pg_is_live(members[1], PG_TENSOR));
  assert_true(pg_is_live(successor, PG_TENSOR));
  OK_OR_SAY(aclDestroyTensor(successor));
}

static void a_member_listed_twice_is_destroyed_once(void **state) {
  (void)state;
  const aclTensor *tensor = any_tensor();
  const aclTensor *members[] = {tensor, tensor};
  OK_OR_SAY(aclDestroyTensorList(aclCreateTensorList(members, 2)));
  assert_false(pg_is_live(tensor, PG_TENSOR));
}

static void stale_lists_are_refused(void **state) {
  (void)state;
  uint64_t size = 7;
  aclTensorList *tensors = aclCreateTensorList(NULL, 3);
  OK_OR_SAY(aclGetTensorListSize(tensors, &size));
  assert_int_equal(size, 0);
  OK_OR_SAY(aclDestroyTensorList(tensors));
  FAILS(aclDestroyTensorList(tensors), ACLNN_ERR_PARAM_INVALID, "destroyed tensor list");
  FAILS(aclGetTensorListSize(tensors, &size), ACLNN_ERR_PARAM_INVALID, "destroyed tensor list");
  aclScalarList *scalars = aclCreateScalarList(NULL, 0);
  OK_OR_SAY(aclDestroyScalarList(scalars));
  FAILS(aclDestroyScalarList(scalars), ACLNN_ERR_PARAM_INVALID, "destroyed scalar list");
  FAILS(aclGetScalarListSize(scalars, &size), ACLNN_ERR_PARAM_INVALID, "destroyed scalar list");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_int_array_copies_its_values),
      cmocka_unit_test(a_float_array_copies_its_values),
      cmocka_unit_test(a_bool_array_copies_its_values),
      cmocka_unit_test(null_values_or_no_size_make_an_empty_array),
      cmocka_unit_test(an_array_too_large_to_address_is_refused),
      cmocka_unit_test(destroying_null_is_fine),
      cmocka_unit_test(sizes_want_both_pointers),
      cmocka_unit_test(stale_arrays_are_refused),
      cmocka_unit_test(an_array_of_another_kind_is_refused_and_lives_on),
      cmocka_unit_test(a_scalar_copies_one_value_of_its_type),
      cmocka_unit_test(a_scalar_needs_a_value_and_a_type_it_can_have),
      cmocka_unit_test(a_stale_scalar_is_refused),
      cmocka_unit_test(a_tensor_list_destroys_its_members),
      cmocka_unit_test(a_scalar_list_destroys_its_members),
      cmocka_unit_test(members_destroyed_before_their_list_are_passed_over),
      cmocka_unit_test(a_member_listed_twice_is_destroyed_once),
      cmocka_unit_test(stale_lists_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
