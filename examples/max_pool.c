/* SPDX-License-Identifier: Apache-2.0 */
/* Max pooling of 4 x 4 cells, windows of 2 x 2 in steps of 2, with a row of padding above and one
 * below: the four values of pads are top, left, bottom, right. Padding is never a maximum. */
#include <stdio.h>

#include "acl/acl.h"
#include "aclnnop/aclnn_max_pool.h"

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
  return aclCreateTensor(dims, 4, type, NULL, 0, ACL_FORMAT_ND, dims, 4, *memory);
}

int main(void) {
  const int64_t plane[] = {1, 1, 4, 4}, pooled[] = {1, 1, 3, 2};
  const int64_t two[] = {2, 2}, rows[] = {1, 0, 1, 0}, one[] = {1, 1};
  const float cells[] = {1, 5, 2, 6, 9, 3, 8, 4, 7, 12, 16, 10, 13, 11, 14, 15};
  float maxima[6] = {0};
  void *memory[2], *workspace = NULL;
  uint64_t bytes;
  aclOpExecutor *executor;
  CHECK(aclInit(NULL));
  CHECK(aclrtSetDevice(0));
  aclTensor *self = put(&memory[0], cells, sizeof cells, plane, ACL_FLOAT);
  aclTensor *out = put(&memory[1], maxima, sizeof maxima, pooled, ACL_FLOAT);
  aclIntArray *kernel = aclCreateIntArray(two, 2);
  aclIntArray *strides = aclCreateIntArray(two, 2);
  aclIntArray *pads = aclCreateIntArray(rows, 4);
  aclIntArray *dilations = aclCreateIntArray(one, 2);
  const int64_t auto_pad = 0, ceil_mode = 0;

  /* The first phase checks and plans the call, the second one queues it on the default stream. */
  CHECK(aclnnMaxPoolGetWorkspaceSize(self, kernel, strides, auto_pad, pads, dilations, ceil_mode,
                                     out, &bytes, &executor));
  if (bytes > 0) CHECK(aclrtMalloc(&workspace, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclnnMaxPool(workspace, bytes, executor, NULL));
  CHECK(aclrtSynchronizeStream(NULL));
  CHECK(aclrtMemcpy(maxima, sizeof maxima, memory[1], sizeof maxima, ACL_MEMCPY_DEVICE_TO_HOST));
  printf("out, 3 x 2: the maximum of each window\n  %g %g | %g %g | %g %g\n", maxima[0], maxima[1],
         maxima[2], maxima[3], maxima[4], maxima[5]);

  aclDestroyIntArray(kernel), aclDestroyIntArray(strides), aclDestroyIntArray(pads),
      aclDestroyIntArray(dilations);
  aclDestroyTensor(self), aclDestroyTensor(out);
  CHECK(aclFinalize()); /* frees the memory as well */
  printf("summary: aclnnMaxPool found 6 maxima among 16 cells\n");
  return 0;
}
