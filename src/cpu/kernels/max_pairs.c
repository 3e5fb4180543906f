/* SPDX-License-Identifier: Apache-2.0 */
/* Max-backward by gathering, for windows 2 or 3 cells wide that slide by 2 along W: the pooling of
 * most networks.
 *
 * Cells are computed in pairs: the even cells of LANES pairs look at LANES outputs that follow each
 * other, and so do the odd ones, so that nothing has to be permuted.  What is staged of an output
 * is its tap, the distance of its index from the first cell of its window; every even cell of a row
 * looks for the same taps, and every odd cell too.  Rows of outputs are staged when the first row
 * of cells needs them, so that reading, computing and writing overlap.
 *
 * As in max_gather.c, an index outside its window makes the box be scattered from its plane on. */
#include "cpu/kernels/max_staging.h"

enum {
  PAIRS_BOX_CELLS = 4096,
  PAIRS_WIDE_BOX_CELLS = 8192,
  PAIRS_MOST_HEIGHT = 64, /* rows of a window: taps of higher ones might not fit 32 bits */
  PAIRS_AHEAD = 64        /* prefetch distance, in outputs */
};

#define PAIRS_BYTES ((int64_t)sizeof(element) * 2 * LANES)

struct pairs {
  /* Rows of outputs, `pitch` places apart, each between LANES places that have no tap. */
  _Alignas(LINE) int32_t tap[STAGED + 2 * LANES];
  _Alignas(LINE) float grad[STAGED + 2 * LANES];
  const struct pg_task *task;
  const struct pg_pooling *pool;
  const struct pg_max_backward *args;
  struct grad_in grad_in;
  int64_t pitch;
  int64_t staged; /* rows of outputs so far */
  struct pg_covers covers;
  _Alignas(
      LINE) element out[PAIRS_WIDE_BOX_CELLS + LANES]; /* boxes whose rows are not contiguous */
};
_Static_assert(sizeof(struct pairs) <= PG_SCRATCH_METHOD, "pairs need more scratch");

/* --- Staging --- */

/* Outputs at the edges have windows that hang over along W.  Do their indices name cells inside? */
static bool edges_fit(const struct pg_axis *w, int64_t rows, const int32_t *tap) {
  for (int64_t side = 0; side < 2; side++)
    for (int64_t i = 0; i < w->out; i++) {
      const int64_t ow = side == 0 ? i : w->out - 1 - i;
      const struct pg_range window = pg_window(w, ow), inside = pg_window_clip(w, window);
      if (pg_length(inside) == pg_length(window)) break;
      bool fits = false;
      for (int64_t row = 0; row < rows && !fits; row++) {
        const int64_t at = tap[ow] - row * w->in + window.begin;
        fits = at >= inside.begin && at < inside.end;
      }
      if (!fits) return false;
    }
  return true;
}

/* The rows of cells that a row of outputs may name. */
struct named_rows {
  int64_t begin; /* the first row of the windows, which may lie above the plane */
  int64_t above; /* so many of the windows' rows lie above the plane */
  int64_t more;  /* rows inside the plane, less one */
};

/* Do taps lie in the first `kernel` places of one of the rows? */
static inline __attribute__((always_inline)) truths taps_fit(ints tap, ints above, ints width,
                                                             ints kernel, const int64_t more) {
  ints rest = sub_i(tap, above), nearest = rest;
  for (int64_t row = 0; row < more; row++) {
    rest = sub_i(rest, width);
    nearest = least_u(nearest, rest);
  }
  return below(nearest, kernel);
}

