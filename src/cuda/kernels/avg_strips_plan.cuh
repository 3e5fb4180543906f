/* SPDX-License-Identifier: Apache-2.0 */
/* How the host plans avg_strips.cu: boxes, the layout of shared memory, and which planes a lane
 * computes. */
#ifndef PG_CUDA_AVG_STRIPS_PLAN_CUH_
#define PG_CUDA_AVG_STRIPS_PLAN_CUH_

#include "cuda/kernels/avg_strips.cuh"

enum {
  USUAL_ENTRIES = 16,        /* of a box, if lanes have four planes; for one plane twice as many */
  MOST_ENTRIES = 96,         /* where windows overlap much */
  MOST_ROWS = 512,           /* and slices, of a box */
  MOST_OUTPUTS = 1 << 12,    /* that a cell or a box may lie in along an axis */
  CELLS_OF_LANE = 256,       /* that a lane computes, in all its planes, if lanes are enough */
  FEW_CELLS = 16,            /* boxes are not cut below this to get more lanes */
  LANES_OF_PROCESSOR = 4096, /* enough to keep it busy until the last ones end */
  LONGEST_STRIDE = INT32_MAX /* bytes: strides are multiplied in 32 bits */
};

/* What a problem is launched with; addresses do not matter. */
struct avg_strips_launch {
  strips_planes at_once;
  int64_t v, threads; /* of strips_kind */
  avg_strips_plan plan;
  int64_t blocks, bytes;
};

/* --- Divisors --- */

/* Windows that hang over an edge have a smaller extent, the smallest are the first and last. */
struct strips_extents {
  int64_t least, most;
};

static strips_extents extents_of(const pg_axis &a, bool with_pad) {
  if (a.kernel == 0) {
    const int64_t whole = pg_ceil_div(a.in, a.out);
    return {whole, a.in % a.out == 0 ? whole : whole + 1};
  }
  const int64_t begin = pg_window_extent(&a, 0, with_pad);
  const int64_t end = pg_window_extent(&a, a.out - 1, with_pad), smaller = least(begin, end);
  return {smaller < 1 ? 1 : smaller, pg_window_span(&a) + 1};
}

static void plan_divisors(const pg_problem &problem, avg_strips_plan *plan) {
  const pg_avg_backward &a = problem.args.avg_backward;
  const strips_extents w = extents_of(problem.facts.pool.w, a.count_include_pad);
  plan->exact = a.divisor < 0 || problem.facts.largest_divisor > MOST_DIVISOR;
  plan->least_w = (int32_t)w.least;
  plan->classes = (int32_t)(a.divisor != 0 ? 1 : least(w.most - w.least + 1, MOST_OUTPUTS));
}

/* --- Boxes --- */

/* Boxes of few entries and many cells, and as many boxes as are needed to have enough lanes;
 * columns: of all planes. */
static void cut_boxes(const pg_pooling &p, int64_t most_entries, int64_t columns,
                      avg_strips_plan *plan) {
  const int64_t enough = LANES_OF_PROCESSOR * (int64_t)pg_cuda_least_limits()->processors;
  int64_t d_parts = pg_ceil_div(p.d.in, MOST_ROWS), h_parts = pg_ceil_div(p.h.in, MOST_ROWS);
  for (;;) {
    const int64_t of_d = pg_ceil_div(p.d.in, d_parts), of_h = pg_ceil_div(p.h.in, h_parts);
    const int64_t deep = pg_most_touching(&p.d, of_d), tall = pg_most_touching(&p.h, of_h);
    plan->of_d = (int32_t)of_d;
    plan->of_h = (int32_t)of_h;
    const bool lanes = columns >= pg_ceil_div(enough, d_parts * h_parts);
    if (deep * tall <= most_entries && (lanes || of_d * of_h <= FEW_CELLS)) return;
    if (of_d == 1 && of_h == 1) return;
    const bool by_depth = of_h == 1 || (of_d > 1 && (deep > tall || (deep == tall && of_d > of_h)));
    int64_t *parts = by_depth ? &d_parts : &h_parts;
    *parts += 1 + *parts / 32;
  }
}

