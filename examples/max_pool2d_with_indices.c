/* SPDX-License-Identifier: Apache-2.0 */
/* Max pooling of 4 x 4 cells, windows of 2 x 2 in steps of 2, with the position of each maximum. */
#include <stdio.h>

#include "acl/acl.h"
#include "aclnnop/aclnn_max_pool2d_with_indices.h"

#define CHECK(call)                                                     \
  do {                                                                  \
    const aclError status_ = (call);                                    \
    if (status_ != ACL_SUCCESS) {                                       \
      const char *why_ = aclGetRecentErrMsg();                          \
      fprintf(stderr, "%s: %d %s\n", #call, status_, why_ ? why_ : ""); \
      return 1;                                                         \
    }                                                                   \
  } while (0)

/* Copies values to new device memory and describes them as a tensor; NULL if that fails, which the
 * operator then refuses. */
static aclTensor *put(void **memory, const void *values, size_t bytes, const int64_t dims[4],
                      aclDataType type) {
  if (aclrtMalloc(memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST) != ACL_SUCCESS ||
      aclrtMemcpy(*memory, bytes, values, bytes, ACL_MEMCPY_HOST_TO_DEVICE) != ACL_SUCCESS)
    return NULL;
  return aclCreateTensor(dims, 4, type, NULL, 0, ACL_FORMAT_NCHW, dims, 4, *memory);
}

int main(void) {
  const int64_t plane[] = {1, 1, 4, 4}, pooled[] = {1, 1, 2, 2};
  const int64_t two[] = {2, 2}, zero[] = {0, 0}, one[] = {1, 1};
  const float cells[] = {1, 2, 8, 3, 4, 7, 5, 6, 9, 3, 1, 2, 5, 4, 8, 10};
  float maxima[4] = {0};
  int32_t positions[4] = {0}; /* h * 4 + w */
  void *memory[3], *workspace = NULL;
  uint64_t bytes;
  aclOpExecutor *executor;
  CHECK(aclInit(NULL));
  CHECK(aclrtSetDevice(0));
  aclTensor *self = put(&memory[0], cells, sizeof cells, plane, ACL_FLOAT);
  aclTensor *out = put(&memory[1], maxima, sizeof maxima, pooled, ACL_FLOAT);
  aclTensor *indices = put(&memory[2], positions, sizeof positions, pooled, ACL_INT32);
  aclIntArray *kernel = aclCreateIntArray(two, 2);
  aclIntArray *stride = aclCreateIntArray(two, 2);
  aclIntArray *padding = aclCreateIntArray(zero, 2);
  aclIntArray *dilation = aclCreateIntArray(one, 2);

  /* The first phase checks and plans the call, the second one queues it on the default stream. */
  CHECK(aclnnMaxPool2dWithIndicesGetWorkspaceSize(self, kernel, stride, padding, dilation, false,
                                                  out, indices, &bytes, &executor));
  if (bytes > 0) CHECK(aclrtMalloc(&workspace, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclnnMaxPool2dWithIndices(workspace, bytes, executor, NULL));
  CHECK(aclrtSynchronizeStream(NULL));
  CHECK(aclrtMemcpy(maxima, sizeof maxima, memory[1], sizeof maxima, ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK(aclrtMemcpy(positions, sizeof positions, memory[2], sizeof positions,
                    ACL_MEMCPY_DEVICE_TO_HOST));
  printf("out, 2 x 2: the maximum of each window\n  %g %g | %g %g\n", maxima[0], maxima[1],
         maxima[2], maxima[3]);
  printf("indices, 2 x 2: where it is\n  %d %d | %d %d\n", positions[0], positions[1], positions[2],
         positions[3]);

  aclDestroyIntArray(kernel), aclDestroyIntArray(stride), aclDestroyIntArray(padding),
      aclDestroyIntArray(dilation);
  aclDestroyTensor(self), aclDestroyTensor(out), aclDestroyTensor(indices);
  CHECK(aclFinalize()); /* frees the memory as well */
  printf("summary: aclnnMaxPool2dWithIndices found 4 maxima among 16 cells\n");
  return 0;
}
