/* SPDX-License-Identifier: Apache-2.0 */
/* Averages over planes that follow each other, where a cell lies in at most four windows along H
 * and W and one along D, or two along each axis.
 *
 * A block has the same box of many planes, whose tables it computes once.  An item is that box in
 * one plane, or in several small ones.  It goes through shared memory:
 *
 *   load    the outputs that touch the box, while the item before is computed
 *   divide  each of them once: rows of quotients, each followed by a zero
 *   walk    lanes compute the cells from the quotients, in columns
 *   write   the cells, which lie there as in memory, while the next item is computed
 *
 * Loads and writes of global memory are whole runs, whatever the width of a row and its alignment,
 * and take no instructions of lanes.
 *
 * The walk is cut into units: a segment of the rows of a plane, in those neighbouring slices that
 * lie in the same windows along D (a band).  The lanes of a unit have two or four columns each.  A
 * lane goes down the rows of outputs whose windows touch the segment.  For each of them it
 *
 *   1. adds the quotients of its columns along W.  It has found its windows before, once for all
 *      items: as distances from the begin of a row, where that of a window that is not there leads
 *      to the zero
 *   2. keeps these sums in registers with those of the rows of outputs before: as many as a cell
 *      may lie in along H
 *   3. stores the rows of cells up to where the next window begins.  A kept row of outputs no
 *      longer counts behind the end of its window, so these rows fall into bands, each the sum of
 *      the kept rows from some one on.  The result of a band is computed once, and stored to all of
 *      its rows in all slices of the unit. */
#include "cuda/kernels/avg_staged.cuh"
#include "cuda/kernels/avg_staged_plan.cuh"
#include "cuda/kernels/in_register.cuh"

/* A cell lies in up to WINDOWS windows along H and W and in up to DEEP along D; 0: there is no
 * depth. */
template <int WINDOWS_, int DEEP_, typename E_>
struct staged_kind {
  static constexpr int WINDOWS = WINDOWS_, DEEP = DEEP_, BANDS = DEEP > 0 ? DEEP : 1;
  static constexpr int COLUMNS = staged_columns(WINDOWS), PAIRS = COLUMNS / 2;
  typedef E_ E;
};

/* --- Divide --- */

/* Quotients of N outputs that are the same distance apart. */
template <int N, typename E>
static __device__ __forceinline__ void divide_staged(const pg_divisor *by, bool exact,
                                                     uint32_t from, uint32_t from_step, uint32_t to,
                                                     uint32_t to_step) {
  float g[N];
  pg_seen<E> seen;
#pragma unroll
  for (int i = 0; i < N; i++) {
    const uint32_t bits = shared_load_bits(from + i * from_step, E());
    if constexpr (sizeof(E) == 4)
      g[i] = __uint_as_float(bits);
    else
      g[i] = widened(E{(uint16_t)bits});
    seen.note(g[i]);
  }
  float q[N];
#pragma unroll
  for (int i = 0; i < N; i++) q[i] = quotient(g[i], by[i]);
  if (exact || seen.odd()) {
#pragma unroll
    for (int i = 0; i < N; i++) q[i] = true_quotient(g[i], by[i]);
  }
#pragma unroll
  for (int i = 0; i < N; i++) shared_store(to + i * to_step, q[i]);
}

/* `factor`: the table of rows, from this run on. */
template <int N>
static __device__ __forceinline__ void divisors_of(const avg_staged_plan &p, uint32_t factor,
                                                   int32_t row, float extent_w, pg_divisor *by) {
#pragma unroll
  for (int i = 0; i < N; i++) {
    by[i] = p.divisor;
    if (p.one_divisor) continue;
    by[i].by = __uint_as_float(table_word(factor + 4 * (row + i * p.out_rows_at_once))) * extent_w;
    by[i].one_over = __frcp_rn(by[i].by);
  }
}

