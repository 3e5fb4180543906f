/* SPDX-License-Identifier: Apache-2.0 */
/* A lane's way down a column, see avg_columns.cu, whether rows are in global or in shared memory.
 */
#ifndef PG_CUDA_AVG_COLUMNS_CUH_
#define PG_CUDA_AVG_COLUMNS_CUH_

#include <type_traits>

#include "cuda/kernels/async_copy.cuh"
#include "cuda/kernels/quotient.cuh"
#include "cuda/kernels/avg_job.cuh"

enum {
  THREADS = 256,
  STAGED_WARPS = 12, /* at most */
  STAGED_BLOCKS = 3, /* of a processor, at least */
  BORDER = 128,      /* bytes that memory moves at once */
  GATES = 16,        /* bytes before them, zeros */
  AHEAD = 4,         /* rows */
};
static constexpr unsigned ALL = 0xffffffff; /* lanes */

/* Of some planes at a time. */
struct march_stage {
  uint32_t share; /* planes of a block */
  int32_t planes; /* at a time */
  int32_t warps;  /* of one chunk's columns */
  uint32_t outputs_bytes, cells_bytes;
};

/* Columns' rows, a row's height being the step, are cut into `chunks` of `rows`. */
struct march_plan {
  uint32_t planes, warps;
  int32_t columns, all_rows, chunks, rows;
  int32_t own_h, own_w;     /* a row's and a column's own output less its number */
  pg_divisor divisor[3][3]; /* of the first output, those between, the last: along W, along H */
  pg_divider by_columns, by_chunks;
  march_stage stage;
};

/* Where an output is among those of its axis: first, between or last. */
static __device__ __forceinline__ int32_t place_of(int32_t o, int32_t out) {
  return o == 0 ? 0 : o == out - 1 ? 2 : 1;
}

/* --- Rows of outputs and of cells --- */

template <typename E>
using word_of = typename std::conditional<sizeof(E) == 4, uint32_t, uint16_t>::type;

static __device__ __forceinline__ float value_of(uint32_t bits, float) {
  return __uint_as_float(bits);
}
template <typename E>
static __device__ __forceinline__ float value_of(uint32_t bits, E) {
  return widened(E{(uint16_t)bits});
}
static __device__ __forceinline__ uint32_t bits_of(float sum, float) {
  return __float_as_uint(sum);
}
template <typename E>
static __device__ __forceinline__ uint16_t bits_of(float sum, E e) {
  put(&e, sum);
  return e.bits;
}
static __device__ __forceinline__ uint2 pair_of(const float *sum, float) {
  return make_uint2(__float_as_uint(sum[0]), __float_as_uint(sum[1]));
}
template <typename E>
static __device__ __forceinline__ uint32_t pair_of(const float *sum, E e) {
  return packed(e, sum[0], sum[1]);
}

/* Rows of a column, from the one that is next.  What is written is not read here: the outputs are
 * to stay in the cache. */
template <typename E>
struct global_rows {
  typedef E element;
  uint64_t at;
  uint32_t pitch_bytes;
  bool there;

  __device__ __forceinline__ uint64_t row(int32_t k) const {
    return at + (int64_t)k * (int64_t)pitch_bytes;
  }
  __device__ __forceinline__ uint32_t read(int32_t k) const {
    uint32_t bits = 0;
    if (there) bits = __ldg((const word_of<E> *)row(k));
    return bits;
  }
  template <typename W>
  __device__ __forceinline__ void write(int32_t k, int32_t right, W bits, bool if_so) const {
    if (if_so) __stcs((W *)row(k) + right, bits);
  }
  __device__ __forceinline__ void step(int32_t rows) { at = row(rows); }
};
template <typename E>
struct shared_rows {
  typedef E element;
  uint32_t at, pitch_bytes; /* the pitch of zeros is none */

  __device__ __forceinline__ uint32_t read(int32_t k) const {
    return shared_read(at + k * pitch_bytes, E());
  }
  template <typename W>
  __device__ __forceinline__ void write(int32_t k, int32_t right, W bits, bool if_so) const {
    shared_write(at + k * pitch_bytes + right * (uint32_t)sizeof(W), bits, if_so);
  }
  __device__ __forceinline__ void step(int32_t rows) { at += rows * pitch_bytes; }
};

