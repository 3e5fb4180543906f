/* SPDX-License-Identifier: Apache-2.0 */
/* The limit of a call that must read R bytes and write W bytes: a loop that does just that,
 * interleaved.  It never writes zeros: some memory systems store lines of zeros three times faster.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "native.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { LINE = 64, MOST_THREADS = 256 };

double bench_now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* One thread's share, in lines. */
struct part {
  const char *from;
  char *to;
  size_t reads, writes;
};

/* Spreads the reads evenly among the writes; without a write all of them are in one line. */
struct pace {
  size_t each, rest, lines, debt;
};

static struct pace pace_of(const struct part *p) {
  const size_t lines = p->writes == 0 ? 1 : p->writes;
  return (struct pace){.each = p->reads / lines, .rest = p->reads % lines, .lines = lines};
}

static inline size_t pace_next(struct pace *p) {
  p->debt += p->rest;
  if (p->debt < p->lines) return p->each;
  p->debt -= p->lines;
  return p->each + 1;
}

static atomic_uint_fast64_t sink; /* what was read must be needed for something */

static void run_plain(const struct part *p) {
  struct line {
    uint64_t word[LINE / 8];
  };
  const struct line *from = (const void *)p->from;
  struct line *to = (void *)p->to, sum;
  memset(&sum, 0x3f, sizeof sum);
  struct pace pace = pace_of(p);
  for (size_t i = 0; i < pace.lines; i++) {
    for (size_t n = pace_next(&pace); n > 0; n--, from++)
      for (int w = 0; w < LINE / 8; w++) sum.word[w] ^= from->word[w];
    if (p->writes == 0) break;
    for (int w = 0; w < LINE / 8; w++) to[i].word[w] = sum.word[w] | 1;
  }
  atomic_fetch_add(&sink, sum.word[0]);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void run_avx2(const struct part *p, bool streaming) {
  const __m256i one = _mm256_set1_epi32(1), *from = (const void *)p->from;
  __m256i *to = (void *)p->to, low = _mm256_set1_epi32(0x3f9e0419), high = low;
  struct pace pace = pace_of(p);
  for (size_t i = 0; i < pace.lines; i++, to += 2) {
    for (size_t n = pace_next(&pace); n > 0; n--, from += 2) {
      low = _mm256_xor_si256(low, from[0]);
      high = _mm256_xor_si256(high, from[1]);
    }
    if (p->writes == 0) break;
    if (streaming) {
      _mm256_stream_si256(to, _mm256_or_si256(low, one));
      _mm256_stream_si256(to + 1, _mm256_or_si256(high, one));
    } else {
      to[0] = _mm256_or_si256(low, one);
      to[1] = _mm256_or_si256(high, one);
    }
  }
  _mm_sfence();
  atomic_fetch_add(&sink, (uint64_t)_mm256_extract_epi64(_mm256_xor_si256(low, high), 0));
}

__attribute__((target("avx2"))) static void fill_avx2(char *to, size_t lines, int byte) {
  const __m256i value = _mm256_set1_epi8((char)byte);
  for (__m256i *at = (void *)to; lines > 0; lines--, at += 2) {
    _mm256_stream_si256(at, value);
    _mm256_stream_si256(at + 1, value);
  }
  _mm_sfence();
}

int bench_can_stream(void) { return __builtin_cpu_supports("avx2") != 0; }

static void run_part(const struct part *p, bool streaming) {
  if (bench_can_stream())
    run_avx2(p, streaming);
  else
    run_plain(p);
}
#else
int bench_can_stream(void) { return 0; }

static void run_part(const struct part *p, bool streaming) {
  (void)streaming;
  run_plain(p);
}
#endif

/* `to` is at the begin of a line. */
void twin_fill(char *to, size_t bytes, int byte) {
  size_t done = 0;
#if defined(__x86_64__)
  if (bench_can_stream()) {
    done = bytes / LINE * LINE;
    fill_avx2(to, bytes / LINE, byte);
  }
#endif
  memset(to + done, byte, bytes - done);
}

/* --- threads ----------------------------------------------------------------------------------
 */

struct crew {
  struct part part[MOST_THREADS];
  bool streaming;
  int threads, calls;
  atomic_int ready, begun, ended; /* threads; calls; parts of all calls */
};

struct member {
  struct crew *crew;
  int number;
};

/* Waits actively: the limit has no hand-over in it.  Yields now and then for crowded machines. */
static void wait_for(const atomic_int *count, int least) {
  for (unsigned spins = 1; atomic_load_explicit(count, memory_order_acquire) < least; spins++)
    if (spins % 4096 == 0) sched_yield();
}

static void *work(void *argument) {
  const struct member *m = argument;
  atomic_fetch_add(&m->crew->ready, 1);
  for (int call = 1; call <= m->crew->calls; call++) {
    wait_for(&m->crew->begun, call);
    run_part(&m->crew->part[m->number], m->crew->streaming);
    atomic_fetch_add_explicit(&m->crew->ended, 1, memory_order_release);
  }
  return NULL;
}

static void share(struct crew *c, const char *from, size_t read, char *to, size_t write) {
  const size_t reads = read / LINE, writes = write / LINE, count = (size_t)c->threads;
  for (size_t i = 0; i < count; i++) {
    const size_t r = reads * i / count, w = writes * i / count;
    c->part[i] = (struct part){.from = from + r * LINE,
                               .to = to + w * LINE,
                               .reads = reads * (i + 1) / count - r,
                               .writes = writes * (i + 1) / count - w};
  }
}

double twin_run(const char *from, size_t read, char *to, size_t write, int calls, int threads,
                int streaming) {
  pthread_t handle[MOST_THREADS];
  struct member member[MOST_THREADS];
  struct crew crew = {.streaming = streaming != 0, .calls = calls, .threads = threads};
  if (threads < 1 || threads > MOST_THREADS) return -1;
  share(&crew, from, read, to, write);
  int others = 0;
  for (; others < threads - 1; others++) {
    member[others] = (struct member){&crew, others + 1};
    if (pthread_create(&handle[others], NULL, work, &member[others]) != 0) break;
  }
  if (others < threads - 1) calls = 0; /* too few threads: let those there are finish, and fail */
  wait_for(&crew.ready, others);
  const double start = bench_now_us();
  for (int call = 1; call <= calls; call++) {
    atomic_store_explicit(&crew.begun, call, memory_order_release);
    run_part(&crew.part[0], crew.streaming);
    wait_for(&crew.ended, call * (threads - 1));
  }
  const double us = bench_now_us() - start;
  atomic_store(&crew.begun, crew.calls);
  for (int i = 0; i < others; i++) pthread_join(handle[i], NULL);
  return calls == 0 ? -1 : us / calls;
}
