/* SPDX-License-Identifier: Apache-2.0 */
/* Max-backward by scattering, for tensors whose channels are neighbours in memory.
 *
 * A box has some channels of whole rows, or of whole slices.  Its outputs are taken in order.
 * Where each of them belongs is computed in vectors, and then it is added there, to a sum in fp32.
 * That needs no comparison with any window, so it costs the same for all windows, and because
 * channels have sums of their own, an addition seldom waits for the one before it.
 *
 * The sums of the cells that the latest outputs may name are in scratch memory.  When no further
 * output of a box may name a cell, its sums are rounded, written and set to 0; from time to time
 * those that are left move to the front.  So a box may have more cells than scratch memory.
 *
 * An output may name every cell of the rows of its window (or of the slices, if boxes consist of
 * these), because every box that has a part of them looks at this output.  If an index lies
 * elsewhere, the box is scattered plane by plane, which finds out whose index it is. */
#include <assert.h>

#include "core/checked.h"
#include "cpu/kernels/max_staging.h"

enum {
  MOST_CHANNELS = 2048, /* of a box */
  MOST_CELLS = 8192,    /* of a box: so many can be scattered plane by plane */
  SUMS = 128 << 10,     /* in scratch memory: those that are needed, spare cells, a line */
  ROOM = SUMS - 2 * MOST_CHANNELS - LINE,
  AT_ONCE = 128,      /* outputs whose places are computed before they are added */
  SOON = 1024,        /* outputs that are prefetched */
  WORTH_WRITING = 512 /* sums */
};

struct max_channels_last {
  const struct pg_task *task;
  const struct pg_scratch *scratch; /* the memory in which this struct is */
  const struct pg_pooling *pool;
  const struct pg_max_backward *args;
  struct grad_in grad_in;
  int64_t zeros;      /* between two boxes the first so many sums are 0 */
  int64_t per_output; /* elements to be written for each output */
  /* Of a box. */
  int64_t planes;    /* channels */
  int64_t end;       /* the position behind its last cell */
  int64_t begin;     /* the position of the cell that sums[] begins with */
  int64_t used;      /* no cell from this position on has been named yet */
  int64_t written;   /* elements that have been written, counted from position 0 */
  int64_t finished;  /* no further output names a cell before this position */
  int64_t due;       /* elements that should be written by now */
  int64_t spare;     /* the place, in cells, for outputs that belong to other boxes */
  int64_t spares;    /* cells there: if channels are few, one for each lane */
  element *to;       /* where the cell with position 0 is, in the first channel */
  bool in_one_piece; /* all cells of the box follow each other in gradInput */
  _Alignas(LINE) int32_t channel[MOST_CHANNELS + LANES]; /* of the outputs of a row */
  _Alignas(LINE) int32_t place[AT_ONCE + LANES];
  _Alignas(LINE) float grad[AT_ONCE + LANES];
  _Alignas(LINE) float sums[SUMS + LANES];
};
_Static_assert(sizeof(struct max_channels_last) <= PG_SCRATCH_METHOD,
               "channels last needs more scratch");

/* --- Writing sums --- */

/* Rounds sums, writes them and sets them to 0; complete lines of memory go past the caches. */
static void write_sums_nontemporal(element *to, float *from, int64_t count) {
  const int64_t head = (int64_t)(-(uintptr_t)to % LINE / sizeof *to);
  int64_t i = least(head, count);
  store_sums(to, from, i);
  for (; i + TWO_VECTORS <= count; i += TWO_VECTORS) {
    store_two_nontemporal(to + i, load_f32(from + i), load_f32(from + i + LANES));
    store_f32(from + i, zeros());
    store_f32(from + i + LANES, zeros());
  }
  store_sums(to + i, from + i, count - i);
}

static void write_channel_run(const struct max_channels_last *k, element *to, float *from,
                              int64_t count) {
  if (k->grad_in.nontemporal)
    write_sums_nontemporal(to, from, count);
  else
    store_sums(to, from, count);
}

