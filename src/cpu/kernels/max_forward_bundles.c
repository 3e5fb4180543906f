/* SPDX-License-Identifier: Apache-2.0 */
/* Max-forward for small planes that follow each other in memory.
 *
 * A bundle is LANES planes, each of which has a lane: their cells are transposed, so that a vector
 * has the same cell of all planes.  Then windows of any kind are compared in full vectors, first
 * along W, once for all windows that share a row, and then along H and D.  Which cells and rows
 * these are is in two tables; a window that has fewer than others looks several times at its last
 * one.  LANES outputs are transposed back at once.  Elements of 16 bits are compared as keys, whose
 * positions are those in the plane. */
#include "core/checked.h"
#include "cpu/kernels/max_forward_keys.h"

enum {
  MOST = 1024,          /* cells of a plane, outputs, or windows along W of all rows */
  TABLE = 8192,         /* entries of a table */
  ITEM_BYTES = 32 << 10 /* of cells that an item reads, about */
};

struct bundles {
  const struct pg_scratch *scratch;
  const struct pg_pooling *pool;
  const struct pg_max_forward *args;
  int64_t cells, outputs, rows; /* of a plane; rows of cells */
  int64_t w_taps, row_taps;     /* the most columns and rows of a window */
  int32_t w_tap[TABLE];         /* the columns of the windows along W */
  int32_t row_tap[TABLE];       /* the rows of the windows along D and H, times outputs along W */
  struct results results;
  _Alignas(LINE) floats cell[MOST + LANES];
  _Alignas(LINE) struct greatest row[MOST];
  _Alignas(LINE) element out[(MOST + 2) * LANES + LINE];
  _Alignas(LINE) int64_t index[(MOST + 2) * LANES + LINE];
};
_Static_assert(sizeof(struct bundles) <= PG_SCRATCH_BYTES, "bundles need more scratch");

/* --- Cells --- */

/* Transposes `count` cells of each plane, from the i-th on.  Says where there are NaNs. */
static inline SPECIALISED truths transpose_cells(struct bundles *k, const element *in, int64_t i,
                                                 int64_t count, int64_t planes) {
  const int64_t next = LANES * k->cells * (int64_t)sizeof *in; /* bytes to the next bundle */
  floats v[LANES];
  truths strange = none();
  for (int64_t j = 0; j < LANES; j++) {
    const element *p = in + least(j, planes - 1) * k->cells + i;
    v[j] = count == LANES ? load_elements(p) : load_part(p, count);
    __builtin_prefetch((const void *)((uintptr_t)p + (uintptr_t)next), 0, 2);
  }
  for (int64_t j = 0; j < LANES; j += 2) strange = either(strange, is_unordered(v[j], v[j + 1]));
  transpose(v);
  for (int64_t j = 0; j < LANES; j++) k->cell[i + j] = v[j];
  return strange;
}

/* The same for keys of up to TWO_VECTORS cells, two of which are transposed as one. */
static inline SPECIALISED void transpose_keys(struct bundles *k, const element *in, int64_t i,
                                              int64_t count, int64_t planes) {
  const int64_t next = LANES * k->cells * (int64_t)sizeof *in;
  floats v[LANES];
  for (int64_t j = 0; j < LANES; j++) {
    const element *p = in + least(j, planes - 1) * k->cells + i;
    const shorts key = load_keys(p, count);
    memcpy(&v[j], &key, sizeof key);
    __builtin_prefetch((const void *)((uintptr_t)p + (uintptr_t)next), 0, 2);
  }
  transpose(v);
  for (int64_t j = 0; j < LANES; j++) {
    const int32_t at = KEY_POSITIONS - 1 - (int32_t)(i + 2 * j);
    k->cell[i + 2 * j] = as_floats(add_i(as_ints(even_bf16(v[j])), all_i(at)));
    k->cell[i + 2 * j + 1] = as_floats(add_i(as_ints(odd_bf16(v[j])), all_i(at - 1)));
  }
}