/* --- Sums along W --- */

/* Are the lanes beside a lane its neighbours?  LEFT, RIGHT: a warp's outer ones that only serve. */
template <int S, int P>
struct march_beside {
  static constexpr int LEFT = S == 1 || P == 0, RIGHT = S == 1 || P == 1;
  static constexpr int OWN = 32 - LEFT - RIGHT;
  bool left, right;

  __device__ __forceinline__ void sum(float own, float *row) const {
    const float before = LEFT ? __shfl_up_sync(ALL, own, 1) : 0.0f;
    const float after = RIGHT ? __shfl_down_sync(ALL, own, 1) : 0.0f;
    row[0] = row[S - 1] = own;
    if (LEFT && left) row[0] = before + own;
    if (RIGHT && right) row[S - 1] += after;
  }
};

/* --- Down a column --- */

/* Rows to be made, those of them with outputs, the number of the last output's, those with a second
 * row of cells: counted from the first. */
struct march_rows {
  int32_t all, outputs, last, lower;
};

template <int S, int P, bool SAME, bool PAIRS, typename R>
struct march_lane {
  typedef typename R::element E;
  typedef march_beside<S, P> beside_t;
  R outputs, cells;   /* outputs: the one that the first row of cells ends with */
  bool first, second; /* are a row's cells the lane's to write? */
  beside_t beside;
  march_rows rows;
  pg_divisor usual, at_last, early[2]; /* early: of the two rows before the first */
  bool has_early[2];

  __device__ __forceinline__ void settle(const avg_job &j, const march_plan &m, int32_t column,
                                         int32_t begin);

  __device__ __forceinline__ void write(const R &to, int32_t k, const float *sum, bool row) const {
    if constexpr (PAIRS) {
      to.write(k, 0, pair_of(sum, E()), row && first);
    } else {
      to.write(k, 0, bits_of(sum[0], E()), row && first);
      if (S == 2) to.write(k, 1, bits_of(sum[S - 1], E()), row && second);
    }
  }

  /* Step 1: a cell's three rows end with `next`.  Step 2: one row of cells is `now` or `next`
   * alone, the other's are in both. */
  __device__ __forceinline__ void make(const R &to, int32_t k, bool lower, const float *before,
                                       const float *now, const float *next) const {
    float both[S];
#pragma unroll
    for (int x = 0; x < S; x++) both[x] = (S == 1 ? before[x] + now[x] : now[x]) + next[x];
    write(to, S * k, S == 2 && P == 1 ? now : both, true);
    if (S == 2) write(to, S * k + 1, P == 1 ? both : next, lower);
  }

  /* Rows that need no look at where they are. */
  __device__ __forceinline__ int32_t plain() const {
    int32_t most = min(rows.all, rows.outputs);
    if (!SAME) most = min(most, rows.last);
    return S == 2 ? min(most, rows.lower) : most;
  }

  __device__ __forceinline__ void make_all() const;
};

/* On the way down: EXACT, or with a note of gradients that ask for it. */
template <bool EXACT, int S, int P, bool SAME, bool PAIRS, typename R>
struct march_walk {
  typedef typename R::element E;
  const march_lane<S, P, SAME, PAIRS, R> &l;
  R from, to;
  pg_seen<E> seen;
  float before[S] = {}, now[S];

  __device__ __forceinline__ float term(uint32_t bits, const pg_divisor &by) {
    const float g = value_of(bits, E());
    if (EXACT) return true_quotient(g, by);
    seen.note(g);
    return quotient(g, by);
  }
  __device__ __forceinline__ void row(int32_t k, uint32_t bits, const pg_divisor &by, bool lower) {
    float next[S];
    l.beside.sum(term(bits, by), next);
    l.make(to, k, lower, before, now, next);
#pragma unroll
    for (int x = 0; x < S; x++) {
      before[x] = now[x];
      now[x] = next[x];
    }
  }

