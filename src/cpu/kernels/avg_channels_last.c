/* SPDX-License-Identifier: Apache-2.0 */
/* Average-backward for tensors whose channels are neighbours in memory: a vector holds LANES
 * channels of one cell.
 *
 * A box is computed row by row.  When a row of cells is the first to need a row of outputs, that is
 * divided and expanded along W; the expanded rows that a row of cells needs are then added along H
 * and D.  Neighbouring cells that lie in the same windows, along W or along H, are computed once.
 * If the number of channels is no multiple of LANES, the last vector overlaps the one before it. */
#include "cpu/kernels/avg_quotients.h"

enum {
  AVG_ROW = 4096,        /* elements (cells times channels) of a row of a box */
  TILING_OUTPUTS = 8192, /* outputs times channels for which the width of a box is chosen */
  AVG_OUTPUT_ROWS = 64,  /* the most rows of outputs in whose windows a cell lies */
  FEW_WINDOWS = 3        /* so many quotients along W stay in registers */
};

struct avg_channels_last {
  const struct pg_avg_backward *args;
  const struct pg_pooling *pool;
  struct grad_in grad_in;
  bool by_reciprocal; /* all divisors are whole numbers up to RECIPROCAL_MOST */
  int64_t pitch;      /* between expanded rows */
  int64_t outer;      /* divisor[] is for windows with this extent along D times H; 0: none */
  struct pg_box_cover cover;
  float divisor[2 * AVG_STAGED_WIDTH]; /* each with its reciprocal */
  _Alignas(
      LINE) float quotient[(AVG_STAGED_WIDTH + 1) * LANES]; /* of one row, where windows are many */
  _Alignas(LINE) float expanded[AVG_STAGED + 2 * LANES];
  _Alignas(LINE) element out[AVG_ROW + LANES]; /* a row that is then written past the caches */
};
_Static_assert(sizeof(struct avg_channels_last) <= PG_SCRATCH_BYTES,
               "channels last needs more scratch");

/* --- Dividing and expanding along W --- */

static void make_row_divisors(struct avg_channels_last *k, int64_t outer) {
  const struct pg_avg_backward *a = k->args;
  const struct pg_range o = k->cover.w.outputs;
  float *to = k->divisor;
  if (k->outer == outer) return;
  for (int64_t ow = o.begin; ow < o.end; ow++, to += 2) {
    to[0] = (float)(a->divisor != 0 ? a->divisor : outer * extent_of(a, &k->pool->w, ow));
    to[1] = 1 / to[0];
  }
  k->outer = outer;
}

static inline floats channel_quotient(const struct avg_channels_last *k, const element *grad,
                                      int64_t part, const float *divisor) {
  const floats g = part == LANES ? load_elements(grad) : load_part(grad, part);
  return quotient_of(k->by_reciprocal, g, all(divisor[0]), all(divisor[1]));
}

/* Expands LANES channels of a row, where a cell lies in at most `windows` windows along W: the
 * latest quotients stay in registers. */
static inline __attribute__((always_inline)) void expand_few(const struct avg_channels_last *k,
                                                             const element *grad, int64_t planes,
                                                             const int windows, float *to) {
  const struct pg_cover *m = &k->cover.w;
  const int64_t stride = k->args->out_strides.of[PG_W];
  const float *divisor = k->divisor;
  floats latest[FEW_WINDOWS] = {zeros(), zeros(), zeros()};
  int64_t taken = 0; /* outputs */
  for (int64_t w = 0; w < pg_length(m->cells); w++, to += planes) {
    const int32_t count = m->count[w];
    if (in_same_windows(m, w)) continue; /* what belongs here is never read */
    for (; taken < m->first[w] + count; taken++, grad += stride, divisor += 2) {
      for (int i = 1; i < windows; i++) latest[i - 1] = latest[i];
      latest[windows - 1] = channel_quotient(k, grad, LANES, divisor);
    }
    floats sum = count > 0 ? latest[windows - 1] : zeros();
    if (windows > 1 && count == 2) sum = add(latest[windows - 2], sum);
    if (windows > 2 && count == 3) sum = add(add(latest[0], latest[1]), sum);
    store_f32(to, sum);
  }
}

/* Expands `part` channels of a row with any number of windows: all quotients of the row are
 * computed first. */
static void expand_many(struct avg_channels_last *k, const element *grad, int64_t planes,
                        int64_t part, float *to) {
  const struct pg_cover *m = &k->cover.w;
  const int64_t stride = k->args->out_strides.of[PG_W];
  for (int64_t i = 0; i < pg_length(m->outputs); i++)
    store_f32(k->quotient + i * LANES,
              channel_quotient(k, grad + i * stride, part, k->divisor + 2 * i));
  for (int64_t w = 0; w < pg_length(m->cells); w++, to += planes) {
    const float *from = k->quotient + (int64_t)m->first[w] * LANES;
    floats sum = m->count[w] > 0 ? load_f32(from) : zeros();
    for (int32_t i = 1; i < m->count[w]; i++) sum = add(sum, load_f32(from + (int64_t)i * LANES));
    store_f32(to, sum);
  }
}

