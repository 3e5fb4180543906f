/* SPDX-License-Identifier: Apache-2.0 */
/* SCATTER of the usual pools: windows of 2 or 3 cells that slide by 2, or of 3 that slide by 1, over
 * planes that follow each other.
 *
 * A thread goes down a column of gradInput, one cell wide or two as the windows' step is, and looks
 * at the outputs whose windows hold its cells: each adds to the cell that its index names.  Nothing
 * is shared but the look at the indices: one that points out of its window is unusual, and the
 * block makes its item again, see item.cuh. */
#include "cuda/item.cuh"

enum { GATHER_THREADS = 256, GATHER_BLOCKS = 5 };

/* Columns of threads begin at `first`; a column's rows are cut into `chunks` of `rows`. */
struct gather_plan {
  int32_t first, columns, chunks, rows;
  int32_t shift_h, shift_w; /* an output's own cells begin at its number times the step, less these */
  bool pairs;               /* two cells can be written at once */
  pg_divider by_columns, by_chunks;
};

/* An output: the cell it names, ~0 if there is no such output or it names none. */
struct output {
  uint32_t cell;
  float grad;
};

/* What a thread needs of its plane. */
template <typename E, typename I>
struct plane_at {
  const I *index;
  const E *grad;
  E *out;
};

template <typename E, typename I>
static __device__ __forceinline__ output look(const scatter_job &j, const plane_at<E, I> &p,
                                              int32_t oh, int32_t ow) {
  if ((uint32_t)oh >= (uint32_t)j.h.out || (uint32_t)ow >= (uint32_t)j.w.out) return {~0u, 0};
  const uint32_t at = (uint32_t)oh * j.w.out + ow;
  const I index = __ldg(p.index + at);
  const uint32_t cell = (uint64_t)index < j.cells ? (uint32_t)index : ~0u;
  return {cell, widened(p.grad[at])};
}

static __device__ __forceinline__ void take(float &sum, const output &o, uint32_t cell) {
  if (o.cell == cell) sum += o.grad;
}

/* Does the output name a cell outside its window, or none? */
template <int K, int S>
static __device__ __forceinline__ bool is_unusual(const scatter_job &j, const output &o, int32_t oh,
                                                  int32_t ow) {
  if ((uint32_t)oh >= (uint32_t)j.h.out || (uint32_t)ow >= (uint32_t)j.w.out) return false;
  const int32_t h = oh * S - j.h.pad, w = ow * S - j.w.pad;
  if (h < 0 || w < 0 || h + K > j.h.in || w + K > j.w.in)
    return o.cell == ~0u || !in_window<true>(j, o.cell, 0, oh, ow);
  uint32_t rest = o.cell - (uint32_t)(h * j.w.in + w);
  bool inside = rest < K;
#pragma unroll
  for (int i = 1; i < K; i++) {
    rest -= j.w.in;
    inside |= rest < K;
  }
  return !inside;
}

template <typename E>
static __device__ __forceinline__ void put_stream(E *to, float sum, bool stream) {
  E e;
  put(&e, sum);
  if (sizeof(E) == 4)
    stream ? __stcs((uint32_t *)to, *(uint32_t *)&e) : (void)(*to = e);
  else
    stream ? __stcs((uint16_t *)to, *(uint16_t *)&e) : (void)(*to = e);
}

static __device__ __forceinline__ void put_two(float *to, float a, float b, bool stream) {
  const float2 two = make_float2(a, b);
  if (stream)
    __stcs((float2 *)to, two);
  else
    *(float2 *)to = two;
}
template <typename E>
static __device__ __forceinline__ void put_two(E *to, float a, float b, bool stream) {
  const uint32_t two = packed(E(), a, b);
  if (stream)
    __stcs((uint32_t *)to, two);
  else
    *(uint32_t *)to = two;
}

/* Two neighbours of a row from w on, those that are cells. */
template <typename E>
static __device__ __forceinline__ void write_two(const scatter_job &j, const gather_plan &g,
                                                 E *row, int32_t w, float a, float b) {
  if (g.pairs && w + 1 < j.w.in) {
    put_two(row + w, a, b, j.stream);
    return;
  }
  if (w >= 0 && w < j.w.in) put_stream(row + w, a, j.stream);
  if (w + 1 >= 0 && w + 1 < j.w.in) put_stream(row + w + 1, b, j.stream);
}

/* Step 2: rows [begin, end) of outputs with their two by two own cells.  A window of 3 begins one
 * before those, with the last of the outputs before. */
