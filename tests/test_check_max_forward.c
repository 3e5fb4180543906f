/* SPDX-License-Identifier: Apache-2.0 */
/* What aclnnMaxPool2dWithIndices, aclnnMaxPool3dWithArgmax and aclnnMaxPool3dWithArgmaxBackward
 * refuse, and in which words; what they accept although it looks odd. */
#include "check_call.h"

/* Planes of 5 x 5 or 5 x 5 x 5 cells, windows of 2 cells side by side, 2 outputs along each axis.
 */
static struct check_call flat(void) {
  return check_call(MAX_POOL2D_FORWARD, 4, ACL_FORMAT_NCHW, 5, 2);
}
static struct check_call deep(void) {
  return check_call(MAX_POOL3D_FORWARD, 5, ACL_FORMAT_NCDHW, 5, 2);
}
static struct check_call backward(void) {
  return check_call(MAX_POOL3D, 5, ACL_FORMAT_NCDHW, 5, 2);
}

static void set_channels_last(struct check_call *c) {
  const bool is_deep = c->t[SELF].rank == 5;
  set_formats(c, is_deep ? ACL_FORMAT_NDHWC : ACL_FORMAT_NHWC);
  for (int i = 0; i < POOL_TENSORS; i++) {
    c->t[i].dims[1] = c->t[i].dims[2];
    c->t[i].dims[is_deep ? 4 : 3] = 3;
  }
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
    REFUSED_OF(calls[i], "self is DT_INT32, " FLOATS, set_gradients(&c, ACL_INT32));
    REFUSED_OF(calls[i], "out is DT_INT32, expected self's DT_FLOAT", OUT.dtype = ACL_INT32);
    REFUSED_OF(calls[i], "out is DT_FLOAT16, expected self's DT_FLOAT", OUT.dtype = ACL_FLOAT16,
               IDX.dtype = ACL_FLOAT);
    REFUSED_OF(calls[i], "indices is DT_FLOAT, allowed is DT_INT32 or DT_INT64",
               IDX.dtype = ACL_FLOAT, OUT.format = ACL_FORMAT_NC); /* types before formats */
    ACCEPTED_OF(calls[i], set_gradients(&c, ACL_BF16), IDX.dtype = ACL_INT64);
    ACCEPTED_OF(calls[i], set_gradients(&c, ACL_FLOAT16));
  }
  REFUSED_OF(backward(), "self is DT_DOUBLE, " FLOATS, set_gradients(&c, ACL_DOUBLE));
  REFUSED_OF(backward(), "indices is DT_INT8, allowed is DT_INT32 or DT_INT64",
             IDX.dtype = ACL_INT8, GO.dtype = ACL_BF16);
  REFUSED_OF(backward(), "gradOutput is DT_BF16, expected self's DT_FLOAT", GO.dtype = ACL_BF16);
  REFUSED_OF(backward(), "gradInput is DT_BF16, expected self's DT_FLOAT", GI.dtype = ACL_BF16);
}

static void formats_must_match_and_be_known(void **state) {
  (void)state;
  static const aclFormat two[] = {ACL_FORMAT_ND, ACL_FORMAT_NCHW, ACL_FORMAT_NCL, ACL_FORMAT_NHWC};
  static const aclFormat three[] = {ACL_FORMAT_ND, ACL_FORMAT_NCHW, ACL_FORMAT_NCDHW,
                                    ACL_FORMAT_NDHWC};
  struct check_call c = check_call(MAX_POOL2D_FORWARD, 4, ACL_FORMAT_NCHW, 3, 3);
  K = S = PAIR(1, 1); /* fits with channels last as well */
  check_formats(c, two, 4, "self", "ND, NCHW, NCL or NHWC");
  c = check_call(MAX_POOL3D_FORWARD, 5, ACL_FORMAT_NCHW, 3, 3);
  K = S = TRIPLE(1, 1, 1);
  check_formats(c, three, 4, "self", "ND, NCHW, NCDHW or NDHWC");
  check_formats(backward(), three, 3, "self", "ND, NCHW or NCDHW");
  REFUSED_OF(flat(), "out has format ND, expected self's NCHW", OUT.format = ACL_FORMAT_ND);
  REFUSED_OF(flat(), "indices has format NCL, expected self's NCHW", IDX.format = ACL_FORMAT_NCL);
  REFUSED_OF(deep(), "out has format ND, expected self's NCDHW", OUT.format = ACL_FORMAT_ND);
  REFUSED_OF(deep(), "indices has format NCL, expected self's NCDHW", IDX.format = ACL_FORMAT_NCL);
  REFUSED_OF(backward(), "gradOutput has format ND, expected self's NCDHW",
             GO.format = ACL_FORMAT_ND);
  REFUSED_OF(backward(), "gradInput has format ND, expected self's NCDHW",
             GI.format = ACL_FORMAT_ND);
  REFUSED_OF(backward(), "indices has format NDHWC, allowed is ND, NCHW or NCDHW",
             IDX.format = ACL_FORMAT_NDHWC);
  ACCEPTED_OF(backward(), IDX.format = ACL_FORMAT_ND);
}

