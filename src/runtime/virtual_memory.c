/* SPDX-License-Identifier: Apache-2.0 */
/* Reserved addresses, physical memory, and mapping the one at the other.
 *
 * A reservation is divided into granules of PG_GRANULARITY bytes, and each knows the mapping that
 * covers it.  Mapped memory is in the map of memory_map.c as well, which joins neighbours.
 * Physical memory is counted: its handle holds one reference and each mapping another, so it lasts
 * until it is freed and mapped nowhere. */
#include <pthread.h>
#include <stdlib.h>

#include "core/checked.h"
#include "core/fork.h"
#include "core/handle.h"
#include "core/log.h"
#include "runtime/context.h"
#include "runtime/memory.h"
#include "runtime/strict.h"

struct physical {
  struct pg_object object;
  struct pg_device device;
  int device_id;
  size_t bytes;
  struct pg_physical *memory;
};

struct mapping {
  char *base;
  struct physical *memory; /* with a reference */
};

struct reservation {
  struct pg_reserved range; /* first, and in the map, which finds it by an address */
  struct reservation *next;
  size_t mapped; /* granules that are covered */
  struct mapping *granule[];
};

/* Guards the reservations; taken before the locks of the map and of handles. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct reservation *reservations;

PG_HOLD_ACROSS_FORK(lock, PG_FORK_OUTER);

static aclError check_size(const char *api, size_t size) {
  PG_CHECK_AS(api, size > 0, ACL_ERROR_INVALID_PARAM, "size is 0, at least %d bytes are required",
              PG_GRANULARITY);
  PG_CHECK_AS(api, size % PG_GRANULARITY == 0, ACL_ERROR_RT_PARAM_INVALID,
              "size is %zu, a multiple of %d is required", size, PG_GRANULARITY);
  return ACL_SUCCESS;
}

static aclError check_zero(const char *api, const char *name, uint64_t value) {
  PG_CHECK_AS(api, value == 0, ACL_ERROR_RT_PARAM_INVALID, "%s is %llu, it must be 0", name,
              (unsigned long long)value);
  return ACL_SUCCESS;
}

/* --- physical memory --- */

static aclError check_prop(const char *api, const aclrtPhysicalMemProp *prop,
                           struct pg_device *device) {
  if (prop == NULL) return pg_fail_null(api, ACL_ERROR_INVALID_PARAM, "prop");
  PG_CHECK_AS(api, prop->handleType == ACL_MEM_HANDLE_TYPE_NONE, ACL_ERROR_RT_PARAM_INVALID,
              "prop->handleType is %d, it must be 0: memory is not shared between processes",
              (int)prop->handleType);
  PG_CHECK_AS(api, prop->allocationType == ACL_MEM_ALLOCATION_TYPE_PINNED,
              ACL_ERROR_RT_PARAM_INVALID, "prop->allocationType is %d, it must be 0 (pinned)",
              (int)prop->allocationType);
  PG_CHECK_AS(api, (int)prop->memAttr >= ACL_DDR_MEM && prop->memAttr <= ACL_MEM_P2P_HUGE1G,
              ACL_ERROR_RT_PARAM_INVALID, "prop->memAttr is %d, allowed is 0 to %d",
              (int)prop->memAttr, ACL_MEM_P2P_HUGE1G);
  PG_CHECK_AS(api, prop->location.type == ACL_MEM_LOCATION_TYPE_DEVICE, ACL_ERROR_RT_PARAM_INVALID,
              "prop->location.type is %d, it must be 1 (device)", (int)prop->location.type);
  return pg_device_find_named(api, "prop->location.id", prop->location.id, device);
}

aclError aclrtMemGetAllocationGranularity(aclrtPhysicalMemProp *prop,
                                          aclrtMemGranularityOptions option, size_t *granularity) {
  struct pg_device device;
  PG_CHECK_PTR(granularity, ACL_ERROR_INVALID_PARAM);
  PG_TRY(check_prop(__func__, prop, &device));
  PG_CHECK(option == ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM ||
               option == ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED,
           ACL_ERROR_INVALID_PARAM, "option is %d, allowed is 0 or 1", (int)option);
  *granularity = PG_GRANULARITY;
  return ACL_SUCCESS;
}

static void destroy(struct pg_object *self) {
  struct physical *p = (struct physical *)self;
  if (p->memory != NULL) {
    p->device.backend->physical_release(p->device.ordinal, p->memory);
    pg_memory_count(p->device_id, p->bytes, false);
  }
  free(p);
}