template <int K, typename E, typename I>
static __device__ __forceinline__ bool go_by_two(const scatter_job &j, const gather_plan &g,
                                                 const plane_at<E, I> &p, pg_span cells, int32_t ow,
                                                 int32_t begin, int32_t end) {
  const int32_t w = 2 * ow - g.shift_w;
  const output none = {~0u, 0};
  bool unusual = false;
  output own = look(j, p, begin, ow), right = K == 3 ? look(j, p, begin, ow + 1) : none;
  output below = look(j, p, begin + 1, ow), corner = K == 3 ? look(j, p, begin + 1, ow + 1) : none;
  for (int32_t oh = begin; oh < end; oh++) {
    /* on their way while these are added */
    const output next = look(j, p, oh + 2, ow), beside = K == 3 ? look(j, p, oh + 2, ow + 1) : none;
    const int32_t h = 2 * oh - g.shift_h;
    const uint32_t at = (uint32_t)(h * j.w.in + w), under = at + j.w.in;
    float sum[4] = {0, 0, 0, 0};
    take(sum[0], own, at);
    take(sum[1], own, at + 1);
    take(sum[2], own, under);
    take(sum[3], own, under + 1);
    if (K == 3) {
      take(sum[1], right, at + 1);
      take(sum[3], right, under + 1);
      take(sum[2], below, under);
      take(sum[3], below, under + 1);
      take(sum[3], corner, under + 1);
    }
    unusual |= is_unusual<K, 2>(j, own, oh, ow);
    E *row = p.out + (int64_t)h * j.w.in;
    if (h >= cells.begin && h < cells.end) write_two(j, g, row, w, sum[0], sum[1]);
    if (h + 1 >= cells.begin && h + 1 < cells.end)
      write_two(j, g, row + j.w.in, w, sum[2], sum[3]);
    own = below;
    right = corner;
    below = next;
    corner = beside;
  }
  return unusual;
}

/* Step 1, windows of 3: rows of cells.  Outputs lie P further on than the last cells of their
 * windows. */
template <int P, typename E, typename I>
static __device__ __forceinline__ bool go_by_one(const scatter_job &j, const plane_at<E, I> &p,
                                                 pg_span cells, int32_t w, int32_t begin,
                                                 int32_t end) {
  enum { OWN = 2 - P };
  const int32_t up = P - 2, left = w + P - 2;
  bool unusual = false;
  output o[4][3];
#pragma unroll
  for (int i = 0; i < 9; i++) o[i / 3][i % 3] = look(j, p, begin + up + i / 3, left + i % 3);
  for (int32_t h = begin; h < end; h++) {
#pragma unroll
    for (int i = 0; i < 3; i++) o[3][i] = look(j, p, h + up + 3, left + i); /* for the next row */
    const uint32_t at = (uint32_t)(h * j.w.in + w);
    float sum = 0;
#pragma unroll
    for (int i = 0; i < 9; i++) take(sum, o[i / 3][i % 3], at);
    unusual |= is_unusual<3, 1>(j, o[OWN][OWN], h, w);
    if (h >= cells.begin && h < cells.end && w < j.w.in)
      put_stream(p.out + (int64_t)h * j.w.in + w, sum, j.stream);
#pragma unroll
    for (int i = 0; i < 9; i++) o[i / 3][i % 3] = o[i / 3 + 1][i % 3];
  }
  return unusual;
}

/* The rows that an item's threads go through: those of the outputs whose own cells it has, and at
 * the edges those that have none. */
template <int S>
static __device__ __forceinline__ pg_span rows_of(const scatter_job &j, const gather_plan &g,
                                                  pg_span h) {
  pg_span rows = {h.begin, h.end};
  if (S == 2) {
    rows.begin = (h.begin + g.shift_h + 2) / 2 - 1; /* shifts are -1, 0 or 1 */
    rows.end = (h.end - 1 + g.shift_h + 2) / 2;
  }
  if (h.begin == 0) rows.begin = min(rows.begin, 0);
  if (h.end == j.h.in) rows.end = max(rows.end, j.h.out);
  return rows;
}

extern __shared__ float4 pg_gather_room[];

/* Not inlined: what is rare shall not take registers from what is not. */
template <typename E, typename I>
static __device__ __noinline__ void make_unusual(const scatter_job &j, const scan_plan &s,
                                                 found_bad *found) {
  make_item<true, E, I>(j, s, blockIdx.x, (float *)pg_gather_room, found + threadIdx.x / 32);
}

