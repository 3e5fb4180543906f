/* SPDX-License-Identifier: Apache-2.0 */
/* Every part of the runtime with every request for a resource refused in turn. */
#include "fault_scenario.h"

#include <semaphore.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "aclnn/acl_meta.h"
#include "aclnn/aclnn_base.h"
#include "aclnn/opdev/op_errno.h"
#include "core/handle.h"
#include "poolgrad.h"
#include "reveal.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* every function has its turn */

enum { BYTES = 64, LARGE = 8 << 20, THREADS = 3 };

/* The codes of short memory: the library's own, the device's. */
#define OWN ACL_ERROR_BAD_ALLOC
#define DEVICE ACL_ERROR_RT_MEMORY_ALLOCATION

static bool is_all(const void *memory, int value, size_t bytes) {
  const unsigned char *p = memory;
  for (size_t i = 0; i < bytes; i++)
    if (p[i] != value) return false;
  return true;
}

/* --- start and end ---------------------------------------------------------------------------- */

static void write_file(const char *name, const char *text) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", scenario_folder(), name);
  FILE *file = fopen(path, "w");
  if (EXPECT(file != NULL)) EXPECT(fputs(text, file) >= 0);
  if (file != NULL) EXPECT(fclose(file) == 0);
}

static void set_path(const char *variable, const char *name) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", scenario_folder(), name);
  setenv(variable, path, 1);
}

/* With a log, a product, a plug-in that is not there, and aclInit's file; only that one must be. */
/* Without memory for the text there is a sentence instead. */
static bool told_or_shown(const char *devices) {
  return devices[0] == '\0' ? aclGetRecentErrMsg() != NULL : strstr(devices, "cpu") != NULL;
}

static bool start_and_end(const void *data) {
  char path[256];
  uint32_t count = 99;
  (void)data;
  snprintf(path, sizeof path, "%s/acl.json", scenario_folder());
  write_file("acl.json", "{\"dump\": {}}\n");
  set_path("ASCEND_PROCESS_LOG_PATH", "log");
  set_path("POOLGRAD_CUDA", "none.so");
  setenv("POOLGRAD_SOC", "Ascend950PR", 1);
  if (!TRY(aclInit(path), OWN)) return false;
  bool good = EXPECT(strcmp(aclrtGetSocName(), "Ascend950PR") == 0) &&
              TRY_INTO(count, aclrtGetDeviceCount(&count), OWN) && EXPECT(count == 1) &&
              EXPECT(told_or_shown(poolgrad_devices())) && TRY(aclrtSetDevice(0), OWN) &&
              MUST(aclrtResetDevice(0));
  return MUST(aclFinalize()) && good;
}

/* What aclInit would have read is read when it is first needed. */
static bool without_init(const void *data) {
  void *memory = NULL;
  char found[BYTES];
  size_t room = 0, total = 0;
  (void)data;
  bool good = TRY(aclrtSetDevice(0), OWN);
  if (good) {
    good = TRY_INTO(memory, aclrtMalloc(&memory, BYTES, ACL_MEM_MALLOC_NORMAL_ONLY), DEVICE) &&
           MUST(aclrtMemset(memory, BYTES, 5, BYTES)) &&
           MUST(aclrtMemcpy(found, BYTES, memory, BYTES, ACL_MEMCPY_DEVICE_TO_HOST)) &&
           EXPECT(is_all(found, 5, BYTES)) && MUST(aclrtGetMemInfo(ACL_HBM_MEM, &room, &total)) &&
           EXPECT(room > 0 && room <= total) && MUST(aclrtFree(memory));
    good = MUST(aclrtResetDevice(0)) && good;
  }
  return good;
}

static bool aclnn_start(const void *data) {
  (void)data;
  setenv("POOLGRAD_SOC", "Ascend910B3", 1);
  const bool good =
      TRY(aclnnInit(NULL), OWN) && EXPECT(strcmp(aclrtGetSocName(), "Ascend910B3") == 0);
  return MUST(aclnnFinalize()) && good;
}

