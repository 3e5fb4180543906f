/* SPDX-License-Identifier: Apache-2.0 */
/* SCATTER and RESCATTER of planes whose cells do not lie among other planes'.
 *
 * A block makes one item, a run of flat positions, in shared memory: sums in fp32.  Each warp has a
 * part of the run to itself: it clears it, looks at the outputs whose windows touch it, adds those
 * that name its cells, and writes it out.  Warps wait for each other only where planes are whole:
 * if an index there points out of its window and its warp's part, the block begins anew and all
 * warps look at every output.  Where whole planes have few outputs, a warp looks at all of a
 * plane's instead, and parts are shared for clearing and writing alone. */
#include "cuda/item.cuh"

/* Few warps: what a warp has to know before it begins is not little. */
enum { MOST_WARPS = 4, FEW_WARPS = 2, THREADS = 32 * MOST_WARPS, BLOCKS_OF_PROCESSOR = 6 };

extern __shared__ float4 pg_scatter_room[];

template <bool PLAIN, typename E, typename I>
static __global__ void __launch_bounds__(THREADS, BLOCKS_OF_PROCESSOR)
    scatter(const __grid_constant__ scatter_job j, const __grid_constant__ scan_plan s) {
  __shared__ found_bad found[MOST_WARPS];
  make_item<PLAIN, E, I>(j, s, blockIdx.x, (float *)pg_scatter_room, found + threadIdx.x / 32);
}

/* Most often no item has to be made again: a block looks at THREADS of them at a time. */
template <typename E, typename I>
static __global__ void __launch_bounds__(THREADS)
    rescatter(const __grid_constant__ scatter_job j, const __grid_constant__ scan_plan s) {
  __shared__ found_bad found[MOST_WARPS];
  for (int64_t first = (int64_t)blockIdx.x * THREADS; first < j.items;
       first += (int64_t)gridDim.x * THREADS) {
    const int64_t mine = first + threadIdx.x;
    const bool strayed = mine < j.items && j.stray[mine] != 0;
    if (!__syncthreads_or(strayed)) continue;
    for (int64_t i = first; i < first + THREADS && i < j.items; i++) {
      if (j.stray[i] == 0) continue;
      make_item<false, E, I>(j, s, (uint32_t)i, (float *)pg_scatter_room, found + threadIdx.x / 32);
      __syncthreads(); /* parts of the next item lie elsewhere */
    }
  }
}

/* --- On the host --- */

template <typename E, typename I>
static cudaError_t launch_scatter(const pg_cuda_call *call) {
  enum { SMALL = 20 * 1024 };
  const scatter_job j = scatter_job_of(call, sizeof(E));
  if (!j.narrow) return pg_cuda_scatter_last(call);
  const scan_plan s = scan_plan_of(j);
  const pg_tiling &t = j.tiling;
  const int64_t bytes = (t.planes * t.d * t.h * t.w + 16) * (int64_t)sizeof(float);
  const bool plain = !j.deep && j.h.stride != 0 && j.w.stride != 0;
  const int threads = bytes <= SMALL ? 32 * FEW_WARPS : THREADS;
  if (!j.again)
    return launch(call, plain ? scatter<true, E, I> : scatter<false, E, I>, j.items, threads, bytes,
                  j, s);
  const int64_t most = (int64_t)BLOCKS_OF_PROCESSOR * call->limits.processors;
  const int64_t blocks = (j.items - 1) / THREADS + 1;
  return launch(call, rescatter<E, I>, least(blocks, most), THREADS, bytes, j, s);
}

/* Adaptive windows of one length that tile an axis are a kernel's. */
static pg_axis sliding(pg_axis a) {
  if (a.kernel != 0 || a.out < 1 || a.in % a.out != 0) return a;
  a.kernel = a.stride = a.in / a.out;
  a.pad = 0;
  a.dilation = 1;
  return a;
}

static bool try_sliding(const pg_cuda_call *call, cudaError_t *status) {
  pg_task task = *call->task;
  pg_pooling &p = task.problem.args.max_backward.pool;
  p.h = sliding(p.h);
  p.w = sliding(p.w);
  pg_cuda_call same = *call;
  same.task = &task;
  return pg_cuda_try_gather(&same, status);
}

cudaError_t pg_cuda_scatter(const pg_cuda_call *call) {
  cudaError_t status = cudaSuccess;
  if (try_sliding(call, &status) || pg_cuda_try_scatter_few(call, &status) ||
      pg_cuda_try_gather_dense(call, &status))
    return status;
  return with_scatter_types(call->task, [call](auto e, auto i) {
    return launch_scatter<decltype(e), decltype(i)>(call);
  });
}
