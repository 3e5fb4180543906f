/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/nontemporal.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/environment.h"
#include "core/status.h"
#include "core/thread.h"

/* A gradInput that a cache does not have yet is fetched before it is overwritten, unless stores go
 * past the caches.  From this size on that costs more than reading it again from memory later, also
 * where a cache could keep it; a large cache is shared by many cores, whose results push each other
 * out.  docs/performance.md has the figures. */
#define MOST (INT64_C(4) << 20)

/* sysconf's answer is wrong by a factor of ten in some virtual machines. */
static int64_t last_level_cache(void) {
  int64_t bytes = 0;
  const int cancel = pg_cancel_off(); /* a file would stay open */
  for (int level = 3; level >= 2 && bytes == 0; level--) {
    char path[64];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", level);
    FILE *file = fopen(path, "r");
    long long kib;
    if (file == NULL) continue;
    if (fscanf(file, "%lldK", &kib) == 1 && kib > 0) bytes = kib * 1024;
    fclose(file);
  }
  pg_cancel_restore(cancel);
  return bytes != 0 ? bytes : INT64_C(32) << 20;
}

static _Atomic int64_t least_bytes; /* 0: not decided yet */

aclError pg_nontemporal_configure(const char *api) {
  const char *text = pg_getenv("POOLGRAD_STREAM_BYTES");
  const int64_t eighth = last_level_cache() / 8;
  int64_t bytes = eighth < MOST ? eighth : MOST;
  if (text != NULL && text[0] != '\0') {
    char *end;
    bytes = strtoll(text, &end, 10);
    if (*end != '\0' || bytes < 1) return PG_REFUSE_VARIABLE(api, "POOLGRAD_STREAM_BYTES", text);
  }
  atomic_store(&least_bytes, bytes);
  return ACL_SUCCESS;
}

/* If there was no aclInit and POOLGRAD_STREAM_BYTES is wrong, its error message stays with the
 * thread, and the size is MOST. */
bool pg_prefers_nontemporal(int64_t bytes) {
  int64_t least = atomic_load_explicit(&least_bytes, memory_order_relaxed);
  if (least == 0) {
    const bool right = pg_nontemporal_configure("POOLGRAD_STREAM_BYTES") == ACL_SUCCESS;
    least = right ? atomic_load(&least_bytes) : MOST;
  }
  return bytes >= least;
}
