/* SPDX-License-Identifier: Apache-2.0 */
/* SCATTER where outputs are few among the cells: in the main a fill.
 *
 * A warp makes items, one after the other, in a tile of sums that is all zeros whenever an item
 * begins: writing an item clears what was added.  Windows matter only where planes are cut.  Lanes
 * that name the same cell meet in the tile itself: each flips its bit there.  Outputs of the next
 * item are on their way while this one's cells are written.
 *
 * A block's items are of different planes and at the same place there.  Processors are not all as
 * fast: the blocks that fit on them at once make most of the items, and whoever is done first goes
 * on with blocks of a few. */
#include "cuda/kernels/async_copy.cuh"
#include "cuda/kernels/max_job.cuh"

enum { AHEAD = 7 /* batches on their way */, LANES = 32 };
enum { MOST_BLOCKS = 20 /* that a processor holds */, PAIR = 2 };

extern __shared__ __align__(256) float4 pg_few_room[];

/* Items at all the places of a plane, or of some planes together, are a row.  The first `rows`
 * times as many blocks make `rounds` items each, the next `pairs` times PAIR, the others one. */
struct few_plan {
  int32_t room; /* floats of the tile, one a lane at least */
  uint32_t rows, rounds, pairs;
  uint32_t callers; /* blocks that call for all outputs before the first is used; 0: none */
  pg_divider by_cuts, by_outputs;
};

/* A block's part of the items: `count` of them, `step` rows apart. */
struct few_turn {
  uint32_t first, count, step;
};

/* An item: cells that follow each other, and the outputs it looks at, `runs` times `count` that
 * follow each other, the first being a plane's output-th; runs are slices of outputs apart.  The
 * last `home` of the home_run-th run, and of those behind it, are at home here.  Windows of the
 * last `across` of a run go on behind the item: the items up to the reach-th cell from here look at
 * these outputs too. */
template <typename E>
struct few_item {
  E *out;
  int32_t lead; /* cell 0 is the lead-th of 16 bytes of gradInput */
  uint32_t plane, begin, cells, reach;
  uint32_t output;
  int32_t count, home, across;
  int32_t planes, runs, home_run;
};

/* Outputs on their way to a lane, the first of them being at index_at and grad_at, and where those
 * before them were added. */
template <typename E, typename I>
struct few_outputs {
  const I *index_at;
  const E *grad_at;
  I index[AHEAD];
  E grad[AHEAD];
  uint32_t added[AHEAD];
};

/* The first output whose window does not begin before the cell. */
static __device__ __forceinline__ int32_t first_at_home(const max_axis &a, int32_t cell) {
  return cell == 0 ? 0 : touching(a, cell - 1, cell).end;
}

/* An axis is cut behind `end` into parts of `size`: the first output that reaches behind it, and
 * how far the parts go that this one reaches. */
struct few_crossing {
  int32_t first, beyond;
};

static __device__ __forceinline__ few_crossing crossing(const max_axis &a, int32_t end,
                                                        int32_t size) {
  if (end >= a.in) return {a.out, 0};
  const int32_t first = touching(a, end, end + 1).begin;
  if (first >= a.out) return {a.out, 0};
  const pg_window_32 w = window(a, first);
  const int32_t reach = max(min(w.begin + (int32_t)w.length, a.in) - end, 0);
  return {first, min((reach + size - 1) / size * size, a.in - end)};
}

