/* SPDX-License-Identifier: Apache-2.0 */
/* What a backend is: one struct of functions that owns memory, queues and kernels.
 *
 *   step    one thing a stream does: a kernel, a copy, a fill, a call into the host, a wait
 *   queue   a backend's stream: steps run one after another, in the order of their submission
 *   mark    a point in a queue; it is done when all steps before it are
 *
 * The runtime validates; a backend may assume good arguments.  Functions that can fail return a
 * status and leave the sentence to the caller, who knows the public function's name. */
#ifndef PG_BACKEND_H_
#define PG_BACKEND_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/status.h"
#include "kernels/kernels.h"

struct pg_object; /* core/handle.h, which is not for C++: CUDA files read this one */
struct pg_queue;
struct pg_mark;
struct pg_physical; /* a backend's own: memory without an address */

enum { PG_GRANULARITY = 2 << 20 }; /* sizes of what follows are multiples of it */

enum pg_step_kind {
  PG_STEP_KERNEL,
  PG_STEP_COPY,
  PG_STEP_FILL,
  PG_STEP_CALL,
  PG_STEP_WAIT, /* until a mark is done */
  PG_STEP_WRITE_VALUE,
  PG_STEP_WAIT_VALUE,
  PG_STEP_MARK /* made by submit() alone */
};

/* height rows of width bytes; a plain copy has one row. */
struct pg_copy {
  void *dst;
  const void *src;
  size_t dst_pitch, src_pitch, width, height;
};

/* dst[i] = value for i in [0, count); an element has 1 or 4 bytes. */
struct pg_fill {
  void *dst;
  size_t count;
  uint32_t value;
  int element_bytes;
};

/* A call into the host at its place in the queue.  Returning a code makes the queue fail; the
 * sentence goes to *why. */
struct pg_call {
  aclError (*fn)(const struct pg_call *self, struct pg_failure *why);
  void *arg;
  void (*user)(void *); /* for fn's use: the caller's own function */
  void (*discard)(
      const struct pg_call *self); /* instead of fn when the step is dropped; optional */
  bool own_thread; /* only on the queue's own thread, never on one that synchronises */
  bool waits;      /* fn waits for something outside the queue, which may never come */
};

/* Comparisons are CANN's ACL_STREAM_WAIT_VALUE_*. */
struct pg_value {
  uint64_t *address; /* aligned to 8 bytes */
  uint64_t value;
  uint32_t comparison;
  bool take;               /* a satisfied wait also writes 0, in one motion */
  int64_t timeout_ns;      /* PG_FOREVER: none */
  struct pg_object *owner; /* what keeps the address alive; the step owns a reference; optional */
};

struct pg_wait {
  struct pg_mark *mark; /* the step owns a reference */
  int64_t timeout_ns;
};

/* What a queue is at. */
enum pg_activity {
  PG_IDLE,
  PG_WORKING, /* it will end by itself */
  PG_WAITING  /* for a mark, a value or somebody else's call */
};

struct pg_kernel_step {
  /* With a kernel that has a report (pg_report_of): the backend lends it an empty one and calls
   * judge with what was noted in it, if anything.  A code makes the queue fail.  NULL: no report.
   */
  aclError (*judge)(const union pg_kernel_args *args, const struct pg_index_report *report,
                    struct pg_failure *why);
  struct pg_task task;
};

struct pg_step {
  enum pg_step_kind kind;
  int64_t bytes; /* memory it touches: decides how many threads it is worth */
  union {
    struct pg_kernel_step kernel;
    struct pg_copy copy;
    struct pg_fill fill;
    struct pg_call call;
    struct pg_wait wait;
    struct pg_value value;
    struct pg_mark *mark;
  } u;
};

struct pg_queue_options {
  int device;               /* the backend's own number */
  int device_id, stream_id; /* the public ones, for on_failure */
  /* Told of each asynchronous failure, from the thread that ran the step.  Optional. */
  void (*on_failure)(const struct pg_queue_options *queue, uint64_t ticket,
                     const struct pg_failure *failure);
};

/* All functions are required. */
struct pg_backend {
  const char *name; /* its word in POOLGRAD_DEVICES */
  bool on_host;     /* its device memory is the process's own: the host may touch it */

  int (*device_count)(void);
  void (*describe)(int device, char *text, size_t size); /* "cpu (2 threads)" */
  int (*core_count)(int device);
  int64_t (*cache_bytes)(int device);     /* of the level 2 cache; 0: not known */
  aclError (*configure)(const char *api); /* reads the environment; fails with a sentence */
  void (*shut_down)(void);                /* ends all threads; the next use starts anew */

  /* Whether a device's kernels may touch a peer's memory, and letting them. */
  bool (*can_reach)(int device, int peer);
  aclError (*reach)(int device, int peer, bool enable);

  /* How the backend would compute a problem: the skip-th of its methods that fit, best first. False
   * when fewer fit.  Any device of the backend can run the choice. */
  bool (*choose)(const struct pg_problem *problem, int skip, struct pg_choice *choice);