/* A column of outputs in the rows of a run that this lane has. */
template <typename E>
static __device__ __forceinline__ void divide_column(const avg_staged_plan &p, uint32_t raw,
                                                     uint32_t quotients, uint32_t factor,
                                                     int32_t row, int32_t rows, float extent_w) {
  enum { TOGETHER = 4 };
  const int32_t step = p.out_rows_at_once;
  const uint32_t from_step = step * p.out_row, to_step = 4 * step * p.pitch;
  uint32_t from = raw + row * p.out_row, to = quotients + 4 * row * p.pitch;
  pg_divisor by[TOGETHER];
#pragma unroll 1
  for (; row + (TOGETHER - 1) * step < rows; row += TOGETHER * step) {
    divisors_of<TOGETHER>(p, factor, row, extent_w, by);
    divide_staged<TOGETHER, E>(by, p.exact, from, from_step, to, to_step);
    from += TOGETHER * from_step;
    to += TOGETHER * to_step;
  }
#pragma unroll 1
  for (; row < rows; row += step) {
    divisors_of<1>(p, factor, row, extent_w, by);
    divide_staged<1, E>(by, p.exact, from, from_step, to, to_step);
    from += from_step;
    to += to_step;
  }
}

template <typename E>
static __device__ __forceinline__ void divide_runs(const avg_job &j, const avg_staged_plan &p,
                                                   uint32_t raw, uint32_t runs, int32_t rows) {
  const uint32_t quotients = shared_address(scratch_at<float>(p.quotient));
  const uint32_t factor = shared_address(scratch_at<float>(p.factor));
  const int32_t row = (int32_t)over(threadIdx.x, p.by_out_columns);
  if (row >= p.out_rows_at_once) return;
#pragma unroll 1
  for (int32_t x = (int32_t)threadIdx.x - row * j.w.out; x < j.w.out; x += blockDim.x) {
    const float extent_w = (float)extent(j.w, x, j.count_include_pad);
#pragma unroll 1
    for (uint32_t i = 0; i < runs; i++)
      divide_column<E>(p, raw + i * p.raw_pitch + x * (uint32_t)sizeof(E),
                       quotients + 4 * (i * rows * p.pitch + x), factor + 4 * i * rows, row, rows,
                       extent_w);
  }
}

/* --- Walk --- */

/* What a lane knows about its columns, which are pairs of neighbours.  If the number of columns is
 * odd, the last pair of a row has a column of the pair before, and both lanes store the same. */
template <typename K>
struct staged_lane {
  uint32_t unit;           /* the first */
  uint32_t pair[K::PAIRS]; /* bytes from the begin of a row of cells to the pair */
  uint32_t quotient[K::COLUMNS][K::WINDOWS]; /* bytes from the begin of a row of quotients */

  __device__ __forceinline__ staged_lane(const avg_job &j, const avg_staged_plan &p) {
    unit = over(threadIdx.x, p.by_lanes);
    const uint32_t number = threadIdx.x - unit * p.by_lanes.by;
#pragma unroll
    for (int i = 0; i < K::PAIRS; i++) {
      const int32_t x = min(2 * (int32_t)(number + p.start[i]), j.w.in - 2);
      pair[i] = (uint32_t)x * (uint32_t)sizeof(typename K::E);
      find_windows(j, x, quotient[2 * i]);
      find_windows(j, x + 1, quotient[2 * i + 1]);
    }
  }

  static __device__ __forceinline__ void find_windows(const avg_job &j, int32_t x, uint32_t *to) {
    const pg_span ow = touching(j.w, x, x + 1);
#pragma unroll
    for (int i = 0; i < K::WINDOWS; i++)
      to[i] = 4 * (uint32_t)(ow.begin + i < ow.end ? ow.begin + i : j.w.out);
  }
};

/* Rows and slices of cells in the scratch that a unit has still to store. */
struct staged_cells {
  uint32_t slice, slices_end; /* where the first slice begins, and behind the last */
  uint32_t row;               /* bytes from there */
};

/* Two rounded sums, as one word or two. */
static __device__ __forceinline__ uint2 rounded_pair(float, const float *sum) {
  return make_uint2(__float_as_uint(sum[0]), __float_as_uint(sum[1]));
}
template <typename E>
static __device__ __forceinline__ uint32_t rounded_pair(E e, const float *sum) {
  return packed(e, sum[0], sum[1]);
}
static __device__ __forceinline__ void store_apart(uint32_t at, uint2 pair) {
  shared_store_if(true, at, pair.x);
  shared_store_if(true, at + 4, pair.y);
}
static __device__ __forceinline__ void store_apart(uint32_t at, uint32_t pair) {
  shared_store_if(true, at, (uint16_t)pair);
  shared_store_if(true, at + 2, (uint16_t)(pair >> 16));
}

