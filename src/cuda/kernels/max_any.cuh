/* SPDX-License-Identifier: Apache-2.0 */
/* SCATTER's items where channels lie next to each other, whatever the indices say.
 *
 * A warp takes 32 planes, a lane one of them, and lets each output look for its cell in a small box
 * of sums.  It finds everything, in 64 bits. */
#ifndef PG_CUDA_MAX_ANY_CUH_
#define PG_CUDA_MAX_ANY_CUH_

#include "cuda/kernels/max_job.cuh"

extern __shared__ float pg_scatter_last_room[];

struct lanes_box { /* of one slice */
  int64_t d, h, w, rows, columns;
};

/* The cell's number in the box, or -1. */
static __device__ __forceinline__ int64_t cell_in(const max_job &j, const lanes_box &b,
                                                  int64_t at) {
  int64_t row, w, d, h;
  if (j.fits_32) {
    row = over((uint32_t)at, j.by_w);
    d = over((uint32_t)row, j.by_h);
  } else {
    row = at / j.pool.w.in;
    d = row / j.pool.h.in;
  }
  w = at - row * j.pool.w.in - b.w;
  h = row - d * j.pool.h.in - b.h;
  const bool inside = d == b.d && h >= 0 && h < b.rows && w >= 0 && w < b.columns;
  return inside ? h * b.columns + w : -1;
}

static __device__ __forceinline__ bool touches(pg_range r, int64_t begin, int64_t count) {
  return r.begin >= begin && r.begin < begin + count;
}

/* As pg_scatter_elsewhere. */
static __device__ void tell_elsewhere(const max_job &j, const lanes_box &b, int64_t plane,
                                      int64_t od, int64_t oh, int64_t ow, int64_t at,
                                      bad_indices *found) {
  const pg_pooling &p = j.pool;
  const pg_range d = pg_window_clip(&p.d, pg_window(&p.d, od));
  const pg_range h = pg_window_clip(&p.h, pg_window(&p.h, oh));
  const pg_range w = pg_window_clip(&p.w, pg_window(&p.w, ow));
  if (d.begin != b.d || !touches(h, b.h, b.rows) || !touches(w, b.w, b.columns)) return;
  if (at < 0 || at >= p.d.in * p.h.in * p.w.in) {
    note_bad(found, position_of(j, plane, od, oh, ow));
    return;
  }
  const int64_t row = at / p.w.in, in_d = row / p.h.in, in_h = row % p.h.in, in_w = at % p.w.in;
  if (in_d >= d.begin && in_d < d.end && in_h >= h.begin && in_h < h.end && in_w >= w.begin &&
      in_w < w.end)
    return;
  const pg_tiling &t = j.tiling;
  const int64_t n = plane / p.c, c = plane % p.c;
  const int64_t group = t.interleaved ? n * (t.plane_items / p.n) + c / t.planes : plane / t.planes;
  j.flags[((group * t.d_items + in_d / t.d) * t.h_items + in_h / t.h) * t.w_items + in_w / t.w] = 1;
}

/* A box of a lane's plane: cleared, added to, written.  Whole planes look at every output, and
 * their first box tells of bad indices. */
