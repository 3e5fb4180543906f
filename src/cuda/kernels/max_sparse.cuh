/* SPDX-License-Identifier: Apache-2.0 */
/* The items of max_sparse.cu: which of them a block computes, and which cells and outputs an item
 * has. */
#ifndef PG_CUDA_MAX_SPARSE_CUH_
#define PG_CUDA_MAX_SPARSE_CUH_

#include "cuda/kernels/max_job.cuh"

enum { PAIR = 2 /* items of a small block */ };

/* A layer is the items of one plane, or of some planes if an item has several; each layer has the
 * same number of items (by_cuts).  The first blocks, for `layers` layers, compute `rounds` items
 * each, the next ones, for `pairs` times PAIR layers, compute PAIR each, and the others one. */
struct sparse_plan {
  int32_t sums; /* floats of the sums in shared memory, at least one for each lane */
  uint32_t layers, rounds, pairs;
  uint32_t prefetchers; /* blocks that prefetch all outputs into the second-level cache; 0: none */
  pg_divider by_cuts, by_outputs;
};

/* The items of a block: `count` of them, `layers_apart` layers apart. */
struct sparse_share {
  uint32_t first, count, layers_apart;
};

static __device__ __forceinline__ sparse_share share_of(const sparse_plan &f, uint32_t block) {
  uint32_t layer = over(block, f.by_cuts);
  const uint32_t cut = block - layer * f.by_cuts.by;
  sparse_share s = {0, f.rounds, f.layers};
  if (layer >= f.layers) {
    layer -= f.layers;
    const bool alone = layer >= f.pairs;
    layer = f.layers * f.rounds + (alone ? f.pairs * (PAIR - 1) + layer : layer * PAIR);
    s.count = alone ? 1 : PAIR;
    s.layers_apart = 1;
  }
  s.first = layer * f.by_cuts.by + cut;
  return s;
}

/* An item: cells that lie one after the other, and the outputs that are read for them, in `runs`
 * runs of `count` outputs that lie one after the other.  A run begins a slice of outputs behind the
 * one before. */
template <typename E>
struct sparse_item {
  E *out;
  int32_t lead;                 /* the first cell is the lead-th of its group */
  uint32_t plane, begin, cells; /* the first plane; the first cell in it; how many */
  uint32_t reach;  /* all items up to this cell from `begin` read outputs `across` too */
  uint32_t output; /* the first output of the run in its plane */
  int32_t count;
  int32_t home;   /* the last so many outputs of runs from home_run on are at home here */
  int32_t across; /* the windows of the last so many outputs of a run continue behind the item */
  int32_t planes, runs, home_run;
};

/* The first output whose window does not begin before the cell: those before have another home. */
static __device__ __forceinline__ int32_t first_at_home(const max_axis &a, int32_t cell) {
  return cell == 0 ? 0 : touching(a, cell - 1, cell).end;
}

/* Outputs whose windows continue behind the end of an item along an axis. */
struct sparse_crossing {
  int32_t first;  /* of them; the number of outputs if there is none */
  int32_t beyond; /* cells from there on of the items that its window touches */
};

/* `size`: cells of an item along the axis. */
static __device__ __forceinline__ sparse_crossing crossing_at(const max_axis &a, int32_t end,
                                                              int32_t size) {
  if (end >= a.in) return {a.out, 0};
  const int32_t first = touching(a, end, end + 1).begin;
  if (first >= a.out) return {a.out, 0};
  const pg_window_32 w = window(a, first);
  const int32_t reach = max(min(w.begin + (int32_t)w.length, a.in) - end, 0);
  return {first, min((reach + size - 1) / size * size, a.in - end)};
}

/* An item that is a part of a plane. */
template <typename E>
static __device__ __forceinline__ void prepare_cut_item(const max_job &j, uint32_t number,
                                                        sparse_item<E> &it) {
  const pg_box_32 b = box_32(j.cut, number);
  const pg_span od = touching(j.d, b.d.begin, b.d.end);
  const int32_t slice = j.h.out * j.w.out, first = max(first_at_home(j.d, b.d.begin), od.begin);
  it.plane = (uint32_t)b.first;
  it.begin = ((uint32_t)b.d.begin * j.h.in + b.h.begin) * j.w.in;
  it.cells = (uint32_t)(length(b.d) * length(b.h) * j.w.in);
  it.output = (uint32_t)(od.begin * slice);
  if (length(b.h) == j.h.in) {
    const sparse_crossing c = crossing_at(j.d, b.d.end, j.cut.of_d);
    it.count = length(od) * slice;
    it.home = (od.end - first) * slice;
    it.across = (od.end - c.first) * slice;
    it.reach = it.cells + (uint32_t)(c.beyond * j.h.in * j.w.in);
    return;
  }
  const pg_span oh = touching(j.h, b.h.begin, b.h.end);
  const sparse_crossing c = crossing_at(j.h, b.h.end, j.cut.of_h);
  it.output += (uint32_t)(oh.begin * j.w.out);
  it.count = length(oh) * j.w.out;
  it.home = (oh.end - max(first_at_home(j.h, b.h.begin), oh.begin)) * j.w.out;
  it.across = (oh.end - c.first) * j.w.out;
  it.reach = it.cells + (uint32_t)(c.beyond * j.w.in);
  it.runs = length(od);
  it.home_run = first - od.begin;
  if (it.runs > 0) return;
  it.runs = 1; /* without an output */
  it.count = it.home = it.across = 0;
}

template <typename E>
static __device__ __forceinline__ void set_out(sparse_item<E> &it, E *out) {
  it.out = out;
  it.lead = (int32_t)((uintptr_t)out % 16 / sizeof(E));
}

template <bool WHOLE, typename E>
static __device__ __forceinline__ sparse_item<E> sparse_item_of(const max_job &j, uint32_t number) {
  sparse_item<E> it = {};
  it.planes = it.runs = 1;
  if (WHOLE) {
    it.plane = number * (uint32_t)j.cut.of_planes;
    it.planes = (int32_t)min((int64_t)j.cut.of_planes, j.cut.planes - it.plane);
    it.cells = it.planes * j.cells;
    it.count = it.home = it.planes * (int32_t)j.outputs;
  } else {
    prepare_cut_item(j, number, it);
  }
  set_out(it, (E *)j.in + (int64_t)it.plane * j.cells + it.begin);
  return it;
}

#endif
