/* SPDX-License-Identifier: Apache-2.0 */
/* What avg_two_windows.cu has in shared memory, and how it is written to gradInput. */
#ifndef PG_CUDA_AVG_TWO_WINDOWS_CUH_
#define PG_CUDA_AVG_TWO_WINDOWS_CUH_

#include "cuda/kernels/quotient.cuh"
#include "cuda/kernels/avg_job.cuh"

enum {
  TEAM = 128, /* threads that make planes together */
  TEAMS = 4,  /* of a block: they share its tables */
  THREADS = TEAM * TEAMS,
  RESIDENT = 2, /* blocks of a processor */
  PLANES = 2,   /* of a team at a time */
  BATCH = 4     /* outputs of a plane that a thread has on their way */
};

/* From a team's first plane to its second. */
template <typename E>
static inline __host__ __device__ constexpr int32_t planes_apart() {
  return 16 / sizeof(E);
}

/* What is where in shared memory, in words.  Terms and sums are two planes', a pair in two words.
 */
struct pairs_plan {
  int32_t pairs;        /* of planes, the last of them perhaps alone */
  int64_t apart;        /* bytes from a plane to the pair's other */
  int32_t outputs;      /* of a plane */
  int32_t cells, bytes; /* of a slice */
  bool run;             /* outputs follow each other, and divisors are for quotient */
  int32_t pitch;        /* from a row of sums to the next */
  int32_t slice_sums;   /* of a slice of outputs */
  int32_t extent_d, extent_h, extent_w, kind_d, kind_h, kind_w, place, divisor;
  int32_t term, sum, team_words; /* the first team's, and from a team to the next */
  pg_divider by_wide, by_tall;
};

extern __shared__ uint4 pg_pairs_room[];

static __device__ __forceinline__ uint32_t *words_at(int32_t word) {
  return (uint32_t *)pg_pairs_room + word;
}
static __device__ __forceinline__ float *floats_at(int32_t word) {
  return (float *)pg_pairs_room + word;
}
static __device__ __forceinline__ float2 shared_pair(uint32_t address) {
  float2 pair;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];"
               : "=f"(pair.x), "=f"(pair.y)
               : "r"(address)
               : "memory");
  return pair;
}
static __device__ __forceinline__ void shared_store(uint32_t address, float2 pair) {
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(address), "f"(pair.x), "f"(pair.y)
               : "memory");
}
static __device__ __forceinline__ float2 plus(float2 a, float2 b) {
  return make_float2(a.x + b.x, a.y + b.y);
}

/* A thread's team, and which of its threads it is: not kept in registers, which are scarce. */
static __device__ __forceinline__ uint32_t thread_of_block() {
  uint32_t thread;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
  return thread;
}
static __device__ __forceinline__ int32_t team_of_block() { return thread_of_block() / TEAM; }
static __device__ __forceinline__ int32_t member_of_team() { return thread_of_block() % TEAM; }

/* Where the team's terms are if that is where its sums are. */
static __device__ __forceinline__ uint32_t term_of(const pairs_plan &r, uint32_t sums) {
  return sums - 4 * (r.sum - r.term);
}

static __device__ __forceinline__ uint32_t sums_of_team(const pairs_plan &r) {
  return shared_address(words_at(r.sum + team_of_block() * r.team_words));
}
static __device__ __forceinline__ void sync_team() {
  asm volatile("bar.sync %0, %1;" ::"r"(1 + team_of_block()), "n"((int)TEAM) : "memory");
}

enum : uint32_t { NO_KIND = ~0u /* behind the last slice's */ };

/* --- Writing --- */

static __device__ __forceinline__ void pack(uint32_t *to, const float *sum, float) {
#pragma unroll
  for (int i = 0; i < 4; i++) to[i] = __float_as_uint(sum[i]);
}
template <typename E>
static __device__ __forceinline__ void pack(uint32_t *to, const float *sum, E half) {
#pragma unroll
  for (int i = 0; i < 4; i++) to[i] = packed(half, sum[2 * i], sum[2 * i + 1]);
}

