/* SPDX-License-Identifier: Apache-2.0 */
/* Operators called by their type are refused by name; options of the compiler are kept. */
#include "expect.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acl/acl_op_compiler.h"
#include "faults.h"

static aclError execute(const char *type, const aclopAttr *attr) {
  return aclopCompileAndExecute(type, 2, NULL, NULL, 1, NULL, NULL, attr, ACL_ENGINE_SYS,
                                ACL_COMPILE_SYS, NULL, NULL);
}

static void the_sentence_names_the_operator(void **state) {
  (void)state;
  const int64_t ints[] = {1, 2, 3};
  const uint8_t bools[] = {1, 0};
  const float floats[] = {1, 2};
  const int64_t *const lists[] = {ints, NULL};
  const int lengths[] = {3, 0};
  aclopAttr *attr = aclopCreateAttr();
  assert_non_null(attr);
  OK_OR_SAY(aclopSetAttrBool(attr, "a", 1));
  OK_OR_SAY(aclopSetAttrInt(attr, "b", -1));
  OK_OR_SAY(aclopSetAttrFloat(attr, "c", 1.5f));
  OK_OR_SAY(aclopSetAttrString(attr, "d", "text"));
  OK_OR_SAY(aclopSetAttrDataType(attr, "e", ACL_FLOAT));
  OK_OR_SAY(aclopSetAttrListBool(attr, "f", 2, bools));
  OK_OR_SAY(aclopSetAttrListInt(attr, "g", 3, ints));
  OK_OR_SAY(aclopSetAttrListInt(attr, "h", 0, NULL));
  OK_OR_SAY(aclopSetAttrListFloat(attr, "i", 2, floats));
  OK_OR_SAY(aclopSetAttrListListInt(attr, "j", 2, lengths, lists));
  FAILS(execute("MaxPoolGradWithArgmaxV1", attr), ACL_ERROR_API_NOT_SUPPORT,
        "aclopCompileAndExecute", "the operator MaxPoolGradWithArgmaxV1 ", "inputs: 2",
        "outputs: 1", "attributes: 10", "Not_Supported");
  aclopDestroyAttr(attr);
  FAILS(execute("Sort", NULL), ACL_ERROR_API_NOT_SUPPORT, "Sort", "attributes: 0");
  FAILS(execute(NULL, NULL), ACL_ERROR_INVALID_PARAM, "aclopCompileAndExecute", "opType");
}

static void a_long_type_does_not_push_the_advice_out(void **state) {
  (void)state;
  char type[5000];
  memset(type, 'x', sizeof type - 1);
  type[sizeof type - 1] = '\0';
  FAILS(execute(type, NULL), ACL_ERROR_API_NOT_SUPPORT, "xxxx", "on the host");
}

static void wrong_values_are_refused(void **state) {
  (void)state;
  const int64_t ints[] = {1};
  const int64_t *const lists[] = {NULL};
  const int one = 1, minus = -1;
  aclopAttr *attr = aclopCreateAttr();
  FAILS(aclopSetAttrBool(attr, NULL, 1), ACL_ERROR_INVALID_PARAM, "aclopSetAttrBool", "attrName");
  FAILS(aclopSetAttrString(attr, "a", NULL), ACL_ERROR_INVALID_PARAM, "attrValue");
  FAILS(aclopSetAttrListInt(attr, "a", -1, ints), ACL_ERROR_INVALID_PARAM, "numValues", "-1");
  FAILS(aclopSetAttrListInt(attr, "a", 1, NULL), ACL_ERROR_INVALID_PARAM, "values");
  FAILS(aclopSetAttrListBool(attr, "a", 1, NULL), ACL_ERROR_INVALID_PARAM, "values");
  FAILS(aclopSetAttrListFloat(attr, "a", 1, NULL), ACL_ERROR_INVALID_PARAM, "values");
  FAILS(aclopSetAttrListListInt(attr, "a", -1, NULL, NULL), ACL_ERROR_INVALID_PARAM, "numLists");
  FAILS(aclopSetAttrListListInt(attr, "a", 1, NULL, lists), ACL_ERROR_INVALID_PARAM, "numValues");
  FAILS(aclopSetAttrListListInt(attr, "a", 1, &one, NULL), ACL_ERROR_INVALID_PARAM, "values");
  FAILS(aclopSetAttrListListInt(attr, "a", 1, &one, lists), ACL_ERROR_INVALID_PARAM, "values[0]");
  FAILS(aclopSetAttrListListInt(attr, "a", 1, &minus, lists), ACL_ERROR_INVALID_PARAM,
        "numValues[0]", "-1");
  FAILS(execute("Sort", attr), ACL_ERROR_API_NOT_SUPPORT, "attributes: 0");
  aclopDestroyAttr(attr);
}

