/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes: where the cells of an item are, and which outputs cover each of them. */
#ifndef PG_BOX_H_
#define PG_BOX_H_

#include "kernels/tiling.h"

struct pg_box {
  int64_t first, planes; /* the first plane, n * C + c, and how many */
  struct pg_range d, h, w;
  int64_t cells; /* in one plane */
  bool whole;    /* the box is the whole plane */
};

struct pg_box pg_box_of(const struct pg_tiling *tiling, const struct pg_pooling *pool,
                        int64_t item);

/* Which outputs cover the cells of a box along an axis: the windows that hold cell i are those of
 * `count[i]` outputs from outputs.begin + first[i] - front on.  A row of outputs that is stored
 * with `front` places before it can therefore be read at first[i], first[i] + 1, ...
 *
 * Windows that slide by one cell are special: first rises by one from cell to cell, and count is
 * `most` for all of them.  Places before and behind the outputs then stand for windows that do not
 * exist, and must hold zeros. */
struct pg_cover {
  struct pg_range cells, outputs;
  int64_t front;
  int64_t most; /* the largest count */
  bool by_one;  /* windows slide by one cell */
  int32_t *first, *count;
};

/* Places behind the last cell: vectors may be loaded there.  They are filled like it with a count
 * of 0, or go on in the same way where windows slide by one cell. */
enum { PG_COVER_SLACK = 16 };

/* The covers of a box along all three axes, and their memory. */
struct pg_covers {
  struct pg_cover d, h, w;
  int32_t room[4 * (PG_BOX_ROWS + PG_COVER_SLACK) + 2 * (PG_BOX_WIDTH + PG_COVER_SLACK)];
};

void pg_covers_begin(struct pg_covers *covers);

/* Makes the covers of a box; `front` is for W alone.  A cover that is there already for the same
 * cells stays.  The box touches less than 2^31 outputs along each axis. */
void pg_covers_make(struct pg_covers *covers, const struct pg_pooling *pool,
                    const struct pg_box *box, int64_t front);

static inline int64_t pg_length(struct pg_range r) { return r.end - r.begin; }

static inline int64_t pg_offset(const struct pg_strides *s, int64_t n, int64_t c, int64_t d,
                                int64_t h, int64_t w) {
  return n * s->of[PG_N] + c * s->of[PG_C] + d * s->of[PG_D] + h * s->of[PG_H] + w * s->of[PG_W];
}

/* About how many outputs belong to an item: those that will be read next lie so much further on. */
int64_t pg_outputs_per_item(const struct pg_task *task);

#endif
