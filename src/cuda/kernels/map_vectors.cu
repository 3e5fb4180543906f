/* SPDX-License-Identifier: Apache-2.0 */
/* Maps over elements that follow each other in memory, each with its type: copies, casts, fills,
 * arithmetic on whole tensors, also with one element that all positions share.
 *
 * They take as long as memory takes, so a thread loads and stores 16 bytes at once: four elements,
 * or eight where all types have two bytes or less.  It does so at two places, 256 such vectors
 * apart, to have enough on its way.  The last vector, if it is not a whole one, goes element by
 * element.  Without aligned addresses `any` computes the problem. */
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
                                                  int64_t first) {
  if (v.strides[0] != 0) return load_vector<E>(to, v, first);
  const T x = load_one<T>(v.address, v.dtype, 0);
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

/* What is left behind the last whole vector. */
template <typename T>
static __device__ __forceinline__ void map_one(const map_job<T> &j, int64_t i) {
  T a[1] = {}, b[1] = {}, result[1];
  if (j.inputs > 0) a[0] = load_one<T>(j.in[0].address, j.in[0].dtype, i * j.in[0].strides[0]);
  if (j.inputs > 1) b[0] = load_one<T>(j.in[1].address, j.in[1].dtype, i * j.in[1].strides[0]);
  map_some(j, a, b, result);
  store_one(j.out.address, j.out.dtype, i, result[0]);
}

template <typename T, typename E, int V, int PLACES>
static __global__ void __launch_bounds__(THREADS)
    map_vectors(const __grid_constant__ map_job<T> j) {
  const int64_t vectors = j.grid.count / V, step = (int64_t)gridDim.x * (THREADS * PLACES);
  for (int64_t i = (int64_t)blockIdx.x * (THREADS * PLACES) + threadIdx.x; i < vectors; i += step) {
    T a[PLACES][V] = {}, b[PLACES][V] = {}, result[V];
#pragma unroll
    for (int p = 0; p < PLACES; p++) {
      const int64_t at = i + p * THREADS;
      if (at < vectors && j.inputs > 0) load_input<E>(a[p], j.in[0], at * V);
      if (at < vectors && j.inputs > 1) load_input<E>(b[p], j.in[1], at * V);
    }
#pragma unroll
    for (int p = 0; p < PLACES; p++) {
      const int64_t at = i + p * THREADS;
      if (at >= vectors) continue;
      map_some(j, a[p], b[p], result);
      store_vector<E>(j.out, at * V, result);
    }
  }
  const int64_t rest = vectors * V + threadIdx.x;
  if (blockIdx.x == 0 && rest < j.grid.count) map_one(j, rest);
}

/* --- On the host --- */

static bool fits(const pg_problem *problem, pg_tiling *tiling) {
  const pg_map &a = problem->args.map;
  if (a.grid.rank != 1 || is_long(a.function) || a.out.strides[0] != 1) return false;
  for (int i = 0; i < a.inputs; i++)
    if (a.in[i].strides[0] != 0 && a.in[i].strides[0] != 1) return false;
  *tiling = tile_items(a.grid.count);
  return true;
}

/* Elements of a vector. */
static int vector_length(const pg_map &a) {
  bool is_short = element_bytes(a.out.dtype) <= 2;
  for (int i = 0; i < a.inputs; i++) is_short = is_short && element_bytes(a.in[i].dtype) <= 2;
  return is_short ? 8 : 4;
}

static bool is_aligned(const pg_tensor_view &v, int length) {
  const uintptr_t bytes = (uintptr_t)least(16, (int64_t)length * element_bytes(v.dtype));
  return v.strides[0] == 0 || (uintptr_t)v.address % bytes == 0;
}

static bool is_one_type(const pg_map &a) {
  for (int i = 0; i < a.inputs; i++)
    if (a.in[i].dtype != a.out.dtype) return false;
  return true;
}

template <typename T, typename E, int V, int PLACES>
static cudaError_t launch_vectors(const pg_cuda_call *call, const pg_map &a) {
  const int64_t blocks = blocks_for(a.grid.count, (int64_t)THREADS * PLACES * V);
  return launch(call, map_vectors<T, E, V, PLACES>, blocks, THREADS, 0, map_job_of<T>(a));
}

extern "C" const pg_cuda_method pg_cuda_map_any;

/* Elements of one type that follow each other on both sides. */
static cudaError_t copy(const pg_map &a, cudaStream_t stream) {
  if (a.in[0].address == a.out.address) return cudaSuccess;
  const size_t bytes = (size_t)(a.grid.count * element_bytes(a.out.dtype));
  return cudaMemcpyAsync(a.out.address, a.in[0].address, bytes, cudaMemcpyDefault, stream);
}

static cudaError_t run(const pg_cuda_call *call) {
  const pg_map a = as_bits(call->task->problem.args.map);
  if (is_move(a) && a.in[0].strides[0] == 1) return copy(a, call->stream);
  const int length = vector_length(a);
  bool aligned = is_aligned(a.out, length);
  for (int i = 0; i < a.inputs; i++) aligned = aligned && is_aligned(a.in[i], length);
  if (!aligned) return pg_cuda_map_any.run(call);
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
