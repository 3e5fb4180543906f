/* SPDX-License-Identifier: Apache-2.0 */
/* Max pools the slow way, whatever the indices say: what methods fall back on where an index does
 * not point into its window.
 *
 * A warp computes some cells in shared memory.  It clears their sums, goes through outputs in their
 * order, 32 at a time, adds those that name one of the cells, and writes the sums.  Lanes that name
 * the same cell find each other by a match and add one after the other, so that every sum has the
 * order of the outputs.  This code seldom runs, so it is compiled once for all element types. */
#ifndef PG_CUDA_MAX_RECOMPUTE_CUH_
#define PG_CUDA_MAX_RECOMPUTE_CUH_

#include "cuda/kernels/max_job.cuh"

/* Cells that follow each other in one or several planes, and their sums. */
struct cell_range {
  uint32_t sums; /* shared address */
  uint32_t cells;
  uint32_t begin; /* position of the first cell, counted from the item's first plane */
  uint32_t plane; /* that plane, among all */
};

/* An output, as one lane sees it. */
struct output_place {
  int32_t od, oh, ow;
  uint32_t base; /* its index plus this is the number of its cell in the range */
};

/* Outputs that follow each other.  The first is output (od, oh, ow) of a plane that is counted from
 * the item's first. */
struct output_run {
  uint32_t plane, od, oh, ow, count;
};

static __device__ __forceinline__ int64_t plane_offset(const max_job &j, const pg_strides &s,
                                                       uint32_t plane) {
  const uint32_t n = over(plane, j.by_c);
  return n * s.of[PG_N] + (plane - n * j.by_c.by) * s.of[PG_C];
}

static __device__ __forceinline__ int64_t cell_offset(const pg_strides &s, int32_t d, int32_t h,
                                                      int32_t w) {
  return d * s.of[PG_D] + h * s.of[PG_H] + w * s.of[PG_W];
}

/* The output `further` outputs behind the run's first. */
static __device__ __forceinline__ output_place place_in_run(const max_job &j, const cell_range &t,
                                                            const output_run &r, uint32_t further) {
  output_place p;
  uint32_t carry = over(r.ow + further, j.by_out_w);
  p.ow = (int32_t)(r.ow + further - carry * j.w.out);
  const uint32_t oh = r.oh + carry;
  carry = over(oh, j.by_out_h);
  p.oh = (int32_t)(oh - carry * j.h.out);
  const uint32_t od = r.od + carry;
  carry = over(od, j.by_out_d);
  p.od = (int32_t)(od - carry * j.d.out);
  p.base = (r.plane + carry) * j.cells - t.begin;
  return p;
}

/* --- Adding --- */

static __device__ __forceinline__ void add(const cell_range &t, uint32_t cell, float grad) {
  shared_store(t.sums + 4 * cell, shared_load(t.sums + 4 * cell) + grad);
}

/* Lanes of the same cell add in the order of their ranks. */
static __device__ __forceinline__ void add_ranked(const cell_range &t, uint32_t cell, float grad,
                                                  int rank) {
  if (cell >= t.cells) rank = -1;
  if (rank == 0) add(t, cell, grad);
  for (int r = 1; __any_sync(EVERY_LANE, rank >= r); r++) {
    __syncwarp();
    if (rank == r) add(t, cell, grad);
  }
  __syncwarp();
}

/* How many lanes before this one name the same cell. */
static __device__ __forceinline__ int rank_by_match(const cell_range &t, uint32_t cell) {
  const uint32_t before = (1u << lane_number()) - 1;
  return __popc(__match_any_sync(EVERY_LANE, cell < t.cells ? cell : ~(uint32_t)lane_number()) &
                before);
}

/* --- Outputs --- */

/* An index that names no cell of the range.  If the first cell of the output's window is in the
 * range, it is checked here and nowhere else.  True if it points out of its window into another
 * part of its plane. */
