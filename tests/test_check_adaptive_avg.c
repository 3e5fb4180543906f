/* SPDX-License-Identifier: Apache-2.0 */
/* What aclnnAdaptiveAvgPool3dBackward refuses, and in which words; what it accepts although it
 * looks odd. */
#include "check_call.h"

/* 2 x 3 volumes of 4 x 4 x 4 cells, outputs of 2 x 2 x 2. */
static struct check_call valid(void) {
  return check_call(ADAPTIVE_AVG_POOL3D, 5, ACL_FORMAT_ND, 4, 2);
}
#define REFUSED(...) REFUSED_OF(valid(), __VA_ARGS__)
#define ACCEPTED(...) ACCEPTED_OF(valid(), __VA_ARGS__)

static void set_global(struct check_call *c) { DIMS(c->t[GRAD_OUT], 2, 3, 1, 1, 1); }

static void nulls_and_wrong_handles_are_refused(void **state) {
  (void)state;
  check_nulls(valid());
  check_handles(valid());
}

static void ranks_are_4_or_5_and_equal(void **state) {
  (void)state;
  REFUSED("self is [2,3,4], it must have 4 or 5 axes", set_ranks(&c, 3));
  REFUSED("self is [], it must have 4 or 5 axes", set_ranks(&c, 0));
  REFUSED("self is [2,3,4,4,4,0], it must have 4 or 5 axes", set_ranks(&c, 6));
  REFUSED("gradOutput is [2,3,2,2], it must have as many axes as self [2,3,4,4,4]", GO.rank = 4);
  REFUSED("out is [2,3,4,4], it must have as many axes as self [2,3,4,4,4]", GI.rank = 4);
  ACCEPTED(set_ranks(&c, 4), GO.dims[1] = 2);
}

static void every_axis_of_self_is_positive_and_that_of_out(void **state) {
  (void)state;
  for (int axis = 0; axis < 5; axis++) {
    for (int64_t length = -1; length <= 0; length++) {
      struct check_call c = valid();
      char dims[5][24];
      set_axis(&c, axis, length);
      for (int i = 0; i < 5; i++)
        (void)snprintf(dims[i], sizeof dims[i], "%lld", (long long)X.dims[i]);
      refused(&c, BAD, "self is [%s,%s,%s,%s,%s], axis %d must be at least 1", dims[0], dims[1],
              dims[2], dims[3], dims[4], axis);
    }
  }
  REFUSED("out is [1,3,4,4,4], expected self's shape [2,3,4,4,4]", GI.dims[0] = 1);
  REFUSED("out is [2,3,4,4,0], expected self's shape [2,3,4,4,4]", GI.dims[4] = 0);
}

static void grad_output_has_the_planes_of_self_and_cells_of_its_own(void **state) {
  (void)state;
  REFUSED("gradOutput is [1,3,2,2,2], its N and C must be those of self [2,3,4,4,4]",
          GO.dims[0] = 1);
  REFUSED("gradOutput is [2,0,2,2,2], its N and C must be those of self [2,3,4,4,4]",
          GO.dims[1] = 0);
  REFUSED("gradOutput is [3,2,2,2], its N and C must be those of self [2,3,4,4]", set_ranks(&c, 4),
          DIMS(GO, 3, 2, 2, 2));
  REFUSED("gradOutput is [2,3,0,2,2], its D, H and W must be positive", GO.dims[2] = 0);
  REFUSED("gradOutput is [2,3,2,-1,2], its D, H and W must be positive", GO.dims[3] = -1);
  REFUSED("gradOutput is [2,2,2,0], its D, H and W must be positive", set_ranks(&c, 4),
          DIMS(GO, 2, 2, 2, 0));
  ACCEPTED(GO.dims[2] = 9, GO.dims[4] = 100); /* more outputs than inputs */
}

