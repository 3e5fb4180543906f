/* SPDX-License-Identifier: Apache-2.0 */
/* What a block of avg_strips.cu has, and what its threads look up: its box, and tables in shared
 * memory that are computed once for all columns of the block. */
#ifndef PG_CUDA_AVG_STRIPS_CUH_
#define PG_CUDA_AVG_STRIPS_CUH_

#include "cuda/kernels/avg_job.cuh"
#include "cuda/kernels/quotient.cuh"
#include "cuda/kernels/scratch_layout.cuh"

/* Entries that the loop over rows of outputs computes at once; tables have a multiple of it. */
enum { STRIPS_TOGETHER = 4 };

/* Which planes a thread computes at once. */
enum strips_planes {
  ONE_PLANE,
  CHANNELS, /* four that are neighbours in memory: one access for all */
  APART     /* four at the same distance from each other: an access for each */
};

/* Threads of a block, where they have one plane and where they have four. */
enum { STRIPS_OF_ONE = 256, STRIPS_OF_FOUR = 128 };

struct avg_strips_plan {
  /* Lanes are counted along C where channels are neighbours (by fours if these are computed at
   * once), then along W, then over groups.  A lane has every groups-th number, which is a plane, an
   * n, or four of them. */
  uint32_t lanes, groups, numbers;
  pg_divider by_vectors, by_looped_channels;
  int64_t grad_step, in_step; /* bytes from the planes of a lane to its next ones */
  /* Four planes at once: */
  uint32_t grad_distance, in_distance; /* bytes from one to the next */
  uint32_t last_four;                  /* the first plane of the last four */
  uint32_t shifted;                    /* their number, for which the step is too long by: */
  int64_t grad_back, in_back;
  /* Bytes from an output or a cell to the next one: */
  uint32_t grad_w, grad_h, in_h, in_d;
  /* Boxes: */
  int32_t of_d, of_h;
  pg_divider by_boxes, by_h_items;
  /* Divisors: */
  bool exact;      /* all quotients need true divisions */
  int32_t least_w; /* the smallest extent of a window along W; */
  int32_t classes; /* how many extents along W there are, from least_w on: each has its divisors */
  /* Words of the scratch where tables begin: */
  int32_t offset;         /* for each entry: bytes to its row of outputs; only with depth */
  int32_t divisor;        /* for each entry: a divisor for each class */
  int32_t band_d, band_h; /* for each slice and row of the box: the band from there on */
  int32_t class_of;       /* for each lane: where the divisors of its outputs along W are */
  int32_t sums;           /* for each entry: the sums of all lanes */
};

/* Cells of each plane that a block has, and the outputs that touch them.  An entry is a row of
 * outputs; oh is counted first. */
struct avg_strips_box {
  pg_span d, h, od, oh;
  int32_t entries;
};

static __device__ __forceinline__ avg_strips_box strips_box_of(const avg_job &j,
                                                               const avg_strips_plan &p,
                                                               uint32_t number) {
  const uint32_t slices = over(number, p.by_h_items);
  avg_strips_box b;
  b.h = cut((int32_t)(number - slices * p.by_h_items.by), p.of_h, j.h.in);
  b.d = cut((int32_t)slices, p.of_d, j.d.in);
  b.od = touching(j.d, b.d.begin, b.d.end);
  b.oh = touching(j.h, b.h.begin, b.h.end);
  b.entries = length(b.od) * length(b.oh);
  return b;
}

/* --- Bands --- */

/* From a row or slice of the box on: those before `end` lie in the same windows. */
struct strips_band {
  uint32_t end;   /* counted from the first of the box */
  uint32_t count; /* of the outputs along the axis that it lies in */
  uint32_t from;  /* where the sums of the first of them begin, in bytes from those of entry 0 */
};

static __device__ __forceinline__ strips_band band_at(uint32_t table, uint32_t cell) {
  const uint2 words = table_words(table + 8 * cell);
  return {words.x >> 16, words.x & 0xffff, words.y};
}

static __device__ __forceinline__ void prepare_bands(const pg_axis_32 &a, pg_span cells,
                                                     int32_t first_output, int32_t output_bytes,
                                                     uint2 *to) {
#pragma unroll 1
  for (int32_t i = threadIdx.x; i < length(cells); i += blockDim.x) {
    const int32_t cell = cells.begin + i;
    const pg_span o = touching(a, cell, cell + 1);
    const int32_t end = band_end(a, o, cells.end) - cells.begin;
    to[i] = make_uint2((uint32_t)end << 16 | (uint32_t)length(o),
                       (uint32_t)((o.begin - first_output) * output_bytes));
  }
}

/* --- Entries --- */

/* An output's divisor is found by its entry and by the class of its extent along W, so that no
 * reciprocal is computed for a cell.  Behind the last entry it is repeated. */
static __device__ __forceinline__ void prepare_entries(const avg_job &j, const avg_strips_plan &p,
                                                       const avg_strips_box &b) {
  const int32_t tall = length(b.oh);
  const int32_t all = (b.entries + STRIPS_TOGETHER - 1) / STRIPS_TOGETHER * STRIPS_TOGETHER;
#pragma unroll 1
  for (int32_t i = threadIdx.x; i < all * p.classes; i += blockDim.x) {
    const int32_t entry = i / p.classes, known = min(entry, b.entries - 1), d = known / tall;
    const int32_t od = b.od.begin + d, oh = b.oh.begin + known - d * tall;
    const float row =
        (float)extent(j.d, od, j.count_include_pad) * (float)extent(j.h, oh, j.count_include_pad);
    const float by =
        j.divisor != 0 ? (float)j.divisor : row * (float)(p.least_w + i - entry * p.classes);
    scratch_at<float2>(p.divisor)[i] = make_float2(by, __fdiv_rn(1.0f, by));
  }
}

template <typename E>
static __device__ __forceinline__ void prepare_offsets(const avg_job &j, const avg_strips_plan &p,
                                                       const avg_strips_box &b) {
  const int32_t tall = length(b.oh);
  const int32_t all = (b.entries + STRIPS_TOGETHER - 1) / STRIPS_TOGETHER * STRIPS_TOGETHER;
#pragma unroll 1
  for (int32_t i = threadIdx.x; i < all; i += blockDim.x) {
    const int32_t known = min(i, b.entries - 1), d = known / tall, h = known - d * tall;
    scratch_at<int64_t>(p.offset)[i] =
        (d * j.grad_strides.of[PG_D] + h * j.grad_strides.of[PG_H]) * (int64_t)sizeof(E);
  }
}

#endif
