/* SPDX-License-Identifier: Apache-2.0 */
/* Averages with any windows and any strides, in two or three dimensions.
 *
 * A thread has one column of cells, or as many as the channels of a vector where channels are
 * neighbours, in a box of some rows and slices.  It works alone:
 *
 *   expand   for each row of outputs that touches the box: the sum of the quotients of those in
 *            whose windows the column lies, which the thread keeps in shared memory
 *   add      for each band of rows and slices these sums along H, and those along D, and write the
 *            result to every cell of the band
 *
 * A cell costs the sum of its windows along the axes and not their product, and cells of a band
 * cost one store each.  Neighbouring lanes have neighbours in memory, and outputs that several of
 * them need come from the first-level cache.  No thread waits for another one after the tables of
 * the block are computed, so there are always loads and stores on their way.  A lane computes the
 * same column of several planes one after the other, so that finding its windows costs little. */
#include "cuda/kernels/avg_strips.cuh"

/* WINDOWS: the most along W that a cell lies in, if these are one or two, else 0.  DEEP: there is
 * depth.  ONE: all outputs have one divisor. */
template <int V_, int WINDOWS_, bool DEEP_, bool ONE_, typename E_>
struct strips_kind {
  static constexpr int V = V_, WINDOWS = WINDOWS_;
  static constexpr bool DEEP = DEEP_, ONE = ONE_;
  typedef E_ E;
  static constexpr int THREADS = V == 1 ? 256 : 128;
  static constexpr int ENTRY = 4 * V * THREADS; /* bytes of the sums of all lanes */
  /* Rows of outputs whose loads are issued together. */
  static constexpr int TOGETHER = V * sizeof(E) == 16 ? 2 : STRIPS_TOGETHER;
};

/* The columns of a lane in one plane, or in V channels. */
struct strips_column {
  const char *grad;     /* the first output that touches the box, and in whose window it lies */
  char *in;             /* the first cell */
  int32_t count;        /* of the outputs along W in whose windows it lies */
  uint32_t second;      /* WINDOWS 2: bytes from the first to the second, 0 if there is none */
  uint32_t divisors[2]; /* WINDOWS 1 and 2: where their divisors for entry 0 are; */
  uint32_t class_of;    /* WINDOWS 0: where it is noted where they are */
};

/* Shared memory as a lane sees it. */
struct strips_tables {
  uint32_t sums; /* its own, of entry 0 */
  uint32_t begin;
};

static __device__ __forceinline__ uint32_t table_at(const strips_tables &t, int32_t word) {
  return t.begin + 4 * (uint32_t)word;
}

/* --- Sums of a lane in shared memory --- */

template <int V>
static __device__ __forceinline__ void keep_sums(uint32_t to, const float *sum) {
  if constexpr (V == 4)
    shared_store_4(to, make_float4(sum[0], sum[1], sum[2], sum[3]));
  else
    shared_store(to, *sum);
}

template <int V>
static __device__ __forceinline__ void add_kept(float *sum, uint32_t from) {
  if constexpr (V == 4) {
    const float4 more = shared_load_4(from);
    sum[0] += more.x;
    sum[1] += more.y;
    sum[2] += more.z;
    sum[3] += more.w;
  } else {
    *sum += shared_load(from);
  }
}

/* --- Expand --- */

/* sum += the quotients of a vector of outputs, if `counts`.  No quotient is -0, so no sum is. */
template <bool EXACT, typename K>
static __device__ __forceinline__ void add_quotients(float *sum,
                                                     const vector_of<typename K::E, K::V> &grad,
                                                     const pg_divisor &by, bool counts,
                                                     pg_seen<typename K::E> *seen) {
#pragma unroll
  for (int v = 0; v < K::V; v++) {
    const float g = widened(grad.of[v]);
    if (!EXACT) seen->note_least(g);
    const float more = EXACT ? true_quotient(g, by) : quotient(g, by);
    if (counts) sum[v] += more;
  }
}

/* The divisor that is u entries behind the one at this address. */
template <typename K>
static __device__ __forceinline__ pg_divisor divisor_at(const avg_strips_plan &p, uint32_t address,
                                                        int u) {
  if (K::ONE) return p.one;
  const uint2 words = table_words(address + u * 8 * p.classes);
  return {__uint_as_float(words.x), __uint_as_float(words.y)};
}

