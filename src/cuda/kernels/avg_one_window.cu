/* SPDX-License-Identifier: Apache-2.0 */
/* Averages whose window is the whole plane: each cell is the plane's only output divided by the
 * number of cells.  It is a fill, and as fast as one: the cells of many planes are written as one
 * run, 16 bytes at a time. */
#include <string.h>

#include "cuda/kernels/avg_job.cuh"

enum { THREADS = 256, ROUNDS = 4 /* groups of 16 bytes a thread writes */ };

/* grad_in[n, c, i] = grad_out[n, c] / divisor for the `cells` cells of a plane. */
struct repeat_args {
  const void *grad_out;
  void *grad_in;
  int64_t c, out_n, out_c, in_n, in_c; /* channels; strides in elements */
  int64_t cells, divisor;
};

static repeat_args repeat_args_of(const pg_problem &problem) {
  const pg_avg_backward &a = problem.args.avg_backward;
  const pg_pooling &p = problem.facts.pool;
  const bool pad = a.count_include_pad;
  repeat_args r = {};
  r.grad_out = a.grad_out;
  r.grad_in = a.grad_in;
  r.c = p.c;
  r.out_n = a.out_strides.of[PG_N];
  r.out_c = a.out_strides.of[PG_C];
  r.in_n = a.in_strides.of[PG_N];
  r.in_c = a.in_strides.of[PG_C];
  r.cells = problem.facts.cells;
  r.divisor = a.divisor != 0 ? a.divisor
                             : pg_window_extent(&p.d, 0, pad) * pg_window_extent(&p.h, 0, pad) *
                                   pg_window_extent(&p.w, 0, pad);
  return r;
}

struct repeat_job {
  repeat_args args;
  int64_t planes;
  pg_divider by_cells, by_c;
};

template <typename E>
static __device__ __forceinline__ auto quotient(const repeat_job &j, int64_t plane) {
  typedef typename sum_of<E>::type S;
  const repeat_args &a = j.args;
  int64_t n;
  if (plane < INT32_MAX && a.c < INT32_MAX)
    n = over((uint32_t)plane, j.by_c);
  else
    n = plane / a.c;
  const S grad = widened(((const E *)a.grad_out)[n * a.out_n + (plane - n * a.c) * a.out_c]);
  return (S)0 + grad / (S)a.divisor;
}

/* An element in every place of a word of 16 bytes. */
template <typename E>
static __device__ __forceinline__ uint4 everywhere(E e) {
  E of[16 / sizeof(E)];
#pragma unroll
  for (int i = 0; i < 16 / (int)sizeof(E); i++) of[i] = e;
  uint4 words;
  memcpy(&words, of, 16);
  return words;
}

/* The first `left` elements of one word, the others of another. */
template <typename E>
static __device__ __forceinline__ uint4 joined(uint4 one, uint4 other, int32_t left) {
  E a[16 / sizeof(E)], b[16 / sizeof(E)];
  memcpy(a, &one, 16);
  memcpy(b, &other, 16);
#pragma unroll
  for (int i = 0; i < 16 / (int)sizeof(E); i++)
    if (i >= left) a[i] = b[i];
  uint4 words;
  memcpy(&words, a, 16);
  return words;
}

/* Planes that follow each other are one run, of which a block writes CHUNK bytes.  It divides for
 * the planes it meets first; planes are at least 16 bytes long. */
enum { CHUNK = THREADS * ROUNDS * 16 };

