/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of adaptive max pooling, 2 x 3 x 3 cells to 1 x 2 x 2. The windows overlap, and
 * three of them have their maximum in the same cell: its gradients are added. */
#include <stdio.h>

#include "acl/acl.h"
#include "aclnnop/aclnn_adaptive_max_pool3d_backward.h"

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
static int put(struct operand *to, const void *host, size_t bytes, const int64_t dims[5],
               aclDataType type) {
  CHECK(aclrtMalloc(&to->memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclrtMemcpy(to->memory, bytes, host, bytes, ACL_MEMCPY_HOST_TO_DEVICE));
  to->tensor = aclCreateTensor(dims, 5, type, NULL, 0, ACL_FORMAT_NCDHW, dims, 5, to->memory);
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
  const int64_t pooled[] = {1, 1, 1, 2, 2}, volume[] = {1, 1, 2, 3, 3};
  const float gradients[] = {1, 2, 3, 4};
  const int32_t positions[] = {13, 13, 13, 17}; /* (d * 3 + h) * 3 + w: 13 is d 1, h 1, w 1 */
  float values[18] = {0};                       /* of self only the shape counts */
  struct operand grad_output, self, indices, grad_input;
  aclrtStream stream;
  CHECK(aclInit(NULL));
  CHECK(aclrtSetDevice(0));
  CHECK(aclrtCreateStream(&stream));
  if (put(&grad_output, gradients, sizeof gradients, pooled, ACL_FLOAT) ||
      put(&self, values, sizeof values, volume, ACL_FLOAT) ||
      put(&indices, positions, sizeof positions, pooled, ACL_INT32) ||
      put(&grad_input, values, sizeof values, volume, ACL_FLOAT))
    return 1;

  uint64_t bytes;
  aclOpExecutor *executor;
  void *workspace = NULL;
  CHECK(aclnnAdaptiveMaxPool3dBackwardGetWorkspaceSize(
      grad_output.tensor, self.tensor, indices.tensor, grad_input.tensor, &bytes, &executor));
  if (bytes > 0) CHECK(aclrtMalloc(&workspace, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclnnAdaptiveMaxPool3dBackward(workspace, bytes, executor, stream));
  CHECK(aclrtSynchronizeStream(stream));

  CHECK(aclrtMemcpy(values, sizeof values, grad_input.memory, sizeof values,
                    ACL_MEMCPY_DEVICE_TO_HOST));
  show("gradInput, 1 x 1 x 2 x 3 x 3: 1 + 2 + 3 in the cell that three windows share, and 4",
       values, 2, 3, 3);

  if (workspace != NULL) CHECK(aclrtFree(workspace));
  if (drop(&grad_output) || drop(&self) || drop(&indices) || drop(&grad_input)) return 1;
  CHECK(aclrtDestroyStream(stream));
  CHECK(aclrtResetDevice(0));
  CHECK(aclFinalize());
  printf("summary: aclnnAdaptiveMaxPool3dBackward sent 4 gradients to 2 of 18 cells\n");
  return 0;
}
