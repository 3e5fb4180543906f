/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and fills, at once or in a stream. */
#include <stdint.h>
#include <stdlib.h>

#include "core/checked.h"
#include "core/clock.h"
#include "runtime/memory.h"
#include "runtime/stream.h"
#include "runtime/strict.h"

/* The runtime knows its own allocations and refuses to run over their ends. */
static aclError check_room(const char *api, const char *name, const void *address, size_t bytes) {
  size_t room;
  if (pg_memory_holds(address, bytes, &room)) return ACL_SUCCESS;
  return pg_fail(api, ACL_ERROR_RT_PARAM_INVALID,
                 "%zu bytes at %s run over the end of its allocation, which has %zu left", bytes,
                 name, room);
}

static aclError check_copy(const char *api, const void *dst, size_t dest_max, const void *src,
                           size_t count, aclrtMemcpyKind kind) {
  if (dst == NULL) return pg_fail_null(api, ACL_ERROR_INVALID_PARAM, "dst");
  if (src == NULL) return pg_fail_null(api, ACL_ERROR_INVALID_PARAM, "src");
  if ((int)kind < ACL_MEMCPY_HOST_TO_HOST || kind > ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE)
    return pg_fail(api, ACL_ERROR_INVALID_PARAM, "kind is %d, allowed is 0 to 5", (int)kind);
  if (count > dest_max)
    return pg_fail(api, ACL_ERROR_RT_PARAM_INVALID, "count is %zu, destMax allows %zu", count,
                   dest_max);
  if (pg_is_strict()) PG_TRY(pg_strict_check_kind(api, kind, dst, src));
  PG_TRY(check_room(api, "dst", dst, count));
  return check_room(api, "src", src, count);
}

static struct pg_copy flat(void *dst, const void *src, size_t count) {
  return (struct pg_copy){.dst = dst, .src = src, .width = count, .height = 1};
}

/* Who must do it: `device`, unless one of the addresses lies where only another one gets to. */
static struct pg_device device_for(struct pg_device device, const void *a, const void *b) {
  const void *const addresses[] = {a, b};
  for (int i = 0; i < 2 && pg_several_backends(); i++) {
    const struct pg_memory found = pg_memory_find(addresses[i]);
    if (found.kind == PG_MEMORY_DEVICE && !found.device.backend->on_host) return found.device;
  }
  return device;
}

static aclError copy_now(const char *api, const struct pg_copy *copy) {
  struct pg_context *context;
  PG_TRY(pg_context_current(api, &context));
  const struct pg_device device = device_for(context->device, copy->dst, copy->src);
  const aclError status = device.backend->copy(device.ordinal, copy);
  pg_release(&context->object);
  return status == ACL_SUCCESS ? status : pg_fail(api, status, "the device could not copy");
}

/* A copy or fill that another backend must do, at its place in the stream. */
struct errand {
  struct pg_device device;
  struct pg_step step;
};

static void errand_discard(const struct pg_call *self) { free(self->arg); }

static aclError errand_run(const struct pg_call *self, struct pg_failure *why) {
  const struct errand *e = self->arg;
  const bool copies = e->step.kind == PG_STEP_COPY;
  const aclError status = copies ? e->device.backend->copy(e->device.ordinal, &e->step.u.copy)
                                 : e->device.backend->fill(e->device.ordinal, &e->step.u.fill);
  errand_discard(self);
  if (status != ACL_SUCCESS)
    pg_failure_set(why, status, "the device could not %s", copies ? "copy" : "fill");
  return status;
}

