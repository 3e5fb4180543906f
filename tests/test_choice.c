/* SPDX-License-Identifier: Apache-2.0 */
/* Which methods of the CPU fit a problem, and into which boxes they cut it: each rule of theirs on
 * both sides of its limit.  Every method gives the same bits, so nothing else would tell if a rule
 * sent problems to a slower one.  Choosing needs no memory, so planes may be huge; problems at the
 * limit of a method's scratch memory are also computed. */
#include "ops_fixture.h"

#include "cpu_problem.h"
#include "kernels/tiling.h"
#include "poolgrad.h"

/* What the method chooses, or fails. */
static struct pg_choice choice_of(const char *line, const char *method) {
  const struct pg_problem p = cpu_problem(line);
  struct pg_choice choice;
  if (!cpu_method(&p, method, &choice)) fail_msg("%s does not fit: %s", method, line);
  return choice;
}

static bool fits(const char *line, const char *method) {
  const struct pg_problem p = cpu_problem(line);
  struct pg_choice choice;
  return cpu_method(&p, method, &choice);
}

/* Lanes of a vector of the instruction set that is in use. */
static int lanes(void) {
  const char *isa = poolgrad_isa();
  return strcmp(isa, "avx512") == 0 ? 16 : strcmp(isa, "avx2") == 0 ? 8 : 4;
}

/* --- Rules that are the same for every instruction set --- */

struct row {
  const char *line, *methods[6]; /* all that fit, best first */
};

static void check_rows(const struct row *rows, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const struct pg_problem p = cpu_problem(rows[i].line);
    struct pg_choice choice;
    int j = 0;
    for (; rows[i].methods[j] != NULL; j++) {
      if (!pg_cpu_choose(&p, j, &choice) || strcmp(choice.name, rows[i].methods[j]) != 0)
        fail_msg("method %d is not %s: %s", j, rows[i].methods[j], rows[i].line);
    }
    if (pg_cpu_choose(&p, j, &choice)) fail_msg("%s fits too: %s", choice.name, rows[i].line);
  }
}

#define CHECK_ROWS(rows) check_rows(rows, sizeof(rows) / sizeof(rows)[0])

/* Windows of rows that do not lie side by side as pairs need it. */
static void pairs_need_windows_that_slide_by_two(void **state) {
  (void)state;
  static const struct row rows[] = {
      {"max_pool2d bf16 in=1x1x64x192 kernel=2", {"pairs", "scatter"}},
      {"max_pool2d f32 in=1x1x64x192 kernel=2", {"pairs", "scatter"}},
      {"max_pool2d bf16 in=1x1x64x193 kernel=2x3 stride=2", {"scatter"}},
      {"max_pool2d bf16 in=1x1x64x300 kernel=2 stride=2x3", {"scatter"}},
      {"max_pool2d bf16 in=1x1x64x192 kernel=2x1 stride=2", {"scatter"}},
      {"max_pool2d bf16 in=1x1x64x200 kernel=2 stride=2 dilation=1x2", {"scatter"}},
      {"max_pool2d bf16 in=1x1x64x192 kernel=2 stride=3x2 dilation=2x1", {"pairs", "scatter"}},
      {"max_pool2d bf16 in=1x1x64x192 kernel=3x2 stride=2", {"scatter"}}, /* 2 windows along H */
      {"max_pool2d bf16 in=1x1x64x192 kernel=2 stride=8x2",
       {"scatter"}}, /* one output for 16 cells */
      {"adaptive_max_pool2d bf16 in=1x1x64x192 out=32x96", {"pairs", "scatter"}},
      {"adaptive_max_pool2d bf16 in=1x1x64x192 out=33x96", {"scatter"}},
      {"adaptive_max_pool2d bf16 in=1x1x64x192 out=32x97", {"scatter"}},
      {"adaptive_max_pool3d bf16 in=1x1x2x64x192 out=2x32x96", {"scatter"}},
      {"max_pool2d bf16 in=1x1x1100705x1951 kernel=2", {"pairs", "scatter"}},
      {"max_pool2d bf16 in=1x1x1048572x2048 kernel=2", {"scatter"}}, /* 2^31 - 8192 cells */
  };
  CHECK_ROWS(rows);
}