static void wrong_attributes_are_refused(void **state) {
  (void)state;
  aclopAttr *dead = aclopCreateAttr();
  aclopDestroyAttr(dead);
  FAILS(aclopSetAttrInt(NULL, "a", 1), ACL_ERROR_INVALID_PARAM, "aclopSetAttrInt", "attr");
  FAILS(aclopSetAttrInt(dead, "a", 1), ACL_ERROR_INVALID_PARAM, "attr", "destroyed");
  FAILS((aclopDestroyAttr(dead), 0), 0, "aclopDestroyAttr", "destroyed");
  FAILS(execute("Sort", dead), ACL_ERROR_API_NOT_SUPPORT, "Sort");
  (void)aclGetRecentErrMsg();
  aclopDestroyAttr(NULL);
  assert_null(aclGetRecentErrMsg());
}

/* What an option has, compared with this. */
static void expect_option(aclCompileOpt option, const char *expected) {
  char value[64] = "?";
  assert_int_equal(aclGetCompileoptSize(option), strlen(expected) + 1);
  OK_OR_SAY(aclGetCompileopt(option, value, sizeof value));
  assert_string_equal(value, expected);
}

static void options_are_read_back(void **state) {
  (void)state;
  for (int i = ACL_PRECISION_MODE; i <= ACL_OP_DEBUG_OPTION; i++)
    expect_option((aclCompileOpt)i, "");
  OK_OR_SAY(aclSetCompileopt(ACL_PRECISION_MODE, "allow_fp32_to_fp16"));
  OK_OR_SAY(aclSetCompileopt(ACL_OP_DEBUG_OPTION, "oom"));
  expect_option(ACL_PRECISION_MODE, "allow_fp32_to_fp16");
  expect_option(ACL_OP_DEBUG_OPTION, "oom");
  expect_option(ACL_AICORE_NUM, "");
  OK_OR_SAY(aclSetCompileopt(ACL_PRECISION_MODE, "must_keep_origin_dtype"));
  expect_option(ACL_PRECISION_MODE, "must_keep_origin_dtype");
  OK_OR_SAY(aclInit(NULL));
  OK_OR_SAY(aclFinalize());
  expect_option(ACL_PRECISION_MODE, "must_keep_origin_dtype");
  OK_OR_SAY(aclSetCompileopt(ACL_PRECISION_MODE, ""));
  expect_option(ACL_PRECISION_MODE, "");
}

static void unknown_options_are_refused(void **state) {
  (void)state;
  char value[4] = "abc";
  FAILS(aclSetCompileopt((aclCompileOpt)17, "x"), ACL_ERROR_INVALID_PARAM, "aclSetCompileopt",
        "opt", "17");
  FAILS(aclSetCompileopt((aclCompileOpt)-1, "x"), ACL_ERROR_INVALID_PARAM, "opt", "-1");
  FAILS(aclSetCompileopt(ACL_AICORE_NUM, NULL), ACL_ERROR_INVALID_PARAM, "value");
  FAILS((int)aclGetCompileoptSize((aclCompileOpt)17), 0, "aclGetCompileoptSize", "opt");
  FAILS(aclGetCompileopt((aclCompileOpt)17, value, 4), ACL_ERROR_INVALID_PARAM, "opt");
  FAILS(aclGetCompileopt(ACL_AICORE_NUM, NULL, 4), ACL_ERROR_INVALID_PARAM, "value");
  assert_string_equal(value, "abc");
}

