/* SPDX-License-Identifier: Apache-2.0 */
/* How a lane walks down its column, for both kernels of avg_columns.cu: rows are in global memory
 * or, staged, in shared memory.
 *
 * Each step reads a row of outputs and writes STRIDE rows of cells, of a column that is STRIDE
 * cells wide.  `own` is the quotient of the column's own output, `left` and `right` are those of
 * the lanes beside it.  Along W the cells of a column lie in these windows:
 *
 *   stride 1              left + own + right
 *   stride 2, padding 0   first cell: left + own    second cell: own
 *   stride 2, padding 1   first cell: own           second cell: own + right
 *
 * Along H it is the same.  A step has the sums of the row that it reads (`next`), of the one before
 * (`now`), and with stride 1 of the one before that (`before`). */
#ifndef PG_CUDA_AVG_COLUMNS_CUH_
#define PG_CUDA_AVG_COLUMNS_CUH_

#include "cuda/kernels/staged_run.cuh"
#include "cuda/kernels/quotient.cuh"
#include "cuda/kernels/avg_job.cuh"

enum { AHEAD = 4 /* rows of outputs that a lane loads while it computes with the last ones */ };

/* --- The plan --- */

/* How a block stages slices. */
struct avg_columns_stage {
  uint32_t share;                      /* slices of a block */
  int32_t slices;                      /* that it stages at a time */
  int32_t warps;                       /* that have one chunk of all columns of these slices */
  uint32_t outputs_bytes, cells_bytes; /* of scratch for them */
};

/* Windows do not extend along D, so every slice is computed alone. */
struct avg_columns_plan {
  uint32_t slices, warps;
  int32_t columns;             /* of a slice; STRIDE cells wide */
  int32_t steps;               /* of a whole column; STRIDE cells high */
  int32_t chunks, chunk_steps; /* of a column */
  int32_t own_h, own_w;        /* step i and column c have the output at (i + own_h, c + own_w) */
  pg_divisor divisor[3][3]; /* [along W][along H], each: first output, those between, last output */
  pg_divider by_columns, by_chunks;
  avg_columns_stage stage;
};

/* Columns that a warp writes.  The other lanes only provide quotients for those beside them. */
static constexpr int columns_of_warp(int stride) { return stride == 1 ? 30 : 31; }

/* What the compiler knows of a problem. */
template <int STRIDE_, int PAD_, bool ONE_DIVISOR_, bool PAIRS_, typename E>
struct avg_columns_kind {
  typedef E element;
  static constexpr int STRIDE = STRIDE_; /* of the windows */
  static constexpr int PAD = PAD_;       /* only if the stride is 2; else the plan has it */
  static constexpr bool ONE_DIVISOR = ONE_DIVISOR_; /* all outputs have the same */
  static constexpr bool PAIRS = PAIRS_;             /* stride 2: both cells are written at once */
  static constexpr int OWN = columns_of_warp(STRIDE);
  static constexpr int LEFT = STRIDE == 1 || PAD == 0; /* lanes before those that write */
  static constexpr int RIGHT = 32 - OWN - LEFT;        /* lanes behind them */
};

/* Which of the divisors an output has along an axis. */
static __device__ __forceinline__ int32_t divisor_number(int32_t o, int32_t out) {
  return o == 0 ? 0 : o == out - 1 ? 2 : 1;
}

/* --- Rows of outputs and of cells --- */

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

/* A lane's element in the next row, and those in the rows after it.  Cells are written with
 * streaming stores, because outputs, which neighbouring warps read again, should stay in the cache
 * instead. */
template <typename E>
struct global_rows {
  typedef E element;
  uint64_t at;
  uint32_t stride_bytes;
  bool present; /* false: the lane has no outputs, and reads zeros */

  __device__ __forceinline__ uint64_t row(int32_t k) const {
    return at + (int64_t)k * (int64_t)stride_bytes;
  }
  __device__ __forceinline__ uint32_t read(int32_t k) const {
    uint32_t bits = 0;
    if (present) bits = __ldg((const bits_of_element<E> *)row(k));
    return bits;
  }
  /* Writes bits that are `right` places of their size to the right. */
  template <typename W>
  __device__ __forceinline__ void write_if(bool condition, int32_t k, int32_t right, W bits) const {
    if (condition) __stcs((W *)row(k) + right, bits);
  }
  __device__ __forceinline__ void advance(int32_t rows) { at = row(rows); }
};

/* The same for staged rows.  A lane that has no outputs reads a word of zeros with stride 0. */
template <typename E>
struct shared_rows {
  typedef E element;
  uint32_t at, stride_bytes;

