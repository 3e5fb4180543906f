/* SPDX-License-Identifier: Apache-2.0 */
/* SCATTER of the usual pools: windows of 2 or 3 cells that slide by 2, or of 3 that slide by 1,
 * over planes that follow each other.
 *
 * A thread goes down a column of gradInput, one cell wide or two as the windows' step is, and looks
 * at the outputs whose windows hold its cells: each adds to the cell that its index names.  Nothing
 * is shared but the look at the indices: one that points out of its window is unusual, and each
 * block whose cells its window has makes its item again, see item.cuh. */
#include "cuda/item.cuh"

/* Where windows slide by 1 a warp's outer lanes only serve those beside them. */
enum { GATHER_THREADS = 128, ROWS_OF_THREAD = 7, LANES_BY_ONE = 30 };

/* Rows whose outputs a thread has on their way together: as many as registers hold. */
enum { ROWS_AT_ONCE = 4, ROWS_OF_WORDS = 2 };

/* Blocks of a processor: as many as do with their registers. */
static constexpr int blocks_of(int kernel, int stride, int words) {
  if (stride == 1 || words == 4 || (kernel == 3 && words == 1)) return 7;
  return kernel == 3 ? 8 : 9;
}

/* Columns of threads begin at `first`; a column's rows are cut into `chunks` of `rows`. */
struct gather_plan {
  int32_t first, columns, chunks, rows, threads;
  int32_t shift_h,
      shift_w;   /* an output's own cells begin at its number times the step, less these */
  bool pairs;    /* two cells can be written at once */
  int32_t words; /* not 0: outputs a thread takes side by side, see go_by_words */
  pg_divider by_columns, by_chunks;
};

/* An output: the cell it names, or ~0. */
struct output {
  uint32_t cell;
  float grad;
};

/* V neighbours, at an address that is a multiple of their size or of 16. */
template <typename T, int V>
struct neighbours {
  T of[V];
  __device__ __forceinline__ void load(const T *from) {
    if constexpr (sizeof of == 4) {
      const uint32_t word = __ldg((const uint32_t *)from);
      memcpy(of, &word, 4);
    } else {
      vector_of<T, V> vector;
      vector.load(from);
      memcpy(of, vector.of, sizeof of);
    }
  }
};

/* A column of outputs, read row by row.  Behind the last row it stays there, and names nothing. */
template <typename E, typename I>
struct column_of {
  const I *index;
  const E *grad;
  uint32_t nothing; /* ~0 where there is no such column */

  __device__ __forceinline__ output look(uint32_t none, uint32_t *high) const {
    const I at = __ldg(index);
    if (sizeof(I) == 8 && high != nullptr) *high |= (uint32_t)((uint64_t)at >> 32);
    return {(uint32_t)at | none | nothing, widened(*grad)};
  }
  __device__ __forceinline__ void go(int32_t step) {
    index += step;
    grad += step;
  }
};

template <typename E, typename I>
static __device__ __forceinline__ column_of<E, I> column_at(const scatter_job &j, int64_t first,
                                                            int32_t row, int32_t column) {
  const int32_t w = min(max(column, 0), j.w.out - 1), h = min(max(row, 0), j.h.out - 1);
  const int64_t at = first + h * j.w.out + w;
  return {(const I *)j.index + at, (const E *)j.grad + at, w == column ? 0 : ~0u};
}

/* Rows of outputs, one after the other. */
struct row_of {
  int32_t at, end;
  __device__ __forceinline__ uint32_t nothing() const {
    return (uint32_t)at < (uint32_t)end ? 0 : ~0u;
  }
  /* How far on the next row is. */
  __device__ __forceinline__ int32_t next(int32_t step) {
    const bool moves = (uint32_t)at < (uint32_t)(end - 1);
    at++;
    return moves ? step : 0;
  }
};

static __device__ __forceinline__ void take(float &sum, const output &o, uint32_t cell) {
  if (o.cell == cell) sum += o.grad;
}

/* Where along W a window's cells are: `span` of them from `first` on, counted from its begin. */
struct columns_inside {
  uint32_t first, span;
};

