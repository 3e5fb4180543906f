/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/elementwise.h"

#include <stdio.h>

#include "aclnn/opdev/op_errno.h"
#include "core/dtype.h"
#include "kernels/functions.h"

static bool has(const struct pg_elementwise_call *c, unsigned form) {
  return (c->row.form & form) != 0;
}

static bool is_integral(aclDataType dtype) { return pg_class_of(dtype) == PG_CLASS_INT; }

/* A scalar may have types that tensors may not; what counts is its kind. */
static aclnnStatus check_scalar_type(const char *api, const struct pg_elementwise_call *c) {
  struct pg_given given = PG_NOTHING_GIVEN;
  const char *allowed =
      pg_is_type_of(c->row.types, ACL_FLOAT) ? "a real or an integer" : "an integer or DT_BOOL";
  pg_give_scalar(&given, c->scalar.dtype);
  PG_CHECK_AS(api, pg_is_type_of(c->row.types, given.scalar), ACLNN_ERR_PARAM_INVALID,
              "%s is %s, allowed is %s", c->scalar_name, pg_dtype_name(c->scalar.dtype), allowed);
  return ACLNN_SUCCESS;
}

static aclnnStatus check_types(const char *api, struct pg_elementwise_call *c) {
  struct pg_given given = PG_NOTHING_GIVEN;
  PG_TRY(pg_check_type(api, c->self->name, c->self->tensor->dtype, c->row.types));
  pg_give_tensor(&given, c->self);
  if (has(c, PG_WITH_OTHER)) {
    PG_TRY(pg_check_type(api, c->other->name, c->other->tensor->dtype, c->row.types));
    pg_give_tensor(&given, c->other);
  }
  if (has(c, PG_WITH_SCALAR)) {
    PG_TRY(check_scalar_type(api, c));
    pg_give_scalar(&given, c->scalar.dtype);
  }
  c->computed = pg_promoted(&given);
  if (c->row.result == PG_REAL) c->computed = pg_real_type(c->computed);
  return pg_check_result_type(api, c->out, c->row.result == PG_TRUTH ? ACL_BOOL : c->computed);
}

static aclnnStatus check_shapes(const char *api, const struct pg_elementwise_call *c) {
  PG_TRY(pg_check_axes(api, c->self));
  struct pg_shape shape = pg_shape_of(c->self);
  if (has(c, PG_WITH_OTHER)) {
    PG_TRY(pg_check_axes(api, c->other));
    PG_TRY(pg_check_axes(api, c->out));
    PG_TRY(pg_broadcast(api, c->self, c->other, &shape));
  } else {
    PG_TRY(pg_check_axes(api, c->out));
  }
  char whose[96];
  if (has(c, PG_WITH_OTHER))
    snprintf(whose, sizeof whose, "the shape that %s and %s have together,", c->self->name,
             c->other->name);
  else
    snprintf(whose, sizeof whose, "%s's shape", c->self->name);
  return pg_check_shape(api, c->out, &shape, whose);
}

/* What integers are computed with must be whole. */
static aclnnStatus check_numbers(const char *api, const struct pg_elementwise_call *c) {
  PG_CHECK_AS(api, !is_integral(c->computed) || (double)c->alpha.integer == c->alpha.real,
              ACLNN_ERR_PARAM_INVALID, "alpha is %g, for integers it must be a whole number",
              c->alpha.real);
  PG_CHECK_AS(
      api,
      c->row.function != PG_MAP_POW_VALUE || !is_integral(c->computed) || c->scalar.integer >= 0,
      ACLNN_ERR_PARAM_INVALID, "exponent is %lld, for integers it must not be negative",
      (long long)c->scalar.integer);
  return ACLNN_SUCCESS;
}

/* scalar * alpha as fp32 or fp64 has it. */
static double product(const struct pg_elementwise_call *c) {
  if (c->computed == ACL_DOUBLE) return c->scalar.real * c->alpha.real;
  return (double)((float)c->scalar.real * (float)c->alpha.real);
}