static void read_keys(struct bundles *k, const element *in, int64_t planes) {
  int64_t i = 0;
  for (; i + TWO_VECTORS <= k->cells; i += TWO_VECTORS)
    transpose_keys(k, in, i, TWO_VECTORS, planes);
  if (i < k->cells && i > 0)
    transpose_keys(k, in, k->cells - TWO_VECTORS, TWO_VECTORS, planes);
  else if (i == 0)
    transpose_keys(k, in, 0, k->cells, planes);
}

static bool read_bundle(struct bundles *k, const element *in, int64_t planes) {
  truths strange = none();
  int64_t i = 0;
  for (; i + LANES <= k->cells; i += LANES)
    strange = either(strange, transpose_cells(k, in, i, LANES, planes));
  if (i < k->cells && i > 0)
    strange = either(strange, transpose_cells(k, in, k->cells - LANES, LANES, planes));
  else if (i == 0)
    strange = transpose_cells(k, in, 0, k->cells, planes);
  return nowhere(strange);
}

/* --- Windows --- */

/* Looks at cells of which is known whether there are NaNs among them, or at keys. */
static inline SPECIALISED void look_at_cell(struct greatest *g, floats x, ints at,
                                            const enum care care) {
  if (care == CAREFUL) {
    replace(g, replaces_carefully(g, x, at), x, at);
    return;
  }
  if (care == KEYS) {
    g->v = as_floats(greater_i(as_ints(x), as_ints(g->v)));
    return;
  }
  if (care == POSITIONS) g->at = choose_i(is_greater(x, g->v), at, g->at);
  g->v = greater_of(x, g->v);
}

/* Compares the cells of a window in one row, the first of which is `row`; `taps`: how many, if that
 * is known. */
static inline SPECIALISED struct greatest compare_cells(const struct bundles *k, int32_t row,
                                                        const int32_t *tap, const int taps,
                                                        const enum care care) {
  const int64_t count = taps > 0 ? taps : k->w_taps;
  struct greatest g = {k->cell[row + tap[0]], all_i(row + tap[0])};
  for (int64_t i = 1; i < count; i++)
    look_at_cell(&g, k->cell[row + tap[i]], all_i(row + tap[i]), care);
  return g;
}

static inline SPECIALISED void compare_rows(struct bundles *k, const int taps,
                                            const enum care care) {
  const int32_t width = (int32_t)k->pool->w.in;
  const int64_t outputs = k->pool->w.out, count = taps > 0 ? taps : k->w_taps;
  struct greatest *to = k->row;
  for (int32_t row = 0; row < (int32_t)k->rows; row++) {
    const int32_t *tap = k->w_tap;
    for (int64_t i = 0; i < outputs; i++, tap += count) {
      const struct greatest g = compare_cells(k, row * width, tap, taps, care);
      to->v = g.v;
      if (care != KEYS) to->at = g.at;
      to++;
    }
  }
}

/* Compares what was found in the rows of a window. */
static inline SPECIALISED struct greatest look_at_window(const struct bundles *k, int64_t ow,
                                                         const int32_t *tap, const enum care care) {
  const struct greatest *first = &k->row[ow + tap[0]];
  struct greatest g = {first->v, care == KEYS ? all_i(0) : first->at};
  for (int64_t i = 1; i < k->row_taps; i++) {
    const struct greatest *x = &k->row[ow + tap[i]];
    look_at_cell(&g, x->v, care == KEYS ? all_i(0) : x->at, care);
  }
  return g;
}

/* --- Results --- */

static inline SPECIALISED void put_values(const struct bundles *k, element *to, floats v[LANES]) {
  transpose(v);
  for (int64_t j = 0; j < LANES; j++) store_packed(to + j * k->outputs, pack_exact(v[j]));
}

static inline SPECIALISED void put_positions(struct bundles *k, int64_t i, floats at[LANES],
                                             const int index_bytes) {
  transpose(at);
  for (int64_t j = 0; j < LANES; j++) {
    if (index_bytes == 4) store_i32((int32_t *)k->index + i + j * k->outputs, as_ints(at[j]));
    if (index_bytes == 8) store_i64(k->index + i + j * k->outputs, as_ints(at[j]));
  }
}

