/* SPDX-License-Identifier: Apache-2.0 */
/* Reading rows of outputs as floats, and writing boxes of cells to gradInput. */
#ifndef PG_ROWS_H_
#define PG_ROWS_H_

#include "cpu/box.h"
#include "cpu/kernels/line_writer.h"
#include "cpu/nontemporal.h"

enum { TWO_VECTORS = 2 * LANES }; /* elements */

static inline int64_t round_up(int64_t count) { return (count + LANES - 1) / LANES * LANES; }

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static inline int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

static const int32_t lane_numbers[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

/* --- Outputs --- */

/* In a box with this width, are the first outputs in whose windows LANES neighbouring cells lie in
 * LANES places, so that one load gets them all?  At one cell at most one sliding window begins, but
 * several adaptive ones may. */
static inline bool begin_in_lanes(const struct pg_axis *axis, int64_t width) {
  const int64_t distance = least(width, LANES) - 1; /* from the first cell to the last */
  return axis->kernel > 0 || axis->out <= axis->in ||
         (axis->out / axis->in < LANES && pg_ceil_div(distance * axis->out, axis->in) < LANES);
}

/* Copies outputs as floats; up to LANES places more are written.  The outputs that lie `ahead` of
 * them are needed soon, so they are prefetched. */
static inline void widen(const element *from, int64_t stride, int64_t count, int64_t ahead,
                         float *to) {
  int64_t i = 0;
  if (stride == 1) {
    for (; i + LANES <= count; i += LANES) {
      __builtin_prefetch(from + i + ahead);
      store_f32(to + i, load_elements(from + i));
    }
    if (i < count) store_f32(to + i, load_part(from + i, count - i));
  } else if (stride == 0 && count > 0) {
    const floats same = all(widen_one(*from));
    for (; i < count; i += LANES) store_f32(to + i, same);
  } else {
    for (; i < count; i++) to[i] = widen_one(from[i * stride]);
  }
}

/* Contiguous outputs as floats.  If they are floats this is where they are, else they are copied to
 * room; `ahead` as above. */
static inline const float *widened(const element *from, int64_t count, int64_t ahead, float *room) {
  if (ELEMENT_IS_FLOAT) return (const float *)(const void *)from;
  widen(from, 1, count, ahead, room);
  return room;
}

/* --- gradInput --- */

struct grad_in {
  element *address;
  const struct pg_strides *strides;
  const struct pg_pooling *pool;
  struct pg_contiguity contiguity;
  bool nontemporal; /* it is so large that no cache would keep it */
};

static inline struct grad_in grad_in_of(const struct pg_facts *facts, void *address,
                                        const struct pg_strides *strides) {
  return (struct grad_in){.address = address,
                          .strides = strides,
                          .pool = &facts->pool,
                          .contiguity = facts->in,
                          .nontemporal = pg_prefers_nontemporal(facts->grad_in_bytes)};
}

/* The first cell of a box in its i-th plane. */
static inline element *first_cell(const struct grad_in *g, const struct pg_box *b, int64_t i) {
  const int64_t plane = b->first + i, n = plane / g->pool->c, c = plane % g->pool->c;
  return g->address + pg_offset(g->strides, n, c, b->d.begin, b->h.begin, b->w.begin);
}

/* Do the positions of a box's cells in their plane follow each other? */
static inline bool is_run(const struct pg_pooling *p, const struct pg_box *b) {
  const bool rows = pg_length(b->w) == p->w.in, slices = pg_length(b->h) == p->h.in;
  return b->cells == pg_length(b->w) || (rows && (slices || pg_length(b->d) == 1));
}

/* Do the cells of a box follow each other in memory, in each plane? */
static inline bool is_contiguous(const struct grad_in *g, const struct pg_box *b) {
  return g->contiguity.planes && is_run(g->pool, b);
}

static inline void write_plane(const struct grad_in *g, const struct pg_box *b, element *to,
                               const element *from) {
  const int64_t width = pg_length(b->w), height = pg_length(b->h), *s = g->strides->of;
  if (is_contiguous(g, b)) {
    copy_bytes(to, from, b->cells * (int64_t)sizeof *from, g->nontemporal);
    return;
  }
  for (int64_t d = 0; d < pg_length(b->d); d++)
    for (int64_t h = 0; h < height; h++, from += width) {
      element *row = to + d * s[PG_D] + h * s[PG_H];
      if (s[PG_W] == 1)
        copy_bytes(row, from, width * (int64_t)sizeof *from, g->nontemporal);
      else
        for (int64_t w = 0; w < width; w++) row[w * s[PG_W]] = from[w];
    }
}

/* Copies a finished box, plane by plane, to gradInput. */
static inline void write_box(const struct grad_in *g, const struct pg_box *b, const element *from) {
  if (b->whole && g->contiguity.all) {
    const int64_t cells = b->planes * b->cells;
    copy_bytes(g->address + b->first * b->cells, from, cells * (int64_t)sizeof *from,
               g->nontemporal);
    return;
  }
  for (int64_t i = 0; i < b->planes; i++, from += b->cells)
    write_plane(g, b, first_cell(g, b, i), from);
}

/* --- Rows that are stored as they are computed --- */

/* Where the rows of a box go in one plane: to gradInput through a line writer, directly to
 * gradInput, or, if rows of gradInput are not contiguous, to a room from which write_box copies
 * them. */
struct destination {
  struct line_writer *writer; /* or NULL */
  element *plane;             /* where the box begins, in gradInput or in the room */
  element *at;                /* where the rows go that are being computed */
  int64_t row, slice;         /* the strides of rows and of slices */
  /* Whole vectors may be stored up to here, beyond the end of their row, because what they
   * overwrite is computed later. */
  const element *end;
};

static inline struct destination destination_of(const struct grad_in *g, const struct pg_box *b,
                                                int64_t i, struct line_writer *writer,
                                                element *room) {
  struct destination t = {.row = g->strides->of[PG_H], .slice = g->strides->of[PG_D]};
  t.plane = first_cell(g, b, i);
  t.end = t.plane;
  if (!g->contiguity.rows) {
    t.plane = room + i * b->cells;
    t.row = pg_length(b->w);
    t.slice = t.row * pg_length(b->h);
    t.end = t.plane + b->cells + LANES;
  } else if (is_contiguous(g, b)) {
    t.writer = g->nontemporal ? writer : NULL;
    t.end = t.plane + (b->whole && g->contiguity.all ? b->planes - i : 1) * b->cells;
  }
  return t;
}

/* To be called before the rows from h on of slice d are computed. */
static inline void begin_rows(struct destination *t, int64_t d, int64_t h) {
  t->at = t->plane + d * t->slice + h * t->row;
  if (t->writer == NULL) return;
  t->at = (element *)(void *)writer_place(t->writer, t->at);
  t->end = (const element *)(const void *)(t->writer->room + WRITER_ROOM);
}

/* To be called when these rows are computed; together they have so many cells. */
static inline void end_rows(const struct destination *t, int64_t cells) {
  if (t->writer != NULL) writer_advance(t->writer, cells * (int64_t)sizeof(element));
}

/* How many rows are computed together, in any order: so few that the caches can put their stores in
 * order. */
static inline int64_t rows_at_once(const struct pg_box *b) {
  const int64_t rows = WRITER_FULL / (pg_length(b->w) * (int64_t)sizeof(element));
  return rows < 2 ? 2 : rows;
}

/* Stores a vector, or the `left` cells of it that belong to its row if whole vectors may not be
 * stored there; `end` is that of the destination. */
static inline void store_cells(const element *end, element *to, packed v, int64_t left) {
  if (left >= LANES || end - to >= LANES)
    store_packed(to, v);
  else
    store_part(to, v, left);
}

/* Rounds sums, stores them and sets them to 0. */
static inline void store_sums(element *to, float *sum, int64_t count) {
  int64_t i = 0;
  for (; i + TWO_VECTORS <= count; i += TWO_VECTORS) {
    store_two(to + i, load_f32(sum + i), to + i + LANES, load_f32(sum + i + LANES));
    store_f32(sum + i, zeros());
    store_f32(sum + i + LANES, zeros());
  }
  for (int64_t part; i < count; i += part) {
    part = least(count - i, LANES);
    store_part(to + i, pack(load_part_f32(sum + i, part)), part);
    store_part_f32(sum + i, zeros(), part);
  }
}

/* --- Channels last --- */

/* Stores `part` channels of a cell, 1 to LANES. */
static inline void store_channels(element *to, packed v, int64_t part) {
  if (part == LANES)
    store_packed(to, v);
  else
    store_part(to, v, part);
}

/* Copies a row of cells of an interleaved box to gradInput, past the caches. */
static inline void write_interleaved_row(const struct grad_in *g, const struct pg_box *b, int64_t d,
                                         int64_t h, const element *from) {
  const int64_t *s = g->strides->of, width = pg_length(b->w);
  element *to = first_cell(g, b, 0) + d * s[PG_D] + h * s[PG_H];
  if (s[PG_W] == b->planes) {
    copy_bytes(to, from, width * b->planes * (int64_t)sizeof *from, true);
    return;
  }
  for (int64_t w = 0; w < width; w++)
    copy_bytes(to + w * s[PG_W], from + w * b->planes, b->planes * (int64_t)sizeof *from, true);
}

#endif
