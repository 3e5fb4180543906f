/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about pooling problems, against what enumeration finds on small ones. */
#include "axes.h"

#include "kernels/facts.h"

/* --- Windows along an axis --- */

/* Windows that are no longer than their stride count as one even where all of them lie in padding,
 * which takes more padding than the operators allow. */
static void check_most_windows(const struct pg_axis *axis) {
  const int64_t found = pg_most_windows(axis), expected = most_touching(axis, 1);
  const bool allowed = axis->kernel == 0 || axis->pad <= axis->kernel / 2;
  if (found == expected || (!allowed && expected == 0 && found == 1)) return;
  FAIL_ON_AXIS(axis, "%d windows, expected %d", (int)found, (int)expected);
}

static void the_most_windows_of_a_cell_are_counted(void **state) {
  (void)state;
  each_axis(check_most_windows);
}

/* As many as if the axis had no ends, where windows begin at every `stride` cells. */
static int64_t touching_without_ends(const struct pg_axis *axis, int64_t cells) {
  const int64_t reach = (axis->kernel - 1) * axis->dilation;
  struct pg_axis endless = *axis;
  endless.pad = reach + axis->stride;
  endless.in = cells + axis->stride;
  endless.out = endless.in + endless.pad;
  return most_touching(&endless, cells);
}

/* Adaptive windows: cells * out / in is rounded down, and at each end one more output can begin or
 * end outside of the cells.  Both can be counted in vain, so the bound is at most 2 too large. */
static void check_most_touching(const struct pg_axis *axis) {
  for (int64_t cells = 1; cells <= axis->in; cells += 1 + cells / 3) {
    const int64_t found = pg_most_touching(axis, cells), least = most_touching(axis, cells);
    int64_t most = least + 2;
    if (axis->kernel > 0) most = touching_without_ends(axis, cells);
    if (most > axis->out) most = axis->out;
    if (found < least || found > most)
      FAIL_ON_AXIS(axis, "%d cells touch %d outputs, expected %d to %d", (int)cells, (int)found,
                   (int)least, (int)most);
  }
}

static void the_most_outputs_that_cells_touch_are_bounded(void **state) {
  (void)state;
  each_axis(check_most_touching);
}

static int one_windows;

static void check_one_window(const struct pg_axis *axis) {
  bool expected = axis->out == 1;
  for (int64_t cell = 0; cell < axis->in && expected; cell++)
    expected = count_touching(axis, cell, cell + 1) == 1;
  if (pg_is_one_window(axis) != expected) FAIL_ON_AXIS(axis, "one window: %d", expected);
  one_windows += expected;
}

static void one_window_is_recognized(void **state) {
  (void)state;
  one_windows = 0;
  each_axis(check_one_window);
  BETWEEN(one_windows, 100, 5000);
}

static int tiled_axes;

static void check_tiled(const struct pg_axis *axis) {
  bool expected = axis->out > 0;
  for (int64_t cell = 0; cell < axis->in && expected; cell++)
    expected = count_touching(axis, cell, cell + 1) >= 1;
  for (int64_t out = 0; out < axis->out && expected; out++) {
    const struct pg_range w = pg_window(axis, out);
    expected = w.begin >= 0 && w.end <= axis->in;
    if (axis->kernel > 0) /* the windows that slide follow each other without a gap or overlap */
      expected = expected && axis->dilation == 1 && w.begin == out * axis->kernel;
  }
  if (pg_is_tiled(axis) != expected) FAIL_ON_AXIS(axis, "tiled: %d", expected);
  tiled_axes += expected;
}

static void windows_that_tile_their_axis_are_recognized(void **state) {
  (void)state;
  tiled_axes = 0;
  each_axis(check_tiled);
  BETWEEN(tiled_axes, 100, 50000);
}

/* One cell, one output, and a window that holds nothing else, whatever is counted. */
static void the_unit_axis_has_one_window_of_one_cell(void **state) {
  (void)state;
  const struct pg_axis unit = pg_axis_unit();
  const struct pg_range window = pg_window(&unit, 0), touching = pg_touching(&unit, 0, 1);
  assert_true(unit.in == 1 && unit.out == 1 && unit.kernel == 1);
  assert_true(window.begin == 0 && window.end == 1);
  assert_true(touching.begin == 0 && touching.end == 1);
  assert_int_equal(pg_window_extent(&unit, 0, false), 1);
  assert_int_equal(pg_window_extent(&unit, 0, true), 1);
}

