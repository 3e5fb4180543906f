/* SPDX-License-Identifier: Apache-2.0 */
/* What aclnnAdaptiveMaxPool2dBackward and aclnnAdaptiveMaxPool3dBackward refuse, and in which
 * words; what they accept although it looks odd. */
#include "check_call.h"

/* Planes of 4 x 4 (x 4) cells, outputs of 2 x 2 (x 2), a batch of 2 with 3 channels. */
static struct check_call valid(int spatial) {
  return check_call(spatial == 2 ? ADAPTIVE_MAX_POOL2D : ADAPTIVE_MAX_POOL3D, spatial + 2,
                    ACL_FORMAT_ND, 4, 2);
}
#define REFUSED(spatial, ...) REFUSED_OF(valid(spatial), __VA_ARGS__)
#define ACCEPTED(spatial, ...) ACCEPTED_OF(valid(spatial), __VA_ARGS__)

/* One plane h x w (x 1). */
static void set_plane(struct check_call *c, int64_t h, int64_t w) {
  for (int axis = 0; axis < 5; axis++) set_axis(c, axis, 1);
  set_inputs(c, 2, h);
  set_inputs(c, 3, w);
}

/* Outputs h x w in that plane, all in one place. */
static void set_plane_outputs(struct check_call *c, int64_t h, int64_t w) {
  set_outputs(c, 2, h);
  set_outputs(c, 3, w);
  STRIDES(c->t[GRAD_OUT], 0);
  STRIDES(c->t[INDICES], 0);
}

static void nulls_and_wrong_handles_are_refused(void **state) {
  (void)state;
  for (int spatial = 2; spatial <= 3; spatial++) {
    check_nulls(valid(spatial));
    check_handles(valid(spatial));
  }
}

static void types_must_match_and_be_known(void **state) {
  (void)state;
  REFUSED(2, "gradOutput is DT_FLOAT16, expected self's DT_FLOAT", GO.dtype = ACL_FLOAT16);
  REFUSED(3, "gradInput is DT_BF16, expected self's DT_FLOAT", GI.dtype = ACL_BF16);
  REFUSED(2, "self is DT_DOUBLE, allowed is DT_FLOAT, DT_FLOAT16 or DT_BF16",
          set_gradients(&c, ACL_DOUBLE));
  REFUSED(3, "self is dtype 99, allowed is DT_FLOAT, DT_FLOAT16 or DT_BF16",
          set_gradients(&c, (aclDataType)99));
  REFUSED(2, "indices is DT_INT8, allowed is DT_INT32 or DT_INT64", IDX.dtype = ACL_INT8);
  REFUSED(3, "indices is DT_FLOAT, allowed is DT_INT32 or DT_INT64", IDX.dtype = ACL_FLOAT);
  for (int spatial = 2; spatial <= 3; spatial++) {
    ACCEPTED(spatial, set_gradients(&c, ACL_FLOAT16));
    ACCEPTED(spatial, set_gradients(&c, ACL_BF16), IDX.dtype = ACL_INT64);
  }
}

static void shapes_must_match(void **state) {
  (void)state;
  REFUSED(2, "gradOutput is [2,3,2], it must have as many axes as self [2,3,4,4]", GO.rank = 3);
  REFUSED(3, "indices is [2,3,2,2], it must have as many axes as self [2,3,4,4,4]", IDX.rank = 4);
  REFUSED(2, "gradInput is [2,3,4], it must have as many axes as self [2,3,4,4]", GI.rank = 3);
  REFUSED(2, "indices is [2,3,2,1], expected gradOutput's shape [2,3,2,2]", IDX.dims[3] = 1);
  REFUSED(3, "gradInput is [2,3,4,5,4], expected self's shape [2,3,4,4,4]", GI.dims[3] = 5);
  REFUSED(2, "gradOutput is [2,1,2,2], its N and C must be those of self [2,3,4,4]",
          set_outputs(&c, 1, 1));
  REFUSED(3, "gradOutput is [1,3,2,2,2], its N and C must be those of self [2,3,4,4,4]",
          set_outputs(&c, 0, 1));
}

