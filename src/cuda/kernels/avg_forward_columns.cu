/* SPDX-License-Identifier: Apache-2.0 */
/* Averages of windows of any kind, in planes or with channels as neighbours, but not of planes that
 * are one window.  The sums of columns are put into shared memory and added there
 * (forward_columns.cuh), which is the order that kernels/kernels.h states: columns first.
 *
 * Windows of more than 16 columns have 16 partial sums.  In planes each is a lane's, and half a
 * warp has an output; where channels are neighbours, a thread has all of them.  Sums need not begin
 * at +0 on the way, because only the sum of all cells could be -0 then: +0 is added to it. */
#include "cuda/kernels/forward_columns.cuh"
#include "cuda/kernels/quotient.cuh"

template <typename T>
struct avg_columns {
  typedef T element;
  typedef float column;
  typedef uint32_t room; /* the address of a sum in shared memory */
  static constexpr int BYTES = 4;

  static __device__ __forceinline__ room room_at(const column_plan &p, uint32_t memory,
                                                 uint32_t x) {
    return memory + p.results_at + x * BYTES;
  }
  static __device__ __forceinline__ room below(room r, uint32_t columns) {
    return r + columns * BYTES;
  }
  template <int V>
  static __device__ __forceinline__ void clear(float *sums, uint32_t) {
#pragma unroll
    for (int v = 0; v < V; v++) sums[v] = 0;
  }
  static __device__ __forceinline__ T filler() { return {}; }
  template <int V>
  static __device__ __forceinline__ void outside(float *sums) {
    clear<V>(sums, 0);
  }
  template <int V>
  static __device__ __forceinline__ void take_cells(float *sums, const vector_of<T, V> &cells,
                                                    uint32_t) {
#pragma unroll
    for (int v = 0; v < V; v++) sums[v] += widened(cells.of[v]);
  }
  /* Cells outside the plane are zeros. */
  template <int V, int K>
  static __device__ __forceinline__ void take_window(float *sums, const vector_of<T, V> *cells,
                                                     const bool *, uint32_t) {
#pragma unroll
    for (int v = 0; v < V; v++) {
      sums[v] = widened(cells[0].of[v]);
#pragma unroll
      for (int k = 1; k < K; k++) sums[v] += widened(cells[k].of[v]);
    }
  }
  template <int V>
  static __device__ __forceinline__ void keep(room to, const float *sums) {
    store_shared<V>(to, sums);
  }
};

/* VB neighbouring sums of shared memory are added to others. */
template <int VB>
static __device__ __forceinline__ void add_sums(float *sums, uint32_t column) {
  const vector_of<float, VB> more = table_vector<float, VB>(column);
#pragma unroll
  for (int v = 0; v < VB; v++) sums[v] += more.of[v];
}

/* Any number of columns; addresses are `step` apart. */
static __device__ __forceinline__ float add_columns(uint32_t column, int32_t count, uint32_t step) {
  float sum = table_element(column, 0.0f);
#pragma unroll 4
  for (int32_t i = 1; i < count; i++) {
    column += step;
    sum += table_element(column, 0.0f);
  }
  return sum;
}

/* The same with 16 partial sums where there are more columns. */
static __device__ __forceinline__ float add_many_columns(uint32_t column, int32_t count,
                                                         uint32_t step) {
  if (count <= PG_PARTIAL_SUMS) return add_columns(column, count, step);
  float partial[PG_PARTIAL_SUMS] = {};
  for (int32_t i = 0; i < count; i += PG_PARTIAL_SUMS)
#pragma unroll
    for (int k = 0; k < PG_PARTIAL_SUMS; k++)
      if (i + k < count) partial[k] += table_element(column + (uint32_t)(i + k) * step, 0.0f);
#pragma unroll
  for (int k = 0; k < 8; k++) partial[k] += partial[k + 8];
#pragma unroll
  for (int k = 0; k < 4; k++) partial[k] += partial[k + 4];
  return (partial[0] + partial[2]) + (partial[1] + partial[3]);
}

/* Where a thread of the second step reads and writes: the same place in some rows. */
template <typename E>
struct output_walk {
  typedef avg_columns<E> R;
  uint32_t row_at, column, on, rows_on;
  E *to;

  __device__ __forceinline__ output_walk(const column_plan &p, const column_tile &t,
                                         uint32_t memory, const output_column &o)
      : row_at(o.row_at),
        column(R::below(R::room_at(p, memory, o.first), (uint32_t)o.row * p.pitch)),
        on(in_register((uint32_t)o.rows * p.pitch * R::BYTES)),
        rows_on((uint32_t)o.rows * (uint32_t)sizeof(output_row)),
        to(global_in_register((E *)p.out + t.out + (o.ow * p.out_strides.w + o.channel))) {}
  __device__ __forceinline__ void next() {
    row_at += rows_on;
    column += on;
  }
};

