/* SPDX-License-Identifier: Apache-2.0 */
/* What aclnnAvgPool2d, aclnnAvgPool3d and aclnnAvgPool3dBackward refuse, and in which words; what
 * they accept although it looks odd. */
#include "core/dtype.h"
#include "check_call.h"

/* Planes of 5 x 5 or 5 x 5 x 5 cells, windows of 2 cells side by side, 2 outputs along each axis.
 */
static struct check_call flat(void) {
  return check_call(AVG_POOL2D_FORWARD, 4, ACL_FORMAT_NCHW, 5, 2);
}
static struct check_call deep(void) {
  return check_call(AVG_POOL3D_FORWARD, 5, ACL_FORMAT_NCDHW, 5, 2);
}
static struct check_call backward(void) {
  return check_call(AVG_POOL3D, 5, ACL_FORMAT_NCDHW, 5, 2);
}

static void nulls_and_wrong_handles_are_refused(void **state) {
  (void)state;
  const struct check_call calls[] = {flat(), deep(), backward()};
  for (int i = 0; i < 3; i++) {
    check_nulls(calls[i]);
    check_handles(calls[i]);
  }
}

#define FLOATS "allowed is DT_FLOAT, DT_FLOAT16 or DT_BF16"

static void types_must_match_and_be_known(void **state) {
  (void)state;
  const struct check_call calls[] = {flat(), deep()};
  for (int i = 0; i < 2; i++) {
    REFUSED_OF(calls[i], "self is DT_DOUBLE, " FLOATS, X.dtype = ACL_DOUBLE);
    REFUSED_OF(calls[i], "out is DT_INT32, " FLOATS, OUT.dtype = ACL_INT32);
    REFUSED_OF(calls[i], "out is DT_FLOAT, expected self's DT_FLOAT16", X.dtype = ACL_FLOAT16);
    ACCEPTED_OF(calls[i], set_gradients(&c, ACL_FLOAT16));
    ACCEPTED_OF(calls[i], set_gradients(&c, ACL_BF16));
  }
  REFUSED_OF(backward(), "gradOutput is DT_INT32, " FLOATS, GO.dtype = ACL_INT32);
  REFUSED_OF(backward(), "self is DT_DOUBLE, " FLOATS, X.dtype = ACL_DOUBLE);
  REFUSED_OF(backward(), "output is DT_INT8, " FLOATS, GI.dtype = ACL_INT8);
  REFUSED_OF(backward(), "gradOutput is DT_BF16, expected output's DT_FLOAT", GO.dtype = ACL_BF16);
  REFUSED_OF(backward(), "self is DT_BF16, expected output's DT_FLOAT", X.dtype = ACL_BF16);
  ACCEPTED_OF(backward(), set_gradients(&c, ACL_BF16));
}

static void formats_must_match_and_be_known(void **state) {
  (void)state;
  static const aclFormat planar[] = {ACL_FORMAT_ND, ACL_FORMAT_NCHW, ACL_FORMAT_NCL,
                                     ACL_FORMAT_NCDHW, ACL_FORMAT_NC};
  static const aclFormat others[] = {ACL_FORMAT_ND, ACL_FORMAT_NHWC, ACL_FORMAT_NC1HWC0,
                                     ACL_FORMAT_NCDHW, ACL_FORMAT_UNDEFINED};
  for (int i = 0; i < 5; i++) {
    struct check_call c = flat();
    set_formats(&c, others[i]);
    refused(&c, BAD, "self has format %s, allowed is NCHW or NCL", pg_format_name(others[i]));
  }
  REFUSED_OF(flat(), "self is [2,3,5,5] with format NCL, NCHW has 4 axes and NCL 3",
             set_formats(&c, ACL_FORMAT_NCL));
  REFUSED_OF(flat(), "self is [3,5,5] with format NCHW, NCHW has 4 axes and NCL 3",
             set_ranks(&c, 3), DIMS(X, 3, 5, 5), DIMS(OUT, 3, 2, 2));
  ACCEPTED_OF(flat(), set_ranks(&c, 3), set_formats(&c, ACL_FORMAT_NCL), DIMS(X, 3, 5, 5),
              DIMS(OUT, 3, 2, 2));
  REFUSED_OF(flat(), "out has format NCL, expected self's NCHW", OUT.format = ACL_FORMAT_NCL);
  check_formats(deep(), planar, 5, "self", "ND, NCHW, NCL, NCDHW or NC");
  REFUSED_OF(deep(), "out has format NHWC, expected self's NCDHW", OUT.format = ACL_FORMAT_NHWC);
  check_formats(backward(), planar, 5, "output", "ND, NCHW, NCL, NCDHW or NC");
  REFUSED_OF(backward(), "gradOutput has format ND, expected output's NCDHW",
             GO.format = ACL_FORMAT_ND);
  REFUSED_OF(backward(), "self has format NDHWC, allowed is ND, NCHW, NCL, NCDHW or NC",
             X.format = ACL_FORMAT_NDHWC);
  ACCEPTED_OF(backward(), X.format = ACL_FORMAT_ND);
}