static inline SPECIALISED void put_by_keys(struct bundles *k, int64_t i, floats key[LANES],
                                           const int index_bytes, struct doubts *doubts) {
  const struct place to = {k->out, k->index};
  transpose(key);
  for (int64_t j = 0; j < LANES; j++)
    put_keys(&to, i + j * k->outputs, as_ints(key[j]), all_i(KEY_POSITIONS - 1), index_bytes,
             doubts);
}

/* Finds LANES outputs of each plane, or all if there are fewer, from the i-th on. */
static inline SPECIALISED void make_outputs(struct bundles *k, int64_t i, const int index_bytes,
                                            const enum care care, struct doubts *doubts) {
  const int64_t count = least(k->outputs, LANES), width = k->pool->w.out;
  const int32_t *tap = k->row_tap + i / width * k->row_taps;
  floats v[LANES], at[LANES];
  for (int64_t j = 0, ow = i % width; j < count; j++) {
    const struct greatest g = look_at_window(k, ow, tap, care);
    v[j] = g.v;
    at[j] = as_floats(g.at);
    if (++ow < width) continue;
    ow = 0;
    tap += k->row_taps;
  }
  for (int64_t j = count; j < LANES; j++) v[j] = at[j] = zeros();
  if (care == KEYS) {
    put_by_keys(k, i, v, index_bytes, doubts);
    return;
  }
  put_values(k, k->out + i, v);
  if (index_bytes != 0) put_positions(k, i, at, index_bytes);
}

static inline SPECIALISED struct doubts make_bundle(struct bundles *k, const int index_bytes,
                                                    const enum care care) {
  struct doubts doubts = no_doubts();
  int64_t i = 0;
  if (k->w_taps == 2 && care != CAREFUL)
    compare_rows(k, 2, care);
  else if (k->w_taps == 3 && care != CAREFUL)
    compare_rows(k, 3, care);
  else
    compare_rows(k, 0, care);
  for (; i + LANES <= k->outputs; i += LANES) make_outputs(k, i, index_bytes, care, &doubts);
  if (i < k->outputs) make_outputs(k, i == 0 ? 0 : k->outputs - LANES, index_bytes, care, &doubts);
  return doubts;
}

/* Makes a bundle of floats, unless there are NaNs in it. */
static bool make_by_floats(struct bundles *k, const element *in, int64_t planes) {
  const int64_t bytes = k->args->index_bytes;
  if (!read_bundle(k, in, planes)) return false;
  if (bytes == 8)
    make_bundle(k, 8, POSITIONS);
  else if (bytes == 4)
    make_bundle(k, 4, POSITIONS);
  else
    make_bundle(k, 0, VALUES);
  return true;
}

/* The same with keys, unless there are NaNs or -0. */
static bool make_by_keys(struct bundles *k, const element *in, int64_t planes) {
  const int64_t bytes = k->args->index_bytes;
  read_keys(k, in, planes);
  const struct doubts doubts = bytes == 8   ? make_bundle(k, 8, KEYS)
                               : bytes == 4 ? make_bundle(k, 4, KEYS)
                                            : make_bundle(k, 0, KEYS);
  if (has_nan(&doubts)) return false;
  return nowhere(doubts.zero) || !has_minus_zero(in, planes * k->cells);
}

/* Makes a bundle in which there are NaNs.  Their positions are needed in any case. */
static void make_bundle_carefully(struct bundles *k, const element *in, int64_t planes) {
  const int bytes = k->args->index_bytes;
  if (bytes == 8)
    make_bundle(k, 8, CAREFUL);
  else
    make_bundle(k, 4, CAREFUL);
  for (int64_t i = 0; i < planes * k->outputs; i++)
    copy_if_nan(&k->results, &k->out[i], in + i / k->outputs * k->cells,
                bytes == 8 ? k->index[i] : ((const int32_t *)k->index)[i]);
}

