/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/device.h"

#include <ctype.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/environment.h"
#include "core/fork.h"
#include "core/index_policy.h"
#include "core/log.h"
#include "core/soc.h"
#include "core/thread_memory.h"
#include "poolgrad.h"
#include "runtime/context.h"
#include "runtime/stream.h"
#include "runtime/strict.h"

enum { HIDING_BYTES = 160 };

/* Guards everything in this struct.  Held for bookkeeping only, never while a context closes. */
static struct {
  pthread_mutex_t lock;
  bool known;
  int count;
  struct pg_device row[PG_DEVICES_MAX];
  int users[PG_DEVICES_MAX];     /* aclrtSetDevice calls not yet undone */
  void *primary[PG_DEVICES_MAX]; /* context handle, NULL when none */
  char hiding[HIDING_BYTES];     /* which variable keeps devices from the list; "" when none does */
} devices = {.lock = PTHREAD_MUTEX_INITIALIZER};

PG_HOLD_ACROSS_FORK(devices.lock, PG_FORK_OUTER);

/* The backends that have a device in the list, a bit for each: every first phase asks, and should
 * not take the lock for it.  Written with the lock held. */
enum { ANY_BACKEND = (1 << PG_BACKENDS_MAX) - 1 };
static atomic_int listed = ANY_BACKEND;

bool pg_backend_has_devices(int i) {
  return (atomic_load_explicit(&listed, memory_order_relaxed) >> i & 1) != 0;
}

/* Lock held. */
static void note_backends(void) {
  int bits = 0;
  for (int i = 0; pg_backend_at(i) != NULL; i++)
    for (int j = 0; j < devices.count; j++)
      if (devices.row[j].backend == pg_backend_at(i)) bits |= 1 << i;
  atomic_store(&listed, bits != 0 ? bits : ANY_BACKEND);
}

struct list {
  int count;
  struct pg_device row[PG_DEVICES_MAX];
  char hiding[HIDING_BYTES];
};

static void add(struct list *list, const struct pg_backend *backend, int ordinal) {
  if (list->count < PG_DEVICES_MAX) list->row[list->count++] = (struct pg_device){backend, ordinal};
}

static void add_all(struct list *list, const struct pg_backend *backend) {
  const int count = backend->device_count();
  for (int i = 0; i < count; i++) add(list, backend, i);
}

/* One of the backend's devices, by its number there. */
static aclError add_number(const char *api, const char *text, size_t length,
                           const struct pg_backend *backend, struct list *list) {
  const int count = backend->device_count();
  char *end;
  const long number = isdigit((unsigned char)*text) ? strtol(text, &end, 10) : -1;
  if (number < 0 || end != text + length || number >= count)
    return pg_fail(api, ACL_ERROR_INVALID_PARAM,
                   "POOLGRAD_DEVICES has '%s:%.*s', there %s %d such device%s, counted from 0",
                   backend->name, (int)length, text, count == 1 ? "is" : "are", count,
                   count == 1 ? "" : "s");
  add(list, backend, (int)number);
  return ACL_SUCCESS;
}

static aclError refuse_word(const char *api, const char *word, size_t length) {
  char known[64] = "", name[16];
  snprintf(name, sizeof name, "%.*s", (int)length, word);
  const char *why = pg_backend_absence(name);
  PG_CHECK_AS(
      api, why == NULL, ACL_ERROR_INVALID_PARAM,
      "POOLGRAD_DEVICES has the word '%s', which has no device here: %s; cpu is always there", name,
      why);
  for (int i = 0; pg_backend_at(i) != NULL; i++)
    snprintf(known + strlen(known), sizeof known - strlen(known), " %s", pg_backend_at(i)->name);
  return pg_fail(api, ACL_ERROR_INVALID_PARAM,
                 "POOLGRAD_DEVICES has the word '%.*s', a comma-separated list of these is "
                 "allowed, each with :N behind it for one device alone:%s",
                 (int)length, word, known);
}