#define FLAT_WINDOWS "kernelSize [2,2], stride [2,2], padding [0,0], dilation [1,1], ceilMode "
#define DEEP_WINDOWS \
  "kernelSize [2,2,2], stride [2,2,2], padding [0,0,0], dilation [1,1,1], ceilMode "

static void channels_may_be_last(void **state) {
  (void)state;
  ACCEPTED_OF(flat(), set_channels_last(&c));
  ACCEPTED_OF(deep(), set_channels_last(&c));
  ACCEPTED_OF(flat(), set_channels_last(&c), set_ranks(&c, 3), DIMS(X, 5, 5, 3),
              OUTPUT_DIMS(2, 2, 3));
  REFUSED_OF(flat(),
             "out is [2,3,2,2], expected [2,1,2,5] for self [2,3,5,5], " FLAT_WINDOWS "false",
             set_formats(&c, ACL_FORMAT_NHWC));
  REFUSED_OF(deep(), "self is [2,5,5,5,0], its C, D, H and W must be positive",
             set_channels_last(&c), X.dims[4] = 0);
}

static void arrays_must_make_sense(void **state) {
  (void)state;
  check_arrays(flat());
  check_arrays(deep());
  check_arrays(backward());
  ACCEPTED_OF(flat(), S.count = 0);
  ACCEPTED_OF(backward(), S.count = 0);
  REFUSED_OF(flat(), "dilation is [0,1], both must be positive", D = PAIR(0, 1));
  REFUSED_OF(deep(), "dilation is [1,1,-1], all three must be positive", D = TRIPLE(1, 1, -1));
  REFUSED_OF(backward(), "dilation is [0,0,0], all three must be positive", D = TRIPLE(0, 0, 0));
  REFUSED_OF(deep(), "dilation has 2 values, allowed is 1 or 3", D.count = 2, K = TRIPLE(0, 0, 0));
  ACCEPTED_OF(flat(), D = PAIR(3, 2), set_outputs(&c, 2, 1));
  ACCEPTED_OF(backward(), D = TRIPLE(3, 2, 1), set_outputs(&c, 2, 1));
}

static void ranks_and_shapes_must_match(void **state) {
  (void)state;
  REFUSED_OF(flat(), "self is [2,3], it must have 3 or 4 axes", set_ranks(&c, 2));
  REFUSED_OF(flat(), "out is [2,3,2,2,0], it must have 3 or 4 axes", OUT.rank = 5);
  REFUSED_OF(flat(), "indices is [2,3], it must have 3 or 4 axes", IDX.rank = 2);
  REFUSED_OF(flat(), "self is [2,0,5,5], its C, H and W must be positive", set_axis(&c, 1, 0));
  REFUSED_OF(flat(), "self is [2,3,5,-5], its C, H and W must be positive", X.dims[3] = -5);
  REFUSED_OF(flat(), "self is [2,3,5,5] and kernelSize [6,2], the output would be [0,2]",
             K = PAIR(6, 2));
  REFUSED_OF(flat(),
             "out is [2,3,2,2], expected [2,3,3,3] for self [2,3,5,5], " FLAT_WINDOWS "true",
             c.ceil_mode = true);
  REFUSED_OF(flat(), "indices is [2,3,2,1], expected out's shape [2,3,2,2]", IDX.dims[3] = 1);
  REFUSED_OF(deep(), "self is [2,3,5], it must have 4 or 5 axes", set_ranks(&c, 3));
  REFUSED_OF(deep(), "self is [2,3,5,0,5], its C, D, H and W must be positive", X.dims[3] = 0);
  REFUSED_OF(deep(),
             "out is [2,3,4,2,2], expected [2,3,2,2,2] for self [2,3,5,5,5], " DEEP_WINDOWS "false",
             set_outputs(&c, 2, 4));
  REFUSED_OF(deep(), "indices is [1,3,2,2,2], expected out's shape [2,3,2,2,2]", IDX.dims[0] = 1);
  ACCEPTED_OF(flat(), set_ranks(&c, 3), DIMS(X, 3, 5, 5), OUTPUT_DIMS(3, 2, 2));
  ACCEPTED_OF(deep(), set_ranks(&c, 4), DIMS(X, 3, 5, 5, 5), OUTPUT_DIMS(3, 2, 2, 2));
}