/* Channels must be neighbours in every tensor, and more than one.  A box has whole rows, and no
 * more than 8192 cells. */
static void max_takes_channels_last(void **state) {
  (void)state;
  static const struct row rows[] = {
      {"max_pool2d bf16 in=1x4x8x8 kernel=2 nhwc", {"patch", "channels_last", "scatter"}},
      {"max_pool2d bf16 in=1x2x8x8 kernel=2 nhwc", {"patch", "channels_last", "scatter"}},
      {"max_pool2d bf16 in=1x1x8x8 kernel=2 nhwc", {"scatter"}},
      {"max_pool2d bf16 in=1x4x8x8 kernel=2 nhwc grad_out=permuted", {"scatter"}},
      {"max_pool2d bf16 in=1x4x8x8 kernel=2 nhwc indices=permuted", {"scatter"}},
      {"max_pool2d bf16 in=1x4x8x8 kernel=2 nhwc grad_in=permuted", {"scatter"}},
      {"max_pool2d bf16 in=1x4x128x8 kernel=64x2 stride=1 nhwc", {"channels_last", "scatter"}},
      {"max_pool2d bf16 in=1x512x64x2 kernel=2x1 nhwc", {"gather", "channels_last", "scatter"}},
      {"max_pool2d bf16 in=1x4x262140x8192 kernel=1x3 nhwc", {"channels_last", "scatter"}},
      {"max_pool2d bf16 in=1x4x262143x8192 kernel=1x3 nhwc", {"scatter"}},
      {"max_pool2d bf16 in=1x4x1x8192 kernel=1x2 nhwc", {"channels_last", "scatter"}},
      {"max_pool2d bf16 in=1x4x1x8193 kernel=1x2 nhwc", {"scatter"}},
  };
  CHECK_ROWS(rows);
}

/* Every output has a cell of its own, and all tensors are contiguous in the same order. */
static void one_cell_takes_copies(void **state) {
  (void)state;
  static const struct row rows[] = {
      {"max_pool2d bf16 in=2x3x8x9 kernel=1", {"one_cell", "scatter"}},
      {"max_pool2d bf16 in=2x3x8x9 kernel=1 dilation=2", {"one_cell", "scatter"}},
      {"max_pool2d bf16 in=2x3x8x9 kernel=1 stride=1x2", {"scatter"}},
      {"max_pool2d bf16 in=2x3x8x9 kernel=1x2 stride=1", {"scatter"}},
      {"max_pool2d bf16 in=2x3x8x9 kernel=1 grad_in=rows", {"scatter"}},
      {"max_pool2d f32 in=2x3x8x9 kernel=1 nhwc",
       {"one_cell", "patch", "channels_last", "scatter"}},
      {"max_pool2d f32 in=2x3x8x9 kernel=1 nhwc grad_in=rows", {"channels_last", "scatter"}},
      {"adaptive_max_pool3d f16 in=2x3x4x8x9 out=4x8x9", {"one_cell", "scatter"}},
      {"adaptive_max_pool3d f16 in=2x3x4x8x9 out=4x8x8", {"scatter"}},
  };
  CHECK_ROWS(rows);
}

/* There must be 56 channels, 160 if outputs are few (512 in FLOAT, of which gradInput must not be
 * small), and at most two and a half windows of a cell in the mean, or few for so many outputs,
 * whose cells have other low halves of their positions. */
