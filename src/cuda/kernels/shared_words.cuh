/* SPDX-License-Identifier: Apache-2.0 */
/* Words of shared memory by their 32-bit address (shared_address of element.cuh says why): loads of
 * what does not change any more, and stores of 2 to 32 bytes. */
#ifndef PG_CUDA_SHARED_WORDS_CUH_
#define PG_CUDA_SHARED_WORDS_CUH_

#include "cuda/kernels/element.cuh"

static __device__ __forceinline__ float table_element(uint32_t address, float) {
  return __uint_as_float(table_word(address));
}
template <typename E>
static __device__ __forceinline__ E table_element(uint32_t address, E) {
  E e;
  asm("ld.shared.u16 %0, [%1];" : "=h"(e.bits) : "r"(address));
  return e;
}

/* V neighbours of 2 to 16 bytes together, which the address is a multiple of. */
template <typename T, int V>
static __device__ __forceinline__ vector_of<T, V> table_vector(uint32_t address) {
  vector_of<T, V> v;
  if constexpr (sizeof v == 16) {
    uint4 w;
    asm("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
        : "=r"(w.x), "=r"(w.y), "=r"(w.z), "=r"(w.w)
        : "r"(address));
    memcpy(v.of, &w, 16);
  } else if constexpr (sizeof v == 8) {
    const uint2 w = table_words(address);
    memcpy(v.of, &w, 8);
  } else if constexpr (sizeof v == 4) {
    const uint32_t w = table_word(address);
    memcpy(v.of, &w, 4);
  } else {
    v.of[0] = table_element(address, T());
  }
  return v;
}

static __device__ __forceinline__ void store_words(uint32_t address, uint4 w) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(w.x), "r"(w.y),
               "r"(w.z), "r"(w.w)
               : "memory");
}
static __device__ __forceinline__ void store_words(uint32_t address, uint2 w) {
  asm volatile("st.shared.v2.u32 [%0], {%1, %2};" ::"r"(address), "r"(w.x), "r"(w.y) : "memory");
}
static __device__ __forceinline__ void store_words(uint32_t address, uint32_t w) {
  asm volatile("st.shared.u32 [%0], %1;" ::"r"(address), "r"(w) : "memory");
}
static __device__ __forceinline__ void store_words(uint32_t address, uint16_t w) {
  asm volatile("st.shared.u16 [%0], %1;" ::"r"(address), "h"(w) : "memory");
}

/* V neighbours; the address is a multiple of their size, or of 16. */
template <int V, typename T>
static __device__ __forceinline__ void store_shared(uint32_t address, const T *from) {
  constexpr int BYTES = V * (int)sizeof(T);
  if constexpr (BYTES % 16 == 0) {
#pragma unroll
    for (int i = 0; i < BYTES / 16; i++) {
      uint4 words;
      memcpy(&words, (const char *)from + 16 * i, 16);
      store_words(address + 16 * i, words);
    }
  } else if constexpr (BYTES == 8) {
    uint2 words;
    memcpy(&words, from, 8);
    store_words(address, words);
  } else if constexpr (BYTES == 4) {
    uint32_t word;
    memcpy(&word, from, 4);
    store_words(address, word);
  } else {
    static_assert(BYTES == 2, "2, 4, 8 or whole words of 16 bytes");
    uint16_t word;
    memcpy(&word, from, 2);
    store_words(address, word);
  }
}

#endif
