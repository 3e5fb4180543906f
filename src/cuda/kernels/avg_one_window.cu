/* SPDX-License-Identifier: Apache-2.0 */
/* Averages with one window that holds the whole plane (global average pooling): every cell of a
 * plane is the plane's only output, divided by the number of cells.
 *
 * This is a fill with a value for each plane, and as fast as one.  Planes without gaps between them
 * are written as one long run, and a block writes BLOCK_BYTES of it, however many planes that is:
 * small planes do not cost a block each.  Other planes are filled one by one.  A few large planes
 * with gaps would occupy few blocks, so problems with few planes are left to the other methods.
 * Where channels are neighbours, an image is a pattern of one value per channel, repeated for each
 * cell. */
#include <string.h>

#include "cuda/kernels/avg_job.cuh"

enum {
  THREADS = 256,
  ROUNDS = 4, /* groups that a thread writes after the divisions of its block */
  BLOCK_BYTES = THREADS * ROUNDS * 16, /* bytes that a block writes */
  LEAST_PLANES = 64,                   /* with fewer, blocks might be too few */
  GROUPS_BY_CHANNEL = 8,               /* that a thread writes where channels are neighbours */
};

/* grad_in[n, c, i] = grad_out[n, c] / divisor for the `cells` cells of a plane. */
struct one_window_job {
  const void *grad_out;
  void *grad_in;
  int64_t c, out_n, out_c, in_n, in_c; /* channels; strides in elements */
  int64_t cells, divisor;
  int64_t planes;
  pg_divider by_cells, by_c;
  int64_t lanes; /* of an image whose channels are neighbours */
};

/* The gradient of all cells of a plane. */
template <typename E>
static __device__ __forceinline__ auto quotient_of(const one_window_job &j, int64_t n, int64_t c) {
  typedef typename sum_of<E>::type S;
  const S grad = widened(((const E *)j.grad_out)[n * j.out_n + c * j.out_c]);
  return (S)0 + grad / (S)j.divisor; /* a sum starts at +0, so that -0 becomes +0 */
}

template <typename E>
static __device__ __forceinline__ auto plane_quotient(const one_window_job &j, int64_t plane) {
  int64_t n;
  if (plane < INT32_MAX && j.c < INT32_MAX)
    n = over((uint32_t)plane, j.by_c);
  else
    n = plane / j.c;
  return quotient_of<E>(j, n, plane - n * j.c);
}

/* A group whose cells are all the same. */
template <typename E>
static __device__ __forceinline__ uint4 repeated(E e) {
  E of[16 / sizeof(E)];
#pragma unroll
  for (int i = 0; i < 16 / (int)sizeof(E); i++) of[i] = e;
  uint4 words;
  memcpy(&words, of, 16);
  return words;
}

/* The first `left` cells of one group and the others of another. */
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

/* Contiguous planes of at least 16 bytes, so that a group has cells of two planes at most.  A block
 * first divides for all planes that it touches.  Groups are aligned: the first one may begin
 * `lead` cells before gradInput.  Cells are counted from the first plane that the block touches. */
