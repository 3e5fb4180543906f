/* SPDX-License-Identifier: Apache-2.0 */
/* Max-forward for rows of cells that follow each other in memory: planar tensors, and tensors with
 * few channels that are neighbours.
 *
 * For a row of outputs, the rows of cells in its windows are first reduced to one: the greatest
 * cell of each column, and its position.  Vectors do that whatever the windows along W are.  Then
 * the columns of each window are compared.  Which columns the outputs of a vector need is in a
 * table:
 *
 *   lanes    0   1   2   3            outputs
 *   tap 0    0   2   4   6            columns, here of windows of 3 with stride 2
 *   tap 1    1   3   5   7
 *   tap 2    2   4   6   7            a window that has fewer columns looks twice at its last one
 *
 * So padding, dilation and adaptive windows need no code of their own.  LANES columns come from one
 * load if they follow each other, or by permutes, or one by one if they are far apart.
 *
 * Of equal cells the one with the lesser position counts, which is the first in row-major order.
 * Short rows are piled: several rows of outputs, also of several planes, count as one, so that
 * vectors are full.  Elements of 16 bits are compared as keys (max_forward_keys.h). */
#include "cpu/kernels/max_forward_tables.h"

enum {
  ITEM_BYTES = 32 << 10, /* of cells that an item reads, about */
  BAND = 32, /* rows of an item that has parts of rows: it makes a table, which many rows repay */
  SOON = 16 << 10 /* bytes further on are cells that are prefetched, into the second-level cache */
};

/* --- Columns --- */

static inline floats load_cells(const element *p, int64_t count) {
  return count == LANES ? load_elements(p) : load_part(p, count);
}

/* Prefetches cells that are needed soon. */
static inline void prefetch_cells(const element *p) {
  __builtin_prefetch((const void *)((uintptr_t)p + SOON), 0, 2);
}

/* Reduces the rows of a source to one in LANES columns or fewer, from the i-th element on.  `rows`:
 * how many rows there are, where that is known and d is 1. */
static inline SPECIALISED truths reduce_columns(struct max_rows *k, const struct source *s,
                                                int64_t i, int64_t count, int64_t to,
                                                const int rows, const enum care care) {
  const int64_t h_count = rows > 0 ? rows : s->h, d_count = rows > 0 ? 1 : s->d;
  const element *slice = s->first + i;
  struct greatest g = {load_cells(slice, count), all_i(s->at)};
  if (rows > 0 && rows < 3) prefetch_cells(slice); /* of more rows the first was read before */
  truths strange = care == VALUES ? is_nan_or_minus_zero(g.v) : none();
  if (care == POSITIONS && (rows == 1 || (rows == 0 && s->d * s->h == 1)))
    strange = is_unordered(g.v, g.v);
  int32_t slice_at = s->at;
  for (int64_t d = 0, h = 1; d < d_count; d++, h = 0, slice += s->d_step, slice_at += s->d_at) {
    const element *row = slice + h * s->h_step;
    ints at = all_i(slice_at + (int32_t)h * s->h_at);
    for (; h < h_count; h++, row += s->h_step) {
      const floats x = load_cells(row, count);
      prefetch_cells(row);
      const truths nan = look_at_next(&g, x, at, care);
      strange = either(strange, care == VALUES ? is_nan_or_minus_zero(x) : nan);
      if (care != VALUES) at = add_i(at, all_i(s->h_at));
    }
  }
  store_f32(k->value + to + i, g.v);
  if (care != VALUES) store_i32(k->position + to + i, add_i(g.at, load_i32(k->column + i)));
  return strange;
}

static inline SPECIALISED truths reduce_row(struct max_rows *k, const struct source *s, int64_t to,
                                            const int rows, const enum care care) {
  const int64_t width = k->width;
  truths strange = none();
  if (width < LANES) return reduce_columns(k, s, 0, s->goes_on ? LANES : width, to, rows, care);
  for (int64_t i = 0; i + LANES <= width; i += LANES) {
    if (rows == 0 && pg_is_stopped(k->scratch)) break;
    strange = either(strange, reduce_columns(k, s, i, LANES, to, rows, care));
  }
  if (width % LANES != 0)
    strange = either(strange, reduce_columns(k, s, width - LANES, LANES, to, rows, care));
  return strange;
}

