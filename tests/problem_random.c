/* SPDX-License-Identifier: Apache-2.0 */
/* Random problems: every feature of the language, mixed, within a budget of cells. */
#include "float_format.h"
#include "problem.h"

static uint64_t below(uint64_t *state, uint64_t limit) { return problem_next(state) % limit; }

static bool one_in(uint64_t *state, uint64_t odds) { return below(state, odds) == 0; }

static int64_t between(uint64_t *state, int64_t least, int64_t most) {
  return most <= least ? least : least + (int64_t)below(state, (uint64_t)(most - least + 1));
}

/* Mostly small; else next to a width that vector code likes; now and then all that is left. */
static int64_t length(uint64_t *state, int64_t most) {
  int64_t size;
  switch (below(state, 8)) {
    case 0:
      size = between(state, 1, most);
      break;
    case 1:
    case 2:
      size = (8 << below(state, 4)) + between(state, -1, 1);
      break;
    default:
      size = between(state, 1, 12);
  }
  return size > most ? most : size;
}

static void draw_shape(uint64_t *state, struct problem *p, int64_t cells) {
  p->batched = !one_in(state, 4);
  p->in[0] = 1;
  p->in[2] = length(state, cells);
  cells /= p->in[2];
  p->in[1] = length(state, cells);
  cells /= p->in[1];
  if (problem_spatial(p) == 3) p->in[0] = length(state, cells < 9 ? cells : 9);
  cells /= p->in[0];
  p->c = length(state, cells < 20 ? cells : 20);
  cells /= p->c;
  p->n = p->batched ? between(state, 1, cells < 3 ? cells : 3) : 1;
}

/* DOUBLE goes with one output alone in aclnnAdaptiveAvgPool3dBackward. */
static void draw_adaptive_out(uint64_t *state, struct problem *p) {
  const bool divides = one_in(state, 4);
  p->out[0] = 1;
  for (int i = 3 - problem_spatial(p); i < 3; i++) {
    p->out[i] = between(state, 1, one_in(state, 8) ? 2 * p->in[i] : p->in[i]);
    while (divides && p->in[i] % p->out[i] != 0) p->out[i] = between(state, 1, p->in[i]);
  }
  const bool whole = one_in(state, 12) || (p->type == F64 && p->op == ADAPTIVE_AVG_POOL3D);
  if (whole) p->out[0] = p->out[1] = p->out[2] = 1;
}

/* A value for each of `axes` axes, or one for all of them. */
static struct window_sizes draw_sizes(uint64_t *state, int64_t least, const int64_t *most,
                                      int axes) {
  struct window_sizes s = {.count = one_in(state, 2) ? 1 : axes};
  int64_t lowest = most[0];
  for (int i = 0; i < axes; i++) {
    s.of[i] = between(state, least, most[i]);
    if (most[i] < lowest) lowest = most[i];
  }
  if (s.count == 1 && s.of[0] > lowest) s.of[0] = between(state, least, lowest);
  return s;
}

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

static bool has_dilation(const struct problem *p) {
  return p->op == MAX_POOL2D || p->op == MAX_POOL3D || p->op == MAX_POOL2D_FORWARD ||
         p->op == MAX_POOL3D_FORWARD;
}

/* Both sides of an axis together may have as much as the kernel; in two dimensions. */
static struct window_sizes draw_sides(uint64_t *state, const int64_t k[2]) {
  struct window_sizes s = {.count = 4};
  for (int i = 0; i < 2; i++) {
    s.of[i] = between(state, 0, k[i]);
    s.of[2 + i] = between(state, 0, k[i] - s.of[i]);
  }
  return s;
}

/* One draw of windows; they need not fit. */
static void draw_windows(uint64_t *state, struct problem *p) {
  const int axes = problem_spatial(p);
  const bool wide = one_in(state, 6);
  int64_t most[3], k[3], beyond[3], half[3];
  for (int i = 0; i < axes; i++) {
    const int64_t in = p->in[3 - axes + i];
    most[i] = wide ? in + 2 : smaller(in + 1, 4);
  }
  p->kernel = draw_sizes(state, 1, most, axes);
  for (int i = 0; i < axes; i++) {
    k[i] = p->kernel.of[p->kernel.count == 1 ? 0 : i];
    beyond[i] = k[i] + 1;
    half[i] = k[i] / 2;
  }
  p->stride = draw_sizes(state, 1, beyond, axes);
  if (one_in(state, 4)) p->stride.count = 0;
  if (one_in(state, 8) && p->op == AVG_POOL2D) p->stride.count = STRIDE_NULL;
  p->pad = draw_sizes(state, 0, half, axes);
  if (p->op == MAX_POOL_FORWARD && one_in(state, 2)) p->pad = draw_sides(state, k);
  p->dilation = (struct window_sizes){.count = 0};
  if (has_dilation(p) && one_in(state, 3))
    p->dilation = draw_sizes(state, 1, (const int64_t[3]){3, 3, 3}, axes);
  p->ceil = one_in(state, 2);
}

static void draw_average(uint64_t *state, struct problem *p) {
  static const int64_t divisors[] = {1, 2, -1, -3, 7, 100, 3000000000, -(INT64_C(1) << 40)};
  p->include_pad = one_in(state, 2);
  if (one_in(state, 3)) p->divisor = divisors[below(state, sizeof divisors / sizeof divisors[0])];
  if (problem_spatial(p) == 3) return; /* without cubeMathType */
  p->cube = (int)below(state, 2);
  if (one_in(state, 3) && p->type != BF16) p->cube = p->type == F32 ? 3 : 2;
}

