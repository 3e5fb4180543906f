/* SPDX-License-Identifier: Apache-2.0 */
/* The first half of avg_boxes.cu: tables of an item, its quotients, and their expansion along W. */
#ifndef PG_CUDA_AVG_BOXES_CUH_
#define PG_CUDA_AVG_BOXES_CUH_

#include "cuda/kernels/avg_job.cuh"
#include "cuda/kernels/scratch_layout.cuh"

enum {
  IN_FLIGHT = 4 /* outputs that a thread loads before it uses the first */
};

/* How rows of quotients become expanded rows. */
enum boxes_expansion {
  AT_ONCE, /* windows are short and do not overlap: whoever divides an output stores it expanded */
  BY_ONE,  /* windows slide by one cell: four neighbours load the same quotients, as float4 */
  BY_TABLE /* any windows: a table has the outputs of each column */
};

struct avg_boxes_plan {
  boxes_expansion expansion;
  bool gaps;       /* cells of a row may lie in no window */
  bool contiguous; /* the cells of an item are contiguous */
  bool quads;      /* with that: four cells from a multiple of four on lie in one row */
  bool groups;     /* rows of an item can be written 16 bytes at a time */
  int32_t quotient_stride, expanded_stride; /* in floats, from a row to the next */
  /* Words of the scratch where tables begin: */
  int32_t output_row;  /* for each row of outputs: its address */
  int32_t row_divisor; /* and the product of its windows' extents along D and H */
  int32_t extent_w;    /* for each column of outputs */
  int32_t cell_row;    /* for each row of cells: the expanded_rows that it is the sum of */
  int32_t write_row;   /* and its address, unless cells are contiguous */
  int32_t span_w;      /* BY_TABLE: the outputs of each column of cells: first, and count << 16 */
  int32_t quotient, expanded;
  pg_divider by_quads; /* of an expanded row */
  pg_divider by_units; /* of a row of cells: what a thread writes at once, a group or a cell */
};

/* The item of a block. */
struct avg_boxes_item {
  pg_box_32 box;
  /* Outputs that touch it.  BY_ONE, ow also has those that would be before the first output of the
   * axis and behind the last, with quotients of 0, so that each cell is the sum of as many. */
  pg_span od, oh, ow;
  int32_t output_rows, cell_rows, width;
};

/* Expanded rows that a row of cells is the sum of: the first of them, in floats from the beginning
 * of all, and how many there are along H, and along D << 16. */
struct __align__(8) expanded_rows {
  uint32_t first, counts;
};

/* Walks through rows of `count` elements, from one element of a thread to its next, which is
 * blockDim.x elements behind it, without a division. */
struct row_walk {
  int32_t count;
  int32_t rows_on, elements_on; /* rows and elements from one to the next */
  int32_t row, i;

  __device__ __forceinline__ explicit row_walk(int32_t of_row) : count(of_row) {
    const int32_t threads = blockDim.x, thread = threadIdx.x;
    rows_on = threads / count;
    elements_on = threads - rows_on * count;
    row = thread / count;
    i = thread - row * count;
  }
  __device__ __forceinline__ void next() {
    row += rows_on;
    i += elements_on;
    if (i >= count) {
      i -= count;
      row++;
    }
  }
};

/* --- Tables --- */

template <typename E>
static __device__ __forceinline__ void prepare_outputs(const avg_job &j, const avg_boxes_plan &s,
                                                       const avg_boxes_item &b) {
  const int32_t deep = length(b.od), tall = length(b.oh);
  for (int32_t r = threadIdx.x; r < b.output_rows; r += blockDim.x) {
    const int32_t slice = r / tall, plane = slice / deep;
    const int32_t od = b.od.begin + slice - plane * deep, oh = b.oh.begin + r - slice * tall;
    const uint32_t at = (uint32_t)b.box.first + plane, n = over(at, j.by_c);
    const E *grad = (const E *)j.grad + offset(j.grad_strides, n, at - n * j.by_c.by, od, oh, 0);
    scratch_at<const E *>(s.output_row)[r] = grad;
    scratch_at<float>(s.row_divisor)[r] = j.divisor != 0
                                              ? (float)j.divisor
                                              : (float)extent(j.d, od, j.count_include_pad) *
                                                    (float)extent(j.h, oh, j.count_include_pad);
  }
  for (int32_t i = threadIdx.x; i < length(b.ow); i += blockDim.x)
    scratch_at<float>(s.extent_w)[i] =
        j.divisor != 0 ? 1.0f : (float)extent(j.w, b.ow.begin + i, j.count_include_pad);
}

