/* SPDX-License-Identifier: Apache-2.0 */
/* Max-backward by gathering, for tensors whose channels are neighbours in memory: a vector holds
 * LANES channels of one cell.
 *
 * A box is computed row by row.  When a row of cells is the first to need a row of outputs, the
 * indices of that are staged as 32-bit numbers and checked to lie in their windows; gradients are
 * read where they are.  For the usual windows two rows of cells are computed at once, and the
 * latest outputs along W stay in registers.  If the number of channels is no multiple of LANES, the
 * last vector overlaps the one before it.  If an index lies outside its window, the whole box is
 * scattered, plane by plane. */
#include "cpu/kernels/max_staging.h"

enum {
  MAX_ROW = 2048,       /* elements (cells times channels) of a row of a box */
  MAX_OUTPUT_ROWS = 64, /* the most rows of outputs that cells of two rows look at */
  PLACES_BEHIND = 3,    /* staged outputs that name no cell, behind each row */
  MAX_TWO_ROWS = 4096   /* elements of two rows of a box */
};

struct channels_last {
  _Alignas(LINE) int32_t index[STAGED + 2 * LANES]; /* of the latest rows of outputs */
  const struct pg_task *task;
  const struct pg_pooling *pool;
  const struct pg_max_backward *args;
  struct grad_in grad_in;
  int64_t pitch; /* between rows of staged indices */
  struct width_windows windows;
  struct pg_box_cover cover;
  /* Two rows of cells, which are then written past the caches. */
  _Alignas(LINE) element out[MAX_TWO_ROWS + 2 * LANES];
};
_Static_assert(sizeof(struct channels_last) <= PG_SCRATCH_METHOD,
               "channels last needs more scratch");

/* --- Staging --- */

/* A row of outputs and its windows, which are `rows` rows high and `slices` slices deep.  The first
 * cell of a window has the position top + its start along W. */
struct index_row_of_planes {
  const void *index;
  int64_t stride, count;
  int32_t top;
  int32_t row_cells, slice_cells; /* the cells of a row and of a slice of the plane */
  int64_t rows, slices;
};

/* The distance of an index along W from the start of its window; no less than a row has cells if
 * the index is in none of the window's rows. */
static inline ints distance(const struct index_row_of_planes *o, ints index, int32_t start,
                            const int64_t rows) {
  const ints from = sub_i(index, all_i(o->top + start));
  return folded(folded(from, all_i(o->slice_cells), o->slices), all_i(o->row_cells), rows);
}

/* Stages the indices of at least LANES planes.  False when one lies outside its window. */
static inline __attribute__((always_inline)) bool stage_planes(const struct channels_last *k,
                                                               const struct index_row_of_planes *o,
                                                               int64_t planes, const bool is_i64,
                                                               const int64_t rows, int32_t *to) {
  const char *from = o->index;
  ints high = all_i(0);
  truths too_far = none();
  for (int64_t i = 0; i < o->count; i++, from += o->stride * (is_i64 ? 8 : 4), to += planes) {
    const int64_t *x = (const int64_t *)(const void *)from;
    const int32_t *y = (const int32_t *)(const void *)from;
    const ints last = all_i(k->windows.length[i] - 1);
    for (int64_t n = 0; n < planes; n += LANES) {
      const int64_t c = least(n, planes - LANES);
      const ints index = is_i64 ? load_i64_collecting(x + c, &high) : load_i32(y + c);
      too_far = either(too_far, below(last, distance(o, index, k->windows.start[i], rows)));
      store_i32(to + c, index);
    }
  }
  return nowhere(too_far) && high_halves_are_zero(high);
}

/* The same for fewer planes; up to LANES places behind the row are overwritten. */
static bool stage_few_planes(const struct channels_last *k, const struct index_row_of_planes *o,
                             int64_t planes, int32_t *to) {
  const int64_t bytes = k->args->index_bytes;
  const char *from = o->index;
  bool fine = true;
  for (int64_t i = 0; i < o->count; i++, from += o->stride * bytes, to += planes) {
    fine = narrow(from, bytes == 8, 1, planes, to) && fine;
    const ints along = distance(o, load_i32(to), k->windows.start[i], o->rows);
    fine = every(below(along, all_i(k->windows.length[i])), planes) && fine;
  }
  return fine;
}

/* Stages the indices of the row (od, oh) of outputs in all planes of the box.  False when one lies
 * outside its window. */
