/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/context.h"

#include <stdlib.h>

#include "core/clock.h"
#include "core/fork.h"
#include "core/log.h"
#include "runtime/device.h"
#include "runtime/stream.h"

static _Thread_local void *current; /* handle; a stale one counts as none */

/* The process-wide values of the system parameters, which operators read. */
static _Atomic int64_t process_option[ACL_OPT_ENABLE_KERNEL_EARLY_START + 1];

/* A context is alive: so may its streams' threads have been. */
static void after_fork_in_child(void) {
  if (pg_handle_count(PG_CONTEXT) > 0) pg_fork_lost();
}
__attribute__((constructor(PG_FORK_OUTER))) static void watch_forks(void) {
  (void)pthread_atfork(NULL, NULL, after_fork_in_child);
}

void *pg_context_current_handle(void) { return current; }
void pg_context_make_current(void *handle) { current = handle; }

aclError pg_context_current(const char *api, struct pg_context **out) {
  PG_TRY(pg_fork_check(api));
  *out = pg_acquire(current, PG_CONTEXT);
  if (*out != NULL) return ACL_SUCCESS;
  return pg_fail(api, ACL_ERROR_RT_CONTEXT_NULL,
                 "this thread has no current context (%s), aclrtSetDevice or "
                 "aclrtSetCurrentContext must come first",
                 current == NULL ? "none was set" : "the one it had was destroyed");
}

aclError pg_context_ask(const char *api, struct pg_context **out) {
  const aclError before = aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL);
  const aclError status = pg_context_current(api, out);
  if (status != ACL_SUCCESS) pg_was_answer(before);
  return status;
}

static void destroy(struct pg_object *self) {
  struct pg_context *context = (struct pg_context *)self;
  pthread_mutex_destroy(&context->lock);
  free(context);
}

aclError pg_context_create(const char *api, const struct pg_device *device, int device_id,
                           bool primary, void **handle) {
  struct pg_context *context = calloc(1, sizeof *context);
  if (context != NULL) {
    atomic_init(&context->object.refs, 2); /* the handle's, and ours: aclFinalize finds handles */
    context->object.destroy = destroy;
    context->device = *device;
    context->device_id = device_id;
    context->primary = primary;
    pthread_mutex_init(&context->lock, NULL);
    *handle = context->handle = pg_handle_open(PG_CONTEXT, &context->object);
    const bool opened = *handle != NULL;
    if (!opened) pg_release(&context->object);
    pg_release(&context->object);
    if (opened) return ACL_SUCCESS;
  }
  return pg_fail(api, ACL_ERROR_BAD_ALLOC, "no memory for a context");
}

/* --- the end of a context --- */

enum {
  PATIENCE_NS = 1000000000, /* how long streams may do nothing but wait */
  FIRST_LOOK_NS = 50000,
  LAST_LOOK_NS = 5000000
};

/* What streams are at. */
struct survey {
  bool idle, working; /* all of them; one of them */
  uint64_t done;      /* steps of all of them: changes when one ends */
};

static void look_at(struct pg_stream *stream, struct survey *s) {
  uint64_t done;
  const enum pg_activity activity = stream->backend->activity(stream->queue, &done);
  s->idle = s->idle && activity == PG_IDLE;
  s->working = s->working || activity == PG_WORKING;
  s->done += done;
}

/* The context's own streams decide whether it is idle.  Whether anything still moves all streams of
 * the process tell: one of them may be what the context waits for. */
static struct survey look(struct pg_context *context) {
  struct survey own = {.idle = true}, all = {.idle = true};
  pthread_mutex_lock(&context->lock);
  for (struct pg_stream *s = context->streams; s != NULL; s = s->next) look_at(s, &own);
  pthread_mutex_unlock(&context->lock);
  for (void *h = pg_handle_next(PG_STREAM, NULL); h != NULL && !own.idle;
       h = pg_handle_next(PG_STREAM, h)) {
    struct pg_stream *stream = pg_acquire(h, PG_STREAM);
    if (stream == NULL) continue;
    look_at(stream, &all);
    pg_stream_release(stream);
  }
  return (struct survey){own.idle, own.working || all.working, own.done + all.done};
}

static void pause_for(int64_t ns) {
  const struct timespec time = pg_timespec(ns);
  const int cancel = pg_cancel_off();
  (void)nanosleep(&time, NULL);
  pg_cancel_restore(cancel);
}

/* Until the streams' work is done.  False when for PATIENCE_NS all that was left did nothing but
 * wait for values, notifies, events or callbacks: the program is ending, nobody will end those
 * waits. */