static void gradients_have_the_pooled_size(void **state) {
  (void)state;
  REFUSED_OF(backward(), "gradInput is [2,3,5], it must have 4 or 5 axes", GI.rank = 3);
  REFUSED_OF(backward(), "indices is [2,3,2,2,1], expected gradOutput's shape [2,3,2,2,2]",
             IDX.dims[4] = 1, GI.dims[4] = 4);
  REFUSED_OF(backward(), "gradInput is [2,3,5,5,4], expected self's shape [2,3,5,5,5]",
             GI.dims[4] = 4);
  REFUSED_OF(backward(), "gradOutput is [2,3,2,2], it must have as many axes as self [2,3,5,5,5]",
             GO.rank = IDX.rank = 4);
  REFUSED_OF(backward(), "gradOutput is [2,1,2,2,2], its N and C must be those of self [2,3,5,5,5]",
             set_outputs(&c, 1, 1));
  REFUSED_OF(backward(),
             "gradOutput is [2,3,3,2,2], expected [2,3,2,2,2] for self [2,3,5,5,5], " DEEP_WINDOWS
             "false",
             set_outputs(&c, 2, 3));
  REFUSED_OF(backward(), "gradOutput is [-1,3,2,2,2], no dim may be negative", set_axis(&c, 0, -1));
}

static void every_window_holds_a_cell(void **state) {
  (void)state;
  REFUSED_OF(flat(),
             "self is [2,3,1,5], the window of output 0 along its height holds no cell of it",
             X.dims[2] = 1, K = PAIR(2, 2), P = PAIR(1, 0), D = PAIR(2, 1), set_outputs(&c, 2, 1));
  REFUSED_OF(deep(),
             "self is [2,3,5,5,1], the window of output 0 along its width holds no cell of it",
             X.dims[4] = 1, P = TRIPLE(0, 0, 1), D = TRIPLE(1, 1, 2), set_outputs(&c, 4, 1));
}

static void planes_are_counted_by_indices(void **state) {
  (void)state;
  const int64_t large = INT64_C(1) << 31;
  REFUSED_OF(
      flat(),
      "self is [1,1,2147483648,2], a plane may have at most 2147483647 cells, or what 64 bits "
      "count with DT_INT64",
      DIMS(X, 1, 1, large, 2), STRIDES(X, 0));
  ACCEPTED_OF(flat(), DIMS(X, 1, 1, large, 2), STRIDES(X, 0, 0, 1, 1), S = PAIR(large, 2),
              OUTPUT_DIMS(1, 1, 1, 1), IDX.dtype = ACL_INT64);
  ACCEPTED_OF(deep(), DIMS(X, 1, 1, 2, large, 2), STRIDES(X, 0, 0, 1, 1, 1),
              S = TRIPLE(2, large, 2), OUTPUT_DIMS(1, 1, 1, 1, 1), IDX.dtype = ACL_INT64);
}

static void empty_batches_need_nothing(void **state) {
  (void)state;
  const struct check_call calls[] = {flat(), deep(), backward()};
  for (int i = 0; i < 3; i++) {
    struct check_call c = calls[i];
    set_axis(&c, 0, 0);
    runs(&c);
  }
  struct check_call c = backward();
  set_inputs(&c, 4, 1);
  set_outputs(&c, 3, 0);
  leaves_zeros(c);
}

static void views_must_make_sense(void **state) {
  (void)state;
  REFUSED_OF(flat(), "self has stride -1 on axis 3, no stride may be negative",
             STRIDES(X, 75, 25, 5, -1));
  REFUSED_OF(flat(), "out has stride 0 on axis 2 of length 2, its cells must not share memory",
             STRIDES(OUT, 12, 4, 0, 1));
  REFUSED_OF(flat(), "indices has stride 0 on axis 1 of length 3, its cells must not share memory",
             STRIDES(IDX, 12, 0, 2, 1));
  REFUSED_OF(deep(),
             "indices is [2,3,2,2,2] with strides [20,8,4,2,1], its cells must not share memory",
             STRIDES(IDX, 20, 8, 4, 2, 1));
  REFUSED_OF(backward(),
             "gradInput has stride 0 on axis 0 of length 2, its cells must not share memory",
             STRIDES(GI, 0, 125, 25, 5, 1));
  REFUSED_OF(deep(), "out has offset -1, it must not be negative", OUT.offset = -1);
  ACCEPTED_OF(flat(), STRIDES(X, 0), X.offset = 3);
  ACCEPTED_OF(backward(), STRIDES(GO, 0), STRIDES(IDX, 0), STRIDES(X, 0));
}