static aclError add_word(const char *api, const char *word, size_t length, struct list *list) {
  const size_t name = strcspn(word, ":,"); /* ends before length where there is a number */
  for (int i = 0; pg_backend_at(i) != NULL; i++) {
    const struct pg_backend *backend = pg_backend_at(i);
    if (strlen(backend->name) != name || strncmp(backend->name, word, name) != 0) continue;
    if (name < length) return add_number(api, word + name + 1, length - name - 1, backend, list);
    add_all(list, backend);
    return ACL_SUCCESS;
  }
  return refuse_word(api, word, name);
}

/* POOLGRAD_DEVICES: words, comma separated; a word may be repeated to get several devices.  Without
 * it: all devices of the best backend. */
static aclError list_devices(const char *api, struct list *list) {
  const char *text = pg_getenv("POOLGRAD_DEVICES");
  list->count = 0;
  list->hiding[0] = '\0';
  if (text == NULL || text[0] == '\0') {
    add_all(list, pg_backend_at(0));
    return ACL_SUCCESS;
  }
  for (;;) {
    const size_t length = strcspn(text, ",");
    PG_TRY(add_word(api, text, length, list));
    if (text[length] == '\0') return ACL_SUCCESS;
    text += length + 1;
  }
}

/* ASCEND_RT_VISIBLE_DEVICES: ascending ids; reading stops at the first entry that is none. */
static void filter_visible(struct list *list) {
  const char *text = pg_getenv("ASCEND_RT_VISIBLE_DEVICES");
  const char *begin = text;
  if (text == NULL) return;
  struct list kept = {.count = 0};
  const int all = list->count;
  long last = -1;
  while (isdigit((unsigned char)*text)) {
    char *end;
    const long id = strtol(text, &end, 10);
    if (id <= last || id >= list->count || (*end != ',' && *end != '\0')) break;
    kept.row[kept.count++] = list->row[id];
    last = id;
    if (*end == '\0') break;
    text = end + 1;
  }
  if (kept.count < all)
    snprintf(kept.hiding, sizeof kept.hiding,
             "ASCEND_RT_VISIBLE_DEVICES is '%.64s' and leaves %d of %d", begin, kept.count, all);
  *list = kept;
}

static bool in_use(void) {
  for (int i = 0; i < devices.count; i++)
    if (devices.users[i] > 0) return true;
  return pg_handle_count(PG_CONTEXT) > 0;
}

static aclError read_devices(const char *api) {
  struct list list;
  PG_TRY(list_devices(api, &list));
  PG_TRY(pg_strict_configure(api));
  filter_visible(&list);
  pthread_mutex_lock(&devices.lock);
  if (!devices.known || !in_use()) {
    devices.count = list.count;
    memcpy(devices.row, list.row, sizeof devices.row);
    memcpy(devices.hiding, list.hiding, sizeof devices.hiding);
    devices.known = true;
    note_backends();
  }
  pthread_mutex_unlock(&devices.lock);
  return ACL_SUCCESS;
}

aclError pg_configure(const char *api) {
  pg_log_configure();
  pg_variables_check();
  PG_TRY(pg_soc_configure(api));
  PG_TRY(pg_index_policy_configure(api));
  for (int i = 0; pg_backend_at(i) != NULL; i++) PG_TRY(pg_backend_at(i)->configure(api));
  if (pg_backend_absence("cuda") != NULL)
    pg_log(ACL_INFO, "cuda: not used, %s", pg_backend_absence("cuda"));
  return read_devices(api);
}

/* Programs may call aclrt functions without aclInit: the list is then read on first use. */
static aclError ensure_known(const char *api) {
  pthread_mutex_lock(&devices.lock);
  const bool known = devices.known;
  pthread_mutex_unlock(&devices.lock);
  if (known) return ACL_SUCCESS;
  pg_variables_check();
  return read_devices(api);
}

