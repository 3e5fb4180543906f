/* SPDX-License-Identifier: Apache-2.0 */
/* Maxima of wide windows that are 1 apart (forward_wide.cuh).
 *
 * The cells that four windows share are compared once, and so are those of the ends that several
 * of them have.  Down a column a later cell replaces an earlier one only if it is greater; along a
 * row positions decide between equal ones, because columns come in another order than cells do.
 *
 * NaNs are looked for but not compared: a column with one is a NaN in shared memory.  A window of
 * which -infinity is the greatest cell looks like one without cells.  Where a thread meets either,
 * it looks at the cells of its windows one by one.  Such data is slow; other data does not pay for
 * it. */
#include <math.h>

#include "cuda/kernels/forward_wide.cuh"

/* A cell, and its row in the first step, its position in the plane in the second. */
struct wide_cell {
  float value;
  int32_t position;
};

/* What is known about the cells of four windows.  COLUMN: cells come in their order. */
template <bool COLUMN>
struct wide_maxima {
  wide_cell begin[RAMP]; /* the greatest of the i-th cell and those before the common ones */
  wide_cell shared = {-INFINITY, INT32_MAX};
  wide_cell end[RAMP]; /* the greatest of the cells behind the common ones up to the i-th */
  bool nan = false;

  static __device__ __forceinline__ float filler() { return -INFINITY; }
  static __device__ __forceinline__ wide_cell greater(const wide_cell &a, const wide_cell &b) {
    const bool replaces =
        b.value > a.value || (!COLUMN && b.value == a.value && b.position < a.position);
    return replaces ? b : a;
  }
  __device__ __forceinline__ void note(const wide_cell &cell) { nan |= cell.value != cell.value; }

  __device__ __forceinline__ void first(int i, const wide_cell &cell) {
    note(cell);
    begin[i] = cell;
    if (i < RAMP - 1) return;
#pragma unroll
    for (int k = RAMP - 2; k >= 0; k--) begin[k] = greater(begin[k], begin[k + 1]);
  }
  __device__ __forceinline__ void common(const wide_cell &cell) {
    note(cell);
    shared = greater(shared, cell);
  }
  __device__ __forceinline__ void last(int i, const wide_cell &cell) {
    note(cell);
    end[i] = i == 0 ? cell : greater(end[i > 0 ? i - 1 : 0], cell);
  }
  /* The greatest cell of window k. */
  __device__ __forceinline__ wide_cell of(int k) const {
    const wide_cell all = k < RAMP ? greater(begin[k < RAMP ? k : 0], shared) : shared;
    return k > 0 ? greater(all, end[k > 0 ? k - 1 : 0]) : all;
  }
  __device__ __forceinline__ void keep(const wide_plan &p, uint32_t to, int32_t column) const {
    const uint32_t positions = to + positions_at(p);
#pragma unroll
    for (int k = 0; k < WINDOWS; k++) {
      const wide_cell cell = of(k);
      shared_store(to + result_at(p, k, 0), nan ? NAN : cell.value);
      store_words(positions + result_at(p, k, 0),
                  (uint32_t)cell.position * (uint32_t)p.w.in + (uint32_t)column);
    }
  }
  /* Any cell is greater, or makes the output an odd one. */
  static __device__ __forceinline__ void keep_outside(const wide_plan &p, uint32_t to) {
    shared_store(to, -INFINITY);
    store_words(to + positions_at(p), (uint32_t)INT32_MAX);
  }

  /* Positions lie behind all values. */
  static __device__ __forceinline__ uint32_t positions_at(const wide_plan &p) {
    return result_at(p, p.tile_planes * p.tile_rows, 0);
  }
};

struct maximum_quad {
  vector_of<float, WINDOWS> values;
  vector_of<int32_t, WINDOWS> positions;
  __device__ __forceinline__ wide_cell operator[](int i) const {
    return {values.of[i], positions.of[i]};
  }
};

/* --- Writing --- */

template <typename I>
static __device__ __forceinline__ void write_positions(const wide_plan &p, const wide_outputs &o,
                                                       const wide_cell *found) {
  I *to = (I *)p.index + offset_of(p, p.index_strides, o);
  I positions[WINDOWS];
#pragma unroll
  for (int k = 0; k < WINDOWS; k++) positions[k] = (I)found[k].position;
  if (p.vectors)
    write_vector<WINDOWS>(to, positions);
  else
#pragma unroll
    for (int k = 0; k < WINDOWS; k++)
      if (k < o.count) to[(uint32_t)k * p.index_strides.w] = positions[k];
}

template <typename E>
static __device__ __forceinline__ void write_maxima(const wide_plan &p, const wide_outputs &o,
                                                    const wide_cell *found) {
  E *to = (E *)p.out + offset_of(p, p.out_strides, o);
  float values[WINDOWS];
#pragma unroll
  for (int k = 0; k < WINDOWS; k++) values[k] = found[k].value;
  if (p.vectors)
    put_vector<WINDOWS>(to, values);
  else
#pragma unroll
    for (int k = 0; k < WINDOWS; k++)
      if (k < o.count) put(to + (uint32_t)k * p.out_strides.w, values[k]);
  if (p.index_bytes == 8) write_positions<int64_t>(p, o, found);
  if (p.index_bytes == 4) write_positions<int32_t>(p, o, found);
}

