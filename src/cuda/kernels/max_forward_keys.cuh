/* SPDX-License-Identifier: Apache-2.0 */
/* Maxima of 16-bit elements: a cell and its row are one number, a key, and the greatest key is
 * found by one instruction for each cell and one for each column.
 *
 * The upper half of a key is the cell, changed so that whole numbers are ordered as the cells are;
 * the lower half is greater the earlier the row is.  +0 is added to a cell first: so -0 becomes +0,
 * and every NaN the same one, which is greater than all numbers.  Where the greatest key is that of
 * zero the cell is read again for its sign, and where it is that of NaN the window is searched for
 * its last one, after all outputs of the thread are written. */
#ifndef PG_CUDA_MAX_FORWARD_KEYS_CUH_
#define PG_CUDA_MAX_FORWARD_KEYS_CUH_

#include "cuda/kernels/forward_columns.cuh"

enum { KEY_ROWS = 0xffff /* planes with fewer rows have keys */ };

static __device__ __forceinline__ uint32_t plus_zero(pg_f16, uint32_t two) {
  __half2 h;
  memcpy(&h, &two, 4);
  h = __hadd2(h, __float2half2_rn(0.0f));
  memcpy(&two, &h, 4);
  return two;
}
static __device__ __forceinline__ uint32_t plus_zero(pg_bf16, uint32_t two) {
  __nv_bfloat162 h;
  memcpy(&h, &two, 4);
  h = __hadd2(h, __float2bfloat162_rn(0.0f));
  memcpy(&two, &h, 4);
  return two;
}

/* What infinity and its negative are among cells. */
static __device__ __forceinline__ uint16_t infinity_of(pg_f16) { return 0x7c00; }
static __device__ __forceinline__ uint16_t infinity_of(pg_bf16) { return 0x7f80; }

/* Orders a number whose upper half is a cell; doing so twice gives it back. */
static __device__ __forceinline__ int32_t reordered(int32_t key) {
  return key ^ (key >> 31 & 0x7fff0000);
}

template <typename T, int V>
static __device__ __forceinline__ void keys_of(const vector_of<T, V> &cells, uint32_t row,
                                               int32_t *keys) {
  const uint32_t low = KEY_ROWS - row;
#pragma unroll
  for (int v = 0; v < V; v += 2) {
    const uint32_t other = v + 1 < V ? cells.of[v + 1 < V ? v + 1 : v].bits : 0;
    const uint32_t two = plus_zero(T(), cells.of[v].bits | other << 16);
    keys[v] = reordered((int32_t)__byte_perm(two, low, 0x1054));
    if (v + 1 < V) keys[v + 1 < V ? v + 1 : v] = reordered((int32_t)__byte_perm(two, low, 0x3254));
  }
}

template <typename T>
struct max_keys {
  typedef T element;
  typedef int32_t column;
  typedef uint32_t room; /* the address of a key in shared memory */
  static constexpr int BYTES = 4;

  static __device__ __forceinline__ room room_at(const column_plan &p, uint32_t memory,
                                                 uint32_t x) {
    return memory + p.results_at + x * BYTES;
  }
  static __device__ __forceinline__ room below(room r, uint32_t columns) {
    return r + columns * BYTES;
  }
  /* Less than the key of any cell. */
  template <int V>
  static __device__ __forceinline__ void outside(int32_t *keys) {
#pragma unroll
    for (int v = 0; v < V; v++) keys[v] = INT32_MIN;
  }
  template <int V>
  static __device__ __forceinline__ void clear(int32_t *keys, uint32_t) {
    outside<V>(keys);
  }
  /* Stands for cells outside the plane.  Their rows count as later than all others, or are. */
  static __device__ __forceinline__ T filler() { return {(uint16_t)(infinity_of(T()) | 0x8000)}; }
  template <int V>
  static __device__ __forceinline__ void take_cells(int32_t *keys, const vector_of<T, V> &cells,
                                                    uint32_t row) {
    int32_t more[V];
    keys_of(cells, row, more);
#pragma unroll
    for (int v = 0; v < V; v++) keys[v] = max(keys[v], more[v]);
  }
  template <int V, int K>
  static __device__ __forceinline__ void take_window(int32_t *keys, const vector_of<T, V> *cells,
                                                     const bool *, uint32_t row) {
    keys_of(cells[0], row, keys);
#pragma unroll
    for (int k = 1; k < K; k++) take_cells<V>(keys, cells[k], row + (uint32_t)k);
  }
  template <int V>
  static __device__ __forceinline__ void keep(room to, const int32_t *keys) {
    store_shared<V>(to, keys);
  }
};

/* --- Zeros and NaNs --- */

/* An output of a tile: its row among those of the tile. */
struct tile_output {
  int32_t row;
  uint32_t ow, channel;
};

/* The cell at a position of the output's plane. */
template <typename T>
static __device__ __noinline__ T read_again(const column_plan &p, const column_tile &t,
                                            const tile_output &o, uint32_t row, uint32_t w) {
  const uint32_t unit = over((uint32_t)o.row, p.by_tile_rows);
  const uint32_t d = row / (uint32_t)p.h.windows.in, h = row - d * (uint32_t)p.h.windows.in;
  return ((const T *)p.in)[t.in + (unit * p.in_strides.unit + d * p.in_strides.d +
                                   h * p.in_strides.h + w * p.in_strides.w + o.channel)];
}

/* The last NaN of a window that has one. */
template <typename T>
static __device__ __noinline__ found_cell<T> last_nan(const column_plan &p, const column_tile &t,
                                                      const tile_output &o) {
  const uint32_t unit = over((uint32_t)o.row, p.by_tile_rows);
  const uint32_t row = (uint32_t)t.row + (uint32_t)o.row - unit * p.by_tile_rows.by;
  const uint32_t od = over(row, p.by_oh), oh = row - od * p.by_oh.by;
  const forward_taps d = taps_of(p.d, (int32_t)od), h = taps_of(p.h, (int32_t)oh),
                     w = taps_of(p.w, (int32_t)o.ow);
  found_cell<T> found = {};
  for (int32_t i = 0; i < d.count; i++)
    for (int32_t j = 0; j < h.count; j++)
      for (int32_t k = 0; k < w.count; k++) {
        const uint32_t at =
            (uint32_t)(d.first + i * (int32_t)p.d.step.by) * (uint32_t)p.h.windows.in +
            (uint32_t)(h.first + j * (int32_t)p.h.step.by);
        const uint32_t column = (uint32_t)(w.first + k * (int32_t)p.w.step.by);
        const T cell = read_again<T>(p, t, o, at, column);
        if ((cell.bits & 0x7fff) > infinity_of(T()))
          found = {cell, at * (uint32_t)p.w.windows.in + column};
      }
  return found;
}

/* The cell of a key that lies in column w, for all keys but those of zero and of NaN. */
template <typename T>
static __device__ __forceinline__ found_cell<T> cell_of_key(const column_plan &p, int32_t key,
                                                            uint32_t w) {
  const uint32_t row = KEY_ROWS - ((uint32_t)key & 0xffff);
  return {{(uint16_t)(reordered(key) >> 16)}, row * (uint32_t)p.w.windows.in + w};
}

template <typename T>
static __device__ __forceinline__ bool is_odd_key(int32_t key) {
  return key >> 16 == 0 || key >> 16 > infinity_of(T());
}

#endif