static void gather_takes_few_windows(void **state) {
  (void)state;
  static const struct row rows[] = {
      {"max_pool2d bf16 in=1x56x8x8 kernel=2 nhwc",
       {"gather", "patch", "channels_last", "scatter"}},
      {"max_pool2d bf16 in=1x55x8x8 kernel=2 nhwc", {"patch", "channels_last", "scatter"}},
      {"max_pool2d bf16 in=1x160x9x9 kernel=3 nhwc",
       {"gather", "patch", "channels_last", "scatter"}},
      {"max_pool2d bf16 in=1x159x9x9 kernel=3 nhwc", {"patch", "channels_last", "scatter"}},
      {"max_pool2d f32 in=1x64x9x9 kernel=3 stride=2 nhwc", {"patch", "channels_last", "scatter"}},
      {"max_pool2d f32 in=1x64x128x128 kernel=2 nhwc", {"gather", "channels_last", "scatter"}},
      {"max_pool2d f32 in=1x512x48x48 kernel=3 nhwc", {"gather", "channels_last", "scatter"}},
      {"max_pool2d f32 in=1x511x48x48 kernel=3 nhwc", {"channels_last", "scatter"}},
      {"max_pool2d bf16 in=1x64x9x9 kernel=2 stride=1 nhwc",
       {"gather", "channels_last", "scatter"}},
      {"max_pool2d bf16 in=1x64x9x9 kernel=5 stride=1 nhwc", {"channels_last", "scatter"}},
      {"adaptive_max_pool2d f16 in=1x64x17x23 out=12x31 grad_out=permuted grad_in=permuted "
       "indices=permuted",
       {"gather", "channels_last", "scatter"}},
      {"adaptive_max_pool2d f16 in=1x160x256x256 out=1x2 grad_out=permuted grad_in=permuted "
       "indices=permuted",
       {"gather", "channels_last", "scatter"}},
      {"adaptive_max_pool2d f16 in=1x160x257x256 out=1x2 grad_out=permuted grad_in=permuted "
       "indices=permuted",
       {"channels_last", "scatter"}},
  };
  CHECK_ROWS(rows);
}

/* gradInput must be smaller than 4 MiB, and every tensor dense.  Of 16-bit elements there must be 3
 * for each output, and 24 if windows overlap, or 6 if rows of outputs are short.  From 32 on there
 * is nothing to gather. */
static void patch_takes_few_outputs(void **state) {
  (void)state;
  static const struct row rows[] = {
      {"max_pool2d bf16 in=1x2x6x6 kernel=1x2 nhwc", {"channels_last", "scatter"}},
      {"max_pool2d bf16 in=1x2x6x6 kernel=1x3 nhwc", {"patch", "channels_last", "scatter"}},
      {"max_pool2d bf16 in=1x2x24x24 kernel=6 stride=5 nhwc",
       {"patch", "channels_last", "scatter"}},
      {"max_pool2d bf16 in=1x2x20x20 kernel=5 stride=4 nhwc",
       {"patch", "channels_last", "scatter"}},
      {"max_pool2d bf16 in=1x4x19x19 kernel=4 nhwc stride=3", {"channels_last", "scatter"}},
      {"max_pool2d f32 in=1x2x19x19 kernel=4 nhwc stride=3", {"patch", "channels_last", "scatter"}},
      {"max_pool2d f32 in=1x2x19x19 kernel=4 nhwc grad_in=rows", {"channels_last", "scatter"}},
      {"max_pool2d f32 in=1x2048x8x8 kernel=8 nhwc", {"patch", "channels_last", "scatter"}},
      {"max_pool2d f32 in=1x2049x8x8 kernel=8 nhwc", {"channels_last", "scatter"}},
      {"max_pool2d f32 in=1x1024x32x32 kernel=8 nhwc", {"gather", "channels_last", "scatter"}},
  };
  CHECK_ROWS(rows);
}

/* A plane that is one quotient, in cells that follow each other; those of all channels may. */
static void one_window_takes_planes_of_one_quotient(void **state) {
  (void)state;
  static const struct row rows[] = {
      {"avg_pool2d in=8x8x8x8 kernel=8", {"one_window", "bundles", "rows", "any"}},
      {"avg_pool2d in=1x1x8x8 kernel=8", {"one_window", "rows", "any"}},
      {"avg_pool2d in=2x3x8x8 kernel=8 grad_out=permuted grad_in=permuted",
       {"one_window", "rows", "any"}},
      {"avg_pool2d in=8x8x8x8 kernel=7x8", {"bundles", "rows", "any"}},
      {"avg_pool2d in=8x8x8x8 kernel=8x7", {"bundles", "rows", "any"}},
      {"avg_pool2d in=8x8x8x8 kernel=8 grad_in=rows", {"rows", "any"}},
      {"adaptive_avg_pool3d in=8x8x2x4x4 out=1x1x1", {"one_window", "bundles", "rows", "any"}},
      {"adaptive_avg_pool3d in=8x8x2x4x4 out=2x1x1", {"bundles", "rows", "any"}},
      {"avg_pool2d in=16x4x1x1 kernel=1", {"one_window", "one_cell", "rows", "any"}},
      {"adaptive_avg_pool3d f64 in=8x8x2x4x4 out=1x1x1", {"one_window", "any"}},
      {"adaptive_avg_pool3d f64 in=7x9x2x4x4 out=1x1x1 grad_out=permuted grad_in=permuted",
       {"one_window", "any"}},
  };
  CHECK_ROWS(rows);
}

