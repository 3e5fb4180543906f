/* SPDX-License-Identifier: Apache-2.0 */
/* Steady use: operators whose results are compared with the reference, every object made and
 * destroyed again and again, the library begun and ended.  Between the parts all threads are
 * joined, and the process must be as large as it was: memory, threads, open files. */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../trial.h"
#include "stress.h"

#if defined(__GLIBC__)
#include <malloc.h>
#endif

/* A sanitizer keeps freed memory and notes about all of it: its size says nothing. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { RSS_IS_OURS = 0 };
#else
enum { RSS_IS_OURS = 1 };
#endif

enum {
  WARM_UP = 2, /* samples until the process has its size */
  SAMPLES_LEAST = 6,
  PARTS = 20,    /* of the time that was asked for */
  CELLS = 20000, /* of the largest problem */
  CYCLES = 50,   /* of every object's life, on each thread */
  GROWTH_KIB = 2 * 1024
};

static int entries(const char *folder) {
  int count = 0;
  DIR *dir = opendir(folder);
  if (dir == NULL) return -1;
  for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir))
    count += entry->d_name[0] != '.';
  (void)closedir(dir);
  return count;
}

struct footprint footprint(void) {
  struct footprint f = {.threads = entries("/proc/self/task"),
                        .descriptors = entries("/proc/self/fd")};
  char line[128];
  FILE *file = fopen("/proc/self/status", "r");
  if (file == NULL) return f;
  while (fgets(line, sizeof line, file) != NULL)
    if (sscanf(line, "VmRSS: %ld kB", &f.rss_kib) == 1) break;
  (void)fclose(file);
  return f;
}

