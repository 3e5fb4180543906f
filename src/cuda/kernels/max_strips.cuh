/* SPDX-License-Identifier: Apache-2.0 */
/* The first half of max_strips.cu: how strips are numbered, and what becomes of an index that is
 * not where it should be.
 *
 * A strip is some rows of one column of cells, in one channel or in V neighbouring ones; one thread
 * computes it.  Lanes are numbered as cells lie in memory: along W and then through planes side by
 * side, or through channels and then along W.  A thread computes the same strip of several planes
 * where planes are small, so that what it knows about its windows is computed once.
 *
 * An output whose index lies in its window is added exactly once.  So what was added is counted: by
 * a block that has whole planes, or by all blocks that share a unit, in the workspace.  If that is
 * not the number of outputs, some index is a stray or lies outside its plane.  The block, or the
 * last one of the unit, then looks at every index: it reports those outside, and computes again
 * what strays name, or sets flags for `mend`. */
#ifndef PG_CUDA_MAX_STRIPS_CUH_
#define PG_CUDA_MAX_STRIPS_CUH_

#include "cuda/kernels/max_any.cuh"
#include "cuda/kernels/max_recompute.cuh"

enum {
  THREADS = 128,
  PLANAR_ROWS = 32,  /* of a strip in one channel, at the most */
  MOST_WIDTH = 8192, /* cells of a row: with it `magic` of strip_plan gives the row of every cell of
                        a strip */
  LEAST_SUMS = 32,   /* of a thread, so that an item is soon computed again */
  FEW_STRAYS = 64,   /* of an item: only the cells that they name are computed again */
  WHOLE_CELLS = 1 << 16, /* of a plane that one block computes */
  BLOCKS = 12            /* of a processor, about */
};

/* A unit is what is numbered together: one plane, or some neighbouring channels of one n. */
struct strip_plan {
  int32_t rows;          /* of a strip */
  int32_t strips;        /* of a unit */
  int32_t beside;        /* units that the threads of a block have at once */
  int32_t units;         /* that a block computes, if planes are not cut */
  int32_t items;         /* which are so many items */
  int32_t all_units;     /* of the call */
  int32_t unit_channels; /* 1 where units are planes */
  int32_t blocks;        /* that share a unit, if planes are cut */
  int32_t strips_of_block;
  uint32_t magic; /* 2^32 / width, rounded up: a distance times this, over 2^32, is its row */
  pg_divider by_strips, by_vectors, by_chunks, by_groups, by_blocks;
};

/* What a thread knows about its strip before it knows the plane. */
struct strip {
  int32_t channel; /* of the first of its channels, in the unit */
  int32_t d, h, w, rows;
  pg_span od, oh, ow;               /* outputs in whose windows it has cells */
  uint32_t first;                   /* position of its first cell in the plane */
  uint32_t reach;                   /* from there to its last cell, plus one */
  int64_t outputs_from, cells_from; /* its first output and cell, in elements from their plane */
};

static __device__ __forceinline__ strip strip_of(const max_job &j, const strip_plan &p, int32_t v,
                                                 uint32_t number) {
  strip s;
  const uint32_t column = over(number, p.by_vectors), row = over(column, j.by_w);
  const uint32_t slice = over(row, p.by_chunks);
  s.channel = (int32_t)(number - column * p.by_vectors.by) * v;
  s.w = (int32_t)(column - row * j.w.in);
  s.h = (int32_t)(row - slice * p.by_chunks.by) * p.rows;
  s.d = (int32_t)slice;
  s.rows = min(p.rows, j.h.in - s.h);
  s.od = touching(j.d, s.d, s.d + 1);
  s.oh = touching(j.h, s.h, s.h + s.rows);
  s.ow = touching(j.w, s.w, s.w + 1);
  s.first = (uint32_t)((s.d * j.h.in + s.h) * j.w.in + s.w);
  s.reach = (uint32_t)((s.rows - 1) * j.w.in) + 1;
  s.outputs_from = offset(j.grad_strides, 0, s.channel, s.od.begin, s.oh.begin, s.ow.begin);
  s.cells_from = offset(j.in_strides, 0, s.channel, s.d, s.h, s.w);
  return s;
}

