/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation on devices and hosts, and what can be asked about memory. */
#include "runtime/memory.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/checked.h"
#include "core/clock.h"
#include "core/log.h"
#include "runtime/context.h"
#include "runtime/padding.h"
#include "runtime/strict.h"

enum {
  ROUNDING = 32,
  PADDING = 32,
  HUGE_PAGE_BYTES = 2 << 20,
  POLICY_MASK = 0xff /* above it are hints: bandwidth, access */
};

struct request {
  size_t bytes;
  size_t padding;
  aclrtMemMallocPolicy policy;
  enum pg_memory_kind kind;
};

static bool is_huge1g(aclrtMemMallocPolicy policy) {
  const int page = policy & POLICY_MASK;
  return page == ACL_MEM_MALLOC_HUGE1G_ONLY || page == ACL_MEM_MALLOC_HUGE1G_ONLY_P2P;
}

static bool is_huge(aclrtMemMallocPolicy policy) {
  const int page = policy & POLICY_MASK;
  return page != ACL_MEM_MALLOC_NORMAL_ONLY && page != ACL_MEM_MALLOC_NORMAL_ONLY_P2P;
}

static void *backend_alloc(const struct pg_device *device, const struct request *r, size_t bytes) {
  const struct pg_backend *backend = device->backend;
  if (r->kind == PG_MEMORY_HOST) return backend->host_alloc(device->ordinal, bytes);
  return backend->alloc(device->ordinal, bytes, is_huge(r->policy));
}

/* The padding behind the caller's bytes starts as zeros: vector code may read it.  To a memory
 * checker it is out of bounds. */
static bool clear_padding(const struct pg_memory *m) {
  const struct pg_fill zero = {.dst = (char *)(uintptr_t)m->base + m->asked,
                               .count = m->bytes - m->asked,
                               .element_bytes = 1};
  const bool cleared =
      zero.count == 0 || m->device.backend->fill(m->device.ordinal, &zero) == ACL_SUCCESS;
  if (pg_memory_on_host(m)) pg_padding_forbid(zero.dst, zero.count);
  return cleared;
}

static aclError allocate_on(const char *api, struct pg_context *context, const struct request *r,
                            void **out) {
  const size_t usable = (r->bytes + ROUNDING - 1) / ROUNDING * ROUNDING + r->padding;
  struct pg_memory memory = {
      .kind = r->kind,
      .bytes = usable,
      .asked = r->bytes,
      .huge = r->kind == PG_MEMORY_DEVICE && is_huge(r->policy) && usable >= HUGE_PAGE_BYTES,
      .device = context->device,
      .device_id = context->device_id};
  void *base = backend_alloc(&context->device, r, usable);
  memory.base = base;
  /* Once it is in the map, aclFinalize in another thread may free it. */
  if (base == NULL || !clear_padding(&memory) || pg_memory_add(&memory) != PG_MEMORY_ADDED) {
    if (base != NULL) pg_memory_give_back(&memory);
    return pg_fail(api, ACL_ERROR_RT_MEMORY_ALLOCATION, "no memory for %zu bytes on device %d",
                   r->bytes, context->device_id);
  }
  *out = base;
  return ACL_SUCCESS;
}

static aclError allocate(const char *api, void **out, const char *name, const struct request *r) {
  struct pg_context *context;
  size_t padded;
  if (out == NULL) return pg_fail_null(api, ACL_ERROR_INVALID_PARAM, name);
  if (r->bytes == 0)
    return pg_fail(api, ACL_ERROR_INVALID_PARAM, "size is 0, at least one byte is required");
  if (!pg_add_size(r->bytes, ROUNDING + PADDING, &padded))
    return pg_fail(api, ACL_ERROR_INVALID_PARAM, "size is %zu, too large to be padded", r->bytes);
  PG_TRY(pg_context_current(api, &context));
  const aclError status = allocate_on(api, context, r, out);
  pg_release(&context->object);
  return status;
}

static struct request device_request(size_t size, aclrtMemMallocPolicy policy) {
  return (struct request){.bytes = size,
                          .padding = is_huge1g(policy) ? 0 : PADDING,
                          .policy = policy,
                          .kind = PG_MEMORY_DEVICE};
}

static aclError check_config(const char *api, const aclrtMallocConfig *config) {
  if (config == NULL || config->numAttrs == 0 || config->attrs != NULL) return ACL_SUCCESS;
  return pg_fail(api, ACL_ERROR_INVALID_PARAM, "cfg->attrs is NULL while cfg->numAttrs is %zu",
                 config->numAttrs);
}

