/* SPDX-License-Identifier: Apache-2.0 */
/* What aclnnAdaptiveAvgPool2d, aclnnAdaptiveAvgPool3d and aclnnAdaptiveAvgPool2dBackward refuse,
 * and in which words; what they accept although it looks odd. */
#include "core/dtype.h"
#include "check_call.h"

/* Planes of 5 x 5 or 5 x 5 x 5 cells, outputs of 2 x 2 or 2 x 2 x 2. */
static struct check_call flat(void) {
  return check_call(ADAPTIVE_AVG_POOL2D_FORWARD, 4, ACL_FORMAT_NCHW, 5, 2);
}
static struct check_call deep(void) {
  return check_call(ADAPTIVE_AVG_POOL3D_FORWARD, 5, ACL_FORMAT_NCDHW, 5, 2);
}
static struct check_call backward(void) {
  return check_call(ADAPTIVE_AVG_POOL2D, 4, ACL_FORMAT_NCHW, 5, 2);
}

static void nulls_and_wrong_handles_are_refused(void **state) {
  (void)state;
  const struct check_call calls[] = {flat(), deep(), backward()};
  for (int i = 0; i < 3; i++) {
    check_nulls(calls[i]);
    check_handles(calls[i]);
  }
}

static void types_must_match_and_be_known(void **state) {
  (void)state;
  static const aclDataType wrong[] = {ACL_DOUBLE, ACL_INT32, ACL_INT64, ACL_UINT64, ACL_BOOL};
  struct check_call calls[] = {flat(), deep()};
  for (int i = 0; i < 2; i++) {
    for (int j = 0; j < 5; j++) {
      struct check_call c = calls[i];
      X.dtype = OUT.dtype = wrong[j];
      refused(&c, BAD, "self is %s, allowed is DT_FLOAT, DT_FLOAT16 or DT_BF16",
              (const char *[]){"DT_DOUBLE", "DT_INT32", "DT_INT64", "DT_UINT64", "DT_BOOL"}[j]);
    }
    REFUSED_OF(calls[i], "out is DT_FLOAT16, expected self's DT_FLOAT", OUT.dtype = ACL_FLOAT16);
    ACCEPTED_OF(calls[i], X.dtype = OUT.dtype = ACL_BF16);
    ACCEPTED_OF(calls[i], X.dtype = OUT.dtype = ACL_FLOAT16);
  }
  REFUSED_OF(backward(), "gradOutput is DT_DOUBLE, allowed is DT_FLOAT, DT_FLOAT16 or DT_BF16",
             set_gradients(&c, ACL_DOUBLE));
  REFUSED_OF(backward(), "gradOutput is DT_BF16, expected self's DT_FLOAT", GO.dtype = ACL_BF16);
  REFUSED_OF(backward(), "out is DT_BF16, expected self's DT_FLOAT", GI.dtype = ACL_BF16);
}

static void formats_go_with_ranks(void **state) {
  (void)state;
  static const aclFormat others[] = {ACL_FORMAT_ND, ACL_FORMAT_NHWC, ACL_FORMAT_NC1HWC0,
                                     ACL_FORMAT_NCDHW, ACL_FORMAT_UNDEFINED};
  static const aclFormat planar[] = {ACL_FORMAT_ND, ACL_FORMAT_NCHW, ACL_FORMAT_NCL,
                                     ACL_FORMAT_NCDHW, ACL_FORMAT_NC};
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
  check_formats(deep(), planar, 5, "self", "ND, NCHW, NCL, NCDHW or NC");
  check_formats(backward(), planar, 5, "gradOutput", "ND, NCHW, NCL, NCDHW or NC");
  REFUSED_OF(flat(), "out has format NCL, expected self's NCHW", OUT.format = ACL_FORMAT_NCL);
  REFUSED_OF(deep(), "out has format ND, expected self's NCDHW", OUT.format = ACL_FORMAT_ND);
  REFUSED_OF(backward(), "gradOutput has format ND, expected self's NCHW",
             GO.format = ACL_FORMAT_ND);
  REFUSED_OF(backward(), "out has format ND, expected self's NCHW", GI.format = ACL_FORMAT_ND);
}

