/* SPDX-License-Identifier: Apache-2.0 */
/* What a block of avg_staged.cu has: its box, where things are in its scratch, the tables that it
 * computes once for all its items, and where its items lie in global memory. */
#ifndef PG_CUDA_AVG_STAGED_CUH_
#define PG_CUDA_AVG_STAGED_CUH_

#include "cuda/kernels/avg_job.cuh"
#include "cuda/kernels/quotient.cuh"
#include "cuda/kernels/scratch_layout.cuh"
#include "cuda/kernels/staged_run.cuh"

enum { MOST_STAGED_COLUMNS = 4 /* of a lane */ };

struct avg_staged_plan {
  uint32_t planes;
  /* Items: boxes of whole rows, and several planes if the box is all of them. */
  int32_t of_planes, of_d, of_h;
  pg_divider by_boxes, by_h_items, by_of_planes;
  uint32_t step;   /* from the first plane of an item to that of the block's next item */
  bool whole_rows; /* boxes have all rows of their slices, so they are one run of memory */
  /* Bytes: */
  uint32_t row, slice, plane;             /* of cells in global memory */
  uint32_t out_row, out_slice, out_plane; /* of outputs */
  uint32_t raw_pitch;                     /* from the outputs of a slice to the next staged ones */
  uint32_t slice_pitch, plane_pitch;      /* from staged cells to those of the next slice, plane */
  bool padded;                            /* staged planes do not follow each other */
  pg_divider by_plane_groups;             /* of 16 bytes */
  /* Lanes: */
  bool pairs; /* pairs of columns are aligned, and can be stored at once */
  int32_t out_rows_at_once, units_at_once;
  pg_divider by_out_columns, by_lanes;     /* by_lanes: of a unit */
  uint32_t start[MOST_STAGED_COLUMNS / 2]; /* pairs from a lane's first to its others */
  int32_t segments, segment_rows, bands;   /* of a box; bands: the most */
  pg_divider by_segments;
  /* Divisors: */
  bool exact, one_divisor;
  pg_divisor divisor;
  /* Words of the scratch where things begin: */
  int32_t barrier, band, row_end, segment, factor, quotient, raw, cells;
  int32_t pitch;         /* words of a row of quotients: one more than outputs, for a zero */
  int32_t quotient_rows; /* of an item, at most */
};

/* The cells of each plane that a block has, and the outputs that it reads. */
struct staged_box {
  pg_span d, h, od, oh;
};

/* `before`: how many outputs before the last that begins at a cell or before it may hold it. */
static __device__ __forceinline__ staged_box staged_box_of(const avg_job &j,
                                                           const avg_staged_plan &p,
                                                           uint32_t number, int32_t before) {
  const uint32_t slices = over(number, p.by_h_items);
  staged_box b;
  b.h = cut((int32_t)(number - slices * p.by_h_items.by), p.of_h, j.h.in);
  b.d = cut((int32_t)slices, p.of_d, j.d.in);
  b.od = touching(j.d, b.d.begin, b.d.end);
  b.oh = {0, j.h.out};
  if (p.whole_rows) {
    if (p.of_d == j.d.in) b.od = {0, j.d.out};
    return b;
  }
  b.oh.begin = max(touching(j.h, b.h.begin, b.h.begin + 1).end - 1 - before, 0);
  b.oh.end = touching(j.h, b.h.begin, b.h.end).end;
  return b;
}

/* --- Tables --- */

static __device__ __forceinline__ int32_t window_end(const pg_axis_32 &a, int32_t o) {
  const pg_window_32 w = window(a, o);
  return w.begin + (int32_t)w.length;
}

/* Slices [begin, end) lie in the windows of `count` outputs from `first` on; all are counted from
 * the first of the box. */
struct staged_band {
  uint32_t begin, end, first, count;
};

static __device__ __forceinline__ staged_band staged_band_at(uint32_t table, uint32_t number) {
  const uint2 words = table_words(table + 8 * number);
  return {words.x & 0xffff, words.x >> 16, words.y & 0xffff, words.y >> 16};
}

/* For each output along D, and each number of outputs of which it is the last, the slices that lie
 * in the windows of just these.  Windows leave no gap along D. */
static __device__ __forceinline__ void prepare_staged_bands(const avg_job &j, const staged_box &b,
                                                            int32_t most, uint2 *to) {
#pragma unroll 1
  for (int32_t i = threadIdx.x; i < length(b.od) * most; i += blockDim.x) {
    const int32_t od = b.od.begin + i / most, count = most - i % most, first = od - count + 1;
    int32_t begin = max(b.d.begin, window(j.d, od).begin), end = b.d.end;
    if (first > 0) begin = max(begin, window_end(j.d, first - 1));
    if (od + 1 < j.d.out) end = min(end, window(j.d, od + 1).begin);
    end = first < b.od.begin ? 0 : min(end, window_end(j.d, first));
    if (begin >= end) begin = end = b.d.begin;
    to[i] = make_uint2((uint32_t)(begin - b.d.begin) | (uint32_t)(end - b.d.begin) << 16,
                       (uint32_t)(max(first, b.od.begin) - b.od.begin) | (uint32_t)count << 16);
  }
}

