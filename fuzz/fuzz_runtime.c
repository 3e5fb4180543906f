/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes become a sequence of runtime calls on a handful of handles, live, destroyed and of the
 * wrong kind.  A small model says what each call must answer and what the memory holds once a
 * stream was waited for.
 *
 * No sequence can hang a right library.  A stream may wait for a *gate* that is still shut: a
 * notify, a value in memory, a callback that nobody has served yet.  The model knows which gates
 * hold each stream, also through events, and makes no call then that would wait for it without a
 * limit; force, abort and aclFinalize must do without the gate. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "core/handle.h"
#include "device.h"
#include "tiny_call.h"

enum { CONTEXTS = 4, PRIMARIES = 2, STREAMS = 5, EVENTS = 4, NOTIFIES = 2, WORDS = 2 };
enum { GATES = NOTIFIES + WORDS + STREAMS, BYTES = 64, CALLS = 96, GENEROUS_MS = 60000 };

enum life { NEVER, ALIVE, ENDED };

struct context {
  enum life life;
  aclrtContext handle;
  int device, users; /* users: of a primary one */
};

struct stream {
  enum life life;
  aclrtStream handle;
  int context;
  unsigned held;       /* by which gates */
  unsigned waited_for; /* notifies it has waited for since it was last synchronised */
  bool fails;          /* a wait ran out of time, which the next synchronise tells */
  bool subscribed;
  char *memory; /* on the device, this stream's alone; NULL when there is none */
  bool known;   /* what it holds when the stream gets there: */
  char holds[BYTES];
  atomic_int *called; /* host functions that ran, of `launched` */
  atomic_int *served; /* callbacks that ran, of `callbacks` */
  int launched, callbacks;
};

struct event {
  enum life life;
  aclrtEvent handle;
  bool ex, recorded;
  unsigned held; /* by which gates, at the point that was recorded */
  int stream;
};

static struct {
  int devices, references;
  bool finalized;
  int current; /* context of this thread, -1 for none */
  struct context context[CONTEXTS];
  struct stream stream[STREAMS];
  struct event event[EVENTS];
  struct {
    enum life life;
    aclrtNotify handle;
    bool set, unsure; /* recorded and not waited for; nobody knows */
  } notify[NOTIFIES];
  uint64_t *word; /* WORDS of them, in host memory that devices reach */
  uint64_t target[WORDS];
  char *pattern; /* BYTES that never change, likewise */
  bool registered[2];
  int owner[GATES]; /* the stream that waits at the gate itself; others wait for its events */
  bool vague; /* work that waited for another stream was dropped: who waited for it may go on */
} w;

/* Two for each stream that a sequence makes; a stream that was ended by force may count on. */
static atomic_int counters[2 * CALLS + 2];
static int counters_used;

static const char *sentence(void) {
  const char *text = aclGetRecentErrMsg();
  return text == NULL ? "(no sentence)" : text;
}

static bool trace; /* POOLGRAD_FUZZ_TRACE is set: every call is shown */

/* The call gives this code, and a sentence if that is a failure. */
static void expect(const char *what, int status, int expected) {
  if (trace) (void)fprintf(stderr, "%6d %s\n", status, what);
  if (status != expected) wrong("%s gave %d, expected %d: %s", what, status, expected, sentence());
  const char *text = aclGetRecentErrMsg();
  if (status != 0 && text == NULL) wrong("%s gave %d without a sentence", what, status);
  if (status == 0 && text != NULL) wrong("%s succeeded and said: %s", what, text);
}

#define EXPECT(call, expected) expect(#call, (call), (expected))

/* --- the model ---------------------------------------------------------------------------------
 */

static bool has_context(void) { return w.current >= 0 && w.context[w.current].life == ALIVE; }

/* A stream as an argument: one of ours, or what a caller can get wrong. */
struct choice {
  aclrtStream handle;
  struct stream *stream; /* NULL when it is none of ours, or not to be used in this context */
  int code;              /* what every call with it must give */
};

static struct choice take_stream(struct input *in) {
  const int i = take_below(in, STREAMS + 3);
  struct choice c = {NULL, NULL, ACL_ERROR_RT_INVALID_HANDLE};
  if (i < STREAMS) {
    struct stream *s = &w.stream[i];
    c.handle = s->handle;
    if (s->life == NEVER) c.handle = (void *)(uintptr_t)0x1000;
    if (s->life != ALIVE) return c;
    c.code = !has_context()            ? ACL_ERROR_RT_CONTEXT_NULL
             : s->context != w.current ? ACL_ERROR_RT_STREAM_CONTEXT
                                       : ACL_SUCCESS;
    if (c.code == ACL_SUCCESS) c.stream = s;
  } else if (i == STREAMS) {
    c.code = has_context() ? ACL_SUCCESS : ACL_ERROR_RT_CONTEXT_NULL; /* the default stream */
  } else if (i == STREAMS + 1) {
    c.handle = w.event[0].handle != NULL ? w.event[0].handle : (void *)(uintptr_t)0x20;
  } else {
    c.handle = (void *)(uintptr_t)0xfeedfacecafebeef;
  }
  return c;
}

