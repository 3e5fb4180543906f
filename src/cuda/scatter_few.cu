/* SPDX-License-Identifier: Apache-2.0 */
/* SCATTER where outputs are few among the cells: in the main a fill.
 *
 * A warp makes items, one after the other, in a tile of sums that is all zeros whenever an item
 * begins: writing an item clears what was added.  Windows matter only where planes are cut.  That
 * lanes name the same cell is found out in the tile itself: each leaves its number there, and who
 * finds another's is not alone.  Outputs of the next item are on their way while this one's cells
 * are written. */
#include "cuda/scan.cuh"

enum { AHEAD = 4 /* batches on their way */, LANES = 32 };

extern __shared__ float4 pg_few_room[];

struct few_plan {
  int32_t room; /* floats of the tile; behind it a lane has one for what it does not add */
  pg_divider by_outputs;
};

/* An item: cells that follow each other, and the outputs it looks at, `runs` times `count` that
 * follow each other, the first being a plane's output-th; runs are slices of outputs apart.  Those
 * from the home_run-th run and its home-th on are at home here. */
template <typename E>
struct few_item {
  E *out;
  int32_t lead; /* cell 0 is the lead-th of 16 bytes of gradInput */
  uint32_t plane, begin, cells;
  uint32_t output;
  int32_t count, home;
  int32_t planes, runs, home_run;
};

/* Outputs on their way to a lane. */
template <typename E, typename I>
struct few_outputs {
  const I *index_at;
  const E *grad_at;
  I index[AHEAD];
  E grad[AHEAD];
};

/* The first output whose window does not begin before the cell. */
static __device__ __forceinline__ int32_t first_at_home(const scatter_axis &a, int32_t cell) {
  return cell == 0 ? 0 : touching(a, cell - 1, cell).end;
}

template <typename E>
static __device__ __forceinline__ void look_at_cut(const scatter_job &j, uint32_t number,
                                                   few_item<E> &it) {
  const pg_box_32 b = box_32(j.cut, number);
  const pg_span od = touching(j.d, b.d.begin, b.d.end);
  const int32_t slice = j.h.out * j.w.out,
                before = max(first_at_home(j.d, b.d.begin) - od.begin, 0);
  it.plane = (uint32_t)b.first;
  it.begin = ((uint32_t)b.d.begin * j.h.in + b.h.begin) * j.w.in;
  it.cells = (uint32_t)(length(b.d) * length(b.h) * j.w.in);
  it.output = (uint32_t)(od.begin * slice);
  if (length(b.h) == j.h.in) {
    it.count = length(od) * slice;
    it.home = before * slice;
    return;
  }
  const pg_span oh = touching(j.h, b.h.begin, b.h.end);
  it.output += (uint32_t)(oh.begin * j.w.out);
  it.count = length(oh) * j.w.out;
  it.home = (first_at_home(j.h, b.h.begin) - oh.begin) * j.w.out;
  it.runs = length(od);
  it.home_run = before;
}

template <bool WHOLE, typename E>
static __device__ __forceinline__ few_item<E> few_item_at(const scatter_job &j, uint32_t number) {
  few_item<E> it = {};
  it.planes = it.runs = 1;
  if (WHOLE) {
    it.plane = number * (uint32_t)j.cut.of_planes;
    it.planes = (int32_t)min((int64_t)j.cut.of_planes, j.cut.planes - it.plane);
    it.cells = it.planes * j.cells;
    it.count = it.planes * (int32_t)j.outputs;
  } else {
    look_at_cut(j, number, it);
  }
  it.out = (E *)j.in + (int64_t)it.plane * j.cells + it.begin;
  it.lead = (int32_t)((uintptr_t)it.out % 16 / sizeof(E));
  return it;
}

/* --- Adding --- */

/* Where a cell's sum is: of 8 sums that make 16 bytes every other four groups have their halves
 * swapped, lest lanes that read a half each meet at the same banks. */
template <typename E>
static __device__ __forceinline__ uint32_t swapped(uint32_t at) {
  return sizeof(E) == 4 ? at : at ^ (at >> 3 & 4);
}

static __device__ __forceinline__ uint32_t shared_bits(uint32_t address) {
  return __float_as_uint(shared_load(address));
}