/* The sums along W of U rows of outputs, from the entry-th on.  Behind the last row it is computed
 * again, into entries that are not used. */
template <bool EXACT, int U, typename K>
static __device__ __forceinline__ void expand_rows(const avg_strips_plan &p, const strips_tables &t,
                                                   const strips_column &column, uint32_t entry,
                                                   uint32_t entries, pg_seen<typename K::E> *seen) {
  typedef typename K::E E;
  constexpr int V = K::V, LOADED = K::WINDOWS > 0 ? K::WINDOWS : 1;
  const char *row[U];
  float sum[U][V] = {};
#pragma unroll
  for (int u = 0; u < U; u++) {
    if constexpr (K::DEEP) {
      const uint2 words = table_words(table_at(t, p.offset) + 8 * (entry + u));
      row[u] = column.grad + (int64_t)((uint64_t)words.y << 32 | words.x);
    } else {
      row[u] = column.grad + (uint64_t)min(entry + u, entries - 1) * p.grad_h;
    }
  }
  const uint32_t divisors = entry * 8 * p.classes;
  vector_of<E, V> grad[U][LOADED];
  if constexpr (K::WINDOWS > 0) {
#pragma unroll
    for (int u = 0; u < U; u++)
#pragma unroll
      for (int i = 0; i < LOADED; i++) grad[u][i].load((const E *)(row[u] + i * column.second));
#pragma unroll
    for (int u = 0; u < U; u++)
#pragma unroll
      for (int i = 0; i < LOADED; i++)
        add_quotients<EXACT, K>(sum[u], grad[u][i],
                                divisor_at<K>(p, column.divisors[i] + divisors, u),
                                i < column.count, seen);
  } else {
#pragma unroll(EXACT || V > 1 ? 1 : 2)
    for (uint32_t i = 0; i < (uint32_t)column.count; i++) {
#pragma unroll
      for (int u = 0; u < U; u++) grad[u][0].load((const E *)(row[u] + (uint64_t)i * p.grad_w));
      const uint32_t first = K::ONE ? 0 : table_word(column.class_of + i * 4 * K::THREADS);
#pragma unroll
      for (int u = 0; u < U; u++)
        add_quotients<EXACT, K>(sum[u], grad[u][0], divisor_at<K>(p, first + divisors, u), true,
                                seen);
    }
  }
#pragma unroll
  for (int u = 0; u < U; u++) keep_sums<V>(t.sums + (entry + u) * K::ENTRY, sum[u]);
}

/* True if a gradient was so small that quotients must be exact. */
template <bool EXACT, typename K>
static __device__ __forceinline__ bool expand_column(const avg_strips_plan &p,
                                                     const strips_tables &t,
                                                     const strips_column &column,
                                                     uint32_t entries) {
  constexpr int U = EXACT ? 1 : K::TOGETHER;
  pg_seen<typename K::E> seen;
  uint32_t entry = 0;
#pragma unroll 1
  for (; entry + U / 2 < entries; entry += U)
    expand_rows<EXACT, U, K>(p, t, column, entry, entries, &seen);
#pragma unroll 1
  for (; entry < entries; entry++) expand_rows<EXACT, 1, K>(p, t, column, entry, entries, &seen);
  return seen.odd();
}

/* --- Add --- */

/* Rounded sums as they are stored. */
template <int V, typename E>
struct strips_result {
  E word;
  __device__ __forceinline__ explicit strips_result(const float *sum) { put(&word, *sum); }
  __device__ __forceinline__ void store(char *to) const { *(E *)to = word; }
};
template <typename E>
struct strips_result<4, E> {
  uint2 words;
  __device__ __forceinline__ explicit strips_result(const float *sum)
      : words(make_uint2(packed(E(), sum[0], sum[1]), packed(E(), sum[2], sum[3]))) {}
  __device__ __forceinline__ void store(char *to) const { __stcs((uint2 *)to, words); }
};
template <>
struct strips_result<4, float> {
  float4 words;
  __device__ __forceinline__ explicit strips_result(const float *sum)
      : words(make_float4(sum[0], sum[1], sum[2], sum[3])) {}
  __device__ __forceinline__ void store(char *to) const { __stcs((float4 *)to, words); }
};