static int64_t most_windows(const pg_facts &f) {
  return f.h_windows > f.w_windows ? f.h_windows : f.w_windows;
}

/* Lays out the scratch; false: it does not fit. */
static bool plan_scratch(const pg_facts &f, avg_strips_launch *l) {
  avg_strips_plan *p = &l->plan;
  const int64_t deep = pg_most_touching(&f.pool.d, p->of_d);
  const int64_t tall = pg_most_touching(&f.pool.h, p->of_h);
  if (deep >= MOST_OUTPUTS || tall >= MOST_OUTPUTS || f.w_windows >= MOST_OUTPUTS ||
      p->classes >= MOST_OUTPUTS)
    return false;
  const int64_t entries = pg_ceil_div(deep * tall, STRIPS_TOGETHER) * STRIPS_TOGETHER;
  int64_t end = 0;
  p->offset = reserve_words(f.has_depth ? 2 * entries : 0, &end);
  p->divisor = reserve_words(2 * entries * p->classes, &end);
  p->band_d = reserve_words(f.has_depth ? 2 * p->of_d : 0, &end);
  p->band_h = reserve_words(2 * p->of_h, &end);
  p->class_of = reserve_words(most_windows(f) > 2 ? f.w_windows * l->threads : 0, &end);
  p->sums = reserve_words(entries * l->v * l->threads, &end);
  l->bytes = 4 * end;
  return l->bytes <= pg_cuda_least_limits()->shared_bytes;
}

/* --- Lanes --- */

/* Along an axis of length 1 nothing has a neighbour. */
static bool plan_stride(int64_t stride, int64_t length, int64_t element_bytes, uint32_t *bytes) {
  *bytes = (uint32_t)(length > 1 ? stride * element_bytes : 0);
  return length <= 1 || (stride >= 0 && stride < LONGEST_STRIDE / element_bytes);
}

static bool plan_strides(const pg_problem &problem, avg_strips_plan *plan) {
  const pg_pooling &p = problem.facts.pool;
  const int64_t bytes = element_bytes(problem);
  const int64_t *grad = problem.args.avg_backward.out_strides.of;
  const int64_t *in = problem.args.avg_backward.in_strides.of;
  return plan_stride(grad[PG_W], p.w.out, bytes, &plan->grad_w) &&
         plan_stride(grad[PG_H], p.h.out, bytes, &plan->grad_h) &&
         plan_stride(in[PG_H], p.h.in, bytes, &plan->in_h) &&
         plan_stride(in[PG_D], p.d.in, bytes, &plan->in_d);
}

/* Are channels neighbours in gradInput rather than cells of a row? */
static bool counts_channels(const pg_problem &problem) {
  const pg_pooling &p = problem.facts.pool;
  const pg_strides &s = problem.args.avg_backward.in_strides;
  return p.c > 1 && p.w.in > 1 && s.of[PG_C] < s.of[PG_W];
}

/* The planes that lanes loop over: all, or those of one channel where lanes are counted along C. */
struct strips_loop {
  bool by_channels;
  int64_t planes;
  int64_t grad, in; /* the distance from one to the next in bytes; -1: it is not always the same */
};

static int64_t plane_distance(const pg_strides &s, const pg_pooling &p, bool by_channels) {
  if (by_channels || p.c == 1) return s.of[PG_N];
  return p.n == 1 || s.of[PG_N] == p.c * s.of[PG_C] ? s.of[PG_C] : -1;
}

static strips_loop loop_of(const pg_problem &problem, bool by_channels) {
  const pg_pooling &p = problem.facts.pool;
  const pg_avg_backward &a = problem.args.avg_backward;
  const int64_t bytes = element_bytes(problem);
  const int64_t grad = plane_distance(a.out_strides, p, by_channels);
  const int64_t in = plane_distance(a.in_strides, p, by_channels);
  const bool even = grad >= 0 && in >= 0;
  return {by_channels, by_channels ? p.n : p.n * p.c, even ? grad * bytes : -1,
          even ? in * bytes : -1};
}

