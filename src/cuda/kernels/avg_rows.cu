/* SPDX-License-Identifier: Apache-2.0 */
/* SPREAD over rows that follow each other.
 *
 * Rows of cells that lie in the same windows along D and along H are the same: a block makes each
 * such row of its box once, as it will be written, and copies it to where it belongs.
 *
 *   divide   each output that touches the box, once: terms
 *   lay      terms along W, each cell the sum of those it lies in: laid rows, one a row of outputs
 *   add      laid rows along H, those sums along D: rows of elements, one for each kind of row
 *   copy     16 bytes at a time, whatever rows they lie in */
#include "cuda/kernels/quotient.cuh"
#include "cuda/kernels/avg_job.cuh"

enum { THREADS = 256 };

/* Outputs, cells and kinds of cells along D or H, of a box at most. */
struct rows_axis {
  int32_t outputs, cells, kinds;
  bool grouped; /* else each cell is a kind */
  pg_divider by_outputs, by_cells, by_kinds;
};

struct rows_plan {
  rows_axis d, h;
  int32_t planes, wide; /* wide: outputs along W */
  int32_t outputs;      /* of a plane */
  int32_t d_items, h_items;
  int32_t laid_pitch; /* elements of a made row, too */
  /* in words: */
  int32_t span_d, span_h, spans_end, kind_d, kind_h, map_w, extent_d, extent_h, extent_w;
  int32_t kind_row, term, laid, made;
  pg_divider by_wide, by_groups, by_d_items, by_h_items;
};

extern __shared__ uint4 pg_rows_room[];

static __device__ __forceinline__ uint32_t *words_at(int32_t word) {
  return (uint32_t *)pg_rows_room + word;
}

/* A block's box, and the outputs that touch it. */
struct rows_box {
  uint32_t plane;
  int32_t planes;
  pg_span d, h, od, oh;
  int32_t rows; /* of cells */
};

static __device__ __forceinline__ rows_box box_of(const avg_job &j, const rows_plan &r) {
  const uint32_t upper = over(blockIdx.x, r.by_h_items), group = over(upper, r.by_d_items);
  rows_box b;
  b.plane = group * r.planes;
  b.planes = (int32_t)min((int64_t)r.planes, j.cut.planes - b.plane);
  b.h = cut((int32_t)(blockIdx.x - upper * r.h_items), r.h.cells, j.h.in);
  b.d = cut((int32_t)(upper - group * r.d_items), r.d.cells, j.d.in);
  b.od = touching(j.d, b.d.begin, b.d.end);
  b.oh = touching(j.h, b.h.begin, b.h.end);
  b.rows = b.planes * length(b.d) * length(b.h);
  return b;
}

/* --- Tables --- */

/* Outputs of a cell, counted from the box's first, and its kind: as neither end of the outputs ever
 * moves back from a cell to the next, their sum tells them apart. */
static __device__ __forceinline__ pg_span outputs_of(const pg_axis_32 &a, pg_span box,
                                                     int32_t cell) {
  const pg_span o = touching(a, cell, cell + 1);
  return {o.begin - box.begin, o.end - box.begin};
}
static __device__ __forceinline__ int32_t kind_of(const rows_axis &r, pg_span outputs,
                                                  int32_t cell) {
  return r.grouped ? outputs.begin + outputs.end - 1 : cell;
}
static __device__ __forceinline__ uint32_t pack_span(pg_span s) {
  return (uint32_t)s.begin | (uint32_t)s.end << 16;
}
static __device__ __forceinline__ pg_span unpack_span(uint32_t s) {
  return {(int32_t)(s & 0xffff), (int32_t)(s >> 16)};
}

/* Cells' kinds, and what outputs a kind lies in; those that do not occur, in none. */
static __device__ __forceinline__ void know_kinds(const pg_axis_32 &a, const rows_axis &r,
                                                  pg_span cells, pg_span out, uint32_t *kind,
                                                  uint32_t *span) {
#pragma unroll 1
  for (int32_t i = threadIdx.x; i < length(cells); i += THREADS) {
    const pg_span o = outputs_of(a, out, cells.begin + i);
    kind[i] = (uint32_t)kind_of(r, o, i);
    span[kind[i]] = pack_span(o);
  }
}

/* What the windows of some outputs count. */
static __device__ __forceinline__ void know_extents(const avg_job &j, const pg_axis_32 &a,
                                                    pg_span out, uint32_t *to) {
#pragma unroll 1
  for (int32_t i = threadIdx.x; i < length(out); i += THREADS)
    ((float *)to)[i] = (float)extent(a, out.begin + i, j.count_include_pad);
}

