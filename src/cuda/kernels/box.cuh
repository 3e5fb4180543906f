/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes on the device: which cells an item has, and which outputs' windows they lie in.
 *
 * These are the formulas of kernels/window.h and kernels/tiling.h in 32 bits and without divisions,
 * because a 64-bit division takes a GPU about a hundred instructions.  They hold for poolings that
 * fits_32_bits accepts.  The others are computed with the formulas in 64 bits. */
#ifndef PG_CUDA_BOX_CUH_
#define PG_CUDA_BOX_CUH_

#include <cuda_runtime.h>

#include "kernels/kernels.h"

/* Divides by a number that the host knows, for n < 2^31 and by < 2^31.  With s = ceil(log2 by) and
 * m = floor(2^32 (2^s - by) / by) + 1 the quotient n / by is (n + floor(n m / 2^32)) / 2^s. */
struct pg_divider {
  uint32_t by, magic, shift;
};

/* A launch makes up to twenty of these, so powers of two, of which many are, do without the
 * division: their m is 1. */
static inline pg_divider divider_of(int64_t by) {
  pg_divider d = {by < 1 ? 1u : (uint32_t)by, 1, 0};
  if (d.by > 1) d.shift = 32 - (uint32_t)__builtin_clz(d.by - 1);
  const uint64_t power = (uint64_t)1 << d.shift;
  if (power != d.by) d.magic = (uint32_t)(((power - d.by) << 32) / d.by + 1);
  return d;
}

/* n / d.by, rounded down. */
static __device__ __forceinline__ uint32_t over(uint32_t n, const pg_divider &d) {
  return (__umulhi(n, d.magic) + n) >> d.shift;
}

/* --- A warp --- */

static constexpr unsigned EVERY_LANE = 0xffffffff;

static __device__ __forceinline__ int lane_number() { return (int)(threadIdx.x % 32); }

/* --- Axes and boxes --- */

static inline __host__ __device__ int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

struct pg_span { /* half open */
  int32_t begin, end;
};

static __device__ __forceinline__ int32_t length(pg_span s) { return s.end - s.begin; }

/* Does x lie in [begin, begin + count)?  Below begin the difference wraps to a large number. */
static __device__ __forceinline__ bool holds(int32_t begin, uint32_t count, uint32_t x) {
  return x - (uint32_t)begin < count;
}

struct pg_axis_32 {
  int32_t in, out;
  int32_t stride, pad, reach; /* of windows; stride 0: adaptive; reach: first to last cell */
  pg_divider first, second;   /* first divides by the stride; adaptive: by in, second by out */
};

static inline pg_axis_32 axis_32(const pg_axis &a) {
  pg_axis_32 b = {(int32_t)a.in, (int32_t)a.out, 0, 0, 0, {}, {}};
  if (a.kernel == 0) {
    b.first = divider_of(a.in);
    b.second = divider_of(a.out);
  } else {
    b.stride = (int32_t)a.stride;
    b.pad = (int32_t)a.pad;
    b.reach = (int32_t)((a.kernel - 1) * a.dilation);
    b.first = divider_of(a.stride);
  }
  return b;
}

/* The outputs whose windows touch the cells [begin, end), as pg_touching. */
static __device__ __forceinline__ pg_span touching(const pg_axis_32 &a, int32_t begin,
                                                   int32_t end) {
  pg_span s;
  if (a.stride == 0) {
    s.begin = (int32_t)over((uint32_t)begin * a.out, a.first);
    s.end = (int32_t)over((uint32_t)end * a.out + a.in - 1, a.first);
    return s;
  }
  const int32_t reached = begin + a.pad - a.reach;
  s.begin = reached <= 0 ? 0 : (int32_t)over(reached + a.stride - 1, a.first);
  s.end = min(a.out, (int32_t)over(end - 1 + a.pad, a.first) + 1);
  s.begin = min(s.begin, a.out);
  s.end = max(s.begin, s.end);
  return s;
}

struct pg_window_32 {
  int32_t begin; /* negative if the window begins in the padding */
  uint32_t length;
};

/* The window of output o.  SLIDING: windows are known not to be adaptive. */
template <bool SLIDING = false>
static __device__ __forceinline__ pg_window_32 window(const pg_axis_32 &a, int32_t o) {
  if (SLIDING || a.stride != 0) return {o * a.stride - a.pad, (uint32_t)a.reach + 1};
  const uint32_t begin = over((uint32_t)o * a.in, a.second);
  return {(int32_t)begin, over((uint32_t)(o + 1) * a.in + a.out - 1, a.second) - begin};
}

/* Where a band of cells ends that lie in the windows of these outputs: where the first of these
 * windows does, or where another one begins. */
static __device__ __forceinline__ int32_t band_end(const pg_axis_32 &a, pg_span outputs,
                                                   int32_t end) {
  if (outputs.begin < outputs.end) {
    const pg_window_32 first = window(a, outputs.begin);
    end = min(end, first.begin + (int32_t)first.length);
  }
  return outputs.end < a.out ? min(end, window(a, outputs.end).begin) : end;
}

/* How many cells a divisor counts for output o, as pg_window_extent. */
static __device__ __forceinline__ int32_t extent(const pg_axis_32 &a, int32_t o, bool with_pad) {
  const pg_window_32 w = window(a, o);
  if (a.stride == 0) return (int32_t)w.length;
  const int32_t end = w.begin + (int32_t)w.length;
  return with_pad ? min(end, a.in + a.pad) - w.begin : min(end, a.in) - max(w.begin, 0);
}

