/* SPDX-License-Identifier: Apache-2.0 */
/* Memory, copies and fills.  A call on memory of its own that says 0 must have done its work. */
#include <string.h>

#include "stress.h"

enum { BYTES = 256, LONG_BYTES = 1 << 16, ROWS = 4, PITCH = 64, WIDTH = 40 };

/* --- allocation --- */

static size_t some_size(struct turn *t) {
  return chance(t, 32) ? (size_t)3 << 20 : (size_t)pick(t, 8192) + 1;
}

static void allocate(struct turn *t) {
  void *block = NULL;
  aclrtMallocAttribute attribute = {.attr = ACL_RT_MEM_ATTR_MODULE_ID, .value = {.moduleId = 1}};
  aclrtMallocConfig config = {.attrs = &attribute, .numAttrs = 1};
  const size_t size = some_size(t);
  int status = -1;
  switch (pick(t, 4)) {
    case 0:
      status = CALL(t, aclrtMalloc, (&block, size, ACL_MEM_MALLOC_HUGE_FIRST), CONTEXT_CODES);
      break;
    case 1:
      status =
          CALL(t, aclrtMallocAlign32, (&block, size, ACL_MEM_MALLOC_NORMAL_ONLY), CONTEXT_CODES);
      break;
    case 2:
      status = CALL(t, aclrtMallocCached, (&block, size, ACL_MEM_MALLOC_HUGE_ONLY), CONTEXT_CODES);
      break;
    default:
      status = CALL(t, aclrtMallocWithCfg, (&block, size, ACL_MEM_MALLOC_NORMAL_ONLY, &config),
                    CONTEXT_CODES);
  }
  if (status == 0) shelf_destroy(t, BLOCKS, shelf_put(t, BLOCKS, block));
}

static void allocate_host(struct turn *t) {
  void *block = NULL;
  const int status = chance(t, 2)
                         ? CALL(t, aclrtMallocHost, (&block, some_size(t)), CONTEXT_CODES)
                         : CALL(t, aclrtMallocHostWithCfg, (&block, 64, NULL), CONTEXT_CODES);
  if (status == 0) shelf_destroy(t, HOST_BLOCKS, shelf_put(t, HOST_BLOCKS, block));
}

static void free_block(struct turn *t) {
  const enum shelf shelf = chance(t, 2) ? BLOCKS : HOST_BLOCKS;
  shelf_destroy(t, shelf, shelf_take(t, shelf));
}

/* After aclFinalize freeing succeeds whatever it is, since all memory is free. */
static void free_what_is_not_allocated(struct turn *t) {
  void *memory = fresh(t, 64);
  if (memory == NULL) return;
  CALL(t, aclrtFree, (memory), ACL_ERROR_RT_PARAM_INVALID);
  CALL(t, aclrtFreeHost, (memory), ACL_ERROR_RT_PARAM_INVALID);
}

static void ask_about_memory(struct turn *t) {
  const void *block = shelf_any(t, BLOCKS);
  aclrtPtrAttributes attributes;
  aclrtMemUsageInfo use;
  size_t free_bytes = 0, total = 0, count = 0;
  CALL(t, aclrtPointerGetAttributes, (block, &attributes), ACL_ERROR_INVALID_PARAM);
  CALL(t, aclrtGetMemInfo, (ACL_HBM_MEM, &free_bytes, &total), CONTEXT_CODES);
  CALL(t, aclrtGetMemUsageInfo, (0, &use, 1, &count), 0);
  CALL(t, aclrtMemFlush, (&stress_words, sizeof stress_words), 0);
  CALL(t, aclrtMemInvalidate, (&stress_words, sizeof stress_words), 0);
}

