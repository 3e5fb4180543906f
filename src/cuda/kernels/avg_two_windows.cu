/* SPDX-License-Identifier: Apache-2.0 */
/* Averages over contiguous planes, where each cell lies in one or two windows along each axis: most
 * sliding pools, and adaptive pools with no more outputs than cells.
 *
 * Along an axis, neighbouring cells that lie in the same windows are a band.  Band 2 o lies in
 * window o alone, band 2 o - 1 in windows o - 1 and o.  Slices of the same band are equal, and so
 * are rows of a slice.  So sums are computed once for each band of rows and each band of slices.
 * Blocks stay for the whole call and have tables of the bands.  The threads of a block are divided
 * into teams, and a team computes two planes at a time, in three steps:
 *
 *   divide   each output, once: quotients
 *   add      quotients along W and along H: for each slice of outputs, a row of sums for each band
 *            of rows
 *   write    a lane loads the sums of one group of 16 bytes of a slice, adds them along D as it
 *            walks from a slice of outputs to the next, and writes them to each slice of the band
 *
 * This is fast because an output is read and divided once, sums along D stay in registers, and most
 * of gradInput is written 16 bytes at a time.  Two planes need the same tables and addresses, so
 * they cost less together than one after the other.
 *
 * Slices of cells need not begin with a multiple of 16 bytes.  If they do not, a lane gets the
 * elements it lacks from the lane before it, and groups that lie in two slices are written cell by
 * cell.  Both planes of a pair then are the same distance from a multiple of 16 bytes, because they
 * are as many planes apart as 16 bytes have elements.
 *
 * The sums of a pair of planes must fit into a team's part of shared memory, and there must be
 * pairs for all teams.  Other problems are left to avg_rows and avg_strips. */
#include "cuda/kernels/avg_two_windows.cuh"

enum {
  COLUMN_ROWS = 4,            /* rows of quotients that a thread loads before it uses the first */
  AXIS_THREADS = THREADS / 4, /* prepare one axis; the last quarter of the block has none */
  MORE_OFFSETS = 16           /* behind those of a slice: lanes of the last group load them */
};

/* What problems it fits. */
enum {
  LEAST_CELLS = 4096,    /* of a plane: with fewer, the threads of a team mostly wait */
  LEAST_GROUPS = 24,     /* of a slice: with fewer, too many lanes have none */
  LONG_BAND = 16,        /* rows: avg_rows copies long bands as fast, if rows are whole groups */
  MOST_LENGTH = 1 << 12, /* of an axis, in cells: its tables stay small */
  OF_CUDA = 1024         /* bytes of shared memory that CUDA takes for each block */
};

/* --- Tables --- */

/* The position of column x in a row of sums.  Lanes of a warp load cells that are 4 or 8 columns
 * apart; with a gap of one sum after 16, few of them meet in a bank of shared memory. */
static inline __host__ __device__ int32_t position_in_row(int32_t x) { return x + x / 16; }

static __device__ __forceinline__ void prepare_axis(const avg_job &j, const pg_axis_32 &a,
                                                    int32_t band_at, int32_t extent_at) {
  const int32_t first = threadIdx.x % AXIS_THREADS;
#pragma unroll 1
  for (int32_t i = first; i < a.in; i += AXIS_THREADS) {
    const pg_span o = touching(a, i, i + 1);
    scratch_at<uint32_t>(band_at)[i] = (uint32_t)(2 * (o.end - 1) - (length(o) > 1));
  }
#pragma unroll 1
  for (int32_t i = first; i < a.out; i += AXIS_THREADS)
    scratch_at<float>(extent_at)[i] = (float)extent(a, i, j.count_include_pad);
}

static __device__ __forceinline__ void prepare_axes(const avg_job &j, const two_windows_plan &r) {
  switch (threadIdx.x / AXIS_THREADS) {
    case 0:
      return prepare_axis(j, j.d, r.band_d, r.extent_d);
    case 1:
      return prepare_axis(j, j.h, r.band_h, r.extent_h);
    case 2:
      return prepare_axis(j, j.w, r.band_w, r.extent_w);
    default:
      scratch_at<uint32_t>(r.band_d)[j.d.in] = NO_BAND;
  }
}

