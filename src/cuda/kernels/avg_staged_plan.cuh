/* SPDX-License-Identifier: Apache-2.0 */
/* How the host plans avg_staged.cu: boxes, lanes, and the layout of shared memory.  A call is
 * planned twice, when its method is chosen and when it is launched, so this has to be quick: small
 * problems take the device hardly longer than the host. */
#ifndef PG_CUDA_AVG_STAGED_PLAN_CUH_
#define PG_CUDA_AVG_STAGED_PLAN_CUH_

#include "cuda/kernels/avg_staged.cuh"

enum {
  MOST_STAGED_THREADS = 1024,    /* so that lanes have 64 registers each */
  USUAL_STAGED_THREADS = 256,    /* of a block, at most, unless a row needs more */
  LEAST_STAGED_THREADS = 128,    /* if segments of rows give so many */
  LEAST_SEGMENT = 4,             /* rows, otherwise */
  STAGED_SCRATCH = 54 * 1024,    /* so that a multiprocessor has room for four blocks */
  LEAST_STAGED_CELLS = 8 * 1024, /* bytes of an item */
  MOST_STAGED_CELLS = 32 * 1024, /* more would not spread the costs of an item much thinner */
  STAGED_ITEMS = 16,             /* of a multiprocessor, if they have enough bytes */
  STAGED_WAVES = 4,              /* of blocks, at most */
  LONGEST_STAGED_AXIS = 1 << 15, /* slices and outputs along D: bands are packed in 16 bits */
  STAGED_REGISTERS = 64 * 1024   /* of a multiprocessor */
};

/* Columns of a lane.  More of them share the instructions for a row, but take registers. */
static constexpr int staged_columns(int windows) { return windows <= 3 ? 4 : 2; }

struct avg_staged_launch {
  int64_t windows, deep; /* of staged_kind */
  int64_t blocks, threads, bytes;
  avg_staged_plan plan;
};

static int64_t rounded_up(int64_t number, int64_t to) { return pg_ceil_div(number, to) * to; }

/* --- What the problem is --- */

/* Three windows along D are left to other methods: a cell then has so many terms that instructions
 * are what takes the time, and nothing is won by the way in which bytes are brought. */
static bool plan_kind(const pg_facts &f, avg_staged_launch *l) {
  l->windows = f.h_windows > f.w_windows ? f.h_windows : f.w_windows;
  if (l->windows < 1) l->windows = 1;
  l->deep = f.d_windows > 1 ? f.d_windows : f.has_depth;
  if (l->deep > 1 && l->windows == 1) l->windows = 2; /* a kind less */
  return l->deep > 1 ? l->deep == 2 && l->windows == 2 : l->windows <= 4;
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
  const int64_t bytes = element_bytes(problem), most = MOST_STAGED_COLUMNS * MOST_STAGED_THREADS;
  if (p.w.in < 2 || p.w.in > most || p.w.out > most) return false;
  if (p.d.in > LONGEST_STAGED_AXIS || p.d.out > LONGEST_STAGED_AXIS) return false;
  const int64_t row = p.w.in * bytes, out_row = p.w.out * bytes;
  if (p.d.in * p.h.in > INT32_MAX / row || p.d.out * p.h.out > INT32_MAX / out_row) return false;
  plan->planes = (uint32_t)problem.facts.planes;
  plan->row = (uint32_t)row;
  plan->slice = (uint32_t)(p.h.in * row);
  plan->plane = (uint32_t)(p.d.in * p.h.in * row);
  plan->out_row = (uint32_t)out_row;
  plan->out_slice = (uint32_t)(p.h.out * out_row);
  plan->out_plane = (uint32_t)(p.d.out * p.h.out * out_row);
  plan->pitch = (int32_t)(p.w.out + 1 + p.w.out % 2); /* odd, so that rows begin in any bank */
  /* Lanes of several planes store to the same banks if these are a multiple of 32 bytes apart. */
  plan->padded = plan->plane % 32 == 0 && plan->plane <= MOST_STAGED_CELLS / 2;
  plan->plane_pitch = plan->plane + (plan->padded ? 16 : 0);
  plan->by_plane_groups = divider_of(plan->plane / 16);
  return true;
}

/* --- Boxes --- */

