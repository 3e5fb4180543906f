/* SPDX-License-Identifier: Apache-2.0 */
/* The map of what is allocated: an ordered tree of disjoint address ranges, so that wrong frees,
 * overruns and pointer queries get an answer instead of a crash. */
#include <pthread.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "core/fork.h"
#include "runtime/memory.h"
#include "runtime/padding.h"
#include "runtime/strict.h"

/* Guards the tree, the list and the totals. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Held while a range is registered or unregistered with its backend and entered here or taken out:
 * the map and the backend never disagree about it.  Taken before `lock`. */
static pthread_mutex_t registering = PTHREAD_MUTEX_INITIALIZER;

static void *tree; /* of struct pg_memory, by address */
static struct pg_reserved *reserved;
static uint64_t used_bytes[PG_DEVICES_MAX], peak_bytes[PG_DEVICES_MAX];

/* Programs call with the same few addresses again and again, so the latest that were found in the
 * tree are kept beside it.  An address has one place here.  Guarded by `lock` as well. */
enum { RECENT_BITS = 4 };
static struct {
  const void *address;
  struct pg_memory *memory; /* NULL: none */
} recent[1 << RECENT_BITS];

/* Both are held across a fork (core/fork.h). */
static void fork_lock(void) {
  (void)pthread_mutex_lock(&registering);
  (void)pthread_mutex_lock(&lock);
}

static void fork_unlock(void) {
  (void)pthread_mutex_unlock(&lock);
  (void)pthread_mutex_unlock(&registering);
}

__attribute__((constructor(PG_FORK_INNER))) static void hold_across_fork(void) {
  (void)pthread_atfork(fork_lock, fork_unlock, fork_unlock);
}

/* Ranges that overlap count as equal: a one-byte key finds the range around it. */
static int compare(const void *a, const void *b) {
  const struct pg_memory *x = a, *y = b;
  if (x->base + x->bytes <= y->base) return -1;
  return y->base + y->bytes <= x->base ? 1 : 0;
}

static struct pg_memory *lookup(const struct pg_memory *key) {
  struct pg_memory **node = tfind(key, &tree, compare);
  return node == NULL ? NULL : *node;
}

/* Addresses differ in some bits in the middle; the product has those of all of them on top. */
static size_t recent_place(const void *address) {
  const uint64_t product = (uint64_t)(uintptr_t)address * UINT64_C(0x9e3779b97f4a7c15);
  return (size_t)(product >> (64 - RECENT_BITS));
}

static struct pg_memory *lookup_address(const void *address) {
  const size_t at = recent_place(address);
  if (recent[at].address == address && recent[at].memory != NULL) return recent[at].memory;
  struct pg_memory *memory = lookup(&(struct pg_memory){.base = address, .bytes = 1});
  if (memory != NULL) {
    recent[at].address = address;
    recent[at].memory = memory;
  }
  return memory;
}

struct pg_memory pg_memory_find(const void *address) {
  struct pg_memory found = {.kind = PG_MEMORY_UNKNOWN};
  pthread_mutex_lock(&lock);
  const struct pg_memory *memory = lookup_address(address);
  if (memory != NULL) found = *memory;
  pthread_mutex_unlock(&lock);
  return found;
}

/* From an address in the range to its end.  In strict mode the padding is not part of it. */
static struct pg_room room_from(const struct pg_memory *m, const char *address) {
  const char *end = m->base + (pg_is_strict() ? m->asked : m->bytes);
  if (m->reservation != NULL) end = m->joined_end;
  return (struct pg_room){.kind = m->kind,
                          .device_id = m->device_id,
                          .backend = m->device.backend,
                          .bytes = address < end ? (size_t)(end - address) : 0};
}

/* Lock held.  Programs have few of them. */
static struct pg_reserved *reserved_at(const char *address) {
  struct pg_reserved *r = reserved;
  while (r != NULL && (address < r->base || address >= r->base + r->bytes)) r = r->next;
  return r;
}

struct pg_reserved *pg_memory_reserved_at(const void *address) {
  pthread_mutex_lock(&lock);
  struct pg_reserved *found = reserved_at(address);
  pthread_mutex_unlock(&lock);
  return found;
}

void pg_memory_reserve(struct pg_reserved *addresses) {
  pthread_mutex_lock(&lock);
  addresses->next = reserved;
  reserved = addresses;
  pthread_mutex_unlock(&lock);
}

void pg_memory_unreserve(struct pg_reserved *addresses) {
  pthread_mutex_lock(&lock);
  struct pg_reserved **at = &reserved;
  while (*at != addresses) at = &(*at)->next;
  *at = addresses->next;
  pthread_mutex_unlock(&lock);
}

