/* SPDX-License-Identifier: Apache-2.0 */
/* Averages with windows of 3 by 3 cells that slide by 1 or 2, the usual ones that overlap, over
 * contiguous tensors.
 *
 * A cell is the sum of up to nine quotients.  A lane walks down a column of gradInput that is as
 * wide as the windows' stride, so that it has one output in each row of outputs.  It divides that
 * output, gets the quotients beside it from the neighbouring lanes, and so has the sums along W;
 * those of the latest rows stay in registers and are added along H.  So an output is read and
 * divided about once, and nothing goes through memory but outputs and results.  How a lane walks is
 * in avg_columns.cuh.
 *
 * The columns of all slices are numbered and given to lanes in their order, so narrow slices leave
 * no lanes idle.  The outermost lanes of a warp write nothing, because they lack a neighbour.  For
 * more parallelism columns are cut into chunks, each of which reads one or two rows of outputs more
 * than it has steps.
 *
 * Rows of small slices seldom begin and end with the sectors of memory, and a warp that writes them
 * row by row would touch most sectors twice.  So small slices are staged: a block loads the outputs
 * of some slices into shared memory, computes their cells there, and writes these as one run.
 * Meanwhile the outputs of its next slices are being loaded.
 *
 * Other windows, and divisors that quotient.cuh is not for, are left to other methods. */
#include "cuda/kernels/avg_columns.cuh"

enum {
  THREADS = 256,     /* of a block that stages nothing */
  BLOCKS = 4,        /* of them on a processor, at least: this limits a thread's registers */
  LANES = 4096,      /* of a processor: columns are cut until there are so many, to hide loads */
  CHUNK_STEPS = 24,  /* of a chunk, at most */
  LEAST_STEPS = 4,   /* of a chunk: fewer would cost more for the rows that are read twice */
  STAGED_WARPS = 12, /* of a block that stages, at most */
  STAGED_BLOCKS = 3, /* of them on a processor, at least: one computes while others wait */
  STAGED_LEAST_STEPS = 12, /* of a chunk of theirs */
  STAGED_LEAST_WARPS = 6,  /* of a block: as long as it has fewer, it takes more slices */
  LEAST_TURNS = 4,         /* of a processor: fewer could not be shared out evenly */
  BARRIERS_AT = 16,        /* bytes of scratch before the barriers, for zeros */
  SYSTEM_BYTES = 1024,     /* of shared memory that CUDA takes for itself in each block */
};

/* --- Directly from and to global memory --- */

template <typename K>
static __global__ void __launch_bounds__(THREADS, BLOCKS)
    avg_columns(const __grid_constant__ avg_job j, const __grid_constant__ avg_columns_plan plan) {
  typedef typename K::element E;
  const uint32_t warp = blockIdx.x * (THREADS / 32) + threadIdx.x / 32;
  if (warp >= plan.warps) return;
  const int32_t lane = (int32_t)(threadIdx.x % 32);
  const uint32_t set = over(warp, plan.by_chunks); /* of OWN columns; a warp has one chunk of it */
  const int32_t begin = (int32_t)(warp - set * plan.chunks) * plan.chunk_steps;
  const uint32_t number = set * K::OWN + lane - K::LEFT; /* wraps before the first column */
  const bool exists = number < plan.slices * (uint32_t)plan.columns;
  const bool writes = exists && lane >= K::LEFT && lane < 32 - K::RIGHT;
  const uint32_t valid = exists ? number : 0, slice = over(valid, plan.by_columns);
  const int32_t column = (int32_t)(valid - slice * plan.columns);

  avg_columns_lane<K, global_rows<E>> l;
  l.prepare(j, plan, column, begin);
  l.writes_first &= writes;
  l.writes_second &= writes;
  l.outputs.present = exists && (uint32_t)(column + plan.own_w) < (uint32_t)j.w.out;
  l.outputs.at = (uint64_t)((const E *)j.grad + (int64_t)slice * (j.h.out * j.w.out) +
                            lane_output_offset<K>(j, plan, column, begin));
  l.cells.at = (uint64_t)((E *)j.in + (int64_t)slice * (j.h.in * j.w.in) +
                          lane_cell_offset<K>(j, column, begin));
  l.compute();
}