/* The low word of two shifted by bits % 32; __funnelshift_r would take the rest itself. */
static __device__ __forceinline__ uint32_t shifted(uint32_t low, uint32_t high, uint32_t bits) {
  uint32_t to;
  asm("shf.r.wrap.b32 %0, %1, %2, %3;" : "=r"(to) : "r"(low), "r"(high), "r"(bits));
  return to;
}

/* A pointer that is not made anew wherever it is wanted. */
static __device__ __forceinline__ char *kept(char *pointer) {
  asm volatile("" : "+l"(pointer));
  return pointer;
}

/* Writes if from <= room, without a branch. */
static __device__ __forceinline__ void put_if(int32_t from, int32_t room, char *to, uint4 w) {
  asm volatile(
      "{ .reg .pred p; setp.le.s32 p, %0, %1; "
      "@p st.global.cs.v4.b32 [%2], {%3, %4, %5, %6}; }" ::"r"(from),
      "r"(room), "l"(to), "r"(w.x), "r"(w.y), "r"(w.z), "r"(w.w)
      : "memory");
}

/* The sums of a lane's group of cells in two planes, and what is written of them. */
template <bool SHIFTED, typename E>
struct pairs_lane {
  enum { GROUP = 16 / sizeof(E), OWN = SHIFTED ? 31 : 32, SERVE = 32 - OWN };
  uint32_t place[GROUP / 2]; /* of its cells' sums, two in a word */
  float now[PLANES][GROUP];  /* of the latest slice of sums */
  uint32_t words[PLANES][8]; /* of the lane before, and its own */
  int32_t room[PLANES];      /* how far in a slice a group may begin, in bytes; see put */

  __device__ __forceinline__ void know_places(const pairs_plan &r, int32_t group) {
    typedef typename std::conditional<GROUP == 8, uint4, uint2>::type word;
    const word of = ((const word *)words_at(r.place))[group];
    memcpy(place, &of, sizeof of);
  }
  __device__ __forceinline__ float2 load(uint32_t sums, int i) const {
    return shared_pair(sums + (place[i / 2] >> 16 * (i % 2) & 0xffff));
  }
  __device__ __forceinline__ void load(uint32_t sums) {
#pragma unroll
    for (int i = 0; i < GROUP; i++) {
      const float2 sum = load(sums, i);
      now[0][i] = sum.x;
      now[1][i] = sum.y;
    }
  }
  /* What the next slices of cells get: they lie in the latest slice of outputs and the next one,
   * or in one alone. */
  __device__ __forceinline__ void make_of_two(uint32_t next) {
    float sum[PLANES][GROUP];
#pragma unroll
    for (int s = 0; s < PLANES; s++)
#pragma unroll
      for (int i = 0; i < GROUP; i++) sum[s][i] = now[s][i];
    load(next);
#pragma unroll
    for (int s = 0; s < PLANES; s++) {
#pragma unroll
      for (int i = 0; i < GROUP; i++) sum[s][i] += now[s][i];
      pack(words[s] + 4, sum[s], E());
    }
  }
  __device__ __forceinline__ void make_of_one() {
#pragma unroll
    for (int s = 0; s < PLANES; s++) pack(words[s] + 4, now[s], E());
  }
  __device__ __forceinline__ void pass() {
#pragma unroll
    for (int s = 0; s < PLANES; s++)
#pragma unroll
      for (int i = 0; i < 4; i++) words[s][i] = __shfl_up_sync(0xffffffff, words[s][4 + i], 1);
  }

