/* SPDX-License-Identifier: Apache-2.0 */
/* SCATTER's look at the outputs: a warp, part of an item's cells, and the outputs it looks at, 32
 * at a time and in their order.
 *
 * Lanes that name the same cell add one after the other.  While all indices lie in their windows
 * such lanes are neighbours, as near as windows overlap (scan_plan.near), so a few shuffles find
 * them; else, and where rows of outputs are short, a match does. */
#ifndef PG_CUDA_SCAN_CUH_
#define PG_CUDA_SCAN_CUH_

#include "cuda/scatter.cuh"

enum { ABREAST = 4 /* batches in flight */, SHUFFLES = 3, BY_MATCH = -1 };

#define EVERY_LANE 0xffffffffu

/* How a warp goes through outputs: `batch` of them at a time; the step in digits. */
struct scan_plan {
  bool few; /* outputs of whole planes: a warp takes a plane's */
  int32_t batch, near;
  int32_t step_w, step_h, step_d;
  uint32_t step_base; /* cells of the planes stepped over */
};

/* A warp's part of an item at work. */
struct part {
  uint32_t sum; /* shared address of its cells */
  uint32_t cells;
  uint32_t begin; /* position of its first cell, counted from the item's first plane */
  uint32_t plane; /* that plane, of all */
  bool every;     /* looks at every output of its planes */
  bool tell;      /* tells of indices that point elsewhere */
};

/* Where a lane is among the outputs. */
struct place {
  int32_t od, oh, ow;
  uint32_t base; /* an index plus base is its cell's number in the part */
};

static __device__ __forceinline__ int64_t plane_offset(const scatter_job &j, const pg_strides &s,
                                                       uint32_t plane) {
  const uint32_t n = over(plane, j.by_c);
  return n * s.of[PG_N] + (plane - n * j.by_c.by) * s.of[PG_C];
}

static __device__ __forceinline__ int64_t cell_offset(const pg_strides &s, int32_t d, int32_t h,
                                                      int32_t w) {
  return d * s.of[PG_D] + h * s.of[PG_H] + w * s.of[PG_W];
}

static __device__ __forceinline__ int lane_number() { return (int)(threadIdx.x % 32); }

template <bool PLAIN>
static __device__ __forceinline__ void step(const scatter_job &j, const scan_plan &s, place &p) {
  p.ow += s.step_w;
  p.oh += s.step_h;
  p.base += s.step_base;
  if (p.ow >= j.w.out) {
    p.ow -= j.w.out;
    p.oh++;
  }
  if (PLAIN) {
    if (p.oh >= j.h.out) {
      p.oh -= j.h.out;
      p.base += j.cells;
    }
    return;
  }
  p.od += s.step_d;
  if (p.oh >= j.h.out) {
    p.oh -= j.h.out;
    p.od++;
  }
  if (p.od >= j.d.out) {
    p.od -= j.d.out;
    p.base += j.cells;
  }
}

/* The place `more` outputs behind (od, oh, ow) of the part's plane-th plane. */
static __device__ __forceinline__ place place_at(const scatter_job &j, const part &t,
                                                 uint32_t plane, uint32_t od, uint32_t oh,
                                                 uint32_t ow, uint32_t more) {
  uint32_t carry = over(ow + more, j.by_out_w);
  place p;
  p.ow = (int32_t)(ow + more - carry * j.w.out);
  oh += carry;
  carry = over(oh, j.by_out_h);
  p.oh = (int32_t)(oh - carry * j.h.out);
  od += carry;
  carry = over(od, j.by_out_d);
  p.od = (int32_t)(od - carry * j.d.out);
  p.base = (plane + carry) * j.cells - t.begin;
  return p;
}

/* --- Adding --- */

static __device__ __forceinline__ void add(const part &t, uint32_t cell, float grad) {
  shared_store(t.sum + 4 * cell, shared_load(t.sum + 4 * cell) + grad);
}

/* Lanes of the same cell add in the order of their ranks. */
static __device__ __forceinline__ void add_ranked(const part &t, uint32_t cell, float grad,
                                                  int rank) {
  if (cell >= t.cells) rank = -1;
  if (rank == 0) add(t, cell, grad);
  for (int r = 1; __any_sync(EVERY_LANE, rank >= r); r++) {
    __syncwarp();
    if (rank == r) add(t, cell, grad);
  }
  __syncwarp();
}

