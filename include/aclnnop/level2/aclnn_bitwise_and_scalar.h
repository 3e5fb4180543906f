/* SPDX-License-Identifier: Apache-2.0 */

/* The same file under its second place. */

#ifndef PG_LEVEL2_ACLNN_BITWISE_AND_SCALAR_H_
#define PG_LEVEL2_ACLNN_BITWISE_AND_SCALAR_H_

#include "../aclnn_bitwise_and_scalar.h"

#endif
