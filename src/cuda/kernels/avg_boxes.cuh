/* SPDX-License-Identifier: Apache-2.0 */
/* SPREAD's first two passes, and its tables, in a block's shared memory: outputs are divided, and
 * terms laid out along W. */
#ifndef PG_CUDA_AVG_BOXES_CUH_
#define PG_CUDA_AVG_BOXES_CUH_

#include "cuda/kernels/avg_job.cuh"

enum { DIVIDED = 4 /* outputs a thread has on their way */, SHORT = 8, FEW_THREADS = 128 };

enum how_laid { AT_ONCE, STEADY, BY_TABLE };

/* What is where in shared memory, in words, and how the passes go. */
struct spread_plan {
  how_laid how;
  bool gaps;        /* cells of a row may lie in no window */
  bool runs, quads; /* items are runs in memory; of which rows are whole words of four floats */
  bool vectors;     /* rows of an item can be written 16 bytes at a time */
  int32_t term_pitch, laid_pitch;
  int32_t grad_row, divisor, width, cell_row, out_row, map, term, laid, end;
  pg_divider quads_of_row, units_of_row;
};

/* A block's item. */
struct spread_box {
  pg_box_32 at;
  pg_span od, oh, ow; /* outputs that touch it; STEADY: those of all places of a row */
  int32_t rows, cell_rows, width;
};

extern __shared__ uint4 pg_spread_room[];

static __device__ __forceinline__ float *floats(int32_t word) {
  return (float *)pg_spread_room + word;
}

/* --- Tables --- */

/* A row of outputs: where it is and its part of the divisor. */
template <typename E>
static __device__ __forceinline__ void know_rows(const avg_job &j, const spread_plan &s,
                                                 const spread_box &b) {
  const int32_t deep = length(b.od), tall = length(b.oh);
  for (int32_t r = threadIdx.x; r < b.rows; r += blockDim.x) {
    const int32_t slice = r / tall, plane = slice / deep;
    const int32_t od = b.od.begin + slice - plane * deep, oh = b.oh.begin + r - slice * tall;
    const uint32_t at = (uint32_t)b.at.first + plane, n = over(at, j.by_c);
    const E *grad = (const E *)j.grad + offset(j.grad_strides, n, at - n * j.by_c.by, od, oh, 0);
    ((const E **)floats(s.grad_row))[r] = grad;
    floats(s.divisor)[r] = j.divisor != 0 ? (float)j.divisor
                                          : (float)extent(j.d, od, j.count_include_pad) *
                                                (float)extent(j.h, oh, j.count_include_pad);
  }
  for (int32_t i = threadIdx.x; i < length(b.ow); i += blockDim.x)
    floats(s.width)[i] =
        j.divisor != 0 ? 1.0f : (float)extent(j.w, b.ow.begin + i, j.count_include_pad);
}

/* A row of cells: where the laid rows it is the sum of begin, and how many there are along H, and
 * along D.  Where it goes, unless the item is one run. */
template <typename E>
static __device__ __forceinline__ void know_cell_rows(const avg_job &j, const spread_plan &s,
                                                      const spread_box &b) {
  const int32_t deep = length(b.at.d), tall = length(b.at.h);
  for (int32_t r = threadIdx.x; r < b.cell_rows; r += blockDim.x) {
    const int32_t slice = r / tall, plane = slice / deep;
    const int32_t d = b.at.d.begin + slice - plane * deep, h = b.at.h.begin + r - slice * tall;
    const pg_span od = touching(j.d, d, d + 1), oh = touching(j.h, h, h + 1);
    const int32_t row = (plane * length(b.od) + od.begin - b.od.begin) * length(b.oh);
    ((uint2 *)floats(s.cell_row))[r] =
        make_uint2((uint32_t)(row + oh.begin - b.oh.begin) * s.laid_pitch,
                   (uint32_t)length(oh) | (uint32_t)length(od) << 16);
    if (s.runs) continue;
    const uint32_t at = (uint32_t)b.at.first + plane, n = over(at, j.by_c);
    ((E **)floats(s.out_row))[r] =
        (E *)j.in + offset(j.in_strides, n, at - n * j.by_c.by, d, h, b.at.w.begin);
  }
  for (int32_t i = threadIdx.x; s.how == BY_TABLE && i < b.width; i += blockDim.x) {
    const pg_span ow = touching(j.w, b.at.w.begin + i, b.at.w.begin + i + 1);
    ((uint32_t *)floats(s.map))[i] = (uint32_t)(ow.begin - b.ow.begin) | (uint32_t)length(ow) << 16;
  }
}

