/* SPDX-License-Identifier: Apache-2.0 */
/* What aclnnAvgPool2dBackward refuses, and in which words; what it accepts although it looks
 * odd. */
#include "core/dtype.h"
#include "check_call.h"

/* Planes of 5 x 5 cells, windows of 2 x 2 side by side, outputs of 2 x 2. */
static struct check_call valid(void) { return check_call(AVG_POOL2D, 4, ACL_FORMAT_NCHW, 5, 2); }
#define REFUSED(...) REFUSED_OF(valid(), __VA_ARGS__)
#define ACCEPTED(...) ACCEPTED_OF(valid(), __VA_ARGS__)

static const struct {
  int tensor;
  const char *name;
} tensors[] = {{GRAD_OUT, "gradOutput"}, {SELF, "self"}, {GRAD_IN, "gradInput"}};

/* Unbatched: the batch's 2 becomes the channels. */
static void set_rank_3(struct check_call *c) {
  set_ranks(c, 3);
  for (int i = 0; i < POOL_TENSORS; i++) c->t[i].dims[1] = c->t[i].dims[2];
}

static void nulls_and_wrong_handles_are_refused(void **state) {
  (void)state;
  check_nulls(valid());
  check_handles(valid());
}

static void types_must_match_and_be_known(void **state) {
  (void)state;
  for (int i = 0; i < 3; i++) {
    struct check_call c = valid();
    c.t[tensors[i].tensor].dtype = ACL_DOUBLE;
    refused(&c, BAD, "%s is DT_DOUBLE, allowed is DT_FLOAT, DT_FLOAT16 or DT_BF16",
            tensors[i].name);
  }
  REFUSED("gradOutput is DT_FLOAT16, expected gradInput's DT_FLOAT", GO.dtype = ACL_FLOAT16);
  REFUSED("self is DT_BF16, expected gradInput's DT_FLOAT", X.dtype = ACL_BF16);
  ACCEPTED(set_gradients(&c, ACL_FLOAT16));
  ACCEPTED(set_gradients(&c, ACL_BF16));
}

static void the_format_is_nchw_or_ncl(void **state) {
  (void)state;
  static const aclFormat others[] = {ACL_FORMAT_ND,   ACL_FORMAT_NHWC,       ACL_FORMAT_NC1HWC0,
                                     ACL_FORMAT_HWCN, ACL_FORMAT_FRACTAL_NZ, ACL_FORMAT_NCDHW};
  for (int i = 0; i < 6 * 3; i++) {
    const int tensor = tensors[i % 3].tensor;
    const char *name = tensors[i % 3].name, *format = pg_format_name(others[i / 3]);
    struct check_call c = valid();
    c.t[tensor].format = others[i / 3];
    refused(&c, BAD, "%s has format %s, allowed is NCHW%s", name, format,
            tensor == SELF ? " or NCL" : " for 4 axes");
    set_rank_3(&c);
    refused(&c, BAD, "%s has format %s, allowed is NCHW or NCL", name, format);
  }
  REFUSED("gradOutput has format NCL, allowed is NCHW for 4 axes", GO.format = ACL_FORMAT_NCL);
  REFUSED("gradInput has format NCL, allowed is NCHW for 4 axes", GI.format = ACL_FORMAT_NCL);
  ACCEPTED(X.format = ACL_FORMAT_NCL);
  ACCEPTED(set_rank_3(&c));
  ACCEPTED(set_rank_3(&c), set_formats(&c, ACL_FORMAT_NCL));
  ACCEPTED(set_rank_3(&c), GO.format = ACL_FORMAT_NCL);
}

static void ranks_are_3_or_4_and_equal(void **state) {
  (void)state;
  REFUSED("gradOutput is [2,3], it must have 3 or 4 axes", set_ranks(&c, 2));
  REFUSED("gradOutput is [2,3,2,2,0], it must have 3 or 4 axes", set_ranks(&c, 5));
  REFUSED("gradInput is [2,3,5], it must have as many axes as gradOutput [2,3,2,2]", GI.rank = 3);
  REFUSED("self is [2,3,5], expected gradInput's shape [2,3,5,5]", X.rank = 3);
  REFUSED("self is [2,3,5,5,0], expected gradInput's shape [2,3,5,5]", X.rank = 5);
  REFUSED("self is [2,3,4,5], expected gradInput's shape [2,3,5,5]", X.dims[2] = 4);
}

