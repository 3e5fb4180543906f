/* SPDX-License-Identifier: Apache-2.0 */
/* SPREAD of the usual pools that overlap: windows of 3 by 3 cells that slide by 1 or 2, over planes
 * that follow each other.
 *
 * A lane goes down a column of gradInput, one cell wide or two as the windows' step is, and has one
 * output a row: it divides that, asks the lanes beside it for theirs, and so has the row's sum; the
 * sums of the rows before are in registers.  Columns of several planes are laid over the lanes one
 * after the other; a warp's outer lanes only serve those beside them.  Columns are cut into chunks,
 * and a warp has only one chunk's.
 *
 * Small planes are staged: rows seldom are whole sectors, so a block takes some planes at a time
 * into shared memory, makes their cells there and writes them as one run.  Meanwhile the outputs of
 * its next planes are on their way. */
#include "cuda/kernels/avg_columns.cuh"

extern __shared__ __align__(BORDER)
uint4 pg_march_room[]; /* first a word of zeros */

template <int S, int P, bool SAME, bool PAIRS, typename E>
static __global__ void __launch_bounds__(THREADS, 4)
    march(const __grid_constant__ avg_job j, const __grid_constant__ march_plan m) {
  typedef march_beside<S, P> beside;
  const uint32_t warp = blockIdx.x * (THREADS / 32) + threadIdx.x / 32;
  if (warp >= m.warps) return;
  const int32_t lane = (int32_t)(threadIdx.x % 32);
  const uint32_t group = over(warp, m.by_chunks);
  const int32_t begin = (int32_t)(warp - group * m.chunks) * m.rows;
  const uint32_t number = group * beside::OWN + lane - beside::LEFT;
  const bool there = number < m.planes * (uint32_t)m.columns;
  const bool mine = there && lane >= beside::LEFT && lane < 32 - beside::RIGHT;
  const uint32_t task = there ? number : 0, plane = over(task, m.by_columns);
  const int32_t column = (int32_t)(task - plane * m.columns);

  march_lane<S, P, SAME, PAIRS, global_rows<E>> l;
  l.settle(j, m, column, begin);
  l.first &= mine;
  l.second &= mine;
  l.outputs.there = there && (uint32_t)(column + m.own_w) < (uint32_t)j.w.out;
  l.outputs.at = (uint64_t)((const E *)j.grad + (int64_t)plane * (j.h.out * j.w.out) +
                            first_output<S, P>(j, m, column, begin));
  l.cells.at =
      (uint64_t)((E *)j.in + (int64_t)plane * (j.h.in * j.w.in) + first_cell<S>(j, column, begin));
  l.make_all();
}

/* --- Staged --- */

/* A run of elements; the first is as far from a border in shared memory as it is in global memory.
 */
template <typename E>
struct staged_run {
  E *at;
  uint32_t bytes;

  __device__ __forceinline__ uint32_t in(uint32_t room) const {
    return room + (uint32_t)(uintptr_t)at % BORDER;
  }
  /* Bytes before the first whole word of 16, and before what follows the last. */
  __device__ __forceinline__ uint32_t head() const {
    return min(bytes, -(uint32_t)(uintptr_t)at % 16);
  }
  __device__ __forceinline__ uint32_t tail() const { return head() + (bytes - head()) / 16 * 16; }

  /* Calls word(byte), threads sharing the words. */
  template <typename F>
  __device__ __forceinline__ void for_words(F word) const {
#pragma unroll 4
    for (uint32_t i = head() + 16 * threadIdx.x; i < tail(); i += 16 * blockDim.x) word(i);
  }
  /* Calls element(byte) for the others. */
  template <typename F>
  __device__ __forceinline__ void for_ends(F element) const {
    if (threadIdx.x >= 16 / sizeof(E)) return;
    const uint32_t i = threadIdx.x * (uint32_t)sizeof(E);
    if (i < head()) element(i);
    if (i < bytes - tail()) element(tail() + i);
  }
};

template <typename E>
static __device__ __forceinline__ void fetch(const staged_run<const E> &run, uint32_t room,
                                             uint32_t gate) {
  const uint32_t to = run.in(room), head = run.head();
  const char *from = (const char *)run.at;
  if (!BULK) run.for_words([&](uint32_t i) { send_16(to + i, from + i); });
  if (BULK && threadIdx.x == 0) send_in(to + head, from + head, run.tail() - head, gate);
  run.for_ends(
      [&](uint32_t i) { shared_write(to + i, __ldg((const word_of<E> *)(from + i)), true); });
}

