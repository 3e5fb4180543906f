/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PG_DTYPE_H_
#define PG_DTYPE_H_

#include "acl/acl_base.h"

/* As messages print it: "DT_FLOAT"; "dtype 99" for a number that is none. */
const char *pg_dtype_name(aclDataType type);

/* As messages print it: "NCHW"; "format 99" for a number that is none. */
const char *pg_format_name(aclFormat format);

#endif