/* 16 bits are enough: with TEAMS * RESIDENT teams on a multiprocessor, the sums of a slice have far
 * less than 64 KiB.  Offsets behind the slice are valid too, but their sums are not used. */
static __device__ __forceinline__ void prepare_sum_offsets(const avg_job &j,
                                                           const two_windows_plan &r) {
#pragma unroll 1
  for (int32_t f = threadIdx.x; f < r.slice_cells + MORE_OFFSETS; f += THREADS) {
    const int32_t row = min((int32_t)over(f, j.by_w), j.h.in - 1);
    const int32_t at = position_in_row(min(f - row * j.w.in, j.w.in - 1));
    const int32_t from = (int32_t)scratch_at<uint32_t>(r.band_h)[row] * r.row_stride;
    scratch_at<uint16_t>(r.sum_offset)[f] = (uint16_t)(8 * (from + at));
  }
}

struct output_position {
  int32_t d, h, w;
};

static __device__ __forceinline__ output_position output_position_of(const avg_job &j,
                                                                     const two_windows_plan &r,
                                                                     int32_t f) {
  const int32_t row = (int32_t)over(f, r.by_out_w), slice = (int32_t)over(row, r.by_out_h);
  return {slice, row - slice * j.h.out, f - row * j.w.out};
}

static __device__ __forceinline__ void prepare_divisors(const avg_job &j,
                                                        const two_windows_plan &r) {
#pragma unroll 1
  for (int32_t f = threadIdx.x; f < r.outputs; f += THREADS) {
    const output_position o = output_position_of(j, r, f);
    const float by = j.divisor != 0
                         ? (float)j.divisor
                         : scratch_at<float>(r.extent_d)[o.d] * scratch_at<float>(r.extent_h)[o.h] *
                               scratch_at<float>(r.extent_w)[o.w];
    scratch_at<float2>(r.divisor)[f] = make_float2(by, __frcp_rn(by));
  }
}

/* --- Pairs of planes --- */

/* The number of a plane is the number of its pair with one more bit in the middle, of value
 * pair_distance, which says whether it is the second. */
template <typename E>
static __device__ __forceinline__ int32_t first_plane(int32_t pair) {
  return pair + pair / pair_distance<E>() * pair_distance<E>();
}

/* 2, or 1 if the pair has no second plane, or 0 behind the last pair. */
template <typename E>
static __device__ __forceinline__ int32_t planes_of(const avg_job &j, const two_windows_plan &r,
                                                    int32_t pair) {
  const int32_t second = first_plane<E>(pair) + pair_distance<E>();
  return pair >= r.pairs ? 0 : second < (int32_t)j.cut.planes ? 2 : 1;
}

/* The outputs of a plane, where all are contiguous. */
template <typename E>
static __device__ __forceinline__ const E *plane_outputs(const avg_job &j,
                                                         const two_windows_plan &r, int32_t plane) {
  return (const E *)j.grad + (uint64_t)(uint32_t)plane * (uint32_t)r.outputs;
}

/* Brings the outputs of a pair into the second-level cache while the team writes the pair before:
 * many writes make reading slow. */
template <typename E>
static __device__ __forceinline__ void prefetch(const two_windows_plan &r, const E *grad,
                                                int32_t planes) {
  enum { SECTOR = 32 / sizeof(E) /* outputs that the cache loads at once */ };
#pragma unroll 1
  for (int32_t s = 0; s < planes; s++, grad += pair_distance<E>() * r.outputs)
#pragma unroll 1
    for (int32_t f = SECTOR * team_thread(); f < r.outputs; f += SECTOR * TEAM)
      asm volatile("prefetch.global.L2 [%0];" ::"l"(grad + f));
}

/* The outputs of a pair that a thread loads at once: output f and every TEAM-th behind it, zeros
 * behind the last output. */
template <typename E>
struct outputs_in_flight {
  E of[PLANES][IN_FLIGHT];

