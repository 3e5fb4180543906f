/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: current per thread, owners of streams, keepers of options. */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "expect.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* ACL_OPT_STRONG_CONSISTENCY */

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_two_devices, tear_down_device)

/* The first one as the environment has it, and another. */
static int set_up_two_devices(void **state) {
  const char *devices = getenv("POOLGRAD_DEVICES");
  const bool cuda = devices != NULL && strncmp(devices, "cuda", 4) == 0;
  setenv("POOLGRAD_DEVICES", cuda ? "cuda:0,cpu" : "cpu,cpu", 1);
  return set_up_device(state);
}

static void on_new_thread(void *(*fn)(void *), void *argument) {
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, fn, argument), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
}

static aclrtContext current(void) {
  aclrtContext context = NULL;
  OK_OR_SAY(aclrtGetCurrentContext(&context));
  return context;
}

static void a_created_context_is_current(void **state) {
  (void)state;
  const aclrtContext primary = current();
  aclrtContext context = NULL;
  int32_t device = -1;
  OK_OR_SAY(aclrtCreateContext(&context, 1));
  assert_ptr_equal(current(), context);
  OK_OR_SAY(aclrtGetDevice(&device));
  assert_int_equal(device, 1);
  OK_OR_SAY(aclrtSetCurrentContext(primary));
  OK_OR_SAY(aclrtGetDevice(&device));
  assert_int_equal(device, 0);
  OK_OR_SAY(aclrtSetCurrentContext(context));
  OK_OR_SAY(aclrtSetDevice(0)); /* overrides the explicit one */
  assert_ptr_equal(current(), primary);
  OK_OR_SAY(aclrtDestroyContext(context));
  assert_ptr_equal(current(), primary);
}

static void *create_without_a_device(void *argument) {
  aclError *codes = argument;
  aclrtContext context;
  aclrtStream stream;
  codes[0] = aclrtGetCurrentContext(&context);
  codes[1] = aclrtCreateContext(&context, 1);
  codes[2] = aclrtCreateStream(&stream);
  codes[3] = aclrtDestroyStream(stream);
  codes[4] = aclrtDestroyContext(context);
  codes[5] = aclrtGetCurrentContext(&context);
  return NULL;
}

static void creating_needs_no_set_device(void **state) {
  (void)state;
  aclError codes[6];
  const aclError expected[] = {107002, 0, 0, 0, 0, 107002};
  on_new_thread(create_without_a_device, codes);
  assert_memory_equal(codes, expected, sizeof codes);
}

static void wrong_contexts_are_refused(void **state) {
  (void)state;
  aclrtContext context;
  aclrtStream stream;
  OK_OR_SAY(aclrtCreateStream(&stream));
  FAILS(aclrtCreateContext(NULL, 0), 100000, "aclrtCreateContext", "context is NULL");
  FAILS(aclrtDestroyContext(NULL), 100000, "aclrtDestroyContext", "context is NULL");
  FAILS(aclrtSetCurrentContext(NULL), 100000, "aclrtSetCurrentContext", "context is NULL");
  FAILS(aclrtGetCurrentContext(NULL), 100000, "aclrtGetCurrentContext", "context is NULL");
  FAILS(aclrtCtxGetCurrentDefaultStream(NULL), 100000, "aclrtCtxGetCurrentDefaultStream", "NULL");
  FAILS(aclrtDestroyContext(current()), 107002, "aclrtDestroyContext", "default context",
        "aclrtResetDevice");
  OK_OR_SAY(aclrtCreateContext(&context, 0));
  OK_OR_SAY(aclrtDestroyContext(context));
  FAILS(aclrtGetCurrentContext(&context), 107002, "aclrtGetCurrentContext", "aclrtSetDevice");
  void *const wrong[] = {context, stream, &context, (void *)1, (void *)-1};
  for (size_t i = 0; i < LENGTH(wrong); i++) {
    FAILS(aclrtDestroyContext(wrong[i]), 107002, "aclrtDestroyContext", "a live context");
    FAILS(aclrtSetCurrentContext(wrong[i]), 107000, "aclrtSetCurrentContext", "a live context");
  }
  FAILS(aclrtDestroyContext(context), 107002, "a destroyed context");
  FAILS(aclrtSetCurrentContext(stream), 107000, "a stream");
}

struct visitor {
  aclrtContext context;
  sem_t entered, go;
  aclError before, during, after;
};

static void *visit(void *argument) {
  struct visitor *visitor = argument;
  int32_t device;
  visitor->before = aclrtGetDevice(&device);
  (void)aclrtSetCurrentContext(visitor->context);
  visitor->during = aclrtSynchronizeStream(NULL);
  (void)sem_post(&visitor->entered);
  while (sem_wait(&visitor->go) != 0) continue;
  visitor->after = aclrtSynchronizeStream(NULL);
  return NULL;
}

