/* SPDX-License-Identifier: Apache-2.0 */

/* ACLNN_API marks the functions that the shared library exports. */

#ifndef PG_ACLNN_UTIL_H_
#define PG_ACLNN_UTIL_H_

#if defined(__GNUC__)
#define ACLNN_API __attribute__((visibility("default")))
#else
#define ACLNN_API
#endif

#endif
