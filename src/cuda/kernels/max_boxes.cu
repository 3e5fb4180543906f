/* SPDX-License-Identifier: Apache-2.0 */
/* Max pools with any windows, in two or three dimensions, of channels that are neighbours in memory
 * or of planes that follow each other.
 *
 * Lanes are planes: a warp computes the same box of cells (max_boxes.cuh) of up to 32 planes, as
 * fp32 sums in shared memory, of which each lane has its own column.  It goes through the outputs
 * whose windows touch the box, in their order; each lane adds the output of its plane to the cell
 * that the index names.  No two lanes add to the same sum, so nothing has to be ordered, and as all
 * lanes have the same output, what is known about it is computed once: an output costs about 20
 * instructions, however many windows a cell lies in.
 *
 * Where channels are neighbours, lanes read an output of their planes from neighbouring addresses.
 * In planes, lanes first read 32 outputs of one plane after the other, find the cells that they
 * name, and leave both in shared memory, from where each lane takes those of its own plane. */
#include "cuda/kernels/in_register.cuh"
#include "cuda/kernels/max_boxes.cuh"

enum {
  BATCH = 16, /* outputs, or planes, that are loaded before the first is used */
  WRITES = 4, /* of a lane at a time */
  SPARE_CELLS = 16
};

/* Words from a lane's sum of a cell to that of the next cell.  In planes lanes also read the sums
 * of 32 cells of one plane, which must not be in one bank. */
template <bool LAST>
static constexpr uint32_t PITCH = LAST ? LANES : LANES + 1;

/* Cells behind those of a box: the first takes what is not added, the others may be read. */
template <bool LAST>
static constexpr uint32_t SPARE = LAST ? SPARE_CELLS : 1;

/* What a warp computes its boxes with. */
struct box_warp {
  const max_job &j;
  const box_plan &p;
  uint32_t sum;   /* shared address of the lane's first sum */
  uint32_t stage; /* of what planes leave for lanes */
};

/* The planes of a unit. */
struct box_unit {
  uint32_t first, planes;
};

static __device__ __forceinline__ float load_grad(const float *from) { return __ldg(from); }
template <typename E>
static __device__ __forceinline__ E load_grad(const E *from) {
  return {__ldg(&from->bits)};
}

template <bool LAST>
static __device__ __forceinline__ void add(const box_warp &s, uint32_t cell, float grad) {
  const uint32_t at = s.sum + cell * (PITCH<LAST> * (uint32_t)sizeof(float));
  shared_store(at, shared_load(at) + grad);
}

/* Words in shared memory by their address. */
static __device__ __forceinline__ void stage(uint32_t at, uint32_t word) {
  asm volatile("st.shared.u32 [%0], %1;" ::"r"(at), "r"(word) : "memory");
}
static __device__ __forceinline__ void stage(uint32_t at, uint2 words) {
  asm volatile("st.shared.v2.u32 [%0], {%1, %2};" ::"r"(at), "r"(words.x), "r"(words.y) : "memory");
}
static __device__ __forceinline__ void unstage(uint32_t at, uint32_t &word) {
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(at) : "memory");
}
static __device__ __forceinline__ void unstage(uint32_t at, uint2 &words) {
  asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];"
               : "=r"(words.x), "=r"(words.y)
               : "r"(at)
               : "memory");
}

/* --- Channels that are neighbours --- */

/* Adds BATCH outputs of the 32 whose places lanes have, from the first-th on.  ALL: none of them is
 * behind the last, which is the left-th. */
template <box_shape SHAPE, bool ALL, typename E, typename I>
static __device__ __forceinline__ int32_t add_batch(const box_warp &s, const cell_box &b,
                                                    const I *index_from, const E *grad_from,
                                                    uint32_t place, int first, int left) {
  int32_t named = 0;
  I index[BATCH];
  E grad[BATCH];
#pragma unroll
  for (int i = 0; i < BATCH; i++) {
    const uint32_t at = __shfl_sync(EVERY_LANE, place, first + i);
    index[i] = __ldg(index_from + at);
    grad[i] = load_grad(grad_from + at);
  }
#pragma unroll
  for (int i = 0; i < BATCH; i++) {
    if (!ALL && i >= left) break;
    add<true>(s, named_cell<SHAPE>(s.j, s.p, b, index[i], true, named), widened(grad[i]));
  }
  return named;
}

