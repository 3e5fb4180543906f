/* SPDX-License-Identifier: Apache-2.0 */
/* Average pooling of 2 x 2 x 4 cells, windows of 2 x 2 x 2, and its gradient. */
#include <stdio.h>

#include "acl/acl.h"
#include "aclnnop/aclnn_avgpool3d.h"
#include "aclnnop/aclnn_avgpool3d_backward.h"

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
static aclTensor *put(void **memory, const void *values, size_t bytes, const int64_t dims[5],
                      aclDataType type) {
  if (aclrtMalloc(memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST) != ACL_SUCCESS ||
      aclrtMemcpy(*memory, bytes, values, bytes, ACL_MEMCPY_HOST_TO_DEVICE) != ACL_SUCCESS)
    return NULL;
  return aclCreateTensor(dims, 5, type, NULL, 0, ACL_FORMAT_ND, dims, 5, *memory);
}

int main(void) {
  const int64_t volume[] = {1, 1, 2, 2, 4}, pooled[] = {1, 1, 1, 1, 2}, two[] = {2}, zero[] = {0};
  const float cells[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
              gradients[] = {8, 16};
  float means[2] = {0}, gradient[16] = {0};
  void *memory[4], *workspace = NULL;
  uint64_t bytes;
  aclOpExecutor *executor;
  CHECK(aclInit(NULL));
  CHECK(aclrtSetDevice(0));
  aclTensor *self = put(&memory[0], cells, sizeof cells, volume, ACL_FLOAT);
  aclTensor *out = put(&memory[1], means, sizeof means, pooled, ACL_FLOAT);
  aclTensor *grad_output = put(&memory[2], gradients, sizeof gradients, pooled, ACL_FLOAT);
  aclTensor *grad_input = put(&memory[3], gradient, sizeof gradient, volume, ACL_FLOAT);
  aclIntArray *kernel = aclCreateIntArray(two, 1);
  aclIntArray *stride = aclCreateIntArray(NULL, 0); /* none: as the kernel */
  aclIntArray *padding = aclCreateIntArray(zero, 1);

  /* The first phase checks and plans the call, the second one queues it on the default stream. */
  CHECK(aclnnAvgPool3dGetWorkspaceSize(self, kernel, stride, padding, false, true, 0, out, &bytes,
                                       &executor));
  if (bytes > 0) CHECK(aclrtMalloc(&workspace, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclnnAvgPool3d(workspace, bytes, executor, NULL));
  CHECK(aclrtSynchronizeStream(NULL));
  CHECK(aclrtMemcpy(means, sizeof means, memory[1], sizeof means, ACL_MEMCPY_DEVICE_TO_HOST));
  printf("out, 1 x 1 x 2: the mean of each window\n  %g %g\n", means[0], means[1]);

  CHECK(aclnnAvgPool3dBackwardGetWorkspaceSize(grad_output, self, kernel, stride, padding, false,
                                               true, 0, grad_input, &bytes, &executor));
  if (bytes > 0) CHECK(aclrtMalloc(&workspace, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclnnAvgPool3dBackward(workspace, bytes, executor, NULL));
  CHECK(aclrtSynchronizeStream(NULL));
  CHECK(aclrtMemcpy(gradient, sizeof gradient, memory[3], sizeof gradient,
                    ACL_MEMCPY_DEVICE_TO_HOST));
  printf(
      "output, 2 x 2 x 4: the gradients 8 and 16, each shared by the eight cells of its window\n");
  for (int i = 0; i < 16; i++)
    printf("%s %g%s", i % 4 > 0 ? "" : i > 0 ? " |" : " ", gradient[i], i < 15 ? "" : "\n");

  aclDestroyIntArray(kernel), aclDestroyIntArray(stride), aclDestroyIntArray(padding);
  aclDestroyTensor(self), aclDestroyTensor(out), aclDestroyTensor(grad_output),
      aclDestroyTensor(grad_input);
  CHECK(aclFinalize()); /* frees the memory as well */
  printf(
      "summary: aclnnAvgPool3d averaged 16 cells to 2, aclnnAvgPool3dBackward spread 2 gradients "
      "over 16\n");
  return 0;
}