/* Of addresses at which the map has nothing. */
static struct pg_room unknown_room(const char *address) {
  const struct pg_reserved *r = address == NULL ? NULL : reserved_at(address);
  if (r == NULL) return (struct pg_room){.kind = PG_MEMORY_UNKNOWN, .bytes = SIZE_MAX};
  return (struct pg_room){
      .kind = PG_MEMORY_DEVICE, .device_id = r->device_id, .backend = r->device.backend};
}

void pg_memory_rooms(int count, const void *const *addresses, struct pg_room *rooms) {
  pthread_mutex_lock(&lock);
  for (int i = 0; i < count; i++) {
    const struct pg_memory *m = addresses[i] == NULL ? NULL : lookup_address(addresses[i]);
    rooms[i] = m == NULL ? unknown_room(addresses[i]) : room_from(m, addresses[i]);
  }
  pthread_mutex_unlock(&lock);
}

bool pg_memory_holds(const void *address, size_t bytes, size_t *room) {
  struct pg_room found;
  pg_memory_rooms(1, &address, &found);
  *room = found.bytes;
  return bytes <= found.bytes;
}

/* What is freed behind an aclFinalize in another thread is not counted any more.  Lock held. */
static void count_bytes(int device, size_t bytes, bool allocated) {
  uint64_t *used = &used_bytes[device], *peak = &peak_bytes[device];
  *used = allocated ? *used + bytes : *used - (bytes < *used ? bytes : *used);
  if (*used > *peak) *peak = *used;
}

static bool is_counted(const struct pg_memory *m) {
  return m->kind == PG_MEMORY_DEVICE && m->reservation == NULL;
}

/* The range around an address that is mapped in the same reservation as m, and the same device's.
 */
static struct pg_memory *mapped_beside(const struct pg_memory *m, const char *address) {
  struct pg_memory *found = lookup(&(struct pg_memory){.base = address, .bytes = 1});
  const bool beside = found != NULL && found->reservation == m->reservation;
  return beside && found->device_id == m->device_id ? found : NULL;
}

/* Sets where memory ends without a gap, in m and in all that lies right before it.  Lock held. */
static void join(struct pg_memory *m, const char *end) {
  for (; m != NULL; m = mapped_beside(m, m->base - 1)) m->joined_end = end;
}

/* Lock held. */
static void forget(struct pg_memory *memory) {
  if (memory->reservation != NULL) join(mapped_beside(memory, memory->base - 1), memory->base);
  (void)tdelete(memory, &tree, compare);
  for (size_t i = 0; i < sizeof recent / sizeof recent[0]; i++)
    if (recent[i].memory == memory) recent[i].memory = NULL;
  if (is_counted(memory)) count_bytes(memory->device_id, memory->bytes, false);
  free(memory);
}

struct pg_memory pg_memory_overlapped(const struct pg_memory *range) {
  struct pg_memory found = {.kind = PG_MEMORY_UNKNOWN};
  pthread_mutex_lock(&lock);
  const struct pg_memory *memory = lookup(range);
  if (memory != NULL) found = *memory;
  pthread_mutex_unlock(&lock);
  return found;
}

static enum pg_memory_added enter(struct pg_memory *memory) {
  enum pg_memory_added result = PG_MEMORY_NONE_LEFT;
  pthread_mutex_lock(&lock);
  struct pg_memory **node = tsearch(memory, &tree, compare);
  if (node != NULL) result = *node == memory ? PG_MEMORY_ADDED : PG_MEMORY_OVERLAPS;
  if (result == PG_MEMORY_ADDED && is_counted(memory))
    count_bytes(memory->device_id, memory->bytes, true);
  if (result == PG_MEMORY_ADDED && memory->reservation != NULL) {
    const struct pg_memory *next = mapped_beside(memory, memory->base + memory->bytes);
    join(memory, next != NULL ? next->joined_end : memory->base + memory->bytes);
  }
  pthread_mutex_unlock(&lock);
  return result;
}

/* New memory cannot overlap living memory: a registered range in its place was freed without
 * being unregistered, and is forgotten. */
static bool forget_stale(const struct pg_memory *in_place_of) {
  struct pg_memory stale = {.kind = PG_MEMORY_UNKNOWN};
  pthread_mutex_lock(&registering);
  pthread_mutex_lock(&lock);
  struct pg_memory *found = lookup(in_place_of);
  if (found != NULL && found->kind == PG_MEMORY_REGISTERED) {
    stale = *found;
    forget(found);
  }
  pthread_mutex_unlock(&lock);
  pg_memory_give_back(&stale);
  pthread_mutex_unlock(&registering);
  return stale.kind == PG_MEMORY_REGISTERED;
}