static void formats_must_match_and_be_positional(void **state) {
  (void)state;
  static const aclFormat fine[] = {ACL_FORMAT_ND, ACL_FORMAT_NCHW, ACL_FORMAT_NCL, ACL_FORMAT_NCDHW,
                                   ACL_FORMAT_NC};
  REFUSED(2, "gradOutput has format NCHW, expected self's ND", GO.format = ACL_FORMAT_NCHW);
  REFUSED(3, "indices has format NCDHW, expected self's ND", IDX.format = ACL_FORMAT_NCDHW);
  REFUSED(2, "gradInput has format NCL, expected self's ND", GI.format = ACL_FORMAT_NCL);
  for (int spatial = 2; spatial <= 3; spatial++)
    check_formats(valid(spatial), fine, 5, "self", "ND, NCHW, NCL, NCDHW or NC");
}

static void ranks_are_those_of_the_operator(void **state) {
  (void)state;
  REFUSED(2, "self is [2,3], it must have 3 or 4 axes", set_ranks(&c, 2));
  REFUSED(2, "self is [], it must have 3 or 4 axes", set_ranks(&c, 0));
  REFUSED(2, "self is [2,3,4,4,4], it must have 3 or 4 axes", set_ranks(&c, 5),
          set_inputs(&c, 4, 4), set_outputs(&c, 4, 2));
  REFUSED(3, "self is [2,3,4], it must have 4 or 5 axes", set_ranks(&c, 3));
  REFUSED(3, "self is [2,3,4,4,4,0], it must have 4 or 5 axes", set_ranks(&c, 6));
  ACCEPTED(2, set_ranks(&c, 3), set_outputs(&c, 0, 2));
  ACCEPTED(3, set_ranks(&c, 4), IDX.dtype = ACL_INT64);
}

static void views_must_make_sense(void **state) {
  (void)state;
  REFUSED(2, "gradOutput is [2,3,-2,2], no dim may be negative", set_outputs(&c, 2, -2));
  REFUSED(3, "self is [2,3,4,4,-4], no dim may be negative", set_inputs(&c, 4, -4));
  REFUSED(2, "indices has stride -1 on axis 3, no stride may be negative",
          STRIDES(IDX, 12, 4, 2, -1));
  REFUSED(2, "gradInput has stride 0 on axis 1 of length 3, its cells must not share memory",
          STRIDES(GI, 48, 0, 4, 1));
  REFUSED(2, "gradInput is [2,3,4,4] with strides [48,16,2,3], its cells must not share memory",
          STRIDES(GI, 48, 16, 2, 3));
  REFUSED(2, "self is [-9223372036854775808,3,4,4], no dim may be negative",
          set_inputs(&c, 0, INT64_MIN));
  REFUSED(3, "indices has offset -1, it must not be negative", IDX.offset = -1);
  REFUSED(2, "gradOutput is [2,3,2,2], too large for 64-bit addresses", GO.offset = INT64_MAX - 2);
  REFUSED(2, "gradInput is [2,3,4,4], too large for 64-bit addresses", STRIDES(GI, huge, 16, 4, 1));
  REFUSED(2, "self is [1,1,4611686018427387904,4], too large for 64-bit addresses",
          set_plane(&c, huge, 4), STRIDES(X, 0));
  ACCEPTED(2, STRIDES(GO, 0), STRIDES(IDX, 0), STRIDES(X, 0), GI.offset = 5);
}

static void a_plane_has_no_more_cells_than_indices_can_count(void **state) {
  (void)state;
  REFUSED(2, "self is [1,1,65536,32768], a plane may have at most 2147483647 cells",
          set_plane(&c, 65536, 32768));
  REFUSED(3, "self is [1,1,65536,32768,1], a plane may have at most 2147483647 cells",
          set_plane(&c, 65536, 32768), IDX.dtype = ACL_INT64);
  REFUSED(2, "self is [0,1,4611686018427387904,4], a plane may have at most 2147483647 cells",
          set_plane(&c, huge, 4), set_inputs(&c, 0, 0));
  ACCEPTED(2, set_plane(&c, 1, INT32_MAX));
  ACCEPTED(3, set_plane(&c, INT32_MAX, 1));
}

static void sizes_that_overflow_are_refused(void **state) {
  (void)state;
  REFUSED(2,
          "self is [1,1,1,4] and gradOutput [1,1,1,4611686018427387904], too large for 64-bit "
          "windows",
          set_plane(&c, 1, 4), set_plane_outputs(&c, 1, huge));
  REFUSED(2,
          "self is [1,1,1,1] and gradOutput [1,1,9223372036854775807,1], too large for 64-bit "
          "windows",
          set_plane(&c, 1, 1), set_plane_outputs(&c, INT64_MAX, 1));
}