/* NULL without memory of either kind. */
static aclrtDrvMemHandle make_physical(const struct pg_device *device, int device_id,
                                       size_t bytes) {
  struct physical *p = calloc(1, sizeof *p);
  if (p == NULL) return NULL;
  *p = (struct physical){.device = *device, .device_id = device_id, .bytes = bytes};
  atomic_init(&p->object.refs, 1);
  p->object.destroy = destroy;
  p->memory = device->backend->physical_make(device->ordinal, bytes);
  if (p->memory != NULL) pg_memory_count(device_id, bytes, true);
  aclrtDrvMemHandle handle =
      p->memory == NULL ? NULL : pg_handle_open(PG_PHYSICAL_MEMORY, &p->object);
  if (handle == NULL) pg_release(&p->object);
  return handle;
}

aclError aclrtMallocPhysical(aclrtDrvMemHandle *handle, size_t size,
                             const aclrtPhysicalMemProp *prop, uint64_t flags) {
  struct pg_context *context;
  struct pg_device device;
  PG_CHECK_PTR(handle, ACL_ERROR_INVALID_PARAM);
  PG_TRY(check_size(__func__, size));
  PG_TRY(check_prop(__func__, prop, &device));
  PG_TRY(check_zero(__func__, "flags", flags));
  PG_TRY(pg_context_current(__func__, &context));
  pg_release(&context->object);
  aclrtDrvMemHandle made = make_physical(&device, (int)prop->location.id, size);
  PG_CHECK(made != NULL, ACL_ERROR_RT_MEMORY_ALLOCATION, "no memory for %zu bytes on device %u",
           size, prop->location.id);
  *handle = made;
  return ACL_SUCCESS;
}

/* A program that is ending frees what aclFinalize has freed. */
static bool is_gone_handle(const char *api, const void *handle) {
  if (!pg_is_finalized()) return false;
  pg_log(ACL_INFO, "%s: %p is unknown, aclFinalize has released all memory", api, handle);
  return true;
}

aclError aclrtFreePhysical(aclrtDrvMemHandle handle) {
  PG_CHECK_PTR(handle, ACL_ERROR_INVALID_PARAM);
  struct pg_object *object = pg_handle_close(handle, PG_PHYSICAL_MEMORY);
  PG_CHECK(object != NULL || is_gone_handle(__func__, handle), ACL_ERROR_RT_INVALID_HANDLE,
           "handle is %s, physical memory is required", pg_handle_what(handle));
  pg_release(object);
  return ACL_SUCCESS;
}

/* --- reservations --- */

/* The one around the address, or NULL.  Lock held, as for what follows. */
static struct reservation *reservation_at(const void *address) {
  return (struct reservation *)pg_memory_reserved_at(address);
}

static struct mapping **granule_at(struct reservation *r, const char *address) {
  return &r->granule[(size_t)(address - r->range.base) / PG_GRANULARITY];
}

static void cover(struct reservation *r, const struct mapping *m, struct mapping *with) {
  const size_t count = m->memory->bytes / PG_GRANULARITY;
  struct mapping **granule = granule_at(r, m->base);
  for (size_t i = 0; i < count; i++) granule[i] = with;
  r->mapped = with != NULL ? r->mapped + count : r->mapped - count;
}

static bool unmap(const struct mapping *m) {
  const struct pg_device *device = &m->memory->device;
  return device->backend->unmap(device->ordinal, m->base, m->memory->bytes);
}

static void forget(struct reservation *r, struct mapping *m) {
  pg_memory_take_mapped(m->base);
  cover(r, m, NULL);
  pg_release(&m->memory->object);
  free(m);
}

static void give_back(struct reservation *r) {
  pg_memory_unreserve(&r->range);
  r->range.device.backend->unreserve(r->range.device.ordinal, r->range.base, r->range.bytes);
  free(r);
}

/* The current one.  Programs also ask before they set a device, and any device's addresses do. */
static aclError reserving_device(const char *api, struct pg_device *device, int *device_id) {
  struct pg_context *context;
  PG_TRY(pg_fork_check(api));
  *device_id = 0;
  if (!pg_is_live(pg_context_current_handle(), PG_CONTEXT)) return pg_device_find(api, 0, device);
  PG_TRY(pg_context_current(api, &context));
  *device = context->device;
  *device_id = context->device_id;
  pg_release(&context->object);
  return ACL_SUCCESS;
}