/* Adds `count` entries that follow each other. */
template <typename K>
static __device__ __forceinline__ void add_entries(float *sum, uint32_t from, uint32_t count) {
#pragma unroll 1
  for (; count >= 4; count -= 4, from += 4 * K::ENTRY)
#pragma unroll
    for (int i = 0; i < 4; i++) add_kept<K::V>(sum, from + i * K::ENTRY);
  if (count > 0) add_kept<K::V>(sum, from);
  if (count > 1) add_kept<K::V>(sum, from + K::ENTRY);
  if (count > 2) add_kept<K::V>(sum, from + 2 * K::ENTRY);
}

template <typename K>
static __device__ __forceinline__ void sum_band(const strips_tables &t, uint32_t slice_bytes,
                                                const strips_band &deep, const strips_band &rows,
                                                float *total) {
  if constexpr (!K::DEEP) {
    add_entries<K>(total, t.sums + rows.from, rows.count);
    return;
  }
  uint32_t from = t.sums + deep.from + rows.from;
#pragma unroll 1
  for (uint32_t d = 0; d < deep.count; d++, from += slice_bytes) {
    float sum[K::V] = {};
    add_entries<K>(sum, from, rows.count);
#pragma unroll
    for (int v = 0; v < K::V; v++) total[v] += sum[v];
  }
}

/* Writes rows [row, end) of a slice; row < end. */
template <typename R>
static __device__ __forceinline__ void store_rows(const avg_strips_plan &p, const R &result,
                                                  char *slice, uint32_t row, uint32_t end) {
  result.store(slice + (uint64_t)row * p.in_h);
  if (++row >= end) return;
#pragma unroll 1
  for (; row + 4 <= end; row += 4)
#pragma unroll
    for (int i = 0; i < 4; i++) result.store(slice + (uint64_t)(row + i) * p.in_h);
#pragma unroll 1
  for (; row < end; row++) result.store(slice + (uint64_t)row * p.in_h);
}

/* True if a sum is not finite: quotients of infinite gradients are NaNs, unless they are exact. */
template <typename K>
static __device__ __forceinline__ bool write_column(const avg_strips_plan &p,
                                                    const strips_tables &t, const avg_strips_box &b,
                                                    const strips_column &column) {
  const uint32_t rows = (uint32_t)length(b.h), slices = K::DEEP ? (uint32_t)length(b.d) : 1;
  const uint32_t band_d = table_at(t, p.band_d), band_h = table_at(t, p.band_h);
  const uint32_t slice_bytes = (uint32_t)length(b.oh) * K::ENTRY;
  float finite = 0; /* turns into a NaN otherwise */
#pragma unroll 1
  for (uint32_t d = 0; d < slices;) {
    strips_band deep = {1, 1, 0};
    if (K::DEEP) deep = band_at(band_d, d);
#pragma unroll 1
    for (uint32_t h = 0; h < rows;) {
      const strips_band band = band_at(band_h, h);
      float total[K::V] = {};
      sum_band<K>(t, slice_bytes, deep, band, total);
#pragma unroll
      for (int v = 0; v < K::V; v++) finite = __fmaf_rn(total[v], 0.0f, finite);
      const strips_result<K::V, typename K::E> result(total);
      if constexpr (K::DEEP) {
#pragma unroll 1
        for (uint32_t i = d; i < deep.end; i++)
          store_rows(p, result, column.in + (uint64_t)i * p.in_d, h, band.end);
      } else {
        store_rows(p, result, column.in, h, band.end);
      }
      h = band.end;
    }
    d = deep.end;
  }
  return finite != 0.0f;
}

/* --- The kernel --- */

/* Where in the scratch the divisors of an output for entry 0 are. */
static __device__ __forceinline__ uint32_t divisors_of(const avg_job &j, const avg_strips_plan &p,
                                                       const strips_tables &t, int32_t ow) {
  const int32_t c = extent(j.w, ow, j.count_include_pad) - p.least_w;
  return table_at(t, p.divisor) + 8 * (uint32_t)min(max(c, 0), p.classes - 1);
}

