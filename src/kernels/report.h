/* SPDX-License-Identifier: Apache-2.0 */
/* What a kernel tells the host: it cannot fail, but some find what only the data say. */
#ifndef PG_KERNEL_REPORT_H_
#define PG_KERNEL_REPORT_H_

#include <stdint.h>

/* The indices outside their planes that were found while one problem was computed. */
struct pg_index_report {
  int64_t count;
  int64_t position, value; /* of the first one: the flat position of its output, and its value */
};

#endif
