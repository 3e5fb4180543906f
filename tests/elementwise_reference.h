/* SPDX-License-Identifier: Apache-2.0 */
/* What operators that compute each element of a result from one of each input should give, written
 * down again: PyTorch's promotion of types as its table, and the operators as arithmetic of doubles
 * and 64-bit integers. */
#ifndef PG_TESTS_ELEMENTWISE_REFERENCE_H_
#define PG_TESTS_ELEMENTWISE_REFERENCE_H_

#include "operation_trial.h"

/* Types are those of tensors with axes, of tensors without, and of a scalar; ACL_DT_UNDEFINED where
 * there is none. */
struct promotion {
  aclDataType axes, no_axes, scalar;
};
#define NOTHING_PROMOTED ((struct promotion){ACL_DT_UNDEFINED, ACL_DT_UNDEFINED, ACL_DT_UNDEFINED})

void promote_tensor(struct promotion *p, aclDataType dtype, int rank);
void promote_scalar(struct promotion *p, aclDataType dtype);
aclDataType promoted_type(const struct promotion *p);

/* May a result of the one type be stored as the other? */
bool result_may_be(aclDataType result, aclDataType dtype);

/* The types that operands may have, each set with all of the ones before it. */
enum operand_types { BITS /* integers and BOOL */, NUMBERS /* all but BOOL */, ANYTHING };
bool operand_may_be(enum operand_types types, aclDataType dtype);

enum result_type { PROMOTED, REAL, TRUTH };

/* One of the operators of KIND_UNARY, KIND_BINARY and KIND_SCALAR but aclnnIsClose, or of lists
 * that do the same. */
struct elementwise_rule {
  enum operand_types types;
  enum result_type result;
  char does; /* one of: + - * / ^ & A N S R C F Q I = ! < l > g */
};
extern const struct elementwise_rule elementwise_rules[TENSOR_OPERATORS];

/* The types of a call: of its tensors, and of its scalar. */
struct elementwise_types {
  aclDataType self, other, out, scalar;
  struct promotion p;
};

/* Legal ones.  The ranks of self and other count; -1: there is no such tensor. */
struct elementwise_types elementwise_draw_types(uint64_t *state, enum tensor_operator_id op,
                                                int self_rank, int other_rank, bool has_scalar);

/* What is the same for all elements of a call. */
struct elementwise {
  struct elementwise_rule rule;
  aclDataType computed;
  enum pg_class class_of;
  union pg_number scalar, alpha; /* in the class */
};

/* scalar and alpha: NULL where there are none.  What integers cannot be computed with is changed in
 * them first. */
struct elementwise elementwise_of(uint64_t *state, enum tensor_operator_id op,
                                  const struct promotion *p, struct operation_scalar *scalar,
                                  struct operation_scalar *alpha);

/* b: the scalar where there is no second tensor. */
union pg_number elementwise_value(const struct elementwise *e, union pg_number a, union pg_number b,
                                  bool has_other);

#endif