static void ranks_are_known_and_equal(void **state) {
  (void)state;
  for (int rank = 2; rank <= 6; rank++) {
    struct check_call c = flat();
    set_ranks(&c, rank);
    if (rank != 4)
      refused(&c, BAD, "self is [2,3%s] with format NCHW, NCHW has 4 axes and NCL 3",
              (const char *[]){"", ",5", "", ",5,5,0", ",5,5,0,0"}[rank - 2]);
    c = deep();
    set_ranks(&c, rank);
    if (rank < 4 || rank > 5)
      refused(&c, BAD, "self is [2,3%s], it must have 4 or 5 axes",
              (const char *[]){"", ",5", "", "", ",5,5,5,0"}[rank - 2]);
    c = backward();
    set_ranks(&c, rank);
    if (rank < 3 || rank > 4)
      refused(&c, BAD, "out is [2,3%s], it must have 3 or 4 axes",
              (const char *[]){"", "", "", ",5,5,0", ",5,5,0,0"}[rank - 2]);
  }
  REFUSED_OF(flat(), "out is [2,3,2], it must have as many axes as self [2,3,5,5]", OUT.rank = 3);
  REFUSED_OF(deep(), "out is [2,3,2,2], it must have as many axes as self [2,3,5,5,5]",
             OUT.rank = 4);
  REFUSED_OF(backward(), "gradOutput is [2,3,2], it must have as many axes as self [2,3,5,5]",
             GO.rank = 3);
  REFUSED_OF(backward(), "out is [2,3,5], expected self's shape [2,3,5,5]", GI.rank = 3);
  ACCEPTED_OF(deep(), set_ranks(&c, 4), DIMS(X, 3, 5, 5, 5), DIMS(OUT, 3, 2, 2, 2));
}

static void axes_are_not_empty(void **state) {
  (void)state;
  REFUSED_OF(flat(), "self is [2,0,5,5], axis 1 must be at least 1", X.dims[1] = OUT.dims[1] = 0);
  REFUSED_OF(flat(), "self is [2,3,0,5], axis 2 must be at least 1", X.dims[2] = 0);
  REFUSED_OF(flat(), "self is [2,3,5,-5], axis 3 must be at least 1", X.dims[3] = -5);
  REFUSED_OF(flat(), "self is [-1,3,5,5], axis 0 must be at least 0", X.dims[0] = -1);
  REFUSED_OF(deep(), "self is [2,3,5,5,0], axis 4 must be at least 1", X.dims[4] = 0);
  struct check_call c = flat();
  X.dims[0] = OUT.dims[0] = 0;
  runs(&c);
  c = deep();
  X.dims[0] = OUT.dims[0] = 0;
  runs(&c);
  REFUSED_OF(backward(), "gradOutput is [2,3,2,-2], no dim may be negative", GO.dims[3] = -2);
  REFUSED_OF(backward(), "self is [2,-3,5,5], no dim may be negative", X.dims[1] = -3);
  c = backward();
  set_axis(&c, 0, 0);
  runs(&c);
}