/* Adds all outputs of a box, and returns how many the lane has added. */
template <box_shape SHAPE, typename E, typename I>
static __device__ __forceinline__ int32_t add_neighbours(const box_warp &s, const cell_box &b,
                                                         const box_outputs &o, const box_unit &u) {
  const uint32_t lane = (uint32_t)lane_number(), plane = u.first + min(lane, u.planes - 1);
  const int64_t from = plane_offset(s.j, s.j.grad_strides, plane);
  const I *index_from = in_register((const I *)s.j.index + from);
  const E *grad_from = in_register((const E *)s.j.grad + from);
  int32_t named = 0;
  for (uint32_t first = 0; first < o.count; first += LANES) {
    const uint32_t place = place_of_output(s.j, o, min(first + lane, o.count - 1));
    const int count = (int)min(o.count - first, (uint32_t)LANES);
#pragma unroll
    for (int i = 0; i < LANES; i += BATCH) {
      if (i + BATCH <= count)
        named += add_batch<SHAPE, true>(s, b, index_from, grad_from, place, i, BATCH);
      else if (i < count)
        named += add_batch<SHAPE, false>(s, b, index_from, grad_from, place, i, count - i);
    }
  }
  return lane < u.planes ? named : 0;
}

/* Reads V sums, and clears them. */
template <int V>
static __device__ __forceinline__ void take_sums(uint32_t from, float *sum) {
  if constexpr (V == 4) {
    const float4 four = shared_load_4(from);
    memcpy(sum, &four, sizeof four);
    shared_store_4(from, make_float4(0, 0, 0, 0));
  } else if constexpr (V == 2) {
    uint2 two;
    unstage(from, two);
    memcpy(sum, &two, sizeof two);
    stage(from, make_uint2(0, 0));
  } else {
    sum[0] = shared_load(from);
    shared_store(from, 0);
  }
}

/* Writes a box and clears its sums, V channels at a time. */
template <int V, typename E>
static __device__ __forceinline__ void write_neighbours(const box_warp &s, const cell_box &b,
                                                        const box_unit &u) {
  constexpr uint32_t ACROSS = LANES / V, AT_ONCE = WRITES * V; /* lanes of a cell; cells */
  static_assert(AT_ONCE <= SPARE_CELLS, "cells behind the box are read too");
  const uint32_t lane = (uint32_t)lane_number(), channel = lane % ACROSS * V, cells = s.p.cells;
  const bool active = channel < u.planes;
  E *out = global_in_register((E *)s.j.in +
                              plane_offset(s.j, s.j.in_strides, u.first + (active ? channel : 0)));
  uint32_t from = s.sum + (lane / ACROSS * LANES + channel - lane) * (uint32_t)sizeof(float);
#pragma unroll 1
  for (uint32_t first = 0; first < cells; first += LANES) {
    int32_t place = place_of_cell(s.j, s.p, b, first + lane);
    const uint32_t count = min(cells - first, (uint32_t)LANES);
#pragma unroll 1
    for (uint32_t i = 0; i < count; i += AT_ONCE) {
      int32_t at[WRITES];
      float sum[WRITES][V];
#pragma unroll
      for (int k = 0; k < WRITES; k++) {
        at[k] = __shfl_sync(EVERY_LANE, place, (int)(i + k * V + lane / ACROSS));
        take_sums<V>(from + k * V * LANES * (uint32_t)sizeof(float), sum[k]);
      }
#pragma unroll
      for (int k = 0; k < WRITES; k++)
        if (at[k] != NO_CELL && active) put_vector<V>(out + at[k], sum[k]);
      from += AT_ONCE * LANES * (uint32_t)sizeof(float);
    }
  }
}

/* --- Planes that follow each other --- */

/* A gradient and its cell, as planes leave them for lanes: in one word, or in two. */
template <typename E>
struct staged_output {
  typedef uint32_t words;
  static __device__ __forceinline__ uint32_t of(uint32_t cell, E grad) {
    return cell << 16 | grad.bits;
  }
  static __device__ __forceinline__ uint32_t cell(uint32_t words) { return words >> 16; }
  static __device__ __forceinline__ float grad(uint32_t words) {
    return widened(E{(uint16_t)words});
  }
};
template <>
struct staged_output<float> {
  typedef uint2 words;
  static __device__ __forceinline__ uint2 of(uint32_t cell, float grad) {
    return make_uint2(cell, __float_as_uint(grad));
  }
  static __device__ __forceinline__ uint32_t cell(uint2 words) { return words.x; }
  static __device__ __forceinline__ float grad(uint2 words) { return __uint_as_float(words.y); }
};

