/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/stream.h"

#include <stdlib.h>

#include "core/clock.h"
#include "core/fork.h"
#include "poolgrad.h"
#include "runtime/strict.h"

enum {
  STREAMS_MAX = 1984, /* what CANN's larger products have; each of ours is a thread */
  PRIORITY_LEAST = 7,
  NEVER_SYNCHRONISED = ACL_STREAM_PERSISTENT | ACL_STREAM_CPU_SCHEDULE | ACL_STREAM_DEVICE_USE_ONLY
};

static atomic_int next_id;

static void destroy(struct pg_object *self) {
  struct pg_stream *stream = (struct pg_stream *)self;
  if (stream->queue != NULL) stream->backend->queue_release(stream->queue);
  pg_release(&stream->context->object);
  free(stream);
}

static aclError create(const char *api, struct pg_context *context, uint32_t priority,
                       uint32_t flags, struct pg_stream **out) {
  if (pg_handle_count(PG_STREAM) >= STREAMS_MAX)
    return pg_fail(api, ACL_ERROR_RT_NO_STREAM_RESOURCE, "all %d streams are in use", STREAMS_MAX);
  struct pg_stream *stream = calloc(1, sizeof *stream);
  if (stream == NULL) return pg_fail(api, ACL_ERROR_BAD_ALLOC, "no memory for a stream");
  atomic_init(&stream->object.refs, 1);
  stream->object.destroy = destroy;
  pg_retain(&context->object);
  stream->context = context;
  stream->backend = context->device.backend;
  stream->id = atomic_fetch_add(&next_id, 1);
  atomic_init(&stream->priority, priority);
  stream->flags = flags;
  const struct pg_queue_options options = {.device = context->device.ordinal,
                                           .device_id = context->device_id,
                                           .stream_id = stream->id,
                                           .on_failure = pg_exception_report};
  const aclError status = stream->backend->queue_create(&options, &stream->queue);
  if (status == ACL_SUCCESS) stream->handle = pg_handle_open(PG_STREAM, &stream->object);
  if (stream->handle == NULL) {
    if (stream->queue != NULL) stream->backend->queue_close(stream->queue, false);
    pg_stream_release(stream);
    return pg_fail(api, status == ACL_SUCCESS ? ACL_ERROR_BAD_ALLOC : status,
                   "no thread or memory for a stream");
  }
  *out = stream;
  return ACL_SUCCESS;
}

/* Puts the stream into its context's list; false when the context has ended meanwhile.
 * The context's lock is held. */
static bool link_stream(struct pg_stream *stream) {
  if (stream->context->ended) return false;
  stream->next = stream->context->streams;
  stream->context->streams = stream;
  return true;
}

static aclError context_ended(const char *api) {
  return pg_fail(api, ACL_ERROR_RT_CONTEXT_NULL, "the current context is being destroyed");
}

static void unlink_stream(struct pg_stream *stream) {
  pthread_mutex_lock(&stream->context->lock);
  struct pg_stream **link = &stream->context->streams;
  while (*link != NULL && *link != stream) link = &(*link)->next;
  if (*link != NULL) *link = stream->next;
  if (stream->context->default_stream == stream) stream->context->default_stream = NULL;
  pthread_mutex_unlock(&stream->context->lock);
}

void pg_stream_discard(struct pg_stream *stream) { stream->backend->discard(stream->queue); }

void pg_stream_interrupt(struct pg_stream *stream) {
  atomic_fetch_add(&stream->aborts, 1);
  pg_strict_broken(stream->id);
  stream->backend->interrupt(stream->queue);
  pg_callbacks_drop(stream);
}

struct pg_stream *pg_stream_close_handle(void *handle) {
  return pg_handle_close(handle, PG_STREAM);
}

void pg_stream_close(struct pg_stream *stream, bool drop) {
  if (drop) atomic_store(&stream->closing, true);
  if (drop) pg_callbacks_forget(stream, true);
  stream->backend->queue_close(stream->queue, drop);
  pg_callbacks_forget(stream, true);
  if (drop) pg_strict_broken(stream->id);
  pg_strict_waited(pg_strict_here(stream));
  unlink_stream(stream);
  pg_stream_release(stream);
}

