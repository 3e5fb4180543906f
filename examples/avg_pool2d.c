/* SPDX-License-Identifier: Apache-2.0 */
/* Average pooling of 3 x 3 cells, windows of 3 x 3 in steps of 2 with a padding of 1. Each window
 * holds four cells, and five of the padding, which count as zeros. */
#include <stdio.h>

#include "acl/acl.h"
#include "aclnnop/aclnn_avgpool2d.h"

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
  const int64_t plane[] = {1, 1, 3, 3}, pooled[] = {1, 1, 2, 2};
  const int64_t three[] = {3, 3}, two[] = {2, 2}, one[] = {1, 1};
  const float cells[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  float means[4] = {0};
  void *memory[2], *workspace = NULL;
  uint64_t bytes;
  aclOpExecutor *executor;
  CHECK(aclInit(NULL));
  CHECK(aclrtSetDevice(0));
  aclTensor *self = put(&memory[0], cells, sizeof cells, plane, ACL_FLOAT);
  aclTensor *out = put(&memory[1], means, sizeof means, pooled, ACL_FLOAT);
  aclIntArray *kernel = aclCreateIntArray(three, 2);
  aclIntArray *strides = aclCreateIntArray(two, 2);
  aclIntArray *paddings = aclCreateIntArray(one, 2);
  const bool ceil_mode = false, count_include_pad = true;
  const int64_t no_divisor = 0;
  const int8_t keep_precision = 0;

  /* The first phase checks and plans the call, the second one queues it on the default stream. */
  CHECK(aclnnAvgPool2dGetWorkspaceSize(self, kernel, strides, paddings, ceil_mode,
                                       count_include_pad, no_divisor, keep_precision, out, &bytes,
                                       &executor));
  if (bytes > 0) CHECK(aclrtMalloc(&workspace, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclnnAvgPool2d(workspace, bytes, executor, NULL));
  CHECK(aclrtSynchronizeStream(NULL));
  CHECK(aclrtMemcpy(means, sizeof means, memory[1], sizeof means, ACL_MEMCPY_DEVICE_TO_HOST));
  printf("out, 2 x 2: the sum of four cells, divided by 9\n  %g %g | %g %g\n", means[0], means[1],
         means[2], means[3]);

  aclDestroyIntArray(kernel), aclDestroyIntArray(strides), aclDestroyIntArray(paddings);
  aclDestroyTensor(self), aclDestroyTensor(out);
  CHECK(aclFinalize()); /* frees the memory as well */
  printf("summary: aclnnAvgPool2d averaged 9 cells and their padding to 4\n");
  return 0;
}
