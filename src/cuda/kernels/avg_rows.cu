/* SPDX-License-Identifier: Apache-2.0 */
/* Averages with any windows, where gradInput is contiguous and its rows have at least 16 bytes.
 *
 * Along an axis, neighbouring cells that lie in the same windows are a band.  Rows that are in the
 * same band along D and in the same band along H are equal.  So a block computes only one result
 * row for each pair of bands of its box, in the form in which it is written, and copies it to all
 * rows that it is for:
 *
 *   divide   each output that touches the box, once: quotients
 *   expand   quotients along W, each cell the sum of those that it lies in: an expanded row for
 *            each row of outputs
 *   add      expanded rows along H, and those sums along D: result rows of elements
 *   copy     16 bytes at a time, also where they lie in two rows
 *
 * It is fast where bands have several rows, because most of the work is then copying.  Where they
 * have few, everything goes through shared memory twice and each step waits for the one before, so
 * these problems are left to avg_strips, and so are those of which even one row of cells has too
 * many quotients, expanded rows and result rows for shared memory. */
#include "cuda/kernels/avg_job.cuh"
#include "cuda/kernels/scratch_layout.cuh"

enum {
  THREADS = 256,
  SCRATCH_BYTES = 44 * 1024, /* at most, so that a multiprocessor has room for several blocks */
  LEAST_BAND = 4,            /* rows of a band, on average */
  MOST_CELLS = 1 << 18,      /* of a box */
  FEW_CELLS = 8192,          /* a box is not cut below this to get more blocks */
  TOGETHER_CELLS = 32768,    /* small planes come together in a box up to this */
  BLOCKS_OF_PROCESSOR = 8,   /* so that all multiprocessors have about the same to do */
  MOST_LENGTH = 1 << 12      /* of a row, and outputs of an axis: spans are packed into 16 bits */
};

/* An axis of a box, D or H; the last box of the axis may have less. */
struct avg_rows_axis {
  int32_t outputs, cells, bands;
  bool banded; /* else each cell counts as a band */
  pg_divider by_outputs, by_cells, by_bands;
};

struct avg_rows_plan {
  avg_rows_axis d, h;
  int32_t planes;  /* of a box */
  int32_t outputs; /* of a plane */
  int32_t d_items, h_items;
  int32_t row_stride; /* of expanded rows in floats, and of result rows in elements */
  /* Words of the scratch where tables begin: */
  int32_t span_d, span_h, spans_end;    /* for each band: the outputs that it lies in */
  int32_t band_d, band_h;               /* for each cell of the box along an axis */
  int32_t span_w;                       /* for each column: the outputs that it lies in */
  int32_t extent_d, extent_h, extent_w; /* for each output of the box along an axis */
  int32_t result_of_row;                /* for each row of cells: where its result row begins */
  int32_t quotient, expanded, result;   /* rows */
  pg_divider by_out_w, by_groups, by_d_items, by_h_items;
};

/* The box of a block, and the outputs that touch it. */
struct avg_rows_box {
  uint32_t plane;
  int32_t planes;
  pg_span d, h, od, oh;
  int32_t rows; /* of cells */
};

static __device__ __forceinline__ avg_rows_box box_of(const avg_job &j, const avg_rows_plan &r) {
  const uint32_t slices = over(blockIdx.x, r.by_h_items), planes = over(slices, r.by_d_items);
  avg_rows_box b;
  b.plane = planes * r.planes;
  b.planes = (int32_t)min((int64_t)r.planes, j.cut.planes - b.plane);
  b.h = cut((int32_t)(blockIdx.x - slices * r.h_items), r.h.cells, j.h.in);
  b.d = cut((int32_t)(slices - planes * r.d_items), r.d.cells, j.d.in);
  b.od = touching(j.d, b.d.begin, b.d.end);
  b.oh = touching(j.h, b.h.begin, b.h.end);
  b.rows = b.planes * length(b.d) * length(b.h);
  return b;
}

/* --- Tables --- */

static __device__ __forceinline__ uint32_t pack_span(pg_span s) {
  return (uint32_t)s.begin | (uint32_t)s.end << 16;
}
static __device__ __forceinline__ pg_span unpack_span(uint32_t s) {
  return {(int32_t)(s & 0xffff), (int32_t)(s >> 16)};
}

/* The band of each cell, and the outputs that each band lies in, counted from the first of the box.
 * From a cell to the next neither end of its outputs moves back, so the sum of both ends is another
 * number for each band.  Bands that do not occur keep the empty span that they had. */