static bool close_now(void *handle, bool drop) {
  struct pg_stream *stream = pg_stream_close_handle(handle);
  if (stream != NULL) pg_stream_close(stream, drop);
  return stream != NULL;
}

aclError pg_stream_default(const char *api, struct pg_context *context, struct pg_stream **out) {
  aclError status = ACL_SUCCESS;
  struct pg_stream *orphan = NULL;
  pthread_mutex_lock(&context->lock);
  struct pg_stream *stream = context->default_stream;
  if (stream == NULL) {
    status = create(api, context, 0, 0, &stream);
    if (status == ACL_SUCCESS && link_stream(stream)) {
      stream->is_default = true;
      context->default_stream = stream;
    } else if (status == ACL_SUCCESS) {
      orphan = stream;
      status = context_ended(api);
    }
  }
  if (status == ACL_SUCCESS) {
    pg_retain(&stream->object);
    *out = stream;
  }
  pthread_mutex_unlock(&context->lock);
  if (orphan != NULL) (void)close_now(orphan->handle, false);
  return status;
}

static aclError current_default(const char *api, struct pg_stream **out) {
  struct pg_context *context;
  PG_TRY(pg_context_current(api, &context));
  const aclError status = pg_stream_default(api, context, out);
  pg_release(&context->object);
  return status;
}

aclError pg_stream_resolve_any(const char *api, aclrtStream handle, struct pg_stream **out) {
  PG_TRY(pg_fork_check(api));
  if (handle == NULL) return current_default(api, out);
  *out = pg_acquire(handle, PG_STREAM);
  if (*out != NULL) return ACL_SUCCESS;
  return pg_fail(api, ACL_ERROR_RT_INVALID_HANDLE, "stream is %s, a live stream is required",
                 pg_handle_what(handle));
}

aclError pg_stream_resolve(const char *api, aclrtStream handle, struct pg_stream **out) {
  struct pg_context *context;
  PG_TRY(pg_stream_resolve_any(api, handle, out));
  if ((*out)->context->handle == pg_context_current_handle()) return ACL_SUCCESS;
  pg_stream_release(*out);
  *out = NULL;
  PG_TRY(pg_context_current(api, &context));
  pg_release(&context->object);
  return pg_fail(api, ACL_ERROR_RT_STREAM_CONTEXT,
                 "stream belongs to another context than this thread's current one");
}

aclError pg_stream_submit(const char *api, struct pg_stream *stream, const struct pg_step *steps,
                          size_t count, struct pg_mark **behind) {
  const aclError status = stream->backend->submit(stream->queue, steps, count, behind);
  if (status == ACL_SUCCESS) return ACL_SUCCESS;
  if (status == ACL_ERROR_RT_FEATURE_NOT_SUPPORT)
    return pg_fail(api, status,
                   "stream %d is being captured, which work that needs the host cannot be",
                   (int)stream->id);
  return pg_fail(api, status,
                 status == ACL_ERROR_RT_INVALID_HANDLE ? "stream %d is being destroyed"
                                                       : "no memory to queue work on stream %d",
                 (int)stream->id);
}

bool pg_stream_is_inside(struct pg_stream *stream) {
  return stream->backend->on_own_step(stream->queue) || pg_callbacks_is_serving(stream->queue);
}

static aclError wait_for(struct pg_stream *stream, int64_t timeout_ns, struct pg_failure *failure) {
  failure->code = ACL_SUCCESS; /* its text is large, and seldom there */
  if ((stream->flags & NEVER_SYNCHRONISED) != 0) return ACL_SUCCESS;
  if (pg_callbacks_is_serving(stream->queue)) return ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
  const struct pg_strict_point here = pg_strict_here(stream);
  const aclError status = stream->backend->sync(stream->queue, timeout_ns, failure);
  if (status == ACL_SUCCESS || status == ACL_ERROR_RT_STREAM_ABORT) pg_strict_waited(here);
  /* a forced end just before: the queue was empty because its work was thrown away */
  const bool lost = failure->code == ACL_SUCCESS && atomic_load(&stream->closing);
  return status == ACL_SUCCESS && lost ? ACL_ERROR_RT_STREAM_ABORT : status;
}