/* Every output has a cell of its own, and both tensors are contiguous in the same order. */
static void one_cell_takes_quotients(void **state) {
  (void)state;
#define LAST " grad_out=permuted grad_in=permuted"
  static const struct row rows[] = {
      {"avg_pool2d in=2x3x8x9 kernel=1", {"one_cell", "rows", "any"}},
      {"avg_pool2d f16 in=2x3x8x9 kernel=1 divisor=-7", {"one_cell", "rows", "any"}},
      {"avg_pool2d in=2x3x8x9 kernel=1" LAST, {"one_cell", "rows", "any"}},
      {"avg_pool2d in=2x3x8x9 kernel=1 grad_in=permuted", {"rows", "any"}},
      {"avg_pool2d in=2x3x8x9 kernel=1 grad_out=permuted", {"rows", "any"}},
      {"avg_pool2d in=2x3x8x9 kernel=1 grad_in=rows", {"rows", "any"}},
      {"avg_pool2d in=2x3x8x9 kernel=1 stride=1x2", {"rows", "any"}},
      {"avg_pool2d in=2x3x8x9 kernel=1x2 stride=1", {"rows", "any"}},
      {"adaptive_avg_pool3d bf16 in=2x3x4x8x9 out=4x8x9", {"one_cell", "rows", "any"}},
      {"adaptive_avg_pool3d bf16 in=2x3x4x8x9 out=4x8x8", {"rows", "any"}},
  };
#undef LAST
  CHECK_ROWS(rows);
}

/* Blocks are small, follow each other, and fill two bundles at least, or 16 if rows have 32 cells.
 * Columns are better at up to five windows along all axes together. */
static void bundles_take_small_planes(void **state) {
  (void)state;
#define LAST " grad_out=permuted grad_in=permuted"
  static const struct row rows[] = {
      {"avg_pool2d in=8x3x9x9 kernel=3 stride=1", {"bundles", "rows", "any"}},
      {"avg_pool2d in=1x23x9x9 kernel=3 stride=1", {"rows", "any"}}, /* 23 of 32 lanes */
      {"avg_pool2d in=1x16x9x9 kernel=3 stride=1", {"rows", "any"}}, /* one bundle */
      {"avg_pool2d in=24x15x9x9 kernel=3 stride=1" LAST, {"bundles", "rows", "any"}},
      {"avg_pool2d in=24x16x9x9 kernel=3 stride=1" LAST, {"rows", "any"}},
      {"avg_pool2d in=8x3x9x9 kernel=3 stride=1 grad_in=rows", {"rows", "any"}},
      {"avg_pool2d in=8x3x9x9 kernel=3 stride=1 grad_out=rows", {"rows", "any"}},
      {"avg_pool2d in=8x3x9x11 kernel=3 stride=2", {"bundles", "rows", "any"}},
      {"avg_pool2d in=8x3x9x12 kernel=3 stride=2", {"columns", "rows", "any"}},
      {"avg_pool2d in=8x3x9x12 kernel=3x5 stride=2", {"bundles", "columns", "rows", "any"}},
      {"avg_pool2d in=8x31x9x32 kernel=4 stride=1", {"bundles", "rows", "any"}},
      {"avg_pool2d in=8x30x9x32 kernel=4 stride=1", {"rows", "any"}},
      {"avg_pool2d in=8x3x9x32 kernel=4 stride=1", {"rows", "any"}},
      {"avg_pool2d in=8x3x9x31 kernel=4 stride=1", {"bundles", "rows", "any"}},
      {"avg_pool2d in=8x3x128x24 kernel=4 stride=1", {"bundles", "rows", "any"}},
      {"avg_pool2d in=8x3x129x24 kernel=4 stride=1", {"rows", "any"}},
      {"avg_pool2d f16 in=8x3x128x31 kernel=4 stride=1", {"bundles", "rows", "any"}},
      {"avg_pool2d f16 in=8x3x133x31 kernel=4 stride=1", {"rows", "any"}},
      {"avg_pool2d in=8x3x512x6 kernel=4 stride=1", {"bundles", "rows", "any"}},
      {"avg_pool2d in=8x3x513x5 kernel=4 stride=1", {"rows", "any"}},
      {"adaptive_avg_pool3d in=8x3x5x5x5 out=8x8x8", {"bundles", "rows", "any"}},
      {"adaptive_avg_pool3d in=8x3x5x5x5 out=15x15x14", {"rows", "any"}}, /* 3150 outputs */
  };
#undef LAST
  CHECK_ROWS(rows);
}

