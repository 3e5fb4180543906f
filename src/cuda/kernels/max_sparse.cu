/* SPDX-License-Identifier: Apache-2.0 */
/* Max pools with few outputs among the cells, so that writing zeros is most of the work: planes
 * that lie one after the other, with any windows, and at least four times as many cells as outputs.
 *
 * A warp, which is a block here, computes items one after the other.  It adds the outputs of an
 * item to sums in shared memory, 32 at a time, and writes the sums to gradInput.  The sums are all
 * zero when an item begins, because writing an item clears what was added and nothing else.  Lanes
 * that name the same cell find each other through its sum, in which each flips its own bit
 * (add_in_order).  The outputs of the next item are on their way while this item is written.
 *
 * Windows matter only where planes are cut into items: then a block sets the flags of items that a
 * stray points into, and reports bad indices; see max_job.cuh.  Items that are whole planes just
 * add every output.
 *
 * All items of a block lie at the same place of different planes, so that what is known of one
 * holds for the others.  Processors are not equally fast: the blocks that fit on them at once
 * compute most of the items, and the rest is shared out in small blocks to those that are done
 * first. */
#include "cuda/kernels/async_copy.cuh"
#include "cuda/kernels/in_register.cuh"
#include "cuda/kernels/max_sparse.cuh"

enum {
  LANES = 32,
  AHEAD = 7,       /* batches on their way: as many as registers hold */
  MOST_BLOCKS = 20 /* that a processor holds at once: leaves a lane the registers that it needs */
};

template <typename E>
static constexpr int GROUP = 16 / sizeof(E); /* cells of a group */

extern __shared__ __align__(256) float4 pg_sparse_scratch[];

/* Outputs of a lane: as loaded, the first of them from index_at and grad_at, and the shared
 * addresses at which those before them were added. */
template <typename E, typename I>
struct sparse_outputs {
  const I *index_at;
  const E *grad_at;
  I index[AHEAD];
  E grad[AHEAD];
  uint32_t added[AHEAD];
};

/* What a warp computes all its items with. */
struct sparse_warp {
  const max_job &j;
  const sparse_plan &f;
  uint32_t sums; /* shared address */
  bad_indices *bad;
};

/* --- Adding --- */

/* The address of a cell's sum.  Where a group has 8 sums, lanes read half of a group each at a
 * time, 32 bytes apart, and would use only half of the banks.  So every other four groups have
 * their halves swapped. */
template <typename E>
static __device__ __forceinline__ uint32_t swapped(uint32_t address) {
  return sizeof(E) == 4 ? address : address ^ (address >> 3 & 16);
}

static __device__ __forceinline__ void flip(uint32_t address, uint32_t bits) {
  asm volatile("red.shared.xor.b32 [%0], %1;" ::"r"(address), "r"(bits) : "memory");
}

/* Several lanes may clear the same sum at once.  This would be a race if it were a store. */
static __device__ __forceinline__ void clear_sum(uint32_t address) {
  asm volatile("atom.shared.exch.b32 _, [%0], 0;" ::"r"(address) : "memory");
}

/* Each lane adds to the sum at its address; lanes of the same sum add in their order.  `bit` is the
 * lane's own, or 0 if it has nothing to add, and its address is then any.  Each
 * lane finds the others of its sum by the bits that have flipped there.  Each adds its gradient to
 * what the lane before it has computed, again and again until the last lane's result is right; that
 * lane stores it. */
