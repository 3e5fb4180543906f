/* SPDX-License-Identifier: Apache-2.0 */

/* Umbrella of the runtime interface; acl_rt.h is the manual. */

#ifndef PG_ACL_H_
#define PG_ACL_H_

#include "acl_rt.h"
#include "acl_op.h"
#include "acl_mdl.h"

#endif