/* False when an index lies outside its window. */
static inline __attribute__((always_inline)) bool stage_taps(const struct pairs *k,
                                                             const struct output_row *o,
                                                             const bool wide,
                                                             const struct named_rows r,
                                                             int32_t *to) {
  const struct pg_axis *w = &k->pool->w;
  const ints twice = add_i(load_i32(lane_numbers), load_i32(lane_numbers));
  const ints width = all_i((int32_t)w->in), kernel = all_i((int32_t)w->kernel);
  const ints above = all_i((int32_t)(r.above * w->in)), step = all_i(2 * LANES);
  ints start = add_i(twice, all_i((int32_t)(r.begin * w->in - w->pad)));
  ints high = all_i(0), x;
  truths fine = below(high, all_i(1));
  int64_t i = 0;
  for (; i + LANES <= o->count; i += LANES, start = add_i(start, step)) {
    x = sub_i(load_index(o->index, wide, i, PAIRS_AHEAD, &high), start);
    fine = both(fine, taps_fit(x, above, width, kernel, r.more));
    store_i32(to + i, x);
  }
  if (!every(fine, LANES) || !high_halves_are_zero(high)) return false;
  if (i < o->count) {
    if (!load_last_index(o->index, wide, i, o->count - i, &x)) return false;
    x = sub_i(x, start);
    if (!every(taps_fit(x, above, width, kernel, r.more), o->count - i)) return false;
    store_i32(to + i, x);
  }
  store_i32(to + o->count, all_i(-1)); /* places that stand for no output have no tap */
  store_i32(to + k->pitch - LANES, all_i(-1));
  return true;
}

/* The same with the usual numbers of rows known to the compiler. */
static inline __attribute__((always_inline)) bool stage_known_taps(const struct pairs *k,
                                                                   const struct output_row *o,
                                                                   const bool wide,
                                                                   const struct named_rows *r,
                                                                   int32_t *to) {
  const struct named_rows two = {r->begin, r->above, 1}, three = {r->begin, r->above, 2};
  if (wide && r->more == 1) return stage_taps(k, o, true, two, to);
  if (wide && r->more == 2) return stage_taps(k, o, true, three, to);
  if (wide) return stage_taps(k, o, true, *r, to);
  if (r->more == 1) return stage_taps(k, o, false, two, to);
  return stage_taps(k, o, false, *r, to);
}

static bool stage_row(struct pairs *k, int64_t oh, struct output_row o, int32_t *tap, float *grad) {
  const struct pg_axis *h = &k->pool->h;
  const struct pg_range window = pg_window(h, oh), rows = pg_window_clip(h, window);
  const struct named_rows r = {
      .begin = window.begin, .above = rows.begin - window.begin, .more = pg_length(rows) - 1};
  const int64_t step = k->args->index_strides.of[PG_W];
  bool wide = k->args->index_bytes == 8;
  if (r.more < 0) return false; /* the whole row lies in the padding */
  widen(o.grad, k->args->out_strides.of[PG_W], o.count, PAIRS_AHEAD, grad);
  if (step != 1) {
    if (!narrow(o.index, wide, step, o.count, tap)) return false;
    o.index = tap;
    wide = false;
  }
  return stage_known_taps(k, &o, wide, &r, tap) && edges_fit(&k->pool->w, h->kernel, tap);
}

/* Stages the rows of outputs up to the last. */
static inline bool stage_until(struct pairs *k, const struct pg_max_plane *t, int64_t last) {
  for (; k->staged <= last; k->staged++) {
    const int64_t oh = k->covers.h.outputs.begin + k->staged, at = LANES + k->staged * k->pitch;
    const struct output_row o = output_row_of(t, 0, oh, (struct pg_range){0, k->pool->w.out});
    if (!stage_row(k, oh, o, k->tap + at, k->grad + at)) return false;
  }
  return true;
}

/* --- Computing --- */

/* The outputs that cell 2 i + parity looks at: output i + offset, where its tap is the given one
 * along W; ascending. */
struct pair_terms {
  int count;
  int offset[2], tap[2];
};

static inline __attribute__((always_inline)) struct pair_terms pair_terms_of(const int kernel,
                                                                             const int pad,
                                                                             const int parity) {
  struct pair_terms t = {.count = 0};
  for (int tap = kernel - 1; tap >= 0; tap--) {
    const int twice = parity + pad - tap;
    if (twice % 2 != 0) continue;
    t.offset[t.count] = twice / 2;
    t.tap[t.count++] = tap;
  }
  return t;
}

/* What the compiler knows of a row of cells. */
struct pair_shape {
  int rows; /* of outputs that its cells lie in */
  int kernel, pad;
  bool nontemporal;
};

