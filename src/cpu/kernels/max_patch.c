/* SPDX-License-Identifier: Apache-2.0 */
/* Max-backward in gradInput itself, for tensors whose channels are neighbours in memory.
 *
 * Cells are set to 0, and each output is then added to the cell that it names, where it is.  A cell
 * that no output names costs nothing but its zero, so this is for large windows; and where the sums
 * of a window's rows would not stay in the first-level cache, zeros that wait there for outputs
 * take half of the room, or none.  Where an output belongs is computed in vectors, for outputs of
 * all channels and of several rows at once, so few channels cost no more than many.
 *
 * Zeros are written some KiB before they are needed, a few lines after every few outputs: memory
 * then takes them while outputs are added.
 *
 * Sums of 16-bit elements are made in fp32.  Where windows do not overlap, an output is the only
 * one that names its cell, and nothing is added; if a cell is not 0 any more, an index is not where
 * it should be.  Otherwise sums are kept aside, and a cell gets the rounded sum with each of its
 * outputs.
 *
 * If an index lies outside the cells that outputs so far may name, the box is scattered. */
#include <assert.h>

#include "core/checked.h"
#include "cpu/kernels/max_staging.h"

enum {
  MOST_CHANNELS = 2048,
  MOST_CELLS = 32768, /* of a box: so many can be scattered plane by plane */
  SUMS = 96 << 10,    /* that are kept aside: the elements of a box */
  AT_ONCE = 128,      /* outputs whose places are computed before they are added */
  /* Cells for each output from which on this is faster than sums that are written (measured). */
  IF_MOVED = 3,
  IF_ASIDE = 24,
  IF_ROWS_ARE_SHORT = 6,
  USUAL_OUTPUTS = 16,  /* of a row, times channels */
  AHEAD = 2048,        /* bytes of indices that are prefetched */
  WORTH_CLEARING = 512 /* bytes of gradInput */
};

struct max_patch {
  const struct pg_task *task;
  const struct pg_scratch *scratch; /* the memory in which this struct is */
  const struct pg_pooling *pool;
  const struct pg_max_backward *args;
  struct grad_in grad_in;
  int64_t planes;     /* channels: all there are */
  bool apart;         /* windows do not overlap */
  int64_t per_output; /* elements to be set to 0 for each output */
  /* Of a box in one n. */
  element *to;      /* where its first cell is */
  int64_t begin;    /* the position of that cell */
  int64_t elements; /* cells times channels */
  int64_t cleared;  /* elements that have been set to 0 */
  int64_t due;      /* elements that should be set to 0 by now */
  _Alignas(LINE) int32_t channel[MOST_CHANNELS + LANES]; /* of outputs that follow each other */
  _Alignas(LINE) int32_t place[AT_ONCE + LANES];
  _Alignas(LINE) float grad[AT_ONCE + LANES];
  _Alignas(LINE) element rounded[AT_ONCE + LANES];
  _Alignas(LINE) float sums[ELEMENT_IS_FLOAT ? 1 : SUMS];
};
_Static_assert(sizeof(struct max_patch) <= PG_SCRATCH_METHOD, "patching needs more scratch");

/* --- Zeros --- */

static void clear_until(struct max_patch *k, int64_t end) {
  if (end <= k->cleared) return;
  memset(k->to + k->cleared, 0, (size_t)(end - k->cleared) * sizeof *k->to);
  k->cleared = end;
}

/* Clears as many elements as are due after so many outputs. */
static void clear_some(struct max_patch *k, int64_t outputs) {
  k->due += outputs * k->per_output;
  if (k->due < WORTH_CLEARING / (int)sizeof(element)) return;
  clear_until(k, least(k->elements, k->cleared + k->due));
  k->due = 0;
}

/* --- Outputs --- */

/* Outputs that follow each other in memory, beginning with the first channel. */
struct run {
  const element *grad;
  const void *index;
  int64_t count;
};