/* Stores results to all rows from cells.row to `end` of a slice. */
template <bool TOGETHER, typename K, typename W>
static __device__ __forceinline__ void store_rows(const avg_staged_plan &p,
                                                  const staged_lane<K> &lane, const W *pair,
                                                  uint32_t slice, uint32_t row, uint32_t end) {
  uint32_t at[K::PAIRS];
#pragma unroll
  for (int i = 0; i < K::PAIRS; i++) at[i] = in_register(slice + row + lane.pair[i]);
#pragma unroll 1
  do {
#pragma unroll
    for (int i = 0; i < K::PAIRS; i++) {
      if (TOGETHER)
        shared_store_if(true, at[i], pair[i]);
      else
        store_apart(at[i], pair[i]);
      at[i] += p.row;
    }
    row += p.row;
  } while (row < end);
}

/* Stores results to all rows before `end` of all slices. */
template <typename K>
static __device__ __forceinline__ void store_cells(const avg_staged_plan &p,
                                                   const staged_lane<K> &lane, const float *sum,
                                                   uint32_t end, staged_cells *cells) {
  typedef decltype(rounded_pair(typename K::E(), sum)) W;
  W pair[K::PAIRS];
#pragma unroll
  for (int i = 0; i < K::PAIRS; i++) pair[i] = rounded_pair(typename K::E(), sum + 2 * i);
  uint32_t slice = cells->slice;
#pragma unroll 1
  do { /* once if there is no depth */
    if (p.pairs)
      store_rows<true, K>(p, lane, pair, slice, cells->row, end);
    else
      store_rows<false, K>(p, lane, pair, slice, cells->row, end);
    slice += p.slice_pitch;
  } while (K::DEEP > 0 && slice < cells->slices_end);
  cells->row = end;
}

/* The sums of the rows of outputs from the first-th kept one on, along H and D. */
template <int FIRST, int D, typename K>
static __device__ __forceinline__ void add_kept(const float (*kept)[K::WINDOWS][K::COLUMNS],
                                                float *total) {
#pragma unroll
  for (int d = 0; d < D; d++)
#pragma unroll
    for (int v = 0; v < K::COLUMNS; v++) {
      float sum = kept[d][FIRST][v];
#pragma unroll
      for (int i = FIRST + 1; i < K::WINDOWS; i++) sum += kept[d][i][v];
      total[v] = d == 0 ? sum : total[v] + sum;
    }
}

/* Stores the rows before `next`, where another window begins: those before the end of the FIRST-th
 * kept window lie in this one and all later ones, and so on.  Behind the last there is a gap. */
template <int FIRST, int D, typename K>
static __device__ __forceinline__ void store_bands(const avg_staged_plan &p,
                                                   const staged_lane<K> &lane,
                                                   const float (*kept)[K::WINDOWS][K::COLUMNS],
                                                   const uint32_t *ends, uint32_t next,
                                                   staged_cells *cells) {
  float total[K::COLUMNS] = {};
  if constexpr (FIRST < K::WINDOWS) {
    const uint32_t until = min(ends[FIRST], next);
    if (cells->row < until) {
      add_kept<FIRST, D, K>(kept, total);
      store_cells<K>(p, lane, total, until, cells);
    }
    store_bands<FIRST + 1, D, K>(p, lane, kept, ends, next, cells);
  } else if (cells->row < next) {
    store_cells<K>(p, lane, total, next, cells);
  }
}

/* A unit: the rows before `end` of slices that lie in the windows of D outputs along D. `quotients`
 * is the row of the first output along H that counts, `row_end` its entry in the table. */
