/* SPDX-License-Identifier: Apache-2.0 */
/* Product profiles: what POOLGRAD_SOC chooses.  One row per product; checks ask the row, never
 * the name. */
#ifndef PG_SOC_H_
#define PG_SOC_H_

#include <stdbool.h>

#include "acl/acl_base.h"

struct pg_soc {
  const char *prefix;       /* names that start so belong to the row; NULL: the portable profile */
  const char *older_prefix; /* likewise; optional */
  int npu_arch;             /* ACL_DEV_ATTR_NPU_ARCH */
  /* MaxPool2dWithIndicesBackward: half types, INT64 indices */
  bool max_half, max_int64;
  /* MaxPool2dWithIndices and MaxPool3dWithArgmax: dilation above 1, NHWC and NDHWC; the backward of
   * the first one too */
  bool max_dilation, max_nhwc;
  bool max3d_int64;   /* maxima in three dimensions, both directions: INT64 indices */
  bool large_planes;  /* adaptive maxima: more than 2^31 - 1 cells with INT64 indices */
  bool large_volumes; /* MaxPool3dWithArgmax and its backward: likewise */
  /* The first axis may be 0: of AdaptiveAvgPool3d, of its backward */
  bool avg3d_empty_batch, avg3d_backward_empty_batch;
  bool masks;             /* MaxPool2dWithMask and its backward exist */
  bool max_pool_integers; /* MaxPool: BF16 and integers */
  bool adaptive_max3d_nd; /* AdaptiveMaxPool3d: format ND, outputSize with 0 or 1 values */
  bool avg3d_any_planar;  /* AdaptiveAvgPool3d: formats NCL and NC */
  bool avg3d_long_kernel; /* AvgPool3d: the kernel may be longer than the input, by the paddings */
};

/* Reads POOLGRAD_SOC again.  ACL_ERROR_INVALID_PARAM with a sentence for an unknown name. */
aclError pg_soc_configure(const char *api);

/* The row in force; the portable one until configured. */
const struct pg_soc *pg_soc(void);

/* The row a product name belongs to, or NULL. */
const struct pg_soc *pg_soc_find(const char *name);

#endif