static void sizes_that_overflow_are_refused(void **state) {
  (void)state;
  REFUSED_OF(flat(), OVERFLOWS(2, 2, 0, 9223372036854775807, 5), D = PAIR(1, INT64_MAX));
  REFUSED_OF(flat(), OVERFLOWS(4611686018427387904, 2, 0, 3, 5), K = PAIR(huge, 2), D = PAIR(3, 1));
  REFUSED_OF(deep(), OVERFLOWS(2, 9223372036854775807, 0, 1, 5), S = TRIPLE(2, INT64_MAX, 2));
  REFUSED_OF(backward(), OVERFLOWS(2, 2, 0, 9223372036854775807, 5), D = TRIPLE(INT64_MAX, 1, 1));
}

static void what_is_written_overlaps_nothing(void **state) {
  (void)state;
  check_overlaps(flat());
  check_overlaps(deep());
  check_overlaps(backward());
}

static void as_910b(void **product) {
  const char *name = *product;
  struct check_call c = flat();
  IDX.dtype = ACL_INT64;
  set_gradients(&c, ACL_BF16);
  accepted(&c); /* its backward does not take them there */
  c = flat();
  D = PAIR(2, 1);
  refused(&c, BAD, "dilation is [2,1], %s takes 1 only", name);
  c = flat();
  set_channels_last(&c);
  refused(&c, BAD, "self has format NHWC, allowed is ND, NCHW or NCL on %s", name);
  c = deep();
  IDX.dtype = ACL_INT64;
  refused(&c, BAD, "indices is DT_INT64, allowed is DT_INT32 on %s", name);
  c = deep();
  D = TRIPLE(1, 1, 2);
  refused(&c, BAD, "dilation is [1,1,2], %s takes 1 only", name);
  c = deep();
  set_channels_last(&c);
  refused(&c, BAD, "self has format NDHWC, allowed is ND, NCHW or NCDHW on %s", name);
  c = backward();
  IDX.dtype = ACL_INT64;
  refused(&c, BAD, "indices is DT_INT64, allowed is DT_INT32 on %s", name);
  REFUSED_OF(backward(), "self is [1,1,2147483648,1,1], a plane may have at most 2147483647 cells",
             INPUT_DIMS(1, 1, INT64_C(1) << 31, 1, 1));
}

static void as_950(void **product) {
  (void)product;
  ACCEPTED_OF(flat(), set_channels_last(&c), IDX.dtype = ACL_INT64);
  ACCEPTED_OF(deep(), set_channels_last(&c), IDX.dtype = ACL_INT64);
  ACCEPTED_OF(deep(), D = TRIPLE(3, 2, 1), set_outputs(&c, 2, 1));
  ACCEPTED_OF(backward(), IDX.dtype = ACL_INT64);
}

static void products_have_limits_of_their_own(void **state) {
  (void)state;
  check_products(as_910b, as_950);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(products_have_limits_of_their_own),
      cmocka_unit_test(nulls_and_wrong_handles_are_refused),
      cmocka_unit_test(types_must_match_and_be_known),
      cmocka_unit_test(formats_must_match_and_be_known),
      cmocka_unit_test(channels_may_be_last),
      cmocka_unit_test(arrays_must_make_sense),
      cmocka_unit_test(ranks_and_shapes_must_match),
      cmocka_unit_test(gradients_have_the_pooled_size),
      cmocka_unit_test(every_window_holds_a_cell),
      cmocka_unit_test(planes_are_counted_by_indices),
      cmocka_unit_test_setup_teardown(empty_batches_need_nothing, set_up_cpu, tear_down_device),
      cmocka_unit_test(views_must_make_sense),
      cmocka_unit_test(sizes_that_overflow_are_refused),
      cmocka_unit_test_setup_teardown(what_is_written_overlaps_nothing, set_up_cpu,
                                      tear_down_device),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