static __attribute__((noinline)) bool stage_row_of_planes(const struct channels_last *k,
                                                          const struct pg_box *box, int64_t od,
                                                          int64_t oh, int32_t *to) {
  const struct pg_max_backward *a = k->args;
  const struct pg_pooling *p = k->pool;
  const struct pg_row_windows row = pg_row_windows_of(p, od, oh);
  const struct pg_range ow = k->cover.w.outputs;
  const int64_t n = box->first / p->c, c = box->first % p->c, planes = box->planes;
  const int64_t at = pg_offset(&a->index_strides, n, c, od, oh, ow.begin);
  const struct index_row_of_planes o = {
      .index = (const char *)a->index + at * a->index_bytes,
      .stride = a->index_strides.of[PG_W],
      .count = pg_length(ow),
      .top = (int32_t)((row.d.begin * p->h.in + row.h.begin) * p->w.in),
      .row_cells = (int32_t)p->w.in,
      .slice_cells = (int32_t)(p->w.in * p->h.in),
      .rows = pg_length(row.h),
      .slices = pg_length(row.d)};
  for (int64_t i = 0; i < PLACES_BEHIND * planes; i += LANES)
    store_i32(to + o.count * planes + i, all_i(-1));
  if (planes < LANES) return stage_few_planes(k, &o, planes, to);
  if (a->index_bytes == 4)
    return o.rows == 3 ? stage_planes(k, &o, planes, false, 3, to)
                       : stage_planes(k, &o, planes, false, o.rows, to);
  return o.rows == 3 ? stage_planes(k, &o, planes, true, 3, to)
                     : stage_planes(k, &o, planes, true, o.rows, to);
}

/* --- Any windows, one row of cells --- */

/* A row of outputs that cells look at. */
struct staged_row {
  const int32_t *index; /* staged: for each output as many as the box has planes */
  const element *grad;
};

/* A row of cells. */
struct cell_row {
  element *to;
  int64_t stride, planes;
  int32_t first; /* position of its first cell in the plane */
};

/* The channels that are computed: `part` of them, from c on. */
struct channels {
  int64_t c, part;
};

/* Computes some channels of a row of cells from `count` rows of outputs. */
static inline __attribute__((always_inline)) void add_channels(const struct channels_last *k,
                                                               const struct staged_row *rows,
                                                               int64_t count,
                                                               const struct cell_row *t,
                                                               const struct channels v) {
  const struct pg_cover *m = &k->cover.w;
  const int64_t grad_stride = k->args->out_strides.of[PG_W];
  for (int64_t w = 0; w < pg_length(m->cells); w++) {
    const ints cell = all_i(t->first + (int32_t)w);
    floats sum = zeros();
    for (int64_t j = 0; j < count; j++) {
      const int32_t *index = rows[j].index + m->first[w] * t->planes + v.c;
      const element *grad = rows[j].grad + m->first[w] * grad_stride + v.c;
      for (int32_t i = 0; i < m->count[w]; i++, index += t->planes, grad += grad_stride)
        sum = add_equal(sum, v.part == LANES ? load_elements(grad) : load_part(grad, v.part),
                        load_i32(index), cell);
    }
    store_channels(t->to + w * t->stride + v.c, pack(sum), v.part);
  }
}

static __attribute__((noinline)) void make_cells(const struct channels_last *k,
                                                 const struct staged_row *rows, int64_t count,
                                                 const struct cell_row *t, int64_t c) {
  if (t->planes < LANES)
    add_channels(k, rows, count, t, (struct channels){c, t->planes});
  else
    add_channels(k, rows, count, t, (struct channels){c, LANES});
}

/* --- Usual windows, two rows of cells at once --- */

/* What the compiler knows: windows are `kernel` cells wide and slide by `stride`.  Of `height` rows
 * of outputs the upper row of cells looks at the first `upper`, and the lower one at all but the
 * first `lower`. */
struct walk_shape {
  int kernel, stride, height, upper, lower;
};

/* A walk along W that computes two rows of cells.  The latest outputs of each row of them are in
 * the registers named[row][turn] and value[row][turn], where they take turns. */
struct walk {
  struct staged_row rows[4];
  int64_t at, grad_at; /* where the next outputs are, from rows[].index and rows[].grad on */
  int64_t planes, grad_stride;
  int64_t left; /* outputs to come */
  int64_t w, width;
  element *to[2];
  int64_t out, stride; /* where the next cells go, from to[] on; the stride of cells */
  ints cell;           /* the position of the next cell of the upper row */
  ints row_cells;      /* the distance to the position of the cell below */
  ints named[4][3];
  floats value[4][3];
};

