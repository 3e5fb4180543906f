/* SPDX-License-Identifier: Apache-2.0 */
/* What every method's host side needs: its row in the list of methods, and the launch of a grid. */
#ifndef PG_CUDA_CALL_CUH_
#define PG_CUDA_CALL_CUH_

#include <cuda_runtime.h>

#include "cuda/device_cuda.h"
#include "cuda/method_cuda.h"

/* Defines the row pg_cuda_<name>, which methods_cuda.c lists. */
#define PG_CUDA_METHOD(name)                         \
  extern "C" {                                       \
  extern const struct pg_cuda_method pg_cuda_##name; \
  }                                                  \
  const struct pg_cuda_method pg_cuda_##name

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