/* One of the lanes that do this at once comes last; an exchange says that this is meant. */
static __device__ __forceinline__ void claim(uint32_t address, int bits) {
#ifdef __CUDA_ARCH__
  asm volatile("atom.shared.exch.b32 _, [%0], %1;" ::"r"(address), "r"(bits) : "memory");
#else
  shared_store(address, __uint_as_float((uint32_t)bits));
#endif
}

/* Some cells have more than two lanes: one of each knows. */
static __device__ int rank_of_many(uint32_t address, bool knows, int rank) {
  const int lane = lane_number();
  if (knows) claim(address, 2 * LANES);
  __syncwarp();
  const bool many = shared_bits(address) == 2 * LANES;
  if (many) rank = 0;
  for (uint32_t left = __ballot_sync(EVERY_LANE, many); left != 0; left &= left - 1) {
    const int other = __ffs((int)left) - 1;
    rank += (__shfl_sync(EVERY_LANE, address, other) == address) & (other < lane);
  }
  return rank;
}

/* Some lanes are not alone with their cells: where two were, `left` is the number of the one that
 * came last.  The lanes of a cell add in their order; `before` is what it was. */
static __device__ __noinline__ void add_together(uint32_t address, float before, float grad,
                                                 int left) {
  const int lane = lane_number();
  const bool lost = left != lane;
  if (lost) claim(address, LANES + lane);
  __syncwarp();
  const int seen = (int)shared_bits(address);
  const bool third = lost && seen != LANES + lane;
  int rank = lost ? left < lane : seen - LANES < lane && seen >= LANES;
  if (__any_sync(EVERY_LANE, third)) rank = rank_of_many(address, third, rank);
  if (rank == 0) shared_store(address, before + grad);
  for (int r = 1; __any_sync(EVERY_LANE, rank >= r); r++) {
    __syncwarp();
    if (rank == r) shared_store(address, shared_load(address) + grad);
  }
  __syncwarp();
}

static __device__ __forceinline__ void add_batch(uint32_t address, float grad) {
  const int lane = lane_number();
  const float before = shared_load(address);
  __syncwarp();
  claim(address, lane);
  __syncwarp();
  const int left = (int)shared_bits(address);
  if (__any_sync(EVERY_LANE, left != lane)) {
    add_together(address, before, grad, left);
  } else {
    shared_store(address, before + grad);
    __syncwarp();
  }
}

/* --- Outputs --- */

/* The output is at home here and names no cell of the item. */
template <bool WHOLE>
static __device__ __noinline__ void tell_few(const scatter_job &j, uint32_t plane, uint32_t output,
                                             int64_t index, found_bad *found) {
  if (WHOLE || (uint64_t)index >= j.cells) {
    note_bad(found, (int64_t)plane * j.outputs + output, index);
    return;
  }
  const uint32_t row = over(output, j.by_out_w), slice = over(row, j.by_out_h);
  if (!in_window(j, (uint32_t)index, (int32_t)slice, (int32_t)(row - slice * j.h.out),
                 (int32_t)(output - row * j.w.out)))
    j.stray[item_of(j, plane, (uint32_t)index)] = 1;
}

/* The first AHEAD batches of a run. */
template <typename E, typename I>
static __device__ __forceinline__ void fetch(const scatter_job &j, const few_item<E> &it,
                                             few_outputs<E, I> &o) {
  const int64_t at = (int64_t)it.plane * j.outputs + it.output + lane_number();
  o.index_at = (const I *)j.index + at;
  o.grad_at = (const E *)j.grad + at;
#pragma unroll
  for (int i = 0; i < AHEAD; i++)
    if (i * LANES < it.count - lane_number()) {
      o.index[i] = __ldg(o.index_at + i * LANES);
      o.grad[i] = o.grad_at[i * LANES];
    }
}