/* Queues a copy or fill between these addresses, with a mark behind it if wanted. */
static aclError submit(const char *api, struct pg_stream *stream, const struct pg_step *step,
                       const void *a, const void *b, struct pg_mark **behind) {
  const struct pg_device own = stream->context->device, device = device_for(own, a, b);
  if (device.backend == own.backend) return pg_stream_submit(api, stream, step, 1, behind);
  struct errand *errand = malloc(sizeof *errand);
  if (errand == NULL) return pg_fail(api, ACL_ERROR_BAD_ALLOC, "no memory to queue the work");
  *errand = (struct errand){device, *step};
  const struct pg_step call = {
      .kind = PG_STEP_CALL, .u.call = {.fn = errand_run, .arg = errand, .discard = errand_discard}};
  const aclError status = pg_stream_submit(api, stream, &call, 1, behind);
  if (status != ACL_SUCCESS) free(errand);
  return status; /* NOLINT(clang-analyzer-unix.Malloc): the step frees the errand */
}

/* Pageable host memory may be gone or changed when the stream gets there, so such a copy is waited
 * for before the call returns, as CANN does it.  All that can make the waiting fail is found out
 * before the copy is queued: a call that fails must not copy later, from memory that is gone.
 * The stream's own failures are left to synchronise. */
static aclError copy_and_wait(const char *api, struct pg_stream *stream, const struct pg_step *step,
                              const struct pg_copy *copy) {
  struct pg_mark *mark;
  PG_CHECK_AS(
      api, !pg_stream_is_inside(stream), ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
      "called from work of stream %d itself, and a copy of pageable memory waits for its end",
      (int)stream->id);
  const struct pg_strict_point here = pg_strict_here(stream);
  PG_TRY(submit(api, stream, step, copy->dst, copy->src, &mark));
  const aclError status = stream->backend->mark_sync(mark, PG_FOREVER);
  const bool discarded = stream->backend->mark_discarded(mark);
  stream->backend->mark_release(mark);
  PG_CHECK_AS(api, status == ACL_SUCCESS, status, "stream %d could not be waited for",
              (int)stream->id);
  PG_CHECK_AS(
      api, !discarded, ACL_ERROR_RT_STREAM_ABORT,
      "the copy was discarded by an abort, a forced end or a failure of stream %d before it",
      (int)stream->id);
  pg_strict_waited(here);
  return ACL_SUCCESS;
}

static aclError copy_in_stream(const char *api, aclrtStream handle, const struct pg_copy *copy) {
  struct pg_stream *stream;
  PG_TRY(pg_stream_resolve(api, handle, &stream));
  const bool pageable = pg_memory_find(copy->dst).kind == PG_MEMORY_UNKNOWN ||
                        pg_memory_find(copy->src).kind == PG_MEMORY_UNKNOWN;
  const struct pg_step step = {
      .kind = PG_STEP_COPY, .bytes = (int64_t)(copy->width * copy->height), .u.copy = *copy};
  const aclError status = pageable ? copy_and_wait(api, stream, &step, copy)
                                   : submit(api, stream, &step, copy->dst, copy->src, NULL);
  void *const touched[] = {copy->dst, (void *)(uintptr_t)copy->src};
  if (status == ACL_SUCCESS && !pageable && pg_is_strict()) pg_strict_use(api, stream, 2, touched);
  pg_stream_release(stream);
  return status;
}

static aclError copy_async(const char *api, void *dst, size_t dest_max, const void *src,
                           size_t count, aclrtMemcpyKind kind, aclrtStream stream) {
  if (count == 0) return ACL_SUCCESS;
  PG_TRY(check_copy(api, dst, dest_max, src, count, kind));
  if (kind == ACL_MEMCPY_HOST_TO_HOST)
    return pg_fail(api, ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                   "kind is host to host, which streams do not do; aclrtMemcpy does");
  const struct pg_copy copy = flat(dst, src, count);
  return copy_in_stream(api, stream, &copy);
}

aclError aclrtMemcpy(void *dst, size_t destMax, const void *src, size_t count,
                     aclrtMemcpyKind kind) {
  if (count == 0) return ACL_SUCCESS;
  PG_TRY(check_copy(__func__, dst, destMax, src, count, kind));
  if (dst == src) return ACL_SUCCESS;
  const struct pg_copy copy = flat(dst, src, count);
  return copy_now(__func__, &copy);
}

