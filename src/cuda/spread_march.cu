/* SPDX-License-Identifier: Apache-2.0 */
/* SPREAD of the usual pools that overlap: windows of 3 by 3 cells that slide by 1 or 2, over planes
 * that follow each other.
 *
 * A lane goes down a column of gradInput, one cell wide or two as the windows' step is, and has one
 * output a row: it divides that, asks the lanes beside it for theirs, and so has the row's sum; the
 * sums of the rows before are in registers.  Columns of all planes are laid over the lanes one
 * after the other; a warp's outer lanes only serve those beside them. */
#include <type_traits>

#include "cuda/quotient.cuh"
#include "cuda/spread.cuh"

enum { THREADS = 256 };
static constexpr unsigned ALL = 0xffffffff; /* lanes */

/* Columns' rows, a row's height being the step, are cut into `chunks` of `rows`; the last chunk may
 * make some of the one before it again. */
struct march_plan {
  uint32_t tasks;
  int32_t columns, all_rows, chunks, rows;
  int32_t own_h, own_w;     /* a row's and a column's own output less its number */
  pg_divisor divisor[3][3]; /* of the first output, those between, the last: along W, along H */
  pg_divider by_columns, by_chunks;
};

/* Where an output is among those of its axis: first, between or last. */
static __device__ __forceinline__ int32_t place_of(int32_t o, int32_t out) {
  return o == 0 ? 0 : o == out - 1 ? 2 : 1;
}

/* base + i * pitch, one instruction where i is a lane's own. */
template <typename T>
static __device__ __forceinline__ T *row_at(T *base, uint32_t i, uint32_t pitch_bytes) {
#ifdef __CUDA_ARCH__
  uint64_t at;
  asm("mad.wide.u32 %0, %1, %2, %3;" : "=l"(at) : "r"(i), "r"(pitch_bytes), "l"(base));
  return (T *)at;
#else
  return (T *)((uintptr_t)base + (uint64_t)i * pitch_bytes);
#endif
}

/* A lane's column of outputs, by their rows. */
template <typename E>
struct march_column {
  typedef typename std::conditional<sizeof(E) == 4, uint32_t, uint16_t>::type word;
  const E *at; /* row 0 */
  uint32_t pitch_bytes;
  int32_t end, last; /* of the rows to be read, of the axis */
  pg_divisor usual, at_last;

  /* Row i + MORE; halves in words, or they would be packed. */
  template <int MORE>
  __device__ __forceinline__ uint32_t read(int32_t i) const {
    uint32_t bits = 0;
    const E *from = (const E *)((const char *)at + (int64_t)MORE * pitch_bytes);
    if (i < end - MORE) bits = __ldg((const word *)row_at(from, i, pitch_bytes));
    return bits;
  }
  static __device__ __forceinline__ float value_of(uint32_t bits) {
    if constexpr (sizeof(E) == 4)
      return __uint_as_float(bits);
    else
      return widened(E{(uint16_t)bits});
  }
};

/* --- Sums along W --- */

/* Are the lanes beside a lane its neighbours?  LEFT, RIGHT: a warp's outer ones that only serve. */
template <int S, int P>
struct march_beside {
  static constexpr int LEFT = S == 1 || P == 0, RIGHT = S == 1 || P == 1;
  bool left, right;

  __device__ __forceinline__ void sum(float own, float *row) const {
    row[0] = row[S - 1] = own;
    if (LEFT) {
      const float other = __shfl_up_sync(ALL, own, 1);
      if (left) row[0] = other + own;
    }
    if (RIGHT) {
      const float other = __shfl_down_sync(ALL, own, 1);
      if (right) row[S - 1] += other;
    }
  }
};

/* --- Writing --- */

