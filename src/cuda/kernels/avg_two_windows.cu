/* SPDX-License-Identifier: Apache-2.0 */
/* SPREAD over whole planes that follow each other, where a cell lies in one or two windows along
 * each axis: adaptive pools that do not enlarge, and most that slide.
 *
 * Along an axis a cell is of kind 2 o if it lies in window o alone, 2 o - 1 if in the one before it
 * too.  Slices of one kind are the same, and so are rows of a slice.  Blocks have tables of kinds,
 * and teams of threads that make two planes at a time, which costs less than one and one:
 *
 *   divide   each output, once: terms
 *   add      terms along W and along H: for each slice of outputs a row of sums for each kind
 *   write    a lane has the sums of some 16 bytes of a slice, adds them along D as it goes from one
 *            slice of outputs to the next, and writes them to each slice of cells they are for
 *
 * Slices of cells need not begin where 16 bytes do: a lane then gets what it lacks from the lane
 * before it, and groups of 16 bytes that lie in two slices are written cell by cell.  Both planes
 * begin alike: as many lie between them as 16 bytes have elements. */
#include "cuda/kernels/avg_two_windows.cuh"

/* --- Tables --- */

/* A cell's place in a row of sums: few lanes that are 4 or 8 cells apart meet in a bank. */
static inline __host__ __device__ int32_t place_in_row(int32_t x) { return x + x / 16; }

enum { AXIS_THREADS = THREADS / 4 };

static __device__ __forceinline__ void know_axis(const avg_job &j, const pg_axis_32 &a,
                                                 int32_t kind, int32_t extent_at) {
  const int32_t first = threadIdx.x % AXIS_THREADS;
#pragma unroll 1
  for (int32_t i = first; i < a.in; i += AXIS_THREADS) {
    const pg_span o = touching(a, i, i + 1);
    words_at(kind)[i] = (uint32_t)(2 * (o.end - 1) - (length(o) > 1));
  }
#pragma unroll 1
  for (int32_t i = first; i < a.out; i += AXIS_THREADS)
    floats_at(extent_at)[i] = (float)extent(a, i, j.count_include_pad);
}

static __device__ __forceinline__ void know_axes(const avg_job &j, const pairs_plan &r) {
  switch (threadIdx.x / AXIS_THREADS) {
    case 0:
      return know_axis(j, j.d, r.kind_d, r.extent_d);
    case 1:
      return know_axis(j, j.h, r.kind_h, r.extent_h);
    case 2:
      return know_axis(j, j.w, r.kind_w, r.extent_w);
    default:
      words_at(r.kind_d)[j.d.in] = NO_KIND;
  }
}

/* Where each cell's sum is in a slice of sums, in bytes; behind the cells anywhere. */
static __device__ __forceinline__ void know_places(const avg_job &j, const pairs_plan &r) {
  enum { MORE = 16 };
#pragma unroll 1
  for (int32_t f = threadIdx.x; f < r.cells + MORE; f += THREADS) {
    const int32_t row = min((int32_t)over(f, j.by_w), j.h.in - 1);
    const int32_t at = place_in_row(min(f - row * j.w.in, j.w.in - 1));
    const int32_t from = (int32_t)words_at(r.kind_h)[row] * r.pitch;
    ((uint16_t *)words_at(r.place))[f] = (uint16_t)(8 * (from + at));
  }
}

/* --- Terms --- */

struct pairs_output {
  int32_t d, h, w;
};
static __device__ __forceinline__ pairs_output output_of(const avg_job &j, const pairs_plan &r,
                                                         int32_t f) {
  const int32_t row = (int32_t)over(f, r.by_wide), slice = (int32_t)over(row, r.by_tall);
  return {slice, row - slice * j.h.out, f - row * j.w.out};
}

static __device__ __forceinline__ void know_divisors(const avg_job &j, const pairs_plan &r) {
#pragma unroll 1
  for (int32_t f = threadIdx.x; f < r.outputs; f += THREADS) {
    const pairs_output o = output_of(j, r, f);
    const float by = j.divisor != 0 ? (float)j.divisor
                                    : floats_at(r.extent_d)[o.d] * floats_at(r.extent_h)[o.h] *
                                          floats_at(r.extent_w)[o.w];
    ((float2 *)words_at(r.divisor))[f] = make_float2(by, __frcp_rn(by));
  }
}

