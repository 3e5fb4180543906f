/* SPDX-License-Identifier: Apache-2.0 */
/* The operators on tensors of any shape: with handles that others destroy, and on streams of their
 * own, where the same call must leave the same bytes twice. */
#include <stdlib.h>
#include <string.h>

#include "../tensor_call.h"
#include "aclnnop/aclnn_npu_format_cast.h"
#include "stress.h"

/* No tensor of a right call is larger. */
enum { BLOCK_BYTES = 512, LIST_STEP = 64 };

static aclnnStatus first_phase(struct turn *t, enum tensor_operator_id op,
                               const struct tensor_arguments *arguments, uint64_t *bytes,
                               aclOpExecutor **executor, const int *codes) {
  const struct tensor_operator *called = &tensor_operators[op];
  enter(t, called->first_name);
  return judge(t, called->first_name, called->first(arguments, bytes, executor), codes);
}

/* Most of these plans are refused, and none is run. */
static void plan_with_shared_handles(struct turn *t) {
  static const int codes[] = {161001, 161002, CODES_END};
  struct tensor_arguments a = {.flag = chance(t, 2), .dtype = ACL_FLOAT};
  uint64_t bytes;
  aclOpExecutor *executor = NULL;
  for (int i = 0; i < TENSORS_MOST; i++) a.tensor[i] = shelf_any(t, TENSORS);
  for (int i = 0; i < TENSORS_MOST; i++) a.list[i] = shelf_any(t, TENSOR_LISTS);
  for (int i = 0; i < SCALARS_MOST; i++) a.scalar[i] = shelf_any(t, SCALARS);
  for (int i = 0; i < ARRAYS_MOST; i++) a.array[i] = shelf_any(t, INT_ARRAYS);
  for (int i = 0; i < INTEGERS_MOST; i++) a.integer[i] = (int64_t)pick(t, 5);
  const enum tensor_operator_id op = (enum tensor_operator_id)pick(t, TENSOR_OPERATORS);
  if (first_phase(t, op, &a, &bytes, &executor, codes) == 0)
    CALL(t, aclDestroyAclOpExecutor, (executor), 0);
}

/* Indices are 0, which every axis has. */
static void fill(const struct tensor_call *c) {
  for (int i = 0; i < TENSORS_MOST; i++) {
    memset(c->t[i].data, 0, BLOCK_BYTES);
    for (int at = 0; at < BLOCK_BYTES / 4 && c->t[i].dtype == ACL_FLOAT; at++)
      ((float *)c->t[i].data)[at] = (float)(at % 7 - 3);
    if (c->t[i].dtype == ACL_BOOL) memset(c->t[i].data, 1, BLOCK_BYTES / 2);
  }
}

static bool run_once(struct turn *t, const struct tensor_call *c, aclrtStream stream) {
  static const int planned[] = {CODES_END}, queued[] = {361001, CODES_END};
  const struct tensor_operator *called = &tensor_operators[c->op];
  struct tensor_arguments made;
  uint64_t bytes = 0;
  aclOpExecutor *executor = NULL;
  fill(c);
  tensor_call_make(c, &made);
  const bool is_planned = first_phase(t, c->op, &made, &bytes, &executor, planned) == 0;
  tensor_call_drop(c, &made); /* the executor keeps what it needs */
  void *workspace = fresh(t, (size_t)bytes + 1);
  if (!is_planned || workspace == NULL) return false;
  enter(t, called->second_name);
  const aclnnStatus status = called->second(workspace, bytes, executor, stream);
  return judge(t, called->second_name, status, queued) == 0 &&
         CALL(t, aclrtSynchronizeStream, (stream), STREAM_CODES, OUTCOMES) == 0;
}

static void run_twice(struct turn *t) {
  struct tensor_call c = tensor_call_right((enum tensor_operator_id)pick(t, TENSOR_OPERATORS));
  char first[TENSORS_MOST][BLOCK_BYTES];
  aclrtStream stream = NULL;
  c.list_step = LIST_STEP;
  for (int i = 0; i < TENSORS_MOST; i++)
    if ((c.t[i].data = fresh(t, BLOCK_BYTES)) == NULL) return;
  if (CALL(t, aclrtCreateStream, (&stream), CONTEXT_CODES) != 0) return;
  if (run_once(t, &c, stream)) {
    for (int i = 0; i < TENSORS_MOST; i++) memcpy(first[i], c.t[i].data, BLOCK_BYTES);
    bool is_same = run_once(t, &c, stream);
    for (int i = 0; i < TENSORS_MOST && is_same; i++)
      if (memcmp(first[i], c.t[i].data, BLOCK_BYTES) != 0)
        complain(t, "%s left other bytes than before", tensor_operators[c.op].second_name);
  }
  CALL(t, aclrtDestroyStream, (stream), STREAM_CODES);
}

static void ask_about_formats(struct turn *t) {
  int64_t *dims = NULL;
  uint64_t rank = 0;
  int format = 0;
  CALL(t, aclnnNpuFormatCastCalculateSizeAndFormat,
       (shelf_any(t, TENSORS), (int)pick(t, 30), 0, &dims, &rank, &format), 161001, 161002);
  free(dims);
}

const struct row tensor_rows[] = {
    ROW(plan_with_shared_handles, 40, ANY_WEATHER),
    ROW(run_twice, 60, ANY_WEATHER),
    ROW(ask_about_formats, 5, ANY_WEATHER),
    {NULL, 0, 0, NULL},
};
