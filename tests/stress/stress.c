/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds of random calls; see stress.h.
 *
 *   stress [--seconds N] [--threads N] [--seed N] [--round N] [--steps N] [--hang N]
 *          [--only NAME,...] [--without NAME,...] [--print N] [--soak SECONDS]
 *
 * A failure names the seed and the round: --seed S --round R begins with that round, whose workers
 * then make the same calls, if not at the same moments.  --print shows the first N of them.
 * --only and --without choose rows of the table by name. */
#include "stress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Shapes come from C++'s new where there is such, and a C program gives them to free(). */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "alloc_dealloc_mismatch=0"; }

struct options options = {.seconds = 2, .threads = 8, .hang_seconds = 90, .steps = 1000};

static struct worker workers[WORKERS_MAX];
static time_t end;            /* when time is up */
static atomic_bool round_end; /* the round's keeper and report thread should end */

uint64_t stress_words[WORDS];
_Atomic uint64_t stress_report_thread;

static void *work(void *argument) {
  struct worker *worker = argument;
  struct turn t = {worker, 0};
  CALL(&t, aclrtSetDevice, (worker->number % DEVICES), 0);
  CALL(&t, aclrtHostRegisterV2, (worker->pinned, ARENA_BYTES, ACL_HOST_REG_PINNED), CONTEXT_CODES);
  for (uint64_t i = 0; i < options.steps && time(NULL) < end; i++) make_step(worker, i);
  (void)aclGetRecentErrMsg();
  enter(&t, NULL); /* done: the watchdog looks away */
  return NULL;
}

/* --- threads beside the workers --- */

static void sleep_ms(int ms) {
  (void)nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L}, NULL);
}

/* Satisfies every wait for a value sooner or later. */
static void *keep(void *unused) {
  static const uint64_t values[] = {1, 2, 3, 100};
  (void)unused;
  for (int i = 0; !atomic_load(&round_end); i++) {
    for (int word = 0; word < WORDS; word++)
      __atomic_store_n(&stress_words[word], values[i % 4], __ATOMIC_RELEASE);
    sleep_ms(2);
  }
  return NULL;
}

static void *serve_reports(void *argument) {
  struct turn t = {argument, 0};
  while (!atomic_load(&round_end))
    if (CALL(&t, aclrtProcessReport, (10), ACL_ERROR_RT_THREAD_SUBSCRIBE,
             ACL_ERROR_RT_REPORT_TIMEOUT) == ACL_ERROR_RT_THREAD_SUBSCRIBE)
      sleep_ms(1);
  (void)aclGetRecentErrMsg();
  return NULL;
}

static struct worker reporter = {.number = -3}, ender = {.number = -4};

static void report_hang(const struct worker *stuck) {
  (void)fprintf(stderr,
                "stress: --seed %" PRIu64 " --round %" PRIu64
                ": worker %d has made no progress for %d s\n",
                options.seed, stuck->round, stuck->number, options.hang_seconds);
  for (int i = 0; i <= options.threads; i++) {
    struct worker *w = i < options.threads ? &workers[i] : &ender;
    const char *call = atomic_load(&w->call);
    (void)fprintf(stderr, "stress: worker %d, step %" PRIu64 ": %s\n", w->number, w->step,
                  call == NULL ? "done" : call);
  }
}

/* Ends the process when a thread is inside one call for too long. */
static void *watch(void *unused) {
  unsigned long beats[WORKERS_MAX + 1] = {0};
  time_t since[WORKERS_MAX + 1];
  (void)unused;
  for (int i = 0; i <= WORKERS_MAX; i++) since[i] = time(NULL);
  for (;;) {
    sleep_ms(200);
    for (int i = 0; i <= options.threads; i++) {
      struct worker *w = i < options.threads ? &workers[i] : &ender;
      const unsigned long now = atomic_load(&w->beats);
      if (now != beats[i] || atomic_load(&w->call) == NULL) since[i] = time(NULL);
      beats[i] = now;
      if (time(NULL) - since[i] < options.hang_seconds) continue;
      report_hang(w);
      abort();
    }
  }
}

/* --- rounds --- */

/* Everything that the round began is over, and nothing of it is left but objects without threads.
 */
static void end_round(struct turn *t) {
  CALL(t, aclInit, (NULL), ACL_ERROR_REPEAT_INITIALIZE);
  CALL(t, aclFinalize, (), 0);
  CALL(t, aclrtSetExceptionInfoCallback, (NULL), 0);
  shelves_clear(t);
  enter(t, NULL);
}

static void start(pthread_t *thread, void *(*body)(void *), void *argument) {
  if (pthread_create(thread, NULL, body, argument) == 0) return;
  (void)fprintf(stderr, "stress: no thread could be started\n");
  exit(2);
}

