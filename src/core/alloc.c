/* SPDX-License-Identifier: Apache-2.0 */
#include "core/alloc.h"

#include <stdlib.h>

void *pg_alloc(size_t bytes) { return malloc(bytes); }
void *pg_alloc_zeroed(size_t bytes) { return calloc(1, bytes); }
void *pg_realloc(void *old, size_t bytes) { return realloc(old, bytes); }
void pg_free(void *memory) { free(memory); }