template <typename E>
static __device__ __forceinline__ void look_at_cut(const max_job &j, uint32_t number,
                                                   few_item<E> &it) {
  const pg_box_32 b = box_32(j.cut, number);
  const pg_span od = touching(j.d, b.d.begin, b.d.end);
  const int32_t slice = j.h.out * j.w.out, first = max(first_at_home(j.d, b.d.begin), od.begin);
  it.plane = (uint32_t)b.first;
  it.begin = ((uint32_t)b.d.begin * j.h.in + b.h.begin) * j.w.in;
  it.cells = (uint32_t)(length(b.d) * length(b.h) * j.w.in);
  it.output = (uint32_t)(od.begin * slice);
  if (length(b.h) == j.h.in) {
    const few_crossing c = crossing(j.d, b.d.end, j.cut.of_d);
    it.count = length(od) * slice;
    it.home = (od.end - first) * slice;
    it.across = (od.end - c.first) * slice;
    it.reach = it.cells + (uint32_t)(c.beyond * j.h.in * j.w.in);
    return;
  }
  const pg_span oh = touching(j.h, b.h.begin, b.h.end);
  const few_crossing c = crossing(j.h, b.h.end, j.cut.of_h);
  it.output += (uint32_t)(oh.begin * j.w.out);
  it.count = length(oh) * j.w.out;
  it.home = (oh.end - max(first_at_home(j.h, b.h.begin), oh.begin)) * j.w.out;
  it.across = (oh.end - c.first) * j.w.out;
  it.reach = it.cells + (uint32_t)(c.beyond * j.w.in);
  it.runs = length(od);
  it.home_run = first - od.begin;
  if (it.runs > 0) return;
  it.runs = 1; /* of nothing */
  it.count = it.home = it.across = 0;
}

static __device__ __forceinline__ few_turn turn_of(const few_plan &f, uint32_t block) {
  uint32_t row = over(block, f.by_cuts);
  const uint32_t cut = block - row * f.by_cuts.by;
  few_turn t = {0, f.rounds, f.rows};
  if (row >= f.rows) {
    row -= f.rows;
    const bool alone = row >= f.pairs;
    row = f.rows * f.rounds + (alone ? f.pairs * (PAIR - 1) + row : row * PAIR);
    t.count = alone ? 1 : PAIR;
    t.step = 1;
  }
  t.first = row * f.by_cuts.by + cut;
  return t;
}

template <typename E>
static __device__ __forceinline__ void place(few_item<E> &it, E *out) {
  it.out = out;
  it.lead = (int32_t)((uintptr_t)out % 16 / sizeof(E));
}

template <bool WHOLE, typename E>
static __device__ __forceinline__ few_item<E> few_item_at(const max_job &j, uint32_t number) {
  few_item<E> it = {};
  it.planes = it.runs = 1;
  if (WHOLE) {
    it.plane = number * (uint32_t)j.cut.of_planes;
    it.planes = (int32_t)min((int64_t)j.cut.of_planes, j.cut.planes - it.plane);
    it.cells = it.planes * j.cells;
    it.count = it.home = it.planes * (int32_t)j.outputs;
  } else {
    look_at_cut(j, number, it);
  }
  place(it, (E *)j.in + (int64_t)it.plane * j.cells + it.begin);
  return it;
}

/* --- Adding --- */

/* Where in the tile a cell's sum is, of 8 that make 16 bytes: every other four groups have their
 * halves swapped, lest lanes that read a half each meet at the same banks. */
template <typename E>
static __device__ __forceinline__ uint32_t swapped(uint32_t address) {
  return sizeof(E) == 4 ? address : address ^ (address >> 3 & 16);
}

static __device__ __forceinline__ void flip(uint32_t address, uint32_t bits) {
#ifdef __CUDA_ARCH__
  asm volatile("red.shared.xor.b32 [%0], %1;" ::"r"(address), "r"(bits) : "memory");
#else
  shared_store(address, __uint_as_float(shared_bits(address) ^ bits));
#endif
}

/* Lanes may do this to the same sum at once; an exchange says that this is meant. */
static __device__ __forceinline__ void clear_sum(uint32_t address) {
#ifdef __CUDA_ARCH__
  asm volatile("atom.shared.exch.b32 _, [%0], 0;" ::"r"(address) : "memory");
#else
  shared_store(address, 0);
#endif
}

/* `bit` is the lane's own; 0: it has nothing to add, and its address is any.  The lanes of a cell
 * find each other by their bits, which they flip in its sum.  They add in their order, each to the
 * sum of the one before it, over and over until the last has the right one, which it stores. */