/* Windows of K columns, which lie in shared memory whether they are in the plane or not. */
template <typename E, int K, int VB>
static __device__ __forceinline__ void add_walked_rows(const column_plan &p, const column_tile &t,
                                                       uint32_t memory) {
  const uint32_t step = p.inner == 1 ? 4 : in_register((uint32_t)p.inner * 4);
  for_outputs<VB>(p, t, memory, [&](const output_column &o) {
    output_walk<E> at(p, t, memory, o);
    averager by;
    by.set(p.divisor);
    const auto add_row = [&](uint32_t apart) {
      const uint2 r = table_words(at.row_at); /* an output_row's first half */
      if (p.divisor == 0) by.set(o.wide * __uint_as_float(r.y));
      float sums[VB] = {};
#pragma unroll
      for (int k = 0; k < K; k++) add_sums<VB>(sums, at.column + (uint32_t)k * apart);
#pragma unroll
      for (int v = 0; v < VB; v++) sums[v] = by.average(sums[v]);
      put_vector<VB>(at.to + r.x, sums);
      at.next();
    };
    if (VB == 1 && p.inner == 1)
      for (int32_t row = o.row; row < t.rows; row += o.rows) add_row(4);
    else
      for (int32_t row = o.row; row < t.rows; row += o.rows) add_row(step);
  });
}

/* Any windows. */
template <typename E, bool MANY, int VB>
static __device__ __forceinline__ void add_rows(const column_plan &p, const column_tile &t,
                                                uint32_t memory) {
  const uint32_t step = in_register(p.w.step.by * (uint32_t)p.inner * 4);
  for_outputs<VB>(p, t, memory, [&](const output_column &o) {
    output_walk<E> at(p, t, memory, o);
    for (int32_t row = o.row; row < t.rows; row += o.rows) {
      const uint2 r = table_words(at.row_at);
      float sums[VB] = {};
      if constexpr (MANY)
        sums[0] += add_many_columns(at.column, o.count, step);
      else
#pragma unroll 4
        for (int32_t i = 0; i < o.count; i++) add_sums<VB>(sums, at.column + (uint32_t)i * step);
      const float by = p.divisor != 0 ? p.divisor : o.wide * __uint_as_float(r.y);
#pragma unroll
      for (int v = 0; v < VB; v++) sums[v] = __fdiv_rn(sums[v], by);
      put_vector<VB>(at.to + r.x, sums);
      at.next();
    }
  });
}

/* Half a warp has an output. */
template <typename E>
static __device__ __forceinline__ void add_rows_by_lanes(const column_plan &p, const column_tile &t,
                                                         const column_tables &tables,
                                                         uint32_t memory) {
  typedef avg_columns<E> R;
  const int32_t all = t.rows * p.tile_outputs, lane = (int32_t)(threadIdx.x % PG_PARTIAL_SUMS);
  const int32_t halves = (int32_t)(blockDim.x / PG_PARTIAL_SUMS);
  const uint32_t step = p.w.step.by * R::BYTES;
  const unsigned half = threadIdx.x % 32 < PG_PARTIAL_SUMS ? 0x0000ffffu : 0xffff0000u;
  for (int32_t i = (int32_t)(threadIdx.x / PG_PARTIAL_SUMS); i < all; i += halves) {
    const int32_t row = (int32_t)over((uint32_t)i, p.by_outputs), place = i - row * p.tile_outputs;
    if (place >= t.outputs) continue;
    const output_place at = tables.places[place];
    const output_row r = tables.outputs[row];
    const uint32_t column = R::below(R::room_at(p, memory, at.first), (uint32_t)row * p.pitch);
    const int32_t count = (int32_t)(at.count_extent & 0xffff);
    float sum = 0;
    if (count > PG_PARTIAL_SUMS) {
      for (int32_t k = lane; k < count; k += PG_PARTIAL_SUMS)
        sum += table_element(column + (uint32_t)k * step, 0.0f);
      for (int distance = PG_PARTIAL_SUMS / 2; distance > 0; distance /= 2)
        sum += __shfl_xor_sync(half, sum, distance);
    } else if (lane == 0) {
      sum = add_columns(column, count, step);
    }
    const float counted = (float)(at.count_extent >> 16) * r.extent;
    if (lane == 0)
      put((E *)p.out + t.out + (r.out + (uint32_t)(t.output + place) * p.out_strides.w),
          __fdiv_rn(sum + 0.0f, p.divisor != 0 ? p.divisor : counted));
  }
}