  __device__ __forceinline__ uint32_t read(int32_t k) const {
    return shared_load_bits(at + k * stride_bytes, E());
  }
  template <typename W>
  __device__ __forceinline__ void write_if(bool condition, int32_t k, int32_t right, W bits) const {
    shared_store_if(condition, at + k * stride_bytes + right * (uint32_t)sizeof(W), bits);
  }
  __device__ __forceinline__ void advance(int32_t rows) { at += rows * stride_bytes; }
};

/* --- A lane --- */

/* A chunk's steps, counted from its first: how many there are, how many of them have a row of
 * outputs, which one has the last row of outputs, how many have a second row of cells. */
struct avg_columns_steps {
  int32_t all, with_outputs, last_output, with_second_row;
};

/* A lane with a chunk of a column: K is its avg_columns_kind, R is global_rows or shared_rows. */
template <typename K, typename R>
struct avg_columns_lane {
  typedef typename K::element E;
  R outputs, cells;                 /* at the first step */
  bool writes_first, writes_second; /* the lane writes these cells of a row */
  bool has_left, has_right;         /* the lane beside it has the next column of the same slice */
  avg_columns_steps steps;
  /* Of most rows of outputs, of the last one, of the two before the first step's. */
  pg_divisor usual, at_last, early[2];
  bool has_early[2];

  __device__ __forceinline__ void prepare(const avg_job &j, const avg_columns_plan &plan,
                                          int32_t column, int32_t begin);

  /* The sums of a row of quotients along W, one for each cell of the column. */
  __device__ __forceinline__ void add_along_w(float own, float *row) const {
    const float left = K::LEFT ? __shfl_up_sync(EVERY_LANE, own, 1) : 0.0f;
    const float right = K::RIGHT ? __shfl_down_sync(EVERY_LANE, own, 1) : 0.0f;
    row[0] = row[K::STRIDE - 1] = own;
    if (K::LEFT && has_left) row[0] = left + own;
    if (K::RIGHT && has_right) row[K::STRIDE - 1] += right;
  }

  __device__ __forceinline__ void write_row(const R &to, int32_t k, const float *sum,
                                            bool exists) const {
    if constexpr (K::PAIRS) {
      to.write_if(exists && writes_first, k, 0, pair_of(sum, E()));
    } else {
      to.write_if(exists && writes_first, k, 0, bits_of(sum[0], E()));
      if (K::STRIDE == 2)
        to.write_if(exists && writes_second, k, 1, bits_of(sum[K::STRIDE - 1], E()));
    }
  }

  /* Steps from the first on that need no comparison with the numbers in `steps`. */
  __device__ __forceinline__ int32_t plain_steps() const {
    int32_t most = min(steps.all, steps.with_outputs);
    if (!K::ONE_DIVISOR) most = min(most, steps.last_output);
    return K::STRIDE == 2 ? min(most, steps.with_second_row) : most;
  }

  __device__ __forceinline__ void compute() const;
};

/* --- Down a column --- */

/* A lane on its way: with quotients by products, noting gradients that are not for these, or EXACT,
 * with true divisions. */
template <bool EXACT, typename K, typename R>
struct avg_columns_walk {
  typedef typename K::element E;
  static constexpr int STRIDE = K::STRIDE;
  const avg_columns_lane<K, R> &lane;
  R from, to;
  pg_seen<E> seen;
  float before[STRIDE] = {}, now[STRIDE]; /* sums along W of the latest two rows of outputs */

  __device__ __forceinline__ explicit avg_columns_walk(const avg_columns_lane<K, R> &l)
      : lane(l), from(l.outputs), to(l.cells) {
    if (STRIDE == 1)
      lane.add_along_w(divide(lane.has_early[0] ? from.read(-2) : 0, lane.early[0]), before);
    lane.add_along_w(divide(lane.has_early[1] ? from.read(-1) : 0, lane.early[1]), now);
  }

  __device__ __forceinline__ float divide(uint32_t bits, const pg_divisor &by) {
    const float g = value_of(bits, E());
    if (EXACT) return true_quotient(g, by);
    seen.note(g);
    return quotient(g, by);
  }

  /* Writes the cells of a step.  With stride 1 they lie in three rows of outputs; with stride 2 one
   * row of cells lies in two of them, and the other in one. */
  __device__ __forceinline__ void write_cells(int32_t k, bool has_second_row,
                                              const float *next) const {
    float sum[STRIDE];
#pragma unroll
    for (int x = 0; x < STRIDE; x++) sum[x] = (STRIDE == 1 ? before[x] + now[x] : now[x]) + next[x];
    lane.write_row(to, STRIDE * k, STRIDE == 2 && K::PAD == 1 ? now : sum, true);
    if (STRIDE == 2) lane.write_row(to, STRIDE * k + 1, K::PAD == 1 ? sum : next, has_second_row);
  }

