/* SPDX-License-Identifier: Apache-2.0 */
/* How the host plans avg_staged.cu: boxes, lanes, and the layout of shared memory. */
#ifndef PG_CUDA_AVG_STAGED_PLAN_CUH_
#define PG_CUDA_AVG_STAGED_PLAN_CUH_

#include "cuda/kernels/avg_staged.cuh"

enum {
  MOST_STAGED_THREADS = 1024,    /* so that lanes have 64 registers each */
  USUAL_STAGED_THREADS = 256,    /* of a block, at most, unless a row needs more */
  STAGED_SCRATCH = 54 * 1024,    /* so that a multiprocessor has room for four blocks */
  LEAST_STAGED_CELLS = 8 * 1024, /* bytes of an item */
  MOST_STAGED_CELLS = 32 * 1024, /* more would not spread the costs of an item much thinner */
  STAGED_BLOCKS = 4,             /* of a multiprocessor, about, */
  STAGED_TURNS = 4,              /* and items of a block if there are enough */
  LEAST_SEGMENT = 4,             /* rows, unless a block would have fewer than */
  LEAST_STAGED_THREADS = 128,
  LONGEST_STAGED_AXIS = 1 << 15, /* slices and outputs along D: bands are packed in 16 bits */
  STAGED_REGISTERS = 64 * 1024   /* of a multiprocessor */
};

/* Columns of a lane.  More of them share the instructions for a row, but take registers. */
static constexpr int staged_columns(int windows, int deep) {
  return windows <= 2 || (windows == 3 && deep < 2) ? 4 : 2;
}

struct avg_staged_launch {
  int64_t windows, deep; /* of staged_kind */
  int64_t blocks, threads, bytes;
  avg_staged_plan plan;
};

static int64_t rounded_up(int64_t number, int64_t to) { return pg_ceil_div(number, to) * to; }

/* --- What the problem is --- */

/* Do all elements follow each other in memory, with channels as neighbours? */
static bool are_neighbours(const pg_strides &s, const pg_pooling &p, int64_t d, int64_t h,
                           int64_t w) {
  const int64_t lengths[] = {p.c, w, h, d, p.n};
  const int axes[] = {PG_C, PG_W, PG_H, PG_D, PG_N};
  int64_t stride = 1;
  for (int i = 0; i < 5; stride *= lengths[i++])
    if (lengths[i] > 1 && s.of[axes[i]] != stride) return false;
  return true;
}

/* The channels of an image; 0: the tensors have gaps. */
static int64_t channels_of_image(const pg_problem &problem) {
  const pg_facts &f = problem.facts;
  const pg_avg_backward &a = problem.args.avg_backward;
  const pg_pooling &p = f.pool;
  if (f.in.all && f.out.all) return 1;
  return are_neighbours(a.in_strides, p, p.d.in, p.h.in, p.w.in) &&
                 are_neighbours(a.out_strides, p, p.d.out, p.h.out, p.w.out)
             ? p.c
             : 0;
}

/* Kinds with depth have as many windows along H and W as along D, at least. */
static bool plan_kind(const pg_facts &f, avg_staged_launch *l) {
  l->windows = f.h_windows > f.w_windows ? f.h_windows : f.w_windows;
  l->deep = f.d_windows < 1 ? 1 : f.d_windows;
  if (l->windows < 1) l->windows = 1;
  if (l->deep > 1) {
    if (l->windows > l->deep) l->deep = l->windows;
    l->windows = l->deep;
  }
  return l->deep <= 3 && l->windows <= 4;
}

/* Do all windows of an axis count the same number of cells?  If not sure, no. */
static bool has_one_extent(const pg_axis &a, bool with_pad) {
  const int64_t first = pg_window_extent(&a, 0, with_pad);
  if (a.out == 1) return true;
  return a.kernel > 0 && first == a.kernel && pg_window_extent(&a, a.out - 1, with_pad) == first;
}