aclError aclrtMalloc(void **devPtr, size_t size, aclrtMemMallocPolicy policy) {
  const struct request r = device_request(size, policy);
  return allocate(__func__, devPtr, "devPtr", &r);
}

aclError aclrtMallocAlign32(void **devPtr, size_t size, aclrtMemMallocPolicy policy) {
  struct request r = device_request(size, policy);
  r.padding = 0;
  return allocate(__func__, devPtr, "devPtr", &r);
}

aclError aclrtMallocCached(void **devPtr, size_t size, aclrtMemMallocPolicy policy) {
  const struct request r = device_request(size, policy);
  return allocate(__func__, devPtr, "devPtr", &r);
}

aclError aclrtMallocWithCfg(void **devPtr, size_t size, aclrtMemMallocPolicy policy,
                            aclrtMallocConfig *cfg) {
  const struct request r = device_request(size, policy);
  PG_TRY(check_config(__func__, cfg));
  return allocate(__func__, devPtr, "devPtr", &r);
}

aclError aclrtMallocHost(void **hostPtr, size_t size) {
  const struct request r = {.bytes = size, .kind = PG_MEMORY_HOST};
  return allocate(__func__, hostPtr, "hostPtr", &r);
}

aclError aclrtMallocHostWithCfg(void **ptr, uint64_t size, aclrtMallocConfig *cfg) {
  const struct request r = {.bytes = size, .kind = PG_MEMORY_HOST};
  PG_TRY(check_config(__func__, cfg));
  return allocate(__func__, ptr, "ptr", &r);
}

static const char *origin(const struct pg_memory *m) {
  static const char *const words[] = {"unknown to the runtime", "from aclrtMalloc",
                                      "from aclrtMallocHost", "from aclrtHostRegister"};
  return m->reservation != NULL ? "from aclrtMapMem" : words[m->kind];
}

/* What a wrong address is, for sentences. */
static const char *what(const void *address) {
  static _Thread_local char text[64];
  const struct pg_memory found = pg_memory_find(address);
  const size_t inside = found.base == NULL ? 0 : (size_t)((const char *)address - found.base);
  if (inside == 0) return origin(&found);
  snprintf(text, sizeof text, "%zu bytes inside memory %s", inside, origin(&found));
  return text;
}

/* A program that is ending often frees what aclFinalize has freed, from destructors that take a
 * failure for a reason to abort. */
bool pg_memory_is_gone(const char *api, const void *address) {
  if (!pg_is_finalized() || pg_memory_find(address).kind != PG_MEMORY_UNKNOWN) return false;
  pg_log(ACL_INFO, "%s: %p is unknown, aclFinalize has released all memory", api, address);
  return true;
}

static aclError release(const char *api, void *address, enum pg_memory_kind kind) {
  const bool device = kind == PG_MEMORY_DEVICE;
  const char *name = device ? "devPtr" : "hostPtr";
  if (address == NULL) return pg_fail_null(api, ACL_ERROR_INVALID_PARAM, name);
  if (pg_is_strict()) PG_TRY(pg_strict_check_free(api, name, address));
  const struct pg_memory memory = pg_memory_take(address, kind);
  if (memory.kind == PG_MEMORY_UNKNOWN && pg_memory_is_gone(api, address)) return ACL_SUCCESS;
  if (memory.kind == PG_MEMORY_UNKNOWN)
    return pg_fail(api, ACL_ERROR_RT_PARAM_INVALID, "%s is %s, it must come from %s", name,
                   what(address), device ? "aclrtMalloc" : "aclrtMallocHost");
  pg_memory_give_back(&memory);
  return ACL_SUCCESS;
}

aclError aclrtFree(void *devPtr) { return release(__func__, devPtr, PG_MEMORY_DEVICE); }

aclError aclrtFreeHost(void *hostPtr) { return release(__func__, hostPtr, PG_MEMORY_HOST); }

/* Frees also when some stream failed: the memory is the caller's to give back either way. */
static aclError release_after_sync(const char *api, void *address, enum pg_memory_kind kind) {
  struct pg_context *context;
  if (address == NULL || pg_memory_is_gone(api, address)) return release(api, address, kind);
  PG_TRY(pg_context_current(api, &context));
  pg_release(&context->object);
  const aclError sync = pg_device_synchronize(api, PG_FOREVER);
  PG_TRY(release(api, address, kind));
  return sync;
}

aclError aclrtFreeWithDevSync(void *devPtr) {
  return release_after_sync(__func__, devPtr, PG_MEMORY_DEVICE);
}

aclError aclrtFreeHostWithDevSync(void *hostPtr) {
  return release_after_sync(__func__, hostPtr, PG_MEMORY_HOST);
}