aclError pg_device_find_named(const char *api, const char *name, int64_t id,
                              struct pg_device *out) {
  char hiding[HIDING_BYTES];
  PG_TRY(ensure_known(api));
  pthread_mutex_lock(&devices.lock);
  const int count = devices.count;
  if (id >= 0 && id < count) *out = devices.row[id];
  memcpy(hiding, devices.hiding, sizeof hiding);
  pthread_mutex_unlock(&devices.lock);
  if (id >= 0 && id < count) return ACL_SUCCESS;
  return pg_fail(api, ACL_ERROR_RT_INVALID_DEVICEID, "%s is %lld, there %s %d device%s%s%s", name,
                 (long long)id, count == 1 ? "is" : "are", count,
                 count == 0   ? "s"
                 : count == 1 ? ", id 0"
                              : "s, counted from 0",
                 hiding[0] != '\0' ? "; " : "", hiding);
}

aclError pg_device_find(const char *api, int64_t id, struct pg_device *out) {
  return pg_device_find_named(api, "deviceId", id, out);
}

aclError aclrtGetDeviceCount(uint32_t *count) {
  char hiding[HIDING_BYTES];
  PG_CHECK_PTR(count, ACL_ERROR_INVALID_PARAM);
  PG_TRY(ensure_known(__func__));
  pthread_mutex_lock(&devices.lock);
  const int found = devices.count;
  memcpy(hiding, devices.hiding, sizeof hiding);
  pthread_mutex_unlock(&devices.lock);
  PG_CHECK(found > 0, ACL_ERROR_RT_NO_DEVICE,
           "no device is visible: %s, it must be an ascending list of ids of the devices in "
           "POOLGRAD_DEVICES",
           hiding);
  *count = (uint32_t)found;
  return ACL_SUCCESS;
}

aclError aclrtSetDevice(int32_t deviceId) {
  struct pg_device device;
  aclError status = ACL_SUCCESS;
  PG_TRY(pg_fork_check(__func__));
  PG_TRY(pg_device_find(__func__, deviceId, &device));
  pthread_mutex_lock(&devices.lock);
  if (!pg_is_live(devices.primary[deviceId], PG_CONTEXT)) { /* also one that aclFinalize ended */
    devices.users[deviceId] = 0;
    devices.primary[deviceId] = NULL;
    status = pg_context_create(__func__, &device, deviceId, true, &devices.primary[deviceId]);
  }
  void *primary = devices.primary[deviceId];
  if (status == ACL_SUCCESS) devices.users[deviceId]++;
  pthread_mutex_unlock(&devices.lock);
  PG_TRY(status);
  pg_context_make_current(primary);
  return ACL_SUCCESS;
}

/* The last user closes the primary context. */
static aclError reset(const char *api, int32_t id, bool force) {
  struct pg_device device;
  void *primary = NULL;
  PG_TRY(pg_fork_check(api));
  PG_TRY(pg_device_find(api, id, &device));
  PG_CHECK_AS(api, pg_inside_work == 0, ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
              "called from work of a stream, it would wait for its own end");
  pthread_mutex_lock(&devices.lock);
  const int users = devices.users[id];
  if (users > 0) devices.users[id] = force ? 0 : users - 1;
  if (users > 0 && devices.users[id] == 0) {
    primary = devices.primary[id];
    devices.primary[id] = NULL;
  }
  pthread_mutex_unlock(&devices.lock);
  if (users == 0)
    return pg_fail(api, ACL_ERROR_RT_CONTEXT_RELEASE_ERROR,
                   "device %d is not set, aclrtSetDevice must come first", (int)id);
  if (primary != NULL)
    (void)pg_context_close(api, primary, force ? PG_ENDING_FORCED : PG_ENDING_PATIENT);
  return ACL_SUCCESS;
}

aclError aclrtResetDevice(int32_t deviceId) { return reset(__func__, deviceId, false); }
aclError aclrtResetDeviceForce(int32_t deviceId) { return reset(__func__, deviceId, true); }