  /* The k-th step from where `to` is. */
  __device__ __forceinline__ void step(int32_t k, uint32_t bits, const pg_divisor &by,
                                       bool has_second_row) {
    float next[STRIDE];
    lane.add_along_w(divide(bits, by), next);
    write_cells(k, has_second_row, next);
#pragma unroll
    for (int x = 0; x < STRIDE; x++) {
      before[x] = now[x];
      now[x] = next[x];
    }
  }

  __device__ __forceinline__ void read_rows(uint32_t *bits) {
#pragma unroll
    for (int k = 0; k < AHEAD; k++) bits[k] = from.read(k);
    from.advance(AHEAD);
  }
  __device__ __forceinline__ void use_rows(const uint32_t *bits) {
#pragma unroll
    for (int k = 0; k < AHEAD; k++) step(k, bits[k], lane.usual, true);
    to.advance(STRIDE * AHEAD);
  }

  /* AHEAD plain steps at a time, while the rows of the next AHEAD are being loaded.  The two sets
   * of registers take turns: moving the second into the first would wait for its loads. */
  __device__ __forceinline__ void walk_plain(int32_t sets) {
    uint32_t one[AHEAD], other[AHEAD];
    if (sets > 0) read_rows(one);
#pragma unroll 1
    for (; sets > 0; sets -= 2) {
      if (sets > 1) read_rows(other);
      use_rows(one);
      if (sets == 1) break;
      if (sets > 2) read_rows(one);
      use_rows(other);
    }
  }
  /* All steps from the k-th on, one at a time. */
  __device__ __forceinline__ void walk_from(int32_t k) {
#pragma unroll 1
    for (; k < lane.steps.all; k++) {
      pg_divisor by = lane.usual;
      if (!K::ONE_DIVISOR && k == lane.steps.last_output) by = lane.at_last;
      step(0, k < lane.steps.with_outputs ? from.read(0) : 0, by, k < lane.steps.with_second_row);
      from.advance(1);
      to.advance(STRIDE);
    }
  }
};

template <typename K, typename R>
__device__ __forceinline__ void avg_columns_lane<K, R>::compute() const {
  avg_columns_walk<false, K, R> walk(*this);
  const int32_t sets = max(plain_steps(), 0) / AHEAD;
  walk.walk_plain(sets);
  walk.walk_from(sets * AHEAD);
  if (!__any_sync(EVERY_LANE, walk.seen.odd())) return;
  avg_columns_walk<true, K, R> again(*this);
  again.walk_from(0);
}

/* --- Where a lane is --- */

/* Step i reads row i + this of outputs, the last one whose windows hold cells of the step.  It is
 * the padding along H. */
template <typename K>
static __device__ __forceinline__ int32_t row_shift(const avg_columns_plan &plan) {
  return plan.own_h + (K::STRIDE == 2 && K::PAD == 0 ? 0 : 1);
}

/* The chunk that begins at step `begin`; everything but where outputs and cells are. */
template <typename K, typename R>
__device__ __forceinline__ void avg_columns_lane<K, R>::prepare(const avg_job &j,
                                                                const avg_columns_plan &plan,
                                                                int32_t column, int32_t begin) {
  const int32_t shift = row_shift<K>(plan);
  const pg_divisor *divisor = plan.divisor[divisor_number(column + plan.own_w, j.w.out)];
  steps.all = min(plan.chunk_steps, plan.steps - begin);
  steps.with_outputs = j.h.out - shift - begin;
  steps.last_output = steps.with_outputs - 1;
  steps.with_second_row = j.h.in / 2 - begin;
  usual = divisor[1];
  at_last = divisor[2];
#pragma unroll
  for (int k = K::STRIDE - 1; k < 2; k++) {
    const int32_t oh = begin + shift - 2 + k;
    has_early[k] = oh >= 0 && oh < j.h.out;
    early[k] = K::ONE_DIVISOR ? usual : divisor[divisor_number(oh, j.h.out)];
  }
  outputs.stride_bytes = j.w.out * sizeof(E);
  cells.stride_bytes = j.w.in * sizeof(E);
  writes_first = K::STRIDE * column < j.w.in;
  writes_second = K::STRIDE * column + 1 < j.w.in;
  has_left = column > 0;
  has_right = column < plan.columns - 1;
}

/* Elements of the slice before a lane's first output and its first cell. */
template <typename K>
static __device__ __forceinline__ int32_t lane_output_offset(const avg_job &j,
                                                             const avg_columns_plan &plan,
                                                             int32_t column, int32_t begin) {
  return (begin + row_shift<K>(plan)) * j.w.out + column + plan.own_w;
}
template <typename K>
static __device__ __forceinline__ int32_t lane_cell_offset(const avg_job &j, int32_t column,
                                                           int32_t begin) {
  return K::STRIDE * (begin * j.w.in + column);
}

#endif