static int64_t now_ms(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static struct {
  uint64_t seed;
  int64_t end_ms; /* of this part */
  atomic_ulong problems;
  atomic_int wrong;
} state;

/* --- operators --- */

static void *use(void *argument) {
  struct worker *worker = argument;
  struct turn t = {.worker = worker,
                   .state = state.seed + (worker->round << 8) + (uint64_t)worker->number};
  struct trial_devices devices = {.count = 1};
  char why[PROBLEM_TEXT], text[PROBLEM_TEXT];
  CALL(&t, aclrtCreateContext, (&devices.at[0].context, worker->number % DEVICES), 0);
  CALL(&t, aclrtCreateStream, (&devices.at[0].stream), 0);
  do {
    const struct problem p = problem_random(pick(&t, UINT32_MAX), CELLS);
    atomic_fetch_add(&state.problems, 1);
    if (trial_run(&p, &devices, why)) continue;
    problem_print(&p, text);
    complain(&t, "%s: %s", text, why);
    atomic_fetch_add(&state.wrong, 1);
  } while (now_ms() < state.end_ms && atomic_load(&state.wrong) == 0);
  CALL(&t, aclrtDestroyStream, (devices.at[0].stream), 0);
  CALL(&t, aclrtDestroyContext, (devices.at[0].context), 0);
  (void)aclGetRecentErrMsg(); /* trials read what they need; the thread's text goes with it */
  return NULL;
}

/* --- objects --- */

static void cycle_runtime_objects(struct turn *t) {
  aclrtStream stream = NULL;
  aclrtEvent event = NULL;
  aclrtNotify notify = NULL;
  void *block = NULL, *host = NULL;
  aclrtStreamConfigHandle *config = MAKE(t, aclrtCreateStreamConfigHandle, ());
  CALL(t, aclrtCreateStreamV2, (&stream, config), 0);
  CALL(t, aclrtDestroyStreamConfigHandle, (config), 0);
  CALL(t, aclrtCreateEvent, (&event), 0);
  CALL(t, aclrtCreateNotify, (&notify, ACL_NOTIFY_DEFAULT), 0);
  CALL(t, aclrtMalloc, (&block, 4096, ACL_MEM_MALLOC_NORMAL_ONLY), 0);
  CALL(t, aclrtMallocHost, (&host, 4096), 0);
  CALL(t, aclrtMemsetAsync, (block, 4096, 1, 4096, stream), 0);
  CALL(t, aclrtMemcpyAsync, (host, 4096, block, 4096, ACL_MEMCPY_DEVICE_TO_HOST, stream), 0);
  CALL(t, aclrtRecordEvent, (event, stream), 0);
  CALL(t, aclrtStreamWaitEvent, (NULL, event), 0);
  CALL(t, aclrtRecordNotify, (notify, stream), 0);
  CALL(t, aclrtWaitAndResetNotify, (notify, stream, 0), 0);
  CALL(t, aclrtSynchronizeEvent, (event), 0);
  CALL(t, aclrtSynchronizeStream, (NULL), 0);
  CALL(t, aclrtSynchronizeStream, (stream), 0);
  CALL(t, aclrtSynchronizeStream, ((aclrtStream)8), ACL_ERROR_RT_INVALID_HANDLE); /* a sentence */
  if (((char *)host)[4095] != 1) complain(t, "a copy was not made");
  CALL(t, aclrtFree, (block), 0);
  CALL(t, aclrtFreeHost, (host), 0);
  CALL(t, aclrtDestroyNotify, (notify), 0);
  CALL(t, aclrtDestroyEvent, (event), 0);
  CALL(t, aclrtDestroyStream, (stream), 0);
}

static void cycle_descriptions(struct turn *t) {
  const int64_t dims[] = {2, 3};
  const float floats[] = {1};
  const bool bools[] = {true};
  double value = 2;
  int64_t *shape = NULL;
  uint64_t rank = 0;
  const aclTensor *tensor = MAKE(
      t, aclCreateTensor, (dims, 2, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, dims, 2, &stress_words));
  CALL(t, aclGetViewShape, (tensor, &shape, &rank), 0);
  free(shape);
  const aclScalar *scalar = MAKE(t, aclCreateScalar, (&value, ACL_DOUBLE));
  CALL(t, aclDestroyTensorList, (MAKE(t, aclCreateTensorList, (&tensor, 1))), 0);
  CALL(t, aclDestroyScalarList, (MAKE(t, aclCreateScalarList, (&scalar, 1))), 0);
  CALL(t, aclDestroyIntArray, (MAKE(t, aclCreateIntArray, (dims, 2))), 0);
  CALL(t, aclDestroyFloatArray, (MAKE(t, aclCreateFloatArray, (floats, 1))), 0);
  CALL(t, aclDestroyBoolArray, (MAKE(t, aclCreateBoolArray, (bools, 1))), 0);
  CALL(t, aclDestroyDataBuffer, (MAKE(t, aclCreateDataBuffer, (&stress_words, 8))), 0);
}

static void *cycle(void *argument) {
  struct turn t = {.worker = argument};
  aclrtContext context = NULL;
  for (int i = 0; i < CYCLES; i++) {
    CALL(&t, aclrtCreateContext, (&context, i % DEVICES), 0);
    cycle_runtime_objects(&t);
    cycle_descriptions(&t);
    CALL(&t, aclrtDestroyContext, (context), 0);
  }
  return NULL;
}

/* The library is ended with objects left in it. */
static void begin_and_end(struct turn *t) {
  aclrtStream stream = NULL;
  aclrtEvent event = NULL;
  void *block = NULL;
  CALL(t, aclInit, (NULL), 0);
  CALL(t, aclrtSetDevice, (0), 0);
  CALL(t, aclrtCreateStream, (&stream), 0);
  CALL(t, aclrtCreateEvent, (&event), 0);
  CALL(t, aclrtMalloc, (&block, 1 << 16, ACL_MEM_MALLOC_NORMAL_ONLY), 0);
  CALL(t, aclrtMemsetAsync, (block, 1 << 16, 0, 1 << 16, stream), 0);
  CALL(t, aclrtRecordEvent, (event, stream), 0);
  CALL(t, aclFinalize, (), 0);
}

/* --- the whole --- */

static void on_threads(struct worker *workers, int threads, void *(*body)(void *)) {
  for (int i = 0; i < threads; i++)
    if (pthread_create(&workers[i].thread, NULL, body, &workers[i]) != 0) exit(2);
  for (int i = 0; i < threads; i++) (void)pthread_join(workers[i].thread, NULL);
}

static void play(struct worker *workers, int threads, int ms) {
  struct turn t = {.worker = &workers[0]};
  CALL(&t, aclInit, (NULL), 0);
  state.end_ms = now_ms() + ms;
  on_threads(workers, threads, use);
  on_threads(workers, threads, cycle);
  CALL(&t, aclFinalize, (), 0);
  for (int i = 0; i < 5; i++) begin_and_end(&t);
}

/* What malloc keeps for later is not growth; a joined thread may be listed for a moment. */
static struct footprint settle(int threads) {
#if defined(__GLIBC__)
  (void)malloc_trim(0);
#endif
  struct footprint now = footprint();
  for (int i = 0; i < 5000 && threads > 0 && now.threads > threads; i++) {
    (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    now = footprint();
  }
  return now;
}

/* glibc gives threads arenas of their own and keeps much of these, more or less of it by chance:
 * the process then has 5 to 25 MiB whatever the library does.  With one arena it is the same within
 * some ten KiB, so that little growth is seen. */
static void use_one_arena(void) {
#if defined(__GLIBC__)
  (void)mallopt(M_ARENA_MAX, 1);
#endif
}

/* What three samples in a row have in common has grown; a single one may be large, by what malloc
 * could not give back. */
static long least_rss(const struct footprint *latest, int count) {
  long least = latest[0].rss_kib;
  for (int i = 1; i < count; i++)
    if (latest[i].rss_kib < least) least = latest[i].rss_kib;
  return least;
}

/* Compares with the first sample after the warm-up. */
static void expect_flat(struct turn *t, const struct footprint *first,
                        const struct footprint latest[3], const struct footprint *now) {
  const long least = least_rss(latest, 3);
  if (RSS_IS_OURS && least - first->rss_kib > GROWTH_KIB)
    complain(t, "memory grew from %ld KiB to %ld KiB", first->rss_kib, least);
  if (now->threads != first->threads || now->descriptors != first->descriptors)
    complain(t, "there are %d threads and %d open files, there were %d and %d", now->threads,
             now->descriptors, first->threads, first->descriptors);
}

static unsigned long calls_of(const struct worker *workers, int threads) {
  unsigned long calls = 0;
  for (int i = 0; i < threads; i++) calls += atomic_load(&workers[i].beats);
  return calls;
}

int soak(uint64_t seed, int threads, int seconds) {
  static struct worker workers[WORKERS_MAX];
  struct turn t = {.worker = &workers[0]};
  struct footprint first = {.threads = 0}, latest[3];
  const int64_t begin_ms = now_ms();
  use_one_arena();
  state.seed = seed;
  for (int i = 0; i < threads; i++) workers[i].number = i;
  (void)printf("%8s %10s %12s %10s %8s %6s\n", "seconds", "problems", "calls", "RSS KiB", "threads",
               "files");
  for (int i = 0; i < SAMPLES_LEAST || now_ms() - begin_ms < seconds * 1000; i++) {
    for (int w = 0; w < threads; w++) workers[w].round = (uint64_t)i;
    play(workers, threads, seconds * 1000 / PARTS);
    const struct footprint now = settle(first.threads);
    latest[i % 3] = now;
    (void)printf("%8.1f %10lu %12lu %10ld %8d %6d\n", (double)(now_ms() - begin_ms) / 1000,
                 atomic_load(&state.problems), calls_of(workers, threads), now.rss_kib, now.threads,
                 now.descriptors);
    (void)fflush(stdout);
    if (i == WARM_UP) first = now;
    if (i > WARM_UP) expect_flat(&t, &first, latest, &now);
    if (complaint_count() > 0) break;
  }
  return complaint_count();
}