/* What the operators let through: reach and padded length are at most a quarter of 2^63, and
 * (in + 1) * (out + 1) of an adaptive axis is less than 2^63. */
static void huge_axes_do_not_overflow(void **state) {
  (void)state;
  const int64_t quarter = INT64_MAX / 4, wide = INT64_C(1) << 40;
  static const int64_t tall = INT64_C(1) << 60;
  const struct {
    struct pg_axis axis;
    int64_t windows, touching; /* of two cells */
  } table[] = {
      {slide((struct pg_axis){10, 0, tall, 1, tall / 2, 1}, false), 11, 11},
      {slide((struct pg_axis){10, 0, 2, tall, 1, 1}, true), 1, 1},
      {slide((struct pg_axis){quarter, 0, quarter, quarter, 0, 1}, true), 1, 1},
      {slide((struct pg_axis){quarter, 0, 2, 1, 0, quarter - 1}, false), 1, 1},
      {slide((struct pg_axis){quarter, 0, 3, 1, 0, 1}, false), 3, 4},
      {{.in = 3, .out = 3 * wide + 1}, wide + 1, 2 * wide + 2},
      {{.in = 1, .out = INT64_MAX / 2 - 1}, INT64_MAX / 2 - 1, INT64_MAX / 2 - 1},
      {{.in = INT64_MAX / 2 - 1, .out = 1}, 1, 1},
      {{.in = 3000000000, .out = 3000000001}, 2, 4},
  };
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
    const struct pg_axis *axis = &table[i].axis;
    const int64_t cells = axis->in < 2 ? 1 : 2;
    if (pg_most_windows(axis) != table[i].windows ||
        pg_most_touching(axis, cells) != table[i].touching)
      fail_msg("row %zu: %lld windows, %lld outputs", i, (long long)pg_most_windows(axis),
               (long long)pg_most_touching(axis, cells));
  }
}

/* --- Facts of a whole problem --- */

static const struct pg_strides no_strides;

static struct pg_facts facts_of(const struct pg_pooling *pool, int64_t divisor) {
  return pg_facts_of(&(struct pg_subject){.pool = pool,
                                          .in = &no_strides,
                                          .out = &no_strides,
                                          .in_bytes = 4,
                                          .out_bytes = 4,
                                          .divisor = divisor});
}

static void check_same_windows(const struct pg_axis *axis, const struct pg_axis *written) {
  const bool tiles = axis->kernel == 0 && axis->out > 0 && axis->in % axis->out == 0;
  if (written->in != axis->in || written->out != axis->out) FAIL_ON_AXIS(axis, "other lengths");
  if ((written->kernel == 0) != (axis->kernel == 0 && !tiles))
    FAIL_ON_AXIS(axis, "written with kernel %d", (int)written->kernel);
  for (int64_t o = 0; o < axis->out; o++) {
    const struct pg_range a = pg_window_clip(axis, pg_window(axis, o));
    const struct pg_range b = pg_window_clip(written, pg_window(written, o));
    if (a.begin != b.begin || a.end != b.end) FAIL_ON_AXIS(axis, "another window %d", (int)o);
  }
}

static void check_rewritten(const struct pg_axis *axis) {
  const struct pg_pooling pool = {1, 1, *axis, *axis, *axis};
  const struct pg_facts f = facts_of(&pool, 0);
  check_same_windows(axis, &f.pool.d);
  check_same_windows(axis, &f.pool.h);
  check_same_windows(axis, &f.pool.w);
}

static void a_rewritten_pooling_has_the_same_windows(void **state) {
  (void)state;
  each_axis(check_rewritten);
}

/* Padding is at most half of the window, which is not dilated. */
static struct pg_axis any_average_axis(uint64_t *seed) {
  if (any_of(seed, 0, 1) == 0) return any_adaptive(seed, 9);
  struct pg_axis axis = any_sliding(seed, 9, 1);
  axis.pad = any_of(seed, 0, axis.kernel / 2);
  return slide(axis, any_of(seed, 0, 1) == 0);
}