static void output_size_is_outs(void **state) {
  (void)state;
  for (uint64_t count = 0; count <= 4; count++) {
    struct check_call c = flat();
    O.count = count;
    if (count != 2) refused(&c, BAD, "outputSize has %d values, allowed is 2", (int)count);
    c = deep();
    O.count = count;
    if (count != 3) refused(&c, BAD, "outputSize has %d values, allowed is 3", (int)count);
  }
  REFUSED_OF(flat(), "outputSize is [0,2], both must be positive", O = PAIR(0, 2));
  REFUSED_OF(flat(), "outputSize is [2,-1], both must be positive", O = PAIR(2, -1));
  REFUSED_OF(deep(), "outputSize is [2,2,0], all three must be positive", O = TRIPLE(2, 2, 0));
  REFUSED_OF(flat(), "out is [2,3,2,2], expected N and C of self [2,3,5,5] and outputSize [2,3]",
             O = PAIR(2, 3));
  REFUSED_OF(flat(), "out is [2,4,2,2], expected N and C of self [2,3,5,5] and outputSize [2,2]",
             OUT.dims[1] = 4);
  REFUSED_OF(deep(),
             "out is [1,3,2,2,2], expected N and C of self [2,3,5,5,5] and outputSize [2,2,2]",
             OUT.dims[0] = 1);
  ACCEPTED_OF(flat(), O = PAIR(9, 1), DIMS(OUT, 2, 3, 9, 1)); /* more outputs than cells */
  /* axes come before outputSize, outputSize before the shape */
  REFUSED_OF(flat(), "self is [2,0,5,5], axis 1 must be at least 1", X.dims[1] = 0, O.count = 1);
  REFUSED_OF(flat(), "outputSize has 1 values, allowed is 2", OUT.dims[1] = 4, O.count = 1);
}

static void backward_shapes_must_match(void **state) {
  (void)state;
  REFUSED_OF(backward(), "out is [2,3,5,4], expected self's shape [2,3,5,5]", GI.dims[3] = 4);
  REFUSED_OF(backward(), "gradOutput is [1,3,2,2], its N and C must be those of self [2,3,5,5]",
             GO.dims[0] = 1);
  REFUSED_OF(backward(), "gradOutput is [2,4,2,2], its N and C must be those of self [2,3,5,5]",
             GO.dims[1] = 4, set_gradients(&c, ACL_INT64)); /* shapes come before types */
  struct check_call c = backward();
  GO.dims[2] = 0;
  leaves_zeros(c);
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
  REFUSED_OF(flat(), "out has offset -1, it must not be negative", OUT.offset = -1);
  REFUSED_OF(deep(), "self is [2,3,5,5,5], too large for 64-bit addresses",
             STRIDES(X, huge, 1, 1, 1, 1));
  REFUSED_OF(backward(), "out has stride 0 on axis 0 of length 2, its cells must not share memory",
             STRIDES(GI, 0, 25, 5, 1));
  ACCEPTED_OF(flat(), STRIDES(X, 0), X.offset = 3);
  REFUSED_OF(flat(),
             "self is [1,1,4611686018427387904,1] and out [1,1,2,2], too large for 64-bit windows",
             DIMS(X, 1, 1, huge, 1), DIMS(OUT, 1, 1, 2, 2), STRIDES(X, 0));
}

static void what_is_written_overlaps_nothing(void **state) {
  (void)state;
  check_overlaps(flat());
  check_overlaps(deep());
  check_overlaps(backward());
}

static void as_910b(void **product) {
  (void)product;
  REFUSED_OF(deep(), "self is [0,3,5,5,5], axis 0 must be at least 1", X.dims[0] = OUT.dims[0] = 0);
  ACCEPTED_OF(deep(), set_formats(&c, ACL_FORMAT_NCL));
}

static void as_950(void **product) {
  struct check_call c = deep();
  X.dims[0] = OUT.dims[0] = 0;
  accepted(&c);
  c = deep();
  set_formats(&c, ACL_FORMAT_NCL);
  refused(&c, BAD, "self has format NCL, allowed is ND, NCHW or NCDHW on %s",
          (const char *)*product);
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
      cmocka_unit_test(formats_go_with_ranks),
      cmocka_unit_test(ranks_are_known_and_equal),
      cmocka_unit_test_setup_teardown(axes_are_not_empty, set_up_cpu, tear_down_device),
      cmocka_unit_test(output_size_is_outs),
      cmocka_unit_test_setup_teardown(backward_shapes_must_match, set_up_cpu, tear_down_device),
      cmocka_unit_test(views_must_make_sense),
      cmocka_unit_test_setup_teardown(what_is_written_overlaps_nothing, set_up_cpu,
                                      tear_down_device),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