/* Finds the outputs of a column along W; returns the first. */
template <typename K>
static __device__ __forceinline__ int32_t find_windows(const avg_job &j, const avg_strips_plan &p,
                                                       const strips_tables &t, int32_t w,
                                                       strips_column *column) {
  const pg_span ow = touching(j.w, w, w + 1);
  const int32_t first = min(ow.begin, j.w.out - 1); /* is loaded even if no window holds w */
  column->count = length(ow);
  column->second = column->count > 1 ? p.grad_w : 0;
  if constexpr (K::ONE) return first;
  if constexpr (K::WINDOWS > 0) {
#pragma unroll
    for (int i = 0; i < K::WINDOWS; i++)
      column->divisors[i] = divisors_of(j, p, t, min(first + i, j.w.out - 1));
  } else {
    const uint32_t to = table_at(t, p.class_of) + 4 * threadIdx.x;
#pragma unroll 1
    for (int32_t i = 0; i < column->count; i++)
      shared_store(to + (uint32_t)i * 4 * K::THREADS,
                   __uint_as_float(divisors_of(j, p, t, first + i)));
    column->class_of = shared_address(scratch_at<uint32_t>(p.class_of) + threadIdx.x);
  }
  return first;
}

/* The column of a lane in this plane, where lanes are counted through all blocks. */
template <typename K>
static __device__ __forceinline__ strips_column column_of(const avg_job &j,
                                                          const avg_strips_plan &p,
                                                          const strips_tables &t,
                                                          const avg_strips_box &b, uint32_t lane,
                                                          uint32_t plane) {
  typedef typename K::E E;
  const uint32_t position = over(lane, p.by_vectors), group = over(position, j.by_w);
  const uint32_t n = over(plane, p.by_looped_channels);
  const int32_t w = (int32_t)(position - group * j.by_w.by);
  const uint32_t c =
      K::V * (lane - position * p.by_vectors.by) + plane - n * p.by_looped_channels.by;
  strips_column column = {};
  const int32_t first = find_windows<K>(j, p, t, w, &column);
  column.grad = (const char *)((const E *)j.grad +
                               offset(j.grad_strides, n, c, b.od.begin, b.oh.begin, first));
  column.in = (char *)((E *)j.in + offset(j.in_strides, n, c, b.d.begin, b.h.begin, w));
  return column;
}

/* Behind the barrier. */
template <typename K>
static __device__ __forceinline__ strips_tables tables_of(const avg_strips_plan &p) {
  const uint32_t begin = shared_address(scratch_at<uint32_t>(0));
  return {begin + 4 * (uint32_t)p.sums + 4 * K::V * threadIdx.x, begin};
}

/* Not inlined, because it seldom runs and would take registers from what often does.  For the same
 * reason it finds everything again. */
template <typename K>
static __device__ __noinline__ void compute_exactly(const avg_job &j, const avg_strips_plan &p,
                                                    uint32_t plane) {
  const uint32_t block = over(blockIdx.x, p.by_boxes);
  const avg_strips_box b = strips_box_of(j, p, blockIdx.x - block * p.by_boxes.by);
  const strips_tables t = tables_of<K>(p);
  const strips_column column = column_of<K>(j, p, t, b, block * K::THREADS + threadIdx.x, plane);
  (void)expand_column<true, K>(p, t, column, (uint32_t)b.entries);
  (void)write_column<K>(p, t, b, column);
}

template <typename K>
static __global__ void __launch_bounds__(K::THREADS)
    avg_strips(const __grid_constant__ avg_job j, const __grid_constant__ avg_strips_plan p) {
  const uint32_t block = over(blockIdx.x, p.by_boxes);
  const avg_strips_box b = strips_box_of(j, p, blockIdx.x - block * p.by_boxes.by);
  if (K::DEEP) {
    prepare_bands(j.d, b.d, b.od.begin, length(b.oh) * K::ENTRY, scratch_at<uint2>(p.band_d));
    prepare_offsets<typename K::E>(j, p, b);
  }
  prepare_bands(j.h, b.h, b.oh.begin, K::ENTRY, scratch_at<uint2>(p.band_h));
  if (!K::ONE) prepare_entries(j, p, b);
  __syncthreads();
  const uint32_t lane = block * K::THREADS + threadIdx.x;
  if (lane >= p.lanes) return;
  const strips_tables t = tables_of<K>(p);
  uint32_t plane = over(over(lane, p.by_vectors), j.by_w);
  strips_column column = column_of<K>(j, p, t, b, lane, plane);
#pragma unroll 1
  for (; plane < p.planes; plane += p.groups) {
    bool odd = p.exact;
    if (!odd) {
      odd = expand_column<false, K>(p, t, column, (uint32_t)b.entries);
      odd = write_column<K>(p, t, b, column) || odd;
    }
    if (odd) compute_exactly<K>(j, p, plane);
    column.grad += p.grad_step;
    column.in += p.in_step;
  }
}