/* Each lane reads its output, which lies at `place`, of 32 planes.  `valid`: there is one.  ALL:
 * the unit has so many planes; otherwise the last is read instead of those that are not there, and
 * not added. */
template <box_shape SHAPE, bool ALL, typename E, typename I>
static __device__ __forceinline__ int32_t stage_planes(const box_warp &s, const cell_box &b,
                                                       const box_unit &u, const I *index_from,
                                                       const E *grad_from, uint32_t place,
                                                       bool valid) {
  constexpr uint32_t BYTES = sizeof(typename staged_output<E>::words), ROW = (LANES + 1) * BYTES;
  int32_t named = 0;
  uint32_t to = s.stage + (uint32_t)lane_number() * BYTES;
#pragma unroll 1
  for (uint32_t first = 0; first < LANES; first += BATCH) {
    I index[BATCH];
    E grad[BATCH];
#pragma unroll
    for (int i = 0; i < BATCH; i++) {
      const uint32_t at = place + (ALL ? first + i : min(first + i, u.planes - 1)) * s.j.outputs;
      index[i] = __ldg(index_from + at);
      grad[i] = load_grad(grad_from + at);
    }
#pragma unroll
    for (int i = 0; i < BATCH; i++) {
      const bool there = valid & (ALL || first + i < u.planes);
      const uint32_t cell = named_cell<SHAPE>(s.j, s.p, b, index[i], there, named);
      stage(to + i * ROW, staged_output<E>::of(cell, grad[i]));
    }
    to += BATCH * ROW;
  }
  return named;
}

/* Each lane adds `count` outputs of its plane, and perhaps a few behind them, which name no cell.
 */
template <typename E>
static __device__ __forceinline__ void add_staged(const box_warp &s, uint32_t count) {
  enum { AT_ONCE = 8 };
  typedef staged_output<E> staged;
  constexpr uint32_t BYTES = sizeof(typename staged::words), ROW = (LANES + 1) * BYTES;
  uint32_t from = s.stage + (uint32_t)lane_number() * ROW;
#pragma unroll 1
  for (uint32_t first = 0; first < count; first += AT_ONCE) {
    typename staged::words words[AT_ONCE];
#pragma unroll
    for (int i = 0; i < AT_ONCE; i++) unstage(from + i * BYTES, words[i]);
#pragma unroll
    for (int i = 0; i < AT_ONCE; i++) add<false>(s, staged::cell(words[i]), staged::grad(words[i]));
    from += AT_ONCE * BYTES;
  }
}

template <box_shape SHAPE, typename E, typename I>
static __device__ __forceinline__ int32_t add_planes(const box_warp &s, const cell_box &b,
                                                     const box_outputs &o, const box_unit &u) {
  const uint32_t lane = (uint32_t)lane_number();
  const I *index_from = in_register((const I *)s.j.index + (int64_t)u.first * s.j.outputs);
  const E *grad_from = in_register((const E *)s.j.grad + (int64_t)u.first * s.j.outputs);
  int32_t named = 0;
#pragma unroll 1
  for (uint32_t first = 0; first < o.count; first += LANES) {
    const bool valid = first + lane < o.count;
    const uint32_t at = place_of_output(s.j, o, valid ? first + lane : o.count - 1);
    named += u.planes == LANES
                 ? stage_planes<SHAPE, true>(s, b, u, index_from, grad_from, at, valid)
                 : stage_planes<SHAPE, false>(s, b, u, index_from, grad_from, at, valid);
    __syncwarp();
    add_staged<E>(s, min(o.count - first, (uint32_t)LANES));
    __syncwarp();
  }
  return named;
}