/* Writes the sums of cells that do not follow each other in gradInput. */
static void write_apart(const struct max_channels_last *k, float *from, int64_t cell, int64_t end) {
  const int64_t *s = k->grad_in.strides->of, width = k->pool->w.in, height = k->pool->h.in;
  int64_t row = cell / width, w = cell % width;
  while (cell < end) {
    element *to = k->to + row / height * s[PG_D] + row % height * s[PG_H];
    const int64_t cells = least(width - w, end - cell);
    if (s[PG_W] == k->planes)
      write_channel_run(k, to + w * s[PG_W], from, cells * k->planes);
    else
      for (int64_t i = 0; i < cells; i++)
        write_channel_run(k, to + (w + i) * s[PG_W], from + i * k->planes, k->planes);
    from += cells * k->planes;
    cell += cells;
    row++;
    w = 0;
  }
}

/* Writes sums up to about the element `end` of the box's channels.  If they follow each other in
 * memory, an incomplete line is left for the next time, unless it is the last. */
static void write_until(struct max_channels_last *k, int64_t end) {
  float *from = k->sums + (k->written - k->begin * k->planes);
  if (k->in_one_piece) {
    if (end < k->end * k->planes) end -= (int64_t)((uintptr_t)(k->to + end) % LINE / sizeof *k->to);
    if (end > k->written) write_channel_run(k, k->to + k->written, from, end - k->written);
  } else {
    end -= end % k->planes;
    write_apart(k, from, k->written / k->planes, end / k->planes);
  }
  k->written = most(k->written, end);
}

/* Writes some of the finished sums, as many as are due after so many outputs: writing and reading
 * overlap if they alternate. */
static void write_some(struct max_channels_last *k, int64_t outputs) {
  k->due += outputs * k->per_output;
  if (k->due < WORTH_WRITING) return;
  write_until(k, least(k->finished * k->planes, k->written + k->due));
  k->due = 0;
}

/* --- Adding outputs --- */

/* Outputs that follow each other in memory: some channels of one output, or of several. */
struct run {
  const element *grad;
  const void *index;
  int64_t count;
  int64_t ahead; /* so much further on are outputs that are needed soon */
};

/* The positions that the indices of a row of outputs may have: `cells` of them from `first` on in
 * each of `slices` slices. */
struct allowed {
  int32_t first, cells;
  int64_t slices;
};

/* What find_places needs to know, in vectors. */
struct placing {
  ints first, cells, slice, begin, spare, planes;
  int64_t slices;
};

/* Outputs of other boxes are added up in places of their own for each lane: else, with few
 * channels, an addition would wait for the one before it. */
static inline struct placing placing_of(const struct max_channels_last *k,
                                        const struct allowed *a) {
  const ints spare = all_i((int32_t)k->spare);
  return (struct placing){
      .first = all_i(a->first),
      .cells = all_i(a->cells),
      .slice = all_i((int32_t)(k->pool->h.in * k->pool->w.in)),
      .begin = all_i((int32_t)k->begin),
      .spare = k->spares == LANES ? add_i(spare, load_i32(lane_numbers)) : spare,
      .planes = all_i((int32_t)k->planes),
      .slices = a->slices};
}

/* Where outputs with these indices and channels belong. */
static inline ints place_in_sums(const struct placing *p, ints index, ints channel) {
  const ints at = least_u(sub_i(index, p->begin), p->spare);
  return add_i(times_i(at, p->planes), channel);
}

/* How far indices are behind the first that is allowed; if they are not, no less than `cells`. */
static inline ints distance_behind(const struct placing *p, ints index, const int64_t slices) {
  return folded(sub_i(index, p->first), p->slice, slices);
}

/* Computes where in sums[] outputs belong.  False when an index is not allowed. */
static inline __attribute__((always_inline)) bool find_places(struct max_channels_last *k,
                                                              const struct placing *p,
                                                              const struct run *o, int64_t channel,
                                                              const bool is_i64,
                                                              const int64_t slices) {
  const int64_t planes = k->planes, step = LANES % planes, ahead = o->ahead;
  const int32_t *channels = k->channel;
  int32_t *place = k->place;
  ints high = all_i(0), furthest = all_i(0), x;
  int64_t i = 0;
  for (; i + LANES <= o->count; i += LANES) {
    x = load_index(o->index, is_i64, i, ahead, &high);
    __builtin_prefetch(o->grad + i + ahead);
    furthest = most_u(furthest, distance_behind(p, x, slices));
    store_i32(place + i, place_in_sums(p, x, load_i32(channels + channel)));
    channel += step;
    channel -= channel >= planes ? planes : 0;
  }
  if (!every(below(furthest, p->cells), LANES) || !high_halves_are_zero(high)) return false;
  if (i == o->count) return true;
  if (!load_last_index(o->index, is_i64, i, o->count - i, &x)) return false;
  store_i32(place + i, place_in_sums(p, x, load_i32(channels + channel)));
  return every(below(distance_behind(p, x, slices), p->cells), o->count - i);
}

