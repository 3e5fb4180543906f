/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/reduction.h"

enum { NUMBER_BYTES = 8 };

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Where there is no element, there still is a result: that of one empty block. */
int64_t pg_reduce_blocks(const struct pg_reduce *a) {
  const int64_t blocks = pg_ceil_div(a->inner.count, PG_REDUCE_BLOCK);
  return blocks < 1 ? 1 : blocks;
}

struct pg_reduction pg_reduction_of(const struct pg_reduce *a, int64_t outputs, int64_t chunk,
                                    bool in_order) {
  const int64_t *const strides[] = {a->in.strides, a->out.strides, a->index.strides};
  struct pg_reduction r = {.a = a, .outputs = outputs, .blocks = pg_reduce_blocks(a)};
  r.walk = pg_walk_of(&a->grid, strides, 3, outputs, in_order);
  r.chunk = least(chunk, r.blocks);
  r.chunks = pg_ceil_div(r.blocks, r.chunk);
  return r;
}

struct pg_tiling pg_reduction_tiling(const struct pg_reduction *r) {
  struct pg_tiling t = pg_tile_items(r->walk.panels);
  t.w_items = r->chunks;
  return t;
}

int64_t pg_reduction_workspace(const struct pg_reduction *r) {
  if (r->chunks == 1) return 0;
  const int64_t places = r->walk.panels * r->outputs;
  return pg_is_sum(r) ? places * r->blocks * NUMBER_BYTES : 2 * places * r->chunks * NUMBER_BYTES;
}

struct pg_reduce_item pg_reduce_item_at(const struct pg_reduction *r, int64_t number) {
  struct pg_reduce_item item = {.panel_number = number / r->chunks, .chunk = number % r->chunks};
  item.panel = pg_panel_at(&r->walk, item.panel_number);
  item.first_block = item.chunk * r->chunk;
  item.end_block = least(item.first_block + r->chunk, r->blocks);
  return item;
}

/* A panel has all of its numbers together, of each block or chunk one for every output. */
static void *place(const struct pg_reduction *r, int64_t number) {
  return (char *)r->a->partial + number * r->outputs * NUMBER_BYTES;
}

void *pg_partial_sums(const struct pg_reduction *r, int64_t panel, int64_t block) {
  return place(r, panel * r->blocks + block);
}

void *pg_partial_values(const struct pg_reduction *r, int64_t panel, int64_t chunk) {
  return place(r, panel * r->chunks + chunk);
}

int64_t *pg_partial_positions(const struct pg_reduction *r, int64_t panel, int64_t chunk) {
  return place(r, (r->walk.panels + panel) * r->chunks + chunk);
}
