/* SPDX-License-Identifier: Apache-2.0 */
/* Average-backward for small planes that follow each other in memory: LANES of them are a bundle,
 * and each has a lane of its own.
 *
 * The outputs of a bundle are transposed, so that a vector has the same output of every plane.  All
 * of them have the same divisor, and lie in the windows of the same cells.  So whatever the windows
 * are, a sum is a sum of whole vectors: along W, along H and along D one after the other, once for
 * all cells that lie in the same windows.  The sums of the cells are rounded and transposed back.
 *
 * Where a few channels are neighbours, a block is all channels of one n; else it is a plane. */
#include "cpu/kernels/avg_quotients.h"

enum {
  WORD = sizeof(float) / sizeof(element), /* elements that are as long as a float */
  /* The most elements of a block, of its outputs, and of the sums along W and H. */
  BLOCK = 2048 + 1024 * WORD,
  TURN = LANES * WORD, /* elements of each block that are transposed at once */
  BUNDLE_ITEM = 8192,  /* elements of an item, about */
  WIDEST = 16          /* the most lanes of any instruction set: all choose the same method */
};

/* The windows of an axis: bands of cells that lie in the same ones. */
struct bands {
  int64_t outputs, count;
  bool same;              /* each band lies in a window of its own */
  int32_t first[BLOCK];   /* the first output in whose window a band lies */
  int32_t windows[BLOCK]; /* and how many there are */
  int32_t of_cell[BLOCK]; /* the band of a cell; -1: it lies in no window */
};

struct reciprocal {
  float divisor, high, low; /* as in struct divisor_run */
};

/* Lines of a finished bundle.  They are copied to gradInput while the next one is transposed, so
 * that computing and storing overlap. */
struct pending {
  char *to;
  const char *from;
  int64_t lines;
};

struct bundles {
  const struct pg_avg_backward *args;
  bool nontemporal;
  int64_t unit, blocks, outputs, cells; /* outputs and cells: elements of a block */
  struct pg_box_cover cover;
  struct bands d, h, w;
  struct reciprocal by[BLOCK + LANES]; /* of the outputs of a block */
  int32_t of_row[BLOCK];               /* which sum of its row each element of gradInput is */
  int32_t of_block[BLOCK + TURN];      /* and which of its block */
  _Alignas(LINE) float vectors[2][(BLOCK + LANES) * LANES];
  struct pending pending;
  int which; /* of the blocks is being filled */
  _Alignas(LINE) element block[2][BLOCK * LANES + TURN + LINE / sizeof(element)];
};
_Static_assert(sizeof(struct bundles) <= PG_SCRATCH_BYTES, "bundles need more scratch");

/* --- Writing lines --- */

/* Writes some of the pending lines. */
static inline void write_pending(struct pending *p, int64_t lines, bool nontemporal) {
  lines = least(lines, p->lines);
  if (lines == 0) return;
  if (nontemporal)
    for (int64_t i = 0; i < lines; i++)
      store_line_nontemporal(p->to + i * LINE, p->from + i * LINE);
  else
    for (int64_t i = 0; i < lines; i++) memcpy(p->to + i * LINE, p->from + i * LINE, LINE);
  p->to += lines * LINE;
  p->from += lines * LINE;
  p->lines -= lines;
}

/* --- Dividing --- */

static inline floats divided(floats g, const struct reciprocal *by) {
  const floats divisor = all(by->divisor), high = all(by->high), low = all(by->low);
  if (by->high == 0) return quotient_of(g, divisor, high, low, BY_ONE);
  if (by->low == 0) return quotient_of(g, divisor, high, low, BY_RECIPROCAL);
  return quotient_of(g, divisor, high, low, BY_PRODUCTS);
}

/* Divides the outputs of so many blocks.  What is read behind the outputs of a block belongs to the
 * next one. */
static void divide_bundle(const struct bundles *k, int64_t first, int64_t count, float *to) {
  const element *grad = (const element *)k->args->grad_out + first * k->outputs;
  const int64_t left = (k->blocks - first) * k->outputs; /* elements that may be read */
  for (int64_t p = 0; p < k->outputs; p += LANES) {
    floats v[LANES];
    for (int64_t i = 0; i < LANES; i++) {
      const int64_t at = i * k->outputs + p;
      __builtin_prefetch(grad + at + LANES * k->outputs);
      if (i < count)
        v[i] = left - at >= LANES ? load_elements(grad + at) : load_part(grad + at, left - at);
      else
        v[i] = zeros();
    }
    transpose(v);
    for (int64_t i = 0; i < LANES; i++)
      store_f32(to + (p + i) * LANES, divided(v[i], &k->by[p + i]));
  }
}

