/* SPDX-License-Identifier: Apache-2.0 */
/* Maps over rows whose elements follow each other in memory: copies, casts, fills, arithmetic, each
 * tensor with its type; also rows of one element that all positions share.
 *
 * They take as long as memory takes, so a thread loads and stores 16 bytes at once: four elements,
 * or eight where all types have two bytes or less.  Such a vector is a position of a grid with
 * shorter rows.  FLOAT has two of them in each thread, to have enough on its way.  What is left
 * behind the last vector of a single row goes element by element; several rows must be whole
 * vectors.  Without aligned addresses `any` computes the problem. */
#include "cuda/kernels/map.cuh"

enum { THREADS = 256 };

/* V elements from an address that allows it. */
template <int V, typename E>
static __device__ __forceinline__ void load_words(E (&to)[V], const E *from) {
  constexpr int BYTES = V * (int)sizeof(E);
  if constexpr (BYTES >= 16) {
    uint4 words[BYTES / 16];
#pragma unroll
    for (int i = 0; i < BYTES / 16; i++) words[i] = ((const uint4 *)from)[i];
    memcpy(to, words, BYTES);
  } else if constexpr (BYTES == 8) {
    const uint2 words = *(const uint2 *)from;
    memcpy(to, &words, BYTES);
  } else {
    const uint32_t word = *(const uint32_t *)from;
    memcpy(to, &word, BYTES);
  }
}

template <int V, typename E>
static __device__ __forceinline__ void store_words(E *to, const E (&from)[V]) {
  constexpr int BYTES = V * (int)sizeof(E);
  if constexpr (BYTES >= 16) {
    uint4 words[BYTES / 16];
    memcpy(words, from, BYTES);
#pragma unroll
    for (int i = 0; i < BYTES / 16; i++) ((uint4 *)to)[i] = words[i];
  } else if constexpr (BYTES == 8) {
    uint2 words;
    memcpy(&words, from, BYTES);
    *(uint2 *)to = words;
  } else {
    uint32_t word;
    memcpy(&word, from, BYTES);
    *(uint32_t *)to = word;
  }
}

/* V elements from the first on.  E: the type of all tensors; void: they have types of their own. */
template <typename E, int V, typename T>
static __device__ __forceinline__ void load_vector(T (&to)[V], const pg_tensor_view &v,
                                                   int64_t first) {
  auto load = [&](auto *from) {
    auto e = [&] { return *from; };
    decltype(e()) of[V];
    load_words(of, from + first);
#pragma unroll
    for (int k = 0; k < V; k++) to[k] = converted<T>(number(of[k]));
  };
  if constexpr (!std::is_void<E>::value)
    load((E *)v.address);
  else
    with_elements(v.address, v.dtype, load);
}

/* The same, or one element for all positions. */
template <typename E, int V, typename T>
static __device__ __forceinline__ void load_input(T (&to)[V], const pg_tensor_view &v,
                                                  int64_t first, bool is_shared) {
  if (!is_shared) return load_vector<E>(to, v, first);
  const T x = load_one<T>(v.address, v.dtype, first);
#pragma unroll
  for (int k = 0; k < V; k++) to[k] = x;
}

template <typename E, int V, typename T>
static __device__ __forceinline__ void store_vector(const pg_tensor_view &v, int64_t first,
                                                    const T (&x)[V]) {
  auto store = [&](auto *to) {
    auto e = [&] { return *to; };
    decltype(e()) of[V];
#pragma unroll
    for (int k = 0; k < V; k++) set_element(&of[k], x[k]);
    store_words(to + first, of);
  };
  if constexpr (!std::is_void<E>::value)
    store((E *)v.address);
  else
    with_elements(v.address, v.dtype, store);
}

/* Element i of a single row. */
template <typename T>
static __device__ __forceinline__ void map_one(const map_job<T> &j, int64_t i) {
  T a[1] = {}, b[1] = {}, result[1];
  if (j.inputs > 0)
    a[0] = load_one<T>(j.in[0].address, j.in[0].dtype, j.in[0].strides[0] != 0 ? i : 0);
  if (j.inputs > 1)
    b[0] = load_one<T>(j.in[1].address, j.in[1].dtype, j.in[1].strides[0] != 0 ? i : 0);
  map_some(j, a, b, result);
  store_one(j.out.address, j.out.dtype, i, result[0]);
}

/* j.grid is that of the vectors; behind them are `rest` elements. */
template <typename T, typename E, int V, int PLACES>
static __global__ void __launch_bounds__(THREADS)
    map_vectors(const __grid_constant__ map_job<T> j, int rest) {
  const int64_t *const strides[3] = {j.out.strides, j.in[0].strides, j.in[1].strides};
  const int64_t vectors = j.grid.count, step = (int64_t)gridDim.x * (THREADS * PLACES);
  const bool is_shared[] = {j.in[0].strides[j.grid.rank - 1] == 0,
                            j.in[1].strides[j.grid.rank - 1] == 0};
  for (int64_t i = (int64_t)blockIdx.x * (THREADS * PLACES) + threadIdx.x; i < vectors; i += step) {
    T a[PLACES][V] = {}, b[PLACES][V] = {}, result[V];
    int64_t out[PLACES];
#pragma unroll
    for (int p = 0; p < PLACES; p++) {
      int64_t at[3];
      if (i + p * THREADS >= vectors) continue;
      offsets_at(j.grid, strides, i + p * THREADS, at);
      out[p] = at[0];
      if (j.inputs > 0) load_input<E>(a[p], j.in[0], at[1], is_shared[0]);
      if (j.inputs > 1) load_input<E>(b[p], j.in[1], at[2], is_shared[1]);
    }
#pragma unroll
    for (int p = 0; p < PLACES; p++) {
      if (i + p * THREADS >= vectors) continue;
      map_some(j, a[p], b[p], result);
      store_vector<E>(j.out, out[p], result);
    }
  }
  if (blockIdx.x == 0 && threadIdx.x < (unsigned)rest) map_one(j, vectors * V + threadIdx.x);
}