/* Sentences need memory too.  The thread's own data is left alone where there is none. */
static bool sentences(const void *data) {
  static pthread_key_t key;
  static bool has_key;
  int own = 0;
  (void)data;
  if (!has_key) has_key = EXPECT(pthread_key_create(&key, NULL) == 0);
  (void)EXPECT(pthread_setspecific(key, &own) == 0);
  const bool good = WRONG(aclrtFree(NULL), ACL_ERROR_INVALID_PARAM) &&
                    WRONG(aclrtSetDevice(-1), ACL_ERROR_RT_INVALID_DEVICEID) &&
                    WRONG(aclDestroyTensor((aclTensor *)(void *)&own), ACLNN_ERR_PARAM_INVALID) &&
                    EXPECT(pthread_getspecific(key) == &own);
  (void)EXPECT(pthread_setspecific(key, NULL) == 0);
  return good;
}

static bool versions(const void *data) {
  char text[ACL_PKG_VERSION_MAX_SIZE] = "as before";
  int32_t number = 99;
  aclCANNPackageVersion version = {.version = "as before"};
  (void)data;
  if (access(getenv("ASCEND_HOME_PATH") == NULL ? "" : getenv("ASCEND_HOME_PATH"), F_OK) != 0) {
    static const char *const folders[] = {"share", "share/info", "share/info/runtime"};
    char path[256];
    for (int i = 0; i < 3; i++) {
      snprintf(path, sizeof path, "%s/%s", scenario_folder(), folders[i]);
      (void)mkdir(path, 0700);
    }
    write_file("share/info/runtime/version.info", "Version=9.1.2\n");
    set_path("ASCEND_HOME_PATH", "");
  }
  return TRY_INTO(text, aclsysGetVersionStr("runtime", text), OWN) &&
         EXPECT(strcmp(text, "9.1.2") == 0) &&
         TRY_INTO(number, aclsysGetVersionNum("runtime", &number), OWN) &&
         EXPECT(number == 90102000) &&
         TRY_INTO(version.version, aclsysGetCANNVersion(ACL_PKG_NAME_RUNTIME, &version), OWN) &&
         EXPECT(strcmp(version.minorVersion, "1") == 0);
}

/* --- contexts, streams ------------------------------------------------------------------------ */

static bool contexts(const void *data) {
  aclrtContext made = NULL, before = NULL, now = NULL;
  aclrtStream stream = NULL;
  (void)data;
  bool good = MUST(aclrtGetCurrentContext(&before));
  good = good && TRY_INTO(made, aclrtCreateContext(&made, 0), OWN);
  if (made == NULL) return MUST(aclrtGetCurrentContext(&now)) && EXPECT(now == before) && good;
  good = good && TRY_INTO(stream, aclrtCtxGetCurrentDefaultStream(&stream), OWN) &&
         MUST(aclrtSynchronizeStream(NULL));
  return MUST(aclrtDestroyContext(made)) && MUST(aclrtSetCurrentContext(before)) && good;
}

static aclError create_stream_v2(aclrtStream *stream) {
  aclrtStreamConfigHandle *config = NULL;
  const uint32_t priority = 3;
  if (!MAKE(config, aclrtCreateStreamConfigHandle())) return MADE_NOTHING;
  (void)MUST(aclrtSetStreamConfigOpt(config, ACL_RT_STREAM_PRIORITY, &priority, sizeof priority));
  const bool good = TRY_INTO(*stream, aclrtCreateStreamV2(stream, config), OWN);
  return MUST(aclrtDestroyStreamConfigHandle(config)) && good ? ACL_SUCCESS : MADE_NOTHING;
}