/* --- Adding --- */

/* Adds `windows` vectors, the distance of which is `next`; so many times, in steps. */
struct additions {
  int64_t next, times, from_step, to_step;
};

static inline __attribute__((always_inline)) void add_windows(const struct additions *a,
                                                              const int64_t windows,
                                                              const float *from, float *to) {
  for (int64_t i = 0; i < a->times; i++, from += a->from_step, to += a->to_step) {
    floats sum = load_f32(from);
    for (int64_t j = 1; j < windows; j++) sum = add(sum, load_f32(from + j * a->next));
    store_f32(to, sum);
  }
}

static inline void add_band(const struct additions *a, int64_t windows, const float *from,
                            float *to) {
  if (windows == 1)
    add_windows(a, 1, from, to);
  else if (windows == 2)
    add_windows(a, 2, from, to);
  else if (windows == 3)
    add_windows(a, 3, from, to);
  else
    add_windows(a, windows, from, to);
}

/* Adds along an axis: there are `outer` times its outputs, each of `inner` vectors. */
static void add_along(const struct bands *b, int64_t outer, int64_t inner, const float *from,
                      float *to) {
  const int64_t from_pitch = b->outputs * inner * LANES, to_pitch = b->count * inner * LANES;
  struct additions a = {.next = inner * LANES, inner, LANES, LANES};
  const bool long_runs = inner >= outer;
  if (!long_runs) a = (struct additions){inner * LANES, outer, from_pitch, to_pitch};
  for (int64_t i = 0; i < b->count; i++)
    for (int64_t j = 0; j < (long_runs ? outer : inner); j++) {
      const int64_t from_at = long_runs ? j * from_pitch : j * LANES;
      const int64_t to_at = long_runs ? j * to_pitch : j * LANES;
      add_band(&a, b->windows[i], from + b->first[i] * a.next + from_at, to + i * a.next + to_at);
    }
}

/* --- Writing --- */

/* Makes the lines of a bundle pending, and copies what is no whole line. */
static void make_pending(struct pending *p, char *to, const char *from, int64_t bytes) {
  const int64_t head = least(bytes, (LINE - (int64_t)((uintptr_t)to % LINE)) % LINE);
  const int64_t tail = (bytes - head) % LINE;
  memcpy(to, from, (size_t)head);
  memcpy(to + bytes - tail, from + bytes - tail, (size_t)tail);
  *p = (struct pending){to + head, from + head, (bytes - head) / LINE};
}

static inline floats word_of(const float *sums, const int32_t *sum) {
  const floats even = load_f32(sums + (int64_t)sum[0] * LANES);
  return WORD == 1 ? even : words_of(even, load_f32(sums + (int64_t)sum[1] * LANES));
}

/* Rounds the sums of all cells and transposes them.  From right to left, so that what a vector
 * stores behind its block is overwritten by the next block, or later. */
static void spread(struct bundles *k, const float *sums, int64_t count, element *to) {
  const int64_t turns = pg_ceil_div(k->cells, TURN), share = k->pending.lines / turns + 1;
  for (int64_t p = (turns - 1) * TURN; p >= 0; p -= TURN) {
    floats v[LANES];
    for (int64_t i = 0; i < LANES; i++) v[i] = word_of(sums, k->of_block + p + i * WORD);
    transpose(v);
    for (int64_t i = 0; i < count; i++) memcpy(to + i * k->cells + p, &v[i], sizeof v[i]);
    write_pending(&k->pending, share, k->nontemporal);
  }
}

