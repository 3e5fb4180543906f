/* SPDX-License-Identifier: Apache-2.0 */
/* What aclnnAdaptiveMaxPool2d and aclnnAdaptiveMaxPool3d refuse, and in which words; what they
 * accept although it looks odd. */
#include "core/dtype.h"
#include "check_call.h"

enum { LATE = ACLNN_ERR_INNER_NULLPTR };

/* Planes of 5 x 5 or 5 x 5 x 5 cells, outputs of 2 x 2 or 2 x 2 x 2. */
static struct check_call flat(void) {
  return check_call(ADAPTIVE_MAX_POOL2D_FORWARD, 4, ACL_FORMAT_NCHW, 5, 2);
}
static struct check_call deep(void) {
  return check_call(ADAPTIVE_MAX_POOL3D_FORWARD, 5, ACL_FORMAT_NCDHW, 5, 2);
}

static void set_types(struct check_call *c, aclDataType dtype) {
  c->t[SELF].dtype = c->t[GRAD_OUT].dtype = dtype;
}

static void set_channels_last(struct check_call *c) {
  set_formats(c, ACL_FORMAT_NHWC);
  for (int i = 0; i < POOL_TENSORS; i++) {
    c->t[i].dims[1] = c->t[i].dims[2];
    c->t[i].dims[3] = 3;
  }
}

static void nulls_and_wrong_handles_are_refused(void **state) {
  (void)state;
  check_nulls(flat());
  check_handles(flat());
  check_nulls(deep());
  check_handles(deep());
}

#define FLOATS "DT_FLOAT, DT_FLOAT16 or DT_BF16"
#define WITH_DOUBLE "DT_FLOAT, DT_FLOAT16, DT_BF16 or DT_DOUBLE"

static void types_must_match_and_be_known(void **state) {
  (void)state;
  REFUSED_OF(flat(), "self is DT_UINT8, allowed is " WITH_DOUBLE, set_types(&c, ACL_UINT8));
  REFUSED_OF(flat(), "outputOut is DT_INT64, allowed is " WITH_DOUBLE, OUT.dtype = ACL_INT64);
  REFUSED_OF(flat(), "outputOut is DT_BF16, expected self's DT_FLOAT", OUT.dtype = ACL_BF16);
  REFUSED_OF(flat(), "indicesOut is DT_INT32, allowed is DT_INT64", IDX.dtype = ACL_INT32);
  ACCEPTED_OF(flat(), set_types(&c, ACL_FLOAT16));
  ACCEPTED_OF(flat(), set_types(&c, ACL_BF16));
  ACCEPTED_OF(flat(), set_types(&c, ACL_DOUBLE));
  REFUSED_OF(deep(), "self is DT_DOUBLE, allowed is " FLOATS, set_types(&c, ACL_DOUBLE));
  REFUSED_OF(deep(), "outputOut is DT_INT32, allowed is " FLOATS, OUT.dtype = ACL_INT32);
  REFUSED_OF(deep(), "outputOut is DT_BF16, expected self's DT_FLOAT", OUT.dtype = ACL_BF16);
  REFUSED_OF(deep(), "indicesOut is DT_FLOAT, allowed is DT_INT32 or DT_INT64",
             IDX.dtype = ACL_FLOAT);
  ACCEPTED_OF(deep(), IDX.dtype = ACL_INT64);
}

/* Found late, they have another code in two dimensions. */
static void formats_must_match_and_be_known(void **state) {
  (void)state;
  static const aclFormat two[] = {ACL_FORMAT_ND, ACL_FORMAT_NCHW, ACL_FORMAT_NCL, ACL_FORMAT_NCDHW,
                                  ACL_FORMAT_NC};
  static const aclFormat wrong[] = {ACL_FORMAT_NC1HWC0, ACL_FORMAT_FRACTAL_NZ, ACL_FORMAT_HWCN,
                                    ACL_FORMAT_NDHWC, ACL_FORMAT_UNDEFINED};
  static const aclFormat three[] = {ACL_FORMAT_ND, ACL_FORMAT_NCHW, ACL_FORMAT_NCDHW};
  for (int i = 0; i < 5; i++) {
    struct check_call c = flat();
    set_formats(&c, wrong[i]);
    refused(&c, LATE, "self has format %s, allowed is ND, NCHW, NCL, NCDHW, NC or NHWC",
            pg_format_name(wrong[i]));
    set_formats(&c, two[i]);
    accepted(&c);
    set_types(&c, ACL_DOUBLE);
    if (two[i] == ACL_FORMAT_NCHW)
      accepted(&c);
    else
      refused(&c, LATE, "self has format %s, allowed is NCHW or NHWC", pg_format_name(two[i]));
  }
  struct check_call c = flat();
  OUT.format = ACL_FORMAT_ND;
  refused(&c, LATE, "outputOut has format ND, expected self's NCHW");
  c = flat();
  IDX.format = ACL_FORMAT_NHWC;
  refused(&c, LATE, "indicesOut has format NHWC, expected self's NCHW");
  check_formats(deep(), three, 3, "self", "ND, NCHW or NCDHW");
  REFUSED_OF(deep(), "outputOut has format ND, expected self's NCDHW", OUT.format = ACL_FORMAT_ND);
  REFUSED_OF(deep(), "indicesOut has format NDHWC, allowed is ND, NCHW, NCL, NCDHW or NC",
             IDX.format = ACL_FORMAT_NDHWC);
}