static __device__ __forceinline__ void add_batch(uint32_t address, uint32_t bit, float grad) {
  const int lane = lane_number();
  const float before = shared_load(address);
  __syncwarp();
  flip(address, bit);
  __syncwarp();
  const uint32_t lanes = __float_as_uint(before) ^ shared_bits(address);
  const uint32_t earlier = lanes & ((1u << lane) - 1);
  float sum = before + grad;
  if (__any_sync(EVERY_LANE, earlier != 0)) {
    const int previous = 31 - __clz((int)earlier), rank = __popc(earlier);
    int round = 1;
    do {
      const float other = __shfl_sync(EVERY_LANE, sum, previous);
      if (earlier != 0) sum = other + grad;
    } while (__any_sync(EVERY_LANE, rank > round++));
  }
  __syncwarp();
  if (lanes >> lane == 1) shared_store(address, sum);
  __syncwarp();
}

/* --- Outputs --- */

/* A value that the compiler is not to make anew, from uniform registers, wherever it is used. */
template <typename T>
static __device__ __forceinline__ T kept(T value) {
#ifdef __CUDA_ARCH__
  if constexpr (sizeof(T) == 8)
    asm volatile("" : "+l"(value));
  else
    asm volatile("" : "+r"(value));
#endif
  return value;
}

static __device__ __forceinline__ float read(const float *from) { return __ldg(from); }
template <typename E>
static __device__ __forceinline__ E read(const E *from) {
  return {__ldg(&from->bits)};
}

/* The first AHEAD batches of a run of `count`, `further` outputs behind the one before. */
template <typename E, typename I>
static __device__ __forceinline__ void fetch(int32_t count, int64_t further, few_outputs<E, I> &o) {
  const int32_t left = count - lane_number();
  o.index_at = kept(o.index_at + further);
  o.grad_at = kept(o.grad_at + further);
#pragma unroll
  for (int i = 0; i < AHEAD; i++)
    if (left > i * LANES) {
      o.index[i] = __ldg(o.index_at + i * LANES);
      o.grad[i] = read(o.grad_at + i * LANES);
    }
}

/* An output, the left-th from a run's end on; none if not above 0.  `odd`: it is at home here,
 * names no cell of the item, and no other item is known to look at it. */
template <bool WHOLE, typename E, typename I>
static __device__ __forceinline__ bool is_inside(const max_job &j, const few_item<E> &it,
                                                 int32_t home, I index, int32_t left, bool &odd) {
  const uint32_t cell = (uint32_t)index - it.begin;
  const bool known = (left > 0) & (sizeof(I) == 4 || (uint64_t)index >> 32 == 0);
  const bool inside = known & (cell < (WHOLE ? j.cells : it.cells));
  if (WHOLE) {
    odd = (left > 0) & !inside;
  } else {
    const uint32_t looked_at = left <= it.across ? it.reach : it.cells;
    odd = (left > 0) & (left <= home) & !(known & (cell < looked_at));
  }
  return inside;
}

/* The i-th batch on its way, `left` outputs before the end of its run; MORE: the one AHEAD of it is
 * sent for.  True if it has an odd output for this lane. */
template <bool WHOLE, bool MORE, typename E, typename I>
static __device__ __forceinline__ bool take_batch(const max_job &j, const few_plan &f,
                                                  const few_item<E> &it, int32_t home,
                                                  uint32_t tile, few_outputs<E, I> &o, int i,
                                                  int32_t left) {
  const int32_t lane = lane_number(), ahead = it.count - left + AHEAD * LANES;
  bool odd;
  const bool inside = is_inside<WHOLE>(j, it, home, o.index[i], left - lane, odd);
  uint32_t address = tile + 4 * (it.lead - it.begin) + 4 * (uint32_t)o.index[i];
  if (WHOLE && it.planes > 1)
    address += over((uint32_t)(it.count - left + lane), f.by_outputs) * 4 * j.cells;
  const float grad = widened(o.grad[i]);
  if (MORE && ahead < it.count - lane) {
    o.index[i] = __ldg(o.index_at + ahead);
    o.grad[i] = read(o.grad_at + ahead);
  }
  o.added[i] = inside ? swapped<E>(address) : tile + 4 * lane;
  add_batch(o.added[i], inside ? 1u << lane : 0, grad);
  return odd;
}

