/* SPDX-License-Identifier: Apache-2.0 */
/* Averages of small windows, in registers (forward_direct.cuh).
 *
 * kernels/kernels.h wants the cells of each column added first, then the columns: so a thread has,
 * for each row of its outputs, a sum for every column of its block, and adds every row of cells to
 * those of the windows that hold it.  Sums need not begin at +0 on the way, because only the sum of
 * all cells could be -0 then, and its quotient is +0 (quotient.cuh). */
#include "cuda/kernels/forward_direct.cuh"

template <typename B>
struct column_sums {
  float of[B::R][B::COLUMNS][B::C];
};

template <typename E, typename B>
static __device__ __forceinline__ void add_columns(const direct_plan &p, const direct_place &at,
                                                   column_sums<B> *sums) {
  const auto add_slice = [&](auto is_first, int32_t, const direct_cells<E, B> &cells) {
#pragma unroll
    for (int i = 0; i < B::ROWS; i++)
#pragma unroll
      for (int x = 0; x < B::COLUMNS; x++)
#pragma unroll
        for (int c = 0; c < B::C; c++) {
          const float cell = widened(cells.of[i][x][c]);
#pragma unroll
          for (int r = 0; r < B::R; r++) {
            if (!B::holds_row(r, i)) continue;
            const bool begins = decltype(is_first)::value && i == r * B::S;
            sums->of[r][x][c] = begins ? cell : sums->of[r][x][c] + cell;
          }
        }
  };
  for_slices<E, B>(p, at, E(), add_slice);
}

/* Which cells the divisors count along the axes, of the thread's windows. */
template <typename B>
struct counted_cells {
  float d_h[B::R], w[B::V];

  __device__ __forceinline__ counted_cells(const direct_plan &p, const direct_place &at) {
    const int32_t d = extent(p.d.windows, at.od, p.count_include_pad);
#pragma unroll
    for (int r = 0; r < B::R; r++)
      d_h[r] = (float)(d * extent_of_sliding(p.h, at.oh + r, p.count_include_pad));
#pragma unroll
    for (int v = 0; v < B::V; v++)
      w[v] = (float)extent_of_sliding(p.w, at.ow + v, p.count_include_pad);
  }

 private:
  static __device__ __forceinline__ int32_t extent_of_sliding(const pg_axis_32 &a, int32_t o,
                                                              bool with_pad) {
    const int32_t begin = o * B::S - a.pad, pad = with_pad ? a.pad : 0;
    return min(begin + B::K, a.in + pad) - max(begin, -pad);
  }
};

/* Do all windows of the thread lie in the plane?  Then they have as many cells as any. */
template <typename B>
static __device__ __forceinline__ bool lies_inside(const direct_plan &p, const direct_place &at) {
  const int32_t h = at.oh * B::S - p.h.pad, w = at.ow * B::S - p.w.pad;
  const pg_axis_32 &d = p.d.windows;
  return min(h, w) >= 0 && h + B::ROWS <= p.h.in && w + B::COLUMNS <= p.w.in && d.stride != 0 &&
         extent(d, at.od, false) == d.reach + 1;
}

/* Have not all quotients of these sums the bits of divisions?  quotient.cuh says of which sums they
 * have; quotients of those that are too large are NaNs. */
template <typename E, int COUNT>
static __device__ __forceinline__ bool are_odd(const float *sums, const float *quotients) {
  bool odd = false;
#pragma unroll
  for (int i = 0; i < COUNT; i++) {
    const uint32_t magnitude =
        2 * __float_as_uint(sums[i]) - 1; /* that of 0 wraps to the largest */
    if (!std::is_same<E, pg_f16>::value) odd |= magnitude < 2 * 0x0d800000u - 1; /* 2^-100 */
    const float a = quotients[i & ~1], b = quotients[i]; /* one instruction for two */
    if (i % 2 == 1 || i == COUNT - 1) odd |= (a != a) | (b != b);
  }
  return odd;
}

/* The sum of the columns of output (r, v), in channel c. */
template <typename B>
static __device__ __forceinline__ float added(const column_sums<B> &sums, int r, int v, int c) {
  float sum = sums.of[r][v * B::S][c];
#pragma unroll
  for (int k = 1; k < B::K; k++) sum += sums.of[r][v * B::S + k][c];
  return sum;
}

static __device__ __noinline__ float reciprocal(float by) { return __frcp_rn(by); }

/* Divisors of the thread's windows, with reciprocals: one, or those of the cells that count. */
struct one_divisor {
  pg_divisor by;
  __device__ __forceinline__ pg_divisor of(int, int) const { return by; }
};
template <typename B>
struct counted_divisors {
  counted_cells<B> cells;
  pg_divisor last;
  __device__ __forceinline__ pg_divisor of(int r, int v) {
    const float by = cells.d_h[r] * cells.w[v];
    if (by != last.by) last = {by, reciprocal(by)};
    return last;
  }
};

