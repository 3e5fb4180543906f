/* SPDX-License-Identifier: Apache-2.0 */
/* Types and scalars of operators whose tensors may have any type: which are allowed, what several
 * of them are computed as, and what a result may be stored as.  The rules are PyTorch's. */
#ifndef PG_TENSOR_TYPES_H_
#define PG_TENSOR_TYPES_H_

#include "kernels/tensor_kernels.h"
#include "ops/view.h"

/* A set of types has a bit for each. */
#define PG_TYPE(dtype) (1u << (dtype))
enum {
  PG_REALS = PG_TYPE(ACL_FLOAT) | PG_TYPE(ACL_FLOAT16) | PG_TYPE(ACL_BF16) | PG_TYPE(ACL_DOUBLE),
  PG_INTEGERS = PG_TYPE(ACL_INT8) | PG_TYPE(ACL_INT16) | PG_TYPE(ACL_INT32) | PG_TYPE(ACL_INT64) |
                PG_TYPE(ACL_UINT8),
  PG_NUMBERS = PG_REALS | PG_INTEGERS,
  PG_INTEGERS_AND_BOOL = PG_INTEGERS | PG_TYPE(ACL_BOOL),
  PG_ANY = PG_NUMBERS | PG_TYPE(ACL_BOOL),
  PG_INDEX_TYPES = PG_TYPE(ACL_INT32) | PG_TYPE(ACL_INT64),
  PG_MASK_TYPES = PG_TYPE(ACL_BOOL) | PG_TYPE(ACL_UINT8)
};

bool pg_is_type_of(unsigned set, aclDataType dtype);

/* 161002 unless the type is in the set; `name` is whose it is. */
aclnnStatus pg_check_type(const char *api, const char *name, aclDataType dtype, unsigned set);

/* 161002 unless a result of this type may be stored in the tensor: a real never as an integer, and
 * nothing but BOOL as BOOL. */
aclnnStatus pg_check_result_type(const char *api, const struct pg_view *out, aclDataType result);

/* What an operator is given.  A tensor without axes counts less than one with axes, and a scalar
 * less than both: they decide only if they are of a higher kind, which are BOOL, integers, reals.
 * ACL_DT_UNDEFINED: there is none. */
struct pg_given {
  aclDataType tensor, tensor_without_axes, scalar;
};
#define PG_NOTHING_GIVEN ((struct pg_given){ACL_DT_UNDEFINED, ACL_DT_UNDEFINED, ACL_DT_UNDEFINED})
void pg_give_tensor(struct pg_given *given, const struct pg_view *view);
void pg_give_scalar(struct pg_given *given, aclDataType dtype);

/* The type that it is computed as. */
aclDataType pg_promoted(const struct pg_given *given);

/* The class that holds the type, and a real type: itself, or FLOAT for integers. */
enum pg_class pg_class_of(aclDataType dtype);
aclDataType pg_real_type(aclDataType dtype);

/* The value of an aclScalar, as a real and as an integer. */
struct pg_scalar_value {
  aclDataType dtype;
  double real;
  int64_t integer;
};
#define PG_SCALAR_ONE ((struct pg_scalar_value){ACL_INT64, 1, 1})

/* 161002 for what is no live scalar, or a complex one. */
aclnnStatus pg_read_scalar(const char *api, const char *name, const aclScalar *handle,
                           struct pg_scalar_value *value);

/* The scalar in the class of a type; what becomes BOOL is 0 or 1. */
union pg_number pg_number_of(const struct pg_scalar_value *value, aclDataType dtype);

/* A real, rounded to a type. */
double pg_rounded(double real, aclDataType dtype);

#endif