static void plan_staged_divisors(const pg_problem &problem, avg_staged_plan *plan) {
  const pg_avg_backward &a = problem.args.avg_backward;
  const pg_pooling &p = problem.facts.pool;
  const bool pad = a.count_include_pad;
  plan->exact = a.divisor < 0 || problem.facts.largest_divisor > MOST_DIVISOR;
  plan->one_divisor = a.divisor != 0 || (has_one_extent(p.d, pad) && has_one_extent(p.h, pad) &&
                                         has_one_extent(p.w, pad));
  if (!plan->one_divisor) return;
  const int64_t by = a.divisor != 0
                         ? a.divisor
                         : pg_window_extent(&p.d, 0, pad) * pg_window_extent(&p.h, 0, pad) *
                               pg_window_extent(&p.w, 0, pad);
  plan->divisor = divisor_of((float)by);
}

/* False: 32 bits do not hold all sizes. */
static bool plan_sizes(const pg_problem &problem, avg_staged_plan *plan) {
  const pg_pooling &p = problem.facts.pool;
  const int64_t channels = channels_of_image(problem), bytes = element_bytes(problem);
  if (channels == 0 || channels * p.w.in < 2) return false;
  if (p.d.in > LONGEST_STAGED_AXIS || p.d.out > LONGEST_STAGED_AXIS) return false;
  const int64_t longest = p.w.in > p.w.out ? p.w.in : p.w.out;
  if (channels > MOST_STAGED_COLUMNS * MOST_STAGED_THREADS / longest) return false;
  const int64_t row = p.w.in * channels * bytes, out_row = p.w.out * channels * bytes;
  if (p.d.in * p.h.in > INT32_MAX / row || p.d.out * p.h.out > INT32_MAX / out_row) return false;
  plan->images = (uint32_t)(channels == 1 ? p.n * p.c : p.n);
  plan->by_channels = divider_of(channels);
  plan->row = (uint32_t)row;
  plan->slice = (uint32_t)(p.h.in * row);
  plan->image = (uint32_t)(p.d.in * p.h.in * row);
  plan->out_row = (uint32_t)out_row;
  plan->out_slice = (uint32_t)(p.h.out * out_row);
  plan->out_image = (uint32_t)(p.d.out * p.h.out * out_row);
  plan->columns = (int32_t)(p.w.in * channels);
  plan->out_columns = (int32_t)(p.w.out * channels);
  plan->pitch =
      plan->out_columns + 1 + plan->out_columns % 2; /* odd: neither rows nor images share banks */
  return true;
}

/* --- Boxes --- */

/* Lays out the scratch for boxes of the plan's size; returns its bytes. */
static int64_t lay_out_staged(const pg_pooling &p, const avg_staged_launch &l,
                              avg_staged_plan *plan) {
  const int64_t images = plan->of_images, of_d = plan->of_d, of_h = plan->of_h;
  const int64_t deep = of_d == p.d.in ? p.d.out : pg_most_touching(&p.d, of_d);
  plan->whole_rows = of_h == p.h.in;
  const int64_t tall =
      plan->whole_rows ? p.h.out : least(p.h.out, pg_most_touching(&p.h, of_h) + l.windows);
  const int64_t rows = images * deep * tall;
  if (plan->whole_rows) {
    plan->raw_pitch = plan->out_slice;
    plan->slice_pitch = plan->slice;
  } else {
    plan->raw_pitch = (uint32_t)rounded_up(tall * plan->out_row, 16) + plan->out_slice % 16;
    plan->slice_pitch = (uint32_t)rounded_up(of_h * plan->row, 16) + plan->slice % 16;
  }
  plan->bands = (int32_t)(l.deep * deep);
  plan->quotient_rows = (int32_t)rows;
  int64_t end = 0;
  plan->barrier = reserve_words(2, &end);
  plan->band = reserve_words(2 * l.deep * deep, &end);
  plan->row_end = reserve_words(2 * tall, &end);
  plan->segment = reserve_words(of_h, &end);
  plan->factor = reserve_words(plan->one_divisor ? 0 : rows, &end);
  plan->quotient = reserve_words(rows * plan->pitch, &end);
  plan->raw = reserve_words(images * deep * plan->raw_pitch / 4 + 8, &end);
  const int64_t image = images > 1 ? plan->image_pitch : of_d * plan->slice_pitch;
  plan->cells = reserve_words(images * image / 4 + 8, &end);
  return 4 * end;
}