/* The low half of an index, and what must be 0 for this to be all of it. */
static __device__ __forceinline__ uint32_t low_half(int32_t index) { return (uint32_t)index; }
static __device__ __forceinline__ uint32_t low_half(int64_t index) { return (uint32_t)index; }
static __device__ __forceinline__ uint32_t high_half(int32_t) { return 0; }
static __device__ __forceinline__ uint32_t high_half(int64_t index) {
  return (uint32_t)((uint64_t)index >> 32);
}

/* --- Indices that are not where they should be --- */

/* How many outputs of a unit were added, and how many of its blocks are done; behind the flags. */
struct unit_count {
  uint32_t named, blocks;
};

/* The items of a block whose planes are not cut. */
static __device__ __forceinline__ pg_span items_of_block(const max_job &j, const strip_plan &p) {
  const int32_t first = (int32_t)blockIdx.x * p.items;
  return {first, (int32_t)least(first + p.items, j.items)};
}

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

/* Reports the indices of some planes that lie outside them.  For strays it sets the flags of items,
 * where planes are cut, or computes the cells that they name, as long as these are few. */
static __device__ void mend_cells(const max_job &j, int64_t first, uint32_t planes, int32_t *strays,
                                  bad_indices *bad) {
  const uint64_t count = (uint64_t)planes * j.outputs;
  for (uint64_t i = threadIdx.x; i < count; i += THREADS) {
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
    } else if (j.flags != nullptr) {
      const int64_t group =
          j.cut.c == 0 ? plane / j.cut.of_planes : n * j.cut.groups.by + c / j.cut.of_planes;
      j.flags[item_of(j, group, (uint32_t)index)] = 1;
    } else if (atomicAdd(strays, 1) < FEW_STRAYS) {
      compute_cell(j, n, c, (uint32_t)index);
    }
  }
}

/* The last block of a unit whose planes are cut checks what all have counted. */
static __device__ __noinline__ void check_unit(const max_job &j, const strip_plan &p, uint32_t unit,
                                               int32_t named, bad_indices *bad) {
  __shared__ bool wrong;
  const uint32_t n = over(unit, p.by_groups);
  const uint32_t c = (unit - n * p.by_groups.by) * (uint32_t)p.unit_channels;
  const uint32_t planes = min((uint32_t)p.unit_channels, j.by_c.by - c);
  if (threadIdx.x == 0) {
    unit_count *count = (unit_count *)(j.flags + j.items) + unit;
    atomicAdd(&count->named, (uint32_t)named);
    __threadfence();
    wrong = atomicAdd(&count->blocks, 1) + 1 == (uint32_t)p.blocks &&
            atomicAdd(&count->named, 0) != planes * j.outputs;
  }
  __syncthreads();
  if (wrong) mend_cells(j, (int64_t)n * j.by_c.by + c, planes, nullptr, bad);
  __syncthreads();
  if (threadIdx.x == 0) report(j, bad);
}

/* An index of the block's items, which are whole planes, is not where it should be.  `cells` is how
 * many sums the scratch has for each thread. */
