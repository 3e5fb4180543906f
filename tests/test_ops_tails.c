/* SPDX-License-Identifier: Apache-2.0 */
/* Every kernel, type and index width at lengths one below, at and one above each vector width, at
 * addresses that are aligned to nothing but their elements. */
#include "ops_fixture.h"

static const int lengths[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65};
enum { LENGTHS = sizeof lengths / sizeof lengths[0] };

static const char *const types[] = {"f32", "f16", "bf16"};

/* Each takes a type and a length along W, or of channels. */
static const char *const max_forms[] = {
    "max_pool2d %s %s in=2x3x7x%d kernel=2 stride=2 ceil",
    "max_pool2d %s %s in=1x2x6x%d kernel=3 stride=2 pad=1 ceil",
    "max_pool2d %s %s in=2x2x5x%d kernel=3 stride=1 pad=1",
    "max_pool2d %s %s in=2x%d x9x8 kernel=3 stride=2 pad=1 nhwc",
    "max_pool2d %s %s in=1x%d x5x7 kernel=2 stride=2 ceil nhwc",
    "max_pool2d %s %s in=1x%d x4x6 kernel=3 stride=1 pad=1 nhwc",
    "adaptive_max_pool2d %s %s in=2x3x9x%d out=4x3",
    "adaptive_max_pool3d %s %s in=1x2x5x4x%d out=3x3x2",
    "max_pool3d %s %s in=1x2x5x4x%d kernel=2x3x2 stride=2 pad=1 ceil",
    "max_pool2d_forward %s %s in=2x3x7x%d kernel=2 stride=2 ceil",
    "max_pool2d_forward %s %s in=1x2x6x%d kernel=3 stride=2 pad=1 ceil",
    "max_pool2d_forward %s %s in=2x2x5x%d kernel=3 stride=1 pad=1",
    "max_pool2d_forward %s %s in=2x%d x9x8 kernel=3 stride=2 pad=1 nhwc",
    "max_pool2d_forward %s %s in=1x%d x5x7 kernel=2 stride=2 ceil nhwc",
    "max_pool3d_forward %s %s in=1x2x5x4x%d kernel=2x3x2 stride=2 pad=1 ceil",
    "max_pool3d_forward %s %s in=1x%d x3x5x4 kernel=2 stride=1 ndhwc",
    "adaptive_max_pool3d_forward %s %s in=1x2x5x4x%d out=3x3x2",
};

static const char *const avg_forms[] = {
    "avg_pool2d %s in=2x3x7x%d kernel=2 stride=2 ceil",
    "avg_pool2d %s in=1x2x6x%d kernel=3 stride=1 pad=1",
    "avg_pool2d %s in=1x2x6x%d kernel=3 stride=2 pad=1 ceil include_pad",
    "avg_pool2d %s in=1x2x9x%d kernel=6 stride=1 pad=3 include_pad",
    "avg_pool2d %s in=2x%d x5x6 kernel=3 stride=1 pad=1 grad_out=permuted grad_in=permuted",
    "adaptive_avg_pool3d %s in=1x2x5x4x%d out=3x3x2",
    "adaptive_avg_pool3d %s in=2x70x1x1x%d out=1x1x1",
    "adaptive_avg_pool2d %s in=1x2x5x%d out=3x2",
    "avg_pool3d %s in=1x2x5x4x%d kernel=2x3x2 stride=3x2x2 pad=1 ceil",
    "avg_pool2d_forward %s in=2x3x7x%d kernel=2 stride=2 ceil",
    "avg_pool2d_forward %s in=1x2x6x%d kernel=3 stride=1 pad=1",
    "avg_pool2d_forward %s in=1x2x6x%d kernel=3 stride=2 pad=1 ceil include_pad",
    "avg_pool2d_forward %s in=2x%d x5x6 kernel=3 stride=1 pad=1 grad_out=permuted self=permuted",
    "avg_pool3d_forward %s in=1x2x5x4x%d kernel=2x3x2 stride=3x2x2 pad=1 ceil",
    "adaptive_avg_pool2d_forward %s in=1x2x5x%d out=3x2",
    "adaptive_avg_pool3d_forward %s in=1x2x5x4x%d out=3x3x2",
    "adaptive_avg_pool3d_forward %s in=2x35x1x1x%d out=1x1x1",
    "adaptive_avg_pool2d_forward %s in=1x%d x4x3 out=1x1 self=permuted grad_out=permuted",
    /* without the type of an index */
    "max_pool_forward %s in=2x3x7x%d kernel=3 stride=2 pad=1x0x1x2",
    "max_pool2d_mask %s in=2x3x7x%d kernel=3 stride=2 pad=1",
    "max_pool2d_mask_forward %s in=2x3x7x%d kernel=3 stride=2 pad=1",
    "adaptive_max_pool2d_forward %s in=2x3x9x%d out=4x3",
    "adaptive_max_pool2d_forward %s in=1x%d x5x7 out=3x4 nhwc",
};