static void nhwc_has_its_channels_last(void **state) {
  (void)state;
  ACCEPTED_OF(flat(), set_channels_last(&c));
  ACCEPTED_OF(flat(), set_channels_last(&c), set_types(&c, ACL_DOUBLE));
  struct check_call c = flat();
  set_formats(&c, ACL_FORMAT_NHWC);
  refused(&c, LATE,
          "outputOut is [2,3,2,2], expected N and C of self [2,3,5,5] and outputSize [2,2]");
  c = flat();
  set_channels_last(&c);
  set_ranks(&c, 3);
  DIMS(X, 5, 5, 3);
  OUTPUT_DIMS(2, 2, 3);
  accepted(&c);
}

static void ranks_and_shapes_must_match(void **state) {
  (void)state;
  REFUSED_OF(flat(), "self is [2,3], it must have 3 or 4 axes", set_ranks(&c, 2));
  REFUSED_OF(flat(), "self is [2,3,5,5,0], it must have 3 or 4 axes", set_ranks(&c, 5));
  REFUSED_OF(flat(), "indicesOut is [2,3,2,1], expected outputOut's shape [2,3,2,2]",
             IDX.dims[3] = 1);
  REFUSED_OF(flat(), "indicesOut is [2,3,2], expected outputOut's shape [2,3,2,2]", IDX.rank = 3);
  ACCEPTED_OF(flat(), set_ranks(&c, 3), DIMS(X, 3, 5, 5), OUTPUT_DIMS(3, 2, 2));
  REFUSED_OF(deep(), "self is [2,3,5], it must have 4 or 5 axes", X.rank = 3);
  REFUSED_OF(deep(), "outputOut is [2,3,2], it must have 4 or 5 axes", OUT.rank = 3);
  REFUSED_OF(deep(), "indicesOut is [2,3,2,2,2,0], it must have 4 or 5 axes", IDX.rank = 6);
  REFUSED_OF(deep(), "outputOut is [2,3,2,2], it must have as many axes as self [2,3,5,5,5]",
             OUT.rank = IDX.rank = 4);
  REFUSED_OF(deep(), "indicesOut is [2,3,2,2,3], expected outputOut's shape [2,3,2,2,2]",
             IDX.dims[4] = 3);
  ACCEPTED_OF(deep(), set_ranks(&c, 4), DIMS(X, 3, 5, 5, 5), OUTPUT_DIMS(3, 2, 2, 2));
  struct check_call c = flat();
  OUT.dims[2] = IDX.dims[2] = 3;
  refused(&c, LATE,
          "outputOut is [2,3,3,2], expected N and C of self [2,3,5,5] and outputSize [2,2]");
  c = flat();
  OUT.rank = IDX.rank = 3;
  refused(&c, LATE, "outputOut is [2,3,2], it must have as many axes as self [2,3,5,5]");
  REFUSED_OF(
      deep(),
      "outputOut is [2,1,2,2,2], expected N and C of self [2,3,5,5,5] and outputSize [2,2,2]",
      set_outputs(&c, 1, 1));
}

static void axes_are_not_empty(void **state) {
  (void)state;
  REFUSED_OF(flat(), "self is [2,0,5,5], axis 1 must be at least 1", set_axis(&c, 1, 0));
  REFUSED_OF(flat(), "self is [2,3,5,0], axis 3 must be at least 1", X.dims[3] = 0);
  REFUSED_OF(deep(), "self is [2,3,5,0,5], axis 3 must be at least 1", X.dims[3] = 0);
  REFUSED_OF(deep(), "self is [2,3,5,-1,5], axis 3 must be at least 1", X.dims[3] = -1);
  struct check_call c = flat();
  set_axis(&c, 0, 0);
  runs(&c);
  c = deep();
  set_axis(&c, 0, 0);
  runs(&c);
}

/* The outputs of an empty batch are left alone, whatever their N is; even their formats. */
static void an_empty_batch_writes_nothing(void **state) {
  (void)state;
  float out[24];
  int64_t indices[24];
  struct check_call c = flat();
  X.dims[0] = 0;
  OUT.data = out;
  IDX.data = indices;
  OUT.format = ACL_FORMAT_NC1HWC0;
  for (int i = 0; i < 24; i++) out[i] = -1, indices[i] = -1;
  runs(&c);
  for (int i = 0; i < 24; i++) assert_true(out[i] == -1 && indices[i] == -1);
  O = PAIR(-2, 2); /* comes before */
  refused(&c, BAD, "outputSize is [-2,2], both must be positive");
}