/* How many lanes before this one name the same cell; cells may be any. */
static __device__ __forceinline__ int rank_by_match(const part &t, uint32_t cell) {
  const uint32_t before = (1u << lane_number()) - 1;
  return __popc(__match_any_sync(EVERY_LANE, cell < t.cells ? cell : ~(uint32_t)lane_number()) &
                before);
}

/* The same when only the `near` lanes before it can, 2 or 3. */
static __device__ __forceinline__ int rank_by_shuffle(uint32_t cell, int near) {
  const int lane = lane_number();
  int rank = (__shfl_up_sync(EVERY_LANE, cell, 1) == cell) & (lane >= 1);
  rank += (__shfl_up_sync(EVERY_LANE, cell, 2) == cell) & (lane >= 2);
  if (near > 2) rank += (__shfl_up_sync(EVERY_LANE, cell, 3) == cell) & (lane >= 3);
  return rank;
}

/* Outputs whose indices lie in their windows; cell ~0 is none. */
static __device__ __forceinline__ void add_usual(const scan_plan &s, const part &t, uint32_t cell,
                                                 float grad) {
  const bool inside = cell < t.cells;
  if (s.near == 0) {
    if (inside) add(t, cell, grad);
    __syncwarp();
  } else if (s.near == 1) {
    const bool second =
        inside & (__shfl_up_sync(EVERY_LANE, cell, 1) == cell) & (lane_number() >= 1);
    if (inside & !second) add(t, cell, grad);
    if (__any_sync(EVERY_LANE, second)) {
      __syncwarp();
      if (second) add(t, cell, grad);
    }
    __syncwarp();
  } else {
    add_ranked(t, cell, grad,
               s.near == BY_MATCH ? rank_by_match(t, cell) : rank_by_shuffle(cell, s.near));
  }
}

/* --- Looking --- */

/* An index that does not point into the part: true if another warp or block has to know. */
static __device__ bool look_elsewhere(const scatter_job &j, const part &t, const place &p,
                                      int64_t index, found_bad *found) {
  const uint32_t d = (uint32_t)max(window(j.d, p.od).begin, 0);
  const uint32_t h = (uint32_t)max(window(j.h, p.oh).begin, 0);
  const uint32_t w = (uint32_t)max(window(j.w, p.ow).begin, 0);
  const uint32_t home = (d * j.h.in + h) * j.w.in + w;
  if (home + p.base >= t.cells) return false;
  const uint32_t plane = t.plane + over(p.base + t.begin, j.by_cells);
  if ((uint64_t)index >= j.cells) {
    note_bad(found, position_of(j, plane, p.od, p.oh, p.ow));
    return false;
  }
  if (in_window(j, (uint32_t)index, p.od, p.oh, p.ow)) return false;
  if (j.stray != nullptr) j.stray[item_of(j, plane, (uint32_t)index)] = 1;
  return true;
}

/* One batch of any outputs, at any strides. */
template <typename E, typename I>
static __device__ __forceinline__ bool take_any(const scatter_job &j, const part &t, const place &p,
                                                bool active, found_bad *found) {
  uint32_t cell = ~0u;
  float grad = 0;
  bool strayed = false;
  if (active) {
    const uint32_t plane = t.plane + over(p.base + t.begin, j.by_cells);
    const int64_t index = ((const I *)j.index)[plane_offset(j, j.index_at, plane) +
                                               cell_offset(j.index_at, p.od, p.oh, p.ow)];
    grad = widened(
        ((const E *)
             j.grad)[plane_offset(j, j.grad_at, plane) + cell_offset(j.grad_at, p.od, p.oh, p.ow)]);
    if ((uint64_t)index < j.cells) cell = (uint32_t)index + p.base;
    if (cell >= t.cells && t.tell) strayed = look_elsewhere(j, t, p, index, found);
  }
  add_ranked(t, cell, grad, rank_by_match(t, cell));
  return strayed;
}

/* `count` outputs from one on, in blocks of ABREAST batches: where their tensors are flat, all
 * loads of a block are on their way before the first is used. */
