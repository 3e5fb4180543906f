/* SPDX-License-Identifier: Apache-2.0 */
/* What it costs to hand a tiny step to a stream, next to what the machine charges for waking a
 * thread at all.  Medians of many rounds, in microseconds per step. */
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "acl/acl.h"
#include "poolgrad.h"

enum { ROUNDS = 401, LONE = 200, BURST = 1000, TINY = 64 };

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int compare(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static aclrtStream stream;
static void *memory;

static void must(int status) {
  if (status == ACL_SUCCESS) return;
  const char *text = aclGetRecentErrMsg();
  fprintf(stderr, "status %d: %s\n", status, text == NULL ? "" : text);
  exit(1);
}

static void step(void) { must(aclrtMemsetAsync(memory, TINY, 1, TINY, stream)); }

static void lone(void) {
  step();
  must(aclrtSynchronizeStream(stream));
}

static void burst(void) {
  for (int i = 0; i < BURST; i++) step();
  must(aclrtSynchronizeStream(stream));
}

static void nothing(void *unused) { (void)unused; }

static void host_function(void) {
  must(aclrtLaunchHostFunc(stream, nothing, NULL));
  must(aclrtSynchronizeStream(stream));
}

#ifdef _OPENMP
static void parallel_region(void) {
#pragma omp parallel
  { __asm__ volatile("" ::: "memory"); }
}
#endif

/* One word, two threads: the price of a bare hand-over and back. */
static atomic_int word; /* 0: ours, 1: theirs, 2: end */

static void futex(int operation, int value) {
  (void)syscall(SYS_futex, (int *)&word, operation, value, NULL, NULL, 0);
}

static void *answer(void *unused) {
  for (;;) {
    while (atomic_load(&word) == 0) futex(FUTEX_WAIT_PRIVATE, 0);
    if (atomic_load(&word) == 2) return unused;
    atomic_store(&word, 0);
    futex(FUTEX_WAKE_PRIVATE, 1);
  }
}

static void round_trip(void) {
  atomic_store(&word, 1);
  futex(FUTEX_WAKE_PRIVATE, 1);
  while (atomic_load(&word) == 1) futex(FUTEX_WAIT_PRIVATE, 1);
}

/* Median time of one call, taken over batches of `calls`; a pause before each batch on wish. */
static double median(void (*fn)(void), int calls, int rounds, long pause_ns) {
  double *times = malloc((size_t)rounds * sizeof *times);
  if (times == NULL) exit(1);
  fn();
  for (int r = 0; r < rounds; r++) {
    if (pause_ns > 0) nanosleep(&(struct timespec){.tv_nsec = pause_ns}, NULL);
    const double start = now_us();
    for (int i = 0; i < calls; i++) fn();
    times[r] = (now_us() - start) / calls;
  }
  qsort(times, (size_t)rounds, sizeof *times, compare);
  const double middle = times[rounds / 2];
  free(times);
  return middle;
}

static void row(const char *name, double us) { printf("| %-52s | %8.2f |\n", name, us); }

int main(void) {
  must(aclInit(NULL));
  must(aclrtSetDevice(0));
  must(aclrtCreateStream(&stream));
  must(aclrtMalloc(&memory, TINY, ACL_MEM_MALLOC_NORMAL_ONLY));
  printf("poolgrad %s latency, %s", poolgrad_version(), poolgrad_devices());
  printf("| %-52s | %8s |\n|%s|---------:|\n", "what", "us",
         "------------------------------------------------------");
  row("enqueue + synchronise, one tiny step, steady", median(lone, LONE, ROUNDS, 0));
  row("the same after 5 ms of silence", median(lone, 1, ROUNDS, 5000000));
  row("enqueue + synchronise, per step of a burst of 1,000", median(burst, 1, ROUNDS, 0) / BURST);
  row("host function + synchronise (a real hand-over)", median(host_function, LONE, 51, 0));
#ifdef _OPENMP
  row("OpenMP parallel region, empty", median(parallel_region, LONE, ROUNDS, 0));
#endif
  pthread_t thread;
  if (pthread_create(&thread, NULL, answer, NULL) != 0) return 1;
  row("futex round trip between two threads", median(round_trip, LONE, 51, 0));
  atomic_store(&word, 2);
  futex(FUTEX_WAKE_PRIVATE, 1);
  pthread_join(thread, NULL);
  must(aclrtFree(memory));
  must(aclrtDestroyStream(stream));
  must(aclrtResetDevice(0));
  must(aclFinalize());
  return 0;
}