/* A run; true if it has an odd output for this lane. */
template <bool WHOLE, typename E, typename I>
static __device__ __forceinline__ bool take(const max_job &j, const few_plan &f,
                                            const few_item<E> &it, int32_t home, uint32_t tile,
                                            few_outputs<E, I> &o) {
  int32_t left = it.count;
  bool odd = false;
  for (; left > AHEAD * LANES; left -= AHEAD * LANES) {
#pragma unroll
    for (int i = 0; i < AHEAD; i++)
      odd |= take_batch<WHOLE, true>(j, f, it, home, tile, o, i, left - i * LANES);
  }
#pragma unroll
  for (int i = 0; i < AHEAD; i++) {
    if (left <= i * LANES) break;
    odd |= take_batch<WHOLE, false>(j, f, it, home, tile, o, i, left - i * LANES);
  }
  return odd;
}

/* The output is odd. */
template <bool WHOLE>
static __device__ __forceinline__ void tell(const max_job &j, uint32_t plane, uint32_t output,
                                            int64_t index, bad_indices *found) {
  if (WHOLE || (uint64_t)index >= j.cells) {
    note_bad(found, (int64_t)plane * j.outputs + output);
    return;
  }
  const uint32_t row = over(output, j.by_out_w), slice = over(row, j.by_out_h);
  if (!in_window(j, (uint32_t)index, (int32_t)slice, (int32_t)(row - slice * j.h.out),
                 (int32_t)(output - row * j.w.out)))
    j.flags[item_of(j, plane, (uint32_t)index)] = 1;
}

/* A run that has odd outputs. */
template <bool WHOLE, typename E, typename I>
static __device__ __forceinline__ void tell_all(const max_job &j, const few_item<E> &it,
                                                int32_t home, bad_indices *found) {
  const I *index_at = (const I *)j.index + (int64_t)it.plane * j.outputs;
#pragma unroll 1
  for (int32_t batches = home; batches > 0; batches -= LANES) {
    const int32_t left = batches - lane_number();
    const uint32_t output = it.output + (uint32_t)(it.count - left);
    const I index = left > 0 ? __ldg(index_at + output) : 0;
    bool odd;
    is_inside<WHOLE>(j, it, home, index, left, odd);
    if (odd) tell<WHOLE>(j, it.plane, output, index, found);
    __syncwarp();
  }
}