static void make_bundle(struct bundles *k, int64_t first, int64_t count) {
  float *sums = k->vectors[0], *room = k->vectors[1];
  const struct bands *axes[] = {&k->w, &k->h, &k->d};
  int64_t outer = k->d.outputs * k->h.outputs, inner = k->unit;
  divide_bundle(k, first, count, sums);
  for (int i = 0; i < 3; i++) {
    if (!axes[i]->same) {
      add_along(axes[i], outer, inner, sums, room);
      float *const sums_before = sums;
      sums = room;
      room = sums_before;
    }
    inner *= axes[i]->count;
    if (i == 0) outer = k->d.outputs;
    if (i == 1) outer = 1;
  }
  store_f32(sums + inner * LANES, zeros()); /* of cells that lie in no window */
  char *to = (char *)((element *)k->args->grad_in + first * k->cells);
  k->which = 1 - k->which;
  element *from = k->block[k->which] + (uintptr_t)to % LINE / sizeof(element);
  spread(k, sums, count, from);
  write_pending(&k->pending, k->pending.lines, k->nontemporal);
  make_pending(&k->pending, to, (const char *)from, count * k->cells * (int64_t)sizeof(element));
}

/* --- Tables --- */

static void make_bands(struct bands *b, const struct pg_cover *m, int64_t outputs) {
  const int32_t begin = (int32_t)m->outputs.begin; /* outputs before it hold no cell */
  int64_t n = 0;
  b->outputs = outputs;
  b->same = true;
  for (int64_t i = 0; i < pg_length(m->cells); i++) {
    if (m->count[i] > 0 && !in_same_windows(m, i)) {
      b->first[n] = begin + m->first[i];
      b->windows[n] = m->count[i];
      b->same = b->same && b->first[n] == n && m->count[i] == 1;
      n++;
    }
    b->of_cell[i] = m->count[i] > 0 ? (int32_t)n - 1 : -1;
  }
  b->count = n;
  b->same = b->same && n == b->outputs;
}

/* Says which sum each element of a block is. */
static void make_sums(struct bundles *k) {
  const struct pg_pooling *p = &k->args->pool;
  const int32_t none = (int32_t)(k->d.count * k->h.count * k->w.count * k->unit);
  const int64_t width = p->w.in * k->unit, row = k->w.count * k->unit;
  int32_t *to = k->of_block, *of_row = k->of_row;
  for (int64_t i = 0; i < width; i++)
    of_row[i] = k->w.of_cell[i / k->unit] < 0
                    ? -1
                    : (int32_t)(k->w.of_cell[i / k->unit] * k->unit + i % k->unit);
  for (int64_t d = 0; d < p->d.in; d++)
    for (int64_t h = 0; h < p->h.in; h++, to += width) {
      const int32_t first = (int32_t)((k->d.of_cell[d] * k->h.count + k->h.of_cell[h]) * row);
      const bool in_windows = k->d.of_cell[d] >= 0 && k->h.of_cell[h] >= 0;
      for (int64_t i = 0; i < width; i++)
        to[i] = in_windows && of_row[i] >= 0 ? first + of_row[i] : none;
    }
  for (int i = 0; i < TURN; i++) to[i] = none;
}

static struct reciprocal reciprocal_of(float divisor) {
  const struct divisor_run run = one_divisor(&divisor, 0);
  return (struct reciprocal){divisor, run.high, run.low};
}

/* Makes the reciprocals of a block's divisors, of which most are the same as a recent one. */
static void make_reciprocals(struct bundles *k, const struct pg_pooling *p) {
  enum { RECENT = 16 };
  const struct pg_avg_backward *a = k->args;
  struct reciprocal recent[RECENT], *to = k->by;
  for (int i = 0; i < RECENT; i++) recent[i].divisor = 0;
  for (int64_t d = 0; d < p->d.out; d++)
    for (int64_t h = 0; h < p->h.out; h++) {
      const int64_t outer = extent_of(a, &p->d, d) * extent_of(a, &p->h, h);
      for (int64_t w = 0; w < p->w.out; w++) {
        const int64_t counted = outer * extent_of(a, &p->w, w);
        const float divisor = (float)(a->divisor != 0 ? a->divisor : counted);
        struct reciprocal *r = &recent[counted % RECENT];
        if (r->divisor != divisor) *r = reciprocal_of(divisor);
        for (int64_t c = 0; c < k->unit; c++) *to++ = *r;
      }
    }
  for (int i = 0; i < LANES; i++) to[i] = (struct reciprocal){1, 1, 0};
}

/* --- The method --- */

