/* SPDX-License-Identifier: Apache-2.0 */
/* What single operators on tensors of any shape refuse by rules of their own; what all of them
 * refuse alike is in test_check_tensors.c. */
#include <math.h>

#include "expect.h"

#include "aclnn/opdev/op_errno.h"
#include "aclnnop/aclnn_npu_format_cast.h"
#include "tensor_check.h"

#define REFUSED(call, ...) tensor_refused(&(call), ACLNN_ERR_PARAM_INVALID, __VA_ARGS__)
#define SHAPE(t, ...)                                                                      \
  tensor_call_shape(&(t), (int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), \
                    (const int64_t[]){__VA_ARGS__})

static void set_types(struct tensor_call *c, aclDataType dtype) {
  for (int i = 0; i < TENSORS_MOST; i++) c->t[i].dtype = dtype;
}

static struct called_scalar real(double value) {
  return (struct called_scalar){.dtype = ACL_DOUBLE, .real = value};
}

static struct called_scalar integer(int64_t value) {
  return (struct called_scalar){.dtype = ACL_INT64, .integer = value};
}

/* --- arithmetic ------------------------------------------------------------------------------ */

static void alpha_is_whole_for_integers(void **state) {
  static const enum tensor_operator_id those[] = {OP_Add, OP_InplaceSub, OP_Adds, OP_InplaceSubs};
  (void)state;
  for (int i = 0; i < 4; i++) {
    struct tensor_call c = tensor_call_right(those[i]);
    const int alpha = tensor_operators[those[i]].kind == KIND_SCALAR ? 1 : 0;
    c.s[alpha] = real(0.5);
    tensor_accepted(&c);
    set_types(&c, ACL_INT32);
    REFUSED(c, "alpha is 0.5, for integers it must be a whole number");
    c.s[alpha] = real(-3);
    tensor_accepted(&c);
  }
}

static void integers_have_no_negative_powers(void **state) {
  (void)state;
  struct tensor_call c = tensor_call_right(OP_PowTensorScalar);
  c.s[0] = integer(-2);
  tensor_accepted(&c);
  set_types(&c, ACL_INT64);
  REFUSED(c, "exponent is -2, for integers it must not be negative");
  c.s[0] = integer(0);
  tensor_accepted(&c);
}

static void scalars_are_of_the_kinds_that_tensors_are(void **state) {
  (void)state;
  struct tensor_call c = tensor_call_right(OP_Subs);
  c.s[0].dtype = ACL_BOOL;
  REFUSED(c, "other is DT_BOOL, allowed is a real or an integer");
  c = tensor_call_right(OP_BitwiseAndScalar);
  c.s[0] = real(2);
  REFUSED(c, "other is DT_DOUBLE, allowed is an integer or DT_BOOL");
  c.s[0].dtype = ACL_BOOL;
  tensor_accepted(&c);
}

/* What the types are promoted to must fit into the result's kind. */
static void results_are_not_of_a_lower_kind(void **state) {
  (void)state;
  struct tensor_call c = tensor_call_right(OP_Add);
  c.t[2].dtype = ACL_INT64;
  REFUSED(c, "out is DT_INT64, the result is DT_FLOAT, which an integer cannot hold");
  c.t[0].dtype = c.t[1].dtype = ACL_UINT8;
  c.t[2].dtype = ACL_BOOL;
  REFUSED(c, "out is DT_BOOL, the result is DT_UINT8");
  c.t[2].dtype = ACL_FLOAT16;
  tensor_accepted(&c);
  c = tensor_call_right(OP_Div);
  set_types(&c, ACL_INT32);
  REFUSED(c, "out is DT_INT32, the result is DT_FLOAT, which an integer cannot hold");
  c = tensor_call_right(OP_InplaceMuls);
  c.t[0].dtype = ACL_INT8;
  c.s[0] = real(0.5);
  REFUSED(c, "selfRef is DT_INT8, the result is DT_FLOAT, which an integer cannot hold");
}

static void shapes_are_broadcast_to_the_result_alone(void **state) {
  (void)state;
  struct tensor_call c = tensor_call_right(OP_Mul);
  SHAPE(c.t[0], 4, 1, 3);
  REFUSED(c, "out is [2,3], expected the shape that self and other have together, [4,2,3]");
  SHAPE(c.t[2], 4, 2, 3);
  tensor_accepted(&c);
  c = tensor_call_right(OP_InplaceMul);
  SHAPE(c.t[0], 1, 3);
  REFUSED(c, "selfRef is [1,3], expected the shape that selfRef and other have together, [2,3]");
  c = tensor_call_right(OP_InplaceMaskedFillScalar);
  SHAPE(c.t[1], 5, 2, 3);
  REFUSED(c, "selfRef is [2,3], expected the shape that it and mask have together, [5,2,3]");
  c = tensor_call_right(OP_InplaceCopy);
  SHAPE(c.t[1], 5, 2, 3);
  REFUSED(c, "selfRef is [2,3], expected the shape that it and src have together, [5,2,3]");
}

