/* SPDX-License-Identifier: Apache-2.0 */
#include "elementwise_reference.h"

#include <math.h>
#include <string.h>

#include "kernels/functions.h" /* powers, which tests/test_functions.c is about */

/* --- Promotion --- */

/* As in PyTorch's c10/core/ScalarType.h, in the order of tensor_types: f32, f16, bf16, f64, i8,
 * i16, i32, i64, u8, bool. */
static const char order[] = "fhbd1248ut";
static const char table[TENSOR_TYPES][TENSOR_TYPES + 1] = {
    "fffdffffff", "fhfdhhhhhh", "ffbdbbbbbb", "dddddddddd", "fhbd124821",
    "fhbd224822", "fhbd444844", "fhbd888888", "fhbd2248uu", "fhbd1248ut"};

static int number_of(aclDataType dtype) {
  int i = 0;
  while (tensor_types[i] != dtype) i++;
  return i;
}

static aclDataType type_of_both(aclDataType a, aclDataType b) {
  if (a == ACL_DT_UNDEFINED) return b;
  if (b == ACL_DT_UNDEFINED) return a;
  return tensor_types[strchr(order, table[number_of(a)][number_of(b)]) - order];
}

/* 0: BOOL; 1: integers; 2: reals. */
static int kind_of(aclDataType dtype) {
  if (dtype == ACL_DT_UNDEFINED) return -1;
  return dtype == ACL_BOOL ? 0 : tensor_is_real(dtype) ? 2 : 1;
}

void promote_tensor(struct promotion *p, aclDataType dtype, int rank) {
  aclDataType *of = rank > 0 ? &p->axes : &p->no_axes;
  *of = type_of_both(*of, dtype);
}

/* A number of a program has the type that programs give their numbers. */
void promote_scalar(struct promotion *p, aclDataType dtype) {
  static const aclDataType types[] = {ACL_BOOL, ACL_INT64, ACL_FLOAT};
  p->scalar = types[kind_of(dtype)];
}

/* Who counts less decides only with a higher kind. */
aclDataType promoted_type(const struct promotion *p) {
  aclDataType dtype = p->axes;
  if (kind_of(p->no_axes) > kind_of(dtype)) dtype = p->no_axes;
  if (kind_of(p->scalar) > kind_of(dtype)) dtype = p->scalar;
  return dtype;
}

bool result_may_be(aclDataType result, aclDataType dtype) {
  return kind_of(dtype) == 2 || (kind_of(dtype) == 1 && kind_of(result) < 2) || result == ACL_BOOL;
}

bool operand_may_be(enum operand_types types, aclDataType dtype) {
  return types == ANYTHING || kind_of(dtype) == 1 || kind_of(dtype) == (types == BITS ? 0 : 2);
}

/* --- Operators --- */

