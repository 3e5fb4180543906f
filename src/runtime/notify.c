/* SPDX-License-Identifier: Apache-2.0 */
/* Notifies: one word that streams of all backends set, wait for and clear: the host's memory. */
#include <stdlib.h>

#include "core/clock.h"
#include "runtime/memory.h"
#include "runtime/stream.h"
#include "runtime/strict.h"

struct pg_notify {
  struct pg_object object;
  uint32_t id;
  uint64_t word; /* 1: recorded and not yet waited for */
};

static atomic_uint next_id;

static void destroy(struct pg_object *self) { free(self); }

static aclError create(const char *api, aclrtNotify *out) {
  struct pg_notify *notify = calloc(1, sizeof *notify);
  if (notify != NULL) {
    atomic_init(&notify->object.refs, 1);
    notify->object.destroy = destroy;
    notify->id = atomic_fetch_add(&next_id, 1);
    void *handle = pg_handle_open(PG_NOTIFY, &notify->object);
    if (handle != NULL) {
      *out = handle;
      return ACL_SUCCESS;
    }
    pg_release(&notify->object);
  }
  return pg_fail(api, ACL_ERROR_RT_NO_NOTIFY_RESOURCE, "no memory for a notify");
}

aclError aclrtCreateNotify(aclrtNotify *notify, uint64_t flag) {
  struct pg_context *context;
  PG_CHECK_PTR(notify, ACL_ERROR_INVALID_PARAM);
  PG_CHECK(flag <= ACL_NOTIFY_DEVICE_USE_ONLY, ACL_ERROR_RT_PARAM_INVALID,
           "flag is %llu, allowed is 0 or 1", (unsigned long long)flag);
  PG_TRY(pg_context_current(__func__, &context));
  pg_release(&context->object);
  return create(__func__, notify);
}

static aclError resolve(const char *api, aclrtNotify handle, struct pg_notify **out) {
  if (handle == NULL) return pg_fail_null(api, ACL_ERROR_INVALID_PARAM, "notify");
  *out = pg_acquire(handle, PG_NOTIFY);
  if (*out != NULL) return ACL_SUCCESS;
  return pg_fail(api, ACL_ERROR_RT_INVALID_HANDLE, "notify is %s, a live notify is required",
                 pg_handle_what(handle));
}

aclError aclrtDestroyNotify(aclrtNotify notify) {
  PG_CHECK_PTR(notify, ACL_ERROR_INVALID_PARAM);
  struct pg_notify *found = pg_handle_close(notify, PG_NOTIFY);
  PG_CHECK(found != NULL, ACL_ERROR_RT_INVALID_HANDLE, "notify is %s, a live notify is required",
           pg_handle_what(notify));
  pg_release(&found->object);
  return ACL_SUCCESS;
}

/* In strict mode who waits for a word runs behind who writes it. */
static void note_word(const struct pg_stream *stream, const struct pg_step *step) {
  if (!pg_is_strict()) return;
  if (step->kind == PG_STEP_WRITE_VALUE) pg_strict_word_written(stream, step->u.value.address);
  if (step->kind == PG_STEP_WAIT_VALUE) pg_strict_word_awaited(stream, step->u.value.address);
}

/* Queues a step on the notify's word; the step keeps the notify alive. */
static aclError submit(const char *api, aclrtNotify handle, aclrtStream stream_handle,
                       enum pg_step_kind kind, struct pg_value value) {
  struct pg_notify *notify;
  struct pg_stream *stream;
  PG_TRY(resolve(api, handle, &notify)); /* this reference becomes the step's */
  value.address = &notify->word;
  value.owner = &notify->object;
  const struct pg_step step = {.kind = kind, .u.value = value};
  aclError status = pg_stream_resolve(api, stream_handle, &stream);
  if (status == ACL_SUCCESS) {
    status = pg_stream_submit(api, stream, &step, 1, NULL);
    if (status == ACL_SUCCESS) note_word(stream, &step);
    pg_stream_release(stream);
  }
  if (status != ACL_SUCCESS) pg_release(&notify->object);
  return status;
}

aclError aclrtRecordNotify(aclrtNotify notify, aclrtStream stream) {
  return submit(__func__, notify, stream, PG_STEP_WRITE_VALUE, (struct pg_value){.value = 1});
}

