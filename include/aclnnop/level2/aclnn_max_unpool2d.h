/* SPDX-License-Identifier: Apache-2.0 */

/* The same file under its second place. */

#ifndef PG_LEVEL2_ACLNN_MAX_UNPOOL2D_H_
#define PG_LEVEL2_ACLNN_MAX_UNPOOL2D_H_

#include "../aclnn_max_unpool2d.h"

#endif
