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

static void draw_adaptive_out(uint64_t *state, struct problem *p) {
  const bool divides = one_in(state, 4);
  p->out[0] = 1;
  for (int i = 3 - problem_spatial(p); i < 3; i++) {
    p->out[i] = between(state, 1, one_in(state, 8) ? 2 * p->in[i] : p->in[i]);
    while (divides && p->in[i] % p->out[i] != 0) p->out[i] = between(state, 1, p->in[i]);
  }
  if (p->type == F64) p->out[0] = p->out[1] = p->out[2] = 1;
}

static struct window_sizes draw_sizes(uint64_t *state, int64_t least, const int64_t most[2]) {
  struct window_sizes s = {.count = 1 + (int)below(state, 2)};
  for (int i = 0; i < 2; i++) s.of[i] = between(state, least, most[i]);
  if (s.count == 1 && most[1] < most[0]) s.of[0] = s.of[1]; /* it holds for both axes */
  return s;
}

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* One draw of windows; they need not fit. */
static void draw_windows(uint64_t *state, struct problem *p) {
  const bool wide = one_in(state, 6);
  const int64_t kernels[2] = {wide ? p->in[1] + 2 : smaller(p->in[1] + 1, 4),
                              wide ? p->in[2] + 2 : smaller(p->in[2] + 1, 4)};
  p->kernel = draw_sizes(state, 1, kernels);
  const int64_t k[2] = {p->kernel.of[0], p->kernel.of[p->kernel.count - 1]};
  p->stride = draw_sizes(state, 1, (const int64_t[2]){k[0] + 1, k[1] + 1});
  if (one_in(state, 4)) p->stride.count = 0;
  if (one_in(state, 8) && p->op == AVG_POOL2D) p->stride.count = STRIDE_NULL;
  p->pad = draw_sizes(state, 0, (const int64_t[2]){k[0] / 2, k[1] / 2});
  p->dilation = (struct window_sizes){.count = 0};
  if (p->op == MAX_POOL2D && one_in(state, 3))
    p->dilation = draw_sizes(state, 1, (const int64_t[2]){3, 3});
  p->ceil = one_in(state, 2);
}

static void draw_average(uint64_t *state, struct problem *p) {
  static const int64_t divisors[] = {1, 2, -1, -3, 7, 100, 3000000000, -(INT64_C(1) << 40)};
  p->include_pad = one_in(state, 2);
  if (one_in(state, 3)) p->divisor = divisors[below(state, sizeof divisors / sizeof divisors[0])];
  p->cube = (int)below(state, 2);
  if (one_in(state, 3) && p->type != BF16) p->cube = p->type == F32 ? 3 : 2;
}

/* Windows over many cells make the reference slow, nothing else. */
static bool is_cheap(const struct problem *p) {
  const struct reference_pooling pool = problem_pooling(p);
  const int64_t window = pool.axis[1].kernel * pool.axis[2].kernel;
  return pool.planes * reference_out_cells(&pool) * (window + 8) < 400000 + 64 * pool.planes;
}

static void draw_sliding(uint64_t *state, struct problem *p) {
  if (p->op == AVG_POOL2D) draw_average(state, p);
  do draw_windows(state, p);
  while (!problem_set_out(p) || !is_cheap(p));
}

static aclFormat draw_format(uint64_t *state, const struct problem *p) {
  static const aclFormat any[] = {ACL_FORMAT_NCHW, ACL_FORMAT_ND, ACL_FORMAT_NCL, ACL_FORMAT_NCDHW,
                                  ACL_FORMAT_NC};
  if (p->op == MAX_POOL2D) return one_in(state, 2) ? ACL_FORMAT_NHWC : any[below(state, 3)];
  if (p->op == AVG_POOL2D)
    return !p->batched && one_in(state, 2) ? ACL_FORMAT_NCL : ACL_FORMAT_NCHW;
  return any[below(state, 5)];
}

static void draw_layouts(uint64_t *state, struct problem *p) {
  const enum layout last = p->format == ACL_FORMAT_NHWC ? DENSE : PERMUTED;
  const bool channels_last = one_in(state, 6); /* all of them: methods need that */
  for (int i = 0; i < POOL_TENSORS; i++) {
    const enum layout most = i == GRAD_IN ? TRANSPOSED : SCALAR;
    p->layout[i] = one_in(state, 2) ? DENSE : (enum layout)below(state, (uint64_t)most + 1);
    if (channels_last) p->layout[i] = last;
  }
  if (!problem_is_max(p)) p->layout[INDICES] = DENSE;
  p->late = one_in(state, 4);
}

struct problem problem_random(uint64_t seed, int64_t cells) {
  uint64_t state = seed;
  struct problem p = {.op = (enum pool_operator)below(&state, POOL_OPERATORS),
                      .type = (int)below(&state, 3),
                      .index_bytes = one_in(&state, 2) ? 4 : 8,
                      .seed = problem_next(&state) % 1000000};
  if (p.op == ADAPTIVE_AVG_POOL3D && one_in(&state, 8)) p.type = F64;
  draw_shape(&state, &p, cells);
  if (problem_is_sliding(&p))
    draw_sliding(&state, &p);
  else
    draw_adaptive_out(&state, &p);
  p.format = draw_format(&state, &p);
  draw_layouts(&state, &p);
  if (problem_is_max(&p) && one_in(&state, 2))
    p.index = (enum index_source)below(&state, INDEX_SOURCES);
  p.data = one_in(&state, 2) ? INTEGERS : (enum gradient_data)below(&state, GRADIENT_DATA);
  if (!problem_is_max(&p)) p.index_bytes = 8; /* what a line without the word means */
  return p;
}
