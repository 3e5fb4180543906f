/* SPDX-License-Identifier: Apache-2.0 */
/* Averages with any windows and any strides, except where channels are neighbours in memory.
 *
 * A block computes one item, a box of cells, in three steps through shared memory, as the CPU does:
 *
 *   divide   each output that touches the box, once: quotients
 *   expand   quotients along W, each cell the sum of those that it lies in: an expanded row for
 *            each row of outputs
 *   add      expanded rows along H, and those sums along D, and write
 *
 * A cell costs the sum of its windows along the axes, and not their product.  Where windows are
 * short and do not overlap along W, the first two steps are one.  Sums are defined to begin with
 * +0, so that none is -0.  Quotients are added to +0 instead; sums of them may then begin with the
 * first.
 *
 * This is the last of the fast methods, for what no other one fits: strided tensors, rows of less
 * than 16 bytes, very long rows.  If the outputs that touch a box do not fit into shared memory,
 * the problem is left to avg_any. */
#include "cuda/kernels/avg_boxes.cuh"

enum {
  FEW_THREADS = 128, /* of a block whose item is small */
  MOST_THREADS = 256,
  SMALL_ITEM = 20 * 1024, /* bytes of scratch */
  SHORT_WINDOW = 8,       /* cells: a thread stores a whole window, and the others wait for it */
  MOST_PACKED = 1 << 16,  /* counts are packed into 16 bits */
  WHOLE_ROW = 256,        /* cells: rows up to this are not cut */
  SQUARE_WIDTH = 128      /* cells of a row that a square box has */
};

/* --- Add and write --- */