static void the_mode_of_compiling_is_refused(void **state) {
  (void)state;
  static const char *const modes[] = {"", "enable", "disable"};
  for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
    FAILS(aclSetCompileopt(ACL_OP_JIT_COMPILE, modes[i]), ACL_ERROR_API_NOT_SUPPORT,
          "aclSetCompileopt", "nothing is compiled", "on the host", "Not_Supported");
  expect_option(ACL_OP_JIT_COMPILE, "");
  FAILS(aclSetCompileopt(ACL_OP_JIT_COMPILE, NULL), ACL_ERROR_INVALID_PARAM, "value");
}

static void a_value_is_copied_whole_or_not_at_all(void **state) {
  (void)state;
  char value[4] = "abc";
  OK_OR_SAY(aclSetCompileopt(ACL_AICORE_NUM, "24"));
  FAILS(aclGetCompileopt(ACL_AICORE_NUM, value, 2), ACL_ERROR_INVALID_PARAM, "length", "2", "3");
  FAILS(aclGetCompileopt(ACL_AICORE_NUM, value, 0), ACL_ERROR_INVALID_PARAM, "length");
  assert_string_equal(value, "abc");
  OK_OR_SAY(aclGetCompileopt(ACL_AICORE_NUM, value, 3));
  assert_string_equal(value, "24");
  OK_OR_SAY(aclSetCompileopt(ACL_AICORE_NUM, ""));
}

static void without_memory_the_old_value_stays(void **state) {
  (void)state;
  OK_OR_SAY(aclSetCompileopt(ACL_DEBUG_DIR, "old"));
  FAILS((faults_arm(0, FAULT_FROM_THEN_ON), aclSetCompileopt(ACL_DEBUG_DIR, "new")),
        ACL_ERROR_BAD_ALLOC, "aclSetCompileopt");
  faults_disarm();
  expect_option(ACL_DEBUG_DIR, "old");
  OK_OR_SAY(aclSetCompileopt(ACL_DEBUG_DIR, ""));
}

static void *set_again_and_again(void *argument) {
  for (int i = 0; i < 2000; i++)
    if (aclSetCompileopt(ACL_AUTO_TUNE_MODE, i % 2 == 0 ? "disable" : "enable") != ACL_SUCCESS)
      abort();
  return argument;
}

static void threads_and_children_read_a_value_that_was_set(void **state) {
  (void)state;
  pthread_t thread;
  int status = -1;
  OK_OR_SAY(aclSetCompileopt(ACL_AUTO_TUNE_MODE, "enable"));
  assert_int_equal(pthread_create(&thread, NULL, set_again_and_again, NULL), 0);
  const pid_t child = fork();
  for (int i = 0; i < 2000; i++) {
    char value[16];
    const bool read = aclGetCompileopt(ACL_AUTO_TUNE_MODE, value, sizeof value) == ACL_SUCCESS;
    if (!read || (strcmp(value, "enable") != 0 && strcmp(value, "disable") != 0)) abort();
  }
  if (child == 0) _exit(0);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_sentence_names_the_operator),
      cmocka_unit_test(a_long_type_does_not_push_the_advice_out),
      cmocka_unit_test(wrong_values_are_refused),
      cmocka_unit_test(wrong_attributes_are_refused),
      cmocka_unit_test(options_are_read_back),
      cmocka_unit_test(unknown_options_are_refused),
      cmocka_unit_test(the_mode_of_compiling_is_refused),
      cmocka_unit_test(a_value_is_copied_whole_or_not_at_all),
      cmocka_unit_test(without_memory_the_old_value_stays),
      cmocka_unit_test(threads_and_children_read_a_value_that_was_set),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
