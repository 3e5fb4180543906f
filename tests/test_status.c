/* SPDX-License-Identifier: Apache-2.0 */
/* Error text and last error: layout, order, threads, bounds. */
#include "apart.h"

#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <regex.h>
#include <unistd.h>

#include "aclnn/acl_meta.h"
#include "aclnn/opdev/op_errno.h"
#include "faults.h"
#include "core/status.h"
#include "poolgrad.h"

#define TIME "[0-9]{4}-[0-9]{2}-[0-9]{2}-[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}\\.[0-9]{3}"

static bool matches(const char *text, const char *pattern) {
  regex_t regex;
  assert_int_equal(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
  const bool found = text != NULL && regexec(&regex, text, 0, NULL, 0) == 0;
  regfree(&regex);
  return found;
}

/* Reads the text, which must be "[PID: n] time Title(Code): sentence\n". */
static void expect_headline(const char *title, const char *code, const char *sentence) {
  char pattern[512];
  snprintf(pattern, sizeof pattern, "^\\[PID: %d\\] " TIME " %s\\(%s\\): %s\n$", (int)getpid(),
           title, code, sentence);
  const char *text = aclGetRecentErrMsg();
  if (!matches(text, pattern)) fail_msg("'%s' does not match '%s'", text, pattern);
  assert_null(aclGetRecentErrMsg());
}

/* The same for inner errors: a line of their own first, the code again before the PID. */
static void expect_inner(const char *title, const char *code, const char *sentence) {
  char pattern[512];
  snprintf(pattern, sizeof pattern,
           "^%s: Internal error!\n%s\\[PID: %d\\] " TIME " %s\\(%s\\): +%s\n$", code, code,
           (int)getpid(), title, code, sentence);
  const char *text = aclGetRecentErrMsg();
  if (!matches(text, pattern)) fail_msg("'%s' does not match '%s'", text, pattern);
  assert_null(aclGetRecentErrMsg());
}

static int count_lines(const char *text) {
  int lines = 0;
  for (; text != NULL && *text != '\0'; text++) lines += *text == '\n';
  return lines;
}

static int start_clean(void **state) {
  (void)state;
  (void)aclGetRecentErrMsg();
  (void)aclrtGetLastError(ACL_RT_THREAD_LEVEL);
  return 0;
}

static void there_is_no_text_without_a_failure(void **state) {
  (void)state;
  assert_null(aclGetRecentErrMsg());
  OK_OR_SAY(aclDestroyTensor(NULL));
  assert_null(aclGetRecentErrMsg());
}

static void every_code_has_its_title(void **state) {
  (void)state;
  pg_fail_with("api", 100000, "size is %d", 0);
  expect_headline("Invalid_Argument", "EH0012", "api: size is 0");
  pg_fail_null_with("api", 100000, "devPtr");
  expect_headline("Invalid_Argument_Null_Pointer", "EH0008", "api: devPtr is NULL.*");
  pg_fail_with("api", 107000, "x");
  expect_headline("Invalid_Argument", "EE1003", "api: x");
  pg_fail_with("api", 161001, "x");
  expect_headline("AclNN_Parameter_Error", "EZ1001", "api: x");
  pg_fail_null_with("api", 161001, "self");
  expect_headline("AclNN_Parameter_Error", "EZ1001", "api: self is NULL.*");
  pg_fail_with("api", 161002, "x");
  expect_headline("AclNN_Parameter_Error", "EZ1001", "api: x");
  pg_fail_with("api", 361001, "x");
  expect_headline("AclNN_Runtime_Error", "EZ9903", "api: x");
  pg_fail_null_with("api", 561103, "executor");
  expect_headline("Invalid_Argument_Null_Pointer", "EZ1011", "api: executor is NULL.*");
}

/* What CANN numbers among inner errors, or among another kind, but is none of it. */
static void a_title_says_whose_fault_it_is(void **state) {
  (void)state;
  static const struct {
    int code;
    const char *title, *shown;
  } rows[] = {
      {107019, "Timeout_Error", "EE1011"},    {107023, "Execution_Error", "EE1011"},
      {207000, "Not_Supported", "EE1011"},    {207001, "Resource_Error", "EE1011"},
      {507007, "Invalid_Argument", "EE1003"}, {507012, "Timeout_Error", "EE1011"},
      {507015, "Invalid_Argument", "EE1003"}, {507046, "Timeout_Error", "EE1011"},
      {507047, "Timeout_Error", "EE1011"},    {507910, "Invalid_Argument", "EE1003"},
      {507911, "Invalid_Argument", "EE1003"}, {561000, "Invalid_Argument", "EZ1010"},
      {561003, "Not_Supported", "EZ1010"},    {561101, "Resource_Error", "EH0009"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    pg_fail_with("api", rows[i].code, "x");
    expect_headline(rows[i].title, rows[i].shown, "api: x");
  }
  assert_int_equal(pg_fail_titled(200000, "api", 561000, "x"), 561000);
  expect_headline("Resource_Error", "EH0009", "api: x");
}

static void a_mistake_is_no_internal_error(void **state) {
  (void)state;
  aclrtEvent event;
  uint64_t time;
  FAILS(aclrtResetDevice(0), 507007, " Invalid_Argument(EE1003): aclrtResetDevice: ");
  OK_OR_SAY(aclrtSetDevice(0));
  OK_OR_SAY(aclrtCreateEvent(&event));
  FAILS(aclrtEventGetTimestamp(event, &time), 507000, " Invalid_Argument(EE1003): ",
        "event was never recorded, aclrtRecordEvent must come first");
  OK_OR_SAY(aclrtDestroyEvent(event));
  OK_OR_SAY(aclrtResetDevice(0));
  FAILS(aclrtResetDevice(0), 507007, " Invalid_Argument(EE1003): aclrtResetDevice: ");
}

static void inner_errors_have_their_own_layout(void **state) {
  (void)state;
  pg_fail_with("api", 561001, "x");
  expect_inner("AclNN_Inner_Error", "EZ9999", "api: x");
  pg_fail_with("api", 500000, "x");
  expect_inner("Inner_Error", "EH9999", "api: x");
  pg_fail_with("api", 507000, "x");
  expect_inner("Execution_Error", "EE9999", "api: x");
}

static void public_calls_speak_in_this_layout(void **state) {
  (void)state;
  uint64_t size;
  assert_int_equal(aclGetIntArraySize(NULL, &size), ACLNN_ERR_PARAM_NULLPTR);
  expect_headline("AclNN_Parameter_Error", "EZ1001", "aclGetIntArraySize: array is NULL.*");
  assert_int_equal(aclDestroyAclOpExecutor(NULL), ACLNN_ERR_INNER_NULLPTR);
  expect_headline("Invalid_Argument_Null_Pointer", "EZ1011", "aclDestroyAclOpExecutor: executor.*");
  assert_int_equal(aclrtFree(NULL), ACL_ERROR_INVALID_PARAM);
  expect_headline("Invalid_Argument_Null_Pointer", "EH0008", "aclrtFree: devPtr is NULL.*");
}

static void the_newest_is_the_headline_and_the_others_follow(void **state) {
  (void)state;
  pg_fail_with("first", 161001, "one");
  pg_fail_with("second", 107000, "two");
  pg_fail_with("third", 161002, "three");
  const char *text = aclGetRecentErrMsg();
  assert_true(matches(text, "^\\[PID: [0-9]+\\] " TIME " AclNN_Parameter_Error\\(EZ1001\\): "
                            "third: three\nTraceBack \\(most recent call last\\):\n"
                            "        first: one\n        second: two\n$"));
  assert_null(aclGetRecentErrMsg());
}

static void an_inner_error_is_no_headline_beside_another(void **state) {
  (void)state;
  pg_fail_with("first", 161001, "one");
  pg_fail_with("second", 561001, "two");
  assert_true(matches(aclGetRecentErrMsg(), "^\\[PID: [0-9]+\\] " TIME " AclNN_Parameter_Error\\("
                                            "EZ1001\\): first: one\nTraceBack .*:\n"
                                            "        second: two\n$"));
}

static void identical_sentences_are_kept_once(void **state) {
  (void)state;
  for (int i = 0; i < 3; i++) pg_fail_with("api", 161001, "same");
  expect_headline("AclNN_Parameter_Error", "EZ1001", "api: same");
  pg_fail_with("api", 161001, "same");
  pg_fail_with("api", 161001, "other");
  pg_fail_with("api", 161001, "same");
  const char *text = aclGetRecentErrMsg();
  assert_int_equal(count_lines(text), 3);
  assert_true(matches(text, "api: same\nTraceBack .*:\n        api: other\n$"));
}

static void a_very_long_sentence_is_cut(void **state) {
  (void)state;
  pg_fail_with("api", 161001, "%0*d", 5000, 1);
  const char *text = aclGetRecentErrMsg();
  assert_true(matches(text, "api: 0+"));
  BETWEEN(strlen(text), 1000, 1200);
}

static size_t resident_bytes(void) {
  unsigned long total, resident;
  FILE *file = fopen("/proc/self/statm", "r");
  assert_non_null(file);
  assert_int_equal(fscanf(file, "%lu %lu", &total, &resident), 2);
  fclose(file);
  return resident * (size_t)sysconf(_SC_PAGESIZE);
}

static void unread_sentences_stay_few(void **state) {
  (void)state;
  const size_t slack = 8 << 20; /* an emulator's own memory grows; all sentences would be 20 MB */
  for (int i = 0; i < 1000; i++) pg_fail_with("api", 161001, "warm %d", i);
  const size_t before = resident_bytes();
  for (int i = 0; i < 100000; i++) pg_fail_with("api", 161001, "failure %d", i);
  const size_t after = resident_bytes();
  BETWEEN(after, 0, before + slack);
  const char *text = aclGetRecentErrMsg();
  BETWEEN(count_lines(text), 2, 40);
  assert_true(matches(text, "^[^\n]*api: failure 99999\n"));
  assert_non_null(strstr(text, "api: failure 99998\n"));
}

static void the_text_is_good_until_the_next_read(void **state) {
  (void)state;
  pg_fail_with("api", 161001, "first");
  const char *text = aclGetRecentErrMsg();
  char copy[256];
  snprintf(copy, sizeof copy, "%s", text);
  pg_fail_with("api", 161001, "second");
  assert_int_equal(aclrtFree(NULL), ACL_ERROR_INVALID_PARAM);
  assert_string_equal(text, copy);
}

static void only_runtime_codes_become_the_last_error(void **state) {
  (void)state;
  assert_int_equal(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), 0);
  static const int others[] = {100000, 161001, 200000, 361001, 500000, 561000};
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) pg_fail_with("api", others[i], "x");
  assert_int_equal(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), 0);
  static const int runtime[] = {107002, 207001, 507015};
  for (size_t i = 0; i < sizeof runtime / sizeof runtime[0]; i++) {
    pg_fail_with("api", runtime[i], "x");
    assert_int_equal(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), runtime[i]);
  }
}

