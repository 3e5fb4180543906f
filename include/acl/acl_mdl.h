/* SPDX-License-Identifier: Apache-2.0 */

/* Model interface (aclmdl*). poolgrad runs operators, not models, so this file declares nothing;
 * it exists for programs that include it by name. */

#ifndef PG_ACL_MDL_H_
#define PG_ACL_MDL_H_

#include "acl_base.h"
#include "acl_rt.h"

#endif