template <int K>
static __device__ __forceinline__ columns_inside inside_of(const scatter_job &j, int32_t w) {
  const int32_t first = max(-w, 0);
  return {(uint32_t)first, (uint32_t)max(min(K, j.w.in - w) - first, 0)};
}

/* Does the output name a cell of its window, which begins at `begin`?  Rows above or below the
 * plane have no cells to be named. */
template <int K>
static __device__ __forceinline__ bool is_usual(const scatter_job &j, uint32_t cell, uint32_t begin,
                                                columns_inside c) {
  uint32_t rest = cell - begin - c.first;
  bool inside = rest < c.span;
#pragma unroll
  for (int i = 1; i < K; i++) {
    rest -= j.w.in;
    inside |= rest < c.span;
  }
  return inside & (cell < j.cells);
}

template <bool STREAM, typename E>
static __device__ __forceinline__ void put_one(E *to, float sum) {
  E e;
  put(&e, sum);
  if constexpr (!STREAM)
    *to = e;
  else if constexpr (sizeof(E) == 4)
    __stcs((float *)to, sum);
  else
    __stcs((unsigned short *)to, e.bits);
}

template <bool STREAM>
static __device__ __forceinline__ void put_two(float *to, float a, float b) {
  const float2 two = make_float2(a, b);
  if (STREAM)
    __stcs((float2 *)to, two);
  else
    *(float2 *)to = two;
}
template <bool STREAM, typename E>
static __device__ __forceinline__ void put_two(E *to, float a, float b) {
  const uint32_t two = packed(E(), a, b);
  if (STREAM)
    __stcs((uint32_t *)to, two);
  else
    *(uint32_t *)to = two;
}

/* Step 2: rows [begin, end) of outputs with their two by two own cells.  A window of 3 begins one
 * before those, with the last of the outputs before. */
template <bool STREAM, int K, int AT_ONCE, typename E, typename I>
static __device__ __forceinline__ bool go_by_two(const scatter_job &j, const gather_plan &g,
                                                 int64_t plane, pg_span cells, int32_t ow,
                                                 int32_t begin, int32_t end) {
  enum { LAST = K - 2 /* row of outputs that a row's cells end with */ };
  const int32_t w = 2 * ow - g.shift_w, top = 2 * begin - g.shift_h, wide = j.w.in;
  const bool left = (uint32_t)w < (uint32_t)wide, right = (uint32_t)(w + 1) < (uint32_t)wide;
  const columns_inside c = inside_of<K>(j, 2 * ow - j.w.pad);
  column_of<E, I> own = column_at<E, I>(j, plane * j.outputs, begin, ow);
  column_of<E, I> next = column_at<E, I>(j, plane * j.outputs, begin, ow + 1);
  E *out = (E *)j.in + plane * j.cells + top * wide + w;
  row_of row = {begin, j.h.out};
  uint32_t at = (uint32_t)(top * wide + w), h = (uint32_t)(top - cells.begin), high = 0;
  const uint32_t tall = (uint32_t)length(cells);
  bool usual = true;
  output o[AT_ONCE + 1][2];
  const auto check = [&](const output &output, int32_t row, uint32_t own_cell) {
    usual &= is_usual<K>(j, output.cell, own_cell - (K == 3 ? wide + 1 : 0), c) |
             ((uint32_t)row >= (uint32_t)j.h.out) | (own.nothing != 0);
  };
  const auto look = [&](int i) {
    const uint32_t none = row.nothing();
    o[i][0] = own.look(none, &high);
    if (K == 3) o[i][1] = next.look(none, nullptr);
    const int32_t step = row.next(j.w.out);
    own.go(step);
    if (K == 3) next.go(step);
  };
  look(0);
  if (K == 3) check(o[0][0], begin, at);
  for (int32_t oh = begin; oh < end; oh += AT_ONCE) {
#pragma unroll
    for (int i = 1; i <= AT_ONCE; i++) look(i); /* all on their way before the first is used */
#pragma unroll
    for (int i = 0; i < AT_ONCE; i++, at += 2 * wide, h += 2) {
      if (oh + i >= end) break;
      check(o[i + LAST][0], oh + i + LAST, at + LAST * 2 * wide);
      float sum[4] = {0, 0, 0, 0};
      take(sum[0], o[i][0], at);
      take(sum[1], o[i][0], at + 1);
      take(sum[2], o[i][0], at + wide);
      take(sum[3], o[i][0], at + wide + 1);
      if (K == 3) {
        take(sum[1], o[i][1], at + 1);
        take(sum[3], o[i][1], at + wide + 1);
        take(sum[2], o[i + 1][0], at + wide);
        take(sum[3], o[i + 1][0], at + wide + 1);
        take(sum[3], o[i + 1][1], at + wide + 1);
      }
      if (g.pairs) {
        if (right & (h < tall)) put_two<STREAM>(out, sum[0], sum[1]);
        if (right & (h + 1 < tall)) put_two<STREAM>(out + wide, sum[2], sum[3]);
      } else {
        if (left & (h < tall)) put_one<STREAM>(out, sum[0]);
        if (right & (h < tall)) put_one<STREAM>(out + 1, sum[1]);
        if (left & (h + 1 < tall)) put_one<STREAM>(out + wide, sum[2]);
        if (right & (h + 1 < tall)) put_one<STREAM>(out + wide + 1, sum[3]);
      }
      out += 2 * wide;
    }
    o[0][0] = o[AT_ONCE][0];
    o[0][1] = o[AT_ONCE][1];
  }
  return !usual | (high != 0);
}