static void other_codes_take_the_place_of_the_last_error(void **state) {
  (void)state;
  pg_fail_with("api", 207000, "x");
  pg_fail_with("api", 161002, "y");
  assert_int_equal(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), 161002);
  pg_fail_with("api", 107003, "z");
  assert_int_equal(aclrtGetLastError(ACL_RT_THREAD_LEVEL), 107003);
  pg_fail_with("api", 161002, "y");
  assert_int_equal(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), 0);
}

static void an_answer_gives_way_to_a_failure(void **state) {
  (void)state;
  pg_fail_with("api", 107002, "an answer");
  pg_was_answer(0);
  pg_fail_with("api", 161002, "a failure");
  const char *text = aclGetRecentErrMsg();
  assert_non_null(strstr(text, "a failure"));
  assert_null(strstr(text, "an answer"));
  pg_fail_with("api", 161002, "a failure");
  pg_fail_with("api", 107002, "an answer");
  pg_was_answer(0);
  assert_non_null(strstr(aclGetRecentErrMsg(), "an answer"));
}

static void get_clears_the_last_error_and_peek_does_not(void **state) {
  (void)state;
  pg_fail_with("api", 107003, "x");
  assert_int_equal(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), 107003);
  assert_int_equal(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), 107003);
  assert_int_equal(aclrtGetLastError(ACL_RT_THREAD_LEVEL), 107003);
  assert_int_equal(aclrtGetLastError(ACL_RT_THREAD_LEVEL), 0);
}

