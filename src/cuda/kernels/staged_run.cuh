/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of contiguous elements, and their copies in shared memory.
 *
 * A copy begins at the same distance from a multiple of RUN_ALIGNMENT as the run does, so that
 * whole groups of 16 bytes of one are whole groups of the other.  These are copied while threads
 * compute; the few elements before and behind them are copied one by one. */
#ifndef PG_CUDA_STAGED_RUN_CUH_
#define PG_CUDA_STAGED_RUN_CUH_

#include <type_traits>

#include "cuda/kernels/async_copy.cuh"
#include "cuda/kernels/element.cuh"

enum { RUN_ALIGNMENT = 128 /* of buffers for copies, in bytes: a line of the cache */ };

template <typename E>
using bits_of_element = typename std::conditional<sizeof(E) == 4, uint32_t, uint16_t>::type;

/* Elements in global memory. */
template <typename E>
struct staged_run {
  E *at;
  uint32_t bytes;

  /* The address of the copy in a buffer, which has to have RUN_ALIGNMENT - 1 bytes to spare. */
  __device__ __forceinline__ uint32_t place_in(uint32_t buffer) const {
    return buffer + (uint32_t)(uintptr_t)at % RUN_ALIGNMENT;
  }
  /* The whole groups are bytes [head, tail) of the run. */
  __device__ __forceinline__ uint32_t head() const {
    return min(bytes, -(uint32_t)(uintptr_t)at % 16);
  }
  __device__ __forceinline__ uint32_t tail() const { return head() + (bytes - head()) / 16 * 16; }

  /* Calls group(byte) for each of them; threads share them out. */
  template <typename F>
  __device__ __forceinline__ void for_groups(F group) const {
#pragma unroll 4
    for (uint32_t i = head() + 16 * threadIdx.x; i < tail(); i += 16 * blockDim.x) group(i);
  }
  /* Calls element(byte) for each element that is in none of them. */
  template <typename F>
  __device__ __forceinline__ void for_ends(F element) const {
    if (threadIdx.x >= 16 / sizeof(E)) return;
    const uint32_t i = threadIdx.x * (uint32_t)sizeof(E);
    if (i < head()) element(i);
    if (i < bytes - tail()) element(tail() + i);
  }
};

/* All threads of a block start to load a run into a buffer.  It is there when they have waited, at
 * the barrier if there are bulk copies, and synchronised. */
template <typename E>
static __device__ __forceinline__ void load_run(const staged_run<const E> &run, uint32_t buffer,
                                                uint32_t barrier) {
  const uint32_t to = run.place_in(buffer), head = run.head();
  const char *from = (const char *)run.at;
  if (!HAS_BULK_COPY) run.for_groups([&](uint32_t i) { copy_16_in(to + i, from + i); });
  if (HAS_BULK_COPY && threadIdx.x == 0)
    bulk_copy_in(to + head, from + head, run.tail() - head, barrier);
  run.for_ends([&](uint32_t i) {
    shared_store_if(true, to + i, __ldg((const bits_of_element<E> *)(from + i)));
  });
}

/* All threads of a block start to write a run whose copy is complete. */
template <typename E>
static __device__ __forceinline__ void write_run(const staged_run<E> &run, uint32_t buffer) {
  const uint32_t from = run.place_in(buffer), head = run.head();
  char *to = (char *)run.at;
  if (!HAS_BULK_COPY)
    run.for_groups([&](uint32_t i) { put_words(to + i, shared_load_16(from + i)); });
  if (HAS_BULK_COPY && threadIdx.x == 0) bulk_copy_out(to + head, from + head, run.tail() - head);
  run.for_ends([&](uint32_t i) {
    *(bits_of_element<E> *)(to + i) = (bits_of_element<E>)shared_load_bits(from + i, E());
  });
}

/* Runs that are the same distance apart, in global memory and in the scratch, where each begins at
 * the same distance from a multiple of 16 bytes. */
template <typename E>
struct staged_runs {
  E *at;
  uint32_t bytes, distance; /* of a run; from one to the next in global memory */
  uint32_t staged, pitch;   /* the first in the scratch, and from one to the next there */
  uint32_t count;

  __device__ __forceinline__ staged_run<E> run(uint32_t i) const {
    return {(E *)((char *)at + (uint64_t)i * distance), bytes};
  }
  /* Calls element(run, its place, byte) for elements outside of whole groups of 16 bytes. */
  template <typename F>
  __device__ __forceinline__ void for_ends(F element) const {
    enum { ENDS = 16 / sizeof(E) };
#pragma unroll 1
    for (uint32_t i = threadIdx.x; i < count * ENDS; i += blockDim.x) {
      const staged_run<E> r = run(i / ENDS);
      const uint32_t place = staged + i / ENDS * pitch, byte = i % ENDS * (uint32_t)sizeof(E);
      if (byte < r.head()) element(r, place, byte);
      if (byte < r.bytes - r.tail()) element(r, place, r.tail() + byte);
    }
  }
};

/* All threads of a block start to load runs, of which the barrier counts each. */
template <typename E>
static __device__ __forceinline__ void load_runs(const staged_runs<const E> &runs,
                                                 uint32_t barrier) {
  if (HAS_BULK_COPY) {
#pragma unroll 1
    for (uint32_t i = threadIdx.x; i < runs.count; i += blockDim.x) {
      const staged_run<const E> r = runs.run(i);
      const uint32_t head = r.head();
      bulk_copy_in(runs.staged + i * runs.pitch + head, (const char *)r.at + head, r.tail() - head,
                   barrier);
    }
  } else {
#pragma unroll 1
    for (uint32_t i = 0; i < runs.count; i++) {
      const staged_run<const E> r = runs.run(i);
      const uint32_t to = runs.staged + i * runs.pitch;
      r.for_groups([&](uint32_t byte) { copy_16_in(to + byte, (const char *)r.at + byte); });
    }
  }
  runs.for_ends([](const staged_run<const E> &r, uint32_t place, uint32_t byte) {
    shared_store_if(true, place + byte,
                    __ldg((const bits_of_element<E> *)((const char *)r.at + byte)));
  });
}

/* All threads of a block start to write runs that are complete. */
template <typename E>
static __device__ __forceinline__ void write_runs(const staged_runs<E> &runs) {
  if (HAS_BULK_COPY) {
#pragma unroll 1
    for (uint32_t i = threadIdx.x; i < runs.count; i += blockDim.x) {
      const staged_run<E> r = runs.run(i);
      const uint32_t head = r.head();
      bulk_copy_out((char *)r.at + head, runs.staged + i * runs.pitch + head, r.tail() - head);
    }
  } else {
#pragma unroll 1
    for (uint32_t i = 0; i < runs.count; i++) {
      const staged_run<E> r = runs.run(i);
      const uint32_t from = runs.staged + i * runs.pitch;
      r.for_groups(
          [&](uint32_t byte) { put_words((char *)r.at + byte, shared_load_16(from + byte)); });
    }
  }
  runs.for_ends([](const staged_run<E> &r, uint32_t place, uint32_t byte) {
    *(bits_of_element<E> *)((char *)r.at + byte) =
        (bits_of_element<E>)shared_load_bits(place + byte, E());
  });
}

#endif
