/* SPDX-License-Identifier: Apache-2.0 */
/* One index that points out of its window, in each row of the outputs in turn: planes are cut into
 * tiles, and whoever meets the output has to know whose it is. */
#include <inttypes.h>

#include "ops_fixture.h"

#define LAST " grad_out=permuted indices=permuted grad_in=permuted"

/* Planes of more than one tile. */
static const struct {
  const char *line;
  int64_t rows, columns;
} forms[] = {
    {"max_pool2d f32 i64 in=1x1x130x64 kernel=2 stride=2", 65, 32},
    {"max_pool2d f32 i64 in=1x1x66x200 kernel=2 stride=2", 33, 100},
    {"max_pool2d bf16 i32 in=1x1x130x64 kernel=2 stride=2", 65, 32},
    {"max_pool2d f32 i32 in=1x1x133x67 kernel=2 stride=2", 66, 33},
    {"max_pool2d f32 i64 in=1x1x260x64 kernel=3 stride=2 pad=1", 130, 32},
    {"max_pool2d f16 i32 in=1x1x271x61 kernel=3 stride=2 pad=1", 136, 31},
    {"max_pool2d f32 i32 in=1x1x271x61 kernel=3 stride=2", 135, 30},
    {"max_pool2d f32 i64 in=1x1x271x61 kernel=3 stride=1 pad=1", 271, 61},
    {"max_pool2d bf16 i32 in=1x1x271x61 kernel=3 stride=1", 269, 59},
    {"max_pool2d f32 i64 in=1x1x271x61 kernel=5 stride=2 pad=2", 136, 31},
    {"max_pool2d f32 i64 in=1x8x35x37 kernel=3 stride=2 pad=1 nhwc", 18, 19},
    {"max_pool2d f16 i32 in=1x2x130x70 kernel=2 stride=2 nhwc", 65, 35},
    {"max_pool2d f32 i64 in=1x3x127x71 kernel=4 stride=3 pad=1 nhwc", 42, 23},
    {"max_pool2d f32 i32 in=1x40x96x90 kernel=5 stride=4 nhwc", 23, 22},
    {"adaptive_max_pool3d f32 i64 in=1x3x12x31x29 out=5x4x9" LAST, 20, 9},
    {"adaptive_max_pool3d bf16 i32 in=1x2x4x100x95 out=3x11x30" LAST, 33, 30},
    {"adaptive_max_pool2d f32 i64 in=1x1x271x61 out=140x50", 140, 50},
    {"adaptive_max_pool2d bf16 i32 in=1x1x271x61 out=31x60", 31, 60},
    {"adaptive_max_pool2d f32 i32 in=1x1x131x130 out=9x7", 9, 7},
    {"adaptive_max_pool3d f32 i64 in=1x1x40x31x29 out=20x11x9", 220, 9},
};

/* Somewhere in the row, each time elsewhere. */
static int64_t output_of(int64_t row, int64_t columns) { return row * columns + row * 7 % columns; }

static void a_lone_stray_is_not_lost(void **state) {
  (void)state;
  int wrong = 0;
  for (size_t form = 0; form < sizeof forms / sizeof forms[0]; form++)
    for (int64_t row = 0; row < forms[form].rows; row++) {
      char line[PROBLEM_TEXT], why[PROBLEM_TEXT];
      snprintf(line, sizeof line, "%s index=lone seed=%" PRId64, forms[form].line,
               output_of(row, forms[form].columns));
      const struct problem p = read_problem(line);
      if (trial_run(&p, &devices, why)) continue;
      say_wrong(line, why);
      wrong++;
    }
  assert_int_equal(wrong, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_lone_stray_is_not_lost)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
