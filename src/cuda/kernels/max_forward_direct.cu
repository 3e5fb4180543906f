/* SPDX-License-Identifier: Apache-2.0 */
/* Maxima of small windows, in registers (forward_direct.cuh).
 *
 * Rows come in the order of the cells, and so does what is compared: first the cells of a row of a
 * window, then that row's greatest with the greatest of the rows before.  What comes later replaces
 * what is found only if it is greater, so that the first of equal cells counts, and +0 and -0 are
 * equal.  Elements of 16 bits are compared as floats, which hold them exactly.
 *
 * NaNs are looked for, two cells at a time, but not compared, and a window of which -infinity is
 * the greatest cell looks like one without cells: where a thread has found either, it computes its
 * outputs again with a look at each cell of their windows.  Such data is slow; other data does not
 * pay for it. */
#include <math.h>

#include "cuda/kernels/forward_direct.cuh"

template <typename E>
static __device__ __forceinline__ E lowest(E) { /* -infinity */
  E e;
  put(&e, -INFINITY);
  return e;
}

/* What a thread has found: for each output the greatest cell so far, and its position. */
template <typename B>
struct found_block {
  float value[B::R][B::V];
  uint32_t position[B::R][B::V];
  bool odd; /* there was a NaN */
};

/* Is there a NaN in a row of cells? */
template <typename B>
static __device__ __forceinline__ bool has_nan(const float (&row)[B::COLUMNS]) {
  bool nan = false;
#pragma unroll
  for (int x = 0; x + 1 < B::COLUMNS; x += 2)
    nan |= (row[x] != row[x]) | (row[x + 1] != row[x + 1]);
  if constexpr (B::COLUMNS % 2 == 1) nan |= row[B::COLUMNS - 1] != row[B::COLUMNS - 1];
  return nan;
}

/* Looks at the i-th row of cells of the block; `position` is that of its first column. */
template <bool FIRST_SLICE, typename B>
static __device__ __forceinline__ void look_at_row(const float (&row)[B::COLUMNS], int i,
                                                   uint32_t position, found_block<B> *found) {
  found->odd |= has_nan<B>(row);
#pragma unroll
  for (int v = 0; v < B::V; v++) {
    float greatest = row[v * B::S];
    uint32_t column = position + (uint32_t)(v * B::S);
#pragma unroll
    for (int k = 1; k < B::K; k++)
      if (row[v * B::S + k] > greatest) {
        greatest = row[v * B::S + k];
        column = position + (uint32_t)(v * B::S + k * B::D);
      }
#pragma unroll
    for (int r = 0; r < B::R; r++)
      if (B::holds_row(r, i) && ((FIRST_SLICE && i == r * B::S) || greatest > found->value[r][v])) {
        found->value[r][v] = greatest;
        found->position[r][v] = column;
      }
  }
}

template <typename E, typename B>
static __device__ __forceinline__ void find_block(const direct_plan &p, const direct_place &at,
                                                  found_block<B> *found) {
  const int32_t h = at.oh * B::S - p.h.pad, w = at.ow * B::S - p.w.pad;
  found->odd = false;
  const auto look_at_slice = [&](auto is_first, int32_t slice, const direct_cells<E, B> &cells) {
    uint32_t position = (uint32_t)((slice * p.h.in + h) * p.w.in + w);
#pragma unroll
    for (int i = 0; i < B::ROWS; i++) {
      float row[B::COLUMNS];
#pragma unroll
      for (int x = 0; x < B::COLUMNS; x++) row[x] = widened(cells.of[i][x][0]);
      look_at_row<decltype(is_first)::value, B>(row, i, position, found);
      position += (uint32_t)p.w.in;
    }
  };
  for_slices<E, B>(p, at, lowest(E()), look_at_slice);
}

/* --- NaNs, and windows without numbers above -infinity --- */

template <typename E>
static __device__ __noinline__ void find_odd(const direct_plan &p, const direct_place o, int32_t k,
                                             int32_t stride, int32_t dilation) {
  const int32_t h = o.oh * stride - p.h.pad, w = o.ow * stride - p.w.pad;
  E greatest = {};
  int64_t position = -1;
  for (int32_t s = 0; s < o.slices.count; s++)
    for (int32_t i = 0; i < k * k; i++) {
      const int32_t slice = o.slices.first + s * (int32_t)p.d.step.by;
      const int32_t down = i / k * dilation, right = i % k * dilation;
      if ((uint32_t)(h + down) >= (uint32_t)p.h.in || (uint32_t)(w + right) >= (uint32_t)p.w.in)
        continue;
      const E cell = ((const E *)p.in)[offset_of(p.in_strides, o.n, o.c, slice,
                                                 o.oh * stride + down, o.ow * stride + right)];
      if (position >= 0 && !replaces(compared(cell), compared(greatest))) continue;
      greatest = cell;
      position = ((int64_t)slice * p.h.in + h + down) * p.w.in + w + right;
    }
  ((E *)p.out)[offset_of(p.out_strides, o)] = greatest;
  const uint64_t at = offset_of(p.index_strides, o);
  if (p.index_bytes == 8) ((int64_t *)p.index)[at] = position;
  if (p.index_bytes == 4) ((int32_t *)p.index)[at] = (int32_t)position;
}

