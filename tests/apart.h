/* SPDX-License-Identifier: Apache-2.0 */
/* A check in a process of its own, where the first call fixes what follows. */
#ifndef PG_TESTS_APART_H_
#define PG_TESTS_APART_H_

#include <sys/wait.h>
#include <unistd.h>

#include "expect.h"

static inline void forget_environment(void) {
  unsetenv("POOLGRAD_DEVICES");
  unsetenv("POOLGRAD_THREADS");
  unsetenv("POOLGRAD_SOC");
  unsetenv("POOLGRAD_ISA");
  unsetenv("POOLGRAD_STREAM_BYTES");
  unsetenv("POOLGRAD_STRICT");
  unsetenv("ASCEND_RT_VISIBLE_DEVICES");
}

/* Runs one check in a fresh process; a failure there is printed there and fails here. */
static inline void apart(const char *name, CMUnitTestFunction check, const void *row) {
  (void)fflush(NULL);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    const struct CMUnitTest test[] = {
        {.name = name, .test_func = check, .initial_state = (void *)(uintptr_t)row}};
    forget_environment();
    if (freopen("/dev/null", "w", stdout) == NULL) exit(99);
    exit(cmocka_run_group_tests_name(name, test, NULL, NULL));
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    fail_msg("%s: its process ended with status 0x%x", name, (unsigned)status);
}

struct check {
  const char *name;
  CMUnitTestFunction run;
};

static inline void run_apart(void **state) {
  const struct check *check = *state;
  apart(check->name, check->run, NULL);
}

#define APART(test)                                                                         \
  {                                                                                         \
    .name = #test, .test_func = run_apart, .initial_state = &(struct check) { #test, test } \
  }

#endif