static __device__ __forceinline__ void make_lane(const max_job &j, const lanes_box &b,
                                                 int64_t plane, bool every, bool tell, float *sum,
                                                 bad_indices *found) {
  const pg_pooling &p = j.pool;
  const int64_t n = plane / p.c, c = plane % p.c, cells = p.d.in * p.h.in * p.w.in;
  const bool first = b.d == 0 && b.h == 0 && b.w == 0;
  pg_range od = {0, p.d.out}, oh = {0, p.h.out}, ow = {0, p.w.out};
  if (!every) {
    od = pg_touching(&p.d, b.d, b.d + 1);
    oh = pg_touching(&p.h, b.h, b.h + b.rows);
    ow = pg_touching(&p.w, b.w, b.w + b.columns);
  }
  for (int64_t i = 0; i < b.rows * b.columns; i++) sum[i * 32] = 0;
  for (int64_t d = od.begin; d < od.end; d++)
    for (int64_t h = oh.begin; h < oh.end; h++) {
      int64_t index_offset = offset(j.index_strides, n, c, d, h, ow.begin);
      int64_t grad_offset = offset(j.grad_strides, n, c, d, h, ow.begin);
      for (int64_t w = ow.begin; w < ow.end; w++) {
        const int64_t at = index_at(j, index_offset);
        const float g = grad_at(j, grad_offset);
        const bool outside = (uint64_t)at >= (uint64_t)cells;
        const int64_t cell = outside ? -1 : cell_in(j, b, at);
        index_offset += j.index_strides.of[PG_W];
        grad_offset += j.grad_strides.of[PG_W];
        if (cell >= 0)
          sum[cell * 32] += g;
        else if (tell && !every)
          tell_elsewhere(j, b, plane, d, h, w, at, found);
        else if (tell && first && outside)
          note_bad(found, position_of(j, plane, d, h, w));
      }
    }
  const int64_t out = offset(j.in_strides, n, c, b.d, b.h, b.w);
  for (int64_t h = 0; h < b.rows; h++)
    for (int64_t w = 0; w < b.columns; w++)
      put_cell(j, out + h * j.in_strides.of[PG_H] + w * j.in_strides.of[PG_W],
               sum[(h * b.columns + w) * 32]);
}

/* All of an item by the warps of a block, boxes of `cells` at a time. */
static __device__ __noinline__ void make_lanes(const max_job &j, int64_t item, bool every,
                                               bool tell, int64_t cells, bad_indices *found) {
  const pg_box_64 box = box_64(j.tiling, j.pool, item);
  const pg_range planes = box.planes, d = box.d, h = box.h, w = box.w;
  const int64_t columns = least(w.end - w.begin, cells);
  const int64_t rows = least(h.end - h.begin, cells / columns);
  const int64_t across = (w.end - w.begin + columns - 1) / columns;
  const int64_t down = (h.end - h.begin + rows - 1) / rows, deep = d.end - d.begin;
  const int64_t tasks = (planes.end - planes.begin + 31) / 32 * across * down * deep;
  float *sum = pg_scatter_last_room + threadIdx.x / 32 * cells * 32 + threadIdx.x % 32;
  for (int64_t task = threadIdx.x / 32; task < tasks; task += blockDim.x / 32) {
    const int64_t line = task / across, slice = line / down, first = slice / deep * 32;
    lanes_box b;
    b.d = d.begin + slice % deep;
    b.h = h.begin + line % down * rows;
    b.w = w.begin + task % across * columns;
    b.rows = least(rows, h.end - b.h);
    b.columns = least(columns, w.end - b.w);
    const int64_t plane = planes.begin + first + threadIdx.x % 32;
    if (plane < planes.end) make_lane(j, b, plane, every, tell, sum, found);
  }
}

/* Of V channels from c on at the output (od, oh, ow): each index that is not in its window.  True
 * if one points elsewhere in its plane.  Who looks at 32 bits alone may have taken an index for one
 * of its plane: that item is made again too. */
template <int V>
static __device__ __noinline__ bool tell_channels(const max_job &j, int64_t index_offset,
                                                  uint32_t n, int32_t c, int32_t od, int32_t oh,
                                                  int32_t ow, bad_indices *found) {
  bool strayed = false;
  for (int v = 0; v < V; v++) {
    const int64_t at = index_at(j, index_offset + v);
    const bool outside = (uint64_t)at >= j.cells;
    if (outside) note_bad(found, position_of(j, (int64_t)n * j.by_c.by + c + v, od, oh, ow));
    if ((uint32_t)at >= j.cells || (!outside && in_window(j, (uint32_t)at, od, oh, ow))) continue;
    const int64_t group = (int64_t)n * j.cut.groups.by + (c + v) / j.cut.of_planes;
    if (j.flags != nullptr) j.flags[item_of(j, group, (uint32_t)at)] = 1;
    strayed = true;
  }
  return strayed;
}

#endif