/* Windows over many cells make the reference slow, nothing else. */
static bool is_cheap(const struct problem *p) {
  const struct reference_pooling pool = problem_pooling(p);
  const int64_t window = pool.axis[0].kernel * pool.axis[1].kernel * pool.axis[2].kernel;
  return pool.planes * reference_out_cells(&pool) * (window + 8) < 400000 + 64 * pool.planes;
}

/* The only ones that take windows without a cell are backward; aclnnAvgPool3d takes none that are
 * longer than input and padding. */
static bool is_allowed(const struct problem *p) {
  const struct reference_pooling pool = problem_pooling(p);
  if (problem_is_forward(p) && !problem_windows_hold_cells(p)) return false;
  for (int i = 0; i < 3 && p->op == AVG_POOL3D_FORWARD; i++)
    if (pool.axis[i].kernel > pool.axis[i].in + 2 * pool.axis[i].pad) return false;
  return true;
}

static void draw_sliding(uint64_t *state, struct problem *p) {
  if (!problem_is_max(p)) draw_average(state, p);
  do draw_windows(state, p);
  while (!problem_set_out(p) || !is_cheap(p) || !is_allowed(p));
}

/* What an operator takes: `count` of the formats, from the first on; some also channels last. */
static aclFormat draw_format(uint64_t *state, const struct problem *p) {
  static const aclFormat any[] = {ACL_FORMAT_NCHW, ACL_FORMAT_ND, ACL_FORMAT_NCL, ACL_FORMAT_NCDHW,
                                  ACL_FORMAT_NC};
  static const aclFormat deep[] = {ACL_FORMAT_NCDHW, ACL_FORMAT_ND, ACL_FORMAT_NCHW};
  switch (p->op) {
    case MAX_POOL2D:
    case MAX_POOL2D_FORWARD:
      return one_in(state, 2) ? ACL_FORMAT_NHWC : any[below(state, 3)];
    case ADAPTIVE_MAX_POOL2D_FORWARD:
      return one_in(state, 2) ? ACL_FORMAT_NHWC : any[below(state, p->type == F64 ? 1 : 3)];
    case MAX_POOL3D_FORWARD:
      return one_in(state, 2) ? ACL_FORMAT_NDHWC : deep[below(state, 3)];
    case MAX_POOL2D_MASK:
    case MAX_POOL2D_MASK_FORWARD:
    case MAX_POOL_FORWARD:
      return any[below(state, 3)];
    case MAX_POOL3D:
    case ADAPTIVE_MAX_POOL3D_FORWARD:
      return deep[below(state, 3)];
    case AVG_POOL2D:
      return !p->batched && one_in(state, 2) ? ACL_FORMAT_NCL : ACL_FORMAT_NCHW;
    case AVG_POOL2D_FORWARD:
    case ADAPTIVE_AVG_POOL2D_FORWARD:
      return p->batched ? ACL_FORMAT_NCHW : ACL_FORMAT_NCL;
    default:
      return any[below(state, 5)];
  }
}

static void draw_layouts(uint64_t *state, struct problem *p) {
  const enum layout last = problem_has_channels_last(p) ? DENSE : PERMUTED;
  const bool channels_last = one_in(state, 6); /* all of them: methods need that */
  for (int i = 0; i < POOL_TENSORS; i++) {
    const enum layout most = problem_role(p, i) == WRITTEN ? TRANSPOSED : SCALAR;
    p->layout[i] = one_in(state, 2) ? DENSE : (enum layout)below(state, (uint64_t)most + 1);
    if (channels_last) p->layout[i] = last;
    if (problem_role(p, i) == ABSENT_TENSOR) p->layout[i] = DENSE;
  }
  if (problem_is_mask(p)) p->layout[INDICES] = DENSE;
  p->late = one_in(state, 4);
}

static int draw_type(uint64_t *state, enum pool_operator op) {
  const bool takes_double = op == ADAPTIVE_AVG_POOL3D || op == ADAPTIVE_MAX_POOL2D_FORWARD;
  if (takes_double && one_in(state, 8)) return F64;
  if (op == MAX_POOL_FORWARD && one_in(state, 2))
    return FLOAT_FORMATS + (int)below(state, ELEMENT_FORMATS - FLOAT_FORMATS);
  return (int)below(state, 3);
}

/* Of what is read.  Backward sums of nothing but -inf are of no interest. */
static enum gradient_data draw_data(uint64_t *state, const struct problem *p) {
  const uint64_t kinds = problem_is_forward(p) ? GRADIENT_DATA : TIES;
  return one_in(state, 2) ? INTEGERS : (enum gradient_data)below(state, kinds);
}

struct problem problem_random(uint64_t seed, int64_t cells) {
  uint64_t state = seed;
  struct problem p = {.op = (enum pool_operator)below(&state, POOL_OPERATORS)};
  p.type = draw_type(&state, p.op);
  p.index_bytes = one_in(&state, 2) ? 4 : 8;
  p.seed = problem_next(&state) % 1000000;
  draw_shape(&state, &p, cells);
  if (problem_is_sliding(&p))
    draw_sliding(&state, &p);
  else
    draw_adaptive_out(&state, &p);
  p.format = draw_format(&state, &p);
  draw_layouts(&state, &p);
  if (problem_role(&p, INDICES) == READ && one_in(&state, 2))
    p.index = (enum index_source)below(&state, INDEX_SOURCES);
  p.data = draw_data(&state, &p);
  /* What a line without the word means, or all that the operator takes. */
  if (!problem_has_indices(&p) || p.op == ADAPTIVE_MAX_POOL2D_FORWARD) p.index_bytes = 8;
  if (problem_is_mask(&p)) p.index_bytes = 4;
  return p;
}
