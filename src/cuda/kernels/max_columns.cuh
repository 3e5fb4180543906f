/* SPDX-License-Identifier: Apache-2.0 */
/* Ways down a column of gradInput for lanes that serve those beside them: by words of several cells
 * where windows slide by 2, cell by cell where they slide by 1. */
#ifndef PG_CUDA_MAX_COLUMNS_CUH_
#define PG_CUDA_MAX_COLUMNS_CUH_

#include "cuda/kernels/max_recompute.cuh"

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

static __device__ __forceinline__ void take(float &sum, const output &o, uint32_t cell) {
  if (o.cell == cell) sum += o.grad;
}

/* Where along W a window's cells are: `span` of them from `first` on, counted from its begin. */
struct columns_inside {
  uint32_t first, span;
};

template <int K>
static __device__ __forceinline__ columns_inside inside_of(const max_job &j, int32_t w) {
  const int32_t first = max(-w, 0);
  return {(uint32_t)first, (uint32_t)max(min(K, j.w.in - w) - first, 0)};
}

/* Does the output name a cell of its window, which begins at `begin`?  Rows above or below the
 * plane have no cells to be named. */
template <int K>
static __device__ __forceinline__ bool is_usual(const max_job &j, uint32_t cell, uint32_t begin,
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

static __device__ __forceinline__ void put_one(float *to, float sum) { __stcs(to, sum); }
template <typename E>
static __device__ __forceinline__ void put_one(E *to, float sum) {
  E e;
  put(&e, sum);
  __stcs((unsigned short *)to, e.bits);
}

/* To the next of the rows that matter.  Before the first and behind the last there is none: what is
 * read there is not used, but a load that does not happen would have to be told from one that does.
 */
template <typename E, typename I>
static __device__ __forceinline__ void go_down(const max_job &j, int32_t row, int32_t end,
                                               const I **index, const E **grad) {
  const int32_t step = row >= 0 && row < end - 1 ? j.w.out : 0;
  *index += step;
  *grad += step;
}

static __device__ __forceinline__ int32_t inside(int32_t at, int32_t end) {
  return min(max(at, 0), end - 1);
}

/* Rows of outputs in two sets that take turns: a move from one to the other would wait for what is
 * still to come.  (ptxas 13.0 counts the loads of both together, so that one set is waited for with
 * the other; without moves it was faster all the same.) */
template <typename B>
static __device__ __forceinline__ void in_turns(B &b, int32_t rows) {
  typename B::set one = {}, other = {};
  b.send_for(one);
#pragma unroll 1
  for (int32_t left = rows; left > 0; left -= 2 * B::SET) {
    b.send_for(other);
    b.use(one);
    if (left <= B::SET) break;
    b.send_for(one);
    b.use(other);
  }
}

/* Step 2, V outputs side by side, where rows are made of such and words of 16 or 8 bytes.  A
 * window of 3 ends with the first cell of the outputs after: those of the next lane, if they do not
 * belong to another row: then they name no cell here, unless they are unusual. */
template <int K, int V, typename E, typename I>
struct by_words {
  enum { SET = V == 4 ? 1 : 2 /* rows on their way together */, LAST = K - 2 };
  const max_job &j;
  const I *index;
  const E *grad;
  E *out;
  int32_t row, end; /* of outputs: the next to be sent for, behind the last that matters */
  int32_t arrived;  /* the next to come */
  uint32_t at, h;   /* where that one's own cells begin: in the plane, from the item's first row */
  uint32_t made, count;  /* which row of the lane's it is; how many are the lane's to write */
  uint32_t tall, before; /* the item's rows; 1 where the first window begins outside the plane */
  bool usual;
  output o[2][V + 1];

  struct set {
    neighbours<I, V> index[SET];
    neighbours<E, V> grad[SET];
  };

  __device__ __forceinline__ void send_for(set &s) {
#pragma unroll
    for (int i = 0; i < SET; i++, row++) {
      s.index[i].load(index);
      s.grad[i].load(grad);
      go_down(j, row, end, &index, &grad);
    }
  }

  __device__ __forceinline__ void look(const set &s, int i) {
    const bool there = (uint32_t)arrived < (uint32_t)end;
    const uint32_t window = at - (K == 3 ? j.w.in + 1 : 0);
    uint32_t high = 0;
    output *to = o[i % 2];
#pragma unroll
    for (int v = 0; v < V; v++) {
      const I index = s.index[i].of[v];
      if (sizeof(I) == 8) high |= (uint32_t)((uint64_t)index >> 32);
      to[v] = {there ? (uint32_t)index : ~0u, widened(s.grad[i].of[v])};
      const uint32_t outside = v == 0 ? before : 0;
      usual &= !there | is_usual<K>(j, to[v].cell, window + 2 * v, {outside, K - outside});
    }
    usual &= !there | (high == 0);
    if (K == 3)
      to[V] = {__shfl_down_sync(EVERY_LANE, to[0].cell, 1),
               __shfl_down_sync(EVERY_LANE, to[0].grad, 1)};
    arrived++;
  }

  /* The own cells of a row of outputs, of which those below it have a part too. */
  __device__ __forceinline__ void make(const output *own, const output *below, uint32_t first) {
    const uint32_t wide = j.w.in;
    float sum[2][2 * V] = {};
#pragma unroll
    for (int x = 0; x < 2 * V; x++) {
      const uint32_t cell = first + x, under = cell + wide;
      take(sum[0][x], own[x / 2], cell);
      if (K == 3 && x % 2 == 1) take(sum[0][x], own[x / 2 + 1], cell);
      take(sum[1][x], own[x / 2], under);
      if (K == 3 && x % 2 == 1) take(sum[1][x], own[x / 2 + 1], under);
      if (K == 3) take(sum[1][x], below[x / 2], under);
      if (K == 3 && x % 2 == 1) take(sum[1][x], below[x / 2 + 1], under);
    }
    const uint32_t upper = h - 2 * LAST;
    if ((made < count) & (upper < tall)) put_vector<2 * V>(out, sum[0]);
    if ((made < count) & (upper + 1 < tall)) put_vector<2 * V>(out + wide, sum[1]);
  }

  __device__ __forceinline__ void use(const set &s) {
    const uint32_t step = 2 * (uint32_t)j.w.in;
#pragma unroll
    for (int i = 0; i < SET; i++, at += step, h += 2, made++, out += step) {
      look(s, i);
      if (K == 3)
        make(o[(i + 1) % 2], o[i % 2], at - step);
      else
        make(o[i % 2], nullptr, at);
    }
  }
};

/* `rows` rows of outputs from `begin` on, all lanes together; true if one is unusual. */
template <int K, int V, typename E, typename I>
static __device__ __forceinline__ bool go_by_words(const max_job &j, int64_t plane, pg_span cells,
                                                   int32_t ow, int32_t begin, int32_t end,
                                                   int32_t rows, bool there, bool mine) {
  typedef by_words<K, V, E, I> by;
  const int32_t w = 2 * ow, top = 2 * begin, last = by::LAST;
  const int64_t first = plane * j.outputs + inside(begin, j.h.out) * j.w.out + ow;
  const int64_t above = plane * j.cells + (top - 2 * last) * j.w.in + w;
  by b = {j, (const I *)j.index + first, (const E *)j.grad + first, (E *)j.in + above};
  b.row = b.arrived = begin;
  b.end = there ? min(end + last, j.h.out) : 0;
  b.at = (uint32_t)(top * j.w.in + w);
  b.h = (uint32_t)(top - cells.begin);
  b.made = (uint32_t)-last;
  b.count = there && mine ? (uint32_t)max(end - begin, 0) : 0;
  b.tall = (uint32_t)length(cells);
  b.before = K == 3 && ow == 0;
  b.usual = true;
#pragma unroll
  for (int v = 0; v <= V; v++) b.o[1][v] = {~0u, 0};
  in_turns(b, rows + last);
  return !b.usual;
}

/* Step 1, windows of 3.  Outputs lie `pad` further on than the first cells of their windows.  A
 * lane reads the middle one of the three columns of outputs that its cells lie in, and asks the
 * lanes beside it for theirs.  Those may belong to the other end of another row: they name no cell
 * here, unless they are unusual. */
template <typename E, typename I>
struct by_one {
  enum { SET = 3 /* rows on their way together */ };
  const max_job &j;
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
    for (int i = 0; i < SET; i++, row++) {
      s.index[i] = __ldg(index);
      s.grad[i] = *grad;
      go_down(j, row, end, &index, &grad);
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
      if (made < count) put_one(out, sum);
    }
  }
};