/* The same for V outputs side by side, where rows are made of such and words of 16 or 8 bytes. */
template <bool STREAM, int K, int V, int AT_ONCE, typename E, typename I>
static __device__ __forceinline__ bool go_by_words(const scatter_job &j, int64_t plane,
                                                   pg_span cells, int32_t ow, int32_t begin,
                                                   int32_t end) {
  enum { LAST = K - 2 };
  const int32_t w = 2 * ow, top = 2 * begin, wide = j.w.in;
  column_of<E, I> own = column_at<E, I>(j, plane * j.outputs, begin, ow);
  column_of<E, I> next = column_at<E, I>(j, plane * j.outputs, begin, ow + V);
  E *out = (E *)j.in + plane * j.cells + top * wide + w;
  row_of row = {begin, j.h.out};
  uint32_t at = (uint32_t)(top * wide + w), h = (uint32_t)(top - cells.begin), high = 0;
  const uint32_t tall = (uint32_t)length(cells);
  columns_inside c[V];
#pragma unroll
  for (int v = 0; v < V; v++) c[v] = inside_of<K>(j, 2 * (ow + v) - (K == 3));
  bool usual = true;
  output o[AT_ONCE + 1][V + 1];
  const auto check = [&](const output *outputs, int32_t row, uint32_t own_cell) {
#pragma unroll
    for (int v = 0; v < V; v++)
      usual &= is_usual<K>(j, outputs[v].cell, own_cell + 2 * v - (K == 3 ? wide + 1 : 0), c[v]) |
               ((uint32_t)row >= (uint32_t)j.h.out);
  };
  const auto look = [&](int i) {
    const uint32_t none = row.nothing();
    neighbours<I, V> index;
    neighbours<E, V> grad;
    index.load(own.index);
    grad.load(own.grad);
#pragma unroll
    for (int v = 0; v < V; v++) {
      if (sizeof(I) == 8) high |= (uint32_t)((uint64_t)index.of[v] >> 32);
      o[i][v] = {(uint32_t)index.of[v] | none, widened(grad.of[v])};
    }
    if (K == 3) o[i][V] = next.look(none, nullptr);
    const int32_t step = row.next(j.w.out);
    own.go(step);
    if (K == 3) next.go(step);
  };
  look(0);
  if (K == 3) check(o[0], begin, at);
  for (int32_t oh = begin; oh < end; oh += AT_ONCE) {
#pragma unroll
    for (int i = 1; i <= AT_ONCE; i++) look(i); /* all on their way before the first is used */
#pragma unroll
    for (int i = 0; i < AT_ONCE; i++, at += 2 * wide, h += 2) {
      if (oh + i >= end) break;
      check(o[i + LAST], oh + i + LAST, at + LAST * 2 * wide);
      float sum[2][2 * V] = {};
#pragma unroll
      for (int x = 0; x < 2 * V; x++) {
        const uint32_t cell = at + x, under = cell + wide;
        take(sum[0][x], o[i][x / 2], cell);
        if (K == 3 && x % 2 == 1) take(sum[0][x], o[i][x / 2 + 1], cell);
        take(sum[1][x], o[i][x / 2], under);
        if (K == 3) {
          if (x % 2 == 1) take(sum[1][x], o[i][x / 2 + 1], under);
          take(sum[1][x], o[i + 1][x / 2], under);
          if (x % 2 == 1) take(sum[1][x], o[i + 1][x / 2 + 1], under);
        }
      }
      if (h < tall) put_vector<2 * V>(out, sum[0], STREAM);
      if (h + 1 < tall) put_vector<2 * V>(out + wide, sum[1], STREAM);
      out += 2 * wide;
    }
#pragma unroll
    for (int v = 0; v <= V; v++) o[0][v] = o[AT_ONCE][v];
  }
  return !usual | (high != 0);
}

