/* SPDX-License-Identifier: Apache-2.0 */
/* What the two methods channels_last_columns share: how threads walk down columns where channels
 * are neighbours in memory.
 *
 * They are for windows of K x K cells that are S apart along H and W, in two dimensions, with K and
 * S known to the compiler.  A column is an output of each row, one below the other, and S columns
 * of cells; a thread has CHANNELS neighbouring channels of one or two columns, and walks down.
 * Each row of outputs adds to K rows of cells.  S of these are complete then and are written; the
 * sums of the other K - S stay in registers for the next row.  So a thread reads each output that
 * touches its cells once, and needs no shared memory.
 *
 * Threads are numbered by channels first, then by columns, so that the lanes of a warp read and
 * write memory that follows.  A column is cut into chunks of rows, because there are often too few
 * columns to keep the device busy.  The walk of a chunk begins with the rows of outputs before it
 * that touch its first cells, which the chunk before it reads as well. */
#ifndef PG_CUDA_CHANNELS_LAST_COLUMNS_CUH_
#define PG_CUDA_CHANNELS_LAST_COLUMNS_CUH_

#include "cuda/device_cuda.h"
#include "cuda/kernels/box.cuh"
#include "cuda/kernels/element.cuh"

enum {
  CHANNELS = 4,                 /* of a thread: the sums of more would not fit into its registers */
  WANTED_THREADS_PER_SM = 4096, /* twice what can run at a time; rows are cut until there are */
  LEAST_THREADS = 16,           /* of a chunk: with fewer, most lanes of a warp would be idle */
  LEAST_CHUNK_ROWS = 4,         /* shorter chunks would read too many rows of others */
  MOST_CHUNK_ROWS = 16          /* a chunk is never longer than this */
};

/* --- Threads --- */

/* How threads are numbered: by n, group of channels, chunk of rows, column, and CHANNELS channels
 * of the group.  The threads of a chunk, which have the last two, are divided into rounds.  A round
 * has as many threads as a block. */
struct channel_walk_plan {
  uint32_t block_rounds;    /* that a block computes, one after the other */
  uint32_t chunk_threads;   /* that have something to do */
  int32_t chunk_rows, rows; /* of a chunk; of a plane, see strips_of */
  int32_t group_channels;
  pg_divider by_vectors; /* of CHANNELS channels in a group */
  pg_divider by_rounds;  /* of a chunk */
  pg_divider by_chunks;  /* of a group */
  pg_divider by_groups;  /* of an n */
  int32_t block_threads; /* 0: the method is not for this problem */
};

/* A thread's channels from c on, its column, and its rows of outputs [begin, end). */
struct channel_walk {
  uint32_t n;
  int32_t c, column, begin, end;
  bool idle; /* it has none: it walks where another thread does, and writes nothing */
};

static __device__ __forceinline__ channel_walk channel_walk_of(const channel_walk_plan &p,
                                                               int32_t channels, uint32_t round) {
  const uint32_t chunk = over(round, p.by_rounds), group = over(chunk, p.by_chunks);
  const uint32_t number = (round - chunk * p.by_rounds.by) * blockDim.x + threadIdx.x;
  const uint32_t near = min(number, p.chunk_threads - 1);
  channel_walk walk;
  walk.n = over(group, p.by_groups);
  walk.begin = (int32_t)(chunk - group * p.by_chunks.by) * p.chunk_rows;
  walk.end = min(walk.begin + p.chunk_rows, p.rows);
  walk.column = (int32_t)over(near, p.by_vectors);
  walk.c = (int32_t)(near - walk.column * p.by_vectors.by) * CHANNELS +
           (int32_t)(group - walk.n * p.by_groups.by) * p.group_channels;
  walk.idle = number >= p.chunk_threads || walk.c >= channels;
  walk.c = min(walk.c, channels - CHANNELS);
  return walk;
}

/* --- CHANNELS elements in memory: 16 bytes of FLOAT, 8 of halves --- */

template <typename E>
struct channel_words {
  uint32_t word[sizeof(E)];
};

static __device__ __forceinline__ channel_words<float> load_channels(const float *from) {
  const uint4 w = __ldg((const uint4 *)from);
  return {{w.x, w.y, w.z, w.w}};
}
template <typename E>
static __device__ __forceinline__ channel_words<E> load_channels(const E *from) {
  const uint2 w = __ldg((const uint2 *)from);
  return {{w.x, w.y}};
}