/* Lays out the scratch for boxes of the plan's size; returns its bytes. */
static int64_t lay_out_staged(const pg_pooling &p, const avg_staged_launch &l,
                              avg_staged_plan *plan) {
  const int64_t planes = plan->of_planes, of_d = plan->of_d, of_h = plan->of_h;
  const int64_t deep = of_d == p.d.in ? p.d.out : pg_most_touching(&p.d, of_d);
  plan->whole_rows = of_h == p.h.in;
  const int64_t tall =
      plan->whole_rows ? p.h.out : least(p.h.out, pg_most_touching(&p.h, of_h) + l.windows);
  const int64_t rows = planes * deep * tall;
  plan->raw_pitch = plan->out_slice;
  plan->slice_pitch = plan->slice;
  if (!plan->whole_rows) {
    plan->raw_pitch = (uint32_t)rounded_up(tall * plan->out_row, 16) + plan->out_slice % 16;
    plan->slice_pitch = (uint32_t)rounded_up(of_h * plan->row, 16) + plan->slice % 16;
  }
  plan->bands = (int32_t)((l.deep > 1 ? l.deep : 1) * deep);
  plan->quotient_rows = (int32_t)rows;
  int64_t end = 0;
  plan->barrier = reserve_words(2, &end);
  plan->band = reserve_words(2 * (int64_t)plan->bands, &end);
  plan->row_end = reserve_words(2 * tall, &end);
  plan->segment = reserve_words(of_h, &end);
  plan->factor = reserve_words(plan->one_divisor ? 0 : rows, &end);
  plan->quotient = reserve_words(rows * plan->pitch, &end);
  plan->raw = reserve_words(planes * deep * plan->raw_pitch / 4 + 8, &end);
  const int64_t plane = planes > 1 ? plan->plane_pitch : of_d * plan->slice_pitch;
  plan->cells = reserve_words(planes * plane / 4 + 8, &end);
  return 4 * end;
}

/* Several whole planes if they are small; else slices, and parts of them. */
static bool cut_staged_boxes(const pg_problem &problem, avg_staged_launch *l) {
  const pg_pooling &p = problem.facts.pool;
  avg_staged_plan *plan = &l->plan;
  const int64_t items = (int64_t)pg_cuda_least_limits()->processors * STAGED_ITEMS;
  int64_t wanted = least(problem.facts.grad_in_bytes / items, MOST_STAGED_CELLS);
  if (wanted < LEAST_STAGED_CELLS) wanted = LEAST_STAGED_CELLS;
  const int64_t slices_of_window = pg_ceil_div(p.d.in, p.d.out);
  int64_t d_parts = 1, h_parts = 1,
          planes = least((wanted + plan->plane / 2) / plan->plane, plan->planes);
  for (;;) {
    plan->of_planes = (int32_t)(planes < 1 ? 1 : planes);
    plan->of_d = (int32_t)pg_ceil_div(p.d.in, d_parts);
    plan->of_h = (int32_t)pg_ceil_div(p.h.in, h_parts);
    const int64_t cells = (int64_t)plan->of_planes * plan->of_d * plan->of_h * plan->row;
    const bool smallest = plan->of_planes == 1 && plan->of_d == 1 && plan->of_h == 1;
    if (cells <= wanted || plan->of_planes > 1 || smallest) {
      l->bytes = lay_out_staged(p, *l, plan);
      if (smallest || l->bytes <= STAGED_SCRATCH) return l->bytes <= STAGED_SCRATCH;
    }
    if (plan->of_planes > 1)
      planes = plan->of_planes - 1 - plan->of_planes / 16;
    else if (plan->of_d > slices_of_window || (plan->of_d > 1 && plan->of_h == 1))
      d_parts += 1 + d_parts / 16;
    else
      h_parts += 1 + h_parts / 16;
  }
}

/* --- Lanes --- */

/* Whole warps. */
static int64_t threads_of(int64_t lanes, int64_t units) { return (lanes * units + 31) & ~31; }

/* Units that a block walks at once: so many that few lanes have none.  Up to 256 numbers are tried,
 * which is most of what a plan takes. */
static int64_t units_at_once(int64_t lanes) {
  int64_t best = 1, best_threads = threads_of(lanes, best);
  for (int64_t units = 2;; units++) {
    const int64_t threads = threads_of(lanes, units);
    if (threads > USUAL_STAGED_THREADS) return best;
    const bool few = best_threads < USUAL_STAGED_THREADS / 2;
    if (!few && units * best_threads < best * threads) continue;
    best = units;
    best_threads = threads;
  }
}

/* Segments of a box, so that there is a unit for all lanes. */
static int64_t segments_of_box(int64_t lanes, int64_t units, const avg_staged_plan &plan) {
  const int64_t others = plan.of_planes * least(plan.bands, plan.of_d);
  const int64_t busy = pg_ceil_div(LEAST_STAGED_THREADS, lanes * others);
  const int64_t long_ones = plan.of_h / LEAST_SEGMENT;
  int64_t segments = pg_ceil_div(units, others);
  if (segments > long_ones && segments > busy) segments = busy > long_ones ? busy : long_ones;
  return least(segments, plan.of_h);
}

/* Planes of an item: not more than can be walked at once, or a multiple of that, and none for which
 * a warp would have only a few lanes. */
