/* SPDX-License-Identifier: Apache-2.0 */
/* Strict mode: POOLGRAD_STRICT=1 refuses what works here and would not work on a card.
 *
 * The CPU device reaches all of the process's memory and is often done before anybody looks, so it
 * forgives host memory as a tensor's data, a copy in the wrong direction, a buffer whose end lies
 * in the padding, and memory that is freed while work may still use it.
 *
 * For the last of these strict.c keeps three things:
 *
 *   use    a block that work of a stream touches, with the ticket of that work
 *   point  a stream and a ticket: all work that the stream had been given so far
 *   link   a stream, from some ticket on, runs behind a point of another one (it waits for an
 * event)
 *
 * When the program waits for a point, the uses before it go, and those that links lead to.  A use
 * that is left when its block is freed was never waited for.  Whether the work happens to be done
 * already is not asked: the same program gets the same answer in every run. */
#ifndef PG_STRICT_H_
#define PG_STRICT_H_

#include <stdatomic.h>

#include "runtime/device.h"

struct pg_stream;

extern atomic_bool pg_strict_on;

static inline bool pg_is_strict(void) {
  return atomic_load_explicit(&pg_strict_on, memory_order_relaxed);
}

/* Reads POOLGRAD_STRICT.  ACL_ERROR_INVALID_PARAM with a sentence for anything but 0 and 1. */
aclError pg_strict_configure(const char *api);

/* --- where memory lies; to be called in strict mode only --- */

/* May a kernel on this device have the address as the data of `name`?  It must lie in memory of the
 * device, or of the host if that was registered: what aclrtHostRegister returns is a device
 * address. 161002. */
aclError pg_strict_check_data(const char *api, const char *name, const void *data, int device_id);

/* Does the kind agree with where the two lie?  Registered memory counts as both.  107000. */
aclError pg_strict_check_kind(const char *api, aclrtMemcpyKind kind, const void *dst,
                              const void *src);

/* Does the address lie in memory that the runtime knows?  107000. */
aclError pg_strict_check_known(const char *api, const char *name, const void *address);

/* --- work that was not waited for --- */

/* Ticket 0: nothing. */
struct pg_strict_point {
  uint64_t place, ticket;
};

/* Notes that work queued by `api` touches the blocks around these addresses.  In strict mode only.
 */
void pg_strict_use(const char *api, const struct pg_stream *stream, int count,
                   void *const *addresses);

/* The point behind all work that the stream has been given. */
struct pg_strict_point pg_strict_point_of(const struct pg_stream *stream);
static inline struct pg_strict_point pg_strict_here(const struct pg_stream *stream) {
  return pg_is_strict() ? pg_strict_point_of(stream) : (struct pg_strict_point){0, 0};
}

/* The program has waited for the point. */
void pg_strict_take(struct pg_strict_point point);
static inline void pg_strict_waited(struct pg_strict_point point) {
  if (point.ticket != 0) pg_strict_take(point);
}

/* The stream's work from now on runs behind the point. */
void pg_strict_link(const struct pg_stream *stream, struct pg_strict_point point);
static inline void pg_strict_follow(const struct pg_stream *stream, struct pg_strict_point point) {
  if (point.ticket != 0) pg_strict_link(stream, point);
}

/* Waits of this stream were given up, or ran out of time: it no longer runs behind anything. */
void pg_strict_unlink(int stream_id);
static inline void pg_strict_broken(int stream_id) {
  if (pg_is_strict()) pg_strict_unlink(stream_id);
}

/* The same through a word that one stream writes and another waits for, in either order.  In strict
 * mode only. */
void pg_strict_word_written(const struct pg_stream *stream, const void *word);
void pg_strict_word_awaited(const struct pg_stream *stream, const void *word);

/* May the block that begins here be given back?  207002 when a use of it is left. */
aclError pg_strict_check_free(const char *api, const char *name, const void *base);

/* Everything that was noted. */
void pg_strict_forget(void);

#endif