static void a_context_ends_for_all_threads(void **state) {
  (void)state;
  struct visitor visitor = {.after = -1};
  pthread_t thread;
  (void)sem_init(&visitor.entered, 0, 0);
  (void)sem_init(&visitor.go, 0, 0);
  OK_OR_SAY(aclrtCreateContext(&visitor.context, 0));
  assert_int_equal(pthread_create(&thread, NULL, visit, &visitor), 0);
  while (sem_wait(&visitor.entered) != 0) continue;
  OK_OR_SAY(aclrtDestroyContext(visitor.context));
  (void)sem_post(&visitor.go);
  (void)pthread_join(thread, NULL);
  assert_int_equal(visitor.before, 107002);
  assert_int_equal(visitor.during, 0);
  assert_int_equal(visitor.after, 107002);
}

struct late {
  aclrtStream stream;
  atomic_bool done;
};

/* Ends only after somebody has begun to destroy its own stream. */
static void work_until_stale(void *argument) {
  struct late *late = argument;
  int32_t id;
  while (aclrtStreamGetId(late->stream, &id) != 107017) sched_yield();
  atomic_store(&late->done, true);
}

static void destroying_a_context_waits_and_ends_its_streams(void **state) {
  (void)state;
  struct late late = {.done = false};
  aclrtContext context;
  OK_OR_SAY(aclrtCreateContext(&context, 0));
  OK_OR_SAY(aclrtCreateStream(&late.stream));
  OK_OR_SAY(aclrtLaunchHostFunc(late.stream, work_until_stale, &late));
  OK_OR_SAY(aclrtDestroyContext(context));
  assert_true(atomic_load(&late.done));
  FAILS(aclrtSynchronizeStream(late.stream), 107017, "aclrtSynchronizeStream", "destroyed stream");
}

static void streams_belong_to_their_context(void **state) {
  (void)state;
  const aclrtContext primary = current();
  aclrtContext context;
  aclrtStream stream, primary_default, context_default;
  OK_OR_SAY(aclrtCreateStream(&stream));
  OK_OR_SAY(aclrtCtxGetCurrentDefaultStream(&primary_default));
  OK_OR_SAY(aclrtCreateContext(&context, 0));
  OK_OR_SAY(aclrtCtxGetCurrentDefaultStream(&context_default));
  FAILS(aclrtSynchronizeStream(stream), 107003, "aclrtSynchronizeStream", "another context");
  FAILS(aclrtSynchronizeStream(primary_default), 107003, "aclrtSynchronizeStream");
  OK_OR_SAY(aclrtSynchronizeStream(context_default));
  OK_OR_SAY(aclrtSetCurrentContext(primary));
  OK_OR_SAY(aclrtSynchronizeStream(stream));
  FAILS(aclrtDestroyStream(context_default), 107003, "aclrtDestroyStream", "another context");
  OK_OR_SAY(aclrtDestroyContext(context));
}

static void null_stands_for_the_default_stream(void **state) {
  (void)state;
  aclrtStream stream = NULL, again = NULL;
  int32_t by_handle = -1, by_null = -2;
  OK_OR_SAY(aclrtCtxGetCurrentDefaultStream(&stream));
  OK_OR_SAY(aclrtCtxGetCurrentDefaultStream(&again));
  assert_non_null(stream);
  assert_ptr_equal(again, stream);
  OK_OR_SAY(aclrtStreamGetId(stream, &by_handle));
  OK_OR_SAY(aclrtStreamGetId(NULL, &by_null));
  assert_int_equal(by_handle, by_null);
  FAILS(aclrtDestroyStream(stream), 107017, "aclrtDestroyStream", "default stream");
  FAILS(aclrtDestroyStreamForce(stream), 107017, "aclrtDestroyStreamForce", "default stream");
  OK_OR_SAY(aclrtSynchronizeStream(stream));
}

struct option {
  int opt;
  int64_t value;
  aclError in_context, in_process;
};

static void options_and_their_values_are_checked(void **state) {
  (void)state;
  static const struct option rows[] = {
      {0, 0, 0, 0},
      {0, 3, 0, 0},
      {0, 4, 107000, 107000},
      {0, -1, 107000, 107000},
      {1, 1, 0, 0},
      {1, 2, 107000, 107000},
      {2, 1, 0, 0},
      {2, 2, 107000, 107000},
      {2, -1, 107000, 107000},
      {3, 0, 100000, 0},
      {3, 1, 100000, 0},
      {3, 2, 100000, 107000},
      {4, 0, 100000, 100000},
      {-1, 0, 100000, 100000},
  };
  for (size_t i = 0; i < LENGTH(rows); i++) {
    const aclSysParamOpt opt = (aclSysParamOpt)rows[i].opt;
    int64_t value = -7;
    if (rows[i].in_context != 0)
      FAILS(aclrtCtxSetSysParamOpt(opt, rows[i].value), rows[i].in_context,
            "aclrtCtxSetSysParamOpt", "allowed");
    else
      OK_OR_SAY(aclrtCtxSetSysParamOpt(opt, rows[i].value));
    if (rows[i].in_process != 0) {
      FAILS(aclrtSetSysParamOpt(opt, rows[i].value), rows[i].in_process, "aclrtSetSysParamOpt",
            "allowed");
      continue;
    }
    OK_OR_SAY(aclrtSetSysParamOpt(opt, rows[i].value));
    OK_OR_SAY(aclrtGetSysParamOpt(opt, &value));
    assert_int_equal(value, rows[i].value);
  }
}