static void begin_bundles(struct bundles *k, const struct pg_task *task) {
  const struct pg_facts *f = &task->problem.facts;
  const struct pg_pooling *p = &f->pool;
  const bool interleaved = task->choice.tiling.interleaved;
  const struct pg_box plane = {.d = {0, p->d.in}, .h = {0, p->h.in}, .w = {0, p->w.in}};
  k->args = &task->problem.args.avg_backward;
  k->nontemporal = pg_prefers_nontemporal(f->grad_in_bytes);
  k->unit = interleaved ? p->c : 1;
  k->blocks = f->planes / k->unit;
  k->outputs = f->outputs * k->unit;
  k->cells = f->cells * k->unit;
  k->pending.lines = 0;
  k->which = 0;
  pg_box_cover_begin(&k->cover);
  pg_box_cover_make(&k->cover, p, &plane, 0);
  make_bands(&k->d, &k->cover.d, p->d.out);
  make_bands(&k->h, &k->cover.h, p->h.out);
  make_bands(&k->w, &k->cover.w, p->w.out);
  make_sums(k);
  make_reciprocals(k, p);
}

static void bundles_items(const void *args, int64_t begin, int64_t end,
                          struct pg_scratch *scratch) {
  const struct pg_task *task = args;
  struct bundles *k = scratch->room;
  begin_bundles(k, task);
  for (int64_t item = begin; item < end && !pg_is_stopped(scratch); item++) {
    const struct pg_box box = pg_box_of(&task->choice.tiling, &task->problem.facts.pool, item);
    const int64_t last = (box.first + box.planes) / k->unit;
    for (int64_t i = box.first / k->unit; i < last; i += LANES)
      make_bundle(k, i, least(LANES, last - i));
  }
  write_pending(&k->pending, k->pending.lines, k->nontemporal);
  if (k->nontemporal) fence_nontemporal();
}

/* Is it faster than the other methods (measured)?  Bundles must be nearly full, and enough for all
 * threads if rows are so long that other methods fill vectors with them.  avg_columns.c is faster
 * at few windows, unless many rows of cells lie in the same ones. */
static bool bundles_are_faster(const struct pg_facts *f, int64_t unit) {
  enum { COLUMN = 12, FEW_WINDOWS = 5 };
  const struct pg_axis *h = &f->pool.h, *w = &f->pool.w;
  const int64_t windows = f->d_windows + f->h_windows + f->w_windows;
  const int64_t blocks = f->planes / unit, bundles = pg_ceil_div(blocks, WIDEST);
  if (unit == 1 && windows <= FEW_WINDOWS && w->in >= COLUMN && h->in / 4 < h->out) return false;
  return bundles >= (w->in / 2 >= WIDEST ? 16 : 2) && 4 * blocks >= 3 * bundles * WIDEST;
}

static bool has_room(const struct pg_pooling *p, int64_t unit) {
  const struct pg_axis *d = &p->d, *h = &p->h, *w = &p->w;
  if (d->in > PG_BOX_ROWS || h->in > PG_BOX_ROWS) return false;
  const int64_t depth = most(d->in, d->out), height = most(h->in, h->out);
  const int64_t slice = pg_mul_or_most(height, pg_mul_or_most(most(w->in, w->out), unit));
  return pg_mul_or_most(depth, slice) <= BLOCK;
}

static bool bundles_fits(const struct pg_problem *problem, struct pg_tiling *tiling) {
  const struct pg_facts *f = &problem->facts;
  const struct pg_pooling *p = &f->pool;
  const struct pg_avg_backward *a = &problem->args.avg_backward;
  const bool interleaved = is_interleaved(a);
  const int64_t unit = interleaved ? p->c : 1, blocks = f->planes / unit;
  if (f->outputs == 0 || f->largest_divisor == INT64_MAX || unit >= WIDEST) return false;
  if (!bundles_are_faster(f, unit) || !has_room(p, unit)) return false;
  if (!layout_of(&a->out_strides, p, true, interleaved).all) return false;
  if (!layout_of(&a->in_strides, p, false, interleaved).all) return false;
  const int64_t enough = BUNDLE_ITEM / (f->cells * unit * LANES); /* bundles of an item */
  const struct pg_tiling t = {.interleaved = interleaved,
                              .planes = LANES * unit * most(1, least(enough, blocks / LANES / 16)),
                              .d = p->d.in,
                              .h = p->h.in,
                              .w = p->w.in};
  *tiling = pg_tile_boxes(p, &t);
  return true;
}

const struct pg_cpu_method VARIANT(avg_bundles) = {
    .name = "bundles", .fits = bundles_fits, .run = bundles_items};