static __device__ __forceinline__ void prepare_bands(const pg_axis_32 &a, const avg_rows_axis &r,
                                                     pg_span cells, pg_span out, uint32_t *band,
                                                     uint32_t *span) {
#pragma unroll 1
  for (int32_t i = threadIdx.x; i < length(cells); i += THREADS) {
    const pg_span all = touching(a, cells.begin + i, cells.begin + i + 1);
    const pg_span o = {all.begin - out.begin, all.end - out.begin};
    band[i] = (uint32_t)(r.banded ? o.begin + o.end - 1 : i);
    span[band[i]] = pack_span(o);
  }
}

static __device__ __forceinline__ void prepare_extents(const avg_job &j, const pg_axis_32 &a,
                                                       pg_span out, float *to) {
#pragma unroll 1
  for (int32_t i = threadIdx.x; i < length(out); i += THREADS)
    to[i] = (float)extent(a, out.begin + i, j.count_include_pad);
}

static __device__ __forceinline__ void prepare_columns(const avg_job &j, const avg_rows_plan &r) {
#pragma unroll 1
  for (int32_t i = threadIdx.x; i < j.w.in; i += THREADS)
    scratch_at<uint32_t>(r.span_w)[i] = pack_span(touching(j.w, i, i + 1));
}

/* There is one entry more than rows, because copy_any also loads the entry of the next row. */
static __device__ __forceinline__ void prepare_rows(const avg_rows_plan &r, const avg_rows_box &b) {
#pragma unroll 1
  for (int32_t i = threadIdx.x; i <= b.rows; i += THREADS) {
    const uint32_t slice = over(i, r.h.by_cells), plane = over(slice, r.d.by_cells);
    const uint32_t band_h = scratch_at<uint32_t>(r.band_h)[i - slice * r.h.cells];
    const uint32_t band_d = scratch_at<uint32_t>(r.band_d)[slice - plane * r.d.cells];
    const uint32_t row = (plane * r.d.bands + band_d) * r.h.bands + band_h;
    scratch_at<uint32_t>(r.result_of_row)[i] = i < b.rows ? row * r.row_stride : 0;
  }
}

/* --- Divide, expand, add --- */

/* Quotients of outputs that the last box of an axis lacks are left undefined, and not used. */
template <typename E>
static __device__ __forceinline__ void divide_outputs(const avg_job &j, const avg_rows_plan &r,
                                                      const avg_rows_box &b) {
  const int32_t total = b.planes * r.d.outputs * r.h.outputs * j.w.out;
  for (int32_t f = threadIdx.x; f < total; f += THREADS) {
    const int32_t row = (int32_t)over(f, r.by_out_w), ow = f - row * j.w.out;
    const int32_t slice = (int32_t)over(row, r.h.by_outputs), h = row - slice * r.h.outputs;
    const int32_t plane = (int32_t)over(slice, r.d.by_outputs), d = slice - plane * r.d.outputs;
    const int32_t oh = b.oh.begin + h, od = b.od.begin + d;
    if (oh >= b.oh.end || od >= b.od.end) continue;
    const uint32_t at = b.plane + plane, n = over(at, j.by_c);
    const int64_t from = j.flat_out ? (int64_t)at * r.outputs + (od * j.h.out + oh) * j.w.out + ow
                                    : offset(j.grad_strides, n, at - n * j.by_c.by, od, oh, ow);
    const E e = ((const E *)j.grad)[from];
    const float divisor = j.divisor != 0 ? (float)j.divisor
                                         : scratch_at<float>(r.extent_d)[d] *
                                               scratch_at<float>(r.extent_h)[h] *
                                               scratch_at<float>(r.extent_w)[ow];
    scratch_at<float>(r.quotient)[f] = 0.0f + widened(e) / divisor; /* never -0 */
  }
}

static __device__ __forceinline__ void expand_quotients(const avg_job &j, const avg_rows_plan &r,
                                                        const avg_rows_box &b) {
  const int32_t total = b.planes * r.d.outputs * r.h.outputs * j.w.in;
  for (int32_t f = threadIdx.x; f < total; f += THREADS) {
    const int32_t row = (int32_t)over(f, j.by_w), x = f - row * j.w.in;
    const pg_span ow = unpack_span(scratch_at<uint32_t>(r.span_w)[x]);
    const float *quotient = scratch_at<const float>(r.quotient) + row * j.w.out;
    float sum = 0;
#pragma unroll 1
    for (int32_t i = ow.begin; i < ow.end; i++) sum += quotient[i];
    scratch_at<float>(r.expanded)[row * r.row_stride + x] = sum;
  }
}

