/* SPDX-License-Identifier: Apache-2.0 */
/* One call of an operator on tensors of any shape, described by numbers, so that tests and fuzzers
 * can make it wrong in one place. */
#ifndef PG_TESTS_TENSOR_CALL_H_
#define PG_TESTS_TENSOR_CALL_H_

#include "tensor_operators.h"

enum { CALL_RANK_MOST = 10, LIST_MOST = 8 };

/* A handle that is passed instead of a new one is behind a pointer; NULL: there is none. */
struct called_tensor {
  aclDataType dtype;
  aclFormat format;
  int rank;
  int64_t dims[CALL_RANK_MOST], strides[CALL_RANK_MOST], offset;
  bool strided; /* else contiguous */
  void *data;
  const void *const *handle;
};

struct called_scalar {
  aclDataType dtype; /* DOUBLE, INT64 or BOOL; or one that is refused */
  double real;
  int64_t integer;
  const void *const *handle;
};

struct called_array {
  uint64_t count;
  int64_t values[CALL_RANK_MOST];
  const void *const *handle;
};

struct tensor_call {
  enum tensor_operator_id op;
  struct called_tensor t[TENSORS_MOST]; /* of an operator of lists: each tensor of the list */
  struct called_scalar s[SCALARS_MOST];
  struct called_array a[ARRAYS_MOST];
  uint64_t list[TENSORS_MOST]; /* how many tensors each has */
  const void *const *list_handle[TENSORS_MOST];
  size_t list_step; /* bytes from the data of one to those of the next */
  int64_t integer[INTEGERS_MOST];
  double real[REALS_MOST];
  bool flag;
  aclDataType dtype;
};

/* A right call on FLOATs without data: [2,3], or [2,2,3] where planes are unpooled. */
struct tensor_call tensor_call_right(enum tensor_operator_id op);

/* Contiguous, of this shape. */
void tensor_call_shape(struct called_tensor *t, int rank, const int64_t *dims);

/* Makes the handles; a failure leaves some NULL.  drop destroys them, but not those that were
 * given. */
void tensor_call_make(const struct tensor_call *c, struct tensor_arguments *made);
void tensor_call_drop(const struct tensor_call *c, struct tensor_arguments *made);

/* Both phases with the handles. */
aclnnStatus tensor_call_first(const struct tensor_call *c, const struct tensor_arguments *made,
                              uint64_t *size, aclOpExecutor **executor);

#endif