static bool streams(const void *data) {
  enum { MADE = 3 };
  aclrtStream made[MADE] = {NULL};
  uint32_t before = 0, now = 0;
  (void)data;
  bool good =
      MUST(aclrtGetStreamAvailableNum(&before)) &&
      TRY_INTO(made[0], aclrtCreateStream(&made[0]), OWN) &&
      TRY_INTO(made[1], aclrtCreateStreamWithConfig(&made[1], 7, ACL_STREAM_FAST_LAUNCH), OWN) &&
      create_stream_v2(&made[2]) == ACL_SUCCESS &&
      MUST(aclrtSetStreamFailureMode(made[0], ACL_STOP_ON_FAILURE)) &&
      MUST(aclrtSynchronizeDevice());
  uint32_t left = before;
  for (int i = 0; i < MADE; i++) left -= made[i] != NULL;
  good = MUST(aclrtGetStreamAvailableNum(&now)) && EXPECT(now == left) && good;
  for (int i = 0; i < MADE; i++)
    if (made[i] != NULL) good = MUST(aclrtDestroyStream(made[i])) && good;
  return good;
}

/* --- what streams do -------------------------------------------------------------------------- */

/* Two streams and device memory, made before anything is refused; the first stream can be held. */
struct desk {
  aclrtStream stream, other;
  unsigned char *memory; /* BYTES of the device */
  sem_t gate;
};

static void wait_at_gate(void *gate) {
  while (sem_wait(gate) != 0) continue;
}

struct door {
  sem_t entered, opened;
};

static void wait_at_door(void *argument) {
  struct door *door = argument;
  (void)sem_post(&door->entered);
  wait_at_gate(&door->opened);
}

static bool open_desk(struct desk *b, int value) {
  void *memory = NULL;
  (void)sem_init(&b->gate, 0, 0);
  const bool good = EXPECT(aclrtCreateStream(&b->stream) == 0) &&
                    EXPECT(aclrtCreateStream(&b->other) == 0) &&
                    EXPECT(aclrtMalloc(&memory, BYTES, ACL_MEM_MALLOC_NORMAL_ONLY) == 0) &&
                    EXPECT(aclrtMemset(memory, BYTES, value, BYTES) == 0);
  b->memory = memory;
  return good;
}

static bool close_desk(struct desk *b) {
  const bool good = MUST(aclrtDestroyStream(b->stream)) && MUST(aclrtDestroyStream(b->other)) &&
                    MUST(aclrtFree(b->memory));
  (void)sem_destroy(&b->gate);
  return good;
}

static bool hold(struct desk *b) {
  return TRY(aclrtLaunchHostFunc(b->stream, wait_at_gate, &b->gate), OWN);
}

static bool let_go(struct desk *b) {
  (void)sem_post(&b->gate);
  return MUST(aclrtSynchronizeStream(b->stream));
}

/* The other stream copies what the first has filled: the wait must hold if the call says so. */
static bool events(const void *data) {
  struct desk b;
  aclrtEvent made[3] = {NULL};
  aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_COMPLETE;
  aclrtEventWaitStatus waits = ACL_EVENT_WAIT_STATUS_RESERVED;
  void *out = NULL;
  float ms = -1;
  (void)data;
  if (!open_desk(&b, 1) || !EXPECT(aclrtMallocHost(&out, BYTES) == 0)) return false;
  memset(out, 0, BYTES);
  bool good = TRY_INTO(made[0], aclrtCreateEvent(&made[0]), OWN) &&
              TRY_INTO(made[1], aclrtCreateEventWithFlag(&made[1], ACL_EVENT_TIME_LINE), OWN) &&
              TRY_INTO(made[2], aclrtCreateEventExWithFlag(&made[2], ACL_EVENT_SYNC), OWN) &&
              TRY(aclrtRecordEventWithFlag(made[2], b.other, 0), OWN);
  const bool held = good && hold(&b);
  good = held && TRY(aclrtMemsetAsync(b.memory, BYTES, 2, BYTES, b.stream), OWN) && good;
  const bool recorded = good && TRY(aclrtRecordEvent(made[1], b.stream), OWN);
  if (made[1] != NULL && !recorded)
    (void)(MUST(aclrtQueryEventStatus(made[1], &status)) &&
           EXPECT(status == ACL_EVENT_RECORDED_STATUS_NOT_READY));
  good =
      recorded && TRY(aclrtStreamWaitEvent(b.other, made[1]), OWN) &&
      MUST(aclrtQueryEventWaitStatus(made[1], &waits)) &&
      TRY(aclrtMemcpyAsync(out, BYTES, b.memory, BYTES, ACL_MEMCPY_DEVICE_TO_HOST, b.other), OWN) &&
      TRY(aclrtRecordEvent(made[0], b.other), OWN);
  if (held) good = let_go(&b) && good;
  (void)MUST(aclrtSynchronizeStream(b.other));
  if (good)
    good = EXPECT(is_all(out, 2, BYTES)) && MUST(aclrtSynchronizeEvent(made[0])) &&
           MUST(aclrtEventElapsedTime(&ms, made[1], made[0])) && EXPECT(ms >= 0);
  for (int i = 0; i < 3; i++)
    if (made[i] != NULL) good = MUST(aclrtDestroyEvent(made[i])) && good;
  return MUST(aclrtFreeHost(out)) && close_desk(&b) && good;
}

