/* SPDX-License-Identifier: Apache-2.0 */
/* Maxima of windows of any kind, in planes or with channels as neighbours.  The greatest cell of
 * each column and its position are put into shared memory, and compared there
 * (forward_columns.cuh).
 *
 * Columns come in another order than cells do, so that positions decide between equal ones: the
 * first of them counts, or the last of NaNs. */
#include <math.h>

#include "cuda/kernels/forward_columns.cuh"
#include "cuda/kernels/max_forward_keys.cuh"

/* The addresses of a column's value and of its position in shared memory: values come first. */
struct found_room {
  uint32_t value, position;
};

static __device__ __forceinline__ float least_of(float) { return -INFINITY; }

template <typename T>
struct max_columns {
  typedef T element;
  typedef found_cell<T> column;
  typedef found_room room;
  static constexpr int BYTES = (int)sizeof(T) + 4;

  static __device__ __forceinline__ room room_at(const column_plan &p, uint32_t memory,
                                                 uint32_t x) {
    const uint32_t values = p.result_rows * p.pitch * (uint32_t)sizeof(T);
    return {memory + p.results_at + x * (uint32_t)sizeof(T),
            memory + p.results_at + values + x * 4};
  }
  static __device__ __forceinline__ room below(const room &r, uint32_t columns) {
    return {r.value + columns * (uint32_t)sizeof(T), r.position + columns * 4};
  }
  template <int V>
  static __device__ __forceinline__ void clear(column *columns, uint32_t row) {
#pragma unroll
    for (int v = 0; v < V; v++) columns[v] = {least_of(T()), row};
  }
  static __device__ __forceinline__ T filler() { return {}; }
  /* Less than any cell, or equal and behind all others. */
  template <int V>
  static __device__ __forceinline__ void outside(column *columns) {
#pragma unroll
    for (int v = 0; v < V; v++) columns[v] = {least_of(T()), UINT32_MAX};
  }
  template <int V>
  static __device__ __forceinline__ void take_cells(column *columns, const vector_of<T, V> &cells,
                                                    uint32_t row) {
#pragma unroll
    for (int v = 0; v < V; v++)
      if (replaces(compared(cells.of[v]), compared(columns[v].value)))
        columns[v] = {cells.of[v], row};
  }
  /* Valid cells follow each other. */
  template <int V, int K>
  static __device__ __forceinline__ void take_window(column *columns, const vector_of<T, V> *cells,
                                                     const bool *valid, uint32_t row) {
#pragma unroll
    for (int v = 0; v < V; v++) {
      column c = {cells[0].of[v], row};
#pragma unroll
      for (int k = 1; k < K; k++) {
        const bool greater = replaces(compared(cells[k].of[v]), compared(c.value));
        if (valid[k] && (greater || !valid[k - 1])) c = {cells[k].of[v], row + (uint32_t)k};
      }
      columns[v] = c;
    }
  }
  template <int V>
  static __device__ __forceinline__ void keep(const room &to, const column *columns) {
    T values[V];
    uint32_t positions[V];
#pragma unroll
    for (int v = 0; v < V; v++) {
      values[v] = columns[v].value;
      positions[v] = columns[v].position;
    }
    store_shared<V>(to.value, values);
    store_shared<V>(to.position, positions);
  }
};

/* Does a column's cell replace the greatest of the columns before it?  Positions are those of rows:
 * of the same row the earlier column counts, and the later one of NaNs. */
template <typename S>
static __device__ __forceinline__ bool replaces_before(S x, uint32_t row, S greatest,
                                                       uint32_t greatest_row) {
  const bool above = row < greatest_row;
  return x > greatest || (x == greatest && above) || (x != x && !(greatest != greatest && above));
}

/* The greatest of KW columns, or of `count` where KW is 0, in VB channels; columns are `step` apart
 * in shared memory.  A row becomes a position in a plane that is `width` wide, counted from the
 * first column. */