static __device__ bool check_stray(const max_job &j, const cell_range &t, const output_place &p,
                                   int64_t index, bad_indices *bad) {
  const uint32_t d = (uint32_t)max(window(j.d, p.od).begin, 0);
  const uint32_t h = (uint32_t)max(window(j.h, p.oh).begin, 0);
  const uint32_t w = (uint32_t)max(window(j.w, p.ow).begin, 0);
  const uint32_t home = (d * j.h.in + h) * j.w.in + w;
  if (home + p.base >= t.cells) return false;
  const uint32_t plane = t.plane + over(p.base + t.begin, j.by_cells);
  if ((uint64_t)index >= j.cells) {
    note_bad(bad, position_of(j, plane, p.od, p.oh, p.ow));
    return false;
  }
  if (in_window(j, (uint32_t)index, p.od, p.oh, p.ow)) return false;
  if (j.flags != nullptr) j.flags[item_of(j, plane, (uint32_t)index)] = 1;
  return true;
}

/* Adds all outputs of a run.  `bad` is NULL where indices have been checked already.  True if
 * an index that this lane checked points out of its window.  Not inlined, and with arguments by
 * value: what seldom runs shall not take registers from what often does, nor send its variables to
 * local memory. */
static __device__ __noinline__ bool take_run(const max_job &j, cell_range t, output_run r,
                                             bad_indices *bad) {
  enum { LANES = 32 };
  bool strayed = false;
#pragma unroll 1
  for (uint32_t first = 0; first < r.count; first += LANES) {
    const uint32_t output = first + (uint32_t)lane_number();
    const bool active = output < r.count;
    const output_place p = place_in_run(j, t, r, active ? output : first);
    const uint32_t plane = t.plane + over(p.base + t.begin, j.by_cells);
    const int64_t index = index_at(j, plane_offset(j, j.index_strides, plane) +
                                          cell_offset(j.index_strides, p.od, p.oh, p.ow));
    const float grad = grad_at(
        j, plane_offset(j, j.grad_strides, plane) + cell_offset(j.grad_strides, p.od, p.oh, p.ow));
    uint32_t cell = ~0u;
    if (active && (uint64_t)index < j.cells) cell = (uint32_t)index + p.base;
    if (active && cell >= t.cells && bad != nullptr) strayed |= check_stray(j, t, p, index, bad);
    add_ranked(t, cell, grad, rank_by_match(t, cell));
  }
  return strayed;
}

/* Calls take(run) for all outputs of the range's planes. */
template <typename F>
static __device__ __forceinline__ bool for_every_output(const max_job &j, const cell_range &t,
                                                        F take) {
  const uint32_t plane = over(t.begin, j.by_cells), end = over(t.begin + t.cells - 1, j.by_cells);
  return take(output_run{plane, 0, 0, 0, (end - plane + 1) * j.outputs});
}

/* Calls take(run) for outputs among which are all whose windows touch the range: rows of outputs if
 * the range lies in one row of cells, otherwise whole rows, slices or planes of them. */
