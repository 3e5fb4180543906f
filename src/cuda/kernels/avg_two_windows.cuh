/* SPDX-License-Identifier: Apache-2.0 */
/* For avg_two_windows.cu: what a block has in its scratch, and how a team writes the sums of two
 * planes to gradInput. */
#ifndef PG_CUDA_AVG_TWO_WINDOWS_CUH_
#define PG_CUDA_AVG_TWO_WINDOWS_CUH_

#include <type_traits>

#include "cuda/kernels/in_register.cuh"
#include "cuda/kernels/avg_job.cuh"
#include "cuda/kernels/quotient.cuh"
#include "cuda/kernels/scratch_layout.cuh"

enum {
  TEAM = 128, /* threads that compute a pair of planes, and wait only for each other */
  TEAMS = 4,  /* of a block, which share its tables */
  THREADS = TEAM * TEAMS,
  RESIDENT = 2, /* blocks of a multiprocessor: registers and scratch are planned for them */
  PLANES = 2,   /* that a team computes at a time */
  IN_FLIGHT = 4 /* outputs of a plane that a thread loads before it uses the first */
};

/* How many planes the second plane of a pair lies behind the first.  Both then begin at the same
 * distance from a multiple of 16 bytes. */
template <typename E>
static inline __host__ __device__ constexpr int32_t pair_distance() {
  return 16 / sizeof(E);
}

/* Quotients and sums of the two planes of a pair lie side by side: they are float2, in two words.
 */
struct two_windows_plan {
  int32_t pairs;       /* of planes; the last ones may lack their second plane */
  int64_t pair_stride; /* bytes from a cell to the same cell of the pair's second plane */
  int32_t outputs;     /* of a plane */
  int32_t slice_cells, slice_bytes;
  bool by_product;      /* outputs are contiguous, and quotient() can divide by their divisors */
  int32_t row_stride;   /* in sums, from a row of sums to the next */
  int32_t slice_stride; /* in sums, from the sums of a slice of outputs to those of the next */
  /* Words of the scratch where tables begin: */
  int32_t extent_d, extent_h, extent_w; /* for each output of an axis */
  int32_t band_d, band_h, band_w;       /* for each cell of an axis */
  int32_t sum_offset; /* for each cell of a slice, 16 bits: bytes from the slice's first sum */
  int32_t divisor;    /* for each output of a plane: the divisor and one over it */
  int32_t quotient, sum, team_words; /* the first team's, and from a team to the next */
  pg_divider by_out_w, by_out_h;
};

enum : uint32_t { NO_BAND = ~0u /* in the table band_d, behind the last slice */ };

/* --- Teams and their scratch --- */

static __device__ __forceinline__ float2 shared_load_two(uint32_t address) {
  float2 two;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];"
               : "=f"(two.x), "=f"(two.y)
               : "r"(address)
               : "memory");
  return two;
}
static __device__ __forceinline__ void shared_store(uint32_t address, float2 two) {
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(address), "f"(two.x), "f"(two.y)
               : "memory");
}
static __device__ __forceinline__ float2 plus(float2 a, float2 b) {
  return make_float2(a.x + b.x, a.y + b.y);
}

/* Registers are scarce here: because the assembly is volatile, the compiler reads the number of the
 * thread again wherever it is used, instead of keeping it. */
static __device__ __forceinline__ uint32_t thread_number() {
  uint32_t thread;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
  return thread;
}
static __device__ __forceinline__ int32_t team_number() { return thread_number() / TEAM; }
static __device__ __forceinline__ int32_t team_thread() { return thread_number() % TEAM; }

static __device__ __forceinline__ void sync_team() {
  asm volatile("bar.sync %0, %1;" ::"r"(1 + team_number()), "n"((int)TEAM) : "memory");
}

static __device__ __forceinline__ uint32_t team_sums_of(const two_windows_plan &r) {
  return shared_address(scratch_at<uint32_t>(r.sum + team_number() * r.team_words));
}

/* The quotients of the team that has these sums. */
static __device__ __forceinline__ uint32_t quotients_of(const two_windows_plan &r,
                                                        uint32_t team_sums) {
  return team_sums - 4 * (r.sum - r.quotient);
}

/* --- Whole groups --- */

static __device__ __forceinline__ void pack_group(uint32_t *to, const float *sum, float) {
#pragma unroll
  for (int i = 0; i < 4; i++) to[i] = __float_as_uint(sum[i]);
}
template <typename E>
static __device__ __forceinline__ void pack_group(uint32_t *to, const float *sum, E half) {
#pragma unroll
  for (int i = 0; i < 4; i++) to[i] = packed(half, sum[2 * i], sum[2 * i + 1]);
}

/* The low word of high:low shifted right by bits % 32.  __funnelshift_r would spend an instruction
 * on the remainder, which the hardware takes itself. */
