/* SPDX-License-Identifier: Apache-2.0 */
/* Averages of planes that are one window (global average pooling).  The cells of a plane are one
 * row, whose i-th cell is added to partial sum i mod 16 (kernels/kernels.h).
 *
 * In planes, lanes have one or two partial sums each, so that neighbouring lanes read neighbouring
 * cells.  Small planes would leave many lanes idle: a block brings a run of them into shared
 * memory, and each thread adds up a plane there.  Where channels are neighbours, a thread has all
 * partial sums of one or two channels; if these are too few to keep the device busy, 16 threads
 * have the partial sums of 16 bytes of channels, or of one channel. */
#include <type_traits>

#include "cuda/kernels/forward_job.cuh"

enum {
  THREADS = 256,
  IN_FLIGHT = 16,        /* loads of a thread before it adds the first cell */
  SMALL_CELLS = 128,     /* planes with fewer are small */
  RUN_BYTES = 24 * 1024, /* of small planes that a block has in shared memory */
  RUN_ROUNDS = 6,        /* groups of 16 bytes of a run that a thread loads at once */
  SLOTS = THREADS / PG_PARTIAL_SUMS,
  BUSY_THREADS = 1024 /* of a processor, which are enough */
};

struct one_row_job {
  const void *in;
  void *out;
  int64_t in_n, in_c, out_n, out_c; /* strides */
  int64_t cells, step;              /* of a plane; from a cell to the next */
  int64_t planes, channels;
  int32_t run; /* small planes of a block */
  float divisor;
  pg_divider by_channels, by_vectors; /* vectors: of the channels of an image */
};

/* 16 partial sums become one, in the order of kernels/kernels.h; up to 16 cells are added one after
 * the other. */
static __device__ __forceinline__ float add_partial_sums(const float *partial, int64_t cells) {
  if (cells > PG_PARTIAL_SUMS) {
    float sum[8];
#pragma unroll
    for (int k = 0; k < 8; k++) sum[k] = partial[k] + partial[k + 8];
#pragma unroll
    for (int k = 0; k < 4; k++) sum[k] += sum[k + 4];
    return (sum[0] + sum[2]) + (sum[1] + sum[3]);
  }
  float sum = partial[0];
#pragma unroll
  for (int k = 1; k < PG_PARTIAL_SUMS; k++)
    if (k < cells) sum += partial[k];
  return sum;
}

/* A sum begins at +0, so that it is never -0; on the way this makes no difference. */
template <typename E>
static __device__ __forceinline__ void put_average(const one_row_job &j, uint32_t n, uint32_t c,
                                                   float sum) {
  put((E *)j.out + n * j.out_n + c * j.out_c, __fdiv_rn(sum + 0.0f, j.divisor));
}

/* 16 / V lanes have a plane of more than 16 cells, and V partial sums each. */
template <typename E, int V>
static __global__ void __launch_bounds__(THREADS)
    avg_forward_one_window(const __grid_constant__ one_row_job j) {
  constexpr int LANES = PG_PARTIAL_SUMS / V;
  const uint32_t plane = blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES;
  if (plane >= j.planes) return;
  const unsigned team = ((1u << LANES) - 1) << (threadIdx.x % 32 / LANES * LANES);
  const uint32_t n = over(plane, j.by_channels), c = plane - n * j.by_channels.by;
  const int64_t first = threadIdx.x % LANES * V;
  const E *cell = (const E *)j.in + n * j.in_n + c * j.in_c + first;
  int64_t left = (j.cells - first + PG_PARTIAL_SUMS - 1) / PG_PARTIAL_SUMS;
  float sum[V] = {};
  for (; left > 0; left -= IN_FLIGHT) {
    vector_of<E, V> cells[IN_FLIGHT];
#pragma unroll
    for (int i = 0; i < IN_FLIGHT; i++)
      if (i < left) cells[i].load(cell + i * PG_PARTIAL_SUMS);
#pragma unroll
    for (int i = 0; i < IN_FLIGHT; i++)
      if (i < left)
#pragma unroll
        for (int v = 0; v < V; v++) sum[v] += widened(cells[i].of[v]);
    cell += IN_FLIGHT * PG_PARTIAL_SUMS;
  }
#pragma unroll
  for (int distance = LANES / 2; distance > 0; distance /= 2)
#pragma unroll
    for (int v = 0; v < V; v++) sum[v] += __shfl_xor_sync(team, sum[v], distance);
  if constexpr (V == 2) sum[0] += sum[1];
  if (first == 0) put_average<E>(j, n, c, sum[0]);
}

/* --- Small planes --- */

/* Where an element of a run lies in shared memory.  SKEWED: a word is left out behind every 32,
 * because lanes would often meet in a bank otherwise. */