/* A run.  Batches come in turns: when one is taken, the one AHEAD of it is sent for. */
template <bool WHOLE, typename E, typename I>
static __device__ __forceinline__ void take(const scatter_job &j, const few_plan &f,
                                            const few_item<E> &it, int32_t home, uint32_t tile,
                                            few_outputs<E, I> &o, found_bad *found) {
  const int32_t lane = lane_number();
  const uint32_t none = (uint32_t)(f.room + lane), lead = it.lead - it.begin;
  for (int32_t done = 0; done < it.count; done += AHEAD * LANES) {
    const int32_t left = it.count - done - lane;
#pragma unroll
    for (int i = 0; i < AHEAD; i++) {
      if (i > 0 && done + i * LANES >= it.count) break;
      const I index = o.index[i];
      const float grad = widened(o.grad[i]);
      if ((AHEAD + i) * LANES < left) {
        o.index[i] = __ldg(o.index_at + (AHEAD + i) * LANES);
        o.grad[i] = o.grad_at[(AHEAD + i) * LANES];
      }
      uint32_t cell = (uint32_t)index - it.begin, at = (uint32_t)index + lead;
      bool inside = (sizeof(I) == 4 || (uint64_t)index >> 32 == 0) & (cell < it.cells);
      const int32_t k = done + i * LANES + lane;
      if (WHOLE && it.planes > 1) {
        inside &= cell < j.cells;
        const uint32_t base = over((uint32_t)k, f.by_outputs) * j.cells;
        at += base;
      }
      const bool active = i * LANES < left;
      if (active & !inside & (k >= home)) tell_few<WHOLE>(j, it.plane, it.output + k, index, found);
      add_batch(tile + 4 * (active & inside ? swapped<E>(at) : none), grad);
    }
    o.index_at += AHEAD * LANES;
    o.grad_at += AHEAD * LANES;
  }
}

/* All outputs that an item looks at; the first are on their way. */
template <bool WHOLE, typename E, typename I>
static __device__ __forceinline__ void take_all(const scatter_job &j, const few_plan &f,
                                                few_item<E> it, uint32_t tile, few_outputs<E, I> &o,
                                                found_bad *found) {
  for (int32_t run = 0; run < it.runs; run++) {
    if (run > 0) {
      it.output += (uint32_t)(j.h.out * j.w.out);
      fetch(j, it, o);
    }
    take<WHOLE>(j, f, it, run < it.home_run ? it.count : it.home, tile, o, found);
  }
}

/* --- Items --- */

static __device__ __forceinline__ uint32_t read_four(const float *tile, float *sum) {
  const float4 four = *(const float4 *)tile;
  sum[0] = four.x;
  sum[1] = four.y;
  sum[2] = four.z;
  sum[3] = four.w;
  return __float_as_uint(four.x) | __float_as_uint(four.y) | __float_as_uint(four.z) |
         __float_as_uint(four.w);
}

/* U times 16 bytes, a warp's apart: out of the tile, which is cleared, to gradInput. */
template <int U, typename E>
static __device__ __forceinline__ void write_groups(float *low, float *high, E *out, bool stream) {
  enum { GROUP = 16 / sizeof(E), STEP = LANES * GROUP };
  float sum[U][GROUP];
  uint32_t any[U];
#pragma unroll
  for (int u = 0; u < U; u++) {
    any[u] = read_four(low + u * STEP, sum[u]);
    if (GROUP == 8) any[u] |= read_four(high + u * STEP, sum[u] + GROUP - 4);
  }
#pragma unroll
  for (int u = 0; u < U; u++)
    if (any[u] != 0) {
      *(float4 *)(low + u * STEP) = make_float4(0, 0, 0, 0);
      if (GROUP == 8) *(float4 *)(high + u * STEP) = make_float4(0, 0, 0, 0);
    }
#pragma unroll
  for (int u = 0; u < U; u++) put_16(out + u * STEP, sum[u], stream);
}

template <typename E>
static __device__ __forceinline__ void write_one(float *tile, E *out, int32_t at) {
  float *sum = tile + swapped<E>((uint32_t)at);
  put(out + at, *sum);
  *sum = 0;
}

