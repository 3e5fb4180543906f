/* SPDX-License-Identifier: Apache-2.0 */
/* The mask of aclnnMaxPool2dWithMask: a container of bytes with the indices in it.
 *
 * Its shape is (N, C, kH * kW, (ceil(Ho * Wo / 16) + 1) * 32), INT8.  The indices, INT32, are
 * packed from its first byte on, N * C * Ho * Wo of them; all other bytes are 0.  They fit if a
 * window has 2 cells or more: a plane of the container has at least 2 * (Ho * Wo / 16 + 1) * 32
 * bytes then, which is 4 * Ho * Wo + 64.  A window of one cell needs no index, and the container is
 * zeros. */
#ifndef PG_MASK_H_
#define PG_MASK_H_

#include "ops/pool_check.h"

/* Are there indices in it? */
bool pg_mask_has_indices(const struct pg_pooling *pool);

/* The mask has its shape, is contiguous, and begins where INT32 may. */
aclnnStatus pg_mask_check(const char *api, const struct pg_view *mask,
                          const struct pg_pooling *pool);

/* The indices in it, for kernels that take 4 bytes each; the mask passed pg_view_check. */
struct pg_view pg_mask_indices(const struct pg_view *mask, const struct pg_pooling *pool);

#endif
