/* SPDX-License-Identifier: Apache-2.0 */
/* Max-forward for tensors whose channels are neighbours in memory, a vector of them or more.
 *
 * A vector has LANES channels of an output.  The cells of its window are looked at one after the
 * other, for several vectors at once, so that positions are counted once for all of them and
 * comparisons do not wait for each other.  Each output is finished in registers, and results follow
 * each other in memory.  Elements of 16 bits are compared as keys, whose positions are counted from
 * the first cell of the window. */
#include "core/checked.h"
#include "cpu/kernels/max_forward_keys.h"

enum {
  ITEM_BYTES = 64 << 10, /* of cells that an item reads, about */
  WIDTH = 1024,          /* the most outputs of a row in an item */
  AT_ONCE = 4,           /* vectors, */
  CHANNELS_AT_ONCE = AT_ONCE * LANES,
  KEYS_AT_ONCE = AT_ONCE / 2, /* vectors of TWO_VECTORS channels */
  SOON = 16 << 10,            /* bytes further on are cells that are prefetched */
  PIECE = 512                 /* results that are put in their place at once */
};

/* The cells of a window along W. */
struct taps {
  int32_t first, count;
};

struct channels {
  const struct pg_pooling *pool;
  const struct pg_max_forward *args;
  const struct pg_scratch *scratch;
  bool dense;        /* the outputs of a row follow each other */
  bool keys;         /* elements are compared as keys */
  struct pg_range c; /* the channels of a box */
  struct pg_range w; /* whose taps these are */
  struct taps taps[WIDTH];
  struct results results;
};
_Static_assert(sizeof(struct channels) <= PG_SCRATCH_METHOD, "channels last needs more scratch");

/* --- Windows --- */

/* A window: its first cell in the first channel, and along each axis how many cells it has, how far
 * apart in memory, and in position. */
struct window {
  const element *first;
  int64_t d, h, w;
  int64_t d_step, h_step, w_step;
  int32_t at, d_at, h_at, w_at;
  const struct pg_scratch *scratch; /* which says whether to stop */
};

/* Looks at a row of the window, from its i-th cell on, in some vectors of channels. */
static inline SPECIALISED truths look_at_row(const struct window *k, const element *row, ints at,
                                             int64_t count, struct greatest *g, const int vectors,
                                             const enum care care) {
  truths strange = none();
  const ints step = all_i(k->w_at);
  for (; count > 0; count--, row += k->w_step) {
    for (int j = 0; j < vectors; j++) {
      const floats x = load_elements(row + (int64_t)j * LANES);
      __builtin_prefetch((const void *)((uintptr_t)(row + (int64_t)j * LANES) + SOON), 0, 2);
      strange = either(strange, look_at_next(&g[j], x, at, care));
    }
    if (care != VALUES) at = add_i(at, step);
  }
  return strange;
}

/* Finds the greatest cells of a window in some vectors of channels, from channel c on.  Says where
 * there were NaNs. */
static inline SPECIALISED truths look_at_window(const struct window *k, int64_t c,
                                                struct greatest *g, const int vectors,
                                                const enum care care) {
  truths strange = none();
  int64_t looked = 1; /* at the first cell */
  for (int j = 0; j < vectors; j++) {
    g[j] = (struct greatest){load_elements(k->first + c + (int64_t)j * LANES), all_i(k->at)};
    if (care != CAREFUL && k->d * k->h * k->w == 1)
      strange = either(strange, is_unordered(g[j].v, g[j].v));
  }
  for (int64_t d = 0; d < k->d; d++)
    for (int64_t h = 0; h < k->h && !pg_is_stopped(k->scratch); h++, looked = 0) {
      const element *row = k->first + c + d * k->d_step + h * k->h_step + looked * k->w_step;
      const int32_t at =
          k->at + (int32_t)d * k->d_at + (int32_t)h * k->h_at + (int32_t)looked * k->w_at;
      strange = either(strange, look_at_row(k, row, all_i(at), k->w - looked, g, vectors, care));
    }
  return strange;
}

/* Finds the results of LANES channels where there are NaNs. */
static void make_carefully(const struct channels *k, const struct window *w, int64_t c,
                           const struct place *to, int64_t i) {
  const int bytes = k->args->index_bytes;
  const element *plane = w->first - cell_offset(&k->results, w->at); /* the first channel's */
  int32_t found[LANES];
  struct greatest g;
  look_at_window(w, c, &g, 1, CAREFUL);
  put_results(to, i, &g, bytes);
  store_i32(found, g.at);
  for (int64_t j = 0; j < LANES; j++)
    copy_if_nan(&k->results, to->out + i + j, plane + c + j, found[j]);
}