/* Several whole images if they are small; else slices, and parts of them. */
static bool cut_staged_boxes(const pg_problem &problem, avg_staged_launch *l) {
  const pg_pooling &p = problem.facts.pool;
  avg_staged_plan *plan = &l->plan;
  const int64_t items = (int64_t)pg_cuda_least_limits()->processors * STAGED_BLOCKS * STAGED_TURNS;
  int64_t wanted = problem.facts.grad_in_bytes / items;
  if (wanted < LEAST_STAGED_CELLS) wanted = LEAST_STAGED_CELLS;
  if (wanted > MOST_STAGED_CELLS) wanted = MOST_STAGED_CELLS;
  const int64_t slices_of_window = pg_ceil_div(p.d.in, p.d.out);
  int64_t d_parts = 1, h_parts = 1, images = wanted / plan->image;
  if (images > plan->images) images = plan->images;
  for (;;) {
    plan->of_images = (int32_t)(images < 1 ? 1 : images);
    plan->of_d = (int32_t)pg_ceil_div(p.d.in, d_parts);
    plan->of_h = (int32_t)pg_ceil_div(p.h.in, h_parts);
    const int64_t cells = (int64_t)plan->of_images * plan->of_d * plan->of_h * plan->row;
    l->bytes = lay_out_staged(p, *l, plan);
    const bool large = l->bytes > STAGED_SCRATCH;
    if (!large && cells <= wanted) return true;
    if (plan->of_images > 1)
      images = plan->of_images - 1 - plan->of_images / 16;
    else if (plan->of_d > slices_of_window || (plan->of_d > 1 && plan->of_h == 1))
      d_parts += 1 + d_parts / 16;
    else if (plan->of_h > 1)
      h_parts += 1 + h_parts / 16;
    else
      return !large;
  }
}

/* --- Lanes --- */

static int64_t threads_of(int64_t lanes, int64_t units) { return rounded_up(lanes * units, 32); }

/* Units that a block walks at once: so many that few lanes have none. */
static int64_t units_at_once(int64_t lanes) {
  int64_t best = 1;
  for (int64_t units = 2; threads_of(lanes, units) <= USUAL_STAGED_THREADS; units++) {
    const bool few = threads_of(lanes, best) < USUAL_STAGED_THREADS / 2;
    if (few || units * threads_of(lanes, best) >= best * threads_of(lanes, units)) best = units;
  }
  return best;
}

/* Segments of a box, so that there is a unit for all lanes; and not more images than can be walked
 * at once, or a multiple of that. */
static void plan_units(int64_t lanes, avg_staged_launch *l) {
  avg_staged_plan *plan = &l->plan;
  const int64_t units = units_at_once(lanes), bands = least(plan->bands, plan->of_d);
  int64_t segments = pg_ceil_div(units, plan->of_images * bands);
  const int64_t busy = pg_ceil_div(LEAST_STAGED_THREADS, lanes * plan->of_images * bands);
  if (segments > plan->of_h / LEAST_SEGMENT && segments > busy)
    segments = busy > plan->of_h / LEAST_SEGMENT ? busy : plan->of_h / LEAST_SEGMENT;
  segments = least(segments, plan->of_h);
  const int64_t images = units / (segments * bands);
  if (images > 0 && plan->of_images > images) plan->of_images -= plan->of_images % (int32_t)images;
  plan->units_at_once = (int32_t)least(units, plan->of_images * bands * segments);
  plan->segment_rows = (int32_t)pg_ceil_div(plan->of_h, segments);
  plan->segments = (int32_t)pg_ceil_div(plan->of_h, plan->segment_rows);
  plan->by_segments = divider_of(plan->segments);
}