/* The positions that indices may have: `cells` of them from `first` on in each of `slices` slices;
 * and whether all of those are in the box. */
struct allowed {
  int32_t first, cells;
  int64_t slices;
  bool inside;
};

/* Computes where outputs belong; those of other boxes get a place behind the box.  False when an
 * index is not allowed. */
static inline __attribute__((always_inline)) bool find_places(struct max_patch *k,
                                                              const struct allowed *a,
                                                              const struct run *o, int64_t channel,
                                                              const bool is_i64) {
  const ints first = all_i(a->first), cells = all_i(a->cells), begin = all_i((int32_t)k->begin);
  const ints slice = all_i((int32_t)(k->pool->h.in * k->pool->w.in));
  const ints behind = all_i((int32_t)(k->elements / k->planes)), planes = all_i((int32_t)k->planes);
  const int64_t step = LANES % k->planes, ahead = AHEAD / (is_i64 ? 8 : 4);
  const int32_t *channels = k->channel;
  int32_t *place = k->place;
  ints high = all_i(0), furthest = all_i(0);
  int64_t i = 0;
  for (; i < o->count; i += LANES) {
    ints x;
    if (i + LANES <= o->count) {
      x = load_index(o->index, is_i64, i, ahead, &high);
      __builtin_prefetch(o->grad + i + ahead);
    } else if (!load_last_index(o->index, is_i64, i, o->count - i, &x)) {
      return false;
    }
    const ints distance = folded(sub_i(x, first), slice, a->slices);
    if (i + LANES > o->count && !every(below(distance, cells), o->count - i)) return false;
    if (i + LANES <= o->count) furthest = most_u(furthest, distance);
    const ints at = least_u(sub_i(x, begin), behind);
    store_i32(place + i, add_i(times_i(at, planes), load_i32(channels + channel)));
    channel += step;
    channel -= channel >= k->planes ? k->planes : 0;
  }
  return every(below(furthest, cells), LANES) && high_halves_are_zero(high);
}

/* Those of the places that are in the box, with their outputs, move to the front. */
static int64_t keep_inside(struct max_patch *k, int64_t count) {
  const ints end = all_i((int32_t)k->elements), lanes = load_i32(lane_numbers);
  int64_t kept = 0;
  for (int64_t i = 0; i < count; i += LANES) {
    const ints place = load_i32(k->place + i), grad = as_ints(load_f32(k->grad + i));
    const truths inside = both(below(place, end), below(lanes, all_i((int32_t)(count - i))));
    store_true(k->place + kept, place, inside);
    kept += store_true(k->grad + kept, grad, inside);
  }
  return kept;
}

static void add_in_place(float *to, const int32_t *place, const float *grad, int64_t count) {
  __asm__("" : "+r"(to), "+r"(place)); /* else the compiler adds their offsets every time */
#pragma GCC unroll 8
  for (int64_t i = 0; i < count; i++) to[place[i]] += grad[i];
}

/* Rounds some floats, and 0 is added to them. */
static void round_some(struct max_patch *k, const float *from, int64_t count) {
  for (int64_t i = 0; i < count; i += LANES)
    store_packed(k->rounded + i, pack(add(zeros(), load_f32(from + i))));
}

/* False when a cell is named a second time. */
static bool move_outputs(struct max_patch *k, const float *grad, int64_t count) {
  element *to = k->to;
  const int32_t *place = k->place;
  element before = 0;
  round_some(k, grad, count);
#pragma GCC unroll 8
  for (int64_t i = 0; i < count; i++) {
    before = (element)(ELEMENT_IS_FLOAT ? 0 : (int)before | (int)to[place[i]]);
    to[place[i]] = k->rounded[i];
  }
  return before == 0;
}

/* A cell that is 0 has no sum yet, or one of 0: sums of 16-bit elements that are not 0 do not round
 * to 0.  So nobody has to set sums to 0.  While outputs are added their cells only have to be other
 * than 0. */
