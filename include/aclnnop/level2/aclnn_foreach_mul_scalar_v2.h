/* SPDX-License-Identifier: Apache-2.0 */

/* The same file under its second place. */

#ifndef PG_LEVEL2_ACLNN_FOREACH_MUL_SCALAR_V2_H_
#define PG_LEVEL2_ACLNN_FOREACH_MUL_SCALAR_V2_H_

#include "../aclnn_foreach_mul_scalar_v2.h"

#endif