  __device__ __forceinline__ void load(const E *grad, int32_t f, const two_windows_plan &r,
                                       int32_t planes) {
#pragma unroll
    for (int s = 0; s < PLANES; s++)
#pragma unroll
      for (int i = 0; i < IN_FLIGHT; i++) {
        const int32_t at = f + i * TEAM;
        of[s][i] =
            s < planes && at < r.outputs ? grad[s * pair_distance<E>() * r.outputs + at] : E();
      }
  }
};

/* --- Divide --- */

/* `loaded` has the thread's first outputs.  False if the pair has gradients that quotient() is not
 * exact for. */
template <typename E>
static __device__ __forceinline__ bool divide_by_product(const two_windows_plan &r,
                                                         uint32_t quotients, const E *grad,
                                                         int32_t planes,
                                                         outputs_in_flight<E> loaded) {
  pg_seen<E> seen;
  int32_t f = team_thread();
#pragma unroll 1
  for (;;) {
    const float2 *divisor = scratch_at<const float2>(r.divisor) + f;
    float2 by[IN_FLIGHT];
#pragma unroll
    for (int i = 0; i < IN_FLIGHT; i++) by[i] = divisor[i * TEAM];
#pragma unroll
    for (int i = 0; i < IN_FLIGHT; i++) {
      const float a = widened(loaded.of[0][i]), b = widened(loaded.of[1][i]);
      const pg_divisor of = {by[i].x, by[i].y};
      seen.note(a);
      seen.note(b);
      if (f + i * TEAM < r.outputs)
        shared_store(quotients + 8 * (f + i * TEAM), make_float2(quotient(a, of), quotient(b, of)));
    }
    f += IN_FLIGHT * TEAM;
    if (f >= r.outputs) return !seen.odd();
    loaded.load(grad, f, r, planes);
  }
}

/* For any strides, divisors and gradients. */
template <typename E>
static __device__ __forceinline__ void divide_truly(const avg_job &j, const two_windows_plan &r,
                                                    uint32_t quotients, int32_t plane,
                                                    int32_t planes) {
#pragma unroll 1
  for (int32_t s = 0; s < planes; s++, plane += pair_distance<E>()) {
    const uint32_t n = over((uint32_t)plane, j.by_c), c = (uint32_t)plane - n * j.by_c.by;
#pragma unroll 1
    for (int32_t f = team_thread(); f < r.outputs; f += TEAM) {
      const output_position o = output_position_of(j, r, f);
      const float g = widened(((const E *)j.grad)[offset(j.grad_strides, n, c, o.d, o.h, o.w)]);
      const float by = scratch_at<float>(r.divisor)[2 * f];
      shared_store(quotients + 8 * f + 4 * s, true_quotient(g, {by, 0}));
    }
  }
}

/* --- Add --- */

/* A column of cells in a slice of outputs: the address of its latest quotient, and of the latest
 * sum that was stored. */
struct two_windows_column {
  uint32_t quotient, sum, quotient_stride, sum_stride;
  bool two;      /* it lies in two windows along W: the quotient's and that of the one before */
  float2 latest; /* sum along W */

  __device__ __forceinline__ float2 sum_along_w(uint32_t at) const {
    const float2 own = shared_load_two(at);
    return two ? plus(shared_load_two(at - 8), own) : own;
  }
  __device__ __forceinline__ void begin() {
    latest = sum_along_w(quotient);
    shared_store(sum, latest);
  }
  /* Walks down ROWS rows of outputs, each of which has two more bands of cells. */
  template <int ROWS>
  __device__ __forceinline__ void walk() {
    float2 next[ROWS];
#pragma unroll
    for (int i = 0; i < ROWS; i++) next[i] = sum_along_w(quotient += quotient_stride);
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
      shared_store(sum += sum_stride, plus(latest, next[i]));
      shared_store(sum += sum_stride, next[i]);
      latest = next[i];
    }
  }
};

