/* SPDX-License-Identifier: Apache-2.0 */

/* The same file under its second place. */

#ifndef PG_LEVEL2_ACLNN_ABS_H_
#define PG_LEVEL2_ACLNN_ABS_H_

#include "../aclnn_abs.h"

#endif
