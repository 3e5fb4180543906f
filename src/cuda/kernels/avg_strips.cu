/* SPDX-License-Identifier: Apache-2.0 */
/* Averages with any windows and any strides, in two or three dimensions.
 *
 * A thread has the same column of cells in four planes, in a box of some rows and slices.  The
 * planes are neighbouring channels where these are neighbours in memory.  It works alone:
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
 * same column of several fours of planes one after the other, so that finding its windows costs
 * little. */
#include "cuda/kernels/avg_strips.cuh"
#include "cuda/kernels/avg_strips_plan.cuh"
#include "cuda/kernels/in_register.cuh"

/* WINDOWS: the most along H and along W that a cell lies in, if these are one or two, else 0.
 * DEEP: there is depth. */
template <strips_planes PLANES_, int WINDOWS_, bool DEEP_, typename E_>
struct strips_kind {
  static constexpr strips_planes PLANES = PLANES_;
  static constexpr int WINDOWS = WINDOWS_;
  static constexpr bool DEEP = DEEP_;
  typedef E_ E;
  static constexpr int V = PLANES == ONE_PLANE ? 1 : 4;
  static constexpr int THREADS = PLANES == ONE_PLANE ? STRIPS_OF_ONE : STRIPS_OF_FOUR;
  static constexpr int ENTRY = 4 * V * THREADS; /* bytes of the sums of all lanes */
  /* Rows of outputs whose loads are issued together. */
  static constexpr int TOGETHER = V * sizeof(E) == 16 ? 2 : STRIPS_TOGETHER;
};

/* The columns of a lane in V planes. */
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

template <typename K>
static __device__ __forceinline__ void load_outputs(const char *from, uint32_t distance,
                                                    vector_of<typename K::E, K::V> *to) {
  typedef typename K::E E;
  if constexpr (K::PLANES == APART) {
#pragma unroll
    for (int v = 0; v < K::V; v++) to->of[v] = *(const E *)(from + (uint64_t)distance * v);
  } else {
    to->load((const E *)from);
  }
}

/* sum += the quotients of a vector of outputs, if `counts`.  FIRST: the sums are still 0.  No
 * quotient is -0, so no sum is. */
template <bool EXACT, bool FIRST, typename K>
static __device__ __forceinline__ void add_quotients(float *sum,
                                                     const vector_of<typename K::E, K::V> &grad,
                                                     const pg_divisor &by, bool counts,
                                                     pg_seen<typename K::E> *seen) {
#pragma unroll
  for (int v = 0; v < K::V; v++) {
    const float g = widened(grad.of[v]);
    if (!EXACT) seen->note_least(g);
    const float more = EXACT ? true_quotient(g, by) : quotient(g, by);
    if (counts) sum[v] = FIRST ? more : sum[v] + more;
  }
}