aclError aclrtMemcpyAsync(void *dst, size_t destMax, const void *src, size_t count,
                          aclrtMemcpyKind kind, aclrtStream stream) {
  return copy_async(__func__, dst, destMax, src, count, kind, stream);
}

aclError aclrtMemcpyAsyncWithCondition(void *dst, size_t destMax, const void *src, size_t count,
                                       aclrtMemcpyKind kind, aclrtStream stream) {
  return copy_async(__func__, dst, destMax, src, count, kind, stream);
}

/* The last byte a pitched range touches must fit; pitches and heights may be large. */
static aclError check_rows(const char *api, const char *name, const void *address, size_t pitch,
                           size_t width, size_t height) {
  size_t before, bytes;
  if (!pg_mul_size(pitch, height - 1, &before) || !pg_add_size(before, width, &bytes))
    return pg_fail(api, ACL_ERROR_INVALID_PARAM,
                   "%s has %zu rows of %zu bytes, too large to address", name, height, pitch);
  return check_room(api, name, address, bytes);
}

static aclError check_2d(const char *api, const struct pg_copy *c, aclrtMemcpyKind kind) {
  if (c->dst == NULL) return pg_fail_null(api, ACL_ERROR_INVALID_PARAM, "dst");
  if (c->src == NULL) return pg_fail_null(api, ACL_ERROR_INVALID_PARAM, "src");
  if (c->width > c->dst_pitch || c->width > c->src_pitch)
    return pg_fail(api, ACL_ERROR_INVALID_PARAM,
                   "width is %zu, it must not exceed dpitch (%zu) and spitch (%zu)", c->width,
                   c->dst_pitch, c->src_pitch);
  if ((int)kind < ACL_MEMCPY_HOST_TO_DEVICE || kind > ACL_MEMCPY_DEFAULT)
    return pg_fail(api, ACL_ERROR_INVALID_PARAM, "kind is %d, allowed is 1 to 4", (int)kind);
  if (pg_is_strict()) PG_TRY(pg_strict_check_kind(api, kind, c->dst, c->src));
  PG_TRY(check_rows(api, "dst", c->dst, c->dst_pitch, c->width, c->height));
  return check_rows(api, "src", c->src, c->src_pitch, c->width, c->height);
}

aclError aclrtMemcpy2d(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
                       size_t height, aclrtMemcpyKind kind) {
  const struct pg_copy copy = {dst, src, dpitch, spitch, width, height};
  if (width == 0 || height == 0) return ACL_SUCCESS;
  PG_TRY(check_2d(__func__, &copy, kind));
  return copy_now(__func__, &copy);
}

aclError aclrtMemcpy2dAsync(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
                            size_t height, aclrtMemcpyKind kind, aclrtStream stream) {
  const struct pg_copy copy = {dst, src, dpitch, spitch, width, height};
  if (width == 0 || height == 0) return ACL_SUCCESS;
  PG_TRY(check_2d(__func__, &copy, kind));
  return copy_in_stream(__func__, stream, &copy);
}

struct batch {
  void **dsts;
  size_t *dest_maxs;
  void **srcs;
  size_t *sizes;
  size_t count;
  size_t *fail_index;
};

/* The direction that the attributes give the batch's copy i; each holds from its index on. */
static aclrtMemcpyKind batch_kind(const aclrtMemcpyBatchAttr *attrs, const size_t *attr_indexes,
                                  size_t attr_count, size_t i) {
  static const aclrtMemcpyKind kinds[2][2] = {
      {ACL_MEMCPY_HOST_TO_HOST, ACL_MEMCPY_HOST_TO_DEVICE},
      {ACL_MEMCPY_DEVICE_TO_HOST, ACL_MEMCPY_DEVICE_TO_DEVICE}};
  size_t behind = attr_count;
  while (behind > 0 && attr_indexes[behind - 1] > i) behind--;
  if (behind == 0) return ACL_MEMCPY_DEFAULT;
  const aclrtMemcpyBatchAttr *attr = &attrs[behind - 1];
  return kinds[attr->srcLoc.type == ACL_MEM_LOCATION_TYPE_DEVICE]
              [attr->dstLoc.type == ACL_MEM_LOCATION_TYPE_DEVICE];
}