static __device__ __forceinline__ void add_in_order(uint32_t address, uint32_t bit, float grad) {
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

static __device__ __forceinline__ float load_grad(const float *from) { return __ldg(from); }
template <typename E>
static __device__ __forceinline__ E load_grad(const E *from) {
  return {__ldg(&from->bits)};
}

/* Loads the first AHEAD batches of a run of `count` outputs, which begins `further` outputs behind
 * the run before. */
template <typename E, typename I>
static __device__ __forceinline__ void load_first(int32_t count, int64_t further,
                                                  sparse_outputs<E, I> &o) {
  const int32_t left = count - lane_number();
  o.index_at = in_register(o.index_at + further);
  o.grad_at = in_register(o.grad_at + further);
#pragma unroll
  for (int i = 0; i < AHEAD; i++)
    if (left > i * LANES) {
      o.index[i] = __ldg(o.index_at + i * LANES);
      o.grad[i] = load_grad(o.grad_at + i * LANES);
    }
}

/* Does an output name a cell of the item?  It is the left-th from the end of its run; there is none
 * if `left` is not above 0.  An output is doubtful if its home is here, it names no cell of the
 * item, and no other item is known to read it: then its index has to be checked. */
template <bool WHOLE, typename E, typename I>
static __device__ __forceinline__ bool is_inside(const max_job &j, const sparse_item<E> &it,
                                                 int32_t home, I index, int32_t left,
                                                 bool &doubtful) {
  const uint32_t cell = (uint32_t)index - it.begin;
  const bool known = (left > 0) & (sizeof(I) == 4 || (uint64_t)index >> 32 == 0);
  const bool inside = known & (cell < (WHOLE ? j.cells : it.cells));
  if (WHOLE) {
    doubtful = (left > 0) & !inside;
  } else {
    const uint32_t read_up_to = left <= it.across ? it.reach : it.cells;
    doubtful = (left > 0) & (left <= home) & !(known & (cell < read_up_to));
  }
  return inside;
}

/* Adds the batch in o.index[i] and o.grad[i], `left` outputs before the end of its run.  MORE: the
 * batch that is AHEAD batches later is loaded into its place.  True if this lane's output is
 * doubtful. */
template <bool WHOLE, bool MORE, typename E, typename I>
static __device__ __forceinline__ bool add_batch(const sparse_warp &s, const sparse_item<E> &it,
                                                 int32_t home, sparse_outputs<E, I> &o, int i,
                                                 int32_t left) {
  const int32_t lane = lane_number(), ahead = it.count - left + AHEAD * LANES;
  bool doubtful;
  const bool inside = is_inside<WHOLE>(s.j, it, home, o.index[i], left - lane, doubtful);
  uint32_t address = s.sums + 4 * (it.lead - it.begin) + 4 * (uint32_t)o.index[i];
  if (WHOLE && it.planes > 1)
    address += over((uint32_t)(it.count - left + lane), s.f.by_outputs) * 4 * s.j.cells;
  const float grad = widened(o.grad[i]);
  if (MORE && ahead < it.count - lane) {
    o.index[i] = __ldg(o.index_at + ahead);
    o.grad[i] = load_grad(o.grad_at + ahead);
  }
  o.added[i] = inside ? swapped<E>(address) : s.sums + 4 * lane;
  add_in_order(o.added[i], inside ? 1u << lane : 0, grad);
  return doubtful;
}

/* Adds a run.  True if this lane has found a doubtful output. */
template <bool WHOLE, typename E, typename I>
static __device__ __forceinline__ bool add_run(const sparse_warp &s, const sparse_item<E> &it,
                                               int32_t home, sparse_outputs<E, I> &o) {
  int32_t left = it.count;
  bool doubtful = false;
  for (; left > AHEAD * LANES; left -= AHEAD * LANES) {
#pragma unroll
    for (int i = 0; i < AHEAD; i++)
      doubtful |= add_batch<WHOLE, true>(s, it, home, o, i, left - i * LANES);
  }
#pragma unroll
  for (int i = 0; i < AHEAD; i++) {
    if (left <= i * LANES) break;
    doubtful |= add_batch<WHOLE, false>(s, it, home, o, i, left - i * LANES);
  }
  return doubtful;
}

/* Checks the index of a doubtful output: a bad index is noted, a stray sets the flag of the item
 * that it points into. */
template <bool WHOLE>
static __device__ __forceinline__ void check_doubtful(const sparse_warp &s, uint32_t plane,
                                                      uint32_t output, int64_t index) {
  const max_job &j = s.j;
  if (WHOLE || (uint64_t)index >= j.cells) {
    note_bad(s.bad, (int64_t)plane * j.outputs + output);
    return;
  }
  const uint32_t row = over(output, j.by_out_w), slice = over(row, j.by_out_h);
  if (!in_window(j, (uint32_t)index, (int32_t)slice, (int32_t)(row - slice * j.h.out),
                 (int32_t)(output - row * j.w.out)))
    j.flags[item_of(j, plane, (uint32_t)index)] = 1;
}

/* Checks a run that has doubtful outputs. */
template <bool WHOLE, typename E, typename I>
static __device__ __forceinline__ void check_run(const sparse_warp &s, const sparse_item<E> &it,
                                                 int32_t home) {
  const I *index_at = (const I *)s.j.index + (int64_t)it.plane * s.j.outputs;
#pragma unroll 1
  for (int32_t batches = home; batches > 0; batches -= LANES) {
    const int32_t left = batches - lane_number();
    const uint32_t output = it.output + (uint32_t)(it.count - left);
    const I index = left > 0 ? __ldg(index_at + output) : 0;
    bool doubtful;
    is_inside<WHOLE>(s.j, it, home, index, left, doubtful);
    if (doubtful) check_doubtful<WHOLE>(s, it.plane, output, index);
    __syncwarp();
  }
}

/* Adds all outputs that are read for an item.  The first are loaded already. */
template <bool WHOLE, typename E, typename I>
static __device__ __forceinline__ void add_item(const sparse_warp &s, sparse_item<E> it,
                                                sparse_outputs<E, I> &o) {
  const int32_t slice = s.j.h.out * s.j.w.out;
  for (int32_t run = 0; run < it.runs; run++) {
    const int32_t home = run < it.home_run ? 0 : it.home;
    const bool doubtful = add_run<WHOLE>(s, it, home, o);
    if (__any_sync(EVERY_LANE, doubtful)) check_run<WHOLE, E, I>(s, it, home);
    if (run + 1 == it.runs) break;
    it.output += (uint32_t)slice;
    load_first(it.count, slice, o);
  }
}

/* --- Writing --- */

/* Reads four sums.  Returns 0 if they are all +0. */
static __device__ __forceinline__ uint32_t read_four(const float *from, float *sum) {
  const float4 four = *(const float4 *)from;
  sum[0] = four.x;
  sum[1] = four.y;
  sum[2] = four.z;
  sum[3] = four.w;
  return __float_as_uint(four.x) | __float_as_uint(four.y) | __float_as_uint(four.z) |
         __float_as_uint(four.w);
}

/* Writes U groups, LANES groups apart, from their sums: `low` are the first four of a group, `high`
 * the last four.  CLEAR: sums become zero. */
template <int U, bool CLEAR, typename E>
static __device__ __forceinline__ void write_groups(float *low, float *high, E *out) {
  enum { STRIDE = LANES * GROUP<E> };
  float sum[U][GROUP<E>];
  uint32_t any[U];
#pragma unroll
  for (int u = 0; u < U; u++) {
    any[u] = read_four(low + u * STRIDE, sum[u]);
    if (GROUP<E> == 8) any[u] |= read_four(high + u * STRIDE, sum[u] + GROUP<E> - 4);
  }
#pragma unroll
  for (int u = 0; u < U; u++)
    if (CLEAR && any[u] != 0) {
      *(float4 *)(low + u * STRIDE) = make_float4(0, 0, 0, 0);
      if (GROUP<E> == 8) *(float4 *)(high + u * STRIDE) = make_float4(0, 0, 0, 0);
    }
#pragma unroll
  for (int u = 0; u < U; u++) put_16(out + u * STRIDE, sum[u]);
}

template <typename E>
static __device__ __forceinline__ float *sum_at(float *sums, int32_t cell) {
  return (float *)((char *)sums + swapped<E>(4 * (uint32_t)cell));
}

/* Writes every LANES-th group of [group, end). */
template <bool CLEAR, typename E>
static __device__ __forceinline__ void write_whole_groups(float *sums, E *out, int32_t group,
                                                          int32_t end) {
  enum { STRIDE = LANES * GROUP<E>, U = 16 / GROUP<E> /* at a time: 16 sums */ };
  float *low = sum_at<E>(sums, group * GROUP<E>);
  float *high = sum_at<E>(sums, group * GROUP<E> + GROUP<E> - 4);
  E *to = out + group * GROUP<E>;
  int32_t left = end - group;
#pragma unroll 1
  for (; left > (U - 1) * LANES; left -= U * LANES) {
    write_groups<U, CLEAR>(low, high, to);
    low += U * STRIDE;
    high += U * STRIDE;
    to += U * STRIDE;
  }
#pragma unroll 1
  for (; left > 0; left -= LANES) {
    write_groups<1, CLEAR>(low, high, to);
    low += STRIDE;
    high += STRIDE;
    to += STRIDE;
  }
}

template <typename E>
static __device__ __forceinline__ void write_and_clear_cell(float *sums, E *out, int32_t cell) {
  float *sum = sum_at<E>(sums, cell);
  put(out + cell, *sum);
  *sum = 0;
}

/* Writes an item: its whole groups, and the cells before and behind those one by one.  Cells are
 * counted from the begin of the group that the first one is in. */
template <bool CLEAR, typename E>
static __device__ __forceinline__ void write_item(const sparse_item<E> &it, float *sums) {
  const int32_t lane = lane_number(), end = it.lead + (int32_t)it.cells;
  const int32_t first = it.lead != 0, groups = end / GROUP<E>;
  E *out = it.out - it.lead;
  write_whole_groups<CLEAR>(sums, out, first + lane, groups);
  const int32_t tail = max(first, groups) * GROUP<E> + lane;
  if (first != 0 && lane >= it.lead && lane < min((int32_t)GROUP<E>, end))
    write_and_clear_cell(sums, out, lane);
  if (tail < end) write_and_clear_cell(sums, out, tail);
}

/* Writes an item and clears its sums.  If each lane still knows all the sums that it has added to,
 * it clears just these. */
template <typename E, typename I>
static __device__ __forceinline__ void write_and_clear(const sparse_item<E> &it, float *sums,
                                                       const sparse_outputs<E, I> &o) {
  if (it.runs > 1 || it.count > AHEAD * LANES) {
    write_item<true>(it, sums);
  } else {
    write_item<false>(it, sums);
    __syncwarp();
#pragma unroll
    for (int i = 0; i < AHEAD; i++)
      if (it.count > i * LANES) clear_sum(o.added[i]);
  }
  __syncwarp();
}

/* --- The kernel --- */

/* Prefetches this block's part of all outputs. */
template <typename E, typename I>
static __device__ __forceinline__ void prefetch_outputs(const max_job &j, const sparse_plan &f) {
  const int64_t outputs = j.cut.planes * (int64_t)j.outputs;
  call_for_part(j.index, outputs * (int64_t)sizeof(I), blockIdx.x, f.prefetchers);
  call_for_part(j.grad, outputs * (int64_t)sizeof(E), blockIdx.x, f.prefetchers);
}

/* WHOLE: items are whole planes. */
template <bool WHOLE, typename E, typename I>
static __global__ void __launch_bounds__(LANES, MOST_BLOCKS)
    max_sparse(const __grid_constant__ max_job j, const __grid_constant__ sparse_plan f) {
  float *sums = (float *)pg_sparse_scratch;
  const sparse_warp s = {j, f, shared_address(sums), (bad_indices *)(sums + f.sums)};
  if (blockIdx.x < f.prefetchers && lane_number() == 0) prefetch_outputs<E, I>(j, f);
  const int32_t slice = j.h.out * j.w.out;
  const sparse_share share = share_of(f, blockIdx.x);
  const uint32_t planes_apart = share.layers_apart * (uint32_t)j.cut.of_planes;
  sparse_item<E> it = sparse_item_of<WHOLE, E>(j, share.first);
  const int64_t at = (int64_t)it.plane * j.outputs + it.output + lane_number();
  sparse_outputs<E, I> o = {(const I *)j.index + at, (const E *)j.grad + at, {}, {}, {}};
  load_first(it.count, 0, o);
  if (lane_number() == 0) clear(s.bad);
  for (int32_t i = 4 * lane_number(); i < f.sums; i += 4 * LANES)
    *(float4 *)(sums + i) = make_float4(0, 0, 0, 0);
  __syncwarp();
  for (uint32_t left = share.count; left > 0; left--) {
    add_item<WHOLE>(s, it, o);
    if (left > 1)
      load_first(it.count, (int64_t)planes_apart * j.outputs - (it.runs - 1) * slice, o);
    write_and_clear(it, sums, o);
    it.plane += planes_apart;
    set_out(it, it.out + (int64_t)planes_apart * j.cells);
  }
  if (lane_number() == 0) report(j, s.bad);
}

/* --- On the host --- */

/* Where windows overlap, lanes often name the same cell, which takes time. */
static bool has_few_outputs(const pg_facts &f) {
  const bool overlap = f.d_windows > 1 || f.h_windows > 1 || f.w_windows > 1;
  return f.outputs * (overlap ? 8 : 4) <= f.cells;
}

/* Blocks of one warp need many items to fill a processor. */
static bool fits(const pg_problem *problem, pg_tiling *tiling) {
  return fits_flat_rows(problem->facts, tiling) && has_few_outputs(problem->facts) &&
         pg_tiling_items(tiling) >= 2 * (int64_t)pg_cuda_least_limits()->processors;
}

/* How many blocks with so many bytes of shared memory a processor holds at once. */
static int64_t blocks_at_once(int64_t bytes) {
  enum { SYSTEM = 1024 /* bytes that each block takes besides */, UNIT = 128 };
  const int64_t taken = (bytes + SYSTEM + UNIT - 1) / UNIT * UNIT;
  return least((pg_cuda_least_limits()->shared_bytes + SYSTEM) / taken, MOST_BLOCKS);
}

/* Shares the items out; returns the number of blocks.  The last layer, whose items may have fewer
 * planes, always has blocks of its own. */
static int64_t share_items(const max_job &j, int64_t at_once, sparse_plan &f) {
  enum { OF_EIGHT = 6 /* the part that the first blocks get */, MANY = 8 /* items of a block */ };
  const int64_t all = j.tiling.plane_items, cuts = j.tiling.d_items * j.tiling.h_items;
  const int64_t layers = least(at_once / cuts, all), most = all / 8 * OF_EIGHT;
  f.rounds = layers == 0 ? 0 : (uint32_t)(most / layers);
  f.layers = f.rounds == 0 ? 0 : (uint32_t)layers;
  const int64_t left = all - (int64_t)f.layers * f.rounds;
  f.pairs = j.items < MANY * at_once ? 0 : (uint32_t)((left - 1) / PAIR);
  f.by_cuts = divider_of(cuts);
  return (f.layers + left - f.pairs * (PAIR - 1)) * cuts;
}

/* Outputs that all fit the second-level cache are prefetched before the first cell is written:
 * single reads among the many writes of a large gradInput would be slower. */
static bool prefetches_outputs(const pg_facts &f) {
  const int64_t cache = pg_cuda_least_limits()->cache_bytes;
  return f.grad_in_bytes > cache / 2 && f.bytes - f.grad_in_bytes < cache / 3;
}

template <typename E, typename I>
static cudaError_t run_as(const pg_cuda_call *call) {
  const max_job j = max_job_of(call);
  const pg_tiling &t = j.tiling;
  sparse_plan f = {};
  f.sums = (int32_t)(t.planes * t.d * t.h * t.w + 2 * (GROUP<E> - 1)) / GROUP<E> * GROUP<E>;
  if (f.sums < LANES) f.sums = LANES;
  f.by_outputs = divider_of(j.outputs);
  const int64_t bytes = f.sums * (int64_t)sizeof(float) + (int64_t)sizeof(bad_indices);
  const int64_t at_once = blocks_at_once(bytes) * pg_cuda_least_limits()->processors;
  const int64_t blocks = share_items(j, at_once, f);
  if (prefetches_outputs(call->task->problem.facts))
    f.prefetchers = (uint32_t)least(blocks, at_once);
  return launch(call, j.flags == nullptr ? max_sparse<true, E, I> : max_sparse<false, E, I>, blocks,
                LANES, bytes, j, f);
}

static cudaError_t run(const pg_cuda_call *call) {
  return with_max_types(call,
                        [call](auto e, auto i) { return run_as<decltype(e), decltype(i)>(call); });
}

PG_CUDA_METHOD(max_sparse) = {"sparse", fits, flag_bytes, run, pg_cuda_mend_planes};