/* A recorded notify is taken once; a value that was not queued is not written. */
static bool notifies(const void *data) {
  struct desk b;
  aclrtNotify notify = NULL;
  uint64_t value = 0;
  (void)data;
  if (!open_desk(&b, 0)) return false;
  bool good = TRY_INTO(notify, aclrtCreateNotify(&notify, 0), ACL_ERROR_RT_NO_NOTIFY_RESOURCE) &&
              TRY(aclrtRecordNotify(notify, b.stream), OWN) &&
              MUST(aclrtSynchronizeStream(b.stream)) &&
              TRY(aclrtWaitAndResetNotify(notify, b.other, 0), OWN) &&
              MUST(aclrtSynchronizeStream(b.other));
  const bool written = good && TRY(aclrtValueWrite(b.memory, 7, 0, b.stream), OWN);
  (void)MUST(aclrtSynchronizeStream(b.stream));
  good = MUST(aclrtMemcpy(&value, 8, b.memory, 8, ACL_MEMCPY_DEVICE_TO_HOST)) &&
         EXPECT(value == (written ? 7 : 0)) && written &&
         TRY(aclrtValueWait(b.memory, 7, ACL_STREAM_WAIT_VALUE_EQ, b.other), OWN) && good;
  (void)MUST(aclrtSynchronizeStream(b.other));
  if (notify != NULL) good = MUST(aclrtDestroyNotify(notify)) && good;
  return close_desk(&b) && good;
}

/* More steps than fit at first, behind a host function: those that were accepted run, in order. */
static void add_digit(void *number) { *(int64_t *)number = *(int64_t *)number * 2 + 1; }

static bool long_queue(const void *data) {
  enum { STEPS = 40 };
  struct desk b;
  int64_t number = 0;
  int accepted = 0;
  (void)data;
  if (!open_desk(&b, 0)) return false;
  const bool held = hold(&b);
  bool good = held;
  while (good && accepted < STEPS) {
    good = TRY(aclrtLaunchHostFunc(b.stream, add_digit, &number), OWN);
    accepted += good;
  }
  if (held) good = let_go(&b) && good;
  EXPECT(number == (INT64_C(1) << accepted) - 1);
  return close_desk(&b) && good;
}

static void count_up(void *count) { (*(int *)count)++; }

static bool callbacks(const void *data) {
  struct desk b;
  int count = 0, expected = 0;
  const uint64_t self = (uint64_t)pthread_self();
  (void)data;
  if (!open_desk(&b, 0)) return false;
  bool good = TRY(aclrtSubscribeReport(self, b.stream), OWN);
  const bool subscribed = good;
  static const aclrtCallbackBlockType types[] = {ACL_CALLBACK_NO_BLOCK, ACL_CALLBACK_BLOCK};
  for (int i = 0; i < 2 && good; i++) {
    good = TRY(aclrtLaunchCallback(count_up, &count, types[i], b.stream), OWN);
    expected += good;
  }
  while (count < expected && MUST(aclrtProcessReport(-1))) continue;
  (void)MUST(aclrtSynchronizeStream(b.stream));
  good = EXPECT(count == expected) && good;
  if (subscribed) good = MUST(aclrtUnSubscribeReport(self, b.stream)) && good;
  return close_desk(&b) && good;
}