template <typename E>
static __global__ void __launch_bounds__(THREADS)
    avg_one_window(const __grid_constant__ one_window_job j) {
  enum { GROUP = 16 / sizeof(E), MOST_PLANES = BLOCK_BYTES / 16 + 2 };
  __shared__ E quotient[MOST_PLANES];
  const int32_t cells = (int32_t)j.cells;
  const int64_t total = j.planes * cells;
  E *const out = (E *)j.grad_in;
  const int32_t lead = (int32_t)((uintptr_t)out % 16 / sizeof(E));
  const int64_t begin = (int64_t)blockIdx.x * (BLOCK_BYTES / (int)sizeof(E)) - lead;
  const int64_t plane = max(begin, (int64_t)0) / cells;  /* the only 64-bit division */
  const int32_t base = (int32_t)(begin - plane * cells); /* negative only before the first plane */
  const int32_t last_plane =
      (int32_t)over((uint32_t)(BLOCK_BYTES / (int)sizeof(E) + max(base, 0)), j.by_cells);
  for (int32_t i = threadIdx.x; i <= last_plane && plane + i < j.planes; i += THREADS)
    put(&quotient[i], plane_quotient<E>(j, plane + i));
  __syncthreads();
  const int32_t end = (int32_t)min(total - plane * cells, (int64_t)INT32_MAX);
  E *const to = out + plane * cells;
#pragma unroll
  for (int i = 0; i < ROUNDS; i++) {
    const int32_t first = base + (i * THREADS + (int32_t)threadIdx.x) * GROUP;
    if (first >= 0 && first + GROUP <= end) {
      const int32_t at = (int32_t)over((uint32_t)first, j.by_cells);
      const int32_t left = (at + 1) * cells - first;
      uint4 words = repeated(quotient[at]);
      if (left < GROUP) words = joined<E>(words, repeated(quotient[at + 1]), left);
      put_words(to + first, words);
    } else {
      for (int32_t k = max(first, 0); k < min(first + GROUP, end); k++)
        to[k] = quotient[over((uint32_t)k, j.by_cells)];
    }
  }
}

/* Any planes: a block fills one after the other, in aligned groups and cell by cell at its ends. */
template <typename E>
static __global__ void __launch_bounds__(THREADS)
    avg_one_window_by_plane(const __grid_constant__ one_window_job j) {
  enum { GROUP = 16 / sizeof(E) };
  for (int64_t plane = blockIdx.x; plane < j.planes; plane += gridDim.x) {
    E *const out = (E *)j.grad_in + plane / j.c * j.in_n + plane % j.c * j.in_c;
    const int64_t lead = (int64_t)((uintptr_t)out % 16 / sizeof(E));
    const auto quotient = plane_quotient<E>(j, plane);
    typename sum_of<E>::type group[GROUP];
#pragma unroll
    for (int k = 0; k < GROUP; k++) group[k] = quotient;
    for (int64_t first = (int64_t)threadIdx.x * GROUP - lead; first < j.cells;
         first += THREADS * GROUP) {
      if (first >= 0 && first + GROUP <= j.cells) {
        put_vector<GROUP>(out + first, group);
        continue;
      }
      for (int k = 0; k < GROUP; k++)
        if (first + k >= 0 && first + k < j.cells) put(out + first + k, quotient);
    }
  }
}

/* Images whose channels are neighbours, without gaps.  Groups are aligned, and every C-th of them
 * has the same cells; so a thread takes groups that are a multiple of C apart, and divides once. */
template <typename E>
static __global__ void __launch_bounds__(THREADS)
    avg_one_window_by_channel(const __grid_constant__ one_window_job j) {
  enum { GROUP = 16 / sizeof(E) };
  const int64_t thread = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  const int64_t n = thread / j.lanes, nth = thread - n * j.lanes, total = j.cells * j.c;
  if (n * j.c >= j.planes) return;
  E *const out = (E *)j.grad_in + n * j.in_n;
  const int64_t begin = nth * GROUP - (int64_t)((uintptr_t)out % 16 / sizeof(E));
  if (begin >= total) return;
  typename sum_of<E>::type group[GROUP];
  int64_t c = (begin + j.c * GROUP) % j.c; /* begin may be negative, by less than GROUP */
#pragma unroll
  for (int i = 0; i < GROUP; i++) {
    group[i] = quotient_of<E>(j, n, c);
    c = c + 1 == j.c ? 0 : c + 1;
  }
  for (int64_t first = begin; first < total; first += j.lanes * GROUP) {
    if (first >= 0 && first + GROUP <= total) {
      put_vector<GROUP>(out + first, group);
      continue;
    }
#pragma unroll
    for (int i = 0; i < GROUP; i++)
      if (first + i >= 0 && first + i < total) put(out + first + i, group[i]);
  }
}