static __device__ __forceinline__ void add_four(float *to, const float *more) {
  const float4 four = *(const float4 *)more;
  to[0] += four.x;
  to[1] += four.y;
  to[2] += four.z;
  to[3] += four.w;
}

/* Stores a group of elements in shared memory. */
static __device__ __forceinline__ void store_group(float *to, const float *sum) {
  *(float4 *)to = make_float4(sum[0], sum[1], sum[2], sum[3]);
}
template <typename E>
static __device__ __forceinline__ void store_group(E *to, const float *sum) {
  const E half = {};
  *(uint4 *)to = make_uint4(packed(half, sum[0], sum[1]), packed(half, sum[2], sum[3]),
                            packed(half, sum[4], sum[5]), packed(half, sum[6], sum[7]));
}

template <typename E>
static __device__ __forceinline__ void add_expanded(const avg_rows_plan &r, const avg_rows_box &b) {
  enum { GROUP = 16 / sizeof(E) };
  const int32_t groups = (int32_t)r.by_groups.by, all = b.planes * r.d.bands * r.h.bands * groups;
  for (int32_t g = threadIdx.x; g < all; g += THREADS) {
    const int32_t row = (int32_t)over(g, r.by_groups), x = GROUP * (g - row * groups);
    const int32_t slice = (int32_t)over(row, r.h.by_bands);
    const int32_t plane = (int32_t)over(slice, r.d.by_bands);
    const pg_span oh = unpack_span(scratch_at<uint32_t>(r.span_h)[row - slice * r.h.bands]);
    const pg_span od = unpack_span(scratch_at<uint32_t>(r.span_d)[slice - plane * r.d.bands]);
    float total[GROUP] = {};
#pragma unroll 1
    for (int32_t d = od.begin; d < od.end; d++) {
      const int32_t first = (plane * r.d.outputs + d) * r.h.outputs + oh.begin;
      const float *expanded = scratch_at<const float>(r.expanded) + first * r.row_stride + x;
      float sum[GROUP] = {};
#pragma unroll 1
      for (int32_t h = oh.begin; h < oh.end; h++, expanded += r.row_stride)
#pragma unroll
        for (int i = 0; i < GROUP; i += 4) add_four(sum + i, expanded + i);
#pragma unroll
      for (int i = 0; i < GROUP; i++) total[i] += sum[i];
    }
    store_group(scratch_at<E>(r.result) + row * r.row_stride + x, total);
  }
}

/* --- Copy --- */

/* Rows are whole groups, and begin with one. */
template <typename E>
static __device__ __forceinline__ void copy_groups(const avg_job &j, const avg_rows_plan &r, E *out,
                                                   int32_t cells) {
  enum { GROUP = 16 / sizeof(E) };
  const E *result = scratch_at<const E>(r.result);
#pragma unroll 4
  for (int32_t first = GROUP * (int32_t)threadIdx.x; first < cells; first += GROUP * THREADS) {
    const uint32_t row = over(first, j.by_w), x = first - row * j.w.in;
    const E *from = result + scratch_at<uint32_t>(r.result_of_row)[row] + x;
    put_words(out + first, *(const uint4 *)from);
  }
}

/* Any rows of at least a group, so that no group lies in more than two of them.  Cell 0 is the
 * lead-th of its group. */
template <typename E>
static __device__ __forceinline__ void copy_any(const avg_job &j, const avg_rows_plan &r, E *out,
                                                int32_t lead, int32_t cells) {
  enum { GROUP = 16 / sizeof(E) };
  const E *result = scratch_at<const E>(r.result);
  const uint32_t *result_of_row = scratch_at<const uint32_t>(r.result_of_row);
  for (int32_t g = threadIdx.x; g * GROUP < lead + cells; g += THREADS) {
    const int32_t first = g * GROUP - lead, from = max(first, 0);
    const int32_t row = (int32_t)over(from, j.by_w), x = first - row * j.w.in;
    const E *here = result + (int32_t)result_of_row[row] + x;
    const E *below = result + (int32_t)result_of_row[row + 1] + x - j.w.in;
    if (first < 0 || first + GROUP > cells) {
#pragma unroll 1
      for (int32_t i = from - first; i < GROUP && first + i < cells; i++)
        out[first + i] = (x + i < j.w.in ? here : below)[i];
      continue;
    }
    __align__(16) E of[GROUP];
#pragma unroll
    for (int i = 0; i < GROUP; i++) of[i] = (x + i < j.w.in ? here : below)[i];
    uint4 words;
    memcpy(&words, of, 16);
    put_words(out + first, words);
  }
}