template <int D, typename K>
static __device__ __forceinline__ void walk(const avg_staged_plan &p, const staged_lane<K> &lane,
                                            uint32_t quotients, uint32_t slice_step,
                                            uint32_t row_end, uint32_t end, staged_cells cells) {
  constexpr int V = K::COLUMNS, WINDOWS = K::WINDOWS;
  float kept[D][WINDOWS][V] = {}; /* sums along W of the latest rows of outputs, the latest last */
  uint32_t ends[WINDOWS] = {};    /* where their windows end */
#pragma unroll 1
  while (cells.row < end) {
    const uint2 words = table_words(row_end);
#pragma unroll
    for (int i = 0; i + 1 < WINDOWS; i++) {
      ends[i] = ends[i + 1];
#pragma unroll
      for (int d = 0; d < D; d++)
#pragma unroll
        for (int v = 0; v < V; v++) kept[d][i][v] = kept[d][i + 1][v];
    }
    ends[WINDOWS - 1] = words.x;
#pragma unroll
    for (int d = 0; d < D; d++)
#pragma unroll
      for (int v = 0; v < V; v++) {
        float sum = shared_load(quotients + d * slice_step + lane.quotient[v][0]);
#pragma unroll
        for (int i = 1; i < WINDOWS; i++)
          sum += shared_load(quotients + d * slice_step + lane.quotient[v][i]);
        kept[d][WINDOWS - 1][v] = sum;
      }
    quotients += 4 * p.pitch;
    row_end += 8;
    store_bands<0, D, K>(p, lane, kept, ends, min(words.y, end), &cells);
  }
}

/* Planes are counted first, so that lanes of a warp walk in step. */
template <typename K>
static __device__ __forceinline__ void walk_units(const avg_staged_plan &p, const staged_box &b,
                                                  const staged_lane<K> &lane, uint32_t planes,
                                                  uint32_t cells_at) {
  const uint32_t begin = shared_address(scratch_at<uint32_t>(0));
  const uint32_t slice_step = 4 * length(b.oh) * p.pitch;
  const uint32_t rows = (uint32_t)length(b.h) * p.row;
  const uint32_t units = p.of_planes * p.segments * (uint32_t)(length(b.od) * K::BANDS);
  if (lane.unit >= (uint32_t)p.units_at_once) return;
#pragma unroll 1
  for (uint32_t unit = lane.unit; unit < units; unit += p.units_at_once) {
    const uint32_t rest = over(unit, p.by_of_planes), plane = unit - rest * p.of_planes;
    const uint32_t number = over(rest, p.by_segments), segment = rest - number * p.segments;
    const staged_band band = staged_band_at(begin + 4 * p.band, number);
    const uint32_t row = segment * p.segment_rows * p.row,
                   end = min(row + p.segment_rows * p.row, rows);
    if (plane >= planes || band.begin >= band.end || row >= end) continue;
    const uint32_t entry = table_word(begin + 4 * p.segment + 4 * segment);
    const uint32_t row_end = begin + 4 * p.row_end + 8 * entry;
    const uint32_t quotients = begin + 4 * p.quotient +
                               (plane * length(b.od) + band.first) * slice_step +
                               4 * entry * p.pitch;
    staged_cells cells;
    cells.slice = cells_at + plane * p.plane_pitch + band.begin * p.slice_pitch;
    cells.slices_end = cells.slice + (band.end - band.begin) * p.slice_pitch;
    cells.row = row;
    if (K::DEEP == 2 && band.count == 2)
      walk<2, K>(p, lane, quotients, slice_step, row_end, end, cells);
    else
      walk<1, K>(p, lane, quotients, slice_step, row_end, end, cells);
  }
}

/* --- The kernel --- */