template <bool SKEWED, typename E>
static __device__ __forceinline__ uint32_t run_place(uint32_t i) {
  constexpr uint32_t OF_WORD = 4 / sizeof(E);
  return SKEWED ? i + i / (32 * OF_WORD) * OF_WORD : i;
}

/* Group `at / GROUP` of a run of `count` elements, of which `lead` are before its first one. */
template <typename E>
static __device__ __forceinline__ uint4 load_group(const E *aligned, int32_t at, int32_t lead,
                                                   int32_t count) {
  constexpr int GROUP = 16 / (int)sizeof(E);
  if (at >= lead && at + GROUP <= lead + count) return __ldg((const uint4 *)(aligned + at));
  E some[GROUP] = {};
#pragma unroll
  for (int i = 0; i < GROUP; i++)
    if (at + i >= lead && at + i < lead + count) some[i] = aligned[at + i];
  uint4 words;
  memcpy(&words, some, 16);
  return words;
}

/* Brings `count` elements into shared memory, in groups of 16 bytes; `to` has as many elements
 * before its first one as `from` has behind a multiple of 16 bytes. */
template <bool SKEWED, typename E>
static __device__ __forceinline__ void bring_run(const E *from, int32_t count, E *to) {
  constexpr int GROUP = 16 / (int)sizeof(E);
  const int32_t lead = (int32_t)((uintptr_t)from % 16 / sizeof(E));
  const int32_t groups = (lead + count + GROUP - 1) / GROUP;
  for (int32_t base = (int32_t)threadIdx.x; base < groups; base += RUN_ROUNDS * THREADS) {
    uint4 words[RUN_ROUNDS];
#pragma unroll
    for (int r = 0; r < RUN_ROUNDS; r++)
      if (base + r * THREADS < groups)
        words[r] = load_group(from - lead, (base + r * THREADS) * GROUP, lead, count);
#pragma unroll
    for (int r = 0; r < RUN_ROUNDS; r++) {
      const int32_t group = base + r * THREADS;
      if (group >= groups) continue;
      uint32_t *word = (uint32_t *)(to + run_place<SKEWED, E>((uint32_t)(group * GROUP)));
      if (!SKEWED) {
        *(uint4 *)word = words[r];
        continue;
      }
      word[0] = words[r].x;
      word[1] = words[r].y;
      word[2] = words[r].z;
      word[3] = words[r].w;
    }
  }
}

/* Planes follow each other without gaps; a thread adds up one. */
template <typename E, bool SKEWED>
static __global__ void __launch_bounds__(THREADS)
    avg_forward_small_planes(const __grid_constant__ one_row_job j) {
  extern __shared__ __align__(16) char pg_column_memory[];
  E *run = (E *)pg_column_memory;
  const int64_t begin = (int64_t)blockIdx.x * j.run;
  const int32_t planes = (int32_t)min((int64_t)j.run, j.planes - begin), cells = (int32_t)j.cells;
  const E *from = (const E *)j.in + begin * cells;
  bring_run<SKEWED>(from, planes * cells, run);
  __syncthreads();
  if ((int32_t)threadIdx.x >= planes) return;
  const uint32_t lead = (uint32_t)((uintptr_t)from % 16 / sizeof(E));
  uint32_t first = lead + threadIdx.x * (uint32_t)cells;
  float partial[PG_PARTIAL_SUMS] = {};
  int32_t left = cells;
  for (; left >= PG_PARTIAL_SUMS; left -= PG_PARTIAL_SUMS) {
#pragma unroll
    for (int k = 0; k < PG_PARTIAL_SUMS; k++)
      partial[k] += widened(run[run_place<SKEWED, E>(first + k)]);
    first += PG_PARTIAL_SUMS;
  }
#pragma unroll
  for (int k = 0; k < PG_PARTIAL_SUMS; k++)
    if (k < left) partial[k] += widened(run[run_place<SKEWED, E>(first + k)]);
  const uint32_t plane = (uint32_t)begin + threadIdx.x, n = over(plane, j.by_channels);
  put_average<E>(j, n, plane - n * j.by_channels.by, add_partial_sums(partial, cells));
}

/* --- Channels that are neighbours --- */

