/* SPDX-License-Identifier: Apache-2.0 */
/* Indices that are not where they should be, for methods that count what they add.
 *
 * An output whose index lies in its window is added exactly once.  So what was added is counted: by
 * a block that has whole planes, or by all blocks that share a unit, in the workspace.  If that is
 * not the number of outputs, some index is a stray or lies outside its plane.  The block, or the
 * last one of the unit, then looks at every index: it reports those outside, and computes again
 * what strays name, or sets flags for `mend`. */
#ifndef PG_CUDA_MAX_COUNTED_CUH_
#define PG_CUDA_MAX_COUNTED_CUH_

#include "cuda/kernels/max_any.cuh"
#include "cuda/kernels/max_recompute.cuh"

enum { FEW_STRAYS = 64 /* of an item: only the cells that they name are computed again */ };

/* The low half of an index, and what must be 0 for this to be all of it. */
static __device__ __forceinline__ uint32_t low_half(int32_t index) { return (uint32_t)index; }
static __device__ __forceinline__ uint32_t low_half(int64_t index) { return (uint32_t)index; }
static __device__ __forceinline__ uint32_t high_half(int32_t) { return 0; }
static __device__ __forceinline__ uint32_t high_half(int64_t index) {
  return (uint32_t)((uint64_t)index >> 32);
}

/* How many outputs of a unit were added, and how many of its blocks are done; behind the flags. */
struct unit_count {
  uint32_t named, blocks;
};

/* What a block counts: its items, which are whole planes, or its part of a unit. */
struct counted_block {
  pg_span items;        /* of a unit: empty if there is a kernel that mends */
  unit_count *count;    /* NULL: the block has whole planes */
  int64_t first;        /* plane of the unit */
  uint32_t planes;      /* of the unit */
  uint32_t unit_blocks; /* that share the unit */
};

/* A cell that a stray names: computes it from all outputs of its plane. */
static __device__ void compute_cell(const max_job &j, int64_t n, int64_t c, uint32_t cell) {
  float sum = 0;
  for (int32_t od = 0; od < j.d.out; od++)
    for (int32_t oh = 0; oh < j.h.out; oh++)
      for (int32_t ow = 0; ow < j.w.out; ow++)
        if (index_at(j, offset(j.index_strides, n, c, od, oh, ow)) == (int64_t)cell)
          sum += grad_at(j, offset(j.grad_strides, n, c, od, oh, ow));
  const uint32_t row = over(cell, j.by_w), d = over(row, j.by_h);
  put_cell(j, offset(j.in_strides, n, c, d, row - d * j.by_h.by, cell - row * j.by_w.by), sum);
}

/* Reports the indices of some planes that lie outside them.  For strays it sets the flags of items
 * (`strays` is NULL), or computes the cells that they name, as long as these are few. */
static __device__ void mend_cells(const max_job &j, int64_t first, uint32_t planes, int32_t *strays,
                                  bad_indices *bad) {
  const uint64_t count = (uint64_t)planes * j.outputs;
  for (uint64_t i = threadIdx.x; i < count; i += blockDim.x) {
    const uint32_t nth = (uint32_t)(j.cut.c != 0 ? i % planes : i / j.outputs);
    const uint32_t output = (uint32_t)(j.cut.c != 0 ? i / planes : i % j.outputs);
    const int64_t plane = first + nth, n = plane / j.pool.c, c = plane % j.pool.c;
    const uint32_t row = over(output, j.by_out_w), od = over(row, j.by_out_h);
    const uint32_t oh = row - od * j.by_out_h.by, ow = output - row * j.by_out_w.by;
    const int64_t index = index_at(j, offset(j.index_strides, n, c, od, oh, ow));
    if ((uint64_t)index >= j.cells) {
      note_bad(bad, position_of(j, plane, od, oh, ow));
    } else if (in_window(j, (uint32_t)index, (int32_t)od, (int32_t)oh, (int32_t)ow)) {
      continue;
    } else if (strays == nullptr) {
      const int64_t group =
          j.cut.c == 0 ? plane / j.cut.of_planes : n * j.cut.groups.by + c / j.cut.of_planes;
      j.flags[item_of(j, group, (uint32_t)index)] = 1;
    } else if (atomicAdd(strays, 1) < FEW_STRAYS) {
      compute_cell(j, n, c, (uint32_t)index);
    }
  }
}

