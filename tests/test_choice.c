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
      {"max_pool2d bf16 in=1x4x8x8 kernel=2 nhwc", {"channels_last", "scatter"}},
      {"max_pool2d bf16 in=1x2x8x8 kernel=2 nhwc", {"channels_last", "scatter"}},
      {"max_pool2d bf16 in=1x1x8x8 kernel=2 nhwc", {"scatter"}},
      {"max_pool2d bf16 in=1x4x8x8 kernel=2 nhwc grad_out=permuted", {"scatter"}},
      {"max_pool2d bf16 in=1x4x8x8 kernel=2 nhwc indices=permuted", {"scatter"}},
      {"max_pool2d bf16 in=1x4x8x8 kernel=2 nhwc grad_in=permuted", {"scatter"}},
      {"max_pool2d bf16 in=1x4x128x8 kernel=64x2 stride=1 nhwc", {"channels_last", "scatter"}},
      {"max_pool2d bf16 in=1x512x64x2 kernel=2x1 nhwc", {"channels_last", "scatter"}},
      {"max_pool2d bf16 in=1x4x262140x8192 kernel=1x3 nhwc", {"channels_last", "scatter"}},
      {"max_pool2d bf16 in=1x4x262143x8192 kernel=1x3 nhwc", {"scatter"}},
      {"max_pool2d bf16 in=1x4x1x8192 kernel=1x3 nhwc", {"channels_last", "scatter"}},
      {"max_pool2d bf16 in=1x4x1x8193 kernel=1x3 nhwc", {"scatter"}},
  };
  CHECK_ROWS(rows);
}

/* A plane that is one quotient: whole planes are items, so there must be some. */
static void one_window_takes_many_planes(void **state) {
  (void)state;
  static const struct row rows[] = {
      {"avg_pool2d in=8x8x8x8 kernel=8", {"one_window", "columns", "rows", "any"}},
      {"avg_pool2d in=7x9x8x8 kernel=8", {"columns", "rows", "any"}},
      {"avg_pool2d in=8x8x8x8 kernel=7x8", {"columns", "rows", "any"}},
      {"avg_pool2d in=8x8x8x8 kernel=8x7", {"columns", "rows", "any"}},
      {"avg_pool2d in=8x8x8x8 kernel=8 grad_in=rows", {"columns", "rows", "any"}},
      {"adaptive_avg_pool3d in=8x8x2x4x4 out=1x1x1", {"one_window", "columns", "rows", "any"}},
      {"adaptive_avg_pool3d in=8x8x2x4x4 out=2x1x1", {"columns", "rows", "any"}},
      {"avg_pool2d in=16x4x1x1 kernel=1",
       {"channels_last", "one_window", "columns", "rows", "any"}},
      {"adaptive_avg_pool3d f64 in=8x8x2x4x4 out=1x1x1", {"one_window", "any"}},
      {"adaptive_avg_pool3d f64 in=7x9x2x4x4 out=1x1x1", {"any"}},
  };
  CHECK_ROWS(rows);
}

/* The sums of the latest rows must stay in registers: three windows along W and H, or three along W
 * and two along H and D.  Windows that slide by one cell are as long as the loop over them. */
