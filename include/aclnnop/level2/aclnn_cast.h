/* SPDX-License-Identifier: Apache-2.0 */

/* The same file under its second place. */

#ifndef PG_LEVEL2_ACLNN_CAST_H_
#define PG_LEVEL2_ACLNN_CAST_H_

#include "../aclnn_cast.h"

#endif
