// SPDX-License-Identifier: Apache-2.0
// The same as ../client.c in C++: here the exact function types matter, because deleters are made
// of them.
#include <cstdint>
#include <cstdio>
#include <memory>
#include <vector>

#include "acl/acl.h"
#include "aclnn/acl_meta.h"

#define REQUIRE(cond)                                      \
  do {                                                     \
    if (!(cond)) {                                         \
      std::fprintf(stderr, "client: failed: %s\n", #cond); \
      return 1;                                            \
    }                                                      \
  } while (0)

static int Run() {
  const std::vector<float> sent = {1, 2, 3, 4, 5, 6};
  std::vector<float> received(sent.size());
  const std::vector<int64_t> dims = {2, 3}, strides = {3, 1};
  const size_t bytes = sent.size() * sizeof(float);

  void *address = nullptr;
  REQUIRE(aclrtMalloc(&address, bytes, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_SUCCESS);
  std::unique_ptr<void, aclError (*)(void *)> memory(address, aclrtFree);
  REQUIRE(aclrtMemcpy(address, bytes, sent.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE) ==
          ACL_SUCCESS);
  REQUIRE(aclrtMemcpy(received.data(), bytes, address, bytes, ACL_MEMCPY_DEVICE_TO_HOST) ==
          ACL_SUCCESS);
  REQUIRE(sent == received);
  std::unique_ptr<aclTensor, aclnnStatus (*)(const aclTensor *)> tensor(
      aclCreateTensor(dims.data(), dims.size(), aclDataType::ACL_FLOAT, strides.data(), 0,
                      aclFormat::ACL_FORMAT_ND, dims.data(), dims.size(), address),
      aclDestroyTensor);
  REQUIRE(tensor != nullptr);
  return 0;
}

int main() {
  REQUIRE(aclInit(nullptr) == ACL_SUCCESS);
  REQUIRE(aclrtSetDevice(0) == ACL_SUCCESS);
  const int status = Run();
  REQUIRE(aclrtResetDevice(0) == ACL_SUCCESS);
  REQUIRE(aclFinalize() == ACL_SUCCESS);
  if (status == 0) std::puts("client ok");
  return status;
}
