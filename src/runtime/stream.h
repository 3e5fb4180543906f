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
  atomic_bool closing;    /* set first when the stream is destroyed by force */
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

/* Queues steps, all or none, nothing between them. */
aclError pg_stream_submit(const char *api, struct pg_stream *stream, const struct pg_step *steps,
                          size_t count);

/* Waits; an asynchronous failure comes out as this call's. */
aclError pg_stream_sync(const char *api, struct pg_stream *stream, int64_t timeout_ns);

/* The context's default stream with a reference for the caller. */
aclError pg_stream_default(const char *api, struct pg_context *context, struct pg_stream **out);

/* Ends a live stream; false when another thread was first. */
bool pg_stream_close(void *handle, bool drop);

static inline void pg_stream_release(struct pg_stream *stream) { pg_release(&stream->object); }

/* callback.c: nothing of the stream stays subscribed or waits for a callback; when it ends, for
 * good. */
void pg_callbacks_forget(struct pg_stream *stream, bool ends);

/* Above 0 while the calling thread runs the program's code as part of a stream's work: waiting for
 * all streams would then never end. */
extern _Thread_local int pg_inside_work;

/* exception.c: tells the registered functions. */
void pg_exception_report(const struct pg_queue_options *queue, uint64_t ticket,
                         const struct pg_failure *failure);

#endif