/* Expands a row of outputs; up to LANES floats behind the expanded row are overwritten. */
static __attribute__((noinline)) void expand_channels(struct avg_channels_last *k,
                                                      const element *grad, int64_t planes,
                                                      float *to) {
  const int64_t windows = k->cover.w.most, part = least(planes, LANES);
  for (int64_t n = 0; n < planes; n += LANES) {
    const int64_t c = least(n, planes - part);
    if (part < LANES || windows > FEW_WINDOWS)
      expand_many(k, grad + c, planes, part, to + c);
    else if (windows == 1)
      expand_few(k, grad + c, planes, 1, to + c);
    else
      expand_few(k, grad + c, planes, FEW_WINDOWS, to + c);
  }
}

/* Where a row of outputs is expanded to: the oh-th of those whose windows touch the box, in the
 * i-th of the slices that a cell needs.  Rows take turns in as many places as a cell needs rows. */
static float *expanded_place(struct avg_channels_last *k, int64_t i, int64_t oh) {
  const int64_t places = k->cover.h.most;
  return k->expanded + (i * places + oh % places) * k->pitch;
}

/* Divides and expands rows of outputs; oh counts from the first row whose windows touch the box. */
static void expand_rows(struct avg_channels_last *k, const struct pg_box *b, int64_t d,
                        struct pg_range oh) {
  const struct pg_avg_backward *a = k->args;
  const struct pg_box_cover *m = &k->cover;
  const int64_t n = b->first / k->pool->c, c = b->first % k->pool->c;
  for (; oh.begin < oh.end; oh.begin++)
    for (int64_t i = 0; i < m->d.count[d]; i++) {
      const int64_t z = m->d.outputs.begin + m->d.first[d] + i, y = m->h.outputs.begin + oh.begin;
      const int64_t at = pg_offset(&a->out_strides, n, c, z, y, m->w.outputs.begin);
      make_row_divisors(k, extent_of(a, &k->pool->d, z) * extent_of(a, &k->pool->h, y));
      expand_channels(k, (const element *)a->grad_out + at, b->planes,
                      expanded_place(k, i, oh.begin));
    }
}

/* --- Adding along H and D --- */

/* A band of rows of cells, which lie in the same windows. */
struct band {
  const float *rows[AVG_OUTPUT_ROWS]; /* the expanded rows: `height` for each of `depth` slices */
  int64_t depth, height;
  int64_t planes;
  int64_t count; /* rows of cells */
  element *to;
  int64_t stride, row_stride; /* of cells, and of rows of cells */
};

/* The sums of LANES channels; `at` is their place in the expanded rows. */
static inline __attribute__((always_inline)) floats add_band(const struct band *b, int64_t at,
                                                             const int64_t depth,
                                                             const int64_t height) {
  floats total = zeros();
  for (int64_t d = 0; d < depth; d++) {
    floats sum = height > 0 ? load_f32(b->rows[d * height] + at) : zeros();
    for (int64_t h = 1; h < height; h++) sum = add(sum, load_f32(b->rows[d * height + h] + at));
    total = d == 0 ? sum : add(total, sum);
  }
  return total;
}

/* Two vectors of `part` channels: from c on, and from `also` on. */
struct two_vectors {
  int64_t c, also, part;
};

static inline __attribute__((always_inline)) void make_band_part(const struct avg_channels_last *k,
                                                                 const struct band *b,
                                                                 const struct two_vectors v,
                                                                 const int64_t depth,
                                                                 const int64_t height) {
  const struct pg_cover *m = &k->cover.w;
  const int64_t width = pg_length(m->cells);
  for (int64_t w = 0, end; w < width; w = end) {
    for (end = w + 1; end < width && in_same_windows(m, end);) end++;
    const floats first = add_band(b, w * b->planes + v.c, depth, height);
    const floats second = add_band(b, w * b->planes + v.also, depth, height);
    element *to = b->to + w * b->stride;
    if (end == w + 1 && b->count == 1 && v.part == LANES) {
      store_two(to + v.c, first, to + v.also, second);
      continue;
    }
    const packed x = pack(first), y = pack(second);
    for (int64_t i = 0; i < b->count; i++, to += b->row_stride)
      for (int64_t at = 0; at < end - w; at++) {
        store_channels(to + at * b->stride + v.c, x, v.part);
        store_channels(to + at * b->stride + v.also, y, v.part);
      }
  }
}