/* A row of cells: where it goes, up to how many cells whole vectors may be stored there, where the
 * last of its rows of outputs is staged, and which row of that output's window it is. */
struct pair_row {
  element *to;
  int64_t whole, from, row;
};

/* Stores LANES pairs, or the `left` cells that are to come if whole vectors do not fit. */
static inline __attribute__((always_inline)) void store_some_pairs(element *to, bool fits,
                                                                   int64_t left, floats even,
                                                                   floats odd,
                                                                   const struct pair_shape shape) {
  _Alignas(LINE) element some[2 * LANES];
  element *at = fits && !shape.nontemporal ? to : some;
  if (shape.rows == 1 && shape.kernel == 2)
    store_exact_pairs(at, even, odd);
  else
    store_pairs(at, even, odd);
  if (!fits)
    memcpy(to, some, (size_t)left * sizeof *some);
  else if (shape.nontemporal)
    for (int64_t i = 0; i < PAIRS_BYTES / LINE; i++)
      store_line_nontemporal((char *)to + i * LINE, (char *)some + i * LINE);
}

static inline __attribute__((always_inline)) void make_pair_row(const struct pairs *k,
                                                                const struct pair_row *r,
                                                                const struct pair_shape shape) {
  const struct pair_terms terms[2] = {pair_terms_of(shape.kernel, shape.pad, 0),
                                      pair_terms_of(shape.kernel, shape.pad, 1)};
  const int64_t width = k->pool->w.in, pitch = k->pitch;
  const int64_t whole = r->whole;
  const int32_t *tap = k->tap + r->from;
  const float *grad = k->grad + r->from;
  element *to = r->to;
  ints wanted[2][3];
  for (int i = 0; i < shape.rows; i++)
    for (int x = 0; x < shape.kernel; x++)
      wanted[i][x] = all_i((int32_t)((r->row + i * k->pool->h.stride) * width) + x);
  for (int64_t pair = 0; 2 * pair < width; pair += LANES, tap += LANES, grad += LANES) {
    floats sum[2] = {zeros(), zeros()};
    for (int parity = 0; parity < 2; parity++)
      for (int i = shape.rows - 1; i >= 0; i--) /* the rows above come first */
        for (int x = 0; x < terms[parity].count; x++) {
          const int64_t at = terms[parity].offset[x] - i * pitch;
          sum[parity] = add_equal(sum[parity], load_f32(grad + at), load_i32(tap + at),
                                  wanted[i][terms[parity].tap[x]]);
        }
    store_some_pairs(to + 2 * pair, 2 * (pair + LANES) <= whole, width - 2 * pair, sum[0], sum[1],
                     shape);
  }
}

static inline __attribute__((always_inline)) bool make_rows(struct pairs *k,
                                                            const struct pg_max_plane *plane,
                                                            const struct destination *t,
                                                            const struct pair_shape shape) {
  const struct pg_cover *m = &k->covers.h;
  const int64_t width = k->pool->w.in;
  struct pair_shape one = shape, two = shape;
  one.rows = 1;
  two.rows = 2;
  struct pair_row r = {.to = t->plane};
  for (int64_t h = 0; h < pg_length(m->cells); h++, r.to += t->row) {
    const int64_t last = m->first[h] + m->count[h] - 1;
    r.from = LANES + last * k->pitch;
    r.row = m->cells.begin + h - pg_window(&k->pool->h, m->outputs.begin + last).begin;
    r.whole = shape.nontemporal ? width : most(width, t->end - r.to);
    if (!stage_until(k, plane, last)) return false;
    if (m->count[h] == 1)
      make_pair_row(k, &r, one);
    else if (m->count[h] == 2)
      make_pair_row(k, &r, two);
    else
      memset(r.to, 0, (size_t)width * sizeof *r.to);
  }
  return stage_until(k, plane, pg_length(m->outputs) - 1);
}

/* Directly from the registers past the caches, where rows begin with a cache line, and only with
 * windows of 2: with more to compute for each line it does not pay (measured). */
static bool stores_lines(const struct pairs *k, const struct destination *t) {
  return k->grad_in.nontemporal && k->pool->w.kernel == 2 && PAIRS_BYTES % LINE == 0 &&
         (uintptr_t)t->plane % LINE == 0 && t->row * (int64_t)sizeof(element) % LINE == 0;
}