static void play_round(uint64_t round) {
  pthread_t keeper, server;
  struct turn t = {&ender, 0};
  ender.round = reporter.round = round;
  atomic_store(&round_end, false);
  weigh_rows(round);
  start(&keeper, keep, NULL);
  start(&server, serve_reports, &reporter);
  atomic_store(&stress_report_thread, (uint64_t)server);
  for (int i = 0; i < options.threads; i++) {
    struct worker *w = &workers[i];
    w->round = round;
    w->used = w->used_pinned = w->used_large = 0;
    start(&w->thread, work, w);
  }
  for (int i = 0; i < options.threads; i++) (void)pthread_join(workers[i].thread, NULL);
  end_round(&t);
  atomic_store(&round_end, true);
  (void)pthread_join(keeper, NULL);
  (void)pthread_join(server, NULL);
}

/* Threads that were joined may be listed for another moment. */
static void expect_footprint(uint64_t round, const struct footprint *before) {
  struct turn t = {&ender, 0};
  struct footprint now = footprint();
  for (int i = 0; i < 5000 && now.threads > before->threads; i++) {
    sleep_ms(1);
    now = footprint();
  }
  if (now.threads > before->threads)
    complain(&t, "after the round there are %d threads, before there were %d", now.threads,
             before->threads);
  if (now.descriptors > before->descriptors)
    complain(&t, "after round %d there are %d open files, before there were %d", (int)round,
             now.descriptors, before->descriptors);
}

static void *must_have(void *memory) {
  if (memory != NULL) return memory;
  (void)fprintf(stderr, "stress: out of memory\n");
  exit(2);
}

static void stress(void) {
  end = time(NULL) + options.seconds;
  uint64_t round = options.round;
  unsigned long calls = 0;
  pthread_t watchdog;
  problems_prepare();
  for (int i = 0; i < options.threads; i++) {
    workers[i].number = i;
    workers[i].arena = must_have(calloc(1, ARENA_BYTES));
    workers[i].pinned = must_have(calloc(1, ARENA_BYTES));
    workers[i].large = must_have(calloc(1, LARGE_BYTES));
  }
  start(&watchdog, watch, NULL);
  (void)pthread_detach(watchdog);
  const struct footprint before = footprint();
  do {
    play_round(round++);
    expect_footprint(round - 1, &before);
  } while (time(NULL) < end && complaint_count() == 0);
  for (int i = 0; i < options.threads; i++) {
    calls += atomic_load(&workers[i].beats);
    free(workers[i].arena), free(workers[i].pinned), free(workers[i].large);
  }
  problems_release();
  (void)fprintf(
      stderr, "stress: seed %" PRIu64 ", %d threads, %d rounds, %lu calls, %d complaints\n",
      options.seed, options.threads, (int)(round - options.round), calls, complaint_count());
}

/* --- arguments --- */

static void usage(void) {
  (void)fprintf(
      stderr,
      "usage: stress [--seconds N] [--threads N] [--seed N] [--round N] [--steps N] [--hang N]\n"
      "              [--only NAME,...] [--without NAME,...] [--print N] [--soak SECONDS]\n");
  exit(2);
}

static uint64_t number(const char *text) {
  char *end;
  const uint64_t value = strtoull(text, &end, 0);
  if (*text == '\0' || *end != '\0') usage();
  return value;
}

/* The library's log is written, to nowhere, so that its lock takes part. */
static void set_environment(bool log) {
  (void)setenv("POOLGRAD_DEVICES", "cpu,cpu,cpu", 1);
  (void)setenv("POOLGRAD_INDEX_CHECK", "error", 1);
  if (!log) return;
  (void)setenv("ASCEND_LOG_PRINT_TO_STDOUT", "1", 1);
  (void)setenv("ASCEND_GLOBAL_LOG_LEVEL", "1", 1);
  if (freopen("/dev/null", "w", stdout) == NULL) exit(2);
}

int main(int count, char **arguments) {
  uint64_t print = 0, soak_seconds = 0;
  options.seed = (uint64_t)time(NULL);
  for (int i = 1; i < count; i += 2) {
    const char *name = arguments[i], *value = i + 1 < count ? arguments[i + 1] : "";
    if (strcmp(name, "--seconds") == 0)
      options.seconds = (int)number(value);
    else if (strcmp(name, "--hang") == 0)
      options.hang_seconds = (int)number(value);
    else if (strcmp(name, "--threads") == 0)
      options.threads = (int)number(value);
    else if (strcmp(name, "--seed") == 0)
      options.seed = number(value);
    else if (strcmp(name, "--round") == 0)
      options.round = number(value);
    else if (strcmp(name, "--steps") == 0)
      options.steps = number(value);
    else if (strcmp(name, "--only") == 0)
      options.only = value;
    else if (strcmp(name, "--without") == 0)
      options.without = value;
    else if (strcmp(name, "--print") == 0)
      print = number(value);
    else if (strcmp(name, "--soak") == 0)
      soak_seconds = number(value);
    else
      usage();
  }
  if (options.threads < 1 || options.threads > WORKERS_MAX) usage();
  collect_rows();
  if (print > 0) {
    print_steps(print);
    return 0;
  }
  set_environment(soak_seconds == 0);
  (void)fprintf(stderr, "stress: --seed %" PRIu64 "\n", options.seed);
  if (soak_seconds > 0) return soak(options.seed, options.threads, (int)soak_seconds) != 0;
  stress();
  return complaint_count() != 0;
}