static void types_must_match_and_be_known(void **state) {
  (void)state;
  REFUSED("gradOutput is DT_INT32, allowed is DT_FLOAT, DT_FLOAT16 or DT_BF16",
          GO.dtype = ACL_INT32);
  REFUSED("self is DT_INT8, allowed is DT_FLOAT, DT_FLOAT16 or DT_BF16", X.dtype = ACL_INT8);
  REFUSED("gradOutput is DT_FLOAT16, expected self's DT_FLOAT", GO.dtype = ACL_FLOAT16);
  REFUSED("out is DT_BF16, expected self's DT_FLOAT", GI.dtype = ACL_BF16);
  ACCEPTED(set_gradients(&c, ACL_FLOAT16));
  ACCEPTED(set_gradients(&c, ACL_BF16));
}

static void double_is_for_the_global_average(void **state) {
  (void)state;
  REFUSED("gradOutput is DT_DOUBLE, allowed is DT_FLOAT, DT_FLOAT16 or DT_BF16",
          set_gradients(&c, ACL_DOUBLE));
  REFUSED("gradOutput is DT_DOUBLE, allowed is DT_FLOAT, DT_FLOAT16 or DT_BF16",
          set_gradients(&c, ACL_DOUBLE), DIMS(GO, 2, 3, 1, 1, 2));
  REFUSED("gradOutput is DT_INT64, allowed is DT_FLOAT, DT_FLOAT16, DT_BF16 or DT_DOUBLE",
          set_gradients(&c, ACL_INT64), set_global(&c));
  REFUSED("self is DT_UINT8, allowed is DT_FLOAT, DT_FLOAT16, DT_BF16 or DT_DOUBLE", set_global(&c),
          X.dtype = ACL_UINT8);
  REFUSED("gradOutput is DT_DOUBLE, expected self's DT_FLOAT", set_global(&c),
          GO.dtype = ACL_DOUBLE);
  ACCEPTED(set_gradients(&c, ACL_DOUBLE), set_global(&c));
  ACCEPTED(set_gradients(&c, ACL_DOUBLE), set_ranks(&c, 4), DIMS(GO, 2, 1, 1, 1));
}

static void formats_must_match_and_be_positional(void **state) {
  (void)state;
  static const aclFormat fine[] = {ACL_FORMAT_ND, ACL_FORMAT_NCHW, ACL_FORMAT_NCL, ACL_FORMAT_NCDHW,
                                   ACL_FORMAT_NC};
  REFUSED("gradOutput has format NCDHW, expected self's ND", GO.format = ACL_FORMAT_NCDHW);
  REFUSED("out has format NCHW, expected self's ND", GI.format = ACL_FORMAT_NCHW);
  check_formats(valid(), fine, 5, "gradOutput", "ND, NCHW, NCL, NCDHW or NC");
}

static void views_must_make_sense(void **state) {
  (void)state;
  REFUSED("self has stride -16 on axis 2, no stride may be negative",
          STRIDES(X, 192, 64, -16, 4, 1));
  REFUSED("gradOutput has stride -1 on axis 4, no stride may be negative",
          STRIDES(GO, 24, 8, 4, 2, -1));
  REFUSED("out has stride 0 on axis 0 of length 2, its cells must not share memory",
          STRIDES(GI, 0, 64, 16, 4, 1));
  REFUSED("out is [2,3,4,4,4] with strides [192,64,16,4,2], its cells must not share memory",
          STRIDES(GI, 192, 64, 16, 4, 2));
  REFUSED("out has offset -8, it must not be negative", GI.offset = -8);
  REFUSED("gradOutput is [2,3,2,2,2], too large for 64-bit addresses", GO.offset = INT64_MAX);
  REFUSED("out is [2,3,4,4,4], too large for 64-bit addresses",
          STRIDES(GI, INT64_MAX, 64, 16, 4, 1));
  REFUSED("out is [2,3,4,4,4], too large for 64-bit addresses",
          STRIDES(GI, huge / 2, 64, 16, 4, 1)); /* in bytes */
  ACCEPTED(STRIDES(GO, 0), STRIDES(X, 0), GI.offset = 3);
  /* channels last: tiles are chosen by numbers of this size */
  ACCEPTED(DIMS(GO, 1, 4, 1, 1, 2), INPUT_DIMS(1, 4, 1, 1, huge / 64), STRIDES(GI, 0, 1, 0, 0, 4),
           STRIDES(GO, 0, 1, 0, 0, 4));
  ACCEPTED(set_axis(&c, 0, 1), STRIDES(GI, 0, 64, 16, 4, 1));
}

