/* SPDX-License-Identifier: Apache-2.0 */
/* Shared memory by its 32-bit address, and copies between global and shared memory that go on while
 * threads compute.
 *
 * From sm_90 on a single thread starts a bulk copy of a whole run, and others wait for it at a
 * barrier.  Before, each thread copies 16 bytes at a time into shared memory (cp.async), and runs
 * are written from registers.  Addresses and sizes are multiples of 16 in both cases. */
#ifndef PG_CUDA_ASYNC_COPY_CUH_
#define PG_CUDA_ASYNC_COPY_CUH_

#include <cuda_runtime.h>
#include <stdint.h>

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
static constexpr bool HAS_BULK_COPY = true;
#else
static constexpr bool HAS_BULK_COPY = false;
#endif

/* --- Shared memory --- */

/* The bits of an element, of which only the type is used. */
static __device__ __forceinline__ uint32_t shared_load_bits(uint32_t address, float) {
  uint32_t bits;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(bits) : "r"(address) : "memory");
  return bits;
}
template <typename E>
static __device__ __forceinline__ uint32_t shared_load_bits(uint32_t address, E) {
  uint16_t bits;
  asm volatile("ld.shared.u16 %0, [%1];" : "=h"(bits) : "r"(address) : "memory");
  return bits;
}
static __device__ __forceinline__ uint4 shared_load_16(uint32_t address) {
  uint4 w;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(w.x), "=r"(w.y), "=r"(w.z), "=r"(w.w)
               : "r"(address)
               : "memory");
  return w;
}

/* Stores on a condition: by a predicate, because branches would keep the compiler from scheduling
 * several of these stores together. */
static __device__ __forceinline__ void shared_store_if(bool condition, uint32_t address,
                                                       uint16_t bits) {
  asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; @p st.shared.u16 [%0], %1;}" ::"r"(address),
               "h"(bits), "r"((uint32_t)condition)
               : "memory");
}
static __device__ __forceinline__ void shared_store_if(bool condition, uint32_t address,
                                                       uint32_t bits) {
  asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; @p st.shared.u32 [%0], %1;}" ::"r"(address),
               "r"(bits), "r"((uint32_t)condition)
               : "memory");
}
static __device__ __forceinline__ void shared_store_if(bool condition, uint32_t address, uint2 w) {
  asm volatile(
      "{.reg .pred p; setp.ne.u32 p, %3, 0; @p st.shared.v2.u32 [%0], {%1, %2};}" ::"r"(address),
      "r"(w.x), "r"(w.y), "r"((uint32_t)condition)
      : "memory");
}

/* --- Into shared memory, 16 bytes a thread --- */

static __device__ __forceinline__ void copy_16_in(uint32_t to, const void *from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
/* Waits for those that this thread has started. */
static __device__ __forceinline__ void wait_for_copies_of_16() {
  asm volatile("cp.async.wait_all;" ::: "memory");
}

/* --- Into shared memory, in bulk --- */

/* A barrier has 8 bytes and begins a new phase whenever `copies` bulk copies that were announced to
 * it have arrived.  The parity of a phase's number tells it from the one before. */
static __device__ __forceinline__ void init_barrier(uint32_t barrier, uint32_t copies) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(copies) : "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
static __device__ __forceinline__ void init_two_barriers(uint32_t barriers) {
  init_barrier(barriers, 1);
  init_barrier(barriers + 8, 1);
}
static __device__ __forceinline__ void bulk_copy_in(uint32_t to, const void *from, uint32_t bytes,
                                                    uint32_t barrier) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
  if (bytes == 0) return;
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(to),
      "l"(from), "r"(bytes), "r"(barrier)
      : "memory");
}
static __device__ __forceinline__ void wait_for_bulk_copy_in(uint32_t barrier, uint32_t parity) {
  uint32_t done = 0;
  while (done == 0)
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n"
        "selp.u32 %0, 1, 0, done;\n"
        "}"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
}

/* Prefetches a block's part of memory that all blocks are going to read into the second-level
 * cache, as one bulk read, before writes to gradInput compete with it.  Nothing happens before
 * sm_90, where one instruction prefetches no more than a line. */
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

/* --- Out of shared memory, in bulk --- */

/* Makes this thread's stores to shared memory visible to bulk copies.  After it the block has to
 * synchronise before one thread calls bulk_copy_out. */
static __device__ __forceinline__ void publish_stores() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
/* The second-level cache gives up these bytes first, because nobody is expected to read them soon.
 */
static __device__ __forceinline__ void bulk_copy_out(void *to, uint32_t from, uint32_t bytes) {
  if (bytes == 0) return;
  uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  asm volatile(
      "cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%0], [%1], %2, %3;" ::"l"(to),
      "r"(from), "r"(bytes), "l"(policy)
      : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
/* Waits until the copies that this thread has started have read shared memory, which may then be
 * overwritten. */
static __device__ __forceinline__ void wait_for_bulk_copies_out() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

#endif
