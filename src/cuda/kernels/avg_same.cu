/* SPDX-License-Identifier: Apache-2.0 */
/* Averages with windows of one cell that follow each other: every cell is the quotient of its own
 * output.  Where both tensors have their elements in the same order and without gaps, this is one
 * pass over two runs of memory, whatever the layout, in groups of 16 bytes. */
#include "cuda/kernels/avg_job.cuh"
#include "cuda/kernels/quotient.cuh"

enum { THREADS = 256, ROUNDS = 4 /* groups that a thread loads before it stores the first */ };

struct avg_same_job {
  const void *grad;
  void *in;
  int64_t count; /* of elements */
  pg_divisor divisor;
  bool exact;    /* all quotients need true divisions */
  bool together; /* both tensors begin at the same distance from a multiple of 16 bytes */
};

template <typename E>
static __device__ __forceinline__ void divide_group(const avg_same_job &j, const uint4 &words,
                                                    E *to) {
  enum { GROUP = 16 / sizeof(E) };
  E of[GROUP];
  memcpy(of, &words, 16);
  pg_seen<E> seen;
  float quotients[GROUP];
#pragma unroll
  for (int i = 0; i < GROUP; i++) {
    seen.note(widened(of[i]));
    quotients[i] = quotient(widened(of[i]), j.divisor);
  }
  if (j.exact || seen.odd()) {
#pragma unroll
    for (int i = 0; i < GROUP; i++) quotients[i] = true_quotient(widened(of[i]), j.divisor);
  }
  put_16(to, quotients);
}

/* Groups of gradInput are aligned: the first one may begin `lead` elements before it. */
template <typename E>
static __global__ void __launch_bounds__(THREADS) avg_same(const __grid_constant__ avg_same_job j) {
  enum { GROUP = 16 / sizeof(E), OF_BLOCK = THREADS * ROUNDS * GROUP };
  const E *grad = (const E *)j.grad;
  E *in = (E *)j.in;
  const int64_t lead = (int64_t)((uintptr_t)in % 16 / sizeof(E));
  const int64_t begin = (int64_t)blockIdx.x * OF_BLOCK - lead;
  const int64_t first = begin + (int64_t)threadIdx.x * GROUP;
  if (j.together && begin >= 0 && begin + OF_BLOCK <= j.count) {
    uint4 words[ROUNDS];
#pragma unroll
    for (int i = 0; i < ROUNDS; i++)
      words[i] = __ldg((const uint4 *)(grad + first + i * THREADS * GROUP));
#pragma unroll
    for (int i = 0; i < ROUNDS; i++) divide_group(j, words[i], in + first + i * THREADS * GROUP);
    return;
  }
#pragma unroll 1
  for (int i = 0; i < ROUNDS; i++) {
    const int64_t from = first + i * THREADS * GROUP;
#pragma unroll 1
    for (int64_t k = max(from, (int64_t)0); k < min(from + GROUP, j.count); k++)
      put(in + k, true_quotient(widened(grad[k]), j.divisor));
  }
}

/* --- On the host --- */

static bool is_same(const pg_axis &a) {
  return a.kernel == 1 && a.stride == 1 && a.pad == 0 && a.out == a.in;
}

/* Do elements follow each other without a gap, in planes or with channels as neighbours? */
static bool has_order(const pg_strides &s, const pg_pooling &p, bool channels_last) {
  const int planar[] = {PG_W, PG_H, PG_D, PG_C, PG_N}, last[] = {PG_C, PG_W, PG_H, PG_D, PG_N};
  const int64_t lengths[PG_AXES] = {p.n, p.c, p.d.in, p.h.in, p.w.in};
  int64_t stride = 1;
  for (int i = 0; i < PG_AXES; i++) {
    const int axis = channels_last ? last[i] : planar[i];
    if (lengths[axis] > 1 && s.of[axis] != stride) return false;
    stride *= lengths[axis];
  }
  return true;
}

static bool fits(const pg_problem *problem, pg_tiling *tiling) {
  const pg_facts &f = problem->facts;
  const pg_avg_backward &a = problem->args.avg_backward;
  const pg_pooling &p = f.pool;
  if (problem->dtype == ACL_DOUBLE || f.largest_divisor == INT64_MAX) return false;
  if (f.cells == 0 || f.planes == 0) return false;
  if (!is_same(p.d) || !is_same(p.h) || !is_same(p.w)) return false;
  *tiling = tile_avg_planes(f);
  return (has_order(a.in_strides, p, false) && has_order(a.out_strides, p, false)) ||
         (has_order(a.in_strides, p, true) && has_order(a.out_strides, p, true));
}

template <typename E>
static cudaError_t run_as(const pg_cuda_call *call) {
  const pg_problem &problem = call->task->problem;
  const pg_avg_backward &a = problem.args.avg_backward;
  const int64_t group = 16 / sizeof(E), of_block = group * THREADS * ROUNDS;
  avg_same_job j = {};
  j.grad = a.grad_out;
  j.in = a.grad_in;
  j.count = problem.facts.planes * problem.facts.cells;
  j.divisor = divisor_of(a.divisor != 0 ? (float)a.divisor : 1.0f);
  j.exact = a.divisor < 0 || a.divisor > MOST_DIVISOR;
  j.together = (uintptr_t)j.grad % 16 == (uintptr_t)j.in % 16;
  return launch(call, avg_same<E>, pg_ceil_div(j.count + group - 1, of_block), THREADS, 0, j);
}

static cudaError_t run(const pg_cuda_call *call) {
  return with_fp32_type(call, [call](auto e) { return run_as<decltype(e)>(call); });
}

PG_CUDA_METHOD(avg_same) = {"same", fits, nullptr, run, nullptr};
