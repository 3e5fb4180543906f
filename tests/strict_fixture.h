/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of strict mode start with: the mode, a device, a stream, and memory of each kind.
 */
#ifndef PG_TESTS_STRICT_FIXTURE_H_
#define PG_TESTS_STRICT_FIXTURE_H_

#include "aclnnop/aclnn_avgpool2d_backward.h"
#include "expect.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])
#define STRICT(test) cmocka_unit_test_setup_teardown(test, set_up_strict, tear_down)
#define RELAXED(test) cmocka_unit_test_setup_teardown(test, set_up_relaxed, tear_down)

enum { BYTES = 100, CELLS = 25 }; /* 25 floats: 100 bytes, behind which 60 bytes of padding lie */

static aclrtStream stream;
static _Alignas(4096) char plain[4096], registered[4096];
static char *device, *other, *pinned;

static inline int set_up_mode(const char *mode, void **state) {
  void *found = NULL;
  if (mode == NULL) unsetenv("POOLGRAD_STRICT");
  if (mode != NULL) setenv("POOLGRAD_STRICT", mode, 1);
  if (set_up_device(state) != 0) return 1;
  OK_OR_SAY(aclrtCreateStream(&stream));
  OK_OR_SAY(aclrtMallocHost(&found, BYTES));
  pinned = found;
  device = device_memory(BYTES);
  other = device_memory(BYTES);
  OK_OR_SAY(aclrtMemset(device, BYTES, 0, BYTES));
  OK_OR_SAY(aclrtMemset(other, BYTES, 0, BYTES));
  memset(pinned, 0, BYTES);
  OK_OR_SAY(aclrtHostRegister(registered, sizeof registered, ACL_HOST_REGISTER_MAPPED, &found));
  return 0;
}

static inline int set_up_strict(void **state) { return set_up_mode("1", state); }
static inline int set_up_relaxed(void **state) { return set_up_mode(NULL, state); }

static inline int tear_down(void **state) {
  OK_OR_SAY(aclrtSynchronizeDevice());
  OK_OR_SAY(aclrtHostUnregister(registered));
  return tear_down_device(state);
}

/* The gradient of a 1 x 1 average over rows of cells: a copy, made by an operator. */
static inline int average(void *grad_out, void *grad_in, int64_t cells, aclrtStream on) {
  const int64_t dims[] = {1, 1, 1, cells}, one[] = {1, 1}, zero[] = {0, 0};
  aclTensor *t[] = {
      aclCreateTensor(dims, 4, ACL_FLOAT, NULL, 0, ACL_FORMAT_NCHW, dims, 4, grad_out),
      aclCreateTensor(dims, 4, ACL_FLOAT, NULL, 0, ACL_FORMAT_NCHW, dims, 4, NULL),
      aclCreateTensor(dims, 4, ACL_FLOAT, NULL, 0, ACL_FORMAT_NCHW, dims, 4, grad_in)};
  aclIntArray *ones = aclCreateIntArray(one, 2), *zeros = aclCreateIntArray(zero, 2);
  uint64_t size;
  aclOpExecutor *executor;
  OK_OR_SAY(aclnnAvgPool2dBackwardGetWorkspaceSize(t[0], t[1], ones, ones, zeros, false, true, 0, 0,
                                                   t[2], &size, &executor));
  assert_int_equal(size, 0);
  const int status = aclnnAvgPool2dBackward(NULL, 0, executor, on);
  for (int i = 0; i < 3; i++) OK_OR_SAY(aclDestroyTensor(t[i]));
  OK_OR_SAY(aclDestroyIntArray(ones));
  OK_OR_SAY(aclDestroyIntArray(zeros));
  return status;
}

#endif