/* Columns keep the sums of at most three rows of outputs in registers, of one slice;
 * they leave rows of fewer than 12 cells, and channels that are neighbours, to rows. */
static void columns_take_few_windows(void **state) {
  (void)state;
  static const struct row rows[] = {
      {"avg_pool2d in=1x1x32x32 kernel=3 stride=1", {"columns", "rows", "any"}},
      {"avg_pool2d in=1x1x32x32 kernel=4x3 stride=1", {"rows", "any"}},
      {"avg_pool2d in=1x1x32x32 kernel=3x4 stride=1", {"rows", "any"}},
      {"avg_pool2d in=1x1x32x32 kernel=6 stride=2", {"columns", "rows", "any"}},
      {"avg_pool2d in=1x1x32x32 kernel=7x6 stride=2", {"rows", "any"}},
      {"avg_pool2d in=1x1x32x32 kernel=6x7 stride=2", {"rows", "any"}},
      {"avg_pool2d in=1x1x32x32 kernel=3x4 stride=1x2", {"columns", "rows", "any"}},
      {"avg_pool2d in=1x1x12x12 kernel=2", {"columns", "rows", "any"}},
      {"avg_pool2d in=1x1x12x11 kernel=2", {"rows", "any"}},
      {"avg_pool2d in=1x2x12x12 kernel=2 grad_out=permuted grad_in=permuted", {"rows", "any"}},
      {"adaptive_avg_pool3d in=1x1x4x4x16 out=3x3x8", {"rows", "any"}},            /* 2, 2, 1 */
      {"adaptive_avg_pool3d in=1x1x1x2x16 out=1x5x8", {"columns", "rows", "any"}}, /* 1, 3, 1 */
      {"adaptive_avg_pool3d in=1x1x4x2x16 out=3x5x8", {"rows", "any"}},            /* 2, 3, 1 */
      {"adaptive_avg_pool3d in=1x1x2x4x16 out=5x3x8", {"rows", "any"}},            /* 3, 2, 1 */
      /* four rows of cells for a row of outputs, unless rows are at most two vectors */
      {"avg_pool2d in=1x1x16x34 kernel=3x2", {"columns", "rows", "any"}},
      {"avg_pool2d in=1x1x16x34 kernel=4x2", {"rows", "any"}},
      /* three slices of cells for a slice of outputs */
      {"adaptive_avg_pool3d in=1x1x4x4x16 out=2x3x8", {"columns", "rows", "any"}},
      {"adaptive_avg_pool3d in=1x1x5x4x16 out=2x3x8", {"rows", "any"}},
      /* one window for each cell of a row */
      {"adaptive_avg_pool3d in=1x1x4x4x16 out=3x3x16", {"rows", "any"}},
      {"avg_pool2d in=1x1x32x32 kernel=2x1", {"rows", "any"}},
  };
  CHECK_ROWS(rows);
}

/* What is computed in vectors divides by floats, which hold every whole number up to 2^24. */
static void divisors_that_floats_do_not_hold_are_left_to_any(void **state) {
  (void)state;
  static const struct row rows[] = {
      {"avg_pool2d in=1x1x4096x4096 kernel=4096", {"one_window", "rows", "any"}},
      {"avg_pool2d in=1x1x4097x4096 kernel=4097x4096", {"any"}},
      {"avg_pool2d in=1x4x4096x4096 kernel=4096 grad_out=permuted grad_in=permuted",
       {"one_window", "rows", "any"}},
      {"avg_pool2d in=1x4x4097x4096 kernel=4097x4096 grad_out=permuted grad_in=permuted", {"any"}},
      {"avg_pool2d in=1x1x4097x4096 kernel=4097x4096 divisor=3", {"one_window", "rows", "any"}},
  };
  CHECK_ROWS(rows);
}

