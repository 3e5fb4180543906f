/* SPDX-License-Identifier: Apache-2.0 */
/* Max pools over planes, with any windows and at any strides.
 *
 * A block computes one item, cells that follow each other in memory or at least in their planes, as
 * fp32 sums in shared memory.  Each warp has a part of the cells to itself: it clears their sums,
 * goes through the outputs whose windows touch them, 32 at a time and in their order, adds those
 * that name its cells, and writes the sums.  So warps need not wait for each other.
 *
 * Lanes that name the same cell must add one after the other.  As long as all indices lie in their
 * windows, such lanes are neighbours, at most as far apart as windows overlap (scan_plan.near), and
 * a few shuffles find them.  Where rows of outputs are too short for that, a match finds them. */
#include "cuda/kernels/max_recompute.cuh"

/* Few warps, because a warp has much to compute before its first output. */
enum { MOST_WARPS = 4, FEW_WARPS = 2, THREADS = 32 * MOST_WARPS, BLOCKS_OF_PROCESSOR = 6 };
enum { ABREAST = 4 /* batches of outputs on their way */, SHUFFLES = 3, BY_MATCH = -1 };

extern __shared__ float4 pg_scatter_room[];

/* How a warp goes through outputs: `batch` of them at a time.  The steps are the distance between
 * two batches in rows, slices and planes of outputs. */
struct scan_plan {
  int32_t batch, near;
  int32_t step_w, step_h, step_d;
  uint32_t step_base; /* cells of the planes stepped over */
};

