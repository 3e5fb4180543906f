/* SPDX-License-Identifier: Apache-2.0 */
/* Averages of any problem.  It is the last method of the list and computes what the others leave:
 * doubles, planes too large for 32-bit positions, divisors that fp32 may not represent, and windows
 * so long that a box touches more outputs than shared memory holds.
 *
 * A block computes an item, and a thread one cell of it at a time: the cell reads and divides every
 * output whose window holds it.  Nothing is kept but the sum, so a cell may lie in any number of
 * windows.  It costs a division for each of them, where the other methods divide an output once and
 * share the quotient among the cells of its window. */
#include "cuda/kernels/avg_job.cuh"

enum { THREADS = 256 };

/* An axis in 64 bits, and in 32 bits, which is faster where it holds. */
struct any_axis {
  const pg_axis &wide;
  const pg_axis_32 &narrow;
  bool fits_32;

  /* The outputs whose windows hold a cell. */
  __device__ __forceinline__ pg_range outputs_of(int64_t cell) const {
    if (!fits_32) return pg_touching(&wide, cell, cell + 1);
    const pg_span s = touching(narrow, (int32_t)cell, (int32_t)cell + 1);
    return {s.begin, s.end};
  }
  /* How many cells an output's window counts. */
  __device__ __forceinline__ int64_t counted(int64_t o, bool with_pad) const {
    return fits_32 ? extent(narrow, (int32_t)o, with_pad) : pg_window_extent(&wide, o, with_pad);
  }
};

/* The gradient of one cell, added along W, then H, then D. */
template <typename E, typename S>
static __device__ __forceinline__ S sum_cell(const avg_job &j, int64_t n, int64_t c, int64_t id,
                                             int64_t ih, int64_t iw) {
  const any_axis d = {j.pool.d, j.d, j.fits_32}, h = {j.pool.h, j.h, j.fits_32};
  const any_axis w = {j.pool.w, j.w, j.fits_32};
  const bool pad = j.count_include_pad;
  const pg_range out_d = d.outputs_of(id), out_h = h.outputs_of(ih), out_w = w.outputs_of(iw);
  S total = 0;
  for (int64_t od = out_d.begin; od < out_d.end; od++) {
    S slice = 0;
    for (int64_t oh = out_h.begin; oh < out_h.end; oh++) {
      const E *grad = (const E *)j.grad + offset(j.grad_strides, n, c, od, oh, out_w.begin);
      const int64_t counted = j.divisor == 0 ? d.counted(od, pad) * h.counted(oh, pad) : 1;
      S row = 0;
      for (int64_t ow = out_w.begin; ow < out_w.end; ow++, grad += j.grad_strides.of[PG_W]) {
        const int64_t divisor = j.divisor != 0 ? j.divisor : counted * w.counted(ow, pad);
        row += (S)widened(*grad) / (S)divisor;
      }
      slice += row;
    }
    total += slice;
  }
  return total;
}

/* Neighbouring threads have cells that are neighbours in memory: along C where the item is
 * interleaved, otherwise along W. */
template <typename E>
static __global__ void __launch_bounds__(THREADS) avg_any(const __grid_constant__ avg_job j) {
  const pg_box_64 b = box_64(j.tiling, j.pool, blockIdx.x);
  const uint32_t width = (uint32_t)(b.w.end - b.w.begin), height = (uint32_t)(b.h.end - b.h.begin);
  const uint32_t depth = (uint32_t)(b.d.end - b.d.begin), cells = width * height * depth;
  const uint32_t planes = (uint32_t)(b.planes.end - b.planes.begin);
  for (uint32_t i = threadIdx.x; i < cells * planes; i += THREADS) {
    uint32_t cell = i, plane;
    if (j.tiling.interleaved) {
      cell = i / planes;
      plane = i - cell * planes;
    } else {
      plane = i / cells;
      cell = i - plane * cells;
    }
    const uint32_t row = cell / width, slice = row / height;
    const int64_t nc = b.planes.begin + plane, n = nc / j.pool.c, c = nc - n * j.pool.c;
    const int64_t id = b.d.begin + slice, ih = b.h.begin + (row - slice * height);
    const int64_t iw = b.w.begin + (cell - row * width);
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
  return with_float_type(
      call, [&](auto e) { return launch(call, avg_any<decltype(e)>, j.items, THREADS, 0, j); });
}

PG_CUDA_METHOD(avg_any) = {"any", fits, nullptr, run, nullptr};
