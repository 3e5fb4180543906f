/* SPDX-License-Identifier: Apache-2.0 */
/* What both kernels of SCATTER know of a call, and what becomes of an index that points elsewhere.
 *
 * As on the CPU, an output is at home where the first cell of its window is; who has that cell
 * tells of the output's index if it lies outside the plane, or outside the window. */
#ifndef PG_CUDA_SCATTER_CUH_
#define PG_CUDA_SCATTER_CUH_

#include "cuda/box.cuh"
#include "cuda/cell.cuh"
#include "cuda/grid.cuh"

/* Each false, and nothing launched, unless the call is of its kind. */
bool pg_cuda_try_scatter_few(const pg_cuda_call *call, cudaError_t *status);
bool pg_cuda_try_gather_dense(const pg_cuda_call *call, cudaError_t *status);

/* An axis whose products may need 64 bits: adaptive, and long. */
struct scatter_axis : pg_axis_32 {
  bool is_long;
  double per_in, per_out; /* 1 / in, 1 / out */
};

static inline scatter_axis scatter_axis_of(const pg_axis &a) {
  scatter_axis b = {};
  (pg_axis_32 &)b = axis_32(a);
  b.is_long = b.stride == 0 && !fits_32_bits(a);
  b.per_in = 1.0 / (double)a.in;
  b.per_out = 1.0 / (double)a.out;
  return b;
}

static inline bool fits_scatter(pg_pooling p) {
  const int64_t most = (int64_t)1 << 30;
  for (pg_axis *a : {&p.d, &p.h, &p.w})
    if (a->kernel == 0 && a->in < most && a->out < most) a->kernel = a->stride = a->dilation = 1;
  return fits_32_bits(p);
}

/* n / by for quotients below 2^31: the product is off by less than one. */
static __device__ __forceinline__ uint32_t over_long(int64_t n, int64_t by, double per) {
  const int64_t q = (int64_t)((double)n * per), rest = n - q * by;
  return (uint32_t)(q + (rest >= by) - (rest < 0));
}

static __device__ __forceinline__ pg_span touching(const scatter_axis &a, int32_t begin,
                                                   int32_t end) {
  if (!a.is_long) return touching((const pg_axis_32 &)a, begin, end);
  return {(int32_t)over_long((int64_t)begin * a.out, a.in, a.per_in),
          (int32_t)over_long((int64_t)end * a.out + a.in - 1, a.in, a.per_in)};
}

template <bool SLIDING = false>
static __device__ __forceinline__ pg_window_32 window(const scatter_axis &a, int32_t o) {
  if (SLIDING || !a.is_long) return window<SLIDING>((const pg_axis_32 &)a, o);
  const uint32_t begin = over_long((int64_t)o * a.in, a.out, a.per_out);
  return {(int32_t)begin, over_long(((int64_t)o + 1) * a.in + a.out - 1, a.out, a.per_out) - begin};
}

struct scatter_job {
  const void *grad, *index;
  void *in;
  int32_t *stray; /* NULL: planes are whole */
  pg_cuda_report *report;
  pg_strides grad_at, index_at, in_at;
  pg_pooling pool;
  pg_tiling tiling;
  int64_t items;
  bool stream, again; /* again: RESCATTER */
  bool narrow;        /* what follows holds */
  bool deep;          /* there is a depth axis */
  bool wide;          /* indices have 64 bits */
  bool flat_in, flat_out;
  scatter_axis d, h, w;
  pg_items cut;
  uint32_t cells, outputs; /* of a plane */
  pg_divider by_cells, by_w, by_h, by_out_w, by_out_h, by_out_d, by_c;
};

/* Items of whole planes, fewer than processors: more of them, as long as a block has something to
 * do. */
static inline void share_planes(scatter_job &j, int64_t processors) {
  enum { OUTPUTS = 128 };
  pg_tiling &t = j.tiling;
  const int64_t planes = j.pool.n * j.pool.c;
  const int64_t outputs = j.pool.d.out * j.pool.h.out * j.pool.w.out;
  if (j.stray != nullptr || t.interleaved || j.items >= processors) return;
  const int64_t some = OUTPUTS / (outputs < 1 ? 1 : outputs), each = (planes - 1) / processors + 1;
  t.planes = least(t.planes, some > each ? some : each);
  t.plane_items = (planes + t.planes - 1) / t.planes;
  j.items = t.plane_items;
}

static inline scatter_job scatter_job_of(const pg_cuda_call *call, int64_t element_bytes) {
  const pg_max_backward &a = call->task->problem.args.max_backward;
  const pg_choice &choice = call->task->choice;
  const pg_pooling &p = a.pool;
  scatter_job j = {};
  j.grad = a.grad_out;
  j.index = a.index;
  j.in = a.grad_in;
  j.stray = choice.workspace_bytes > 0 ? a.flags : nullptr;
  j.report = call->report;
  j.grad_at = a.out_strides;
  j.index_at = a.index_strides;
  j.in_at = a.in_strides;
  j.pool = p;
  j.tiling = choice.tiling;
  j.items = choice.items;
  j.stream = prefers_stream(call, p.n * p.c * p.d.in * p.h.in * p.w.in * element_bytes);
  j.again = call->again;
  j.narrow = choice.tiling.interleaved ? fits_32_bits(p) : fits_scatter(p);
  j.deep = p.d.in > 1 || p.d.out > 1;
  j.wide = a.index_bytes == 8;
  if (!j.narrow) return j;
  share_planes(j, call->limits.processors);
  j.flat_in = is_flat(j.in_at, p.d.in, p.h.in, p.w.in, p.c, p.n);
  j.flat_out = is_flat(j.grad_at, p.d.out, p.h.out, p.w.out, p.c, p.n) &&
               is_flat(j.index_at, p.d.out, p.h.out, p.w.out, p.c, p.n);
  j.d = scatter_axis_of(p.d);
  j.h = scatter_axis_of(p.h);
  j.w = scatter_axis_of(p.w);
  j.cut = items_of(j.tiling, p);
  j.cells = (uint32_t)(p.d.in * p.h.in * p.w.in);
  j.outputs = (uint32_t)(p.d.out * p.h.out * p.w.out);
  j.by_cells = divider_of(j.cells);
  j.by_w = divider_of(p.w.in);
  j.by_h = divider_of(p.h.in);
  j.by_out_w = divider_of(p.w.out);
  j.by_out_h = divider_of(p.h.out);
  j.by_out_d = divider_of(p.d.out);
  j.by_c = divider_of(p.c);
  return j;
}

