/* SPDX-License-Identifier: Apache-2.0 */
/* Do two cells of a strided view lie in one place?  A tensor that is written must have none. */
#ifndef PG_OVERLAP_H_
#define PG_OVERLAP_H_

#include <stdint.h>

enum pg_overlap {
  PG_APART,    /* no two cells share a place */
  PG_SHARED,   /* some do */
  PG_UNDECIDED /* neither was found within PG_OVERLAP_STEPS */
};

enum { PG_OVERLAP_STEPS = 1 << 16 };

/* Dims are positive, strides not negative, at most 25 of them; the cells span less than 2^62
 * elements, more is left undecided. */
enum pg_overlap pg_overlap(int rank, const int64_t *dims, const int64_t *strides);

#endif