/* --- Staged --- */

extern __shared__ __align__(RUN_ALIGNMENT)
uint4 avg_columns_memory[];

/* A block's scratch, by its addresses: a word of zeros and two barriers, two buffers for outputs,
 * of which one is loaded while the other is used, and one for cells. */
struct avg_columns_scratch {
  const avg_columns_stage &stage;
  uint32_t zeros, barriers, outputs, cells;

  __device__ __forceinline__ explicit avg_columns_scratch(const avg_columns_stage &stage)
      : stage(stage) {
    zeros = shared_address(avg_columns_memory);
    barriers = zeros + BARRIERS_AT;
    outputs = zeros + RUN_ALIGNMENT;
    cells = outputs + 2 * stage.outputs_bytes;
  }
  __device__ __forceinline__ uint32_t buffer(uint32_t number) const {
    return outputs + number * stage.outputs_bytes;
  }
  __device__ __forceinline__ uint32_t barrier(uint32_t number) const {
    return barriers + 8 * number;
  }
};

/* Waits until the outputs of this turn have been loaded, and the cells of the last turn have been
 * copied out.  Then the block has to synchronise. */
static __device__ __forceinline__ void wait_for_run(const avg_columns_scratch &s, uint32_t turn) {
  if (!HAS_BULK_COPY) wait_for_copies_of_16();
  if (HAS_BULK_COPY) wait_for_bulk_copy_in(s.barrier(turn % 2), turn / 2 % 2);
  if (HAS_BULK_COPY && threadIdx.x == 0) wait_for_bulk_copies_out();
}

/* A lane of a block that stages: its chunk and column are the same at every turn, and its slice is
 * the same one of those that are staged together. */
template <typename K>
struct staged_lane : avg_columns_lane<K, shared_rows<typename K::element>> {
  uint32_t zeros, output, cell; /* the address of zeros; bytes before its first output and cell */
  int32_t slice;
  bool owns_first, owns_second, has_outputs;

  __device__ __forceinline__ staged_lane(const avg_job &j, const avg_columns_plan &plan,
                                         uint32_t zeros)
      : zeros(zeros) {
    constexpr uint32_t BYTES = sizeof(typename K::element);
    const int32_t warp = (int32_t)(threadIdx.x / 32), lane = (int32_t)(threadIdx.x % 32);
    const int32_t chunk = warp / plan.stage.warps, begin = chunk * plan.chunk_steps;
    const int32_t number = (warp - chunk * plan.stage.warps) * K::OWN + lane - K::LEFT;
    slice = (int32_t)over((uint32_t)max(number, 0), plan.by_columns);
    const int32_t column = max(number, 0) - slice * plan.columns;
    this->prepare(j, plan, column, begin);
    const bool writes = lane >= K::LEFT && lane < 32 - K::RIGHT;
    owns_first = writes && this->writes_first;
    owns_second = writes && this->writes_second;
    has_outputs = number >= 0 && (uint32_t)(column + plan.own_w) < (uint32_t)j.w.out;
    output = BYTES * (slice * j.h.out * j.w.out + lane_output_offset<K>(j, plan, column, begin));
    cell = BYTES * (slice * j.h.in * j.w.in + lane_cell_offset<K>(j, column, begin));
  }

  /* Moves it to so many slices, whose outputs and cells begin at these addresses. */
  __device__ __forceinline__ void move_to(int32_t slices, uint32_t outputs_at,
                                          uint32_t outputs_stride, uint32_t cells_at) {
    const bool exists = slice < slices, reads = exists && has_outputs;
    this->writes_first = exists && owns_first;
    this->writes_second = exists && owns_second;
    this->outputs.at = reads ? outputs_at + output : zeros;
    this->outputs.stride_bytes = reads ? outputs_stride : 0;
    this->cells.at = cells_at + cell;
  }
};