/* Work that waits behind a held stream is dropped, whatever is refused. */
static bool forced_end(const void *data) {
  /* A process runs this several times, and the thread of an earlier run may still be at its door.
   */
  static struct door doors[8];
  static unsigned runs;
  struct door *door = &doors[runs++];
  struct desk b;
  unsigned char found[BYTES];
  (void)data;
  assert_true(runs <= sizeof doors / sizeof doors[0]);
  if (!open_desk(&b, 0)) return false;
  (void)sem_init(&door->entered, 0, 0);
  (void)sem_init(&door->opened, 0, 0);
  const bool held = TRY(aclrtLaunchHostFunc(b.stream, wait_at_door, door), OWN);
  if (held) wait_at_gate(&door->entered); /* or the abort would take the function away too */
  bool good = held && TRY(aclrtMemsetAsync(b.memory, BYTES, 9, BYTES, b.stream), OWN) &&
              MUST(aclrtStreamAbort(b.stream)) &&
              TRY(aclrtMemsetAsync(b.memory, BYTES, 9, BYTES, b.stream), OWN);
  (void)MUST(aclrtDestroyStreamForce(b.stream));
  (void)sem_post(&door->opened);
  if (MUST(aclrtMemcpy(found, BYTES, b.memory, BYTES, ACL_MEMCPY_DEVICE_TO_HOST)))
    EXPECT(is_all(found, 0, BYTES));
  (void)sem_destroy(&b.gate);
  return MUST(aclrtDestroyStream(b.other)) && MUST(aclrtFree(b.memory)) && good;
}

/* --- memory ----------------------------------------------------------------------------------- */

static bool memory(const void *data) {
  static char own[2][BYTES];
  aclrtMallocConfig config = {.attrs = NULL, .numAttrs = 0};
  void *device[5] = {NULL}, *host[2] = {NULL}, *mapped = NULL;
  aclrtMemUsageInfo usage;
  size_t count = 0, room = 0, total = 0;
  (void)data;
  bool good =
      TRY_INTO(device[0], aclrtMalloc(&device[0], BYTES, ACL_MEM_MALLOC_NORMAL_ONLY), DEVICE) &&
      TRY_INTO(device[1], aclrtMalloc(&device[1], LARGE, ACL_MEM_MALLOC_HUGE_FIRST), DEVICE) &&
      TRY_INTO(device[2], aclrtMallocAlign32(&device[2], 1, ACL_MEM_MALLOC_HUGE_ONLY), DEVICE) &&
      TRY_INTO(device[3], aclrtMallocCached(&device[3], BYTES, ACL_MEM_MALLOC_HUGE_FIRST),
               DEVICE) &&
      TRY_INTO(device[4],
               aclrtMallocWithCfg(&device[4], BYTES, ACL_MEM_MALLOC_NORMAL_ONLY, &config),
               DEVICE) &&
      TRY_INTO(host[0], aclrtMallocHost(&host[0], BYTES), DEVICE) &&
      TRY_INTO(host[1], aclrtMallocHostWithCfg(&host[1], BYTES, &config), DEVICE);
  const bool one = good && TRY_INTO(mapped, aclrtHostRegister(own[0], BYTES, 0, &mapped), OWN);
  const bool two = one && TRY(aclrtHostRegisterV2(own[1], BYTES, ACL_HOST_REG_PINNED), OWN);
  good = two && MUST(aclrtGetMemInfo(ACL_HBM_MEM, &room, &total)) &&
         MUST(aclrtGetMemUsageInfo(0, &usage, 1, &count)) && EXPECT(mapped == own[0]);
  if (good) reveal_padding(device[0]);
  if (good) EXPECT(is_all((char *)device[0] + BYTES, 0, 32)); /* the padding, of the CPU here */
  if (one) good = MUST(aclrtHostUnregister(own[0])) && good;
  if (two) good = MUST(aclrtHostUnregister(own[1])) && good;
  for (int i = 0; i < 5; i++)
    if (device[i] != NULL)
      good = MUST(i == 0 ? aclrtFreeWithDevSync(device[i]) : aclrtFree(device[i])) && good;
  for (int i = 0; i < 2; i++)
    if (host[i] != NULL) good = MUST(aclrtFreeHost(host[i])) && good;
  return good;
}

