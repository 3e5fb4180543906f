/* SPDX-License-Identifier: Apache-2.0 */

/* Headers of acl/ by bare name, through -I include/acl, with or without -I include. */

#include "acl.h"
#include "acl_base.h"
#include "acl_base_mdl.h"
#include "acl_base_rt.h"
#include "acl_mdl.h"
#include "acl_op.h"
#include "acl_op_compiler.h"
#include "acl_rt.h"
#include "acl_rt_allocator.h"
#include "error_codes/ge_error_codes.h"
#include "error_codes/rt_error_codes.h"

aclError header_probe(void);

aclError header_probe(void) { return aclrtSetDevice(0) == ACL_SUCCESS ? aclFinalize() : 0; }
