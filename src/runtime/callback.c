/* SPDX-License-Identifier: Apache-2.0 */
/* Calls from a stream into the host.
 *
 * Host functions run on the stream's own thread.  Callbacks run on the thread that subscribed to
 * the stream, inside its aclrtProcessReport:
 *
 *     stream: deliver ──▶ report list ──▶ aclrtProcessReport on the subscribed thread
 *             (a blocking one waits here until it has run)
 */
#include <stdlib.h>

#include "core/clock.h"
#include "core/fork.h"
#include "runtime/stream.h"
#include "runtime/strict.h"

struct callback {
  aclrtCallback fn;
  void *user_data;
  bool blocks;
  bool over;                     /* has run, or never will; guarded by the lock */
  atomic_int refs;               /* the step and the list */
  struct pg_stream *stream;      /* holds a reference */
  struct pg_strict_point behind; /* its place in the stream: who runs it has waited for that */
  struct callback *next;
};

/* Guards the list, every callback's `over` and every stream's subscription. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed; /* woken by delivery, completion and unsubscribing */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct callback *first, **last = &first;
static struct pg_stream *subscribers; /* streams leave it before they end */

PG_HOLD_ACROSS_FORK(lock, PG_FORK_INNER);

static void init(void) { pg_cond_init(&changed); }

static void callback_release(struct callback *callback) {
  if (atomic_fetch_sub(&callback->refs, 1) != 1) return;
  pg_stream_release(callback->stream);
  free(callback);
}

/* Takes the callback at *link out of the list.  Lock held. */
static struct callback *take(struct callback **link) {
  struct callback *callback = *link;
  *link = callback->next;
  if (*link == NULL) last = link;
  return callback;
}

static void end(struct callback *callback) {
  callback->over = true;
  pthread_cond_broadcast(&changed);
}

/* The step: puts the callback into the list; a blocking one waits until it is over. */
static aclError deliver(const struct pg_call *self, struct pg_failure *why) {
  struct callback *callback = self->arg;
  (void)why;
  pthread_mutex_lock(&lock);
  if (callback->stream->subscribed && !atomic_load(&callback->stream->closing)) {
    atomic_fetch_add(&callback->refs, 1);
    callback->next = NULL;
    *last = callback;
    last = &callback->next;
    pthread_cond_broadcast(&changed);
    while (callback->blocks && !callback->over)
      (void)pg_cond_wait_until(&changed, &lock, PG_FOREVER);
  }
  pthread_mutex_unlock(&lock);
  callback_release(callback);
  return ACL_SUCCESS;
}

static void discard(const struct pg_call *self) { callback_release(self->arg); }

/* Takes the stream's callbacks out of the list and ends them: whoever waits for them is woken. */
void pg_callbacks_drop(struct pg_stream *stream) {
  struct callback *dropped = NULL;
  (void)pthread_once(&once, init);
  pthread_mutex_lock(&lock);
  for (struct callback **link = &first; *link != NULL;) {
    if ((*link)->stream == stream) {
      struct callback *callback = take(link);
      end(callback);
      callback->next = dropped;
      dropped = callback;
    } else {
      link = &(*link)->next;
    }
  }
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  while (dropped != NULL) {
    struct callback *next = dropped->next;
    callback_release(dropped);
    dropped = next;
  }
}

void pg_callbacks_forget(struct pg_stream *stream, bool ends) {
  (void)pthread_once(&once, init);
  pthread_mutex_lock(&lock);
  if (ends) stream->ended = true;
  if (stream->subscribed) {
    struct pg_stream **link = &subscribers;
    while (*link != stream) link = &(*link)->next_subscribed;
    *link = stream->next_subscribed;
    stream->subscribed = false;
  }
  pthread_mutex_unlock(&lock);
  pg_callbacks_drop(stream);
}

aclError aclrtSubscribeReport(uint64_t threadId, aclrtStream stream) {
  struct pg_stream *found;
  PG_TRY(pg_stream_resolve(__func__, stream, &found));
  (void)pthread_once(&once, init);
  pthread_mutex_lock(&lock);
  const bool repeated = found->subscribed || found->ended;
  if (!repeated) {
    found->subscribed = true;
    found->report_thread = threadId;
    found->next_subscribed = subscribers;
    subscribers = found;
  }
  pthread_mutex_unlock(&lock);
  const int id = found->id;
  pg_stream_release(found);
  PG_CHECK(!repeated, ACL_ERROR_RT_STREAM_SUBSCRIBE,
           "stream %d already has a thread, aclrtUnSubscribeReport must come first", id);
  return ACL_SUCCESS;
}