static void output_size_must_make_sense(void **state) {
  (void)state;
  for (uint64_t count = 0; count <= 4; count++) {
    struct check_call c = flat();
    O.count = count;
    if (count != 2) refused(&c, BAD, "outputSize has %d values, allowed is 2", (int)count);
  }
  REFUSED_OF(flat(), "outputSize is [-2,2], both must be positive", O = PAIR(-2, 2));
  REFUSED_OF(flat(), "outputSize is [2,0], both must be positive", O = PAIR(2, 0),
             OUT.dims[2] = IDX.dims[2] = 9); /* shapes are found late */
  REFUSED_OF(deep(), "outputSize has 2 values, allowed is 0, 1 or 3", O.count = 2);
  REFUSED_OF(deep(), "outputSize is [2,2,0], all three must be positive", O = TRIPLE(2, 2, 0),
             set_outputs(&c, 4, 0));
  REFUSED_OF(
      deep(),
      "outputOut is [2,3,2,2,2], expected N and C of self [2,3,5,5,5] and outputSize [2,2,0]",
      O = TRIPLE(2, 2, 0)); /* the shape comes before */
  ACCEPTED_OF(deep(), O.count = 1);
  ACCEPTED_OF(deep(), O.count = 0, OUTPUT_DIMS(2, 3, 5, 5, 5)); /* none: as self */
  REFUSED_OF(
      deep(),
      "outputOut is [2,3,2,2,2], expected N and C of self [2,3,5,5,5] and outputSize [5,5,5]",
      O.count = 0);
}

static void planes_are_not_too_large(void **state) {
  (void)state;
  const int64_t large = INT64_C(1) << 31;
  REFUSED_OF(flat(), "self is [2,3,2147483648,1], a plane may have at most 2147483647 cells",
             DIMS(X, 2, 3, large, 1), STRIDES(X, 0));
  REFUSED_OF(deep(), "self is [2,3,2147483648,1,1], a plane may have at most 2147483647 cells",
             DIMS(X, 2, 3, large, 1, 1), STRIDES(X, 0), IDX.dtype = ACL_INT64);
}

static void views_must_make_sense(void **state) {
  (void)state;
  REFUSED_OF(flat(), "self has stride -1 on axis 3, no stride may be negative",
             STRIDES(X, 75, 25, 5, -1));
  REFUSED_OF(flat(),
             "outputOut has stride 0 on axis 2 of length 2, its cells must not share memory",
             STRIDES(OUT, 12, 4, 0, 1));
  REFUSED_OF(flat(),
             "indicesOut has stride 0 on axis 1 of length 3, its cells must not share memory",
             STRIDES(IDX, 12, 0, 2, 1));
  REFUSED_OF(deep(),
             "indicesOut is [2,3,2,2,2] with strides [20,8,4,2,1], its cells must not share memory",
             STRIDES(IDX, 20, 8, 4, 2, 1));
  REFUSED_OF(deep(), "outputOut has offset -1, it must not be negative", OUT.offset = -1);
  ACCEPTED_OF(deep(), STRIDES(X, 0), X.offset = 3);
}

static void what_is_written_overlaps_nothing(void **state) {
  (void)state;
  check_overlaps(flat());
  check_overlaps(deep());
}

static void as_910b(void **product) {
  const char *name = *product;
  struct check_call c = deep();
  accepted(&c);
  IDX.dtype = ACL_INT64;
  refused(&c, BAD, "indicesOut is DT_INT64, allowed is DT_INT32 on %s", name);
  c = deep();
  set_formats(&c, ACL_FORMAT_ND);
  refused(&c, BAD, "self has format ND, allowed is NCHW or NCDHW on %s", name);
  for (uint64_t count = 0; count <= 4; count++) {
    c = deep();
    O.count = count;
    if (count != 3) refused(&c, BAD, "outputSize has %d values, allowed is 3", (int)count);
  }
}

static void as_950(void **product) {
  (void)product;
  const int64_t large = INT64_C(1) << 31;
  ACCEPTED_OF(deep(), IDX.dtype = ACL_INT64, set_formats(&c, ACL_FORMAT_ND), O.count = 1);
  ACCEPTED_OF(flat(), DIMS(X, 1, 1, large, 1), STRIDES(X, 1, 1, 1, 1), OUTPUT_DIMS(1, 1, 2, 2));
  REFUSED_OF(deep(),
             "self is [2,3,2147483648,1,1], a plane may have at most 2147483647 cells, or what 64 "
             "bits count with DT_INT64",
             DIMS(X, 2, 3, large, 1, 1), STRIDES(X, 0));
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
      cmocka_unit_test(nhwc_has_its_channels_last),
      cmocka_unit_test(ranks_and_shapes_must_match),
      cmocka_unit_test_setup_teardown(axes_are_not_empty, set_up_cpu, tear_down_device),
      cmocka_unit_test_setup_teardown(an_empty_batch_writes_nothing, set_up_cpu, tear_down_device),
      cmocka_unit_test(output_size_must_make_sense),
      cmocka_unit_test(planes_are_not_too_large),
      cmocka_unit_test(views_must_make_sense),
      cmocka_unit_test_setup_teardown(what_is_written_overlaps_nothing, set_up_cpu,
                                      tear_down_device),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
