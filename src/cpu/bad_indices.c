/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/bad_indices.h"

#include <pthread.h>
#include <stddef.h>

/* Guards the reports of all problems.  That is enough: few items have something to report, and each
 * takes the lock once. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void pg_report_bad_indices(struct pg_index_report *report, const struct pg_index_report *found) {
  if (found->count == 0 || report == NULL) return;
  pthread_mutex_lock(&lock);
  report->count += found->count;
  if (found->position < report->position) {
    report->position = found->position;
    report->value = found->value;
  }
  pthread_mutex_unlock(&lock);
}