/* Where the made row of each row of cells begins, in elements. */
static __device__ __forceinline__ void know_rows(const rows_plan &r, const rows_box &b) {
#pragma unroll 1
  for (int32_t i = threadIdx.x; i <= b.rows; i += THREADS) {
    const uint32_t slice = over(i, r.h.by_cells), plane = over(slice, r.d.by_cells);
    const uint32_t kind_h = words_at(r.kind_h)[i - slice * r.h.cells];
    const uint32_t kind_d = words_at(r.kind_d)[slice - plane * r.d.cells];
    const uint32_t row = (plane * r.d.kinds + kind_d) * r.h.kinds + kind_h;
    words_at(r.kind_row)[i] = i < b.rows ? row * r.laid_pitch : 0;
  }
}

/* --- Passes --- */

template <typename E>
static __device__ __forceinline__ void divide(const avg_job &j, const rows_plan &r,
                                              const rows_box &b) {
  const int32_t deep = r.d.outputs, tall = r.h.outputs, total = b.planes * deep * tall * r.wide;
  for (int32_t f = threadIdx.x; f < total; f += THREADS) {
    const int32_t row = (int32_t)over(f, r.by_wide), ow = f - row * r.wide;
    const int32_t slice = (int32_t)over(row, r.h.by_outputs), h = row - slice * tall;
    const int32_t plane = (int32_t)over(slice, r.d.by_outputs), d = slice - plane * deep;
    const int32_t oh = b.oh.begin + h, od = b.od.begin + d;
    if (oh >= b.oh.end || od >= b.od.end) continue;
    const uint32_t at = b.plane + plane, n = over(at, j.by_c);
    const int64_t from = j.flat_out ? (int64_t)at * r.outputs + (od * j.h.out + oh) * j.w.out + ow
                                    : offset(j.grad_strides, n, at - n * j.by_c.by, od, oh, ow);
    const E e = ((const E *)j.grad)[from];
    const float *deep_of = (const float *)words_at(r.extent_d) + d;
    const float *tall_of = (const float *)words_at(r.extent_h) + h;
    const float *wide_of = (const float *)words_at(r.extent_w) + ow;
    const float divisor = j.divisor != 0 ? (float)j.divisor : *deep_of * *tall_of * *wide_of;
    ((float *)words_at(r.term))[f] = 0.0f + widened(e) / divisor;
  }
}

static __device__ __forceinline__ void lay(const avg_job &j, const rows_plan &r,
                                           const rows_box &b) {
  const int32_t total = b.planes * r.d.outputs * r.h.outputs * j.w.in;
  for (int32_t f = threadIdx.x; f < total; f += THREADS) {
    const int32_t row = (int32_t)over(f, j.by_w), x = f - row * j.w.in;
    const pg_span ow = unpack_span(words_at(r.map_w)[x]);
    const float *term = (const float *)words_at(r.term) + row * r.wide;
    float sum = 0;
#pragma unroll 1
    for (int32_t i = ow.begin; i < ow.end; i++) sum += term[i];
    ((float *)words_at(r.laid))[row * r.laid_pitch + x] = sum;
  }
}

static __device__ __forceinline__ void add_four(float *to, const float *more) {
  const float4 four = *(const float4 *)more;
  to[0] += four.x;
  to[1] += four.y;
  to[2] += four.z;
  to[3] += four.w;
}

/* The sums that make 16 bytes, to shared memory. */
static __device__ __forceinline__ void store_16(float *to, const float *sum) {
  *(float4 *)to = make_float4(sum[0], sum[1], sum[2], sum[3]);
}
template <typename E>
static __device__ __forceinline__ void store_16(E *to, const float *sum) {
  const E half = {};
  *(uint4 *)to = make_uint4(packed(half, sum[0], sum[1]), packed(half, sum[2], sum[3]),
                            packed(half, sum[4], sum[5]), packed(half, sum[6], sum[7]));
}

template <typename E>
static __device__ __forceinline__ void add(const rows_plan &r, const rows_box &b) {
  enum { GROUP = 16 / sizeof(E) };
  const int32_t groups = (int32_t)r.by_groups.by, all = b.planes * r.d.kinds * r.h.kinds * groups;
  for (int32_t g = threadIdx.x; g < all; g += THREADS) {
    const int32_t row = (int32_t)over(g, r.by_groups), x = GROUP * (g - row * groups);
    const int32_t slice = (int32_t)over(row, r.h.by_kinds);
    const int32_t plane = (int32_t)over(slice, r.d.by_kinds);
    const pg_span oh = unpack_span(words_at(r.span_h)[row - slice * r.h.kinds]);
    const pg_span od = unpack_span(words_at(r.span_d)[slice - plane * r.d.kinds]);
    float total[GROUP] = {};
#pragma unroll 1
    for (int32_t d = od.begin; d < od.end; d++) {
      const int32_t first = (plane * r.d.outputs + d) * r.h.outputs + oh.begin;
      const float *laid = (const float *)words_at(r.laid) + first * r.laid_pitch + x;
      float sum[GROUP] = {};
#pragma unroll 1
      for (int32_t h = oh.begin; h < oh.end; h++, laid += r.laid_pitch)
#pragma unroll
        for (int i = 0; i < GROUP; i += 4) add_four(sum + i, laid + i);
#pragma unroll
      for (int i = 0; i < GROUP; i++) total[i] += sum[i];
    }
    store_16((E *)words_at(r.made) + row * r.laid_pitch + x, total);
  }
}