/* For each output along H: where its window ends, and where the next one begins or the box ends, in
 * bytes from the first row of the box. */
static __device__ __forceinline__ void prepare_row_ends(const avg_job &j, const avg_staged_plan &p,
                                                        const staged_box &b) {
  const int32_t rows = length(b.h);
#pragma unroll 1
  for (int32_t i = threadIdx.x; i < length(b.oh); i += blockDim.x) {
    const int32_t oh = b.oh.begin + i;
    const int32_t end = min(max(window_end(j.h, oh) - b.h.begin, 0), rows);
    int32_t next = rows;
    if (oh + 1 < b.oh.end) next = min(max(window(j.h, oh + 1).begin - b.h.begin, 0), rows);
    scratch_at<uint2>(p.row_end)[i] = make_uint2((uint32_t)end * p.row, (uint32_t)next * p.row);
  }
}

/* For each segment of rows: the first output along H that its first row may need. */
static __device__ __forceinline__ void prepare_segments(const avg_job &j, const avg_staged_plan &p,
                                                        const staged_box &b, int32_t before) {
#pragma unroll 1
  for (int32_t i = threadIdx.x; i < p.segments; i += blockDim.x) {
    const int32_t row = b.h.begin + i * p.segment_rows;
    const int32_t last = touching(j.h, row, row + 1).end - 1;
    scratch_at<int32_t>(p.segment)[i] =
        row < b.h.end ? max(last - before, b.oh.begin) - b.oh.begin : 0;
  }
}

/* For each row of quotients: what its divisors have to be multiplied with.  And its zero. */
static __device__ __forceinline__ void prepare_quotient_rows(const avg_job &j,
                                                             const avg_staged_plan &p,
                                                             const staged_box &b) {
  const int32_t tall = length(b.oh), deep = length(b.od);
#pragma unroll 1
  for (int32_t i = threadIdx.x; i < p.quotient_rows; i += blockDim.x) {
    scratch_at<float>(p.quotient)[i * p.pitch + j.w.out] = 0;
    if (p.one_divisor) continue;
    const int32_t slice = i / tall, od = b.od.begin + slice % deep, oh = b.oh.begin + i % tall;
    scratch_at<float>(p.factor)[i] =
        (float)(extent(j.d, od, j.count_include_pad) * extent(j.h, oh, j.count_include_pad));
  }
}

/* --- Items --- */

/* The outputs of the box in planes from `first` on. */
template <typename E>
static __device__ __forceinline__ staged_runs<const E> staged_outputs_of(const avg_job &j,
                                                                         const avg_staged_plan &p,
                                                                         const staged_box &b,
                                                                         uint32_t first) {
  const uint32_t planes = min((uint32_t)p.of_planes, p.planes - first);
  staged_runs<const E> r;
  r.at = (const E *)((const char *)j.grad + (uint64_t)first * p.out_plane +
                     (uint64_t)b.od.begin * p.out_slice + (uint64_t)b.oh.begin * p.out_row);
  r.count = p.whole_rows ? 1 : length(b.od);
  r.bytes = p.whole_rows ? planes * length(b.od) * p.out_slice : length(b.oh) * p.out_row;
  r.distance = p.out_slice;
  r.staged = shared_address(scratch_at<uint32_t>(p.raw)) + (uint32_t)(uintptr_t)r.at % 16;
  r.pitch = p.raw_pitch;
  return r;
}

template <typename E>
static __device__ __forceinline__ staged_runs<E> staged_cells_of(const avg_job &j,
                                                                 const avg_staged_plan &p,
                                                                 const staged_box &b,
                                                                 uint32_t first) {
  const uint32_t planes = min((uint32_t)p.of_planes, p.planes - first);
  staged_runs<E> r;
  r.at = (E *)((char *)j.in + (uint64_t)first * p.plane + (uint64_t)b.d.begin * p.slice +
               (uint64_t)b.h.begin * p.row);
  r.count = p.whole_rows ? 1 : length(b.d);
  r.bytes = p.whole_rows ? planes * length(b.d) * p.slice : length(b.h) * p.row;
  r.distance = p.slice;
  r.staged = shared_address(scratch_at<uint32_t>(p.cells)) + (uint32_t)(uintptr_t)r.at % 16;
  r.pitch = p.slice_pitch;
  return r;
}

/* Planes of whole groups of 16 bytes that follow each other in memory but not in the scratch. */
static __device__ __forceinline__ void write_padded(const avg_staged_plan &p, char *to,
                                                    uint32_t staged, uint32_t planes) {
  const uint32_t groups = p.by_plane_groups.by;
#pragma unroll 4
  for (uint32_t i = threadIdx.x; i < planes * groups; i += blockDim.x) {
    const uint32_t plane = over(i, p.by_plane_groups);
    put_words(to + (uint64_t)i * 16,
              shared_load_16(staged + plane * p.plane_pitch + (i - plane * groups) * 16));
  }
}

#endif
