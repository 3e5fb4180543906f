/* SPDX-License-Identifier: Apache-2.0 */
/* Max pooling of 4 x 4 cells, windows of 2 x 2 in steps of 2, and its gradient. The positions of
 * the maxima travel from one operator to the other in a container of bytes that the program does
 * not read. */
#include <stdio.h>

#include "acl/acl.h"
#include "aclnnop/aclnn_max_pool2d_with_indices.h"
#include "aclnnop/aclnn_max_pool2d_with_indices_backward.h"

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
  /* [N, C, kernel cells, (outputs of a plane / 16, rounded up, + 1) * 32] */
  const int64_t container[] = {1, 1, 2 * 2, ((2 * 2 + 15) / 16 + 1) * 32};
  const float cells[] = {1, 2, 8, 3, 4, 7, 5, 6, 9, 3, 1, 2, 5, 4, 8, 10};
  const float gradients[] = {1, 2, 3, 4};
  float maxima[4] = {0}, gradient[16] = {0};
  int8_t nothing[4 * 64] = {0};
  void *memory[5], *workspace = NULL;
  uint64_t bytes;
  aclOpExecutor *executor;
  CHECK(aclInit(NULL));
  CHECK(aclrtSetDevice(0));
  aclTensor *self = put(&memory[0], cells, sizeof cells, plane, ACL_FLOAT);
  aclTensor *out = put(&memory[1], maxima, sizeof maxima, pooled, ACL_FLOAT);
  aclTensor *indices = put(&memory[2], nothing, sizeof nothing, container, ACL_INT8);
  aclTensor *grad_output = put(&memory[3], gradients, sizeof gradients, pooled, ACL_FLOAT);
  aclTensor *grad_input = put(&memory[4], gradient, sizeof gradient, plane, ACL_FLOAT);
  aclIntArray *kernel = aclCreateIntArray(two, 2);
  aclIntArray *stride = aclCreateIntArray(two, 2);
  aclIntArray *padding = aclCreateIntArray(zero, 2);
  aclIntArray *dilation = aclCreateIntArray(one, 2);

  /* The first phase checks and plans the call, the second one queues it on the default stream. */
  CHECK(aclnnMaxPool2dWithMaskGetWorkspaceSize(self, kernel, stride, padding, dilation, false, out,
                                               indices, &bytes, &executor));
  if (bytes > 0) CHECK(aclrtMalloc(&workspace, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclnnMaxPool2dWithMask(workspace, bytes, executor, NULL));
  CHECK(aclrtSynchronizeStream(NULL));
  CHECK(aclrtMemcpy(maxima, sizeof maxima, memory[1], sizeof maxima, ACL_MEMCPY_DEVICE_TO_HOST));
  printf("out, 2 x 2: the maximum of each window\n  %g %g | %g %g\n", maxima[0], maxima[1],
         maxima[2], maxima[3]);

  CHECK(aclnnMaxPool2dWithMaskBackwardGetWorkspaceSize(grad_output, self, indices, kernel, stride,
                                                       padding, dilation, false, grad_input, &bytes,
                                                       &executor));
  if (bytes > 0) CHECK(aclrtMalloc(&workspace, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclnnMaxPool2dWithMaskBackward(workspace, bytes, executor, NULL));
  CHECK(aclrtSynchronizeStream(NULL));
  CHECK(aclrtMemcpy(gradient, sizeof gradient, memory[4], sizeof gradient,
                    ACL_MEMCPY_DEVICE_TO_HOST));
  printf(
      "gradInput, 4 x 4: the gradients 1 to 4, each in the cell that was its window's maximum\n");
  for (int i = 0; i < 16; i++)
    printf("%s %g%s", i % 4 > 0 ? "" : i > 0 ? " |" : " ", gradient[i], i < 15 ? "" : "\n");

  aclDestroyIntArray(kernel), aclDestroyIntArray(stride), aclDestroyIntArray(padding),
      aclDestroyIntArray(dilation);
  aclDestroyTensor(self), aclDestroyTensor(out), aclDestroyTensor(indices),
      aclDestroyTensor(grad_output), aclDestroyTensor(grad_input);
  CHECK(aclFinalize()); /* frees the memory as well */
  printf(
      "summary: aclnnMaxPool2dWithMask found 4 maxima, aclnnMaxPool2dWithMaskBackward sent 4 "
      "gradients to them\n");
  return 0;
}
