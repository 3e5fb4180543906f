/* SPDX-License-Identifier: Apache-2.0 */
/* What the methods of PG_MAX_BACKWARD share: a task as kernels see it, and what becomes of an index
 * that does not point into its window.
 *
 * Each output adds its gradient to the cell that its index names, which normally lies in the
 * output's window.  So a block that computes an item looks only at the outputs whose windows touch
 * the item.  An index that points elsewhere in its plane (a stray) would be missed.  Therefore one
 * block checks each index: the one that has the first cell of the output's window, its home.  Where
 * planes are cut into items, this block sets the flag of the item that the stray points into, and a
 * second kernel (mend) computes flagged items again from all outputs of the plane.  Where an item
 * is made of whole planes, the block itself does that.  An index outside its plane is dropped and
 * reported. */
#ifndef PG_CUDA_MAX_JOB_CUH_
#define PG_CUDA_MAX_JOB_CUH_

#include "cuda/call.cuh"
#include "cuda/kernels/bad_indices.cuh"
#include "cuda/kernels/box.cuh"
#include "cuda/kernels/element.cuh"
#include "cuda/kernels/with_type.cuh"
#include "kernels/tiling.h"

/* --- The task --- */

/* An axis whose products may need 64 bits, because it is adaptive and long. */
struct max_axis : pg_axis_32 {
  bool is_long;
  double per_in, per_out; /* if it is: 1 / in, 1 / out */
};

static inline max_axis max_axis_of(const pg_axis &a) {
  max_axis b = {};
  (pg_axis_32 &)b = axis_32(a);
  b.is_long = b.stride == 0 && !fits_32_bits(a);
  if (!b.is_long) return b;
  b.per_in = 1.0 / (double)a.in;
  b.per_out = 1.0 / (double)a.out;
  return b;
}

/* Do all positions fit 32 bits, except products along adaptive axes? */
static inline bool fits_max_axes(pg_pooling p) {
  const int64_t most = (int64_t)1 << 30;
  for (pg_axis *a : {&p.d, &p.h, &p.w})
    if (a->kernel == 0 && a->in < most && a->out < most) a->kernel = a->stride = a->dilation = 1;
  return fits_32_bits(p);
}

/* n / by for quotients below 2^31.  The product with the reciprocal is off by less than one. */
static __device__ __forceinline__ uint32_t over_long(int64_t n, int64_t by, double per) {
  const int64_t q = (int64_t)((double)n * per), rest = n - q * by;
  return (uint32_t)(q + (rest >= by) - (rest < 0));
}

static __device__ __forceinline__ pg_span touching(const max_axis &a, int32_t begin, int32_t end) {
  if (!a.is_long) return touching((const pg_axis_32 &)a, begin, end);
  return {(int32_t)over_long((int64_t)begin * a.out, a.in, a.per_in),
          (int32_t)over_long((int64_t)end * a.out + a.in - 1, a.in, a.per_in)};
}

template <bool SLIDING = false>
static __device__ __forceinline__ pg_window_32 window(const max_axis &a, int32_t o) {
  if (SLIDING || !a.is_long) return window<SLIDING>((const pg_axis_32 &)a, o);
  const uint32_t begin = over_long((int64_t)o * a.in, a.out, a.per_out);
  return {(int32_t)begin, over_long(((int64_t)o + 1) * a.in + a.out - 1, a.out, a.per_out) - begin};
}

struct max_job {
  const void *grad, *index;
  void *in;
  int32_t *flags; /* one for each item that a stray may point into; NULL: planes are not cut */
  pg_cuda_report *report;
  pg_strides grad_strides, index_strides, in_strides;
  pg_pooling pool;
  pg_tiling tiling;
  int64_t items;
  aclDataType dtype;
  bool index_64; /* indices have 64 bits */
  bool fits_32;  /* what follows holds */
  bool has_depth;
  bool flat_in, flat_out; /* all cells follow each other; all outputs and indices do */
  max_axis d, h, w;
  pg_items cut;
  uint32_t cells, outputs; /* of a plane */
  pg_divider by_cells, by_w, by_h, by_out_w, by_out_h, by_out_d, by_c;
};

/* Where items are whole planes and fewer than processors, they are made smaller, as long as a block
 * still has something to do. */