static void add_aside(struct max_patch *k, const float *grad, int64_t count) {
  element *to = k->to;
  const int32_t *place = k->place;
#pragma GCC unroll 8
  for (int64_t i = 0; i < count; i++) {
    int32_t bits;
    float sum;
    memcpy(&bits, k->sums + place[i], sizeof bits);
    bits &= -(int32_t)(to[place[i]] != 0); /* a branch could not be predicted */
    memcpy(&sum, &bits, sizeof sum);
    k->grad[i] = k->sums[place[i]] = sum + grad[i];
    to[place[i]] = (element)1;
  }
  round_some(k, k->grad, count);
#pragma GCC unroll 8
  for (int64_t i = 0; i < count; i++) to[place[i]] = k->rounded[i];
}

/* Adds outputs whose places are known. */
static bool add_outputs(struct max_patch *k, const struct run *o, bool inside) {
  const float *grad = k->grad;
  int64_t count = o->count;
  if (inside) {
    grad = widened(o->grad, count, 0, k->grad);
  } else {
    widen(o->grad, 1, count, 0, k->grad);
    count = keep_inside(k, count);
  }
  if (ELEMENT_IS_FLOAT)
    add_in_place((float *)(void *)k->to, k->place, grad, count);
  else if (k->apart)
    return move_outputs(k, grad, count);
  else
    add_aside(k, grad, count);
  return true;
}

/* False when an index is not allowed, or not the only one of its cell although it should be. */
static bool add_run(struct max_patch *k, const struct allowed *a, struct run o) {
  const int64_t bytes = k->args->index_bytes;
  int64_t left = o.count, channel = 0;
  for (; left > 0 && !pg_is_stopped(k->scratch); left -= o.count) {
    o.count = least(left, AT_ONCE);
    if (!(bytes == 8 ? find_places(k, a, &o, channel, true)
                     : find_places(k, a, &o, channel, false)))
      return false;
    if (!add_outputs(k, &o, a->inside)) return false;
    clear_some(k, o.count);
    o.grad += o.count;
    o.index = (const char *)o.index + o.count * bytes;
    channel = (channel + o.count) % k->planes;
  }
  return true;
}

/* --- Boxes --- */

static bool lies_in(struct pg_range a, struct pg_range b) {
  return a.begin >= b.begin && a.end <= b.end;
}

/* The outputs of some rows, all channels of them. */
static struct run rows_of(const struct max_patch *k, const struct pg_max_plane *t, int64_t od,
                          struct pg_range oh) {
  const struct output_row o = output_row_of(t, od, oh.begin, t->ow);
  return (struct run){o.grad, o.index, pg_length(oh) * k->pool->w.out * k->planes};
}

/* Adds rows of outputs that lie in one slice.  All cells of the box that their windows hold, and
 * those before them, are 0 or have sums. */
static bool add_rows(struct max_patch *k, const struct pg_max_plane *t, int64_t od,
                     struct pg_range oh) {
  const struct pg_pooling *p = k->pool;
  const struct pg_box *b = t->box;
  const struct pg_row_windows first = pg_row_windows_of(p, od, oh.begin);
  const struct pg_row_windows last = pg_row_windows_of(p, od, oh.end - 1);
  const int64_t rows = b->d.begin * p->h.in + b->h.begin; /* before the box */
  const int64_t d_end = least(last.d.end, b->d.end), h_end = least(last.h.end, b->h.end);
  const int64_t end = most(0, ((d_end - 1) * p->h.in + h_end - rows) * p->w.in);
  clear_until(k, least(k->elements, end * k->planes));
  const bool inside =
      b->whole || (lies_in(first.d, b->d) && lies_in(first.h, b->h) && lies_in(last.h, b->h));
  if (inside) {
    const int64_t cells = k->cleared / k->planes;
    const struct allowed a = {(int32_t)k->begin, (int32_t)cells, 1, true};
    return add_run(k, &a, rows_of(k, t, od, oh));
  }
  for (; oh.begin < oh.end && !pg_is_stopped(k->scratch); oh.begin++) {
    const struct pg_row_windows row = pg_row_windows_of(p, od, oh.begin);
    if (pg_length(row.d) < 1 || pg_length(row.h) < 1) return false; /* they lie in the padding */
    const struct allowed a = {.first = (int32_t)((row.d.begin * p->h.in + row.h.begin) * p->w.in),
                              .cells = (int32_t)(pg_length(row.h) * p->w.in),
                              .slices = pg_length(row.d)};
    const struct pg_range one = {oh.begin, oh.begin + 1};
    if (!add_run(k, &a, rows_of(k, t, od, one))) return false;
  }
  return true;
}

