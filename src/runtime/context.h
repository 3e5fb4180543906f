/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: a device's streams and parameters, current per thread. */
#ifndef PG_CONTEXT_H_
#define PG_CONTEXT_H_

#include <pthread.h>

#include "core/handle.h"
#include "runtime/device.h"

struct pg_stream;

enum { PG_CONTEXT_OPTIONS = 3 };

struct pg_context {
  struct pg_object object;
  void *handle;
  struct pg_device device;
  int device_id;
  bool primary;                     /* made by aclrtSetDevice, ended by aclrtResetDevice alone */
  pthread_mutex_t lock;             /* guards what follows */
  bool ended;                       /* takes no new streams */
  struct pg_stream *streams;        /* all of them, the default one included */
  struct pg_stream *default_stream; /* made when first asked for */
  int64_t option[PG_CONTEXT_OPTIONS];
  bool option_set[PG_CONTEXT_OPTIONS];
};

/* A new context with its handle; not made current. */
aclError pg_context_create(const char *api, const struct pg_device *device, int device_id,
                           bool primary, void **handle);

/* What becomes of the work of a context that ends. */
enum pg_ending {
  PG_ENDING_WAITS,   /* it is waited for */
  PG_ENDING_PATIENT, /* likewise, unless its streams only wait, for a second, for what nobody does
                      */
  PG_ENDING_FORCED   /* what has not begun is discarded, what runs is stopped */
};

/* Ends a context: its handle first, then its streams.  False when the handle is not (or no longer)
 * a live context. */
bool pg_context_close(const char *api, void *handle, enum pg_ending ending);

/* The calling thread's current context with a reference for the caller.
 * ACL_ERROR_RT_CONTEXT_NULL and a sentence when it has none. */
aclError pg_context_current(const char *api, struct pg_context **out);

/* The same for a question that "none yet" answers: the sentence is left, the thread's last error
 * stays what it was. */
aclError pg_context_ask(const char *api, struct pg_context **out);

/* The calling thread's current handle, which may be stale or NULL. */
void *pg_context_current_handle(void);
void pg_context_make_current(void *handle);

#endif