/* Large ones are spread over workers, which start here or do not. */
static bool copies(const void *data) {
  struct desk b;
  void *large = NULL, *host = malloc(LARGE);
  (void)data;
  if (!open_desk(&b, 0) || !EXPECT(host != NULL) ||
      !EXPECT(aclrtMalloc(&large, LARGE, ACL_MEM_MALLOC_HUGE_FIRST) == 0))
    return false;
  bool good =
      TRY(poolgrad_set_threads(THREADS), OWN) && TRY(aclrtMemset(large, LARGE, 3, LARGE), OWN) &&
      TRY(poolgrad_set_threads(THREADS), OWN) &&
      TRY(aclrtMemcpy(host, LARGE, large, LARGE, ACL_MEMCPY_DEVICE_TO_HOST), OWN) &&
      EXPECT(is_all(host, 3, LARGE)) &&
      TRY(aclrtMemsetD32(large, LARGE, 0x04040404, LARGE / 4), OWN) &&
      TRY(aclrtMemcpy2d(host, 1024, large, 1024, 1024, LARGE / 1024, ACL_MEMCPY_DEVICE_TO_HOST),
          OWN) &&
      EXPECT(is_all(host, 4, LARGE));
  void *dsts[] = {b.memory, b.memory + 32}, *srcs[] = {large, host};
  size_t sizes[] = {32, 32}, fail_index = 99;
  good = good &&
         TRY(aclrtMemcpyBatch(dsts, sizes, srcs, sizes, 2, NULL, NULL, 0, &fail_index), OWN) &&
         MUST(aclrtMemcpy(host, BYTES, b.memory, BYTES, ACL_MEMCPY_DEVICE_TO_HOST)) &&
         EXPECT(is_all(host, 4, BYTES));
  free(host);
  return MUST(aclrtFree(large)) && close_desk(&b) && good;
}

/* An asynchronous call that fails does nothing later either, not even from memory that the caller
 * may use again: so the source changes at once. */
struct source {
  struct desk b;
  unsigned char *host; /* BYTES */
};

static aclError copy_to_device(const struct source *s) {
  return aclrtMemcpyAsync(s->b.memory, BYTES, s->host, BYTES, ACL_MEMCPY_HOST_TO_DEVICE,
                          s->b.stream);
}
static aclError copy_rows(const struct source *s) {
  return aclrtMemcpy2dAsync(s->b.memory, 8, s->host, 8, 8, BYTES / 8, ACL_MEMCPY_HOST_TO_DEVICE,
                            s->b.stream);
}
static aclError copy_on_condition(const struct source *s) {
  return aclrtMemcpyAsyncWithCondition(s->b.memory, BYTES, s->host, BYTES,
                                       ACL_MEMCPY_HOST_TO_DEVICE, s->b.stream);
}
static aclError copy_batch_of_one(const struct source *s) {
  void *dst = s->b.memory, *src = s->host;
  size_t bytes = BYTES, fail_index;
  return aclrtMemcpyBatchAsync(&dst, &bytes, &src, &bytes, 1, NULL, NULL, 0, &fail_index,
                               s->b.stream);
}
static aclError fill_bytes(const struct source *s) {
  return aclrtMemsetAsync(s->b.memory, BYTES, s->host[0], BYTES, s->b.stream);
}
static aclError fill_words(const struct source *s) {
  return aclrtMemsetD32Async(s->b.memory, BYTES, s->host[0] * 0x01010101u, BYTES / 4, s->b.stream);
}

typedef aclError async_call(const struct source *);
static async_call *const async_calls[] = {copy_to_device,    copy_rows,  copy_on_condition,
                                          copy_batch_of_one, fill_bytes, fill_words};