template <typename E>
static __device__ __forceinline__ const E *run_at(const avg_job &j, const pairs_plan &r,
                                                  int32_t plane) {
  return (const E *)j.grad + (uint64_t)(uint32_t)plane * (uint32_t)r.outputs;
}

/* Brings two runs nearer: while much is written, reading takes long. */
template <typename E>
static __device__ __forceinline__ void fetch(const pairs_plan &r, const E *run, int32_t planes) {
  enum { SECTOR = 32 / sizeof(E) };
#pragma unroll 1
  for (int32_t s = 0; s < planes; s++, run += planes_apart<E>() * r.outputs)
#pragma unroll 1
    for (int32_t f = SECTOR * member_of_team(); f < r.outputs; f += SECTOR * TEAM)
      asm volatile("prefetch.global.L2 [%0];" ::"l"(run + f));
}

/* Every TEAM-th output of two planes from one on, zero behind the last. */
template <typename E>
struct pairs_batch {
  E of[PLANES][BATCH];

  __device__ __forceinline__ void read(const E *run, int32_t f, const pairs_plan &r,
                                       int32_t planes) {
#pragma unroll
    for (int s = 0; s < PLANES; s++)
#pragma unroll
      for (int i = 0; i < BATCH; i++) {
        const int32_t at = f + i * TEAM;
        of[s][i] = s < planes && at < r.outputs ? run[s * planes_apart<E>() * r.outputs + at] : E();
      }
  }
};

/* The first batch is there.  False if an output was odd. */
template <typename E>
static __device__ __forceinline__ bool divide_run(const pairs_plan &r, uint32_t terms, const E *run,
                                                  int32_t planes, pairs_batch<E> batch) {
  pg_seen<E> seen;
  int32_t f = member_of_team();
#pragma unroll 1
  for (;;) {
    const float2 *divisor = (const float2 *)words_at(r.divisor) + f;
    float2 by[BATCH];
#pragma unroll
    for (int i = 0; i < BATCH; i++) by[i] = divisor[i * TEAM];
#pragma unroll
    for (int i = 0; i < BATCH; i++) {
      const float a = widened(batch.of[0][i]), b = widened(batch.of[1][i]);
      const pg_divisor of = {by[i].x, by[i].y};
      seen.note(a);
      seen.note(b);
      if (f + i * TEAM < r.outputs)
        shared_store(terms + 8 * (f + i * TEAM), make_float2(quotient(a, of), quotient(b, of)));
    }
    f += BATCH * TEAM;
    if (f >= r.outputs) return !seen.odd();
    batch.read(run, f, r, planes);
  }
}

template <typename E>
static __device__ __forceinline__ void divide(const avg_job &j, const pairs_plan &r, uint32_t terms,
                                              int32_t plane, int32_t planes,
                                              const pairs_batch<E> &batch) {
  if (r.run && divide_run(r, terms, run_at<E>(j, r, plane), planes, batch)) return;
#pragma unroll 1
  for (int32_t s = 0; s < planes; s++, plane += planes_apart<E>()) {
    const uint32_t n = over((uint32_t)plane, j.by_c), c = (uint32_t)plane - n * j.by_c.by;
#pragma unroll 1
    for (int32_t f = member_of_team(); f < r.outputs; f += TEAM) {
      const pairs_output o = output_of(j, r, f);
      const float g = widened(((const E *)j.grad)[offset(j.grad_strides, n, c, o.d, o.h, o.w)]);
      shared_store(terms + 8 * f + 4 * s, true_quotient(g, {floats_at(r.divisor)[2 * f], 0}));
    }
  }
}

/* --- Sums --- */

/* A column of a slice of outputs: where its next term is, where its next sum belongs. */
struct pairs_column {
  uint32_t term, sum, term_step, sum_step;
  bool two; /* along W */
  float2 last;

  __device__ __forceinline__ float2 row_sum(uint32_t at) const {
    const float2 own = shared_pair(at);
    return two ? plus(shared_pair(at - 8), own) : own;
  }
  __device__ __forceinline__ void begin() {
    last = row_sum(term);
    shared_store(sum, last);
  }
  /* Some rows of outputs more, all read before sums are stored. */
  template <int ROWS>
  __device__ __forceinline__ void add() {
    float2 now[ROWS];
#pragma unroll
    for (int i = 0; i < ROWS; i++) now[i] = row_sum(term += term_step);
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
      shared_store(sum += sum_step, plus(last, now[i]));
      shared_store(sum += sum_step, now[i]);
      last = now[i];
    }
  }
};