aclError aclrtReserveMemAddress(void **virPtr, size_t size, size_t alignment, void *expectPtr,
                                uint64_t flags) {
  struct pg_device device;
  int device_id;
  size_t bytes;
  PG_CHECK_PTR(virPtr, ACL_ERROR_INVALID_PARAM);
  PG_CHECK(size > 0, ACL_ERROR_INVALID_PARAM, "size is 0, at least one byte is required");
  PG_CHECK(pg_add_size(size, PG_GRANULARITY - 1, &bytes), ACL_ERROR_RT_PARAM_INVALID,
           "size is %zu, too large to be rounded up", size);
  bytes = bytes / PG_GRANULARITY * PG_GRANULARITY;
  PG_TRY(check_zero(__func__, "alignment", alignment));
  PG_CHECK(expectPtr == NULL, ACL_ERROR_RT_PARAM_INVALID,
           "expectPtr is %p, it must be NULL: addresses cannot be chosen", expectPtr);
  PG_CHECK(flags <= 1, ACL_ERROR_RT_PARAM_INVALID, "flags is %llu, allowed is 0 or 1",
           (unsigned long long)flags);
  PG_TRY(reserving_device(__func__, &device, &device_id));
  char *base = device.backend->reserve(device.ordinal, bytes);
  PG_CHECK(base != NULL, ACL_ERROR_RT_MEMORY_ALLOCATION,
           "there are no %zu addresses in a row to be had", bytes);
  struct reservation *r = calloc(1, sizeof *r + bytes / PG_GRANULARITY * sizeof r->granule[0]);
  if (r == NULL) {
    device.backend->unreserve(device.ordinal, base, bytes);
    return pg_fail(__func__, ACL_ERROR_BAD_ALLOC, "no memory for the reservation");
  }
  r->range =
      (struct pg_reserved){.base = base, .bytes = bytes, .device = device, .device_id = device_id};
  pthread_mutex_lock(&lock);
  pg_memory_reserve(&r->range);
  r->next = reservations;
  reservations = r;
  pthread_mutex_unlock(&lock);
  *virPtr = base;
  return ACL_SUCCESS;
}

static aclError release_locked(const char *api, const char *address) {
  struct reservation *r = reservation_at(address), **at = &reservations;
  if (r == NULL && pg_memory_is_gone(api, address)) return ACL_SUCCESS;
  PG_CHECK_AS(api, r != NULL && r->range.base == address, ACL_ERROR_RT_PARAM_INVALID,
              "virPtr is %s, it must be what aclrtReserveMemAddress gave",
              r == NULL ? "not in a reservation" : "inside a reservation");
  PG_CHECK_AS(api, r->mapped == 0, ACL_ERROR_RT_PARAM_INVALID,
              "virPtr still has %zu bytes of memory mapped, aclrtUnmapMem must come first",
              r->mapped * PG_GRANULARITY);
  while (*at != r) at = &(*at)->next;
  *at = r->next;
  give_back(r);
  return ACL_SUCCESS;
}

aclError aclrtReleaseMemAddress(void *virPtr) {
  PG_CHECK_PTR(virPtr, ACL_ERROR_INVALID_PARAM);
  pthread_mutex_lock(&lock);
  const aclError status = release_locked(__func__, virPtr);
  pthread_mutex_unlock(&lock);
  return status;
}

void pg_reservations_release_all(void) {
  pthread_mutex_lock(&lock);
  while (reservations != NULL) {
    struct reservation *r = reservations;
    reservations = r->next;
    for (size_t i = 0; i < r->range.bytes / PG_GRANULARITY; i++)
      if (r->granule[i] != NULL) {
        (void)unmap(r->granule[i]);
        forget(r, r->granule[i]);
      }
    give_back(r);
  }
  pthread_mutex_unlock(&lock);
}

/* --- mapping --- */

static aclError check_range(const char *api, struct reservation *r, const char *at,
                            const struct physical *p) {
  PG_CHECK_AS(api, r != NULL, ACL_ERROR_RT_PARAM_INVALID,
              "virPtr is not in a range of aclrtReserveMemAddress");
  const size_t before = (size_t)(at - r->range.base);
  PG_CHECK_AS(
      api, before % PG_GRANULARITY == 0, ACL_ERROR_RT_PARAM_INVALID,
      "virPtr is %zu bytes behind the begin of its reservation, a multiple of %d is required",
      before, PG_GRANULARITY);
  PG_CHECK_AS(api, p->bytes <= r->range.bytes - before, ACL_ERROR_RT_PARAM_INVALID,
              "size is %zu, the reservation ends %zu bytes behind virPtr", p->bytes,
              r->range.bytes - before);
  PG_CHECK_AS(api, p->device.backend == r->range.device.backend, ACL_ERROR_RT_PARAM_INVALID,
              "handle is memory of device %d, virPtr was reserved for device %d, another kind",
              p->device_id, r->range.device_id);
  for (size_t i = 0; i < p->bytes; i += PG_GRANULARITY)
    PG_CHECK_AS(api, *granule_at(r, at + i) == NULL, ACL_ERROR_RT_PARAM_INVALID,
                "memory is mapped already %zu bytes behind virPtr", i);
  return ACL_SUCCESS;
}

