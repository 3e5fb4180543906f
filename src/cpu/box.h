/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes: where the cells of an item are, and in which windows each of them lies. */
#ifndef PG_BOX_H_
#define PG_BOX_H_

#include "kernels/tiling.h"

struct pg_box {
  int64_t first, planes; /* the first plane, n * C + c, and the number of planes */
  struct pg_range d, h, w;
  int64_t cells; /* in one plane */
  bool whole;    /* the box is the whole plane */
};

struct pg_box pg_box_of(const struct pg_tiling *tiling, const struct pg_pooling *pool,
                        int64_t item);

/* A cover says in which windows the cells of a box lie along one axis: cell i lies in those of
 * count[i] outputs, the first of which is outputs.begin + first[i] - front.  So if a row of the
 * outputs is stored behind `front` other places, cell i reads it at first[i], first[i] + 1, ...
 *
 * Windows that slide by one cell are special: first rises by one from cell to cell, and count is
 * `most` for all of them.  The places before and behind the outputs then stand for windows that do
 * not exist, and must have zeros. */
struct pg_cover {
  struct pg_range cells;   /* of the box */
  struct pg_range outputs; /* whose windows touch them */
  int64_t front;
  int64_t most; /* the largest count */
  bool by_one;  /* windows slide by one cell */
  int32_t *first, *count;
};

/* first and count have so many places more than there are cells, because vectors are loaded from
 * them.  Where windows slide by one cell they go on in the same way; else first is that of the last
 * cell there, and count is 0. */
enum { PG_COVER_SLACK = 16 };

/* The cover of a box along each axis, and their memory. */
struct pg_box_cover {
  struct pg_cover d, h, w;
  int32_t room[4 * (PG_BOX_ROWS + PG_COVER_SLACK) + 2 * (PG_BOX_WIDTH + PG_COVER_SLACK)];
};

void pg_box_cover_begin(struct pg_box_cover *cover);

/* Makes the cover of a box, with places in front along W alone.  Along an axis where the last box
 * had the same cells nothing has to be done.  Along each axis fewer than 2^31 windows touch the
 * box. */
void pg_box_cover_make(struct pg_box_cover *cover, const struct pg_pooling *pool,
                       const struct pg_box *box, int64_t front);

static inline int64_t pg_length(struct pg_range r) { return r.end - r.begin; }

static inline int64_t pg_offset(const struct pg_strides *s, int64_t n, int64_t c, int64_t d,
                                int64_t h, int64_t w) {
  return n * s->of[PG_N] + c * s->of[PG_C] + d * s->of[PG_D] + h * s->of[PG_H] + w * s->of[PG_W];
}

/* About how many outputs belong to an item: the outputs of the next item lie so much further on in
 * memory, and can be prefetched.  0: too far for that. */
int64_t pg_outputs_per_item(const struct pg_task *task);

#endif
