/* SPDX-License-Identifier: Apache-2.0 */
/* Max pools with one plane for each lane: for any windows, strides and sizes, whatever the indices
 * say.
 *
 * A warp computes 32 planes at a time.  Its scratch holds the sums of a small part of each of them.
 * Each lane walks through the outputs of its own plane in their order and adds those that name a
 * cell of the part.  No other lane adds to these sums, so nothing has to be ordered.  This is slow:
 * positions are computed in 64 bits, and every part of an item reads the outputs again.
 *
 * It is the method max_any, and what the methods for neighbouring channels fall back on where an
 * index does not point into its window.  There lanes at least read neighbouring elements. */
#ifndef PG_CUDA_MAX_ANY_CUH_
#define PG_CUDA_MAX_ANY_CUH_

#include "cuda/kernels/max_job.cuh"

extern __shared__ float pg_max_any_scratch[];

/* For a block of so many threads that computes so many cells of each plane at a time. */
static inline int64_t scratch_bytes(int64_t threads, int64_t cells) {
  return threads * cells * (int64_t)sizeof(float);
}

/* A part of an item: rows x columns cells of one slice, from (d, h, w) on. */
struct slice_part {
  int64_t d, h, w, rows, columns;
};

struct lane_plane {
  int64_t number, n, c;
};

struct indexed_output {
  int64_t od, oh, ow, index;
};

/* --- Indices --- */

/* The number of a cell of the plane in the part, or -1. */
static __device__ __forceinline__ int64_t cell_in_part(const max_job &j, const slice_part &part,
                                                       int64_t cell) {
  int64_t row, w, d, h;
  if (j.fits_32) {
    row = over((uint32_t)cell, j.by_w);
    d = over((uint32_t)row, j.by_h);
  } else {
    row = cell / j.pool.w.in;
    d = row / j.pool.h.in;
  }
  w = cell - row * j.pool.w.in - part.w;
  h = row - d * j.pool.h.in - part.h;
  const bool inside = d == part.d && h >= 0 && h < part.rows && w >= 0 && w < part.columns;
  return inside ? h * part.columns + w : -1;
}

static __device__ __forceinline__ bool contains(pg_range r, int64_t x) {
  return x >= r.begin && x < r.end;
}

/* An index that names no cell of the part.  If planes are cut, the part that has the output's home
 * reports a bad index, and sets the item flag of a stray.  Otherwise all parts of a plane read all
 * its outputs, so strays need nothing, and the first part reports bad indices. */
static __device__ void check_output(const max_job &j, const slice_part &part,
                                    const lane_plane &plane, const indexed_output &o,
                                    bad_indices *bad) {
  const pg_pooling &p = j.pool;
  const bool outside = o.index < 0 || o.index >= p.d.in * p.h.in * p.w.in;
  if (j.flags == nullptr) {
    if (outside && part.d == 0 && part.h == 0 && part.w == 0)
      note_bad(bad, position_of(j, plane.number, o.od, o.oh, o.ow));
    return;
  }
  const pg_range d = pg_window_clip(&p.d, pg_window(&p.d, o.od));
  const pg_range h = pg_window_clip(&p.h, pg_window(&p.h, o.oh));
  const pg_range w = pg_window_clip(&p.w, pg_window(&p.w, o.ow));
  const pg_range part_h = {part.h, part.h + part.rows}, part_w = {part.w, part.w + part.columns};
  if (d.begin != part.d || !contains(part_h, h.begin) || !contains(part_w, w.begin)) return;
  if (outside) {
    note_bad(bad, position_of(j, plane.number, o.od, o.oh, o.ow));
    return;
  }
  const int64_t row = o.index / p.w.in;
  const int64_t in_d = row / p.h.in, in_h = row % p.h.in, in_w = o.index % p.w.in;
  if (contains(d, in_d) && contains(h, in_h) && contains(w, in_w)) return;
  const pg_tiling &t = j.tiling;
  const int64_t group = t.interleaved ? plane.n * (t.plane_items / p.n) + plane.c / t.planes
                                      : plane.number / t.planes;
  j.flags[((group * t.d_items + in_d / t.d) * t.h_items + in_h / t.h) * t.w_items + in_w / t.w] = 1;
}

/* --- Items --- */