template <typename E, int KW, int VB>
static __device__ __forceinline__ void find_greatest(found_room from, int32_t count, uint32_t step,
                                                     uint32_t on, uint32_t width,
                                                     found_cell<E> *found) {
  uint32_t distance[VB] = {};
  const auto look = [&](const found_room &at, bool first, uint32_t apart) {
    const vector_of<E, VB> values = table_vector<E, VB>(at.value);
    const vector_of<uint32_t, VB> rows = table_vector<uint32_t, VB>(at.position);
#pragma unroll
    for (int v = 0; v < VB; v++) {
      if (!first && !replaces_before(compared(values.of[v]), rows.of[v], compared(found[v].value),
                                     found[v].position))
        continue;
      found[v] = {values.of[v], rows.of[v]};
      distance[v] = apart;
    }
  };
  look(from, true, 0);
  if constexpr (KW > 0) {
#pragma unroll
    for (int i = 1; i < KW; i++)
      look(max_columns<E>::below(from, (uint32_t)i * step), false, (uint32_t)i * on);
  } else {
#pragma unroll 2
    for (int32_t i = 1; i < count; i++) {
      from = max_columns<E>::below(from, step);
      look(from, false, (uint32_t)i * on);
    }
  }
#pragma unroll
  for (int v = 0; v < VB; v++) found[v].position = found[v].position * width + distance[v];
}

/* Where a thread of the second step writes.  I: int64_t or int32_t, or char where nobody wants
 * positions. */
template <typename E, typename I, int VB>
struct found_outputs {
  E *out;
  I *index;
  uint32_t w; /* the first column of the window */

  __device__ __forceinline__ found_outputs(const column_plan &p, const column_tile &t,
                                           const output_column &o)
      : out(global_in_register((E *)p.out + t.out + (o.ow * p.out_strides.w + o.channel))),
        index(nullptr),
        w((uint32_t)t.column + over(o.first - o.channel, p.by_inner)) {
    if (sizeof(I) > 1)
      index = global_in_register((I *)p.index + t.index + (o.ow * p.index_strides.w + o.channel));
  }
  __device__ __forceinline__ void write(uint32_t row_at, const found_cell<E> *found) const {
    E values[VB];
    I positions[VB];
#pragma unroll
    for (int v = 0; v < VB; v++) {
      values[v] = found[v].value;
      positions[v] = (I)(found[v].position + w);
    }
    write_vector<VB>(out + table_word(row_at), values);
    if constexpr (sizeof(I) > 1) write_vector<VB>(index + table_word(row_at + 8), positions);
  }
};

/* The greatest of `count` keys that are `step` apart, and its column's distance from the first. */
static __device__ __forceinline__ int32_t greatest_key(uint32_t from, int32_t count, uint32_t step,
                                                       uint32_t *distance) {
  int32_t greatest = (int32_t)table_word(from);
  *distance = 0;
  for (int32_t i = 1; i < count; i++) {
    const int32_t key = (int32_t)table_word(from + (uint32_t)i * step * 4);
    if (key <= greatest) continue;
    greatest = key;
    *distance = (uint32_t)i;
  }
  return greatest;
}

/* Writes the outputs of a thread again that are zeros or NaNs. */
template <typename E, typename I>
static __device__ __noinline__ void mend_odd_outputs(const column_plan &p, const column_tile &t,
                                                     uint32_t memory, const output_column &o,
                                                     int32_t count) {
  const uint32_t step = p.w.step.by * (uint32_t)p.inner;
  const found_outputs<E, I, 1> outputs(p, t, o);
  uint32_t from = max_keys<E>::room_at(p, memory, o.first) + (uint32_t)o.row * p.pitch * 4;
  uint32_t row_at = o.row_at;
  for (int32_t row = o.row; row < t.rows; row += o.rows) {
    uint32_t distance;
    const int32_t key = greatest_key(from, count, step, &distance);
    const uint32_t w = outputs.w + distance * p.w.step.by;
    found_cell<E> found = cell_of_key<E>(p, key, w);
    if (key >> 16 == 0)
      found.value =
          read_again<E>(p, t, {row, o.ow, o.channel}, KEY_ROWS - ((uint32_t)key & 0xffff), w);
    else if (is_odd_key<E>(key))
      found = last_nan<E>(p, t, {row, o.ow, o.channel});
    found.position -= outputs.w; /* which is added again */
    outputs.write(row_at, &found);
    row_at += (uint32_t)o.rows * (uint32_t)sizeof(output_row);
    from += (uint32_t)o.rows * p.pitch * 4;
  }
}

/* The greatest of KW keys, or of `count` where KW is 0, in VB channels. */
template <int KW, int VB>
static __device__ __forceinline__ void find_greatest_keys(uint32_t from, int32_t count,
                                                          uint32_t step, int32_t *greatest,
                                                          uint32_t *distance) {
  const auto look = [&](uint32_t i, bool first) {
    const vector_of<int32_t, VB> keys = table_vector<int32_t, VB>(from + i * step * 4);
#pragma unroll
    for (int v = 0; v < VB; v++)
      if (first || keys.of[v] > greatest[v]) {
        greatest[v] = keys.of[v];
        distance[v] = i;
      }
  };
  look(0, true);
  if constexpr (KW > 0) {
#pragma unroll
    for (uint32_t i = 1; i < KW; i++) look(i, false);
  } else {
#pragma unroll 4
    for (uint32_t i = 1; i < (uint32_t)count; i++) look(i, false);
  }
}

