/* SPDX-License-Identifier: Apache-2.0 */
/* Handles: what the public API hands out instead of addresses.
 *
 *     63        48 47           24 23            0
 *    | tag + kind |  generation   |  slot index  |
 *
 * A handle is looked up, never dereferenced, among the slots of its kind.  Destroying an object
 * raises its slot's generation, so a stale, foreign or invented handle finds nothing; a slot whose
 * generations are used up is retired, so no handle ever comes back.  The tag makes the value a
 * non-canonical address: who dereferences it by mistake faults at once.
 *
 * Objects are counted.  The handle holds one reference, pg_acquire adds one for the caller's
 * use, and the last release runs the object's destroy function: an object may be destroyed by
 * one thread while another is still inside a call with it. */
#ifndef PG_HANDLE_H_
#define PG_HANDLE_H_

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum pg_kind {
  PG_CONTEXT,
  PG_STREAM,
  PG_EVENT,
  PG_NOTIFY,
  PG_DATA_BUFFER,
  PG_TENSOR_DESC,
  PG_OPERATOR_ATTRIBUTE,
  PG_PHYSICAL_MEMORY,
  PG_TENSOR,
  PG_SCALAR,
  PG_INT_ARRAY,
  PG_FLOAT_ARRAY,
  PG_BOOL_ARRAY,
  PG_TENSOR_LIST,
  PG_SCALAR_LIST,
  PG_EXECUTOR,
  PG_KIND_COUNT
};

/* First member of every object behind a handle. */
struct pg_object {
  atomic_int refs; /* starts as the creator's references; only the functions below read it */
  void (*destroy)(struct pg_object *self);
};

/* A handle for a new object with one reference, which the handle owns.  NULL when memory or
 * slots are exhausted; the object is then still the caller's. */
void *pg_handle_open(enum pg_kind kind, struct pg_object *object);

/* The object with a reference for the caller, or NULL when the handle is not a live one of
 * this kind. */
void *pg_acquire(const void *handle, enum pg_kind kind);

/* Ends the handle and passes its reference to the caller; NULL when another thread was first or
 * the handle was never live. */
void *pg_handle_close(const void *handle, enum pg_kind kind);

static inline void pg_retain(struct pg_object *object) {
  atomic_fetch_add_explicit(&object->refs, 1, memory_order_relaxed);
}

static inline void pg_release(struct pg_object *object) { /* NULL is fine */
  if (object != NULL && atomic_fetch_sub_explicit(&object->refs, 1, memory_order_acq_rel) == 1)
    object->destroy(object);
}

/* Is it a live handle of this kind? */
bool pg_is_live(const void *handle, enum pg_kind kind);

/* Live handles of the kind, one after another: NULL starts, NULL ends. */
void *pg_handle_next(enum pg_kind kind, const void *after);

/* Live handles of the kind. */
int pg_handle_count(enum pg_kind kind);

/* Says what a wrong handle is, for sentences: "NULL", "a destroyed stream", "an event",
 * "not a handle". */
const char *pg_handle_what(const void *handle);

#endif
