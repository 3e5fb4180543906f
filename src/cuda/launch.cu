/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/launch.h"

#include <atomic>

#include "cuda/choose_cuda.h"
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

static cudaError_t scatter(const pg_cuda_call *call) {
  return call->task->choice.tiling.interleaved ? pg_cuda_scatter_last(call) : pg_cuda_scatter(call);
}

/* Where planes are cut, flags say which items a stray points into; those are computed again. */
static cudaError_t max_backward(pg_cuda_call *call) {
  const int64_t bytes = call->task->choice.workspace_bytes;
  if (bytes == 0) return scatter(call);
  cudaError_t status =
      cudaMemsetAsync(call->task->problem.args.max_backward.flags, 0, (size_t)bytes, call->stream);
  if (status == cudaSuccess) status = scatter(call);
  if (status != cudaSuccess) return status;
  call->again = true;
  call->report = nullptr;
  return scatter(call);
}

static cudaError_t avg_backward(const pg_cuda_call *call) {
  const pg_choice &choice = call->task->choice;
  if (choice.method == pg_cuda_one_window) return pg_cuda_repeat(call);
  return choice.tiling.interleaved ? pg_cuda_spread_last(call) : pg_cuda_spread(call);
}

cudaError_t pg_cuda_launch(const struct pg_task *task, struct pg_cuda_report *report,
                           cudaStream_t stream) {
  if (task->choice.items <= 0) return cudaSuccess;
  pg_cuda_call call = {task, false, report, {}, stream};
  const cudaError_t status = limits_of_current(&call.limits);
  if (status != cudaSuccess) return status;
  switch (task->problem.kernel) {
    case PG_FILL:
      return pg_cuda_fill(&call);
    case PG_MAX_BACKWARD:
      return max_backward(&call);
    case PG_AVG_BACKWARD:
      return avg_backward(&call);
    default:
      return cudaErrorInvalidValue;
  }
}