static void tolerances_are_not_negative(void **state) {
  (void)state;
  struct tensor_call c = tensor_call_right(OP_IsClose);
  c.real[0] = -1e-5;
  REFUSED(c, "rtol is -1e-05 and atol 1, they must not be negative");
  c.real[0] = (double)NAN;
  REFUSED(c, "rtol is nan and atol 1, they must not be negative");
}

/* --- random numbers -------------------------------------------------------------------------- */

static void random_numbers_have_a_range(void **state) {
  (void)state;
  struct tensor_call c = tensor_call_right(OP_InplaceNormal);
  c.real[1] = -1;
  REFUSED(c, "std is -1, it must not be negative");
  c = tensor_call_right(OP_InplaceUniform);
  c.real[0] = 2;
  REFUSED(c, "from is 2 and to 1, from must not be greater");
  c.real[1] = (double)INFINITY;
  REFUSED(c, "from is 2 and to inf, both must be finite");
  c = tensor_call_right(OP_InplaceRandom);
  c.integer[0] = c.integer[1] = 7;
  REFUSED(c, "from is 7 and to 7, from must be less");
  c = tensor_call_right(OP_InplaceNormal);
  c.t[0].dtype = ACL_INT32;
  REFUSED(c, "selfRef is DT_INT32, allowed is DT_FLOAT, DT_FLOAT16, DT_BF16 or DT_DOUBLE");
}

/* --- reductions ------------------------------------------------------------------------------ */

static void axes_are_those_of_the_tensor(void **state) {
  (void)state;
  struct tensor_call c = tensor_call_right(OP_ReduceSum);
  c.a[0] = (struct called_array){.count = 1, .values = {2}};
  REFUSED(c, "dims has axis 2, self is [2,3], allowed is -2 to 1");
  c.a[0] = (struct called_array){.count = 2, .values = {0, -2}};
  REFUSED(c, "dims has axis 0 twice");
  c.a[0].count = 0; /* all of them */
  c.t[1].rank = 0;
  tensor_accepted(&c);
  c = tensor_call_right(OP_MaxDim);
  c.integer[0] = -3;
  REFUSED(c, "dim has axis -3, self is [2,3], allowed is -2 to 1");
  c = tensor_call_right(OP_Mean);
  c.flag = true;
  REFUSED(c, "out is [2], expected self's shape without what is reduced, [2,1]");
}

static void sums_have_a_type_that_holds_them(void **state) {
  (void)state;
  struct tensor_call c = tensor_call_right(OP_Mean);
  c.dtype = ACL_INT32;
  REFUSED(c, "dtype is DT_INT32, allowed is DT_FLOAT, DT_FLOAT16, DT_BF16 or DT_DOUBLE");
  c = tensor_call_right(OP_ReduceSum);
  c.t[1].dtype = ACL_INT64;
  REFUSED(c, "out is DT_INT64, the result is DT_FLOAT, which an integer cannot hold");
  c.dtype = ACL_INT64;
  tensor_accepted(&c);
}

static void nothing_has_no_extremum(void **state) {
  (void)state;
  struct tensor_call c = tensor_call_right(OP_MinDim);
  SHAPE(c.t[0], 2, 0);
  REFUSED(c, "self is [2,0], an empty axis has no extremum");
  SHAPE(c.t[0], 0, 3);
  SHAPE(c.t[1], 0);
  SHAPE(c.t[2], 0);
  tensor_accepted(&c);
  c = tensor_call_right(OP_Max);
  SHAPE(c.t[1], 1, 1); /* one element, with or without axes */
  tensor_accepted(&c);
}

/* --- gathering, unpooling, selecting --------------------------------------------------------- */

static void indices_have_the_axes_of_the_tensor(void **state) {
  (void)state;
  struct tensor_call c = tensor_call_right(OP_Gather);
  c.integer[0] = 2;
  REFUSED(c, "dim is 2, self is [2,3], allowed is -2 to 1");
  c.integer[0] = 0;
  SHAPE(c.t[1], 9, 4);
  REFUSED(c, "index is [9,4] and self [2,3], index must not be longer on axis 1");
  SHAPE(c.t[1], 9, 3);
  SHAPE(c.t[2], 9, 3);
  tensor_accepted(&c);
}

static void unpooled_planes_have_the_stated_size(void **state) {
  (void)state;
  struct tensor_call c = tensor_call_right(OP_MaxUnpool2d);
  c.a[0].count = 3;
  REFUSED(c, "outputSize has 3 values, allowed is 2");
  c = tensor_call_right(OP_MaxUnpool2d);
  c.a[0].values[1] = 0;
  REFUSED(c, "outputSize is [4,0], both must be positive");
  c = tensor_call_right(OP_MaxUnpool2d);
  c.a[0].values[1] = 6;
  REFUSED(c, "out is [2,4,5], expected N and C of self [2,2,3] and outputSize [4,6]");
  c = tensor_call_right(OP_MaxUnpool3d);
  c.a[1].values[2] = -1;
  REFUSED(c, "stride is [1,1,-1], all three must be positive");
}