/* --- On the host --- */

/* Elements of a vector. */
static int vector_length(const pg_map &a) {
  bool is_short = element_bytes(a.out.dtype) <= 2;
  for (int i = 0; i < a.inputs; i++) is_short = is_short && element_bytes(a.in[i].dtype) <= 2;
  return is_short ? 8 : 4;
}

/* What the address of a vector must be a multiple of. */
static int64_t alignment(const pg_tensor_view &v, int length) {
  return least(16, (int64_t)length * element_bytes(v.dtype));
}

/* Do the rows of a tensor begin where a vector may, if the first one does? */
static bool has_aligned_rows(const pg_tensor_view &v, const pg_grid &grid, int length) {
  for (int axis = 0; axis < grid.rank - 1; axis++)
    if (v.strides[axis] * element_bytes(v.dtype) % alignment(v, length) != 0) return false;
  return true;
}

static bool fits(const pg_problem *problem, pg_tiling *tiling) {
  const pg_map &a = problem->args.map;
  const int last = a.grid.rank - 1, length = vector_length(a);
  if (last < 0 || is_long(a.function) || a.out.strides[last] != 1) return false;
  if (last > 0 && a.grid.sizes[last] % length != 0) return false;
  if (!has_aligned_rows(a.out, a.grid, length)) return false;
  for (int i = 0; i < a.inputs; i++) {
    const int64_t stride = a.in[i].strides[last];
    if (stride != 0 && (stride != 1 || !has_aligned_rows(a.in[i], a.grid, length))) return false;
  }
  *tiling = tile_items(a.grid.count);
  return true;
}

static bool is_aligned(const pg_map &a, int length) {
  bool aligned = (uintptr_t)a.out.address % alignment(a.out, length) == 0;
  for (int i = 0; i < a.inputs; i++)
    if (a.in[i].strides[a.grid.rank - 1] != 0)
      aligned = aligned && (uintptr_t)a.in[i].address % alignment(a.in[i], length) == 0;
  return aligned;
}

static bool is_one_type(const pg_map &a) {
  for (int i = 0; i < a.inputs; i++)
    if (a.in[i].dtype != a.out.dtype) return false;
  return true;
}

template <typename T, typename E, int V, int PLACES>
static cudaError_t launch_vectors(const pg_cuda_call *call, pg_map a) {
  const int last = a.grid.rank - 1, rest = (int)(a.grid.count % V);
  a.grid.sizes[last] /= V;
  a.grid.count /= V;
  a.out.strides[last] *= V;
  for (int i = 0; i < a.inputs; i++) a.in[i].strides[last] *= V;
  const int64_t blocks = blocks_for(a.grid.count, THREADS * PLACES);
  return launch(call, map_vectors<T, E, V, PLACES>, blocks < 1 ? 1 : blocks, THREADS, 0,
                map_job_of<T>(a), rest);
}

/* Elements of one type that follow each other on both sides. */
static cudaError_t copy(const pg_map &a, cudaStream_t stream) {
  if (a.in[0].address == a.out.address) return cudaSuccess;
  const size_t bytes = (size_t)(a.grid.count * element_bytes(a.out.dtype));
  return cudaMemcpyAsync(a.out.address, a.in[0].address, bytes, cudaMemcpyDefault, stream);
}

extern "C" const pg_cuda_method pg_cuda_map_any;

static cudaError_t run(const pg_cuda_call *call) {
  const pg_map a = as_bits(call->task->problem.args.map);
  const int length = vector_length(a);
  if (is_move(a) && a.grid.rank == 1 && a.in[0].strides[0] == 1) return copy(a, call->stream);
  if (!is_aligned(a, length)) return pg_cuda_map_any.run(call);
  if (a.class_of == PG_CLASS_FLOAT && is_one_type(a)) {
    if (a.out.dtype == ACL_FLOAT) return launch_vectors<float, float, 4, 2>(call, a);
    if (a.out.dtype == ACL_FLOAT16) return launch_vectors<float, pg_f16, 8, 1>(call, a);
    if (a.out.dtype == ACL_BF16) return launch_vectors<float, pg_bf16, 8, 1>(call, a);
  }
  return with_class(a.class_of, [&](auto t) {
    typedef decltype(t) T;
    return length == 4 ? launch_vectors<T, void, 4, 1>(call, a)
                       : launch_vectors<T, void, 8, 1>(call, a);
  });
}

PG_CUDA_METHOD(map_vectors) = {"vectors", fits, nullptr, run, nullptr};