static __device__ __forceinline__ uint32_t shift_right(uint32_t low, uint32_t high, uint32_t bits) {
  uint32_t to;
  asm("shf.r.wrap.b32 %0, %1, %2, %3;" : "=r"(to) : "r"(low), "r"(high), "r"(bits));
  return to;
}

/* Writes a group if shift <= most, with a predicate instead of a branch. */
static __device__ __forceinline__ void write_if(int32_t shift, int32_t most, char *to, uint4 w) {
  asm volatile(
      "{ .reg .pred p; setp.le.s32 p, %0, %1; "
      "@p st.global.cs.v4.b32 [%2], {%3, %4, %5, %6}; }" ::"r"(shift),
      "r"(most), "l"(to), "r"(w.x), "r"(w.y), "r"(w.z), "r"(w.w)
      : "memory");
}

/* A lane on its way through the slices of two planes, always at the same group of cells of a slice.
 *
 * Groups of cells are counted from the beginning of the slice, groups of gradInput from a multiple
 * of 16 bytes.  If slices begin with one, both are the same.  SHIFTED, a slice begins `shift` bytes
 * before a multiple of 16 bytes, another number for each slice, and 16 bytes of gradInput consist
 * of the end of one group of cells and the beginning of the next.  So each lane gets the words of
 * the lane before it as well, and the first lane of a warp only provides its words. */
template <bool SHIFTED, typename E>
struct two_windows_lane {
  enum { GROUP = 16 / sizeof(E), PROVIDERS = SHIFTED ? 1 : 0, WRITERS = 32 - PROVIDERS };
  uint32_t offset[GROUP / 2];  /* of its cells' sums, two in a word */
  float latest[PLANES][GROUP]; /* sums of the latest slice of outputs */
  uint32_t words[PLANES][8];   /* elements: four words of the lane before, then its own four */
  int32_t most_shift[PLANES];  /* with which its group still lies in the slice; -1: never */

  __device__ __forceinline__ void load_offsets(const two_windows_plan &r, int32_t group) {
    typedef typename std::conditional<GROUP == 8, uint4, uint2>::type word;
    const word of = scratch_at<const word>(r.sum_offset)[group];
    memcpy(offset, &of, sizeof of);
  }
  __device__ __forceinline__ void load(uint32_t slice_sums) {
#pragma unroll
    for (int i = 0; i < GROUP; i++) {
      const uint32_t of = offset[i / 2] >> 16 * (i % 2) & 0xffff;
      const float2 sum = shared_load_two(slice_sums + of);
      latest[0][i] = sum.x;
      latest[1][i] = sum.y;
    }
  }

  /* Elements of cells that lie in the latest slice of outputs and in the next, which becomes the
   * latest. */
  __device__ __forceinline__ void compute_from_two(uint32_t next_slice_sums) {
    float sum[PLANES][GROUP];
#pragma unroll
    for (int s = 0; s < PLANES; s++)
#pragma unroll
      for (int i = 0; i < GROUP; i++) sum[s][i] = latest[s][i];
    load(next_slice_sums);
#pragma unroll
    for (int s = 0; s < PLANES; s++) {
#pragma unroll
      for (int i = 0; i < GROUP; i++) sum[s][i] += latest[s][i];
      pack_group(words[s] + 4, sum[s], E());
    }
  }
  /* Elements of cells that lie in the latest slice of outputs alone. */
  __device__ __forceinline__ void compute_from_one() {
#pragma unroll
    for (int s = 0; s < PLANES; s++) pack_group(words[s] + 4, latest[s], E());
  }
  __device__ __forceinline__ void get_words_of_lane_before() {
#pragma unroll
    for (int s = 0; s < PLANES; s++)
#pragma unroll
      for (int i = 0; i < 4; i++) words[s][i] = __shfl_up_sync(EVERY_LANE, words[s][4 + i], 1);
  }

  /* Writes 16 bytes to each plane: those that begin with word WORD, or bits % 32 later. */
  template <int WORD>
  __device__ __forceinline__ void write_from(char *to, int64_t pair_stride, int32_t shift,
                                             uint32_t bits) const {
    const auto group = [&](int s) {
      const uint32_t *w = words[s] + WORD;
      if (!SHIFTED) return make_uint4(w[0], w[1], w[2], w[3]);
      return make_uint4(shift_right(w[0], w[1], bits), shift_right(w[1], w[2], bits),
                        shift_right(w[2], w[3], bits), shift_right(w[3], w[4], bits));
    };
    const uint4 first = group(0), second = group(1);
    write_if(shift, most_shift[0], to, first);
    write_if(shift, most_shift[1], to + pair_stride, second);
  }
  /* Writes the lane's group of a slice if it lies in the slice.  The slice begins at
   * -minus_begin; `to` is where the group would be if that and the shift were 0. */
  __device__ __forceinline__ void write(char *to, int64_t pair_stride, uint32_t minus_begin) const {
    const int32_t shift = SHIFTED ? minus_begin & 15 : 0;
    const uint32_t bits = 8 * minus_begin; /* only bits % 32 matters, which is 8 * shift % 32 */
    to += (uint32_t)shift - minus_begin;
    if (!SHIFTED)
      write_from<4>(to, pair_stride, 0, 0);
    else if (shift & 8)
      shift & 4 ? write_from<3>(to, pair_stride, shift, bits)
                : write_from<2>(to, pair_stride, shift, bits);
    else
      shift & 4 ? write_from<1>(to, pair_stride, shift, bits)
                : write_from<0>(to, pair_stride, shift, bits);
  }
};

