/* SPDX-License-Identifier: Apache-2.0 */
/* Max pools with any windows, in two or three dimensions, whose channels are neighbours in memory,
 * or planar ones with about as many outputs as cells: what no special method fits.
 *
 * A thread computes a strip (max_strips.cuh).  It reads every output in whose window its column
 * lies, in their order, and adds those that name one of its cells to a sum in shared memory, which
 * no other thread touches.  So there is no barrier, no conflict, and the order of each sum is that
 * of the outputs.  An output is read by every column of its window, mostly from a cache.  What a
 * cell costs is the windows along W that it lies in, divided by the stride along H; windows along H
 * cost nothing. */
#include "cuda/kernels/max_strips.cuh"

/* What depends on the number of channels of a thread: rows of a strip at the most, outputs that are
 * loaded before the first is used, because a load takes long, and blocks that a processor has. */
template <int V>
struct strip_limits {
  static constexpr int ROWS = V == 1 ? 32 : V == 2 ? 16 : V == 4 ? 12 : 8;
  static constexpr int IN_FLIGHT = V == 8 ? 2 : 4;
  static constexpr int BLOCKS_AT_ONCE = V == 1 ? 8 : 6;
};

/* The thread's sums: shared addresses, in which its own words are a fixed distance apart.  Behind
 * those of its cells is one that is never read, for outputs that name another cell: so that no
 * thread takes a branch of its own. */
template <int V>
struct strip_sums {
  uint32_t first;
  static constexpr uint32_t PITCH = THREADS * sizeof(float);
  __device__ __forceinline__ uint32_t at(uint32_t row, int v) const {
    return first + (row * V + v) * PITCH;
  }
};

/* Adds V outputs to the cells of the strip that they name; returns how many did. */
template <int V, typename E, typename I>
static __device__ __forceinline__ int32_t add_named(const strip_plan &p, const strip &s,
                                                    uint32_t width, const vector_of<I, V> &index,
                                                    const vector_of<E, V> &grad,
                                                    const strip_sums<V> &sums) {
  int32_t named = 0;
#pragma unroll
  for (int v = 0; v < V; v++) {
    const uint32_t behind = low_half(index.of[v]) - s.first;
    const uint32_t row = __umulhi(behind, p.magic);
    const uint32_t rest = (behind - row * width) | high_half(index.of[v]);
    const bool own = rest == 0 && behind < s.reach;
    const uint32_t sum = sums.at(own ? row : (uint32_t)p.rows, own ? v : 0);
    shared_store(sum, shared_load(sum) + widened(grad.of[v]));
    named += own;
  }
  return named;
}

/* Where the outputs of a slice lie.  Gradients and indices have the same strides. */
template <typename E, typename I>
struct slice_outputs {
  const I *index;
  const E *grad;
  uint32_t on, down; /* from an output to the next along W and along H */
};

/* Outputs that are loaded before the first is used, because a load takes long: C of each row from
 * (oh, ow) on, and those of several rows.  ALL: none of them lies behind the last row. */
template <int V, int C, bool ALL, typename E, typename I>
static __device__ __forceinline__ int32_t add_batch(const strip_plan &p, const strip &s,
                                                    uint32_t width, const slice_outputs<E, I> &from,
                                                    int32_t oh, int32_t ow,
                                                    const strip_sums<V> &sums) {
  constexpr int IN_FLIGHT = strip_limits<V>::IN_FLIGHT;
  vector_of<I, V> index[IN_FLIGHT];
  vector_of<E, V> grad[IN_FLIGHT];
  const uint32_t first =
      (uint32_t)(oh - s.oh.begin) * from.down + (uint32_t)(ow - s.ow.begin) * from.on;
#pragma unroll
  for (int i = 0; i < IN_FLIGHT; i++) {
    const bool there = (ALL || oh + i / C < s.oh.end) && (C == 1 || ow + i % C < s.ow.end);
    const uint32_t at = first + (uint32_t)(i / C) * from.down + (uint32_t)(i % C) * from.on;
#pragma unroll
    for (int v = 0; v < V; v++) {
      index[i].of[v] = -1; /* names no cell */
      grad[i].of[v] = {};
    }
    if (there) {
      index[i].load(from.index + at);
      grad[i].load(from.grad + at);
    }
  }
  int32_t named = 0;
#pragma unroll
  for (int i = 0; i < IN_FLIGHT; i++) named += add_named<V>(p, s, width, index[i], grad[i], sums);
  return named;
}

/* The outputs of a slice in their order: where a batch has several rows, C is at least the number
 * of windows along W that a cell lies in, so that it has all of each row. */
template <int V, int C, typename E, typename I>
static __device__ __forceinline__ int32_t add_slice(const strip_plan &p, const strip &s,
                                                    uint32_t width, const slice_outputs<E, I> &from,
                                                    const strip_sums<V> &sums) {
  constexpr int ROWS_AT_ONCE = strip_limits<V>::IN_FLIGHT / C;
  int32_t named = 0, oh = s.oh.begin;
  for (; oh + ROWS_AT_ONCE <= s.oh.end; oh += ROWS_AT_ONCE)
    for (int32_t ow = s.ow.begin; ow < s.ow.end; ow += C)
      named += add_batch<V, C, true>(p, s, width, from, oh, ow, sums);
  if (ROWS_AT_ONCE > 1 && oh < s.oh.end && s.ow.begin < s.ow.end)
    named += add_batch<V, C, false>(p, s, width, from, oh, s.ow.begin, sums);
  return named;
}