static bool settle(struct pg_context *context) {
  struct survey before = look(context);
  int64_t since = pg_now_ns();
  for (int64_t ns = FIRST_LOOK_NS; !before.idle; ns = ns < LAST_LOOK_NS ? 2 * ns : ns) {
    pause_for(ns);
    const struct survey now = look(context);
    if (now.working || now.done != before.done) since = pg_now_ns();
    before = now;
    if (!now.idle && pg_now_ns() - since > PATIENCE_NS) return false;
  }
  return true;
}

/* Also streams that another thread is destroying, and waits for: it then gets on. */
static void abort_streams(const char *api, struct pg_context *context) {
  pthread_mutex_lock(&context->lock);
  for (struct pg_stream *s = context->streams; s != NULL; s = s->next) {
    uint64_t done;
    if (s->backend->activity(s->queue, &done) != PG_IDLE)
      pg_log(ACL_WARNING, "%s: the unfinished work of stream %d is discarded", api, (int)s->id);
    atomic_store(&s->closing, true);
    /* all of them first: a stream whose event was discarded lets others go on */
    s->backend->hold(s->queue);
  }
  for (struct pg_stream *s = context->streams; s != NULL; s = s->next) pg_stream_discard(s);
  for (struct pg_stream *s = context->streams; s != NULL; s = s->next) pg_stream_interrupt(s);
  pthread_mutex_unlock(&context->lock);
}

/* Ends the streams' handles: from now on they get no more work. */
static void close_handles(struct pg_context *context) {
  pthread_mutex_lock(&context->lock);
  context->ended = true;
  for (struct pg_stream *s = context->streams; s != NULL; s = s->next)
    s->ends_with_context = pg_stream_close_handle(s->handle) != NULL;
  pthread_mutex_unlock(&context->lock);
}

/* One whose handle we have closed, if there is any. */
static struct pg_stream *next_to_close(struct pg_context *context, bool *others) {
  pthread_mutex_lock(&context->lock);
  struct pg_stream *stream = context->streams;
  *others = stream != NULL;
  while (stream != NULL && !stream->ends_with_context) stream = stream->next;
  pthread_mutex_unlock(&context->lock);
  return stream;
}

bool pg_context_close(const char *api, void *handle, enum pg_ending ending) {
  struct pg_context *context = pg_handle_close(handle, PG_CONTEXT);
  if (context == NULL) return false;
  close_handles(context);
  const bool drop = ending == PG_ENDING_FORCED || (ending == PG_ENDING_PATIENT && !settle(context));
  if (drop) abort_streams(api, context);
  bool others = true;
  while (others) {
    struct pg_stream *stream = next_to_close(context, &others);
    if (stream != NULL)
      pg_stream_close(stream, drop);
    else if (others)
      pause_for(FIRST_LOOK_NS); /* other threads destroy them */
  }
  pg_release(&context->object);
  return true;
}

aclError aclrtCreateContext(aclrtContext *context, int32_t deviceId) {
  void *handle;
  struct pg_device device;
  PG_CHECK_PTR(context, ACL_ERROR_INVALID_PARAM);
  PG_TRY(pg_fork_check(__func__));
  PG_TRY(pg_device_find(__func__, deviceId, &device));
  PG_TRY(pg_context_create(__func__, &device, deviceId, false, &handle));
  pg_context_make_current(handle);
  *context = handle;
  return ACL_SUCCESS;
}

aclError aclrtDestroyContext(aclrtContext context) {
  PG_CHECK_PTR(context, ACL_ERROR_INVALID_PARAM);
  PG_TRY(pg_fork_check(__func__));
  struct pg_context *found = pg_acquire(context, PG_CONTEXT);
  PG_CHECK(found != NULL, ACL_ERROR_RT_CONTEXT_NULL, "context is %s, a live context is required",
           pg_handle_what(context));
  const bool primary = found->primary;
  const int device = found->device_id;
  pg_release(&found->object);
  PG_CHECK(!primary, ACL_ERROR_RT_CONTEXT_NULL,
           "context is the default context of device %d, which aclrtResetDevice ends", device);
  PG_CHECK(pg_inside_work == 0, ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
           "called from work of a stream, it would wait for its own end");
  PG_CHECK(pg_context_close(__func__, context, PG_ENDING_WAITS), ACL_ERROR_RT_CONTEXT_NULL,
           "context is %s, a live context is required", pg_handle_what(context));
  if (current == context) current = NULL;
  return ACL_SUCCESS;
}