/* An index of these items, which are whole planes, is not where it should be. */
static __device__ __noinline__ void mend_items(const max_job &j, pg_span items, int32_t cells,
                                               bad_indices *bad) {
  __shared__ int32_t strays;
  const int32_t warp = (int32_t)threadIdx.x / 32;
  for (int32_t i = items.begin; i < items.end; i++) {
    if (threadIdx.x == 0) strays = 0;
    __syncthreads();
    const pg_box_32 box = box_32(j.cut, (uint32_t)i);
    mend_cells(j, box.first, (uint32_t)box.planes, &strays, bad);
    __syncthreads();
    if (strays > FEW_STRAYS && j.cut.c != 0)
      compute_item(j, i, cells, nullptr);
    else if (strays > FEW_STRAYS)
      recompute_item(j, (uint32_t)i,
                     {pg_max_any_scratch + warp * 32 * cells, (uint32_t)(32 * cells)}, nullptr);
    __syncthreads();
  }
  if (threadIdx.x == 0) report(j, bad);
}

/* The last block of a unit checks what all have counted. */
static __device__ __noinline__ void check_unit(const max_job &j, counted_block b, int32_t named,
                                               int32_t cells, bad_indices *bad) {
  __shared__ bool wrong;
  if (threadIdx.x == 0) {
    atomicAdd(&b.count->named, (uint32_t)named);
    __threadfence();
    wrong = atomicAdd(&b.count->blocks, 1) + 1 == b.unit_blocks &&
            atomicAdd(&b.count->named, 0) != b.planes * j.outputs;
    __threadfence();
  }
  __syncthreads();
  if (!wrong) return;
  if (b.items.begin < b.items.end) {
    mend_items(j, b.items, cells, bad);
    return;
  }
  mend_cells(j, b.first, b.planes, nullptr, bad);
  __syncthreads();
  if (threadIdx.x == 0) report(j, bad);
}

/* Called by all threads at the end, with what each has added.  `cells` is how many sums the scratch
 * has for each thread. */
static __device__ __forceinline__ void check_block(const max_job &j, const counted_block &b,
                                                   int32_t named, int32_t cells) {
  __shared__ bad_indices bad;
  __shared__ int32_t named_by_block, outputs_of_block;
  if (threadIdx.x == 0) {
    clear(&bad);
    named_by_block = outputs_of_block = 0;
  }
  __syncthreads();
  atomicAdd(&named_by_block, named);
  if (b.count == nullptr) {
    for (int32_t i = b.items.begin + (int32_t)threadIdx.x; i < b.items.end;
         i += (int32_t)blockDim.x)
      atomicAdd(&outputs_of_block, box_32(j.cut, (uint32_t)i).planes * (int32_t)j.outputs);
  }
  __syncthreads();
  if (b.count != nullptr)
    check_unit(j, b, named_by_block, cells, &bad);
  else if (named_by_block != outputs_of_block)
    mend_items(j, b.items, cells, &bad);
}

/* --- On the host --- */

/* Can an element be found in 32 bits, counted from the first of its plane? */
static bool has_small_planes(const pg_strides &s, int64_t d, int64_t h, int64_t w) {
  const int64_t most = (int64_t)1 << 30;
  return d * s.of[PG_D] < most && h * s.of[PG_H] < most && w * s.of[PG_W] < most;
}

static bool same_strides(const pg_strides &a, const pg_strides &b, const pg_pooling &p) {
  const int64_t outputs[PG_AXES] = {p.n, p.c, p.d.out, p.h.out, p.w.out};
  for (int axis = 0; axis < PG_AXES; axis++)
    if (outputs[axis] > 1 && a.of[axis] != b.of[axis]) return false;
  return true;
}

static int64_t between(int64_t low, int64_t x, int64_t high) {
  return x < low ? low : least(x, high);
}

#endif