/* Four planes at once, if they are the same distance apart.  The last four may overlap those before
 * them, which are then written twice with the same bits.  Not for rows of 16-bit elements: four
 * short stores to places apart wait for the memory pipeline longer than is gained (measured). */
static bool has_fours(const strips_loop &loop, int64_t element_bytes) {
  return (loop.by_channels || element_bytes > 2) && loop.planes >= 4 && loop.grad >= 0 &&
         loop.grad < LONGEST_STRIDE && loop.in >= 0 && loop.in < LONGEST_STRIDE;
}

static bool plan_lanes(const pg_problem &problem, const strips_loop &loop, avg_strips_launch *l) {
  const pg_pooling &p = problem.facts.pool;
  avg_strips_plan *plan = &l->plan;
  const int64_t vectors = loop.by_channels ? p.c / (l->at_once == CHANNELS ? 4 : 1) : 1;
  const int64_t together = l->at_once == APART ? 4 : 1, across = vectors * p.w.in;
  const int64_t numbers = pg_ceil_div(loop.planes, together);
  const int64_t h_items = pg_ceil_div(p.h.in, plan->of_h);
  const int64_t boxes = pg_ceil_div(p.d.in, plan->of_d) * h_items;
  const int64_t cells = l->v * plan->of_d * (int64_t)plan->of_h;
  const int64_t enough = LANES_OF_PROCESSOR * (int64_t)pg_cuda_least_limits()->processors;
  int64_t of_lane = least(CELLS_OF_LANE / cells, boxes * across * numbers / enough);
  if (of_lane < 1 || loop.grad < 0) of_lane = 1;
  const int64_t groups = pg_ceil_div(numbers, of_lane), most = INT32_MAX - l->threads;
  if (across > most / groups) return false;
  l->blocks = pg_ceil_div(groups * across, l->threads);
  if (boxes > most / l->blocks) return false;
  l->blocks *= boxes;
  plan->lanes = (uint32_t)(groups * across);
  plan->groups = (uint32_t)groups;
  plan->numbers = (uint32_t)numbers;
  plan->grad_step = groups * together * loop.grad;
  plan->in_step = groups * together * loop.in;
  plan->by_vectors = divider_of(vectors);
  plan->by_looped_channels = divider_of(loop.by_channels ? 1 : p.c);
  plan->by_boxes = divider_of(boxes);
  plan->by_h_items = divider_of(h_items);
  if (l->at_once != APART) return true;
  const int64_t twice = numbers * together - loop.planes; /* planes that are computed twice */
  plan->grad_distance = (uint32_t)loop.grad;
  plan->in_distance = (uint32_t)loop.in;
  plan->last_four = (uint32_t)(loop.planes - together);
  plan->shifted = (uint32_t)(numbers - 1);
  plan->grad_back = twice * loop.grad;
  plan->in_back = twice * loop.in;
  return true;
}

/* --- Launch --- */

/* aligned: channels can be loaded and stored by fours. */
static bool plan_launch(const pg_problem &problem, bool aligned, avg_strips_launch *l) {
  const pg_facts &f = problem.facts;
  const strips_loop loop = loop_of(problem, aligned || counts_channels(problem));
  l->at_once = aligned ? CHANNELS : has_fours(loop, element_bytes(problem)) ? APART : ONE_PLANE;
  l->v = l->at_once == ONE_PLANE ? 1 : 4;
  l->threads = l->at_once == ONE_PLANE ? STRIPS_OF_ONE : STRIPS_OF_FOUR;
  const int64_t usual = USUAL_ENTRIES * (l->at_once == ONE_PLANE ? 2 : 1);
  const int64_t overlap = 2 * f.d_windows * f.h_windows;
  const int64_t most_entries = overlap <= usual ? usual : least(overlap, MOST_ENTRIES);
  plan_divisors(problem, &l->plan);
  cut_boxes(f.pool, most_entries, pg_ceil_div(f.planes, l->v) * f.pool.w.in, &l->plan);
  return plan_strides(problem, &l->plan) && plan_scratch(f, l) && plan_lanes(problem, loop, l);
}

#endif
