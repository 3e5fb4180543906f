/* SPDX-License-Identifier: Apache-2.0 */
/* What aclnnMaxPool2dWithIndicesBackward refuses, and in which words; what it accepts although it
 * looks odd. */
#include "check_call.h"

/* Planes of 5 x 5 cells, windows of 2 x 2 side by side, outputs of 2 x 2. */
static struct check_call valid(void) { return check_call(MAX_POOL2D, 4, ACL_FORMAT_NCHW, 5, 2); }
#define REFUSED(...) REFUSED_OF(valid(), __VA_ARGS__)
#define ACCEPTED(...) ACCEPTED_OF(valid(), __VA_ARGS__)

static void set_channels_last(struct check_call *c) {
  set_formats(c, ACL_FORMAT_NHWC);
  for (int i = 0; i < POOL_TENSORS; i++) {
    c->t[i].dims[1] = c->t[i].dims[2];
    c->t[i].dims[3] = 3;
  }
}

static void nulls_and_wrong_handles_are_refused(void **state) {
  (void)state;
  check_nulls(valid());
  check_handles(valid());
}

static void types_and_formats_must_match_and_be_known(void **state) {
  (void)state;
  static const aclFormat fine[] = {ACL_FORMAT_ND, ACL_FORMAT_NCHW, ACL_FORMAT_NCL, ACL_FORMAT_NHWC};
  REFUSED("self is DT_DOUBLE, allowed is DT_FLOAT, DT_FLOAT16 or DT_BF16",
          set_gradients(&c, ACL_DOUBLE));
  REFUSED("gradOutput is DT_FLOAT16, expected self's DT_FLOAT", GO.dtype = ACL_FLOAT16);
  REFUSED("gradInput is DT_BF16, expected self's DT_FLOAT", GI.dtype = ACL_BF16);
  REFUSED("indices is DT_INT8, allowed is DT_INT32 or DT_INT64", IDX.dtype = ACL_INT8);
  ACCEPTED(set_gradients(&c, ACL_BF16), IDX.dtype = ACL_INT64);
  REFUSED("gradOutput has format ND, expected self's NCHW", GO.format = ACL_FORMAT_ND);
  REFUSED("gradInput has format NHWC, expected self's NCHW", GI.format = ACL_FORMAT_NHWC);
  REFUSED("indices has format NCL, expected self's NCHW", IDX.format = ACL_FORMAT_NCL);
  struct check_call c = check_call(MAX_POOL2D, 4, ACL_FORMAT_NCHW, 3, 3);
  K = S = PAIR(1, 1); /* fits with channels last as well */
  check_formats(c, fine, 4, "self", "ND, NCHW, NCL or NHWC");
}

#define WINDOWS "kernelSize [2,2], stride [2,2], padding [0,0], dilation [1,1], ceilMode false"

static void nhwc_has_its_channels_last(void **state) {
  (void)state;
  ACCEPTED(set_channels_last(&c));
  REFUSED("gradOutput is [2,2,2,4], expected [2,2,2,3] for self [2,5,5,3], " WINDOWS,
          set_channels_last(&c), GO.dims[3] = 4);
  REFUSED("self is [2,5,5,0], its C, H and W must be positive", set_channels_last(&c),
          set_inputs(&c, 3, 0));
  REFUSED("gradOutput is [3,2,2], expected [2,2,3] for self [5,5,3], " WINDOWS,
          set_formats(&c, ACL_FORMAT_NHWC), INPUT_DIMS(5, 5, 3), DIMS(GO, 3, 2, 2),
          set_ranks(&c, 3));
}

static void arrays_must_make_sense(void **state) {
  (void)state;
  check_arrays(valid());
  REFUSED("padding has 3 values, allowed is 1 to 2", P.count = 3, K = PAIR(0, 0)); /* comes first */
  ACCEPTED(S.count = 0);
  REFUSED(
      "gradOutput is [2,3,2,2], expected [2,3,1,2] for self [2,3,5,5], kernelSize [3,2], "
      "stride [3,2], padding [0,0], dilation [1,1], ceilMode false",
      S.count = 0, K = PAIR(3, 2));
  REFUSED("dilation is [0,1], both must be positive", D = PAIR(0, 1));
  ACCEPTED(P = PAIR(1, 0), set_outputs(&c, 2, 3));
  ACCEPTED(D = PAIR(3, 2), set_outputs(&c, 2, 1));
}

