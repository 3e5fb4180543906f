/* SPDX-License-Identifier: Apache-2.0 */
/* Indices that name nothing: blocks collect them, and add what they have found to the report. */
#ifndef PG_CUDA_BAD_INDICES_CUH_
#define PG_CUDA_BAD_INDICES_CUH_

#include "cuda/method_cuda.h"

/* Found so far, in shared memory: how many, and the position of the first. */
struct bad_indices {
  unsigned long long count, position;
};

static __device__ __forceinline__ void clear(bad_indices *bad) {
  bad->count = 0;
  bad->position = INT64_MAX;
}

static __device__ __forceinline__ void note_bad(bad_indices *bad, int64_t position) {
  atomicAdd(&bad->count, 1ull);
  atomicMin(&bad->position, (unsigned long long)position);
}

/* Called by one thread; value: of the index at bad.position. */
static __device__ __forceinline__ void add_to_report(pg_cuda_report *report, const bad_indices &bad,
                                                     int64_t value) {
  while (atomicCAS(&report->lock, 0, 1) != 0) {
  }
  __threadfence_system();
  volatile pg_index_report *to = &report->found;
  to->count = to->count + (int64_t)bad.count;
  if ((int64_t)bad.position < to->position) {
    to->position = (int64_t)bad.position;
    to->value = value;
  }
  __threadfence_system();
  atomicExch(&report->lock, 0);
}

#endif