static void huge_axes_beside_an_empty_one_overflow_nothing(void **state) {
  (void)state;
  ACCEPTED(2, INPUT_DIMS(huge, huge, 4, 0), OUTPUT_DIMS(huge, huge, 0, 1));
  ACCEPTED(2, INPUT_DIMS(2, 4, 1, 4), OUTPUT_DIMS(2, 4, huge / 2, 0));
}

static void work_that_is_absurd_for_its_memory_is_refused(void **state) {
  (void)state;
  ACCEPTED(2, set_plane(&c, 1, 1), set_plane_outputs(&c, INT64_C(1) << 15, INT64_C(1) << 15));
  REFUSED(2,
          "gradOutput is [1,1,2147483648,1073741824], but all tensors together span 12 bytes of "
          "memory, for which at most 1073741824 elements of gradOutput are allowed",
          set_plane(&c, 1, 1), set_plane_outputs(&c, INT64_C(1) << 31, INT64_C(1) << 30));
  /* a gradient, an index and 2^24 cells of 4 bytes each: 64 outputs for every byte, and no more */
  const int64_t bytes = ((INT64_C(1) << 24) + 2) * 4;
  ACCEPTED(2, set_plane(&c, 1, INT64_C(1) << 24), set_plane_outputs(&c, 1, 64 * bytes + 63));
  REFUSED(
      2,
      "gradOutput is [1,1,1,4294967872], but all tensors together span 67108872 bytes of memory, "
      "for which at most 4294967808 elements of gradOutput are allowed",
      set_plane(&c, 1, INT64_C(1) << 24), set_plane_outputs(&c, 1, 64 * bytes + 64));
}

static void truly_empty_work_needs_nothing(void **state) {
  (void)state;
  for (int axis = 0; axis < 5; axis++) {
    struct check_call c = valid(axis < 2 ? 2 : 3);
    set_axis(&c, axis, 0);
    runs(&c);
  }
}

static void an_empty_grad_output_leaves_zeros(void **state) {
  (void)state;
  for (int axis = 2; axis < 4; axis++) {
    struct check_call c = valid(2);
    set_outputs(&c, axis, 0);
    STRIDES(GO, 12, 4, 2, 1);
    leaves_zeros(c);
  }
}

static void as_910b(void **product) {
  struct check_call c = valid(3);
  accepted(&c);
  IDX.dtype = ACL_INT64;
  refused(&c, BAD, "indices is DT_INT64, allowed is DT_INT32 on %s", (const char *)*product);
  c = valid(2);
  IDX.dtype = ACL_INT8;
  refused(&c, BAD, "indices is DT_INT8, allowed is DT_INT32 or DT_INT64");
  ACCEPTED(2, IDX.dtype = ACL_INT64);
  REFUSED(2, "self is [1,1,65536,32768], a plane may have at most 2147483647 cells",
          set_plane(&c, 65536, 32768), IDX.dtype = ACL_INT64);
}

static void as_950(void **product) {
  (void)product;
  for (int spatial = 2; spatial <= 3; spatial++) {
    ACCEPTED(spatial, IDX.dtype = ACL_INT64);
    ACCEPTED(spatial, set_plane(&c, 65536, 32768), IDX.dtype = ACL_INT64);
  }
  REFUSED(2,
          "self is [1,1,65536,32768], a plane may have at most 2147483647 cells, or what 64 bits "
          "count with DT_INT64",
          set_plane(&c, 65536, 32768));
}

static void products_have_limits_of_their_own(void **state) {
  (void)state;
  check_products(as_910b, as_950);
}

int main(void) {
#define ON_DEVICE(test) cmocka_unit_test_setup_teardown(test, set_up_cpu, tear_down_device)
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(products_have_limits_of_their_own),
      cmocka_unit_test(nulls_and_wrong_handles_are_refused),
      cmocka_unit_test(types_must_match_and_be_known),
      cmocka_unit_test(shapes_must_match),
      cmocka_unit_test(formats_must_match_and_be_positional),
      cmocka_unit_test(ranks_are_those_of_the_operator),
      cmocka_unit_test(views_must_make_sense),
      cmocka_unit_test(a_plane_has_no_more_cells_than_indices_can_count),
      cmocka_unit_test(sizes_that_overflow_are_refused),
      cmocka_unit_test(huge_axes_beside_an_empty_one_overflow_nothing),
      cmocka_unit_test(work_that_is_absurd_for_its_memory_is_refused),
      ON_DEVICE(truly_empty_work_needs_nothing),
      ON_DEVICE(an_empty_grad_output_leaves_zeros),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