static void make_planes(struct bundles *k, int64_t first, int64_t planes) {
  const struct pg_max_forward *a = k->args;
  const element *in = (const element *)a->in + first * k->cells;
  const int64_t results = planes * k->outputs, bytes = a->index_bytes;
  const bool by_keys = !ELEMENT_IS_FLOAT && make_by_keys(k, in, planes);
  if (!by_keys && !make_by_floats(k, in, planes)) make_bundle_carefully(k, in, planes);
  slab_append(&k->results.out, (element *)a->out + first * k->outputs, (const char *)k->out,
              results * (int64_t)sizeof(element));
  if (bytes > 0)
    slab_append(&k->results.index, (char *)a->index + first * k->outputs * bytes,
                (const char *)k->index, results * bytes);
}

/* --- The method --- */

/* The i-th cell of a window, or its last. */
static int32_t tap_of(struct pg_taps taps, int64_t i) {
  return (int32_t)(taps.first + least(i, taps.count - 1) * taps.step);
}

static void set_tables(struct bundles *k) {
  const struct pg_pooling *p = k->pool;
  const int64_t d_taps = most_taps(&p->d), h_taps = most_taps(&p->h);
  int32_t *to = k->w_tap;
  k->rows = p->d.in * p->h.in;
  k->w_taps = most_taps(&p->w);
  k->row_taps = d_taps * h_taps;
  for (int64_t ow = 0; ow < p->w.out; ow++) {
    const struct pg_taps w = pg_window_taps(&p->w, ow);
    for (int64_t i = 0; i < k->w_taps; i++) *to++ = tap_of(w, i);
  }
  to = k->row_tap;
  for (int64_t od = 0; od < p->d.out; od++)
    for (int64_t oh = 0; oh < p->h.out; oh++) {
      const struct pg_taps d = pg_window_taps(&p->d, od), h = pg_window_taps(&p->h, oh);
      for (int64_t i = 0; i < k->row_taps; i++) {
        const int64_t row = tap_of(d, i / h_taps) * p->h.in + tap_of(h, i % h_taps);
        *to++ = (int32_t)(row * p->w.out);
      }
    }
}

static void bundles_items(const void *args, int64_t begin, int64_t end,
                          struct pg_scratch *scratch) {
  const struct pg_task *task = args;
  const struct pg_facts *f = &task->problem.facts;
  struct bundles *k = scratch->room;
  const int64_t size = task->choice.tiling.planes;
  k->scratch = scratch;
  k->pool = &f->pool;
  k->args = &task->problem.args.max_forward;
  k->cells = f->cells;
  k->outputs = f->outputs;
  set_tables(k);
  results_begin(&k->results, &task->problem);
  for (int64_t item = begin; item < end; item++) {
    const int64_t last = least(f->planes, (item + 1) * size);
    for (int64_t i = item * size; i < last && !pg_is_stopped(scratch); i += LANES)
      make_planes(k, i, least(LANES, last - i));
  }
  results_end(&k->results);
}

static bool tables_fit(const struct pg_pooling *p) {
  const int64_t rows = p->d.in * p->h.in, windows = p->d.out * p->h.out;
  return rows * p->w.out <= MOST && p->w.out * most_taps(&p->w) <= TABLE &&
         windows * most_taps(&p->d) * most_taps(&p->h) <= TABLE;
}

static bool bundles_fit(const struct pg_problem *problem, struct pg_tiling *tiling) {
  const struct pg_facts *f = &problem->facts;
  const struct pg_pooling grid = pg_output_grid(&f->pool);
  if (!f->in.all || !f->out.all || f->cells > MOST || f->outputs > MOST || f->outputs == 0 ||
      f->planes < LANES || !tables_fit(&f->pool))
    return false;
  const int64_t bytes = LANES * f->cells * (int64_t)sizeof(element);
  struct pg_tiling t = {.planes = LANES * most(1, ITEM_BYTES / bytes)};
  t.d = grid.d.in;
  t.h = grid.h.in;
  t.w = grid.w.in;
  *tiling = pg_tile_boxes(&grid, &t);
  return true;
}

const struct pg_cpu_method VARIANT(max_forward_bundles) = {
    .name = "bundles", .fits = bundles_fit, .run = bundles_items};
