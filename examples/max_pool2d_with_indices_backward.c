/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of max pooling, a 2 x 2 window in steps of 2 over 4 x 3 cells: each gradient goes to
 * the cell that was its window's maximum. */
#include <stdio.h>

#include "acl/acl.h"
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

struct operand {
  void *memory;
  aclTensor *tensor;
};

/* Copies host's values to the device and describes them as a tensor. */
static int put(struct operand *to, const void *host, size_t bytes, const int64_t dims[4],
               aclDataType type) {
  CHECK(aclrtMalloc(&to->memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclrtMemcpy(to->memory, bytes, host, bytes, ACL_MEMCPY_HOST_TO_DEVICE));
  to->tensor = aclCreateTensor(dims, 4, type, NULL, 0, ACL_FORMAT_NCHW, dims, 4, to->memory);
  return to->tensor == NULL;
}

static int drop(struct operand *operand) {
  CHECK(aclDestroyTensor(operand->tensor));
  CHECK(aclrtFree(operand->memory));
  return 0;
}

/* One line for each plane, its rows between bars. */
static void show(const char *caption, const float *values, int planes, int height, int width) {
  printf("%s\n", caption);
  for (int plane = 0; plane < planes; plane++) {
    for (int row = 0; row < height; row++) {
      printf("%s", row > 0 ? " |" : " ");
      for (int column = 0; column < width; column++) printf(" %g", *values++);
    }
    printf("\n");
  }
}

int main(void) {
  const int64_t pooled[] = {1, 1, 2, 1}, plane[] = {1, 1, 4, 3};
  const int64_t kernel[] = {2, 2}, stride[] = {2, 2}, padding[] = {0, 0}, dilation[] = {1, 1};
  const float gradients[] = {0.4757f, 0.1726f};
  const int32_t positions[] = {0, 6}; /* h * 3 + w */
  float values[12] = {0};             /* of self only the shape counts */
  struct operand grad_output, self, indices, grad_input;
  aclrtStream stream;
  CHECK(aclInit(NULL));
  CHECK(aclrtSetDevice(0));
  CHECK(aclrtCreateStream(&stream));
  if (put(&grad_output, gradients, sizeof gradients, pooled, ACL_FLOAT) ||
      put(&self, values, sizeof values, plane, ACL_FLOAT) ||
      put(&indices, positions, sizeof positions, pooled, ACL_INT32) ||
      put(&grad_input, values, sizeof values, plane, ACL_FLOAT))
    return 1;

  aclIntArray *window[] = {aclCreateIntArray(kernel, 2), aclCreateIntArray(stride, 2),
                           aclCreateIntArray(padding, 2), aclCreateIntArray(dilation, 2)};
  uint64_t bytes;
  aclOpExecutor *executor;
  void *workspace = NULL;
  CHECK(aclnnMaxPool2dWithIndicesBackwardGetWorkspaceSize(
      grad_output.tensor, self.tensor, indices.tensor, window[0], window[1], window[2], window[3],
      false, grad_input.tensor, &bytes, &executor));
  if (bytes > 0) CHECK(aclrtMalloc(&workspace, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclnnMaxPool2dWithIndicesBackward(workspace, bytes, executor, stream));
  CHECK(aclrtSynchronizeStream(stream));

  CHECK(aclrtMemcpy(values, sizeof values, grad_input.memory, sizeof values,
                    ACL_MEMCPY_DEVICE_TO_HOST));
  show("gradInput, 1 x 1 x 4 x 3: each gradient in the cell that was its window's maximum", values,
       1, 4, 3);

  if (workspace != NULL) CHECK(aclrtFree(workspace));
  for (int i = 0; i < 4; i++) CHECK(aclDestroyIntArray(window[i]));
  if (drop(&grad_output) || drop(&self) || drop(&indices) || drop(&grad_input)) return 1;
  CHECK(aclrtDestroyStream(stream));
  CHECK(aclrtResetDevice(0));
  CHECK(aclFinalize());
  printf("summary: aclnnMaxPool2dWithIndicesBackward sent 2 gradients to 2 of 12 cells\n");
  return 0;
}