static bool plan_staged_lanes(avg_staged_launch *l) {
  avg_staged_plan *plan = &l->plan;
  const int64_t of_lane = staged_columns((int)l->windows, (int)l->deep) / 2;
  const int64_t pairs = pg_ceil_div(plan->columns, 2), lanes = pg_ceil_div(pairs, of_lane);
  if (lanes > MOST_STAGED_THREADS) return false;
  plan_units(lanes, l);
  l->threads = threads_of(lanes, plan->units_at_once);
  plan->by_lanes = divider_of(lanes);
  for (int64_t i = 0; i < of_lane; i++) plan->start[i] = (uint32_t)least(i * lanes, pairs - lanes);
  const int64_t rows_at_once = l->threads / plan->out_columns;
  plan->out_rows_at_once = (int32_t)(rows_at_once < 1 ? 1 : rows_at_once);
  /* If no row has a lane for each output, all lanes have outputs of the first. */
  plan->by_out_columns = divider_of(rows_at_once < 1 ? MOST_STAGED_THREADS : plan->out_columns);
  return true;
}

/* Lanes of several images store to the same banks if these are a multiple of 32 bytes apart. */
static void pad_images(avg_staged_launch *l) {
  avg_staged_plan *plan = &l->plan;
  plan->padded = plan->image % 32 == 0 && plan->image <= MOST_STAGED_CELLS / 2;
  plan->image_pitch = plan->image + (plan->padded ? 16 : 0);
  plan->by_image_groups = divider_of(plan->image / 16);
}

/* Blocks for each box, so that the last of them ends early; `slots`: that run at the same time. */
static int64_t blocks_of_box(int64_t boxes, int64_t groups, int64_t slots) {
  enum { WAVES = 4 };
  int64_t best = 1, best_turns = pg_ceil_div(boxes, slots) * groups;
  for (int64_t each = 2; each <= groups && (each - 1) * boxes <= WAVES * slots; each++) {
    const int64_t turns = pg_ceil_div(boxes * each, slots) * pg_ceil_div(groups, each);
    if (turns >= best_turns) continue;
    best = each;
    best_turns = turns;
  }
  return best;
}

static bool plan_staged_blocks(const pg_pooling &p, avg_staged_launch *l) {
  avg_staged_plan *plan = &l->plan;
  enum { SYSTEM_BYTES = 1024 };
  const pg_cuda_limits &limits = *pg_cuda_least_limits();
  const int64_t h_items = pg_ceil_div(p.h.in, plan->of_h);
  const int64_t boxes = h_items * pg_ceil_div(p.d.in, plan->of_d);
  const int64_t groups = pg_ceil_div(plan->images, plan->of_images);
  const int64_t resident = least((limits.shared_bytes + SYSTEM_BYTES) / (l->bytes + SYSTEM_BYTES),
                                 STAGED_REGISTERS / 64 / l->threads);
  const int64_t each =
      blocks_of_box(boxes, groups, limits.processors * (resident < 1 ? 1 : resident));
  if (boxes > INT32_MAX / each) return false;
  l->blocks = boxes * each;
  plan->step = (uint32_t)(each * plan->of_images);
  plan->by_boxes = divider_of(boxes);
  plan->by_h_items = divider_of(h_items);
  plan->by_of_images = divider_of(plan->of_images);
  return true;
}

static bool plan_staged(const pg_problem &problem, avg_staged_launch *l) {
  const pg_facts &f = problem.facts;
  if (problem.dtype == ACL_DOUBLE || !fits_avg_32_bits(problem)) return false;
  if (f.cells == 0 || f.planes == 0 || f.outputs == 0) return false;
  if (f.largest_divisor == INT64_MAX || !pg_is_tiled(&f.pool.d)) return false;
  if (!plan_kind(f, l) || !plan_sizes(problem, &l->plan)) return false;
  plan_staged_divisors(problem, &l->plan);
  pad_images(l);
  if (!cut_staged_boxes(problem, l) || !plan_staged_lanes(l)) return false;
  if (l->plan.of_images == 1) l->plan.padded = false;
  return plan_staged_blocks(f.pool, l);
}

#endif
