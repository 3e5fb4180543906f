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

template <typename E, typename I>
static __device__ __forceinline__ void write_cell(const max_job &j, const few_output &o,
                                                  int64_t cell) {
  const int64_t plane = o.n * j.index_strides.of[PG_N] + o.c * j.index_strides.of[PG_C];
  const int64_t grads = o.n * j.grad_strides.of[PG_N] + o.c * j.grad_strides.of[PG_C];
  int64_t position = 0;
  float sum = 0;
  for (int64_t od = 0; od < j.pool.d.out; od++)
    for (int64_t oh = 0; oh < j.pool.h.out; oh++) {
      const I *index = (const I *)j.index + plane + od * j.index_strides.of[PG_D] +
                       oh * j.index_strides.of[PG_H];
      const E *grad =
          (const E *)j.grad + grads + od * j.grad_strides.of[PG_D] + oh * j.grad_strides.of[PG_H];
      for (int64_t ow = 0; ow < j.pool.w.out; ow++, position++) {
        if ((int64_t)index[ow * j.index_strides.of[PG_W]] != cell) continue;
        if (position < o.position) return;
        sum += widened(grad[ow * j.grad_strides.of[PG_W]]);
      }
    }
  const int64_t row = cell / j.pool.w.in, d = row / j.pool.h.in;
  put((E *)j.in + offset(j.in_strides, o.n, o.c, d, row % j.pool.h.in, cell % j.pool.w.in), sum);
}

template <typename E, typename I>
static __global__ void __launch_bounds__(THREADS)
    max_few(const __grid_constant__ max_job j, int64_t outputs, bool channels) {
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
      write_cell<E, I>(j, o, cell);
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
                f.neighbours);
}

static cudaError_t run(const pg_cuda_call *call) {
  return with_max_types(call,
                        [call](auto e, auto i) { return run_as<decltype(e), decltype(i)>(call); });
}

PG_CUDA_METHOD(max_few) = {"few", fits, nullptr, run, nullptr};