/* An output that does not exist is 0, which changes no sum. */
template <typename E>
static __device__ __forceinline__ channel_words<E> load_channels_if(bool exists, const E *from) {
  channel_words<E> words = {};
  if (exists) words = load_channels(from);
  return words;
}

static __device__ __forceinline__ float channel(const channel_words<float> &words, int v) {
  return __uint_as_float(words.word[v]);
}
static __device__ __forceinline__ float channel(const channel_words<pg_f16> &words, int v) {
  const pg_f16 half = {(uint16_t)(words.word[v / 2] >> 16 * (v % 2))};
  return widened(half);
}
static __device__ __forceinline__ float channel(const channel_words<pg_bf16> &words, int v) {
  const uint32_t word = words.word[v / 2];
  return __uint_as_float(v % 2 == 0 ? word << 16 : word & 0xffff0000u);
}

static __device__ __forceinline__ void write_channels(float *to, const float *sum) {
  put_16(to, sum);
}
template <typename E>
static __device__ __forceinline__ void write_channels(E *to, const float *sum) {
  __stcs((uint2 *)to, make_uint2(packed(E(), sum[0], sum[1]), packed(E(), sum[2], sum[3])));
}

/* --- On the host --- */

static inline bool has_windows(const pg_axis &a, int64_t kernel, int64_t stride) {
  return a.kernel == kernel && a.stride == stride && a.dilation == 1 && a.pad < kernel && a.out > 0;
}

static inline bool has_square_windows(const pg_pooling &p, int64_t kernel, int64_t stride) {
  return has_windows(p.h, kernel, stride) && has_windows(p.w, kernel, stride);
}

/* How a method uses threads.  A thread's cells begin with cell `lead` of the window of its first
 * output.  If windows are padded, the first cell of the first window lies outside the plane; lead 1
 * leaves it out, which can save a column. */
struct channel_walk_shape {
  bool whole; /* a block computes an item, which has whole planes */
  int64_t lead;
  int64_t outputs;      /* of a thread in a row: its columns */
  int64_t most_threads; /* of a block */
};

/* Into how many strips of `stride` cells an axis is divided, if strip o begins with cell `lead` of
 * the window of output o.  Cells behind the last window need strips that have no output, and the
 * strip of the last output may lie behind the plane and have no cells. */
static inline int64_t strips_of(const pg_axis &a, int64_t lead) {
  const int64_t last = (a.in - 1 + a.pad - lead) / a.stride + 1;
  return last > a.out ? last : a.out;
}

static inline channel_walk_plan channel_walk_plan_of(const pg_pooling &p, const pg_tiling &t,
                                                     const channel_walk_shape &shape) {
  const int64_t columns = (strips_of(p.w, shape.lead) + shape.outputs - 1) / shape.outputs;
  const int64_t channels = shape.whole ? t.planes : p.c, groups = (p.c + channels - 1) / channels;
  const int64_t vectors = (channels + CHANNELS - 1) / CHANNELS, rows = strips_of(p.h, 0);
  const int64_t threads = columns * vectors, rounds = (threads - 1) / shape.most_threads + 1;
  const int64_t wanted = (int64_t)WANTED_THREADS_PER_SM * pg_cuda_least_limits()->processors;
  const int64_t most = (rows - 1) / LEAST_CHUNK_ROWS + 1, few = (rows - 1) / MOST_CHUNK_ROWS + 1;
  int64_t chunks = shape.whole ? 1 : least(wanted / (threads * groups * p.n) + 1, most);
  if (chunks < few) chunks = few;
  channel_walk_plan plan = {};
  if (threads < LEAST_THREADS || threads > INT32_MAX / 2) return plan;
  if (p.n * groups * chunks > INT32_MAX / rounds) return plan;
  plan.block_threads = (int32_t)(((threads + rounds - 1) / rounds + 31) / 32 * 32);
  plan.block_rounds = shape.whole ? (uint32_t)(chunks * rounds) : 1u;
  plan.chunk_threads = (uint32_t)threads;
  plan.chunk_rows = (int32_t)((rows + chunks - 1) / chunks);
  plan.rows = (int32_t)rows;
  plan.group_channels = (int32_t)channels;
  plan.by_vectors = divider_of(vectors);
  plan.by_rounds = divider_of(rounds);
  plan.by_chunks = divider_of(chunks);
  plan.by_groups = divider_of(groups);
  return plan;
}

static inline int64_t walk_blocks(const channel_walk_plan &plan, int64_t n) {
  return n * plan.by_groups.by * plan.by_chunks.by * plan.by_rounds.by / plan.block_rounds;
}

#endif
