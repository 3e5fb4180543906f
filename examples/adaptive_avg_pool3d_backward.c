/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of adaptive average pooling, 1 x 1 x 4 cells to 1 x 1 x 2: each gradient is shared
 * by the two cells of its window. */
#include <stdio.h>

#include "acl/acl.h"
#include "aclnnop/aclnn_adaptive_avg_pool3d_backward.h"

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
  to->tensor = aclCreateTensor(dims, 5, type, NULL, 0, ACL_FORMAT_ND, dims, 5, to->memory);
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
  const int64_t pooled[] = {2, 2, 1, 1, 2}, volume[] = {2, 2, 1, 1, 4};
  const float gradients[] = {1, 2, 3, 4, 5, 6, 7, 8};
  float values[16] = {0}; /* of self only the shape counts */
  struct operand grad_output, self, out;
  aclrtStream stream;
  CHECK(aclInit(NULL));
  CHECK(aclrtSetDevice(0));
  CHECK(aclrtCreateStream(&stream));
  if (put(&grad_output, gradients, sizeof gradients, pooled, ACL_FLOAT) ||
      put(&self, values, sizeof values, volume, ACL_FLOAT) ||
      put(&out, values, sizeof values, volume, ACL_FLOAT))
    return 1;

  uint64_t bytes;
  aclOpExecutor *executor;
  void *workspace = NULL;
  CHECK(aclnnAdaptiveAvgPool3dBackwardGetWorkspaceSize(grad_output.tensor, self.tensor, out.tensor,
                                                       &bytes, &executor));
  if (bytes > 0) CHECK(aclrtMalloc(&workspace, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclnnAdaptiveAvgPool3dBackward(workspace, bytes, executor, stream));
  CHECK(aclrtSynchronizeStream(stream));

  CHECK(aclrtMemcpy(values, sizeof values, out.memory, sizeof values, ACL_MEMCPY_DEVICE_TO_HOST));
  show("out, 2 x 2 x 1 x 1 x 4: the gradients 1 to 8, each shared by the two cells of its window",
       values, 4, 1, 4);

  if (workspace != NULL) CHECK(aclrtFree(workspace));
  if (drop(&grad_output) || drop(&self) || drop(&out)) return 1;
  CHECK(aclrtDestroyStream(stream));
  CHECK(aclrtResetDevice(0));
  CHECK(aclFinalize());
  printf("summary: aclnnAdaptiveAvgPool3dBackward spread 8 gradients over 16 cells\n");
  return 0;
}