static inline void share_planes(max_job &j) {
  enum { OUTPUTS = 128 };
  pg_tiling &t = j.tiling;
  const int64_t planes = j.pool.n * j.pool.c, processors = pg_cuda_least_limits()->processors;
  const int64_t outputs = j.pool.d.out * j.pool.h.out * j.pool.w.out;
  if (j.flags != nullptr || t.interleaved || j.items >= processors) return;
  const int64_t some = OUTPUTS / (outputs < 1 ? 1 : outputs), each = (planes - 1) / processors + 1;
  t.planes = least(t.planes, some > each ? some : each);
  t.plane_items = (planes + t.planes - 1) / t.planes;
  j.items = t.plane_items;
}

static inline max_job max_job_of(const pg_cuda_call *call) {
  const pg_max_backward &a = call->task->problem.args.max_backward;
  const pg_facts &facts = call->task->problem.facts;
  const pg_choice &choice = call->task->choice;
  const pg_pooling &p = facts.pool;
  max_job j = {};
  j.grad = a.grad_out;
  j.index = a.index;
  j.in = a.grad_in;
  j.flags = choice.workspace_bytes > 0 ? a.flags : nullptr;
  j.report = call->report;
  j.grad_strides = a.out_strides;
  j.index_strides = a.index_strides;
  j.in_strides = a.in_strides;
  j.pool = p;
  j.tiling = choice.tiling;
  j.items = choice.items;
  j.dtype = call->task->problem.dtype;
  j.index_64 = a.index_bytes == 8;
  j.has_depth = facts.has_depth;
  j.fits_32 = choice.tiling.interleaved ? fits_32_bits(p) : fits_max_axes(p);
  if (!j.fits_32) return j;
  share_planes(j);
  j.flat_in = facts.in.all;
  j.flat_out = facts.out.all;
  j.d = max_axis_of(p.d);
  j.h = max_axis_of(p.h);
  j.w = max_axis_of(p.w);
  j.cut = items_of(j.tiling, p);
  j.cells = (uint32_t)facts.cells;
  j.outputs = (uint32_t)facts.outputs;
  j.by_cells = divider_of(j.cells);
  j.by_w = divider_of(p.w.in);
  j.by_h = divider_of(p.h.in);
  j.by_out_w = divider_of(p.w.out);
  j.by_out_h = divider_of(p.h.out);
  j.by_out_d = divider_of(p.d.out);
  j.by_c = divider_of(p.c);
  return j;
}

/* Calls fn with the element type and the index type of the call. */
template <typename F>
static cudaError_t with_max_types(const pg_cuda_call *call, F fn) {
  const bool index_64 = call->task->problem.args.max_backward.index_bytes == 8;
  return with_fp32_type(call,
                        [&](auto e) { return index_64 ? fn(e, int64_t()) : fn(e, int32_t()); });
}

/* --- Elements by their offset --- */

/* Code that seldom runs asks for the types of elements when it runs, so that it is compiled once
 * and not for each of them. */
static __device__ __forceinline__ int64_t index_at(const max_job &j, int64_t offset) {
  return j.index_64 ? ((const int64_t *)j.index)[offset] : ((const int32_t *)j.index)[offset];
}

static __device__ __forceinline__ float grad_at(const max_job &j, int64_t offset) {
  if (j.dtype == ACL_FLOAT) return ((const float *)j.grad)[offset];
  if (j.dtype == ACL_FLOAT16) return widened(((const pg_f16 *)j.grad)[offset]);
  return widened(((const pg_bf16 *)j.grad)[offset]);
}

static __device__ __forceinline__ void put_cell(const max_job &j, int64_t offset, float sum) {
  if (j.dtype == ACL_FLOAT)
    put((float *)j.in + offset, sum);
  else if (j.dtype == ACL_FLOAT16)
    put((pg_f16 *)j.in + offset, sum);
  else
    put((pg_bf16 *)j.in + offset, sum);
}

/* --- Items and their flags --- */

enum { BOX_CELLS = 4096, WIDE_BOX_CELLS = 8192, STAGED_OUTPUTS = 8192 };

/* Items of methods for planes whose cells lie together. */
static inline pg_tiling tile_max_planes(const pg_facts &f) {
  return pg_tile_flat(&f.pool, f.pool.w.in > BOX_CELLS / 4 ? WIDE_BOX_CELLS : BOX_CELLS);
}

