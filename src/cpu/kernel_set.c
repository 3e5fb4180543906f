/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/kernel_set.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/environment.h"
#include "core/status.h"
#include "cpu/cpu_features.h"
#include "poolgrad.h"

/* Best first; the last one is complete and runs anywhere. */
static const struct row {
  const struct pg_kernel_set *set;
  bool (*runs_here)(void);
} rows[] = {PG_OTHER_SETS{&pg_kernels_scalar, pg_cpu_is_any}};

enum { ROWS = sizeof rows / sizeof rows[0] };

static _Atomic(const struct row *) chosen; /* where the search begins; NULL: not decided yet */

static const struct row *best_row(void) {
  const struct row *row = rows;
  while (!row->runs_here()) row++;
  return row;
}

static aclError forced_row(const char *api, const char *name, const struct row **out) {
  char usable[64] = "";
  for (const struct row *row = rows; row < rows + ROWS; row++) {
    if (!row->runs_here()) continue;
    *out = row;
    if (strcmp(row->set->isa, name) == 0) return ACL_SUCCESS;
    snprintf(usable + strlen(usable), sizeof usable - strlen(usable), " %s", row->set->isa);
  }
  return pg_fail(api, ACL_ERROR_INVALID_PARAM,
                 "POOLGRAD_ISA is '%s', this library on this CPU has:%s", name, usable);
}

aclError pg_kernels_configure(const char *api) {
  const char *name = pg_getenv("POOLGRAD_ISA");
  const struct row *row = best_row();
  if (name != NULL && name[0] != '\0') PG_TRY(forced_row(api, name, &row));
  atomic_store(&chosen, row);
  return ACL_SUCCESS;
}

/* Without aclInit a wrong POOLGRAD_ISA leaves its sentence and the best set. */
static const struct row *chosen_row(void) {
  const struct row *row = atomic_load_explicit(&chosen, memory_order_acquire);
  if (row != NULL) return row;
  return pg_kernels_configure("POOLGRAD_ISA") == ACL_SUCCESS ? atomic_load(&chosen) : best_row();
}

const char *poolgrad_isa(void) { return chosen_row()->set->isa; }

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
  const struct row *row = chosen_row();
  while (row + 1 < rows + ROWS && row->set->fn[id][element] == NULL) row++;
  return row->set->fn[id][element];
}

/* Guards all reports: bad indices are rare, and a plane comes here once. */
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