static int64_t most_extent(const struct pg_axis *axis) {
  int64_t most = 1;
  for (int64_t o = 0; o < axis->out; o++)
    for (int padding = 0; padding <= 1; padding++)
      if (pg_window_extent(axis, o, padding == 1) > most)
        most = pg_window_extent(axis, o, padding == 1);
  return most;
}

/* Where a window is as long as it can be, the bound is that length. */
static bool is_reached(const struct pg_axis *axis) {
  if (axis->kernel == 0) return axis->out == 1;
  return axis->out > 0 && axis->kernel <= axis->in + 2 * axis->pad;
}

static void sizes_and_divisors_are_those_of_the_windows(void **state) {
  (void)state;
  uint64_t seed = 362436069;
  int reached = 0;
  for (int round = 0; round < 10000; round++) {
    struct pg_pooling p = {.n = any_of(&seed, 1, 3), .c = any_of(&seed, 1, 3)};
    p.d = any_average_axis(&seed);
    p.h = any_average_axis(&seed);
    p.w = any_average_axis(&seed);
    const struct pg_facts f = facts_of(&p, 0);
    const int64_t extents = most_extent(&p.d) * most_extent(&p.h) * most_extent(&p.w);
    const bool exact = is_reached(&p.d) && is_reached(&p.h) && is_reached(&p.w);
    assert_true(f.largest_divisor >= extents);
    if (exact) assert_int_equal(f.largest_divisor, extents);
    reached += exact;
    assert_int_equal(f.planes, p.n * p.c);
    assert_int_equal(f.cells, p.d.in * p.h.in * p.w.in);
    assert_int_equal(f.outputs, p.d.out * p.h.out * p.w.out);
    assert_int_equal(f.d_windows, most_touching(&p.d, 1));
    assert_int_equal(f.h_windows, most_touching(&p.h, 1));
    assert_int_equal(f.w_windows, most_touching(&p.w, 1));
    assert_int_equal(f.has_depth, !(p.d.in == 1 && p.d.out <= 1));
    assert_int_equal(f.grad_in_bytes, f.planes * f.cells * 4);
    assert_int_equal(f.bytes, f.planes * (f.cells + f.outputs) * 4);
  }
  BETWEEN(reached, 500, 9500);
}

static void divisors_beyond_fp32_are_told(void **state) {
  (void)state;
  const int64_t fp32 = 1 << 24;
  static const struct {
    int64_t d, h, w, divisor, expected; /* lengths of windows */
  } table[] = {
      {1, 4096, 4096, 0, 1 << 24},
      {4096, 4096, 1, 0, 1 << 24},
      {1, 4097, 4096, 0, INT64_MAX},
      {1, 1, (1 << 24) + 1, 0, INT64_MAX},
      {INT64_C(1) << 40, INT64_C(1) << 40, INT64_C(1) << 40, 0, INT64_MAX},
      {1 << 20, INT64_C(1) << 60, 1, 0, INT64_MAX}, /* 2^80, of which 64 bits hold zeros */
      {1, 2, 3, 7, 7},
      {1, 2, 3, -7, 7},
      {1, 4097, 4096, 7, 7},
      {1, 2, 3, INT64_MAX, INT64_MAX},
      {1, 2, 3, -INT64_MAX, INT64_MAX},
      {1, 2, 3, INT64_MIN, INT64_MAX},
  };
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
    struct pg_pooling p = {1, 1, pg_axis_unit(), pg_axis_unit(), pg_axis_unit()};
    p.d.kernel = table[i].d;
    p.h.kernel = table[i].h;
    p.w.kernel = table[i].w;
    assert_int_equal(facts_of(&p, table[i].divisor).largest_divisor, table[i].expected);
  }
  const struct pg_axis whole = {.in = fp32, .out = 1}, more = {.in = fp32 + 1, .out = 2};
  struct pg_pooling p = {1, 1, pg_axis_unit(), pg_axis_unit(), whole};
  assert_int_equal(facts_of(&p, 0).largest_divisor, fp32);
  p.w = more; /* windows of half the length, but nobody asks for such an exact bound */
  assert_int_equal(facts_of(&p, 0).largest_divisor, INT64_MAX);
}

