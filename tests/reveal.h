/* SPDX-License-Identifier: Apache-2.0 */
/* For tests that look at the padding behind an allocation. */
#ifndef PG_TESTS_REVEAL_H_
#define PG_TESTS_REVEAL_H_

#include "runtime/memory.h"
#include "runtime/padding.h"

/* A memory checker would report that they do, so this allows it. */
static inline void reveal_padding(const void *memory) {
  const struct pg_memory m = pg_memory_find(memory);
  if (pg_memory_on_host(&m)) pg_padding_allow(m.base + m.asked, m.bytes - m.asked);
}

#endif
