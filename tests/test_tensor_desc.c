/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor descriptions: what they are made with is what they answer. */
#include "expect.h"

#include "faults.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* aclGetTensorDescDim */

enum { AXES_MAX = 25 };

static const int64_t dims_2d[] = {2, 3, 5, 7};

static aclTensorDesc *make(int rank, const int64_t *dims) {
  aclTensorDesc *desc = aclCreateTensorDesc(ACL_FLOAT16, rank, dims, ACL_FORMAT_NCHW);
  if (desc == NULL) fail_msg("no description: %s", aclGetRecentErrMsg());
  return desc;
}

/* aclCreateTensorDesc gives NULL and a sentence with these words. */
static void cannot_make(int rank, const int64_t *dims, const char *word, const char *found) {
  (void)aclGetRecentErrMsg();
  assert_null(aclCreateTensorDesc(ACL_FLOAT, rank, dims, ACL_FORMAT_ND));
  const char *text = aclGetRecentErrMsg();
  assert_non_null(text);
  if (strstr(text, "aclCreateTensorDesc") == NULL || strstr(text, word) == NULL ||
      strstr(text, found) == NULL)
    fail_msg("no '%s' and '%s' in: %s", word, found, text);
}

static void a_description_answers_what_it_was_made_with(void **state) {
  (void)state;
  int64_t dims[4], size = 0;
  memcpy(dims, dims_2d, sizeof dims);
  aclTensorDesc *desc = make(4, dims);
  memset(dims, 0, sizeof dims);
  assert_int_equal(aclGetTensorDescType(desc), ACL_FLOAT16);
  assert_int_equal(aclGetTensorDescFormat(desc), ACL_FORMAT_NCHW);
  assert_int_equal(aclGetTensorDescNumDims(desc), 4);
  assert_int_equal(aclGetTensorDescElementCount(desc), 210);
  assert_int_equal(aclGetTensorDescSize(desc), 420);
  for (size_t i = 0; i < 4; i++) {
    OK_OR_SAY(aclGetTensorDescDimV2(desc, i, &size));
    assert_int_equal(size, dims_2d[i]);
    assert_int_equal(aclGetTensorDescDim(desc, i), dims_2d[i]);
  }
  aclDestroyTensorDesc(desc);
}

static void a_scalar_has_one_element(void **state) {
  (void)state;
  aclTensorDesc *desc = make(0, NULL);
  assert_int_equal(aclGetTensorDescNumDims(desc), 0);
  assert_int_equal(aclGetTensorDescElementCount(desc), 1);
  assert_int_equal(aclGetTensorDescSize(desc), 2);
  aclDestroyTensorDesc(desc);
}

static void an_operand_that_is_left_out_has_no_type(void **state) {
  (void)state;
  aclTensorDesc *desc = aclCreateTensorDesc(ACL_DT_UNDEFINED, 0, NULL, ACL_FORMAT_UNDEFINED);
  assert_non_null(desc);
  assert_int_equal(aclGetTensorDescType(desc), ACL_DT_UNDEFINED);
  assert_int_equal(aclGetTensorDescFormat(desc), ACL_FORMAT_UNDEFINED);
  assert_int_equal(aclGetTensorDescSize(desc), 0);
  aclDestroyTensorDesc(desc);
}

static void sizes_may_be_unknown(void **state) {
  (void)state;
  int64_t size = 0;
  aclTensorDesc *desc = make(3, (const int64_t[]){4, -1, 0});
  assert_int_equal(aclGetTensorDescNumDims(desc), 3);
  assert_int_equal(aclGetTensorDescElementCount(desc), 0);
  OK_OR_SAY(aclGetTensorDescDimV2(desc, 1, &size));
  assert_int_equal(size, -1);
  aclDestroyTensorDesc(desc);

  desc = make(1, (const int64_t[]){-2});
  assert_true(aclGetTensorDescNumDims(desc) == ACL_UNKNOWN_RANK);
  assert_int_equal(aclGetTensorDescSize(desc), 0);
  FAILS(aclGetTensorDescDimV2(desc, 0, &size), ACL_ERROR_INVALID_PARAM, "desc", "-2");
  aclDestroyTensorDesc(desc);
}

static void an_empty_axis_has_no_elements_whatever_the_others(void **state) {
  (void)state;
  aclTensorDesc *desc = make(3, (const int64_t[]){INT64_MAX, INT64_MAX, 0});
  assert_int_equal(aclGetTensorDescElementCount(desc), 0);
  aclDestroyTensorDesc(desc);
}

