/* SPDX-License-Identifier: Apache-2.0 */
/* What aclnnMaxPool, whose attributes are ONNX's, refuses, and in which words; what it accepts
 * although it looks odd. */
#include "core/dtype.h"
#include "check_call.h"

/* Planes of 5 x 5 cells, windows of 2 x 2 side by side, outputs of 2 x 2. */
static struct check_call valid(void) {
  return check_call(MAX_POOL_FORWARD, 4, ACL_FORMAT_NCHW, 5, 2);
}
#define REFUSED(...) REFUSED_OF(valid(), __VA_ARGS__)
#define ACCEPTED(...) ACCEPTED_OF(valid(), __VA_ARGS__)

static void nulls_and_wrong_handles_are_refused(void **state) {
  (void)state;
  check_nulls(valid());
  check_handles(valid());
}

static const aclDataType integers[] = {ACL_BF16,  ACL_INT32, ACL_INT64, ACL_UINT8,
                                       ACL_INT16, ACL_INT8,  ACL_UINT16};

static void types_and_formats_must_match_and_be_known(void **state) {
  (void)state;
  static const aclFormat fine[] = {ACL_FORMAT_ND, ACL_FORMAT_NCHW, ACL_FORMAT_NCL};
  static const aclDataType wrong[] = {ACL_DOUBLE, ACL_UINT32, ACL_UINT64, ACL_BOOL};
  for (int i = 0; i < 7; i++) ACCEPTED(set_gradients(&c, integers[i]));
  for (int i = 0; i < 4; i++) {
    struct check_call c = valid();
    set_gradients(&c, wrong[i]);
    refused(&c, BAD,
            "self is %s, allowed is DT_FLOAT, DT_FLOAT16, DT_BF16, DT_INT32, DT_INT64, DT_UINT8, "
            "DT_INT16, DT_INT8 or DT_UINT16",
            pg_dtype_name(wrong[i]));
  }
  REFUSED("out is DT_FLOAT16, expected self's DT_FLOAT", OUT.dtype = ACL_FLOAT16);
  REFUSED("out has format ND, expected self's NCHW", OUT.format = ACL_FORMAT_ND);
  check_formats(valid(), fine, 3, "self", "ND, NCHW or NCL");
}

static void arrays_may_have_some_lengths(void **state) {
  (void)state;
  for (uint64_t count = 0; count <= 4; count++) {
    struct check_call c = valid();
    K.count = count;
    if (count != 1 && count != 2)
      refused(&c, BAD, "kernelShape has %d values, allowed is 1 to 2", (int)count);
    c = valid();
    S.count = count;
    if (count > 2) refused(&c, BAD, "strides has %d values, allowed is 0 to 2", (int)count);
    c = valid();
    P = FOUR(0, 0, 0, 0);
    P.count = count;
    if (count == 3)
      refused(&c, BAD, "pads has 3 values, allowed is 0, 1, 2 or 4");
    else
      accepted(&c);
    c = valid();
    D = FOUR(1, 1, 1, 1);
    D.count = count;
    if (count == 3)
      refused(&c, BAD, "dilations has 3 values, allowed is 0, 1, 2 or 4");
    else
      accepted(&c);
  }
  ACCEPTED(S.count = 0, OUT.dims[2] = OUT.dims[3] = 4); /* none: 1 */
}

static void values_must_make_sense(void **state) {
  (void)state;
#define PADS(before, behind)                               \
  "pads is " before " before and " behind                  \
  " behind, none may be negative and an axis may have at " \
  "most kernelShape [2,2] together"
  REFUSED("kernelShape is [0,2], both must be positive", K = PAIR(0, 2));
  REFUSED("strides is [2,-1], both must be positive", S = PAIR(2, -1));
  REFUSED("autoPad is 1, allowed is 0", c.auto_pad = 1);
  REFUSED("autoPad is -1, allowed is 0", c.auto_pad = -1, P = PAIR(-1, 0)); /* comes before */
  REFUSED(PADS("[-1,0]", "[-1,0]"), P = PAIR(-1, 0));
  REFUSED(PADS("[0,0]", "[0,-1]"), P = FOUR(0, 0, 0, -1));
  REFUSED(PADS("[2,2]", "[2,2]"), P = FOUR(2, 2, 2, 2));
  REFUSED(PADS("[1,0]", "[2,0]"), P = FOUR(1, 0, 2, 0));
  REFUSED(PADS("[9223372036854775807,0]", "[9223372036854775807,0]"), P = PAIR(INT64_MAX, 0));
  REFUSED("dilations has 2 at place 1, allowed is 1", D = PAIR(1, 2));
  REFUSED("dilations has 0 at place 3, allowed is 1", D = FOUR(1, 1, 1, 0));
  ACCEPTED(P = FOUR(1, 0, 0, 1), OUT.dims[2] = 3, OUT.dims[3] = 3);
  ACCEPTED(P = PAIR(1, 0), OUT.dims[2] = 3);
  ACCEPTED(P = PAIR(1, 0), P.count = 1, OUT.dims[2] = OUT.dims[3] = 3);
}

