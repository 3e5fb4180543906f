/* SPDX-License-Identifier: Apache-2.0 */

/* The shapes of the functions a caller's own device allocator consists of. They are types only:
 * poolgrad allocates device memory itself and has no call that would register an allocator.
 *
 * allocator is the caller's object; a block is whatever alloc returned, and the get-addr function
 * tells where its memory begins. */

#ifndef PG_ACL_RT_ALLOCATOR_H_
#define PG_ACL_RT_ALLOCATOR_H_

#include <stddef.h>

#include "acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef void *(*aclrtAllocatorAllocFunc)(aclrtAllocator allocator, size_t size);
typedef void (*aclrtAllocatorFreeFunc)(aclrtAllocator allocator, aclrtAllocatorBlock block);
typedef void *(*aclrtAllocatorAllocAdviseFunc)(aclrtAllocator allocator, size_t size,
                                               aclrtAllocatorAddr addr);
typedef void *(*aclrtAllocatorGetAddrFromBlockFunc)(aclrtAllocatorBlock block);

#ifdef __cplusplus
}
#endif

#endif