template <typename K>
static __global__ void __launch_bounds__(32 * STAGED_WARPS, STAGED_BLOCKS)
    avg_columns_staged(const __grid_constant__ avg_job j,
                       const __grid_constant__ avg_columns_plan plan) {
  typedef typename K::element E;
  const avg_columns_stage &s = plan.stage;
  const avg_columns_scratch scratch(s);
  const int32_t outputs = j.h.out * j.w.out, cells = j.h.in * j.w.in;
  const uint32_t first = blockIdx.x * s.share;
  int32_t left = (int32_t)min(s.share, plan.slices - first), slices = min(left, s.slices);
  staged_run<const E> from = {(const E *)j.grad + (int64_t)first * outputs,
                              (uint32_t)(slices * outputs * sizeof(E))};
  staged_run<E> to = {(E *)j.in + (int64_t)first * cells, 0};
  if (HAS_BULK_COPY && threadIdx.x == 0) init_two_barriers(scratch.barriers);
  load_run(from, scratch.buffer(0), scratch.barrier(0));
  if (threadIdx.x == 0) shared_store_if(true, scratch.zeros, 0u);
  staged_lane<K> lane(j, plan, scratch.zeros);
  __syncthreads();
  for (uint32_t turn = 0; slices > 0; turn++) {
    const uint32_t now = turn % 2, then = 1 - now, outputs_at = from.place_in(scratch.buffer(now));
    left -= slices;
    const int32_t next = min(left, s.slices);
    from.at += slices * outputs;
    from.bytes = next * outputs * sizeof(E);
    to.bytes = slices * cells * sizeof(E);
    wait_for_run(scratch, turn);
    __syncthreads();
    if (next > 0) load_run(from, scratch.buffer(then), scratch.barrier(then));
    lane.move_to(slices, outputs_at, j.w.out * sizeof(E), to.place_in(scratch.cells));
    lane.compute();
    if (HAS_BULK_COPY) publish_stores();
    __syncthreads();
    write_run(to, scratch.cells);
    to.at += slices * cells;
    slices = next;
  }
  if (HAS_BULK_COPY && threadIdx.x == 0) wait_for_bulk_copies_out();
}

/* --- On the host --- */

/* Windows of three cells that slide by `stride`.  With stride 2 there may be one output more than
 * columns of cells. */
static bool has_windows_of_three(const pg_axis &a, int64_t stride) {
  return a.kernel == 3 && a.stride == stride && a.dilation == 1 && a.pad <= 1 && a.in >= 4 &&
         a.out > 0 &&
         (stride == 1 ? a.out == a.in + 2 * a.pad - 2 : a.out <= pg_ceil_div(a.in, stride) + 1);
}

/* False if a window other than the first and the last of an axis counts fewer cells than it has, or
 * if a divisor is not for quotient(). */
static bool prepare_nine_divisors(const pg_pooling &p, const pg_avg_backward &call,
                                  avg_columns_plan *plan, bool *one_divisor) {
  int64_t extent[2][3];
  for (int axis = 0; axis < 2; axis++) {
    const pg_axis &a = axis == 0 ? p.w : p.h;
    const int64_t at[] = {0, 1, a.out - 2, a.out - 1}, whole = a.kernel;
    for (int i = 1; i < 3; i++)
      if (a.out > 2 && pg_window_extent(&a, at[i], call.count_include_pad) != whole) return false;
    extent[axis][0] = pg_window_extent(&a, at[0], call.count_include_pad);
    extent[axis][1] = whole;
    extent[axis][2] = pg_window_extent(&a, at[3], call.count_include_pad);
  }
  *one_divisor = true;
  for (int i = 0; i < 9; i++) {
    const int64_t by = call.divisor != 0 ? call.divisor : extent[0][i / 3] * extent[1][i % 3];
    if (by < 1 || by > MOST_DIVISOR) return false;
    plan->divisor[i / 3][i % 3] = divisor_of((float)by);
    *one_divisor = *one_divisor && plan->divisor[i / 3][i % 3].by == plan->divisor[0][0].by;
  }
  return true;
}

/* False if there are too many slices. */
static bool plan_slices(const pg_pooling &p, avg_columns_plan *plan) {
  const int64_t stride = p.w.stride, wide = pg_ceil_div(p.w.in, stride);
  if (p.n * p.c * p.d.in > INT32_MAX) return false;
  plan->slices = (uint32_t)(p.n * p.c * p.d.in);
  plan->columns = (int32_t)(stride == 2 && p.w.out > wide ? p.w.out : wide);
  plan->steps = (int32_t)pg_ceil_div(p.h.in, stride);
  plan->own_h = stride == 1 ? (int32_t)p.h.pad - 1 : 0;
  plan->own_w = stride == 1 ? (int32_t)p.w.pad - 1 : 0;
  plan->by_columns = divider_of(plan->columns);
  return true;
}

