// SPDX-License-Identifier: Apache-2.0
// The smallest program of a stranger: memory there and back, one tensor, and, if given, the version
// expected.
#include <stdio.h>
#include <string.h>

#include "acl/acl.h"
#include "aclnn/acl_meta.h"

#define REQUIRE(cond)                                                         \
  do {                                                                        \
    if (!(cond)) {                                                            \
      const char *text = aclGetRecentErrMsg();                                \
      fprintf(stderr, "client: failed: %s (%s)\n", #cond, text ? text : "-"); \
      return 1;                                                               \
    }                                                                         \
  } while (0)

int main(int argc, char **argv) {
  const float sent[6] = {1, 2, 3, 4, 5, 6};
  float received[6] = {0};
  const int64_t dims[2] = {2, 3}, strides[2] = {3, 1};
  void *memory = NULL;

  REQUIRE(aclInit(NULL) == ACL_SUCCESS);
  REQUIRE(aclrtSetDevice(0) == ACL_SUCCESS);
  REQUIRE(aclrtMalloc(&memory, sizeof sent, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_SUCCESS);
  REQUIRE(aclrtMemcpy(memory, sizeof sent, sent, sizeof sent, ACL_MEMCPY_HOST_TO_DEVICE) ==
          ACL_SUCCESS);
  REQUIRE(aclrtMemcpy(received, sizeof received, memory, sizeof sent, ACL_MEMCPY_DEVICE_TO_HOST) ==
          ACL_SUCCESS);
  REQUIRE(memcmp(sent, received, sizeof sent) == 0);
  aclTensor *tensor =
      aclCreateTensor(dims, 2, ACL_FLOAT, strides, 0, ACL_FORMAT_ND, dims, 2, memory);
  REQUIRE(tensor != NULL);
  REQUIRE(aclDestroyTensor(tensor) == 0);
  if (argc > 1) {
    char package[] = "runtime", version[128] = "";
    REQUIRE(aclsysGetVersionStr(package, version) == ACL_SUCCESS);
    REQUIRE(strcmp(version, argv[1]) == 0);
  }
  REQUIRE(aclrtFree(memory) == ACL_SUCCESS);
  REQUIRE(aclrtResetDevice(0) == ACL_SUCCESS);
  REQUIRE(aclFinalize() == ACL_SUCCESS);
  puts("client ok");
  return 0;
}