aclError aclrtSetCurrentContext(aclrtContext context) {
  PG_CHECK_PTR(context, ACL_ERROR_INVALID_PARAM);
  PG_TRY(pg_fork_check(__func__));
  PG_CHECK(pg_is_live(context, PG_CONTEXT), ACL_ERROR_RT_PARAM_INVALID,
           "context is %s, a live context is required", pg_handle_what(context));
  pg_context_make_current(context);
  return ACL_SUCCESS;
}

/* A thread that aclFinalize has taken the context from is still told which one it had, as long as
 * nothing new has begun: torch_npu asks from threads that its end does not wait for, where a
 * failure would abort the process.  Whatever uses that context is refused. */
aclError aclrtGetCurrentContext(aclrtContext *context) {
  struct pg_context *found;
  PG_CHECK_PTR(context, ACL_ERROR_INVALID_PARAM);
  if (current != NULL && pg_is_finalized() && !pg_is_live(current, PG_CONTEXT)) {
    *context = current;
    return ACL_SUCCESS;
  }
  PG_TRY(pg_context_ask(__func__, &found));
  *context = found->handle;
  pg_release(&found->object);
  return ACL_SUCCESS;
}

aclError aclrtCtxGetCurrentDefaultStream(aclrtStream *stream) {
  struct pg_context *context;
  struct pg_stream *found;
  PG_CHECK_PTR(stream, ACL_ERROR_INVALID_PARAM);
  PG_TRY(pg_context_current(__func__, &context));
  const aclError status = pg_stream_default(__func__, context, &found);
  pg_release(&context->object);
  PG_TRY(status);
  *stream = found->handle;
  pg_stream_release(found);
  return ACL_SUCCESS;
}

static aclError check_option(const char *api, aclSysParamOpt opt, int last) {
  if ((int)opt >= 0 && (int)opt <= last) return ACL_SUCCESS;
  return pg_fail(api, ACL_ERROR_INVALID_PARAM, "opt is %d, allowed is 0 to %d", (int)opt, last);
}

static aclError check_value(const char *api, aclSysParamOpt opt, int64_t value) {
  const int64_t last = opt == ACL_OPT_DETERMINISTIC ? 3 : 1;
  if (value >= 0 && value <= last) return ACL_SUCCESS;
  return pg_fail(api, ACL_ERROR_RT_PARAM_INVALID, "value is %lld, allowed for opt %d is 0 to %lld",
                 (long long)value, (int)opt, (long long)last);
}

aclError aclrtCtxSetSysParamOpt(aclSysParamOpt opt, int64_t value) {
  struct pg_context *context;
  PG_TRY(check_option(__func__, opt, PG_CONTEXT_OPTIONS - 1));
  PG_TRY(check_value(__func__, opt, value));
  PG_TRY(pg_context_current(__func__, &context));
  pthread_mutex_lock(&context->lock);
  context->option[opt] = value;
  context->option_set[opt] = true;
  pthread_mutex_unlock(&context->lock);
  atomic_store(&process_option[opt], value); /* as in CANN: the last setter wins everywhere */
  pg_release(&context->object);
  return ACL_SUCCESS;
}

aclError aclrtCtxGetSysParamOpt(aclSysParamOpt opt, int64_t *value) {
  struct pg_context *context;
  PG_CHECK_PTR(value, ACL_ERROR_INVALID_PARAM);
  PG_TRY(check_option(__func__, opt, PG_CONTEXT_OPTIONS - 1));
  PG_TRY(pg_context_current(__func__, &context));
  pthread_mutex_lock(&context->lock);
  const bool set = context->option_set[opt];
  const int64_t found = context->option[opt];
  pthread_mutex_unlock(&context->lock);
  pg_release(&context->object);
  PG_CHECK(set, ACL_ERROR_RT_SYSPARAMOPT_NOT_SET,
           "opt %d was never set in this context, aclrtCtxSetSysParamOpt sets it", (int)opt);
  *value = found;
  return ACL_SUCCESS;
}

aclError aclrtSetSysParamOpt(aclSysParamOpt opt, int64_t value) {
  PG_TRY(check_option(__func__, opt, ACL_OPT_ENABLE_KERNEL_EARLY_START));
  PG_TRY(check_value(__func__, opt, value));
  atomic_store(&process_option[opt], value);
  return ACL_SUCCESS;
}

aclError aclrtGetSysParamOpt(aclSysParamOpt opt, int64_t *value) {
  PG_CHECK_PTR(value, ACL_ERROR_INVALID_PARAM);
  PG_TRY(check_option(__func__, opt, ACL_OPT_ENABLE_KERNEL_EARLY_START));
  *value = atomic_load(&process_option[opt]);
  return ACL_SUCCESS;
}