  /* A group of each plane: 16 bytes from the WORD-th word on, and half a word more if bits says so.
   */
  template <int WORD>
  __device__ __forceinline__ void put_from(char *to, int64_t apart, int32_t from,
                                           uint32_t bits) const {
    const auto group = [&](int s) {
      const uint32_t *w = words[s] + WORD;
      if (!SHIFTED) return make_uint4(w[0], w[1], w[2], w[3]);
      return make_uint4(shifted(w[0], w[1], bits), shifted(w[1], w[2], bits),
                        shifted(w[2], w[3], bits), shifted(w[3], w[4], bits));
    };
    const uint4 one = group(0), other = group(1);
    put_if(from, room[0], to, one);
    put_if(from, room[1], to + apart, other);
  }
  /* The groups of a slice that lie in it whole.  The first of them begins `from` bytes behind the
   * slice, and that -less bytes behind `out`; `to` is the lane's group if both begin there. */
  __device__ __forceinline__ void put(char *to, int64_t apart, uint32_t less) const {
    const int32_t from = SHIFTED ? less & 15 : 0;
    to += (uint32_t)from - less;
    if (!SHIFTED)
      put_from<4>(to, apart, 0, 0);
    else if (from & 8)
      from & 4 ? put_from<3>(to, apart, from, 8 * less) : put_from<2>(to, apart, from, 8 * less);
    else
      from & 4 ? put_from<1>(to, apart, from, 8 * less) : put_from<0>(to, apart, from, 8 * less);
  }
};

/* Whole groups.  SHIFTED, a lane's own cells are those behind its group, or in part the same. */
template <bool SHIFTED, typename E>
static __device__ __forceinline__ void write(const pairs_plan &r, uint32_t team_sums, char *out,
                                             uint32_t lead, int32_t planes) {
  typedef pairs_lane<SHIFTED, E> lane_t;
  enum { OWN = lane_t::OWN, SERVE = lane_t::SERVE };
  const int32_t groups = r.cells / lane_t::GROUP + SERVE, lane = member_of_team() % 32;
#pragma unroll 1
  for (int32_t first = member_of_team() / 32 * OWN; first < groups; first += TEAM / 32 * OWN) {
    const int32_t group = first + lane - SERVE, begin = 16 * (group - SERVE);
    lane_t l;
    l.know_places(r, min(max(group, 0), groups - 1));
    l.room[0] = begin < 0 || lane < SERVE ? -1 : r.bytes - 16 - begin;
    l.room[1] = planes < PLANES ? -1 : l.room[0];
    char *to = SHIFTED ? kept(out + begin) : out + begin;
    uint32_t kinds = shared_address(words_at(r.kind_d)), kind = shared_bits(kinds);
    uint32_t sums = team_sums, made = 0, less = -lead; /* nothing made, the first slice there */
    l.load(sums);
#pragma unroll 1
    do {
      const bool next = kind % 2 != 0 || kind - made == 2;
      if (next) sums += 8 * r.slice_sums;
      if (kind % 2 != 0) {
        l.make_of_two(sums);
      } else {
        if (next) l.load(sums);
        l.make_of_one();
      }
      if (SHIFTED) l.pass();
      made = kind;
#pragma unroll 1
      do {
        kind = shared_bits(kinds += 4);
        l.put(to, r.apart, less);
        less -= r.bytes;
      } while (kind == made);
    } while (kind != NO_KIND);
  }
}

/* Cell by cell, the groups that lie in two slices, or in part outside the plane. */
template <typename E>
static __device__ __forceinline__ void write_edges(const avg_job &j, const pairs_plan &r,
                                                   uint32_t team_sums, E *out, uint32_t lead,
                                                   int32_t planes) {
  enum { GROUP = 16 / sizeof(E) };
  const uint32_t slices = j.d.in, cells = r.cells;
#pragma unroll 1
  for (uint32_t f = member_of_team(); f < (slices + 1) * GROUP; f += TEAM) {
    const uint32_t begin = lead + f / GROUP * cells, shift = begin % GROUP, i = f % GROUP;
    const bool upper = i < shift;
    const uint32_t slice = f / GROUP - upper;
    if (shift == 0 || slice >= slices) continue;
    const uint32_t kind = words_at(r.kind_d)[slice], cell = (upper ? cells : 0) + i - shift;
    const uint32_t place = ((const uint16_t *)words_at(r.place))[cell];
    const uint32_t at = team_sums + (kind + 1) / 2 * 8 * r.slice_sums + place;
    const float2 own = shared_pair(at);
    const float2 sum = kind % 2 ? plus(shared_pair(at - 8 * r.slice_sums), own) : own;
    E *to = out + (begin - shift + i);
    put(to, sum.x);
    if (planes == PLANES) put((E *)((char *)to + r.apart), sum.y);
  }
}

#endif