/* --- Copying --- */

/* Groups of 16 bytes of which each lies in one row. */
template <typename E>
static __device__ __forceinline__ void copy_words(const avg_job &j, const rows_plan &r, E *out,
                                                  int32_t cells) {
  enum { GROUP = 16 / sizeof(E) };
  const E *made = (const E *)words_at(r.made);
#pragma unroll 4
  for (int32_t first = GROUP * (int32_t)threadIdx.x; first < cells; first += GROUP * THREADS) {
    const uint32_t row = over(first, j.by_w), x = first - row * j.w.in;
    put_words(out + first, *(const uint4 *)(made + words_at(r.kind_row)[row] + x));
  }
}

/* Any groups; cell 0 is the lead-th of the first.  None is in more than two rows. */
template <typename E>
static __device__ __forceinline__ void copy_any(const avg_job &j, const rows_plan &r, E *out,
                                                int32_t lead, int32_t cells) {
  enum { GROUP = 16 / sizeof(E) };
  const E *made = (const E *)words_at(r.made);
  const uint32_t *kind_row = words_at(r.kind_row);
  for (int32_t g = threadIdx.x; g * GROUP < lead + cells; g += THREADS) {
    const int32_t first = g * GROUP - lead, from = max(first, 0);
    const int32_t row = (int32_t)over(from, j.by_w), x = first - row * j.w.in;
    const E *here = made + (int32_t)kind_row[row] + x;
    const E *below = made + (int32_t)kind_row[row + 1] + x - j.w.in;
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
    spread_rows(const __grid_constant__ avg_job j, const __grid_constant__ rows_plan r) {
  const rows_box b = box_of(j, r);
  for (int32_t i = threadIdx.x; i < r.spans_end; i += THREADS) *words_at(i) = 0;
  if (j.divisor == 0) {
    know_extents(j, j.d, b.od, words_at(r.extent_d));
    know_extents(j, j.h, b.oh, words_at(r.extent_h));
    know_extents(j, j.w, {0, j.w.out}, words_at(r.extent_w));
  }
#pragma unroll 1
  for (int32_t i = threadIdx.x; i < j.w.in; i += THREADS)
    words_at(r.map_w)[i] = pack_span(touching(j.w, i, i + 1));
  __syncthreads();
  know_kinds(j.d, r.d, b.d, b.od, words_at(r.kind_d), words_at(r.span_d));
  know_kinds(j.h, r.h, b.h, b.oh, words_at(r.kind_h), words_at(r.span_h));
  divide<E>(j, r, b);
  __syncthreads();
  know_rows(r, b);
  lay(j, r, b);
  __syncthreads();
  add<E>(r, b);
  __syncthreads();
  const int64_t begin = ((int64_t)b.d.begin * j.h.in + b.h.begin) * j.w.in;
  E *out = (E *)j.in + (int64_t)b.plane * j.cells + begin;
  const int32_t lead = (int32_t)((uintptr_t)out % 16 / sizeof(E)), cells = b.rows * j.w.in;
  if (lead == 0 && j.w.in % (16 / (int32_t)sizeof(E)) == 0)
    copy_words(j, r, out, cells);
  else
    copy_any(j, r, out, lead, cells);
}

/* --- On the host --- */

/* Takes `words` of shared memory, 16 bytes aligned. */
static int32_t place(int64_t words, int64_t *end) {
  const int64_t begin = *end;
  *end += (words + 3) / 4 * 4;
  return (int32_t)begin;
}

static rows_axis rows_axis_of(const pg_axis &a, int64_t cells) {
  rows_axis r = {};
  const int64_t outputs = pg_most_touching(&a, cells), kinds = 2 * outputs - 1;
  r.outputs = (int32_t)outputs;
  r.cells = (int32_t)cells;
  r.grouped = pg_is_tiled(&a) && kinds < cells;
  r.kinds = (int32_t)(r.grouped ? kinds : cells);
  r.by_outputs = divider_of(outputs);
  r.by_cells = divider_of(cells);
  r.by_kinds = divider_of(r.kinds);
  return r;
}

/* Bytes of shared memory for boxes of so many planes, slices and rows. */
static int64_t plan_rows(const pg_pooling &p, int64_t element_bytes, int64_t planes, int64_t d,
                         int64_t h, rows_plan *r) {
  r->d = rows_axis_of(p.d, d);
  r->h = rows_axis_of(p.h, h);
  r->planes = (int32_t)planes;
  r->wide = (int32_t)p.w.out;
  r->outputs = (int32_t)(p.d.out * p.h.out * p.w.out);
  const int64_t group = 16 / element_bytes, rows = planes * r->d.outputs * r->h.outputs;
  const int64_t pitch = (p.w.in + group - 1) / group * group;
  int64_t end = 0;
  r->laid_pitch = (int32_t)pitch;
  r->span_d = place(r->d.kinds, &end);
  r->span_h = place(r->h.kinds, &end);
  r->spans_end = (int32_t)end;
  r->kind_d = place(d, &end);
  r->kind_h = place(h, &end);
  r->map_w = place(p.w.in, &end);
  r->extent_d = place(r->d.outputs, &end);
  r->extent_h = place(r->h.outputs, &end);
  r->extent_w = place(p.w.out, &end);
  r->kind_row = place(planes * d * h + 1, &end);
  r->term = place(rows * p.w.out, &end);
  r->laid = place(rows * pitch, &end);
  r->made = place(planes * r->d.kinds * r->h.kinds * pitch * element_bytes / 4, &end);
  r->by_wide = divider_of(p.w.out);
  r->by_groups = divider_of(pitch / group);
  return 4 * end;
}

static int64_t parts(int64_t length, int64_t part) { return (length + part - 1) / part; }

/* Boxes that are not too large: slices and rows are halved, small planes come together. */
static int64_t cut_boxes(const pg_pooling &p, int64_t element_bytes, rows_plan *r) {
  enum { ROOM = 44 * 1024, CELLS = 1 << 18, SOME = 8192, MANY = 32768, BLOCKS = 8 };
  const int64_t all = p.n * p.c, enough = (int64_t)BLOCKS * pg_cuda_least_limits()->processors;
  int64_t d = p.d.in, h = p.h.in, planes = 1, bytes;
  for (;;) {
    bytes = plan_rows(p, element_bytes, planes, d, h, r);
    const int64_t blocks = all * parts(p.d.in, d) * parts(p.h.in, h), cells = d * h * p.w.in;
    if (bytes <= ROOM && cells <= CELLS && (blocks >= enough || cells <= SOME)) break;
    if (d == 1 && h == 1) break;
    if (d > 1)
      d = parts(d, 2);
    else
      h = parts(h, 2);
  }
  while (d == p.d.in && h == p.h.in && 2 * planes * d * h * p.w.in <= MANY &&
         parts(all, 2 * planes) >= enough &&
         plan_rows(p, element_bytes, 2 * planes, d, h, r) <= ROOM)
    planes *= 2;
  bytes = plan_rows(p, element_bytes, planes, d, h, r);
  r->d_items = (int32_t)parts(p.d.in, d);
  r->h_items = (int32_t)parts(p.h.in, h);
  r->by_d_items = divider_of(r->d_items);
  r->by_h_items = divider_of(r->h_items);
  return bytes <= ROOM ? bytes : -1;
}

static bool fits(const pg_problem *problem, pg_tiling *tiling) {
  enum { MOST = 1 << 12 /* outputs and cells of a row: both ends of a span fit a word */ };
  const pg_facts &f = problem->facts;
  const pg_pooling &p = f.pool;
  const int64_t bytes = element_bytes(*problem);
  if (!fits_avg_planes(*problem) || !f.in.all) return false;
  if (p.w.in < 16 / bytes || p.w.in > MOST || p.w.out > MOST || p.h.out > MOST || p.d.out > MOST)
    return false;
  if (f.outputs == 0) return false;
  *tiling = tile_avg_planes(f);
  rows_plan r = {};
  return cut_boxes(p, bytes, &r) >= 0 &&
         parts(f.planes, r.planes) * r.d_items * r.h_items < INT32_MAX;
}

template <typename E>
static cudaError_t run_as(const pg_cuda_call *call) {
  const avg_job j = avg_job_of(call);
  rows_plan r = {};
  const int64_t bytes = cut_boxes(j.pool, sizeof(E), &r);
  const int64_t blocks = parts(j.pool.n * j.pool.c, r.planes) * r.d_items * r.h_items;
  return launch(call, spread_rows<E>, blocks, THREADS, bytes, j, r);
}

static cudaError_t run(const pg_cuda_call *call) {
  return with_avg_fp32_type(call, [call](auto e) { return run_as<decltype(e)>(call); });
}

PG_CUDA_METHOD(avg_rows) = {"rows", fits, nullptr, run, nullptr};