/* gradOutput with stride 0 has more outputs than any memory. */
static void counts_that_64_bits_cannot_hold_are_the_most(void **state) {
  (void)state;
  const struct pg_axis one = {.in = 1, .out = 1}, many = {.in = 1, .out = INT64_C(1) << 31};
  struct pg_pooling p = {1, 1, many, many, many};
  assert_int_equal(facts_of(&p, 0).outputs, INT64_MAX);
  assert_int_equal(facts_of(&p, 0).bytes, INT64_MAX);
  assert_int_equal(facts_of(&p, 0).grad_in_bytes, 4);
  p.d = one; /* 2^62 outputs, four bytes each */
  assert_int_equal(facts_of(&p, 0).outputs, INT64_C(1) << 62);
  assert_int_equal(facts_of(&p, 0).bytes, INT64_MAX);
  p.h.out = INT64_C(1) << 29;
  assert_int_equal(facts_of(&p, 0).bytes, (INT64_C(1) << 62) + 4);
  p.n = 2;
  assert_int_equal(facts_of(&p, 0).bytes, INT64_MAX);
  p.h.out = 0;
  assert_int_equal(facts_of(&p, 0).bytes, 8);
}

/* --- Where elements lie --- */

enum { SEVERAL = 4 }; /* channels */

struct tensor {
  int64_t length[PG_AXES];
  struct pg_strides strides;
};

/* Contiguous in some order of axes, then spoilt here and there.  Strides of axes of length 1 are
 * 0, as operators write them, or anything. */
static void lay_out(uint64_t *seed, struct tensor *t) {
  static const int orders[][PG_AXES] = {{PG_N, PG_C, PG_D, PG_H, PG_W},
                                        {PG_N, PG_D, PG_H, PG_W, PG_C},
                                        {PG_C, PG_N, PG_D, PG_H, PG_W},
                                        {PG_N, PG_C, PG_D, PG_W, PG_H},
                                        {PG_N, PG_C, PG_H, PG_D, PG_W}};
  const int64_t order = any_of(seed, -3, 4), spoilt = any_of(seed, 0, 11);
  int64_t step = 1;
  for (int i = PG_AXES - 1; i >= 0; i--) {
    const int axis = orders[order < 0 ? 0 : order][i];
    if (spoilt == axis) step += any_of(seed, 0, 2);
    t->strides.of[axis] = step;
    if (t->length[axis] == 1) t->strides.of[axis] = any_of(seed, 0, 1) * any_of(seed, 0, 9);
    step *= t->length[axis];
  }
  if (spoilt == 11) t->strides.of[any_of(seed, 0, 4)] = any_of(seed, 0, 9);
}

struct found {
  struct pg_contiguity contiguity;
  bool neighbours, channels_last;
};

/* Compares the address of every element with those that each fact promises. */
static struct found enumerate(const struct tensor *t) {
  const int64_t *l = t->length, *s = t->strides.of;
  const int64_t plane = l[PG_D] * l[PG_H] * l[PG_W], elements = l[PG_N] * l[PG_C] * plane;
  struct found f = {{true, true, true}, l[PG_C] > 1, l[PG_C] >= SEVERAL};
  for (int64_t i = 0; i < elements; i++) {
    const int64_t w = i % l[PG_W], h = i / l[PG_W] % l[PG_H], d = i / l[PG_W] / l[PG_H] % l[PG_D];
    const int64_t c = i / plane % l[PG_C], n = i / plane / l[PG_C];
    const int64_t of_row = w * s[PG_W], of_plane = d * s[PG_D] + h * s[PG_H] + of_row;
    if (of_row != w) f.contiguity.rows = false;
    if (of_plane != i % plane) f.contiguity.planes = false;
    if (n * s[PG_N] + c * s[PG_C] + of_plane != i) f.contiguity.all = false;
    if (c * s[PG_C] != c) f.neighbours = f.channels_last = false;
  }
  return f;
}