/* An output whose window has a NaN, or nothing above -infinity. */
template <typename E>
static __device__ __noinline__ void find_odd(const wide_plan &p, const wide_outputs o) {
  const int32_t h = o.oh - p.h.pad, w = o.ow - p.w.pad;
  const int32_t h_end = min(h + p.h.reach + 1, p.h.in), w_end = min(w + p.w.reach + 1, p.w.in);
  const E *in = (const E *)p.in + plane_offset(p, p.in_strides, o.plane);
  E greatest = {};
  int64_t position = -1;
  for (int32_t i = max(h, 0); i < h_end; i++)
    for (int32_t k = max(w, 0); k < w_end; k++) {
      const E cell = in[(uint32_t)i * p.in_strides.h + (uint32_t)k * p.in_strides.w];
      if (position >= 0 && !replaces(compared(cell), compared(greatest))) continue;
      greatest = cell;
      position = (int64_t)i * p.w.in + k;
    }
  ((E *)p.out)[offset_of(p, p.out_strides, o)] = greatest;
  const int64_t at = offset_of(p, p.index_strides, o);
  if (p.index_bytes == 8) ((int64_t *)p.index)[at] = position;
  if (p.index_bytes == 4) ((int32_t *)p.index)[at] = (int32_t)position;
}

/* REST: kernel % 4. */
template <typename E, int REST>
static __global__ void __launch_bounds__(WIDE_THREADS, WIDE_BLOCKS_PER_SM)
    max_forward_wide(const __grid_constant__ wide_plan p) {
  extern __shared__ __align__(16) char pg_wide_memory[];
  typedef wide_maxima<true> columns;
  const wide_tile t = wide_tile_of(p, blockIdx.x);
  fill_outside<columns>(p, t, shared_address(pg_wide_memory));
  reduce_columns<E, columns>(p, t, shared_address(pg_wide_memory));
  __syncthreads();
  const uint32_t values = shared_address(pg_wide_memory);
  const uint32_t positions = values + columns::positions_at(p);
  for_outputs(p, t, [&](const wide_outputs &o) {
    wide_maxima<false> maxima;
    take_columns<REST>(p, &maxima, [&](int32_t i) {
      const uint32_t at = o.results + (uint32_t)i * 16;
      return maximum_quad{table_vector<float, WINDOWS>(values + at),
                          table_vector<int32_t, WINDOWS>(positions + at)};
    });
    bool odd = maxima.nan;
    wide_cell found[WINDOWS];
#pragma unroll
    for (int k = 0; k < WINDOWS; k++) {
      found[k] = maxima.of(k);
      odd |= found[k].value == -INFINITY;
    }
    write_maxima<E>(p, o, found);
    if (!odd) return;
    wide_outputs one = o;
    for (; one.ow < o.ow + min(o.count, (int32_t)WINDOWS); one.ow++) find_odd<E>(p, one);
  });
}

/* --- On the host --- */

enum { RESULT_BYTES = 8 /* a value and a position */ };

static bool fits(const pg_problem *problem, pg_tiling *tiling) {
  const pg_max_forward &a = problem->args.max_forward;
  const pg_pooling &p = problem->facts.pool, grid = pg_output_grid(&p);
  *tiling = pg_tile_flat(&grid, 4096);
  return has_wide_windows(problem->facts) &&
         has_forward_sizes(*problem, a.in_strides, a.out_strides) &&
         (a.index_bytes == 0 || has_small_units(a.index_strides, 1, p.h.out, p.w.out));
}

template <typename E>
static cudaError_t run_as(const pg_cuda_call *call) {
  const pg_problem &problem = call->task->problem;
  const pg_max_forward &a = problem.args.max_forward;
  const pg_facts &f = problem.facts;
  wide_plan p = wide_plan_of(f, a.in_strides, a.out_strides, RESULT_BYTES);
  p.in = a.in;
  p.out = a.out;
  p.index = a.index;
  p.index_bytes = a.index_bytes;
  if (a.index_bytes != 0) p.index_strides = forward_strides_of(a.index_strides);
  p.vectors =
      f.pool.w.out % WINDOWS == 0 && has_row_vectors(a.out, a.out_strides, sizeof(E), WINDOWS) &&
      (a.index_bytes == 0 || has_row_vectors(a.index, a.index_strides, a.index_bytes, WINDOWS));
  return with_rest(f.pool.w.kernel, [&](auto rest) {
    return launch(call, max_forward_wide<E, decltype(rest)::value>, wide_blocks(p), WIDE_THREADS,
                  wide_room(p, RESULT_BYTES), p);
  });
}

static cudaError_t run(const pg_cuda_call *call) {
  return with_fp32_type(call, [call](auto e) { return run_as<decltype(e)>(call); });
}

PG_CUDA_METHOD(max_forward_wide) = {"wide", fits, nullptr, run, nullptr};