aclError aclrtUnSubscribeReport(uint64_t threadId, aclrtStream stream) {
  struct pg_stream *found;
  aclError status = ACL_SUCCESS;
  PG_TRY(pg_stream_resolve(__func__, stream, &found));
  pthread_mutex_lock(&lock);
  const bool subscribed = found->subscribed;
  const bool same = found->report_thread == threadId;
  pthread_mutex_unlock(&lock);
  if (!subscribed)
    status = pg_fail(__func__, ACL_ERROR_RT_STREAM_NO_CB_REG, "stream %d has no subscribed thread",
                     (int)found->id);
  else if (!same)
    status = pg_fail(__func__, ACL_ERROR_RT_THREAD_SUBSCRIBE,
                     "threadId is %llu, which is not the thread that stream %d is subscribed to",
                     (unsigned long long)threadId, (int)found->id);
  else
    pg_callbacks_forget(found, false);
  pg_stream_release(found);
  return status;
}

static struct callback *new_callback(aclrtCallback fn, void *user_data, bool blocks,
                                     struct pg_stream *stream) {
  struct callback *callback = calloc(1, sizeof *callback);
  if (callback == NULL) return NULL;
  callback->fn = fn;
  callback->user_data = user_data;
  callback->blocks = blocks;
  atomic_init(&callback->refs, 1);
  pg_retain(&stream->object);
  callback->stream = stream;
  callback->behind = pg_strict_here(stream);
  return callback;
}

static aclError launch(const char *api, aclrtCallback fn, void *user_data, bool blocks,
                       struct pg_stream *stream) {
  pthread_mutex_lock(&lock);
  const bool subscribed = stream->subscribed;
  pthread_mutex_unlock(&lock);
  if (!subscribed)
    return pg_fail(api, ACL_ERROR_RT_STREAM_NO_CB_REG,
                   "stream %d has no subscribed thread, aclrtSubscribeReport must come first",
                   (int)stream->id);
  struct callback *callback = new_callback(fn, user_data, blocks, stream);
  if (callback == NULL) return pg_fail(api, ACL_ERROR_BAD_ALLOC, "no memory for a callback");
  const struct pg_step step = {
      .kind = PG_STEP_CALL,
      .u.call = {.fn = deliver, .arg = callback, .discard = discard, .waits = blocks}};
  const aclError status = pg_stream_submit(api, stream, &step, 1, NULL);
  if (status != ACL_SUCCESS) callback_release(callback);
  return status;
}

aclError aclrtLaunchCallback(aclrtCallback fn, void *userData, aclrtCallbackBlockType blockType,
                             aclrtStream stream) {
  struct pg_stream *found;
  PG_CHECK(fn != NULL, ACL_ERROR_INVALID_PARAM, "fn is NULL, a function is required");
  PG_CHECK(blockType == ACL_CALLBACK_NO_BLOCK || blockType == ACL_CALLBACK_BLOCK,
           ACL_ERROR_INVALID_PARAM, "blockType is %d, allowed is 0 or 1", (int)blockType);
  PG_TRY(pg_stream_resolve(__func__, stream, &found));
  (void)pthread_once(&once, init);
  const aclError status = launch(__func__, fn, userData, blockType == ACL_CALLBACK_BLOCK, found);
  pg_stream_release(found);
  return status;
}

/* Lock held. */
static bool is_subscribed(uint64_t thread) {
  for (const struct pg_stream *s = subscribers; s != NULL; s = s->next_subscribed)
    if (s->report_thread == thread) return true;
  return false;
}

static struct callback **find_for(uint64_t thread) {
  struct callback **link = &first;
  while (*link != NULL && (*link)->stream->report_thread != thread) link = &(*link)->next;
  return link;
}

_Thread_local int pg_inside_work;

/* The blocking callbacks that this thread is inside of, the innermost first: their streams wait for
 * them. */
static _Thread_local const struct serving {
  const struct pg_queue *queue;
  const struct serving *outer;
} * serving;

bool pg_callbacks_is_serving(const struct pg_queue *queue) {
  for (const struct serving *s = serving; s != NULL; s = s->outer)
    if (s->queue == queue) return true;
  return false;
}

