/* SPDX-License-Identifier: Apache-2.0 */
/* Every line of problems/<batch>.txt, each against the reference:
 *
 *     test_ops_problems                            all batches
 *     test_ops_problems 'max_pool2d f32 ...' 7     this line, and the random problem of seed 7
 *
 * The language is in problem.h.  POOLGRAD_TEST_PROBLEMS names another folder of batches. */
#include "ops_fixture.h"

#include <glob.h>

static bool run_line(const char *line) {
  char why[PROBLEM_TEXT], copy[PROBLEM_TEXT], *comment;
  struct problem p;
  snprintf(copy, sizeof copy, "%s", line);
  if ((comment = strchr(copy, '#')) != NULL) *comment = '\0';
  copy[strcspn(copy, "\r\n")] = '\0';
  if (copy[strspn(copy, " \t")] == '\0') return true;
  if (problem_parse(copy, &p, why) && trial_run(&p, &devices, why)) return true;
  say_wrong(copy, why);
  return false;
}

static bool run_seed(const char *number) {
  char line[PROBLEM_TEXT];
  const struct problem p = problem_random(strtoull(number, NULL, 10), 2500);
  problem_print(&p, line);
  return run_line(line);
}

static const char *folder(void) {
  const char *other = getenv("POOLGRAD_TEST_PROBLEMS");
  return other == NULL ? PROBLEMS : other;
}

/* Goes on after a line that fails, so that one run shows them all. */
static void run_batch(const char *path) {
  char line[PROBLEM_TEXT];
  int wrong = 0;
  FILE *file = fopen(path, "re");
  if (file == NULL) fail_msg("%s cannot be opened", path);
  while (fgets(line, sizeof line, file) != NULL) wrong += !run_line(line);
  fclose(file);
  if (wrong > 0) fail_msg("%d lines of %s are wrong", wrong, path);
}

static void a_batch_is_right(void **state) { run_batch(*state); }

/* Told so, a stream fails when indices lie outside their plane, and says how many. */
static void bad_indices_are_counted(void **state) {
  (void)state;
  char path[4096];
  snprintf(path, sizeof path, "%s/indices.txt", folder());
  run_batch(path);
}

/* The text of a problem means the same problem again. */
static void text_survives_reading_and_printing(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 2000; seed++) {
    char first[PROBLEM_TEXT], second[PROBLEM_TEXT];
    const struct problem p = problem_random(seed, 5000);
    problem_print(&p, first);
    const struct problem again = read_problem(first);
    problem_print(&again, second);
    assert_string_equal(first, second);
    assert_memory_equal(p.out, again.out, sizeof p.out);
  }
}

static void what_is_wrong_with_a_line_is_said(void **state) {
  (void)state;
  static const struct {
    const char *line, *why;
  } cases[] = {{"", "'' is no operator"},
               {"max_pool f32", "'max_pool' is no operator"},
               {"max_pool2d in=1x1x4x4", "kernel= is missing"},
               {"max_pool2d kernel=2", "in= is missing"},
               {"max_pool2d in=1x4 kernel=2", "'in=1x4' is not understood"},
               {"max_pool2d in=1x1x4x4 kernel=2x2x2", "'kernel=2x2x2' is not understood"},
               {"max_pool2d in=1x1x4x4 kernel=9", "no window fits into in="},
               {"avg_pool2d in=1x1x4x4 kernel=2 round", "'round' is not understood"},
               {"avg_pool2d in=1x1x4x4 kernel=2 self=odd", "'self=odd' is not understood"},
               {"avg_pool2d in=1x1x4x4 kernel=2 seed=1y", "'seed=1y' is not understood"},
               {"adaptive_max_pool2d in=1x1x4x4", "out= is missing"},
               {"adaptive_max_pool2d in=1x4x4 out=2x2 grad_in=expand", "grad_in= cannot share"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char why[PROBLEM_TEXT];
    struct problem p;
    assert_false(problem_parse(cases[i].line, &p, why));
    if (strstr(why, cases[i].why) == NULL) fail_msg("'%s' gave: %s", cases[i].line, why);
  }
}

static int set_up_strict(void **state) { return set_up_with("error", state); }

static int run_arguments(int count, char **lines) {
  int wrong = set_up(NULL);
  for (int i = 0; i < count && wrong == 0; i++)
    wrong = !(strspn(lines[i], "0123456789") == strlen(lines[i]) ? run_seed : run_line)(lines[i]);
  return tear_down(NULL) != 0 || wrong != 0;
}

static int run_batches(void) {
  struct CMUnitTest tests[64];
  size_t count = 0;
  char pattern[4096];
  glob_t found;
  snprintf(pattern, sizeof pattern, "%s/*.txt", folder());
  if (glob(pattern, 0, NULL, &found) != 0) {
    print_error("no batches in %s\n", folder());
    return 1;
  }
  for (; count < found.gl_pathc && count < 64; count++)
    tests[count] = (struct CMUnitTest){.name = strrchr(found.gl_pathv[count], '/') + 1,
                                       .test_func = a_batch_is_right,
                                       .initial_state = found.gl_pathv[count]};
  const int failed = _cmocka_run_group_tests("batches", tests, count, set_up, tear_down);
  globfree(&found);
  return failed;
}

int main(int argc, char **argv) {
  if (argc > 1) return run_arguments(argc - 1, argv + 1);
  const struct CMUnitTest text[] = {cmocka_unit_test(text_survives_reading_and_printing),
                                    cmocka_unit_test(what_is_wrong_with_a_line_is_said)};
  const struct CMUnitTest strict[] = {cmocka_unit_test(bad_indices_are_counted)};
  return cmocka_run_group_tests(text, NULL, NULL) + run_batches() +
         cmocka_run_group_tests(strict, set_up_strict, tear_down);
}
