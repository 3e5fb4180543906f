/* SPDX-License-Identifier: Apache-2.0 */
/* Max pooling of 2 x 2 x 4 cells, windows of 2 x 2 x 2, with the position of each maximum, and its
 * gradient from these positions. */
#include <stdio.h>

#include "acl/acl.h"
#include "aclnnop/aclnn_max_pool3d_with_argmax.h"
#include "aclnnop/aclnn_max_pool3d_with_argmax_backward.h"

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
  return aclCreateTensor(dims, 5, type, NULL, 0, ACL_FORMAT_NCDHW, dims, 5, *memory);
}

int main(void) {
  const int64_t volume[] = {1, 1, 2, 2, 4}, pooled[] = {1, 1, 1, 1, 2};
  const int64_t two[] = {2}, zero[] = {0}, one[] = {1};
  const float cells[] = {1, 9, 2, 3, 4, 5, 6, 7, 8, 7, 6, 5, 4, 3, 10, 1};
  const float gradients[] = {1, 2};
  float maxima[2] = {0}, gradient[16] = {0};
  int32_t positions[2] = {0}; /* (d * 2 + h) * 4 + w */
  void *memory[5], *workspace = NULL;
  uint64_t bytes;
  aclOpExecutor *executor;
  CHECK(aclInit(NULL));
  CHECK(aclrtSetDevice(0));
  aclTensor *self = put(&memory[0], cells, sizeof cells, volume, ACL_FLOAT);
  aclTensor *out = put(&memory[1], maxima, sizeof maxima, pooled, ACL_FLOAT);
  aclTensor *indices = put(&memory[2], positions, sizeof positions, pooled, ACL_INT32);
  aclTensor *grad_output = put(&memory[3], gradients, sizeof gradients, pooled, ACL_FLOAT);
  aclTensor *grad_input = put(&memory[4], gradient, sizeof gradient, volume, ACL_FLOAT);
  aclIntArray *kernel = aclCreateIntArray(two, 1);
  aclIntArray *stride = aclCreateIntArray(two, 1);
  aclIntArray *padding = aclCreateIntArray(zero, 1);
  aclIntArray *dilation = aclCreateIntArray(one, 1);

  /* The first phase checks and plans the call, the second one queues it on the default stream. */
  CHECK(aclnnMaxPool3dWithArgmaxGetWorkspaceSize(self, kernel, stride, padding, dilation, false,
                                                 out, indices, &bytes, &executor));
  if (bytes > 0) CHECK(aclrtMalloc(&workspace, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclnnMaxPool3dWithArgmax(workspace, bytes, executor, NULL));
  CHECK(aclrtSynchronizeStream(NULL));
  CHECK(aclrtMemcpy(maxima, sizeof maxima, memory[1], sizeof maxima, ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK(aclrtMemcpy(positions, sizeof positions, memory[2], sizeof positions,
                    ACL_MEMCPY_DEVICE_TO_HOST));
  printf("out, 1 x 1 x 2: the maximum of each window\n  %g %g\n", maxima[0], maxima[1]);
  printf("indices, 1 x 1 x 2: where it is\n  %d %d\n", positions[0], positions[1]);

  CHECK(aclnnMaxPool3dWithArgmaxBackwardGetWorkspaceSize(grad_output, self, indices, kernel, stride,
                                                         padding, dilation, false, grad_input,
                                                         &bytes, &executor));
  if (bytes > 0) CHECK(aclrtMalloc(&workspace, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclnnMaxPool3dWithArgmaxBackward(workspace, bytes, executor, NULL));
  CHECK(aclrtSynchronizeStream(NULL));
  CHECK(aclrtMemcpy(gradient, sizeof gradient, memory[4], sizeof gradient,
                    ACL_MEMCPY_DEVICE_TO_HOST));
  printf(
      "gradInput, 2 x 2 x 4: the gradients 1 and 2, each in the cell that was its window's "
      "maximum\n");
  for (int i = 0; i < 16; i++)
    printf("%s %g%s", i % 4 > 0 ? "" : i > 0 ? " |" : " ", gradient[i], i < 15 ? "" : "\n");

  aclDestroyIntArray(kernel), aclDestroyIntArray(stride), aclDestroyIntArray(padding),
      aclDestroyIntArray(dilation);
  aclDestroyTensor(self), aclDestroyTensor(out), aclDestroyTensor(indices),
      aclDestroyTensor(grad_output), aclDestroyTensor(grad_input);
  CHECK(aclFinalize()); /* frees the memory as well */
  printf(
      "summary: aclnnMaxPool3dWithArgmax found 2 maxima, aclnnMaxPool3dWithArgmaxBackward sent 2 "
      "gradients to them\n");
  return 0;
}