static inline __attribute__((always_inline)) bool find_places_of_type(struct max_channels_last *k,
                                                                      const struct allowed *a,
                                                                      const struct run *o,
                                                                      int64_t channel,
                                                                      const bool is_i64) {
  const struct placing p = placing_of(k, a);
  return a->slices == 1 ? find_places(k, &p, o, channel, is_i64, 1)
                        : find_places(k, &p, o, channel, is_i64, a->slices);
}

static inline void add_to_places(float *sums, const int32_t *place, const float *grad,
                                 int64_t count) {
  __asm__("" : "+r"(sums), "+r"(place)); /* else the compiler adds their offsets every time */
#pragma GCC unroll 8
  for (int64_t i = 0; i < count; i++) sums[place[i]] += grad[i];
}

/* Adds a run of outputs, which begins with the box's first channel. */
static bool add_channel_run(struct max_channels_last *k, const struct allowed *a, struct run o) {
  const int64_t bytes = k->args->index_bytes;
  int64_t left = o.count, channel = 0;
  for (; left > 0 && !pg_is_stopped(k->scratch); left -= o.count) {
    o.count = least(left, AT_ONCE);
    if (!(bytes == 8 ? find_places_of_type(k, a, &o, channel, true)
                     : find_places_of_type(k, a, &o, channel, false)))
      return false;
    const float *grad = widened(o.grad, o.count, 0, k->grad);
    add_to_places(k->sums, k->place, grad, o.count);
    write_some(k, o.count);
    o.grad += o.count;
    o.index = (const char *)o.index + o.count * bytes;
    channel = (channel + o.count) % k->planes;
  }
  return true;
}

/* Adds the outputs `ow` of the row (od, oh) in all planes of the box. */
static bool add_output_row(struct max_channels_last *k, const struct pg_max_plane *t,
                           const struct allowed *a, int64_t od, int64_t oh) {
  const int64_t *grad = k->args->out_strides.of, *index = k->args->index_strides.of;
  const struct output_row o = output_row_of(t, od, oh, t->ow);
  struct run run = {.grad = o.grad, .index = o.index, .count = k->planes, .ahead = SOON};
  if (o.count == 1 || (grad[PG_W] == k->planes && index[PG_W] == k->planes)) {
    run.count *= o.count;
    return add_channel_run(k, a, run);
  }
  run.ahead = pg_ceil_div(SOON, k->planes) * grad[PG_W];
  for (int64_t i = 0; i < o.count && !pg_is_stopped(k->scratch); i++) {
    if (!add_channel_run(k, a, run)) return false;
    run.grad += grad[PG_W];
    run.index = (const char *)run.index + index[PG_W] * k->args->index_bytes;
  }
  return true;
}

/* --- Boxes --- */

static void clear_spare(struct max_channels_last *k) {
  memset(k->sums + k->spare * k->planes, 0, (size_t)(k->spares * k->planes) * sizeof *k->sums);
}

/* The cells that there are places for, without the spare ones. */
static int64_t cells_at_once(const struct max_channels_last *k) {
  return SUMS / k->planes - k->spares;
}

/* Moves the sums that are not written yet to the front. */
static void move_sums(struct max_channels_last *k) {
  const int64_t from = k->written / k->planes;
  const int64_t cells = k->used - from, gone = from - k->begin;
  clear_spare(k);
  memmove(k->sums, k->sums + gone * k->planes, (size_t)(cells * k->planes) * sizeof *k->sums);
  const int64_t zero = most(cells, gone), end = k->used - k->begin;
  memset(k->sums + zero * k->planes, 0, (size_t)((end - zero) * k->planes) * sizeof *k->sums);
  k->begin = from;
  k->spare = least(k->end - from, cells_at_once(k));
}