static int64_t planes_of_item(int64_t lanes_of_plane, int64_t at_once, int64_t planes) {
  if (at_once > 0 && planes > at_once) return planes - planes % at_once;
  const int64_t lanes = planes * lanes_of_plane, rest = lanes % 32;
  return rest < 16 && lanes - rest >= lanes_of_plane ? (lanes - rest) / lanes_of_plane : planes;
}

static void plan_units(int64_t lanes, avg_staged_plan *plan) {
  const int64_t units = units_at_once(lanes), bands = least(plan->bands, plan->of_d);
  const int64_t segments = segments_of_box(lanes, units, *plan), of_plane = segments * bands;
  plan->of_planes = (int32_t)planes_of_item(lanes * of_plane, units / of_plane, plan->of_planes);
  plan->units_at_once = (int32_t)least(units, plan->of_planes * of_plane);
  plan->segment_rows = (int32_t)pg_ceil_div(plan->of_h, segments);
  plan->segments = (int32_t)pg_ceil_div(plan->of_h, plan->segment_rows);
  plan->by_segments = divider_of(plan->segments);
}

static bool plan_staged_lanes(const pg_pooling &p, avg_staged_launch *l) {
  avg_staged_plan *plan = &l->plan;
  const int64_t of_lane = staged_columns((int)l->windows) / 2;
  const int64_t pairs = pg_ceil_div(p.w.in, 2), lanes = pg_ceil_div(pairs, of_lane);
  if (lanes > MOST_STAGED_THREADS) return false;
  plan_units(lanes, plan);
  l->bytes = lay_out_staged(p, *l, plan); /* of fewer planes, perhaps */
  l->threads = threads_of(lanes, plan->units_at_once);
  plan->by_lanes = divider_of(lanes);
  for (int64_t i = 0; i < of_lane; i++) plan->start[i] = (uint32_t)least(i * lanes, pairs - lanes);
  const int64_t rows_at_once = l->threads / p.w.out;
  plan->out_rows_at_once = (int32_t)(rows_at_once < 1 ? 1 : rows_at_once);
  /* If no row has a lane for each output, all lanes have outputs of the first. */
  plan->by_out_columns = divider_of(rows_at_once < 1 ? (int64_t)MOST_STAGED_THREADS : p.w.out);
  return true;
}

/* --- Blocks --- */

/* Blocks for each box, so that the last of them ends early; `slots`: that run at the same time. */
static int64_t blocks_of_box(int64_t boxes, int64_t groups, int64_t slots) {
  int64_t best = 1, best_turns = pg_ceil_div(boxes, slots) * groups;
  for (int64_t waves = 1; waves <= STAGED_WAVES; waves++) {
    const int64_t most = waves * slots / boxes;
    if (most < 1) continue;
    const int64_t turns = pg_ceil_div(groups, most); /* of a block */
    if (waves * turns >= best_turns) continue;
    best = pg_ceil_div(groups, turns);
    best_turns = waves * turns;
  }
  return best;
}

static bool plan_staged_blocks(const pg_pooling &p, avg_staged_launch *l) {
  avg_staged_plan *plan = &l->plan;
  enum { SYSTEM_BYTES = 1024 };
  const pg_cuda_limits &limits = *pg_cuda_least_limits();
  const int64_t h_items = pg_ceil_div(p.h.in, plan->of_h);
  const int64_t boxes = h_items * pg_ceil_div(p.d.in, plan->of_d);
  const int64_t groups = pg_ceil_div(plan->planes, plan->of_planes);
  const int64_t resident = least((limits.shared_bytes + SYSTEM_BYTES) / (l->bytes + SYSTEM_BYTES),
                                 STAGED_REGISTERS / 64 / l->threads);
  const int64_t each =
      blocks_of_box(boxes, groups, limits.processors * (resident < 1 ? 1 : resident));
  if (boxes > INT32_MAX / each) return false;
  l->blocks = boxes * each;
  plan->step = (uint32_t)(each * plan->of_planes);
  plan->by_boxes = divider_of(boxes);
  plan->by_h_items = divider_of(h_items);
  plan->by_of_planes = divider_of(plan->of_planes);
  return true;
}

static bool plan_staged(const pg_problem &problem, avg_staged_launch *l) {
  const pg_facts &f = problem.facts;
  if (!fits_avg_planes(problem) || !f.in.all || !f.out.all) return false;
  if (f.cells == 0 || f.planes == 0 || f.outputs == 0 || !pg_is_tiled(&f.pool.d)) return false;
  if (!plan_kind(f, l) || !plan_sizes(problem, &l->plan)) return false;
  plan_staged_divisors(problem, &l->plan);
  if (!cut_staged_boxes(problem, l) || !plan_staged_lanes(f.pool, l)) return false;
  if (l->plan.of_planes == 1) l->plan.padded = false;
  return plan_staged_blocks(f.pool, l);
}

#endif
