/* SPDX-License-Identifier: Apache-2.0 */
/* Maxima of any problem.  It is the last method of the list and computes what the others leave:
 * integers, doubles, and planes too large for 32-bit positions.
 *
 * A thread computes one output at a time and looks at the cells of its window one by one.
 * Neighbouring threads have outputs that are neighbours in memory: along C where channels are
 * neighbours, otherwise along W. */
#include "cuda/kernels/forward_job.cuh"

enum { THREADS = 256 };

template <typename E>
static __global__ void __launch_bounds__(THREADS)
    max_forward_any(const __grid_constant__ pg_max_forward a,
                    const __grid_constant__ forward_job j) {
  for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < j.outputs;
       i += (int64_t)gridDim.x * THREADS) {
    const forward_output o = output_at(j, i);
    const pg_taps d = pg_window_taps(&j.pool.d, o.d), h = pg_window_taps(&j.pool.h, o.h),
                  w = pg_window_taps(&j.pool.w, o.w);
    const E *plane = (const E *)a.in + offset(a.in_strides, o.n, o.c, 0, 0, 0);
    E greatest = {};
    int64_t position = -1;
    for (int64_t id = d.first, di = 0; di < d.count; di++, id += d.step)
      for (int64_t ih = h.first, hi = 0; hi < h.count; hi++, ih += h.step)
        for (int64_t iw = w.first, wi = 0; wi < w.count; wi++, iw += w.step) {
          const E x = plane[id * a.in_strides.of[PG_D] + ih * a.in_strides.of[PG_H] +
                            iw * a.in_strides.of[PG_W]];
          if (position >= 0 && !replaces(compared(x), compared(greatest))) continue;
          greatest = x;
          position = (id * j.pool.h.in + ih) * j.pool.w.in + iw;
        }
    ((E *)a.out)[offset(a.out_strides, o.n, o.c, o.d, o.h, o.w)] = greatest;
    if (a.index_bytes == 8)
      ((int64_t *)a.index)[offset(a.index_strides, o.n, o.c, o.d, o.h, o.w)] = position;
    else if (a.index_bytes == 4)
      ((int32_t *)a.index)[offset(a.index_strides, o.n, o.c, o.d, o.h, o.w)] = (int32_t)position;
  }
}

/* --- On the host --- */

static cudaError_t run(const pg_cuda_call *call) {
  const forward_job j = forward_job_of(call);
  return with_number_type(call, [&](auto e) {
    return launch(call, max_forward_any<decltype(e)>, forward_blocks(j, THREADS), THREADS, 0,
                  call->task->problem.args.max_forward, j);
  });
}

PG_CUDA_METHOD(max_forward_any) = {"any", fits_any_forward, nullptr, run, nullptr};
