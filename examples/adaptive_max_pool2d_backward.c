/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of adaptive max pooling, 2 x 2 cells to 1 x 1: it goes where the index points. */
#include <stdio.h>

#include "acl/acl.h"
#include "aclnnop/aclnn_adaptive_max_pool2d_backward.h"

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
  to->tensor = aclCreateTensor(dims, 4, type, NULL, 0, ACL_FORMAT_ND, dims, 4, to->memory);
  return to->tensor == NULL;
}

static int drop(struct operand *operand) {
  CHECK(aclDestroyTensor(operand->tensor));
  CHECK(aclrtFree(operand->memory));
  return 0;
}

static int backward(int32_t index, aclrtStream stream) {
  const int64_t pooled[] = {1, 1, 1, 1}, plane[] = {1, 1, 2, 2};
  const float gradient = 0.4757f;
  float values[4] = {0}; /* of self only the shape counts */
  struct operand grad_output, self, indices, grad_input;
  if (put(&grad_output, &gradient, sizeof gradient, pooled, ACL_FLOAT) ||
      put(&self, values, sizeof values, plane, ACL_FLOAT) ||
      put(&indices, &index, sizeof index, pooled, ACL_INT32) ||
      put(&grad_input, values, sizeof values, plane, ACL_FLOAT))
    return 1;

  uint64_t bytes;
  aclOpExecutor *executor;
  void *workspace = NULL;
  CHECK(aclnnAdaptiveMaxPool2dBackwardGetWorkspaceSize(
      grad_output.tensor, self.tensor, indices.tensor, grad_input.tensor, &bytes, &executor));
  if (bytes > 0) CHECK(aclrtMalloc(&workspace, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclnnAdaptiveMaxPool2dBackward(workspace, bytes, executor, stream));
  CHECK(aclrtSynchronizeStream(stream));

  CHECK(aclrtMemcpy(values, sizeof values, grad_input.memory, sizeof values,
                    ACL_MEMCPY_DEVICE_TO_HOST));
  printf("gradInput, 1 x 1 x 2 x 2: the gradient %g sent to cell %d\n", gradient, index);
  printf("  %g %g | %g %g\n", values[0], values[1], values[2], values[3]);

  if (workspace != NULL) CHECK(aclrtFree(workspace));
  return drop(&grad_output) || drop(&self) || drop(&indices) || drop(&grad_input);
}

int main(void) {
  aclrtStream stream;
  CHECK(aclInit(NULL));
  CHECK(aclrtSetDevice(0));
  CHECK(aclrtCreateStream(&stream));

  if (backward(0, stream)) return 1;
  /* The gradient is dropped, and a line on stderr says so (POOLGRAD_INDEX_CHECK). */
  printf("a mistake on purpose: index 6 in a plane of 4 cells; the library warns and drops it\n");
  (void)fflush(stdout); /* the warning comes on stderr, after this */
  if (backward(6, stream)) return 1;

  CHECK(aclrtDestroyStream(stream));
  CHECK(aclrtResetDevice(0));
  CHECK(aclFinalize());
  printf("summary: aclnnAdaptiveMaxPool2dBackward sent a gradient to 1 of 4 cells, dropped one\n");
  return 0;
}
