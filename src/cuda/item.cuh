/* SPDX-License-Identifier: Apache-2.0 */
/* SCATTER's items: made by a block in shared memory, whatever the indices say. */
#ifndef PG_CUDA_ITEM_CUH_
#define PG_CUDA_ITEM_CUH_

#include "cuda/scan.cuh"

/* An item, and the warp's part of it: groups [from, to).  A group is 16 bytes of gradInput; cell 0
 * is the lead-th of the first.  The tile begins with the base-th, so that a group's floats are
 * whole words of 16 bytes too. */
template <typename E>
struct item {
  float *tile;
  E *out;
  uint32_t plane, begin; /* its first, and the position of its first cell in that */
  int32_t planes, cells;
  int32_t lead, base, from, to;

  __device__ __forceinline__ float *sums(int32_t group) const {
    return tile + (group - base) * (int32_t)(16 / sizeof(E));
  }
};

template <typename E>
static __device__ __forceinline__ item<E> item_at(const scatter_job &j, uint32_t number,
                                                  float *tile) {
  enum { GROUP = 16 / sizeof(E) };
  const pg_box_32 b = box_32(j.cut, number);
  item<E> it;
  it.tile = tile;
  it.plane = (uint32_t)b.first;
  it.begin = ((uint32_t)b.d.begin * j.h.in + b.h.begin) * j.w.in + b.w.begin;
  it.planes = b.planes;
  it.cells = b.planes * length(b.d) * length(b.h) * length(b.w);
  it.out = (E *)j.in + b.first * j.cells + it.begin;
  it.base = 0;
  it.lead = j.flat_in ? (int32_t)((uintptr_t)it.out % 16 / sizeof(E)) : 0;
  const int32_t groups = (it.lead + it.cells + GROUP - 1) / GROUP;
  const int32_t warps = (int32_t)blockDim.x / 32, share = (groups + warps - 1) / warps;
  it.from = min((int32_t)threadIdx.x / 32 * share, groups);
  it.to = min(it.from + share, groups);
  return it;
}

/* `count` cells from the first-th on, for scan_part. */
template <typename E>
static __device__ __forceinline__ part part_of(const item<E> &it, int32_t first, int32_t count) {
  return {shared_address(it.sums(0) + it.lead + first),
          (uint32_t)max(count, 0),
          it.begin + first,
          it.plane,
          false,
          true};
}

template <typename E>
static __device__ __forceinline__ part own_part(const item<E> &it) {
  enum { GROUP = 16 / sizeof(E) };
  const int32_t first = max(it.from * GROUP - it.lead, 0);
  return part_of(it, first, min(it.to * GROUP - it.lead, it.cells) - first);
}

template <typename E>
static __device__ __forceinline__ void zero(const item<E> &it) {
  float *end = it.sums(it.to);
  for (float *four = it.sums(it.from) + 4 * lane_number(); four < end; four += 4 * 32)
    *(float4 *)four = make_float4(0, 0, 0, 0);
  __syncwarp();
}

template <typename E>
static __device__ __forceinline__ void write_flat(const scatter_job &j, const item<E> &it) {
  enum { GROUP = 16 / sizeof(E) };
  for (int32_t g = it.from + lane_number(); g < it.to; g += 32) {
    const int32_t first = g * GROUP - it.lead;
    if (first >= 0 && first + GROUP <= it.cells) {
      float sum[GROUP];
#pragma unroll
      for (int i = 0; i < GROUP; i += 4) {
        const float4 four = *(const float4 *)(it.sums(g) + i);
        sum[i] = four.x;
        sum[i + 1] = four.y;
        sum[i + 2] = four.z;
        sum[i + 3] = four.w;
      }
      put_16(it.out + first, sum, j.stream);
    } else {
      for (int i = max(0, -first); i < GROUP && first + i < it.cells; i++)
        put(it.out + first + i, it.sums(g)[i]);
    }
  }
}