static void ranks_and_dims_must_make_sense(void **state) {
  (void)state;
  REFUSED_OF(flat(), "self is [2,3,5,5,0] with format NCHW, NCHW has 4 axes and NCL 3",
             set_ranks(&c, 5));
  REFUSED_OF(flat(), "out is [2,3,2], it must have as many axes as self [2,3,5,5]", OUT.rank = 3);
  REFUSED_OF(flat(), "self is [-2,3,5,5], no dim may be negative", X.dims[0] = -2);
  REFUSED_OF(flat(), "out is [2,3,2,-2], no dim may be negative", OUT.dims[3] = -2);
  REFUSED_OF(deep(), "self is [2,3,5], it must have 4 or 5 axes", set_ranks(&c, 3));
  REFUSED_OF(deep(), "self is [2,3,5,5,5,0], it must have 4 or 5 axes", set_ranks(&c, 6));
  REFUSED_OF(deep(), "out is [2,3,2,2], it must have as many axes as self [2,3,5,5,5]",
             OUT.rank = 4);
  REFUSED_OF(deep(), "self is [-1,3,5,5,5], no dim may be negative", X.dims[0] = -1);
  ACCEPTED_OF(deep(), set_ranks(&c, 4), DIMS(X, 3, 5, 5, 5), DIMS(OUT, 3, 2, 2, 2));
  REFUSED_OF(backward(), "gradOutput is [2,3,2], it must have 4 or 5 axes", GO.rank = 3);
  REFUSED_OF(backward(), "self is [2,3,5,5], it must have as many axes as gradOutput [2,3,2,2,2]",
             X.rank = 4);
  REFUSED_OF(backward(), "output is [2,3,5,5,4], expected self's shape [2,3,5,5,5]",
             GI.dims[4] = 4);
  REFUSED_OF(backward(), "output is [2,3,5,5], expected self's shape [2,3,5,5,5]", GI.rank = 4);
  REFUSED_OF(backward(), "self is [2,3,5,-5,5], no dim may be negative", set_inputs(&c, 3, -5));
}

static void arrays_must_make_sense(void **state) {
  (void)state;
  check_arrays(flat());
  check_arrays(deep());
  check_arrays(backward());
  ACCEPTED_OF(flat(), S.count = 0);
  ACCEPTED_OF(deep(), S.count = 0);
  ACCEPTED_OF(flat(), P = PAIR(1, 1), P.count = 1, OUT.dims[2] = OUT.dims[3] = 3);
  /* how many come before what they are */
  REFUSED_OF(flat(), "paddings has 3 values, allowed is 1 to 2", P.count = 3, K = PAIR(0, 0));
  REFUSED_OF(deep(), "stride has 2 values, allowed is 0, 1 or 3", S.count = 2, K = TRIPLE(0, 0, 0));
  REFUSED_OF(backward(), "padding has 2 values, allowed is 1 or 3", P.count = 2,
             GO.format = ACL_FORMAT_NHWC); /* and before formats there */
  REFUSED_OF(backward(), "output is [2,3,5,5,4], expected self's shape [2,3,5,5,5]", GI.dims[4] = 4,
             P.count = 2);
}