aclError aclrtWaitAndResetNotify(aclrtNotify notify, aclrtStream stream, uint32_t timeout) {
  return submit(
      __func__, notify, stream, PG_STEP_WAIT_VALUE,
      (struct pg_value){.value = 1,
                        .comparison = ACL_STREAM_WAIT_VALUE_EQ,
                        .take = true,
                        .timeout_ns = timeout == 0 ? PG_FOREVER : (int64_t)timeout * PG_NS_PER_MS});
}

aclError aclrtGetNotifyId(aclrtNotify notify, uint32_t *notifyId) {
  struct pg_notify *found;
  PG_CHECK_PTR(notifyId, ACL_ERROR_INVALID_PARAM);
  PG_TRY(resolve(__func__, notify, &found));
  *notifyId = found->id;
  pg_release(&found->object);
  return ACL_SUCCESS;
}

/* The word must lie in memory that the runtime knows, and before its padding. */
static aclError check_strictly(const char *api, const void *address) {
  size_t room;
  PG_TRY(pg_strict_check_known(api, "devAddr", address));
  PG_CHECK_AS(api, pg_memory_holds(address, sizeof(uint64_t), &room), ACL_ERROR_RT_PARAM_INVALID,
              "8 bytes at devAddr run over the end of its allocation, which has %zu left", room);
  return ACL_SUCCESS;
}

/* A stream on the host cannot look at another device's memory. */
static aclError check_reach(const char *api, const struct pg_stream *stream, const void *address) {
  if (!pg_several_backends() || !stream->backend->on_host) return ACL_SUCCESS;
  const struct pg_memory found = pg_memory_find(address);
  PG_CHECK_AS(api, found.kind != PG_MEMORY_DEVICE || found.device.backend->on_host,
              ACL_ERROR_RT_PARAM_INVALID,
              "devAddr lies on device %d, which a stream of device %d cannot look at",
              found.device_id, stream->context->device_id);
  return ACL_SUCCESS;
}

static aclError submit_value(const char *api, aclrtStream handle, enum pg_step_kind kind,
                             struct pg_value value) {
  struct pg_stream *stream;
  if ((uintptr_t)value.address % sizeof *value.address != 0)
    return pg_fail(api, ACL_ERROR_RT_ADDR_UNALIGNED, "devAddr is %p, it must be a multiple of 8",
                   (void *)value.address);
  PG_TRY(pg_stream_resolve(api, handle, &stream));
  const struct pg_step step = {.kind = kind, .u.value = value};
  void *const address = value.address;
  aclError status = check_reach(api, stream, address);
  if (status == ACL_SUCCESS && pg_is_strict()) status = check_strictly(api, address);
  if (status == ACL_SUCCESS) status = pg_stream_submit(api, stream, &step, 1, NULL);
  if (status == ACL_SUCCESS && pg_is_strict()) pg_strict_use(api, stream, 1, &address);
  if (status == ACL_SUCCESS)
    note_word(stream, &step); /* last: who sees the value knows of its use */
  pg_stream_release(stream);
  return status;
}

aclError aclrtValueWrite(void *devAddr, uint64_t value, uint32_t flag, aclrtStream stream) {
  PG_CHECK_PTR(devAddr, ACL_ERROR_INVALID_PARAM);
  PG_CHECK(flag == 0, ACL_ERROR_RT_PARAM_INVALID, "flag is %u, it is reserved and must be 0", flag);
  return submit_value(__func__, stream, PG_STEP_WRITE_VALUE,
                      (struct pg_value){.address = devAddr, .value = value});
}

aclError aclrtValueWait(void *devAddr, uint64_t value, uint32_t flag, aclrtStream stream) {
  PG_CHECK_PTR(devAddr, ACL_ERROR_INVALID_PARAM);
  PG_CHECK(flag <= ACL_STREAM_WAIT_VALUE_NOR, ACL_ERROR_RT_PARAM_INVALID,
           "flag is %u, allowed is 0 to 3 (ACL_STREAM_WAIT_VALUE_*)", flag);
  return submit_value(
      __func__, stream, PG_STEP_WAIT_VALUE,
      (struct pg_value){
          .address = devAddr, .value = value, .comparison = flag, .timeout_ns = PG_FOREVER});
}