/* Step 1, windows of 3.  Outputs lie P further on than the first cells of their windows.  A lane
 * reads the middle one of the three columns of outputs that its cells lie in, and asks the lanes
 * beside it for theirs.  Those may belong to the other end of another row: they name no cell here,
 * unless they are unusual. */
template <bool STREAM, int P, typename E, typename I>
struct by_one {
  enum { SET = 3 /* rows on their way together */ };
  const scatter_job &j;
  const I *index;
  const E *grad;
  E *out;
  int32_t row, end;         /* of outputs: the next to be sent for, behind the last that matters */
  int32_t arrived;          /* the next to come */
  uint32_t at, made, count; /* the cell, its row's number, rows that are the lane's to write */
  uint32_t window;          /* of the output that comes next: its first cell */
  columns_inside c;
  bool usual;
  output o[SET][3];

  struct set {
    I index[SET];
    E grad[SET];
  };

  __device__ __forceinline__ void send_for(set &s) {
#pragma unroll
    for (int i = 0; i < SET; i++, row++, index += j.w.out, grad += j.w.out)
      if ((uint32_t)row < (uint32_t)end) {
        s.index[i] = __ldg(index);
        s.grad[i] = *grad;
      }
  }

  __device__ __forceinline__ void look(const set &s, int i) {
    const bool there = (uint32_t)arrived < (uint32_t)end;
    const uint32_t cell = there ? (uint32_t)s.index[i] : ~0u;
    const float grad = widened(s.grad[i]);
    const bool high = sizeof(I) == 8 && (uint64_t)s.index[i] >> 32 != 0;
    usual &= !there | (is_usual<3>(j, cell, window, c) & !high);
    o[i][0] = {__shfl_up_sync(EVERY_LANE, cell, 1), __shfl_up_sync(EVERY_LANE, grad, 1)};
    o[i][1] = {cell, grad};
    o[i][2] = {__shfl_down_sync(EVERY_LANE, cell, 1), __shfl_down_sync(EVERY_LANE, grad, 1)};
    arrived++;
    window += j.w.in;
  }

  /* A row of cells ends with each of these rows of outputs. */
  __device__ __forceinline__ void use(const set &s) {
#pragma unroll
    for (int i = 0; i < SET; i++, made++, at += j.w.in, out += j.w.in) {
      look(s, i);
      float sum = 0;
#pragma unroll
      for (int k = 0; k < 9; k++) take(sum, o[(i + 1 + k / 3) % SET][k % 3], at);
      if (made < count) put_one<STREAM>(out, sum);
    }
  }
};