static void no_dim_is_negative(void **state) {
  (void)state;
  REFUSED("gradOutput is [2,3,-2,2], no dim may be negative", GO.dims[2] = -2);
  REFUSED("self is [2,3,5,-1], no dim may be negative", X.dims[3] = -1);
  REFUSED("gradInput is [-9,3,5,5], no dim may be negative", GI.dims[0] = -9);
}

static void arrays_must_make_sense(void **state) {
  (void)state;
  const void *const null = NULL;
  check_arrays(valid());
  REFUSED("kernelSize is [2,-1], both must be positive", K = PAIR(2, -1), S.count = 3);
  ACCEPTED(P = PAIR(1, 1), P.count = 1, GO.dims[2] = GO.dims[3] = 3);
  for (int i = 0; i < 2; i++) { /* no stride is the kernel */
    struct check_call c = valid();
    S.count = 0;
    S.handle = i == 0 ? NULL : &null;
    accepted(&c);
    K = PAIR(3, 2);
    refused(&c, BAD,
            "gradOutput is [2,3,2,2], expected [2,3,1,2] for self [2,3,5,5], kernelSize [3,2], "
            "stride [3,2], padding [0,0], ceilMode false");
  }
}

static void numbers_have_rules(void **state) {
  (void)state;
  ACCEPTED(c.divisor = INT64_MIN);
  REFUSED("cubeMathType is -1, allowed is 0 to 3", c.math = -1);
  REFUSED("cubeMathType is 4, allowed is 0 to 3", c.math = 4);
  REFUSED("cubeMathType is 2 (USE_FP16), which DT_BF16 does not support", c.math = 2,
          set_gradients(&c, ACL_BF16));
  REFUSED("cubeMathType is 3 (USE_HF32), which is for DT_FLOAT, not for DT_FLOAT16", c.math = 3,
          set_gradients(&c, ACL_FLOAT16));
  REFUSED("cubeMathType is 3 (USE_HF32), which is for DT_FLOAT, not for DT_BF16", c.math = 3,
          set_gradients(&c, ACL_BF16));
  for (int8_t math = 0; math <= 3; math++) ACCEPTED(c.math = math);
  for (int8_t math = 0; math <= 2; math++) ACCEPTED(c.math = math, set_gradients(&c, ACL_FLOAT16));
  for (int8_t math = 0; math <= 1; math++) ACCEPTED(c.math = math, set_gradients(&c, ACL_BF16));
}

static void grad_output_has_the_pooled_size(void **state) {
  (void)state;
  REFUSED(
      "gradOutput is [1,16,2,2], expected [1,16,3,3] for self [1,16,5,5], kernelSize [2,2], "
      "stride [2,2], padding [0,0], ceilMode true",
      DIMS(GO, 1, 16, 2, 2), INPUT_DIMS(1, 16, 5, 5), c.ceil_mode = true);
  REFUSED(
      "gradOutput is [2,2,2], expected [2,5,2] for self [2,5,5], kernelSize [3,2], stride "
      "[1,2], padding [1,0], ceilMode false",
      set_rank_3(&c), K = PAIR(3, 2), S = PAIR(1, 2), P = PAIR(1, 0));
  REFUSED("gradOutput is [1,3,2,2], its N and C must be those of self [2,3,5,5]", GO.dims[0] = 1);
  REFUSED("gradOutput is [2,0,2,2], its N and C must be those of self [2,3,5,5]", GO.dims[1] = 0);
  REFUSED(
      "gradOutput is [2,3,2,2], expected [2,3,0,2] for self [2,3,5,5], kernelSize [6,2], "
      "stride [2,2], padding [0,0], ceilMode false",
      K = PAIR(6, 2));
  ACCEPTED(c.ceil_mode = true, GO.dims[2] = GO.dims[3] = 3);
}

