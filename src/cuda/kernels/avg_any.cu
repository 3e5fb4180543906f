/* SPDX-License-Identifier: Apache-2.0 */
/* SPREAD of any box, cell by cell, in 64 bits: doubles, boxes that touch more outputs than shared
 * memory holds, divisors that fp32 may not hold. */
#include "cuda/kernels/avg_job.cuh"

enum { THREADS = 256 };

/* The two ways to count: window.h's, and its formulas in 32 bits. */
static __device__ __forceinline__ pg_range outputs_of(const pg_axis &a, const pg_axis_32 &b,
                                                      bool narrow, int64_t cell) {
  if (!narrow) return pg_touching(&a, cell, cell + 1);
  const pg_span s = touching(b, (int32_t)cell, (int32_t)cell + 1);
  return {s.begin, s.end};
}

static __device__ __forceinline__ int64_t counted(const pg_axis &a, const pg_axis_32 &b,
                                                  bool narrow, int64_t out, bool with_pad) {
  return narrow ? extent(b, (int32_t)out, with_pad) : pg_window_extent(&a, out, with_pad);
}

template <typename E, typename S>
static __device__ __forceinline__ S sum_cell(const avg_job &j, int64_t n, int64_t c, int64_t d,
                                             int64_t h, int64_t w) {
  const pg_pooling &p = j.pool;
  const bool pad = j.count_include_pad;
  const pg_range od = outputs_of(p.d, j.d, j.fits_32, d), oh = outputs_of(p.h, j.h, j.fits_32, h);
  const pg_range ow = outputs_of(p.w, j.w, j.fits_32, w);
  S total = 0;
  for (int64_t x = od.begin; x < od.end; x++) {
    S slice = 0;
    for (int64_t y = oh.begin; y < oh.end; y++) {
      const E *grad = (const E *)j.grad + offset(j.grad_strides, n, c, x, y, ow.begin);
      int64_t outer = 1;
      if (j.divisor == 0)
        outer = counted(p.d, j.d, j.fits_32, x, pad) * counted(p.h, j.h, j.fits_32, y, pad);
      S row = 0;
      for (int64_t z = ow.begin; z < ow.end; z++, grad += j.grad_strides.of[PG_W]) {
        const int64_t divisor =
            j.divisor != 0 ? j.divisor : outer * counted(p.w, j.w, j.fits_32, z, pad);
        row += (S)widened(*grad) / (S)divisor;
      }
      slice += row;
    }
    total += slice;
  }
  return total;
}

/* Cells of a block follow each other along W, interleaved ones along C. */
template <typename E>
static __global__ void __launch_bounds__(THREADS) spread_any(const __grid_constant__ avg_job j) {
  const bool interleaved = j.tiling.interleaved;
  const pg_box_64 box = box_64(j.tiling, j.pool, blockIdx.x);
  const pg_range planes = box.planes, d = box.d, h = box.h, w = box.w;
  const uint32_t wide = (uint32_t)(w.end - w.begin), tall = (uint32_t)(h.end - h.begin);
  const uint32_t deep = (uint32_t)(d.end - d.begin), some = (uint32_t)(planes.end - planes.begin);
  for (uint32_t i = threadIdx.x; i < wide * tall * deep * some; i += THREADS) {
    uint32_t cell = i, plane;
    if (interleaved) {
      cell = i / some;
      plane = i - cell * some;
    } else {
      plane = i / (wide * tall * deep);
      cell = i - plane * (wide * tall * deep);
    }
    const uint32_t row = cell / wide, slice = row / tall;
    const int64_t at = planes.begin + plane, n = at / j.pool.c, c = at - n * j.pool.c;
    const int64_t id = d.begin + slice, ih = h.begin + (row - slice * tall);
    const int64_t iw = w.begin + (cell - row * wide);
    put((E *)j.in + offset(j.in_strides, n, c, id, ih, iw),
        sum_cell<E, typename sum_of<E>::type>(j, n, c, id, ih, iw));
  }
}

/* --- On the host --- */

static bool fits(const pg_problem *problem, pg_tiling *tiling) {
  const pg_facts &f = problem->facts;
  *tiling = f.channels_last ? tile_avg_channels(f) : tile_avg_planes(f);
  return true;
}

static cudaError_t run(const pg_cuda_call *call) {
  const avg_job j = avg_job_of(call);
  return with_avg_type(
      call, [&](auto e) { return launch(call, spread_any<decltype(e)>, j.items, THREADS, 0, j); });
}

PG_CUDA_METHOD(avg_any) = {"any", fits, nullptr, run, nullptr};