/* To be called before outputs are added that name cells from `first` to `end`, and after which no
 * output names a cell before `first`. */
static void make_room(struct max_channels_last *k, int64_t first, int64_t end) {
  assert(end - first < SUMS / k->planes - LINE / k->planes); /* tiles are made so */
  const int64_t room = cells_at_once(k), rows = room / k->pool->w.in;
  while (end - k->begin > room) {
    const int64_t now = least(first, (k->begin / k->pool->w.in + rows) * k->pool->w.in);
    write_until(k, now * k->planes);
    k->used = most(k->used, now);
    move_sums(k);
  }
  k->finished = first;
  k->used = most(k->used, end);
}

static int64_t within(struct pg_range r, int64_t x) { return least(most(x, r.begin), r.end); }

/* The box consists of whole rows of one slice. */
static bool add_rows(struct max_channels_last *k, const struct pg_max_plane *t) {
  const struct pg_pooling *p = k->pool;
  const struct pg_box *b = t->box;
  const int64_t top = b->d.begin * p->h.in; /* the first row of the slice */
  for (int64_t od = t->od.begin; od < t->od.end; od++)
    for (int64_t oh = t->oh.begin; oh < t->oh.end && !pg_is_stopped(k->scratch); oh++) {
      const struct pg_row_windows row = pg_row_windows_of(p, od, oh);
      if (pg_length(row.d) < 1 || pg_length(row.h) < 1) return false; /* they lie in the padding */
      const struct allowed a = {.first = (int32_t)((row.d.begin * p->h.in + row.h.begin) * p->w.in),
                                .cells = (int32_t)(pg_length(row.h) * p->w.in),
                                .slices = pg_length(row.d)};
      const bool last = od == t->od.end - 1; /* outputs of the next slice name these cells again */
      const int64_t first = last ? within(b->h, row.h.begin) : b->h.begin;
      make_room(k, (top + first) * p->w.in, (top + within(b->h, row.h.end)) * p->w.in);
      if (!add_output_row(k, t, &a, od, oh)) return false;
    }
  return true;
}

/* The box consists of whole slices. */
static bool add_slices(struct max_channels_last *k, const struct pg_max_plane *t) {
  const struct pg_pooling *p = k->pool;
  const struct pg_box *b = t->box;
  const int64_t slice = p->h.in * p->w.in;
  for (int64_t od = t->od.begin; od < t->od.end && !pg_is_stopped(k->scratch); od++) {
    const struct pg_range d = pg_window_clip(&p->d, pg_window(&p->d, od));
    if (pg_length(d) < 1) return false; /* the windows lie in the padding */
    const struct allowed a = {
        .first = (int32_t)(d.begin * slice), .cells = (int32_t)(pg_length(d) * slice), .slices = 1};
    make_room(k, within(b->d, d.begin) * slice, within(b->d, d.end) * slice);
    for (int64_t oh = t->oh.begin; oh < t->oh.end && !pg_is_stopped(k->scratch); oh++)
      if (!add_output_row(k, t, &a, od, oh)) return false;
  }
  return true;
}

/* The box is a plane that scratch memory has room for: its outputs may name every cell. */
static bool add_plane(struct max_channels_last *k, const struct pg_max_plane *t) {
  const struct pg_pooling *p = k->pool;
  const struct allowed a = {.first = 0, .cells = (int32_t)k->end, .slices = 1};
  const struct output_row o = output_row_of(t, 0, 0, t->ow);
  const int64_t *grad = k->args->out_strides.of, *index = k->args->index_strides.of;
  const int64_t w = k->planes, h = pg_mul_or_most(w, p->w.out), d = pg_mul_or_most(h, p->h.out);
  k->used = k->end;
  if ((p->w.out == 1 || (grad[PG_W] == w && index[PG_W] == w)) &&
      (p->h.out == 1 || (grad[PG_H] == h && index[PG_H] == h)) &&
      (p->d.out == 1 || (grad[PG_D] == d && index[PG_D] == d)))
    return add_channel_run(k, &a, (struct run){o.grad, o.index, d * p->d.out, SOON});
  for (int64_t od = 0; od < p->d.out && !pg_is_stopped(k->scratch); od++)
    for (int64_t oh = 0; oh < p->h.out && !pg_is_stopped(k->scratch); oh++)
      if (!add_output_row(k, t, &a, od, oh)) return false;
  return true;
}

