/* SPDX-License-Identifier: Apache-2.0 */
/* From a task to a grid: what every launch needs, and the launches, one a kernel. */
#ifndef PG_CUDA_GRID_CUH_
#define PG_CUDA_GRID_CUH_

#include <cuda_runtime.h>

#include "cuda/launch.h"

struct pg_cuda_limits {
  int processors;
  int64_t cache_bytes;  /* level 2 */
  int64_t shared_bytes; /* the most a block may have */
};

/* A task on its way to the device: `again` computes the items of a max-backward anew that have a
 * flag. */
struct pg_cuda_call {
  const pg_task *task;
  bool again;
  pg_cuda_report *report;
  pg_cuda_limits limits;
  cudaStream_t stream;
};

cudaError_t pg_cuda_fill(const pg_cuda_call *call);
cudaError_t pg_cuda_scatter(const pg_cuda_call *call);
bool pg_cuda_try_gather(const pg_cuda_call *call, cudaError_t *status);
cudaError_t pg_cuda_scatter_last(const pg_cuda_call *call); /* interleaved, or beyond 32 bits */
cudaError_t pg_cuda_spread(const pg_cuda_call *call);
cudaError_t pg_cuda_spread_last(const pg_cuda_call *call); /* interleaved */
cudaError_t pg_cuda_spread_any(const pg_cuda_call *call);  /* what neither takes */
/* False, and nothing launched, unless windows tile the plane. */
bool pg_cuda_try_spread_apart(const pg_cuda_call *call, cudaError_t *status);
/* Likewise, unless they are 3 by 3 cells and slide by 1 or 2. */
bool pg_cuda_try_spread_march(const pg_cuda_call *call, cudaError_t *status);
/* Likewise, unless a cell lies in one or two windows along each axis, and planes are many. */
bool pg_cuda_try_spread_pairs(const pg_cuda_call *call, cudaError_t *status);
/* Likewise, unless rows of gradInput follow each other. */
bool pg_cuda_try_spread_rows(const pg_cuda_call *call, cudaError_t *status);
cudaError_t pg_cuda_repeat(const pg_cuda_call *call);

/* Is gradInput so large that nobody will find it in the cache? */
static inline bool prefers_stream(const pg_cuda_call *call, int64_t bytes) {
  return bytes > call->limits.cache_bytes / 2;
}

template <typename... P, typename... A>
static cudaError_t launch(const pg_cuda_call *call, void (*kernel)(P...), int64_t blocks,
                          int threads, int64_t shared_bytes, const A &...args) {
  enum { ALWAYS_THERE = 48 * 1024 };
  if (blocks <= 0) return cudaSuccess;
  if (blocks > INT32_MAX) return cudaErrorInvalidConfiguration; /* of 16 KiB each: 32 TiB */
  if (shared_bytes > ALWAYS_THERE) {
    const cudaError_t status = cudaFuncSetAttribute(
        (const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared_bytes);
    if (status != cudaSuccess) return status;
  }
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3((unsigned)blocks);
  config.blockDim = dim3((unsigned)threads);
  config.dynamicSmemBytes = (size_t)shared_bytes;
  config.stream = call->stream;
  return cudaLaunchKernelEx(&config, kernel, args...);
}

#endif