static inline pg_tiling tile_max_channels(const pg_facts &f) {
  return pg_tile_interleaved(&f, BOX_CELLS / 2, STAGED_OUTPUTS);
}

/* Can the outputs of an item's planes be counted in 32 bits? */
static inline bool counts_outputs(const pg_facts &f, const pg_tiling &tiling) {
  return tiling.planes * f.outputs <= INT32_MAX;
}

/* For methods that compute planes which follow each other, in 32 bits, a row at least in one piece.
 */
static inline bool fits_flat_rows(const pg_facts &f, pg_tiling *tiling) {
  if (f.channels_last || !f.in.all || !f.out.all || !fits_max_axes(f.pool)) return false;
  *tiling = tile_max_planes(f);
  return tiling->w == f.pool.w.in && counts_outputs(f, *tiling);
}

static inline int64_t flag_bytes(const pg_problem *, const pg_tiling *tiling) {
  return pg_tiling_cuts(tiling) ? pg_tiling_items(tiling) * (int64_t)sizeof(int32_t) : 0;
}

/* Compute flagged items again. */
extern "C" pg_cuda_run_fn pg_cuda_mend_planes;   /* max_mend.cu */
extern "C" pg_cuda_run_fn pg_cuda_mend_channels; /* max_any.cu: any items */

/* What max_channels_last_columns uses where addresses are not aligned. */
extern "C" const pg_cuda_method pg_cuda_max_strips;

/* --- Indices outside their plane --- */

/* Of an output, among all outputs of the call. */
static __device__ __forceinline__ int64_t position_of(const max_job &j, int64_t plane, int64_t od,
                                                      int64_t oh, int64_t ow) {
  return ((plane * j.pool.d.out + od) * j.pool.h.out + oh) * j.pool.w.out + ow;
}

static __device__ int64_t index_of(const max_job &j, int64_t position) {
  const pg_pooling &p = j.pool;
  const pg_strides &s = j.index_strides;
  const int64_t row = position / p.w.out, slice = row / p.h.out, plane = slice / p.d.out;
  const int64_t at = plane / p.c * s.of[PG_N] + plane % p.c * s.of[PG_C] +
                     slice % p.d.out * s.of[PG_D] + row % p.h.out * s.of[PG_H] +
                     position % p.w.out * s.of[PG_W];
  return index_at(j, at);
}

static __device__ __noinline__ void add_to_report(const max_job &j, const bad_indices &bad) {
  add_to_report(j.report, bad, index_of(j, (int64_t)bad.position));
}

/* Called by one thread with what its warp or block has found. */
static __device__ __forceinline__ void report(const max_job &j, const bad_indices *bad) {
  if (bad->count != 0 && j.report != nullptr) add_to_report(j, *bad);
}

/* --- Indices outside their window --- */

/* The item that holds a cell of the group-th group of planes. */
static __device__ __forceinline__ int64_t item_of(const max_job &j, int64_t group, uint32_t cell) {
  const uint32_t row = over(cell, j.by_w), w = cell - row * j.w.in;
  const uint32_t d = over(row, j.by_h), h = row - d * j.h.in;
  const pg_items &t = j.cut;
  return ((group * t.d.by + d / t.of_d) * t.h.by + h / t.of_h) * t.w.by + w / t.of_w;
}

/* Does the window of output (od, oh, ow) hold this cell of its plane?  PLAIN: the windows are known
 * to slide in two dimensions. */
template <bool PLAIN = false>
static __device__ __forceinline__ bool in_window(const max_job &j, uint32_t cell, int32_t od,
                                                 int32_t oh, int32_t ow) {
  const uint32_t row = over(cell, j.by_w), w = cell - row * (uint32_t)j.w.in;
  const pg_window_32 w_window = window<PLAIN>(j.w, ow), h_window = window<PLAIN>(j.h, oh);
  uint32_t h = row;
  bool inside = holds(w_window.begin, w_window.length, w);
  if (!PLAIN && j.has_depth) {
    const pg_window_32 d_window = window(j.d, od);
    const uint32_t d = over(row, j.by_h);
    h = row - d * (uint32_t)j.h.in;
    inside &= holds(d_window.begin, d_window.length, d);
  }
  return inside & holds(h_window.begin, h_window.length, h); /* no branch */
}

#endif