/* Calls fn with the element type and the index type of the task. */
template <typename F>
static cudaError_t with_scatter_types(const pg_task *task, F fn) {
  const bool wide = task->problem.args.max_backward.index_bytes == 8;
  switch (task->problem.dtype) {
    case ACL_FLOAT16:
      return wide ? fn(pg_f16(), int64_t()) : fn(pg_f16(), int32_t());
    case ACL_BF16:
      return wide ? fn(pg_bf16(), int64_t()) : fn(pg_bf16(), int32_t());
    default:
      return wide ? fn(float(), int64_t()) : fn(float(), int32_t());
  }
}

/* The same for what may decline: fn says whether it has launched. */
template <typename F>
static bool try_scatter_types(const pg_task *task, F fn) {
  bool done = false;
  (void)with_scatter_types(task, [&](auto e, auto i) {
    done = fn(e, i);
    return cudaSuccess;
  });
  return done;
}

/* --- Indices outside their plane --- */

/* Found so far, in shared memory: how many, and the position of the first. */
struct found_bad {
  unsigned long long count, position;
};

static __device__ __forceinline__ void clear(found_bad *found) {
  found->count = 0;
  found->position = INT64_MAX;
}

static __device__ __forceinline__ void note_bad(found_bad *found, int64_t position) {
  atomicAdd(&found->count, 1ull);
  atomicMin(&found->position, (unsigned long long)position);
}

static __device__ __forceinline__ int64_t position_of(const scatter_job &j, int64_t plane,
                                                      int64_t od, int64_t oh, int64_t ow) {
  return ((plane * j.pool.d.out + od) * j.pool.h.out + oh) * j.pool.w.out + ow;
}

static __device__ int64_t index_of(const scatter_job &j, int64_t position) {
  const pg_pooling &p = j.pool;
  const pg_strides &s = j.index_at;
  const int64_t row = position / p.w.out, slice = row / p.h.out, plane = slice / p.d.out;
  const int64_t at = plane / p.c * s.of[PG_N] + plane % p.c * s.of[PG_C] +
                     slice % p.d.out * s.of[PG_D] + row % p.h.out * s.of[PG_H] +
                     position % p.w.out * s.of[PG_W];
  return j.wide ? ((const int64_t *)j.index)[at] : ((const int32_t *)j.index)[at];
}

static __device__ __noinline__ void report_bad(const scatter_job &j, const found_bad &found) {
  const int64_t position = (int64_t)found.position, value = index_of(j, position);
  while (atomicCAS(&j.report->lock, 0, 1) != 0) {
  }
  __threadfence_system();
  volatile pg_index_report *to = &j.report->found;
  to->count = to->count + (int64_t)found.count;
  if (position < to->position) {
    to->position = position;
    to->value = value;
  }
  __threadfence_system();
  atomicExch(&j.report->lock, 0);
}

/* One thread hands over what its warp or block has found. */
static __device__ __forceinline__ void hand_over(const scatter_job &j, const found_bad *found) {
  if (found->count != 0 && j.report != nullptr) report_bad(j, *found);
}

/* --- Indices outside their window --- */

/* The item that holds a cell; its planes are the group-th. */
static __device__ __forceinline__ int64_t item_of(const scatter_job &j, int64_t group,
                                                  uint32_t at) {
  const uint32_t row = over(at, j.by_w), w = at - row * j.w.in;
  const uint32_t d = over(row, j.by_h), h = row - d * j.h.in;
  const pg_items &t = j.cut;
  return ((group * t.d.by + d / t.of_d) * t.h.by + h / t.of_h) * t.w.by + w / t.of_w;
}

/* The cell at, inside the plane: does the window of (od, oh, ow) hold it?  PLAIN: windows are known
 * to slide in two dimensions. */
template <bool PLAIN = false>
static __device__ __forceinline__ bool in_window(const scatter_job &j, uint32_t at, int32_t od,
                                                 int32_t oh, int32_t ow) {
  const uint32_t row = over(at, j.by_w), w = at - row * (uint32_t)j.w.in;
  const pg_window_32 wide = window<PLAIN>(j.w, ow), tall = window<PLAIN>(j.h, oh);
  uint32_t h = row;
  bool inside = holds(wide.begin, wide.length, w);
  if (!PLAIN && j.deep) {
    const pg_window_32 deep = window(j.d, od);
    const uint32_t d = over(row, j.by_h);
    h = row - d * (uint32_t)j.h.in;
    inside &= holds(deep.begin, deep.length, d);
  }
  return inside & holds(tall.begin, tall.length, h); /* no branch */
}

#endif
