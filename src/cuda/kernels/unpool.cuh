/* SPDX-License-Identifier: Apache-2.0 */
/* What the methods of PG_UNPOOL share. */
#ifndef PG_CUDA_UNPOOL_CUH_
#define PG_CUDA_UNPOOL_CUH_

#include "cuda/kernels/bad_indices.cuh"
#include "cuda/kernels/tensor_grid.cuh"

struct unpool_job {
  pg_unpool a;
  pg_cuda_report *report;
  int bytes; /* of an element */
};

static inline unpool_job unpool_job_of(const pg_cuda_call *call) {
  unpool_job j = {};
  j.a = call->task->problem.args.unpool;
  j.report = call->report;
  j.bytes = element_bytes(j.a.dtype);
  return j;
}

static __device__ __forceinline__ int64_t index_at(const unpool_job &j, int64_t position) {
  return load_one<int64_t>((void *)j.a.index, j.a.index_dtype, position);
}

/* Called by one thread with what its block has found. */
static __device__ __forceinline__ void report(const unpool_job &j, const bad_indices &bad) {
  if (bad.count != 0 && j.report != nullptr)
    add_to_report(j.report, bad, index_at(j, (int64_t)bad.position));
}

#endif