void pg_devices_release_all(const char *api) {
  pthread_mutex_lock(&devices.lock);
  memset(devices.users, 0, sizeof devices.users);
  memset(devices.primary, 0, sizeof devices.primary);
  devices.known = false; /* the next use reads the environment again */
  atomic_store(&listed, ANY_BACKEND);
  pthread_mutex_unlock(&devices.lock);
  /* one pass: threads that keep setting the device must not keep this busy for ever */
  for (void *h = pg_handle_next(PG_CONTEXT, NULL); h != NULL; h = pg_handle_next(PG_CONTEXT, h))
    (void)pg_context_close(api, h, PG_ENDING_PATIENT);
  for (int i = 0; pg_backend_at(i) != NULL; i++) pg_backend_at(i)->shut_down();
}

aclError aclrtGetPrimaryCtxState(int32_t deviceId, uint32_t *flags, int32_t *active) {
  struct pg_device device;
  PG_CHECK_PTR(active, ACL_ERROR_INVALID_PARAM);
  PG_CHECK(flags == NULL, ACL_ERROR_INVALID_PARAM, "flags is reserved, it must be NULL");
  PG_TRY(pg_device_find(__func__, deviceId, &device));
  pthread_mutex_lock(&devices.lock);
  *active = devices.primary[deviceId] != NULL;
  pthread_mutex_unlock(&devices.lock);
  return ACL_SUCCESS;
}

aclError aclrtGetDevice(int32_t *deviceId) {
  struct pg_context *context;
  PG_CHECK_PTR(deviceId, ACL_ERROR_INVALID_PARAM);
  PG_TRY(pg_context_ask(__func__, &context));
  *deviceId = context->device_id;
  pg_release(&context->object);
  return ACL_SUCCESS;
}

/* Every stream of the device in turn, within one deadline; the first failure is reported. */
aclError pg_device_synchronize(const char *api, int64_t timeout_ns) {
  struct pg_context *context;
  PG_TRY(pg_context_current(api, &context));
  const int device = context->device_id;
  pg_release(&context->object);
  const int64_t deadline = pg_deadline(timeout_ns);
  aclError first = ACL_SUCCESS;
  for (void *h = pg_handle_next(PG_STREAM, NULL); h != NULL; h = pg_handle_next(PG_STREAM, h)) {
    struct pg_stream *stream = pg_acquire(h, PG_STREAM);
    if (stream == NULL) continue;
    if (stream->context->device_id == device) {
      const int64_t now = pg_now_ns(), left = deadline > now ? deadline - now : 0;
      const aclError status =
          pg_stream_sync_if_there(api, stream, deadline == PG_FOREVER ? PG_FOREVER : left);
      if (first == ACL_SUCCESS) first = status;
    }
    pg_stream_release(stream);
  }
  return first;
}

aclError aclrtSynchronizeDevice(void) { return pg_device_synchronize(__func__, PG_FOREVER); }

aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout) {
  PG_CHECK(timeout >= -1, ACL_ERROR_RT_PARAM_INVALID,
           "timeout is %d ms, allowed is -1 (for ever) or more", (int)timeout);
  return pg_device_synchronize(__func__, timeout == -1 ? PG_FOREVER : timeout * PG_NS_PER_MS);
}

const char *poolgrad_devices(void) {
  enum { ROOM = PG_DEVICES_MAX * 128 + 640 };
  char *text = pg_thread_memory_made(PG_THREAD_DEVICES, ROOM);
  size_t used = 0;
  struct pg_device device;
  uint32_t count;
  if (text == NULL) pg_fail_with(__func__, ACL_ERROR_BAD_ALLOC, "no memory for the devices' text");
  if (text == NULL || aclrtGetDeviceCount(&count) != ACL_SUCCESS) return "";
  text[0] = '\0';
  for (uint32_t i = 0; i < count && pg_device_find(__func__, i, &device) == ACL_SUCCESS; i++) {
    char about[112];
    device.backend->describe(device.ordinal, about, sizeof about);
    used += (size_t)snprintf(text + used, ROOM - used, "%u: %s\n", i, about);
  }
  const char *why = pg_backend_absence("cuda");
  if (why != NULL) snprintf(text + used, ROOM - used, "cuda: not used, %s\n", why);
  return text;
}