/* Names the memory in the way, and where it lies. */
static aclError refuse_overlap(const char *api, const struct pg_memory *range) {
  const struct pg_memory other = pg_memory_overlapped(range);
  const bool later = other.base > range->base;
  if (other.kind == PG_MEMORY_UNKNOWN)
    return pg_fail(api, ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
                   "the range overlapped memory that another thread has freed by now");
  if (other.base == range->base)
    return pg_fail(api, ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
                   "the range overlaps memory %s that begins at ptr too, %zu bytes", origin(&other),
                   other.bytes);
  return pg_fail(api, ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
                 "the range overlaps memory %s that begins %zu bytes %s ptr, %zu bytes",
                 origin(&other),
                 (size_t)(later ? other.base - range->base : range->base - other.base),
                 later ? "behind" : "before", other.bytes);
}

static aclError host_register(const char *api, void *ptr, uint64_t size, bool read_only) {
  struct pg_context *context;
  aclError why = ACL_SUCCESS;
  if (ptr == NULL) return pg_fail_null(api, ACL_ERROR_INVALID_PARAM, "ptr");
  if (size == 0)
    return pg_fail(api, ACL_ERROR_INVALID_PARAM, "size is 0, at least one byte is required");
  if ((uintptr_t)ptr + size < (uintptr_t)ptr)
    return pg_fail(api, ACL_ERROR_INVALID_PARAM, "size is %llu, the range ends beyond all memory",
                   (unsigned long long)size);
  PG_TRY(pg_context_current(api, &context));
  const struct pg_memory memory = {.kind = PG_MEMORY_REGISTERED,
                                   .base = ptr,
                                   .bytes = size,
                                   .asked = size,
                                   .device = context->device,
                                   .device_id = context->device_id};
  pg_release(&context->object);
  switch (pg_memory_register(&memory, read_only, &why)) {
    case PG_MEMORY_ADDED:
      return ACL_SUCCESS;
    case PG_MEMORY_OVERLAPS:
      return refuse_overlap(api, &memory);
    case PG_MEMORY_OUT_OF_REACH:
      return pg_fail(api, why, "device %d cannot reach the range", memory.device_id);
    default:
      return pg_fail(api, ACL_ERROR_BAD_ALLOC, "no memory for the registration");
  }
}

aclError aclrtHostRegister(void *ptr, uint64_t size, aclrtHostRegisterType type, void **devPtr) {
  PG_CHECK_PTR(ptr, ACL_ERROR_INVALID_PARAM);
  PG_CHECK_PTR(devPtr, ACL_ERROR_INVALID_PARAM);
  PG_CHECK(type == ACL_HOST_REGISTER_MAPPED || type == ACL_HOST_REGISTER_IOMEMORY ||
               type == ACL_HOST_REGISTER_READONLY,
           ACL_ERROR_INVALID_PARAM, "type is %d, allowed is 0, 4 or 8", (int)type);
  PG_TRY(host_register(__func__, ptr, size, type == ACL_HOST_REGISTER_READONLY));
  *devPtr = ptr;
  return ACL_SUCCESS;
}

aclError aclrtHostRegisterV2(void *ptr, uint64_t size, uint32_t flag) {
  const uint32_t known = (uint32_t)(ACL_HOST_REG_MAPPED | ACL_HOST_REG_IOMEMORY |
                                    ACL_HOST_REG_READONLY | ACL_HOST_REG_PINNED);
  PG_CHECK((flag & ~known) == 0, ACL_ERROR_INVALID_PARAM,
           "flag is 0x%x, allowed are the ACL_HOST_REG_* bits", flag);
  return host_register(__func__, ptr, size, (flag & (uint32_t)ACL_HOST_REG_READONLY) != 0);
}

aclError aclrtHostUnregister(void *ptr) {
  PG_CHECK_PTR(ptr, ACL_ERROR_INVALID_PARAM);
  if (pg_is_strict()) PG_TRY(pg_strict_check_free(__func__, "ptr", ptr));
  PG_CHECK(pg_memory_unregister(ptr) || pg_memory_is_gone(__func__, ptr),
           ACL_ERROR_HOST_MEMORY_NOT_REGISTERED,
           "ptr is %s, it must be the start of a registered range", what(ptr));
  return ACL_SUCCESS;
}