static struct found in_both(struct found a, struct found b) {
  return (struct found){
      {a.contiguity.rows && b.contiguity.rows, a.contiguity.planes && b.contiguity.planes,
       a.contiguity.all && b.contiguity.all},
      a.neighbours && b.neighbours,
      a.channels_last && b.channels_last};
}

static bool same(struct pg_contiguity a, struct pg_contiguity b) {
  return a.rows == b.rows && a.planes == b.planes && a.all == b.all;
}

/* gradInput, gradOutput and maybe indices, and what enumeration finds of them. */
struct trio {
  struct tensor in, out, index;
  bool indexed;
  struct found of_in, of_out;
};

static struct trio any_trio(uint64_t *seed) {
  struct trio t = {.indexed = any_of(seed, 0, 1) == 1};
  for (int axis = 0; axis < PG_AXES; axis++) {
    t.in.length[axis] = any_of(seed, 1, axis == PG_C ? 6 : 3);
    t.out.length[axis] = axis == PG_N || axis == PG_C ? t.in.length[axis] : any_of(seed, 1, 3);
  }
  t.index = t.out;
  lay_out(seed, &t.in);
  lay_out(seed, &t.out);
  lay_out(seed, &t.index);
  t.of_in = enumerate(&t.in);
  t.of_out = enumerate(&t.out);
  if (t.indexed) t.of_out = in_both(t.of_out, enumerate(&t.index));
  return t;
}

static struct pg_facts facts_of_trio(const struct trio *t) {
  const int64_t *in = t->in.length, *out = t->out.length;
  const struct pg_pooling pool = {.n = in[PG_N],
                                  .c = in[PG_C],
                                  .d = {.in = in[PG_D], .out = out[PG_D]},
                                  .h = {.in = in[PG_H], .out = out[PG_H]},
                                  .w = {.in = in[PG_W], .out = out[PG_W]}};
  return pg_facts_of(&(struct pg_subject){.pool = &pool,
                                          .in = &t->in.strides,
                                          .out = &t->out.strides,
                                          .index = t->indexed ? &t->index.strides : NULL,
                                          .in_bytes = 2,
                                          .out_bytes = 4,
                                          .index_bytes = t->indexed ? 8 : 0});
}

static void neighbours_in_memory_are_recognized(void **state) {
  (void)state;
  uint64_t seed = 521288629;
  int seen[4][2] = {{0}};
  for (int round = 0; round < 20000; round++) {
    const struct trio t = any_trio(&seed);
    const struct pg_facts f = facts_of_trio(&t);
    if (!same(f.in, t.of_in.contiguity)) fail_msg("round %d: gradInput", round);
    if (!same(f.out, t.of_out.contiguity)) fail_msg("round %d: gradOutput", round);
    if (f.channels_last != in_both(t.of_in, t.of_out).channels_last)
      fail_msg("round %d: channels last", round);
    if (f.neighbours != in_both(t.of_in, t.of_out).neighbours)
      fail_msg("round %d: neighbours", round);
    assert_int_equal(f.bytes, f.planes * (f.cells * 2 + f.outputs * (t.indexed ? 4 + 8 : 4)));
    seen[0][f.out.rows]++;
    seen[1][f.out.planes]++;
    seen[2][f.out.all]++;
    seen[3][f.channels_last]++;
  }
  for (int i = 0; i < 4; i++) assert_true(seen[i][0] > 100 && seen[i][1] > 100);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_most_windows_of_a_cell_are_counted),
      cmocka_unit_test(the_most_outputs_that_cells_touch_are_bounded),
      cmocka_unit_test(one_window_is_recognized),
      cmocka_unit_test(windows_that_tile_their_axis_are_recognized),
      cmocka_unit_test(the_unit_axis_has_one_window_of_one_cell),
      cmocka_unit_test(huge_axes_do_not_overflow),
      cmocka_unit_test(a_rewritten_pooling_has_the_same_windows),
      cmocka_unit_test(sizes_and_divisors_are_those_of_the_windows),
      cmocka_unit_test(divisors_beyond_fp32_are_told),
      cmocka_unit_test(counts_that_64_bits_cannot_hold_are_the_most),
      cmocka_unit_test(neighbours_in_memory_are_recognized),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
