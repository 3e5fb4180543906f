/* SPDX-License-Identifier: Apache-2.0 */
/* Averages of windows, for any problem.  It is the last method of the list.
 *
 * A thread computes one output at a time: it adds the cells of its window column by column, in the
 * order that kernels/kernels.h states. */
#include "cuda/kernels/forward_job.cuh"

enum { THREADS = 256 };

/* The window of an output: its cells along each axis, in the plane that begins at `plane`. */
template <typename E>
struct any_window {
  const E *plane;
  const int64_t *strides;
  pg_taps d, h, w;
  bool global; /* all cells of the plane count as one row */

  __device__ __forceinline__ float cell(int64_t id, int64_t ih, int64_t iw) const {
    return widened(plane[id * strides[PG_D] + ih * strides[PG_H] + iw * strides[PG_W]]);
  }
  __device__ __forceinline__ int64_t columns() const {
    return global ? d.count * h.count * w.count : w.count;
  }
  __device__ float column(int64_t i) const {
    if (global) {
      const int64_t row = i / w.count, slice = row / h.count;
      return cell(slice, row - slice * h.count, i - row * w.count);
    }
    float sum = 0;
    for (int64_t id = d.first; id < d.first + d.count; id++)
      for (int64_t ih = h.first; ih < h.first + h.count; ih++) sum += cell(id, ih, w.first + i);
    return sum;
  }
};

template <typename E>
static __device__ float sum_window(const any_window<E> &v) {
  const int64_t columns = v.columns();
  if (columns <= PG_PARTIAL_SUMS) {
    float sum = 0;
    for (int64_t i = 0; i < columns; i++) sum += v.column(i);
    return sum;
  }
  float partial[PG_PARTIAL_SUMS] = {};
  for (int64_t i = 0; i < columns; i += PG_PARTIAL_SUMS)
#pragma unroll
    for (int k = 0; k < PG_PARTIAL_SUMS; k++)
      if (i + k < columns) partial[k] += v.column(i + k);
#pragma unroll
  for (int half = PG_PARTIAL_SUMS / 2; half > 0; half /= 2)
#pragma unroll
    for (int k = 0; k < half; k++) partial[k] += partial[k + half];
  return partial[0];
}

template <typename E>
static __global__ void __launch_bounds__(THREADS)
    avg_forward_any(const __grid_constant__ pg_avg_forward a,
                    const __grid_constant__ forward_job j) {
  for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < j.outputs;
       i += (int64_t)gridDim.x * THREADS) {
    const forward_output o = output_at(j, i);
    const any_window<E> v = {(const E *)a.in + offset(a.in_strides, o.n, o.c, 0, 0, 0),
                             a.in_strides.of,
                             pg_window_taps(&j.pool.d, o.d),
                             pg_window_taps(&j.pool.h, o.h),
                             pg_window_taps(&j.pool.w, o.w),
                             j.global};
    const bool pad = a.count_include_pad;
    const int64_t divisor = a.divisor != 0 ? a.divisor
                                           : pg_window_extent(&j.pool.d, o.d, pad) *
                                                 pg_window_extent(&j.pool.h, o.h, pad) *
                                                 pg_window_extent(&j.pool.w, o.w, pad);
    put((E *)a.out + offset(a.out_strides, o.n, o.c, o.d, o.h, o.w),
        sum_window(v) / (float)divisor);
  }
}

/* --- On the host --- */

static cudaError_t run(const pg_cuda_call *call) {
  const forward_job j = forward_job_of(call);
  return with_fp32_type(call, [&](auto e) {
    return launch(call, avg_forward_any<decltype(e)>, forward_blocks(j, THREADS), THREADS, 0,
                  call->task->problem.args.avg_forward, j);
  });
}

PG_CUDA_METHOD(avg_forward_any) = {"any", fits_any_forward, nullptr, run, nullptr};