/* --- On the host --- */

enum {
  USUAL_ENTRIES = 32,        /* of a box, for vectors of one element; half of them for four */
  MOST_ENTRIES = 96,         /* where windows overlap much */
  MOST_ROWS = 512,           /* and slices, of a box */
  MOST_OUTPUTS = 1 << 12,    /* that a cell or a box may lie in along an axis */
  CELLS_OF_LANE = 256,       /* that a lane computes, in all its planes, if lanes are enough */
  FEW_CELLS = 16,            /* boxes are not cut below this to get more lanes */
  LANES_OF_PROCESSOR = 1536, /* enough to keep it busy */
  DEAREST_STRIDE = INT32_MAX /* bytes: strides are multiplied in 32 bits */
};

/* What a problem is launched with; addresses do not matter. */
struct avg_strips_launch {
  avg_strips_plan plan;
  bool one;
  int64_t blocks, bytes;
};

/* --- Divisors --- */

/* Windows that hang over an edge have a smaller extent, the smallest are the first and last. */
struct strips_extents {
  int64_t least, most;
};

static strips_extents extents_of(const pg_axis &a, bool with_pad) {
  if (a.kernel == 0) {
    const int64_t whole = pg_ceil_div(a.in, a.out);
    return {whole, a.in % a.out == 0 ? whole : whole + 1};
  }
  const int64_t begin = pg_window_extent(&a, 0, with_pad);
  const int64_t end = pg_window_extent(&a, a.out - 1, with_pad), smaller = least(begin, end);
  return {smaller < 1 ? 1 : smaller, pg_window_span(&a) + 1};
}

/* Only kernels for one element and without depth have an instance for one divisor: the others have
 * little to gain from it. */
static void plan_divisors(const pg_problem &problem, int64_t v, avg_strips_launch *l) {
  const pg_pooling &p = problem.facts.pool;
  const pg_avg_backward &a = problem.args.avg_backward;
  const strips_extents d = extents_of(p.d, a.count_include_pad);
  const strips_extents h = extents_of(p.h, a.count_include_pad);
  const strips_extents w = extents_of(p.w, a.count_include_pad);
  const bool equal = d.least == d.most && h.least == h.most && w.least == w.most;
  l->one = (a.divisor != 0 || equal) && v == 1 && !problem.facts.has_depth;
  l->plan.one = divisor_of((float)(a.divisor != 0 ? a.divisor : d.most * h.most * w.most));
  l->plan.exact = a.divisor < 0 || problem.facts.largest_divisor > MOST_DIVISOR;
  l->plan.least_w = (int32_t)w.least;
  l->plan.classes = (int32_t)(a.divisor != 0 ? 1 : least(w.most - w.least + 1, MOST_OUTPUTS));
}

/* --- Boxes --- */

/* Boxes of few entries and many cells, and as many boxes as are needed to have enough lanes;
 * columns: of all planes. */
static void cut_boxes(const pg_pooling &p, int64_t most_entries, int64_t columns,
                      avg_strips_plan *plan) {
  const int64_t enough = LANES_OF_PROCESSOR * (int64_t)pg_cuda_least_limits()->processors;
  int64_t d_parts = pg_ceil_div(p.d.in, MOST_ROWS), h_parts = pg_ceil_div(p.h.in, MOST_ROWS);
  for (;;) {
    const int64_t of_d = pg_ceil_div(p.d.in, d_parts), of_h = pg_ceil_div(p.h.in, h_parts);
    const int64_t deep = pg_most_touching(&p.d, of_d), tall = pg_most_touching(&p.h, of_h);
    plan->of_d = (int32_t)of_d;
    plan->of_h = (int32_t)of_h;
    const bool lanes = columns >= pg_ceil_div(enough, d_parts * h_parts);
    if (deep * tall <= most_entries && (lanes || of_d * of_h <= FEW_CELLS)) return;
    if (of_d == 1 && of_h == 1) return;
    const bool by_depth = of_h == 1 || (of_d > 1 && (deep > tall || (deep == tall && of_d > of_h)));
    int64_t *parts = by_depth ? &d_parts : &h_parts;
    *parts += 1 + *parts / 32;
  }
}