/* `rows` rows from `begin` on, all lanes together; true if an output is unusual. */
template <typename E, typename I>
static __device__ __forceinline__ bool go_by_one(const max_job &j, int64_t plane, pg_span cells,
                                                 int32_t w, int32_t begin, int32_t rows, bool there,
                                                 bool mine) {
  const int32_t pad = j.w.pad;
  typedef by_one<E, I> by;
  const int32_t ow = w + pad - 1, row = begin + pad - 2, last = min(begin + rows, cells.end);
  const int64_t first = plane * j.outputs + inside(row, j.h.out) * j.w.out + inside(ow, j.w.out);
  const int64_t above = plane * j.cells + (begin - 2) * j.w.in + w;
  by b = {j, (const I *)j.index + first, (const E *)j.grad + first, (E *)j.in + above};
  b.row = b.arrived = row;
  b.end = there && (uint32_t)ow < (uint32_t)j.w.out ? min(last + pad, j.h.out) : 0;
  b.at = (uint32_t)((begin - 2) * j.w.in + w);
  b.made = (uint32_t)-2; /* two rows of outputs come before the first of cells */
  b.count = there && mine ? (uint32_t)max(last - begin, 0) : 0;
  b.window = (uint32_t)((row - pad) * j.w.in + ow - pad);
  b.c = inside_of<3>(j, ow - pad);
  b.usual = true;
  in_turns(b, rows + 2);
  return !b.usual;
}

#endif