static void begin_channels(struct max_channels_last *k, const struct pg_box *box) {
  const struct pg_pooling *p = k->pool;
  const int64_t *s = k->grad_in.strides->of;
  const int64_t row = box->d.begin * p->h.in + box->h.begin;
  if (k->planes != box->planes)
    for (int64_t i = 0; i < box->planes + LANES; i++) k->channel[i] = (int32_t)(i % box->planes);
  k->planes = box->planes;
  k->begin = k->used = k->finished = row * p->w.in;
  k->end = k->begin + box->cells;
  k->written = k->begin * k->planes;
  k->due = 0;
  k->spares = k->planes < LANES ? LANES : 1;
  k->spare = least(box->cells, cells_at_once(k));
  k->to = k->grad_in.address +
          pg_offset(k->grad_in.strides, box->first / p->c, box->first % p->c, 0, 0, 0);
  k->in_one_piece = (p->w.in == 1 || s[PG_W] == k->planes) &&
                    (p->h.in == 1 || s[PG_H] == p->w.in * k->planes) &&
                    (p->d.in == 1 || s[PG_D] == p->h.in * p->w.in * k->planes);
  const int64_t sums = (k->spare + k->spares) * k->planes;
  if (k->zeros < sums) memset(k->sums + k->zeros, 0, (size_t)(sums - k->zeros) * sizeof *k->sums);
  k->zeros = most(k->zeros, sums);
}

/* False when an index is not allowed; all of the box must then be computed again. */
static bool compute_channels(struct max_channels_last *k, const struct pg_box *box) {
  const struct pg_max_plane t = pg_max_plane_of(k->task, box, box->first, false);
  begin_channels(k, box);
  const bool fine = box->whole && box->cells == k->spare ? add_plane(k, &t)
                    : pg_length(box->d) == 1             ? add_rows(k, &t)
                                                         : add_slices(k, &t);
  if (fine) {
    make_room(k, k->end, k->end);
    write_until(k, k->end * k->planes);
  } else {
    k->zeros = 0;
    if (k->grad_in.nontemporal) fence_nontemporal();
  }
  clear_spare(k);
  return fine;
}

static void max_channels_last_items(const void *args, int64_t begin, int64_t end,
                                    struct pg_scratch *scratch) {
  const struct pg_task *task = args;
  const struct pg_facts *facts = &task->problem.facts;
  struct max_channels_last *k = scratch->room;
  k->task = task;
  k->scratch = scratch;
  k->pool = &facts->pool;
  k->args = &task->problem.args.max_backward;
  k->grad_in = grad_in_of(facts, k->args->grad_in, &k->args->in_strides);
  if ((uintptr_t)k->grad_in.address % sizeof(element) != 0) k->grad_in.nontemporal = false;
  k->per_output = facts->cells / most(1, facts->outputs) + 1;
  k->zeros = 0;
  k->planes = -1; /* there is no table of channels yet */
  for (int64_t item = begin; item < end && !pg_is_stopped(scratch); item++) {
    const struct pg_box box = pg_box_of(&task->choice.tiling, k->pool, item);
    if (!compute_channels(k, &box)) VARIANT(scatter_box)(task, &box, scratch);
  }
  if (k->grad_in.nontemporal) fence_nontemporal();
}

/* --- The method --- */

static bool max_channels_last_fits(const struct pg_problem *problem, struct pg_tiling *tiling) {
  const struct pg_facts *f = &problem->facts;
  if (!f->neighbours || f->cells > MOST_POSITIONS || f->pool.w.in > MOST_CELLS) return false;
  *tiling = pg_tile_bands(f, MOST_CELLS, ROOM);
  return true;
}

const struct pg_cpu_method VARIANT(max_channels_last) = {.name = "channels_last",
                                                         .fits = max_channels_last_fits,
                                                         .workspace = pg_flags_bytes,
                                                         .run = max_channels_last_items,
                                                         .mend = VARIANT(mend_flagged)};