/* A thread has V channels of an image, and all of their partial sums. */
template <typename E, int V>
static __global__ void __launch_bounds__(THREADS, 3)
    avg_forward_channels(const __grid_constant__ one_row_job j) {
  const uint32_t slot = blockIdx.x * THREADS + threadIdx.x;
  const uint32_t n = over(slot, j.by_vectors), c = (slot - n * j.by_vectors.by) * V;
  if ((int64_t)slot * V >= j.planes) return;
  const E *cell = (const E *)j.in + n * j.in_n + c;
  float partial[V][PG_PARTIAL_SUMS] = {};
  int64_t left = j.cells;
  /* Whole rounds need no tests, so that all of their loads come before the first sum. */
  const auto add_round = [&](auto whole) {
    vector_of<E, V> cells[PG_PARTIAL_SUMS];
#pragma unroll
    for (int k = 0; k < PG_PARTIAL_SUMS; k++) {
      if (decltype(whole)::value || k < left) cells[k].load(cell);
      cell += j.step;
    }
#pragma unroll
    for (int k = 0; k < PG_PARTIAL_SUMS; k++)
      if (decltype(whole)::value || k < left)
#pragma unroll
        for (int v = 0; v < V; v++) partial[v][k] += widened(cells[k].of[v]);
  };
  for (; left >= PG_PARTIAL_SUMS; left -= PG_PARTIAL_SUMS) add_round(std::true_type());
  if (left > 0) add_round(std::false_type());
#pragma unroll
  for (int v = 0; v < V; v++) put_average<E>(j, n, c + v, add_partial_sums(partial[v], j.cells));
}

/* The cells of partial sum k in V channels, from `cell` on. */
template <typename E, int V>
static __device__ __forceinline__ void add_every_16th(const E *cell, int64_t on, int64_t left,
                                                      float *sum) {
  for (; left > 0; left -= IN_FLIGHT / 2) {
    vector_of<E, V> cells[IN_FLIGHT / 2];
#pragma unroll
    for (int i = 0; i < IN_FLIGHT / 2; i++) {
      if (i < left) cells[i].load(cell);
      cell += on;
    }
#pragma unroll
    for (int i = 0; i < IN_FLIGHT / 2; i++)
      if (i < left)
#pragma unroll
        for (int v = 0; v < V; v++) sum[v] += widened(cells[i].of[v]);
  }
}

/* 16 threads have a slot, which is V channels of an image. */
template <typename E, int V>
static __global__ void __launch_bounds__(THREADS)
    avg_forward_few_channels(const __grid_constant__ one_row_job j) {
  extern __shared__ __align__(16) char pg_column_memory[];
  float *sums = (float *)pg_column_memory; /* [16 partial sums][SLOTS * V] */
  const uint32_t slots = (uint32_t)(j.planes / V), k = threadIdx.x / SLOTS;
  const uint32_t slot = blockIdx.x * SLOTS + threadIdx.x % SLOTS;
  float sum[V] = {};
  if (slot < slots && k < j.cells) {
    const uint32_t n = over(slot, j.by_vectors), c = (slot - n * j.by_vectors.by) * V;
    add_every_16th<E, V>((const E *)j.in + n * j.in_n + c + k * j.step, PG_PARTIAL_SUMS * j.step,
                         (j.cells - k + PG_PARTIAL_SUMS - 1) / PG_PARTIAL_SUMS, sum);
  }
#pragma unroll
  for (int v = 0; v < V; v++) sums[(k * SLOTS + threadIdx.x % SLOTS) * V + v] = sum[v];
  __syncthreads();
  const uint32_t own = blockIdx.x * SLOTS + threadIdx.x / V;
  if (threadIdx.x >= SLOTS * V || own >= slots) return;
  float partial[PG_PARTIAL_SUMS];
#pragma unroll
  for (int i = 0; i < PG_PARTIAL_SUMS; i++) partial[i] = sums[i * SLOTS * V + threadIdx.x];
  const uint32_t n = over(own, j.by_vectors), c = (own - n * j.by_vectors.by) * V;
  put_average<E>(j, n, c + threadIdx.x % V, add_partial_sums(partial, j.cells));
}

/* --- On the host --- */

/* The distance from a cell to the next in row-major order; -1: there is no such number. */
static int64_t cell_step(const pg_pooling &p, const pg_strides &s) {
  const int64_t length[] = {p.w.in, p.h.in, p.d.in}, axis[] = {PG_W, PG_H, PG_D};
  int64_t step = -1, next = 0;
  for (int i = 0; i < 3; i++) {
    if (length[i] == 1) continue;
    if (step < 0) step = next = s.of[axis[i]];
    if (s.of[axis[i]] != next) return -1;
    next *= length[i];
  }
  return step < 0 ? 1 : step;
}

static bool has_small_planes(const pg_facts &f, const pg_avg_forward &a) {
  const int64_t *s = a.in_strides.of, c = f.pool.c;
  if (f.cells >= SMALL_CELLS) return false;
  return (c == 1 || s[PG_C] == f.cells) && (f.pool.n == 1 || s[PG_N] == c * f.cells);
}

static bool fits(const pg_problem *problem, pg_tiling *tiling) {
  const pg_facts &f = problem->facts;
  const pg_avg_forward &a = problem->args.avg_forward;
  const pg_pooling grid = pg_output_grid(&f.pool);
  *tiling = pg_tile_flat(&grid, 4096);
  if (f.planes <= 0 || f.cells <= 0 || f.planes >= (int64_t)1 << 30 || !pg_is_global(&f.pool))
    return false;
  const int64_t step = cell_step(f.pool, a.in_strides);
  if (f.neighbours) return step > 0;
  return step == 1 && (f.cells > PG_PARTIAL_SUMS || has_small_planes(f, a));
}