/* Finds the results of some vectors of channels, and puts them in their place from the i-th on. */
static inline SPECIALISED void make_vectors(const struct channels *k, const struct window *w,
                                            int64_t c, const struct place *to, int64_t i,
                                            const int vectors, const int index_bytes) {
  struct greatest g[AT_ONCE];
  const truths strange = look_at_window(w, c, g, vectors, index_bytes == 0 ? VALUES : POSITIONS);
  if (__builtin_expect(nowhere(strange), 1))
    for (int j = 0; j < vectors; j++) put_results(to, i + (int64_t)j * LANES, &g[j], index_bytes);
  else
    for (int j = 0; j < vectors; j++)
      make_carefully(k, w, c + (int64_t)j * LANES, to, i + (int64_t)j * LANES);
}

/* --- Windows by keys --- */

/* Finds the greatest keys of a window in some vectors of TWO_VECTORS channels, from channel c on.
 */
static inline SPECIALISED void find_keys(const struct window *k, int64_t c, shorts *v, shorts *at,
                                         const int vectors, const bool positions) {
  const shorts step = all_shorts(k->w_at);
  int64_t looked = 1; /* at the first cell */
  for (int j = 0; j < vectors; j++) {
    v[j] = load_keys(k->first + c + (int64_t)j * TWO_VECTORS, TWO_VECTORS);
    at[j] = all_shorts(KEY_POSITIONS - 1);
  }
  for (int64_t d = 0; d < k->d; d++)
    for (int64_t h = 0; h < k->h && !pg_is_stopped(k->scratch); h++, looked = 0) {
      const element *cell = k->first + c + d * k->d_step + h * k->h_step + looked * k->w_step;
      const int64_t steps = d * k->d_at + h * k->h_at + looked * k->w_at;
      shorts cell_at = all_shorts(KEY_POSITIONS - 1 - (int32_t)steps);
      for (int64_t w = looked; w < k->w; w++, cell += k->w_step) {
        for (int j = 0; j < vectors; j++) {
          const element *from = cell + (int64_t)j * TWO_VECTORS;
          const shorts x = load_keys(from, TWO_VECTORS);
          __builtin_prefetch((const void *)((uintptr_t)from + SOON), 0, 2);
          if (positions) at[j] = choose_greater(x, v[j], cell_at, at[j]);
          v[j] = greater_short(x, v[j]);
        }
        cell_at = sub_shorts(cell_at, step);
      }
    }
}

/* Is there a -0 in some vectors of TWO_VECTORS channels of a window? */
static inline SPECIALISED bool has_minus_zero_in_window(const struct window *k, int64_t c,
                                                        const int vectors) {
  shorts greatest = all_shorts(0);
  for (int64_t d = 0; d < k->d; d++)
    for (int64_t h = 0; h < k->h; h++) {
      const element *cell = k->first + c + d * k->d_step + h * k->h_step;
      for (int64_t w = 0; w < k->w; w++, cell += k->w_step)
        for (int64_t j = 0; j < vectors; j++)
          greatest = look_for_minus_zero(greatest, cell + j * TWO_VECTORS, TWO_VECTORS);
    }
  return was_minus_zero(greatest);
}

/* Finds the results of some vectors of TWO_VECTORS channels, as make_vectors does. */
static inline SPECIALISED void make_by_keys(const struct channels *k, const struct window *w,
                                            int64_t c, const struct place *to, int64_t i,
                                            const int vectors, const int index_bytes) {
  const int64_t channels = (int64_t)vectors * TWO_VECTORS;
  const ints origin = all_i(w->at + KEY_POSITIONS - 1);
  shorts v[KEYS_AT_ONCE], at[KEYS_AT_ONCE];
  struct doubts doubts = no_doubts();
  find_keys(w, c, v, at, vectors, index_bytes > 0);
  for (int j = 0; j < vectors; j++) {
    const ints low = join_low(v[j], at[j]), high = join_high(v[j], at[j]);
    put_keys(to, i + (int64_t)j * TWO_VECTORS, low, origin, index_bytes, &doubts);
    put_keys(to, i + (int64_t)j * TWO_VECTORS + LANES, high, origin, index_bytes, &doubts);
  }
  if (__builtin_expect(nowhere(doubts.zero) && !has_nan(&doubts), 1)) return;
  if (!has_nan(&doubts) && !has_minus_zero_in_window(w, c, vectors)) return;
  for (int64_t j = 0; j < channels; j += LANES)
    make_vectors(k, w, c + j, to, i + j, 1, index_bytes);
}