template <bool PLAIN, typename E, typename I>
static __device__ __forceinline__ bool scan(const scatter_job &j, const scan_plan &s, const part &t,
                                            uint32_t plane, uint32_t od, uint32_t oh, uint32_t ow,
                                            uint32_t count, found_bad *found) {
  const uint32_t lane = (uint32_t)lane_number();
  const int64_t first =
      ((int64_t)t.plane + plane) * j.outputs + ((int64_t)od * j.h.out + oh) * (int64_t)j.w.out + ow;
  const I *index_at = (const I *)j.index + first + lane;
  const E *grad_at = (const E *)j.grad + first + lane;
  const uint32_t batch = (uint32_t)s.batch;
  const bool fast = j.flat_out && !s.few;
  if (lane >= batch) count = 0; /* such a lane goes along and has none */
  const uint32_t blocks = __shfl_sync(EVERY_LANE, count, 0);
  place p = place_at(j, t, plane, od, oh, ow, lane);
  bool strayed = false;
  for (uint32_t done = 0; done < blocks; done += ABREAST * batch) {
    const place before = p;
    const uint32_t left = count > done + lane ? count - done - lane : 0; /* from this lane on */
    bool usual = fast;
    uint32_t cell[ABREAST];
    E grad[ABREAST];
    I index[ABREAST];
    if (fast) {
#pragma unroll
      for (int i = 0; i < ABREAST; i++)
        if (i * batch < left) {
          index[i] = __ldg(index_at + i * batch);
          grad[i] = grad_at[i * batch];
        }
      index_at += ABREAST * batch;
      grad_at += ABREAST * batch;
#pragma unroll
      for (int i = 0; i < ABREAST; i++) {
        if (i > 0 && done + i * batch >= blocks) break;
        const bool active = i * batch < left;
        cell[i] = active ? (uint32_t)index[i] + p.base : ~0u;
        usual &= !active | (((uint64_t)index[i] < j.cells) &
                            in_window<PLAIN>(j, (uint32_t)index[i], p.od, p.oh, p.ow));
        step<PLAIN>(j, s, p);
      }
    }
    if (__all_sync(EVERY_LANE, usual)) {
#pragma unroll
      for (int i = 0; i < ABREAST; i++) {
        if (i > 0 && done + i * batch >= blocks) break;
        add_usual(s, t, cell[i], widened(grad[i]));
      }
      __syncwarp();
      continue;
    }
    p = before;
#pragma unroll 1
    for (int i = 0; i < ABREAST && done + i * batch < blocks; i++) {
      strayed |= take_any<E, I>(j, t, p, i * batch < left, found);
      step<PLAIN>(j, s, p);
    }
  }
  return strayed;
}

/* The outputs that a part looks at, as runs that follow each other: rows of windows that touch a
 * row of cells, else rows, slices or planes of outputs. */
template <bool PLAIN, typename E, typename I>
static __device__ __forceinline__ bool scan_part(const scatter_job &j, const scan_plan &s,
                                                 const part &t, found_bad *found) {
  const uint32_t last = t.begin + t.cells - 1;
  const uint32_t plane = over(t.begin, j.by_cells), end = over(last, j.by_cells);
  pg_span od = {0, 1}, oh = {0, 1};
  uint32_t ow = 0, count = (end - plane + 1) * j.outputs;
  if (!t.every) {
    const uint32_t row = over(t.begin - plane * j.cells, j.by_w);
    const uint32_t row_end = over(last - end * j.cells, j.by_w);
    const int32_t d = (int32_t)over(row, j.by_h), d_end = (int32_t)over(row_end, j.by_h);
    const int32_t h = (int32_t)row - d * j.h.in, h_end = (int32_t)row_end - d_end * j.h.in;
    if (plane == end && d == d_end) {
      od = touching(j.d, d, d + 1);
      oh = touching(j.h, h, h_end + 1);
      count = (uint32_t)length(oh) * j.w.out;
      if (h == h_end) {
        const int32_t w = (int32_t)(t.begin - plane * j.cells - row * j.w.in);
        const pg_span some = touching(j.w, w, w + (int32_t)t.cells);
        ow = some.begin;
        count = (uint32_t)length(some);
      } else {
        oh.end = oh.begin + 1;
      }
    } else if (!j.deep) {
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
  }
  bool strayed = false;
  for (int32_t slice = od.begin; slice < od.end; slice++)
    for (int32_t row = oh.begin; row < oh.end; row++)
      strayed |= scan<PLAIN, E, I>(j, s, t, plane, slice, row, ow, count, found);
  return strayed;
}

#endif
