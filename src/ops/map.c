/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that compute each element of a result from one element of each input: arithmetic,
 * comparisons, functions of one number.
 *
 *     out[i] = f(self[i], other[i]),      self and other broadcast to out's shape
 *
 * An operator is a line at the end of this file: its name, its form, which says what arguments it
 * has, and a row.  Types are promoted as in PyTorch (ops/tensor_types.h), which is what is computed
 * as: inputs are converted to the promoted type, and results rounded to it. */
#include "aclnn/opdev/op_errno.h"
#include "aclnnop/aclnn_abs.h"
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_bitwise_and_scalar.h"
#include "aclnnop/aclnn_bitwise_and_tensor.h"
#include "aclnnop/aclnn_ceil.h"
#include "aclnnop/aclnn_div.h"
#include "aclnnop/aclnn_eq_scalar.h"
#include "aclnnop/aclnn_eq_tensor.h"
#include "aclnnop/aclnn_floor.h"
#include "aclnnop/aclnn_ge_scalar.h"
#include "aclnnop/aclnn_ge_tensor.h"
#include "aclnnop/aclnn_gt_scalar.h"
#include "aclnnop/aclnn_gt_tensor.h"
#include "aclnnop/aclnn_isfinite.h"
#include "aclnnop/aclnn_le_scalar.h"
#include "aclnnop/aclnn_le_tensor.h"
#include "aclnnop/aclnn_lt_scalar.h"
#include "aclnnop/aclnn_lt_tensor.h"
#include "aclnnop/aclnn_mul.h"
#include "aclnnop/aclnn_ne_scalar.h"
#include "aclnnop/aclnn_ne_tensor.h"
#include "aclnnop/aclnn_neg.h"
#include "aclnnop/aclnn_pow.h"
#include "aclnnop/aclnn_relu.h"
#include "aclnnop/aclnn_sign.h"
#include "aclnnop/aclnn_sqrt.h"
#include "aclnnop/aclnn_sub.h"
#include "ops/elementwise.h"
#include "ops/pool_check.h"

/* The arguments of a call that its form has. */
struct call {
  const char *api;
  struct pg_elementwise row;
  const aclTensor *self, *other, *out; /* out: NULL if it works in place */
  const aclScalar *scalar, *alpha;
};

/* --- Checks --- */

static bool has(const struct call *c, unsigned form) { return (c->row.form & form) != 0; }

static const char *scalar_name(const struct call *c) {
  return c->row.function == PG_MAP_POW_VALUE ? "exponent" : "other";
}

static aclnnStatus check_pointers(const struct call *c) {
  const char *self = has(c, PG_IN_PLACE) ? "selfRef" : "self";
  if (c->self == NULL) return pg_fail_null(c->api, ACLNN_ERR_PARAM_NULLPTR, self);
  if (has(c, PG_WITH_OTHER) && c->other == NULL)
    return pg_fail_null(c->api, ACLNN_ERR_PARAM_NULLPTR, "other");
  if (has(c, PG_WITH_SCALAR) && c->scalar == NULL)
    return pg_fail_null(c->api, ACLNN_ERR_PARAM_NULLPTR, scalar_name(c));
  if (has(c, PG_WITH_ALPHA) && c->alpha == NULL)
    return pg_fail_null(c->api, ACLNN_ERR_PARAM_NULLPTR, "alpha");
  if (!has(c, PG_IN_PLACE) && c->out == NULL)
    return pg_fail_null(c->api, ACLNN_ERR_PARAM_NULLPTR, "out");
  return ACLNN_SUCCESS;
}

static aclnnStatus plan_call(const struct call *c, struct pg_elementwise_call *e,
                             uint64_t *workspace_size, aclOpExecutor **executor) {
  struct pg_plan *plan;
  e->scalar_name = scalar_name(c);
  if (c->scalar != NULL) PG_TRY(pg_read_scalar(c->api, e->scalar_name, c->scalar, &e->scalar));
  if (c->alpha != NULL) PG_TRY(pg_read_scalar(c->api, "alpha", c->alpha, &e->alpha));
  PG_TRY(pg_check_elementwise(c->api, e));
  PG_TRY(pg_plan_create(c->api, &plan));
  return pg_plan_publish(c->api, plan, pg_plan_elementwise(c->api, plan, e), workspace_size,
                         executor);
}