  __device__ __forceinline__ explicit march_walk(const march_lane<S, P, SAME, PAIRS, R> &lane)
      : l(lane), from(lane.outputs), to(lane.cells) {
    if (S == 1) l.beside.sum(term(l.has_early[0] ? from.read(-2) : 0, l.early[0]), before);
    l.beside.sum(term(l.has_early[1] ? from.read(-1) : 0, l.early[1]), now);
  }

  __device__ __forceinline__ void read(uint32_t *bits) {
#pragma unroll
    for (int k = 0; k < AHEAD; k++) bits[k] = from.read(k);
    from.step(AHEAD);
  }
  __device__ __forceinline__ void use(const uint32_t *bits) {
#pragma unroll
    for (int k = 0; k < AHEAD; k++) row(k, bits[k], l.usual, true);
    to.step(S * AHEAD);
  }
  /* Two sets in turn: a move from one to the other would wait for what is still to come. */
  __device__ __forceinline__ void use_sets(int32_t sets) {
    uint32_t one[AHEAD], other[AHEAD];
    if (sets > 0) read(one);
#pragma unroll 1
    for (; sets > 0; sets -= 2) {
      if (sets > 1) read(other);
      use(one);
      if (sets == 1) break;
      if (sets > 2) read(one);
      use(other);
    }
  }
  __device__ __forceinline__ void use_rows(int32_t k) {
#pragma unroll 1
    for (; k < l.rows.all; k++) {
      pg_divisor by = l.usual;
      if (!SAME && k == l.rows.last) by = l.at_last;
      row(0, k < l.rows.outputs ? from.read(0) : 0, by, k < l.rows.lower);
      from.step(1);
      to.step(S);
    }
  }
};

template <int S, int P, bool SAME, bool PAIRS, typename R>
__device__ __forceinline__ void march_lane<S, P, SAME, PAIRS, R>::make_all() const {
  march_walk<false, S, P, SAME, PAIRS, R> walk(*this);
  const int32_t sets = max(plain(), 0) / AHEAD;
  walk.use_sets(sets);
  walk.use_rows(sets * AHEAD);
  if (!__any_sync(ALL, walk.seen.odd())) return;
  march_walk<true, S, P, SAME, PAIRS, R> again(*this);
  again.use_rows(0);
}

/* Row i of cells ends with row i + shift of outputs. */
template <int S, int P>
static __device__ __forceinline__ int32_t shift_of(const march_plan &m) {
  return m.own_h + (S == 2 && P == 0 ? 0 : 1);
}

/* All but where outputs and cells are. */
template <int S, int P, bool SAME, bool PAIRS, typename R>
__device__ __forceinline__ void march_lane<S, P, SAME, PAIRS, R>::settle(const avg_job &j,
                                                                         const march_plan &m,
                                                                         int32_t column,
                                                                         int32_t begin) {
  const int32_t shift = shift_of<S, P>(m);
  const pg_divisor *divisor = m.divisor[place_of(column + m.own_w, j.w.out)];
  rows.all = min(m.rows, m.all_rows - begin);
  rows.outputs = j.h.out - shift - begin;
  rows.last = rows.outputs - 1;
  rows.lower = j.h.in / 2 - begin;
  usual = divisor[1];
  at_last = divisor[2];
#pragma unroll
  for (int k = S - 1; k < 2; k++) {
    const int32_t oh = begin + shift - 2 + k;
    has_early[k] = oh >= 0 && oh < j.h.out;
    early[k] = SAME ? usual : divisor[place_of(oh, j.h.out)];
  }
  outputs.pitch_bytes = j.w.out * sizeof(E);
  cells.pitch_bytes = j.w.in * sizeof(E);
  first = S * column < j.w.in;
  second = S * column + 1 < j.w.in;
  beside = {column > 0, column < m.columns - 1};
}

/* Elements of the plane before a lane's first output and first cell. */
template <int S, int P>
static __device__ __forceinline__ int32_t first_output(const avg_job &j, const march_plan &m,
                                                       int32_t column, int32_t begin) {
  return (begin + shift_of<S, P>(m)) * j.w.out + column + m.own_w;
}
template <int S>
static __device__ __forceinline__ int32_t first_cell(const avg_job &j, int32_t column,
                                                     int32_t begin) {
  return S * (begin * j.w.in + column);
}

/* P: the padding, where windows slide by 2. */

#endif