static void ranks_and_shapes_must_match(void **state) {
  (void)state;
  REFUSED("self is [2,3], it must have 3 or 4 axes", X.rank = 2);
  REFUSED("self is [2,3,5,5,0], it must have 3 or 4 axes", X.rank = GI.rank = 5);
  REFUSED("gradInput is [2,3,5,5,0], it must have 3 or 4 axes", GI.rank = 5);
  REFUSED("gradOutput is [2,3], it must have 3 or 4 axes", GO.rank = 2);
  REFUSED("indices is [], it must have 3 or 4 axes", IDX.rank = 0);
  ACCEPTED(INPUT_DIMS(3, 5, 5), OUTPUT_DIMS(3, 2, 2), set_ranks(&c, 3));
  REFUSED("gradInput is [2,3,5,4], expected self's shape [2,3,5,5]", GI.dims[3] = 4);
  REFUSED("gradInput is [2,3,5], expected self's shape [2,3,5,5]", GI.rank = 3);
  REFUSED("self is [2,0,5,5], its C, H and W must be positive", set_inputs(&c, 1, 0));
  REFUSED("self is [2,3,0,5], its C, H and W must be positive", set_inputs(&c, 2, 0));
  REFUSED("self is [2,3,5,-5], its C, H and W must be positive", set_inputs(&c, 3, -5));
  REFUSED("self is [2,3,5,5] and kernelSize [6,2], the output would be [0,2]", K = PAIR(6, 2));
  REFUSED("indices is [2,3,2,1], expected gradOutput's shape [2,3,2,2]", IDX.dims[3] = 1);
  REFUSED("indices is [2,3,2], expected gradOutput's shape [2,3,2,2]", IDX.rank = 3);
}

static void grad_output_has_the_pooled_size(void **state) {
  (void)state;
  REFUSED(
      "gradOutput is [1,16,2,2], expected [1,16,3,3] for self [1,16,5,5], kernelSize [2,2], "
      "stride [2,2], padding [0,0], dilation [1,1], ceilMode true",
      DIMS(GO, 1, 16, 2, 2), INPUT_DIMS(1, 16, 5, 5), c.ceil_mode = true);
  REFUSED("gradOutput is [1,3,2,2], expected [2,3,2,2] for self [2,3,5,5], " WINDOWS,
          GO.dims[0] = 1);
  REFUSED("gradOutput is [2,1,2,2], expected [2,3,2,2] for self [2,3,5,5], " WINDOWS,
          GO.dims[1] = 1);
  REFUSED("gradOutput is [2,3,0,2], expected [2,3,2,2] for self [2,3,5,5], " WINDOWS,
          set_outputs(&c, 2, 0));
  REFUSED("gradOutput is [2,3,2], expected [2,3,2,2] for self [2,3,5,5], " WINDOWS, GO.rank = 3);
  REFUSED(
      "gradOutput is [2,3,2,2], expected [2,3,2,3] for self [2,3,5,5], kernelSize [2,3], "
      "stride [2,1], padding [0,0], dilation [1,1], ceilMode false",
      K = PAIR(2, 3), S = PAIR(2, 1));
  ACCEPTED(c.ceil_mode = true, set_outputs(&c, 2, 3), set_outputs(&c, 3, 3));
  ACCEPTED(set_inputs(&c, 0, 0), set_outputs(&c, 0, 0)); /* an empty batch */
}