/* What is written is not read here: the outputs are to stay in the cache. */
static __device__ __forceinline__ void put_one(float *to, float sum) { __stcs(to, sum); }
template <typename E>
static __device__ __forceinline__ void put_one(E *to, float sum) {
  E e;
  put(&e, sum);
  __stcs((uint16_t *)to, e.bits);
}
static __device__ __forceinline__ void put_pair(float *to, const float *sum) {
  __stcs((float2 *)to, make_float2(sum[0], sum[1]));
}
template <typename E>
static __device__ __forceinline__ void put_pair(E *to, const float *sum) {
  __stcs((uint32_t *)to, packed(E(), sum[0], sum[1]));
}

/* A column's cells, by the rows of outputs, and which are its to write. */
template <int S, bool PAIRS, typename E>
struct march_cells {
  E *at; /* row 0 */
  uint32_t pitch_bytes;
  int32_t lower_end; /* rows of outputs with a second row of cells */
  bool first, second;

  __device__ __forceinline__ void write(bool lower, int32_t i, const float *sum) const {
    E *base = lower ? (E *)((char *)at + pitch_bytes) : at;
    E *to = row_at(base, i, S * pitch_bytes);
    const bool row = !lower || i < lower_end;
    if (PAIRS && first && row) put_pair(to, sum);
    if (!PAIRS && first && row) put_one(to, sum[0]);
    if (!PAIRS && S == 2 && second && row) put_one(to + 1, sum[S - 1]);
  }
};

/* --- Down a column --- */

template <int S, int P, bool SAME, bool PAIRS, typename E>
struct march_lane {
  march_column<E> c;
  march_cells<S, PAIRS, E> cells;
  march_beside<S, P> beside;
  int32_t begin;       /* the first row */
  pg_divisor early[2]; /* of the two before it */
  bool has_early[2];

  /* Step 1: a cell's three rows end with `next`.  Step 2: one row of cells is `now` or `next`
   * alone, the other's are in both. */
  __device__ __forceinline__ void make(int32_t i, const float *before, const float *now,
                                       const float *next) const {
    float both[S];
#pragma unroll
    for (int x = 0; x < S; x++) both[x] = (S == 1 ? before[x] + now[x] : now[x]) + next[x];
    cells.write(false, i, S == 2 && P == 1 ? now : both);
    if (S == 2) cells.write(true, i, P == 1 ? both : next);
  }

  /* True if a gradient was odd, and all is to be made again, EXACT. */
  template <bool EXACT>
  __device__ __forceinline__ bool go(int32_t rows) const {
    pg_seen<E> seen;
    const auto term = [&](uint32_t bits, const pg_divisor &by) {
      const float g = c.value_of(bits);
      if (EXACT) return true_quotient(g, by);
      seen.note(g);
      return quotient(g, by);
    };
    uint32_t bits[2] = {}, ahead[2];
    if (S == 1 && has_early[0]) bits[0] = c.template read<-2>(begin);
    if (has_early[1]) bits[1] = c.template read<-1>(begin);
    ahead[0] = c.template read<0>(begin);
    ahead[1] = c.template read<1>(begin);
    float before[S] = {}, now[S], next[S];
    if (S == 1) beside.sum(term(bits[0], early[0]), before);
    beside.sum(term(bits[1], early[1]), now);
    int32_t i = begin;
#pragma unroll 2
    for (int32_t more = rows; more > 0; more--, i++) {
      const uint32_t bits_now = ahead[0];
      ahead[0] = ahead[1];
      ahead[1] = c.template read<2>(i);
      pg_divisor by = c.usual;
      if (!SAME && i == c.last) by = c.at_last;
      beside.sum(term(bits_now, by), next);
      make(i, before, now, next);
#pragma unroll
      for (int x = 0; x < S; x++) {
        before[x] = now[x];
        now[x] = next[x];
      }
    }
    return !EXACT && seen.odd();
  }
};