/* `rows` rows from `begin` on, all lanes together; true if an output is unusual. */
template <bool STREAM, int P, typename E, typename I>
static __device__ __forceinline__ bool go_by_one(const scatter_job &j, int64_t plane, pg_span cells,
                                                 int32_t w, int32_t begin, int32_t rows, bool there,
                                                 bool mine) {
  typedef by_one<STREAM, P, E, I> by;
  const int32_t ow = w + P - 1, row = begin + P - 2, last = min(begin + rows, cells.end);
  const int64_t first = plane * j.outputs + row * j.w.out + ow;
  const int64_t above = plane * j.cells + (begin - 2) * j.w.in + w;
  by b = {j, (const I *)j.index + first, (const E *)j.grad + first, (E *)j.in + above};
  b.row = b.arrived = row;
  b.end = there && (uint32_t)ow < (uint32_t)j.w.out ? min(last + P, j.h.out) : 0;
  b.at = (uint32_t)((begin - 2) * j.w.in + w);
  b.made = (uint32_t)-2; /* two rows of outputs come before the first of cells */
  b.count = there && mine ? (uint32_t)max(last - begin, 0) : 0;
  b.window = (uint32_t)((row - P) * j.w.in + ow - P);
  b.c = inside_of<3>(j, ow - P);
  b.usual = true;
  typename by::set one = {}, other = {};
  b.send_for(one);
#pragma unroll 1
  for (int32_t left = rows + 2; left > 0; left -= 2 * by::SET) {
    b.send_for(other); /* not moved from one to the other, which would wait for them */
    b.use(one);
    if (left <= by::SET) break;
    b.send_for(one);
    b.use(other);
  }
  return !b.usual;
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
  const uint32_t warp = threadIdx.x / 32;
  make_in_pieces<true, E, I>(j, s, blockIdx.x, (float *)pg_gather_room + warp * PIECE,
                             found + warp);
}