static bool free_to_wait(const struct choice *c) {
  return c->stream == NULL || c->stream->held == 0;
}

static bool anything_held(int context) {
  for (int i = 0; i < STREAMS; i++)
    if (w.stream[i].life == ALIVE && w.stream[i].held != 0 &&
        (context < 0 || w.stream[i].context == context))
      return true;
  return false;
}

static void open_gate(int gate) {
  for (int i = 0; i < STREAMS; i++) w.stream[i].held &= ~(1u << gate);
  for (int i = 0; i < EVENTS; i++) w.event[i].held &= ~(1u << gate);
}

static void hold(struct stream *s, int gate) {
  s->held |= 1u << gate;
  w.owner[gate] = (int)(s - w.stream);
}

/* The stream's work is dropped, and whoever waited for it goes on. */
static void forget_work(struct stream *s) {
  for (int i = 0; i < NOTIFIES; i++)
    if ((s->waited_for & 1u << i) != 0) w.notify[i].unsure = true;
  for (int i = 0; i < GATES; i++)
    if ((s->held & 1u << i) != 0 && &w.stream[w.owner[i]] == s) open_gate(i);
  if (s->held != 0) w.vague = true;
  for (int i = 0; i < EVENTS; i++)
    if (&w.stream[w.event[i].stream] == s) w.event[i].held = 0;
  s->held = s->waited_for = 0;
  s->fails = s->known = false;
  s->launched = s->callbacks = 0;
}

static void end_stream(struct stream *s) {
  s->life = ENDED;
  s->held = 0;
  s->subscribed = false;
}

static void end_context(int i) {
  w.context[i].life = ENDED;
  w.context[i].users = 0;
  for (int s = 0; s < STREAMS; s++)
    if (w.stream[s].life == ALIVE && w.stream[s].context == i) {
      forget_work(&w.stream[s]);
      end_stream(&w.stream[s]);
    }
}

static void end_everything(void) {
  for (int i = 0; i < CONTEXTS; i++)
    if (w.context[i].life == ALIVE) end_context(i);
  for (int i = 0; i < EVENTS; i++)
    if (w.event[i].life == ALIVE) w.event[i].life = ENDED;
  for (int i = 0; i < NOTIFIES; i++)
    if (w.notify[i].life == ALIVE) w.notify[i].life = ENDED;
  for (int i = 0; i < STREAMS; i++) w.stream[i].memory = NULL;
  w.word = NULL;
  w.pattern = NULL;
  memset(w.registered, 0, sizeof w.registered);
  w.references = 0;
  w.finalized = true;
}

/* --- memory ------------------------------------------------------------------------------------
 */

static void make_shared(void) {
  void *memory;
  if (w.word == NULL) {
    NEED(aclrtMallocHost(&memory, WORDS * sizeof *w.word));
    w.word = memory;
    memset(memory, 0, WORDS * sizeof *w.word);
    memset(w.target, 0, sizeof w.target);
  }
  if (w.pattern == NULL) {
    NEED(aclrtMallocHost(&memory, BYTES));
    w.pattern = memory;
    for (int i = 0; i < BYTES / 4; i++) memcpy(w.pattern + 4 * i, &(float){(float)(i - 3)}, 4);
  }
}

/* After a synchronise: the memory holds what the model says. */
static void check_memory(struct stream *s) {
  char found[BYTES];
  if (s->memory == NULL || !s->known || !has_context()) return;
  NEED(aclrtMemcpy(found, BYTES, s->memory, BYTES, ACL_MEMCPY_DEVICE_TO_HOST));
  if (memcmp(found, s->holds, BYTES) != 0) wrong("a stream's memory is not what it should be");
}

