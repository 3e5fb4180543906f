/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes: where an item's cells are, and which outputs each of them lies in. */
#ifndef PG_BOX_H_
#define PG_BOX_H_

#include "kernels/kernels.h"

struct pg_box {
  int64_t first, planes; /* n * C + c */
  struct pg_range d, h, w;
  int64_t cells; /* in one plane */
  bool whole;    /* they are all of the plane's */
};

struct pg_box pg_box_of(const struct pg_tiling *tiling, const struct pg_pooling *pool,
                        int64_t item);

/* Cells of a box along an axis, and the outputs whose windows hold each: count of them from
 * outputs.begin + first - front on.  A row of outputs laid out with `front` places before it can so
 * be read at first, first + 1, ...
 *
 * Sliding windows one cell apart: first rises by one from cell to cell and count is terms for all
 * of them, `steady`; places before and behind the outputs then stand for windows that are not
 * there. */
struct pg_map {
  struct pg_range cells, outputs;
  int64_t front, terms; /* terms: the most that count says */
  bool steady;
  int32_t *first, *count;
};

enum { PG_MAP_SLACK = 16 }; /* room behind the last cell, filled like it, with a count of 0 */

/* False when a number does not fit.  A map that is there already for these cells stays. */
bool pg_map_make(struct pg_map *map, const struct pg_axis *axis, struct pg_range cells,
                 int64_t front);

/* All three, with their room. */
struct pg_maps {
  struct pg_map d, h, w;
  int32_t room[4 * (PG_BOX_ROWS + PG_MAP_SLACK) + 2 * (PG_BOX_WIDTH + PG_MAP_SLACK)];
};

void pg_maps_begin(struct pg_maps *maps);

/* The maps of a box; front is for W alone. */
bool pg_maps_of(struct pg_maps *maps, const struct pg_pooling *pool, const struct pg_box *box,
                int64_t front);

static inline int64_t pg_length(struct pg_range r) { return r.end - r.begin; }

static inline int64_t pg_offset(const struct pg_strides *s, int64_t n, int64_t c, int64_t d,
                                int64_t h, int64_t w) {
  return n * s->of[PG_N] + c * s->of[PG_C] + d * s->of[PG_D] + h * s->of[PG_H] + w * s->of[PG_W];
}

/* Do the cells of a box follow each other, in one plane or in all? */
struct pg_runs {
  bool rows, planes;
};
struct pg_runs pg_runs_of(const struct pg_pooling *pool, const struct pg_strides *in);

/* Outputs of a plane, or INT64_MAX. */
int64_t pg_plane_outputs(const struct pg_pooling *pool);

/* How many outputs belong to an item, about: what is read now, so much further on is read next. */
int64_t pg_outputs_per_item(const struct pg_tiling *tiling, const struct pg_pooling *pool);

/* Do a plane's outputs follow each other? */
bool pg_is_flat(const struct pg_pooling *pool, const struct pg_strides *out);

/* And one plane's the other's? */
bool pg_planes_follow(const struct pg_pooling *pool, const struct pg_strides *out);

#endif