/* Takes one more output of each row.  Behind the last one are some that name no cell, whose
 * gradient is that of the last one. */
static inline __attribute__((always_inline)) void take_outputs(struct walk *s, const int height,
                                                               const int turn) {
  for (int j = 0; j < height; j++) {
    s->named[j][turn] = load_i32(s->rows[j].index + s->at);
    s->value[j][turn] = load_elements(s->rows[j].grad + s->grad_at);
  }
  s->at += s->planes;
  s->grad_at += --s->left > 0 ? s->grad_stride : 0;
  __asm__("" : "+r"(s->at), "+r"(s->grad_at)); /* else the compiler keeps a pointer per load */
}

static inline __attribute__((always_inline)) void store_cell(struct walk *s,
                                                             const struct walk_shape shape,
                                                             const floats sum[2]) {
  element *const to[2] = {s->to[0] + s->out, s->to[1] + s->out};
  if (__builtin_expect((uint64_t)s->w >= (uint64_t)s->width, 0)) {
    /* this cell lies outside the box */
  } else if (shape.kernel <= shape.stride && shape.height == 1) { /* nothing was added up */
    store_packed(to[0], pack_exact(sum[0]));
    store_packed(to[1], pack_exact(sum[1]));
  } else {
    store_two(to[0], sum[0], to[1], sum[1]);
  }
  s->out += s->stride;
  s->w++;
  s->cell = add_i(s->cell, all_i(1));
}

/* Takes the next output into the turn-th registers, and computes the cells from the beginning of
 * its window to the beginning of the next one. */
static inline __attribute__((always_inline)) void take_turn(struct walk *s,
                                                            const struct walk_shape shape,
                                                            const int turn) {
  const int windows = (shape.kernel + shape.stride - 1) / shape.stride;
  if (turn >= windows || s->w >= s->width) return;
  take_outputs(s, shape.height, turn);
  for (int x = 0; x < shape.stride; x++) {
    floats sum[2] = {zeros(), zeros()};
    const ints cell[2] = {s->cell, add_i(s->cell, s->row_cells)};
    for (int j = 0; j < shape.height; j++)
      for (int back = windows - 1; back >= 0; back--) {
        const int i = (turn - back + windows) % windows;
        if (back * shape.stride + x >= shape.kernel) continue;
        if (j < shape.upper) sum[0] = add_equal(sum[0], s->value[j][i], s->named[j][i], cell[0]);
        if (j >= shape.lower) sum[1] = add_equal(sum[1], s->value[j][i], s->named[j][i], cell[1]);
      }
    store_cell(s, shape, sum);
  }
}

static inline __attribute__((always_inline)) void walk_windows(const struct channels_last *k,
                                                               const struct staged_row *rows,
                                                               const struct cell_row *t, int64_t c,
                                                               const struct walk_shape shape) {
  const struct pg_cover *m = &k->cover.w;
  const int64_t w = m->outputs.begin * shape.stride - k->pool->w.pad - m->cells.begin;
  struct walk s = {.at = c,
                   .grad_at = c,
                   .stride = t->stride,
                   .planes = t->planes,
                   .grad_stride = k->args->out_strides.of[PG_W],
                   .left = pg_length(m->outputs),
                   .w = w,
                   .width = pg_length(m->cells),
                   .to = {t[0].to, t[1].to},
                   .out = w * t->stride + c};
  s.cell = all_i(t[0].first + (int32_t)w);
  s.row_cells = all_i(t[1].first - t[0].first);
  for (int j = 0; j < shape.height; j++) s.rows[j] = rows[j];
  for (int i = 0; i < 4 * 3; i++) {
    s.named[i / 3][i % 3] = all_i(-1);
    s.value[i / 3][i % 3] = zeros();
  }
  while (s.w < s.width) {
    take_turn(&s, shape, 0);
    take_turn(&s, shape, 1);
    take_turn(&s, shape, 2);
  }
}

typedef void walk_fn(const struct channels_last *k, const struct staged_row *rows,
                     const struct cell_row *t, int64_t c);

/* These are functions of their own, so that each has all registers for itself. */
#define WALK(name, ...)                                                             \
  static __attribute__((noinline)) void name(const struct channels_last *k,         \
                                             const struct staged_row *rows,         \
                                             const struct cell_row *t, int64_t c) { \
    walk_windows(k, rows, t, c, (struct walk_shape)__VA_ARGS__);                    \
  }