/* Writes the averages, and returns whether one of them needs a true division. */
template <typename E, typename B, typename Divisors>
static __device__ __forceinline__ bool write_averages(const direct_plan &p, const direct_place &at,
                                                      const column_sums<B> &sums,
                                                      Divisors divisors) {
  bool odd = false;
  for_stored<B>(p, at, p.out_strides, [&](int r, int v, uint64_t offset) {
    float totals[B::STORED], averages[B::STORED];
    pg_divisor by = divisors.of(r, v);
#pragma unroll
    for (int i = 0; i < B::STORED; i++) {
      const int column = B::C > 1 ? v : v + i, channel = B::C > 1 ? i : 0;
      if (column > v) by = divisors.of(r, column);
      totals[i] = added<B>(sums, r, column, channel);
      averages[i] = quotient(totals[i], by);
    }
    odd |= are_odd<E, B::STORED>(totals, averages);
    put_vector<B::STORED>((E *)p.out + offset, averages);
  });
  return odd;
}

static __device__ __noinline__ float divided(float sum, float by) {
  return __fdiv_rn(sum + 0.0f, by);
}

/* The same with divisions. */
template <typename E, typename B>
static __device__ __forceinline__ void write_divided(const direct_plan &p, const direct_place &at,
                                                     const column_sums<B> &sums,
                                                     const counted_cells<B> &cells) {
  for_stored<B>(p, at, p.out_strides, [&](int r, int v, uint64_t offset) {
    float averages[B::STORED];
#pragma unroll
    for (int i = 0; i < B::STORED; i++) {
      const int column = B::C > 1 ? v : v + i, channel = B::C > 1 ? i : 0;
      const float by = p.counts ? cells.d_h[r] * cells.w[column] : p.divisor.by;
      averages[i] = divided(added<B>(sums, r, column, channel), by);
    }
    put_vector<B::STORED>((E *)p.out + offset, averages);
  });
}

template <typename E, typename B>
static __global__ void __launch_bounds__(DIRECT_THREADS, DIRECT_BLOCKS_PER_SM)
    avg_forward_direct(const __grid_constant__ direct_plan p) {
  direct_place at;
  if (!find_place<B>(p, &at)) return;
  column_sums<B> sums;
  add_columns<E, B>(p, at, &sums);
  bool odd;
  if (!p.counts || lies_inside<B>(p, at))
    odd = write_averages<E, B>(p, at, sums, one_divisor{p.divisor});
  else
    odd = write_averages<E, B>(p, at, sums, counted_divisors<B>{counted_cells<B>(p, at), {}});
  if (odd) write_divided<E, B>(p, at, sums, counted_cells<B>(p, at));
}

/* --- On the host --- */

/* 3 x 3 cells, 1 or 2 apart, were tried: on an H200 `columns` is as fast or faster. */
typedef window_shape<2, 2> two;

/* Can threads have c channels? */
static bool has_channels(const pg_facts &f, const direct_tensors &t, int64_t c) {
  return writes_channels(f, t.in, t.in_strides, t.element_bytes, c) &&
         writes_channels(f, t.out, t.out_strides, t.element_bytes, c);
}

/* Calls fn with the best block for a problem of this shape. */
template <typename Shape, typename F>
static cudaError_t with_block(const pg_facts &f, const direct_tensors &t, F fn) {
  if (!f.neighbours) return with_planar_block<Shape>(f.pool, t, fn);
  if (has_channels(f, t, 4)) return fn(direct_block_of<Shape, 1, 4, SINGLE_CELLS>());
  if (has_channels(f, t, 2)) return fn(direct_block_of<Shape, 1, 2, SINGLE_CELLS>());
  return fn(direct_block_of<Shape, 1, 1, SINGLE_CELLS>());
}

static bool fits(const pg_problem *problem, pg_tiling *tiling) {
  const pg_avg_forward &a = problem->args.avg_forward;
  const pg_pooling &p = problem->facts.pool, grid = pg_output_grid(&p);
  *tiling = pg_tile_flat(&grid, 4096);
  return has_shape<two>(p) && a.divisor >= 0 && problem->facts.largest_divisor <= MOST_DIVISOR &&
         !pg_is_global(&p) && fits_direct(*problem, a.in_strides, a.out_strides);
}

template <typename E>
static cudaError_t run_as(const pg_cuda_call *call) {
  const pg_problem &problem = call->task->problem;
  const pg_avg_forward &a = problem.args.avg_forward;
  const pg_pooling &pool = problem.facts.pool;
  const direct_tensors t = {a.in, a.out, nullptr, a.in_strides, a.out_strides, {}, sizeof(E), 0};
  const float by = constant_divisor(pool, a);
  const auto launch_block = [&](auto block) {
    typedef decltype(block) B;
    direct_plan p = direct_plan_of<B>(problem.facts, t);
    p.count_include_pad = a.count_include_pad;
    p.counts = by == 0;
    p.divisor = divisor_of(by != 0 ? by : (float)(pool.d.kernel * B::K * B::K));
    return launch(call, avg_forward_direct<E, B>, direct_grid(p), DIRECT_THREADS, 0, p);
  };
  return with_block<two>(problem.facts, t, launch_block);
}

static cudaError_t run(const pg_cuda_call *call) {
  return with_fp32_type(call, [call](auto e) { return run_as<decltype(e)>(call); });
}

PG_CUDA_METHOD(avg_forward_direct) = {"direct", fits, nullptr, run, nullptr};