/* Checks the whole batch before the first byte moves. */
static aclError check_batch(const char *api, const struct batch *b,
                            const aclrtMemcpyBatchAttr *attrs, const size_t *attr_indexes,
                            size_t attr_count) {
  if (b->fail_index != NULL) *b->fail_index = SIZE_MAX;
  if (b->dsts == NULL) return pg_fail_null(api, ACL_ERROR_INVALID_PARAM, "dsts");
  if (b->dest_maxs == NULL) return pg_fail_null(api, ACL_ERROR_INVALID_PARAM, "destMaxs");
  if (b->srcs == NULL) return pg_fail_null(api, ACL_ERROR_INVALID_PARAM, "srcs");
  if (b->sizes == NULL) return pg_fail_null(api, ACL_ERROR_INVALID_PARAM, "sizes");
  if (attr_count > 0 && (attrs == NULL || attr_indexes == NULL))
    return pg_fail(api, ACL_ERROR_INVALID_PARAM,
                   "attrs or attrsIndexes is NULL while numAttrs is %zu", attr_count);
  for (size_t i = 0; i < attr_count; i++)
    if (i == 0 ? attr_indexes[i] != 0 : attr_indexes[i] <= attr_indexes[i - 1])
      return pg_fail(api, ACL_ERROR_INVALID_PARAM,
                     "attrsIndexes[%zu] is %zu, the indexes must start at 0 and ascend", i,
                     attr_indexes[i]);
  if (b->count == 0)
    return pg_fail(api, ACL_ERROR_INVALID_PARAM, "numBatches is 0, at least one copy is required");
  for (size_t i = 0; i < b->count; i++) {
    if (b->sizes[i] == 0) continue;
    const aclrtMemcpyKind kind =
        pg_is_strict() ? batch_kind(attrs, attr_indexes, attr_count, i) : ACL_MEMCPY_DEFAULT;
    const aclError status =
        check_copy(api, b->dsts[i], b->dest_maxs[i], b->srcs[i], b->sizes[i], kind);
    if (status == ACL_SUCCESS) continue;
    if (b->fail_index != NULL) *b->fail_index = i;
    return status;
  }
  return ACL_SUCCESS;
}

aclError aclrtMemcpyBatch(void **dsts, size_t *destMaxs, void **srcs, size_t *sizes,
                          size_t numBatches, aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes,
                          size_t numAttrs, size_t *failIndex) {
  const struct batch b = {dsts, destMaxs, srcs, sizes, numBatches, failIndex};
  PG_TRY(check_batch(__func__, &b, attrs, attrsIndexes, numAttrs));
  aclError status = ACL_SUCCESS;
  for (size_t i = 0; i < numBatches && status == ACL_SUCCESS; i++) {
    const struct pg_copy copy = flat(dsts[i], srcs[i], sizes[i]);
    if (sizes[i] > 0) status = copy_now(__func__, &copy);
    if (status != ACL_SUCCESS && failIndex != NULL) *failIndex = i;
  }
  return status;
}

aclError aclrtMemcpyBatchAsync(void **dsts, size_t *destMaxs, void **srcs, size_t *sizes,
                               size_t numBatches, aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes,
                               size_t numAttrs, size_t *failIndex, aclrtStream stream) {
  const struct batch b = {dsts, destMaxs, srcs, sizes, numBatches, failIndex};
  PG_TRY(check_batch(__func__, &b, attrs, attrsIndexes, numAttrs));
  aclError status = ACL_SUCCESS;
  for (size_t i = 0; i < numBatches && status == ACL_SUCCESS; i++) {
    const struct pg_copy copy = flat(dsts[i], srcs[i], sizes[i]);
    if (sizes[i] > 0) status = copy_in_stream(__func__, stream, &copy);
    if (status != ACL_SUCCESS && failIndex != NULL) *failIndex = i;
  }
  return status;
}

