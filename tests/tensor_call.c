/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor_call.h"

#include <string.h>

#define SHAPE(t, ...)                                                                   \
  tensor_call_shape(t, (int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), \
                    (const int64_t[]){__VA_ARGS__})

void tensor_call_shape(struct called_tensor *t, int rank, const int64_t *dims) {
  t->rank = rank;
  t->strided = false;
  memcpy(t->dims, dims, (size_t)rank * sizeof *dims);
}

static void right_planes(struct tensor_call *c, int spatial) {
  static const int64_t in[] = {2, 1, 2, 3}, out[] = {2, 2, 4, 5};
  for (int i = 0; i < TENSORS_MOST; i++) {
    const int64_t *of = i == 2 ? out : in;
    const int64_t dims[] = {of[0], of[1], of[2], of[3]}, flat[] = {of[0], of[2], of[3]};
    tensor_call_shape(&c->t[i], spatial + 1, spatial == 3 ? dims : flat);
  }
  c->t[1].dtype = ACL_INT64;
  for (int i = 0; i < ARRAYS_MOST; i++) c->a[i].count = (uint64_t)spatial;
  for (int i = 0; i < spatial; i++) {
    c->a[0].values[i] = out[i + 4 - spatial];
    c->a[1].values[i] = 1;
  }
}

static bool gives_truth(enum tensor_operator_id op) {
  return op == OP_IsFinite || (op >= OP_EqTensor && op <= OP_IsClose);
}

static void right_reduction(struct tensor_call *c) {
  c->a[0] = (struct called_array){.count = 1, .values = {1}};
  SHAPE(&c->t[1], 2);
  if (c->op == OP_All || c->op == OP_Any) c->t[1].dtype = ACL_BOOL;
}

static void right_along(struct tensor_call *c) {
  c->integer[0] = 1;
  SHAPE(&c->t[1], 2);
  SHAPE(&c->t[2], 2);
  c->t[2].dtype = ACL_INT64;
}

static void right_elementwise(struct tensor_call *c) {
  if (c->op == OP_BitwiseAndTensor || c->op == OP_BitwiseAndScalar)
    for (int i = 0; i < TENSORS_MOST; i++) c->t[i].dtype = ACL_INT32;
  if (gives_truth(c->op))
    c->t[tensor_operators[c->op].kind == KIND_BINARY ? 2 : 1].dtype = ACL_BOOL;
}

static void right_of_kind(struct tensor_call *c) {
  switch (tensor_operators[c->op].kind) {
    case KIND_REDUCE:
      right_reduction(c);
      break;
    case KIND_EXTREME:
      c->t[1].rank = 0;
      break;
    case KIND_ALONG:
      right_along(c);
      break;
    case KIND_GATHER:
      c->t[1].dtype = ACL_INT64;
      c->integer[0] = 1;
      break;
    case KIND_UNPOOL2D:
    case KIND_UNPOOL3D:
      right_planes(c, tensor_operators[c->op].kind == KIND_UNPOOL2D ? 2 : 3);
      break;
    case KIND_SELECT:
      SHAPE(&c->t[2], 6);
      c->t[1].dtype = ACL_BOOL;
      break;
    case KIND_MASKED:
      c->t[1].dtype = ACL_BOOL;
      break;
    case KIND_EQUAL:
      SHAPE(&c->t[2], 1);
      c->t[2].dtype = ACL_BOOL;
      break;
    case KIND_CAT:
      SHAPE(&c->t[1], 4, 3);
      if (c->op == OP_Stack) SHAPE(&c->t[1], 2, 2, 3);
      break;
    default:
      right_elementwise(c);
  }
}

struct tensor_call tensor_call_right(enum tensor_operator_id op) {
  struct tensor_call c = {.op = op, .dtype = ACL_FLOAT, .list = {2, 2, 2}, .real = {0, 1}};
  for (int i = 0; i < TENSORS_MOST; i++) {
    c.t[i] = (struct called_tensor){.dtype = ACL_FLOAT, .format = ACL_FORMAT_ND};
    SHAPE(&c.t[i], 2, 3);
  }
  for (int i = 0; i < SCALARS_MOST; i++)
    c.s[i] = (struct called_scalar){.dtype = ACL_INT64, .real = 2, .integer = 2};
  if (op == OP_InplaceRandom) c.integer[1] = 10;
  right_of_kind(&c);
  return c;
}

