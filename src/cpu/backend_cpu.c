/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU as a device: its memory is the process's, its queues are threads. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/thread.h"
#include "cpu/method.h"
#include "cpu/queue.h"
#include "cpu/step.h"
#include "cpu/nontemporal.h"
#include "cpu/physical.h"
#include "cpu/workers.h"

enum { ALIGNMENT = 64, HUGE_PAGE = 2 << 20 };

static int device_count(void) { return 1; }

static void describe(int device, char *text, size_t size) {
  (void)device;
  const int threads = pg_workers_count();
  snprintf(text, size, "cpu (%d thread%s)", threads, threads == 1 ? "" : "s");
}

static int core_count(int device) {
  (void)device;
  return pg_workers_count();
}

/* Linux writes "2048K" into this file; sysconf knows the size with some C libraries only. */
static int64_t cache_bytes(int device) {
  (void)device;
  long kib = 0;
  const int cancel = pg_cancel_off(); /* the file would stay open */
  FILE *file = fopen("/sys/devices/system/cpu/cpu0/cache/index2/size", "re");
  if (file != NULL) {
    if (fscanf(file, "%9ldK", &kib) != 1) kib = 0;
    fclose(file);
  }
  pg_cancel_restore(cancel);
#ifdef _SC_LEVEL2_CACHE_SIZE
  if (kib <= 0) kib = sysconf(_SC_LEVEL2_CACHE_SIZE) / 1024;
#endif
  return kib > 0 ? (int64_t)kib * 1024 : 0;
}

static aclError configure(const char *api) {
  PG_TRY(pg_isa_configure(api));
  PG_TRY(pg_nontemporal_configure(api));
  return pg_workers_configure(api);
}

static void shut_down(void) {
  pg_queues_wait_gone();
  pg_workers_stop();
}

/* All memory belongs to the process, so a peer's memory is in reach already. */
static bool can_reach(int device, int peer) {
  (void)device, (void)peer;
  return true;
}

static aclError reach(int device, int peer, bool enable) {
  (void)device, (void)peer, (void)enable;
  return ACL_SUCCESS;
}

static aclError host_register(int device, void *memory, size_t bytes, bool read_only) {
  (void)device, (void)memory, (void)bytes, (void)read_only;
  return ACL_SUCCESS;
}

static void host_unregister(int device, void *memory) { (void)device, (void)memory; }

static void *native_stream(struct pg_queue *queue) {
  (void)queue;
  return NULL;
}

/* Device memory comes from malloc, so that sanitizers and debuggers watch it too. */
static void *allocate(int device, size_t bytes, bool huge) {
  (void)device;
  void *memory = NULL;
  const bool pages = huge && bytes >= HUGE_PAGE;
  if (posix_memalign(&memory, pages ? HUGE_PAGE : ALIGNMENT, bytes) != 0) return NULL;
  if (pages) (void)madvise(memory, bytes, MADV_HUGEPAGE); /* best effort */
  return memory;
}

static void release(int device, void *memory) {
  (void)device;
  free(memory);
}

static void *host_allocate(int device, size_t bytes) { return allocate(device, bytes, false); }

/* MemAvailable counts the page cache that the kernel would give up; sysconf does not. */
static void memory_info(int device, size_t *free_bytes, size_t *total_bytes) {
  (void)device;
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  *total_bytes = (size_t)sysconf(_SC_PHYS_PAGES) * page;
  *free_bytes = (size_t)sysconf(_SC_AVPHYS_PAGES) * page;
  const int cancel = pg_cancel_off(); /* the file would stay open */
  FILE *file = fopen("/proc/meminfo", "re");
  char text[128];
  unsigned long long kib;
  while (file != NULL && fgets(text, sizeof text, file) != NULL)
    if (sscanf(text, "MemAvailable: %llu kB", &kib) == 1) *free_bytes = (size_t)kib * 1024;
  if (file != NULL) fclose(file);
  pg_cancel_restore(cancel);
}

static const atomic_bool never; /* a stop that is never set: nobody aborts a call that waits */

static aclError copy_now(int device, const struct pg_copy *copy) {
  (void)device;
  pg_copy_run(copy, &never);
  return ACL_SUCCESS;
}

static aclError fill_now(int device, const struct pg_fill *fill) {
  (void)device;
  pg_fill_run(fill, &never);
  return ACL_SUCCESS;
}

const struct pg_backend pg_backend_cpu = {
    .name = "cpu",
    .on_host = true,
    .device_count = device_count,
    .describe = describe,
    .core_count = core_count,
    .cache_bytes = cache_bytes,
    .configure = configure,
    .shut_down = shut_down,
    .choose = pg_cpu_choose,
    .can_reach = can_reach,
    .reach = reach,
    .alloc = allocate,
    .free = release,
    .host_alloc = host_allocate,
    .host_free = release,
    .host_register = host_register,
    .host_unregister = host_unregister,
    .memory_info = memory_info,
    .copy = copy_now,
    .fill = fill_now,
    .reserve = pg_physical_reserve,
    .unreserve = pg_physical_unreserve,
    .physical_make = pg_physical_make,
    .physical_release = pg_physical_release,
    .map = pg_physical_map,
    .unmap = pg_physical_unmap,
    .queue_create = pg_queue_create,
    .queue_close = pg_queue_close,
    .queue_release = pg_queue_release,
    .submit = pg_queue_submit,
    .sync = pg_queue_sync,
    .idle = pg_queue_idle,
    .activity = pg_queue_activity,
    .hold = pg_queue_hold,
    .discard = pg_queue_discard,
    .interrupt = pg_queue_interrupt,
    .set_stop_on_failure = pg_queue_set_stop_on_failure,
    .on_own_step = pg_queue_on_own_step,
    .native_stream = native_stream,
    .mark_retain = pg_mark_retain,
    .mark_release = pg_mark_release,
    .mark_done = pg_mark_done,
    .mark_discarded = pg_mark_discarded,
    .mark_sync = pg_mark_sync,
    .mark_time_ns = pg_mark_time_ns,
};