static one_row_job job_of(const pg_problem &problem) {
  const pg_facts &f = problem.facts;
  const pg_avg_forward &a = problem.args.avg_forward;
  const bool pad = a.count_include_pad;
  one_row_job j = {};
  j.in = a.in;
  j.out = a.out;
  j.in_n = a.in_strides.of[PG_N];
  j.in_c = a.in_strides.of[PG_C];
  j.out_n = a.out_strides.of[PG_N];
  j.out_c = a.out_strides.of[PG_C];
  j.cells = f.cells;
  j.step = cell_step(f.pool, a.in_strides);
  j.planes = f.planes;
  j.channels = f.pool.c;
  j.by_channels = divider_of(f.pool.c);
  const int64_t counted = pg_window_extent(&f.pool.d, 0, pad) *
                          pg_window_extent(&f.pool.h, 0, pad) * pg_window_extent(&f.pool.w, 0, pad);
  j.divisor = (float)(a.divisor != 0 ? a.divisor : counted);
  return j;
}

/* Can `v` elements that begin with the first cell of a plane, or a channel, be loaded at once? */
static bool has_vectors(const one_row_job &j, bool neighbours, int64_t element_bytes, int64_t v) {
  const bool aligned = (uintptr_t)j.in % (uintptr_t)(v * element_bytes) == 0 && j.in_n % v == 0;
  if (neighbours) return aligned && j.channels % v == 0 && j.step % v == 0;
  return aligned && j.in_c % v == 0 && j.cells % v == 0;
}

template <typename E>
static cudaError_t run_channels(const pg_cuda_call *call, one_row_job j) {
  constexpr int GROUP = 16 / sizeof(E);
  const int64_t busy = BUSY_THREADS * (int64_t)pg_cuda_least_limits()->processors;
  const int64_t v = has_vectors(j, true, sizeof(E), GROUP) ? GROUP
                    : has_vectors(j, true, sizeof(E), 2)   ? 2
                                                           : 1;
  const bool many = j.planes >= 2 * busy;
  const bool wide = v == GROUP && j.planes / GROUP >= busy / PG_PARTIAL_SUMS;
  const int64_t own = many || !wide ? (v > 1 ? 2 : 1) : GROUP;
  j.by_vectors = divider_of(j.channels / own);
  const int64_t blocks = pg_ceil_div(j.planes / own, many ? (int64_t)THREADS : (int64_t)SLOTS);
  if (many)
    return launch(call, own == 2 ? avg_forward_channels<E, 2> : avg_forward_channels<E, 1>, blocks,
                  THREADS, 0, j);
  return launch(call,
                own == 1   ? avg_forward_few_channels<E, 1>
                : own == 2 ? avg_forward_few_channels<E, 2>
                           : avg_forward_few_channels<E, GROUP>,
                blocks, THREADS, THREADS * own * (int64_t)sizeof(float), j);
}

template <typename E>
static cudaError_t run_small_planes(const pg_cuda_call *call, one_row_job j) {
  j.run = (int32_t)least(THREADS, RUN_BYTES / (j.cells * (int64_t)sizeof(E)));
  const int64_t bytes = j.run * j.cells * (int64_t)sizeof(E) + 32;
  return launch(
      call,
      j.cells % 2 == 0 ? avg_forward_small_planes<E, true> : avg_forward_small_planes<E, false>,
      pg_ceil_div(j.planes, j.run), THREADS, (bytes + bytes / 32 + 32) / 16 * 16, j);
}

template <typename E>
static cudaError_t run_as(const pg_cuda_call *call) {
  const pg_problem &problem = call->task->problem;
  const one_row_job j = job_of(problem);
  if (problem.facts.neighbours) return run_channels<E>(call, j);
  if (has_small_planes(problem.facts, problem.args.avg_forward))
    return run_small_planes<E>(call, j);
  const int64_t busy = BUSY_THREADS * (int64_t)pg_cuda_least_limits()->processors;
  const bool two = has_vectors(j, false, sizeof(E), 2) && j.planes * 8 >= busy;
  return launch(call, two ? avg_forward_one_window<E, 2> : avg_forward_one_window<E, 1>,
                pg_ceil_div(j.planes, two ? 2 * SLOTS : SLOTS), THREADS, 0, j);
}

static cudaError_t run(const pg_cuda_call *call) {
  return with_fp32_type(call, [call](auto e) { return run_as<decltype(e)>(call); });
}

PG_CUDA_METHOD(avg_forward_one_window) = {"one_window", fits, nullptr, run, nullptr};