/* One strip of a unit; the sums are zeros before and after it. */
template <int V, int C, typename E, typename I>
static __device__ __forceinline__ int32_t compute_strip(const max_job &j, const strip_plan &p,
                                                        const strip &s, uint32_t unit,
                                                        const strip_sums<V> &sums) {
  const uint32_t n = over(unit, p.by_groups);
  const int32_t c = (int32_t)(unit - n * p.by_groups.by) * p.unit_channels;
  if (c + s.channel >= (int32_t)j.by_c.by) return 0; /* the last of an n may have fewer channels */
  const int64_t outputs =
      s.outputs_from + n * j.grad_strides.of[PG_N] + c * j.grad_strides.of[PG_C];
  slice_outputs<E, I> from = {(const I *)j.index + outputs, (const E *)j.grad + outputs,
                              (uint32_t)j.grad_strides.of[PG_W], (uint32_t)j.grad_strides.of[PG_H]};
  int32_t named = 0;
  for (int32_t od = s.od.begin; od < s.od.end; od++) {
    named += add_slice<V, C, E, I>(p, s, (uint32_t)j.w.in, from, sums);
    from.index += j.grad_strides.of[PG_D];
    from.grad += j.grad_strides.of[PG_D];
  }
  E *out = (E *)j.in + s.cells_from + n * j.in_strides.of[PG_N] + c * j.in_strides.of[PG_C];
#pragma unroll 4
  for (int32_t row = 0; row < s.rows; row++) {
    float sum[V];
#pragma unroll
    for (int v = 0; v < V; v++) {
      const uint32_t from_sum = sums.at((uint32_t)row, v);
      sum[v] = shared_load(from_sum);
      shared_store(from_sum, 0);
    }
    put_vector<V>(out, sum);
    out += j.in_strides.of[PG_H];
  }
  return named;
}

template <int V, int C, typename E, typename I>
static __global__ void __launch_bounds__(THREADS, strip_limits<V>::BLOCKS_AT_ONCE)
    max_strips(const __grid_constant__ max_job j, const __grid_constant__ strip_plan p) {
  const strip_sums<V> sums = {shared_address(pg_max_any_scratch + threadIdx.x)};
  for (int32_t i = 0; i <= p.rows * V; i++) shared_store(sums.first + i * sums.PITCH, 0);
  const block_share b = share_of(p, j.flags != nullptr);
  int32_t named = 0;
  for (uint32_t number = b.strip; number < b.strip_end; number += THREADS) {
    const strip s = strip_of(j, p, V, number);
    for (uint32_t unit = b.unit; unit < b.unit_end; unit += (uint32_t)p.beside)
      named += compute_strip<V, C, E, I>(j, p, s, unit, sums);
  }
  check_block(j, p, named, max(p.rows * V, (int32_t)LEAST_SUMS));
}

/* --- On the host --- */

static bool fits(const pg_problem *problem, pg_tiling *tiling) {
  const pg_facts &f = problem->facts;
  if (!fits_strips(*problem)) return false;
  if (!f.neighbours && (f.has_depth || 2 * f.outputs < f.cells)) return false;
  *tiling = tile_strips(f, problem->dtype == ACL_FLOAT ? 4 : 2);
  return counts_outputs(f, *tiling);
}

template <int V, typename E, typename I>
static cudaError_t run_vectors(const pg_cuda_call *call, const max_job &j) {
  constexpr int MANY = strip_limits<V>::IN_FLIGHT;
  const strip_plan p = strip_plan_of(j, V, strip_limits<V>::ROWS);
  const int64_t sums = (int64_t)p.rows * V + 1;
  const int64_t bytes = scratch_bytes(THREADS, sums < LEAST_SUMS ? (int64_t)LEAST_SUMS : sums);
  const int64_t windows = call->task->problem.facts.w_windows;
  return launch(call,
                windows <= 1   ? max_strips<V, 1, E, I>
                : windows <= 2 ? max_strips<V, 2, E, I>
                               : max_strips<V, MANY, E, I>,
                blocks_of(j, p), THREADS, bytes, j, p);
}

template <typename E, typename I>
static cudaError_t run_as(const pg_cuda_call *call) {
  constexpr int MOST = 16 / sizeof(E);
  const max_job j = max_job_of(call);
  if (has_vectors_of<E, I>(j, MOST)) return run_vectors<MOST, E, I>(call, j);
  if (has_vectors_of<E, I>(j, 4)) return run_vectors<4, E, I>(call, j);
  if (has_vectors_of<E, I>(j, 2)) return run_vectors<2, E, I>(call, j);
  return run_vectors<1, E, I>(call, j);
}

static cudaError_t run(const pg_cuda_call *call) {
  return with_max_types(call,
                        [call](auto e, auto i) { return run_as<decltype(e), decltype(i)>(call); });
}

PG_CUDA_METHOD(max_strips) = {"strips", fits, strips_workspace, run, mend_strips};
