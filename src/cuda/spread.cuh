/* SPDX-License-Identifier: Apache-2.0 */
/* What both kernels of SPREAD know of a call. */
#ifndef PG_CUDA_SPREAD_CUH_
#define PG_CUDA_SPREAD_CUH_

#include "cuda/box.cuh"
#include "cuda/cell.cuh"
#include "cuda/grid.cuh"

struct spread_job {
  const void *grad;
  void *in;
  pg_strides grad_at, in_at;
  pg_pooling pool;
  pg_tiling tiling;
  int64_t items;
  int64_t divisor; /* 0: the cells a window counts */
  bool count_include_pad, stream;
  bool narrow; /* what follows holds */
  bool flat_in;
  pg_axis_32 d, h, w;
  pg_items cut;
  uint32_t cells;    /* of a plane */
  int32_t grad_step; /* from an output to the next one along W */
  pg_divider by_c, by_w, by_h;
};

static inline spread_job spread_job_of(const pg_cuda_call *call, int64_t element_bytes) {
  const pg_avg_backward &a = call->task->problem.args.avg_backward;
  const pg_choice &choice = call->task->choice;
  const pg_pooling &p = a.pool;
  spread_job j = {};
  j.grad = a.grad_out;
  j.in = a.grad_in;
  j.grad_at = a.out_strides;
  j.in_at = a.in_strides;
  j.pool = p;
  j.tiling = choice.tiling;
  j.items = choice.items;
  j.divisor = a.divisor;
  j.count_include_pad = a.count_include_pad;
  j.stream = prefers_stream(call, p.n * p.c * p.d.in * p.h.in * p.w.in * element_bytes);
  j.narrow = fits_32_bits(p);
  if (!j.narrow) return j;
  j.flat_in = is_flat(j.in_at, p.d.in, p.h.in, p.w.in, p.c, p.n);
  j.d = axis_32(p.d);
  j.h = axis_32(p.h);
  j.w = axis_32(p.w);
  j.cut = items_of(choice.tiling, p);
  const int64_t step = j.grad_at.of[PG_W];
  j.narrow = step >= 0 && step < (int64_t)1 << 31 && step * p.w.out < (int64_t)1 << 31;
  j.grad_step = (int32_t)step;
  j.cells = (uint32_t)(p.d.in * p.h.in * p.w.in);
  j.by_c = divider_of(p.c);
  j.by_w = divider_of(p.w.in);
  j.by_h = divider_of(p.h.in);
  return j;
}

/* The largest divisor, or INT64_MAX for those that fp32 may not hold. */
static inline int64_t most_divisor(const spread_job &j) {
  const pg_axis *axes[] = {&j.pool.d, &j.pool.h, &j.pool.w};
  const int64_t most_held = 1 << 24;
  int64_t most = 1;
  if (j.divisor != 0) return 1; /* one number, rounded once */
  for (const pg_axis *axis : axes) {
    const int64_t length = axis->kernel == 0 ? axis->in : axis->kernel;
    if (length > most_held || most * length > most_held) return INT64_MAX;
    most *= length;
  }
  return most;
}

/* Calls fn, which says whether it took the task, with the element type if that is summed in fp32.
 */
template <typename F>
static bool try_spread_type(const pg_task *task, F fn) {
  switch (task->problem.dtype) {
    case ACL_FLOAT16:
      return fn(pg_f16());
    case ACL_BF16:
      return fn(pg_bf16());
    case ACL_FLOAT:
      return fn(float());
    default:
      return false;
  }
}

/* Calls fn with the element type of the task. */
template <typename F>
static cudaError_t with_spread_type(const pg_task *task, F fn) {
  switch (task->problem.dtype) {
    case ACL_FLOAT16:
      return fn(pg_f16());
    case ACL_BF16:
      return fn(pg_bf16());
    case ACL_DOUBLE:
      return fn(double());
    default:
      return fn(float());
  }
}

#endif