aclError aclrtHostGetDevicePointer(void *pHost, void **pDevice, uint32_t flag) {
  PG_CHECK_PTR(pHost, ACL_ERROR_INVALID_PARAM);
  PG_CHECK_PTR(pDevice, ACL_ERROR_INVALID_PARAM);
  PG_CHECK(flag == 0, ACL_ERROR_INVALID_PARAM, "flag is %u, it is reserved and must be 0", flag);
  const enum pg_memory_kind kind = pg_memory_find(pHost).kind;
  PG_CHECK(kind == PG_MEMORY_REGISTERED || kind == PG_MEMORY_HOST,
           ACL_ERROR_HOST_MEMORY_NOT_REGISTERED,
           "pHost is %s, it must lie in registered or aclrtMallocHost memory", what(pHost));
  *pDevice = pHost;
  return ACL_SUCCESS;
}

aclError aclrtPointerGetAttributes(const void *ptr, aclrtPtrAttributes *attributes) {
  PG_CHECK_PTR(ptr, ACL_ERROR_INVALID_PARAM);
  PG_CHECK_PTR(attributes, ACL_ERROR_INVALID_PARAM);
  const struct pg_memory found = pg_memory_find(ptr);
  memset(attributes, 0, sizeof *attributes);
  attributes->location.type = ACL_MEM_LOCATION_TYPE_UNREGISTERED;
  if (found.kind == PG_MEMORY_UNKNOWN) return ACL_SUCCESS;
  const bool device = found.kind == PG_MEMORY_DEVICE;
  attributes->location.type = device ? ACL_MEM_LOCATION_TYPE_DEVICE : ACL_MEM_LOCATION_TYPE_HOST;
  attributes->location.id = device ? (uint32_t)found.device_id : 0;
  attributes->pageSize = found.huge ? HUGE_PAGE_BYTES : (uint32_t)sysconf(_SC_PAGESIZE);
  return ACL_SUCCESS;
}

/* Kinds of memory the devices here do not have show as 0 of 0. */
static bool exists(aclrtMemAttr attr) {
  switch (attr) {
    case ACL_DDR_MEM_P2P_HUGE:
    case ACL_DDR_MEM_P2P_NORMAL:
    case ACL_HBM_MEM_P2P_HUGE:
    case ACL_HBM_MEM_P2P_NORMAL:
    case ACL_HBM_MEM_HUGE1G:
    case ACL_HBM_MEM_P2P_HUGE1G:
    case ACL_MEM_HUGE1G:
    case ACL_MEM_P2P_NORMAL:
    case ACL_MEM_P2P_HUGE:
    case ACL_MEM_P2P_HUGE1G:
      return false;
    default:
      return (int)attr >= ACL_DDR_MEM && attr <= ACL_MEM_P2P_HUGE1G;
  }
}

aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t *free, size_t *total) {
  struct pg_context *context;
  PG_CHECK_PTR(free, ACL_ERROR_INVALID_PARAM);
  PG_CHECK_PTR(total, ACL_ERROR_INVALID_PARAM);
  PG_TRY(pg_context_current(__func__, &context));
  *free = *total = 0;
  if (exists(attr)) context->device.backend->memory_info(context->device.ordinal, free, total);
  pg_release(&context->object);
  return ACL_SUCCESS;
}

aclError aclrtGetMemUsageInfo(int32_t deviceId, aclrtMemUsageInfo *memUsageInfo, size_t inputNum,
                              size_t *outputNum) {
  struct pg_device device;
  PG_CHECK_PTR(memUsageInfo, ACL_ERROR_INVALID_PARAM);
  PG_CHECK_PTR(outputNum, ACL_ERROR_INVALID_PARAM);
  PG_CHECK(inputNum > 0, ACL_ERROR_INVALID_PARAM, "inputNum is 0, room for one entry is required");
  PG_TRY(pg_device_find(__func__, deviceId, &device));
  memset(memUsageInfo, 0, sizeof *memUsageInfo);
  snprintf(memUsageInfo->name, sizeof memUsageInfo->name, "poolgrad");
  pg_memory_usage(deviceId, &memUsageInfo->curMemSize, &memUsageInfo->memPeakSize);
  *outputNum = 1;
  return ACL_SUCCESS;
}

static aclError check_range(const char *api, const void *ptr, size_t size) {
  if (ptr == NULL) return pg_fail_null(api, ACL_ERROR_INVALID_PARAM, "devPtr");
  if (size == 0)
    return pg_fail(api, ACL_ERROR_INVALID_PARAM, "size is 0, at least one byte is required");
  return ACL_SUCCESS;
}

/* Caches are coherent here: checking is all there is to do. */
aclError aclrtMemFlush(void *devPtr, size_t size) { return check_range(__func__, devPtr, size); }
aclError aclrtMemInvalidate(void *devPtr, size_t size) {
  return check_range(__func__, devPtr, size);
}