static void set_chunks(avg_columns_plan *plan, int64_t chunks) {
  plan->chunk_steps = (int32_t)pg_ceil_div(plan->steps, chunks);
  plan->chunks = (int32_t)pg_ceil_div(plan->steps, plan->chunk_steps);
  plan->by_chunks = divider_of(plan->chunks);
}

/* Without staging: as few chunks as keep all processors busy.  False if there are too many columns.
 */
static bool plan_warps(int64_t own, avg_columns_plan *plan) {
  const int64_t columns = (int64_t)plan->slices * plan->columns;
  const int64_t enough = (int64_t)LANES * pg_cuda_least_limits()->processors;
  int64_t chunks = pg_ceil_div(plan->steps, CHUNK_STEPS);
  while (chunks * columns < enough && plan->steps / (2 * chunks) >= LEAST_STEPS) chunks *= 2;
  set_chunks(plan, chunks);
  const int64_t warps = pg_ceil_div(columns, own) * plan->chunks;
  if (columns > INT32_MAX || warps > INT32_MAX) return false;
  plan->warps = (uint32_t)warps;
  return true;
}

/* Chunks of columns in a block that has so many warps for each chunk. */
static int64_t staged_chunks(const avg_columns_plan &plan, int64_t warps) {
  const int64_t chunks = least(plan.steps / STAGED_LEAST_STEPS, STAGED_WARPS / warps);
  return chunks < 1 ? 1 : chunks;
}

/* How many slices, `most` at most, leave the fewest lanes of a block without a column.  0: not even
 * one slice may be staged. */
static int64_t slices_at_a_time(const avg_columns_plan &plan, int64_t own, int64_t most) {
  int64_t best = 0, best_warps = 0;
  for (int64_t slices = 1; slices <= most; slices++) {
    const int64_t warps = pg_ceil_div(slices * plan.columns, own);
    if (warps > STAGED_WARPS) break;
    const bool few =
        best_warps * staged_chunks(plan, best_warps < 1 ? 1 : best_warps) < STAGED_LEAST_WARPS;
    if (!few && slices * best_warps <= best * warps) continue;
    best = slices;
    best_warps = warps;
  }
  return best;
}

/* False if slices are too large to be staged, or too few. */
static bool plan_stage(const pg_pooling &p, int64_t element_bytes, int64_t own,
                       avg_columns_plan *plan) {
  enum {
    MARGIN = 7 * RUN_ALIGNMENT /* zeros, barriers, and what three buffers lose by alignment */
  };
  const int64_t outputs = element_bytes * p.h.out * p.w.out;
  const int64_t cells = element_bytes * p.h.in * p.w.in;
  const int64_t all = pg_cuda_least_limits()->shared_bytes + SYSTEM_BYTES;
  const int64_t processors = pg_cuda_least_limits()->processors;
  const int64_t most_bytes = all / STAGED_BLOCKS - SYSTEM_BYTES - MARGIN;
  const int64_t most =
      least(most_bytes / (2 * outputs + cells), plan->slices / (LEAST_TURNS * processors));
  int64_t slices = slices_at_a_time(*plan, own, most);
  if (slices == 0) return false;

  avg_columns_stage *s = &plan->stage;
  const int64_t warps = pg_ceil_div(slices * plan->columns, own),
                chunks = staged_chunks(*plan, warps);
  const int64_t bytes = slices * (2 * outputs + cells) + MARGIN;
  const int64_t resident = STAGED_WARPS * STAGED_BLOCKS; /* warps of a processor */
  const int64_t blocks =
      processors * least(all / (bytes + SYSTEM_BYTES), resident / (chunks * warps));
  s->share = (uint32_t)pg_ceil_div(plan->slices, blocks);
  slices = pg_ceil_div(s->share, pg_ceil_div(s->share, slices)); /* about the same at every turn */
  s->slices = (int32_t)slices;
  s->warps = (int32_t)pg_ceil_div(slices * plan->columns, own);
  s->outputs_bytes =
      (uint32_t)(pg_ceil_div(slices * outputs + RUN_ALIGNMENT - 1, RUN_ALIGNMENT) * RUN_ALIGNMENT);
  s->cells_bytes =
      (uint32_t)(pg_ceil_div(slices * cells + RUN_ALIGNMENT - 1, RUN_ALIGNMENT) * RUN_ALIGNMENT);
  set_chunks(plan, chunks);
  return true;
}