const struct elementwise_rule elementwise_rules[TENSOR_OPERATORS] = {
    [OP_Add] = {ANYTHING, PROMOTED, '+'},
    [OP_Adds] = {ANYTHING, PROMOTED, '+'},
    [OP_InplaceAdd] = {ANYTHING, PROMOTED, '+'},
    [OP_InplaceAdds] = {ANYTHING, PROMOTED, '+'},
    [OP_ForeachAddListV2] = {ANYTHING, PROMOTED, '+'},
    [OP_Sub] = {NUMBERS, PROMOTED, '-'},
    [OP_Subs] = {NUMBERS, PROMOTED, '-'},
    [OP_InplaceSub] = {NUMBERS, PROMOTED, '-'},
    [OP_InplaceSubs] = {NUMBERS, PROMOTED, '-'},
    [OP_Mul] = {ANYTHING, PROMOTED, '*'},
    [OP_Muls] = {ANYTHING, PROMOTED, '*'},
    [OP_InplaceMul] = {ANYTHING, PROMOTED, '*'},
    [OP_InplaceMuls] = {ANYTHING, PROMOTED, '*'},
    [OP_Div] = {ANYTHING, REAL, '/'},
    [OP_Divs] = {ANYTHING, REAL, '/'},
    [OP_InplaceDiv] = {ANYTHING, REAL, '/'},
    [OP_InplaceDivs] = {ANYTHING, REAL, '/'},
    [OP_PowTensorScalar] = {ANYTHING, PROMOTED, '^'},
    [OP_ForeachMulScalarV2] = {ANYTHING, PROMOTED, '*'},
    [OP_BitwiseAndTensor] = {BITS, PROMOTED, '&'},
    [OP_BitwiseAndScalar] = {BITS, PROMOTED, '&'},
    [OP_Abs] = {NUMBERS, PROMOTED, 'A'},
    [OP_Neg] = {NUMBERS, PROMOTED, 'N'},
    [OP_Sign] = {ANYTHING, PROMOTED, 'S'},
    [OP_Relu] = {NUMBERS, PROMOTED, 'R'},
    [OP_InplaceRelu] = {NUMBERS, PROMOTED, 'R'},
    [OP_Ceil] = {NUMBERS, PROMOTED, 'C'},
    [OP_Floor] = {NUMBERS, PROMOTED, 'F'},
    [OP_Sqrt] = {ANYTHING, REAL, 'Q'},
    [OP_IsFinite] = {ANYTHING, TRUTH, 'I'},
    [OP_EqTensor] = {ANYTHING, TRUTH, '='},
    [OP_EqScalar] = {ANYTHING, TRUTH, '='},
    [OP_NeTensor] = {ANYTHING, TRUTH, '!'},
    [OP_NeScalar] = {ANYTHING, TRUTH, '!'},
    [OP_LtTensor] = {ANYTHING, TRUTH, '<'},
    [OP_LtScalar] = {ANYTHING, TRUTH, '<'},
    [OP_LeTensor] = {ANYTHING, TRUTH, 'l'},
    [OP_LeScalar] = {ANYTHING, TRUTH, 'l'},
    [OP_GtTensor] = {ANYTHING, TRUTH, '>'},
    [OP_GtScalar] = {ANYTHING, TRUTH, '>'},
    [OP_GeTensor] = {ANYTHING, TRUTH, 'g'},
    [OP_GeScalar] = {ANYTHING, TRUTH, 'g'},
};

/* --- What the types of a call may be --- */

static bool is_legal(const struct elementwise_rule *r, const struct elementwise_types *d,
                     bool has_other, bool has_scalar) {
  aclDataType result = promoted_type(&d->p);
  if (r->result == REAL && !tensor_is_real(result)) result = ACL_FLOAT;
  if (r->result == TRUTH) result = ACL_BOOL;
  return operand_may_be(r->types, d->self) && (!has_other || operand_may_be(r->types, d->other)) &&
         (!has_scalar || operand_may_be(r->types, d->p.scalar)) && result_may_be(result, d->out);
}

struct elementwise_types elementwise_draw_types(uint64_t *state, enum tensor_operator_id op,
                                                int self_rank, int other_rank, bool has_scalar) {
  const bool has_other = other_rank >= 0;
  const bool in_place = strstr(tensor_operators[op].arguments, "selfRef") != NULL;
  struct elementwise_types d;
  do {
    d.self = operation_draw_type(state);
    d.other = tensor_chance(state, 2) ? d.self : operation_draw_type(state);
    d.out = in_place || tensor_chance(state, 3) ? d.self : operation_draw_type(state);
    d.scalar = operation_draw_type(state);
    d.p = NOTHING_PROMOTED;
    promote_tensor(&d.p, d.self, self_rank);
    if (has_other) promote_tensor(&d.p, d.other, other_rank);
    if (has_scalar) promote_scalar(&d.p, d.scalar);
  } while (!is_legal(&elementwise_rules[op], &d, has_other, has_scalar));
  return d;
}

/* --- What is the same for all elements --- */

static double in_class(enum pg_class c, double x) {
  return c == PG_CLASS_FLOAT ? (double)(float)x : x;
}

static union pg_number scalar_in(enum pg_class c, const struct operation_scalar *s) {
  if (c == PG_CLASS_INT) return (union pg_number){.integer = s->integer};
  return (union pg_number){.real = in_class(c, s->real)};
}

/* The FLOAT16 nearest to 0.1 equals 0.1. */
static void round_to_type(aclDataType dtype, union pg_number *n) {
  char element[8];
  reference_store(tensor_class(dtype), *n, dtype, element);
  *n = reference_load(tensor_class(dtype), dtype, element);
}

/* Integers are multiplied with whole numbers and have no negative powers. */
static void make_legal(uint64_t *state, char does, struct operation_scalar *scalar,
                       struct operation_scalar *alpha) {
  if (alpha != NULL && (double)alpha->integer != alpha->real)
    operation_set_integer(alpha, tensor_draw(state, 17) - 8);
  if (does == '^' && scalar->integer < 0) operation_set_integer(scalar, tensor_draw(state, 70));
}