/* Reduces the rows of cells of each row of the pile.  Says where something strange was. */
static inline SPECIALISED truths reduce_pile(struct max_rows *k, const enum care care) {
  truths strange = none();
  for (int64_t row = 0; row < k->rows; row++) {
    const struct source copy = k->source[row], *s = &copy; /* which stores cannot change */
    const int64_t to = row * k->pitch;
    if (care == CAREFUL || s->d > 1 || s->h > 3)
      strange = either(strange, reduce_row(k, s, to, 0, care));
    else if (s->h == 3)
      strange = either(strange, reduce_row(k, s, to, 3, care));
    else if (s->h == 2)
      strange = either(strange, reduce_row(k, s, to, 2, care));
    else
      strange = either(strange, reduce_row(k, s, to, 1, care));
  }
  return strange;
}

/* --- Columns by keys --- */

/* Reduces the rows of a source to keys in TWO_VECTORS columns or fewer, from the i-th element on;
 * `rows` as above. */
static inline SPECIALISED void reduce_to_keys(struct max_rows *k, const struct source *s, int64_t i,
                                              int64_t count, int64_t to, const int rows,
                                              const bool positions) {
  const int64_t h_count = rows > 0 ? rows : s->h, d_count = rows > 0 ? 1 : s->d;
  const element *slice = s->first + i;
  shorts v = load_keys(slice, count), at = all_shorts(positions ? -1 : 0);
  if (rows > 0 && rows < 3) prefetch_cells(slice);
  int32_t slice_at = -1;
  for (int64_t d = 0, h = 1; d < d_count; d++, h = 0, slice += s->d_step, slice_at -= s->d_at) {
    const element *row = slice + h * s->h_step;
    int32_t row_at = slice_at - (int32_t)h * s->h_at;
    for (; h < h_count; h++, row += s->h_step, row_at -= s->h_at) {
      const shorts x = load_keys(row, count);
      prefetch_cells(row);
      if (positions) at = choose_greater(x, v, all_shorts(row_at), at);
      v = greater_short(x, v);
    }
  }
  if (positions) at = sub_shorts(at, load_shorts(k->number + i));
  store_i32(k->position + to + i, join_low(v, at));
  store_i32(k->position + to + i + LANES, join_high(v, at));
}

static inline SPECIALISED void reduce_row_to_keys(struct max_rows *k, const struct source *s,
                                                  int64_t to, const int rows,
                                                  const bool positions) {
  const int64_t width = k->width;
  if (width < TWO_VECTORS) {
    reduce_to_keys(k, s, 0, s->goes_on ? TWO_VECTORS : width, to, rows, positions);
    return;
  }
  for (int64_t i = 0; i + TWO_VECTORS <= width; i += TWO_VECTORS) {
    if (rows == 0 && pg_is_stopped(k->scratch)) break;
    reduce_to_keys(k, s, i, TWO_VECTORS, to, rows, positions);
  }
  if (width % TWO_VECTORS != 0)
    reduce_to_keys(k, s, width - TWO_VECTORS, TWO_VECTORS, to, rows, positions);
}

/* Rows follow each other, so what one stores behind its last column the next one overwrites. */
static inline SPECIALISED void reduce_pile_to_keys(struct max_rows *k, const bool positions) {
  for (int64_t row = 0; row < k->rows; row++) {
    const struct source copy = k->source[row], *s = &copy;
    const int64_t to = row * k->pitch;
    if (s->d > 1 || s->h > 3)
      reduce_row_to_keys(k, s, to, 0, positions);
    else if (s->h == 3)
      reduce_row_to_keys(k, s, to, 3, positions);
    else if (s->h == 2)
      reduce_row_to_keys(k, s, to, 2, positions);
    else
      reduce_row_to_keys(k, s, to, 1, positions);
    const ints origin = all_i(s->at + (int32_t)k->columns.begin + KEY_POSITIONS - 1);
    for (int64_t i = 0; positions && i < k->outputs; i += LANES)
      store_i32(k->origin + row * k->outputs + i, origin);
  }
}

/* Is there a -0 among the cells of the pile? */
static bool has_minus_zero_in_pile(const struct max_rows *k) {
  for (int64_t row = 0; row < k->rows; row++) {
    const struct source *s = &k->source[row];
    for (int64_t d = 0; d < s->d; d++)
      for (int64_t h = 0; h < s->h; h++)
        if (has_minus_zero(s->first + d * s->d_step + h * s->h_step, k->width)) return true;
  }
  return false;
}

/* --- Windows --- */