/* P: the padding, where windows slide by 2. */
template <int S, int P, bool SAME, bool PAIRS, typename E>
static __global__ void __launch_bounds__(THREADS)
    march(const __grid_constant__ spread_job j, const __grid_constant__ march_plan m) {
  typedef march_beside<S, P> beside;
  constexpr int LEFT = beside::LEFT, RIGHT = beside::RIGHT, OWN = 32 - LEFT - RIGHT;
  const int32_t lane = (int32_t)(threadIdx.x % 32);
  const uint32_t first = (blockIdx.x * (THREADS / 32) + threadIdx.x / 32) * OWN;
  if (first >= m.tasks) return;
  const uint32_t number = first + lane - LEFT;
  const bool there = number < m.tasks, mine = there && lane >= LEFT && lane < 32 - RIGHT;
  const uint32_t task = there ? number : 0, upper = over(task, m.by_columns);
  const uint32_t plane = over(upper, m.by_chunks);
  const int32_t column = (int32_t)(task - upper * m.columns);
  const int32_t begin = min((int32_t)(upper - plane * m.chunks) * m.rows, m.all_rows - m.rows);

  /* row i of cells ends with row i + m.own_h + NEXT of outputs, which is row i of the column */
  constexpr int NEXT = S == 2 && P == 0 ? 0 : 1;
  march_lane<S, P, SAME, PAIRS, E> l;
  const int32_t ow = column + m.own_w, shift = m.own_h + NEXT;
  const bool outputs = there && (uint32_t)ow < (uint32_t)j.w.out;
  const pg_divisor *divisor = m.divisor[place_of(ow, j.w.out)];
  l.begin = begin;
  l.c.at = (const E *)j.grad + (int64_t)plane * (j.h.out * j.w.out) + (shift * j.w.out + ow);
  l.c.pitch_bytes = j.w.out * sizeof(E);
  l.c.end = outputs ? min(begin + m.rows, j.h.out - shift) : -1;
  l.c.last = j.h.out - 1 - shift;
  l.c.usual = divisor[1];
  l.c.at_last = divisor[2];
#pragma unroll
  for (int k = S - 1; k < 2; k++) {
    const int32_t oh = begin + shift - 2 + k;
    l.has_early[k] = oh >= 0;
    l.early[k] = divisor[place_of(oh, j.h.out)];
  }
  l.cells.at = (E *)j.in + (int64_t)plane * (j.h.in * j.w.in) + S * column;
  l.cells.pitch_bytes = j.w.in * sizeof(E);
  l.cells.first = mine && S * column < j.w.in;
  l.cells.second = mine && S * column + 1 < j.w.in;
  l.cells.lower_end = j.h.in / 2;
  l.beside = {column > 0, column < m.columns - 1};
  if (__any_sync(ALL, l.template go<false>(m.rows))) l.template go<true>(m.rows);
}

/* --- On the host --- */

static bool slides(const pg_axis &a, int64_t stride) {
  const int64_t rows = (a.in + a.stride - 1) / a.stride;
  return a.kernel == 3 && a.stride == stride && a.dilation == 1 && a.pad <= 1 && a.in >= 4 &&
         a.out > 0 && (stride == 1 ? a.out == a.in + 2 * a.pad - 2 : a.out <= rows + 1);
}

/* Divisors, and whether they are all the same; false if they are not for quotient. */
static bool know_divisors(const spread_job &j, march_plan *m, bool *same) {
  int64_t extent[2][3];
  for (int axis = 0; axis < 2; axis++) {
    const pg_axis &a = axis == 0 ? j.pool.w : j.pool.h;
    const int64_t at[] = {0, 1, a.out - 2, a.out - 1}, whole = a.kernel;
    for (int i = 1; i < 3; i++)
      if (a.out > 2 && pg_window_extent(&a, at[i], j.count_include_pad) != whole) return false;
    extent[axis][0] = pg_window_extent(&a, at[0], j.count_include_pad);
    extent[axis][1] = whole;
    extent[axis][2] = pg_window_extent(&a, at[3], j.count_include_pad);
  }
  *same = true;
  for (int i = 0; i < 9; i++) {
    const int64_t by = j.divisor != 0 ? j.divisor : extent[0][i / 3] * extent[1][i % 3];
    if (by < 1 || by > MOST_DIVISOR) return false;
    m->divisor[i / 3][i % 3] = divisor_of((float)by);
    *same = *same && m->divisor[i / 3][i % 3].by == m->divisor[0][0].by;
  }
  return true;
}

