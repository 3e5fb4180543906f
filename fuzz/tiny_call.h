/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest call that goes all the way down: an average over windows of one cell with a divisor
 * of the caller's, gradInput[i] = gradOutput[i] / divisor. */
#ifndef PG_FUZZ_TINY_CALL_H_
#define PG_FUZZ_TINY_CALL_H_

#include "acl/acl.h"
#include "aclnnop/aclnn_avgpool2d_backward.h"
#include "input.h"

static inline void tiny_need(const char *what, int status) {
  if (status == 0) return;
  const char *text = aclGetRecentErrMsg();
  wrong("%s gave %d: %s", what, status, text == NULL ? "(no sentence)" : text);
}

#define NEED(call) tiny_need(#call, (call))

/* `count` elements of this type from host memory to host memory, through a device of the caller's
 * current context. */
static inline void tiny_call(aclDataType dtype, int64_t count, int64_t divisor, const void *from,
                             void *to) {
  const int64_t dims[] = {1, 1, count}, one = 1, zero = 0;
  const size_t bytes = (size_t)count * aclDataTypeSize(dtype);
  void *grad_out, *grad_in;
  uint64_t size;
  aclOpExecutor *executor;
  NEED(aclrtMalloc(&grad_out, bytes, ACL_MEM_MALLOC_NORMAL_ONLY));
  NEED(aclrtMalloc(&grad_in, bytes, ACL_MEM_MALLOC_NORMAL_ONLY));
  NEED(aclrtMemcpy(grad_out, bytes, from, bytes, ACL_MEMCPY_HOST_TO_DEVICE));
  aclTensor *in = aclCreateTensor(dims, 3, dtype, NULL, 0, ACL_FORMAT_NCL, dims, 3, grad_out);
  aclTensor *self = aclCreateTensor(dims, 3, dtype, NULL, 0, ACL_FORMAT_NCL, dims, 3, NULL);
  aclTensor *out = aclCreateTensor(dims, 3, dtype, NULL, 0, ACL_FORMAT_NCL, dims, 3, grad_in);
  aclIntArray *kernel = aclCreateIntArray(&one, 1), *pad = aclCreateIntArray(&zero, 1);
  NEED(aclnnAvgPool2dBackwardGetWorkspaceSize(in, self, kernel, NULL, pad, false, false, divisor, 0,
                                              out, &size, &executor));
  NEED(aclnnAvgPool2dBackward(NULL, 0, executor, NULL));
  NEED(aclrtSynchronizeStream(NULL));
  NEED(aclrtMemcpy(to, bytes, grad_in, bytes, ACL_MEMCPY_DEVICE_TO_HOST));
  NEED(aclDestroyTensor(in));
  NEED(aclDestroyTensor(self));
  NEED(aclDestroyTensor(out));
  NEED(aclDestroyIntArray(kernel));
  NEED(aclDestroyIntArray(pad));
  NEED(aclrtFree(grad_out));
  NEED(aclrtFree(grad_in));
}

#endif