/* --- handles --- */

static aclTensor *make_tensor(const struct called_tensor *t, size_t bytes_on) {
  if (t->handle != NULL) return (aclTensor *)(uintptr_t)*t->handle;
  char *data = t->data == NULL ? NULL : (char *)t->data + bytes_on;
  return aclCreateTensor(t->dims, (uint64_t)t->rank, t->dtype, t->strided ? t->strides : NULL,
                         t->offset, t->format, t->dims, (uint64_t)t->rank, data);
}

static aclScalar *make_scalar(const struct called_scalar *s) {
  if (s->handle != NULL) return (aclScalar *)(uintptr_t)*s->handle;
  char value[16] = {(char)(s->integer != 0)};
  if (s->dtype == ACL_DOUBLE) memcpy(value, &s->real, sizeof s->real);
  if (s->dtype == ACL_INT64) memcpy(value, &s->integer, sizeof s->integer);
  return aclCreateScalar(value, s->dtype);
}

static aclTensorList *make_list(const struct tensor_call *c, int which) {
  const aclTensor *members[LIST_MOST] = {NULL};
  if (c->list_handle[which] != NULL) return (aclTensorList *)(uintptr_t)*c->list_handle[which];
  for (uint64_t i = 0; i < c->list[which]; i++) {
    members[i] = make_tensor(&c->t[which], i * c->list_step);
    if (members[i] != NULL) continue;
    while (i-- > 0)
      if (c->t[which].handle == NULL) (void)aclDestroyTensor(members[i]);
    return NULL;
  }
  return aclCreateTensorList(members, c->list[which]); /* which owns its tensors */
}

void tensor_call_make(const struct tensor_call *c, struct tensor_arguments *made) {
  struct tensor_argument all[ARGUMENTS_MOST];
  const int count = tensor_operator_arguments(c->op, all);
  *made = (struct tensor_arguments){.flag = c->flag, .dtype = c->dtype};
  memcpy(made->integer, c->integer, sizeof made->integer);
  memcpy(made->real, c->real, sizeof made->real);
  for (int i = 0; i < count; i++) {
    const int n = all[i].number;
    if (all[i].kind == IS_TENSOR) made->tensor[n] = make_tensor(&c->t[n], 0);
    if (all[i].kind == IS_SCALAR) made->scalar[n] = make_scalar(&c->s[n]);
    if (all[i].kind == IS_LIST) made->list[n] = make_list(c, n);
    if (all[i].kind == IS_ARRAY)
      made->array[n] = c->a[n].handle != NULL ? (aclIntArray *)(uintptr_t)*c->a[n].handle
                                              : aclCreateIntArray(c->a[n].values, c->a[n].count);
  }
}

void tensor_call_drop(const struct tensor_call *c, struct tensor_arguments *made) {
  for (int i = 0; i < TENSORS_MOST; i++) {
    if (c->t[i].handle == NULL) (void)aclDestroyTensor(made->tensor[i]);
    if (c->list_handle[i] == NULL) (void)aclDestroyTensorList(made->list[i]);
  }
  for (int i = 0; i < SCALARS_MOST; i++)
    if (c->s[i].handle == NULL) (void)aclDestroyScalar(made->scalar[i]);
  for (int i = 0; i < ARRAYS_MOST; i++)
    if (c->a[i].handle == NULL) (void)aclDestroyIntArray(made->array[i]);
  memset(made, 0, sizeof *made);
}

aclnnStatus tensor_call_first(const struct tensor_call *c, const struct tensor_arguments *made,
                              uint64_t *size, aclOpExecutor **executor) {
  return tensor_operators[c->op].first(made, size, executor);
}