/* P: how much padding, where windows slide by 1. */
template <int K, int S, int P, typename E, typename I>
static __global__ void __launch_bounds__(GATHER_THREADS, GATHER_BLOCKS)
    gather(const __grid_constant__ scatter_job j, const __grid_constant__ scan_plan s,
           const __grid_constant__ gather_plan g) {
  __shared__ found_bad found[GATHER_THREADS / 32];
  const pg_box_32 b = box_32(j.cut, blockIdx.x);
  const pg_span rows = rows_of<S>(j, g, b.h);
  const int32_t tasks = b.planes * g.chunks * g.columns;
  bool unusual = false;
  for (int32_t task = threadIdx.x; task < tasks; task += GATHER_THREADS) {
    const int32_t upper = (int32_t)over(task, g.by_columns);
    const int32_t plane = (int32_t)over(upper, g.by_chunks);
    const int32_t column = g.first + task - upper * g.columns;
    const int32_t begin = rows.begin + (upper - plane * g.chunks) * g.rows;
    const int32_t end = min(begin + g.rows, rows.end);
    const int64_t at = b.first + plane;
    const plane_at<E, I> p = {(const I *)j.index + at * j.outputs,
                              (const E *)j.grad + at * j.outputs, (E *)j.in + at * j.cells};
    if (S == 2)
      unusual |= go_by_two<K>(j, g, p, b.h, column, begin, end);
    else
      unusual |= go_by_one<P>(j, p, b.h, column, begin, end);
  }
  if (__syncthreads_or(unusual)) make_unusual<E, I>(j, s, found);
}

/* --- On the host --- */

static bool slides(const pg_axis &a, int64_t kernel, int64_t stride) {
  return a.kernel == kernel && a.stride == stride && a.dilation == 1 && a.pad <= 1;
}

static bool both_slide(const pg_pooling &p, int64_t kernel, int64_t stride) {
  return slides(p.h, kernel, stride) && slides(p.w, kernel, stride);
}

static gather_plan gather_plan_of(const scatter_job &j, int64_t element_bytes) {
  const pg_pooling &p = j.pool;
  const int32_t stride = (int32_t)p.w.stride, more = p.w.kernel == 3 && stride == 2;
  gather_plan g = {};
  g.shift_h = stride == 2 ? (int32_t)p.h.pad - more : 0;
  g.shift_w = stride == 2 ? (int32_t)p.w.pad - more : 0;
  g.first = g.shift_w < 0 ? -1 : 0;
  const int64_t last = (p.w.in - 1 + g.shift_w) / stride + 1;
  g.columns = (int32_t)(last > p.w.out ? last : p.w.out) - g.first;
  const int64_t rows = (j.tiling.h + 2 * stride) / stride;
  const int64_t most = GATHER_THREADS / (g.columns * j.tiling.planes);
  g.chunks = (int32_t)least(most < 1 ? 1 : most, rows);
  g.rows = (int32_t)((rows + g.chunks - 1) / g.chunks);
  g.pairs = g.shift_w == 0 && p.w.in % 2 == 0 && (uintptr_t)j.in % (2 * element_bytes) == 0;
  g.by_columns = divider_of(g.columns);
  g.by_chunks = divider_of(g.chunks);
  return g;
}

template <typename E, typename I>
static bool try_types(const pg_cuda_call *call, cudaError_t *status) {
  const scatter_job j = scatter_job_of(call, sizeof(E));
  const pg_pooling &p = j.pool;
  if (!j.narrow || j.again || j.deep || !j.flat_in || !j.flat_out) return false;
  if (j.tiling.w != p.w.in || p.w.in < 8 || p.h.in < 4) return false;
  if (!both_slide(p, 2, 2) && !both_slide(p, 3, 2) && !both_slide(p, 3, 1)) return false;
  const scan_plan s = scan_plan_of(j);
  const gather_plan g = gather_plan_of(j, sizeof(E));
  const int64_t bytes =
      (j.tiling.planes * j.tiling.d * j.tiling.h * j.tiling.w + 16) * (int64_t)sizeof(float);
  if (both_slide(p, 2, 2))
    *status = launch(call, gather<2, 2, 0, E, I>, j.items, GATHER_THREADS, bytes, j, s, g);
  else if (both_slide(p, 3, 2))
    *status = launch(call, gather<3, 2, 0, E, I>, j.items, GATHER_THREADS, bytes, j, s, g);
  else if (both_slide(p, 3, 1) && p.h.pad == 1 && p.w.pad == 1)
    *status = launch(call, gather<3, 1, 1, E, I>, j.items, GATHER_THREADS, bytes, j, s, g);
  else if (both_slide(p, 3, 1) && p.h.pad == 0 && p.w.pad == 0)
    *status = launch(call, gather<3, 1, 0, E, I>, j.items, GATHER_THREADS, bytes, j, s, g);
  else
    return false;
  return true;
}

bool pg_cuda_try_gather(const pg_cuda_call *call, cudaError_t *status) {
  bool done = false;
  (void)with_scatter_types(call->step, [&](auto e, auto i) {
    done = try_types<decltype(e), decltype(i)>(call, status);
    return cudaSuccess;
  });
  return done;
}