static void reading_options_is_checked(void **state) {
  (void)state;
  int64_t value = -7;
  FAILS(aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, NULL), 100000, "aclrtCtxGetSysParamOpt",
        "value is NULL");
  FAILS(aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, NULL), 100000, "aclrtGetSysParamOpt",
        "value is NULL");
  FAILS(aclrtCtxGetSysParamOpt(ACL_OPT_ENABLE_KERNEL_EARLY_START, &value), 100000,
        "aclrtCtxGetSysParamOpt", "opt is 3");
  FAILS(aclrtGetSysParamOpt((aclSysParamOpt)4, &value), 100000, "aclrtGetSysParamOpt", "opt is 4");
  for (int opt = ACL_OPT_DETERMINISTIC; opt <= ACL_OPT_STRONG_CONSISTENCY; opt++)
    FAILS(aclrtCtxGetSysParamOpt((aclSysParamOpt)opt, &value), 107021, "aclrtCtxGetSysParamOpt",
          "never set");
  assert_int_equal(value, -7);
}

static int64_t process_level(void) {
  int64_t value = -1;
  OK_OR_SAY(aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value));
  return value;
}

static int64_t context_level(void) {
  int64_t value = -1;
  OK_OR_SAY(aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value));
  return value;
}

static void a_contexts_option_is_the_processs_too(void **state) {
  (void)state;
  aclrtContext context;
  int64_t value;
  OK_OR_SAY(aclrtCtxSetSysParamOpt(ACL_OPT_DETERMINISTIC, 2));
  assert_int_equal(context_level(), 2);
  assert_int_equal(process_level(), 2);
  OK_OR_SAY(aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1));
  assert_int_equal(context_level(), 2);
  assert_int_equal(process_level(), 1);
  OK_OR_SAY(aclrtCreateContext(&context, 0));
  FAILS(aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value), 107021, "aclrtCtxGetSysParamOpt");
  OK_OR_SAY(aclrtDestroyContext(context));
  OK_OR_SAY(aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, 0));
}

static void *options_without_context(void *argument) {
  aclError *codes = argument;
  int64_t value;
  codes[0] = aclrtCtxSetSysParamOpt(ACL_OPT_DETERMINISTIC, 0);
  codes[1] = aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value);
  codes[2] = aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, 0);
  codes[3] = aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value);
  return NULL;
}

static void only_a_contexts_options_need_one(void **state) {
  (void)state;
  aclError codes[4];
  const aclError expected[] = {107002, 107002, 0, 0};
  on_new_thread(options_without_context, codes);
  assert_memory_equal(codes, expected, sizeof codes);
}

struct race {
  aclrtContext context;
  atomic_bool ready;
};

static void *create_stream_meanwhile(void *argument) {
  struct race *race = argument;
  aclrtStream stream;
  (void)aclrtSetCurrentContext(race->context);
  atomic_store(&race->ready, true);
  (void)aclrtCreateStream(&stream); /* made in time and ended with the context, or refused */
  return NULL;
}

/* In the child: 0 when no stream outlives its context. */
static int count_survivors(void) {
  enum { ROUNDS = 500 };
  struct race race;
  uint32_t before = 0, after = 0;
  if (set_up_device(NULL) != 0 || aclrtGetStreamAvailableNum(&before) != 0) return 99;
  for (int i = 0; i < ROUNDS; i++) {
    pthread_t thread;
    atomic_store(&race.ready, false);
    if (aclrtCreateContext(&race.context, 0) != 0) return 98;
    if (pthread_create(&thread, NULL, create_stream_meanwhile, &race) != 0) return 97;
    while (!atomic_load(&race.ready)) continue;
    (void)aclrtDestroyContext(race.context);
    (void)pthread_join(thread, NULL);
  }
  (void)aclrtSetDevice(0);
  (void)aclrtGetStreamAvailableNum(&after);
  return before == after ? 0 : 1;
}

/* In a process of its own: a stream that got away would keep aclFinalize waiting for ever. */
static void no_stream_outlives_its_context(void **state) {
  (void)state;
  int status = -1;
  (void)fflush(NULL);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) _exit(count_survivors());
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(no_stream_outlives_its_context), /* first: it forks */
      TEST(a_created_context_is_current),
      TEST(creating_needs_no_set_device),
      TEST(wrong_contexts_are_refused),
      TEST(a_context_ends_for_all_threads),
      TEST(destroying_a_context_waits_and_ends_its_streams),
      TEST(streams_belong_to_their_context),
      TEST(null_stands_for_the_default_stream),
      TEST(options_and_their_values_are_checked),
      TEST(reading_options_is_checked),
      TEST(a_contexts_option_is_the_processs_too),
      TEST(only_a_contexts_options_need_one),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