struct elementwise elementwise_of(uint64_t *state, enum tensor_operator_id op,
                                  const struct promotion *p, struct operation_scalar *scalar,
                                  struct operation_scalar *alpha) {
  struct elementwise e = {.rule = elementwise_rules[op], .computed = promoted_type(p)};
  if (e.rule.result == REAL && !tensor_is_real(e.computed)) e.computed = ACL_FLOAT;
  e.class_of = tensor_class(e.computed);
  if (e.class_of == PG_CLASS_INT) make_legal(state, e.rule.does, scalar, alpha);
  e.alpha = (union pg_number){.integer = 1};
  if (e.class_of != PG_CLASS_INT) e.alpha.real = 1;
  if (alpha != NULL) e.alpha = scalar_in(e.class_of, alpha);
  if (scalar == NULL) return e;
  e.scalar = scalar_in(e.class_of, scalar);
  if (e.class_of != PG_CLASS_INT && e.rule.result == TRUTH) round_to_type(e.computed, &e.scalar);
  return e;
}

/* --- One element --- */

/* What has one order for reals and integers. */
static bool compares(char how, bool less, bool equal, bool greater) {
  switch (how) {
    case '=':
      return equal;
    case '!':
      return !equal;
    case '<':
      return less;
    case 'l':
      return less || equal;
    case '>':
      return greater;
    default:
      return greater || equal;
  }
}

static double sign_of(double a) { return isnan(a) ? a : (double)((a > 0) - (a < 0)); }

static double real_value(const struct elementwise *e, double a, double b) {
  const enum pg_class c = e->class_of;
  const volatile double product = in_class(c, e->alpha.real * b); /* not a part of the sum */
  switch (e->rule.does) {
    case '+':
      return in_class(c, a + product);
    case '-':
      return in_class(c, a - product);
    case '*':
      return in_class(c, a * b);
    case '/':
      return in_class(c, a / b);
    case '^':
      return c == PG_CLASS_FLOAT ? (double)pg_power_float((float)a, (float)b) : pg_power(a, b);
    case 'A':
      return fabs(a);
    case 'N':
      return -a;
    case 'S':
      return sign_of(a);
    case 'R':
      return a < 0 ? 0 : a;
    case 'C':
      return ceil(a);
    case 'F':
      return floor(a);
    case 'Q':
      return in_class(c, sqrt(a));
    case 'I':
      return isfinite(a);
    default:
      return compares(e->rule.does, a<b, a == b, a> b);
  }
}

static uint64_t power(uint64_t a, int64_t exponent) {
  uint64_t result = 1;
  for (; exponent > 0; exponent /= 2, a *= a)
    if (exponent % 2 != 0) result *= a;
  return result;
}

static int64_t integer_value(const struct elementwise *e, int64_t a, int64_t b) {
  const uint64_t x = (uint64_t)a, y = (uint64_t)b, alpha = (uint64_t)e->alpha.integer;
  switch (e->rule.does) {
    case '+':
      return (int64_t)(x + alpha * y);
    case '-':
      return (int64_t)(x - alpha * y);
    case '*':
      return (int64_t)(x * y);
    case '^':
      return (int64_t)power(x, b);
    case '&':
      return (int64_t)(x & y);
    case 'A':
      return a < 0 ? (int64_t)(0 - x) : a;
    case 'N':
      return (int64_t)(0 - x);
    case 'S':
      return (a > 0) - (a < 0);
    case 'R':
      return a < 0 ? 0 : a;
    case 'C':
    case 'F':
      return a;
    case 'I':
      return 1;
    default:
      return compares(e->rule.does, a<b, a == b, a> b);
  }
}

/* Operands become the promoted type before, the result after; a scalar does not, as programs give
 * numbers of no type. */
union pg_number elementwise_value(const struct elementwise *e, union pg_number a, union pg_number b,
                                  bool has_other) {
  union pg_number n;
  round_to_type(e->computed, &a);
  if (has_other) round_to_type(e->computed, &b);
  if (e->class_of == PG_CLASS_INT)
    n.integer = integer_value(e, a.integer, b.integer);
  else
    n.real = real_value(e, a.real, b.real);
  if (e->rule.result != TRUTH) round_to_type(e->computed, &n);
  return n;
}