/* The columns of one tap. */
static inline SPECIALISED struct greatest load_columns(const struct max_rows *k, int64_t tap,
                                                       const enum reach reach,
                                                       const enum care care) {
  const float *v = k->value + k->base[tap];
  const int32_t *p = k->position + k->base[tap];
  struct greatest x = {zeros(), all_i(0)};
  if (reach == ONE_LOAD) {
    if (care != KEYS) x.v = load_f32(v);
    if (care != VALUES) x.at = load_i32(p);
    return x;
  }
  const ints lane = load_i32(k->lane + tap * LANES);
  if (reach == ANYWHERE) {
    if (care != KEYS) x.v = pick(v, lane);
    if (care != VALUES) x.at = pick_i(p, lane);
    return x;
  }
  if (care != KEYS) x.v = permute_two(load_f32(v), load_f32(v + LANES), lane);
  if (care != VALUES) x.at = permute_two_i(load_i32(p), load_i32(p + LANES), lane);
  if (reach == TWO_VECTORS_WIDE) return x;
  const ints further = sub_i(lane, all_i(TWO_VECTORS));
  const truths near = is_less_i(lane, all_i(TWO_VECTORS));
  v += TWO_VECTORS;
  p += TWO_VECTORS;
  const ints beyond = choose_i(near, all_i(0), further);
  if (care != KEYS) x.v = choose(near, x.v, permute_two(load_f32(v), load_f32(v + LANES), beyond));
  if (care != VALUES)
    x.at = choose_i(near, x.at, permute_two_i(load_i32(p), load_i32(p + LANES), beyond));
  return x;
}

/* Compares the columns of a vector of outputs; `taps`: how many each has, if that is known. */
static inline SPECIALISED struct greatest compare_columns(const struct max_rows *k, int64_t vector,
                                                          const int taps, const enum reach reach,
                                                          const enum care care) {
  const int64_t count = taps > 0 ? taps : k->taps, first = vector * count;
  struct greatest g = load_columns(k, first, reach, care);
  for (int64_t tap = 1; tap < count; tap++) {
    const struct greatest x = load_columns(k, first + tap, reach, care);
    look_at_any(&g, x.v, x.at, care);
  }
  return g;
}

/* Says whether results by keys are right. */
static inline SPECIALISED bool make_outputs_of(struct max_rows *k, const struct place *to,
                                               const int taps, const int index_bytes,
                                               const enum care care) {
  struct doubts doubts = no_doubts();
  const int64_t vectors = pg_ceil_div(k->rows * k->outputs, LANES);
  for (int64_t i = 0; i < vectors; i++) {
    struct greatest g;
    if (k->reach[i] == ONE_LOAD)
      g = compare_columns(k, i, taps, ONE_LOAD, care);
    else if (k->reach[i] == TWO_VECTORS_WIDE)
      g = compare_columns(k, i, taps, TWO_VECTORS_WIDE, care);
    else if (k->reach[i] == FOUR_VECTORS_WIDE)
      g = compare_columns(k, i, 0, FOUR_VECTORS_WIDE, care);
    else
      g = compare_columns(k, i, 0, ANYWHERE, care);
    if (care == KEYS) {
      put_keys(to, i * LANES, g.at, load_i32(k->origin + i * LANES), index_bytes, &doubts);
      continue;
    }
    put_results(to, i * LANES, &g, index_bytes);
    if (care == CAREFUL) store_i32(k->found + i * LANES, g.at);
  }
  if (care != KEYS || (nowhere(doubts.zero) && !has_nan(&doubts))) return true;
  return !has_nan(&doubts) && !has_minus_zero_in_pile(k);
}

static inline SPECIALISED bool make_outputs(struct max_rows *k, const struct place *to,
                                            const int index_bytes, const enum care care) {
  if (k->taps == 2 && care != CAREFUL) return make_outputs_of(k, to, 2, index_bytes, care);
  if (k->taps == 3 && care != CAREFUL) return make_outputs_of(k, to, 3, index_bytes, care);
  return make_outputs_of(k, to, 0, index_bytes, care);
}

/* --- Piles --- */

static void copy_nans(const struct max_rows *k, const struct place *to) {
  for (int64_t row = 0; row < k->rows; row++)
    for (int64_t i = 0; i < k->outputs; i++) {
      const int64_t at = row * k->outputs + i;
      copy_if_nan(&k->results, to->out + at, k->source[row].plane + i % k->unit, k->found[at]);
    }
}

static void make_pile_carefully(struct max_rows *k, const struct place *to) {
  reduce_pile(k, CAREFUL);
  make_outputs(k, to, k->args->index_bytes, CAREFUL);
  copy_nans(k, to);
}

static inline SPECIALISED bool make_by_keys(struct max_rows *k, const struct place *to,
                                            const int index_bytes) {
  reduce_pile_to_keys(k, index_bytes > 0);
  return make_outputs(k, to, index_bytes, KEYS);
}

