/* SPDX-License-Identifier: Apache-2.0 */
/* From the type of a call's elements, which is known at run time, to a kernel compiled for it. */
#ifndef PG_CUDA_WITH_TYPE_CUH_
#define PG_CUDA_WITH_TYPE_CUH_

#include "cuda/call.cuh"
#include "cuda/kernels/element.cuh"

/* Calls fn with an element of the call's type, which is FLOAT, FLOAT16 or BF16. */
template <typename F>
static cudaError_t with_fp32_type(const pg_cuda_call *call, F fn) {
  switch (call->task->problem.dtype) {
    case ACL_FLOAT16:
      return fn(pg_f16());
    case ACL_BF16:
      return fn(pg_bf16());
    default:
      return fn(float());
  }
}

/* The same for methods that take DOUBLE as well. */
template <typename F>
static cudaError_t with_float_type(const pg_cuda_call *call, F fn) {
  if (call->task->problem.dtype == ACL_DOUBLE) return fn(double());
  return with_fp32_type(call, fn);
}

/* The same for maxima, which integers have too. */
template <typename F>
static cudaError_t with_number_type(const pg_cuda_call *call, F fn) {
  switch (call->task->problem.dtype) {
    case ACL_INT8:
      return fn(int8_t());
    case ACL_UINT8:
      return fn(uint8_t());
    case ACL_INT16:
      return fn(int16_t());
    case ACL_UINT16:
      return fn(uint16_t());
    case ACL_INT32:
      return fn(int32_t());
    case ACL_INT64:
      return fn(int64_t());
    default:
      return with_float_type(call, fn);
  }
}

#endif