static int64_t wrapped_product(int64_t a, int64_t b) {
  return (int64_t)((uint64_t)a * (uint64_t)b);
}

static bool is_comparison(enum pg_map_function function) {
  return function >= PG_MAP_EQ_VALUE && function <= PG_MAP_GE_VALUE;
}

/* The scalar of the kernel.  What is compared with a tensor is rounded to its type, as PyTorch
 * does: the FLOAT16 nearest to 0.1 equals 0.1. */
static void set_number(struct pg_elementwise_call *c) {
  const bool whole = is_integral(c->computed);
  c->number = pg_number_of(&c->scalar, whole ? ACL_INT64 : c->computed);
  if (is_comparison(c->row.function) && !whole)
    c->number.real = pg_rounded(c->number.real, c->computed);
  if (c->row.function == PG_MAP_ADD) /* there is no scalar: it is 1 */
    c->number = pg_number_of(&c->alpha, whole ? ACL_INT64 : c->computed);
  if (c->row.function == PG_MAP_ADD_VALUE && !whole) c->number.real = product(c);
  if (c->row.function == PG_MAP_ADD_VALUE && whole)
    c->number.integer = wrapped_product(c->scalar.integer, c->alpha.integer);
  if (c->row.subtracts && whole) c->number.integer = wrapped_product(c->number.integer, -1);
  if (c->row.subtracts && !whole) c->number.real = -c->number.real;
}

aclnnStatus pg_check_elementwise(const char *api, struct pg_elementwise_call *c) {
  PG_TRY(check_types(api, c));
  PG_TRY(check_shapes(api, c));
  PG_TRY(check_numbers(api, c));
  PG_TRY(pg_view_check(api, c->self, has(c, PG_IN_PLACE)));
  if (has(c, PG_WITH_OTHER)) PG_TRY(pg_view_check(api, c->other, false));
  if (!has(c, PG_IN_PLACE)) PG_TRY(pg_view_check(api, c->out, true));
  set_number(c);
  return ACLNN_SUCCESS;
}

/* --- Types on the way ---
 *
 * PyTorch converts inputs to the promoted type, and rounds the result to it.  What is computed with
 * here is the class of that type, which holds more than FLOAT16, BF16 and the shorter integers do:
 * these are rounded to in between where anything could be lost by it. */

static bool fills_class(aclDataType dtype) {
  return dtype == ACL_FLOAT || dtype == ACL_DOUBLE || dtype == ACL_INT64;
}

static bool is_shorter(aclDataType a, aclDataType b) {
  return aclDataTypeSize(a) < aclDataTypeSize(b);
}

/* Does the type hold every number of the other one?  8 bits fit into a half. */
static bool holds(aclDataType dtype, aclDataType other) {
  if (dtype == other || other == ACL_BOOL || fills_class(dtype)) return true;
  return is_integral(dtype) ? is_shorter(other, dtype)
                            : is_integral(other) && aclDataTypeSize(other) == 1;
}

/* Integers keep the low bits: those of a shorter out are the same either way. */
static bool is_rounded_on_the_way(aclDataType computed, aclDataType out) {
  if (out == computed || fills_class(computed)) return false;
  return computed == ACL_BOOL || !is_integral(computed) || !is_integral(out) ||
         is_shorter(computed, out);
}

aclnnStatus pg_plan_elementwise(const char *api, struct pg_plan *plan,
                                const struct pg_elementwise_call *c) {
  struct pg_map_call call = {
      .out = c->out,
      .in = {c->self, c->other},
      .args = {.function = c->row.function, .class_of = pg_class_of(c->computed), .s = c->number},
      .between = c->computed};
  for (int i = 0; i < PG_MAP_INPUTS && call.in[i] != NULL; i++)
    call.converts[i] = !holds(c->computed, call.in[i]->tensor->dtype);
  call.rounds =
      c->row.result != PG_TRUTH && is_rounded_on_the_way(c->computed, c->out->tensor->dtype);
  return pg_plan_map(api, plan, &call);
}