template <typename E, typename B>
static __device__ __forceinline__ void find_odd_block(const direct_plan &p,
                                                      const direct_place &at) {
#pragma unroll 1
  for (int i = 0; i < B::R * B::V; i++) {
    direct_place o = at;
    o.oh += i / B::V;
    o.ow += i % B::V;
    if (o.oh < p.h.out && o.ow < p.w.out) find_odd<E>(p, o, B::K, B::S, B::D);
  }
}

/* --- Writing --- */

/* Returns whether a value is -infinity, which may stand for no cell at all. */
template <typename E, typename B>
static __device__ __forceinline__ bool write_values(const direct_plan &p, const direct_place &at,
                                                    const found_block<B> &found) {
  bool odd = false;
  for_stored<B>(p, at, p.out_strides, [&](int r, int v, uint64_t offset) {
    const float *values = found.value[r] + v;
#pragma unroll
    for (int i = 0; i < B::V; i++) odd |= values[i] == -INFINITY;
    put_vector<B::V>((E *)p.out + offset, values);
  });
  return odd;
}

template <typename I, typename B>
static __device__ __forceinline__ void write_positions(const direct_plan &p, const direct_place &at,
                                                       const found_block<B> &found) {
  for_stored<B>(p, at, p.index_strides, [&](int r, int v, uint64_t offset) {
    I positions[B::V];
#pragma unroll
    for (int i = 0; i < B::V; i++) positions[i] = (I)found.position[r][v + i];
    write_vector<B::V>((I *)p.index + offset, positions);
  });
}

template <typename E, typename B>
static __global__ void __launch_bounds__(DIRECT_THREADS, DIRECT_BLOCKS_PER_SM)
    max_forward_direct(const __grid_constant__ direct_plan p) {
  direct_place at;
  if (!find_place<B>(p, &at)) return;
  found_block<B> found;
  find_block<E, B>(p, at, &found);
  const bool odd = write_values<E, B>(p, at, found) || found.odd;
  if (p.index_bytes == 8) write_positions<int64_t, B>(p, at, found);
  if (p.index_bytes == 4) write_positions<int32_t, B>(p, at, found);
  if (odd) find_odd_block<E, B>(p, at);
}

/* --- On the host --- */

/* Other windows of 2 or 3 rows that are 2 apart, and all with channels as neighbours, were tried:
 * on an H200 `columns` is faster, or as fast for 2 x 2 cells in planes without depth. */
typedef window_shape<3, 1> three;
typedef window_shape<3, 1, 2> dilated;
typedef window_shape<5, 1> five;
typedef window_shape<2, 2> two; /* only with depth */

static bool has_windows(const pg_pooling &p) {
  return has_shape<three>(p) || has_shape<dilated>(p) || has_shape<five>(p) ||
         (has_shape<two>(p) && p.d.kernel != 1);
}

/* Calls fn with the block for windows that has_windows knows. */
template <typename F>
static cudaError_t with_block(const pg_pooling &p, const direct_tensors &t, F fn) {
  if (has_shape<three>(p)) return with_planar_block<three>(p, t, fn);
  if (has_shape<dilated>(p)) return with_planar_block<dilated>(p, t, fn);
  if (has_shape<five>(p)) return with_planar_block<five>(p, t, fn);
  return with_planar_block<two>(p, t, fn);
}

static bool fits(const pg_problem *problem, pg_tiling *tiling) {
  const pg_max_forward &a = problem->args.max_forward;
  const pg_pooling &p = problem->facts.pool, grid = pg_output_grid(&p);
  *tiling = pg_tile_flat(&grid, 4096);
  return has_windows(p) && !problem->facts.neighbours &&
         fits_direct(*problem, a.in_strides, a.out_strides) &&
         (a.index_bytes == 0 || has_direct_strides(a.index_strides));
}

template <typename E>
static cudaError_t run_as(const pg_cuda_call *call) {
  const pg_problem &problem = call->task->problem;
  const pg_max_forward &a = problem.args.max_forward;
  const direct_tensors t = {a.in,          a.out,           a.index,   a.in_strides,
                            a.out_strides, a.index_strides, sizeof(E), a.index_bytes};
  return with_block(problem.facts.pool, t, [&](auto block) {
    typedef decltype(block) B;
    const direct_plan p = direct_plan_of<B>(problem.facts, t);
    return launch(call, max_forward_direct<E, B>, direct_grid(p), DIRECT_THREADS, 0, p);
  });
}

static cudaError_t run(const pg_cuda_call *call) {
  return with_fp32_type(call, [call](auto e) { return run_as<decltype(e)>(call); });
}

PG_CUDA_METHOD(max_forward_direct) = {"direct", fits, nullptr, run, nullptr};