static __device__ __forceinline__ void add_quotients(const avg_job &j, const two_windows_plan &r,
                                                     uint32_t team_sums) {
#pragma unroll 1
  for (int32_t f = team_thread(); f < j.d.out * j.w.in; f += TEAM) {
    const int32_t slice = (int32_t)over(f, j.by_w), x = f - slice * j.w.in;
    const uint32_t band = scratch_at<uint32_t>(r.band_w)[x];
    two_windows_column c;
    c.quotient = quotients_of(r, team_sums) + 8 * (slice * j.h.out * j.w.out + (band + 1) / 2);
    c.sum = team_sums + 8 * (slice * r.slice_stride + position_in_row(x));
    c.quotient_stride = 8 * j.w.out;
    c.sum_stride = 8 * r.row_stride;
    c.two = band % 2 != 0;
    c.begin();
    int32_t rows = j.h.out - 1;
#pragma unroll 1
    for (; rows >= COLUMN_ROWS; rows -= COLUMN_ROWS) c.walk<COLUMN_ROWS>();
#pragma unroll 1
    for (; rows > 0; rows--) c.walk<1>();
  }
}

/* --- The kernel --- */

/* SHIFTED: not all slices begin with a multiple of 16 bytes. */
template <bool SHIFTED, typename E>
static __global__ void __launch_bounds__(THREADS, RESIDENT)
    avg_two_windows(const __grid_constant__ avg_job j, const __grid_constant__ two_windows_plan r) {
  int32_t pair = team_number() * gridDim.x + blockIdx.x; /* so blocks differ by a pair at most */
  outputs_in_flight<E> loaded;
  const auto load_first = [&] {
    loaded.load(plane_outputs<E>(j, r, first_plane<E>(pair)), team_thread(), r,
                r.by_product ? planes_of<E>(j, r, pair) : 0);
  };
  load_first();
  prepare_axes(j, r);
  __syncthreads();
  prepare_sum_offsets(j, r);
  prepare_divisors(j, r);
  __syncthreads();
#pragma unroll 1
  while (pair < r.pairs) {
    const int32_t plane = first_plane<E>(pair), planes = planes_of<E>(j, r, pair);
    E *out = (E *)j.in + (uint64_t)(uint32_t)plane * j.cells;
    const uint32_t lead = (uintptr_t)out % 16 / sizeof(E);
    const uint32_t quotients = quotients_of(r, team_sums_of(r));
    if (!r.by_product ||
        !divide_by_product(r, quotients, plane_outputs<E>(j, r, plane), planes, loaded))
      divide_truly<E>(j, r, quotients, plane, planes);
    sync_team();
    add_quotients(j, r, team_sums_of(r));
    pair += TEAMS * gridDim.x;
    if (r.by_product)
      prefetch(r, plane_outputs<E>(j, r, first_plane<E>(pair)), planes_of<E>(j, r, pair));
    sync_team();
    write_whole_groups<SHIFTED, E>(r, team_sums_of(r), (char *)(out - lead), lead * sizeof(E),
                                   planes);
    load_first();
    if (SHIFTED) write_split_groups(j, r, team_sums_of(r), out - lead, lead, planes);
  }
}

/* --- On the host --- */

/* Does each cell lie in one or two windows, and those in two in neighbouring ones? */
static bool has_one_or_two_windows(const pg_axis &a) {
  if (a.out < 1) return false;
  if (a.kernel == 0) return a.out <= a.in;
  return a.dilation == 1 && a.stride <= a.kernel && a.kernel <= 2 * a.stride &&
         (a.out - 1) * a.stride - a.pad + a.kernel >= a.in;
}