static __device__ __forceinline__ void add(const avg_job &j, const pairs_plan &r,
                                           uint32_t team_sums) {
  enum { ROWS = 4 };
#pragma unroll 1
  for (int32_t f = member_of_team(); f < j.d.out * j.w.in; f += TEAM) {
    const int32_t slice = (int32_t)over(f, j.by_w), x = f - slice * j.w.in;
    const uint32_t kind = words_at(r.kind_w)[x];
    pairs_column c;
    c.term = term_of(r, team_sums) + 8 * (slice * j.h.out * j.w.out + (kind + 1) / 2);
    c.sum = team_sums + 8 * (slice * r.slice_sums + place_in_row(x));
    c.term_step = 8 * j.w.out;
    c.sum_step = 8 * r.pitch;
    c.two = kind % 2 != 0;
    c.begin();
    int32_t rows = j.h.out - 1;
#pragma unroll 1
    for (; rows >= ROWS; rows -= ROWS) c.add<ROWS>();
#pragma unroll 1
    for (; rows > 0; rows--) c.add<1>();
  }
}

/* Of the numbers of planes, one bit more in the middle tells a pair's first from its second. */
template <typename E>
static __device__ __forceinline__ int32_t first_plane(int32_t pair) {
  return pair + pair / planes_apart<E>() * planes_apart<E>();
}

template <bool SHIFTED, typename E>
static __global__ void __launch_bounds__(THREADS, RESIDENT)
    spread_pairs(const __grid_constant__ avg_job j, const __grid_constant__ pairs_plan r) {
  int32_t pair = team_of_block() * gridDim.x + blockIdx.x; /* blocks differ by a pair at most */
  const auto planes_of = [&](int32_t of) {
    const int32_t plane = first_plane<E>(of) + planes_apart<E>();
    return of >= r.pairs ? 0 : plane < (int32_t)j.cut.planes ? 2 : 1;
  };
  pairs_batch<E> batch;
  const auto read = [&] {
    batch.read(run_at<E>(j, r, first_plane<E>(pair)), member_of_team(), r,
               r.run ? planes_of(pair) : 0);
  };
  read();
  know_axes(j, r);
  __syncthreads();
  know_places(j, r);
  know_divisors(j, r);
  __syncthreads();
#pragma unroll 1
  while (pair < r.pairs) {
    const int32_t plane = first_plane<E>(pair), planes = planes_of(pair);
    E *out = (E *)j.in + (uint64_t)(uint32_t)plane * j.cells;
    const uint32_t lead = (uintptr_t)out % 16 / sizeof(E);
    divide(j, r, term_of(r, sums_of_team(r)), plane, planes, batch);
    sync_team();
    add(j, r, sums_of_team(r));
    pair += TEAMS * gridDim.x;
    if (r.run) fetch(r, run_at<E>(j, r, first_plane<E>(pair)), planes_of(pair));
    sync_team();
    write<SHIFTED, E>(r, sums_of_team(r), (char *)(out - lead), lead * sizeof(E), planes);
    read();
    if (SHIFTED) write_edges(j, r, sums_of_team(r), out - lead, lead, planes);
  }
}

/* --- On the host --- */

static bool has_pairs(const pg_axis &a) {
  if (a.out < 1) return false;
  if (a.kernel == 0) return a.out <= a.in;
  return a.dilation == 1 && a.stride <= a.kernel && a.kernel <= 2 * a.stride &&
         (a.out - 1) * a.stride - a.pad + a.kernel >= a.in;
}

/* Takes `words` of shared memory, 16 bytes aligned. */
static int32_t place(int64_t words, int64_t *end) {
  const int64_t begin = *end;
  *end += (words + 3) / 4 * 4;
  return (int32_t)begin;
}

