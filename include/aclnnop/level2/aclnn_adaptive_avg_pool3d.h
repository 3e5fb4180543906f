/* SPDX-License-Identifier: Apache-2.0 */

/* The same file under its second place. */

#ifndef PG_LEVEL2_ACLNN_ADAPTIVE_AVG_POOL3D_H_
#define PG_LEVEL2_ACLNN_ADAPTIVE_AVG_POOL3D_H_

#include "../aclnn_adaptive_avg_pool3d.h"

#endif