/* As few chunks as keep all processors busy. */
static void cut_columns(const pg_cuda_call *call, const spread_job &j, march_plan *m) {
  enum { LANES = 4096, LEAST = 4, MOST = 24 /* rows */ };
  const int64_t columns = j.pool.n * j.pool.c * j.pool.d.in * m->columns;
  const int64_t all = m->all_rows, enough = (int64_t)LANES * call->limits.processors;
  int64_t chunks = (all + MOST - 1) / MOST;
  while (chunks * columns < enough && all / (2 * chunks) >= LEAST) chunks *= 2;
  m->rows = (int32_t)((all + chunks - 1) / chunks);
  m->chunks = (int32_t)((all + m->rows - 1) / m->rows);
}

/* False if tasks are too many. */
static bool plan_march(const pg_cuda_call *call, const spread_job &j, march_plan *m) {
  const pg_pooling &p = j.pool;
  const int64_t step = p.w.stride, wide = (p.w.in + step - 1) / step;
  m->columns = (int32_t)(step == 2 && p.w.out > wide ? p.w.out : wide);
  m->all_rows = (int32_t)((p.h.in + step - 1) / step);
  m->own_h = step == 1 ? (int32_t)p.h.pad - 1 : 0;
  m->own_w = step == 1 ? (int32_t)p.w.pad - 1 : 0;
  cut_columns(call, j, m);
  m->by_columns = divider_of(m->columns);
  m->by_chunks = divider_of(m->chunks);
  const int64_t lines = (int64_t)m->columns * m->chunks, most = ((int64_t)1 << 31) - 1;
  if (p.n * p.c * p.d.in > most / lines) return false;
  m->tasks = (uint32_t)(p.n * p.c * p.d.in * lines);
  return true;
}

template <int S, int P, bool SAME, bool PAIRS, typename E>
static cudaError_t launch_march(const pg_cuda_call *call, const spread_job &j,
                                const march_plan &m) {
  typedef march_beside<S, P> beside_t;
  const int64_t block = THREADS / 32 * (32 - beside_t::LEFT - beside_t::RIGHT);
  return launch(call, march<S, P, SAME, PAIRS, E>, (m.tasks + block - 1) / block, THREADS, 0, j, m);
}

template <typename E>
static bool try_type(const pg_cuda_call *call, cudaError_t *status) {
  const spread_job j = spread_job_of(call, sizeof(E));
  const pg_pooling &p = j.pool;
  const int64_t widest = 1 << 28; /* rows of less than 2^32 bytes */
  if (!j.narrow || !j.flat_in || p.w.in >= widest) return false;
  if (!is_flat(j.grad_at, p.d.out, p.h.out, p.w.out, p.c, p.n)) return false;
  if (p.d.in != p.d.out || most_windows(p.d) != 1 || p.d.pad != 0) return false;
  const bool one = slides(p.h, 1) && slides(p.w, 1);
  const bool two = slides(p.h, 2) && slides(p.w, 2) && p.h.pad == p.w.pad;
  march_plan m = {};
  bool same = false;
  if ((!one && !two) || !know_divisors(j, &m, &same) || !plan_march(call, j, &m)) return false;
  const bool pairs = p.w.in % 2 == 0 && (uintptr_t)j.in % (2 * sizeof(E)) == 0;
  if (one)
    *status = same ? launch_march<1, 0, true, false, E>(call, j, m)
                   : launch_march<1, 0, false, false, E>(call, j, m);
  else if (p.w.pad == 0)
    *status = pairs ? launch_march<2, 0, false, true, E>(call, j, m)
                    : launch_march<2, 0, false, false, E>(call, j, m);
  else
    *status = pairs ? launch_march<2, 1, false, true, E>(call, j, m)
                    : launch_march<2, 1, false, false, E>(call, j, m);
  return true;
}

bool pg_cuda_try_spread_march(const pg_cuda_call *call, cudaError_t *status) {
  return try_spread_type(call->step, [&](auto e) { return try_type<decltype(e)>(call, status); });
}