static const char *const integer_types[] = {"of=i8",  "of=u8",  "of=i16",
                                            "of=u16", "of=i32", "of=i64"};

/* "%d x" holds a number that another digit follows. */
static void close_up(char *line) {
  char *gap = strstr(line, " x");
  if (gap != NULL) memmove(gap, gap + 1, strlen(gap));
}

/* Once where tensors begin at a boundary, once where they do not. */
static int run(char *line) {
  const bool forward = strstr(line, "_forward") != NULL;
  const char *const places[] = {
      "", forward ? " self=offset grad_out=offset" : " grad_out=offset grad_in=offset"};
  int wrong = 0;
  close_up(line);
  for (int i = 0; i < (strstr(line, "grad_out=") == NULL ? 2 : 1); i++) {
    char placed[PROBLEM_TEXT], why[PROBLEM_TEXT];
    snprintf(placed, sizeof placed, "%s data=random%s", line, places[i]);
    const struct problem p = read_problem(placed);
    if (trial_run(&p, &devices, why)) continue;
    say_wrong(placed, why);
    wrong++;
  }
  return wrong;
}

/* A window may be larger than so small an input: that is no problem then. */
static bool exists(const char *line, int length) {
  return length >= 3 || strstr(line, "adaptive") != NULL || strstr(line, "x%d kernel") == NULL;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"

static void max_ends_at_every_length(void **state) {
  (void)state;
  int wrong = 0;
  for (size_t form = 0; form < sizeof max_forms / sizeof max_forms[0]; form++)
    for (int i = 0; i < LENGTHS; i++)
      for (int type = 0; type < 3 && exists(max_forms[form], lengths[i]); type++)
        for (int wide = 0; wide < 2; wide++) {
          char line[PROBLEM_TEXT];
          snprintf(line, sizeof line, max_forms[form], types[type], wide ? "i64" : "i32",
                   lengths[i]);
          wrong += run(line);
        }
  assert_int_equal(wrong, 0);
}

static void integers_end_at_every_length(void **state) {
  (void)state;
  int wrong = 0;
  for (int i = 0; i < LENGTHS; i++)
    for (int type = 0; type < 6; type++) {
      char line[PROBLEM_TEXT];
      snprintf(line, sizeof line, "max_pool_forward %s in=2x3x7x%d kernel=3 stride=2 pad=1x0x1x2",
               integer_types[type], lengths[i]);
      wrong += run(line);
    }
  assert_int_equal(wrong, 0);
}

static void average_ends_at_every_length(void **state) {
  (void)state;
  int wrong = 0;
  for (size_t form = 0; form < sizeof avg_forms / sizeof avg_forms[0]; form++)
    for (int i = 0; i < LENGTHS; i++)
      for (int type = 0; type < 3 && exists(avg_forms[form], lengths[i]); type++) {
        char line[PROBLEM_TEXT];
        snprintf(line, sizeof line, avg_forms[form], types[type], lengths[i]);
        wrong += run(line);
      }
  assert_int_equal(wrong, 0);
}

#pragma GCC diagnostic pop

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(max_ends_at_every_length),
                                     cmocka_unit_test(average_ends_at_every_length),
                                     cmocka_unit_test(integers_end_at_every_length)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