template <typename E>
static __global__ void __launch_bounds__(THREADS)
    avg_rows(const __grid_constant__ avg_job j, const __grid_constant__ avg_rows_plan r) {
  const avg_rows_box b = box_of(j, r);
  /* All spans are empty at first. */
  for (int32_t i = threadIdx.x; i < r.spans_end; i += THREADS) *scratch_at<uint32_t>(i) = 0;
  if (j.divisor == 0) {
    prepare_extents(j, j.d, b.od, scratch_at<float>(r.extent_d));
    prepare_extents(j, j.h, b.oh, scratch_at<float>(r.extent_h));
    prepare_extents(j, j.w, {0, j.w.out}, scratch_at<float>(r.extent_w));
  }
  prepare_columns(j, r);
  __syncthreads();
  prepare_bands(j.d, r.d, b.d, b.od, scratch_at<uint32_t>(r.band_d),
                scratch_at<uint32_t>(r.span_d));
  prepare_bands(j.h, r.h, b.h, b.oh, scratch_at<uint32_t>(r.band_h),
                scratch_at<uint32_t>(r.span_h));
  divide_outputs<E>(j, r, b);
  __syncthreads();
  prepare_rows(r, b);
  expand_quotients(j, r, b);
  __syncthreads();
  add_expanded<E>(r, b);
  __syncthreads();
  const int64_t begin = ((int64_t)b.d.begin * j.h.in + b.h.begin) * j.w.in;
  E *out = (E *)j.in + (int64_t)b.plane * j.cells + begin;
  const int32_t lead = (int32_t)((uintptr_t)out % 16 / sizeof(E)), cells = b.rows * j.w.in;
  if (lead == 0 && j.w.in % (16 / (int32_t)sizeof(E)) == 0)
    copy_groups(j, r, out, cells);
  else
    copy_any(j, r, out, lead, cells);
}

/* --- On the host --- */

static avg_rows_axis plan_axis(const pg_axis &a, int64_t cells) {
  avg_rows_axis r = {};
  const int64_t outputs = pg_most_touching(&a, cells), bands = 2 * outputs - 1;
  r.outputs = (int32_t)outputs;
  r.cells = (int32_t)cells;
  r.banded = pg_is_tiled(&a) && bands < cells;
  r.bands = (int32_t)(r.banded ? bands : cells);
  r.by_outputs = divider_of(outputs);
  r.by_cells = divider_of(cells);
  r.by_bands = divider_of(r.bands);
  return r;
}

/* How large a box is: it has whole rows. */
struct avg_rows_size {
  int64_t planes, d, h;
};

/* Prepares what follows from the size of a box, and returns the bytes of scratch. */
static int64_t plan_scratch(const pg_pooling &p, int64_t element_bytes, const avg_rows_size &box,
                            avg_rows_plan *r) {
  r->d = plan_axis(p.d, box.d);
  r->h = plan_axis(p.h, box.h);
  r->planes = (int32_t)box.planes;
  r->outputs = (int32_t)(p.d.out * p.h.out * p.w.out);
  const int64_t group = 16 / element_bytes, groups = pg_ceil_div(p.w.in, group);
  const int64_t row_stride = groups * group, rows = box.planes * r->d.outputs * r->h.outputs;
  const int64_t result_rows = box.planes * r->d.bands * r->h.bands;
  int64_t end = 0;
  r->row_stride = (int32_t)row_stride;
  r->span_d = reserve_words(r->d.bands, &end);
  r->span_h = reserve_words(r->h.bands, &end);
  r->spans_end = (int32_t)end;
  r->band_d = reserve_words(box.d, &end);
  r->band_h = reserve_words(box.h, &end);
  r->span_w = reserve_words(p.w.in, &end);
  r->extent_d = reserve_words(r->d.outputs, &end);
  r->extent_h = reserve_words(r->h.outputs, &end);
  r->extent_w = reserve_words(p.w.out, &end);
  r->result_of_row = reserve_words(box.planes * box.d * box.h + 1, &end);
  r->quotient = reserve_words(rows * p.w.out, &end);
  r->expanded = reserve_words(rows * row_stride, &end);
  r->result = reserve_words(result_rows * row_stride * element_bytes / 4, &end);
  r->by_out_w = divider_of(p.w.out);
  r->by_groups = divider_of(groups);
  return 4 * end;
}

