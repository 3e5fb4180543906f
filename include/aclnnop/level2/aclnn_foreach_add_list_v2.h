/* SPDX-License-Identifier: Apache-2.0 */

/* The same file under its second place. */

#ifndef PG_LEVEL2_ACLNN_FOREACH_ADD_LIST_V2_H_
#define PG_LEVEL2_ACLNN_FOREACH_ADD_LIST_V2_H_

#include "../aclnn_foreach_add_list_v2.h"

#endif
