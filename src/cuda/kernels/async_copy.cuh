/* SPDX-License-Identifier: Apache-2.0 */
/* Shared memory by its address, and runs that are copied into it and out of it while threads do
 * something else. */
#ifndef PG_CUDA_BULK_CUH_
#define PG_CUDA_BULK_CUH_

#include <cuda_runtime.h>
#include <stdint.h>

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
static constexpr bool BULK = true; /* one thread sends a run */
#else
static constexpr bool BULK = false; /* each thread sends 16 bytes at a time */
#endif

/* --- Shared memory --- */

static __device__ __forceinline__ uint32_t shared_read(uint32_t address, float) {
  uint32_t bits;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(bits) : "r"(address) : "memory");
  return bits;
}
template <typename E>
static __device__ __forceinline__ uint32_t shared_read(uint32_t address, E) {
  uint16_t bits;
  asm volatile("ld.shared.u16 %0, [%1];" : "=h"(bits) : "r"(address) : "memory");
  return bits;
}
static __device__ __forceinline__ uint4 shared_read_16(uint32_t address) {
  uint4 w;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(w.x), "=r"(w.y), "=r"(w.z), "=r"(w.w)
               : "r"(address)
               : "memory");
  return w;
}
/* A branch around each of several writes would keep them apart. */
static __device__ __forceinline__ void shared_write(uint32_t address, uint16_t bits, bool if_so) {
  asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; @p st.shared.u16 [%0], %1;}" ::"r"(address),
               "h"(bits), "r"((uint32_t)if_so)
               : "memory");
}
static __device__ __forceinline__ void shared_write(uint32_t address, uint32_t bits, bool if_so) {
  asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; @p st.shared.u32 [%0], %1;}" ::"r"(address),
               "r"(bits), "r"((uint32_t)if_so)
               : "memory");
}
static __device__ __forceinline__ void shared_write(uint32_t address, uint2 w, bool if_so) {
  asm volatile(
      "{.reg .pred p; setp.ne.u32 p, %3, 0; @p st.shared.v2.u32 [%0], {%1, %2};}" ::"r"(address),
      "r"(w.x), "r"(w.y), "r"((uint32_t)if_so)
      : "memory");
}

/* --- Copies on their way --- */

static __device__ __forceinline__ void send_16(uint32_t to, const void *from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
static __device__ __forceinline__ void wait_for_16s() {
  asm volatile("cp.async.wait_all;" ::: "memory");
}

/* A gate opens when what was sent through it is there: once for each run. */
static __device__ __forceinline__ void make_gates(uint32_t two) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(two) : "memory");
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(two + 8) : "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
static __device__ __forceinline__ void send_in(uint32_t to, const void *from, uint32_t bytes,
                                               uint32_t gate) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(gate), "r"(bytes)
               : "memory");
  if (bytes == 0) return;
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(to),
      "l"(from), "r"(bytes), "r"(gate)
      : "memory");
}
static __device__ __forceinline__ void wait_at(uint32_t gate, uint32_t parity) {
  uint32_t open = 0;
  while (open == 0)
    asm volatile(
        "{\n"
        ".reg .pred open;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 open, [%1], %2;\n"
        "selp.u32 %0, 1, 0, open;\n"
        "}"
        : "=r"(open)
        : "r"(gate), "r"(parity)
        : "memory");
}

/* A block's part of memory that all blocks are going to read, into the second-level cache, before
 * the writes that would come between. */
static __device__ __forceinline__ void call_for_part(const void *from, int64_t bytes, uint32_t part,
                                                     uint32_t parts) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  enum { LINE = 128 };
  const uintptr_t first = ((uintptr_t)from + LINE - 1) / LINE * LINE;
  const int64_t lines = ((int64_t)((uintptr_t)from - first) + bytes) / LINE;
  const int64_t each = (lines + parts - 1) / parts, begin = each * part;
  const int64_t count = begin < lines ? (each < lines - begin ? each : lines - begin) : 0;
  if (count > 0)
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(first + begin * LINE),
                 "r"((uint32_t)(count * LINE))
                 : "memory");
#endif
}

/* What threads have written and all have waited for may be sent out. */
static __device__ __forceinline__ void show_written() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
/* Nobody is expected to look for it in the cache. */
static __device__ __forceinline__ void send_out(void *to, uint32_t from, uint32_t bytes) {
  if (bytes == 0) return;
  uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  asm volatile(
      "cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%0], [%1], %2, %3;" ::"l"(to),
      "r"(from), "r"(bytes), "l"(policy)
      : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
/* Until what this thread has sent out is no longer needed here. */
static __device__ __forceinline__ void wait_for_out() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

#endif
