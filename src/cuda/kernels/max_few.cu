/* SPDX-License-Identifier: Apache-2.0 */
/* Max pools with few outputs in large planes, whatever their windows and wherever indices point.
 *
 * Almost all of gradInput is zeros, so it is cleared first, as fast as memory can be written.  Then
 * each output has a thread, which looks through all outputs of its plane: if an earlier one names
 * the same cell, that one's thread has written it; otherwise this thread adds those that name it,
 * in their order, and writes the sum.  No two threads write the same cell, and strays need nothing
 * of their own.  The search costs the square of the number of outputs, so these must be few.
 *
 * Clearing needs cells that fill a piece of memory without a gap, in any order. */
#include "cuda/kernels/max_job.cuh"

enum {
  THREADS = 256,
  CELLS_OF_OUTPUT = 64 /* at least: a cell that is written costs a whole sector of memory */
};

/* The output of a thread.  Where channels are neighbours, they are counted first. */
struct few_output {
  int64_t n, c, position; /* position: in its plane */
};

static __device__ __forceinline__ few_output output_of_thread(const max_job &j, int64_t number,
                                                              int64_t outputs, bool channels) {
  if (!channels) {
    const int64_t plane = number / outputs;
    return {plane / j.pool.c, plane % j.pool.c, number % outputs};
  }
  const int64_t row = number / j.pool.c;
  return {row / outputs, number % j.pool.c, row % outputs};
}

/* The cell's own sum, as far as it is known. */
struct few_sum {
  float sum;
  bool earlier; /* an earlier output names the cell: another thread writes it */
};

/* Adds `count` outputs from `position` on that are `apart` elements apart.  Several indices are
 * loaded before the first is used. */
template <typename E, typename I>
static __device__ __forceinline__ void add_outputs(const I *index, const E *grad, int64_t count,
                                                   int64_t index_apart, int64_t grad_apart,
                                                   int64_t before, int64_t cell, few_sum &s) {
  enum { BATCH = 8 };
  for (int64_t first = 0; first < count && !s.earlier; first += BATCH) {
    I of[BATCH];
#pragma unroll
    for (int i = 0; i < BATCH; i++)
      of[i] = first + i < count ? __ldg(index + (first + i) * index_apart) : (I)-1;
#pragma unroll
    for (int i = 0; i < BATCH; i++) {
      if ((int64_t)of[i] != cell) continue;
      if (first + i < before) s.earlier = true;
      s.sum += widened(grad[(first + i) * grad_apart]);
    }
  }
}

template <typename E, typename I>
static __device__ __forceinline__ void write_cell(const max_job &j, const few_output &o,
                                                  int64_t cell, bool even) {
  const pg_strides &si = j.index_strides, &sg = j.grad_strides;
  const I *index = (const I *)j.index + o.n * si.of[PG_N] + o.c * si.of[PG_C];
  const E *grad = (const E *)j.grad + o.n * sg.of[PG_N] + o.c * sg.of[PG_C];
  const int64_t row = even ? j.pool.d.out * j.pool.h.out * j.pool.w.out : j.pool.w.out;
  few_sum s = {0, false};
  int64_t before = o.position;
  for (int64_t od = 0; od < (even ? 1 : j.pool.d.out); od++)
    for (int64_t oh = 0; oh < (even ? 1 : j.pool.h.out) && !s.earlier; oh++) {
      add_outputs(index + od * si.of[PG_D] + oh * si.of[PG_H],
                  grad + od * sg.of[PG_D] + oh * sg.of[PG_H], row, si.of[PG_W], sg.of[PG_W], before,
                  cell, s);
      before -= row;
    }
  if (s.earlier) return;
  const int64_t in_row = cell / j.pool.w.in, d = in_row / j.pool.h.in;
  put((E *)j.in + offset(j.in_strides, o.n, o.c, d, in_row % j.pool.h.in, cell % j.pool.w.in),
      s.sum);
}

template <typename E, typename I>
static __global__ void __launch_bounds__(THREADS)
    max_few(const __grid_constant__ max_job j, int64_t outputs, bool channels, bool even) {
  __shared__ bad_indices bad;
  if (threadIdx.x == 0) clear(&bad);
  __syncthreads();
  const int64_t number = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (number < j.pool.n * j.pool.c * outputs) {
    const few_output o = output_of_thread(j, number, outputs, channels);
    const int64_t row = o.position / j.pool.w.out, ow = o.position % j.pool.w.out;
    const int64_t od = row / j.pool.h.out, oh = row % j.pool.h.out;
    const int64_t cell =
        (int64_t)((const I *)j.index)[offset(j.index_strides, o.n, o.c, od, oh, ow)];
    if (cell < 0 || cell >= j.pool.d.in * j.pool.h.in * j.pool.w.in)
      note_bad(&bad, position_of(j, o.n * j.pool.c + o.c, od, oh, ow));
    else
      write_cell<E, I>(j, o, cell, even);
  }
  __syncthreads();
  if (threadIdx.x == 0) report(j, &bad);
}

/* --- On the host --- */

/* Do the cells of all planes fill a piece of memory? */
static bool fills_memory(const pg_strides &s, const pg_pooling &p) {
  int64_t lengths[PG_AXES] = {p.n, p.c, p.d.in, p.h.in, p.w.in}, filled = 1;
  for (int turn = 0; turn < PG_AXES; turn++)
    for (int axis = 0; axis < PG_AXES; axis++)
      if (lengths[axis] > 1 && s.of[axis] == filled) {
        filled *= lengths[axis];
        lengths[axis] = 1;
        break;
      }
  return filled == p.n * p.c * p.d.in * p.h.in * p.w.in;
}

/* Are the outputs of a plane as far apart as those of a row? */
static bool is_even(const pg_strides &s, const pg_pooling &p) {
  const int64_t rows = p.w.out * s.of[PG_W], slices = p.h.out * rows;
  return (p.h.out == 1 || s.of[PG_H] == rows) && (p.d.out == 1 || s.of[PG_D] == slices);
}

/* Items are planes that `any` could compute: nothing is cut, so there is no workspace. */
static bool fits(const pg_problem *problem, pg_tiling *tiling) {
  const pg_facts &f = problem->facts;
  const int64_t most = (int64_t)1 << 40;
  if (f.outputs < 1 || f.outputs > INT32_MAX || f.cells > most || f.planes > most / f.cells)
    return false;
  if (f.outputs > f.cells / CELLS_OF_OUTPUT || f.outputs > f.cells / f.outputs) return false;
  *tiling = pg_tile_planes(&f.pool, 1);
  return fills_memory(problem->args.max_backward.in_strides, f.pool);
}

template <typename E, typename I>
static cudaError_t run_as(const pg_cuda_call *call) {
  const max_job j = max_job_of(call);
  const pg_facts &f = call->task->problem.facts;
  const int64_t threads = f.planes * f.outputs;
  const cudaError_t status = cudaMemsetAsync(j.in, 0, (size_t)f.grad_in_bytes, call->stream);
  if (status != cudaSuccess) return status;
  return launch(call, max_few<E, I>, pg_ceil_div(threads, THREADS), THREADS, 0, j, f.outputs,
                f.neighbours, is_even(j.index_strides, j.pool) && is_even(j.grad_strides, j.pool));
}

static cudaError_t run(const pg_cuda_call *call) {
  return with_max_types(call,
                        [call](auto e, auto i) { return run_as<decltype(e), decltype(i)>(call); });
}

PG_CUDA_METHOD(max_few) = {"few", fits, nullptr, run, nullptr};