enum { ASYNC_CALLS = sizeof async_calls / sizeof async_calls[0] };

static bool one_async(struct source *s, async_call *call) {
  unsigned char found[BYTES];
  if (!open_desk(&s->b, 1)) return false;
  memset(s->host, 2, BYTES);
  bool good = TRY(call(s), OWN);
  if (!good) memset(s->host, 3, BYTES);
  (void)MUST(aclrtSynchronizeStream(s->b.stream));
  good = MUST(aclrtMemcpy(found, BYTES, s->b.memory, BYTES, ACL_MEMCPY_DEVICE_TO_HOST)) &&
         EXPECT(is_all(found, good ? 2 : 1, BYTES)) && good;
  return close_desk(&s->b) && good;
}

static bool async_from_pinned(const void *data) {
  struct source s;
  void *host = NULL;
  bool good = EXPECT(aclrtMallocHost(&host, BYTES) == 0);
  (void)data;
  s.host = host;
  for (int i = 0; i < ASYNC_CALLS && good; i++) good = one_async(&s, async_calls[i]);
  return MUST(aclrtFreeHost(host)) && good;
}

static bool async_from_pageable(const void *data) {
  struct source s;
  unsigned char host[BYTES];
  bool good = true;
  (void)data;
  s.host = host;
  for (int i = 0; i < ASYNC_CALLS && good; i++) good = one_async(&s, async_calls[i]);
  return good;
}

/* Of a batch the copies before failIndex are made, the others are not. */
static bool async_batch(const void *data) {
  enum { COPIES = 24 };
  struct desk b;
  void *host = NULL, *dsts[COPIES], *srcs[COPIES];
  size_t sizes[COPIES], fail_index = 99;
  unsigned char found[BYTES];
  (void)data;
  if (!open_desk(&b, 1) || !EXPECT(aclrtMallocHost(&host, BYTES) == 0)) return false;
  memset(host, 2, BYTES);
  for (int i = 0; i < COPIES; i++) {
    dsts[i] = b.memory + 2 * i;
    srcs[i] = (char *)host + 2 * i;
    sizes[i] = 2;
  }
  const bool held = hold(&b);
  bool good = held && TRY(aclrtMemcpyBatchAsync(dsts, sizes, srcs, sizes, COPIES, NULL, NULL, 0,
                                                &fail_index, b.stream),
                          OWN);
  if (held) good = let_go(&b) && good;
  const size_t made = !held ? 0 : good ? COPIES : fail_index;
  EXPECT(made <= COPIES);
  if (MUST(aclrtMemcpy(found, BYTES, b.memory, BYTES, ACL_MEMCPY_DEVICE_TO_HOST)))
    EXPECT(is_all(found, 2, 2 * made) && is_all(found + 2 * made, 1, BYTES - 2 * made));
  return MUST(aclrtFreeHost(host)) && close_desk(&b) && good;
}

/* --- descriptions ----------------------------------------------------------------------------- */

static aclTensor *new_tensor(void *where) {
  static const int64_t dims[] = {2, 3};
  return aclCreateTensor(dims, 2, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, dims, 2, where);
}

static bool buffers_and_arrays(const void *data) {
  aclDataBuffer *buffer = NULL;
  aclIntArray *ints = NULL;
  aclFloatArray *floats = NULL;
  aclBoolArray *bools = NULL;
  aclScalar *scalar = NULL;
  uint64_t size = 0;
  (void)data;
  bool good = MAKE(buffer, aclCreateDataBuffer(&size, sizeof size)) &&
              MAKE(ints, aclCreateIntArray((const int64_t[]){1, 2}, 2)) &&
              MAKE(floats, aclCreateFloatArray((const float[]){1}, 1)) &&
              MAKE(bools, aclCreateBoolArray((const bool[]){true}, 1)) &&
              MAKE(scalar, aclCreateScalar(&(float){1}, ACL_FLOAT)) &&
              MUST(aclGetIntArraySize(ints, &size)) && EXPECT(size == 2) &&
              EXPECT(aclGetDataBufferAddr(buffer) == &size);
  if (buffer != NULL) good = MUST(aclDestroyDataBuffer(buffer)) && good;
  return MUST(aclDestroyIntArray(ints)) && MUST(aclDestroyFloatArray(floats)) &&
         MUST(aclDestroyBoolArray(bools)) && MUST(aclDestroyScalar(scalar)) && good;
}

