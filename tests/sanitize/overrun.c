/* SPDX-License-Identifier: Apache-2.0 */
/* overrun <function> <bytes> <index>: allocates, and writes and reads the byte at the index.  A
 * memory checker must report every index from the bytes on, and none before. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acl/acl.h"

int main(int argc, char **argv) {
  void *memory = NULL;
  if (argc != 4 || aclInit(NULL) != ACL_SUCCESS || aclrtSetDevice(0) != ACL_SUCCESS) return 2;
  const bool host = strcmp(argv[1], "aclrtMallocHost") == 0;
  const size_t bytes = strtoul(argv[2], NULL, 10), index = strtoul(argv[3], NULL, 10);
  const aclError status = host ? aclrtMallocHost(&memory, bytes)
                               : aclrtMalloc(&memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
  if (status != ACL_SUCCESS) return 2;
  volatile char *byte = (char *)memory + index;
  *byte = 5;
  printf("wrote %d\n", *byte);
  if ((host ? aclrtFreeHost(memory) : aclrtFree(memory)) != ACL_SUCCESS) return 2;
  return aclrtResetDevice(0) != ACL_SUCCESS || aclFinalize() != ACL_SUCCESS ? 2 : 0;
}