static void views_must_make_sense(void **state) {
  (void)state;
  REFUSED("gradOutput has stride -1 on axis 3, no stride may be negative",
          STRIDES(GO, 12, 4, 2, -1));
  REFUSED("gradInput has stride 0 on axis 3 of length 5, its cells must not share memory",
          STRIDES(GI, 75, 25, 5, 0));
  REFUSED("gradInput is [2,3,5,5] with strides [75,25,4,1], its cells must not share memory",
          STRIDES(GI, 75, 25, 4, 1));
  REFUSED(
      "gradInput is [62,49,33,51] with strides [1635723058,1125898167,1089018456,1656478042], its "
      "cells must not share memory, and that they do not cannot be shown in 65536 steps",
      INPUT_DIMS(62, 49, 33, 51), DIMS(GO, 62, 49, 16, 25),
      STRIDES(GI, 1635723058, 1125898167, 1089018456, 1656478042));
  ACCEPTED(STRIDES(GI, 90, 30, 5, 6)); /* rows in columns: apart, though not nested */
  ACCEPTED(STRIDES(GO, 3, 1, 1, 1), STRIDES(X, 1, 1, 1, 1));
  REFUSED("self has offset -1, it must not be negative", X.offset = -1);
  REFUSED("gradInput is [2,3,5,5], too large for 64-bit addresses", GI.offset = INT64_MAX / 4);
  REFUSED("gradOutput is [2,3,2,2], too large for 64-bit addresses", STRIDES(GO, huge, huge, 2, 1));
  REFUSED("gradOutput is [2,3,-9223372036854775808,2], no dim may be negative",
          GO.dims[2] = INT64_MIN);
  ACCEPTED(DIMS(GO, 2, 1, 2, 2), INPUT_DIMS(2, 1, 5, 5), STRIDES(GI, 25, huge, 5, 1),
           STRIDES(GO, 4, INT64_MAX, 2, 1));
  ACCEPTED(STRIDES(GO, 0), STRIDES(X, 0), GI.offset = 2);
}

static void sizes_that_overflow_are_refused(void **state) {
  (void)state;
  REFUSED(OVERFLOWS(4611686018427387904, 2, 0, 1, 5), K = PAIR(huge, 2));
  REFUSED(OVERFLOWS(2, 9223372036854775807, 0, 1, 5), S = PAIR(2, INT64_MAX));
  REFUSED("self is [1,0,5,5] and padding [576460752303423488,2], too large for 64-bit windows",
          K = PAIR(huge / 4, 4), P = PAIR(huge / 8, 2), set_inputs(&c, 0, 1), set_inputs(&c, 1, 0),
          GO.dims[0] = 1, GO.dims[1] = 0);
  REFUSED(OVERFLOWS(2, 2, 0, 1, 9223372036854775807), set_inputs(&c, 2, INT64_MAX),
          set_inputs(&c, 0, 0), GO.dims[0] = 0);
  ACCEPTED(S = PAIR(huge, huge), GO.dims[2] = GO.dims[3] = 1);
}

static void work_counted_in_bytes_does_not_overflow(void **state) {
  (void)state;
  ACCEPTED(INPUT_DIMS(INT64_C(1) << 30, INT64_C(1) << 30, 1, 1), put(GO.dims, X.dims),
           K = S = PAIR(1, 1), STRIDES(X, 0), STRIDES(GO, 0));
}

static void truly_empty_work_needs_nothing(void **state) {
  (void)state;
  for (int axis = 0; axis < 4; axis++) {
    struct check_call c = valid();
    set_axis(&c, axis, 0);
    runs(&c);
  }
  ACCEPTED(set_inputs(&c, 2, 0)); /* gradOutput has no cells to come from */
  ACCEPTED(INPUT_DIMS(huge, huge, 5, 0), DIMS(GO, huge, huge, 2, 0));
}

static void an_empty_grad_output_leaves_zeros(void **state) {
  (void)state;
  for (int axis = 2; axis < 4; axis++) {
    struct check_call c = valid();
    GO.dims[axis] = 0;
    GO.dims[5 - axis] = huge;
    STRIDES(GO, 12, 4, 2, 1);
    leaves_zeros(c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nulls_and_wrong_handles_are_refused),
      cmocka_unit_test(types_must_match_and_be_known),
      cmocka_unit_test(the_format_is_nchw_or_ncl),
      cmocka_unit_test(ranks_are_3_or_4_and_equal),
      cmocka_unit_test(no_dim_is_negative),
      cmocka_unit_test(arrays_must_make_sense),
      cmocka_unit_test(numbers_have_rules),
      cmocka_unit_test(grad_output_has_the_pooled_size),
      cmocka_unit_test(views_must_make_sense),
      cmocka_unit_test(sizes_that_overflow_are_refused),
      cmocka_unit_test(work_counted_in_bytes_does_not_overflow),
      cmocka_unit_test(truly_empty_work_needs_nothing),
      cmocka_unit_test(an_empty_grad_output_leaves_zeros),
  };
  return cmocka_run_group_tests(tests, set_up_cpu, tear_down_device);
}
