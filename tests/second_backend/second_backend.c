/* SPDX-License-Identifier: Apache-2.0 */
#include "second_backend/second_backend.h"

#include <stdio.h>

#define EXPORTED __attribute__((visibility("default")))

static struct second_backend state;
static struct pg_backend made;

static int device_count(void) { return SECOND_DEVICES; }

static void describe(int device, char *text, size_t size) {
  (void)snprintf(text, size, "second %d", device);
}

static aclError reach(int device, int peer, bool enable) {
  const aclError refusal = atomic_load(&state.refusal);
  return refusal != ACL_SUCCESS ? refusal : state.cpu->reach(device, peer, enable);
}

static aclError host_register(int device, void *memory, size_t bytes, bool read_only) {
  (void)device, (void)memory, (void)bytes, (void)read_only;
  return atomic_load(&state.refusal);
}

static void host_unregister(int device, void *memory) { (void)device, (void)memory; }

static aclError copy(int device, const struct pg_copy *what) {
  atomic_fetch_add(&state.copies, 1);
  const aclError refusal = atomic_load(&state.refusal);
  return refusal != ACL_SUCCESS ? refusal : state.cpu->copy(device, what);
}

static aclError fill(int device, const struct pg_fill *what) {
  atomic_fetch_add(&state.fills, 1);
  const aclError refusal = atomic_load(&state.refusal);
  return refusal != ACL_SUCCESS ? refusal : state.cpu->fill(device, what);
}

static aclError submit(struct pg_queue *queue, const struct pg_step *steps, size_t count,
                       struct pg_mark **behind) {
  if (atomic_load(&state.captured)) return ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
  return state.cpu->submit(queue, steps, count, behind);
}

static aclError mark_sync(struct pg_mark *mark, int64_t timeout_ns) {
  const aclError refusal = atomic_load(&state.refusal);
  return refusal != ACL_SUCCESS ? refusal : state.cpu->mark_sync(mark, timeout_ns);
}

static void *native_stream(struct pg_queue *queue) { return queue; }

EXPORTED struct second_backend *second_backend(void);
EXPORTED struct second_backend *second_backend(void) { return &state; }

EXPORTED pg_plugin_fn poolgrad_cuda_backend;
const struct pg_backend *poolgrad_cuda_backend(size_t size_of_backend, const char **why) {
  *why = size_of_backend != sizeof made ? "made for another library" : state.absence;
  if (*why != NULL) return NULL;
  made = *state.cpu;
  made.name = "cuda";
  made.on_host = false;
  made.device_count = device_count;
  made.describe = describe;
  made.reach = reach;
  made.host_register = host_register;
  made.host_unregister = host_unregister;
  made.copy = copy;
  made.fill = fill;
  made.submit = submit;
  made.mark_sync = mark_sync;
  made.native_stream = native_stream;
  return &made;
}