static void every_window_holds_a_cell(void **state) {
  (void)state;
  REFUSED("self is [2,3,5,5], the window of output 0 along its height holds no cell of it",
          P = FOUR(2, 0, 0, 0), OUT.dims[2] = 3);
  REFUSED("self is [2,3,5,6], the window of output 3 along its width holds no cell of it",
          X.dims[3] = 6, P = FOUR(0, 0, 0, 2), OUT.dims[3] = 4);
  REFUSED("self is [2,3,0,5], the window of output 0 along its height holds no cell of it",
          X.dims[2] = 0, P = PAIR(1, 0), OUT.dims[2] = 1);
}

#define WINDOWS "kernelShape [2,2], strides [2,2], pads [0,0], ceilMode "

static void ranks_and_shapes_must_match(void **state) {
  (void)state;
  REFUSED("self is [2,3], it must have 3 or 4 axes", set_ranks(&c, 2));
  REFUSED("self is [2,3,5,5,0], it must have 3 or 4 axes", set_ranks(&c, 5));
  REFUSED("out is [2,3,2], it must have as many axes as self [2,3,5,5]", OUT.rank = 3);
  REFUSED("self is [2,3,5,-5], no dim may be negative", X.dims[3] = -5);
  REFUSED("out is [2,3,5,5], expected [2,3,2,2] for self [2,3,5,5], " WINDOWS "false",
          put(OUT.dims, X.dims));
  REFUSED("out is [2,3,2,2], expected [2,3,3,3] for self [2,3,5,5], " WINDOWS "true",
          c.ceil_mode = true);
  REFUSED("out is [2,1,2,2], expected [2,3,2,2] for self [2,3,5,5], " WINDOWS "false",
          OUT.dims[1] = 1);
  ACCEPTED(set_ranks(&c, 3), DIMS(X, 3, 5, 5), DIMS(OUT, 3, 2, 2));
}

static void views_and_sizes_must_make_sense(void **state) {
  (void)state;
  REFUSED("self has stride -1 on axis 3, no stride may be negative", STRIDES(X, 75, 25, 5, -1));
  REFUSED("out has stride 0 on axis 2 of length 2, its cells must not share memory",
          STRIDES(OUT, 12, 4, 0, 1));
  REFUSED("out is [2,3,2,2] with strides [10,4,2,1], its cells must not share memory",
          STRIDES(OUT, 10, 4, 2, 1));
  REFUSED("out has offset -1, it must not be negative", OUT.offset = -1);
  ACCEPTED(STRIDES(X, 0), X.offset = 3);
  REFUSED(OVERFLOWS(4611686018427387904, 2, 0, 1, 5), K = PAIR(huge, 2));
  REFUSED(OVERFLOWS(2, 9223372036854775807, 0, 1, 5), S = PAIR(2, INT64_MAX));
}

static void memory_is_looked_at_in_the_second_phase(void **state) {
  (void)state;
  check_overlaps(valid());
  for (int axis = 0; axis < 2; axis++) { /* empty work needs none */
    struct check_call c = valid();
    set_axis(&c, axis, 0);
    runs(&c);
  }
}

static void as_910b(void **product) {
  const char *name = *product;
  struct check_call c = valid();
  set_gradients(&c, ACL_FLOAT16);
  accepted(&c);
  for (int i = 0; i < 7; i++) {
    set_gradients(&c, integers[i]);
    refused(&c, BAD, "self is %s, allowed is DT_FLOAT or DT_FLOAT16 on %s",
            pg_dtype_name(integers[i]), name);
  }
}

static void as_950(void **product) {
  (void)product;
  for (int i = 0; i < 7; i++) ACCEPTED(set_gradients(&c, integers[i]));
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
      cmocka_unit_test(arrays_may_have_some_lengths),
      cmocka_unit_test(values_must_make_sense),
      cmocka_unit_test(every_window_holds_a_cell),
      cmocka_unit_test(ranks_and_shapes_must_match),
      cmocka_unit_test(views_and_sizes_must_make_sense),
      cmocka_unit_test_setup_teardown(memory_is_looked_at_in_the_second_phase, set_up_cpu,
                                      tear_down_device),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
