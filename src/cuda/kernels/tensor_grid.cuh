/* SPDX-License-Identifier: Apache-2.0 */
/* Grids on the device: from the number of a position to the offsets of its elements. */
#ifndef PG_CUDA_TENSOR_GRID_CUH_
#define PG_CUDA_TENSOR_GRID_CUH_

#include "cuda/call.cuh"
#include "cuda/kernels/box.cuh"
#include "cuda/kernels/tensor_element.cuh"
#include "kernels/tiling.h"

/* A grid with what divides by its sizes without a division, which holds for less than 2^31
 * positions; others are divided in 64 bits. */
struct grid_walk {
  int32_t rank;
  bool is_narrow;
  int64_t count, sizes[PG_GRID_AXES];
  pg_divider by[PG_GRID_AXES];
};

static inline grid_walk walk_of(const pg_grid &grid) {
  grid_walk w = {};
  w.rank = grid.rank;
  w.count = grid.count;
  w.is_narrow = grid.count < INT32_MAX;
  for (int axis = 0; axis < grid.rank; axis++) {
    w.sizes[axis] = grid.sizes[axis];
    if (w.is_narrow) w.by[axis] = divider_of(grid.sizes[axis]);
  }
  return w;
}

/* The offsets of position i, one for each of the N rows of strides. */
template <int N>
static __device__ __forceinline__ void offsets_at(const grid_walk &w,
                                                  const int64_t *const (&strides)[N], int64_t i,
                                                  int64_t (&at)[N]) {
#pragma unroll
  for (int n = 0; n < N; n++) at[n] = 0;
  for (int axis = w.rank - 1; axis >= 0; axis--) {
    int64_t upper = 0;
    if (axis > 0) upper = w.is_narrow ? (int64_t)over((uint32_t)i, w.by[axis]) : i / w.sizes[axis];
    const int64_t position = i - upper * w.sizes[axis];
#pragma unroll
    for (int n = 0; n < N; n++) at[n] += position * strides[n][axis];
    i = upper;
  }
}

static __device__ __forceinline__ int64_t offset_at(const grid_walk &w, const int64_t *stride,
                                                    int64_t i) {
  const int64_t *const strides[1] = {stride};
  int64_t at[1];
  offsets_at(w, strides, i, at);
  return at[0];
}

/* --- On the host --- */

/* Blocks of some positions each; those of huge problems have several such parts. */
static inline int64_t blocks_for(int64_t positions, int64_t of_block) {
  const int64_t most = (int64_t)1 << 24;
  return least(most, pg_ceil_div(positions, of_block));
}

/* So many items that are not boxes. */
static inline pg_tiling tile_items(int64_t items) {
  pg_tiling t = {};
  t.planes = t.d = t.h = t.w = 1;
  t.plane_items = items;
  t.d_items = t.h_items = t.w_items = 1;
  return t;
}

#endif
