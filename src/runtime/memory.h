/* SPDX-License-Identifier: Apache-2.0 */
/* Which memory the runtime knows, by address. */
#ifndef PG_MEMORY_H_
#define PG_MEMORY_H_

#include "runtime/device.h"

enum pg_memory_kind { PG_MEMORY_UNKNOWN, PG_MEMORY_DEVICE, PG_MEMORY_HOST, PG_MEMORY_REGISTERED };

struct pg_memory {
  enum pg_memory_kind kind;
  const char *base;
  size_t bytes; /* usable, padding included */
  size_t asked; /* of them, by the program: the padding lies behind */
  bool huge;
  struct pg_device device;
  int device_id;
  /* Of device memory that is mapped at reserved addresses: where these begin, and where the memory
   * ends that is mapped from here on without a gap.  NULL: allocated in one piece. */
  const char *reservation, *joined_end;
};

/* What is known of an address; PG_MEMORY_UNKNOWN for ordinary host memory. */
struct pg_memory pg_memory_find(const void *address);

/* May the host touch it? */
static inline bool pg_memory_on_host(const struct pg_memory *m) {
  return m->kind != PG_MEMORY_DEVICE || m->device.backend->on_host;
}

/* What lies from an address to the end of its range, or of the last of the mapped ranges that
 * follow each other.  Unknown memory: SIZE_MAX bytes. */
struct pg_room {
  enum pg_memory_kind kind;
  int device_id;                    /* whose it is; of known memory only, as is the next one */
  const struct pg_backend *backend; /* of that device */
  size_t bytes;                     /* padding included but in strict mode */
};
void pg_memory_rooms(int count, const void *const *addresses, struct pg_room *rooms);

/* Reserved addresses, at which there is no room where nothing is mapped. */
struct pg_reserved {
  struct pg_reserved *next; /* the map's */
  char *base;
  size_t bytes;
  struct pg_device device;
  int device_id;
};
void pg_memory_reserve(struct pg_reserved *addresses);
void pg_memory_unreserve(struct pg_reserved *addresses);

/* The reserved addresses around this one, or NULL. */
struct pg_reserved *pg_memory_reserved_at(const void *address);

/* Is [address, address + bytes) inside what is known to be there?  Unknown memory: yes. */
bool pg_memory_holds(const void *address, size_t bytes, size_t *room);

/* Some memory that the map has within a range, if any. */
struct pg_memory pg_memory_overlapped(const struct pg_memory *range);

/* Enters allocated memory into the map.  It must be complete: from now on another thread may free
 * it. */
enum pg_memory_added {
  PG_MEMORY_ADDED,
  PG_MEMORY_OVERLAPS,
  PG_MEMORY_NONE_LEFT,
  PG_MEMORY_OUT_OF_REACH
};
enum pg_memory_added pg_memory_add(const struct pg_memory *memory);

/* Registers the program's memory with its backend, then enters it.  Out of reach: the backend
 * refused with *why. */
enum pg_memory_added pg_memory_register(const struct pg_memory *memory, bool read_only,
                                        aclError *why);

/* Undoes it; false when no registered range starts there. */
bool pg_memory_unregister(const void *base);

/* Takes the range that starts at base out of the map if it is of this kind, and not mapped. */
struct pg_memory pg_memory_take(const void *base, enum pg_memory_kind kind);

/* Takes a mapped range out. */
void pg_memory_take_mapped(const void *base);

/* Frees or unregisters what was taken out of the map. */
void pg_memory_give_back(const struct pg_memory *memory);

/* Releases all that is allocated; for aclFinalize. */
void pg_memory_release_all(void);

/* Bytes of device memory allocated now and at most.  Memory that is mapped is counted by those who
 * allocate it. */
void pg_memory_usage(int device, uint64_t *used, uint64_t *peak);
void pg_memory_count(int device, size_t bytes, bool allocated);

/* Is the address unknown, and may it be one that aclFinalize has freed?  Says so in the log. */
bool pg_memory_is_gone(const char *api, const void *address);

/* virtual_memory.c: unmaps all, and releases all reservations; for aclFinalize. */
void pg_reservations_release_all(void);

#endif