/* The mapping takes a reference of its own. */
static aclError map_locked(const char *api, char *at, struct physical *p) {
  struct reservation *r = reservation_at(at);
  PG_TRY(check_range(api, r, at, p));
  struct mapping *m = malloc(sizeof *m);
  PG_CHECK_AS(api, m != NULL, ACL_ERROR_BAD_ALLOC, "no memory for the mapping");
  *m = (struct mapping){.base = at, .memory = p};
  const struct pg_memory memory = {.kind = PG_MEMORY_DEVICE,
                                   .base = at,
                                   .bytes = p->bytes,
                                   .asked = p->bytes,
                                   .device = p->device,
                                   .device_id = p->device_id,
                                   .reservation = r->range.base};
  const bool mapped = p->device.backend->map(p->device.ordinal, at, p->memory);
  if (!mapped || pg_memory_add(&memory) != PG_MEMORY_ADDED) {
    if (mapped) (void)unmap(m);
    free(m);
    return pg_fail(api, ACL_ERROR_RT_MEMORY_ALLOCATION, "device %d could not map %zu bytes",
                   p->device_id, p->bytes);
  }
  pg_retain(&p->object);
  cover(r, m, m);
  return ACL_SUCCESS; /* NOLINT(clang-analyzer-unix.Malloc): the granules have the mapping */
}

aclError aclrtMapMem(void *virPtr, size_t size, size_t offset, aclrtDrvMemHandle handle,
                     uint64_t flags) {
  PG_CHECK_PTR(virPtr, ACL_ERROR_INVALID_PARAM);
  PG_CHECK_PTR(handle, ACL_ERROR_INVALID_PARAM);
  PG_TRY(check_size(__func__, size));
  PG_TRY(check_zero(__func__, "offset", offset));
  PG_TRY(check_zero(__func__, "flags", flags));
  struct physical *p = pg_acquire(handle, PG_PHYSICAL_MEMORY);
  PG_CHECK(p != NULL, ACL_ERROR_RT_INVALID_HANDLE, "handle is %s, physical memory is required",
           pg_handle_what(handle));
  aclError status;
  if (size != p->bytes) {
    status =
        pg_fail(__func__, ACL_ERROR_RT_PARAM_INVALID,
                "size is %zu, the memory has %zu bytes and is mapped as a whole", size, p->bytes);
  } else {
    pthread_mutex_lock(&lock);
    status = map_locked(__func__, virPtr, p);
    pthread_mutex_unlock(&lock);
  }
  pg_release(&p->object);
  return status;
}

static aclError unmap_locked(const char *api, const char *at) {
  struct reservation *r = reservation_at(at);
  struct mapping *m = r == NULL ? NULL : *granule_at(r, at);
  if (m == NULL && pg_memory_is_gone(api, at)) return ACL_SUCCESS;
  PG_CHECK_AS(api, m != NULL && m->base == at, ACL_ERROR_RT_PARAM_INVALID,
              "virPtr is %s, it must be where aclrtMapMem mapped memory",
              m != NULL   ? "inside mapped memory"
              : r != NULL ? "in a reservation, where nothing is mapped"
                          : "not in a reservation");
  if (pg_is_strict()) PG_TRY(pg_strict_check_free(api, "virPtr", at));
  PG_CHECK_AS(api, unmap(m), ACL_ERROR_RT_MEMORY_ALLOCATION, "device %d could not unmap the memory",
              r->range.device_id);
  forget(r, m);
  return ACL_SUCCESS;
}

aclError aclrtUnmapMem(void *virPtr) {
  PG_CHECK_PTR(virPtr, ACL_ERROR_INVALID_PARAM);
  pthread_mutex_lock(&lock);
  const aclError status = unmap_locked(__func__, virPtr);
  pthread_mutex_unlock(&lock);
  return status;
}
