/* SPDX-License-Identifier: Apache-2.0 */
/* Events: names for points in streams.
 *
 * Recording makes a new mark in the stream's queue and lets the event point to it.  Whoever
 * waits takes the mark of that moment, so recording again or destroying the event changes
 * nothing for waits already queued. */
#include <stdlib.h>

#include "core/clock.h"
#include "core/fork.h"
#include "runtime/stream.h"
#include "runtime/strict.h"

enum {
  EVENTS_MAX = 65536,
  FLAGS_KNOWN = ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS | ACL_EVENT_TIME_LINE |
                ACL_EVENT_DEVICE_USE_ONLY | ACL_EVENT_EXTERNAL | ACL_EVENT_IPC,
  FLAGS_MAX = 2 * ACL_EVENT_IPC - 1
};

/* A mark and whose it is; a counted reference. */
struct point {
  const struct pg_backend *backend;
  struct pg_mark *mark;
  const struct pg_queue *queue; /* the mark's, to be told from others; never looked into */
  struct pg_strict_point strict;
};

static void point_release(struct point point) {
  if (point.mark != NULL) point.backend->mark_release(point.mark);
}

static bool point_done(struct point point) { return point.backend->mark_done(point.mark); }

struct pg_event {
  struct pg_object object;
  uint32_t id, flags;
  bool ex; /* made by aclrtCreateEventExWithFlag: counts as complete before any record */
  pthread_mutex_t lock; /* guards what follows */
  struct point point;   /* mark NULL: never recorded, or reset */
  struct point *waits;  /* one in each waiting stream, right behind the wait */
  size_t wait_count, wait_room;
};

static atomic_uint next_id;
static atomic_uint default_wait_seconds; /* aclrtSetOpWaitTimeout; 0: for ever */

static void destroy(struct pg_object *self) {
  struct pg_event *event = (struct pg_event *)self;
  point_release(event->point);
  for (size_t i = 0; i < event->wait_count; i++) point_release(event->waits[i]);
  pthread_mutex_destroy(&event->lock);
  free(event->waits);
  free(event);
}

static aclError create(const char *api, uint32_t flags, bool ex, aclrtEvent *out) {
  struct pg_context *context;
  PG_TRY(pg_context_current(api, &context));
  pg_release(&context->object);
  if (pg_handle_count(PG_EVENT) >= EVENTS_MAX)
    return pg_fail(api, ACL_ERROR_RT_NO_EVENT_RESOURCE, "all %d events are in use", EVENTS_MAX);
  struct pg_event *event = calloc(1, sizeof *event);
  if (event != NULL) {
    atomic_init(&event->object.refs, 1);
    event->object.destroy = destroy;
    event->id = atomic_fetch_add(&next_id, 1);
    event->flags = flags;
    event->ex = ex;
    pthread_mutex_init(&event->lock, NULL);
    void *handle = pg_handle_open(PG_EVENT, &event->object);
    if (handle != NULL) {
      *out = handle;
      return ACL_SUCCESS;
    }
    pg_release(&event->object);
  }
  return pg_fail(api, ACL_ERROR_BAD_ALLOC, "no memory for an event");
}

static aclError check_flags(const char *api, uint32_t flags) {
  const uint32_t alone = flags & (ACL_EVENT_EXTERNAL | ACL_EVENT_DEVICE_USE_ONLY);
  if ((flags & FLAGS_KNOWN) == 0 || flags > FLAGS_MAX)
    return pg_fail(api, ACL_ERROR_RT_PARAM_INVALID,
                   "flag is 0x%x, allowed are the ACL_EVENT_* bits, at least one", flags);
  if (alone != 0 && flags != alone)
    return pg_fail(api, ACL_ERROR_RT_PARAM_INVALID,
                   "flag is 0x%x, ACL_EVENT_EXTERNAL and ACL_EVENT_DEVICE_USE_ONLY stand alone",
                   flags);
  if (alone == (ACL_EVENT_EXTERNAL | ACL_EVENT_DEVICE_USE_ONLY))
    return pg_fail(
        api, ACL_ERROR_RT_PARAM_INVALID,
        "flag is 0x%x, ACL_EVENT_EXTERNAL and ACL_EVENT_DEVICE_USE_ONLY exclude each other", flags);
  if ((flags & ACL_EVENT_IPC) != 0)
    return pg_fail(api, ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                   "flag is 0x%x, events between processes do not exist here", flags);
  return ACL_SUCCESS;
}

