/* SPDX-License-Identifier: Apache-2.0 */
/* Adaptive average pooling of 2 x 2 x 2 cells to 2 x 1 x 1 outputs: one mean for each slice. */
#include <stdio.h>

#include "acl/acl.h"
#include "aclnnop/aclnn_adaptive_avg_pool3d.h"

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
  const int64_t volume[] = {1, 1, 2, 2, 2}, pooled[] = {1, 1, 2, 1, 1}, size[] = {2, 1, 1};
  const float cells[] = {1, 2, 3, 4, 5, 6, 7, 8};
  float means[2] = {0};
  void *memory[2], *workspace = NULL;
  uint64_t bytes;
  aclOpExecutor *executor;
  CHECK(aclInit(NULL));
  CHECK(aclrtSetDevice(0));
  aclTensor *self = put(&memory[0], cells, sizeof cells, volume, ACL_FLOAT);
  aclTensor *out = put(&memory[1], means, sizeof means, pooled, ACL_FLOAT);
  aclIntArray *output_size = aclCreateIntArray(size, 3);

  /* The first phase checks and plans the call, the second one queues it on the default stream. */
  CHECK(aclnnAdaptiveAvgPool3dGetWorkspaceSize(self, output_size, out, &bytes, &executor));
  if (bytes > 0) CHECK(aclrtMalloc(&workspace, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclnnAdaptiveAvgPool3d(workspace, bytes, executor, NULL));
  CHECK(aclrtSynchronizeStream(NULL));
  CHECK(aclrtMemcpy(means, sizeof means, memory[1], sizeof means, ACL_MEMCPY_DEVICE_TO_HOST));
  printf("out, 2 x 1 x 1: the mean of each slice\n  %g | %g\n", means[0], means[1]);

  aclDestroyIntArray(output_size);
  aclDestroyTensor(self), aclDestroyTensor(out);
  CHECK(aclFinalize()); /* frees the memory as well */
  printf("summary: aclnnAdaptiveAvgPool3d averaged 8 cells to 2\n");
  return 0;
}