static __device__ __forceinline__ float plus(float a, float b) { return a + b; }
static __device__ __forceinline__ float4 plus(float4 a, float4 b) {
  return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

/* The sum of expanded rows at column x, or at four columns from x on.  slice_stride is the
 * distance, in floats, of the expanded rows of one slice of outputs from those of the next. */
template <typename F>
static __device__ __forceinline__ F add_expanded(const avg_boxes_plan &s, int32_t slice_stride,
                                                 expanded_rows rows, int32_t x) {
  const float *expanded = scratch_at<const float>(s.expanded) + rows.first + x;
  if (rows.counts == (1 | 1 << 16)) return *(const F *)expanded;
  F total = {};
  for (uint32_t d = 0; d < rows.counts >> 16; d++, expanded += slice_stride) {
    F sum = {};
    for (uint32_t h = 0; h < (rows.counts & 0xffff); h++)
      sum = plus(sum, *(const F *)(expanded + h * s.expanded_stride));
    total = plus(total, sum);
  }
  return total;
}

/* Contiguous cells, by groups of gradInput.  Cell 0 is the lead-th of its group. */
template <typename E>
static __device__ __forceinline__ void write_contiguous(const avg_job &j, const avg_boxes_plan &s,
                                                        const avg_boxes_item &b) {
  enum { GROUP = 16 / sizeof(E) };
  const expanded_rows *cell_row = scratch_at<const expanded_rows>(s.cell_row);
  const int32_t slice_stride = length(b.oh) * s.expanded_stride, cells = b.cell_rows * b.width;
  E *out = (E *)j.in + b.box.first * j.cells +
           ((int64_t)b.box.d.begin * j.h.in + b.box.h.begin) * j.w.in + b.box.w.begin;
  const int32_t lead = (int32_t)((uintptr_t)out % 16 / sizeof(E));
  const bool one_row = b.cell_rows == 1, quads = s.quads && lead % 4 == 0;
  for (int32_t g = threadIdx.x; g * GROUP < lead + cells; g += blockDim.x) {
    const int32_t first = g * GROUP - lead;
    float sum[GROUP];
    if (quads && first >= 0 && first + GROUP <= cells) {
#pragma unroll
      for (int i = 0; i < GROUP; i += 4) {
        const int32_t row = one_row ? 0 : (int32_t)over(first + i, j.by_w);
        const int32_t x = first + i - row * b.width;
        const float4 four = add_expanded<float4>(s, slice_stride, cell_row[row], x);
        memcpy(sum + i, &four, sizeof four);
      }
    } else {
      int32_t row = one_row ? 0 : (int32_t)over(max(first, 0), j.by_w);
      int32_t x = max(first, 0) - row * b.width;
      expanded_rows rows = cell_row[row];
#pragma unroll
      for (int i = 0; i < GROUP; i++) {
        if (first + i < 0 || first + i >= cells) continue;
        sum[i] = add_expanded<float>(s, slice_stride, rows, x);
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

/* Row by row, at any strides: V cells at a time, one or 16 bytes of them. */
template <int V, typename E>
static __device__ __forceinline__ void write_strided(const avg_job &j, const avg_boxes_plan &s,
                                                     const avg_boxes_item &b) {
  const expanded_rows *cell_row = scratch_at<const expanded_rows>(s.cell_row);
  const int32_t slice_stride = length(b.oh) * s.expanded_stride, units = (int32_t)s.by_units.by;
  for (int32_t u = threadIdx.x; u < b.cell_rows * units; u += blockDim.x) {
    const int32_t row = (int32_t)over(u, s.by_units), x = V * (u - row * units);
    E *out = scratch_at<E *>(s.write_row)[row] + x * j.in_strides.of[PG_W];
    float sum[V];
#pragma unroll
    for (int i = 0; i < V; i++)
      if (x + i < b.width) sum[i] = add_expanded<float>(s, slice_stride, cell_row[row], x + i);
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

/* --- The kernel --- */

template <boxes_expansion EXPANSION>
static __device__ __forceinline__ avg_boxes_item avg_boxes_item_of(const avg_job &j) {
  avg_boxes_item b;
  b.box = box_32(j.cut, blockIdx.x);
  b.od = touching(j.d, b.box.d.begin, b.box.d.end);
  b.oh = touching(j.h, b.box.h.begin, b.box.h.end);
  b.ow = touching(j.w, b.box.w.begin, b.box.w.end);
  b.width = length(b.box.w);
  b.output_rows = b.box.planes * length(b.od) * length(b.oh);
  b.cell_rows = b.box.planes * length(b.box.d) * length(b.box.h);
  if (EXPANSION == BY_ONE) {
    b.ow.begin = b.box.w.begin + j.w.pad - j.w.reach;
    b.ow.end = b.ow.begin + b.width + j.w.reach;
  }
  return b;
}

template <boxes_expansion EXPANSION, typename E>
static __global__ void __launch_bounds__(MOST_THREADS)
    avg_boxes(const __grid_constant__ avg_job j, const __grid_constant__ avg_boxes_plan s) {
  const avg_boxes_item b = avg_boxes_item_of<EXPANSION>(j);
  if (EXPANSION == AT_ONCE && s.gaps)
    for (int32_t i = threadIdx.x; i < b.output_rows * s.expanded_stride; i += blockDim.x)
      scratch_at<float>(s.expanded)[i] = 0;
  prepare_outputs<E>(j, s, b);
  prepare_cells<E>(j, s, b);
  __syncthreads();
  if (b.output_rows > 0 && length(b.ow) > 0) divide_outputs<EXPANSION, E>(j, s, b);
  __syncthreads();
  if (EXPANSION == BY_ONE) expand_by_one(j, s, b);
  if (EXPANSION == BY_TABLE) expand_by_table(s, b);
  if (EXPANSION != AT_ONCE) __syncthreads();
  if (s.contiguous)
    write_contiguous<E>(j, s, b);
  else if (s.groups)
    write_strided<16 / (int)sizeof(E), E>(j, s, b);
  else
    write_strided<1, E>(j, s, b);
}

/* --- On the host --- */

static bool has_gaps(const pg_axis &a) {
  return a.kernel != 0 && (a.kernel != a.stride || a.out * a.stride - a.pad < a.in);
}

/* Adaptive windows that do not overlap come here as sliding ones. */
static boxes_expansion expansion_of(const pg_axis &a) {
  if (a.kernel == 0) return BY_TABLE;
  if (a.out > 0 && pg_most_windows(&a) <= 1 && a.kernel <= SHORT_WINDOW) return AT_ONCE;
  return a.stride == 1 ? BY_ONE : BY_TABLE;
}

static void plan_writes(const avg_job &j, int64_t group, avg_boxes_plan *s) {
  const pg_pooling &p = j.pool;
  const pg_tiling &t = j.tiling;
  const bool whole_rows = t.w == p.w.in, whole_slices = whole_rows && t.h == p.h.in;
  const bool of_slice = t.planes == 1 && t.d == 1, of_row = of_slice && t.h == 1;
  s->contiguous = j.flat_in && (of_row || (whole_rows && of_slice) ||
                                (whole_slices && (t.planes == 1 || t.d == p.d.in)));
  s->quads = t.w % 4 == 0 || of_row;
  s->groups = j.in_strides.of[PG_W] == 1 && (uintptr_t)j.in % 16 == 0 && t.w % group == 0;
  for (int axis = PG_N; axis < PG_W; axis++)
    s->groups = s->groups && j.in_strides.of[axis] % group == 0;
  s->by_units = divider_of(s->groups ? pg_ceil_div(t.w, group) : t.w);
}

/* Returns the words of scratch, or -1 if an item touches too many outputs. */
static int64_t plan_words(const avg_job &j, int64_t element_bytes, avg_boxes_plan *s) {
  const pg_axis &w = j.pool.w;
  const pg_tiling &t = j.tiling;
  const int64_t deep = pg_most_touching(&j.pool.d, t.d), tall = pg_most_touching(&j.pool.h, t.h);
  const int64_t reach = w.kernel == 0 ? 0 : w.kernel - 1;
  s->expansion = expansion_of(w);
  s->gaps = has_gaps(w);
  plan_writes(j, 16 / element_bytes, s);
  const bool by_one = s->expansion == BY_ONE;
  const int64_t count = by_one ? t.w + reach : pg_most_touching(&w, t.w);
  if (deep >= MOST_PACKED || tall >= MOST_PACKED || count >= MOST_PACKED ||
      deep * tall >= MOST_PACKED)
    return -1;
  const int64_t output_rows = t.planes * deep * tall, cell_rows = t.planes * t.d * t.h;
  const int64_t quads = pg_ceil_div(t.w, 4);
  s->expanded_stride = (int32_t)(4 * quads);
  s->quotient_stride = (int32_t)(4 * pg_ceil_div(by_one ? 4 * quads + reach + 4 : count, 4));
  s->by_quads = divider_of(quads);
  int64_t end = 0;
  s->output_row = reserve_words(2 * output_rows, &end);
  s->row_divisor = reserve_words(output_rows, &end);
  s->extent_w = reserve_words(count, &end);
  s->cell_row = reserve_words(2 * cell_rows, &end);
  s->write_row = reserve_words(s->contiguous ? 0 : 2 * cell_rows, &end);
  s->span_w = reserve_words(s->expansion == BY_TABLE ? t.w : 0, &end);
  s->quotient = reserve_words(s->expansion == AT_ONCE ? 0 : output_rows * s->quotient_stride, &end);
  s->expanded = reserve_words(output_rows * s->expanded_stride, &end);
  return end;
}

/* Where windows overlap, a box touches more outputs than it has cells, and a square one the fewest.
 */
static pg_tiling tile_boxes(const pg_facts &f) {
  const pg_pooling &p = f.pool;
  if (p.w.in <= WHOLE_ROW || p.w.kernel <= p.w.stride) return tile_avg_planes(f);
  return pg_tile_square(&p, BOX_CELLS, SQUARE_WIDTH);
}

/* As plan_words before addresses are known: as if no cells were contiguous, which needs more. */
static int64_t words_needed(const pg_problem *problem, const pg_tiling &tiling) {
  avg_job j = {};
  avg_boxes_plan s = {};
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
  const avg_job j = avg_job_of(call);
  avg_boxes_plan s = {};
  const int64_t bytes = plan_words(j, sizeof(E), &s) * (int64_t)sizeof(float);
  const int threads = bytes <= SMALL_ITEM ? FEW_THREADS : MOST_THREADS;
  switch (s.expansion) {
    case AT_ONCE:
      return launch(call, avg_boxes<AT_ONCE, E>, j.items, threads, bytes, j, s);
    case BY_ONE:
      return launch(call, avg_boxes<BY_ONE, E>, j.items, threads, bytes, j, s);
    default:
      return launch(call, avg_boxes<BY_TABLE, E>, j.items, threads, bytes, j, s);
  }
}

static cudaError_t run(const pg_cuda_call *call) {
  return with_avg_fp32_type(call, [call](auto e) { return run_as<decltype(e)>(call); });
}

PG_CUDA_METHOD(avg_boxes) = {"boxes", fits, nullptr, run, nullptr};