aclError aclrtCreateEvent(aclrtEvent *event) {
  PG_CHECK_PTR(event, ACL_ERROR_INVALID_PARAM);
  return create(__func__, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE, false, event);
}

aclError aclrtCreateEventWithFlag(aclrtEvent *event, uint32_t flag) {
  PG_CHECK_PTR(event, ACL_ERROR_INVALID_PARAM);
  PG_TRY(check_flags(__func__, flag));
  return create(__func__, flag, false, event);
}

aclError aclrtCreateEventExWithFlag(aclrtEvent *event, uint32_t flag) {
  PG_CHECK_PTR(event, ACL_ERROR_INVALID_PARAM);
  PG_TRY(check_flags(__func__, flag));
  return create(__func__, flag, true, event);
}

static aclError resolve_named(const char *api, const char *name, aclrtEvent handle,
                              struct pg_event **out) {
  if (handle == NULL) return pg_fail_null(api, ACL_ERROR_INVALID_PARAM, name);
  PG_TRY(pg_fork_check(api));
  *out = pg_acquire(handle, PG_EVENT);
  if (*out != NULL) return ACL_SUCCESS;
  return pg_fail(api, ACL_ERROR_RT_INVALID_HANDLE, "%s is %s, a live event is required", name,
                 pg_handle_what(handle));
}

static aclError resolve(const char *api, aclrtEvent handle, struct pg_event **out) {
  return resolve_named(api, "event", handle, out);
}

static void release(struct pg_event *event) { pg_release(&event->object); }

/* The point the event stands for now, with a reference for the caller; mark NULL when none. */
static struct point current_point(struct pg_event *event) {
  pthread_mutex_lock(&event->lock);
  const struct point point = event->point;
  if (point.mark != NULL) point.backend->mark_retain(point.mark);
  pthread_mutex_unlock(&event->lock);
  return point;
}

static void replace_point(struct pg_event *event, struct point point) {
  pthread_mutex_lock(&event->lock);
  const struct point old = event->point;
  event->point = point;
  pthread_mutex_unlock(&event->lock);
  point_release(old);
}

aclError aclrtDestroyEvent(aclrtEvent event) {
  PG_CHECK_PTR(event, ACL_ERROR_INVALID_PARAM);
  PG_TRY(pg_fork_check(__func__));
  struct pg_event *found = pg_handle_close(event, PG_EVENT);
  PG_CHECK(found != NULL, ACL_ERROR_RT_INVALID_HANDLE, "event is %s, a live event is required",
           pg_handle_what(event));
  release(found);
  return ACL_SUCCESS;
}

static aclError record(const char *api, aclrtEvent handle, aclrtStream stream_handle) {
  struct pg_event *event;
  struct pg_stream *stream;
  PG_TRY(resolve(api, handle, &event));
  aclError status = pg_stream_resolve(api, stream_handle, &stream);
  if (status == ACL_SUCCESS) {
    struct point point = {stream->backend, NULL, stream->queue, pg_strict_here(stream)};
    status = pg_stream_submit(api, stream, NULL, 0, &point.mark);
    if (status == ACL_SUCCESS) replace_point(event, point);
    pg_stream_release(stream);
  }
  release(event);
  return status;
}

aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream) {
  return record(__func__, event, stream);
}

aclError aclrtRecordEventWithFlag(aclrtEvent event, aclrtStream stream, uint32_t flag) {
  PG_CHECK_PTR(event, ACL_ERROR_INVALID_PARAM);
  PG_CHECK(flag <= ACL_EVENT_RECORD_EXTERNAL, ACL_ERROR_INVALID_PARAM,
           "flag is %u, allowed is 0 or 1", flag);
  return record(__func__, event, stream);
}

/* Waits took their mark when they were queued, so forgetting it is all a reset has to do. */
aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream) {
  struct pg_event *found;
  struct pg_stream *in;
  PG_TRY(resolve(__func__, event, &found));
  aclError status = pg_stream_resolve(__func__, stream, &in);
  if (status == ACL_SUCCESS) {
    pg_stream_release(in);
    if (found->ex)
      status = pg_fail(__func__, ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                       "event was made by aclrtCreateEventExWithFlag and cannot be reset");
    else
      replace_point(found, (struct point){.mark = NULL});
  }
  release(found);
  return status;
}

aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus *status) {
  struct pg_event *found;
  PG_CHECK_PTR(status, ACL_ERROR_INVALID_PARAM);
  PG_TRY(resolve(__func__, event, &found));
  const bool ex = found->ex;
  const struct point point = current_point(found);
  const bool done = point.mark == NULL || point_done(point);
  if (done) pg_strict_waited(point.strict);
  point_release(point);
  release(found);
  PG_CHECK(!ex, ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
           "event was made by aclrtCreateEventExWithFlag, ask aclrtQueryEventStatus");
  *status = done ? ACL_EVENT_STATUS_COMPLETE : ACL_EVENT_STATUS_NOT_READY;
  return ACL_SUCCESS;
}

aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus *status) {
  struct pg_event *found;
  PG_CHECK_PTR(status, ACL_ERROR_INVALID_PARAM);
  PG_TRY(resolve(__func__, event, &found));
  const struct point point = current_point(found);
  const bool done = point.mark == NULL ? found->ex : point_done(point);
  if (done) pg_strict_waited(point.strict);
  point_release(point);
  release(found);
  *status = done ? ACL_EVENT_RECORDED_STATUS_COMPLETE : ACL_EVENT_RECORDED_STATUS_NOT_READY;
  return ACL_SUCCESS;
}

/* Forgets the waits that are over; the program may have asked for it.  Lock held. */
static void prune_waits(struct pg_event *event, bool asked) {
  size_t kept = 0;
  for (size_t i = 0; i < event->wait_count; i++) {
    if (!point_done(event->waits[i])) {
      event->waits[kept++] = event->waits[i];
      continue;
    }
    if (asked) pg_strict_waited(event->waits[i].strict);
    point_release(event->waits[i]);
  }
  event->wait_count = kept;
}

aclError aclrtQueryEventWaitStatus(aclrtEvent event, aclrtEventWaitStatus *status) {
  struct pg_event *found;
  PG_CHECK_PTR(status, ACL_ERROR_INVALID_PARAM);
  PG_TRY(resolve(__func__, event, &found));
  pthread_mutex_lock(&found->lock);
  prune_waits(found, true);
  *status =
      found->wait_count == 0 ? ACL_EVENT_WAIT_STATUS_COMPLETE : ACL_EVENT_WAIT_STATUS_NOT_READY;
  pthread_mutex_unlock(&found->lock);
  release(found);
  return ACL_SUCCESS;
}

static aclError synchronize(const char *api, aclrtEvent handle, int64_t timeout_ns) {
  struct pg_event *event;
  aclError status = ACL_SUCCESS;
  PG_TRY(resolve(api, handle, &event));
  const struct point point = current_point(event);
  if (point.mark != NULL) {
    status = pg_callbacks_is_serving(point.queue) && !point_done(point)
                 ? ACL_ERROR_RT_FEATURE_NOT_SUPPORT
                 : point.backend->mark_sync(point.mark, timeout_ns);
    if (status == ACL_SUCCESS) pg_strict_waited(point.strict);
    point_release(point);
    if (status == ACL_ERROR_RT_FEATURE_NOT_SUPPORT)
      status = pg_fail(api, status, "called from work of the event's own stream, before the event");
    else if (status == ACL_ERROR_RT_EVENT_SYNC_TIMEOUT)
      status = pg_fail(api, status, "event %u was not reached after %lld ms", event->id,
                       (long long)(timeout_ns / PG_NS_PER_MS));
    else if (status != ACL_SUCCESS)
      status = pg_fail(api, status, "event %u could not be waited for", event->id);
  }
  release(event);
  return status;
}

aclError aclrtSynchronizeEvent(aclrtEvent event) {
  return synchronize(__func__, event, PG_FOREVER);
}

aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout) {
  PG_CHECK_PTR(event, ACL_ERROR_INVALID_PARAM);
  PG_CHECK(timeout == -1 || timeout > 0, ACL_ERROR_RT_PARAM_INVALID,
           "timeout is %d ms, allowed is -1 (for ever) or more than 0", (int)timeout);
  return synchronize(__func__, event, timeout == -1 ? PG_FOREVER : timeout * PG_NS_PER_MS);
}

/* When the event was reached, in ns.  Not recorded, not reached yet and not timed are failures. */
static aclError when_reached(const char *api, aclrtEvent handle, const char *name, int64_t *ns) {
  struct pg_event *event;
  aclError status = ACL_SUCCESS;
  PG_TRY(resolve_named(api, name, handle, &event));
  const struct point point = current_point(event);
  if (point.mark == NULL) {
    status = pg_fail_titled(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, api, ACL_ERROR_RT_INTERNAL_ERROR,
                            "%s was never recorded, aclrtRecordEvent must come first", name);
  } else {
    *ns = point_done(point) ? point.backend->mark_time_ns(point.mark) : 0;
    point_release(point);
    if ((event->flags & ACL_EVENT_TIME_LINE) == 0)
      status =
          pg_fail(api, ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID,
                  "%s was created without ACL_EVENT_TIME_LINE (flag 0x%x)", name, event->flags);
    else if (*ns == 0)
      status = pg_fail(api, ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID,
                       "%s has not been reached yet, synchronise first", name);
  }
  release(event);
  return status;
}