template <typename K>
static __global__ void __launch_bounds__(MOST_STAGED_THREADS)
    avg_staged(const __grid_constant__ avg_job j, const __grid_constant__ avg_staged_plan p) {
  typedef typename K::E E;
  const uint32_t block = over(blockIdx.x, p.by_boxes);
  const staged_box b = staged_box_of(j, p, blockIdx.x - block * p.by_boxes.by, K::WINDOWS - 1);
  const uint32_t barrier = shared_address(scratch_at<uint32_t>(p.barrier));
  uint32_t first = block * p.of_planes;
  staged_runs<const E> from = staged_outputs_of<E>(j, p, b, first);
  if (HAS_BULK_COPY && threadIdx.x == 0) init_barrier(barrier, from.count);
  __syncthreads();
  load_runs<E>(from, barrier);
  prepare_staged_bands(j, b, K::BANDS, scratch_at<uint2>(p.band));
  prepare_row_ends(j, p, b);
  prepare_segments(j, p, b, K::WINDOWS - 1);
  prepare_quotient_rows(j, p, b);
  const staged_lane<K> lane(j, p);
  __syncthreads();
#pragma unroll 1
  for (uint32_t turn = 0; first < p.planes; turn++) {
    const uint32_t planes = min((uint32_t)p.of_planes, p.planes - first);
    if (HAS_BULK_COPY) {
      wait_for_bulk_copy_in(barrier, turn % 2);
    } else {
      wait_for_copies_of_16();
      __syncthreads();
    }
    divide_runs<E>(j, p, from.staged, from.count,
                   (p.whole_rows ? (int32_t)planes * length(b.od) : 1) * length(b.oh));
    if (HAS_BULK_COPY) wait_for_bulk_copies_out();
    __syncthreads(); /* outputs may be overwritten, and cells */
    const staged_runs<E> to = staged_cells_of<E>(j, p, b, first);
    first += p.step;
    if (first < p.planes) {
      from = staged_outputs_of<E>(j, p, b, first);
      load_runs<E>(from, barrier);
    }
    walk_units<K>(p, b, lane, planes, to.staged);
    if (HAS_BULK_COPY) publish_stores();
    __syncthreads();
    if (p.padded)
      write_padded(p, (char *)to.at, to.staged, planes);
    else
      write_runs<E>(to);
  }
  if (HAS_BULK_COPY) wait_for_bulk_copies_out();
}

/* --- On the host --- */

/* Is this a problem for avg_rows?  Where many rows of a large plane follow each other in the same
 * windows, that method was the faster one by a tenth to a third: it stores such a row only once in
 * shared memory.  With small planes, or rows that are equal only from slice to slice, it was slower
 * by a factor of two to six. */
static bool fits_rows(const pg_problem &problem) {
  const pg_facts &f = problem.facts;
  enum { LARGE_PLANE = 8192, LONG_BAND = 4 };
  const int64_t bands = f.h_windows > 1 ? 2 * f.pool.h.out : f.pool.h.out;
  pg_tiling unused;
  return f.cells >= LARGE_PLANE && f.pool.h.in >= LONG_BAND * bands &&
         pg_cuda_avg_rows.fits(&problem, &unused);
}

static bool fits(const pg_problem *problem, pg_tiling *tiling) {
  avg_staged_launch l = {};
  if (!plan_staged(*problem, &l) || fits_rows(*problem)) return false;
  *tiling = tile_avg_planes(problem->facts);
  return true;
}

template <int WINDOWS, int DEEP, typename E>
static cudaError_t run_kind(const pg_cuda_call *call, const avg_staged_launch &l) {
  return launch(call, avg_staged<staged_kind<WINDOWS, DEEP, E>>, l.blocks, (int)l.threads, l.bytes,
                avg_job_of(call), l.plan);
}

template <int DEEP, typename E>
static cudaError_t run_windows(const pg_cuda_call *call, const avg_staged_launch &l) {
  switch (l.windows) {
    case 1:
      return run_kind<1, DEEP, E>(call, l);
    case 2:
      return run_kind<2, DEEP, E>(call, l);
    case 3:
      return run_kind<3, DEEP, E>(call, l);
    default:
      return run_kind<4, DEEP, E>(call, l);
  }
}

template <typename E>
static cudaError_t run_as(const pg_cuda_call *call) {
  const pg_problem &problem = call->task->problem;
  avg_staged_launch l = {};
  if (!plan_staged(problem, &l)) return pg_cuda_avg_any.run(call);
  if (l.plan.padded && (uintptr_t)problem.args.avg_backward.grad_in % 16 != 0) {
    l.plan.padded = false;
    l.plan.plane_pitch = l.plan.plane;
  }
  const int64_t pair_bytes = 2 * (int64_t)sizeof(E);
  l.plan.pairs = l.plan.row % pair_bytes == 0 &&
                 (uintptr_t)problem.args.avg_backward.grad_in % pair_bytes == 0;
  if (l.deep == 2) return run_kind<2, 2, E>(call, l);
  return l.deep == 1 ? run_windows<1, E>(call, l) : run_windows<0, E>(call, l);
}

static cudaError_t run(const pg_cuda_call *call) {
  return with_fp32_type(call, [call](auto e) { return run_as<decltype(e)>(call); });
}

PG_CUDA_METHOD(avg_staged) = {"staged", fits, nullptr, run, nullptr};
