/* SPDX-License-Identifier: Apache-2.0 */
/* Adaptive max pooling of 2 x 2 x 2 cells to 1 x 2 x 2 outputs, with the position of each maximum:
 * the greater of two slices. */
#include <stdio.h>

#include "acl/acl.h"
#include "aclnnop/aclnn_adaptive_max_pool3d.h"

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
  const int64_t volume[] = {1, 1, 2, 2, 2}, pooled[] = {1, 1, 1, 2, 2}, size[] = {1, 2, 2};
  const float cells[] = {1, 8, 3, 6, 5, 4, 7, 2};
  float maxima[4] = {0};
  int32_t positions[4] = {0}; /* (d * 2 + h) * 2 + w */
  void *memory[3], *workspace = NULL;
  uint64_t bytes;
  aclOpExecutor *executor;
  CHECK(aclInit(NULL));
  CHECK(aclrtSetDevice(0));
  aclTensor *self = put(&memory[0], cells, sizeof cells, volume, ACL_FLOAT);
  aclTensor *out = put(&memory[1], maxima, sizeof maxima, pooled, ACL_FLOAT);
  aclTensor *indices = put(&memory[2], positions, sizeof positions, pooled, ACL_INT32);
  aclIntArray *output_size = aclCreateIntArray(size, 3);

  /* The first phase checks and plans the call, the second one queues it on the default stream. */
  CHECK(aclnnAdaptiveMaxPool3dGetWorkspaceSize(self, output_size, out, indices, &bytes, &executor));
  if (bytes > 0) CHECK(aclrtMalloc(&workspace, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclnnAdaptiveMaxPool3d(workspace, bytes, executor, NULL));
  CHECK(aclrtSynchronizeStream(NULL));
  CHECK(aclrtMemcpy(maxima, sizeof maxima, memory[1], sizeof maxima, ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK(aclrtMemcpy(positions, sizeof positions, memory[2], sizeof positions,
                    ACL_MEMCPY_DEVICE_TO_HOST));
  printf("outputOut, 1 x 2 x 2: the maximum of each window\n  %g %g | %g %g\n", maxima[0],
         maxima[1], maxima[2], maxima[3]);
  printf("indicesOut, 1 x 2 x 2: where it is\n  %d %d | %d %d\n", positions[0], positions[1],
         positions[2], positions[3]);

  aclDestroyIntArray(output_size);
  aclDestroyTensor(self), aclDestroyTensor(out), aclDestroyTensor(indices);
  CHECK(aclFinalize()); /* frees the memory as well */
  printf("summary: aclnnAdaptiveMaxPool3d found 4 maxima among 8 cells\n");
  return 0;
}