/* False: there are NaNs or -0, and the pile has to be made in another way. */
static bool make_pile_by_keys(struct max_rows *k, const struct place *to) {
  const int index_bytes = k->args->index_bytes;
  return index_bytes == 0   ? make_by_keys(k, to, 0)
         : index_bytes == 4 ? make_by_keys(k, to, 4)
                            : make_by_keys(k, to, 8);
}

static void make_pile_by_floats(struct max_rows *k, const struct place *to) {
  const int index_bytes = k->args->index_bytes;
  if (index_bytes == 0 && nowhere(reduce_pile(k, VALUES)))
    make_outputs(k, to, 0, VALUES);
  else if (index_bytes == 4 && nowhere(reduce_pile(k, POSITIONS)))
    make_outputs(k, to, 4, POSITIONS);
  else if (index_bytes == 8 && nowhere(reduce_pile(k, POSITIONS)))
    make_outputs(k, to, 8, POSITIONS);
  else
    make_pile_carefully(k, to);
}

static void make_pile(struct max_rows *k) {
  if (k->rows == 0) return;
  const struct place to = results_place(&k->results, k->out, k->index);
  const bool by_keys = !ELEMENT_IS_FLOAT && k->keys && make_pile_by_keys(k, &to);
  if (!by_keys) make_pile_by_floats(k, &to);
  results_advance(&k->results, k->rows * k->outputs);
  k->rows = 0;
}

/* Adds a row of outputs to the pile. */
static void add_row(struct max_rows *k, const struct outputs *o, int64_t od, int64_t oh) {
  const struct pg_max_forward *a = k->args;
  const struct pg_taps h = k->h_taps[oh - k->h.begin];
  const int64_t *s = a->in_strides.of;
  if (k->rows == 0) {
    k->out = o->out + od * a->out_strides.of[PG_D] + oh * a->out_strides.of[PG_H];
    k->index = o->index + od * a->index_strides.of[PG_D] + oh * a->index_strides.of[PG_H];
  }
  struct source *to = &k->source[k->rows++];
  to->plane = o->cells;
  to->first = o->cells + o->d.first * s[PG_D] + h.first * s[PG_H] + k->columns.begin * s[PG_W];
  to->d = o->d.count;
  to->h = h.count;
  to->d_step = o->d.step * s[PG_D];
  to->h_step = h.step * s[PG_H];
  to->at = (int32_t)((o->d.first * k->pool->h.in + h.first) * k->pool->w.in);
  to->d_at = (int32_t)(o->d.step * k->pool->h.in * k->pool->w.in);
  to->h_at = (int32_t)(h.step * k->pool->w.in);
  const element *last = to->first + (to->d - 1) * to->d_step + (to->h - 1) * to->h_step;
  to->goes_on = k->in_end != NULL && k->in_end - last >= (k->keys ? TWO_VECTORS : LANES);
  if (k->rows == k->most_rows) make_pile(k);
}

/* Adds the rows of a box in one plane. */
static void add_plane(struct max_rows *k, const struct pg_box *b, int64_t plane) {
  const struct pg_max_forward *a = k->args;
  const int64_t n = plane / k->pool->c, c = plane % k->pool->c;
  struct outputs o = {.cells = (const element *)a->in + pg_offset(&a->in_strides, n, c, 0, 0, 0),
                      .out = pg_offset(&a->out_strides, n, c, 0, 0, k->w.begin),
                      .index = pg_offset(&a->index_strides, n, c, 0, 0, k->w.begin)};
  for (int64_t od = b->d.begin; od < b->d.end && !pg_is_stopped(k->scratch); od++) {
    o.d = pg_window_taps(&k->pool->d, od);
    for (int64_t oh = b->h.begin; oh < b->h.end; oh++) add_row(k, &o, od, oh);
  }
}

/* --- The method --- */

/* Do the elements of rows follow each other, and all of them, if channels are neighbours? */
static struct pg_contiguity interleaved_contiguity(const struct pg_strides *strides,
                                                   const struct pg_pooling *grid) {
  const int64_t *s = strides->of, row = grid->c * grid->w.in, slice = row * grid->h.in;
  struct pg_contiguity c = {.rows = s[PG_W] == grid->c || grid->w.in == 1};
  c.planes = c.rows && (s[PG_H] == row || grid->h.in == 1) && (s[PG_D] == slice || grid->d.in == 1);
  c.all = c.planes && (s[PG_N] == slice * grid->d.in || grid->n == 1);
  return c;
}

