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
  bool huge;
  struct pg_device device;
  int device_id;
};

/* What is known of an address; PG_MEMORY_UNKNOWN for ordinary host memory. */
struct pg_memory pg_memory_find(const void *address);

/* Is [address, address + bytes) inside what is known to be there?  Unknown memory: yes. */
bool pg_memory_holds(const void *address, size_t bytes, size_t *room);

/* Releases all that is allocated; for aclFinalize. */
void pg_memory_release_all(void);

#endif