/* The part of a box that lies in one n. */
static bool patch_part(struct max_patch *k, const struct pg_box *box, int64_t plane) {
  const struct pg_pooling *p = k->pool;
  const struct pg_max_plane t = pg_max_plane_of(k->task, box, plane, false);
  const int64_t at_once = most(1, (int64_t)AT_ONCE * 2 / (p->w.out * k->planes)); /* rows */
  k->to = k->grad_in.address +
          pg_offset(k->grad_in.strides, t.n, 0, box->d.begin, box->h.begin, box->w.begin);
  k->begin = (box->d.begin * p->h.in + box->h.begin) * p->w.in;
  k->elements = box->cells * k->planes;
  k->cleared = k->due = 0;
  bool fine = true;
  for (int64_t od = t.od.begin; od < t.od.end && fine; od++)
    for (int64_t oh = t.oh.begin; oh < t.oh.end && fine; oh += at_once)
      fine = !pg_is_stopped(k->scratch) &&
             add_rows(k, &t, od, (struct pg_range){oh, least(t.oh.end, oh + at_once)});
  clear_until(k, k->elements);
  return fine;
}

static bool patch_box(struct max_patch *k, const struct pg_box *box) {
  for (int64_t i = 0; i < box->planes; i += k->planes)
    if (!patch_part(k, box, box->first + i)) return pg_is_stopped(k->scratch);
  return true;
}

static bool windows_are_apart(const struct pg_facts *f) {
  return f->d_windows <= 1 && f->h_windows <= 1 && f->w_windows <= 1;
}

static void patch_items(const void *args, int64_t begin, int64_t end, struct pg_scratch *scratch) {
  const struct pg_task *task = args;
  const struct pg_facts *facts = &task->problem.facts;
  struct max_patch *k = scratch->room;
  k->task = task;
  k->scratch = scratch;
  k->pool = &facts->pool;
  k->args = &task->problem.args.max_backward;
  k->grad_in = grad_in_of(facts, k->args->grad_in, &k->args->in_strides);
  k->planes = k->pool->c;
  k->apart = windows_are_apart(facts);
  k->per_output = facts->cells / most(1, facts->outputs) + 1;
  for (int64_t i = 0; i < k->planes; i++) k->channel[i] = (int32_t)i;
  for (int64_t i = 0; i < LANES; i++) k->channel[k->planes + i] = (int32_t)(i % k->planes);
  for (int64_t item = begin; item < end && !pg_is_stopped(scratch); item++) {
    const struct pg_box box = pg_box_of(&task->choice.tiling, k->pool, item);
    if (!patch_box(k, &box)) VARIANT(scatter_box)(task, &box, scratch);
  }
}

/* --- The method --- */

/* Do the elements of one n follow each other in memory, if its axes have these lengths? */
static bool is_dense(const struct pg_strides *s, int64_t c, int64_t d, int64_t h, int64_t w) {
  return (w == 1 || s->of[PG_W] == c) && (h == 1 || s->of[PG_H] == w * c) &&
         (d == 1 || s->of[PG_D] == h * w * c);
}