WALK(walk_2_by_2, {2, 2, 1, 1, 0})
WALK(walk_3_by_2_in_one, {3, 2, 1, 1, 0})
WALK(walk_3_by_2_upper_in_one, {3, 2, 2, 1, 0})
WALK(walk_3_by_2_in_two, {3, 2, 2, 2, 1})
WALK(walk_3_by_1, {3, 1, 4, 3, 1})
#undef WALK

static const struct {
  struct walk_shape shape;
  walk_fn *walk;
} walks[] = {{{2, 2, 1, 1, 0}, walk_2_by_2},
             {{3, 2, 1, 1, 0}, walk_3_by_2_in_one},
             {{3, 2, 2, 1, 0}, walk_3_by_2_upper_in_one},
             {{3, 2, 2, 2, 1}, walk_3_by_2_in_two},
             {{3, 1, 4, 3, 1}, walk_3_by_1}};

/* The walk that can compute the rows h and h + 1 of slice d together, or NULL if there is none. */
static walk_fn *walk_of(const struct channels_last *k, const struct pg_box *box, int64_t d,
                        int64_t h) {
  const struct pg_cover *m = &k->cover.h;
  const struct pg_axis *w = &k->pool->w;
  if (box->planes < LANES || w->dilation != 1 || k->cover.d.count[d] != 1 ||
      h + 1 >= pg_length(box->h) || pg_length(k->cover.w.outputs) == 0)
    return NULL;
  const int64_t upper = m->count[h], lower = m->first[h + 1] - m->first[h];
  const int64_t height = lower + m->count[h + 1];
  for (size_t i = 0; i < sizeof walks / sizeof walks[0]; i++) {
    const struct walk_shape *s = &walks[i].shape;
    if (w->kernel == s->kernel && w->stride == s->stride && height == s->height &&
        upper == s->upper && lower == s->lower)
      return walks[i].walk;
  }
  return NULL;
}

/* --- Rows of a box --- */

/* Where the indices of a row of outputs are staged: the oh-th of those whose windows touch the box,
 * in the i-th of the slices that a cell looks at.  Rows take turns in one place more than a row of
 * cells needs. */
static int32_t *staged_place(struct channels_last *k, int64_t i, int64_t oh) {
  const int64_t places = k->cover.h.most + 1;
  return k->index + (i * places + oh % places) * k->pitch;
}

/* Finds the staged indices and the gradients of the rows of outputs that cells of slice d look at,
 * in the order of summation.  oh counts from the first row whose windows touch the box. */
static void find_rows(struct channels_last *k, const struct pg_box *box, int64_t d,
                      struct pg_range oh, struct staged_row *rows) {
  const struct pg_max_backward *a = k->args;
  const struct pg_box_cover *m = &k->cover;
  const int64_t n = box->first / k->pool->c, c = box->first % k->pool->c;
  for (int64_t i = 0; i < m->d.count[d]; i++)
    for (int64_t j = oh.begin; j < oh.end; j++, rows++) {
      rows->index = staged_place(k, i, j);
      rows->grad = (const element *)a->grad_out +
                   pg_offset(&a->out_strides, n, c, m->d.outputs.begin + m->d.first[d] + i,
                             m->h.outputs.begin + j, m->w.outputs.begin);
    }
}

/* Row h of slice d: in gradInput, or in out[] behind `made` rows. */
static struct cell_row cell_row_of(struct channels_last *k, const struct pg_box *b, int64_t d,
                                   int64_t h, int64_t made) {
  const struct pg_pooling *p = k->pool;
  const int64_t row = (b->d.begin + d) * p->h.in + b->h.begin + h, *s = k->grad_in.strides->of;
  struct cell_row t = {.to = first_cell(&k->grad_in, b, 0) + d * s[PG_D] + h * s[PG_H],
                       .stride = s[PG_W],
                       .planes = b->planes,
                       .first = (int32_t)(row * p->w.in + b->w.begin)};
  if (k->grad_in.nontemporal) {
    t.to = k->out + made * pg_length(b->w) * b->planes;
    t.stride = b->planes;
  }
  return t;
}

/* Computes rows of cells from h on, one, or two with a walk, from the rows `oh` of outputs. */
static void make_rows_of_cells(struct channels_last *k, const struct pg_box *box, int64_t d,
                               int64_t h, struct pg_range oh, walk_fn *walk) {
  struct staged_row rows[MAX_OUTPUT_ROWS];
  struct cell_row t[2];
  find_rows(k, box, d, oh, rows);
  t[0] = cell_row_of(k, box, d, h, 0);
  if (walk != NULL) t[1] = cell_row_of(k, box, d, h + 1, 1);
  for (int64_t n = 0; n < box->planes; n += LANES) {
    const int64_t c = least(n, box->planes - least(box->planes, LANES));
    if (walk != NULL)
      walk(k, rows, t, c);
    else
      make_cells(k, rows, k->cover.d.count[d] * pg_length(oh), t, c);
  }
}

