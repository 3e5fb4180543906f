/* SPDX-License-Identifier: Apache-2.0 */
/* Elements on the device: how they are read, added and written.
 *
 * FLOAT, FLOAT16 and BF16 are converted to fp32, which is exact, and added in fp32; DOUBLE is added
 * in fp64.  A sum is rounded once, to nearest even, when it is written.  Conversions keep subnormal
 * numbers, infinities and NaNs. */
#ifndef PG_CUDA_ELEMENT_CUH_
#define PG_CUDA_ELEMENT_CUH_

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <stdint.h>

struct pg_f16 {
  uint16_t bits;
};

struct pg_bf16 {
  uint16_t bits;
};

/* The type in which elements are added. */
template <typename E>
struct sum_of {
  typedef float type;
};
template <>
struct sum_of<double> {
  typedef double type;
};

static __device__ __forceinline__ float widened(float e) { return e; }
static __device__ __forceinline__ double widened(double e) { return e; }
static __device__ __forceinline__ float widened(pg_f16 e) {
  return __half2float(__ushort_as_half(e.bits));
}
static __device__ __forceinline__ float widened(pg_bf16 e) {
  return __uint_as_float((uint32_t)e.bits << 16);
}

/* Rounds a sum and writes it. */
static __device__ __forceinline__ void put(float *to, float sum) { *to = sum; }
static __device__ __forceinline__ void put(double *to, double sum) { *to = sum; }
static __device__ __forceinline__ void put(pg_f16 *to, float sum) {
  to->bits = __half_as_ushort(__float2half_rn(sum));
}
static __device__ __forceinline__ void put(pg_bf16 *to, float sum) {
  to->bits = __bfloat16_as_ushort(__float2bfloat16_rn(sum));
}

/* Two rounded sums in one word, the first in its low half. */
static __device__ __forceinline__ uint32_t packed(pg_f16, float a, float b) {
  const __half2 two = __floats2half2_rn(a, b);
  return (uint32_t)__half_as_ushort(__high2half(two)) << 16 | __half_as_ushort(__low2half(two));
}
static __device__ __forceinline__ uint32_t packed(pg_bf16, float a, float b) {
  const __nv_bfloat162 two = __floats2bfloat162_rn(a, b);
  return (uint32_t)__bfloat16_as_ushort(__high2bfloat16(two)) << 16 |
         __bfloat16_as_ushort(__low2bfloat16(two));
}

/* Writes a group, which is 16 bytes of gradInput.  Large writes to it are streaming stores: the
 * second-level cache gives up their lines first and so keeps the outputs, which are read again. */
static __device__ __forceinline__ void put_words(void *to, uint4 words) {
  __stcs((uint4 *)to, words);
}

/* Rounds and writes as many sums as make a group, to an address that is a multiple of 16. */
static __device__ __forceinline__ void put_16(float *to, const float *sum) {
  put_words(to, make_uint4(__float_as_uint(sum[0]), __float_as_uint(sum[1]),
                           __float_as_uint(sum[2]), __float_as_uint(sum[3])));
}
template <typename E>
static __device__ __forceinline__ void put_16(E *to, const float *sum) {
  const E half = {};
  put_words(to, make_uint4(packed(half, sum[0], sum[1]), packed(half, sum[2], sum[3]),
                           packed(half, sum[4], sum[5]), packed(half, sum[6], sum[7])));
}

/* Floats in shared memory by their 32-bit address.  With pointers the compiler would compute the
 * address anew in every basic block on sm_90; the asm makes it keep the address in a register. */
static __device__ __forceinline__ uint32_t shared_address(const void *shared) {
  uint32_t kept;
  asm volatile("mov.u32 %0, %1;" : "=r"(kept) : "r"((uint32_t)__cvta_generic_to_shared(shared)));
  return kept;
}
static __device__ __forceinline__ float shared_load(uint32_t address) {
  float value;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(address) : "memory");
  return value;
}
static __device__ __forceinline__ void shared_store(uint32_t address, float value) {
  asm volatile("st.shared.f32 [%0], %1;" ::"r"(address), "f"(value) : "memory");
}

/* The same for four floats at a multiple of 16 bytes. */
static __device__ __forceinline__ float4 shared_load_4(uint32_t address) {
  float4 v;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "r"(address)
               : "memory");
  return v;
}
static __device__ __forceinline__ void shared_store_4(uint32_t address, float4 v) {
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(address), "f"(v.x), "f"(v.y),
               "f"(v.z), "f"(v.w)
               : "memory");
}

/* Words of tables that do not change any more: the compiler may load them when it likes, once the
 * address is known, which must come from a shared_address behind the barrier. */
static __device__ __forceinline__ uint32_t table_word(uint32_t address) {
  uint32_t value;
  asm("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(address));
  return value;
}
static __device__ __forceinline__ uint2 table_words(uint32_t address) {
  uint2 v;
  asm("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "r"(address));
  return v;
}

/* The same word as an integer. */
static __device__ __forceinline__ uint32_t shared_bits(uint32_t address) {
  return __float_as_uint(shared_load(address));
}

/* V neighbouring elements that are loaded at once, from an address that is a multiple of ALIGNED.
 */
template <typename T, int V>
struct vector_of {
  static constexpr int BYTES = V * (int)sizeof(T);
  static constexpr int ALIGNED = BYTES > 16 ? 16 : BYTES;
  T of[V];

  __device__ __forceinline__ void load(const T *from) {
    if constexpr (BYTES >= 16) {
#pragma unroll
      for (int i = 0; i < BYTES / 16; i++) {
        const uint4 words = __ldg((const uint4 *)from + i);
        memcpy((char *)of + i * 16, &words, 16);
      }
    } else if constexpr (BYTES == 8) {
      const uint2 words = __ldg((const uint2 *)from);
      memcpy(of, &words, 8);
    } else if constexpr (BYTES == 4 && V > 1) {
      const uint32_t word = __ldg((const uint32_t *)from);
      memcpy(of, &word, 4);
    } else {
      static_assert(V == 1, "a vector has 4 or 8 bytes or whole words of 16");
      of[0] = *from;
    }
  }
};

/* Rounds and writes V sums at once: 16, 8 or 4 bytes or one element, aligned to that. */
template <int V, typename E, typename S>
static __device__ __forceinline__ void put_vector(E *to, const S *sum) {
  E of[V];
#pragma unroll
  for (int i = 0; i < V; i++) put(&of[i], sum[i]);
  if constexpr (sizeof of == 16) {
    uint4 words;
    memcpy(&words, of, 16);
    put_words(to, words);
  } else if constexpr (sizeof of == 8 && V > 1) {
    uint2 words;
    memcpy(&words, of, 8);
    __stcs((uint2 *)to, words);
  } else if constexpr (sizeof of == 4 && V > 1) {
    uint32_t word;
    memcpy(&word, of, 4);
    __stcs((uint32_t *)to, word);
  } else {
    static_assert(V == 1, "a vector has 4, 8 or 16 bytes");
    *to = of[0];
  }
}

#endif
