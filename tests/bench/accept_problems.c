/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the first phases about problems without making their data: for each line of stdin the bytes
 * that a call must move at least, or one sentence and the end. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "acl/acl.h"
#include "data.h"
#include "operator_call.h"

static aclnnStatus first_phase(const struct problem *p, const struct tensor_layout *layout) {
  aclTensor *tensor[POOL_TENSORS];
  aclIntArray *array[POOL_ARRAYS];
  uint64_t size;
  aclOpExecutor *executor;
  for (int i = 0; i < POOL_TENSORS; i++)
    tensor[i] =
        problem_role(p, i) == ABSENT_TENSOR ? NULL : operator_tensor(p, &layout[i], i, NULL);
  for (int i = 0; i < POOL_ARRAYS; i++) array[i] = operator_array(p, i);
  const struct operator_arguments arguments = operator_arguments(p, tensor, array);
  const aclnnStatus status = operator_calls[p->op].first(&arguments, &size, &executor);
  if (status == ACL_SUCCESS) (void)aclDestroyAclOpExecutor(executor);
  for (int i = 0; i < POOL_TENSORS; i++)
    if (tensor[i] != NULL) (void)aclDestroyTensor(tensor[i]);
  for (int i = 0; i < POOL_ARRAYS; i++) (void)aclDestroyIntArray(array[i]);
  return status;
}

static bool accept_line(const char *line) {
  struct problem p;
  struct tensor_layout layout[POOL_TENSORS];
  char why[PROBLEM_TEXT];
  if (!problem_parse(line, &p, why)) {
    fprintf(stderr, "%s: %s\n", line, why);
    return false;
  }
  for (int i = 0; i < POOL_TENSORS; i++) layout[i] = tensor_lay_out(&p, i);
  if (first_phase(&p, layout) != ACL_SUCCESS) {
    fprintf(stderr, "%s: %s\n", line, aclGetRecentErrMsg());
    return false;
  }
  printf("%" PRId64 "\n", data_moved(&p, layout, READ) + data_moved(&p, layout, WRITTEN));
  return true;
}

int main(void) {
  char line[PROBLEM_TEXT];
  if (aclInit(NULL) != ACL_SUCCESS || aclrtSetDevice(0) != ACL_SUCCESS) return 1;
  while (fgets(line, sizeof line, stdin) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    if (!accept_line(line)) return 1;
  }
  return aclFinalize() != ACL_SUCCESS;
}
