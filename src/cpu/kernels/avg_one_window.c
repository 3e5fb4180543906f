/* SPDX-License-Identifier: Apache-2.0 */
/* Average-backward where one window holds the whole plane (global average pooling): every cell of a
 * plane is the same quotient, so a plane is one division and one fill.  Where channels are
 * neighbours, every cell has the same quotients of all channels: a pattern, which is repeated.
 *
 * Boxes are runs of cells, so a few large planes keep several threads busy.  Stores follow each
 * other with nothing between them: memory takes whole lines in order as fast as it can then,
 * through the caches too. */
#include <string.h>

#include "cpu/box.h"
#include "cpu/kernels/variant.h"
#include "cpu/method.h"

enum {
  BOX = 16384,                  /* elements of a box, about */
  BLOCK = 64 / sizeof(element), /* elements of a line */
  PIECE = 64 * BLOCK,           /* elements of a pattern that are copied in one go */
  MOST_CHANNELS = 16384,        /* of a pattern */
  PATTERN = MOST_CHANNELS + PIECE + BLOCK
};

/* The quotients of all channels, over and over. */
struct one_window {
  int64_t first, length; /* the plane that it begins with, and elements; -1: there is none */
  _Alignas(64) element pattern[PATTERN];
};
_Static_assert(sizeof(struct one_window) <= PG_SCRATCH_METHOD, "patterns need more scratch");

/* Fills cells in blocks.  The last block may end behind them, among cells that are filled later:
 * `writable` cells may be overwritten. */
static inline void fill_plane(element *to, int64_t cells, int64_t writable, element value) {
  element block[BLOCK];
  for (int i = 0; i < BLOCK; i++) block[i] = value;
  int64_t i = 0;
  for (; i < cells && i + BLOCK <= writable; i += BLOCK) memcpy(to + i, block, sizeof block);
  for (; i < cells; i++) to[i] = value;
}

/* Writes so many elements of a pattern of `channels` elements. */
static void repeat_pattern(const struct one_window *k, int64_t channels, element *to,
                           int64_t count) {
  const int64_t misfit = (int64_t)((uintptr_t)to % 64 / sizeof *to);
  int64_t i = 0;
  while (i < count) { /* pieces end with a line */
    int64_t piece = i == 0 ? PIECE - misfit : PIECE, j = 0;
    if (piece > count - i) piece = count - i;
    const element *from = k->pattern + i % channels;
    const int64_t head = i == 0 ? (BLOCK - misfit) % BLOCK : 0;
    for (; j < head && j < piece; j++) to[i + j] = from[j];
    for (; j + BLOCK <= piece; j += BLOCK) memcpy(to + i + j, from + j, BLOCK * sizeof *to);
    for (; j < piece; j++) to[i + j] = from[j];
    i += piece;
  }
}

static sum_type divisor_of(const struct pg_avg_backward *a, const struct pg_pooling *p) {
  const bool pad = a->count_include_pad;
  const int64_t counted = pg_window_extent(&p->d, 0, pad) * pg_window_extent(&p->h, 0, pad) *
                          pg_window_extent(&p->w, 0, pad);
  return (sum_type)(a->divisor != 0 ? a->divisor : counted);
}

/* Makes the pattern of a box, whose planes are the channels of one n.  The next box may have the
 * same one. */
static void make_pattern(struct one_window *k, const struct pg_avg_backward *a, sum_type divisor,
                         const struct pg_box *box) {
  const int64_t c = box->planes, count = c * box->cells, stride = a->out_strides.of[PG_C];
  const int64_t length = count < c + PIECE ? count : c + PIECE;
  const element *grad =
      (const element *)a->grad_out + pg_offset(&a->out_strides, box->first / c, 0, 0, 0, 0);
  if (k->first == box->first && k->length >= length) return;
  for (int64_t i = 0; i < c; i++)
    k->pattern[i] = round_one(0 + widen_one(grad[i * stride]) / divisor);
  for (int64_t i = c; i < length; i++) k->pattern[i] = k->pattern[i - c];
  k->first = box->first;
  k->length = length;
}

static void repeat_channels(struct one_window *k, const struct pg_avg_backward *a, sum_type divisor,
                            const struct pg_box *box) {
  make_pattern(k, a, divisor, box);
  repeat_pattern(k, box->planes,
                 (element *)a->grad_in + pg_offset(&a->in_strides, box->first / box->planes, 0,
                                                   box->d.begin, box->h.begin, box->w.begin),
                 box->planes * box->cells);
}

static void fill_planes(const struct pg_facts *f, const struct pg_avg_backward *a, sum_type divisor,
                        const struct pg_box *box) {
  for (int64_t i = 0; i < box->planes; i++) {
    const int64_t n = (box->first + i) / f->pool.c, c = (box->first + i) % f->pool.c;
    const int64_t at = pg_offset(&a->out_strides, n, c, 0, 0, 0);
    const sum_type grad = widen_one(((const element *)a->grad_out)[at]);
    element *to = (element *)a->grad_in +
                  pg_offset(&a->in_strides, n, c, box->d.begin, box->h.begin, box->w.begin);
    fill_plane(to, box->cells, (f->in.all ? box->planes - i : 1) * box->cells,
               round_one(0 + grad / divisor));
  }
}

static void one_window_items(const void *args, int64_t begin, int64_t end,
                             struct pg_scratch *scratch) {
  const struct pg_task *task = args;
  const struct pg_tiling *t = &task->choice.tiling;
  const struct pg_facts *f = &task->problem.facts;
  const struct pg_avg_backward *a = &task->problem.args.avg_backward;
  const sum_type divisor = divisor_of(a, &f->pool);
  struct one_window *k = scratch->room;
  k->first = -1;
  for (int64_t item = begin; item < end && !pg_is_stopped(scratch); item++) {
    const struct pg_box box = pg_box_of(t, &f->pool, item);
    if (t->interleaved)
      repeat_channels(k, a, divisor, &box);
    else
      fill_planes(f, a, divisor, &box);
  }
}

/* Do the cells of all channels follow each other in gradInput? */
static bool is_pattern(const struct pg_avg_backward *a, const struct pg_pooling *p) {
  const int64_t *s = a->in_strides.of, c = p->c;
  return c > 1 && c <= MOST_CHANNELS && s[PG_C] == 1 && (p->w.in == 1 || s[PG_W] == c) &&
         (p->h.in == 1 || s[PG_H] == c * p->w.in) &&
         (p->d.in == 1 || s[PG_D] == c * p->w.in * p->h.in);
}

static bool one_window_fits(const struct pg_problem *problem, struct pg_tiling *tiling) {
  const struct pg_facts *f = &problem->facts;
  const struct pg_pooling *p = &f->pool;
  if (!pg_is_one_window(&p->d) || !pg_is_one_window(&p->h) || !pg_is_one_window(&p->w))
    return false;
  if (sizeof(sum_type) == sizeof(float) && f->largest_divisor == INT64_MAX) return false;
  *tiling = pg_tile_flat(p, BOX);
  if (f->in.planes) return true;
  if (!is_pattern(&problem->args.avg_backward, p)) return false;
  struct pg_tiling t = pg_tile_flat(p, BOX < p->c ? 1 : BOX / p->c);
  t.interleaved = true;
  t.planes = p->c;
  *tiling = pg_tile_boxes(p, &t);
  return true;
}

const struct pg_cpu_method VARIANT(avg_one_window) = {
    .name = "one_window", .fits = one_window_fits, .run = one_window_items};