static struct pg_contiguity contiguity_of_outputs(const struct pg_problem *problem) {
  const struct pg_max_forward *a = &problem->args.max_forward;
  const struct pg_pooling grid = pg_output_grid(&problem->facts.pool);
  if (!problem->facts.neighbours) return problem->facts.out;
  struct pg_contiguity c = interleaved_contiguity(&a->out_strides, &grid);
  if (a->index_bytes == 0) return c;
  const struct pg_contiguity index = interleaved_contiguity(&a->index_strides, &grid);
  c.rows = c.rows && index.rows;
  c.all = c.all && index.all;
  return c;
}

static void begin_items(struct max_rows *k, const struct pg_task *task,
                        const struct pg_scratch *scratch) {
  const struct pg_facts *f = &task->problem.facts;
  k->scratch = scratch;
  k->task = task;
  k->pool = &f->pool;
  k->args = &task->problem.args.max_forward;
  k->unit = f->neighbours ? f->pool.c : 1;
  k->dense = contiguity_of_outputs(&task->problem).all;
  k->keys = keys_fit(k->pool);
  k->in_end = f->in.all ? (const element *)k->args->in + f->planes * f->cells : NULL;
  k->w = k->h = (struct pg_range){0, 0};
  k->rows = 0;
  results_begin(&k->results, &task->problem);
}

static void rows_items(const void *args, int64_t begin, int64_t end, struct pg_scratch *scratch) {
  const struct pg_task *task = args;
  struct max_rows *k = scratch->room;
  const struct pg_pooling grid = pg_output_grid(&task->problem.facts.pool);
  begin_items(k, task, scratch);
  for (int64_t item = begin; item < end && !pg_is_stopped(scratch); item++) {
    const struct pg_box b = pg_box_of(&task->choice.tiling, &grid, item);
    set_width(k, b.w);
    set_height(k, b.h);
    for (int64_t i = 0; i < b.planes; i += k->unit) add_plane(k, &b, b.first + i);
    make_pile(k);
  }
  results_end(&k->results);
}

/* The most outputs of a row that an item may have; 0: none fit. */
static int64_t most_outputs(const struct pg_facts *f, int64_t unit) {
  const struct pg_axis *w = &f->pool.w;
  const int64_t taps = most_taps(w);
  int64_t outputs = least(w->out, least(PILE_OUTPUTS, TABLE / taps - LANES) / unit);
  for (; outputs > 0; outputs /= 2) {
    const int64_t stride = w->kernel == 0 ? w->in / w->out + 1 : w->stride;
    const int64_t span = w->kernel == 0 ? stride + 2 : pg_window_span(w) + 1;
    const int64_t columns = least(w->in, pg_mul_or_most(outputs - 1, stride) + span);
    if (pg_mul_or_most(columns, unit) <= COLUMNS - LANES) break;
  }
  return outputs;
}

static bool rows_fit(const struct pg_problem *problem, struct pg_tiling *tiling) {
  const struct pg_facts *f = &problem->facts;
  const struct pg_pooling grid = pg_output_grid(&f->pool);
  const int64_t unit = f->neighbours ? f->pool.c : 1;
  const struct pg_pooling cells = {
      f->pool.n, f->pool.c, {.in = f->pool.d.in}, {.in = f->pool.h.in}, {.in = f->pool.w.in}};
  const bool rows = f->neighbours
                        ? interleaved_contiguity(&problem->args.max_forward.in_strides, &cells).rows
                        : f->in.rows;
  if (!rows || !contiguity_of_outputs(problem).rows || f->cells > INT32_MAX || f->outputs == 0 ||
      f->planes == 0 || unit > MOST_CHANNELS)
    return false;
  const int64_t width = most_outputs(f, unit);
  if (width <= 0) return false;
  const int64_t per_output = most(1, f->grad_in_bytes / pg_mul_or_most(f->planes, f->outputs));
  const int64_t outputs = most(most(1, ITEM_BYTES / per_output / unit), width);
  struct pg_tiling t = pg_tile_flat(&grid, outputs);
  if (width < grid.w.in)
    t = (struct pg_tiling){.planes = 1, .d = 1, .h = least(grid.h.in, BAND), .w = width};
  if (f->neighbours) {
    t.interleaved = true;
    t.planes *= unit;
  }
  *tiling = pg_tile_boxes(&grid, &t);
  return true;
}

const struct pg_cpu_method VARIANT(max_forward_rows) = {
    .name = "rows", .fits = rows_fit, .run = rows_items};