/* No more than 256 expanded rows, for all slices together; planar or not is all the same. */
static void averages_add_256_rows(void **state) {
  (void)state;
#define LAST " grad_out=permuted grad_in=permuted"
  static const struct row rows[] = {
      {"avg_pool2d in=1x3x8x8 kernel=2" LAST, {"rows", "any"}},
      {"avg_pool2d in=1x4x8x8 kernel=2 grad_out=permuted", {"rows", "any"}},
      {"avg_pool2d in=1x4x8x8 kernel=2 grad_in=permuted", {"rows", "any"}},
      {"avg_pool2d in=1x1x600x8 kernel=256x1 stride=1", {"rows", "any"}},
      {"avg_pool2d in=1x1x600x8 kernel=257x1 stride=1", {"any"}},
      {"avg_pool2d in=1x2x600x8 kernel=257x1 stride=1" LAST, {"any"}},
      {"adaptive_avg_pool3d in=1x16x1x1x8 out=128x2x8" LAST, {"rows", "any"}},
      {"adaptive_avg_pool3d in=1x16x1x1x8 out=129x2x8" LAST, {"any"}},
      {"adaptive_avg_pool3d in=1x16x1x1x8 out=2x128x8" LAST, {"rows", "any"}},
      {"adaptive_avg_pool3d in=1x16x1x1x8 out=2x129x8" LAST, {"any"}},
  };
#undef LAST
  CHECK_ROWS(rows);
}

/* --- What fits into scratch memory --- */

static void check_right(const char *line) {
  char why[PROBLEM_TEXT];
  const struct problem p = read_problem(line);
  if (trial_run(&p, &devices, why)) return;
  say_wrong(line, why);
  fail_msg("a problem at a limit is wrong");
}