static void success_leaves_the_last_error_as_it_is(void **state) {
  (void)state;
  pg_fail_with("api", 107003, "x");
  OK_OR_SAY(aclDestroyTensor(NULL));
  assert_int_equal(aclrtGetLastError(ACL_RT_THREAD_LEVEL), 107003);
}

static void another_level_is_refused_and_clears_nothing(void **state) {
  (void)state;
  pg_fail_with("api", 107003, "x");
  FAILS(aclrtGetLastError((aclrtLastErrLevel)1), ACL_ERROR_INVALID_PARAM, "aclrtGetLastError");
  FAILS(aclrtPeekAtLastError((aclrtLastErrLevel)-1), ACL_ERROR_INVALID_PARAM,
        "aclrtPeekAtLastError");
  assert_int_equal(aclrtGetLastError(ACL_RT_THREAD_LEVEL), 107003);
}

static void run_thread(void *(*run)(void *), void *argument) {
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, run, argument), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
}

struct seen {
  bool text_at_start, text_after_failing;
  aclError error_at_start, error_after_failing;
};

static void *look_and_fail(void *argument) {
  struct seen *seen = argument;
  seen->text_at_start = aclGetRecentErrMsg() != NULL;
  seen->error_at_start = aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL);
  pg_fail_with("thread", 107001, "x");
  seen->text_after_failing = aclGetRecentErrMsg() != NULL;
  seen->error_after_failing = aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL);
  pg_fail_with("thread", 107001, "never read");
  return NULL;
}

