/* SPDX-License-Identifier: Apache-2.0 */
/* The library's own memory (descriptors, queues): one door.  Device memory goes through the backend
 * instead. */
#ifndef PG_ALLOC_H_
#define PG_ALLOC_H_

#include <stddef.h>

void *pg_alloc(size_t bytes);        /* NULL when exhausted */
void *pg_alloc_zeroed(size_t bytes); /* NULL when exhausted */
void *pg_realloc(void *old, size_t bytes);
void pg_free(void *memory); /* NULL is fine */

#endif