static void columns_take_few_windows(void **state) {
  (void)state;
  static const struct row rows[] = {
      {"avg_pool2d in=1x1x32x32 kernel=3 stride=1", {"columns", "rows", "any"}},
      {"avg_pool2d in=1x1x32x32 kernel=4x3 stride=1", {"rows", "any"}},
      {"avg_pool2d in=1x1x32x32 kernel=3x4 stride=1", {"rows", "any"}},
      {"avg_pool2d in=1x1x32x32 kernel=6 stride=2", {"columns", "rows", "any"}},
      {"avg_pool2d in=1x1x32x32 kernel=7x6 stride=2", {"rows", "any"}},
      {"avg_pool2d in=1x1x32x32 kernel=6x7 stride=2", {"rows", "any"}},
      {"avg_pool2d in=1x1x4x4 kernel=3x4 stride=1 pad=1", {"rows", "any"}}, /* 3 windows, of 4 */
      {"avg_pool2d in=1x1x8x4 kernel=3x4 stride=2x1 pad=1", {"rows", "any"}},
      {"avg_pool2d in=1x1x32x32 kernel=3x4 stride=1x2", {"columns", "rows", "any"}},
      {"adaptive_avg_pool3d in=1x1x4x4x8 out=3x3x8", {"columns", "rows", "any"}}, /* 2, 2, 1 */
      {"adaptive_avg_pool3d in=1x1x1x2x8 out=1x5x8", {"columns", "rows", "any"}}, /* 1, 3, 1 */
      {"adaptive_avg_pool3d in=1x1x4x2x8 out=3x5x8", {"rows", "any"}},            /* 2, 3, 1 */
      {"adaptive_avg_pool3d in=1x1x2x4x8 out=5x3x8", {"rows", "any"}},            /* 3, 2, 1 */
      /* four rows of cells for a row of outputs, unless rows are at most two vectors */
      {"avg_pool2d in=1x1x16x33 kernel=3x1", {"columns", "rows", "any"}},
      {"avg_pool2d in=1x1x16x33 kernel=4x1", {"rows", "any"}},
      {"avg_pool2d in=1x1x16x8 kernel=4x1", {"columns", "rows", "any"}},
  };
  CHECK_ROWS(rows);
}

/* What is computed in vectors divides by floats, which hold every whole number up to 2^24. */
static void divisors_that_floats_do_not_hold_are_left_to_any(void **state) {
  (void)state;
  static const struct row rows[] = {
      {"avg_pool2d in=1x1x4096x4096 kernel=4096", {"rows", "any"}},
      {"avg_pool2d in=1x1x4097x4096 kernel=4097x4096", {"any"}},
      {"avg_pool2d in=1x4x4096x4096 kernel=4096 grad_out=permuted grad_in=permuted",
       {"channels_last", "rows", "any"}},
      {"avg_pool2d in=1x4x4097x4096 kernel=4097x4096 grad_out=permuted grad_in=permuted", {"any"}},
      {"avg_pool2d in=1x1x4097x4096 kernel=4097x4096 divisor=3", {"rows", "any"}},
  };
  CHECK_ROWS(rows);
}