template <bool PLAIN>
static __device__ __forceinline__ void step(const max_job &j, const scan_plan &s, output_place &p) {
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

/* --- Adding --- */

/* How many lanes before this one name the same cell, if only the `near` ones can, 2 or 3. */
static __device__ __forceinline__ int rank_by_shuffle(uint32_t cell, int near) {
  const int lane = lane_number();
  int rank = (__shfl_up_sync(EVERY_LANE, cell, 1) == cell) & (lane >= 1);
  rank += (__shfl_up_sync(EVERY_LANE, cell, 2) == cell) & (lane >= 2);
  if (near > 2) rank += (__shfl_up_sync(EVERY_LANE, cell, 3) == cell) & (lane >= 3);
  return rank;
}

/* Outputs whose indices lie in their windows; cell ~0 is none. */
static __device__ __forceinline__ void add_usual(const scan_plan &s, const cell_range &t,
                                                 uint32_t cell, float grad) {
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

/* --- Outputs --- */

/* A run of flat outputs, ABREAST batches at a time: all loads of these batches are on their way
 * before the first is used.  True, and the rest of the run is left, if an index does not lie in its
 * window. */
template <bool PLAIN, typename E, typename I>
static __device__ __forceinline__ bool scan(const max_job &j, const scan_plan &s,
                                            const cell_range &t, const output_run &r) {
  const uint32_t lane = (uint32_t)lane_number(), batch = (uint32_t)s.batch;
  const int64_t first = ((int64_t)t.plane + r.plane) * j.outputs +
                        ((int64_t)r.od * j.h.out + r.oh) * (int64_t)j.w.out + r.ow;
  const I *index_from = (const I *)j.index + first + lane;
  const E *grad_from = (const E *)j.grad + first + lane;
  const uint32_t count = lane < batch ? r.count : 0; /* the other lanes go along and have none */
  output_place p = place_in_run(j, t, r, lane);
  for (uint32_t done = 0; done < r.count; done += ABREAST * batch) {
    const uint32_t left = count > done + lane ? count - done - lane : 0; /* from this lane on */
    bool usual = true;
    uint32_t cell[ABREAST];
    E grad[ABREAST];
    I index[ABREAST];
#pragma unroll
    for (int i = 0; i < ABREAST; i++)
      if (i * batch < left) {
        index[i] = __ldg(index_from + i * batch);
        grad[i] = grad_from[i * batch];
      }
    index_from += ABREAST * batch;
    grad_from += ABREAST * batch;
#pragma unroll
    for (int i = 0; i < ABREAST; i++) {
      if (i > 0 && done + i * batch >= r.count) break;
      const bool active = i * batch < left;
      cell[i] = active ? (uint32_t)index[i] + p.base : ~0u;
      usual &= !active | (((uint64_t)index[i] < j.cells) &
                          in_window<PLAIN>(j, (uint32_t)index[i], p.od, p.oh, p.ow));
      step<PLAIN>(j, s, p);
    }
    if (!__all_sync(EVERY_LANE, usual)) return true;
#pragma unroll
    for (int i = 0; i < ABREAST; i++) {
      if (i > 0 && done + i * batch >= r.count) break;
      add_usual(s, t, cell[i], widened(grad[i]));
    }
    __syncwarp();
  }
  return false;
}

/* --- Items --- */

/* An item, and the warp's part of it: groups [from, to).  A group is 16 bytes of gradInput; cell 0
 * is the lead-th of the first, so that a group's sums are whole words of 16 bytes too. */
template <typename E>
struct item {
  enum { GROUP = 16 / sizeof(E) };
  E *out;
  item_range range;
  int32_t lead, from, to;

  static __device__ __forceinline__ float *sums(int32_t group) {
    return (float *)pg_scatter_room + group * GROUP;
  }

  __device__ __forceinline__ item(const max_job &j, uint32_t number)
      : range(item_range_of(j, number)) {
    out = (E *)j.in + (int64_t)range.plane * j.cells + range.begin;
    lead = j.flat_in ? (int32_t)((uintptr_t)out % 16 / sizeof(E)) : 0;
    const int32_t groups = (lead + (int32_t)range.cells + GROUP - 1) / GROUP;
    const int32_t warps = (int32_t)blockDim.x / 32, share = (groups + warps - 1) / warps;
    from = min((int32_t)threadIdx.x / 32 * share, groups);
    to = min(from + share, groups);
  }

  __device__ __forceinline__ cell_range part() const {
    const int32_t first = max(from * GROUP - lead, 0);
    const int32_t end = min(to * GROUP - lead, (int32_t)range.cells);
    return {shared_address(sums(0) + lead + first), (uint32_t)max(end - first, 0),
            range.begin + first, range.plane};
  }

  __device__ __forceinline__ void clear_sums() const {
    float *end = sums(to);
    for (float *four = sums(from) + 4 * lane_number(); four < end; four += 4 * 32)
      *(float4 *)four = make_float4(0, 0, 0, 0);
    __syncwarp();
  }

  __device__ __forceinline__ void write_groups() const {
    for (int32_t g = from + lane_number(); g < to; g += 32) {
      const int32_t first = g * GROUP - lead;
      if (first >= 0 && first + GROUP <= (int32_t)range.cells) {
        float sum[GROUP];
#pragma unroll
        for (int i = 0; i < GROUP; i += 4) {
          const float4 four = *(const float4 *)(sums(g) + i);
          memcpy(sum + i, &four, sizeof four);
        }
        put_16(out + first, sum);
      } else {
        for (int i = max(0, -first); i < GROUP && first + i < (int32_t)range.cells; i++)
          put(out + first + i, sums(g)[i]);
      }
    }
  }
};

template <bool PLAIN, typename E, typename I>
static __global__ void __launch_bounds__(THREADS, BLOCKS_OF_PROCESSOR)
    max_scatter(const __grid_constant__ max_job j, const __grid_constant__ scan_plan s) {
  __shared__ bad_indices bad_of_warp[MOST_WARPS];
  bad_indices *bad = bad_of_warp + threadIdx.x / 32;
  const item<E> it(j, blockIdx.x);
  const cell_range t = it.part();
  if (lane_number() == 0) clear(bad);
  it.clear_sums();
  const bool unusual =
      t.cells > 0 && (!j.flat_out || for_touching_outputs(j, t, [&](const output_run &run) {
        return scan<PLAIN, E, I>(j, s, t, run);
      }));
  bool strayed = false;
  if (unusual) {
    it.clear_sums();
    strayed =
        for_touching_outputs(j, t, [&](const output_run &run) { return take_run(j, t, run, bad); });
  }
  if (j.flags == nullptr && __syncthreads_or(strayed)) {
    it.clear_sums();
    if (t.cells > 0)
      for_every_output(j, t, [&](const output_run &run) { return take_run(j, t, run, nullptr); });
  }
  if (j.flat_in)
    it.write_groups();
  else
    write_cells(j, t);
  if (lane_number() == 0) report(j, bad);
}

/* --- On the host --- */

static bool fits(const pg_problem *problem, pg_tiling *tiling) {
  const pg_facts &f = problem->facts;
  if (f.channels_last || !fits_max_axes(f.pool)) return false;
  *tiling = tile_max_planes(f);
  return counts_outputs(f, *tiling);
}

/* The outputs of a batch are so near each other that two of them name the same cell only if they
 * are of one row. */
static scan_plan scan_plan_of(const max_job &j, const pg_facts &f) {
  enum { FEW = 16, LANES = 32 };
  const pg_pooling &p = j.pool;
  const bool overlap = f.d_windows > 1 || f.h_windows > 1 || f.w_windows > 1;
  const int64_t near = f.w_windows - 1, apart = p.w.out - near;
  scan_plan s = {};
  s.batch = LANES;
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

template <typename E, typename I>
static cudaError_t run_as(const pg_cuda_call *call) {
  enum { SMALL = 20 * 1024 };
  const max_job j = max_job_of(call);
  const scan_plan s = scan_plan_of(j, call->task->problem.facts);
  const pg_tiling &t = j.tiling;
  const int64_t bytes = (t.planes * t.d * t.h * t.w + 16) * (int64_t)sizeof(float);
  const bool plain = !j.has_depth && j.h.stride != 0 && j.w.stride != 0;
  const int threads = bytes <= SMALL ? 32 * FEW_WARPS : THREADS;
  return launch(call, plain ? max_scatter<true, E, I> : max_scatter<false, E, I>, j.items, threads,
                bytes, j, s);
}

static cudaError_t run(const pg_cuda_call *call) {
  return with_max_types(call,
                        [call](auto e, auto i) { return run_as<decltype(e), decltype(i)>(call); });
}

PG_CUDA_METHOD(max_scatter) = {"scatter", fits, flag_bytes, run, pg_cuda_mend_planes};