/* All outputs that an item looks at; the first are on their way. */
template <bool WHOLE, typename E, typename I>
static __device__ __forceinline__ void take_all(const max_job &j, const few_plan &f, few_item<E> it,
                                                uint32_t tile, few_outputs<E, I> &o,
                                                bad_indices *found) {
  const int32_t slice = j.h.out * j.w.out;
  for (int32_t run = 0; run < it.runs; run++) {
    const int32_t home = run < it.home_run ? 0 : it.home;
    const bool odd = take<WHOLE>(j, f, it, home, tile, o);
    if (__any_sync(EVERY_LANE, odd)) tell_all<WHOLE, E, I>(j, it, home, found);
    if (run + 1 == it.runs) break;
    it.output += (uint32_t)slice;
    fetch(it.count, slice, o);
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

/* U times 16 bytes, a warp's apart: out of the tile, which may be cleared, to gradInput. */
template <int U, bool CLEAR, typename E>
static __device__ __forceinline__ void write_groups(float *low, float *high, E *out) {
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
    if (CLEAR && any[u] != 0) {
      *(float4 *)(low + u * STEP) = make_float4(0, 0, 0, 0);
      if (GROUP == 8) *(float4 *)(high + u * STEP) = make_float4(0, 0, 0, 0);
    }
#pragma unroll
  for (int u = 0; u < U; u++) put_16(out + u * STEP, sum[u]);
}

template <typename E>
static __device__ __forceinline__ float *sum_at(float *tile, int32_t at) {
  return (float *)((char *)tile + swapped<E>(4 * (uint32_t)at));
}

/* The groups from this lane's on, up to the full-th. */
template <bool CLEAR, typename E>
static __device__ __forceinline__ void write_full(float *tile, E *out, int32_t g, int32_t full) {
  enum { GROUP = 16 / sizeof(E), STEP = LANES * GROUP, U = 16 / GROUP };
  float *low = sum_at<E>(tile, g * GROUP), *high = sum_at<E>(tile, g * GROUP + GROUP - 4);
  E *to = out + g * GROUP;
  int32_t left = full - g;
#pragma unroll 1
  for (; left > (U - 1) * LANES; left -= U * LANES) {
    write_groups<U, CLEAR>(low, high, to);
    low += U * STEP;
    high += U * STEP;
    to += U * STEP;
  }
#pragma unroll 1
  for (; left > 0; left -= LANES) {
    write_groups<1, CLEAR>(low, high, to);
    low += STEP;
    high += STEP;
    to += STEP;
  }
}

template <typename E>
static __device__ __forceinline__ void write_one(float *tile, E *out, int32_t at) {
  float *sum = sum_at<E>(tile, at);
  put(out + at, *sum);
  *sum = 0;
}

template <bool CLEAR, typename E>
static __device__ __forceinline__ void write_few(const max_job &j, const few_item<E> &it,
                                                 float *tile) {
  enum { GROUP = 16 / sizeof(E) };
  const int32_t lane = lane_number(), end = it.lead + (int32_t)it.cells;
  const int32_t first = it.lead != 0, full = end / GROUP;
  E *out = it.out - it.lead;
  write_full<CLEAR>(tile, out, first + lane, full);
  const int32_t tail = max(first, full) * GROUP + lane;
  if (first != 0 && lane >= it.lead && lane < min((int32_t)GROUP, end)) write_one(tile, out, lane);
  if (tail < end) write_one(tile, out, tail);
}

/* The item's cells, to gradInput; the tile is all zeros afterwards.  Where each lane still knows
 * all the sums it has added to, it clears those. */
template <typename E, typename I>
static __device__ __forceinline__ void write_and_clear(const max_job &j, const few_item<E> &it,
                                                       float *tile, const few_outputs<E, I> &o) {
  if (it.runs > 1 || it.count > AHEAD * LANES) {
    write_few<true>(j, it, tile);
  } else {
    write_few<false>(j, it, tile);
    __syncwarp();
#pragma unroll
    for (int i = 0; i < AHEAD; i++)
      if (it.count > i * LANES) clear_sum(o.added[i]);
  }
  __syncwarp();
}

template <bool WHOLE, typename E, typename I>
static __global__ void __launch_bounds__(LANES, MOST_BLOCKS)
    scatter_few(const __grid_constant__ max_job j, const __grid_constant__ few_plan f) {
  float *tile = (float *)pg_few_room;
  bad_indices *found = (bad_indices *)(tile + f.room);
  const uint32_t sums = shared_address(tile);
  if (blockIdx.x < f.callers && lane_number() == 0) {
    const int64_t outputs = j.cut.planes * (int64_t)j.outputs;
    call_for_part(j.index, outputs * (int64_t)sizeof(I), blockIdx.x, f.callers);
    call_for_part(j.grad, outputs * (int64_t)sizeof(E), blockIdx.x, f.callers);
  }
  const int32_t slice = j.h.out * j.w.out;
  const few_turn turn = turn_of(f, blockIdx.x);
  const uint32_t step = turn.step * (uint32_t)j.cut.of_planes;
  few_item<E> it = few_item_at<WHOLE, E>(j, turn.first);
  const int64_t at = (int64_t)it.plane * j.outputs + it.output + lane_number();
  few_outputs<E, I> o = {(const I *)j.index + at, (const E *)j.grad + at, {}, {}, {}};
  fetch(it.count, 0, o);
  if (lane_number() == 0) clear(found);
  for (int32_t i = 4 * lane_number(); i < f.room; i += 4 * LANES)
    *(float4 *)(tile + i) = make_float4(0, 0, 0, 0);
  __syncwarp();
  for (uint32_t left = turn.count; left > 0; left--) {
    take_all<WHOLE>(j, f, it, sums, o, found);
    if (left > 1) fetch(it.count, (int64_t)step * j.outputs - (it.runs - 1) * slice, o);
    write_and_clear(j, it, tile, o);
    it.plane += step;
    place(it, it.out + (int64_t)step * j.cells);
  }
  if (lane_number() == 0) report(j, found);
}

/* --- On the host --- */

/* Where windows overlap, lanes often name the same cell. */
static bool has_few(const pg_facts &f) {
  const bool overlap = f.d_windows > 1 || f.h_windows > 1 || f.w_windows > 1;
  return f.outputs * (overlap ? 8 : 4) <= f.cells;
}

static bool fits(const pg_problem *problem, pg_tiling *tiling) {
  return fits_flat_rows(problem->facts, tiling) && has_few(problem->facts) &&
         pg_tiling_items(tiling) >= 2 * (int64_t)pg_cuda_least_limits()->processors;
}

/* How many blocks a processor holds at once. */
static int64_t blocks_at_once(int64_t bytes) {
  enum { SYSTEM = 1024 /* bytes that each block takes besides */, UNIT = 128 };
  const int64_t taken = (bytes + SYSTEM + UNIT - 1) / UNIT * UNIT;
  return least((pg_cuda_least_limits()->shared_bytes + SYSTEM) / taken, MOST_BLOCKS);
}

/* Shares the items out; returns the number of blocks.  The last row, whose planes may be fewer, is
 * not one of several that a block makes. */
static int64_t share_items(const max_job &j, int64_t at_once, few_plan &f) {
  enum { OF_EIGHT = 6 /* the first blocks' part of the items */, MANY = 8 /* to a block */ };
  const int64_t all = j.tiling.plane_items, cuts = j.tiling.d_items * j.tiling.h_items;
  const int64_t rows = least(at_once / cuts, all), most = all / 8 * OF_EIGHT;
  f.rounds = rows == 0 ? 0 : (uint32_t)(most / rows);
  f.rows = f.rounds == 0 ? 0 : (uint32_t)rows;
  const int64_t left = all - (int64_t)f.rows * f.rounds;
  f.pairs = j.items < MANY * at_once ? 0 : (uint32_t)((left - 1) / PAIR);
  f.by_cuts = divider_of(cuts);
  return (f.rows + left - f.pairs * (PAIR - 1)) * cuts;
}

/* Outputs that all fit the second-level cache are called for before cells are written, which would
 * come between otherwise. */
static bool calls_for_outputs(const pg_facts &f) {
  const int64_t cache = pg_cuda_least_limits()->cache_bytes;
  return f.grad_in_bytes > cache / 2 && f.bytes - f.grad_in_bytes < cache / 3;
}

template <typename E, typename I>
static cudaError_t run_as(const pg_cuda_call *call) {
  enum { GROUP = 16 / sizeof(E) };
  const max_job j = max_job_of(call);
  const pg_tiling &t = j.tiling;
  few_plan f = {};
  f.room = (int32_t)(t.planes * t.d * t.h * t.w + 2 * (GROUP - 1)) / GROUP * GROUP;
  if (f.room < LANES) f.room = LANES;
  f.by_outputs = divider_of(j.outputs);
  const int64_t bytes = f.room * (int64_t)sizeof(float) + (int64_t)sizeof(bad_indices);
  const int64_t at_once = blocks_at_once(bytes) * pg_cuda_least_limits()->processors;
  const int64_t blocks = share_items(j, at_once, f);
  if (calls_for_outputs(call->task->problem.facts)) f.callers = (uint32_t)least(blocks, at_once);
  return launch(call, j.flags == nullptr ? scatter_few<true, E, I> : scatter_few<false, E, I>,
                blocks, LANES, bytes, j, f);
}

static cudaError_t run(const pg_cuda_call *call) {
  return with_max_types(call,
                        [call](auto e, auto i) { return run_as<decltype(e), decltype(i)>(call); });
}

PG_CUDA_METHOD(max_sparse) = {"sparse", fits, flag_bytes, run, pg_cuda_mend_planes};
