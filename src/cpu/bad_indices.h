/* SPDX-License-Identifier: Apache-2.0 */
/* Indices that name nothing: a thread collects what it finds, and adds it to the report of the
 * problem. */
#ifndef PG_BAD_INDICES_H_
#define PG_BAD_INDICES_H_

#include <stdint.h>

#include "kernels/report.h"

static inline struct pg_index_report pg_no_bad_indices(void) {
  return (struct pg_index_report){.count = 0, .position = INT64_MAX};
}

static inline void pg_note_bad_index(struct pg_index_report *found, int64_t position,
                                     int64_t value) {
  found->count++;
  if (position >= found->position) return;
  found->position = position;
  found->value = value;
}

/* Adds what was found to the report of a problem, which may be NULL. */
void pg_report_bad_indices(struct pg_index_report *report, const struct pg_index_report *found);

#endif
