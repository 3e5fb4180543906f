/* SPDX-License-Identifier: Apache-2.0 */
/* SPREAD of planes whose cells do not lie among other planes'.
 *
 * A block makes one item in three passes through shared memory, as the CPU does:
 *
 *   divide   each output that touches the box, once: terms
 *   lay      terms along W, each cell the sum of those it lies in: laid rows, one a row of outputs
 *   add      laid rows along H, those sums along D, and write
 *
 * Terms are made by adding them to +0, and a sum that began at +0 is never -0: no other sum has to
 * begin there.  Where short windows do not overlap along W a term is laid as soon as it is made.
 * Boxes that touch more outputs than shared memory holds are left to avg_any. */
#include "cuda/kernels/avg_boxes.cuh"

/* One cell, or four neighbours in a row. */
template <typename F>
static __device__ __forceinline__ F zero_of();
template <>
__device__ __forceinline__ float zero_of<float>() {
  return 0;
}
template <>
__device__ __forceinline__ float4 zero_of<float4>() {
  return make_float4(0, 0, 0, 0);
}
static __device__ __forceinline__ float plus(float a, float b) { return a + b; }
static __device__ __forceinline__ float4 plus(float4 a, float4 b) {
  return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

template <typename F>
static __device__ __forceinline__ F add_rows(const spread_plan &s, int32_t slice, uint2 rows,
                                             int32_t x) {
  const float *laid = floats(s.laid) + rows.x + x;
  if (rows.y == (1 | 1 << 16)) return *(const F *)laid;
  F total = zero_of<F>();
  for (uint32_t d = 0; d < rows.y >> 16; d++, laid += slice) {
    F sum = zero_of<F>();
    for (uint32_t h = 0; h < (rows.y & 0xffff); h++)
      sum = plus(sum, *(const F *)(laid + h * s.laid_pitch));
    total = plus(total, sum);
  }
  return total;
}

/* --- Writing --- */

/* A run of cells, by groups of 16 bytes; cell 0 is the lead-th of the first group. */
template <typename E>
static __device__ __forceinline__ void write_run(const avg_job &j, const spread_plan &s,
                                                 const spread_box &b) {
  enum { GROUP = 16 / sizeof(E) };
  const uint2 *cell_row = (const uint2 *)floats(s.cell_row);
  const int32_t slice = length(b.oh) * s.laid_pitch, cells = b.cell_rows * b.width;
  E *out = (E *)j.in + b.at.first * j.cells +
           ((int64_t)b.at.d.begin * j.h.in + b.at.h.begin) * j.w.in + b.at.w.begin;
  const int32_t lead = (int32_t)((uintptr_t)out % 16 / sizeof(E));
  const bool one_row = b.cell_rows == 1, quads = s.quads && lead % 4 == 0;
  for (int32_t g = threadIdx.x; g * GROUP < lead + cells; g += blockDim.x) {
    const int32_t first = g * GROUP - lead;
    float sum[GROUP];
    if (quads && first >= 0 && first + GROUP <= cells) {
#pragma unroll
      for (int i = 0; i < GROUP; i += 4) {
        const int32_t row = one_row ? 0 : (int32_t)over(first + i, j.by_w);
        const float4 four = add_rows<float4>(s, slice, cell_row[row], first + i - row * b.width);
        sum[i] = four.x;
        sum[i + 1] = four.y;
        sum[i + 2] = four.z;
        sum[i + 3] = four.w;
      }
    } else {
      int32_t row = one_row ? 0 : (int32_t)over(max(first, 0), j.by_w);
      int32_t x = max(first, 0) - row * b.width;
      uint2 rows = cell_row[row];
#pragma unroll
      for (int i = 0; i < GROUP; i++) {
        if (first + i < 0 || first + i >= cells) continue;
        sum[i] = add_rows<float>(s, slice, rows, x);
        if (++x == b.width && row + 1 < b.cell_rows) {
          x = 0;
          rows = cell_row[++row];
        }
      }
    }
    if (first >= 0 && first + GROUP <= cells) {
      put_16(out + first, sum);
    } else {
#pragma unroll
      for (int i = 0; i < GROUP; i++)
        if (first + i >= 0 && first + i < cells) put(out + first + i, sum[i]);
    }
  }
}

/* Row by row, at any strides: V cells at a time where they are 16 bytes, else one. */
template <int V, typename E>
static __device__ __forceinline__ void write_rows(const avg_job &j, const spread_plan &s,
                                                  const spread_box &b) {
  const uint2 *cell_row = (const uint2 *)floats(s.cell_row);
  const int32_t slice = length(b.oh) * s.laid_pitch, units = (int32_t)s.units_of_row.by;
  for (int32_t u = threadIdx.x; u < b.cell_rows * units; u += blockDim.x) {
    const int32_t row = (int32_t)over(u, s.units_of_row), x = V * (u - row * units);
    E *out = ((E **)floats(s.out_row))[row] + x * j.in_strides.of[PG_W];
    float sum[V];
#pragma unroll
    for (int i = 0; i < V; i++)
      if (x + i < b.width) sum[i] = add_rows<float>(s, slice, cell_row[row], x + i);
    if constexpr (V > 1) {
      if (x + V <= b.width) {
        put_16(out, sum);
        continue;
      }
    }
#pragma unroll
    for (int i = 0; i < V; i++)
      if (x + i < b.width) put(out + i * j.in_strides.of[PG_W], sum[i]);
  }
}

template <how_laid HOW, typename E>
static __global__ void __launch_bounds__(2 * FEW_THREADS)
    spread(const __grid_constant__ avg_job j, const __grid_constant__ spread_plan s) {
  spread_box b;
  b.at = box_32(j.cut, blockIdx.x);
  b.od = touching(j.d, b.at.d.begin, b.at.d.end);
  b.oh = touching(j.h, b.at.h.begin, b.at.h.end);
  b.ow = touching(j.w, b.at.w.begin, b.at.w.end);
  b.width = length(b.at.w);
  b.rows = b.at.planes * length(b.od) * length(b.oh);
  b.cell_rows = b.at.planes * length(b.at.d) * length(b.at.h);
  if (HOW == STEADY) {
    b.ow.begin = b.at.w.begin + j.w.pad - j.w.reach;
    b.ow.end = b.ow.begin + b.width + j.w.reach;
  }
  if (HOW == AT_ONCE && s.gaps)
    for (int32_t i = threadIdx.x; i < b.rows * s.laid_pitch; i += blockDim.x) floats(s.laid)[i] = 0;
  know_rows<E>(j, s, b);
  know_cell_rows<E>(j, s, b);
  __syncthreads();
  if (b.rows > 0 && length(b.ow) > 0) divide<HOW, E>(j, s, b);
  __syncthreads();
  if (HOW == STEADY) lay_steady(j, s, b);
  if (HOW == BY_TABLE) lay_by_table(s, b);
  if (HOW != AT_ONCE) __syncthreads();
  if (s.runs)
    write_run<E>(j, s, b);
  else if (s.vectors)
    write_rows<16 / (int)sizeof(E), E>(j, s, b);
  else
    write_rows<1, E>(j, s, b);
}

/* --- On the host --- */

static int64_t quads_of(int64_t count) { return (count + 3) / 4; }

static bool covers_all(const pg_axis &a) {
  return a.kernel == 0 || (a.kernel == a.stride && a.out * a.stride - a.pad >= a.in);
}

static how_laid how_laid_of(const pg_axis &a) {
  const int64_t longest = a.kernel == 0 ? a.in / (a.out > 0 ? a.out : 1) + 2 : a.kernel;
  if (pg_most_windows(&a) <= 1 && a.out > 0 && longest <= SHORT) return AT_ONCE;
  return a.kernel != 0 && a.stride == 1 ? STEADY : BY_TABLE;
}

/* Takes `words` of shared memory, 16 bytes aligned. */
static int32_t place(int64_t words, int64_t *end) {
  const int64_t begin = *end;
  *end += (words + 3) / 4 * 4;
  return (int32_t)begin;
}

/* Words of shared memory, or -1 if an item is not for this kernel. */
static int64_t plan_words(const avg_job &j, int64_t element_bytes, spread_plan *s) {
  enum { MOST = 1 << 16 };
  const pg_pooling &p = j.pool;
  const pg_tiling &t = j.tiling;
  const int64_t deep = pg_most_touching(&p.d, t.d), tall = pg_most_touching(&p.h, t.h);
  const int64_t reach = p.w.kernel == 0 ? 0 : p.w.kernel - 1, group = 16 / element_bytes;
  s->how = how_laid_of(p.w);
  s->gaps = !covers_all(p.w);
  const bool whole_rows = t.w == p.w.in, whole_slices = whole_rows && t.h == p.h.in;
  s->runs = j.flat_in &&
            ((t.d == 1 && t.h == 1 && t.planes == 1) || (whole_rows && t.d == 1 && t.planes == 1) ||
             (whole_slices && (t.planes == 1 || t.d == p.d.in)));
  s->quads = t.w % 4 == 0 || (t.d == 1 && t.h == 1 && t.planes == 1);
  s->vectors = j.in_strides.of[PG_W] == 1 && (uintptr_t)j.in % 16 == 0 && t.w % group == 0;
  for (int axis = PG_N; axis < PG_W; axis++)
    s->vectors = s->vectors && j.in_strides.of[axis] % group == 0;
  const int64_t count = s->how == STEADY ? t.w + reach : pg_most_touching(&p.w, t.w);
  const int64_t cell_rows = t.planes * t.d * t.h;
  if (deep >= MOST || tall >= MOST || count >= MOST || deep * tall >= MOST) return -1;
  const int64_t rows = t.planes * deep * tall;
  s->laid_pitch = (int32_t)(4 * quads_of(t.w));
  s->term_pitch = (int32_t)(4 * quads_of(s->how == STEADY ? s->laid_pitch + reach + 4 : count));
  s->quads_of_row = divider_of(quads_of(t.w));
  s->units_of_row = divider_of(s->vectors ? (t.w + group - 1) / group : t.w);
  int64_t end = 0;
  s->grad_row = place(2 * rows, &end);
  s->divisor = place(rows, &end);
  s->width = place(count, &end);
  s->cell_row = place(2 * cell_rows, &end);
  s->out_row = place(s->runs ? 0 : 2 * cell_rows, &end);
  s->map = place(s->how == BY_TABLE ? t.w : 0, &end);
  s->term = place(s->how == AT_ONCE ? 0 : rows * s->term_pitch, &end);
  s->laid = place(rows * s->laid_pitch, &end);
  return end;
}

/* Where windows overlap, a box reads more outputs than it has cells, and a square one the fewest.
 */
static pg_tiling tile_boxes(const pg_facts &f) {
  enum { SQUARE = 128, FROM = 256 };
  const pg_pooling &p = f.pool;
  if (p.w.in <= FROM || p.w.kernel <= p.w.stride) return tile_avg_planes(f);
  return pg_tile_square(&p, BOX_CELLS, SQUARE);
}

/* A job before its addresses are known: enough for plan_words. */
static int64_t words_needed(const pg_problem *problem, const pg_tiling &tiling) {
  avg_job j = {};
  spread_plan s = {};
  j.pool = problem->facts.pool;
  j.tiling = tiling;
  j.in_strides = problem->args.avg_backward.in_strides;
  return plan_words(j, element_bytes(*problem), &s);
}

static bool fits(const pg_problem *problem, pg_tiling *tiling) {
  if (!fits_avg_planes(*problem)) return false;
  *tiling = tile_boxes(problem->facts);
  const int64_t words = words_needed(problem, *tiling);
  return words >= 0 && words * (int64_t)sizeof(float) <= pg_cuda_least_limits()->shared_bytes;
}

template <typename E>
static cudaError_t run_as(const pg_cuda_call *call) {
  enum { SMALL = 20 * 1024 };
  const avg_job j = avg_job_of(call);
  spread_plan s = {};
  const int64_t bytes = plan_words(j, sizeof(E), &s) * (int64_t)sizeof(float);
  const int threads = bytes <= SMALL ? FEW_THREADS : 2 * FEW_THREADS;
  switch (s.how) {
    case AT_ONCE:
      return launch(call, spread<AT_ONCE, E>, j.items, threads, bytes, j, s);
    case STEADY:
      return launch(call, spread<STEADY, E>, j.items, threads, bytes, j, s);
    default:
      return launch(call, spread<BY_TABLE, E>, j.items, threads, bytes, j, s);
  }
}

static cudaError_t run(const pg_cuda_call *call) {
  return with_avg_fp32_type(call, [call](auto e) { return run_as<decltype(e)>(call); });
}

PG_CUDA_METHOD(avg_boxes) = {"boxes", fits, nullptr, run, nullptr};