aclError aclrtEventElapsedTime(float *ms, aclrtEvent startEvent, aclrtEvent endEvent) {
  int64_t start, end;
  PG_CHECK_PTR(ms, ACL_ERROR_INVALID_PARAM);
  PG_CHECK_PTR(startEvent, ACL_ERROR_INVALID_PARAM);
  PG_CHECK_PTR(endEvent, ACL_ERROR_INVALID_PARAM);
  PG_TRY(when_reached(__func__, startEvent, "startEvent", &start));
  PG_TRY(when_reached(__func__, endEvent, "endEvent", &end));
  *ms = (float)((double)(end - start) / (double)PG_NS_PER_MS);
  return ACL_SUCCESS;
}

aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t *timestamp) {
  int64_t ns;
  PG_CHECK_PTR(event, ACL_ERROR_INVALID_PARAM);
  PG_CHECK_PTR(timestamp, ACL_ERROR_INVALID_PARAM);
  PG_TRY(when_reached(__func__, event, "event", &ns));
  *timestamp = (uint64_t)(ns / 1000);
  return ACL_SUCCESS;
}

/* Leaves a mark behind a queued wait, for aclrtQueryEventWaitStatus.  Without memory for it the
 * wait itself still holds. */
static void note_wait(struct pg_event *event, struct pg_stream *stream) {
  struct point behind = {
      .backend = stream->backend, .queue = stream->queue, .strict = pg_strict_here(stream)};
  /* not under the lock: what fails is told of at once, to a function that may ask for the event */
  if (stream->backend->submit(stream->queue, NULL, 0, &behind.mark) != ACL_SUCCESS) return;
  pthread_mutex_lock(&event->lock);
  prune_waits(event, false);
  if (event->wait_count == event->wait_room) {
    const size_t room = event->wait_room == 0 ? 4 : event->wait_room * 2;
    struct point *waits = realloc(event->waits, room * sizeof *waits);
    if (waits != NULL) {
      event->waits = waits;
      event->wait_room = room;
    }
  }
  const bool noted = event->wait_count < event->wait_room;
  if (noted) event->waits[event->wait_count++] = behind;
  pthread_mutex_unlock(&event->lock);
  if (!noted) behind.backend->mark_release(behind.mark);
}

/* A wait for a mark of another backend, which only that backend can look at. */
struct foreign_wait {
  struct point point;       /* holds a reference */
  struct pg_stream *stream; /* the waiting one; holds a reference */
  unsigned aborts;          /* of the stream, when the wait was queued */
  int64_t timeout_ns;
};

enum { LOOK_NS = 5000000 }; /* how long a forced end or abort of the waiting stream may go unseen */

static bool is_given_up(const struct foreign_wait *w) {
  return atomic_load(&w->stream->closing) || atomic_load(&w->stream->aborts) != w->aborts;
}

static void foreign_discard(const struct pg_call *self) {
  struct foreign_wait *w = self->arg;
  point_release(w->point);
  pg_stream_release(w->stream);
  free(w);
}

/* The step: runs on the waiting stream's thread. */
static aclError foreign_run(const struct pg_call *self, struct pg_failure *why) {
  const struct foreign_wait *w = self->arg;
  const int64_t timeout_ns = w->timeout_ns, deadline = pg_deadline(timeout_ns);
  aclError status = ACL_ERROR_RT_EVENT_SYNC_TIMEOUT;
  bool late = false;
  while (status == ACL_ERROR_RT_EVENT_SYNC_TIMEOUT && !late && !is_given_up(w)) {
    const int64_t left = deadline == PG_FOREVER ? LOOK_NS : deadline - pg_now_ns();
    status = w->point.backend->mark_sync(w->point.mark, left < 0         ? 0
                                                        : left < LOOK_NS ? left
                                                                         : LOOK_NS);
    late = deadline != PG_FOREVER && pg_now_ns() >= deadline;
  }
  foreign_discard(self);
  if (status == ACL_SUCCESS) return ACL_SUCCESS;
  if (status != ACL_ERROR_RT_EVENT_SYNC_TIMEOUT)
    pg_failure_set(why, status, "an event of another device could not be waited for");
  else if (late)
    pg_failure_set(why, ACL_ERROR_RT_WAIT_TIMEOUT,
                   "a wait for an event was not satisfied within %lld ms",
                   (long long)(timeout_ns / PG_NS_PER_MS));
  else
    return ACL_SUCCESS; /* given up: whoever ended or aborted the stream tells of it */
  return why->code;
}