static __attribute__((noinline)) void make_band(const struct avg_channels_last *k,
                                                const struct band *b) {
  const int64_t part = least(b->planes, LANES), last = b->planes - part;
  for (int64_t n = 0; n < b->planes; n += LANES + LANES) {
    const struct two_vectors v = {least(n, last), least(n + LANES, last), part};
    const struct two_vectors whole = {v.c, v.also, LANES};
    if (part < LANES)
      make_band_part(k, b, v, b->depth, b->height);
    else if (b->depth == 1 && b->height == 1)
      make_band_part(k, b, whole, 1, 1);
    else if (b->depth == 1 && b->height == 3)
      make_band_part(k, b, whole, 1, 3);
    else
      make_band_part(k, b, whole, b->depth, b->height);
  }
}

/* Computes the band of rows from h on: in gradInput, or once in out[], which is then written past
 * the caches for each of its rows. */
static void write_band(struct avg_channels_last *k, const struct pg_box *b, int64_t d, int64_t h,
                       struct band band) {
  const int64_t *s = k->grad_in.strides->of, count = band.count;
  const bool nontemporal = k->grad_in.nontemporal;
  band.to = first_cell(&k->grad_in, b, 0) + d * s[PG_D] + h * s[PG_H];
  band.stride = s[PG_W];
  band.row_stride = s[PG_H];
  if (nontemporal) {
    band.to = k->out;
    band.stride = b->planes;
    band.count = 1;
  }
  make_band(k, &band);
  for (int64_t i = 0; nontemporal && i < count; i++)
    write_interleaved_row(&k->grad_in, b, d, h + i, k->out);
}

static void make_avg_slice(struct avg_channels_last *k, const struct pg_box *b, int64_t d) {
  const struct pg_cover *m = &k->cover.h;
  struct band band = {.planes = b->planes};
  int64_t expanded = 0;
  for (int64_t h = 0; h < pg_length(b->h); h += band.count) {
    for (band.count = 1; h + band.count < pg_length(b->h) && in_same_windows(m, h + band.count);)
      band.count++;
    const int64_t end = m->first[h] + m->count[h];
    expand_rows(k, b, d, (struct pg_range){expanded, end});
    expanded = most(expanded, end);
    band.height = m->count[h];
    band.depth = band.height > 0 ? k->cover.d.count[d] : 0;
    for (int64_t i = 0; i < band.depth * band.height; i++)
      band.rows[i] = expanded_place(k, i / band.height, m->first[h] + i % band.height);
    write_band(k, b, d, h, band);
  }
}

static void avg_channels_last_items(const void *args, int64_t begin, int64_t end,
                                    struct pg_scratch *scratch) {
  const struct pg_task *task = args;
  const struct pg_facts *facts = &task->problem.facts;
  struct avg_channels_last *k = scratch->room;
  k->args = &task->problem.args.avg_backward;
  k->pool = &facts->pool;
  k->grad_in = grad_in_of(facts, k->args->grad_in, &k->args->in_strides);
  k->by_reciprocal = facts->largest_divisor <= RECIPROCAL_MOST;
  pg_box_cover_begin(&k->cover);
  for (int64_t item = begin; item < end && !pg_is_stopped(scratch); item++) {
    const struct pg_box box = pg_box_of(&task->choice.tiling, k->pool, item);
    pg_box_cover_make(&k->cover, k->pool, &box, 0);
    k->pitch = pg_length(box.w) * box.planes + LANES;
    k->outer = 0;
    for (int64_t d = 0; d < pg_length(box.d); d++) make_avg_slice(k, &box, d);
  }
  if (k->grad_in.nontemporal) fence_nontemporal();
}

/* --- The method --- */

static bool avg_channels_last_fits(const struct pg_problem *problem, struct pg_tiling *tiling) {
  const struct pg_facts *f = &problem->facts;
  if (!f->channels_last || f->outputs == 0 || f->largest_divisor == INT64_MAX) return false;
  *tiling = pg_tile_interleaved(f, AVG_ROW, TILING_OUTPUTS);
  if (f->d_windows > AVG_OUTPUT_ROWS || f->h_windows > AVG_OUTPUT_ROWS ||
      pg_most_touching(&f->pool.w, tiling->w) > AVG_STAGED_WIDTH)
    return false;
  const int64_t rows = f->d_windows * f->h_windows;
  return rows <= AVG_OUTPUT_ROWS && rows * (tiling->w * tiling->planes + LANES) <= AVG_STAGED;
}

const struct pg_cpu_method VARIANT(avg_channels_last) = {
    .name = "channels_last", .fits = avg_channels_last_fits, .run = avg_channels_last_items};