template <typename E>
static __device__ __forceinline__ void write_few(const scatter_job &j, const few_item<E> &it,
                                                 float *tile) {
  enum { GROUP = 16 / sizeof(E), STEP = LANES * GROUP, U = 16 / GROUP };
  const int32_t lane = lane_number(), end = it.lead + (int32_t)it.cells;
  const int32_t first = it.lead != 0, full = end / GROUP;
  E *out = it.out - it.lead;
  int32_t g = first + lane;
  float *low = tile + swapped<E>((uint32_t)(g * GROUP));
  float *high = tile + swapped<E>((uint32_t)(g * GROUP + GROUP - 4));
  E *to = out + g * GROUP;
#pragma unroll 1
  for (; g + (U - 1) * LANES < full; g += U * LANES, low += U * STEP, high += U * STEP) {
    write_groups<U>(low, high, to, j.stream);
    to += U * STEP;
  }
#pragma unroll 1
  for (; g < full; g += LANES, low += STEP, high += STEP, to += STEP)
    write_groups<1>(low, high, to, j.stream);
  const int32_t tail = max(first, full) * GROUP + lane;
  if (first != 0 && lane >= it.lead && lane < min((int32_t)GROUP, end)) write_one(tile, out, lane);
  if (tail < end) write_one(tile, out, tail);
}

template <bool WHOLE, typename E, typename I>
static __global__ void __launch_bounds__(LANES)
    scatter_few(const __grid_constant__ scatter_job j, const __grid_constant__ few_plan f) {
  __shared__ found_bad found;
  float *tile = (float *)pg_few_room;
  const uint32_t sums = shared_address(tile);
  if (lane_number() == 0) clear(&found);
  for (int32_t i = 4 * lane_number(); i < f.room + LANES; i += 4 * LANES)
    *(float4 *)(tile + i) = make_float4(0, 0, 0, 0);
  __syncwarp();
  few_item<E> it = few_item_at<WHOLE, E>(j, blockIdx.x);
  few_outputs<E, I> o;
  fetch(j, it, o);
  for (int64_t next = blockIdx.x; next < j.items;) {
    next += gridDim.x;
    take_all<WHOLE>(j, f, it, sums, o, &found);
    const few_item<E> now = it;
    if (next < j.items) {
      /* shuffled, lest it is kept in uniform registers, which take more moves than they save */
      it = few_item_at<WHOLE, E>(j, __shfl_sync(EVERY_LANE, (uint32_t)next, 0));
      fetch(j, it, o);
    }
    write_few(j, now, tile);
    __syncwarp();
  }
  if (lane_number() == 0) hand_over(j, &found);
}

/* --- On the host --- */

/* Where windows overlap, lanes often name the same cell. */
static bool has_few(const scatter_job &j) {
  const pg_pooling &p = j.pool;
  const bool overlap = most_windows(p.d) > 1 || most_windows(p.h) > 1 || most_windows(p.w) > 1;
  return (int64_t)j.outputs * (overlap ? 8 : 4) <= j.cells;
}

template <typename E, typename I>
static bool try_few(const pg_cuda_call *call, cudaError_t *status) {
  enum { MOST_BLOCKS = 32, OF_BLOCK = 1024 + (int)sizeof(found_bad) /* shared memory it takes */ };
  const scatter_job j = scatter_job_of(call, sizeof(E));
  if (!j.narrow || j.again || !j.flat_in || !j.flat_out || !has_few(j)) return false;
  if (j.tiling.w != j.pool.w.in || j.items < 2 * (int64_t)call->limits.processors) return false;
  const pg_tiling &t = j.tiling;
  few_plan f = {};
  f.room = (int32_t)(t.planes * t.d * t.h * t.w + 16 + 3) / 4 * 4;
  f.by_outputs = divider_of(j.outputs);
  const int64_t bytes = (f.room + LANES) * (int64_t)sizeof(float);
  const int64_t fit = (call->limits.shared_bytes + OF_BLOCK) / (bytes + OF_BLOCK);
  const int64_t most = least(fit < 1 ? 1 : fit, MOST_BLOCKS) * call->limits.processors;
  const int64_t rounds = (j.items - 1) / most + 1, blocks = (j.items - 1) / rounds + 1;
  *status = launch(call, j.stray == nullptr ? scatter_few<true, E, I> : scatter_few<false, E, I>,
                   blocks, LANES, bytes, j, f);
  return true;
}

bool pg_cuda_try_scatter_few(const pg_cuda_call *call, cudaError_t *status) {
  bool done = false;
  (void)with_scatter_types(call->step, [&](auto e, auto i) {
    done = try_few<decltype(e), decltype(i)>(call, status);
    return cudaSuccess;
  });
  return done;
}
