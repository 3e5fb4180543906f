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

/* The type itself.  A parameter of this type is not deduced from its argument, which may be of any
 * type that converts. */
template <typename T>
struct exactly {
  typedef T type;
};

/* Arguments are passed on by their addresses: jobs have up to a kilobyte, which the driver copies
 * anyway. */
template <typename... P>
static cudaError_t launch(const pg_cuda_call *call, void (*kernel)(P...), int64_t blocks,
                          int threads, int64_t shared_bytes,
                          const typename exactly<P>::type &...args) {
  if (blocks <= 0) return cudaSuccess;
  if (blocks > INT32_MAX) return cudaErrorInvalidConfiguration; /* of 16 KiB each: 32 TiB */
  const pg_cuda_grid grid = {(uint32_t)blocks, (uint32_t)threads, (uint32_t)shared_bytes,
                             call->stream};
  const void *arguments[] = {&args...};
  return pg_cuda_launch_kernel((const void *)kernel, &grid, (void **)arguments);
}

#endif