/* make_channels with keys, for TWO_VECTORS channels or more. */
static inline SPECIALISED void make_channels_by_keys(const struct channels *k,
                                                     const struct window *w, struct pg_range c,
                                                     const struct place *to, int64_t i,
                                                     const int index_bytes) {
  const int64_t at_once = (int64_t)KEYS_AT_ONCE * TWO_VECTORS;
  i -= c.begin;
  for (; c.end - c.begin >= at_once; c.begin += at_once)
    make_by_keys(k, w, c.begin, to, i + c.begin, KEYS_AT_ONCE, index_bytes);
  for (; c.begin < c.end; c.begin += TWO_VECTORS) {
    c.begin = least(c.begin, c.end - TWO_VECTORS);
    make_by_keys(k, w, c.begin, to, i + c.begin, 1, index_bytes);
  }
}

/* --- Outputs --- */

/* Finds the results of the channels [begin, end) of an output, LANES or more of them, and puts them
 * in their place from the i-th on.  The last vector may have some channels once more. */
static inline SPECIALISED void make_channels(const struct channels *k, const struct window *w,
                                             struct pg_range c, const struct place *to, int64_t i,
                                             const int index_bytes) {
  if (!ELEMENT_IS_FLOAT && k->keys && c.end - c.begin >= TWO_VECTORS) {
    make_channels_by_keys(k, w, c, to, i, index_bytes);
    return;
  }
  i -= c.begin;
  for (; c.end - c.begin >= CHANNELS_AT_ONCE; c.begin += CHANNELS_AT_ONCE)
    make_vectors(k, w, c.begin, to, i + c.begin, AT_ONCE, index_bytes);
  if (c.end - c.begin >= TWO_VECTORS) {
    make_vectors(k, w, c.begin, to, i + c.begin, 2, index_bytes);
    c.begin += TWO_VECTORS;
  }
  for (; c.begin < c.end; c.begin += LANES) {
    c.begin = least(c.begin, c.end - LANES);
    make_vectors(k, w, c.begin, to, i + c.begin, 1, index_bytes);
  }
}

static void make_output(const struct channels *k, const struct window *w, struct pg_range c,
                        const struct place *to, int64_t i) {
  if (k->args->index_bytes == 8)
    make_channels(k, w, c, to, i, 8);
  else if (k->args->index_bytes == 4)
    make_channels(k, w, c, to, i, 4);
  else
    make_channels(k, w, c, to, i, 0);
}

/* --- Rows --- */

/* A row of outputs: its window, which moves along it, and the offsets of its first output. */
struct row {
  struct window window;
  const element *cells; /* of the first row that windows have */
  int32_t at;           /* the position of that row */
  int64_t out, index;
};

static struct row row_of(const struct channels *k, int64_t n, int64_t od, int64_t oh) {
  const struct pg_max_forward *a = k->args;
  const struct pg_pooling *p = k->pool;
  const struct pg_taps d = pg_window_taps(&p->d, od), h = pg_window_taps(&p->h, oh);
  const int64_t *s = a->in_strides.of, w_step = p->w.kernel == 0 ? 1 : p->w.dilation;
  struct row row = {
      .cells = (const element *)a->in + pg_offset(&a->in_strides, n, 0, d.first, h.first, 0),
      .at = (int32_t)((d.first * p->h.in + h.first) * p->w.in)};
  row.window = (struct window){.d = d.count,
                               .h = h.count,
                               .d_step = d.step * s[PG_D],
                               .h_step = h.step * s[PG_H],
                               .w_step = w_step * s[PG_W],
                               .d_at = (int32_t)(d.step * p->h.in * p->w.in),
                               .h_at = (int32_t)(h.step * p->w.in),
                               .w_at = (int32_t)w_step,
                               .scratch = k->scratch};
  row.out = pg_offset(&a->out_strides, n, 0, od, oh, k->w.begin);
  row.index = pg_offset(&a->index_strides, n, 0, od, oh, k->w.begin);
  return row;
}

/* Moves the window to the i-th output of the row. */
static void move_window(const struct channels *k, struct row *row, int64_t i) {
  const struct taps *t = &k->taps[i];
  row->window.first = row->cells + t->first * k->args->in_strides.of[PG_W];
  row->window.at = row->at + t->first;
  row->window.w = t->count;
}