/* Writes a box and clears its sums: 32 cells of one plane after the other. */
template <typename E>
static __device__ __forceinline__ void write_planes(const box_warp &s, const cell_box &b,
                                                    const box_unit &u) {
  E *out = global_in_register((E *)s.j.in + (int64_t)u.first * s.j.cells);
  for (uint32_t cell = (uint32_t)lane_number(); cell < (uint32_t)s.p.cells; cell += LANES) {
    const int32_t at = place_of_cell(s.j, s.p, b, cell);
    if (at == NO_CELL) continue;
    uint32_t from =
        s.sum + (cell * PITCH<false> - (uint32_t)lane_number()) * (uint32_t)sizeof(float);
    uint32_t to = (uint32_t)at;
#pragma unroll 8
    for (uint32_t i = 0; i < u.planes; i++) {
      float sum;
      take_sums<1>(from, &sum);
      put(out + to, sum);
      from += sizeof(float);
      to += s.j.cells;
    }
  }
}

/* --- The kernel --- */

/* A box and its outputs, which are the same for every unit. */
struct known_box {
  uint32_t number;
  cell_box cells;
  box_outputs outputs;
};

/* Computes a box, and returns how many outputs this lane has added.  The sums are zeros before and
 * after it. */
template <bool LAST, box_shape SHAPE, typename E, typename I>
static __device__ __forceinline__ int32_t compute_box(const box_warp &s, uint32_t number,
                                                      known_box &known) {
  const uint32_t unit = over(number, s.p.by_boxes), box = number - unit * s.p.by_boxes.by;
  if (box != known.number) {
    known.number = box;
    known.cells = box_of(s.j, s.p, box);
    known.outputs = outputs_of(s.j, known.cells);
  }
  const cell_box &b = known.cells;
  box_unit u;
  u.first = unit * (uint32_t)s.p.planes;
  u.planes = (uint32_t)least(s.p.planes, s.j.cut.planes - u.first);
  int32_t named;
  if constexpr (LAST) {
    named = add_neighbours<SHAPE, E, I>(s, b, known.outputs, u);
    __syncwarp();
    if (s.p.vector == 4)
      write_neighbours<4, E>(s, b, u);
    else if (s.p.vector == 2)
      write_neighbours<2, E>(s, b, u);
    else
      write_neighbours<1, E>(s, b, u);
  } else {
    named = add_planes<SHAPE, E, I>(s, b, known.outputs, u);
    write_planes<E>(s, b, u);
  }
  __syncwarp();
  return named;
}

template <bool LAST, box_shape SHAPE, typename E, typename I>
static __global__ void __launch_bounds__(THREADS, BLOCKS_AT_ONCE)
    max_boxes(const __grid_constant__ max_job j, const __grid_constant__ box_plan p) {
  /* The shuffle tells the compiler that all lanes have the same. */
  const uint32_t warp = __shfl_sync(EVERY_LANE, threadIdx.x / LANES, 0);
  const uint32_t lane = (uint32_t)lane_number();
  float *room = pg_max_any_scratch + warp * (uint32_t)p.room;
  const uint32_t words = ((uint32_t)p.cells + SPARE<LAST>)*PITCH<LAST>;
  for (uint32_t i = lane; i < words; i += LANES) room[i] = 0;
  __syncwarp();
  const box_warp s = {j, p, shared_address(room + lane),
                      shared_address(room + (words + 1) / 2 * 2)};
  const box_share share = share_of(j, p);
  known_box known = {};
  known.number = ~0u;
  int32_t named = 0;
  for (uint32_t number = share.first + warp; number < share.end; number += WARPS)
    named += compute_box<LAST, SHAPE, E, I>(s, number, known);
  check_block(j, share.counted, named, p.room / LANES);
}

/* --- On the host --- */

/* Positions that 32 bits hold, also those of 32 planes, where they are multiplied by lengths, and,
 * with a sign, those of cells. */
static bool fits_boxes(const pg_problem &problem) {
  const int64_t most = (int64_t)1 << 32;
  const pg_facts &f = problem.facts;
  const pg_pooling &p = f.pool;
  const pg_max_backward &a = problem.args.max_backward;
  if (f.planes < 1 || f.cells < 1 || f.outputs < 1 || p.w.in < 2 || !fits_32_bits(p)) return false;
  return f.cells < most / p.w.in && p.d.in * p.h.in < most / p.h.in && f.outputs < most / p.w.out &&
         p.d.out * p.h.out < most / p.h.out && f.cells <= INT32_MAX / LANES &&
         f.outputs <= INT32_MAX / MOST_PLANES && same_strides(a.out_strides, a.index_strides, p) &&
         has_small_planes(a.out_strides, p.d.out, p.h.out, p.w.out) &&
         has_small_planes(a.in_strides, 2 * p.d.in, 2 * p.h.in, 2 * p.w.in);
}

