/* SPDX-License-Identifier: Apache-2.0 */
/* Streams as queues: order, overlap, and many threads at once.  Runs under ThreadSanitizer. */
#include <dirent.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>

#include "expect.h"
#include "poolgrad.h"

enum { THREADS = 8, STREAMS = 8, ROUNDS = 40 };

struct gate {
  sem_t entered, open;
};

static void gate_init(struct gate *gate) {
  sem_init(&gate->entered, 0, 0);
  sem_init(&gate->open, 0, 0);
}

static void gate_destroy(struct gate *gate) {
  sem_destroy(&gate->entered);
  sem_destroy(&gate->open);
}

/* Holds its stream until somebody opens the gate. */
static void stand(void *argument) {
  struct gate *gate = argument;
  sem_post(&gate->entered);
  sem_wait(&gate->open);
}

struct sequence {
  int next; /* not atomic: the stream's order is what protects it */
  bool broken;
};

struct member {
  struct sequence *sequence;
  int number;
};

static void check_turn(void *argument) {
  struct member *member = argument;
  if (member->sequence->next++ != member->number) member->sequence->broken = true;
}

static void steps_of_one_stream_run_in_order(void **state) {
  (void)state;
  enum { COUNT = 2000 };
  static struct member members[COUNT];
  struct sequence sequence = {0, false};
  aclrtStream stream;
  OK_OR_SAY(aclrtCreateStream(&stream));
  for (int i = 0; i < COUNT; i++) {
    members[i] = (struct member){&sequence, i};
    OK_OR_SAY(aclrtLaunchHostFunc(stream, check_turn, &members[i]));
  }
  OK_OR_SAY(aclrtSynchronizeStream(stream));
  assert_int_equal(sequence.next, COUNT);
  assert_false(sequence.broken);
  OK_OR_SAY(aclrtDestroyStream(stream));
}

struct pair {
  sem_t mine, theirs;
};

/* Each side waits for the other: only streams that overlap get through. */
static void meet_first(void *argument) {
  struct pair *pair = argument;
  sem_post(&pair->mine);
  sem_wait(&pair->theirs);
}

static void meet_second(void *argument) {
  struct pair *pair = argument;
  sem_post(&pair->theirs);
  sem_wait(&pair->mine);
}

static void two_streams_overlap(void **state) {
  (void)state;
  struct pair pair;
  aclrtStream a, b;
  sem_init(&pair.mine, 0, 0);
  sem_init(&pair.theirs, 0, 0);
  OK_OR_SAY(aclrtCreateStream(&a));
  OK_OR_SAY(aclrtCreateStream(&b));
  OK_OR_SAY(aclrtLaunchHostFunc(a, meet_first, &pair));
  OK_OR_SAY(aclrtLaunchHostFunc(b, meet_second, &pair));
  OK_OR_SAY(aclrtSynchronizeStreamWithTimeout(a, 60000));
  OK_OR_SAY(aclrtSynchronizeStreamWithTimeout(b, 60000));
  OK_OR_SAY(aclrtDestroyStream(a));
  OK_OR_SAY(aclrtDestroyStream(b));
  sem_destroy(&pair.mine);
  sem_destroy(&pair.theirs);
}

/* Looks at memory behind the stream's back, on purpose. */
__attribute__((noinline, no_sanitize("thread"))) static int peek(const unsigned char *at) {
  return *(const volatile unsigned char *)at;
}

static void work_runs_without_anybody_waiting_for_it(void **state) {
  (void)state;
  void *memory = device_memory(64), *host;
  aclrtStream stream;
  OK_OR_SAY(aclrtCreateStream(&stream));
  OK_OR_SAY(aclrtMallocHost(&host, 64));
  memset(host, 0, 64);
  for (int round = 1; round <= 50; round++) { /* asleep at first, dozing later */
    OK_OR_SAY(aclrtMemsetAsync(memory, 64, round, 64, stream));
    OK_OR_SAY(aclrtMemcpyAsync(host, 64, memory, 64, ACL_MEMCPY_DEVICE_TO_HOST, stream));
    while (peek((unsigned char *)host + 63) != round) {
      /* ctest's time limit ends a stream that never starts */
    }
  }
  OK_OR_SAY(aclrtSynchronizeStream(stream));
  OK_OR_SAY(aclrtFree(memory));
  OK_OR_SAY(aclrtFreeHost(host));
  OK_OR_SAY(aclrtDestroyStream(stream));
}

