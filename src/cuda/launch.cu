/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/launch.h"

#include <atomic>

#include "cuda/grid.cuh"

enum { DEVICES = 64 };

/* What a device can do does not change: asked once.  Threads that ask at the same time write the
 * same numbers. */
static std::atomic<int64_t> known[DEVICES][3];

static cudaError_t ask(int device, int which, cudaDeviceAttr attribute, int64_t *out) {
  int64_t value = device < DEVICES ? known[device][which].load(std::memory_order_relaxed) : 0;
  if (value == 0) {
    int answer = 0;
    const cudaError_t status = cudaDeviceGetAttribute(&answer, attribute, device);
    if (status != cudaSuccess) return status;
    value = answer;
    if (device < DEVICES) known[device][which].store(value, std::memory_order_relaxed);
  }
  *out = value;
  return cudaSuccess;
}

static cudaError_t limits_of_current(pg_cuda_limits *limits) {
  int device = 0;
  int64_t processors = 0, shared = 0;
  cudaError_t status = cudaGetDevice(&device);
  if (status == cudaSuccess) status = ask(device, 0, cudaDevAttrMultiProcessorCount, &processors);
  if (status == cudaSuccess) status = ask(device, 1, cudaDevAttrL2CacheSize, &limits->cache_bytes);
  if (status == cudaSuccess)
    status = ask(device, 2, cudaDevAttrMaxSharedMemoryPerBlockOptin, &shared);
  limits->processors = (int)processors;
  limits->shared_bytes = shared;
  return status;
}

static cudaError_t launch_kernel(const pg_cuda_call *call) {
  switch (call->step->id) {
    case PG_KERNEL_FILL:
      return pg_cuda_fill(call);
    case PG_KERNEL_SCATTER:
    case PG_KERNEL_RESCATTER:
      return call->step->args.scatter.tiling.interleaved ? pg_cuda_scatter_last(call)
                                                         : pg_cuda_scatter(call);
    case PG_KERNEL_SPREAD:
      return call->step->args.spread.tiling.interleaved ? pg_cuda_spread_last(call)
                                                        : pg_cuda_spread(call);
    case PG_KERNEL_REPEAT:
      return pg_cuda_repeat(call);
    default:
      return cudaErrorInvalidValue;
  }
}

cudaError_t pg_cuda_launch(const struct pg_kernel_step *step, struct pg_cuda_report *report,
                           cudaStream_t stream) {
  if (step->items <= 0) return cudaSuccess;
  pg_cuda_call call = {step, report, {}, stream};
  const cudaError_t status = limits_of_current(&call.limits);
  return status == cudaSuccess ? launch_kernel(&call) : status;
}