template <typename E>
static __device__ __forceinline__ void prepare_cells(const avg_job &j, const avg_boxes_plan &s,
                                                     const avg_boxes_item &b) {
  const int32_t deep = length(b.box.d), tall = length(b.box.h);
  for (int32_t r = threadIdx.x; r < b.cell_rows; r += blockDim.x) {
    const int32_t slice = r / tall, plane = slice / deep;
    const int32_t d = b.box.d.begin + slice - plane * deep, h = b.box.h.begin + r - slice * tall;
    const pg_span od = touching(j.d, d, d + 1), oh = touching(j.h, h, h + 1);
    const int32_t row = (plane * length(b.od) + od.begin - b.od.begin) * length(b.oh);
    scratch_at<expanded_rows>(s.cell_row)[r] = {
        (uint32_t)(row + oh.begin - b.oh.begin) * s.expanded_stride,
        (uint32_t)length(oh) | (uint32_t)length(od) << 16};
    if (s.contiguous) continue;
    const uint32_t at = (uint32_t)b.box.first + plane, n = over(at, j.by_c);
    scratch_at<E *>(s.write_row)[r] =
        (E *)j.in + offset(j.in_strides, n, at - n * j.by_c.by, d, h, b.box.w.begin);
  }
  for (int32_t i = threadIdx.x; s.expansion == BY_TABLE && i < b.width; i += blockDim.x) {
    const pg_span ow = touching(j.w, b.box.w.begin + i, b.box.w.begin + i + 1);
    scratch_at<uint32_t>(s.span_w)[i] = (uint32_t)(ow.begin - b.ow.begin) | (uint32_t)length(ow)
                                                                                << 16;
  }
}

/* --- Divide --- */

template <boxes_expansion EXPANSION>
static __device__ __forceinline__ void store_quotient(const avg_job &j, const avg_boxes_plan &s,
                                                      const avg_boxes_item &b, const row_walk &at,
                                                      float quotient) {
  if (EXPANSION != AT_ONCE) {
    scratch_at<float>(s.quotient)[at.row * s.quotient_stride + at.i] = quotient;
    return;
  }
  float *expanded = scratch_at<float>(s.expanded) + at.row * s.expanded_stride;
  int32_t x = window<true>(j.w, b.ow.begin + at.i).begin - b.box.w.begin;
#pragma unroll 2
  for (int32_t k = 0; k <= j.w.reach; k++, x++)
    if (holds(0, (uint32_t)b.width, (uint32_t)x)) expanded[x] = quotient;
}

template <boxes_expansion EXPANSION, typename E>
static __device__ __forceinline__ void divide_outputs(const avg_job &j, const avg_boxes_plan &s,
                                                      const avg_boxes_item &b) {
  const int32_t total = b.output_rows * length(b.ow), threads = blockDim.x;
  row_walk at(length(b.ow));
  for (int32_t f = threadIdx.x; f < total; f += IN_FLIGHT * threads) {
    row_walk load = at;
    E grad[IN_FLIGHT];
#pragma unroll
    for (int k = 0; k < IN_FLIGHT; k++) {
      const int32_t o = b.ow.begin + load.i;
      grad[k] = {};
      if (f + k * threads < total &&
          (EXPANSION != BY_ONE || holds(0, (uint32_t)j.w.out, (uint32_t)o)))
        grad[k] = scratch_at<const E *>(s.output_row)[load.row][(uint32_t)(o * j.grad_w_stride)];
      load.next();
    }
#pragma unroll
    for (int k = 0; k < IN_FLIGHT; k++) {
      if (f + k * threads < total) {
        const float divisor =
            scratch_at<float>(s.row_divisor)[at.row] * scratch_at<float>(s.extent_w)[at.i];
        store_quotient<EXPANSION>(j, s, b, at, 0.0f + widened(grad[k]) / divisor);
      }
      at.next();
    }
  }
}

/* --- Expand --- */

/* Windows one cell apart: cell x is the sum of the quotients x to x + reach.  Each turn of the
 * inner loop adds up to four more to the sums of four neighbours. */
static __device__ __forceinline__ void expand_by_one(const avg_job &j, const avg_boxes_plan &s,
                                                     const avg_boxes_item &b) {
  const int32_t quads = (int32_t)s.by_quads.by, total = b.output_rows * quads;
  for (int32_t q = threadIdx.x; q < total; q += blockDim.x) {
    const int32_t row = (int32_t)over(q, s.by_quads), x = 4 * (q - row * quads);
    const float *quotient = scratch_at<const float>(s.quotient) + row * s.quotient_stride + x;
    float4 now = *(const float4 *)quotient, sum = now;
    for (int32_t more = j.w.reach; more > 0; more -= 4) {
      quotient += 4;
      const float4 next = *(const float4 *)quotient;
      sum = make_float4(sum.x + now.y, sum.y + now.z, sum.z + now.w, sum.w + next.x);
      if (more > 1) sum = make_float4(sum.x + now.z, sum.y + now.w, sum.z + next.x, sum.w + next.y);
      if (more > 2)
        sum = make_float4(sum.x + now.w, sum.y + next.x, sum.z + next.y, sum.w + next.z);
      if (more > 3)
        sum = make_float4(sum.x + next.x, sum.y + next.y, sum.z + next.z, sum.w + next.w);
      now = next;
    }
    *(float4 *)(scratch_at<float>(s.expanded) + row * s.expanded_stride + x) = sum;
  }
}

static __device__ __forceinline__ void expand_by_table(const avg_boxes_plan &s,
                                                       const avg_boxes_item &b) {
  const int32_t total = b.output_rows * b.width, threads = blockDim.x;
  row_walk at(b.width);
  for (int32_t f = threadIdx.x; f < total; f += threads, at.next()) {
    const uint32_t span = scratch_at<const uint32_t>(s.span_w)[at.i];
    const float *quotient =
        scratch_at<const float>(s.quotient) + at.row * s.quotient_stride + (span & 0xffff);
    float sum = 0;
    for (uint32_t i = 0; i < span >> 16; i++) sum += quotient[i];
    scratch_at<float>(s.expanded)[at.row * s.expanded_stride + at.i] = sum;
  }
}

#endif