/* At any strides. */
template <typename E>
static __device__ __forceinline__ void write_strided(const scatter_job &j, const item<E> &it) {
  const part t = own_part(it);
  for (uint32_t i = lane_number(); i < t.cells; i += 32) {
    const uint32_t planes = over(t.begin + i, j.by_cells), at = t.begin + i - planes * j.cells;
    const uint32_t row = over(at, j.by_w), d = over(row, j.by_h);
    put((E *)j.in + plane_offset(j, j.in_at, t.plane + planes) +
            cell_offset(j.in_at, (int32_t)d, (int32_t)(row - d * j.h.in),
                        (int32_t)(at - row * j.w.in)),
        shared_load(t.sum + 4 * i));
  }
}

template <bool PLAIN, typename E, typename I>
static __device__ __forceinline__ void make_item(const scatter_job &j, const scan_plan &s,
                                                 uint32_t number, float *tile, found_bad *found) {
  const item<E> it = item_at<E>(j, number, tile);
  if (lane_number() == 0) clear(found);
  zero(it);
  part t = own_part(it);
  t.every = j.again;
  t.tell = !j.again;
  if (s.few) __syncthreads();
  for (int32_t plane = (int32_t)threadIdx.x / 32; !s.few || plane < it.planes;
       plane += (int32_t)blockDim.x / 32) {
    if (s.few) {
      t = part_of(it, plane * (int32_t)j.cells, (int32_t)j.cells);
      t.every = true;
    }
    const bool strayed = t.cells > 0 && scan_part<PLAIN, E, I>(j, s, t, found);
    if (s.few) continue;
    if (j.stray != nullptr || !__syncthreads_or(strayed)) break;
    t.every = true;
    t.tell = false;
    zero(it);
  }
  if (s.few) __syncthreads();
  if (j.flat_in)
    write_flat(j, it);
  else
    write_strided(j, it);
  if (lane_number() == 0) hand_over(j, found);
}

enum { PIECE = 256 /* cells */ };

/* The same in little room, which is the warp's own: its part piece by piece, for planes that follow
 * each other. */
template <bool PLAIN, typename E, typename I>
static __device__ __forceinline__ void make_in_pieces(const scatter_job &j, const scan_plan &s,
                                                      uint32_t number, float *room,
                                                      found_bad *found) {
  item<E> it = item_at<E>(j, number, room);
  const int32_t from = it.from, to = it.to;
  if (lane_number() == 0) clear(found);
  bool strayed = false;
  for (int pass = 0; pass < 2; pass++) {
    for (it.from = from; it.from < to; it.from = it.to) {
      it.base = it.from;
      it.to = min(it.from + PIECE * (int32_t)sizeof(E) / 16, to);
      zero(it);
      part t = own_part(it);
      t.every = pass > 0;
      t.tell = pass == 0;
      strayed |= t.cells > 0 && scan_part<PLAIN, E, I>(j, s, t, found);
      write_flat(j, it);
      __syncwarp();
    }
    if (j.stray != nullptr || !__syncthreads_or(strayed)) break;
  }
  if (lane_number() == 0) hand_over(j, found);
}

/* Lanes of a batch are less than a row of outputs minus an overlap apart, so that two of them name
 * the same cell only within a row. */
static scan_plan scan_plan_of(const scatter_job &j) {
  enum { FEW = 16, LANES = 32, SPARSE = 16 };
  const pg_pooling &p = j.pool;
  const bool overlap = most_windows(p.d) > 1 || most_windows(p.h) > 1 || most_windows(p.w) > 1;
  const int64_t near = most_windows(p.w) - 1, apart = p.w.out - near;
  scan_plan s = {};
  s.batch = LANES;
  s.few = j.stray == nullptr && j.outputs < j.cells / SPARSE;
  if (overlap && near <= SHUFFLES && apart >= FEW) {
    s.near = (int32_t)near;
    s.batch = (int32_t)least(apart, LANES);
  } else if (overlap) {
    s.near = BY_MATCH;
  }
  const int64_t rows = s.batch / p.w.out, slices = rows / p.h.out;
  s.step_w = (int32_t)(s.batch % p.w.out);
  s.step_h = (int32_t)(rows % p.h.out);
  s.step_d = (int32_t)(slices % p.d.out);
  s.step_base = (uint32_t)(slices / p.d.out) * j.cells;
  return s;
}

#endif