template <typename E>
static __global__ void __launch_bounds__(THREADS) repeat(const __grid_constant__ repeat_job j) {
  enum { GROUP = 16 / sizeof(E), MOST = CHUNK / 16 + 2 };
  __shared__ E value[MOST];
  const int32_t cells = (int32_t)j.args.cells;
  const int64_t total = j.planes * cells;
  E *const out = (E *)j.args.grad_in;
  const int32_t lead = (int32_t)((uintptr_t)out % 16 / sizeof(E));
  const int64_t block = (int64_t)blockIdx.x * (CHUNK / (int)sizeof(E)) - lead;
  const int64_t plane = max(block, (int64_t)0) / cells;  /* the only 64-bit division */
  const int32_t base = (int32_t)(block - plane * cells); /* negative only before the first plane */
  const int32_t known =
      (int32_t)over((uint32_t)(CHUNK / (int)sizeof(E) + max(base, 0)), j.by_cells);
  for (int32_t i = threadIdx.x; i <= known && plane + i < j.planes; i += THREADS)
    put(&value[i], quotient<E>(j, plane + i));
  __syncthreads();
  const int32_t end = (int32_t)min(total - plane * cells, (int64_t)INT32_MAX);
  E *const to = out + plane * cells;
#pragma unroll
  for (int i = 0; i < ROUNDS; i++) {
    const int32_t first = base + (i * THREADS + (int32_t)threadIdx.x) * GROUP;
    if (first >= 0 && first + GROUP <= end) {
      const int32_t at = (int32_t)over((uint32_t)first, j.by_cells);
      const int32_t left = (at + 1) * cells - first;
      uint4 words = everywhere(value[at]);
      if (left < GROUP) words = joined<E>(words, everywhere(value[at + 1]), left);
      put_words(to + first, words);
    } else {
      for (int32_t k = max(first, 0); k < min(first + GROUP, end); k++)
        to[k] = value[over((uint32_t)k, j.by_cells)];
    }
  }
}

/* Planes apart from each other, one after the other; cell by cell at the ends. */
template <typename E>
static __global__ void __launch_bounds__(THREADS)
    repeat_apart(const __grid_constant__ repeat_job j) {
  enum { GROUP = 16 / sizeof(E) };
  const repeat_args &a = j.args;
  for (int64_t plane = blockIdx.x; plane < j.planes; plane += gridDim.x) {
    E *const out = (E *)a.grad_in + plane / a.c * a.in_n + plane % a.c * a.in_c;
    const int64_t lead = (int64_t)((uintptr_t)out % 16 / sizeof(E));
    const auto value = quotient<E>(j, plane);
    typename sum_of<E>::type sum[GROUP];
#pragma unroll
    for (int k = 0; k < GROUP; k++) sum[k] = value;
    for (int64_t first = (int64_t)threadIdx.x * GROUP - lead; first < a.cells;
         first += THREADS * GROUP) {
      if (first >= 0 && first + GROUP <= a.cells) {
        put_vector<GROUP>(out + first, sum);
        continue;
      }
      for (int k = 0; k < GROUP; k++)
        if (first + k >= 0 && first + k < a.cells) put(out + first + k, value);
    }
  }
}

template <typename E>
static cudaError_t run_as(const pg_cuda_call *call) {
  repeat_job j = {};
  j.args = repeat_args_of(call->task->problem);
  const repeat_args &a = j.args;
  j.planes = call->task->problem.facts.planes;
  if (j.planes <= 0 || a.cells <= 0) return cudaSuccess;
  j.by_cells = divider_of(a.cells < INT32_MAX ? a.cells : 1);
  j.by_c = divider_of(a.c < INT32_MAX ? a.c : 1);
  const int64_t group = 16 / sizeof(E), chunk = CHUNK / sizeof(E);
  const bool follow = a.in_c == a.cells && (a.in_n == a.c * a.cells || j.planes <= a.c);
  if (follow && a.cells >= group && a.cells < INT32_MAX / 2)
    return launch(call, repeat<E>, (j.planes * a.cells + group - 1 + chunk - 1) / chunk, THREADS, 0,
                  j);
  return launch(call, repeat_apart<E>, least(j.planes, INT32_MAX), THREADS, 0, j);
}

/* With few planes the blocks would be too few. */
static bool fits(const pg_problem *problem, pg_tiling *tiling) {
  enum { LEAST_PLANES = 64 };
  const pg_facts &f = problem->facts;
  *tiling = tile_avg_planes(f);
  return pg_is_one_window(&f.pool.d) && pg_is_one_window(&f.pool.h) &&
         pg_is_one_window(&f.pool.w) && f.in.planes && f.planes >= LEAST_PLANES;
}

static cudaError_t run(const pg_cuda_call *call) {
  return with_avg_type(call, [call](auto e) { return run_as<decltype(e)>(call); });
}

PG_CUDA_METHOD(avg_one_window) = {"one_window", fits, nullptr, run, nullptr};
