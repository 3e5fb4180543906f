/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of kernels over tensors share: many random problems from one seed each, as they
 * are and with every result stored past the caches.
 *
 * POOLGRAD_TEST_SEED is the seed of the first problem, which a failure names; POOLGRAD_TEST_SECONDS
 * makes a run longer or shorter. */
#ifndef PG_TESTS_TENSOR_RANDOM_TEST_H_
#define PG_TESTS_TENSOR_RANDOM_TEST_H_

#include <inttypes.h>
#include <time.h>

#include "ops_fixture.h"
#include "tensor_trial.h"

/* Makes the problem of a seed, of about so many positions, with its data and what is expected. */
typedef bool tensor_make_fn(struct tensor_trial *t, uint64_t seed, int64_t most);

static inline double tensor_seconds(void) {
  const char *text = getenv("POOLGRAD_TEST_SECONDS");
  return text == NULL || text[0] == '\0' ? 1 : strtod(text, NULL);
}

static inline uint64_t tensor_first_seed(void) {
  const char *text = getenv("POOLGRAD_TEST_SEED");
  return text == NULL || text[0] == '\0' ? 20261119 : strtoull(text, NULL, 0);
}

static inline double tensor_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static inline bool tensor_try(tensor_make_fn *make, uint64_t seed, int64_t most, const int *threads,
                              int counts) {
  struct tensor_trial t = {.sides = 0};
  bool good = make(&t, seed, most);
  if (!good) print_error("no memory for the problem\n");
  if (good && !tensor_trial_run(&t, &devices, threads, counts)) {
    print_error("%s\n  POOLGRAD_TEST_SEED=%" PRIu64 ", %lld positions at most\n", t.why, seed,
                (long long)most);
    good = false;
  }
  tensor_trial_free(&t);
  return good;
}

/* Most problems are small, some have several panels. */
static inline void tensor_try_many(tensor_make_fn *make) {
  static const int threads[] = {0};
  const double end = tensor_now() + tensor_seconds();
  const uint64_t first = tensor_first_seed();
  uint64_t count = 0;
  int wrong = 0;
  for (; wrong < 10 && tensor_now() < end; count++)
    wrong += !tensor_try(make, first + count, count % 8 == 7 ? 12000 : 600, threads, 1);
  print_message("%" PRIu64 " problems from POOLGRAD_TEST_SEED=%" PRIu64 "\n", count, first);
  if (wrong > 0) fail_msg("%d problems are wrong", wrong);
  assert_true(count > 0);
}

/* Large enough for several threads. */
static inline void tensor_try_threads(tensor_make_fn *make, int problems) {
  static const int threads[] = {1, 2, 3};
  for (int i = 0; i < problems; i++)
    assert_true(tensor_try(make, ~tensor_first_seed() - (uint64_t)i, 150000, threads, 3));
}

static inline int set_up_past_caches(void **state) {
  setenv("POOLGRAD_STREAM_BYTES", "1", 1);
  return set_up(state);
}

static inline int tear_down_past_caches(void **state) {
  unsetenv("POOLGRAD_STREAM_BYTES");
  return tear_down(state);
}

/* Runs the tests twice: results stay in the caches, or go past them.  The environment decides where
 * it says something. */
#define TENSOR_RUN_GROUPS(tests)                      \
  (cmocka_run_group_tests(tests, set_up, tear_down) + \
   (getenv("POOLGRAD_STREAM_BYTES") != NULL           \
        ? 0                                           \
        : cmocka_run_group_tests(tests, set_up_past_caches, tear_down_past_caches)))

#endif