/* Phase 1 of all of them. */
static aclnnStatus first_phase(const struct call *c, uint64_t *workspace_size,
                               aclOpExecutor **executor) {
  struct pg_view views[3] = {{.name = has(c, PG_IN_PLACE) ? "selfRef" : "self"}};
  const aclTensor *handles[3] = {c->self};
  struct pg_elementwise_call e = {.row = c->row,
                                  .self = &views[0],
                                  .out = &views[0],
                                  .scalar = PG_SCALAR_ONE,
                                  .alpha = PG_SCALAR_ONE};
  int count = 1;
  PG_TRY(pg_check_results(c->api, workspace_size, executor));
  PG_TRY(check_pointers(c));
  if (has(c, PG_WITH_OTHER)) {
    handles[count] = c->other;
    views[count].name = "other";
    e.other = &views[count++];
  }
  if (!has(c, PG_IN_PLACE)) {
    handles[count] = c->out;
    views[count].name = "out";
    e.out = &views[count++];
  }
  PG_TRY(pg_views_acquire(c->api, views, handles, count));
  const aclnnStatus status = plan_call(c, &e, workspace_size, executor);
  pg_views_release(views, count);
  return status;
}

/* --- The operators --- */

/* Each makes the two functions of an operator; forms add themselves to its row. */
#define ROW(function, types, result, form, subtracts) \
  { PG_MAP_##function, types, result, form, subtracts }

#define FIRST_PHASE(name, parameters, ...)                                                \
  aclnnStatus name##GetWorkspaceSize parameters {                                         \
    return first_phase(&(const struct call){.api = __func__, __VA_ARGS__}, workspaceSize, \
                       executor);                                                         \
  }                                                                                       \
  PG_SECOND_PHASE(name)

#define UNARY(name, function, types, result)                                                      \
  FIRST_PHASE(                                                                                    \
      aclnn##name,                                                                                \
      (const aclTensor *self, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor), \
      .row = ROW(function, types, result, 0, false), .self = self, .out = out)
#define INPLACE_UNARY(name, function, types, result)                                      \
  FIRST_PHASE(aclnn##name,                                                                \
              (aclTensor * selfRef, uint64_t * workspaceSize, aclOpExecutor * *executor), \
              .row = ROW(function, types, result, PG_IN_PLACE, false), .self = selfRef)
#define BINARY(name, function, types, result)                                          \
  FIRST_PHASE(aclnn##name,                                                             \
              (const aclTensor *self, const aclTensor *other, aclTensor *out,          \
               uint64_t *workspaceSize, aclOpExecutor **executor),                     \
              .row = ROW(function, types, result, PG_WITH_OTHER, false), .self = self, \
              .other = other, .out = out)
#define INPLACE_BINARY(name, function, types, result)                                  \
  FIRST_PHASE(aclnn##name,                                                             \
              (aclTensor * selfRef, const aclTensor *other, uint64_t *workspaceSize,   \
               aclOpExecutor **executor),                                              \
              .row = ROW(function, types, result, PG_WITH_OTHER | PG_IN_PLACE, false), \
              .self = selfRef, .other = other)
/* NOLINTBEGIN(bugprone-macro-parentheses): the name of a parameter */
#define SCALAR(name, function, types, result, scalar_name)                              \
  FIRST_PHASE(aclnn##name,                                                              \
              (const aclTensor *self, const aclScalar *scalar_name, aclTensor *out,     \
               uint64_t *workspaceSize, aclOpExecutor **executor),                      \
              .row = ROW(function, types, result, PG_WITH_SCALAR, false), .self = self, \
              .scalar = scalar_name, .out = out)
/* NOLINTEND(bugprone-macro-parentheses) */
#define INPLACE_SCALAR(name, function, types, result)                                   \
  FIRST_PHASE(aclnn##name,                                                              \
              (aclTensor * selfRef, const aclScalar *other, uint64_t *workspaceSize,    \
               aclOpExecutor **executor),                                               \
              .row = ROW(function, types, result, PG_WITH_SCALAR | PG_IN_PLACE, false), \
              .self = selfRef, .scalar = other)

/* These have an alpha, and are made for + and - at once. */
#define BINARY_ALPHA(name, types, minus)                                                       \
  FIRST_PHASE(aclnn##name,                                                                     \
              (const aclTensor *self, const aclTensor *other, const aclScalar *alpha,          \
               aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor),             \
              .row = ROW(ADD, types, PG_PROMOTED, PG_WITH_OTHER | PG_WITH_ALPHA, minus),       \
              .self = self, .other = other, .alpha = alpha, .out = out)                        \
  FIRST_PHASE(                                                                                 \
      aclnnInplace##name,                                                                      \
      (aclTensor * selfRef, const aclTensor *other, const aclScalar *alpha,                    \
       uint64_t *workspaceSize, aclOpExecutor **executor),                                     \
      .row = ROW(ADD, types, PG_PROMOTED, PG_WITH_OTHER | PG_WITH_ALPHA | PG_IN_PLACE, minus), \
      .self = selfRef, .other = other, .alpha = alpha)