static void call(const struct callback *callback) {
  const struct serving here = {callback->stream->queue, serving};
  if (callback->blocks) {
    serving = &here;
    pg_inside_work++;
  }
  pg_strict_waited(callback->behind);
  callback->fn(callback->user_data);
  if (callback->blocks) {
    serving = here.outer;
    pg_inside_work--;
  }
}

/* Runs what is there for this thread.  Lock held on entry and return. */
static bool run_pending(uint64_t thread) {
  bool any = false;
  struct callback **link;
  while (*(link = find_for(thread)) != NULL) {
    struct callback *callback = take(link);
    pthread_mutex_unlock(&lock);
    call(callback);
    pthread_mutex_lock(&lock);
    end(callback);
    pthread_mutex_unlock(&lock);
    callback_release(callback);
    pthread_mutex_lock(&lock);
    any = true;
  }
  return any;
}

aclError aclrtProcessReport(int32_t timeout) {
  const uint64_t self = (uint64_t)pthread_self();
  PG_TRY(pg_fork_check(__func__));
  PG_CHECK(timeout == -1 || timeout > 0, ACL_ERROR_INVALID_PARAM,
           "timeout is %d ms, allowed is -1 (for ever) or more than 0", (int)timeout);
  const int64_t deadline = timeout == -1 ? PG_FOREVER : pg_deadline(timeout * PG_NS_PER_MS);
  (void)pthread_once(&once, init);
  const int cancel =
      pg_cancel_off(); /* a callback that is cancelled would leave its stream waiting */
  pthread_mutex_lock(&lock);
  bool any = run_pending(self), late = false;
  while (!any && !late && is_subscribed(self)) {
    late = pg_cond_wait_until(&changed, &lock, deadline) != 0;
    any = run_pending(self);
  }
  pthread_mutex_unlock(&lock);
  pg_cancel_restore(cancel);
  PG_CHECK(any || late, ACL_ERROR_RT_THREAD_SUBSCRIBE,
           "this thread is subscribed to no stream, aclrtSubscribeReport must come first");
  PG_CHECK(any, ACL_ERROR_RT_REPORT_TIMEOUT, "no callback came within %d ms", (int)timeout);
  return ACL_SUCCESS;
}

static aclError call_user(const struct pg_call *self, struct pg_failure *why) {
  (void)why;
  pg_inside_work++;
  self->user(self->arg);
  pg_inside_work--;
  return ACL_SUCCESS;
}

/* A host function in strict mode, with its place in the stream. */
struct strict_call {
  aclrtHostFunc fn;
  void *arg;
  struct pg_strict_point behind;
};

static void strict_discard(const struct pg_call *self) { free(self->arg); }

static aclError strict_run(const struct pg_call *self, struct pg_failure *why) {
  const struct strict_call c = *(const struct strict_call *)self->arg;
  const struct pg_call plain = {.arg = c.arg, .user = c.fn};
  free(self->arg);
  pg_strict_waited(c.behind);
  return call_user(&plain, why);
}

static aclError launch_strict(const char *api, aclrtHostFunc fn, void *arg,
                              struct pg_stream *stream) {
  struct strict_call *c = malloc(sizeof *c);
  if (c == NULL) return pg_fail(api, ACL_ERROR_BAD_ALLOC, "no memory for a host function");
  *c = (struct strict_call){fn, arg, pg_strict_here(stream)};
  const struct pg_step step = {
      .kind = PG_STEP_CALL,
      .u.call = {.fn = strict_run, .arg = c, .discard = strict_discard, .own_thread = true}};
  const aclError status = pg_stream_submit(api, stream, &step, 1, NULL);
  if (status != ACL_SUCCESS) free(c);
  return status; /* NOLINT(clang-analyzer-unix.Malloc): the step frees the call */
}

aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc fn, void *args) {
  struct pg_stream *found;
  PG_CHECK(fn != NULL, ACL_ERROR_INVALID_PARAM, "fn is NULL, a function is required");
  PG_TRY(pg_stream_resolve(__func__, stream, &found));
  const struct pg_step step = {
      .kind = PG_STEP_CALL,
      .u.call = {.fn = call_user, .arg = args, .user = fn, .own_thread = true}};
  const aclError status = pg_is_strict() ? launch_strict(__func__, fn, args, found)
                                         : pg_stream_submit(__func__, found, &step, 1, NULL);
  pg_stream_release(found);
  return status;
}
