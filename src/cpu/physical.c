/* SPDX-License-Identifier: Apache-2.0 */
/* Physical memory of the CPU device: anonymous shared pages, at an address of their own that nobody
 * uses.  Linux puts the same pages at a second address when a mapping is moved of which no byte is
 * taken along (mremap with an old size of 0).  So no file descriptor is held. */
#include "cpu/physical.h"

#include <stdlib.h>
#include <sys/mman.h>

struct pg_physical {
  void *pages;
  size_t bytes;
};

/* Reserved addresses have no pages: touching one is a fault. */
enum { NOTHING = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE };

void *pg_physical_reserve(int device, size_t bytes) {
  (void)device;
  void *addresses = mmap(NULL, bytes, PROT_NONE, NOTHING, -1, 0);
  return addresses == MAP_FAILED ? NULL : addresses;
}

void pg_physical_unreserve(int device, void *addresses, size_t bytes) {
  (void)device;
  (void)munmap(addresses, bytes);
}

struct pg_physical *pg_physical_make(int device, size_t bytes) {
  (void)device;
  struct pg_physical *memory = malloc(sizeof *memory);
  if (memory == NULL) return NULL;
  memory->bytes = bytes;
  memory->pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory->pages != MAP_FAILED) return memory;
  free(memory);
  return NULL;
}

void pg_physical_release(int device, struct pg_physical *memory) {
  (void)device;
  (void)munmap(memory->pages, memory->bytes);
  free(memory);
}

bool pg_physical_map(int device, void *at, struct pg_physical *memory) {
  (void)device;
  const int flags = MREMAP_MAYMOVE | MREMAP_FIXED;
  if (mremap(memory->pages, 0, memory->bytes, flags, at) == MAP_FAILED) return false;
  (void)madvise(at, memory->bytes, MADV_HUGEPAGE); /* best effort */
  return true;
}

bool pg_physical_unmap(int device, void *at, size_t bytes) {
  (void)device;
  return mmap(at, bytes, PROT_NONE, NOTHING | MAP_FIXED, -1, 0) != MAP_FAILED;
}