/* The first problem fits and is computed, the second does not fit. */
static void check_limit(const char *method, const char *fitting, const char *too_large) {
  if (!fits(fitting, method)) fail_msg("%s does not fit: %s", method, fitting);
  if (fits(too_large, method)) fail_msg("%s fits: %s", method, too_large);
  check_right(fitting);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"

/* The form has places for two numbers, which belong together. */
static void check_limit_at(const char *method, const char *form, const int fitting[2],
                           const int too_large[2]) {
  char line[2][PROBLEM_TEXT];
  snprintf(line[0], sizeof line[0], form, fitting[0], fitting[1]);
  snprintf(line[1], sizeof line[1], form, too_large[0], too_large[1]);
  check_limit(method, line[0], line[1]);
}

#pragma GCC diagnostic pop

/* At least 96 outputs in a row, and whole rows in a box. */
static void pairs_need_wide_rows(void **state) {
  (void)state;
  check_limit("pairs", "max_pool2d in=1x1x8x192 kernel=2", "max_pool2d in=1x1x8x190 kernel=2");
  check_limit("pairs", "max_pool2d in=1x1x4x4096 kernel=2", "max_pool2d in=1x1x4x4098 kernel=2");
}

/* Rows of more than two vectors are copied faster than they are computed in columns. */
static void columns_leave_wide_rows_of_high_windows(void **state) {
  (void)state;
  const int cells = lanes() == 4 ? 12 : 2 * lanes();
  check_limit_at("columns", "avg_pool2d in=1x1x16x%d kernel=%dx2",
                 (int[]){cells, lanes() == 4 ? 3 : 4}, (int[]){2 * lanes() + 6, 4});
}

/* So are rows of at most one vector along which windows slide by one cell. */
static void columns_leave_short_rows_of_sliding_windows(void **state) {
  (void)state;
  const int longest = lanes() < 12 ? 11 : lanes();
  check_limit_at("columns", "avg_pool2d in=1x1x16x%d kernel=2 stride=%d", (int[]){longest + 1, 1},
                 (int[]){longest, 1});
}

/* --- Boxes --- */

static const struct {
  const char *line, *method;
  int64_t planes, d, h, w;
} boxes[] = {
    /* scattering: whole planes of up to 4096 cells; where windows overlap up to 16384, and eight
     * windows if that is more, up to 65536; where they are small several, and fewer if elements are
     * not FLOAT */
    {"max_pool2d in=1x1x64x64 kernel=2", "scatter", 1, 1, 64, 64},
    {"max_pool2d in=1x1x64x65 kernel=2", "scatter", 1, 1, 32, 65},
    {"max_pool2d in=1x99x10x10 kernel=2", "scatter", 40, 1, 10, 10},
    {"max_pool2d f16 in=1x99x10x10 kernel=2", "scatter", 10, 1, 10, 10},
    {"max_pool2d in=7x99x10x10 kernel=2", "scatter", 40, 1, 10, 10},
    {"max_pool2d bf16 in=7x99x10x10 kernel=2", "scatter", 20, 1, 10, 10},
    {"max_pool2d bf16 in=9x99x10x10 kernel=10", "scatter", 55, 1, 10, 10},
    {"max_pool2d bf16 in=1x15x128x129 kernel=10", "scatter", 1, 1, 64, 129},
    {"max_pool2d bf16 in=1x16x128x129 kernel=10", "scatter", 1, 1, 128, 129},
    {"max_pool2d in=1x1x128x128 kernel=3 stride=2", "scatter", 1, 1, 128, 128},
    {"max_pool2d in=1x1x128x129 kernel=3 stride=2", "scatter", 1, 1, 64, 129},
    {"max_pool2d in=1x1x64x1024 kernel=2", "scatter", 1, 1, 16, 1024},
    {"max_pool2d in=1x1x64x1024 kernel=3 stride=1", "scatter", 1, 1, 22, 1024},
    {"max_pool2d in=1x1x256x256 kernel=32", "scatter", 1, 1, 256, 256},
    {"max_pool2d in=1x1x256x256 kernel=16", "scatter", 1, 1, 128, 256},
    {"max_pool2d in=1x1x256x257 kernel=32", "scatter", 1, 1, 128, 257},
    {"adaptive_max_pool3d in=1x1x64x32x32 out=4x4x4", "scatter", 1, 64, 32, 32},
    {"adaptive_max_pool3d in=1x1x64x64x32 out=4x4x4", "scatter", 1, 32, 64, 32},
    /* pairs: runs of 4096 cells; of 8192 where rows are wide, so that few boxes share windows */
    {"max_pool2d in=1x1x64x1024 kernel=2", "pairs", 1, 1, 4, 1024},
    {"max_pool2d in=1x1x64x1025 kernel=2", "pairs", 1, 1, 7, 1025},
    {"avg_pool2d in=1x1x64x1024 kernel=3 stride=1", "any", 1, 1, 4, 1024},
    {"avg_pool2d in=1x1x64x1025 kernel=3 stride=1", "any", 1, 1, 3, 1025},
    {"avg_pool2d in=8x16x8x8 kernel=8", "one_window", 128, 1, 8, 8},
    /* square where rows are wide and windows overlap */
    {"avg_pool2d in=1x1x64x257 kernel=3 stride=1", "columns", 1, 1, 32, 128},
    {"avg_pool2d in=1x1x64x256 kernel=3 stride=1", "columns", 1, 1, 16, 256},
    /* at least 4096 elements, and several planes if these are small */
    {"avg_pool2d in=1x1x64x256 kernel=3 stride=1", "rows", 1, 1, 16, 256},
    {"avg_pool2d in=1x1x64x257 kernel=3 stride=1", "rows", 1, 1, 13, 257},
    {"avg_pool2d in=1x1x257x64 kernel=3 stride=1", "rows", 1, 1, 52, 64},
    {"avg_pool2d in=100x10x10x10 kernel=2", "rows", 40, 1, 10, 10},
    {"avg_pool2d in=100x2x10x10 kernel=2 grad_out=permuted grad_in=permuted", "rows", 14, 1, 10,
     10},
};

static void boxes_have_the_sizes_that_were_measured(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof boxes / sizeof boxes[0]; i++) {
    const struct pg_tiling t = choice_of(boxes[i].line, boxes[i].method).tiling;
    if (t.planes != boxes[i].planes || t.d != boxes[i].d || t.h != boxes[i].h || t.w != boxes[i].w)
      fail_msg("%s has boxes of %d planes, %d x %d x %d: %s", boxes[i].method, (int)t.planes,
               (int)t.d, (int)t.h, (int)t.w, boxes[i].line);
  }
}