static void threads_do_not_see_each_other(void **state) {
  (void)state;
  struct seen seen;
  pg_fail_with("main", 107003, "mine");
  run_thread(look_and_fail, &seen);
  assert_false(seen.text_at_start);
  assert_int_equal(seen.error_at_start, 0);
  assert_true(seen.text_after_failing);
  assert_int_equal(seen.error_after_failing, 107001);
  expect_headline("Invalid_Argument", "EE1003", "main: mine");
  assert_int_equal(aclrtGetLastError(ACL_RT_THREAD_LEVEL), 107003);
}

/* Zero growth under sanitizers, whose own heap this does not count; they look for leaks. */
static size_t heap_bytes(void) {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

static void a_thread_that_ends_gives_its_texts_back(void **state) {
  (void)state;
  struct seen seen;
  run_thread(look_and_fail, &seen);
  const size_t before = heap_bytes();
  for (int i = 0; i < 100; i++) run_thread(look_and_fail, &seen);
  BETWEEN(heap_bytes(), 0, before + 65536);
}

struct told {
  aclError status, recoded;
  char first[256], second[256];
  bool twice;
};

static void tell(char to[256]) {
  const char *text = aclGetRecentErrMsg();
  snprintf(to, 256, "%s", text == NULL ? "(none)" : text);
}

static void *fail_without_memory(void *argument) {
  struct told *told = argument;
  faults_arm(0, FAULT_ONCE);
  told->status = aclrtFree(NULL);
  faults_disarm();
  tell(told->first);
  told->twice = aclGetRecentErrMsg() != NULL;
  faults_arm(0, FAULT_ONCE);
  pg_fail_with("api", 107000, "%0*d", 500, 1);
  told->recoded = pg_recode(361001);
  faults_disarm();
  tell(told->second);
  return NULL;
}

static void without_memory_a_short_sentence_is_left(void **state) {
  (void)state;
  struct told told;
  run_thread(fail_without_memory, &told);
  assert_int_equal(told.status, ACL_ERROR_INVALID_PARAM);
  assert_true(matches(told.first,
                      "^\\[PID: [0-9]+\\] " TIME
                      " Invalid_Argument_Null_Pointer\\(EH0008\\): aclrtFree: devPtr is "
                      "NULL, a valid pointer is required\n$"));
  assert_false(told.twice);
  assert_int_equal(told.recoded, 361001);
  assert_true(matches(told.second, "AclNN_Runtime_Error\\(EZ9903\\): api: 0+\n$"));
}

/* The program has all keys and keeps its own data under each. */
static void without_a_key_nobody_elses_data_is_touched(void **state) {
  (void)state;
  static pthread_key_t keys[PTHREAD_KEYS_MAX];
  int count = 0;
  while (count < PTHREAD_KEYS_MAX && pthread_key_create(&keys[count], NULL) == 0) {
    assert_int_equal(pthread_setspecific(keys[count], &keys[count]), 0);
    count++;
  }
  assert_true(count > 0);
  for (int i = 0; i < 2; i++)
    FAILS(aclrtFree(NULL), ACL_ERROR_INVALID_PARAM, "aclrtFree: devPtr is NULL");
  assert_int_equal(aclrtSetDevice(-1), 107001);
  assert_int_equal(aclrtGetLastError(ACL_RT_THREAD_LEVEL), 107001);
  assert_string_equal(poolgrad_devices(), "");
  for (int i = 0; i < count; i++) assert_ptr_equal(pthread_getspecific(keys[i]), &keys[i]);
}

static void line_breaks_do_not_make_lines(void **state) {
  (void)state;
  char most[2000];
  pg_fail_with("api", 161001, "value is '%s'", "a\nTraceBack:\r\n\tb\x1b[0m\x7f\\");
  expect_headline("AclNN_Parameter_Error", "EZ1001",
                  "api: value is 'a\\\\nTraceBack:\\\\r\\\\n\\\\tb\\\\x1b\\[0m\\\\x7f\\\\'");
  for (size_t i = 0; i < sizeof most; i++) most[i] = i % 2 == 0 ? '\n' : '\1';
  most[sizeof most - 1] = '\0';
  pg_fail_with("api", 161001, "%s", most);
  const char *text = aclGetRecentErrMsg();
  assert_int_equal(count_lines(text), 1);
  BETWEEN(strlen(text), 1000, 1200);
}

/* Everything that a thread without a stream may call, on the smallest stack there is. */
static void *fail_in_many_ways(void *argument) {
  static const int64_t dims[] = {1, 2, 3};
  bool *told = argument;
  void *memory;
  uint64_t size;
  aclTensor *tensor =
      aclCreateTensor(dims, 3, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, dims, 3, argument);
  *told = aclrtFree(NULL) != 0 && aclrtSetDevice(-1) != 0 && aclrtMalloc(&memory, 8, 0) != 0 &&
          aclGetIntArraySize((aclIntArray *)(void *)tensor, &size) != 0 &&
          aclDestroyTensor(tensor) == 0 && poolgrad_devices()[0] != '\0' &&
          aclGetRecentErrMsg() != NULL;
  return NULL;
}

static void a_thread_with_the_smallest_stack_may_fail(void **state) {
  (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  SKIP("a sanitizer takes more stack than there is");
#endif
  pthread_attr_t small;
  pthread_t thread;
  bool told = false;
  OK_OR_SAY(aclInit(NULL));
  assert_int_equal(pthread_attr_init(&small), 0);
  assert_int_equal(pthread_attr_setstacksize(&small, (size_t)PTHREAD_STACK_MIN), 0);
  assert_int_equal(pthread_create(&thread, &small, fail_in_many_ways, &told), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  (void)pthread_attr_destroy(&small);
  assert_true(told);
}

static void with_the_log_on(void **state) {
  setenv("ASCEND_LOG_PRINT_TO_STDOUT", "1", 1);
  a_thread_with_the_smallest_stack_may_fail(state);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      APART(without_a_key_nobody_elses_data_is_touched), /* before any other call */
      cmocka_unit_test_setup(there_is_no_text_without_a_failure, start_clean),
      cmocka_unit_test_setup(every_code_has_its_title, start_clean),
      cmocka_unit_test_setup(a_title_says_whose_fault_it_is, start_clean),
      cmocka_unit_test_setup(a_mistake_is_no_internal_error, start_clean),
      cmocka_unit_test_setup(inner_errors_have_their_own_layout, start_clean),
      cmocka_unit_test_setup(public_calls_speak_in_this_layout, start_clean),
      cmocka_unit_test_setup(the_newest_is_the_headline_and_the_others_follow, start_clean),
      cmocka_unit_test_setup(an_inner_error_is_no_headline_beside_another, start_clean),
      cmocka_unit_test_setup(identical_sentences_are_kept_once, start_clean),
      cmocka_unit_test_setup(a_very_long_sentence_is_cut, start_clean),
      cmocka_unit_test_setup(unread_sentences_stay_few, start_clean),
      cmocka_unit_test_setup(the_text_is_good_until_the_next_read, start_clean),
      cmocka_unit_test_setup(only_runtime_codes_become_the_last_error, start_clean),
      cmocka_unit_test_setup(other_codes_take_the_place_of_the_last_error, start_clean),
      cmocka_unit_test_setup(an_answer_gives_way_to_a_failure, start_clean),
      cmocka_unit_test_setup(get_clears_the_last_error_and_peek_does_not, start_clean),
      cmocka_unit_test_setup(success_leaves_the_last_error_as_it_is, start_clean),
      cmocka_unit_test_setup(another_level_is_refused_and_clears_nothing, start_clean),
      cmocka_unit_test_setup(threads_do_not_see_each_other, start_clean),
      cmocka_unit_test_setup(a_thread_that_ends_gives_its_texts_back, start_clean),
      cmocka_unit_test_setup(without_memory_a_short_sentence_is_left, start_clean),
      cmocka_unit_test_setup(line_breaks_do_not_make_lines, start_clean),
      APART(a_thread_with_the_smallest_stack_may_fail),
      APART(with_the_log_on),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