/* Adds the outputs of a plane that name a cell of the part. */
static __device__ __forceinline__ void add_outputs(const max_job &j, const slice_part &part,
                                                   const lane_plane &plane, float *sums,
                                                   bad_indices *bad) {
  const pg_pooling &p = j.pool;
  const int64_t cells = p.d.in * p.h.in * p.w.in;
  pg_range d = {0, p.d.out}, h = {0, p.h.out}, w = {0, p.w.out};
  if (bad != nullptr && j.flags != nullptr) {
    d = pg_touching(&p.d, part.d, part.d + 1);
    h = pg_touching(&p.h, part.h, part.h + part.rows);
    w = pg_touching(&p.w, part.w, part.w + part.columns);
  }
  for (int64_t od = d.begin; od < d.end; od++)
    for (int64_t oh = h.begin; oh < h.end; oh++) {
      int64_t index_offset = offset(j.index_strides, plane.n, plane.c, od, oh, w.begin);
      int64_t grad_offset = offset(j.grad_strides, plane.n, plane.c, od, oh, w.begin);
      for (int64_t ow = w.begin; ow < w.end; ow++) {
        const int64_t index = index_at(j, index_offset);
        const float grad = grad_at(j, grad_offset);
        const int64_t cell = (uint64_t)index < (uint64_t)cells ? cell_in_part(j, part, index) : -1;
        index_offset += j.index_strides.of[PG_W];
        grad_offset += j.grad_strides.of[PG_W];
        if (cell >= 0)
          sums[cell * 32] += grad;
        else if (bad != nullptr)
          check_output(j, part, plane, {od, oh, ow, index}, bad);
      }
    }
}

/* One plane's cells of a part, by one lane.  `sums` is the lane's first; its next is 32 behind. */
static __device__ __forceinline__ void compute_part(const max_job &j, const slice_part &part,
                                                    const lane_plane &plane, float *sums,
                                                    bad_indices *bad) {
  for (int64_t i = 0; i < part.rows * part.columns; i++) sums[i * 32] = 0;
  add_outputs(j, part, plane, sums, bad);
  const int64_t first = offset(j.in_strides, plane.n, plane.c, part.d, part.h, part.w);
  for (int64_t h = 0; h < part.rows; h++)
    for (int64_t w = 0; w < part.columns; w++)
      put_cell(j, first + h * j.in_strides.of[PG_H] + w * j.in_strides.of[PG_W],
               sums[(h * part.columns + w) * 32]);
}

/* A block computes an item, in parts of at most `cells` cells.  `bad` is NULL where indices have
 * been checked already.  Where planes are cut, the outputs that touch a part are enough as long as
 * indices are still being checked, because the item flags say what else there is. */
static __device__ __noinline__ void compute_item(const max_job &j, int64_t item, int64_t cells,
                                                 bad_indices *bad) {
  const pg_box_64 box = box_64(j.tiling, j.pool, item);
  const pg_range planes = box.planes, d = box.d, h = box.h, w = box.w;
  const int64_t columns = least(w.end - w.begin, cells);
  const int64_t rows = least(h.end - h.begin, cells / columns);
  const int64_t across = (w.end - w.begin + columns - 1) / columns;
  const int64_t down = (h.end - h.begin + rows - 1) / rows, deep = d.end - d.begin;
  const int64_t parts = (planes.end - planes.begin + 31) / 32 * across * down * deep;
  float *sums = pg_max_any_scratch + threadIdx.x / 32 * cells * 32 + threadIdx.x % 32;
  for (int64_t i = threadIdx.x / 32; i < parts; i += blockDim.x / 32) {
    const int64_t line = i / across, slice = line / down, first = slice / deep * 32;
    slice_part part;
    part.d = d.begin + slice % deep;
    part.h = h.begin + line % down * rows;
    part.w = w.begin + i % across * columns;
    part.rows = least(rows, h.end - part.h);
    part.columns = least(columns, w.end - part.w);
    const int64_t plane = planes.begin + first + threadIdx.x % 32;
    if (plane < planes.end)
      compute_part(j, part, {plane, plane / j.pool.c, plane % j.pool.c}, sums, bad);
  }
}

/* --- Checks of the methods for neighbouring channels --- */

/* The outputs (od, oh, ow) of neighbouring channels of one n, from c on. */
struct channel_outputs {
  uint32_t n;
  int32_t c, od, oh, ow;
};

/* Checks V indices: reports those that are bad, and sets the item flags of strays.  True if one of
 * them is a stray.  A method that compares only the low 32 bits of indices may have added an output
 * with a bad index to the cell that these bits name, so its item is flagged like that of a stray.
 * Not inlined, because it seldom runs and would take registers from what often does. */
template <int V>
static __device__ __noinline__ bool check_channels(const max_job &j, channel_outputs o,
                                                   bad_indices *bad) {
  const int64_t first = offset(j.index_strides, o.n, o.c, o.od, o.oh, o.ow);
  bool strayed = false;
  for (int v = 0; v < V; v++) {
    const int64_t index = index_at(j, first + v);
    const uint32_t cell = (uint32_t)index;
    const bool outside = (uint64_t)index >= j.cells;
    if (outside)
      note_bad(bad, position_of(j, (int64_t)o.n * j.by_c.by + o.c + v, o.od, o.oh, o.ow));
    if (cell >= j.cells || (!outside && in_window(j, cell, o.od, o.oh, o.ow))) continue;
    const int64_t group = (int64_t)o.n * j.cut.groups.by + (o.c + v) / j.cut.of_planes;
    if (j.flags != nullptr) j.flags[item_of(j, group, cell)] = 1;
    strayed = true;
  }
  return strayed;
}

#endif
