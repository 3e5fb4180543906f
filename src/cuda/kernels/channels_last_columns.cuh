/* SPDX-License-Identifier: Apache-2.0 */
/* Marching, where channels lie next to each other.
 *
 * The usual windows, K cells long and S apart, in two dimensions: a thread takes four channels of a
 * column of outputs and goes down.  At each output row it adds what the row gives to the K rows of
 * cells it covers; S of them are then complete and written, the others are kept for the next row.
 * Threads are free of the call's items: channels first, then columns. */
#ifndef PG_CUDA_CHANNELS_LAST_COLUMNS_CUH_
#define PG_CUDA_CHANNELS_LAST_COLUMNS_CUH_

#include "cuda/kernels/box.cuh"
#include "cuda/kernels/element.cuh"

enum { FOUR = 4, MARCH_THREADS = 256, MARCH_BLOCKS = 4 /* of a processor: 64 registers */ };

/* A piece is as many threads as a block has, of a chunk of one group of channels of one n: where it
 * is, and how many rows it has, is the same for all of them. */
struct channel_march_plan {
  uint32_t pieces;                           /* of a block */
  uint32_t tasks;                            /* threads that a chunk needs */
  int32_t rows, all_rows;                    /* of a chunk; of a plane, counted as outputs are */
  int32_t channels;                          /* of a group */
  pg_divider vectors, parts, chunks, groups; /* of a group, of a chunk, of a group, of an n */
};

/* A thread's: channels from c on, the column-th column, output rows [begin, end). */
struct march {
  uint32_t n;
  int32_t c, column, begin, end;
  bool idle; /* goes along, and reads what another does */
};

static __device__ __forceinline__ march march_of(const channel_march_plan &p, int32_t all_channels,
                                                 uint32_t piece) {
  const uint32_t chunk = over(piece, p.parts), group = over(chunk, p.chunks);
  const uint32_t task = (piece - chunk * p.parts.by) * blockDim.x + threadIdx.x;
  march m;
  m.n = over(group, p.groups);
  m.begin = (int32_t)(chunk - group * p.chunks.by) * p.rows;
  m.end = min(m.begin + p.rows, p.all_rows);
  m.column = (int32_t)over(min(task, p.tasks - 1), p.vectors);
  m.c = (int32_t)(min(task, p.tasks - 1) - m.column * p.vectors.by) * FOUR +
        (int32_t)(group - m.n * p.groups.by) * p.channels;
  m.idle = task >= p.tasks || m.c >= all_channels;
  m.c = min(m.c, all_channels - FOUR);
  return m;
}

/* Four channels in memory: 16 bytes of FLOAT, 8 of halves. */
template <typename E>
struct four_of {
  uint32_t word[sizeof(E)];
};

static __device__ __forceinline__ four_of<float> load_four(const float *from) {
  const uint4 w = __ldg((const uint4 *)from);
  return {{w.x, w.y, w.z, w.w}};
}
template <typename E>
static __device__ __forceinline__ four_of<E> load_four(const E *from) {
  const uint2 w = __ldg((const uint2 *)from);
  return {{w.x, w.y}};
}

/* What is not there is 0, which changes no sum. */
template <typename E>
static __device__ __forceinline__ four_of<E> load_four_if(bool there, const E *from) {
  four_of<E> four = {};
  if (there) four = load_four(from);
  return four;
}

static __device__ __forceinline__ float channel(const four_of<float> &four, int v) {
  return __uint_as_float(four.word[v]);
}
static __device__ __forceinline__ float channel(const four_of<pg_f16> &four, int v) {
  const pg_f16 half = {(uint16_t)(four.word[v / 2] >> 16 * (v % 2))};
  return widened(half);
}
static __device__ __forceinline__ float channel(const four_of<pg_bf16> &four, int v) {
  const uint32_t word = four.word[v / 2];
  return __uint_as_float(v % 2 == 0 ? word << 16 : word & 0xffff0000u);
}

static __device__ __forceinline__ void put_four(float *to, const float *sum) { put_16(to, sum); }
template <typename E>
static __device__ __forceinline__ void put_four(E *to, const float *sum) {
  __stcs((uint2 *)to, make_uint2(packed(E(), sum[0], sum[1]), packed(E(), sum[2], sum[3])));
}

/* How many columns, or rows, of outputs S apart have an output or cells.  A column's cells begin
 * with the lead-th of its output's window. */
static inline int64_t march_steps(const pg_axis &a, int64_t lead) {
  const int64_t last = (a.in - 1 + a.pad - lead) / a.stride + 1;
  return last > a.out ? last : a.out;
}

static inline bool slides(const pg_axis &a, int64_t kernel, int64_t stride) {
  return a.kernel == kernel && a.stride == stride && a.dilation == 1 && a.pad < kernel && a.out > 0;
}

static inline bool both_slide(const pg_pooling &p, int64_t kernel, int64_t stride) {
  return slides(p.h, kernel, stride) && slides(p.w, kernel, stride);
}

/* whole: a block makes an item, which has whole planes.  `across`: outputs of a column.  Chunks are
 * long, since each begins with rows of others, but there should be `wanted` threads.  Returns how
 * many threads a block has, 0 if there are too few to march, or too many. */
static inline int march_plan_of(const pg_pooling &p, const pg_tiling &t, bool whole, int64_t lead,
                                int64_t across, int64_t most_threads, int64_t wanted,
                                channel_march_plan *m) {
  enum { FEW_ROWS = 4, MANY_ROWS = 16, WARP = 32 };
  const int64_t columns = (march_steps(p.w, lead) + across - 1) / across;
  const int64_t channels = whole ? t.planes : p.c, vectors = (channels + FOUR - 1) / FOUR;
  const int64_t groups = (p.c + channels - 1) / channels, all_rows = march_steps(p.h, 0);
  const int64_t tasks = columns * vectors, parts = (tasks - 1) / most_threads + 1;
  const int64_t most = (all_rows - 1) / FEW_ROWS + 1, few = (all_rows - 1) / MANY_ROWS + 1;
  int64_t chunks = whole ? 1 : least(wanted / (tasks * groups * p.n) + 1, most);
  if (chunks < few) chunks = few;
  if (tasks < WARP / 2 || tasks > INT32_MAX / 2) return 0;
  if (p.n * groups * chunks > INT32_MAX / parts) return 0;
  m->rows = (int32_t)((all_rows + chunks - 1) / chunks);
  m->all_rows = (int32_t)all_rows;
  m->channels = (int32_t)channels;
  m->tasks = (uint32_t)tasks;
  m->pieces = whole ? (uint32_t)(chunks * parts) : 1u;
  m->vectors = divider_of(vectors);
  m->parts = divider_of(parts);
  m->chunks = divider_of(chunks);
  m->groups = divider_of(groups);
  return (int)(((tasks + parts - 1) / parts + WARP - 1) / WARP * WARP);
}

static inline int64_t march_blocks(const channel_march_plan &m, int64_t n) {
  return n * m.groups.by * m.chunks.by * m.parts.by / m.pieces;
}

#endif