static void enqueueing_returns_while_the_stream_is_held(void **state) {
  (void)state;
  struct gate gate;
  aclrtStream stream;
  void *memory;
  aclrtStreamStatus status;
  gate_init(&gate);
  OK_OR_SAY(aclrtCreateStream(&stream));
  OK_OR_SAY(aclrtMalloc(&memory, 4096, ACL_MEM_MALLOC_NORMAL_ONLY));
  OK_OR_SAY(aclrtLaunchHostFunc(stream, stand, &gate));
  for (int i = 0; i < 5000; i++) OK_OR_SAY(aclrtMemsetAsync(memory, 4096, i & 255, 4096, stream));
  OK_OR_SAY(aclrtStreamQuery(stream, &status));
  assert_int_equal(status, ACL_STREAM_STATUS_NOT_READY);
  sem_post(&gate.open);
  OK_OR_SAY(aclrtSynchronizeStream(stream));
  assert_int_equal(fetch_byte((char *)memory + 4095), 4999 & 255);
  OK_OR_SAY(aclrtFree(memory));
  OK_OR_SAY(aclrtDestroyStream(stream));
  gate_destroy(&gate);
}

/* A ring of streams, each waiting for its neighbour's event, adds to one plain counter. */
static void add_one(void *argument) { (*(int *)argument)++; }

static void events_order_work_across_streams(void **state) {
  (void)state;
  aclrtStream streams[STREAMS];
  aclrtEvent event;
  int counter = 0;
  OK_OR_SAY(aclrtCreateEvent(&event));
  for (int i = 0; i < STREAMS; i++) OK_OR_SAY(aclrtCreateStream(&streams[i]));
  for (int round = 0; round < 200; round++) {
    aclrtStream stream = streams[round % STREAMS];
    OK_OR_SAY(aclrtStreamWaitEvent(stream, event)); /* the same event, recorded anew each time */
    OK_OR_SAY(aclrtLaunchHostFunc(stream, add_one, &counter));
    OK_OR_SAY(aclrtRecordEvent(event, stream));
  }
  OK_OR_SAY(aclrtSynchronizeEvent(event));
  assert_int_equal(counter, 200);
  for (int i = 0; i < STREAMS; i++) OK_OR_SAY(aclrtDestroyStream(streams[i]));
  OK_OR_SAY(aclrtDestroyEvent(event));
}

static atomic_int failures;

static void require(int status) {
  if (status != ACL_SUCCESS) atomic_fetch_add(&failures, 1);
}

/* One thread's share: its own streams, events, memory, and all of it destroyed in a mix. */
static void *hammer(void *argument) {
  const int seed = *(int *)argument;
  aclrtStream streams[STREAMS];
  void *memory[STREAMS];
  require(aclrtSetDevice(0));
  for (int round = 0; round < ROUNDS; round++) {
    aclrtEvent event;
    require(aclrtCreateEvent(&event));
    for (int i = 0; i < STREAMS; i++) {
      require(aclrtCreateStream(&streams[i]));
      require(aclrtMalloc(&memory[i], 1000, ACL_MEM_MALLOC_HUGE_FIRST));
      require(aclrtMemsetAsync(memory[i], 1000, seed + i, 1000, streams[i]));
      if (i > 0) require(aclrtStreamWaitEvent(streams[i], event));
      if (i > 0)
        require(aclrtMemcpyAsync(memory[i], 500, memory[i - 1], 500, ACL_MEMCPY_DEVICE_TO_DEVICE,
                                 streams[i]));
      require(aclrtRecordEvent(event, streams[i]));
    }
    require(aclrtSynchronizeStream(streams[STREAMS - 1]));
    unsigned char last[1000];
    require(aclrtMemcpy(last, 1000, memory[STREAMS - 1], 1000, ACL_MEMCPY_DEVICE_TO_HOST));
    if (last[0] != (unsigned char)seed || last[999] != (unsigned char)(seed + STREAMS - 1))
      atomic_fetch_add(&failures, 1);
    require(aclrtDestroyEvent(event));
    for (int i = 0; i < STREAMS; i++)
      require((round + i) % 3 == 0 ? aclrtDestroyStreamForce(streams[i])
                                   : aclrtDestroyStream(streams[i]));
    require(aclrtSynchronizeDevice());
    for (int i = 0; i < STREAMS; i++) require(aclrtFree(memory[i]));
  }
  require(aclrtResetDevice(0));
  return NULL;
}