/* Memory whose content is known, on a stream that is not held. */
static bool have_memory(struct stream *s) {
  if (s->memory == NULL) {
    void *memory;
    NEED(aclrtMalloc(&memory, BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
    s->memory = memory;
    s->known = false;
  }
  if (!s->known && s->held == 0 && !s->fails) {
    NEED(aclrtSynchronizeStream(s->handle));
    NEED(aclrtMemset(s->memory, BYTES, 0x11, BYTES));
    memset(s->holds, 0x11, BYTES);
    s->known = true;
  }
  make_shared();
  return s->known;
}

/* Between aclFinalize and aclInit it is no failure to free what is not there. */
static void call_memory(struct input *in) {
  static char host[2][256];
  const int what = take_below(in, 4), i = take_below(in, 2);
  const int code = has_context() ? ACL_SUCCESS : ACL_ERROR_RT_CONTEXT_NULL;
  void *memory = NULL, *device;
  if (what == 0) {
    const size_t size = take(in);
    EXPECT(aclrtMalloc(&memory, size, ACL_MEM_MALLOC_NORMAL_ONLY),
           size == 0 ? ACL_ERROR_INVALID_PARAM : code);
    if (memory == NULL) return;
    EXPECT(aclrtMemset(memory, size, 7, size), ACL_SUCCESS);
    EXPECT(aclrtMemset(memory, size, 7, size + 1), ACL_ERROR_RT_PARAM_INVALID);
    EXPECT(aclrtFreeHost(memory), ACL_ERROR_RT_PARAM_INVALID);
    EXPECT(aclrtFree(memory), ACL_SUCCESS);
    EXPECT(aclrtFree(memory), w.finalized ? ACL_SUCCESS : ACL_ERROR_RT_PARAM_INVALID);
  } else if (what == 1) {
    EXPECT(
        aclrtHostRegister(host[i], sizeof host[i], ACL_HOST_REGISTER_MAPPED, &device),
        code == ACL_SUCCESS && w.registered[i] ? ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED : code);
    if (code == ACL_SUCCESS) w.registered[i] = true;
  } else if (what == 2) {
    EXPECT(aclrtHostUnregister(host[i]),
           w.registered[i] || w.finalized ? ACL_SUCCESS : ACL_ERROR_HOST_MEMORY_NOT_REGISTERED);
    w.registered[i] = false;
  } else {
    EXPECT(aclrtHostGetDevicePointer(host[i], &device, 0),
           w.registered[i] ? ACL_SUCCESS : ACL_ERROR_HOST_MEMORY_NOT_REGISTERED);
  }
}

static void call_option(struct input *in) {
  const int64_t value = take_below(in, 2);
  const int code = has_context() ? ACL_SUCCESS : ACL_ERROR_RT_CONTEXT_NULL;
  int64_t found = value;
  EXPECT(aclrtCtxSetSysParamOpt(ACL_OPT_DETERMINISTIC, value), code);
  EXPECT(aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, &found), code);
  if (found != value) wrong("an option is not what it was set to");
  EXPECT(aclrtSetSysParamOpt((aclSysParamOpt)99, value), ACL_ERROR_INVALID_PARAM);
}

/* --- contexts and devices ----------------------------------------------------------------------
 */

/* What waits for streams without a limit puts up with one that is held for a second: right, but
 * slow, so few sequences try it. */
static bool is_patient(struct input *in) { return !anything_held(-1) || take_rarely(in, 128); }

static void call_init(struct input *in) {
  if (!is_patient(in)) return;
  switch (take_below(in, 4)) {
    case 1:
      EXPECT(aclFinalizeReference(NULL),
             w.references == 0 ? ACL_ERROR_REPEAT_FINALIZE : ACL_SUCCESS);
      if (w.references == 1)
        end_everything();
      else if (w.references > 0)
        w.references--;
      break;
    case 2:
      EXPECT(aclFinalize(), w.finalized ? ACL_ERROR_REPEAT_FINALIZE : ACL_SUCCESS);
      if (!w.finalized) end_everything();
      break;
    default:
      EXPECT(aclInit(NULL), w.references > 0 ? ACL_ERROR_REPEAT_INITIALIZE : ACL_SUCCESS);
      w.references++;
      w.finalized = false;
  }
}

static void set_device(int device) {
  struct context *c = &w.context[device];
  NEED(aclrtSetDevice(device));
  if (c->life != ALIVE) *c = (struct context){.life = ALIVE, .device = device};
  NEED(aclrtGetCurrentContext(&c->handle));
  c->users++;
  w.current = device;
}

static void call_device(struct input *in) {
  const int what = take_below(in, 4), device = take_below(in, w.devices + 1);
  const bool there = device < w.devices, force = what == 3;
  if (what < 2 && there) {
    set_device(device);
  } else if (what < 2) {
    EXPECT(aclrtSetDevice(device), ACL_ERROR_RT_INVALID_DEVICEID);
  } else {
    const int users = there ? w.context[device].users : 0;
    if (!force && !is_patient(in)) return;
    EXPECT(force ? aclrtResetDeviceForce(device) : aclrtResetDevice(device),
           !there       ? ACL_ERROR_RT_INVALID_DEVICEID
           : users == 0 ? ACL_ERROR_RT_CONTEXT_RELEASE_ERROR
                        : ACL_SUCCESS);
    if (users > 0) w.context[device].users = force ? 0 : users - 1;
    if (users > 0 && w.context[device].users == 0) end_context(device);
  }
}

/* Between aclFinalize and aclInit a thread is told which context it had, if any: a dead one. */
static void ask_for_context(void) {
  aclrtContext found = NULL;
  if (has_context() || !w.finalized) {
    EXPECT(aclrtGetCurrentContext(&found), has_context() ? ACL_SUCCESS : ACL_ERROR_RT_CONTEXT_NULL);
    if (has_context() && found != w.context[w.current].handle) wrong("another current context");
  } else if (aclrtGetCurrentContext(&found) == ACL_SUCCESS) {
    EXPECT(aclrtSetCurrentContext(found), ACL_ERROR_RT_PARAM_INVALID);
  } else {
    (void)aclGetRecentErrMsg();
  }
}

static void call_context(struct input *in) {
  const int what = take_below(in, 4), i = take_below(in, CONTEXTS + 1);
  struct context *c = i < CONTEXTS ? &w.context[i] : NULL;
  const bool live = c != NULL && c->life == ALIVE;
  aclrtContext handle = c == NULL ? NULL : c->handle;
  if (what == 0 && c != NULL && i >= PRIMARIES && !live) {
    *c = (struct context){.life = ALIVE, .device = take_below(in, w.devices)};
    EXPECT(aclrtCreateContext(&c->handle, c->device), ACL_SUCCESS);
    w.current = i;
  } else if (what == 1) {
    EXPECT(aclrtSetCurrentContext(handle), handle == NULL ? ACL_ERROR_INVALID_PARAM
                                           : live         ? ACL_SUCCESS
                                                          : ACL_ERROR_RT_PARAM_INVALID);
    if (live) w.current = i;
  } else if (what == 2 && !(live && anything_held(i))) {
    const bool ends = live && i >= PRIMARIES;
    EXPECT(aclrtDestroyContext(handle), handle == NULL ? ACL_ERROR_INVALID_PARAM
                                        : ends         ? ACL_SUCCESS
                                                       : ACL_ERROR_RT_CONTEXT_NULL);
    if (!ends) return;
    end_context(i);
    if (w.current == i) w.current = -1;
  } else if (what == 3) {
    ask_for_context();
  }
}

/* --- streams -----------------------------------------------------------------------------------
 */

static void call_create_stream(struct input *in) {
  struct stream *s = &w.stream[take_below(in, STREAMS)];
  const int way = take_below(in, 3);
  aclrtStream handle = NULL;
  if (s->life == ALIVE) return;
  const int code = has_context() ? ACL_SUCCESS : ACL_ERROR_RT_CONTEXT_NULL;
  if (way == 0) {
    EXPECT(aclrtCreateStream(&handle), code);
  } else if (way == 1) {
    EXPECT(aclrtCreateStreamWithConfig(&handle, take(in) % 9, ACL_STREAM_FAST_LAUNCH), code);
  } else {
    aclrtStreamConfigHandle *config = aclrtCreateStreamConfigHandle();
    EXPECT(aclrtCreateStreamV2(&handle, config), code);
    EXPECT(aclrtDestroyStreamConfigHandle(config), ACL_SUCCESS);
    EXPECT(aclrtCreateStreamV2(&handle, config), ACL_ERROR_RT_INVALID_HANDLE);
  }
  if (code != ACL_SUCCESS) return;
  *s = (struct stream){.life = ALIVE, .handle = handle, .context = w.current};
  s->called = &counters[counters_used++];
  s->served = &counters[counters_used++];
}

static void call_end_stream(struct input *in) {
  const int what = take_below(in, 3);
  const struct choice c = take_stream(in);
  if (what == 0 && !free_to_wait(&c)) return;
  if (what == 2) {
    EXPECT(aclrtStreamAbort(c.handle), c.code);
    /* a wait whose time was over before the abort has failed, one that was ended by it has not */
    if (c.stream != NULL && c.stream->fails) (void)aclrtSynchronizeStream(c.handle);
    (void)aclGetRecentErrMsg();
    if (c.stream != NULL) forget_work(c.stream);
    return;
  }
  EXPECT(what == 0 ? aclrtDestroyStream(c.handle) : aclrtDestroyStreamForce(c.handle),
         c.handle == NULL ? ACL_ERROR_INVALID_PARAM : c.code);
  if (c.stream == NULL || c.handle == NULL) return;
  if (what == 0) {
    check_memory(c.stream);
    c.stream->waited_for = 0;
  }
  /* The memory of a stream that was ended by force may still be written to until aclFinalize. */
  if (what == 0 && c.stream->memory != NULL) NEED(aclrtFree(c.stream->memory));
  forget_work(c.stream);
  end_stream(c.stream);
}

static void after_synchronise(struct stream *s) {
  s->fails = false;
  s->waited_for = 0;
  if (atomic_load(s->called) < s->launched) wrong("a host function has not run");
  check_memory(s);
}

static void call_synchronise(struct input *in) {
  const int what = take_below(in, 4);
  const struct choice c = take_stream(in);
  aclrtStreamStatus status;
  const int done = c.code != ACL_SUCCESS                 ? c.code
                   : c.stream != NULL && c.stream->fails ? ACL_ERROR_RT_WAIT_TIMEOUT
                                                         : ACL_SUCCESS;
  if (free_to_wait(&c)) {
    if (what == 0)
      EXPECT(aclrtSynchronizeStreamWithTimeout(c.handle, GENEROUS_MS), done);
    else if (what == 1)
      EXPECT(aclrtSynchronizeStreamWithTimeout(c.handle, 0), ACL_ERROR_RT_PARAM_INVALID);
    else
      EXPECT(aclrtSynchronizeStream(c.handle), done);
    if (what != 1 && c.stream != NULL) after_synchronise(c.stream);
  } else if (!w.vague) { /* held for sure */
    EXPECT(aclrtSynchronizeStreamWithTimeout(c.handle, 1), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    EXPECT(aclrtStreamQuery(c.handle, &status), ACL_SUCCESS);
    if (status != ACL_STREAM_STATUS_NOT_READY) wrong("a stream that waits is complete");
  }
}

static void call_synchronise_device(struct input *in) {
  (void)in;
  bool fails = false;
  if (anything_held(-1)) return;
  for (int i = 0; i < STREAMS && has_context(); i++) {
    struct stream *s = &w.stream[i];
    const bool here =
        s->life == ALIVE && w.context[s->context].device == w.context[w.current].device;
    fails = fails || (here && s->fails);
    if (here) s->fails = false;
    if (here) s->waited_for = 0;
  }
  EXPECT(aclrtSynchronizeDevice(), !has_context() ? ACL_ERROR_RT_CONTEXT_NULL
                                   : fails        ? ACL_ERROR_RT_WAIT_TIMEOUT
                                                  : ACL_SUCCESS);
}

static void call_attribute(struct input *in) {
  const int attribute = take_below(in, 8);
  const struct choice c = take_stream(in);
  aclrtStreamAttrValue value = {.reserve = {0}}, found;
  int32_t id;
  uint32_t number;
  EXPECT(aclrtStreamGetId(c.handle, &id), c.code);
  EXPECT(aclrtStreamGetPriority(c.handle, &number), c.code);
  EXPECT(aclrtStreamGetFlags(c.handle, NULL), ACL_ERROR_INVALID_PARAM);
  const bool known =
      attribute >= ACL_STREAM_ATTR_FAILURE_MODE && attribute <= ACL_STREAM_ATTR_PRIORITY;
  const int code = c.code != ACL_SUCCESS ? c.code : known ? ACL_SUCCESS : ACL_ERROR_INVALID_PARAM;
  EXPECT(aclrtSetStreamAttribute(c.handle, (aclrtStreamAttr)attribute, &value), code);
  EXPECT(aclrtGetStreamAttribute(c.handle, (aclrtStreamAttr)attribute, &found), code);
}

/* --- work --------------------------------------------------------------------------------------
 */

static void call_copy(struct input *in) {
  const int what = take_below(in, 6), from = take_below(in, BYTES), size = take_below(in, BYTES);
  const int length = size < BYTES - from ? size : BYTES - from;
  const struct choice c = take_stream(in);
  char pageable[BYTES];
  if (c.stream == NULL) {
    char byte = 0;
    if (c.code != ACL_SUCCESS) EXPECT(aclrtMemsetAsync(&byte, 1, 0, 1, c.handle), c.code);
    return;
  }
  struct stream *s = c.stream;
  if (!have_memory(s)) return;
  char *to = s->memory + from, *model = s->holds + from;
  if (what == 0) {
    EXPECT(aclrtMemsetAsync(to, (size_t)length, from, (size_t)length, c.handle), ACL_SUCCESS);
    memset(model, from, (size_t)length);
  } else if (what == 1) {
    EXPECT(aclrtMemcpyAsync(to, (size_t)length, w.pattern, (size_t)length,
                            ACL_MEMCPY_HOST_TO_DEVICE, c.handle),
           ACL_SUCCESS);
    memcpy(model, w.pattern, (size_t)length);
  } else if (what == 2) {
    EXPECT(aclrtMemcpy2dAsync(s->memory, 16, w.pattern, 8, 8, (size_t)from % 4 + 1,
                              ACL_MEMCPY_HOST_TO_DEVICE, c.handle),
           ACL_SUCCESS);
    for (int i = 0; i <= from % 4; i++) memcpy(s->holds + 16 * i, w.pattern + 8 * i, 8);
  } else if (what == 3) {
    EXPECT(aclrtValueWrite(s->memory + from / 8 * 8, (uint64_t)size, 0, c.handle), ACL_SUCCESS);
    memcpy(s->holds + from / 8 * 8, &(uint64_t){(uint64_t)size}, 8);
  } else if (what == 4 && s->held == 0) { /* waits for the stream */
    memset(pageable, size, sizeof pageable);
    EXPECT(aclrtMemcpyAsync(to, (size_t)length, pageable, (size_t)length, ACL_MEMCPY_HOST_TO_DEVICE,
                            c.handle),
           ACL_SUCCESS);
    memset(model, size, (size_t)length);
    memset(pageable, 0, sizeof pageable);
  } else if (what == 5) { /* over the end of the allocation, which is rounded up by 32 to 64 */
    EXPECT(aclrtMemsetAsync(to, 1000, 0, BYTES + 100, c.handle), ACL_ERROR_RT_PARAM_INVALID);
  }
}

/* An operator in the stream: the first floats of the pattern, halved. */
static void call_operator(struct input *in) {
  const int64_t dims[] = {1, 1, 1 + take_below(in, BYTES / 4)}, one = 1, zero = 0;
  const int twice = take_below(in, 2);
  const struct choice c = take_stream(in);
  uint64_t size;
  aclOpExecutor *executor;
  if (c.stream == NULL || !have_memory(c.stream)) return;
  aclTensor *from =
      aclCreateTensor(dims, 3, ACL_FLOAT, NULL, 0, ACL_FORMAT_NCL, dims, 3, w.pattern);
  aclTensor *to =
      aclCreateTensor(dims, 3, ACL_FLOAT, NULL, 0, ACL_FORMAT_NCL, dims, 3, c.stream->memory);
  aclIntArray *kernel = aclCreateIntArray(&one, 1), *pad = aclCreateIntArray(&zero, 1);
  NEED(aclnnAvgPool2dBackwardGetWorkspaceSize(from, to, kernel, NULL, pad, false, false, 2, 0, to,
                                              &size, &executor));
  if (twice == 1) {
    NEED(aclSetAclOpExecutorRepeatable(executor));
    EXPECT(aclnnAvgPool2dBackward(NULL, 0, executor, c.handle), ACL_SUCCESS);
  }
  EXPECT(aclnnAvgPool2dBackward(NULL, 0, executor, c.handle), ACL_SUCCESS);
  if (twice == 1) EXPECT(aclDestroyAclOpExecutor(executor), ACL_SUCCESS);
  if (aclnnAvgPool2dBackward(NULL, 0, executor, c.handle) == ACL_SUCCESS)
    wrong("a spent executor ran");
  (void)aclGetRecentErrMsg();
  for (int i = 0; i < dims[2]; i++) {
    float value;
    memcpy(&value, w.pattern + 4 * i, 4);
    value = value / 2 + 0.0f;
    memcpy(c.stream->holds + 4 * i, &value, 4);
  }
  NEED(aclDestroyTensor(from));
  NEED(aclDestroyTensor(to));
  NEED(aclDestroyIntArray(kernel));
  NEED(aclDestroyIntArray(pad));
}

static void count(void *counter) { atomic_fetch_add((atomic_int *)counter, 1); }

/* Work that would wait for itself is refused. */
static void wait_for_itself(void *stream) {
  if (aclrtSynchronizeStream(stream) == ACL_SUCCESS) wrong("a stream has waited for itself");
  (void)aclGetRecentErrMsg();
  if (aclFinalize() == ACL_SUCCESS) wrong("aclFinalize from inside a stream's work");
  (void)aclGetRecentErrMsg();
}

static void call_function(struct input *in) {
  const bool greedy = take_rarely(in, 4);
  const struct choice c = take_stream(in);
  if (c.stream == NULL) {
    if (c.code != ACL_SUCCESS) EXPECT(aclrtLaunchHostFunc(c.handle, count, NULL), c.code);
    return;
  }
  if (greedy) EXPECT(aclrtLaunchHostFunc(c.handle, wait_for_itself, c.handle), ACL_SUCCESS);
  EXPECT(aclrtLaunchHostFunc(c.handle, count, c.stream->called), ACL_SUCCESS);
  c.stream->launched++;
}

/* --- callbacks ---------------------------------------------------------------------------------
 */

static int callback_gate(const struct stream *s) { return NOTIFIES + WORDS + (int)(s - w.stream); }

static void call_callback(struct input *in) {
  const int what = take_below(in, 4);
  const struct choice c = take_stream(in);
  const uint64_t self = (uint64_t)pthread_self();
  struct stream *s = c.stream;
  if (s == NULL && c.code == ACL_SUCCESS) return;
  if (what == 0) {
    EXPECT(aclrtSubscribeReport(self, c.handle),
           s != NULL && s->subscribed ? ACL_ERROR_RT_STREAM_SUBSCRIBE : c.code);
    if (s != NULL) s->subscribed = true;
  } else if (what == 1 && (s == NULL || s->held == 0)) {
    EXPECT(aclrtUnSubscribeReport(self, c.handle),
           s != NULL && !s->subscribed ? ACL_ERROR_RT_STREAM_NO_CB_REG : c.code);
    if (s == NULL) return;
    s->subscribed = false;
    s->callbacks = atomic_load(s->served); /* those not served are dropped */
  } else if (s == NULL || s->held == 0) {
    const bool blocks = what == 3;
    EXPECT(aclrtLaunchCallback(count, s == NULL ? NULL : s->served,
                               blocks ? ACL_CALLBACK_BLOCK : ACL_CALLBACK_NO_BLOCK, c.handle),
           s != NULL && !s->subscribed ? ACL_ERROR_RT_STREAM_NO_CB_REG : c.code);
    if (s == NULL || !s->subscribed) return;
    s->callbacks++;
    if (blocks) hold(s, callback_gate(s));
  }
}

/* Serves all callbacks of the streams that nothing else holds. */
static void call_serve(struct input *in) {
  (void)in;
  for (int i = 0; i < STREAMS; i++) {
    struct stream *s = &w.stream[i];
    if (s->life != ALIVE || (s->held & ~(1u << callback_gate(s))) != 0) continue;
    while (atomic_load(s->served) < s->callbacks)
      EXPECT(aclrtProcessReport(GENEROUS_MS), ACL_SUCCESS);
    open_gate(callback_gate(s));
  }
}

/* --- events ------------------------------------------------------------------------------------
 */

static int event_code(const struct event *e) {
  return e->handle == NULL  ? ACL_ERROR_INVALID_PARAM
         : e->life == ALIVE ? ACL_SUCCESS
                            : ACL_ERROR_RT_INVALID_HANDLE;
}

static void call_create_event(struct input *in) {
  struct event *e = &w.event[take_below(in, EVENTS)];
  const int way = take_below(in, 4);
  aclrtEvent handle = NULL;
  const int code = has_context() ? ACL_SUCCESS : ACL_ERROR_RT_CONTEXT_NULL;
  if (e->life == ALIVE || way == 3) {
    EXPECT(aclrtDestroyEvent(e->handle), event_code(e));
    if (e->life == ALIVE) e->life = ENDED;
    return;
  }
  if (way == 0) EXPECT(aclrtCreateEvent(&handle), code);
  if (way == 1) EXPECT(aclrtCreateEventWithFlag(&handle, ACL_EVENT_SYNC), code);
  if (way == 2) EXPECT(aclrtCreateEventExWithFlag(&handle, ACL_EVENT_TIME_LINE), code);
  if (code == ACL_SUCCESS) *e = (struct event){.life = ALIVE, .handle = handle, .ex = way == 2};
}

static void call_record(struct input *in) {
  struct event *e = &w.event[take_below(in, EVENTS)];
  const bool reset = take_rarely(in, 4);
  const struct choice c = take_stream(in);
  const int code = event_code(e) != ACL_SUCCESS ? event_code(e) : c.code;
  if (reset) {
    EXPECT(aclrtResetEvent(e->handle, c.handle),
           code == ACL_SUCCESS && e->ex ? ACL_ERROR_RT_FEATURE_NOT_SUPPORT : code);
    if (code == ACL_SUCCESS && !e->ex) e->recorded = false;
    return;
  }
  EXPECT(aclrtRecordEvent(e->handle, c.handle), code);
  if (code != ACL_SUCCESS) return;
  e->recorded = true;
  e->held = c.stream == NULL ? 0 : c.stream->held;
  e->stream = c.stream == NULL ? 0 : (int)(c.stream - w.stream);
}

static void call_wait(struct input *in) {
  struct event *e = &w.event[take_below(in, EVENTS)];
  const struct choice c = take_stream(in);
  const int code = event_code(e) != ACL_SUCCESS ? event_code(e) : c.code;
  if (c.stream == NULL && c.code == ACL_SUCCESS) return; /* the default stream is never held */
  EXPECT(aclrtStreamWaitEvent(c.handle, e->handle), code);
  if (code == ACL_SUCCESS && e->recorded) c.stream->held |= e->held;
}

static void call_query(struct input *in) {
  struct event *e = &w.event[take_below(in, EVENTS)];
  const int code = event_code(e);
  const bool held = e->recorded && e->held != 0;
  aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_NOT_READY;
  uint64_t microseconds;
  if (code == ACL_SUCCESS && held) {
    if (w.vague) return;
    EXPECT(aclrtSynchronizeEventWithTimeout(e->handle, 1), ACL_ERROR_RT_EVENT_SYNC_TIMEOUT);
    EXPECT(aclrtQueryEventStatus(e->handle, &status), ACL_SUCCESS);
    if (status != ACL_EVENT_RECORDED_STATUS_NOT_READY) wrong("an event behind a wait is complete");
    return;
  }
  EXPECT(aclrtSynchronizeEvent(e->handle), code);
  EXPECT(aclrtQueryEventStatus(e->handle, &status), code);
  if (code != ACL_SUCCESS) return;
  if ((status == ACL_EVENT_RECORDED_STATUS_COMPLETE) != (e->recorded || e->ex))
    wrong("an event has status %d", (int)status);
  if (!e->recorded)
    EXPECT(aclrtEventGetTimestamp(e->handle, &microseconds), ACL_ERROR_RT_INTERNAL_ERROR);
}

/* --- gates -------------------------------------------------------------------------------------
 */

static void call_create_notify(struct input *in) {
  const int i = take_below(in, NOTIFIES);
  for (int s = 0; s < STREAMS; s++) /* not one that is waited for */
    if ((w.stream[s].held & 1u << i) != 0) return;
  if (w.notify[i].life == ALIVE) {
    EXPECT(aclrtDestroyNotify(w.notify[i].handle), ACL_SUCCESS);
    EXPECT(aclrtDestroyNotify(w.notify[i].handle), ACL_ERROR_RT_INVALID_HANDLE);
    w.notify[i].life = ENDED;
    return;
  }
  EXPECT(aclrtCreateNotify(&w.notify[i].handle, 0),
         has_context() ? ACL_SUCCESS : ACL_ERROR_RT_CONTEXT_NULL);
  if (!has_context()) return;
  w.notify[i].life = ALIVE;
  w.notify[i].set = w.notify[i].unsure = false;
}

static bool is_awaited(int gate) {
  for (int i = 0; i < STREAMS; i++)
    if (w.stream[i].life == ALIVE && (w.stream[i].held & 1u << gate) != 0) return true;
  return false;
}

/* The stream waits: for a gate that is shut, for one that is open, or until its time is over. */
static void call_shut(struct input *in) {
  const int gate = take_below(in, NOTIFIES + WORDS);
  const bool limited = take_rarely(in, 4);
  const struct choice c = take_stream(in);
  struct stream *s = c.stream;
  if (s == NULL || s->held != 0 || is_awaited(gate)) return;
  if (gate < NOTIFIES) {
    if (w.notify[gate].life != ALIVE || w.notify[gate].unsure) return;
    EXPECT(aclrtWaitAndResetNotify(w.notify[gate].handle, c.handle, limited ? 1 : 0), ACL_SUCCESS);
    s->waited_for |= 1u << gate;
    if (w.notify[gate].set) {
      /* until the wait has run, another record would fall together with the one that it takes */
      w.notify[gate].unsure = s->fails;
      w.notify[gate].set = false;
      if (!s->fails) NEED(aclrtSynchronizeStream(c.handle));
    } else if (limited)
      s->fails = true;
    else
      hold(s, gate);
    if (limited) w.notify[gate].unsure = true; /* what sets it may come just in time */
  } else {
    make_shared();
    const int word = gate - NOTIFIES;
    EXPECT(aclrtValueWait(&w.word[word], ++w.target[word], ACL_STREAM_WAIT_VALUE_GEQ, c.handle),
           ACL_SUCCESS);
    hold(s, gate);
  }
}

/* Another stream, which nothing holds, opens it, and is waited for: an abort must not undo that. */
static void call_open(struct input *in) {
  const int gate = take_below(in, NOTIFIES + WORDS);
  const struct choice c = take_stream(in);
  if (c.stream != NULL && (c.stream->held != 0 || c.stream->fails)) return;
  if (gate < NOTIFIES && w.notify[gate].unsure) return; /* a wait with a limit may just catch it */
  if (gate < NOTIFIES) {
    const int code = w.notify[gate].handle == NULL  ? ACL_ERROR_INVALID_PARAM
                     : w.notify[gate].life != ALIVE ? ACL_ERROR_RT_INVALID_HANDLE
                                                    : c.code;
    EXPECT(aclrtRecordNotify(w.notify[gate].handle, c.handle), code);
    if (code != ACL_SUCCESS) return;
    w.notify[gate].set = !is_awaited(gate);
    w.notify[gate].unsure = is_awaited(gate); /* who waits for it has perhaps not taken it yet */
  } else {
    if (c.code != ACL_SUCCESS) return;
    make_shared();
    EXPECT(aclrtValueWrite(&w.word[gate - NOTIFIES], w.target[gate - NOTIFIES], 0, c.handle),
           ACL_SUCCESS);
  }
  NEED(aclrtSynchronizeStream(c.handle));
  open_gate(gate);
}

/* --- a sequence --------------------------------------------------------------------------------
 */

static void (*const calls[])(struct input *) = {call_create_stream,
                                                call_create_stream,
                                                call_end_stream,
                                                call_copy,
                                                call_copy,
                                                call_copy,
                                                call_synchronise,
                                                call_synchronise,
                                                call_create_event,
                                                call_record,
                                                call_record,
                                                call_wait,
                                                call_wait,
                                                call_query,
                                                call_create_notify,
                                                call_shut,
                                                call_shut,
                                                call_open,
                                                call_function,
                                                call_callback,
                                                call_serve,
                                                call_operator,
                                                call_device,
                                                call_attribute,
                                                call_context,
                                                call_init,
                                                call_memory,
                                                call_option,
                                                call_synchronise_device};

/* What a held stream waits for never comes; it is ended by force, or aclFinalize ends it. */
static void clean_up(bool by_force) {
  for (int i = 0; i < STREAMS && by_force; i++) {
    struct stream *s = &w.stream[i];
    if (s->life != ALIVE || w.context[s->context].life != ALIVE) continue;
    NEED(aclrtSetCurrentContext(w.context[s->context].handle));
    if (s->held != 0) NEED(aclrtDestroyStreamForce(s->handle));
  }
  (void)aclInit(NULL); /* a repeat, or not */
  (void)aclGetRecentErrMsg();
  NEED(aclFinalize());
  for (int kind = 0; kind < PG_KIND_COUNT; kind++)
    if (pg_handle_count((enum pg_kind)kind) != 0) wrong("objects of kind %d are left", kind);
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  (void)argc;
  (void)argv;
  setenv("POOLGRAD_DEVICES", "cpu,cpu", 0);
  setenv("POOLGRAD_THREADS", "1", 0);
  trace = getenv("POOLGRAD_FUZZ_TRACE") != NULL;
  NEED(aclInit(NULL));
  NEED(aclFinalize());
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct input in = {data, data + size};
  uint32_t count;
  memset(&w, 0, sizeof w);
  for (int i = 0; i < counters_used; i++) atomic_store(&counters[i], 0);
  counters_used = 0;
  w.current = -1;
  w.finalized = true;
  NEED(aclrtGetDeviceCount(&count));
  w.devices = count < PRIMARIES ? (int)count : PRIMARIES;
  const unsigned begin = take(&in);
  if ((begin & 1) == 0) { /* most sequences begin as programs do */
    NEED(aclInit(NULL));
    w.references = 1;
    w.finalized = false;
  }
  if ((begin & 2) == 0) set_device(0);
  for (int i = 0; i < CALLS && in.at < in.end; i++)
    calls[take_below(&in, sizeof calls / sizeof calls[0])](&in);
  clean_up(begin < 252);
  return 0;
}