/* --- Passes --- */

template <how_laid HOW>
static __device__ __forceinline__ void put_term(const avg_job &j, const spread_plan &s,
                                                const spread_box &b, int32_t row, int32_t i,
                                                float term) {
  if (HOW != AT_ONCE) {
    floats(s.term)[row * s.term_pitch + i] = term;
    return;
  }
  float *laid = floats(s.laid) + row * s.laid_pitch;
  int32_t x = window<true>(j.w, b.ow.begin + i).begin - b.at.w.begin;
#pragma unroll 2
  for (int32_t k = 0; k <= j.w.reach; k++, x++)
    if (holds(0, (uint32_t)b.width, (uint32_t)x)) laid[x] = term;
}

template <how_laid HOW, typename E>
static __device__ __forceinline__ void divide(const avg_job &j, const spread_plan &s,
                                              const spread_box &b) {
  const int32_t count = length(b.ow), total = b.rows * count, threads = blockDim.x;
  const int32_t step = threads / count, step_i = threads - step * count;
  int32_t row = (int32_t)threadIdx.x / count, i = (int32_t)threadIdx.x - row * count;
  for (int32_t f = threadIdx.x; f < total; f += DIVIDED * threads) {
    const int32_t first_row = row, first_i = i;
    E grad[DIVIDED];
#pragma unroll
    for (int k = 0; k < DIVIDED; k++) {
      const int32_t o = b.ow.begin + i;
      grad[k] = {};
      if (f + k * threads < total && (HOW != STEADY || holds(0, (uint32_t)j.w.out, (uint32_t)o)))
        grad[k] = ((const E **)floats(s.grad_row))[row][(uint32_t)(o * j.grad_w_stride)];
      row += step;
      i += step_i;
      if (i >= count) {
        i -= count;
        row++;
      }
    }
    row = first_row;
    i = first_i;
#pragma unroll
    for (int k = 0; k < DIVIDED; k++) {
      if (f + k * threads < total)
        put_term<HOW>(j, s, b, row, i,
                      0.0f + widened(grad[k]) / (floats(s.divisor)[row] * floats(s.width)[i]));
      row += step;
      i += step_i;
      if (i >= count) {
        i -= count;
        row++;
      }
    }
  }
}

/* Windows one cell apart: four neighbours' sums move along the terms together. */
static __device__ __forceinline__ void lay_steady(const avg_job &j, const spread_plan &s,
                                                  const spread_box &b) {
  const int32_t quads = (int32_t)s.quads_of_row.by, total = b.rows * quads;
  for (int32_t q = threadIdx.x; q < total; q += blockDim.x) {
    const int32_t row = (int32_t)over(q, s.quads_of_row), x = 4 * (q - row * quads);
    const float *term = floats(s.term) + row * s.term_pitch + x;
    float4 now = *(const float4 *)term, sum = now;
    for (int32_t more = j.w.reach; more > 0; more -= 4) {
      term += 4;
      const float4 next = *(const float4 *)term;
      sum = make_float4(sum.x + now.y, sum.y + now.z, sum.z + now.w, sum.w + next.x);
      if (more > 1) sum = make_float4(sum.x + now.z, sum.y + now.w, sum.z + next.x, sum.w + next.y);
      if (more > 2)
        sum = make_float4(sum.x + now.w, sum.y + next.x, sum.z + next.y, sum.w + next.z);
      if (more > 3)
        sum = make_float4(sum.x + next.x, sum.y + next.y, sum.z + next.z, sum.w + next.w);
      now = next;
    }
    *(float4 *)(floats(s.laid) + row * s.laid_pitch + x) = sum;
  }
}

static __device__ __forceinline__ void lay_by_table(const spread_plan &s, const spread_box &b) {
  const int32_t total = b.rows * b.width, threads = blockDim.x;
  const int32_t step = threads / b.width, step_x = threads - step * b.width;
  int32_t row = (int32_t)threadIdx.x / b.width, x = (int32_t)threadIdx.x - row * b.width;
  for (int32_t f = threadIdx.x; f < total; f += threads) {
    const uint32_t map = ((const uint32_t *)floats(s.map))[x];
    const float *term = floats(s.term) + row * s.term_pitch + (map & 0xffff);
    float sum = 0;
    for (uint32_t i = 0; i < map >> 16; i++) sum += term[i];
    floats(s.laid)[row * s.laid_pitch + x] = sum;
    row += step;
    x += step_x;
    if (x >= b.width) {
      x -= b.width;
      row++;
    }
  }
}

#endif