template <typename E>
static __device__ __forceinline__ void flush(const staged_run<E> &run, uint32_t room) {
  const uint32_t from = run.in(room), head = run.head();
  char *to = (char *)run.at;
  if (!BULK)
    run.for_words([&](uint32_t i) { __stcs((uint4 *)(to + i), shared_read_16(from + i)); });
  if (BULK && threadIdx.x == 0) send_out(to + head, from + head, run.tail() - head);
  run.for_ends(
      [&](uint32_t i) { *(word_of<E> *)(to + i) = (word_of<E>)shared_read(from + i, E()); });
}

/* A lane of a block that has some planes at a time. */
template <int S, int P, bool SAME, bool PAIRS, typename E>
struct staged_lane : march_lane<S, P, SAME, PAIRS, shared_rows<E>> {
  uint32_t zeros, output, cell; /* addresses; bytes before the lane's first ones */
  int32_t plane;
  bool own_first, own_second, has_outputs;

  __device__ __forceinline__ staged_lane(const avg_job &j, const march_plan &m, uint32_t zeros)
      : zeros(zeros) {
    typedef march_beside<S, P> beside;
    const int32_t warp = (int32_t)(threadIdx.x / 32), lane = (int32_t)(threadIdx.x % 32);
    const int32_t chunk = warp / m.stage.warps, begin = chunk * m.rows;
    const int32_t number = (warp - chunk * m.stage.warps) * beside::OWN + lane - beside::LEFT;
    plane = (int32_t)over((uint32_t)max(number, 0), m.by_columns);
    const int32_t column = max(number, 0) - plane * m.columns;
    this->settle(j, m, column, begin);
    const bool mine = lane >= beside::LEFT && lane < 32 - beside::RIGHT;
    own_first = mine && this->first;
    own_second = mine && this->second;
    has_outputs = number >= 0 && (uint32_t)(column + m.own_w) < (uint32_t)j.w.out;
    output = sizeof(E) * (plane * j.h.out * j.w.out + first_output<S, P>(j, m, column, begin));
    cell = sizeof(E) * (plane * j.h.in * j.w.in + first_cell<S>(j, column, begin));
  }

  __device__ __forceinline__ void place(int32_t planes, uint32_t outputs_at, uint32_t pitch,
                                        uint32_t cells_at) {
    const bool there = plane < planes, reads = there && has_outputs;
    this->first = there && own_first;
    this->second = there && own_second;
    this->outputs.at = reads ? outputs_at + output : zeros;
    this->outputs.pitch_bytes = reads ? pitch : 0;
    this->cells.at = cells_at + cell;
  }
};

template <int S, int P, bool SAME, bool PAIRS, typename E>
static __global__ void __launch_bounds__(32 * STAGED_WARPS, STAGED_BLOCKS)
    march_staged(const __grid_constant__ avg_job j, const __grid_constant__ march_plan m) {
  const march_stage &s = m.stage;
  const uint32_t zeros = shared_address(pg_march_room), gates = zeros + GATES;
  const uint32_t rooms = zeros + BORDER, made = rooms + 2 * s.outputs_bytes;
  const int32_t outputs = j.h.out * j.w.out, cells = j.h.in * j.w.in;
  const uint32_t first = blockIdx.x * s.share;
  int32_t left = (int32_t)min(s.share, m.planes - first), planes = min(left, s.planes);
  staged_run<const E> from = {(const E *)j.grad + (int64_t)first * outputs,
                              (uint32_t)(planes * outputs * sizeof(E))};
  staged_run<E> to = {(E *)j.in + (int64_t)first * cells, 0};
  if (BULK && threadIdx.x == 0) make_gates(gates);
  fetch(from, rooms, gates);
  if (threadIdx.x == 0) shared_write(zeros, 0u, true);
  staged_lane<S, P, SAME, PAIRS, E> lane(j, m, zeros);
  __syncthreads();
  for (uint32_t turn = 0; planes > 0; turn++) {
    const uint32_t now = turn % 2, then = 1 - now, at = from.in(rooms + now * s.outputs_bytes);
    left -= planes;
    const int32_t next = min(left, s.planes);
    from.at += planes * outputs;
    from.bytes = next * outputs * sizeof(E);
    to.bytes = planes * cells * sizeof(E);
    if (!BULK) wait_for_16s();
    if (BULK) wait_at(gates + 8 * now, turn / 2 % 2);
    if (BULK && threadIdx.x == 0) wait_for_out();
    __syncthreads();
    if (next > 0) fetch(from, rooms + then * s.outputs_bytes, gates + 8 * then);
    lane.place(planes, at, j.w.out * sizeof(E), to.in(made));
    lane.make_all();
    if (BULK) show_written();
    __syncthreads();
    flush(to, made);
    to.at += planes * cells;
    planes = next;
  }
  if (BULK && threadIdx.x == 0) wait_for_out();
}