/* The most cells of an axis that a window holds. */
static int64_t longest_window(const struct pg_axis *axis) {
  const int64_t length =
      axis->kernel == 0 ? pg_ceil_div(axis->in, axis->out) + 1 : pg_window_span(axis) + 1;
  return least(axis->in, length);
}

/* How long bands of about so many cells of an axis are: they begin with windows if possible, and
 * are longer than these, because outputs whose windows hang over cost more. */
static int64_t band_of(const struct pg_axis *axis, int64_t cells, int64_t most_cells) {
  const int64_t stride = most(1, axis->stride);
  const bool apart = axis->kernel > 0 && pg_window_span(axis) < axis->stride;
  const int64_t length = most(cells, apart ? stride : 4 * longest_window(axis));
  const int64_t whole = pg_ceil_div(length, stride) * stride;
  return most(1, least(axis->in, least(whole, most_cells)));
}

/* Several n if these are small, else bands of slices or of rows. */
static struct pg_tiling patch_tiling(const struct pg_facts *f, bool aside) {
  enum { ITEMS = 8, LEAST = 16 << 10, MOST = 128 << 10 }; /* bytes of an item */
  const struct pg_pooling *p = &f->pool;
  const int64_t bytes = f->grad_in_bytes / (f->planes * f->cells);
  const int64_t wanted = least(MOST, most(LEAST, f->grad_in_bytes / ITEMS)) / bytes / p->c;
  const int64_t cells = aside ? least(MOST_CELLS, SUMS / p->c) : MOST_CELLS;
  const int64_t slice = p->h.in * p->w.in;
  struct pg_tiling t = {
      .interleaved = true, .planes = p->c, .d = p->d.in, .h = p->h.in, .w = p->w.in};
  if (f->cells <= wanted && f->cells <= cells) {
    t.planes = p->c * most(1, least(p->n, wanted / f->cells));
    return pg_tile_boxes(p, &t);
  }
  t.d = slice <= cells ? band_of(&p->d, wanted / slice, cells / slice) : 1;
  if (t.d == 1) t.h = band_of(&p->h, wanted / p->w.in, cells / p->w.in);
  return pg_tile_boxes(p, &t);
}

static bool patch_fits(const struct pg_problem *problem, struct pg_tiling *tiling) {
  const struct pg_facts *f = &problem->facts;
  const struct pg_pooling *p = &f->pool;
  const struct pg_max_backward *a = &problem->args.max_backward;
  const bool aside = !ELEMENT_IS_FLOAT && !windows_are_apart(f);
  const int64_t cells_for_each = ELEMENT_IS_FLOAT                   ? 0
                                 : !aside                           ? IF_MOVED
                                 : p->c * p->w.out >= USUAL_OUTPUTS ? IF_ASIDE
                                                                    : IF_ROWS_ARE_SHORT;
  if (!f->neighbours || p->c > MOST_CHANNELS || f->outputs == 0 || f->cells > MOST_POSITIONS ||
      p->w.in > (aside ? SUMS / p->c : MOST_CELLS) || f->grad_in_bytes >= PATCHED_BYTES ||
      f->cells / f->outputs < cells_for_each)
    return false;
  if (!is_dense(&a->in_strides, p->c, p->d.in, p->h.in, p->w.in) ||
      !is_dense(&a->out_strides, p->c, p->d.out, p->h.out, p->w.out) ||
      !is_dense(&a->index_strides, p->c, p->d.out, p->h.out, p->w.out))
    return false;
  *tiling = patch_tiling(f, aside);
  return true;
}

const struct pg_cpu_method VARIANT(max_patch) = {.name = "patch",
                                                 .fits = patch_fits,
                                                 .workspace = pg_flags_bytes,
                                                 .run = patch_items,
                                                 .mend = VARIANT(mend_flagged)};
