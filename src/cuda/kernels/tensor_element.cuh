/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of tensors that may have any type, and each tensor its own.
 *
 * A kernel computes in the type of its class: float, double or int64_t.  It is compiled for each
 * class and not for each type: which type an element has is asked when it is loaded and stored, and
 * all threads of a grid get the same answer.  Several elements are loaded behind one question, so
 * that the loads are on their way together. */
#ifndef PG_CUDA_TENSOR_ELEMENT_CUH_
#define PG_CUDA_TENSOR_ELEMENT_CUH_

#include "cuda/kernels/element.cuh"
#include "kernels/functions.h"
#include "kernels/kernels.h"

struct pg_boolean {
  uint8_t byte;
};

static inline int element_bytes(aclDataType dtype) {
  switch (dtype) {
    case ACL_DOUBLE:
    case ACL_INT64:
    case ACL_UINT64:
      return 8;
    case ACL_FLOAT:
    case ACL_INT32:
    case ACL_UINT32:
      return 4;
    case ACL_FLOAT16:
    case ACL_BF16:
    case ACL_INT16:
    case ACL_UINT16:
      return 2;
    default:
      return 1;
  }
}

/* The type of integers that are moved in place of elements of so many bytes. */
static inline aclDataType bits_of(aclDataType dtype) {
  const int bytes = element_bytes(dtype);
  return bytes == 8 ? ACL_INT64 : bytes == 4 ? ACL_INT32 : bytes == 2 ? ACL_INT16 : ACL_INT8;
}

/* --- From one class to another --- */

/* As pg_integer_of_double; a float needs no double for it. */
static __host__ __device__ __forceinline__ int64_t integer_of(float a) {
  if (a >= 0x1p63f) return INT64_MAX;
  if (a < -0x1p63f) return INT64_MIN;
  return a == a ? (int64_t)a : 0;
}
static __host__ __device__ __forceinline__ int64_t integer_of(double a) {
  return pg_integer_of_double(a);
}
static __host__ __device__ __forceinline__ int64_t integer_of(int64_t a) { return a; }

/* x in the class of T. */
template <typename T, typename S>
static __host__ __device__ __forceinline__ T converted(S x) {
  return (T)x;
}
template <>
__host__ __device__ __forceinline__ int64_t converted<int64_t, float>(float x) {
  return integer_of(x);
}
template <>
__host__ __device__ __forceinline__ int64_t converted<int64_t, double>(double x) {
  return integer_of(x);
}

/* --- Between elements and numbers --- */

/* The number that an element is, in the first class that holds it. */
static __device__ __forceinline__ float number(float e) { return e; }
static __device__ __forceinline__ float number(pg_f16 e) { return widened(e); }
static __device__ __forceinline__ float number(pg_bf16 e) { return widened(e); }
static __device__ __forceinline__ double number(double e) { return e; }
static __device__ __forceinline__ int64_t number(pg_boolean e) { return e.byte != 0; }
template <typename E>
static __device__ __forceinline__ int64_t number(E e) {
  return (int64_t)e;
}

/* The element that a number becomes. */
template <typename T>
static __device__ __forceinline__ void set_element(float *to, T x) {
  *to = (float)x;
}
template <typename T>
static __device__ __forceinline__ void set_element(double *to, T x) {
  *to = (double)x;
}
template <typename T>
static __device__ __forceinline__ void set_element(pg_f16 *to, T x) {
  put(to, (float)x);
}
template <typename T>
static __device__ __forceinline__ void set_element(pg_bf16 *to, T x) {
  put(to, (float)x);
}
template <typename T>
static __device__ __forceinline__ void set_element(pg_boolean *to, T x) {
  to->byte = x != 0;
}
template <typename E, typename T>
static __device__ __forceinline__ void set_element(E *to, T x) {
  *to = (E)(uint64_t)integer_of(x);
}

/* Calls fn with a pointer to elements of this type. */
template <typename M, typename F>
static __device__ __forceinline__ void with_elements(M *memory, aclDataType dtype, F fn) {
  switch (dtype) {
    case ACL_FLOAT:
      return fn((float *)memory);
    case ACL_FLOAT16:
      return fn((pg_f16 *)memory);
    case ACL_BF16:
      return fn((pg_bf16 *)memory);
    case ACL_DOUBLE:
      return fn((double *)memory);
    case ACL_INT8:
      return fn((int8_t *)memory);
    case ACL_UINT8:
      return fn((uint8_t *)memory);
    case ACL_INT16:
      return fn((int16_t *)memory);
    case ACL_UINT16:
      return fn((uint16_t *)memory);
    case ACL_INT32:
      return fn((int32_t *)memory);
    case ACL_UINT32:
      return fn((uint32_t *)memory);
    case ACL_INT64:
      return fn((int64_t *)memory);
    case ACL_UINT64:
      return fn((uint64_t *)memory);
    default: /* ACL_BOOL */
      return fn((pg_boolean *)memory);
  }
}

/* --- Some elements, by their offsets --- */

template <int K, typename T>
static __device__ __forceinline__ void load_some(T (&to)[K], void *memory, aclDataType dtype,
                                                 const int64_t (&at)[K]) {
  with_elements(memory, dtype, [&](auto *from) {
    auto e = [&](int k) { return from[at[k]]; };
    decltype(e(0)) of[K];
#pragma unroll
    for (int k = 0; k < K; k++) of[k] = e(k);
#pragma unroll
    for (int k = 0; k < K; k++) to[k] = converted<T>(number(of[k]));
  });
}

/* The first `count` of them; at least one. */
template <int K, typename T>
static __device__ __forceinline__ void store_some(void *memory, aclDataType dtype,
                                                  const int64_t (&at)[K], const T (&x)[K],
                                                  int count) {
  with_elements(memory, dtype, [&](auto *to) {
#pragma unroll
    for (int k = 0; k < K; k++)
      if (k < count) set_element(to + at[k], x[k]);
  });
}

template <typename T>
static __device__ __forceinline__ T load_one(void *memory, aclDataType dtype, int64_t at) {
  const int64_t offset[1] = {at};
  T x[1];
  load_some(x, memory, dtype, offset);
  return x[0];
}

template <typename T>
static __device__ __forceinline__ void store_one(void *memory, aclDataType dtype, int64_t at, T x) {
  const int64_t offset[1] = {at};
  const T of[1] = {x};
  store_some(memory, dtype, offset, of, 1);
}

/* Calls fn with a number of the class. */
template <typename F>
static cudaError_t with_class(pg_class c, F fn) {
  if (c == PG_CLASS_FLOAT) return fn(float());
  return c == PG_CLASS_DOUBLE ? fn(double()) : fn(int64_t());
}

/* --- Moving elements as they are --- */

/* Calls fn with pointers to integers of the elements' size. */
template <typename F>
static __device__ __forceinline__ void with_bits(void *to, const void *from, int bytes, F fn) {
  if (bytes == 8)
    fn((uint64_t *)to, (const uint64_t *)from);
  else if (bytes == 4)
    fn((uint32_t *)to, (const uint32_t *)from);
  else if (bytes == 2)
    fn((uint16_t *)to, (const uint16_t *)from);
  else
    fn((uint8_t *)to, (const uint8_t *)from);
}

#endif