/* The divisor that is u entries behind the one at this address. */
static __device__ __forceinline__ pg_divisor divisor_at(const avg_strips_plan &p, uint32_t address,
                                                        int u) {
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
#pragma unroll
  for (int u = 0; u < U; u++) row[u] = global_in_register(row[u]);
  const uint32_t divisors = entry * 8 * p.classes;
  vector_of<E, V> grad[U][LOADED];
  if constexpr (K::WINDOWS > 0) {
#pragma unroll
    for (int u = 0; u < U; u++)
#pragma unroll
      for (int i = 0; i < LOADED; i++)
        load_outputs<K>(row[u] + i * column.second, p.grad_distance, &grad[u][i]);
#pragma unroll
    for (int u = 0; u < U; u++) {
      const pg_divisor by = divisor_at(p, column.divisors[0] + divisors, u);
      add_quotients<EXACT, true, K>(sum[u], grad[u][0], by, column.count > 0, seen);
      if constexpr (LOADED > 1) {
        const pg_divisor other = divisor_at(p, column.divisors[1] + divisors, u);
        add_quotients<EXACT, false, K>(sum[u], grad[u][1], other, column.count > 1, seen);
      }
    }
  } else {
#pragma unroll(EXACT || V > 1 ? 1 : 2)
    for (uint32_t i = 0; i < (uint32_t)column.count; i++) {
#pragma unroll
      for (int u = 0; u < U; u++)
        load_outputs<K>(row[u] + (uint64_t)i * p.grad_w, p.grad_distance, &grad[u][0]);
      const uint32_t first = table_word(column.class_of + i * 4 * K::THREADS);
#pragma unroll
      for (int u = 0; u < U; u++)
        add_quotients<EXACT, false, K>(sum[u], grad[u][0], divisor_at(p, first + divisors, u), true,
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
template <strips_planes PLANES, typename E>
struct strips_result {
  E one;
  __device__ __forceinline__ explicit strips_result(const float *sum) { put(&one, *sum); }
  __device__ __forceinline__ void store(char *const *to, uint64_t row) const {
    *(E *)(to[0] + row) = one;
  }
};
template <typename E>
struct strips_result<CHANNELS, E> {
  uint2 words;
  __device__ __forceinline__ explicit strips_result(const float *sum)
      : words(make_uint2(packed(E(), sum[0], sum[1]), packed(E(), sum[2], sum[3]))) {}
  __device__ __forceinline__ void store(char *const *to, uint64_t row) const {
    __stcs((uint2 *)(to[0] + row), words);
  }
};
template <>
struct strips_result<CHANNELS, float> {
  float4 words;
  __device__ __forceinline__ explicit strips_result(const float *sum)
      : words(make_float4(sum[0], sum[1], sum[2], sum[3])) {}
  __device__ __forceinline__ void store(char *const *to, uint64_t row) const {
    __stcs((float4 *)(to[0] + row), words);
  }
};
template <typename E>
struct strips_result<APART, E> {
  E of[4];
  __device__ __forceinline__ explicit strips_result(const float *sum) {
#pragma unroll
    for (int v = 0; v < 4; v++) put(&of[v], sum[v]);
  }
  __device__ __forceinline__ void store(char *const *to, uint64_t row) const {
#pragma unroll
    for (int v = 0; v < 4; v++) *(E *)(to[v] + row) = of[v];
  }
};

/* Adds `count` entries that follow each other. */
template <typename K>
static __device__ __forceinline__ void add_entries(float *sum, uint32_t from, uint32_t count) {
  if constexpr (K::WINDOWS == 0) {
#pragma unroll 1
    for (; count >= 4; count -= 4, from += 4 * K::ENTRY)
#pragma unroll
      for (int i = 0; i < 4; i++) add_kept<K::V>(sum, from + i * K::ENTRY);
  }
  if (count > 0) add_kept<K::V>(sum, from);
  if (K::WINDOWS != 1 && count > 1) add_kept<K::V>(sum, from + K::ENTRY);
  if (K::WINDOWS == 0 && count > 2) add_kept<K::V>(sum, from + 2 * K::ENTRY);
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

/* The slices of a column in the planes that are computed at once: one for each access.  Their
 * addresses stay in registers, so that the address of a row is one instruction. */
template <typename K>
struct strips_slices {
  char *of[K::PLANES == APART ? 4 : 1];

  __device__ __forceinline__ strips_slices(const avg_strips_plan &p, const strips_column &column,
                                           uint32_t d) {
    char *first = column.in + (uint64_t)d * p.in_d;
    of[0] = global_in_register(first);
    if constexpr (K::PLANES == APART) {
#pragma unroll
      for (int v = 1; v < 4; v++) of[v] = global_in_register(first + (uint64_t)p.in_distance * v);
    }
  }
};

/* Writes rows [row, end); row < end. */
template <typename K>
static __device__ __forceinline__ void store_rows(
    const avg_strips_plan &p, const strips_result<K::PLANES, typename K::E> &result,
    const strips_slices<K> &slices, uint32_t row, uint32_t end) {
  result.store(slices.of, (uint64_t)row * p.in_h);
  if (++row >= end) return;
#pragma unroll 1
  for (; row + 4 <= end; row += 4)
#pragma unroll
    for (int i = 0; i < 4; i++) result.store(slices.of, (uint64_t)(row + i) * p.in_h);
#pragma unroll 1
  for (; row < end; row++) result.store(slices.of, (uint64_t)row * p.in_h);
}

/* True if a sum is not finite: quotients of infinite gradients are NaNs, unless they are exact. */
template <typename K>
static __device__ __forceinline__ bool write_column(const avg_strips_plan &p,
                                                    const strips_tables &t, const avg_strips_box &b,
                                                    const strips_column &column) {
  const uint32_t rows = (uint32_t)length(b.h), slices = K::DEEP ? (uint32_t)length(b.d) : 1;
  const uint32_t band_d = table_at(t, p.band_d), band_h = table_at(t, p.band_h);
  const uint32_t slice_bytes = (uint32_t)length(b.oh) * K::ENTRY;
  const strips_slices<K> first(p, column, 0);
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
      const strips_result<K::PLANES, typename K::E> result(total);
      if constexpr (K::DEEP) {
#pragma unroll 1
        for (uint32_t i = d; i < deep.end; i++)
          store_rows<K>(p, result, strips_slices<K>(p, column, i), h, band.end);
      } else {
        store_rows<K>(p, result, first, h, band.end);
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

/* The column of a lane in the planes with this number, where lanes are counted through all blocks.
 */
template <typename K>
static __device__ __forceinline__ strips_column column_of(const avg_job &j,
                                                          const avg_strips_plan &p,
                                                          const strips_tables &t,
                                                          const avg_strips_box &b, uint32_t lane,
                                                          uint32_t number) {
  typedef typename K::E E;
  const uint32_t position = over(lane, p.by_vectors), group = over(position, j.by_w);
  const uint32_t plane = K::PLANES == APART ? min(number * K::V, p.last_four) : number;
  const uint32_t n = over(plane, p.by_looped_channels);
  const uint32_t c = (K::PLANES == CHANNELS ? K::V : 1) * (lane - position * p.by_vectors.by) +
                     plane - n * p.by_looped_channels.by;
  const int32_t w = (int32_t)(position - group * j.by_w.by);
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
                                                    uint32_t number) {
  const uint32_t block = over(blockIdx.x, p.by_boxes);
  const avg_strips_box b = strips_box_of(j, p, blockIdx.x - block * p.by_boxes.by);
  const strips_tables t = tables_of<K>(p);
  const strips_column column = column_of<K>(j, p, t, b, block * K::THREADS + threadIdx.x, number);
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
  prepare_entries(j, p, b);
  __syncthreads();
  const uint32_t lane = block * K::THREADS + threadIdx.x;
  if (lane >= p.lanes) return;
  const strips_tables t = tables_of<K>(p);
  uint32_t number = over(over(lane, p.by_vectors), j.by_w);
  strips_column column = column_of<K>(j, p, t, b, lane, number);
#pragma unroll 1
  while (number < p.numbers) {
    bool odd = p.exact;
    if (!odd) {
      odd = expand_column<false, K>(p, t, column, (uint32_t)b.entries);
      odd = write_column<K>(p, t, b, column) || odd;
    }
    if (odd) compute_exactly<K>(j, p, number);
    number += p.groups;
    column.grad += p.grad_step;
    column.in += p.in_step;
    if (K::PLANES == APART && number == p.shifted) {
      column.grad -= p.grad_back;
      column.in -= p.in_back;
    }
  }
}

/* --- On the host --- */

static bool fits(const pg_problem *problem, pg_tiling *tiling) {
  const pg_facts &f = problem->facts;
  if (problem->dtype == ACL_DOUBLE || !fits_avg_32_bits(*problem)) return false;
  if (f.cells == 0 || f.planes == 0 || f.outputs == 0) return false;
  if (f.largest_divisor == INT64_MAX) return false;
  *tiling = f.channels_last ? tile_avg_channels(f) : tile_avg_planes(f);
  avg_strips_launch any = {}, aligned = {};
  return plan_launch(*problem, false, &any) &&
         (!f.channels_last || plan_launch(*problem, true, &aligned));
}

template <strips_planes PLANES, bool DEEP, typename E>
static cudaError_t run_windows(const pg_cuda_call *call, const avg_strips_launch &l) {
  const int64_t windows = most_windows(call->task->problem.facts);
  auto kernel = avg_strips<strips_kind<PLANES, 0, DEEP, E>>;
  if (windows < 2) kernel = avg_strips<strips_kind<PLANES, 1, DEEP, E>>;
  if (windows == 2) kernel = avg_strips<strips_kind<PLANES, 2, DEEP, E>>;
  return launch(call, kernel, l.blocks, (int)l.threads, l.bytes, avg_job_of(call), l.plan);
}

template <strips_planes PLANES, typename E>
static cudaError_t run_planes(const pg_cuda_call *call, const avg_strips_launch &l) {
  return call->task->problem.facts.has_depth ? run_windows<PLANES, true, E>(call, l)
                                             : run_windows<PLANES, false, E>(call, l);
}

template <typename E>
static cudaError_t run_as(const pg_cuda_call *call) {
  const pg_problem &problem = call->task->problem;
  const pg_avg_backward &a = problem.args.avg_backward;
  const int64_t c = problem.facts.pool.c, bytes = sizeof(E);
  const bool aligned = problem.facts.channels_last &&
                       is_vector(a.grad_in, a.in_strides, bytes, c, 4 * bytes) &&
                       is_vector(a.grad_out, a.out_strides, bytes, c, 4 * bytes);
  avg_strips_launch l = {};
  if (!plan_launch(problem, aligned, &l)) return pg_cuda_avg_any.run(call);
  switch (l.at_once) {
    case CHANNELS:
      return run_planes<CHANNELS, E>(call, l);
    case APART:
      return run_planes<APART, E>(call, l);
    default:
      return run_planes<ONE_PLANE, E>(call, l);
  }
}

static cudaError_t run(const pg_cuda_call *call) {
  return with_fp32_type(call, [call](auto e) { return run_as<decltype(e)>(call); });
}

PG_CUDA_METHOD(avg_strips) = {"strips", fits, nullptr, run, nullptr};