/* More than 1024 rows or slices of outputs have no place for the lengths of their windows. */
static void boxes_of_rows_touch_1024_rows(void **state) {
  (void)state;
  static const char *const lines[] = {"adaptive_avg_pool3d in=1x1x1x256x2 out=1x1025x1",
                                      "adaptive_avg_pool3d in=1x1x256x1x2 out=1025x1x1"};
  for (int i = 0; i < 2; i++) {
    const struct pg_problem p = cpu_problem(lines[i]);
    struct pg_choice choice;
    if (cpu_method(&p, "rows", &choice)) assert_true(choice.tiling.d * choice.tiling.h < 256);
    check_right(lines[i]);
  }
}

/* Quotients and sums along W that fill their memory to the last place. */
static void full_boxes_are_computed(void **state) {
  (void)state;
  check_right("adaptive_avg_pool3d in=1680x1x1x3x7 out=1x3x13"); /* 4095 divisors */
  check_right("adaptive_avg_pool3d in=1x1x1x64x64 out=1x256x1");
  check_right("adaptive_avg_pool3d in=1x1x1x256x2 out=1x1024x1");
  check_right("adaptive_avg_pool3d in=1x1x256x1x2 out=1024x1x1");
}

/* A flag for each item where planes are cut. */
static void workspaces_have_a_flag_for_each_item(void **state) {
  (void)state;
  static const char *const methods[] = {"channels_last", "pairs", "scatter"};
  for (int i = 0; i < 3; i++) {
    const bool last = i == 0;
    const struct pg_choice cut = choice_of(last ? "max_pool2d bf16 in=8x16x130x64 kernel=2 nhwc"
                                                : "max_pool2d bf16 in=2x3x66x192 kernel=2",
                                           methods[i]);
    const struct pg_choice whole = choice_of(last ? "max_pool2d bf16 in=8x16x128x64 kernel=2 nhwc"
                                                  : "max_pool2d bf16 in=2x3x20x192 kernel=2",
                                             methods[i]);
    assert_int_equal(cut.items, pg_tiling_items(&cut.tiling));
    assert_true(pg_tiling_cuts(&cut.tiling) && !pg_tiling_cuts(&whole.tiling));
    assert_int_equal(cut.workspace_bytes, cut.items * 4);
    assert_int_equal(whole.workspace_bytes, 0);
  }
  static const char *const averages[] = {"rows", "any"};
  for (int i = 0; i < 2; i++)
    assert_int_equal(choice_of("avg_pool2d in=1x1x99x99 kernel=2", averages[i]).workspace_bytes, 0);
}

static void a_fill_has_one_method(void **state) {
  (void)state;
  const struct pg_problem fill = {.kernel = PG_FILL, .args.fill.count = 7};
  struct pg_choice choice;
  assert_true(pg_cpu_choose(&fill, 0, &choice));
  assert_string_equal(choice.name, "fill");
  assert_int_equal(choice.items, 7);
  assert_int_equal(choice.workspace_bytes, 0);
  assert_false(pg_cpu_choose(&fill, 1, &choice));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(pairs_need_windows_that_slide_by_two),
      cmocka_unit_test(max_takes_channels_last),
      cmocka_unit_test(one_cell_takes_copies),
      cmocka_unit_test(gather_takes_few_windows),
      cmocka_unit_test(patch_takes_few_outputs),
      cmocka_unit_test(one_window_takes_planes_of_one_quotient),
      cmocka_unit_test(one_cell_takes_quotients),
      cmocka_unit_test(bundles_take_small_planes),
      cmocka_unit_test(columns_take_few_windows),
      cmocka_unit_test(divisors_that_floats_do_not_hold_are_left_to_any),
      cmocka_unit_test(averages_add_256_rows),
      cmocka_unit_test(pairs_need_wide_rows),
      cmocka_unit_test(columns_leave_wide_rows_of_high_windows),
      cmocka_unit_test(columns_leave_short_rows_of_sliding_windows),
      cmocka_unit_test(boxes_have_the_sizes_that_were_measured),
      cmocka_unit_test(boxes_of_rows_touch_1024_rows),
      cmocka_unit_test(full_boxes_are_computed),
      cmocka_unit_test(workspaces_have_a_flag_for_each_item),
      cmocka_unit_test(a_fill_has_one_method),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
