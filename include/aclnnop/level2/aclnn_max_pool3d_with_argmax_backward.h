/* SPDX-License-Identifier: Apache-2.0 */

/* The same file under its second place. */

#ifndef PG_LEVEL2_ACLNN_MAX_POOL3D_WITH_ARGMAX_BACKWARD_H_
#define PG_LEVEL2_ACLNN_MAX_POOL3D_WITH_ARGMAX_BACKWARD_H_

#include "../aclnn_max_pool3d_with_argmax_backward.h"

#endif