/* P: how much padding, where windows slide by 1; V: outputs side by side, where they slide by 2. */
template <bool STREAM, int K, int S, int P, int V, typename E, typename I>
static __global__ void __launch_bounds__(GATHER_THREADS, blocks_of(K, S, V))
    gather(const __grid_constant__ scatter_job j, const __grid_constant__ scan_plan s,
           const __grid_constant__ gather_plan g) {
  __shared__ found_bad found[GATHER_THREADS / 32];
  const pg_box_32 b = box_32(j.cut, blockIdx.x);
  const pg_span rows = rows_of<S>(j, g, b.h);
  const int32_t tasks = b.planes * g.chunks * g.columns;
  constexpr int LANES = S == 1 ? LANES_BY_ONE : 32;
  const int32_t lane = lane_number() - (S == 1), step = (int32_t)blockDim.x / 32 * LANES;
  bool unusual = false;
  for (int32_t done = 0; done < tasks; done += step) { /* the same for all: lanes serve others */
    const int32_t first = done + (int32_t)threadIdx.x / 32 * LANES;
    const bool there = (uint32_t)(first + lane) < (uint32_t)tasks;
    const int32_t task = there ? first + lane : 0; /* who has none may serve: with nothing */
    const int32_t upper = (int32_t)over(task, g.by_columns);
    const int32_t plane = (int32_t)over(upper, g.by_chunks);
    const int32_t column = g.first + task - upper * g.columns;
    const int32_t begin = rows.begin + (upper - plane * g.chunks) * g.rows;
    const int32_t end = min(begin + g.rows, rows.end);
    if constexpr (S == 1)
      unusual |= go_by_one<STREAM, P, E, I>(j, b.first + plane, b.h, column, begin, g.rows, there,
                                            (uint32_t)lane < LANES);
    else if (!there)
      break;
    else if constexpr (V == 1)
      unusual |=
          go_by_two<STREAM, K, ROWS_AT_ONCE, E, I>(j, g, b.first + plane, b.h, column, begin, end);
    else
      unusual |= go_by_words<STREAM, K, V, ROWS_OF_WORDS, E, I>(j, b.first + plane, b.h, V * column,
                                                                begin, end);
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

/* Outputs side by side whose cells are a word of 16 bytes, or of 8; 0 where rows are not made of
 * such. */
static int32_t words_of(const scatter_job &j, int64_t element_bytes) {
  const pg_pooling &p = j.pool;
  if (p.w.stride != 2 || p.w.pad != p.w.kernel - 2 || p.h.pad != p.w.pad || p.w.in != 2 * p.w.out)
    return 0;
  for (int64_t v = p.w.kernel == 2 && element_bytes == 2 ? 4 : 2; v > 1; v /= 2)
    if (p.w.out % v == 0 && (uintptr_t)j.in % (2 * v * element_bytes) == 0 &&
        (uintptr_t)j.grad % (v * element_bytes) == 0 &&
        (uintptr_t)j.index % least(16, v * (j.wide ? 8 : 4)) == 0)
      return (int32_t)v;
  return 0;
}

static gather_plan gather_plan_of(const scatter_job &j, int64_t element_bytes, int processors) {
  const pg_pooling &p = j.pool;
  const int32_t stride = (int32_t)p.w.stride, more = p.w.kernel == 3 && stride == 2;
  gather_plan g = {};
  g.shift_h = stride == 2 ? (int32_t)p.h.pad - more : 0;
  g.shift_w = stride == 2 ? (int32_t)p.w.pad - more : 0;
  g.first = g.shift_w < 0 ? -1 : 0;
  const int64_t last = (p.w.in - 1 + g.shift_w) / stride + 1;
  g.columns = (int32_t)(last > p.w.out ? last : p.w.out) - g.first;
  g.words = words_of(j, element_bytes);
  if (g.words > 0) g.columns = (int32_t)p.w.out / g.words;
  const int64_t odd = g.shift_h != 0 || j.tiling.h % stride != 0 || stride * p.h.out > p.h.in;
  const int64_t rows = (j.tiling.h + stride - 1) / stride + odd;
  /* So many rows that what a thread has to know first is worth it, unless nobody else waits. */
  const int64_t each = j.items < processors ? 1 : ROWS_OF_THREAD;
  const int64_t wanted = (rows + each - 1) / each, across = g.columns * j.tiling.planes;
  const int64_t lanes = stride == 1 ? LANES_BY_ONE : 32,
                most = GATHER_THREADS / 32 * lanes / across;
  g.chunks = (int32_t)least(most < 1 ? 1 : most, wanted);
  g.rows = (int32_t)((rows + g.chunks - 1) / g.chunks);
  g.threads = (int32_t)least((across * g.chunks + lanes - 1) / lanes * 32, GATHER_THREADS);
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
  const gather_plan g = gather_plan_of(j, sizeof(E), call->limits.processors);
  const int64_t bytes = g.threads / 32 * PIECE * (int64_t)sizeof(float);
  const bool padded = p.h.pad == 1 && p.w.pad == 1, bare = p.h.pad == 0 && p.w.pad == 0;
  const auto go = [&](auto kernel, auto streaming) {
    *status = launch(call, j.stream ? streaming : kernel, j.items, g.threads, bytes, j, s, g);
  };
  constexpr int FOUR = sizeof(E) == 2 ? 4 : 2; /* words of 16 bytes, where halves are not added */
  if (both_slide(p, 2, 2) && g.words == FOUR)
    go(gather<false, 2, 2, 0, FOUR, E, I>, gather<true, 2, 2, 0, FOUR, E, I>);
  else if (both_slide(p, 2, 2) && g.words == 2)
    go(gather<false, 2, 2, 0, 2, E, I>, gather<true, 2, 2, 0, 2, E, I>);
  else if (both_slide(p, 2, 2))
    go(gather<false, 2, 2, 0, 1, E, I>, gather<true, 2, 2, 0, 1, E, I>);
  else if (both_slide(p, 3, 2) && g.words == 2)
    go(gather<false, 3, 2, 0, 2, E, I>, gather<true, 3, 2, 0, 2, E, I>);
  else if (both_slide(p, 3, 2))
    go(gather<false, 3, 2, 0, 1, E, I>, gather<true, 3, 2, 0, 1, E, I>);
  else if (padded)
    go(gather<false, 3, 1, 1, 1, E, I>, gather<true, 3, 1, 1, 1, E, I>);
  else if (bare)
    go(gather<false, 3, 1, 0, 1, E, I>, gather<true, 3, 1, 0, 1, E, I>);
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
