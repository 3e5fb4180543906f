// SPDX-License-Identifier: Apache-2.0

// What C++11 clients write: deleters of exact type, scoped enumerator names, codes as constants.

#include <cstdint>
#include <memory>
#include <type_traits>

#include "acl/acl.h"
#include "aclnnop/aclnn_ops_nn.h"

static_assert(std::is_same<aclError, int>::value, "aclError");
static_assert(std::is_same<aclnnStatus, std::int32_t>::value, "aclnnStatus");
static_assert(std::is_same<aclrtStream, void *>::value, "aclrtStream");
static_assert(OK == 0 && ACL_SUCCESS == 0, "usable as constants");
static_assert(aclDataType::ACL_FLOAT == 0, "scoped name");
static_assert(aclFormat::ACL_FORMAT_NCHW == ACL_FORMAT_NCHW, "scoped name");

using MemoryPtr = std::unique_ptr<void, aclError (*)(void *)>;
using TensorPtr = std::unique_ptr<aclTensor, aclnnStatus (*)(const aclTensor *)>;
using IntArrayPtr = std::unique_ptr<aclIntArray, aclnnStatus (*)(const aclIntArray *)>;

int client();

int client() {
  const std::int64_t dims[] = {1, 2, 3, 4};
  void *raw = nullptr;
  if (aclrtMalloc(&raw, 24 * sizeof(float), ACL_MEM_MALLOC_HUGE_FIRST) != ACL_SUCCESS) return 1;
  MemoryPtr memory(raw, aclrtFree);
  TensorPtr tensor(aclCreateTensor(dims, 4, aclDataType::ACL_FLOAT, nullptr, 0,
                                   aclFormat::ACL_FORMAT_NCHW, dims, 4, memory.get()),
                   aclDestroyTensor);
  IntArrayPtr kernel(aclCreateIntArray(dims, 2), aclDestroyIntArray);
  std::unique_ptr<void, aclError (*)(aclrtStream)> stream(nullptr, aclrtDestroyStream);

  std::int64_t *shape = nullptr;
  std::uint64_t rank = 0;
  if (aclGetViewShape(tensor.get(), &shape, &rank) != OK) return 1;
  delete[] shape;

  switch (aclrtSynchronizeStream(stream.get())) {
    case ACL_SUCCESS:
      return 0;
    case ACL_ERROR_RT_WAIT_TIMEOUT:
      return 2;
    case ACL_ERROR_INTERNAL_ERROR:
      return 3;
    default:
      return 1;
  }
}