/* The caller frees what a getter gives. */
static bool gives_dims(aclnnStatus (*get)(const aclTensor *, int64_t **, uint64_t *),
                       const aclTensor *tensor, int64_t first) {
  struct {
    int64_t *values;
    uint64_t count;
  } out = {NULL, 99};
  const bool good = TRY_INTO(out, get(tensor, &out.values, &out.count), ACLNN_ERR_INNER);
  if (good) EXPECT(out.count == 2 && out.values[0] == first);
  free(out.values);
  return good;
}

static bool tensors_and_lists(const void *data) {
  aclTensor *tensor[2] = {NULL};
  aclScalar *scalar = NULL;
  aclTensorList *list = NULL;
  aclScalarList *scalars = NULL;
  float cells[6] = {0};
  (void)data;
  bool good =
      MAKE(tensor[0], new_tensor(cells)) && MAKE(tensor[1], new_tensor(NULL)) &&
      MAKE(scalar, aclCreateScalar(&(float){1}, ACL_FLOAT)) &&
      gives_dims(aclGetViewShape, tensor[0], 2) && gives_dims(aclGetStorageShape, tensor[0], 2) &&
      gives_dims(aclGetViewStrides, tensor[0], 3) && MUST(aclSetRawTensorAddr(tensor[1], cells)) &&
      MAKE(list, aclCreateTensorList((const aclTensor *const *)tensor, 2)) &&
      MAKE(scalars, aclCreateScalarList((const aclScalar *const *)&scalar, 1)) &&
      TRY(aclDumpOpTensors("Op", "op", tensor, 1, 1, NULL), ACLNN_ERR_RUNTIME_ERROR);
  if (list != NULL) { /* it owns them */
    good = MUST(aclDestroyTensorList(list)) && good;
  } else {
    good = MUST(aclDestroyTensor(tensor[0])) && MUST(aclDestroyTensor(tensor[1])) && good;
  }
  if (scalars != NULL) return MUST(aclDestroyScalarList(scalars)) && good;
  return MUST(aclDestroyScalar(scalar)) && good;
}

static const struct scenario scenarios[] = {
    {.name = "start and end", .run = start_and_end, .start = SCENARIO_COLD},
    {.name = "a device without aclInit", .run = without_init, .start = SCENARIO_COLD},
    {.name = "aclnnInit", .run = aclnn_start, .start = SCENARIO_COLD},
    {.name = "sentences", .run = sentences, .start = SCENARIO_COLD},
    {.name = "versions", .run = versions, .start = SCENARIO_COLD},
    {.name = "contexts", .run = contexts},
    {.name = "streams", .run = streams},
    {.name = "events", .run = events},
    {.name = "notifies and values", .run = notifies},
    {.name = "a long queue", .run = long_queue},
    {.name = "callbacks", .run = callbacks},
    {.name = "forced end", .run = forced_end, .ends_late = true},
    {.name = "memory", .run = memory},
    {.name = "copies and fills at once", .run = copies},
    {.name = "copies and fills in a stream, pinned", .run = async_from_pinned},
    {.name = "copies and fills in a stream, pageable", .run = async_from_pageable},
    {.name = "a batch of copies in a stream", .run = async_batch},
    {.name = "buffers, arrays and scalars", .run = buffers_and_arrays},
    {.name = "tensors and lists", .run = tensors_and_lists},
};

int main(int count, char **arguments) {
  setenv("POOLGRAD_DEVICES", "cpu", 1);
  setenv("POOLGRAD_THREADS", "3", 1);
  return scenarios_run(scenarios, sizeof scenarios / sizeof scenarios[0],
                       count > 1 ? arguments[1] : NULL);
}
