/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that a thread computes in.
 *
 * A method keeps its tables and staged outputs here and not on the stack: the thread may be the
 * program's own, inside a synchronise, with a stack that the program made as small as
 * PTHREAD_STACK_MIN.  A queue has one scratch memory, because it runs one step at a time; every
 * worker has its own. */
#ifndef PG_SCRATCH_H_
#define PG_SCRATCH_H_

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
  PG_SCRATCH_METHOD = 576 << 10,   /* for the method; each asserts that this is enough */
  PG_SCRATCH_FALLBACK = 528 << 10, /* behind it, for the method that max methods fall back to */
  PG_SCRATCH_BYTES = PG_SCRATCH_METHOD + PG_SCRATCH_FALLBACK,
  PG_SCRATCH_SHARES = 4 << 10, /* behind that, for the shares of a job (workers.c) */
  PG_SCRATCH_ALIGNMENT = 64
};

struct pg_scratch {
  const atomic_bool *stop; /* set when nobody wants the results any more */
  void *room;              /* aligned; fills and copies may have none */
};

static inline void *pg_fallback_room(const struct pg_scratch *scratch) {
  return (char *)scratch->room + PG_SCRATCH_METHOD;
}

/* Methods ask this between items, and between parts of an item that may take long. */
static inline bool pg_is_stopped(const struct pg_scratch *scratch) {
  return atomic_load_explicit(scratch->stop, memory_order_relaxed);
}

/* A function over the items [begin, end).  Any division among threads gives the same bits. */
typedef void pg_items_fn(const void *args, int64_t begin, int64_t end, struct pg_scratch *scratch);

#endif