  /* Memory.  alloc: at least 64-byte aligned; huge asks for huge pages, best effort.
   * host_register lets kernels touch the program's own memory, at the same address. */
  void *(*alloc)(int device, size_t bytes, bool huge);
  void (*free)(int device, void *memory);
  void *(*host_alloc)(int device, size_t bytes);
  void (*host_free)(int device, void *memory);
  aclError (*host_register)(int device, void *memory, size_t bytes, bool read_only);
  void (*host_unregister)(int device, void *memory);
  void (*memory_info)(int device, size_t *free_bytes, size_t *total_bytes);
  aclError (*copy)(int device, const struct pg_copy *copy); /* at once, no queue involved */
  aclError (*fill)(int device, const struct pg_fill *fill);

  /* Addresses and physical memory, apart.  reserve: addresses at which there is nothing yet; NULL:
   * none are left.  map: all of the memory at reserved addresses of the same device; it may be
   * mapped at several places.  map and unmap change nothing when they give false.  Memory is
   * released when it is mapped nowhere, and addresses when nothing is mapped there. */
  void *(*reserve)(int device, size_t bytes);
  void (*unreserve)(int device, void *addresses, size_t bytes);
  struct pg_physical *(*physical_make)(int device, size_t bytes); /* NULL: no memory */
  void (*physical_release)(int device, struct pg_physical *memory);
  bool (*map)(int device, void *at, struct pg_physical *memory);
  bool (*unmap)(int device, void *at, size_t bytes);

  /* Queues.  submit: all steps or none, and with `behind` a mark right behind them, which the
   * caller then owns; ..._FEATURE_NOT_SUPPORT for steps that need the host while the device's own
   * stream is being captured.  native_stream: that stream, NULL where there is none.  close: waits
   * for the steps (drop: discards those not begun, stops the running one if it can be stopped, and
   * waits at most until a kernel, copy or fill of the host has stopped); afterwards submit fails.
   * sync: until the steps submitted so far are done; ACL_ERROR_RT_STREAM_SYNC_TIMEOUT when the time
   * is up, ..._STREAM_ABORT when some were discarded meanwhile, ..._FEATURE_NOT_SUPPORT from inside
   * one of the queue's own steps; the first asynchronous failure goes to *failure, once.  With
   * stop_on_failure the steps behind a failure are discarded until then.  activity: also how many
   * steps are done; it only looks. */
  aclError (*queue_create)(const struct pg_queue_options *options, struct pg_queue **out);
  void (*queue_close)(struct pg_queue *queue, bool drop);
  void (*queue_release)(struct pg_queue *queue);
  aclError (*submit)(struct pg_queue *queue, const struct pg_step *steps, size_t count,
                     struct pg_mark **behind);
  aclError (*sync)(struct pg_queue *queue, int64_t timeout_ns, struct pg_failure *failure);
  bool (*idle)(struct pg_queue *queue);
  enum pg_activity (*activity)(struct pg_queue *queue, uint64_t *done);
  void (*hold)(struct pg_queue *queue);      /* from now on no step begins; what is left stays until
                                                it is discarded, and the queue is to be closed */
  void (*discard)(struct pg_queue *queue);   /* the steps that have not begun */
  void (*interrupt)(struct pg_queue *queue); /* stops the running step if it can be stopped */
  void (*set_stop_on_failure)(struct pg_queue *queue, bool stop);
  bool (*on_own_step)(struct pg_queue *queue); /* is the caller inside one of its steps? */
  void *(*native_stream)(struct pg_queue *queue);

  /* Marks, counted.  A mark outlives its queue: a closed queue's marks are done. */
  void (*mark_retain)(struct pg_mark *mark);
  void (*mark_release)(struct pg_mark *mark);
  bool (*mark_done)(struct pg_mark *mark);
  bool (*mark_discarded)(struct pg_mark *mark); /* of one that is done: did it count as done because
                                                   its steps were discarded? */
  /* ACL_ERROR_RT_EVENT_SYNC_TIMEOUT, or ..._FEATURE_NOT_SUPPORT from inside the queue's own step */
  aclError (*mark_sync)(struct pg_mark *mark, int64_t timeout_ns);
  int64_t (*mark_time_ns)(struct pg_mark *mark); /* 0: was discarded, never reached */
};

extern const struct pg_backend pg_backend_cpu;

/* What the CUDA plug-in exports, under the name poolgrad_cuda_backend.  The size tells one made for
 * another library; NULL and a reason when it cannot serve. */
typedef const struct pg_backend *pg_plugin_fn(size_t size_of_backend, const char **why);

enum { PG_BACKENDS_MAX = 2 };

/* The backends there are, best first; NULL behind the last.  The default device list is that of the
 * first.  CUDA's is a file beside the library, looked for once. */
const struct pg_backend *pg_backend_at(int i);

/* Why there is no backend of this name, where one could be; NULL otherwise. */
const char *pg_backend_absence(const char *name);

/* Addresses of one backend may then mean nothing to another. */
static inline bool pg_several_backends(void) { return pg_backend_at(1) != NULL; }

#endif
