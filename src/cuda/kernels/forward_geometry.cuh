/* SPDX-License-Identifier: Apache-2.0 */
/* What the methods `columns` and `direct` of both forward kernels share: strides and axes in 32
 * bits, vectors of what is written, and divisors. */
#ifndef PG_CUDA_FORWARD_GEOMETRY_CUH_
#define PG_CUDA_FORWARD_GEOMETRY_CUH_

#include "cuda/kernels/forward_job.cuh"

/* Distances in elements: from a unit to the next, along the axes, and of images and channels. */
struct forward_strides {
  uint32_t unit, d, h, w;
  int64_t n, c;
};

/* An axis and the distance between cells of one window. */
struct forward_axis {
  pg_axis_32 windows;
  pg_divider step;
};

struct forward_taps {
  int32_t first, count;
};

/* pg_window_taps in 32 bits. */
static __device__ __forceinline__ forward_taps taps_of(const forward_axis &a, int32_t o) {
  const pg_window_32 v = window(a.windows, o);
  forward_taps t = {v.begin, 0};
  const uint32_t round_up = a.step.by - 1;
  if (v.begin < 0) t.first += (int32_t)(over((uint32_t)-v.begin + round_up, a.step) * a.step.by);
  const int32_t end = min(v.begin + (int32_t)v.length, a.windows.in);
  if (end > t.first) t.count = (int32_t)over((uint32_t)(end - t.first) + round_up, a.step);
  return t;
}

/* Writes V neighbours, of 2 to 32 bytes, to an address that is a multiple of their size or of 16.
 */
template <int V, typename T>
static __device__ __forceinline__ void write_vector(T *to, const T *from) {
  constexpr int BYTES = V * (int)sizeof(T);
  if constexpr (V == 1) {
    *to = *from;
  } else if constexpr (BYTES == 4) {
    uint32_t word;
    memcpy(&word, from, 4);
    __stcs((uint32_t *)to, word);
  } else if constexpr (BYTES == 8) {
    uint2 words;
    memcpy(&words, from, 8);
    __stcs((uint2 *)to, words);
  } else {
#pragma unroll
    for (int i = 0; i < BYTES / 16; i++) {
      uint4 words;
      memcpy(&words, (const char *)from + 16 * i, 16);
      put_words((char *)to + 16 * i, words);
    }
  }
}

/* --- On the host --- */

static inline forward_strides forward_strides_of(const pg_strides &s) {
  forward_strides c = {};
  c.d = (uint32_t)s.of[PG_D];
  c.h = (uint32_t)s.of[PG_H];
  c.w = (uint32_t)s.of[PG_W];
  c.n = s.of[PG_N];
  c.c = s.of[PG_C];
  return c;
}

/* Do 31 bits hold the distance of every element of a unit from its first one? */
static inline bool has_small_units(const pg_strides &s, int64_t d, int64_t h, int64_t w) {
  const int64_t most = (int64_t)1 << 30;
  for (int64_t stride : s.of)
    if (stride < 0) return false;
  if (s.of[PG_D] >= most || s.of[PG_H] >= most || s.of[PG_W] >= most) return false;
  return d * s.of[PG_D] + h * s.of[PG_H] + w * s.of[PG_W] < most;
}

static inline forward_axis forward_axis_of(const pg_axis &a) {
  return {axis_32(a), divider_of(a.kernel == 0 ? 1 : a.dilation)};
}

enum { SHORT_AXIS = 1 << 15 /* counts of cells of a window are kept in 16 bits */ };

static inline bool is_short(const pg_axis &a) {
  return a.in < SHORT_AXIS && (a.kernel == 0 || pg_window_span(&a) < SHORT_AXIS);
}

static inline bool has_forward_sizes(const pg_problem &problem, const pg_strides &in,
                                     const pg_strides &out) {
  const pg_facts &f = problem.facts;
  const pg_pooling &p = f.pool;
  if (problem.dtype != ACL_FLOAT && problem.dtype != ACL_FLOAT16 && problem.dtype != ACL_BF16)
    return false;
  return f.planes > 0 && f.outputs > 0 && fits_32_bits(p) && is_short(p.d) && is_short(p.h) &&
         is_short(p.w) && has_small_units(in, p.d.in, p.h.in, p.w.in) &&
         has_small_units(out, p.d.out, p.h.out, p.w.out);
}

/* Do rows begin at multiples of `cells` elements, or of 16 bytes? */
static inline bool has_row_vectors(const void *memory, const pg_strides &s, int64_t element_bytes,
                                   int64_t cells) {
  const int axes[] = {PG_N, PG_C, PG_D, PG_H};
  const int64_t aligned = least(16, element_bytes * cells);
  if ((uintptr_t)memory % (uintptr_t)aligned != 0 || s.of[PG_W] != 1) return false;
  for (int axis : axes)
    if (s.of[axis] * element_bytes % aligned != 0) return false;
  return true;
}

/* Can a thread write `vb` neighbouring channels of a tensor of outputs at once? */
static inline bool writes_channels(const pg_facts &f, const void *to, const pg_strides &s,
                                   int64_t element_bytes, int64_t vb) {
  return f.neighbours && f.pool.c % vb == 0 &&
         is_vector(to, s, element_bytes, f.pool.c, least(16, element_bytes * vb));
}

/* Does every window of the axis count the same number of cells? */
static inline bool counts_alike(const pg_axis &a, bool with_padding) {
  if (a.kernel == 0) return false;
  const int64_t most = pg_window_span(&a) + 1;
  return pg_window_extent(&a, 0, with_padding) == most &&
         pg_window_extent(&a, a.out - 1, with_padding) == most;
}

/* The divisor of all windows; 0: they have different ones. */
static inline float constant_divisor(const pg_pooling &p, const pg_avg_forward &a) {
  const bool pad = a.count_include_pad;
  if (a.divisor != 0) return (float)a.divisor;
  if (!counts_alike(p.d, pad) || !counts_alike(p.h, pad) || !counts_alike(p.w, pad)) return 0;
  return (float)(pg_window_extent(&p.d, 0, pad) * pg_window_extent(&p.h, 0, pad) *
                 pg_window_extent(&p.w, 0, pad));
}

#endif