/* Stages rows of outputs.  False when an index lies outside its window. */
static bool stage_rows_of_planes(struct channels_last *k, const struct pg_box *box, int64_t d,
                                 struct pg_range oh) {
  const struct pg_box_cover *m = &k->cover;
  for (; oh.begin < oh.end; oh.begin++)
    for (int64_t i = 0; i < m->d.count[d]; i++)
      if (!stage_row_of_planes(k, box, m->d.outputs.begin + m->d.first[d] + i,
                               m->h.outputs.begin + oh.begin, staged_place(k, i, oh.begin)))
        return false;
  return true;
}

/* Computes slice d of the box.  False when an index lies outside its window. */
static bool make_slice(struct channels_last *k, const struct pg_box *box, int64_t d) {
  const struct pg_cover *m = &k->cover.h;
  int64_t staged = 0;
  for (int64_t h = 0, last; h < pg_length(box->h); h = last + 1) {
    walk_fn *walk = walk_of(k, box, d, h);
    last = h + (walk != NULL);
    const struct pg_range oh = {m->first[h], m->first[last] + m->count[last]};
    if (!stage_rows_of_planes(k, box, d, (struct pg_range){staged, oh.end})) return false;
    staged = most(staged, oh.end);
    make_rows_of_cells(k, box, d, h, oh, walk);
    for (int64_t i = h; k->grad_in.nontemporal && i <= last; i++)
      write_interleaved_row(&k->grad_in, box, d, i,
                            k->out + (i - h) * pg_length(box->w) * box->planes);
  }
  return true;
}

/* False when an index lies outside its window; all of the box must then be computed again. */
static bool make_box(struct channels_last *k, const struct pg_box *box) {
  pg_box_cover_make(&k->cover, k->pool, box, 0);
  make_windows(&k->windows, &k->pool->w, k->cover.w.outputs);
  k->pitch = (pg_length(k->cover.w.outputs) + PLACES_BEHIND) * box->planes + LANES;
  bool fine = true;
  for (int64_t d = 0; d < pg_length(box->d) && fine; d++) fine = make_slice(k, box, d);
  if (!fine && k->grad_in.nontemporal) fence_nontemporal();
  return fine;
}

static void channels_last_items(const void *args, int64_t begin, int64_t end,
                                struct pg_scratch *scratch) {
  const struct pg_task *task = args;
  const struct pg_facts *facts = &task->problem.facts;
  struct channels_last *k = scratch->room;
  k->task = task;
  k->pool = &facts->pool;
  k->args = &task->problem.args.max_backward;
  k->grad_in = grad_in_of(facts, k->args->grad_in, &k->args->in_strides);
  clear_windows(&k->windows);
  pg_box_cover_begin(&k->cover);
  for (int64_t item = begin; item < end && !pg_is_stopped(scratch); item++) {
    const struct pg_box box = pg_box_of(&task->choice.tiling, k->pool, item);
    if (!make_box(k, &box)) VARIANT(scatter_box)(task, &box, scratch);
  }
  if (k->grad_in.nontemporal) fence_nontemporal();
}

/* --- The method --- */

static bool channels_last_fits(const struct pg_problem *problem, struct pg_tiling *tiling) {
  const struct pg_facts *f = &problem->facts;
  if (!f->channels_last || f->cells > MOST_POSITIONS) return false;
  *tiling = pg_tile_interleaved(f, MAX_ROW, STAGED);
  const int64_t width = pg_most_touching(&f->pool.w, tiling->w);
  if (f->d_windows > MAX_OUTPUT_ROWS || f->h_windows > MAX_OUTPUT_ROWS || width > STAGED_WIDTH)
    return false;
  const int64_t rows = f->d_windows * (f->h_windows + 1);
  return rows <= MAX_OUTPUT_ROWS &&
         rows * ((width + PLACES_BEHIND) * tiling->planes + LANES) <= STAGED &&
         2 * tiling->w * tiling->planes <= MAX_TWO_ROWS;
}

const struct pg_cpu_method VARIANT(max_channels_last) = {.name = "channels_last",
                                                         .fits = channels_last_fits,
                                                         .workspace = pg_flags_bytes,
                                                         .run = channels_last_items,
                                                         .mend = VARIANT(mend_flagged)};
