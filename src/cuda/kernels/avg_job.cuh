/* SPDX-License-Identifier: Apache-2.0 */
/* What the methods of PG_AVG_BACKWARD share: a task as kernels see it. */
#ifndef PG_CUDA_AVG_JOB_CUH_
#define PG_CUDA_AVG_JOB_CUH_

#include "cuda/call.cuh"
#include "cuda/kernels/box.cuh"
#include "cuda/kernels/element.cuh"
#include "cuda/kernels/with_type.cuh"
#include "kernels/tiling.h"

struct avg_job {
  const void *grad;
  void *in;
  pg_strides grad_strides, in_strides;
  pg_pooling pool;
  pg_tiling tiling;
  int64_t items;
  int64_t divisor; /* 0: the cells a window counts */
  bool count_include_pad;
  bool fits_32;           /* what follows holds */
  bool flat_in, flat_out; /* all cells follow each other; all outputs do */
  pg_axis_32 d, h, w;
  pg_items cut;
  uint32_t cells;        /* of a plane */
  int32_t grad_w_stride; /* from an output to the next one along W */
  pg_divider by_c, by_w, by_h;
};

/* Can everything but offsets of planes and rows be counted in 32 bits? */
static inline bool fits_avg_32_bits(const pg_problem &problem) {
  const pg_pooling &p = problem.facts.pool;
  const int64_t stride = problem.args.avg_backward.out_strides.of[PG_W];
  return fits_32_bits(p) && stride >= 0 && stride < (int64_t)1 << 31 &&
         stride * p.w.out < (int64_t)1 << 31;
}

/* For methods that sum in fp32, over planes that are not interleaved. */
static inline bool fits_avg_planes(const pg_problem &problem) {
  return problem.dtype != ACL_DOUBLE && !problem.facts.channels_last && fits_avg_32_bits(problem) &&
         problem.facts.largest_divisor != INT64_MAX;
}

static inline avg_job avg_job_of(const pg_cuda_call *call) {
  const pg_problem &problem = call->task->problem;
  const pg_avg_backward &a = problem.args.avg_backward;
  const pg_choice &choice = call->task->choice;
  const pg_pooling &p = problem.facts.pool;
  avg_job j = {};
  j.grad = a.grad_out;
  j.in = a.grad_in;
  j.grad_strides = a.out_strides;
  j.in_strides = a.in_strides;
  j.pool = p;
  j.tiling = choice.tiling;
  j.items = choice.items;
  j.divisor = a.divisor;
  j.count_include_pad = a.count_include_pad;
  j.fits_32 = fits_avg_32_bits(problem);
  if (!j.fits_32) return j;
  j.flat_in = problem.facts.in.all;
  j.flat_out = problem.facts.out.all;
  j.d = axis_32(p.d);
  j.h = axis_32(p.h);
  j.w = axis_32(p.w);
  j.cut = items_of(choice.tiling, p);
  j.grad_w_stride = (int32_t)j.grad_strides.of[PG_W];
  j.cells = (uint32_t)problem.facts.cells;
  j.by_c = divider_of(p.c);
  j.by_w = divider_of(p.w.in);
  j.by_h = divider_of(p.h.in);
  return j;
}

enum { BOX_CELLS = 4096, STAGED_OUTPUTS = 8192 };

static inline pg_tiling tile_avg_planes(const pg_facts &f) {
  return pg_tile_flat(&f.pool, BOX_CELLS);
}

static inline pg_tiling tile_avg_channels(const pg_facts &f) {
  return pg_tile_interleaved(&f, BOX_CELLS, STAGED_OUTPUTS);
}

/* Where methods leave problems to others: avg_channels_last_columns and avg_strips, if they do not
 * fit when addresses are known, and avg_staged. */
extern "C" const pg_cuda_method pg_cuda_avg_rows, pg_cuda_avg_strips, pg_cuda_avg_any;

static inline int64_t element_bytes(const pg_problem &problem) {
  switch (problem.dtype) {
    case ACL_FLOAT16:
    case ACL_BF16:
      return 2;
    case ACL_DOUBLE:
      return 8;
    default:
      return 4;
  }
}

#endif