static void numbers_have_rules(void **state) {
  (void)state;
  ACCEPTED_OF(flat(), c.divisor = -4);
  ACCEPTED_OF(deep(), c.divisor = INT64_MIN);
  ACCEPTED_OF(backward(), c.divisor = -5);
  REFUSED_OF(flat(), "cubeMathType is -1, allowed is 0 to 3", c.math = -1);
  REFUSED_OF(flat(), "cubeMathType is 4, allowed is 0 to 3", c.math = 4);
  REFUSED_OF(flat(), "cubeMathType is 2 (USE_FP16), which DT_BF16 does not support", c.math = 2,
             set_gradients(&c, ACL_BF16));
  REFUSED_OF(flat(), "cubeMathType is 3 (USE_HF32), which is for DT_FLOAT, not for DT_FLOAT16",
             c.math = 3, set_gradients(&c, ACL_FLOAT16));
  for (int8_t math = 0; math <= 3; math++) ACCEPTED_OF(flat(), c.math = math);
  REFUSED_OF(flat(), "paddings is [-1,-1], allowed is 0 to half of kernelSize [2,2]", c.math = 4,
             P = PAIR(-1, -1)); /* comes before */
}

#define FLAT_WINDOWS "kernelSize [2,2], strides [2,2], paddings [0,0], ceilMode "
#define DEEP_WINDOWS "kernelSize [2,2,2], stride [2,2,2], padding [0,0,0], ceilMode "

static void outputs_have_the_pooled_size(void **state) {
  (void)state;
  REFUSED_OF(flat(),
             "out is [2,3,2,2], expected [2,3,3,3] for self [2,3,5,5], " FLAT_WINDOWS "true",
             c.ceil_mode = true);
  ACCEPTED_OF(flat(), c.ceil_mode = true, OUT.dims[2] = OUT.dims[3] = 3);
  REFUSED_OF(flat(),
             "out is [1,3,2,2], expected [2,3,2,2] for self [2,3,5,5], " FLAT_WINDOWS "false",
             OUT.dims[0] = 1);
  REFUSED_OF(deep(),
             "out is [0,3,2,2,2], expected [2,3,2,2,2] for self [2,3,5,5,5], " DEEP_WINDOWS "false",
             OUT.dims[0] = 0);
  REFUSED_OF(backward(),
             "gradOutput is [2,3,2,2,3], expected [2,3,2,2,2] for self [2,3,5,5,5], " DEEP_WINDOWS
             "false",
             GO.dims[4] = 3);
  REFUSED_OF(backward(),
             "gradOutput is [2,4,2,2,2], expected [2,3,2,2,2] for self [2,3,5,5,5], " DEEP_WINDOWS
             "false",
             GO.dims[1] = 4);
  REFUSED_OF(flat(),
             "self is [2,3,0,5], the window of output 0 along its height holds no cell of it",
             X.dims[2] = 0, P = PAIR(1, 0), OUT.dims[2] = 1);
}

static void a_kernel_is_not_longer_than_its_axis(void **state) {
  (void)state;
  REFUSED_OF(deep(),
             "kernelSize is [2,2,6], longer than self [2,3,5,5,5] with its padding on both sides",
             K = TRIPLE(2, 2, 6), c.ceil_mode = true, OUT.dims[4] = 1);
  ACCEPTED_OF(deep(), K = TRIPLE(2, 2, 6), P = TRIPLE(0, 0, 1), OUT.dims[4] = 1);
  ACCEPTED_OF(flat(), K = PAIR(6, 2), S = PAIR(2, 2), c.ceil_mode = true, OUT.dims[2] = 1,
              OUT.dims[3] = 3);
}

static void empty_work_needs_nothing(void **state) {
  (void)state;
  for (int axis = 0; axis < 2; axis++) {
    struct check_call c = flat();
    set_axis(&c, axis, 0);
    runs(&c);
    c = deep();
    set_axis(&c, axis, 0);
    runs(&c);
    c = backward();
    set_axis(&c, axis, 0);
    runs(&c);
  }
}