template <typename F>
static __device__ __forceinline__ bool for_touching_outputs(const max_job &j, const cell_range &t,
                                                            F take) {
  const uint32_t last = t.begin + t.cells - 1;
  const uint32_t plane = over(t.begin, j.by_cells), end = over(last, j.by_cells);
  const uint32_t row = over(t.begin - plane * j.cells, j.by_w);
  const uint32_t row_end = over(last - end * j.cells, j.by_w);
  const int32_t d = (int32_t)over(row, j.by_h), d_end = (int32_t)over(row_end, j.by_h);
  const int32_t h = (int32_t)row - d * j.h.in, h_end = (int32_t)row_end - d_end * j.h.in;
  pg_span od = {0, 1}, oh = {0, 1}, ow = {0, j.w.out};
  uint32_t count;
  if (plane == end && d == d_end) {
    od = touching(j.d, d, d + 1);
    oh = touching(j.h, h, h_end + 1);
    if (h == h_end) {
      const int32_t w = (int32_t)(t.begin - plane * j.cells - row * j.w.in);
      ow = touching(j.w, w, w + (int32_t)t.cells);
      count = (uint32_t)length(ow);
    } else {
      count = (uint32_t)(length(oh) * j.w.out);
      oh.end = oh.begin + 1;
    }
  } else if (!j.has_depth) {
    oh.begin = touching(j.h, h, h + 1).begin;
    oh.end = oh.begin + 1;
    const int32_t rows = touching(j.h, h_end, h_end + 1).end - oh.begin;
    count = (end - plane) * j.outputs + (uint32_t)(rows * j.w.out);
  } else {
    od.begin = touching(j.d, d, d + 1).begin;
    od.end = od.begin + 1;
    const int32_t slices = touching(j.d, d_end, d_end + 1).end - od.begin;
    count = (end - plane) * j.outputs + (uint32_t)(slices * j.h.out * j.w.out);
  }
  bool strayed = false;
  for (int32_t slice = od.begin; slice < od.end; slice++)
    for (int32_t r = oh.begin; r < oh.end; r++)
      strayed |= take(output_run{plane, (uint32_t)slice, (uint32_t)r, (uint32_t)ow.begin, count});
  return strayed;
}

/* --- Items --- */

/* The item's first plane, and its cells, which follow each other. */
struct item_range {
  uint32_t plane, begin, cells;
};

static __device__ __forceinline__ item_range item_range_of(const max_job &j, uint32_t number) {
  const pg_box_32 b = box_32(j.cut, number);
  return {(uint32_t)b.first, ((uint32_t)b.d.begin * j.h.in + b.h.begin) * j.w.in + b.w.begin,
          (uint32_t)(b.planes * length(b.d) * length(b.h) * length(b.w))};
}

/* At any strides. */
static __device__ __forceinline__ void write_cells(const max_job &j, const cell_range &t) {
  for (uint32_t i = lane_number(); i < t.cells; i += 32) {
    const uint32_t planes = over(t.begin + i, j.by_cells), at = t.begin + i - planes * j.cells;
    const uint32_t row = over(at, j.by_w), d = over(row, j.by_h);
    put_cell(j,
             plane_offset(j, j.in_strides, t.plane + planes) +
                 cell_offset(j.in_strides, (int32_t)d, (int32_t)(row - d * j.h.in),
                             (int32_t)(at - row * j.w.in)),
             shared_load(t.sums + 4 * i));
  }
}

/* A warp's own shared memory: the sums of the cells that it computes at a time.  The more there
 * are, the less often it goes through the outputs. */
struct recompute_scratch {
  float *sums;
  uint32_t cells;
};

enum { RECOMPUTED_CELLS = 256 /* where the scratch lies idle as long as all indices are usual */ };

/* A block computes an item.  `bad` is the warp's own, or NULL where indices have been checked
 * already.  Where planes are cut, the outputs that touch the item are enough as long as indices are
 * still being checked, because the flags say what else there is. */
static __device__ __noinline__ void recompute_item(const max_job &j, uint32_t number,
                                                   recompute_scratch s, bad_indices *bad) {
  const item_range it = item_range_of(j, number);
  const uint32_t warps = blockDim.x / 32;
  const bool every = bad == nullptr || j.flags == nullptr;
  if (bad != nullptr && lane_number() == 0) clear(bad);
  const uint32_t each = min((it.cells + warps - 1) / warps, s.cells);
  for (uint32_t first = threadIdx.x / 32 * each; first < it.cells; first += warps * each) {
    const cell_range t = {shared_address(s.sums), min(it.cells - first, each), it.begin + first,
                          it.plane};
    for (uint32_t i = lane_number(); i < t.cells; i += 32) s.sums[i] = 0;
    __syncwarp();
    const auto take = [&](const output_run &run) { return take_run(j, t, run, bad); };
    (void)(every ? for_every_output(j, t, take) : for_touching_outputs(j, t, take));
    write_cells(j, t);
    __syncwarp();
  }
  if (bad != nullptr && lane_number() == 0) report(j, bad);
}

#endif