/* One output in pieces, the last of which has LANES channels or more. */
static void make_in_pieces(struct channels *k, struct row *row, int64_t i) {
  const int64_t *out = k->args->out_strides.of, *index = k->args->index_strides.of;
  move_window(k, row, i);
  for (int64_t c = k->c.begin, count; c < k->c.end; c += count) {
    const int64_t left = k->c.end - c;
    count = least(left, PIECE);
    if (left > count && left - count < LANES) count -= CHANNELS_AT_ONCE;
    const struct place to =
        results_place(&k->results, row->out + i * out[PG_W] + c, row->index + i * index[PG_W] + c);
    make_output(k, &row->window, (struct pg_range){c, c + count}, &to, 0);
    results_advance(&k->results, count);
  }
}

static void make_row(struct channels *k, struct row *row) {
  const int64_t outputs = pg_length(k->w), channels = pg_length(k->c);
  const int64_t at_once = k->dense && channels == k->pool->c ? PIECE / channels : 0;
  if (at_once == 0) {
    for (int64_t i = 0; i < outputs; i++) make_in_pieces(k, row, i);
    return;
  }
  for (int64_t i = 0, count; i < outputs && !pg_is_stopped(k->scratch); i += count) {
    count = least(outputs - i, at_once);
    const struct place to =
        results_place(&k->results, row->out + i * channels, row->index + i * channels);
    for (int64_t j = 0; j < count; j++) {
      move_window(k, row, i + j);
      make_output(k, &row->window, k->c, &to, j * channels);
    }
    results_advance(&k->results, count * channels);
  }
}

/* --- The method --- */

static void set_width(struct channels *k, struct pg_range w) {
  if (k->w.begin == w.begin && k->w.end == w.end) return;
  k->w = w;
  for (int64_t i = 0; i < pg_length(w); i++) {
    const struct pg_taps taps = pg_window_taps(&k->pool->w, w.begin + i);
    k->taps[i] = (struct taps){(int32_t)taps.first, (int32_t)taps.count};
  }
}

static void channels_last_items(const void *args, int64_t begin, int64_t end,
                                struct pg_scratch *scratch) {
  const struct pg_task *task = args;
  struct channels *k = scratch->room;
  const struct pg_pooling *p = &task->problem.facts.pool, grid = pg_output_grid(p);
  k->pool = p;
  k->keys = keys_fit(p);
  k->args = &task->problem.args.max_forward;
  k->scratch = scratch;
  k->dense = k->args->out_strides.of[PG_W] == p->c &&
             (k->args->index_bytes == 0 || k->args->index_strides.of[PG_W] == p->c);
  k->w = (struct pg_range){0, 0};
  results_begin(&k->results, &task->problem);
  for (int64_t item = begin; item < end; item++) {
    const struct pg_box b = pg_box_of(&task->choice.tiling, &grid, item);
    set_width(k, b.w);
    k->c = (struct pg_range){b.first % p->c, b.first % p->c + least(b.planes, p->c)};
    for (int64_t od = b.d.begin; od < b.d.end; od++)
      for (int64_t oh = b.h.begin; oh < b.h.end && !pg_is_stopped(scratch); oh++) {
        struct row row = row_of(k, b.first / p->c, od, oh);
        make_row(k, &row);
      }
  }
  results_end(&k->results);
}

/* How many channels an item has: all of them, unless one output of these reads much.  No item has
 * fewer than LANES. */
static int64_t channels_at_once(int64_t c, int64_t per_output) {
  const int64_t unit = CHANNELS_AT_ONCE, wanted = ITEM_BYTES / most(1, per_output / c);
  int64_t channels = most(1, wanted / unit) * unit;
  while (channels < c && c % channels > 0 && c % channels < LANES) channels += unit;
  return least(c, channels);
}

static bool channels_last_fits(const struct pg_problem *problem, struct pg_tiling *tiling) {
  const struct pg_facts *f = &problem->facts;
  const struct pg_pooling grid = pg_output_grid(&f->pool);
  if (!f->neighbours || f->pool.c < LANES || f->cells > INT32_MAX || f->outputs == 0 ||
      f->planes == 0)
    return false;
  const int64_t per_output = most(1, f->grad_in_bytes / pg_mul_or_most(f->pool.n, f->outputs));
  const int64_t outputs = most(1, ITEM_BYTES / per_output);
  struct pg_tiling t = {
      .interleaved = true, .planes = channels_at_once(f->pool.c, per_output), .d = 1};
  t.w = least(grid.w.in, least(WIDTH, most(outputs, 8)));
  t.h = t.w < grid.w.in ? 1 : least(grid.h.in, most(1, outputs / t.w));
  *tiling = pg_tile_boxes(&grid, &t);
  return true;
}

const struct pg_cpu_method VARIANT(max_forward_channels_last) = {
    .name = "channels_last", .fits = channels_last_fits, .run = channels_last_items};