/* Prepares what follows from the pooling, and returns the bytes of scratch. */
static int64_t plan_scratch(const pg_pooling &p, two_windows_plan *r) {
  /* Rows of sums that a warp loads from begin in different banks. */
  const int64_t width = position_in_row((int32_t)p.w.in);
  const int64_t row_stride = width % 16 == 0 ? width : width + 1;
  const int64_t slice_stride = (2 * p.h.out - 1) * row_stride;
  const int64_t outputs = p.d.out * p.h.out * p.w.out;
  const int64_t loads = pg_ceil_div(outputs, IN_FLIGHT * TEAM); /* divisors are loaded so, too */
  int64_t end = 0;
  r->outputs = (int32_t)outputs;
  r->slice_cells = (int32_t)(p.h.in * p.w.in);
  r->row_stride = (int32_t)row_stride;
  r->slice_stride = (int32_t)slice_stride;
  r->extent_d = reserve_words(p.d.out, &end);
  r->extent_h = reserve_words(p.h.out, &end);
  r->extent_w = reserve_words(p.w.out, &end);
  r->band_d = reserve_words(p.d.in + 1, &end);
  r->band_h = reserve_words(p.h.in, &end);
  r->band_w = reserve_words(p.w.in, &end);
  r->sum_offset = reserve_words(pg_ceil_div(r->slice_cells + MORE_OFFSETS, 2), &end);
  r->divisor = reserve_words(2 * loads * IN_FLIGHT * TEAM, &end);
  r->quotient = reserve_words(2 * outputs, &end);
  r->sum = reserve_words(2 * p.d.out * slice_stride, &end);
  r->team_words = (int32_t)end - r->quotient;
  r->by_out_w = divider_of(p.w.out);
  r->by_out_h = divider_of(p.h.out);
  return 4 * (end + (TEAMS - 1) * (end - r->quotient));
}

/* The number of pairs that planes make, if those of a pair are `distance` apart. */
static int64_t pairs_of(int64_t planes, int64_t distance) {
  return planes / (2 * distance) * distance + least(planes % (2 * distance), distance);
}

static bool fits(const pg_problem *problem, pg_tiling *tiling) {
  const pg_facts &f = problem->facts;
  const pg_pooling &p = f.pool;
  const pg_cuda_limits *limits = pg_cuda_least_limits();
  const int64_t group = 16 / element_bytes(*problem);
  if (!fits_avg_planes(*problem) || !f.in.all) return false;
  for (const pg_axis *a : {&p.d, &p.h, &p.w})
    if (!has_one_or_two_windows(*a) || a->in > MOST_LENGTH) return false;
  if (p.w.in < group || p.h.in * p.w.in < LEAST_GROUPS * group || f.cells < LEAST_CELLS)
    return false;
  const int64_t bands = (2 * p.d.out - 1) * (2 * p.h.out - 1);
  if (p.w.in % group == 0 && p.d.in * p.h.in >= LONG_BAND * bands) return false;
  *tiling = tile_avg_planes(f);
  two_windows_plan r = {};
  if (RESIDENT * (plan_scratch(p, &r) + OF_CUDA) > limits->shared_bytes + OF_CUDA) return false;
  /* Where teams would get very different numbers of pairs, methods that cut planes are faster. */
  const int64_t pairs = pairs_of(f.planes, group), teams = RESIDENT * TEAMS * limits->processors;
  return 4 * pairs >= 3 * pg_ceil_div(pairs, teams) * teams;
}

template <typename E>
static cudaError_t run_as(const pg_cuda_call *call) {
  enum { GROUP = 16 / sizeof(E) };
  const avg_job j = avg_job_of(call);
  const pg_facts &f = call->task->problem.facts;
  const int64_t slice_cells = f.pool.h.in * f.pool.w.in;
  const int64_t pairs = pairs_of(f.planes, pair_distance<E>());
  two_windows_plan r = {};
  const int64_t bytes = plan_scratch(f.pool, &r);
  r.slice_bytes = (int32_t)(slice_cells * sizeof(E));
  r.pairs = (int32_t)pairs;
  r.pair_stride = pair_distance<E>() * f.cells * (int64_t)sizeof(E);
  r.by_product = f.out.all && f.largest_divisor <= MOST_DIVISOR && j.divisor >= 0;
  const int64_t most_blocks = RESIDENT * (int64_t)pg_cuda_least_limits()->processors;
  const int64_t blocks = least(pg_ceil_div(pairs, TEAMS), most_blocks);
  const bool shifted = (uintptr_t)j.in % 16 != 0 || slice_cells % GROUP != 0;
  return launch(call, shifted ? avg_two_windows<true, E> : avg_two_windows<false, E>, blocks,
                THREADS, bytes, j, r);
}

static cudaError_t run(const pg_cuda_call *call) {
  return with_fp32_type(call, [call](auto e) { return run_as<decltype(e)>(call); });
}

PG_CUDA_METHOD(avg_two_windows) = {"two_windows", fits, nullptr, run, nullptr};
