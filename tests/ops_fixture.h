/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of operators start with: every device of the process with a stream on each, and
 * silence about bad indices. */
#ifndef PG_TESTS_OPS_FIXTURE_H_
#define PG_TESTS_OPS_FIXTURE_H_

#include "expect.h"
#include "trial.h"

static struct trial_devices devices;

static inline int set_up_with(const char *index_check, void **state) {
  setenv("POOLGRAD_INDEX_CHECK", index_check, 1);
  return set_up_device(state) != 0 || !trial_devices_open(&devices);
}

static inline int set_up(void **state) { return set_up_with("off", state); }

static inline int tear_down(void **state) {
  return !trial_devices_close(&devices) || tear_down_device(state) != 0;
}

/* Says what is wrong with the line, in a form to paste after test_ops_problems. */
static inline void say_wrong(const char *line, const char *why) {
  print_error("%s\n  test_ops_problems '%s'\n", why, line);
}

static inline struct problem read_problem(const char *line) {
  char why[PROBLEM_TEXT];
  struct problem p;
  if (!problem_parse(line, &p, why)) fail_msg("%s in: %s", why, line);
  return p;
}

#endif