/* The same with keys. */
template <typename E, typename I, int KW, int VB>
static __device__ __forceinline__ void compare_keys(const column_plan &p, const column_tile &t,
                                                    uint32_t memory) {
  typedef max_keys<E> R;
  const uint32_t step = in_register(p.w.step.by * (uint32_t)p.inner);
  for_outputs<VB>(p, t, memory, [&](const output_column &o) {
    const found_outputs<E, I, VB> outputs(p, t, o);
    const uint32_t on = in_register((uint32_t)o.rows * p.pitch * 4);
    uint32_t from = R::below(R::room_at(p, memory, o.first), (uint32_t)o.row * p.pitch);
    uint32_t row_at = o.row_at;
    bool odd = false;
    const auto compare_row = [&](uint32_t apart) {
      int32_t greatest[VB];
      uint32_t distance[VB];
      find_greatest_keys<KW, VB>(from, o.count, apart, greatest, distance);
      found_cell<E> found[VB];
#pragma unroll
      for (int v = 0; v < VB; v++) {
        odd = odd || is_odd_key<E>(greatest[v]);
        found[v] = cell_of_key<E>(p, greatest[v], distance[v] * p.w.step.by);
      }
      outputs.write(row_at, found);
      row_at += (uint32_t)o.rows * (uint32_t)sizeof(output_row);
      from += on;
    };
    if (KW > 0 && VB == 1 && p.inner == 1)
      for (int32_t row = o.row; row < t.rows; row += o.rows) compare_row(1);
    else
      for (int32_t row = o.row; row < t.rows; row += o.rows) compare_row(step);
    if (!odd) return;
    for (int v = 0; v < VB; v++) {
      output_column one = o;
      one.first += (uint32_t)v;
      one.channel += (uint32_t)v;
      mend_odd_outputs<E, I>(p, t, memory, one, KW > 0 ? KW : o.count);
    }
  });
}

template <typename E, typename I, int KW, int VB>
static __device__ __forceinline__ void compare_columns(const column_plan &p, const column_tile &t,
                                                       uint32_t memory) {
  typedef max_columns<E> R;
  const bool planar = KW > 0 && VB == 1 && p.inner == 1;
  const uint32_t step = planar ? 1 : in_register(p.w.step.by * (uint32_t)p.inner);
  for_outputs<VB>(p, t, memory, [&](const output_column &o) {
    const found_outputs<E, I, VB> outputs(p, t, o);
    const uint32_t on = in_register((uint32_t)o.rows * p.pitch);
    found_room from = R::below(R::room_at(p, memory, o.first), (uint32_t)o.row * p.pitch);
    uint32_t row_at = o.row_at;
    const auto compare_row = [&](uint32_t apart, uint32_t cells_apart) {
      found_cell<E> found[VB];
      find_greatest<E, KW, VB>(from, o.count, apart, cells_apart, (uint32_t)p.w.windows.in, found);
      outputs.write(row_at, found);
      row_at += (uint32_t)o.rows * (uint32_t)sizeof(output_row);
      from = R::below(from, on);
    };
    if (planar)
      for (int32_t row = o.row; row < t.rows; row += o.rows) compare_row(1, 1);
    else
      for (int32_t row = o.row; row < t.rows; row += o.rows) compare_row(step, p.w.step.by);
  });
}

/* How the columns of a type are reduced. */
template <typename E>
struct columns_of_type {
  typedef max_keys<E> reducer;
};
template <>
struct columns_of_type<float> {
  typedef max_columns<float> reducer;
};

template <typename E, typename I, int KW, int VB>
static __device__ __forceinline__ void compare(const column_plan &p, const column_tile &t,
                                               uint32_t memory) {
  if constexpr (sizeof(E) == 2)
    compare_keys<E, I, KW, VB>(p, t, memory);
  else
    compare_columns<E, I, KW, VB>(p, t, memory);
}