/* Two pieces side by side, and bytes on both sides of the border. */
static void use_physical_memory(struct turn *t) {
  const aclrtPhysicalMemProp prop = {.location = {.type = ACL_MEM_LOCATION_TYPE_DEVICE}};
  aclrtPhysicalMemProp same = prop;
  aclrtDrvMemHandle pieces[2] = {NULL, NULL}, other = NULL;
  void *range = NULL;
  size_t granularity = 0;
  uint64_t shared = 0;
  int32_t pid = 1;
  CALL(t, aclrtMemGetAllocationGranularity,
       (&same, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM, &granularity), 0);
  if (CALL(t, aclrtReserveMemAddress, (&range, 4 * granularity, 0, NULL, 0), CONTEXT_CODES) != 0)
    return;
  for (size_t i = 0; i < 2; i++) {
    void *at = (char *)range + i * granularity;
    if (CALL(t, aclrtMallocPhysical, (&pieces[i], granularity, &prop, 0), CONTEXT_CODES) == 0)
      CALL(t, aclrtMapMem, (at, granularity, 0, pieces[i], 0), ACL_ERROR_RT_PARAM_INVALID);
  }
  CALL(t, aclrtMemset, ((char *)range + granularity - 8, 16, 1, 16), CONTEXT_CODES,
       ACL_ERROR_RT_PARAM_INVALID);
  CALL(t, aclrtMemExportToShareableHandle, (pieces[0], ACL_MEM_HANDLE_TYPE_NONE, 0, &shared),
       ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  CALL(t, aclrtMemSetPidToShareableHandle, (shared, &pid, 1), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  CALL(t, aclrtMemImportFromShareableHandle, (shared, 0, &other), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  for (size_t i = 0; i < 2; i++) {
    void *at = (char *)range + i * granularity;
    if (pieces[i] == NULL) continue;
    if (chance(t, 2)) CALL(t, aclrtUnmapMem, (at), ACL_ERROR_RT_PARAM_INVALID);
    CALL(t, aclrtFreePhysical, (pieces[i]), ACL_ERROR_RT_INVALID_HANDLE);
    CALL(t, aclrtUnmapMem, (at), ACL_ERROR_RT_PARAM_INVALID);
  }
  CALL(t, aclrtReleaseMemAddress, (range), ACL_ERROR_RT_PARAM_INVALID);
}

static void register_memory(struct turn *t) {
  void *memory = fresh(t, 4096), *seen = NULL;
  if (memory == NULL) return;
  const int status =
      chance(t, 2)
          ? CALL(t, aclrtHostRegister, (memory, 4096, ACL_HOST_REGISTER_MAPPED, &seen),
                 CONTEXT_CODES)
          : CALL(t, aclrtHostRegisterV2, (memory, 4096, ACL_HOST_REG_MAPPED), CONTEXT_CODES);
  if (status != 0) return;
  CALL(t, aclrtHostGetDevicePointer, (memory, &seen, 0), ACL_ERROR_HOST_MEMORY_NOT_REGISTERED);
  CALL(t, aclrtHostUnregister, (memory), ACL_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

/* aclFinalize forgets the registration. */
static void register_arena(struct turn *t) {
  CALL(t, aclrtHostRegisterV2, (t->worker->pinned, ARENA_BYTES, ACL_HOST_REG_PINNED), CONTEXT_CODES,
       ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
}

/* --- copies and fills at once --- */

static void expect_bytes(struct turn *t, const char *what, const void *memory, int value,
                         size_t count) {
  const unsigned char *at = memory;
  for (size_t i = 0; i < count; i++)
    if (at[i] != value) {
      complain(t, "%s said 0, but byte %zu is %d and not %d", what, i, at[i], value);
      return;
    }
}

static void copy_now(struct turn *t) {
  char *from = fresh(t, BYTES), *to = fresh(t, BYTES);
  const int value = (int)pick(t, 255) + 1;
  if (from == NULL || to == NULL) return;
  memset(from, value, BYTES);
  memset(to, 0, BYTES);
  if (CALL(t, aclrtMemcpy, (to, BYTES, from, BYTES, ACL_MEMCPY_HOST_TO_DEVICE), CONTEXT_CODES) == 0)
    expect_bytes(t, "aclrtMemcpy", to, value, BYTES);
  memset(to, 0, BYTES);
  if (CALL(t, aclrtMemcpy2d, (to, PITCH, from, PITCH, WIDTH, ROWS, ACL_MEMCPY_DEFAULT),
           CONTEXT_CODES) == 0)
    expect_bytes(t, "aclrtMemcpy2d", to + (ROWS - 1) * PITCH, value, WIDTH);
  memset(to, 0, BYTES);
  void *dsts[] = {to, to + BYTES / 2}, *srcs[] = {from, from + BYTES / 2};
  size_t sizes[] = {BYTES / 2, BYTES / 2}, failed = 0, first = 0;
  aclrtMemcpyBatchAttr attribute;
  memset(&attribute, 0, sizeof attribute);
  if (CALL(t, aclrtMemcpyBatch, (dsts, sizes, srcs, sizes, 2, &attribute, &first, 1, &failed),
           CONTEXT_CODES) == 0)
    expect_bytes(t, "aclrtMemcpyBatch", to, value, BYTES);
  CALL(t, aclrtMemcpy, (to, 1, from, 2, ACL_MEMCPY_DEFAULT), ACL_ERROR_RT_PARAM_INVALID);
}

static void fill_now(struct turn *t) {
  char *to = fresh(t, BYTES);
  const int value = (int)pick(t, 255) + 1;
  if (to == NULL) return;
  if (CALL(t, aclrtMemset, (to, BYTES, value, BYTES), CONTEXT_CODES) == 0)
    expect_bytes(t, "aclrtMemset", to, value, BYTES);
  if (CALL(t, aclrtMemsetD32, (to, BYTES, 0x07070707, BYTES / 4), CONTEXT_CODES) == 0)
    expect_bytes(t, "aclrtMemsetD32", to, 7, BYTES);
}

/* --- in streams --- */

/* Pageable memory: the call waits, and what says 0 is copied. */
static void copy_pageable(struct turn *t) {
  const size_t bytes = chance(t, 8) ? LONG_BYTES : BYTES;
  char *from = fresh(t, bytes), *to = fresh(t, bytes);
  const int value = (int)pick(t, 255) + 1;
  aclrtStream stream = shelf_any(t, STREAMS);
  if (from == NULL || to == NULL) return;
  memset(from, value, bytes);
  memset(to, 0, bytes);
  const int status =
      chance(t, 2)
          ? CALL(t, aclrtMemcpyAsync, (to, bytes, from, bytes, ACL_MEMCPY_HOST_TO_DEVICE, stream),
                 STREAM_CODES, ACL_ERROR_RT_STREAM_ABORT)
          : CALL(t, aclrtMemcpyAsyncWithCondition,
                 (to, bytes, from, bytes, ACL_MEMCPY_DEFAULT, stream), STREAM_CODES,
                 ACL_ERROR_RT_STREAM_ABORT);
  if (status == 0) expect_bytes(t, "aclrtMemcpyAsync of pageable memory", to, value, bytes);
}

/* Pinned memory: whether the work is done nobody asks. */
static void queue_copies(struct turn *t) {
  char *from = fresh_pinned(t, BYTES), *to = fresh_pinned(t, BYTES);
  aclrtStream stream = shelf_any(t, STREAMS);
  if (from == NULL || to == NULL) return;
  CALL(t, aclrtMemsetAsync, (from, BYTES, 1, BYTES, stream), STREAM_CODES);
  CALL(t, aclrtMemcpyAsync, (to, BYTES, from, BYTES, ACL_MEMCPY_DEVICE_TO_DEVICE, stream),
       STREAM_CODES, ACL_ERROR_RT_STREAM_ABORT);
  CALL(t, aclrtMemcpy2dAsync, (to, PITCH, from, PITCH, WIDTH, ROWS, ACL_MEMCPY_DEFAULT, stream),
       STREAM_CODES, ACL_ERROR_RT_STREAM_ABORT);
  void *dsts[] = {to}, *srcs[] = {from};
  size_t sizes[] = {BYTES}, failed = 0;
  CALL(t, aclrtMemcpyBatchAsync, (dsts, sizes, srcs, sizes, 1, NULL, NULL, 0, &failed, stream),
       STREAM_CODES, ACL_ERROR_RT_STREAM_ABORT);
  CALL(t, aclrtMemsetD32Async, (to, BYTES, 2, BYTES / 4, stream), STREAM_CODES);
}

/* A stream of its own: if every call says 0, all was done, and in order. */
static void copies_in_order(struct turn *t) {
  char *from = fresh_pinned(t, BYTES), *to = fresh_pinned(t, BYTES);
  aclrtStream stream = NULL;
  if (from == NULL || to == NULL) return;
  if (CALL(t, aclrtCreateStream, (&stream), CONTEXT_CODES) != 0) return;
  bool good = CALL(t, aclrtMemsetAsync, (from, BYTES, 1, BYTES, stream), STREAM_CODES) == 0;
  good = CALL(t, aclrtMemcpyAsync, (to, BYTES, from, BYTES, ACL_MEMCPY_DEFAULT, stream),
              STREAM_CODES, ACL_ERROR_RT_STREAM_ABORT) == 0 &&
         good;
  good = CALL(t, aclrtMemsetAsync, (from, BYTES, 2, BYTES, stream), STREAM_CODES) == 0 && good;
  good = CALL(t, aclrtSynchronizeStream, (stream), STREAM_CODES, OUTCOMES) == 0 && good;
  if (good) {
    expect_bytes(t, "a stream's copy", to, 1, BYTES);
    expect_bytes(t, "a stream's fill", from, 2, BYTES);
  }
  CALL(t, aclrtDestroyStream, (stream), STREAM_CODES);
}

/* Memory of aclrtMalloc, used and given back by its owner. */
static void use_block(struct turn *t) {
  char *host = fresh(t, BYTES), *block = NULL;
  const int value = (int)pick(t, 255) + 1;
  if (host == NULL || CALL(t, aclrtMalloc, ((void **)&block, BYTES, ACL_MEM_MALLOC_NORMAL_ONLY),
                           CONTEXT_CODES) != 0)
    return;
  bool good = CALL(t, aclrtMemset, (block, BYTES, value, BYTES), CONTEXT_CODES) == 0;
  good = CALL(t, aclrtMemcpy, (host, BYTES, block, BYTES, ACL_MEMCPY_DEVICE_TO_HOST),
              CONTEXT_CODES) == 0 &&
         good;
  if (good) expect_bytes(t, "a copy from the device", host, value, BYTES);
  CALL(t, aclrtFree, (block), 0);
}

const struct row memory_rows[] = {
    ROW(allocate, 60, ANY_WEATHER),
    ROW(allocate_host, 20, ANY_WEATHER),
    ROW(free_block, 50, ANY_WEATHER),
    ROW(free_what_is_not_allocated, 6, ANY_WEATHER),
    ROW(ask_about_memory, 10, ANY_WEATHER),
    ROW(use_physical_memory, 4, CALM),
    ROW(register_memory, 10, ANY_WEATHER),
    ROW(register_arena, 10, ANY_WEATHER),
    ROW(copy_now, 20, ANY_WEATHER),
    ROW(fill_now, 20, ANY_WEATHER),
    ROW(copy_pageable, 30, ANY_WEATHER),
    ROW(queue_copies, 60, ANY_WEATHER),
    ROW(copies_in_order, 15, ANY_WEATHER),
    ROW(use_block, 15, CALM),
    {NULL, 0, 0, NULL},
};