/* The largest boxes, by halves of a plane, that fit into the scratch and give enough blocks.  A
 * box has whole slices or is part of one slice, so its cells are contiguous. */
static avg_rows_size cut_plane(const pg_pooling &p, int64_t element_bytes, int64_t enough_blocks) {
  avg_rows_size box = {1, p.d.in, p.h.in};
  avg_rows_plan r = {};
  while (box.d > 1 || box.h > 1) {
    const int64_t bytes = plan_scratch(p, element_bytes, box, &r);
    const int64_t cells = box.d * box.h * p.w.in;
    const int64_t blocks = p.n * p.c * pg_ceil_div(p.d.in, box.d) * pg_ceil_div(p.h.in, box.h);
    if (bytes <= SCRATCH_BYTES && cells <= MOST_CELLS &&
        (blocks >= enough_blocks || cells <= FEW_CELLS))
      break;
    if (box.d > 1)
      box.d = pg_ceil_div(box.d, 2);
    else
      box.h = pg_ceil_div(box.h, 2);
  }
  return box;
}

/* Plans boxes of parts of a plane, or of several small planes.  Returns the bytes of scratch, or -1
 * if even a row needs too much. */
static int64_t plan_boxes(const pg_pooling &p, int64_t element_bytes, avg_rows_plan *r) {
  const int64_t enough_blocks = (int64_t)BLOCKS_OF_PROCESSOR * pg_cuda_least_limits()->processors;
  avg_rows_size box = cut_plane(p, element_bytes, enough_blocks);
  while (box.d == p.d.in && box.h == p.h.in) {
    const avg_rows_size twice = {2 * box.planes, box.d, box.h};
    if (twice.planes * box.d * box.h * p.w.in > TOGETHER_CELLS ||
        pg_ceil_div(p.n * p.c, twice.planes) < enough_blocks ||
        plan_scratch(p, element_bytes, twice, r) > SCRATCH_BYTES)
      break;
    box = twice;
  }
  const int64_t bytes = plan_scratch(p, element_bytes, box, r);
  r->d_items = (int32_t)pg_ceil_div(p.d.in, box.d);
  r->h_items = (int32_t)pg_ceil_div(p.h.in, box.h);
  r->by_d_items = divider_of(r->d_items);
  r->by_h_items = divider_of(r->h_items);
  return bytes <= SCRATCH_BYTES ? bytes : -1;
}

static int64_t box_count(const pg_pooling &p, const avg_rows_plan &r) {
  return pg_ceil_div(p.n * p.c, r.planes) * r.d_items * r.h_items;
}

/* How many bands an axis has, or a few more. */
static int64_t bands_of(const pg_axis &a, int64_t windows) {
  return least(a.in, windows > 1 ? 2 * a.out : a.out);
}

static bool fits(const pg_problem *problem, pg_tiling *tiling) {
  const pg_facts &f = problem->facts;
  const pg_pooling &p = f.pool;
  const int64_t bytes = element_bytes(*problem);
  if (!fits_avg_planes(*problem) || !f.in.all || f.outputs == 0) return false;
  if (p.w.in < 16 / bytes || p.w.in > MOST_LENGTH) return false;
  if (p.w.out > MOST_LENGTH || p.h.out > MOST_LENGTH || p.d.out > MOST_LENGTH) return false;
  const int64_t bands = bands_of(p.d, f.d_windows) * bands_of(p.h, f.h_windows);
  if (p.d.in * p.h.in < LEAST_BAND * bands) return false;
  *tiling = tile_avg_planes(f);
  avg_rows_plan r = {};
  return plan_boxes(p, bytes, &r) >= 0 && box_count(p, r) < INT32_MAX;
}

template <typename E>
static cudaError_t run_as(const pg_cuda_call *call) {
  const avg_job j = avg_job_of(call);
  avg_rows_plan r = {};
  const int64_t bytes = plan_boxes(j.pool, sizeof(E), &r);
  return launch(call, avg_rows<E>, box_count(j.pool, r), THREADS, bytes, j, r);
}

static cudaError_t run(const pg_cuda_call *call) {
  return with_fp32_type(call, [call](auto e) { return run_as<decltype(e)>(call); });
}

PG_CUDA_METHOD(avg_rows) = {"rows", fits, nullptr, run, nullptr};