/* --- On the host --- */

static bool slides(const pg_axis &a, int64_t stride) {
  const int64_t rows = (a.in + a.stride - 1) / a.stride;
  return a.kernel == 3 && a.stride == stride && a.dilation == 1 && a.pad <= 1 && a.in >= 4 &&
         a.out > 0 && (stride == 1 ? a.out == a.in + 2 * a.pad - 2 : a.out <= rows + 1);
}

/* Divisors, and whether they are all the same; false if they are not for quotient. */
static bool know_divisors(const pg_pooling &p, const pg_avg_backward &call, march_plan *m,
                          bool *same) {
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
  *same = true;
  for (int i = 0; i < 9; i++) {
    const int64_t by = call.divisor != 0 ? call.divisor : extent[0][i / 3] * extent[1][i % 3];
    if (by < 1 || by > MOST_DIVISOR) return false;
    m->divisor[i / 3][i % 3] = divisor_of((float)by);
    *same = *same && m->divisor[i / 3][i % 3].by == m->divisor[0][0].by;
  }
  return true;
}

static int64_t whole_over(int64_t a, int64_t b) { return (a + b - 1) / b; }

static void cut_rows(march_plan *m, int64_t chunks) {
  m->rows = (int32_t)whole_over(m->all_rows, chunks);
  m->chunks = (int32_t)whole_over(m->all_rows, m->rows);
  m->by_chunks = divider_of(m->chunks);
}

/* As few chunks as keep all processors busy; false if columns are too many. */
static bool plan_columns(int64_t own, march_plan *m) {
  enum { LANES = 4096, LEAST = 4, MOST = 24 /* rows */ };
  const int64_t columns = (int64_t)m->planes * m->columns, all = m->all_rows;
  const int64_t enough = (int64_t)LANES * pg_cuda_least_limits()->processors,
                most = ((int64_t)1 << 31) - 1;
  int64_t chunks = whole_over(all, MOST);
  while (chunks * columns < enough && all / (2 * chunks) >= LEAST) chunks *= 2;
  cut_rows(m, chunks);
  const int64_t warps = whole_over(columns, own) * m->chunks;
  if (columns > most || warps > most) return false;
  m->warps = (uint32_t)warps;
  return true;
}

/* Chunks of a block whose columns are so many warps'. */
static int64_t staged_chunks(const march_plan &m, int64_t warps) {
  enum { LEAST = 12 /* rows */ };
  const int64_t chunks = least(m.all_rows / LEAST, STAGED_WARPS / warps);
  return chunks < 1 ? 1 : chunks;
}

/* Planes at a time, at most `most`: as many as fill the lanes best.  0: none. */
static int64_t planes_at_a_time(const march_plan &m, int64_t own, int64_t most) {
  enum { LEAST = 6 /* warps */ };
  int64_t best = 0, best_warps = 0;
  for (int64_t planes = 1; planes <= most; planes++) {
    const int64_t warps = whole_over(planes * m.columns, own);
    if (warps > STAGED_WARPS) break;
    const bool few = best_warps * staged_chunks(m, best_warps < 1 ? 1 : best_warps) < LEAST;
    if (!few && planes * best_warps <= best * warps) continue;
    best = planes;
    best_warps = warps;
  }
  return best;
}

/* False if planes are too large for that, or too few. */
static bool plan_stage(const pg_pooling &p, int64_t element_bytes, int64_t own, march_plan *m) {
  enum { OF_BLOCK = 1024, MARGIN = 7 * BORDER, LEAST = 4 /* planes a processor */ };
  const int64_t outputs = element_bytes * p.h.out * p.w.out;
  const int64_t cells = element_bytes * p.h.in * p.w.in;
  const int64_t all = pg_cuda_least_limits()->shared_bytes + OF_BLOCK;
  const int64_t processors = pg_cuda_least_limits()->processors;
  const int64_t room = all / STAGED_BLOCKS - OF_BLOCK - MARGIN;
  const int64_t most = least(room / (2 * outputs + cells), m->planes / (LEAST * processors));
  int64_t planes = planes_at_a_time(*m, own, most);
  if (planes == 0) return false;

  march_stage *s = &m->stage;
  const int64_t chunks = staged_chunks(*m, whole_over(planes * m->columns, own));
  const int64_t threads = 32 * chunks * whole_over(planes * m->columns, own);
  const int64_t bytes = planes * (2 * outputs + cells) + MARGIN;
  const int64_t resident = 32 * STAGED_WARPS * STAGED_BLOCKS; /* threads */
  const int64_t blocks = processors * least(all / (bytes + OF_BLOCK), resident / threads);
  s->share = (uint32_t)whole_over(m->planes, blocks);
  planes = whole_over(s->share, whole_over(s->share, planes));
  s->planes = (int32_t)planes;
  s->warps = (int32_t)whole_over(planes * m->columns, own);
  s->outputs_bytes = (uint32_t)(whole_over(planes * outputs + BORDER - 1, BORDER) * BORDER);
  s->cells_bytes = (uint32_t)(whole_over(planes * cells + BORDER - 1, BORDER) * BORDER);
  cut_rows(m, chunks);
  return true;
}