static void what_is_selected_has_room(void **state) {
  (void)state;
  struct tensor_call c = tensor_call_right(OP_MaskedSelect);
  SHAPE(c.t[2], 5);
  REFUSED(c, "out is [5], it must have room for all 6 elements of self and mask");
  SHAPE(c.t[2], 6, 1);
  REFUSED(c, "out is [6,1], it must have one axis without gaps");
}

/* --- lists ----------------------------------------------------------------------------------- */

static void lists_are_equally_long(void **state) {
  (void)state;
  struct tensor_call c = tensor_call_right(OP_ForeachAddListV2);
  c.list[1] = 3;
  REFUSED(c, "x2 has 3 tensors, expected x1's 2");
  c = tensor_call_right(OP_ForeachMulScalarV2);
  c.list[1] = 0;
  REFUSED(c, "out has 0 tensors, expected x's 2");
  c.list[0] = 0;
  tensor_accepted(&c);
}

static void tensors_fill_what_they_are_put_into(void **state) {
  (void)state;
  struct tensor_call c = tensor_call_right(OP_Cat);
  c.integer[0] = 2;
  REFUSED(c, "dim is 2, out is [4,3], allowed is -2 to 1");
  c.integer[0] = -2;
  tensor_accepted(&c);
  c.list[0] = 3;
  REFUSED(c, "tensors[2] is [2,3], but 0 of out's [4,3] along axis 0 are left for it");
  c.list[0] = 1;
  REFUSED(c, "out is [4,3], the tensors have 2 along axis 0 together");
  SHAPE(c.t[0], 4, 3, 1);
  REFUSED(c, "tensors[0] is [4,3,1], it must have as many axes as out [4,3]");
  SHAPE(c.t[0], 0); /* is passed over */
  SHAPE(c.t[1], 0, 3);
  tensor_accepted(&c);
  c.t[1].dtype = ACL_INT64;
  REFUSED(c, "out is DT_INT64, the result is DT_FLOAT, which an integer cannot hold");
  c.t[0].dtype = ACL_INT32;
  tensor_accepted(&c);
  c.t[1].rank = 0;
  REFUSED(c, "out is [], it must have an axis to put tensors one behind the other");
  c = tensor_call_right(OP_Stack);
  c.list[0] = 3;
  REFUSED(c, "tensors[2] is [2,3], but 0 of out's [2,2,3] along axis 0 are left for it");
  SHAPE(c.t[0], 0);
  REFUSED(c, "tensors[0] is [0], expected out's shape without axis 0, [2,3]");
}

/* --- formats --------------------------------------------------------------------------------- */

static void a_format_is_asked_for(void **state) {
  static const int64_t dims[] = {2, 3};
  int64_t *shape = NULL;
  uint64_t size = 0;
  int format = 77;
  (void)state;
  aclTensor *tensor = aclCreateTensor(dims, 2, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, dims, 2, NULL);
  FAILS(aclnnNpuFormatCastCalculateSizeAndFormat(NULL, 0, 0, &shape, &size, &format),
        ACLNN_ERR_PARAM_NULLPTR, "srcTensor is NULL");
  FAILS(aclnnNpuFormatCastCalculateSizeAndFormat(tensor, 0, 0, NULL, &size, &format),
        ACLNN_ERR_PARAM_NULLPTR, "dstShape is NULL");
  FAILS(aclnnNpuFormatCastCalculateSizeAndFormat(tensor, 0, 0, &shape, &size, NULL),
        ACLNN_ERR_PARAM_NULLPTR, "actualFormat is NULL");
  assert_int_equal(format, 77);
  OK_OR_SAY(aclnnNpuFormatCastCalculateSizeAndFormat(tensor, ACL_FORMAT_FRACTAL_NZ, 0, &shape,
                                                     &size, &format));
  assert_int_equal(format, ACL_FORMAT_ND); /* private ones do not exist here */
  assert_int_equal(size, 2);
  assert_memory_equal(shape, dims, sizeof dims);
  free(shape);
  OK_OR_SAY(aclDestroyTensor(tensor));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(alpha_is_whole_for_integers),
      cmocka_unit_test(integers_have_no_negative_powers),
      cmocka_unit_test(scalars_are_of_the_kinds_that_tensors_are),
      cmocka_unit_test(results_are_not_of_a_lower_kind),
      cmocka_unit_test(shapes_are_broadcast_to_the_result_alone),
      cmocka_unit_test(tolerances_are_not_negative),
      cmocka_unit_test(random_numbers_have_a_range),
      cmocka_unit_test(axes_are_those_of_the_tensor),
      cmocka_unit_test(sums_have_a_type_that_holds_them),
      cmocka_unit_test(nothing_has_no_extremum),
      cmocka_unit_test(indices_have_the_axes_of_the_tensor),
      cmocka_unit_test(unpooled_planes_have_the_stated_size),
      cmocka_unit_test(what_is_selected_has_room),
      cmocka_unit_test(lists_are_equally_long),
      cmocka_unit_test(tensors_fill_what_they_are_put_into),
      cmocka_unit_test(a_format_is_asked_for),
  };
  return cmocka_run_group_tests(tests, set_up_device, tear_down_device);
}
