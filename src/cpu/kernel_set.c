/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/kernel_set.h"

#include <pthread.h>
#include <stddef.h>

static const struct pg_kernel_set *const sets[] = {&pg_kernels_scalar}; /* best first */

static enum pg_element element_of(aclDataType dtype) {
  switch (dtype) {
    case ACL_FLOAT16:
      return PG_F16;
    case ACL_BF16:
      return PG_BF16;
    case ACL_DOUBLE:
      return PG_F64;
    default:
      return PG_F32;
  }
}

pg_kernel_fn *pg_kernel_find(enum pg_kernel id, aclDataType dtype) {
  const enum pg_element element = element_of(dtype);
  size_t i = 0; /* the last set is complete */
  while (i + 1 < sizeof sets / sizeof sets[0] && sets[i]->fn[id][element] == NULL) i++;
  return sets[i]->fn[id][element];
}

/* Guards all reports: bad indices are rare, and a tile comes here once. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void pg_index_report_merge(struct pg_index_report *report, const struct pg_index_report *found) {
  pthread_mutex_lock(&lock);
  report->count += found->count;
  if (found->position < report->position) {
    report->position = found->position;
    report->value = found->value;
  }
  pthread_mutex_unlock(&lock);
}