/* K: windows of K columns, and of K rows that are S apart; 0: any. */
template <typename E, int V, int K, int S, bool MANY, int VB>
static __global__ void __launch_bounds__(MOST_COLUMN_THREADS, COLUMN_BLOCKS_PER_SM)
    avg_forward_columns(const __grid_constant__ column_plan p) {
  extern __shared__ __align__(16) char pg_column_memory[];
  const column_tables tables = column_tables_of(p, pg_column_memory);
  const column_tile t = column_tile_of<V, (K > 0)>(p, blockIdx.x);
  fill_tables<(K > 0)>(p, t, tables);
  __syncthreads();
  reduce_columns<avg_columns<E>, V, K, S>(p, t, tables, shared_address(pg_column_memory));
  __syncthreads();
  if constexpr (K > 0)
    add_walked_rows<E, K, VB>(p, t, shared_address(pg_column_memory));
  else if (MANY && p.inner == 1)
    add_rows_by_lanes<E>(p, t, tables, shared_address(pg_column_memory));
  else
    add_rows<E, MANY, VB>(p, t, shared_address(pg_column_memory));
}

/* --- On the host --- */

static bool fits(const pg_problem *problem, pg_tiling *tiling) {
  const pg_avg_forward &a = problem->args.avg_forward;
  const pg_pooling grid = pg_output_grid(&problem->facts.pool);
  *tiling = pg_tile_flat(&grid, 4096);
  return problem->facts.largest_divisor != INT64_MAX && !pg_is_global(&problem->facts.pool) &&
         has_forward_sizes(*problem, a.in_strides, a.out_strides);
}

template <typename E>
static column_plan plan_of(const pg_problem &problem, int64_t v, bool walks, int64_t vb) {
  const pg_facts &f = problem.facts;
  const pg_avg_forward &a = problem.args.avg_forward;
  column_plan p = {};
  p.in = a.in;
  p.out = a.out;
  p.in_strides = forward_strides_of(a.in_strides);
  p.out_strides = forward_strides_of(a.out_strides);
  p.divisor = constant_divisor(f.pool, a);
  p.count_include_pad = a.count_include_pad;
  const bool in = has_equal_units(f, a.in_strides, &p.in_strides);
  const bool out = has_equal_units(f, a.out_strides, &p.out_strides);
  plan_columns(f, {sizeof(E), avg_columns<E>::BYTES, v, walks, vb}, in && out, &p);
  return p;
}

template <typename E, int V, int K, int S, bool MANY, int VB>
static cudaError_t launch_columns(const pg_cuda_call *call) {
  column_plan p = plan_of<E>(call->task->problem, V, K > 0, VB);
  const int64_t threads = column_threads(p);
  deal_out(&p, threads);
  return launch(call, avg_forward_columns<E, V, K, S, MANY, VB>, column_blocks(p), (int)threads,
                column_room(p, avg_columns<E>::BYTES), p);
}

/* The most cells of a window along an axis. */
static int64_t most_cells(const pg_axis &a) {
  return a.kernel != 0 ? a.kernel : pg_ceil_div(a.in, a.out) + 1;
}

template <typename E, int V, int VB>
static cudaError_t run_vectors(const pg_cuda_call *call) {
  const pg_pooling &p = call->task->problem.facts.pool;
  if (most_cells(p.w) > PG_PARTIAL_SUMS) return launch_columns<E, V, 0, 0, true, 1>(call);
  const int64_t divisor = call->task->problem.args.avg_forward.divisor;
  if (divisor < 0 || divisor > MOST_DIVISOR) return launch_columns<E, V, 0, 0, false, VB>(call);
  if (has_walks(p, 2, 2)) return launch_columns<E, V, 2, 2, false, VB>(call);
  if (has_walks(p, 3, 2)) return launch_columns<E, V, 3, 2, false, VB>(call);
  if (has_walks(p, 3, 1)) return launch_columns<E, V, 3, 1, false, VB>(call);
  if (has_walks(p, 5, 2)) return launch_columns<E, V, 5, 2, false, VB>(call);
  return launch_columns<E, V, 0, 0, false, VB>(call);
}

template <typename E>
static cudaError_t run_as(const pg_cuda_call *call) {
  const pg_problem &problem = call->task->problem;
  const pg_avg_forward &a = problem.args.avg_forward;
  const int64_t v = column_vector_cells(problem.facts, a.in, a.in_strides, sizeof(E));
  const bool four = writes_channels(problem.facts, a.out, a.out_strides, sizeof(E), 4);
  if (v == 16 / sizeof(E) && four) return run_vectors<E, 16 / sizeof(E), 4>(call);
  if (v == 16 / sizeof(E)) return run_vectors<E, 16 / sizeof(E), 1>(call);
  if (v == 2) return run_vectors<E, 2, 1>(call);
  return run_vectors<E, 1, 1>(call);
}

static cudaError_t run(const pg_cuda_call *call) {
  return with_fp32_type(call, [call](auto e) { return run_as<decltype(e)>(call); });
}

PG_CUDA_METHOD(avg_forward_columns) = {"columns", fits, nullptr, run, nullptr};