/* No more than 64 expanded rows, for all slices together. */
static void averages_take_channels_last(void **state) {
  (void)state;
#define LAST " grad_out=permuted grad_in=permuted"
  static const struct row rows[] = {
      {"avg_pool2d in=1x4x8x8 kernel=2" LAST, {"channels_last", "columns", "rows", "any"}},
      {"avg_pool2d in=1x3x8x8 kernel=2" LAST, {"columns", "rows", "any"}},
      {"avg_pool2d in=1x4x8x8 kernel=2 grad_out=permuted", {"columns", "rows", "any"}},
      {"avg_pool2d in=1x4x8x8 kernel=2 grad_in=permuted", {"columns", "rows", "any"}},
      {"avg_pool2d in=1x16x160x8 kernel=64x1 stride=1" LAST, {"channels_last", "rows", "any"}},
      {"avg_pool2d in=1x16x160x8 kernel=65x1 stride=1" LAST, {"rows", "any"}},
      {"adaptive_avg_pool3d in=1x16x1x1x8 out=32x2x8" LAST, {"channels_last", "rows", "any"}},
      {"adaptive_avg_pool3d in=1x16x1x1x8 out=33x2x8" LAST, {"rows", "any"}},
      {"adaptive_avg_pool3d in=1x16x1x1x8 out=2x32x8" LAST, {"channels_last", "rows", "any"}},
      {"adaptive_avg_pool3d in=1x16x1x1x8 out=64x1x8" LAST, {"channels_last", "rows", "any"}},
      {"adaptive_avg_pool3d in=1x16x1x1x8 out=65x1x8" LAST, {"rows", "any"}},
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

/* LANES cells look at outputs in LANES places.  With two outputs for a cell that holds for half as
 * many cells, and with all outputs over one cell for fewer than LANES of them. */
static void vectors_hold_the_outputs_of_their_cells(void **state) {
  (void)state;
  const int half = lanes() / 2;
  const int fitting[] = {half, 2 * half}, too_large[] = {half + 1, 2 * half + 2};
  check_limit_at("rows", "adaptive_avg_pool3d in=1x1x1x32x%d out=1x32x%d", fitting, too_large);
  check_limit_at("rows", "adaptive_avg_pool3d in=1x1x1x8x1 out=1x8x%d seed=%d",
                 (int[]){lanes() - 1, 1}, (int[]){lanes(), 1});
}

/* At least 96 outputs in a row, and whole rows in a box. */
static void pairs_need_wide_rows(void **state) {
  (void)state;
  check_limit("pairs", "max_pool2d in=1x1x8x192 kernel=2", "max_pool2d in=1x1x8x190 kernel=2");
  check_limit("pairs", "max_pool2d in=1x1x4x4096 kernel=2", "max_pool2d in=1x1x4x4098 kernel=2");
}

/* Rows of more than two vectors are copied faster than they are computed in columns. */
static void columns_leave_wide_rows_of_high_windows(void **state) {
  (void)state;
  check_limit_at("columns", "avg_pool2d in=1x1x16x%d kernel=4x1 seed=%d", (int[]){2 * lanes(), 1},
                 (int[]){2 * lanes() + 1, 1});
}

/* One row of 256 cells is the least of a box.  It lies in as many rows of outputs as windows are
 * high, and a row has as many outputs as cells; one more where windows of an even length hang over
 * by half of it.  Between rows there is room for the windows of a cell and four vectors. */
static bool has_room(int kernel) {
  const int outputs = kernel % 2 == 0 ? 257 : 256;
  return kernel * (outputs + kernel + 4 * lanes()) <= 16384;
}

static void rows_hold_16384_quotients(void **state) {
  (void)state;
  int most = 1;
  while (has_room(most + 1)) most++;
  check_limit_at("rows", "avg_pool2d in=1x1x64x256 kernel=%d stride=1 pad=%d",
                 (int[]){most, most / 2}, (int[]){most + 1, (most + 1) / 2});
}

/* Sums along W of four rows are 16384 floats, with one vector behind each row; a row has 4096
 * outputs. */
static void averages_of_channels_last_have_room(void **state) {
  (void)state;
#define LAST " grad_out=permuted grad_in=permuted"
  const int most = 16384 / 4 - lanes();
  check_limit_at("channels_last", "avg_pool2d in=1x%dx8x1 kernel=4x1 stride=1 seed=%d" LAST,
                 (int[]){most, 1}, (int[]){most + 1, 1});
  check_limit("channels_last", "adaptive_avg_pool3d in=1x4x1x1x1 out=1x1x4096" LAST,
              "adaptive_avg_pool3d in=1x4x1x1x1 out=1x1x4097" LAST);
  check_limit("channels_last", "adaptive_avg_pool3d in=1x4x1x8x4 out=1x8x16376" LAST,
              "adaptive_avg_pool3d in=1x4x1x8x4 out=1x8x16380" LAST); /* 4096 and 4097 to a cell */
#undef LAST
}

/* --- Boxes --- */

static const struct {
  const char *line, *method;
  int64_t planes, d, h, w;
} boxes[] = {
    /* scattering: whole planes of up to 4096 cells, several where they are small; where windows
     * overlap up to 16384, and eight windows if that is more, up to 65536 */
    {"max_pool2d in=1x1x64x64 kernel=2", "scatter", 1, 1, 64, 64},
    {"max_pool2d in=1x1x64x65 kernel=2", "scatter", 1, 1, 32, 65},
    {"max_pool2d in=1x99x10x10 kernel=2", "scatter", 40, 1, 10, 10},
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
    {"avg_pool2d in=8x16x8x8 kernel=8", "one_window", 64, 1, 8, 8},
    /* square where rows are wide and windows overlap */
    {"avg_pool2d in=1x1x64x256 kernel=3 stride=1", "rows", 1, 1, 16, 256},
    {"avg_pool2d in=1x1x64x257 kernel=3 stride=1", "rows", 1, 1, 32, 128},
    {"avg_pool2d in=1x1x64x257 kernel=3 stride=1", "columns", 1, 1, 32, 128},
    {"avg_pool2d in=1x1x64x257 kernel=1x3 stride=1x3", "rows", 1, 1, 13, 257},
    {"avg_pool2d in=1x1x64x257 kernel=1x4 stride=1x3", "rows", 1, 1, 32, 128},
    {"avg_pool2d in=1x1x257x64 kernel=3 stride=1", "rows", 1, 1, 52, 64},
    /* smaller where a row has more than 4096 outputs, or there are more than 1024 of these, or
     * expanded rows would be more than 16384 floats */
    {"adaptive_avg_pool3d in=1x1x1x1x8192 out=1x1x8189", "rows", 1, 1, 1, 4096},
    {"adaptive_avg_pool3d in=1x1x1x1x8192 out=1x1x8190", "rows", 1, 1, 1, 2048},
    {"adaptive_avg_pool3d in=1x1x1x64x64 out=1x256x1", "rows", 1, 1, 64, 64},
    {"adaptive_avg_pool3d in=1x1x1x64x64 out=1x257x1", "rows", 1, 1, 32, 64},
    {"adaptive_avg_pool3d in=1x1x1x256x2 out=1x1024x1", "rows", 1, 1, 256, 2},
    {"adaptive_avg_pool3d in=1x1x256x1x2 out=1024x1x1", "rows", 1, 256, 1, 2},
    {"adaptive_avg_pool3d in=1x1x64x64x64 out=32x32x32", "rows", 1, 1, 64, 64},
    /* whole planes of up to 4096 outputs, in one piece */
    {"adaptive_avg_pool3d in=1x1x1x256x16 out=1x512x8", "rows", 1, 1, 256, 16},
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

static int64_t height_of_rows(const char *line) { return choice_of(line, "rows").tiling.h; }

/* Where quotients stand row by row, the room between rows decides, and that counts lanes. */
static void boxes_of_rows_have_room_between_rows(void **state) {
  (void)state;
  const bool few_lanes = lanes() == 4;
  char line[PROBLEM_TEXT];
  /* twice the lanes, half the rows */
  assert_int_equal(height_of_rows("avg_pool2d in=1x1x5000x2 kernel=1x2"), 2000 / lanes());
  /* outputs that are not contiguous are not divided in one piece, nor do windows that slide by one
   * cell and are no longer than a vector and one more stand so */
  static const char *const lines[] = {
      "adaptive_avg_pool3d in=1x1x1x256x16 out=1x512x8 grad_out=gap",
      "avg_pool2d in=1x1x512x8 kernel=1",
  };
  for (int i = 0; i < 2; i++) {
    assert_int_equal(height_of_rows(lines[i]) == (i == 0 ? 256 : 512), few_lanes);
    check_right(lines[i]);
  }
  for (int i = 1; i <= 2; i++) {
    const int kernel = lanes() + i;
    snprintf(line, sizeof line, "avg_pool2d in=1x1x512x7 kernel=1x%d stride=1 pad=0x%d", kernel,
             kernel / 2);
    assert_int_equal(height_of_rows(line) == 512, i == 2 || few_lanes);
    check_right(line);
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
  const int l = lanes();
  char line[2][PROBLEM_TEXT];
  for (int more = 0; more < 2; more++)
    snprintf(line[more], sizeof line[more], "adaptive_avg_pool3d in=1x1x1x%dx%d out=1x%dx%d",
             512 / l, 8 * l - 2, 2048 / l + more, 4 * l - 1);
  assert_int_equal(height_of_rows(line[0]), 512 / l);
  assert_true(height_of_rows(line[1]) < 512 / l);
  check_right(line[0]);
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
  static const char *const averages[] = {"columns", "rows", "any"};
  for (int i = 0; i < 3; i++)
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
      cmocka_unit_test(one_window_takes_many_planes),
      cmocka_unit_test(columns_take_few_windows),
      cmocka_unit_test(divisors_that_floats_do_not_hold_are_left_to_any),
      cmocka_unit_test(averages_take_channels_last),
      cmocka_unit_test(vectors_hold_the_outputs_of_their_cells),
      cmocka_unit_test(pairs_need_wide_rows),
      cmocka_unit_test(columns_leave_wide_rows_of_high_windows),
      cmocka_unit_test(rows_hold_16384_quotients),
      cmocka_unit_test(averages_of_channels_last_have_room),
      cmocka_unit_test(boxes_have_the_sizes_that_were_measured),
      cmocka_unit_test(boxes_of_rows_have_room_between_rows),
      cmocka_unit_test(boxes_of_rows_touch_1024_rows),
      cmocka_unit_test(full_boxes_are_computed),
      cmocka_unit_test(workspaces_have_a_flag_for_each_item),
      cmocka_unit_test(a_fill_has_one_method),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