/* False if planes are too many. */
static bool plan_march(const pg_pooling &p, march_plan *m) {
  const int64_t step = p.w.stride, wide = whole_over(p.w.in, step), most = ((int64_t)1 << 31) - 1;
  if (p.n * p.c * p.d.in > most) return false;
  m->planes = (uint32_t)(p.n * p.c * p.d.in);
  m->columns = (int32_t)(step == 2 && p.w.out > wide ? p.w.out : wide);
  m->all_rows = (int32_t)whole_over(p.h.in, step);
  m->own_h = step == 1 ? (int32_t)p.h.pad - 1 : 0;
  m->own_w = step == 1 ? (int32_t)p.w.pad - 1 : 0;
  m->by_columns = divider_of(m->columns);
  return true;
}

/* What a call is launched with, known before its addresses are. */
struct columns_plan {
  march_plan march;
  bool same, staged; /* all divisors are; planes are staged */
};

static bool plan_of(const pg_problem &problem, columns_plan *c) {
  const pg_pooling &p = problem.facts.pool;
  const bool one = slides(p.h, 1) && slides(p.w, 1);
  const bool two = slides(p.h, 2) && slides(p.w, 2) && p.h.pad == p.w.pad;
  if ((!one && !two) || !know_divisors(p, problem.args.avg_backward, &c->march, &c->same) ||
      !plan_march(p, &c->march))
    return false;
  const int64_t own = one ? march_beside<1, 0>::OWN : march_beside<2, 0>::OWN;
  c->staged = plan_stage(p, element_bytes(problem), own, &c->march);
  return c->staged || plan_columns(own, &c->march);
}

static bool fits(const pg_problem *problem, pg_tiling *tiling) {
  const pg_facts &f = problem->facts;
  const pg_pooling &p = f.pool;
  const int64_t widest = 1 << 28; /* rows of less than 2^32 bytes */
  if (!fits_avg_planes(*problem) || !f.in.all || !f.out.all || p.w.in >= widest) return false;
  if (p.d.in != p.d.out || f.d_windows != 1 || p.d.pad != 0) return false;
  *tiling = tile_avg_planes(f);
  columns_plan c = {};
  return plan_of(*problem, &c);
}

template <int S, int P, bool SAME, bool PAIRS, typename E>
static cudaError_t launch_columns(const pg_cuda_call *call, const avg_job &j,
                                  const columns_plan &c) {
  const march_plan &m = c.march;
  const march_stage &s = m.stage;
  const int64_t at_once = THREADS / 32;
  if (!c.staged)
    return launch(call, march<S, P, SAME, PAIRS, E>, whole_over(m.warps, at_once), THREADS, 0, j,
                  m);
  const int64_t bytes = BORDER + 2 * (int64_t)s.outputs_bytes + s.cells_bytes;
  return launch(call, march_staged<S, P, SAME, PAIRS, E>, whole_over(m.planes, s.share),
                32 * s.warps * m.chunks, bytes, j, m);
}

template <typename E>
static cudaError_t run_as(const pg_cuda_call *call) {
  const avg_job j = avg_job_of(call);
  const pg_pooling &p = j.pool;
  columns_plan c = {};
  (void)plan_of(call->task->problem, &c);
  const bool pairs = p.w.in % 2 == 0 && (uintptr_t)j.in % (2 * sizeof(E)) == 0;
  if (p.w.stride == 1)
    return c.same ? launch_columns<1, 0, true, false, E>(call, j, c)
                  : launch_columns<1, 0, false, false, E>(call, j, c);
  if (p.w.pad == 0)
    return pairs ? launch_columns<2, 0, false, true, E>(call, j, c)
                 : launch_columns<2, 0, false, false, E>(call, j, c);
  return pairs ? launch_columns<2, 1, false, true, E>(call, j, c)
               : launch_columns<2, 1, false, false, E>(call, j, c);
}

static cudaError_t run(const pg_cuda_call *call) {
  return with_avg_fp32_type(call, [call](auto e) { return run_as<decltype(e)>(call); });
}

PG_CUDA_METHOD(avg_columns) = {"columns", fits, nullptr, run, nullptr};