/* Lays out the scratch; false: it does not fit. */
static bool plan_scratch(const pg_facts &f, int64_t v, int64_t threads, avg_strips_launch *l) {
  avg_strips_plan *p = &l->plan;
  const int64_t deep = pg_most_touching(&f.pool.d, p->of_d);
  const int64_t tall = pg_most_touching(&f.pool.h, p->of_h);
  if (deep >= MOST_OUTPUTS || tall >= MOST_OUTPUTS || f.w_windows >= MOST_OUTPUTS ||
      p->classes >= MOST_OUTPUTS)
    return false;
  const int64_t entries = pg_ceil_div(deep * tall, STRIPS_TOGETHER) * STRIPS_TOGETHER;
  int64_t end = 0;
  p->offset = reserve_words(f.has_depth ? 2 * entries : 0, &end);
  p->divisor = reserve_words(l->one ? 0 : 2 * entries * p->classes, &end);
  p->band_d = reserve_words(f.has_depth ? 2 * p->of_d : 0, &end);
  p->band_h = reserve_words(2 * p->of_h, &end);
  p->class_of = reserve_words(f.w_windows > 2 && !l->one ? f.w_windows * threads : 0, &end);
  p->sums = reserve_words(entries * v * threads, &end);
  l->bytes = 4 * end;
  return l->bytes <= pg_cuda_least_limits()->shared_bytes;
}

/* --- Lanes --- */

/* Along an axis of length 1 nothing has a neighbour. */
static bool plan_stride(int64_t stride, int64_t length, int64_t element_bytes, uint32_t *bytes) {
  *bytes = (uint32_t)(length > 1 ? stride * element_bytes : 0);
  return length <= 1 || (stride >= 0 && stride < DEAREST_STRIDE / element_bytes);
}

static bool plan_strides(const pg_problem &problem, avg_strips_plan *plan) {
  const pg_pooling &p = problem.facts.pool;
  const int64_t bytes = element_bytes(problem);
  const int64_t *grad = problem.args.avg_backward.out_strides.of;
  const int64_t *in = problem.args.avg_backward.in_strides.of;
  return plan_stride(grad[PG_W], p.w.out, bytes, &plan->grad_w) &&
         plan_stride(grad[PG_H], p.h.out, bytes, &plan->grad_h) &&
         plan_stride(in[PG_H], p.h.in, bytes, &plan->in_h) &&
         plan_stride(in[PG_D], p.d.in, bytes, &plan->in_d);
}

/* Are channels neighbours in gradInput rather than cells of a row? */
static bool counts_channels(const pg_problem &problem) {
  const pg_pooling &p = problem.facts.pool;
  const pg_strides &s = problem.args.avg_backward.in_strides;
  return p.c > 1 && p.w.in > 1 && s.of[PG_C] < s.of[PG_W];
}

/* The distance from a plane (n, c) to the next one, or -1 if it is not always the same. */
static int64_t plane_distance(const pg_strides &s, const pg_pooling &p) {
  if (p.c == 1) return s.of[PG_N];
  return p.n == 1 || s.of[PG_N] == p.c * s.of[PG_C] ? s.of[PG_C] : -1;
}

/* A lane has several planes if these are the same distance apart in both tensors. */
static bool plan_lanes(const pg_problem &problem, int64_t v, int64_t threads,
                       avg_strips_launch *l) {
  const pg_pooling &p = problem.facts.pool;
  const pg_avg_backward &a = problem.args.avg_backward;
  avg_strips_plan *plan = &l->plan;
  const bool channels = v > 1 || counts_channels(problem);
  const int64_t vectors = channels ? p.c / v : 1, looped = channels ? 1 : p.c;
  const int64_t planes = p.n * looped, across = vectors * p.w.in;
  const int64_t grad = channels ? a.out_strides.of[PG_N] : plane_distance(a.out_strides, p);
  const int64_t in = channels ? a.in_strides.of[PG_N] : plane_distance(a.in_strides, p);

  const int64_t h_items = pg_ceil_div(p.h.in, plan->of_h);
  const int64_t boxes = pg_ceil_div(p.d.in, plan->of_d) * h_items;
  const int64_t cells = v * plan->of_d * (int64_t)plan->of_h;
  const int64_t enough = 2 * LANES_OF_PROCESSOR * (int64_t)pg_cuda_least_limits()->processors;
  int64_t of_lane = least(CELLS_OF_LANE / cells, boxes * across * planes / enough);
  if (of_lane < 1 || grad < 0 || in < 0) of_lane = 1;
  const int64_t groups = pg_ceil_div(planes, of_lane), most = INT32_MAX - threads;
  if (across > most / groups) return false;
  l->blocks = pg_ceil_div(groups * across, threads);
  if (boxes > most / l->blocks) return false;
  l->blocks *= boxes;
  plan->lanes = (uint32_t)(groups * across);
  plan->groups = (uint32_t)groups;
  plan->planes = (uint32_t)planes;
  plan->grad_step = groups * grad * element_bytes(problem);
  plan->in_step = groups * in * element_bytes(problem);
  plan->by_vectors = divider_of(vectors);
  plan->by_looped_channels = divider_of(looped);
  plan->by_boxes = divider_of(boxes);
  plan->by_h_items = divider_of(h_items);
  return true;
}