static void views_must_make_sense(void **state) {
  (void)state;
  REFUSED("gradOutput is [-1,3,2,2], no dim may be negative", set_inputs(&c, 0, -1),
          set_outputs(&c, 0, -1));
  REFUSED("self has stride -5 on axis 2, no stride may be negative", STRIDES(X, 75, 25, -5, 1));
  REFUSED("indices has stride -1 on axis 3, no stride may be negative", STRIDES(IDX, 12, 4, 2, -1));
  REFUSED("gradInput has stride 0 on axis 2 of length 5, its cells must not share memory",
          STRIDES(GI, 75, 25, 0, 1));
  REFUSED("gradInput is [2,3,5,5] with strides [70,25,5,1], its cells must not share memory",
          STRIDES(GI, 70, 25, 5, 1));
  REFUSED("gradInput has offset -1, it must not be negative", GI.offset = -1);
  REFUSED("gradInput is [2,3,5,5], too large for 64-bit addresses", STRIDES(GI, huge, 25, 5, 1));
  ACCEPTED(STRIDES(GO, 0), STRIDES(IDX, 0), STRIDES(X, 0), IDX.offset = 7);
}

static void no_size_overflows(void **state) {
  (void)state;
  REFUSED(OVERFLOWS(4611686018427387904, 2, 0, 3, 5), K = PAIR(huge, 2), D = PAIR(3, 1));
  REFUSED(OVERFLOWS(2, 2, 0, 9223372036854775807, 5), D = PAIR(1, INT64_MAX));
  REFUSED(OVERFLOWS(2, 9223372036854775807, 0, 1, 5), S = PAIR(INT64_MAX, 2));
  REFUSED(OVERFLOWS(9223372036854775807, 2, 4611686018427387903, 1, 5), K = PAIR(INT64_MAX, 2),
          P = PAIR(INT64_MAX / 2, 0));
  REFUSED(OVERFLOWS(2, 2, 0, 1, 9223372036854775807), set_inputs(&c, 2, INT64_MAX));
  REFUSED("gradOutput is [2,3,2,1073741824], too large for 64-bit addresses",
          set_inputs(&c, 3, INT64_C(1) << 31), set_outputs(&c, 3, INT64_C(1) << 30), STRIDES(X, 0),
          STRIDES(GO, 0, 0, 0, huge));
  ACCEPTED(S = PAIR(huge, huge), set_outputs(&c, 2, 1), set_outputs(&c, 3, 1));
  /* bytes beyond 64 bits, all in a few places */
  ACCEPTED(INPUT_DIMS(INT64_C(1) << 30, INT64_C(1) << 30, 1, 1),
           OUTPUT_DIMS(INT64_C(1) << 30, INT64_C(1) << 30, 1, 1), K = S = PAIR(1, 1), STRIDES(X, 0),
           STRIDES(GO, 0), STRIDES(IDX, 0));
}

static void as_910b(void **product) {
  const char *name = *product;
  struct check_call c = valid();
  accepted(&c);
  set_gradients(&c, ACL_FLOAT16);
  refused(&c, BAD, "self is DT_FLOAT16, allowed is DT_FLOAT on %s", name);
  set_gradients(&c, ACL_BF16);
  refused(&c, BAD, "self is DT_BF16, allowed is DT_FLOAT on %s", name);
  c = valid();
  IDX.dtype = ACL_INT64;
  refused(&c, BAD, "indices is DT_INT64, allowed is DT_INT32 on %s", name);
  c = valid();
  D = PAIR(1, 2);
  refused(&c, BAD, "dilation is [1,2], %s takes 1 only", name);
  c = valid();
  set_channels_last(&c);
  refused(&c, BAD, "self has format NHWC, allowed is ND, NCHW or NCL on %s", name);
}

static void as_950(void **product) {
  (void)product;
  ACCEPTED(set_gradients(&c, ACL_FLOAT16), IDX.dtype = ACL_INT64);
  ACCEPTED(set_channels_last(&c));
  ACCEPTED(D = PAIR(1, 2));
}

static void products_have_limits_of_their_own(void **state) {
  (void)state;
  check_products(as_910b, as_950);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(products_have_limits_of_their_own),
      cmocka_unit_test(nulls_and_wrong_handles_are_refused),
      cmocka_unit_test(types_and_formats_must_match_and_be_known),
      cmocka_unit_test(nhwc_has_its_channels_last),
      cmocka_unit_test(arrays_must_make_sense),
      cmocka_unit_test(ranks_and_shapes_must_match),
      cmocka_unit_test(grad_output_has_the_pooled_size),
      cmocka_unit_test(views_must_make_sense),
      cmocka_unit_test(no_size_overflows),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