/* Writes all groups that lie in one slice.  The planes begin lead_bytes behind `out`, which is a
 * multiple of 16 bytes, and behind out + pair_stride. */
template <bool SHIFTED, typename E>
static __device__ __forceinline__ void write_whole_groups(const two_windows_plan &r,
                                                          uint32_t team_sums, char *out,
                                                          uint32_t lead_bytes, int32_t planes) {
  typedef two_windows_lane<SHIFTED, E> lane_t;
  enum { WRITERS = lane_t::WRITERS, PROVIDERS = lane_t::PROVIDERS };
  const int32_t groups = r.slice_cells / lane_t::GROUP + PROVIDERS, lane = team_thread() % 32;
#pragma unroll 1
  for (int32_t first = team_thread() / 32 * WRITERS; first < groups; first += TEAM / 32 * WRITERS) {
    const int32_t group = first + lane - PROVIDERS, begin = 16 * (group - PROVIDERS);
    lane_t l;
    l.load_offsets(r, min(max(group, 0), groups - 1));
    l.most_shift[0] = begin < 0 || lane < PROVIDERS ? -1 : r.slice_bytes - 16 - begin;
    l.most_shift[1] = planes < PLANES ? -1 : l.most_shift[0];
    char *to = SHIFTED ? in_register(out + begin) : out + begin;
    uint32_t bands = shared_address(scratch_at<uint32_t>(r.band_d)), band = shared_bits(bands);
    uint32_t slice_sums = team_sums, computed = 0 /* band */, minus_begin = -lead_bytes;
    l.load(slice_sums);
#pragma unroll 1
    do {
      /* An even band needs the next slice of outputs only if there was no odd band before it. */
      const bool next = band % 2 != 0 || band - computed == 2;
      if (next) slice_sums += 8 * r.slice_stride;
      if (band % 2 != 0) {
        l.compute_from_two(slice_sums);
      } else {
        if (next) l.load(slice_sums);
        l.compute_from_one();
      }
      if (SHIFTED) l.get_words_of_lane_before();
      computed = band;
#pragma unroll 1
      do {
        band = shared_bits(bands += 4);
        l.write(to, r.pair_stride, minus_begin);
        minus_begin -= r.slice_bytes;
      } while (band == computed);
    } while (band != NO_BAND);
  }
}

/* --- The other groups --- */

/* Writes, cell by cell, the groups that lie in two slices, or in part outside the plane.  There is
 * at most one where each slice begins, and one where the last ends: a thread has one cell of one of
 * these.  The planes begin `lead` cells behind `out`, and behind out + pair_stride. */
template <typename E>
static __device__ __forceinline__ void write_split_groups(const avg_job &j,
                                                          const two_windows_plan &r,
                                                          uint32_t team_sums, E *out, uint32_t lead,
                                                          int32_t planes) {
  enum { GROUP = 16 / sizeof(E) };
  const uint32_t slices = j.d.in, cells = r.slice_cells;
#pragma unroll 1
  for (uint32_t f = team_thread(); f < (slices + 1) * GROUP; f += TEAM) {
    const uint32_t begin = lead + f / GROUP * cells, behind = begin % GROUP, i = f % GROUP;
    const bool in_slice_before = i < behind;
    const uint32_t slice = f / GROUP - in_slice_before;
    if (behind == 0 || slice >= slices) continue;
    const uint32_t band = scratch_at<uint32_t>(r.band_d)[slice];
    const uint32_t cell = (in_slice_before ? cells : 0) + i - behind;
    const uint32_t offset = scratch_at<const uint16_t>(r.sum_offset)[cell];
    const uint32_t at = team_sums + (band + 1) / 2 * 8 * r.slice_stride + offset;
    const float2 own = shared_load_two(at);
    const float2 sum = band % 2 ? plus(shared_load_two(at - 8 * r.slice_stride), own) : own;
    E *to = out + (begin - behind + i);
    put(to, sum.x);
    if (planes == PLANES) put((E *)((char *)to + r.pair_stride), sum.y);
  }
}

#endif