static __device__ __noinline__ void mend_items(const max_job &j, const strip_plan &p, int32_t cells,
                                               bad_indices *bad) {
  __shared__ int32_t strays;
  const int32_t warp = (int32_t)threadIdx.x / 32;
  const pg_span items = items_of_block(j, p);
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

/* The units of a block, of which a thread takes every beside-th, and the strips of each. */
struct block_share {
  uint32_t unit, unit_end, strip, strip_end;
};

static __device__ __forceinline__ block_share share_of(const strip_plan &p, bool cuts) {
  block_share b = {blockIdx.x * (uint32_t)p.units, 0, threadIdx.x, (uint32_t)p.strips};
  if (cuts) {
    b.unit = over(blockIdx.x, p.by_blocks);
    const uint32_t first = (blockIdx.x - b.unit * p.by_blocks.by) * (uint32_t)p.strips_of_block;
    b.strip += first;
    b.strip_end = min(b.strip_end, first + (uint32_t)p.strips_of_block);
  }
  b.unit_end = min(b.unit + (uint32_t)p.units, (uint32_t)p.all_units);
  if (!cuts && p.beside > 1) {
    const uint32_t nth = over(threadIdx.x, p.by_strips);
    b.strip -= nth * p.by_strips.by;
    b.unit = nth < (uint32_t)p.beside ? b.unit + nth : b.unit_end;
  }
  return b;
}

/* Called by all threads at the end, with what each has added. */
static __device__ __forceinline__ void check_block(const max_job &j, const strip_plan &p,
                                                   int32_t named, int32_t cells) {
  __shared__ bad_indices bad;
  __shared__ int32_t named_by_block, outputs_of_block;
  if (threadIdx.x == 0) {
    clear(&bad);
    named_by_block = outputs_of_block = 0;
  }
  __syncthreads();
  atomicAdd(&named_by_block, named);
  if (j.flags == nullptr) {
    const pg_span items = items_of_block(j, p);
    for (int32_t i = items.begin + (int32_t)threadIdx.x; i < items.end; i += THREADS)
      atomicAdd(&outputs_of_block, box_32(j.cut, (uint32_t)i).planes * (int32_t)j.outputs);
  }
  __syncthreads();
  if (j.flags != nullptr)
    check_unit(j, p, over(blockIdx.x, p.by_blocks), named_by_block, &bad);
  else if (named_by_block != outputs_of_block)
    mend_items(j, p, cells, &bad);
}

/* --- On the host --- */

static bool same_strides(const pg_strides &a, const pg_strides &b, const pg_pooling &p) {
  const int64_t outputs[PG_AXES] = {p.n, p.c, p.d.out, p.h.out, p.w.out};
  for (int axis = 0; axis < PG_AXES; axis++)
    if (outputs[axis] > 1 && a.of[axis] != b.of[axis]) return false;
  return true;
}

/* Can positions of outputs, counted from the first of their plane, be counted in 32 bits? */
static bool has_small_planes(const pg_strides &s, const pg_pooling &p) {
  const int64_t most = (int64_t)1 << 30;
  return p.d.out * s.of[PG_D] < most && p.h.out * s.of[PG_H] < most && p.w.out * s.of[PG_W] < most;
}

/* A part of the channels that fills cache lines: then there are many units. */
static int64_t channels_of_unit(const pg_facts &f, int64_t element_bytes) {
  enum { UNIT_BYTES = 128, VECTOR = 8 };
  if (!f.neighbours) return 1;
  const int64_t c = f.pool.c, groups = pg_ceil_div(c * element_bytes, UNIT_BYTES);
  return least(c, pg_ceil_div(pg_ceil_div(c, groups), VECTOR) * VECTOR);
}

static int64_t rows_of_strip(const pg_pooling &p, int64_t most) {
  return pg_ceil_div(p.h.in, pg_ceil_div(p.h.in, most));
}

static int64_t between(int64_t low, int64_t x, int64_t high) {
  return x < low ? low : least(x, high);
}

/* Whole planes where a block can compute one, and where there are so many that all processors have
 * something to do. */
static pg_tiling tile_strips(const pg_facts &f, int64_t element_bytes) {
  const pg_pooling &p = f.pool;
  const int64_t processors = pg_cuda_least_limits()->processors;
  const int64_t unit = channels_of_unit(f, element_bytes);
  const int64_t units = p.n * pg_ceil_div(p.c, unit);
  const pg_tiling cut = f.neighbours ? tile_max_channels(f) : tile_max_planes(f);
  const bool many = units >= 2 * processors && f.cells <= WHOLE_CELLS;
  if (pg_tiling_cuts(&cut) && !many) return cut;
  pg_tiling t = {};
  t.interleaved = f.neighbours;
  t.d = p.d.in;
  t.h = p.h.in;
  t.w = p.w.in;
  t.planes = unit;
  if (!f.neighbours) {
    const int64_t rows = rows_of_strip(p, PLANAR_ROWS);
    const int64_t strips = p.d.in * pg_ceil_div(p.h.in, rows) * p.w.in;
    const int64_t beside = strips < THREADS ? THREADS / strips : 1;
    t.planes = least(units, beside * between(1, units / (beside * processors * BLOCKS), 16));
  }
  return pg_tile_boxes(&p, &t);
}

/* 32 bits are enough, and gradients and indices lie alike. */
static bool fits_strips(const pg_problem &problem) {
  const pg_facts &f = problem.facts;
  const pg_max_backward &a = problem.args.max_backward;
  return fits_32_bits(f.pool) && f.pool.w.in > 1 && f.pool.w.in <= MOST_WIDTH && f.outputs > 0 &&
         same_strides(a.out_strides, a.index_strides, f.pool) &&
         has_small_planes(a.out_strides, f.pool);
}

static strip_plan strip_plan_of(const max_job &j, int64_t v, int64_t most_rows) {
  const pg_pooling &p = j.pool;
  const bool channels = j.tiling.interleaved, cuts = pg_tiling_cuts(&j.tiling);
  const int64_t rows = rows_of_strip(p, most_rows), chunks = pg_ceil_div(p.h.in, rows);
  const int64_t unit = channels ? j.tiling.planes : 1, vectors = pg_ceil_div(unit, v);
  const int64_t groups = channels ? pg_ceil_div(p.c, unit) : p.c;
  const int64_t strips = p.d.in * chunks * p.w.in * vectors;
  const int64_t enough = BLOCKS * (int64_t)pg_cuda_least_limits()->processors;
  strip_plan s = {};
  s.rows = (int32_t)rows;
  s.strips = (int32_t)strips;
  s.beside = (int32_t)(cuts || strips >= THREADS ? 1 : THREADS / strips);
  const int64_t turns = between(1, p.n * groups / (s.beside * enough), 16);
  s.units = (int32_t)(cuts ? 1 : channels ? s.beside * turns : j.tiling.planes);
  s.items = channels ? s.units : 1;
  s.all_units = (int32_t)(p.n * groups);
  s.unit_channels = (int32_t)unit;
  s.strips_of_block =
      (int32_t)(THREADS * between(1, p.n * groups * strips / (THREADS * enough), 8));
  s.blocks = (int32_t)pg_ceil_div(strips, s.strips_of_block);
  s.magic = (uint32_t)((((uint64_t)1 << 32) + p.w.in - 1) / p.w.in);
  s.by_strips = divider_of(strips);
  s.by_vectors = divider_of(vectors);
  s.by_chunks = divider_of(chunks);
  s.by_groups = divider_of(groups);
  s.by_blocks = divider_of(s.blocks);
  return s;
}

static int64_t blocks_of(const max_job &j, const strip_plan &p) {
  return j.flags != nullptr ? (int64_t)p.all_units * p.blocks : pg_ceil_div(j.items, p.items);
}

/* Can threads have v channels? */
template <typename E, typename I>
static bool has_vectors_of(const max_job &j, int64_t v) {
  const int64_t c = j.pool.c, bytes = v * (int64_t)sizeof(E), index_bytes = v * sizeof(I);
  return j.tiling.interleaved && j.tiling.planes % v == 0 && c % v == 0 &&
         is_vector(j.in, j.in_strides, sizeof(E), c, bytes) &&
         is_vector(j.grad, j.grad_strides, sizeof(E), c, bytes) &&
         is_vector(j.index, j.index_strides, sizeof(I), c, least(16, index_bytes));
}

/* Flags, and the counts of units, where planes are cut. */
static int64_t strips_workspace(const pg_problem *problem, const pg_tiling *tiling) {
  const int64_t flags = flag_bytes(problem, tiling);
  return flags == 0 ? 0 : flags + tiling->plane_items * (int64_t)sizeof(unit_count);
}

static cudaError_t mend_strips(const pg_cuda_call *call) {
  return call->task->choice.tiling.interleaved ? pg_cuda_mend_channels(call)
                                               : pg_cuda_mend_planes(call);
}

#endif
