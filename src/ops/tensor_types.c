/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/tensor_types.h"

#include <stdio.h>
#include <string.h>

#include "aclnn/array.h"
#include "aclnn/opdev/op_errno.h"
#include "core/dtype.h"
#include "core/half.h"
#include "kernels/functions.h"

static const aclDataType known[] = {ACL_FLOAT, ACL_FLOAT16, ACL_BF16,  ACL_DOUBLE, ACL_INT8,
                                    ACL_INT16, ACL_INT32,   ACL_INT64, ACL_UINT8,  ACL_BOOL};
enum { KNOWN = sizeof known / sizeof known[0], SET_TEXT = 160 };

bool pg_is_type_of(unsigned set, aclDataType dtype) {
  return (unsigned)dtype < 32 && (set >> (unsigned)dtype & 1u) != 0;
}

/* "DT_FLOAT, DT_FLOAT16 or DT_BF16" */
static const char *set_text(unsigned set, char text[SET_TEXT]) {
  int left = 0, used = 0;
  for (int i = 0; i < KNOWN; i++) left += pg_is_type_of(set, known[i]);
  text[0] = '\0';
  for (int i = 0; i < KNOWN; i++) {
    if (!pg_is_type_of(set, known[i])) continue;
    left--;
    used += snprintf(text + used, (size_t)(SET_TEXT - used), "%s%s", pg_dtype_name(known[i]),
                     left > 1    ? ", "
                     : left == 1 ? " or "
                                 : "");
  }
  return text;
}

aclnnStatus pg_check_type(const char *api, const char *name, aclDataType dtype, unsigned set) {
  char text[SET_TEXT];
  PG_CHECK_AS(api, pg_is_type_of(set, dtype), ACLNN_ERR_PARAM_INVALID, "%s is %s, allowed is %s",
              name, pg_dtype_name(dtype), set_text(set, text));
  return ACLNN_SUCCESS;
}

static bool is_real(aclDataType dtype) { return pg_is_type_of(PG_REALS, dtype); }

aclnnStatus pg_check_result_type(const char *api, const struct pg_view *out, aclDataType result) {
  const aclDataType to = out->tensor->dtype;
  PG_TRY(pg_check_type(api, out->name, to, PG_ANY));
  PG_CHECK_AS(api, is_real(to) || !is_real(result), ACLNN_ERR_PARAM_INVALID,
              "%s is %s, the result is %s, which an integer cannot hold", out->name,
              pg_dtype_name(to), pg_dtype_name(result));
  PG_CHECK_AS(api, to != ACL_BOOL || result == ACL_BOOL, ACLNN_ERR_PARAM_INVALID,
              "%s is %s, the result is %s", out->name, pg_dtype_name(to), pg_dtype_name(result));
  return ACLNN_SUCCESS;
}

/* The smallest type that holds both. */
static aclDataType joined(aclDataType a, aclDataType b) {
  if (a == b || b == ACL_DT_UNDEFINED) return a;
  if (a == ACL_DT_UNDEFINED) return b;
  if (is_real(a) && is_real(b)) return a == ACL_DOUBLE || b == ACL_DOUBLE ? ACL_DOUBLE : ACL_FLOAT;
  if (is_real(a) || b == ACL_BOOL) return a;
  if (is_real(b) || a == ACL_BOOL) return b;
  if (a == ACL_UINT8) return b == ACL_INT8 ? ACL_INT16 : b;
  if (b == ACL_UINT8) return a == ACL_INT8 ? ACL_INT16 : a;
  return aclDataTypeSize(a) > aclDataTypeSize(b) ? a : b;
}

void pg_give_tensor(struct pg_given *given, const struct pg_view *view) {
  aclDataType *of = view->tensor->rank > 0 ? &given->tensor : &given->tensor_without_axes;
  *of = joined(*of, view->tensor->dtype);
}

/* A scalar of a program has no width of its own. */
void pg_give_scalar(struct pg_given *given, aclDataType dtype) {
  given->scalar = is_real(dtype) ? ACL_FLOAT : dtype == ACL_BOOL ? ACL_BOOL : ACL_INT64;
}

