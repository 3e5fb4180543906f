/* SPDX-License-Identifier: Apache-2.0 */
/* Random problems against the reference, and the law of the same bits: on every device, with any
 * number of threads.
 *
 * POOLGRAD_TEST_SEED starts another sequence; POOLGRAD_TEST_SECONDS makes it longer or shorter.
 * An argument chooses among the tests: test_ops_random 'random*' */
#include "ops_fixture.h"

#include <inttypes.h>
#include <time.h>

#include "poolgrad.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) || defined(EMULATED)
enum { SHARED_PROBLEMS = 10 };
#else
enum { SHARED_PROBLEMS = 40 };
#endif

static uint64_t from_environment(const char *name, uint64_t otherwise) {
  const char *text = getenv(name);
  return text == NULL || text[0] == '\0' ? otherwise : strtoull(text, NULL, 0);
}

static uint64_t first_seed(void) { return from_environment("POOLGRAD_TEST_SEED", 20240229); }

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Most problems are small; every 16th has planes of several tiles. */
static struct problem nth_problem(uint64_t n) {
  return problem_random(first_seed() + n, n % 16 == 15 ? 40000 : 2500);
}

static void random_problems_are_right(void **state) {
  (void)state;
  const double end = now() + (double)from_environment("POOLGRAD_TEST_SECONDS", 6);
  const uint64_t most = from_environment("POOLGRAD_TEST_SECONDS", 0) > 0 ? UINT64_MAX : 6000;
  uint64_t count = 0;
  int wrong = 0;
  for (; count < most && wrong < 10 && now() < end; count++) {
    char why[PROBLEM_TEXT], line[PROBLEM_TEXT];
    const struct problem p = nth_problem(count);
    if (trial_run(&p, &devices, why)) continue;
    problem_print(&p, line);
    say_wrong(line, why);
    wrong++;
  }
  print_message("%" PRIu64 " problems from POOLGRAD_TEST_SEED=%" PRIu64 "\n", count, first_seed());
  if (wrong > 0) fail_msg("%d problems are wrong", wrong);
}

static bool run_with_threads(struct trial *t, int threads) {
  OK_OR_SAY(poolgrad_set_threads(threads));
  return trial_reset(t) && trial_launch(t) && trial_fetch(t) && trial_compare(t);
}

/* Everywhere as often as there are numbers of threads, also where those mean nothing. */
static bool run_everywhere(struct trial *t) {
  static const int threads[] = {0, 1, 2, 3, 7, 7, 7};
  for (int device = 0; device < devices.count; device++) {
    if (!trial_move(t, device)) return false;
    for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++)
      if (!run_with_threads(t, threads[i])) return false;
  }
  return true;
}

/* Large enough for several threads: a plan of half a MiB or more is shared out. */
static void expect_same_bits(const struct problem *p) {
  struct trial t;
  const bool right = trial_open(&t, p, &devices) && run_everywhere(&t);
  if (!right) {
    char line[PROBLEM_TEXT];
    problem_print(p, line);
    print_error("on device %d, %d threads: ", t.device, poolgrad_threads());
    say_wrong(line, t.why);
  }
  OK_OR_SAY(poolgrad_set_threads(0));
  trial_close(&t);
  assert_true(right);
}

static void threads_do_not_change_bits(void **state) {
  (void)state;
  for (uint64_t seed = first_seed(), done = 0; done < SHARED_PROBLEMS; seed++) {
    struct problem p = problem_random(~seed, 400000);
    p.data = RANDOM;
    if (p.n * p.c * p.in[0] * p.in[1] * p.in[2] < 100000) continue;
    expect_same_bits(&p);
    done++;
  }
}

/* One of each kind that a thread could see half done. */
static void chosen_problems_have_the_same_bits(void **state) {
  (void)state;
  static const char *const lines[] = {
      "max_pool2d f32 i32 in=3x331x317 kernel=5 stride=2 pad=2 index=stray data=random",
      "max_pool2d bf16 i64 in=2x4x150x400 kernel=3x4 stride=1x2 nhwc index=outside data=random",
      "adaptive_max_pool2d f16 i32 in=2x5x301x199 out=77x50 index=anywhere data=random",
      "adaptive_max_pool2d f32 i64 in=1x2x700x500 out=9x9 index=one data=random",
      "adaptive_max_pool3d bf16 i32 in=1x3x17x91x93 out=9x40x31 index=stray data=specials",
      "avg_pool2d f32 in=2x3x301x307 kernel=7x5 stride=2x1 pad=3x2 ceil data=random",
      "avg_pool2d f16 in=1x1x3x90001 kernel=2x9 stride=1x2 pad=1x4 include_pad data=random",
      "adaptive_avg_pool3d bf16 in=2x2x11x97x89 out=5x40x41 data=random",
      "adaptive_avg_pool3d f64 in=2x3x11x97x89 out=1x1x1 data=random",
      "max_pool2d_mask f16 in=3x331x317 kernel=5 stride=2 pad=2 index=stray data=random",
      "max_pool3d f32 i64 in=1x3x17x91x93 kernel=3 stride=2 pad=1 index=outside data=random",
      "avg_pool3d f32 in=1x3x17x91x93 kernel=3x2x3 stride=4x2x1 pad=1 ceil data=random",
      "adaptive_avg_pool2d bf16 in=2x3x301x307 out=77x50 data=random",
      "max_pool_forward f16 in=3x331x317 kernel=5 stride=2 pad=1x2x3x2 data=specials",
      "max_pool_forward of=u8 in=3x331x317 kernel=3 stride=2 data=random",
      "max_pool2d_forward f32 i32 in=3x331x317 kernel=3 stride=2 pad=1 data=ties",
      "max_pool2d_forward bf16 i64 in=2x40x50x60 kernel=3 stride=2 nhwc data=ties",
      "max_pool2d_mask_forward f32 in=3x331x317 kernel=3 stride=2 pad=1 data=random",
      "max_pool3d_forward f16 i32 in=1x3x17x91x93 kernel=3 stride=2 pad=1 data=random",
      "adaptive_max_pool2d_forward f32 in=1x2x700x500 out=9x9 data=ties",
      "adaptive_max_pool2d_forward f64 in=1x2x300x500 out=9x9 data=specials",
      "adaptive_max_pool3d_forward bf16 i32 in=1x3x17x91x93 out=9x40x31 data=random",
      "avg_pool2d_forward f32 in=2x3x301x307 kernel=7x5 stride=2x1 pad=3x2 ceil data=random",
      "avg_pool2d_forward f16 in=1x1x3x90001 kernel=2x33 stride=1x2 pad=1x4 data=random",
      "avg_pool3d_forward bf16 in=1x3x17x91x93 kernel=3 stride=2 pad=1 data=random",
      "adaptive_avg_pool2d_forward f32 in=2x3x301x307 out=1x1 data=random",
      "adaptive_avg_pool3d_forward bf16 in=2x2x11x97x89 out=5x40x41 data=random",
  };
  for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
    const struct problem p = read_problem(lines[i]);
    expect_same_bits(&p);
  }
}

int main(int argc, char **argv) {
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  const struct CMUnitTest tests[] = {cmocka_unit_test(random_problems_are_right),
                                     cmocka_unit_test(threads_do_not_change_bits),
                                     cmocka_unit_test(chosen_problems_have_the_same_bits)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
