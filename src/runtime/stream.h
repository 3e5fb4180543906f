/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: a backend's queue behind a handle. */
#ifndef PG_STREAM_H_
#define PG_STREAM_H_

#include "runtime/context.h"

struct pg_stream {
  struct pg_object object;
  void *handle;
  struct pg_context *context; /* holds a reference */
  const struct pg_backend *backend;
  struct pg_queue *queue;
  int32_t id;
  atomic_uint priority;
  uint32_t flags;
  bool is_default;
  bool ends_with_context; /* its handle was closed by its context's end; guarded by its lock */
  atomic_bool closing;    /* set first when the stream is destroyed by force */
  atomic_uint aborts;     /* interrupts of its running work so far: a wait notes and compares */
  struct pg_stream *next; /* guarded by the context's lock */

  /* Stored for their getters; atomics because any thread may set them. */
  atomic_uint overflow_switch, user_tag, cache_op_info;
  _Atomic uint64_t failure_mode;
  atomic_uint limit[PG_RES_TYPES]; /* 0: the device's */

  /* Guarded by callback.c's lock. */
  bool subscribed, ended; /* ended: can no longer be subscribed */
  uint64_t report_thread;
  struct pg_stream *next_subscribed;
};

/* The stream a public call means, with a reference for the caller.  NULL means the default
 * stream of the thread's current context; another context's stream is refused. */
aclError pg_stream_resolve(const char *api, aclrtStream handle, struct pg_stream **out);

/* The same without asking for the thread's context when the stream is named: what aclnn's second
 * phase uses, which programs run on threads of their own. */
aclError pg_stream_resolve_any(const char *api, aclrtStream handle, struct pg_stream **out);

/* Queues steps, all or none, nothing between them.  With `behind` also a mark right behind them,
 * which is the caller's to release. */
aclError pg_stream_submit(const char *api, struct pg_stream *stream, const struct pg_step *steps,
                          size_t count, struct pg_mark **behind);

/* Is the caller inside work of this stream: a host function, or a blocking callback that the stream
 * waits for?  Waiting for the stream would then never end. */
bool pg_stream_is_inside(struct pg_stream *stream);

/* Waits; an asynchronous failure comes out as this call's. */
aclError pg_stream_sync(const char *api, struct pg_stream *stream, int64_t timeout_ns);

/* The same for a thread that waits for all streams of a device.  If another thread destroys one of
 * them by force meanwhile, that is no failure: it is not a stream of the device any more. */
aclError pg_stream_sync_if_there(const char *api, struct pg_stream *stream, int64_t timeout_ns);

/* The context's default stream with a reference for the caller. */
aclError pg_stream_default(const char *api, struct pg_context *context, struct pg_stream **out);

/* Ends a live stream in two parts: first its handle, so that no more work comes (NULL when another
 * thread was first), then the stream, waiting for its work or dropping it. */
struct pg_stream *pg_stream_close_handle(void *handle);
void pg_stream_close(struct pg_stream *stream, bool drop);

/* The two parts of an abort: discards what has not begun, stops what runs.  Of several streams the
 * first part comes first for all: one that is stopped may be what another waits for. */
void pg_stream_discard(struct pg_stream *stream);
void pg_stream_interrupt(struct pg_stream *stream);

static inline void pg_stream_release(struct pg_stream *stream) { pg_release(&stream->object); }

/* callback.c.  drop: no callback of the stream waits any longer for its turn.  forget: nor is the
 * stream subscribed any longer; when it ends, for good.  is_serving: is the caller inside a
 * blocking callback of the stream with this queue? */
void pg_callbacks_drop(struct pg_stream *stream);
void pg_callbacks_forget(struct pg_stream *stream, bool ends);
bool pg_callbacks_is_serving(const struct pg_queue *queue);

/* stream_attribute.c: what a live configuration says; ACL_ERROR_RT_INVALID_HANDLE and a sentence
 * for any other address, which is not looked into. */
aclError pg_stream_config_read(const char *api, const aclrtStreamConfigHandle *handle,
                               aclrtStreamConfigHandle *copy);

/* Above 0 while the calling thread runs the program's code as part of a stream's work (a host
 * function, a blocking callback, a listener): waiting for all streams would then never end. */
extern _Thread_local int pg_inside_work;

/* exception.c: tells the registered functions. */
void pg_exception_report(const struct pg_queue_options *queue, uint64_t ticket,
                         const struct pg_failure *failure);

#endif
