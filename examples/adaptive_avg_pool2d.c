/* SPDX-License-Identifier: Apache-2.0 */
/* Adaptive average pooling of 3 x 3 cells to 2 x 2 outputs, and its gradient. The windows overlap
 * in the middle row and column. */
#include <stdio.h>

#include "acl/acl.h"
#include "aclnnop/aclnn_adaptive_avg_pool2d.h"
#include "aclnnop/aclnn_adaptive_avg_pool2d_backward.h"

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
  const int64_t plane[] = {1, 1, 3, 3}, pooled[] = {1, 1, 2, 2}, size[] = {2, 2};
  const float cells[] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, gradients[] = {4, 8, 12, 16};
  float means[4] = {0}, gradient[9] = {0};
  void *memory[4], *workspace = NULL;
  uint64_t bytes;
  aclOpExecutor *executor;
  CHECK(aclInit(NULL));
  CHECK(aclrtSetDevice(0));
  aclTensor *self = put(&memory[0], cells, sizeof cells, plane, ACL_FLOAT);
  aclTensor *out = put(&memory[1], means, sizeof means, pooled, ACL_FLOAT);
  aclTensor *grad_output = put(&memory[2], gradients, sizeof gradients, pooled, ACL_FLOAT);
  aclTensor *grad_input = put(&memory[3], gradient, sizeof gradient, plane, ACL_FLOAT);
  aclIntArray *output_size = aclCreateIntArray(size, 2);

  /* The first phase checks and plans the call, the second one queues it on the default stream. */
  CHECK(aclnnAdaptiveAvgPool2dGetWorkspaceSize(self, output_size, out, &bytes, &executor));
  if (bytes > 0) CHECK(aclrtMalloc(&workspace, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclnnAdaptiveAvgPool2d(workspace, bytes, executor, NULL));
  CHECK(aclrtSynchronizeStream(NULL));
  CHECK(aclrtMemcpy(means, sizeof means, memory[1], sizeof means, ACL_MEMCPY_DEVICE_TO_HOST));
  printf("out, 2 x 2: the mean of each window\n  %g %g | %g %g\n", means[0], means[1], means[2],
         means[3]);

  CHECK(aclnnAdaptiveAvgPool2dBackwardGetWorkspaceSize(grad_output, self, grad_input, &bytes,
                                                       &executor));
  if (bytes > 0) CHECK(aclrtMalloc(&workspace, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclnnAdaptiveAvgPool2dBackward(workspace, bytes, executor, NULL));
  CHECK(aclrtSynchronizeStream(NULL));
  CHECK(aclrtMemcpy(gradient, sizeof gradient, memory[3], sizeof gradient,
                    ACL_MEMCPY_DEVICE_TO_HOST));
  printf(
      "out of the backward, 3 x 3: the gradients 4, 8, 12 and 16, each shared by the four cells of "
      "its window\n");
  for (int i = 0; i < 9; i++)
    printf("%s %g%s", i % 3 > 0 ? "" : i > 0 ? " |" : " ", gradient[i], i < 8 ? "" : "\n");

  aclDestroyIntArray(output_size);
  aclDestroyTensor(self), aclDestroyTensor(out), aclDestroyTensor(grad_output),
      aclDestroyTensor(grad_input);
  CHECK(aclFinalize()); /* frees the memory as well */
  printf(
      "summary: aclnnAdaptiveAvgPool2d averaged 9 cells to 4, aclnnAdaptiveAvgPool2dBackward "
      "spread 4 gradients over 9\n");
  return 0;
}