static int64_t threads_of(int64_t v) {
  return v == 1 ? strips_kind<1, 1, false, false, float>::THREADS
                : strips_kind<4, 1, false, false, float>::THREADS;
}

static bool plan_launch(const pg_problem &problem, int64_t v, avg_strips_launch *l) {
  const pg_facts &f = problem.facts;
  const int64_t usual = USUAL_ENTRIES / (v > 1 ? 2 : 1), overlap = 2 * f.d_windows * f.h_windows;
  const int64_t columns = f.planes / v * f.pool.w.in;
  plan_divisors(problem, v, l);
  cut_boxes(f.pool, overlap <= usual ? usual : least(overlap, MOST_ENTRIES), columns, &l->plan);
  return plan_strides(problem, &l->plan) && plan_scratch(f, v, threads_of(v), l) &&
         plan_lanes(problem, v, threads_of(v), l);
}

static bool fits(const pg_problem *problem, pg_tiling *tiling) {
  const pg_facts &f = problem->facts;
  if (problem->dtype == ACL_DOUBLE || !fits_avg_32_bits(*problem)) return false;
  if (f.cells == 0 || f.planes == 0 || f.outputs == 0) return false;
  if (f.largest_divisor == INT64_MAX) return false;
  *tiling = f.channels_last ? tile_avg_channels(f) : tile_avg_planes(f);
  avg_strips_launch one = {}, four = {};
  return plan_launch(*problem, 1, &one) && (!f.channels_last || plan_launch(*problem, 4, &four));
}

template <int V, bool DEEP, bool ONE, typename E>
static cudaError_t run_windows(const pg_cuda_call *call, const avg_job &j,
                               const avg_strips_launch &l) {
  const int64_t windows = call->task->problem.facts.w_windows;
  auto kernel = avg_strips<strips_kind<V, 0, DEEP, ONE, E>>;
  if (windows < 2) kernel = avg_strips<strips_kind<V, 1, DEEP, ONE, E>>;
  if (windows == 2) kernel = avg_strips<strips_kind<V, 2, DEEP, ONE, E>>;
  return launch(call, kernel, l.blocks, (int)threads_of(V), l.bytes, j, l.plan);
}

template <typename E>
static cudaError_t run_as(const pg_cuda_call *call) {
  const pg_problem &problem = call->task->problem;
  const avg_job j = avg_job_of(call);
  const bool deep = problem.facts.has_depth;
  const bool four = problem.facts.channels_last &&
                    is_vector(j.in, j.in_strides, sizeof(E), j.pool.c, 4 * sizeof(E)) &&
                    is_vector(j.grad, j.grad_strides, sizeof(E), j.pool.c, 4 * sizeof(E));
  avg_strips_launch l = {};
  if (!plan_launch(problem, four ? 4 : 1, &l)) return pg_cuda_avg_any.run(call);
  if (four)
    return deep ? run_windows<4, true, false, E>(call, j, l)
                : run_windows<4, false, false, E>(call, j, l);
  if (deep) return run_windows<1, true, false, E>(call, j, l);
  return l.one ? run_windows<1, false, true, E>(call, j, l)
               : run_windows<1, false, false, E>(call, j, l);
}

static cudaError_t run(const pg_cuda_call *call) {
  return with_avg_fp32_type(call, [call](auto e) { return run_as<decltype(e)>(call); });
}

PG_CUDA_METHOD(avg_strips) = {"strips", fits, nullptr, run, nullptr};
