/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that run under a product's profile. */
#ifndef PG_TESTS_PRODUCT_H_
#define PG_TESTS_PRODUCT_H_

#include <sys/wait.h>
#include <unistd.h>

#include "expect.h"

/* Runs a check in a process of its own, because the profile is chosen once.  Its state is the
 * product's name. */
static inline void check_product(CMUnitTestFunction check, const char *product) {
  const struct CMUnitTest test[] = {
      {.name = product, .test_func = check, .initial_state = (void *)(uintptr_t)product}};
  int status;
  (void)fflush(NULL);
  const pid_t child = fork();
  if (child == 0) {
    setenv("POOLGRAD_SOC", product, 1);
    exit(aclInit(NULL) != ACL_SUCCESS || cmocka_run_group_tests(test, NULL, NULL) != 0);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

#endif