static void sizes_that_overflow_are_refused(void **state) {
  (void)state;
  REFUSED("gradOutput is [2,3,4611686018427387904,2,2], too large for 64-bit addresses",
          GO.dims[2] = huge, STRIDES(GO, 0));
  REFUSED("self is [2,3,4,4,4611686018427387904], too large for 64-bit addresses",
          set_inputs(&c, 4, huge), STRIDES(X, 0));
  REFUSED(
      "self is [1,1,4,4,4] and gradOutput [1,1,4611686018427387904,1,1], too large for 64-bit "
      "windows",
      set_axis(&c, 0, 1), set_axis(&c, 1, 1), DIMS(GO, 1, 1, huge, 1, 1), STRIDES(GO, 0));
  REFUSED(
      "self is [1,1,1,1,1] and gradOutput [1,1,1,1,9223372036854775807], too large for 64-bit "
      "windows",
      INPUT_DIMS(1, 1, 1, 1, 1), DIMS(GO, 1, 1, 1, 1, INT64_MAX), STRIDES(GO, 0));
}

static void contiguous_dims_beyond_64_bits_are_called_too_large(void **state) {
  (void)state;
  REFUSED("self is [2,3,1099511627776,2097152,4], too large for 64-bit addresses",
          INPUT_DIMS(2, 3, INT64_C(1) << 40, INT64_C(1) << 21, 4));
}

static void work_counted_in_bytes_does_not_overflow(void **state) {
  (void)state;
  ACCEPTED(INPUT_DIMS(INT64_C(1) << 30, INT64_C(1) << 30, 1, 1, 1), put(GO.dims, X.dims),
           STRIDES(X, 0), STRIDES(GO, 0));
}

static void as_910b(void **product) {
  (void)product;
  REFUSED("self is [0,3,4,4,4], axis 0 must be at least 1", set_axis(&c, 0, 0));
  REFUSED("gradOutput is DT_DOUBLE, allowed is DT_FLOAT, DT_FLOAT16 or DT_BF16",
          set_gradients(&c, ACL_DOUBLE));
  ACCEPTED((void)c);
}

/* The batch, or C where there is none, may be 0 here. */
static void as_950(void **product) {
  (void)product;
  for (int rank = 4; rank <= 5; rank++) {
    struct check_call c = valid();
    set_ranks(&c, rank);
    GO.dims[1] = X.dims[1];
    set_axis(&c, 0, 0);
    OK_OR_SAY(aclrtSetDevice(0));
    runs(&c);
  }
  REFUSED("self is [-1,3,4,4,4], axis 0 must be at least 0", set_axis(&c, 0, -1));
  REFUSED("self is [2,0,4,4,4], axis 1 must be at least 1", set_axis(&c, 1, 0));
  REFUSED("out is [2,3,4,4,4], expected self's shape [0,3,4,4,4]", GO.dims[0] = X.dims[0] = 0);
  REFUSED("gradOutput is [2,3,2,2,2], its N and C must be those of self [0,3,4,4,4]",
          set_inputs(&c, 0, 0));
}

static void products_have_limits_of_their_own(void **state) {
  (void)state;
  check_products(as_910b, as_950);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(products_have_limits_of_their_own),
      cmocka_unit_test(nulls_and_wrong_handles_are_refused),
      cmocka_unit_test(ranks_are_4_or_5_and_equal),
      cmocka_unit_test(every_axis_of_self_is_positive_and_that_of_out),
      cmocka_unit_test(grad_output_has_the_planes_of_self_and_cells_of_its_own),
      cmocka_unit_test(types_must_match_and_be_known),
      cmocka_unit_test(double_is_for_the_global_average),
      cmocka_unit_test(formats_must_match_and_be_positional),
      cmocka_unit_test(views_must_make_sense),
      cmocka_unit_test(sizes_that_overflow_are_refused),
      cmocka_unit_test(contiguous_dims_beyond_64_bits_are_called_too_large),
      cmocka_unit_test(work_counted_in_bytes_does_not_overflow),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
