/* SPDX-License-Identifier: Apache-2.0 */
#include "core/alloc.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

static atomic_long allowed = -1;

void pg_alloc_fail_after(long count) { atomic_store(&allowed, count); }

static bool refused(void) {
  long left = atomic_load_explicit(&allowed, memory_order_relaxed);
  if (left < 0) return false;
  left = atomic_fetch_sub(&allowed, 1); /* 0 becomes -1: exactly one refusal */
  return left == 0;
}

void *pg_alloc(size_t bytes) { return refused() ? NULL : malloc(bytes); }
void *pg_alloc_zeroed(size_t bytes) { return refused() ? NULL : calloc(1, bytes); }
void *pg_realloc(void *old, size_t bytes) { return refused() ? NULL : realloc(old, bytes); }
void pg_free(void *memory) { free(memory); }