/* The box of one plane.  False when an index lies outside its window. */
static bool make_plane(struct pairs *k, const struct pg_max_plane *plane,
                       const struct destination *t) {
  const struct pg_axis *w = &k->pool->w;
  store_i32(k->tap, all_i(-1));
  k->staged = 0;
  if (w->kernel == 2 && w->pad == 0)
    return stores_lines(k, t) ? make_rows(k, plane, t, (struct pair_shape){0, 2, 0, true})
                              : make_rows(k, plane, t, (struct pair_shape){0, 2, 0, false});
  if (w->kernel == 2) return make_rows(k, plane, t, (struct pair_shape){0, 2, 1, false});
  if (w->pad == 0) return make_rows(k, plane, t, (struct pair_shape){0, 3, 0, false});
  return make_rows(k, plane, t, (struct pair_shape){0, 3, 1, false});
}

static void make_pair_box(struct pairs *k, struct pg_box box, struct pg_scratch *scratch) {
  struct pg_box done = box;
  pg_covers_make(&k->covers, k->pool, &box, 0);
  for (done.planes = 0; done.planes < box.planes; done.planes++) {
    const struct pg_max_plane t = pg_max_plane_of(k->task, &box, box.first + done.planes, false);
    const struct destination to = destination_of(&k->grad_in, &box, done.planes, NULL, k->out);
    if (!make_plane(k, &t, &to)) break;
  }
  if (!k->grad_in.contiguity.rows) write_box(&k->grad_in, &done, k->out);
  box.first += done.planes;
  box.planes -= done.planes;
  if (box.planes == 0) return;
  if (k->grad_in.nontemporal) fence_nontemporal(); /* the same cells are now written again */
  VARIANT(scatter_box)(k->task, &box, scratch);
}

static void pairs_items(const void *args, int64_t begin, int64_t end, struct pg_scratch *scratch) {
  const struct pg_task *task = args;
  const struct pg_facts *facts = &task->problem.facts;
  struct pairs *k = scratch->room;
  k->task = task;
  k->pool = &facts->pool;
  k->args = &task->problem.args.max_backward;
  k->grad_in = grad_in_of(facts, k->args->grad_in, &k->args->in_strides);
  k->pitch = round_up(k->pool->w.out) + LANES;
  pg_covers_begin(&k->covers);
  for (int64_t item = begin; item < end && !pg_is_stopped(scratch); item++)
    make_pair_box(k, pg_box_of(&task->choice.tiling, k->pool, item), scratch);
  if (k->grad_in.nontemporal) fence_nontemporal();
}

/* --- The method --- */

/* Along H windows may have any usual length as long as a cell lies in two of them at most. */
static bool pairs_fits(const struct pg_problem *problem, struct pg_tiling *tiling) {
  const struct pg_facts *f = &problem->facts;
  const struct pg_axis *w = &f->pool.w, *h = &f->pool.h;
  if (f->has_depth || w->stride != 2 || w->kernel < 2 || w->kernel > 3 || w->pad > 1 ||
      w->dilation != 1 || w->out / 2 < LANES)
    return false;
  if (h->kernel == 0 || h->kernel > PAIRS_MOST_HEIGHT || h->dilation != 1 || f->h_windows > 2 ||
      f->cells > MOST_POSITIONS || f->cells / 16 >= f->outputs)
    return false;
  *tiling =
      pg_tile_flat(&f->pool, w->in > PAIRS_BOX_CELLS / 4 ? PAIRS_WIDE_BOX_CELLS : PAIRS_BOX_CELLS);
  const int64_t rows = pg_most_touching(h, tiling->h);
  return tiling->w == w->in && rows <= STAGED && (rows + 3) * (round_up(w->out) + LANES) <= STAGED;
}

const struct pg_cpu_method VARIANT(max_pairs) = {.name = "pairs",
                                                 .fits = pairs_fits,
                                                 .workspace = pg_flags_bytes,
                                                 .run = pairs_items,
                                                 .mend = VARIANT(mend_flagged)};