/* Does an output cost less here than in max_strips.cu, where all columns of its window read it? */
static bool has_wide_windows(const pg_facts &f) {
  enum { WIDE = 4 };
  return f.w_windows * f.pool.w.in >= WIDE * f.pool.w.out;
}

/* Is gradInput so empty that max_few.cu, which clears all of it first, costs less? */
static bool has_few_outputs(const pg_facts &f) {
  enum { CELLS_OF_OUTPUT = 256 };
  return f.outputs <= f.cells / CELLS_OF_OUTPUT && f.outputs <= f.cells / f.outputs;
}

static bool fits(const pg_problem *problem, pg_tiling *tiling) {
  enum { LEAST_CHANNELS = 8 /* with fewer, lanes would read from too many places */ };
  const pg_facts &f = problem->facts;
  if (!fits_boxes(*problem)) return false;
  if (f.neighbours && (f.pool.c < LEAST_CHANNELS || has_few_outputs(f))) return false;
  if (!f.neighbours && !(f.in.all && f.out.all)) return false;
  if (!f.neighbours && !f.has_depth && !has_wide_windows(f)) return false;
  const box_size size = size_of_box(f);
  const int64_t boxes = boxes_of(f.pool, size);
  if (shape_of(f.pool, size) == SLICES && f.pool.h.in < 2) return false;
  if (boxes > INT32_MAX / pg_ceil_div(f.planes, LANES)) return false;
  *tiling = tile_units(f);
  return pg_tiling_items(tiling) <= INT32_MAX;
}

/* How many channels a lane can write at once. */
template <typename E>
static int32_t vector_of_lane(const max_job &j, const box_plan &p) {
  for (int32_t v = 4; v > 1; v /= 2)
    if (p.planes % v == 0 && j.pool.c % v == 0 &&
        is_vector(j.in, j.in_strides, sizeof(E), j.pool.c, v * (int64_t)sizeof(E)))
      return v;
  return 1;
}

template <bool LAST, typename E, typename I>
static cudaError_t run_layout(const pg_cuda_call *call, const max_job &j, box_plan p) {
  constexpr int64_t STAGE = LAST ? 0 : (LANES + 1) * LANES * (sizeof(E) == 4 ? 2 : 1) + 1;
  const pg_pooling &pool = j.pool;
  p.room = (int32_t)pg_ceil_div((p.cells + SPARE<LAST>)*(int64_t)PITCH<LAST> + STAGE, 4) * 4;
  if (LAST) p.vector = vector_of_lane<E>(j, p);
  const int64_t blocks = j.flags != nullptr ? pg_ceil_div(pool.n * pool.c, p.planes) * p.blocks
                                            : pg_ceil_div(j.items, p.units_of_block);
  const box_shape shape = shape_of(pool, {p.d, p.h, p.w});
  return launch(call,
                shape == ONE_RUN     ? max_boxes<LAST, ONE_RUN, E, I>
                : shape == ONE_SLICE ? max_boxes<LAST, ONE_SLICE, E, I>
                                     : max_boxes<LAST, SLICES, E, I>,
                blocks, THREADS, WARPS * p.room * (int64_t)sizeof(float), j, p);
}

template <typename E, typename I>
static cudaError_t run_as(const pg_cuda_call *call) {
  const pg_facts &f = call->task->problem.facts;
  const max_job j = max_job_of(call);
  const box_plan p = box_plan_of(j, f);
  return f.neighbours ? run_layout<true, E, I>(call, j, p) : run_layout<false, E, I>(call, j, p);
}

static cudaError_t run(const pg_cuda_call *call) {
  return with_max_types(call,
                        [call](auto e, auto i) { return run_as<decltype(e), decltype(i)>(call); });
}

static cudaError_t mend(const pg_cuda_call *call) {
  return pg_tiling_cuts(&call->task->choice.tiling) ? pg_cuda_mend_planes(call) : cudaSuccess;
}

PG_CUDA_METHOD(max_boxes) = {"boxes", fits, box_workspace, run, mend};