/* --- On the host --- */

/* Do the channels of a cell follow each other, and cells behind them, without a gap? */
static bool has_dense_channels(const pg_problem &problem) {
  const pg_pooling &p = problem.facts.pool;
  const int64_t *s = problem.args.avg_backward.in_strides.of;
  const int64_t length[] = {p.w.in, p.h.in, p.d.in}, axis[] = {PG_W, PG_H, PG_D};
  int64_t next = p.c;
  if (p.c == 1 || s[PG_C] != 1 || s[PG_N] < 0) return false;
  for (int i = 0; i < 3; i++) {
    if (length[i] > 1 && s[axis[i]] != next) return false;
    next *= length[i];
  }
  return next < (int64_t)1 << 40; /* so that nothing overflows */
}

static bool fits(const pg_problem *problem, pg_tiling *tiling) {
  const pg_facts &f = problem->facts;
  if (!pg_is_one_window(&f.pool.d) || !pg_is_one_window(&f.pool.h) || !pg_is_one_window(&f.pool.w))
    return false;
  *tiling = tile_avg_planes(f);
  return has_dense_channels(*problem) || (f.in.planes && f.planes >= LEAST_PLANES);
}

static one_window_job one_window_job_of(const pg_problem &problem) {
  const pg_avg_backward &a = problem.args.avg_backward;
  const pg_pooling &p = problem.facts.pool;
  const bool pad = a.count_include_pad;
  one_window_job j = {};
  j.grad_out = a.grad_out;
  j.grad_in = a.grad_in;
  j.c = p.c;
  j.out_n = a.out_strides.of[PG_N];
  j.out_c = a.out_strides.of[PG_C];
  j.in_n = a.in_strides.of[PG_N];
  j.in_c = a.in_strides.of[PG_C];
  j.cells = problem.facts.cells;
  j.divisor = a.divisor != 0 ? a.divisor
                             : pg_window_extent(&p.d, 0, pad) * pg_window_extent(&p.h, 0, pad) *
                                   pg_window_extent(&p.w, 0, pad);
  j.planes = problem.facts.planes;
  j.by_cells = divider_of(j.cells < INT32_MAX ? j.cells : 1);
  j.by_c = divider_of(j.c < INT32_MAX ? j.c : 1);
  return j;
}

template <typename E>
static cudaError_t run_by_channel(const pg_cuda_call *call, one_window_job j) {
  const int64_t groups = j.cells * j.c * (int64_t)sizeof(E) / 16 + 2;
  j.lanes = j.c * pg_ceil_div(pg_ceil_div(groups, GROUPS_BY_CHANNEL), j.c);
  return launch(call, avg_one_window_by_channel<E>, pg_ceil_div(j.planes / j.c * j.lanes, THREADS),
                THREADS, 0, j);
}

template <typename E>
static cudaError_t run_as(const pg_cuda_call *call) {
  const one_window_job j = one_window_job_of(call->task->problem);
  if (j.planes <= 0 || j.cells <= 0) return cudaSuccess;
  if (has_dense_channels(call->task->problem)) return run_by_channel<E>(call, j);
  const int64_t group = 16 / sizeof(E), of_block = BLOCK_BYTES / sizeof(E);
  const bool contiguous = j.in_c == j.cells && (j.in_n == j.c * j.cells || j.planes <= j.c);
  if (contiguous && j.cells >= group && j.cells < INT32_MAX / 2)
    return launch(call, avg_one_window<E>, pg_ceil_div(j.planes * j.cells + group - 1, of_block),
                  THREADS, 0, j);
  return launch(call, avg_one_window_by_plane<E>, least(j.planes, INT32_MAX), THREADS, 0, j);
}

static cudaError_t run(const pg_cuda_call *call) {
  return with_float_type(call, [call](auto e) { return run_as<decltype(e)>(call); });
}

PG_CUDA_METHOD(avg_one_window) = {"one_window", fits, nullptr, run, nullptr};