static void sizes_that_64_bits_cannot_hold_are_0(void **state) {
  (void)state;
  aclTensorDesc *desc = make(2, (const int64_t[]){INT64_MAX, 3});
  assert_int_equal(aclGetTensorDescElementCount(desc), 0);
  assert_int_equal(aclGetTensorDescSize(desc), 0);
  aclDestroyTensorDesc(desc);
  desc = aclCreateTensorDesc(ACL_COMPLEX128, 1, (const int64_t[]){INT64_MAX}, ACL_FORMAT_ND);
  assert_true(aclGetTensorDescElementCount(desc) == INT64_MAX);
  assert_int_equal(aclGetTensorDescSize(desc), 0);
  aclDestroyTensorDesc(desc);
}

static void wrong_shapes_are_refused(void **state) {
  (void)state;
  int64_t many[AXES_MAX + 1];
  for (int i = 0; i <= AXES_MAX; i++) many[i] = 1;
  cannot_make(-1, dims_2d, "numDims", "-1");
  cannot_make(AXES_MAX + 1, many, "numDims", "26");
  cannot_make(1, NULL, "dims", "NULL");
  cannot_make(2, (const int64_t[]){3, -2}, "dims[1]", "-2");
  cannot_make(1, (const int64_t[]){-3}, "dims[0]", "-3");
  cannot_make(2, (const int64_t[]){INT64_MIN, 1}, "dims[0]", "-9223372036854775808");
  aclDestroyTensorDesc(make(AXES_MAX, many));
}

static void the_storage_is_kept_apart(void **state) {
  (void)state;
  aclTensorDesc *desc = make(4, dims_2d);
  OK_OR_SAY(aclSetTensorFormat(desc, ACL_FORMAT_NC1HWC0));
  OK_OR_SAY(aclSetTensorShape(desc, 2, (const int64_t[]){1, 1}));
  OK_OR_SAY(aclSetTensorPlaceMent(desc, ACL_MEMTYPE_HOST_COMPILE_INDEPENDENT));
  assert_int_equal(aclGetTensorDescFormat(desc), ACL_FORMAT_NCHW);
  assert_int_equal(aclGetTensorDescNumDims(desc), 4);
  FAILS(aclSetTensorShape(desc, 26, dims_2d), ACL_ERROR_INVALID_PARAM, "aclSetTensorShape",
        "numDims");
  FAILS(aclSetTensorShape(desc, 1, NULL), ACL_ERROR_INVALID_PARAM, "aclSetTensorShape", "dims");
  FAILS(aclSetTensorPlaceMent(desc, (aclMemType)3), ACL_ERROR_INVALID_PARAM, "memType", "3");
  FAILS(aclSetTensorPlaceMent(desc, (aclMemType)-1), ACL_ERROR_INVALID_PARAM, "memType", "-1");
  aclDestroyTensorDesc(desc);
}

static void a_name_is_copied(void **state) {
  (void)state;
  char name[] = "x1";
  aclTensorDesc *desc = make(0, NULL);
  assert_string_equal(aclGetTensorDescName(desc), "");
  aclSetTensorDescName(desc, name);
  name[0] = 'y';
  assert_string_equal(aclGetTensorDescName(desc), "x1");
  aclSetTensorDescName(desc, NULL);
  assert_string_equal(aclGetTensorDescName(desc), "");
  aclDestroyTensorDesc(desc);
}

static void an_index_behind_the_last_axis_is_refused(void **state) {
  (void)state;
  int64_t size = 9;
  aclTensorDesc *desc = make(4, dims_2d);
  FAILS(aclGetTensorDescDimV2(desc, 4, &size), ACL_ERROR_INVALID_PARAM, "aclGetTensorDescDimV2",
        "index", "4");
  FAILS(aclGetTensorDescDimV2(desc, SIZE_MAX, &size), ACL_ERROR_INVALID_PARAM, "index");
  FAILS(aclGetTensorDescDimV2(desc, 0, NULL), ACL_ERROR_INVALID_PARAM, "dimSize");
  assert_int_equal(size, 9);
  assert_int_equal(aclGetTensorDescDim(desc, 4), -1);
  aclDestroyTensorDesc(desc);
}