static void eight_threads_with_eight_streams_each_do_not_disturb_each_other(void **state) {
  (void)state;
  pthread_t threads[THREADS];
  int seeds[THREADS];
  atomic_store(&failures, 0);
  for (int i = 0; i < THREADS; i++) {
    seeds[i] = i * 16;
    assert_int_equal(pthread_create(&threads[i], NULL, hammer, &seeds[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  assert_int_equal(atomic_load(&failures), 0);
}

static aclrtStream shared_stream;

static void *use_shared(void *argument) {
  void *memory = argument;
  require(aclrtSetDevice(0));
  for (int i = 0; i < 300; i++) {
    require(aclrtMemsetAsync(memory, 64, i, 64, shared_stream));
    if (i % 7 == 0) require(aclrtSynchronizeStream(shared_stream));
  }
  require(aclrtSynchronizeStream(shared_stream));
  require(aclrtResetDevice(0));
  return NULL;
}

static void threads_may_share_a_stream(void **state) {
  (void)state;
  pthread_t threads[THREADS];
  void *memory[THREADS];
  atomic_store(&failures, 0);
  OK_OR_SAY(aclrtCreateStream(&shared_stream));
  for (int i = 0; i < THREADS; i++) {
    OK_OR_SAY(aclrtMalloc(&memory[i], 64, ACL_MEM_MALLOC_NORMAL_ONLY));
    pthread_create(&threads[i], NULL, use_shared, memory[i]);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  assert_int_equal(atomic_load(&failures), 0);
  for (int i = 0; i < THREADS; i++) {
    assert_int_equal(fetch_byte((char *)memory[i] + 63), 299 & 255);
    OK_OR_SAY(aclrtFree(memory[i]));
  }
  OK_OR_SAY(aclrtDestroyStream(shared_stream));
}

static void *resize(void *argument) {
  (void)argument;
  for (int i = 0; i < 60; i++) require(poolgrad_set_threads(1 + i % 4));
  require(poolgrad_set_threads(0));
  return NULL;
}

static void the_number_of_threads_may_change_while_kernels_run(void **state) {
  (void)state;
  enum { BYTES = 4 << 20 };
  static unsigned char found[BYTES];
  pthread_t thread;
  void *memory = device_memory(BYTES);
  aclrtStream stream;
  atomic_store(&failures, 0);
  OK_OR_SAY(aclrtCreateStream(&stream));
  pthread_create(&thread, NULL, resize, NULL);
  for (int i = 0; i < 60; i++) {
    OK_OR_SAY(aclrtMemsetAsync(memory, BYTES, i, BYTES, stream));
    OK_OR_SAY(aclrtSynchronizeStream(stream));
    fetch(found, memory, BYTES);
    for (size_t at = 0; at < BYTES; at += 4093) assert_int_equal(found[at], i);
    assert_int_equal(found[BYTES - 1], i);
  }
  pthread_join(thread, NULL);
  assert_int_equal(atomic_load(&failures), 0);
  OK_OR_SAY(aclrtFree(memory));
  OK_OR_SAY(aclrtDestroyStream(stream));
}

static int thread_count(void) {
  int count = 0;
  DIR *tasks = opendir("/proc/self/task");
  assert_non_null(tasks);
  for (struct dirent *entry = readdir(tasks); entry != NULL; entry = readdir(tasks))
    count += entry->d_name[0] != '.';
  closedir(tasks);
  return count;
}

/* A thread that was joined may still be listed for a moment. */
static bool falls_to(int limit) {
  for (int i = 0; i < 2000 && thread_count() > limit; i++)
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  return thread_count() <= limit;
}

static aclrtStream used_stream(int *calls) {
  aclrtStream stream;
  OK_OR_SAY(aclrtCreateStream(&stream));
  OK_OR_SAY(aclrtLaunchHostFunc(stream, add_one, calls));
  OK_OR_SAY(aclrtSynchronizeStream(stream));
  return stream;
}

static void a_destroyed_stream_leaves_no_thread_behind(void **state) {
  (void)state;
  aclrtStream streams[16];
  int calls = 0;
  OK_OR_SAY(aclrtDestroyStream(used_stream(&calls))); /* a driver's own threads exist then */
  const int before = thread_count();
  for (int i = 0; i < 16; i++) streams[i] = used_stream(&calls);
  assert_true(thread_count() >= before + 16);
  for (int i = 0; i < 16; i++)
    OK_OR_SAY(i % 2 ? aclrtDestroyStream(streams[i]) : aclrtDestroyStreamForce(streams[i]));
  assert_true(falls_to(before));
}

static void destroying_with_work_queued_finishes_it(void **state) {
  (void)state;
  for (int round = 0; round < 100; round++) {
    aclrtStream stream;
    int counter = 0;
    OK_OR_SAY(aclrtCreateStream(&stream));
    for (int i = 0; i < 20; i++) OK_OR_SAY(aclrtLaunchHostFunc(stream, add_one, &counter));
    OK_OR_SAY(aclrtDestroyStream(stream));
    assert_int_equal(counter, 20);
  }
}

static long resident_pages(void) {
  long size = 0, resident = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  assert_non_null(file);
  assert_int_equal(fscanf(file, "%ld %ld", &size, &resident), 2);
  fclose(file);
  return resident;
}

static void create_and_destroy(int rounds) {
  for (int i = 0; i < rounds; i++) {
    aclrtStream stream;
    aclrtEvent event;
    OK_OR_SAY(aclrtCreateStream(&stream));
    OK_OR_SAY(aclrtCreateEvent(&event));
    OK_OR_SAY(aclrtRecordEvent(event, stream));
    OK_OR_SAY(aclrtDestroyEvent(event));
    OK_OR_SAY(aclrtDestroyStream(stream));
  }
}

static void ten_thousand_rounds_of_create_and_destroy_do_not_grow(void **state) {
  (void)state;
  create_and_destroy(1000); /* lets allocators and sanitizers reach their size */
  const int threads = thread_count();
  const long pages = resident_pages();
  create_and_destroy(10000);
  assert_true(falls_to(threads));
  /* What a sanitizer or qemu keeps for itself grows with threads; the plain build is bounded. */
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__) && !defined(EMULATED)
  assert_true(resident_pages() - pages < (on_cuda() ? 8192 : 512)); /* a driver has its own pools */
#else
  (void)pages;
#endif
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(steps_of_one_stream_run_in_order),
      cmocka_unit_test(two_streams_overlap),
      cmocka_unit_test(work_runs_without_anybody_waiting_for_it),
      cmocka_unit_test(enqueueing_returns_while_the_stream_is_held),
      cmocka_unit_test(events_order_work_across_streams),
      cmocka_unit_test(eight_threads_with_eight_streams_each_do_not_disturb_each_other),
      cmocka_unit_test(threads_may_share_a_stream),
      cmocka_unit_test(the_number_of_threads_may_change_while_kernels_run),
      cmocka_unit_test(a_destroyed_stream_leaves_no_thread_behind),
      cmocka_unit_test(destroying_with_work_queued_finishes_it),
      cmocka_unit_test(ten_thousand_rounds_of_create_and_destroy_do_not_grow),
  };
  return cmocka_run_group_tests(tests, set_up_device, tear_down_device);
}
