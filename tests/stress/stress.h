/* SPDX-License-Identifier: Apache-2.0 */
/* Random calls of everything, from many threads, on handles that they share.
 *
 * A run is a sequence of rounds.  In a round every worker makes its steps, each one a row of the
 * table of calls; then all workers are joined, the library is finalised and the shelves are
 * emptied. All random numbers of a step come from the seed, the round, the worker and the step's
 * number, so the sequence of calls of a worker never depends on what the others do.
 *
 * What keeps the program itself well defined:
 *   - Memory that queued work uses is `fresh`: used by one step only, never freed, and used again
 *     in the next round, when aclFinalize has waited for all work.
 *   - Waits without a limit are for words that the keeper thread sets again and again, or are ended
 *     by the thread that queued them.
 *   - Objects that change (aclInitTensor, aclUpdateDataBuffer, repeatable executors' outputs)
 *     belong to one worker.  Addresses are freed by the one that took them out of their shelf.
 *   - aclFinalize frees what aclrtMalloc gave to other threads, so a round either has aclFinalize
 *     (rows marked STORMY) or looks into such memory (rows marked CALM). */
#ifndef PG_TESTS_STRESS_H_
#define PG_TESTS_STRESS_H_

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "acl/acl.h"
#include "acl/acl_op_compiler.h"
#include "aclnn/aclnn_base.h"
#include "poolgrad.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* everything is called */

/* Devices that everybody uses, and one where nobody synchronises the device and so takes other
 * threads' failures. */
enum { DEVICES = 2, QUIET_DEVICE = DEVICES, ALL_DEVICES };

enum { WORDS = 8, WORKERS_MAX = 64 };

extern struct options {
  int seconds, threads, hang_seconds;
  uint64_t seed, round, steps;
  const char *only, *without; /* lists of rows, or NULL */
} options;

/* One thread, as the watchdog and reports see it. */
struct worker {
  int number;
  pthread_t thread;
  _Atomic uint64_t round, step;
  _Atomic(const char *) call; /* the latest */
  atomic_ulong beats;         /* calls made */
  char *arena, *pinned;       /* fresh memory; the second kind was made known to the library */
  char *large;
  size_t used, used_pinned, used_large;
};

/* One step: who makes it, and its random numbers. */
struct turn {
  struct worker *worker;
  uint64_t state;
};

/* A number below `below`. */
uint64_t pick(struct turn *t, uint64_t below);
static inline bool chance(struct turn *t, uint64_t one_in) { return pick(t, one_in) == 0; }

/* --- handles that all threads share --- */

enum shelf {
  CONTEXTS,
  STREAMS,
  EVENTS,
  NOTIFIES,
  CONFIGS,
  BLOCKS,
  HOST_BLOCKS,
  BUFFERS,
  TENSORS,
  TENSOR_LISTS,
  SCALARS,
  SCALAR_LISTS,
  INT_ARRAYS,
  FLOAT_ARRAYS,
  BOOL_ARRAYS,
  EXECUTORS,
  REPEATABLES,
  SHELVES
};

/* Some handle of the shelf, which may be NULL, stale, or seldom of another kind. */
void *shelf_any(struct turn *t, enum shelf shelf);

/* Puts a handle into the shelf; gives the one whose place it takes. */
void *shelf_put(struct turn *t, enum shelf shelf, void *handle);

/* Takes a handle out; NULL when its place was empty. */
void *shelf_take(struct turn *t, enum shelf shelf);

/* Destroys an object of the shelf, unless that was done already. */
void shelf_destroy(struct turn *t, enum shelf shelf, void *handle);

/* After aclFinalize: destroys what that left alive. */
void shelves_clear(struct turn *t);

/* --- memory and words that live as long as the process --- */

/* Memory that nothing else uses in this round; NULL when the worker has none left.  The library
 * knows pinned memory as aclrtHostRegister's, so that copies of it do not wait. */
void *fresh(struct turn *t, size_t bytes);
void *fresh_pinned(struct turn *t, size_t bytes);
void *fresh_large(struct turn *t, size_t bytes);

enum { ARENA_BYTES = 2 << 20, LARGE_BYTES = 5 << 20 }; /* for a round */

extern uint64_t stress_words[WORDS]; /* values for streams to wait for */
extern _Atomic uint64_t stress_report_thread;

/* --- calls --- */

/* Tells the watchdog what the worker is about to call. */
void enter(struct turn *t, const char *function);

enum { CODES_END = -1 };

/* Whether the status is one that the call may give here, with a sentence if it is a failure; gives
 * the status. */
int judge(struct turn *t, const char *function, int status, const int *codes);

/* What should not be: printed, counted, and the program fails in the end. */
__attribute__((format(printf, 2, 3))) void complain(struct turn *t, const char *format, ...);
int complaint_count(void);

/* CALL(t, aclrtStreamAbort, (stream), STREAM_CODES) calls aclrtStreamAbort(stream), which may
 * succeed or give one of the codes. */
#define CALL(t, function, arguments, ...)                                  \
  judge((t), #function, (enter((t), #function), (int)(function)arguments), \
        (const int[]){__VA_ARGS__, CODES_END})

/* For what does not return a status. */
#define TELL(t, function, arguments) (enter((t), #function), (function)arguments)

/* For what returns an object, which only fails without memory. */
void *must(struct turn *t, const char *function, const void *object);
#define MAKE(t, function, arguments) must((t), #function, TELL(t, function, arguments))

/* The thread may have no context, or one that another thread ends. */
#define CONTEXT_CODES ACL_ERROR_RT_CONTEXT_NULL
#define STREAM_CODES \
  ACL_ERROR_RT_CONTEXT_NULL, ACL_ERROR_RT_STREAM_CONTEXT, ACL_ERROR_RT_INVALID_HANDLE
/* What comes out of streams: waits that ran out of time, aborts, indices outside their plane. */
#define OUTCOMES ACL_ERROR_RT_WAIT_TIMEOUT, ACL_ERROR_RT_STREAM_ABORT, ACL_ERROR_RT_AICORE_EXCEPTION

/* --- the table --- */

enum {
  ANY_WEATHER = 0,
  STORMY = 1,      /* may end everything: only in every second round */
  CALM = 2,        /* looks into memory of aclrtMalloc: only in the others */
  UNCANCELLED = 4, /* must not be cut short by pthread_cancel */
  ENDS = 8         /* ends what others use */
};

struct row {
  const char *name;
  int weight;
  int flags;
  void (*make)(struct turn *t);
};

#define ROW(function, weight, flags) \
  { #function, weight, flags, function }

/* Each file's rows, ended by one without a name. */
extern const struct row device_rows[], stream_rows[], event_rows[], memory_rows[], object_rows[],
    operator_rows[], tensor_rows[], process_rows[];

/* Takes the rows that the options allow. */
void collect_rows(void);

/* Decides how often each row comes in the round. */
void weigh_rows(uint64_t round);

/* Makes the step number `step` of the worker. */
void make_step(struct worker *worker, uint64_t step);

/* Prints the names of every worker's first steps. */
void print_steps(uint64_t count);

/* A sequence of a few random steps, all of it decided by `state`; for threads to be cancelled. */
void make_some_steps(struct worker *worker, uint64_t state, int count);

/* --- parts --- */

/* What can be known about the process from outside. */
struct footprint {
  long rss_kib;
  int threads, descriptors;
};
struct footprint footprint(void);

/* Operators with integers as data, right by the reference. */
void problems_prepare(void);
void problems_release(void);

/* Steady use for so many seconds; the number of complaints. */
int soak(uint64_t seed, int threads, int seconds);
#endif