/* What a problem is launched with; addresses do not matter. */
struct avg_columns_launch {
  avg_columns_plan plan;
  bool one_divisor, staged;
};

static bool plan_launch(const pg_problem &problem, avg_columns_launch *c) {
  const pg_pooling &p = problem.facts.pool;
  const bool one = has_windows_of_three(p.h, 1) && has_windows_of_three(p.w, 1);
  const bool two =
      has_windows_of_three(p.h, 2) && has_windows_of_three(p.w, 2) && p.h.pad == p.w.pad;
  if (!one && !two) return false;
  if (!prepare_nine_divisors(p, problem.args.avg_backward, &c->plan, &c->one_divisor)) return false;
  if (!plan_slices(p, &c->plan)) return false;
  const int64_t own = columns_of_warp(one ? 1 : 2);
  c->staged = plan_stage(p, element_bytes(problem), own, &c->plan);
  return c->staged || plan_warps(own, &c->plan);
}

static bool fits(const pg_problem *problem, pg_tiling *tiling) {
  const pg_facts &f = problem->facts;
  const pg_pooling &p = f.pool;
  const int64_t widest = 1 << 28; /* rows of less than 2^32 bytes */
  if (!fits_avg_planes(*problem) || !f.in.all || !f.out.all || p.w.in >= widest) return false;
  if (p.d.in != p.d.out || f.d_windows != 1 || p.d.pad != 0) return false;
  avg_columns_launch c = {};
  if (!plan_launch(*problem, &c)) return false;
  *tiling = tile_avg_planes(f);
  return true;
}

template <int STRIDE, int PAD, bool ONE_DIVISOR, bool PAIRS, typename E>
static cudaError_t launch_columns(const pg_cuda_call *call, const avg_job &j,
                                  const avg_columns_launch &c) {
  typedef avg_columns_kind<STRIDE, PAD, ONE_DIVISOR, PAIRS, E> kind;
  const avg_columns_plan &plan = c.plan;
  const avg_columns_stage &s = plan.stage;
  if (!c.staged)
    return launch(call, avg_columns<kind>, pg_ceil_div(plan.warps, THREADS / 32), THREADS, 0, j,
                  plan);
  const int64_t bytes = RUN_ALIGNMENT + 2 * (int64_t)s.outputs_bytes + s.cells_bytes;
  return launch(call, avg_columns_staged<kind>, pg_ceil_div(plan.slices, s.share),
                32 * s.warps * plan.chunks, bytes, j, plan);
}

/* Where all cells of gradInput come in pairs that are aligned, a lane writes both cells of its
 * column at once. */
template <typename E>
static cudaError_t run_as(const pg_cuda_call *call) {
  const avg_job j = avg_job_of(call);
  const pg_pooling &p = j.pool;
  avg_columns_launch c = {};
  (void)plan_launch(call->task->problem, &c);
  const bool pairs = p.w.in % 2 == 0 && (uintptr_t)j.in % (2 * sizeof(E)) == 0;
  if (p.w.stride == 1)
    return c.one_divisor ? launch_columns<1, 0, true, false, E>(call, j, c)
                         : launch_columns<1, 0, false, false, E>(call, j, c);
  if (p.w.pad == 0)
    return pairs ? launch_columns<2, 0, false, true, E>(call, j, c)
                 : launch_columns<2, 0, false, false, E>(call, j, c);
  return pairs ? launch_columns<2, 1, false, true, E>(call, j, c)
               : launch_columns<2, 1, false, false, E>(call, j, c);
}

static cudaError_t run(const pg_cuda_call *call) {
  return with_fp32_type(call, [call](auto e) { return run_as<decltype(e)>(call); });
}

PG_CUDA_METHOD(avg_columns) = {"columns", fits, nullptr, run, nullptr};