static aclError check_fill(const char *api, const void *ptr, size_t max_count, size_t count) {
  if (ptr == NULL) return pg_fail_null(api, ACL_ERROR_INVALID_PARAM, "devPtr");
  if (count > max_count)
    return pg_fail(api, ACL_ERROR_RT_PARAM_INVALID, "count is %zu, maxCount allows %zu", count,
                   max_count);
  if (pg_is_strict()) PG_TRY(pg_strict_check_known(api, "devPtr", ptr));
  return check_room(api, "devPtr", ptr, count);
}

static aclError check_fill_words(const char *api, const void *ptr, size_t bytes, size_t count) {
  if (ptr == NULL) return pg_fail_null(api, ACL_ERROR_INVALID_PARAM, "devPtr");
  if ((uintptr_t)ptr % 4 != 0)
    return pg_fail(api, ACL_ERROR_INVALID_PARAM, "devPtr is %p, it must be a multiple of 4", ptr);
  if (count > bytes / 4)
    return pg_fail(api, ACL_ERROR_INVALID_PARAM,
                   "numElements is %zu, memSize (%zu bytes) allows %zu", count, bytes, bytes / 4);
  if (pg_is_strict() && count > 0) PG_TRY(pg_strict_check_known(api, "devPtr", ptr));
  return check_room(api, "devPtr", ptr, count * 4);
}

static aclError fill_now(const char *api, const struct pg_fill *fill) {
  struct pg_context *context;
  PG_TRY(pg_context_current(api, &context));
  const struct pg_device device = device_for(context->device, fill->dst, fill->dst);
  const aclError status = device.backend->fill(device.ordinal, fill);
  pg_release(&context->object);
  return status == ACL_SUCCESS ? status : pg_fail(api, status, "the device could not fill");
}

static aclError fill_in_stream(const char *api, aclrtStream handle, const struct pg_fill *fill) {
  struct pg_stream *stream;
  PG_TRY(pg_stream_resolve(api, handle, &stream));
  const struct pg_step step = {
      .kind = PG_STEP_FILL, .bytes = (int64_t)fill->count * fill->element_bytes, .u.fill = *fill};
  const aclError status = submit(api, stream, &step, fill->dst, fill->dst, NULL);
  if (status == ACL_SUCCESS && pg_is_strict()) pg_strict_use(api, stream, 1, &fill->dst);
  pg_stream_release(stream);
  return status;
}

aclError aclrtMemset(void *devPtr, size_t maxCount, int32_t value, size_t count) {
  const struct pg_fill fill = {devPtr, count, (uint8_t)value, 1};
  if (count == 0) return ACL_SUCCESS;
  PG_TRY(check_fill(__func__, devPtr, maxCount, count));
  return fill_now(__func__, &fill);
}

aclError aclrtMemsetAsync(void *devPtr, size_t maxCount, int32_t value, size_t count,
                          aclrtStream stream) {
  const struct pg_fill fill = {devPtr, count, (uint8_t)value, 1};
  if (count == 0) return ACL_SUCCESS;
  PG_TRY(check_fill(__func__, devPtr, maxCount, count));
  return fill_in_stream(__func__, stream, &fill);
}

aclError aclrtMemsetD32(void *ptr, size_t memSize, uint32_t value, size_t numElements) {
  const struct pg_fill fill = {ptr, numElements, value, 4};
  PG_TRY(check_fill_words(__func__, ptr, memSize, numElements));
  return numElements == 0 ? ACL_SUCCESS : fill_now(__func__, &fill);
}

aclError aclrtMemsetD32Async(void *ptr, size_t memSize, uint32_t value, size_t numElements,
                             aclrtStream stream) {
  const struct pg_fill fill = {ptr, numElements, value, 4};
  PG_TRY(check_fill_words(__func__, ptr, memSize, numElements));
  return numElements == 0 ? ACL_SUCCESS : fill_in_stream(__func__, stream, &fill);
}