/* Do all sums and products of the functions above stay below 2^31 for this axis? */
static inline bool fits_32_bits(const pg_axis &a) {
  const int64_t most = (int64_t)1 << 30;
  if (a.in >= most || a.out >= most) return false;
  if (a.kernel == 0) return (a.in + 1) * (a.out + 1) < most;
  return a.stride < most && a.pad < most && a.kernel < most && a.dilation < most &&
         (a.kernel - 1) * a.dilation < most && a.in + a.pad + a.stride < most;
}

/* The same for all axes, and for positions in a plane and numbers of planes. */
static inline bool fits_32_bits(const pg_pooling &p) {
  const int64_t most = (int64_t)1 << 31;
  if (!fits_32_bits(p.d) || !fits_32_bits(p.h) || !fits_32_bits(p.w)) return false;
  if (p.c >= most || p.n >= most || p.n * p.c >= most) return false;
  return p.d.in * p.h.in < most && p.d.in * p.h.in * p.w.in < most && p.d.out * p.h.out < most &&
         p.d.out * p.h.out * p.w.out < most;
}

/* A box in `planes` planes from the one with number n * C + c = first on. */
struct pg_box_32 {
  int64_t first;
  int32_t planes;
  pg_span d, h, w;
};

/* A tiling, for box_32. */
struct pg_items {
  int64_t planes;                      /* of the whole call */
  int32_t c;                           /* channels if the tiling is interleaved, else 0 */
  int32_t of_planes, of_d, of_h, of_w; /* the size of an item */
  pg_divider groups, d, h, w;          /* by the number of items; groups: of the channels of an n */
  int32_t in_d, in_h, in_w;            /* the size of a plane */
};

static inline pg_items items_of(const pg_tiling &t, const pg_pooling &p) {
  pg_items i = {};
  i.planes = p.n * p.c;
  i.c = t.interleaved ? (int32_t)p.c : 0;
  i.of_planes = (int32_t)t.planes;
  i.of_d = (int32_t)t.d;
  i.of_h = (int32_t)t.h;
  i.of_w = (int32_t)t.w;
  i.groups = divider_of(t.interleaved && p.n > 0 ? t.plane_items / p.n : 1);
  i.d = divider_of(t.d_items);
  i.h = divider_of(t.h_items);
  i.w = divider_of(t.w_items);
  i.in_d = (int32_t)p.d.in;
  i.in_h = (int32_t)p.h.in;
  i.in_w = (int32_t)p.w.in;
  return i;
}

/* The cells of an item along one axis, on which items have `size` cells. */
static __device__ __forceinline__ pg_span cut(int32_t item, int32_t size, int32_t end) {
  return {item * size, min(end, item * size + size)};
}

static __device__ __forceinline__ pg_box_32 box_32(const pg_items &t, uint32_t item) {
  pg_box_32 b = {};
  uint32_t rest = over(item, t.w);
  b.w = cut(item - rest * t.w.by, t.of_w, t.in_w);
  uint32_t upper = over(rest, t.h);
  b.h = cut(rest - upper * t.h.by, t.of_h, t.in_h);
  rest = over(upper, t.d);
  b.d = cut(upper - rest * t.d.by, t.of_d, t.in_d);
  if (t.c == 0) {
    b.first = (int64_t)rest * t.of_planes;
    b.planes = (int32_t)min((int64_t)t.of_planes, t.planes - b.first);
    return b;
  }
  upper = over(rest, t.groups); /* is n: no item has channels of two */
  const pg_span c = cut(rest - upper * t.groups.by, t.of_planes, t.c);
  b.first = (int64_t)upper * t.c + c.begin;
  b.planes = length(c);
  return b;
}

/* The same in 64 bits, for any pooling. */
struct pg_box_64 {
  pg_range planes, d, h, w;
};

static __device__ __forceinline__ pg_range cut_64(int64_t item, int64_t size, int64_t end) {
  return {item * size, least(end, item * size + size)};
}

static __device__ __forceinline__ pg_box_64 box_64(const pg_tiling &t, const pg_pooling &p,
                                                   int64_t item) {
  const int64_t h = item / t.w_items, d = h / t.h_items, group = d / t.d_items;
  pg_box_64 b;
  b.w = cut_64(item % t.w_items, t.w, p.w.in);
  b.h = cut_64(h % t.h_items, t.h, p.h.in);
  b.d = cut_64(d % t.d_items, t.d, p.d.in);
  b.planes = cut_64(group, t.planes, p.n * p.c);
  if (t.interleaved) {
    const int64_t groups = t.plane_items / p.n, n = group / groups;
    b.planes = cut_64(group % groups, t.planes, p.c);
    b.planes = {b.planes.begin + n * p.c, b.planes.end + n * p.c};
  }
  return b;
}

static __device__ __forceinline__ int64_t offset(const pg_strides &s, int64_t n, int64_t c,
                                                 int64_t d, int64_t h, int64_t w) {
  return n * s.of[PG_N] + c * s.of[PG_C] + d * s.of[PG_D] + h * s.of[PG_H] + w * s.of[PG_W];
}

/* Do strides allow v channels to be read and written at once, if the address of the tensor does? */
static inline bool has_vectors(const pg_strides &s, int64_t channels, int64_t v) {
  return channels % v == 0 && s.of[PG_N] % v == 0 && s.of[PG_D] % v == 0 && s.of[PG_H] % v == 0 &&
         s.of[PG_W] % v == 0;
}

/* The same with the address, for vectors of `aligned` bytes. */
static inline bool is_vector(const void *memory, const pg_strides &s, int64_t element_bytes,
                             int64_t channels, int64_t aligned) {
  const int axes[] = {PG_N, PG_D, PG_H, PG_W};
  if ((uintptr_t)memory % aligned != 0 || channels * element_bytes % aligned != 0) return false;
  for (int axis : axes)
    if (s.of[axis] * element_bytes % aligned != 0) return false;
  return true;
}

#endif