/* Every function with a handle that is none; `what` is how the sentence calls it. */
static void expect_refused(aclTensorDesc *desc, const char *what) {
  int64_t size = 9;
  FAILS(aclGetTensorDescDimV2(desc, 0, &size), ACL_ERROR_INVALID_PARAM, "desc", what);
  FAILS(aclSetTensorFormat(desc, ACL_FORMAT_ND), ACL_ERROR_INVALID_PARAM, "desc", what);
  FAILS(aclSetTensorShape(desc, 4, dims_2d), ACL_ERROR_INVALID_PARAM, "desc", what);
  FAILS(aclSetTensorPlaceMent(desc, ACL_MEMTYPE_HOST), ACL_ERROR_INVALID_PARAM, "desc", what);
  FAILS((int)aclGetTensorDescType(desc), ACL_DT_UNDEFINED, "aclGetTensorDescType", what);
  FAILS((int)aclGetTensorDescFormat(desc), ACL_FORMAT_UNDEFINED, "aclGetTensorDescFormat", what);
  FAILS((int)aclGetTensorDescNumDims(desc), 0, "aclGetTensorDescNumDims", what);
  FAILS((int)aclGetTensorDescElementCount(desc), 0, "aclGetTensorDescElementCount", what);
  FAILS((int)aclGetTensorDescSize(desc), 0, "aclGetTensorDescSize", what);
  FAILS((int)aclGetTensorDescDim(desc, 0), -1, "aclGetTensorDescDim", what);
  FAILS(aclGetTensorDescName(desc) != NULL, 0, "aclGetTensorDescName", what);
  FAILS((aclSetTensorDescName(desc, "x"), 0), 0, "aclSetTensorDescName", what);
}

static void wrong_handles_are_refused(void **state) {
  (void)state;
  aclTensorDesc *dead = make(4, dims_2d);
  aclDataBuffer *buffer = aclCreateDataBuffer(NULL, 0);
  aclDestroyTensorDesc(dead);
  expect_refused(NULL, "NULL");
  expect_refused(dead, "a destroyed tensor description");
  expect_refused((aclTensorDesc *)buffer, "a data buffer");
  expect_refused((aclTensorDesc *)(void *)&dead, "not a handle");
  FAILS((aclDestroyTensorDesc(dead), 0), 0, "aclDestroyTensorDesc", "destroyed");
  FAILS((aclDestroyTensorDesc((aclTensorDesc *)buffer), 0), 0, "aclDestroyTensorDesc",
        "a data buffer");
  OK_OR_SAY(aclDestroyDataBuffer(buffer));
}

static void destroying_null_does_nothing(void **state) {
  (void)state;
  (void)aclGetRecentErrMsg();
  aclDestroyTensorDesc(NULL);
  assert_null(aclGetRecentErrMsg());
}

static void without_memory_there_is_no_description(void **state) {
  (void)state;
  aclTensorDesc *desc = make(0, NULL); /* from here on its kind has slots */
  aclSetTensorDescName(desc, "before");
  (void)aclGetRecentErrMsg();
  const struct faults_held held = faults_held();
  faults_arm(0, FAULT_FROM_THEN_ON);
  aclTensorDesc *none = aclCreateTensorDesc(ACL_FLOAT, 0, NULL, ACL_FORMAT_ND);
  aclSetTensorDescName(desc, "after");
  faults_disarm();
  assert_null(none);
  assert_string_equal(aclGetTensorDescName(desc), "before");
  assert_int_equal(faults_held().blocks, held.blocks);
  const char *text = aclGetRecentErrMsg();
  assert_non_null(text);
  assert_non_null(strstr(text, "aclSetTensorDescName: no memory"));
  aclDestroyTensorDesc(desc);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_description_answers_what_it_was_made_with),
      cmocka_unit_test(a_scalar_has_one_element),
      cmocka_unit_test(an_operand_that_is_left_out_has_no_type),
      cmocka_unit_test(sizes_may_be_unknown),
      cmocka_unit_test(an_empty_axis_has_no_elements_whatever_the_others),
      cmocka_unit_test(sizes_that_64_bits_cannot_hold_are_0),
      cmocka_unit_test(wrong_shapes_are_refused),
      cmocka_unit_test(the_storage_is_kept_apart),
      cmocka_unit_test(a_name_is_copied),
      cmocka_unit_test(an_index_behind_the_last_axis_is_refused),
      cmocka_unit_test(wrong_handles_are_refused),
      cmocka_unit_test(destroying_null_does_nothing),
      cmocka_unit_test(without_memory_there_is_no_description),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
