/* SPDX-License-Identifier: Apache-2.0 */
/* How a PG_REDUCE is cut into items: outputs in panels, and if these are few, the blocks of an
 * output in chunks.  An item then leaves what it has found of each output in the workspace, where
 * `finish` puts it together: of a sum one number for each block, of an extremum a number and its
 * position for each chunk. */
#ifndef PG_REDUCTION_H_
#define PG_REDUCTION_H_

#include "cpu/grid_walk.h"

struct pg_reduction {
  const struct pg_reduce *a;
  struct pg_walk walk;   /* over the outputs: of in, out and index */
  int64_t outputs;       /* of a panel, at most */
  int64_t blocks;        /* of an output; at least 1 */
  int64_t chunk, chunks; /* blocks of a chunk, at most; chunks of an output */
};

/* An item: some outputs and some of their blocks. */
struct pg_reduce_item {
  struct pg_panel panel;
  int64_t panel_number, chunk, first_block, end_block;
};

int64_t pg_reduce_blocks(const struct pg_reduce *a);

/* Panels of so many outputs and chunks of so many blocks, at most.  in_order: the axes of the grid
 * are not sorted. */
struct pg_reduction pg_reduction_of(const struct pg_reduce *a, int64_t outputs, int64_t chunk,
                                    bool in_order);

struct pg_tiling pg_reduction_tiling(const struct pg_reduction *r);
int64_t pg_reduction_workspace(const struct pg_reduction *r);

struct pg_reduce_item pg_reduce_item_at(const struct pg_reduction *r, int64_t number);

/* The places in the workspace for the outputs of a panel: for the sums of a block; for the extrema
 * of a chunk and their positions.  A number has 8 bytes or 4. */
void *pg_partial_sums(const struct pg_reduction *r, int64_t panel, int64_t block);
void *pg_partial_values(const struct pg_reduction *r, int64_t panel, int64_t chunk);
int64_t *pg_partial_positions(const struct pg_reduction *r, int64_t panel, int64_t chunk);

static inline bool pg_is_sum(const struct pg_reduction *r) {
  return r->a->function == PG_REDUCE_SUM;
}

/* ALL and ANY. */
static inline bool pg_is_logic(const struct pg_reduction *r) {
  return r->a->function == PG_REDUCE_ALL || r->a->function == PG_REDUCE_ANY;
}

/* The elements that a block has. */
static inline int64_t pg_block_length(const struct pg_reduction *r, int64_t block) {
  const int64_t left = r->a->inner.count - block * PG_REDUCE_BLOCK;
  return left < PG_REDUCE_BLOCK ? left : PG_REDUCE_BLOCK;
}

#endif
