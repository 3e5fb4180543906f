/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor_check.h"

#include "core/handle.h"
#include "expect.h"

void tensor_refused(const struct tensor_call *c, int code, const char *format, ...) {
  char sentence[512], text[640];
  struct tensor_arguments made;
  uint64_t size = 77;
  aclOpExecutor *const before = (void *)&size, *executor = before;
  va_list args;
  va_start(args, format);
  (void)vsnprintf(sentence, sizeof sentence, format, args);
  va_end(args);
  (void)snprintf(text, sizeof text, "%s: %s\n", tensor_operators[c->op].first_name, sentence);
  const int tensors = pg_handle_count(PG_TENSOR);
  tensor_call_make(c, &made);
  FAILS(tensor_call_first(c, &made, &size, &executor), code, text);
  assert_int_equal(size, 77);
  assert_ptr_equal(executor, before);
  tensor_call_drop(c, &made);
  (void)aclGetRecentErrMsg(); /* a list may have had a dead tensor in it */
  assert_int_equal(pg_handle_count(PG_EXECUTOR), 0);
  assert_int_equal(pg_handle_count(PG_TENSOR), tensors);
}

aclOpExecutor *tensor_planned(const struct tensor_call *c, uint64_t *size) {
  struct tensor_arguments made;
  uint64_t bytes = 77;
  aclOpExecutor *executor = NULL;
  tensor_call_make(c, &made);
  const aclnnStatus status = tensor_call_first(c, &made, &bytes, &executor);
  if (status != 0)
    fail_msg("%s gave %d: %s", tensor_operators[c->op].first_name, status, aclGetRecentErrMsg());
  tensor_call_drop(c, &made);
  assert_null(aclGetRecentErrMsg());
  if (size != NULL) *size = bytes;
  return executor;
}

void tensor_accepted(const struct tensor_call *c) {
  OK_OR_SAY(aclDestroyAclOpExecutor(tensor_planned(c, NULL)));
}

void tensor_runs(const struct tensor_call *c) {
  uint64_t size;
  aclOpExecutor *executor = tensor_planned(c, &size);
  void *workspace = size > 0 ? device_memory(size) : NULL;
  OK_OR_SAY(tensor_operators[c->op].second(workspace, size, executor, NULL));
  OK_OR_SAY(aclrtSynchronizeStream(NULL));
  if (workspace != NULL) OK_OR_SAY(aclrtFree(workspace));
}