/* It has no windows, so nobody looks at them; but its planes must be self's. */
static void an_empty_grad_output_leaves_zeros(void **state) {
  (void)state;
  struct check_call c = backward();
  set_inputs(&c, 4, 1);
  GO.dims[3] = 0;
  K = TRIPLE(0, -1, 9);
  leaves_zeros(c);
  GO.dims[0] = 1;
  refused(&c, BAD, "gradOutput is [1,3,2,0,2], its N and C must be those of self [2,3,5,5,1]");
}

static void views_must_make_sense(void **state) {
  (void)state;
  REFUSED_OF(flat(), "self has stride -1 on axis 3, no stride may be negative",
             STRIDES(X, 75, 25, 5, -1));
  REFUSED_OF(flat(), "out has stride 0 on axis 2 of length 2, its cells must not share memory",
             STRIDES(OUT, 12, 4, 0, 1));
  REFUSED_OF(deep(),
             "out is [2,3,2,2,2] with strides [20,8,4,2,1], its cells must not share memory",
             STRIDES(OUT, 20, 8, 4, 2, 1));
  REFUSED_OF(deep(), "self has offset -1, it must not be negative", X.offset = -1);
  REFUSED_OF(backward(),
             "output has stride 0 on axis 0 of length 2, its cells must not share memory",
             STRIDES(GI, 0, 125, 25, 5, 1));
  ACCEPTED_OF(flat(), STRIDES(X, 0), X.offset = 3);
}

static void sizes_that_overflow_are_refused(void **state) {
  (void)state;
  REFUSED_OF(flat(), OVERFLOWS(4611686018427387904, 2, 0, 1, 5), K = PAIR(huge, 2));
  REFUSED_OF(flat(), OVERFLOWS(2, 9223372036854775807, 0, 1, 5), S = PAIR(2, INT64_MAX));
  REFUSED_OF(deep(), OVERFLOWS(2, 9223372036854775807, 0, 1, 5), S = TRIPLE(INT64_MAX, 2, 2));
  REFUSED_OF(
      deep(),
      "kernelSize is [4611686018427387904,2,2], longer than self [2,3,5,5,5] with its padding "
      "on both sides",
      K = TRIPLE(huge, 2, 2));
  REFUSED_OF(backward(), OVERFLOWS(4611686018427387904, 2, 0, 1, 5), K = TRIPLE(2, 2, huge));
}

static void what_is_written_overlaps_nothing(void **state) {
  (void)state;
  check_overlaps(flat());
  check_overlaps(deep());
  check_overlaps(backward());
}

/* Products do not count the padding. */
static void as_product(void **product) {
  struct check_call c = deep();
  K = TRIPLE(2, 2, 6);
  P = TRIPLE(0, 0, 1);
  OUT.dims[4] = 1;
  refused(&c, BAD, "kernelSize is [2,2,6], longer than self [2,3,5,5,5] on %s",
          (const char *)*product);
  c = flat();
  for (c.math = 0; c.math <= 3; c.math++) accepted(&c);
}

static void products_have_limits_of_their_own(void **state) {
  (void)state;
  check_products(as_product, as_product);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(products_have_limits_of_their_own),
      cmocka_unit_test(nulls_and_wrong_handles_are_refused),
      cmocka_unit_test(types_must_match_and_be_known),
      cmocka_unit_test(formats_must_match_and_be_known),
      cmocka_unit_test(ranks_and_dims_must_make_sense),
      cmocka_unit_test(arrays_must_make_sense),
      cmocka_unit_test(numbers_have_rules),
      cmocka_unit_test(outputs_have_the_pooled_size),
      cmocka_unit_test(a_kernel_is_not_longer_than_its_axis),
      cmocka_unit_test_setup_teardown(empty_work_needs_nothing, set_up_cpu, tear_down_device),
      cmocka_unit_test_setup_teardown(an_empty_grad_output_leaves_zeros, set_up_cpu,
                                      tear_down_device),
      cmocka_unit_test(views_must_make_sense),
      cmocka_unit_test(sizes_that_overflow_are_refused),
      cmocka_unit_test_setup_teardown(what_is_written_overlaps_nothing, set_up_cpu,
                                      tear_down_device),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
