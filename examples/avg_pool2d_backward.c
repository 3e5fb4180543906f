/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of average pooling, a 4 x 4 window over 16 planes of 4 x 4 cells: each cell gets
 * 1/16. */
#include <stdio.h>

#include "acl/acl.h"
#include "aclnnop/aclnn_avgpool2d_backward.h"

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
  const int64_t pooled[] = {1, 16, 1, 1}, planes[] = {1, 16, 4, 4};
  const int64_t kernel[] = {4, 4}, stride[] = {1, 1}, padding[] = {0, 0};
  float gradients[16], values[256] = {0}; /* of self only the shape counts */
  struct operand grad_output, self, grad_input;
  aclrtStream stream;
  for (int i = 0; i < 16; i++) gradients[i] = 1;
  CHECK(aclInit(NULL));
  CHECK(aclrtSetDevice(0));
  CHECK(aclrtCreateStream(&stream));
  if (put(&grad_output, gradients, sizeof gradients, pooled, ACL_FLOAT) ||
      put(&self, values, sizeof values, planes, ACL_FLOAT) ||
      put(&grad_input, values, sizeof values, planes, ACL_FLOAT))
    return 1;

  aclIntArray *window[] = {aclCreateIntArray(kernel, 2), aclCreateIntArray(stride, 2),
                           aclCreateIntArray(padding, 2)};
  const bool ceil_mode = false, count_include_pad = true;
  const int64_t divisor_override = 0; /* none: divide by the cells of the window */
  const int8_t cube_math_type = 1;
  uint64_t bytes;
  aclOpExecutor *executor;
  void *workspace = NULL;
  CHECK(aclnnAvgPool2dBackwardGetWorkspaceSize(
      grad_output.tensor, self.tensor, window[0], window[1], window[2], ceil_mode,
      count_include_pad, divisor_override, cube_math_type, grad_input.tensor, &bytes, &executor));
  if (bytes > 0) CHECK(aclrtMalloc(&workspace, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclnnAvgPool2dBackward(workspace, bytes, executor, stream));
  CHECK(aclrtSynchronizeStream(stream));

  CHECK(aclrtMemcpy(values, sizeof values, grad_input.memory, sizeof values,
                    ACL_MEMCPY_DEVICE_TO_HOST));
  show("gradInput, 1 x 16 x 4 x 4: a sixteenth of the gradient 1 in each cell; 2 of the planes",
       values, 2, 4, 4);

  if (workspace != NULL) CHECK(aclrtFree(workspace));
  for (int i = 0; i < 3; i++) CHECK(aclDestroyIntArray(window[i]));
  if (drop(&grad_output) || drop(&self) || drop(&grad_input)) return 1;
  CHECK(aclrtDestroyStream(stream));
  CHECK(aclrtResetDevice(0));
  CHECK(aclFinalize());
  printf("summary: aclnnAvgPool2dBackward spread 16 gradients over 256 cells\n");
  return 0;
}