#define SCALAR_ALPHA(name, types, minus)                                                        \
  FIRST_PHASE(aclnn##name,                                                                      \
              (const aclTensor *self, const aclScalar *other, const aclScalar *alpha,           \
               aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor),              \
              .row = ROW(ADD_VALUE, types, PG_PROMOTED, PG_WITH_SCALAR | PG_WITH_ALPHA, minus), \
              .self = self, .scalar = other, .alpha = alpha, .out = out)                        \
  FIRST_PHASE(aclnnInplace##name,                                                               \
              (aclTensor * selfRef, const aclScalar *other, const aclScalar *alpha,             \
               uint64_t *workspaceSize, aclOpExecutor **executor),                              \
              .row = ROW(ADD_VALUE, types, PG_PROMOTED,                                         \
                         PG_WITH_SCALAR | PG_WITH_ALPHA | PG_IN_PLACE, minus),                  \
              .self = selfRef, .scalar = other, .alpha = alpha)

/* clang-format off */
BINARY_ALPHA(Add,  PG_ANY,     false)
SCALAR_ALPHA(Adds, PG_ANY,     false)
BINARY_ALPHA(Sub,  PG_NUMBERS, true)
SCALAR_ALPHA(Subs, PG_NUMBERS, true)

BINARY(Mul,                 MUL,       PG_ANY,               PG_PROMOTED)
INPLACE_BINARY(InplaceMul,  MUL,       PG_ANY,               PG_PROMOTED)
SCALAR(Muls,                MUL_VALUE, PG_ANY,               PG_PROMOTED, other)
INPLACE_SCALAR(InplaceMuls, MUL_VALUE, PG_ANY,               PG_PROMOTED)
BINARY(Div,                 DIV,       PG_ANY,               PG_REAL)
INPLACE_BINARY(InplaceDiv,  DIV,       PG_ANY,               PG_REAL)
SCALAR(Divs,                DIV_VALUE, PG_ANY,               PG_REAL, other)
INPLACE_SCALAR(InplaceDivs, DIV_VALUE, PG_ANY,               PG_REAL)
SCALAR(PowTensorScalar,     POW_VALUE, PG_ANY,               PG_PROMOTED, exponent)
BINARY(BitwiseAndTensor,    AND,       PG_INTEGERS_AND_BOOL, PG_PROMOTED)
SCALAR(BitwiseAndScalar,    AND_VALUE, PG_INTEGERS_AND_BOOL, PG_PROMOTED, other)

UNARY(Abs,                 ABS,       PG_NUMBERS, PG_PROMOTED)
UNARY(Neg,                 NEG,       PG_NUMBERS, PG_PROMOTED)
UNARY(Sign,                SIGN,      PG_ANY,     PG_PROMOTED)
UNARY(Relu,                RELU,      PG_NUMBERS, PG_PROMOTED)
INPLACE_UNARY(InplaceRelu, RELU,      PG_NUMBERS, PG_PROMOTED)
UNARY(Ceil,                CEIL,      PG_NUMBERS, PG_PROMOTED)
UNARY(Floor,               FLOOR,     PG_NUMBERS, PG_PROMOTED)
UNARY(Sqrt,                SQRT,      PG_ANY,     PG_REAL)
UNARY(IsFinite,            IS_FINITE, PG_ANY,     PG_TRUTH)

BINARY(EqTensor, EQ,       PG_ANY, PG_TRUTH)
BINARY(NeTensor, NE,       PG_ANY, PG_TRUTH)
BINARY(LtTensor, LT,       PG_ANY, PG_TRUTH)
BINARY(LeTensor, LE,       PG_ANY, PG_TRUTH)
BINARY(GtTensor, GT,       PG_ANY, PG_TRUTH)
BINARY(GeTensor, GE,       PG_ANY, PG_TRUTH)
SCALAR(EqScalar, EQ_VALUE, PG_ANY, PG_TRUTH, other)
SCALAR(NeScalar, NE_VALUE, PG_ANY, PG_TRUTH, other)
SCALAR(LtScalar, LT_VALUE, PG_ANY, PG_TRUTH, other)
SCALAR(LeScalar, LE_VALUE, PG_ANY, PG_TRUTH, other)
SCALAR(GtScalar, GT_VALUE, PG_ANY, PG_TRUTH, other)
SCALAR(GeScalar, GE_VALUE, PG_ANY, PG_TRUTH, other)
/* clang-format on */
