/* SPDX-License-Identifier: Apache-2.0 */

/* Single-operator interface (aclop*). poolgrad offers its operators through aclnnop/ only, so this
 * file declares nothing; it exists for programs that include it by name. */

#ifndef PG_ACL_OP_H_
#define PG_ACL_OP_H_

#include "acl_base.h"
#include "acl_rt.h"

#endif