/* The lower one decides only if it is of a higher kind. */
static aclDataType ranked(aclDataType higher, aclDataType lower) {
  if (higher == ACL_DT_UNDEFINED) return lower;
  if (is_real(higher)) return higher;
  return higher == ACL_BOOL || is_real(lower) ? joined(higher, lower) : higher;
}

aclDataType pg_promoted(const struct pg_given *given) {
  return ranked(given->tensor, ranked(given->tensor_without_axes, given->scalar));
}

enum pg_class pg_class_of(aclDataType dtype) {
  if (dtype == ACL_DOUBLE) return PG_CLASS_DOUBLE;
  return is_real(dtype) ? PG_CLASS_FLOAT : PG_CLASS_INT;
}

aclDataType pg_real_type(aclDataType dtype) { return is_real(dtype) ? dtype : ACL_FLOAT; }

static bool set_real(struct pg_scalar_value *value, double real) {
  value->real = real;
  value->integer = pg_integer_of_double(real);
  return true;
}

static bool set_integer(struct pg_scalar_value *value, int64_t integer) {
  value->real = (double)integer;
  value->integer = integer;
  return true;
}

/* Copies the scalar's value to a variable of its type. */
#define TAKE(variable) memcpy(&(variable), scalar->value, sizeof(variable))

static bool take_value(const struct pg_scalar *scalar, struct pg_scalar_value *value) {
  float f32;
  double f64;
  uint16_t u16;
  uint32_t u32;
  int64_t i64;
  TAKE(f32), TAKE(f64), TAKE(u16), TAKE(u32), TAKE(i64);
  value->dtype = scalar->dtype;
  switch (scalar->dtype) {
    case ACL_FLOAT:
      return set_real(value, (double)f32);
    case ACL_FLOAT16:
      return set_real(value, (double)pg_float_of_fp16(u16));
    case ACL_BF16:
      return set_real(value, (double)pg_float_of_bf16(u16));
    case ACL_DOUBLE:
      return set_real(value, f64);
    case ACL_INT8:
      return set_integer(value, (int8_t)scalar->value[0]);
    case ACL_UINT8:
      return set_integer(value, scalar->value[0]);
    case ACL_BOOL:
      return set_integer(value, scalar->value[0] != 0);
    case ACL_INT16:
      return set_integer(value, (int16_t)u16);
    case ACL_UINT16:
      return set_integer(value, u16);
    case ACL_INT32:
      return set_integer(value, (int32_t)u32);
    case ACL_UINT32:
      return set_integer(value, u32);
    case ACL_INT64:
    case ACL_UINT64:
      return set_integer(value, i64);
    default:
      return false;
  }
}

aclnnStatus pg_read_scalar(const char *api, const char *name, const aclScalar *handle,
                           struct pg_scalar_value *value) {
  struct pg_scalar *scalar = pg_acquire(handle, PG_SCALAR);
  PG_CHECK_AS(api, scalar != NULL, ACLNN_ERR_PARAM_INVALID,
              "%s is %s, a live aclScalar is required", name, pg_handle_what(handle));
  const bool taken = take_value(scalar, value);
  const aclDataType dtype = scalar->dtype;
  pg_release(&scalar->object);
  PG_CHECK_AS(api, taken, ACLNN_ERR_PARAM_INVALID,
              "%s is %s, allowed is a real, an integer or DT_BOOL", name, pg_dtype_name(dtype));
  return ACLNN_SUCCESS;
}

union pg_number pg_number_of(const struct pg_scalar_value *value, aclDataType dtype) {
  union pg_number number;
  if (is_real(dtype))
    number.real = value->real;
  else if (dtype == ACL_BOOL)
    number.integer = value->real != 0; /* of a NaN too */
  else
    number.integer = value->integer;
  return number;
}

double pg_rounded(double real, aclDataType dtype) {
  if (dtype == ACL_FLOAT16) return (double)pg_float_of_fp16(pg_fp16_of_float((float)real));
  if (dtype == ACL_BF16) return (double)pg_float_of_bf16(pg_bf16_of_float((float)real));
  return dtype == ACL_FLOAT ? (double)(float)real : real;
}