/* Bytes of shared memory. */
static int64_t plan_pairs(const pg_pooling &p, pairs_plan *r) {
  /* so that rows which a warp reads from begin in different banks */
  const int64_t wide = place_in_row((int32_t)p.w.in), pitch = wide % 16 == 0 ? wide : wide + 1;
  const int64_t outputs = p.d.out * p.h.out * p.w.out, sums = (2 * p.h.out - 1) * pitch;
  const int64_t batches = (outputs + BATCH * TEAM - 1) / (BATCH * TEAM);
  int64_t end = 0;
  r->outputs = (int32_t)outputs;
  r->cells = (int32_t)(p.h.in * p.w.in);
  r->pitch = (int32_t)pitch;
  r->slice_sums = (int32_t)sums;
  r->extent_d = place(p.d.out, &end);
  r->extent_h = place(p.h.out, &end);
  r->extent_w = place(p.w.out, &end);
  r->kind_d = place(p.d.in + 1, &end);
  r->kind_h = place(p.h.in, &end);
  r->kind_w = place(p.w.in, &end);
  r->place = place(r->cells / 2 + 9, &end);
  r->divisor = place(2 * batches * BATCH * TEAM, &end);
  r->term = place(2 * outputs, &end);
  r->sum = place(2 * p.d.out * sums, &end);
  r->team_words = (int32_t)end - r->term;
  r->by_wide = divider_of(p.w.out);
  r->by_tall = divider_of(p.h.out);
  return 4 * (end + (TEAMS - 1) * r->team_words);
}

/* Of the planes, taken in pairs as planes_apart says; the last pairs may have one plane. */
static int64_t pairs_of(int64_t planes, int64_t apart) {
  return planes / (2 * apart) * apart + least(planes % (2 * apart), apart);
}

static bool fits(const pg_problem *problem, pg_tiling *tiling) {
  enum {
    PLANE = 4096,   /* cells at least, or teams wait for each other more than they do */
    LONG = 16,      /* rows of a kind that avg_rows copies as fast, 16 bytes at a time */
    MOST = 1 << 12, /* cells of an axis */
    SYSTEM = 1024   /* bytes of each block that are not its own */
  };
  const pg_facts &f = problem->facts;
  const pg_pooling &p = f.pool;
  const pg_cuda_limits *limits = pg_cuda_least_limits();
  const int64_t group = 16 / element_bytes(*problem), slice = p.h.in * p.w.in;
  if (!fits_avg_planes(*problem) || !f.in.all) return false;
  if (!has_pairs(p.d) || !has_pairs(p.h) || !has_pairs(p.w)) return false;
  if (p.d.in > MOST || p.h.in > MOST || p.w.in > MOST || p.w.in < group) return false;
  if (slice < 24 * group /* or lanes are idle */ || f.cells < PLANE) return false;
  const int64_t kinds = (2 * p.d.out - 1) * (2 * p.h.out - 1);
  if (p.w.in % group == 0 && p.d.in * p.h.in >= LONG * kinds) return false;
  *tiling = tile_avg_planes(f);
  pairs_plan r = {};
  if (RESIDENT * (plan_pairs(p, &r) + SYSTEM) > limits->shared_bytes + SYSTEM) return false;
  /* Teams have the same number of pairs, or nearly: others are cut, elsewhere. */
  const int64_t pairs = pairs_of(f.planes, group), teams = RESIDENT * TEAMS * limits->processors;
  return 4 * pairs >= 3 * ((pairs + teams - 1) / teams) * teams;
}

template <typename E>
static cudaError_t run_as(const pg_cuda_call *call) {
  enum { GROUP = 16 / sizeof(E) };
  const avg_job j = avg_job_of(call);
  const pg_facts &f = call->task->problem.facts;
  const int64_t slice = f.pool.h.in * f.pool.w.in, pairs = pairs_of(f.planes, GROUP);
  pairs_plan r = {};
  const int64_t bytes = plan_pairs(f.pool, &r);
  r.bytes = (int32_t)(slice * sizeof(E));
  r.pairs = (int32_t)pairs;
  r.apart = GROUP * f.cells * (int64_t)sizeof(E);
  r.run = f.out.all && f.largest_divisor <= MOST_DIVISOR && j.divisor >= 0;
  const int64_t most_blocks = RESIDENT * (int64_t)pg_cuda_least_limits()->processors;
  const int64_t blocks = least((pairs + TEAMS - 1) / TEAMS, most_blocks);
  if ((uintptr_t)j.in % 16 == 0 && slice % GROUP == 0)
    return launch(call, spread_pairs<false, E>, blocks, THREADS, bytes, j, r);
  return launch(call, spread_pairs<true, E>, blocks, THREADS, bytes, j, r);
}

static cudaError_t run(const pg_cuda_call *call) {
  return with_avg_fp32_type(call, [call](auto e) { return run_as<decltype(e)>(call); });
}

PG_CUDA_METHOD(avg_two_windows) = {"two_windows", fits, nullptr, run, nullptr};
