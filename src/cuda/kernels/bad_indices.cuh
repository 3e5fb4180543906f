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

/* Called by one thread; value: of the index at bad.position.
 *
 * The lock keeps position and value together.  It lies in the host's memory, where thousands of
 * blocks that ask for it at once take seconds; but the position only falls, so most of them see
 * that theirs is not the first and need no lock, and the others ask ever less often. */
static __device__ __forceinline__ void add_to_report(pg_cuda_report *report, const bad_indices &bad,
                                                     int64_t value) {
  volatile pg_index_report *to = &report->found;
  unsigned nanoseconds = 32;
  atomicAdd((unsigned long long *)&report->found.count, bad.count);
  do {
    if ((int64_t)bad.position >= to->position) return;
    __nanosleep(nanoseconds);
    nanoseconds = nanoseconds < 8192 ? 2 * nanoseconds : nanoseconds;
  } while (atomicCAS(&report->lock, 0, 1) != 0);
  __threadfence_system();
  if ((int64_t)bad.position < to->position) {
    to->position = (int64_t)bad.position;
    to->value = value;
  }
  __threadfence_system();
  atomicExch(&report->lock, 0);
}

#endif