/* What came of the waiting, as the call's own failure. */
static aclError tell(const char *api, const struct pg_stream *stream, int64_t timeout_ns,
                     aclError status, const struct pg_failure *failure) {
  const int id = (int)stream->id;
  if (status == ACL_ERROR_RT_FEATURE_NOT_SUPPORT)
    return pg_fail(api, status,
                   "called from work of stream %d itself, it would wait for its own end", id);
  if (status != ACL_SUCCESS && status != ACL_ERROR_RT_STREAM_ABORT)
    return pg_fail(api, status, "stream %d still had work after %lld ms", id,
                   (long long)(timeout_ns / PG_NS_PER_MS));
  if (failure->code != ACL_SUCCESS)
    return pg_fail(api, failure->code, "stream %d failed: %s", id, failure->text);
  if (status == ACL_ERROR_RT_STREAM_ABORT)
    return pg_fail(api, status, "work of stream %d was discarded by an abort or a forced end", id);
  return ACL_SUCCESS;
}

aclError pg_stream_sync(const char *api, struct pg_stream *stream, int64_t timeout_ns) {
  struct pg_failure failure;
  const aclError status = wait_for(stream, timeout_ns, &failure);
  return tell(api, stream, timeout_ns, status, &failure);
}

aclError pg_stream_sync_if_there(const char *api, struct pg_stream *stream, int64_t timeout_ns) {
  struct pg_failure failure;
  const aclError status = wait_for(stream, timeout_ns, &failure);
  const bool gone = status == ACL_ERROR_RT_STREAM_ABORT && atomic_load(&stream->closing);
  if (gone && failure.code == ACL_SUCCESS) return ACL_SUCCESS;
  return tell(api, stream, timeout_ns, status, &failure);
}

static aclError create_public(const char *api, aclrtStream *out, uint32_t priority,
                              uint32_t flags) {
  struct pg_context *context;
  struct pg_stream *stream;
  PG_TRY(pg_context_current(api, &context));
  aclError status = create(api, context, priority, flags, &stream);
  if (status == ACL_SUCCESS) {
    pthread_mutex_lock(&context->lock);
    void *handle = stream->handle; /* once it is linked, another thread may end the stream */
    const bool linked = link_stream(stream);
    pthread_mutex_unlock(&context->lock);
    if (linked)
      *out = handle;
    else
      (void)close_now(handle, false);
    if (!linked) status = context_ended(api);
  }
  pg_release(&context->object);
  return status;
}

aclError aclrtCreateStream(aclrtStream *stream) {
  PG_CHECK_PTR(stream, ACL_ERROR_INVALID_PARAM);
  return create_public(__func__, stream, 0, 0);
}

aclError aclrtCreateStreamWithConfig(aclrtStream *stream, uint32_t priority, uint32_t flag) {
  PG_CHECK_PTR(stream, ACL_ERROR_INVALID_PARAM);
  return create_public(__func__, stream, priority, flag);
}

aclError aclrtCreateStreamV2(aclrtStream *stream, const aclrtStreamConfigHandle *handle) {
  aclrtStreamConfigHandle wishes;
  PG_CHECK_PTR(stream, ACL_ERROR_INVALID_PARAM);
  PG_TRY(pg_stream_config_read(__func__, handle, &wishes));
  return create_public(__func__, stream, wishes.priority, (uint32_t)wishes.flag);
}

static aclError destroy_public(const char *api, aclrtStream handle, bool drop) {
  struct pg_stream *stream;
  if (handle == NULL) return pg_fail_null(api, ACL_ERROR_INVALID_PARAM, "stream");
  PG_TRY(pg_stream_resolve(api, handle, &stream));
  const bool is_default = stream->is_default;
  const bool inside = pg_stream_is_inside(stream);
  pg_stream_release(stream);
  if (is_default)
    return pg_fail(api, ACL_ERROR_RT_INVALID_HANDLE,
                   "stream is its context's default stream, which ends with the context");
  if (inside && !drop)
    return pg_fail(api, ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                   "called from work of the stream itself, it would wait for its own end");
  if (close_now(handle, drop)) return ACL_SUCCESS;
  return pg_fail(api, ACL_ERROR_RT_INVALID_HANDLE, "stream is %s, a live stream is required",
                 pg_handle_what(handle));
}

aclError aclrtDestroyStream(aclrtStream stream) { return destroy_public(__func__, stream, false); }
aclError aclrtDestroyStreamForce(aclrtStream stream) {
  return destroy_public(__func__, stream, true);
}

