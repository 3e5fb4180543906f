/* SPDX-License-Identifier: Apache-2.0 */
/* Adaptive max pooling of 3 x 3 cells to 2 x 2 outputs, with the position of each maximum. One cell
 * is the maximum of two windows. */
#include <stdio.h>

#include "acl/acl.h"
#include "aclnnop/aclnn_adaptive_max_pool2d.h"

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
  const float cells[] = {9, 1, 2, 3, 4, 8, 5, 7, 6};
  float maxima[4] = {0};
  int64_t positions[4] = {0}; /* h * 3 + w */
  void *memory[3], *workspace = NULL;
  uint64_t bytes;
  aclOpExecutor *executor;
  CHECK(aclInit(NULL));
  CHECK(aclrtSetDevice(0));
  aclTensor *self = put(&memory[0], cells, sizeof cells, plane, ACL_FLOAT);
  aclTensor *out = put(&memory[1], maxima, sizeof maxima, pooled, ACL_FLOAT);
  aclTensor *indices = put(&memory[2], positions, sizeof positions, pooled, ACL_INT64);
  aclIntArray *output_size = aclCreateIntArray(size, 2);

  /* The first phase checks and plans the call, the second one queues it on the default stream. */
  CHECK(aclnnAdaptiveMaxPool2dGetWorkspaceSize(self, output_size, out, indices, &bytes, &executor));
  if (bytes > 0) CHECK(aclrtMalloc(&workspace, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclnnAdaptiveMaxPool2d(workspace, bytes, executor, NULL));
  CHECK(aclrtSynchronizeStream(NULL));
  CHECK(aclrtMemcpy(maxima, sizeof maxima, memory[1], sizeof maxima, ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK(aclrtMemcpy(positions, sizeof positions, memory[2], sizeof positions,
                    ACL_MEMCPY_DEVICE_TO_HOST));
  printf("outputOut, 2 x 2: the maximum of each window\n  %g %g | %g %g\n", maxima[0], maxima[1],
         maxima[2], maxima[3]);
  printf("indicesOut, 2 x 2: where it is\n  %d %d | %d %d\n", (int)positions[0], (int)positions[1],
         (int)positions[2], (int)positions[3]);

  aclDestroyIntArray(output_size);
  aclDestroyTensor(self), aclDestroyTensor(out), aclDestroyTensor(indices);
  CHECK(aclFinalize()); /* frees the memory as well */
  printf("summary: aclnnAdaptiveMaxPool2d found 4 maxima among 9 cells\n");
  return 0;
}