/* K: windows of K columns, and of K rows that are S apart; 0: any. */
template <typename E, int V, int K, int S, int VB>
static __global__ void __launch_bounds__(MOST_COLUMN_THREADS, COLUMN_BLOCKS_PER_SM)
    max_forward_columns(const __grid_constant__ column_plan p) {
  typedef typename columns_of_type<E>::reducer R;
  extern __shared__ __align__(16) char pg_column_memory[];
  const column_tables tables = column_tables_of(p, pg_column_memory);
  const column_tile t = column_tile_of<V, (K > 0)>(p, blockIdx.x);
  fill_tables<(K > 0)>(p, t, tables);
  __syncthreads();
  reduce_columns<R, V, K, S>(p, t, tables, shared_address(pg_column_memory));
  __syncthreads();
  if (p.index_bytes == 8)
    compare<E, int64_t, K, VB>(p, t, shared_address(pg_column_memory));
  else if (p.index_bytes == 4)
    compare<E, int32_t, K, VB>(p, t, shared_address(pg_column_memory));
  else
    compare<E, char, K, VB>(p, t, shared_address(pg_column_memory));
}

/* --- On the host --- */

static bool fits(const pg_problem *problem, pg_tiling *tiling) {
  const pg_max_forward &a = problem->args.max_forward;
  const pg_pooling &p = problem->facts.pool, grid = pg_output_grid(&p);
  *tiling = pg_tile_flat(&grid, 4096);
  if (!has_forward_sizes(*problem, a.in_strides, a.out_strides)) return false;
  if (problem->dtype != ACL_FLOAT && p.d.in * p.h.in >= KEY_ROWS) return false;
  return a.index_bytes == 0 || has_small_units(a.index_strides, p.d.out, p.h.out, p.w.out);
}

template <typename E>
static column_plan plan_of(const pg_problem &problem, int64_t v, bool walks, int64_t vb) {
  const pg_facts &f = problem.facts;
  const pg_max_forward &a = problem.args.max_forward;
  column_plan p = {};
  p.in = a.in;
  p.out = a.out;
  p.index = a.index;
  p.index_bytes = a.index_bytes;
  p.in_strides = forward_strides_of(a.in_strides);
  p.out_strides = forward_strides_of(a.out_strides);
  bool equal = has_equal_units(f, a.in_strides, &p.in_strides);
  equal = has_equal_units(f, a.out_strides, &p.out_strides) && equal;
  if (a.index_bytes != 0) {
    p.index_strides = forward_strides_of(a.index_strides);
    equal = has_equal_units(f, a.index_strides, &p.index_strides) && equal;
  }
  plan_columns(f, {sizeof(E), columns_of_type<E>::reducer::BYTES, v, walks, vb}, equal, &p);
  return p;
}

template <typename E, int V, int K, int S, int VB>
static cudaError_t launch_columns(const pg_cuda_call *call) {
  column_plan p = plan_of<E>(call->task->problem, V, K > 0, VB);
  const int64_t threads = column_threads(p);
  deal_out(&p, threads);
  return launch(call, max_forward_columns<E, V, K, S, VB>, column_blocks(p), (int)threads,
                column_room(p, columns_of_type<E>::reducer::BYTES), p);
}

template <typename E, int V, int VB>
static cudaError_t run_vectors(const pg_cuda_call *call) {
  const pg_pooling &p = call->task->problem.facts.pool;
  if (has_walks(p, 2, 2)) return launch_columns<E, V, 2, 2, VB>(call);
  if (has_walks(p, 3, 2)) return launch_columns<E, V, 3, 2, VB>(call);
  if (has_walks(p, 3, 1)) return launch_columns<E, V, 3, 1, VB>(call);
  if (has_walks(p, 5, 2)) return launch_columns<E, V, 5, 2, VB>(call);
  return launch_columns<E, V, 0, 0, VB>(call);
}

template <typename E>
static cudaError_t run_as(const pg_cuda_call *call) {
  const pg_problem &problem = call->task->problem;
  const pg_max_forward &a = problem.args.max_forward;
  const int64_t v = column_vector_cells(problem.facts, a.in, a.in_strides, sizeof(E));
  const bool four = writes_channels(problem.facts, a.out, a.out_strides, sizeof(E), 4) &&
                    (a.index_bytes == 0 ||
                     writes_channels(problem.facts, a.index, a.index_strides, a.index_bytes, 4));
  if (v == 16 / sizeof(E) && four) return run_vectors<E, 16 / sizeof(E), 4>(call);
  if (v == 16 / sizeof(E)) return run_vectors<E, 16 / sizeof(E), 1>(call);
  if (v == 2) return run_vectors<E, 2, 1>(call);
  return run_vectors<E, 1, 1>(call);
}

static cudaError_t run(const pg_cuda_call *call) {
  return with_fp32_type(call, [call](auto e) { return run_as<decltype(e)>(call); });
}

PG_CUDA_METHOD(max_forward_columns) = {"columns", fits, nullptr, run, nullptr};