aclError aclrtSynchronizeStream(aclrtStream stream) {
  struct pg_stream *found;
  PG_TRY(pg_stream_resolve(__func__, stream, &found));
  const aclError status = pg_stream_sync(__func__, found, PG_FOREVER);
  pg_stream_release(found);
  return status;
}

aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout) {
  struct pg_stream *found;
  PG_CHECK(timeout == -1 || timeout > 0, ACL_ERROR_RT_PARAM_INVALID,
           "timeout is %d ms, allowed is -1 (for ever) or more than 0", (int)timeout);
  PG_TRY(pg_stream_resolve(__func__, stream, &found));
  const aclError status =
      pg_stream_sync(__func__, found, timeout == -1 ? PG_FOREVER : timeout * PG_NS_PER_MS);
  pg_stream_release(found);
  return status;
}

aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus *status) {
  struct pg_stream *found;
  PG_CHECK_PTR(status, ACL_ERROR_INVALID_PARAM);
  PG_TRY(pg_stream_resolve(__func__, stream, &found));
  const struct pg_strict_point here = pg_strict_here(found);
  const bool idle = found->backend->idle(found->queue);
  if (idle) pg_strict_waited(here);
  *status = idle ? ACL_STREAM_STATUS_COMPLETE : ACL_STREAM_STATUS_NOT_READY;
  pg_stream_release(found);
  return ACL_SUCCESS;
}

aclError aclrtStreamGetId(aclrtStream stream, int32_t *streamId) {
  struct pg_stream *found;
  PG_CHECK_PTR(streamId, ACL_ERROR_INVALID_PARAM);
  PG_TRY(pg_stream_resolve(__func__, stream, &found));
  *streamId = found->id;
  pg_stream_release(found);
  return ACL_SUCCESS;
}

aclError aclrtStreamGetPriority(aclrtStream stream, uint32_t *priority) {
  struct pg_stream *found;
  PG_CHECK_PTR(priority, ACL_ERROR_INVALID_PARAM);
  PG_TRY(pg_stream_resolve(__func__, stream, &found));
  *priority = atomic_load(&found->priority);
  pg_stream_release(found);
  return ACL_SUCCESS;
}

aclError aclrtStreamGetFlags(aclrtStream stream, uint32_t *flags) {
  struct pg_stream *found;
  PG_CHECK_PTR(flags, ACL_ERROR_INVALID_PARAM);
  PG_TRY(pg_stream_resolve(__func__, stream, &found));
  *flags = found->flags;
  pg_stream_release(found);
  return ACL_SUCCESS;
}

aclError aclrtGetStreamAvailableNum(uint32_t *streamCount) {
  struct pg_context *context;
  PG_CHECK_PTR(streamCount, ACL_ERROR_INVALID_PARAM);
  PG_TRY(pg_context_current(__func__, &context));
  pg_release(&context->object);
  const int used = pg_handle_count(PG_STREAM);
  *streamCount = used < STREAMS_MAX ? (uint32_t)(STREAMS_MAX - used) : 0;
  return ACL_SUCCESS;
}

aclError aclrtDeviceGetStreamPriorityRange(int32_t *leastPriority, int32_t *greatestPriority) {
  if (leastPriority != NULL) *leastPriority = PRIORITY_LEAST;
  if (greatestPriority != NULL) *greatestPriority = 0;
  return ACL_SUCCESS;
}

aclError aclrtStreamAbort(aclrtStream stream) {
  struct pg_stream *found;
  PG_TRY(pg_stream_resolve(__func__, stream, &found));
  pg_stream_discard(found);
  pg_stream_interrupt(found);
  pg_stream_release(found);
  return ACL_SUCCESS;
}

void *poolgrad_cuda_stream(void *stream) {
  struct pg_stream *found;
  if (pg_stream_resolve_any(__func__, stream, &found) != ACL_SUCCESS) return NULL;
  void *native = found->backend->native_stream(found->queue);
  if (native == NULL)
    pg_fail_with(__func__, ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                 "stream %d is on device %d, which is not a CUDA device but %s", (int)found->id,
                 found->context->device_id, found->backend->name);
  pg_stream_release(found);
  return native;
}