/* Queues a wait for the point, whose reference it takes on success. */
static aclError submit_wait(const char *api, struct pg_stream *stream, struct point point,
                            int64_t timeout_ns) {
  if (point.backend == stream->backend) {
    const struct pg_step step = {.kind = PG_STEP_WAIT, .u.wait = {point.mark, timeout_ns}};
    return pg_stream_submit(api, stream, &step, 1, NULL);
  }
  struct foreign_wait *w = malloc(sizeof *w);
  if (w == NULL) return pg_fail(api, ACL_ERROR_BAD_ALLOC, "no memory for a wait");
  *w = (struct foreign_wait){point, stream, atomic_load(&stream->aborts), timeout_ns};
  pg_retain(&stream->object);
  const struct pg_step step = {
      .kind = PG_STEP_CALL,
      .u.call = {.fn = foreign_run, .arg = w, .discard = foreign_discard, .waits = true}};
  const aclError status = pg_stream_submit(api, stream, &step, 1, NULL);
  if (status != ACL_SUCCESS) {
    pg_stream_release(stream);
    free(w);
  }
  return status; /* NOLINT(clang-analyzer-unix.Malloc): the step frees the wait */
}

static aclError wait(const char *api, aclrtStream stream_handle, aclrtEvent handle,
                     uint32_t seconds) {
  struct pg_event *event;
  struct pg_stream *stream;
  PG_TRY(resolve(api, handle, &event));
  aclError status = pg_stream_resolve(api, stream_handle, &stream);
  if (status == ACL_SUCCESS) {
    const struct point point = current_point(event);
    if (point.mark != NULL) { /* never recorded: nothing to wait for */
      status = submit_wait(api, stream, point,
                           seconds == 0 ? PG_FOREVER : (int64_t)seconds * PG_NS_PER_S);
      if (status == ACL_SUCCESS) {
        pg_strict_follow(stream, point.strict);
        note_wait(event, stream);
      } else {
        point_release(point);
      }
    }
    pg_stream_release(stream);
  }
  release(event);
  return status;
}

aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event) {
  return wait(__func__, stream, event, atomic_load(&default_wait_seconds));
}

aclError aclrtStreamWaitEventWithTimeout(aclrtStream stream, aclrtEvent event, int32_t timeout) {
  PG_CHECK_PTR(event, ACL_ERROR_INVALID_PARAM);
  PG_CHECK(timeout >= 0, ACL_ERROR_RT_PARAM_INVALID,
           "timeout is %d s, allowed is 0 (for ever) or more", (int)timeout);
  return wait(__func__, stream, event, (uint32_t)timeout);
}

aclError aclrtStreamWaitEventWithFlag(aclrtStream stream, aclrtEvent event, uint32_t timeout,
                                      uint32_t flag) {
  PG_CHECK_PTR(event, ACL_ERROR_INVALID_PARAM);
  PG_CHECK(flag <= ACL_EVENT_WAIT_EXTERNAL, ACL_ERROR_INVALID_PARAM,
           "flag is %u, allowed is 0 or 1", flag);
  return wait(__func__, stream, event, timeout);
}

aclError aclrtSetOpWaitTimeout(uint32_t timeout) {
  atomic_store(&default_wait_seconds, timeout);
  return ACL_SUCCESS;
}

aclError aclrtGetEventId(aclrtEvent event, uint32_t *eventId) {
  struct pg_event *found;
  PG_CHECK_PTR(eventId, ACL_ERROR_INVALID_PARAM);
  PG_TRY(resolve(__func__, event, &found));
  *eventId = found->id;
  release(found);
  return ACL_SUCCESS;
}

aclError aclrtGetEventAvailNum(uint32_t *eventCount) {
  PG_CHECK_PTR(eventCount, ACL_ERROR_INVALID_PARAM);
  const int used = pg_handle_count(PG_EVENT);
  *eventCount = used < EVENTS_MAX ? (uint32_t)(EVENTS_MAX - used) : 0;
  return ACL_SUCCESS;
}