enum pg_memory_added pg_memory_add(const struct pg_memory *value) {
  struct pg_memory *memory = malloc(sizeof *memory);
  if (memory == NULL) return PG_MEMORY_NONE_LEFT;
  *memory = *value;
  enum pg_memory_added result;
  do result = enter(memory);
  while (result == PG_MEMORY_OVERLAPS && forget_stale(value));
  if (result != PG_MEMORY_ADDED) free(memory);
  return result;
}

/* Lock `registering` held. */
static enum pg_memory_added add_registered(struct pg_memory *memory, bool read_only,
                                           aclError *why) {
  const struct pg_device *device = &memory->device;
  void *base = (void *)(uintptr_t)memory->base;
  if (pg_memory_overlapped(memory).kind != PG_MEMORY_UNKNOWN) return PG_MEMORY_OVERLAPS;
  *why = device->backend->host_register(device->ordinal, base, memory->bytes, read_only);
  if (*why != ACL_SUCCESS) return PG_MEMORY_OUT_OF_REACH;
  const enum pg_memory_added result = enter(memory);
  if (result != PG_MEMORY_ADDED) device->backend->host_unregister(device->ordinal, base);
  return result;
}

enum pg_memory_added pg_memory_register(const struct pg_memory *value, bool read_only,
                                        aclError *why) {
  struct pg_memory *memory = malloc(sizeof *memory);
  if (memory == NULL) return PG_MEMORY_NONE_LEFT;
  *memory = *value;
  pthread_mutex_lock(&registering);
  const enum pg_memory_added result = add_registered(memory, read_only, why);
  pthread_mutex_unlock(&registering);
  if (result != PG_MEMORY_ADDED) free(memory);
  return result;
}

static struct pg_memory take(const void *base, enum pg_memory_kind kind, bool mapped) {
  struct pg_memory taken = {.kind = PG_MEMORY_UNKNOWN};
  pthread_mutex_lock(&lock);
  struct pg_memory *memory = lookup_address(base);
  if (memory != NULL && memory->base == base && memory->kind == kind &&
      (memory->reservation != NULL) == mapped) {
    taken = *memory;
    forget(memory);
  }
  pthread_mutex_unlock(&lock);
  return taken;
}

struct pg_memory pg_memory_take(const void *base, enum pg_memory_kind kind) {
  return take(base, kind, false);
}

void pg_memory_take_mapped(const void *base) { (void)take(base, PG_MEMORY_DEVICE, true); }

bool pg_memory_unregister(const void *base) {
  pthread_mutex_lock(&registering);
  const struct pg_memory memory = pg_memory_take(base, PG_MEMORY_REGISTERED);
  pg_memory_give_back(&memory);
  pthread_mutex_unlock(&registering);
  return memory.kind == PG_MEMORY_REGISTERED;
}

void pg_memory_give_back(const struct pg_memory *m) {
  const struct pg_backend *backend = m->device.backend;
  if (m->asked < m->bytes && pg_memory_on_host(m))
    pg_padding_allow(m->base + m->asked, m->bytes - m->asked);
  if (m->reservation != NULL) return; /* virtual_memory.c has it */
  if (m->kind == PG_MEMORY_DEVICE) backend->free(m->device.ordinal, (void *)(uintptr_t)m->base);
  if (m->kind == PG_MEMORY_HOST) backend->host_free(m->device.ordinal, (void *)(uintptr_t)m->base);
  if (m->kind == PG_MEMORY_REGISTERED)
    backend->host_unregister(m->device.ordinal, (void *)(uintptr_t)m->base);
}

static void give_back_node(void *node) {
  pg_memory_give_back(node);
  free(node);
}

/* The whole tree at once: threads that keep allocating must not keep this busy for ever. */
void pg_memory_release_all(void) {
  pthread_mutex_lock(&registering);
  pthread_mutex_lock(&lock);
  void *all = tree;
  tree = NULL;
  memset(recent, 0, sizeof recent);
  memset(used_bytes, 0, sizeof used_bytes);
  pthread_mutex_unlock(&lock);
  tdestroy(all, give_back_node);
  pthread_mutex_unlock(&registering);
}

void pg_memory_count(int device, size_t bytes, bool allocated) {
  pthread_mutex_lock(&lock);
  count_bytes(device, bytes, allocated);
  pthread_mutex_unlock(&lock);
}

void pg_memory_usage(int device, uint64_t *used, uint64_t *peak) {
  pthread_mutex_lock(&lock);
  *used = used_bytes[device];
  *peak = peak_bytes[device];
  pthread_mutex_unlock(&lock);
}
