/* SPDX-License-Identifier: Apache-2.0 */
/* What aclnnMaxPool2dWithMask and aclnnMaxPool2dWithMaskBackward refuse, and in which words; what
 * they accept although it looks odd; and what is in a mask. */
#include "check_call.h"

/* Planes of 5 x 5 cells, windows of 2 x 2 side by side, outputs of 2 x 2. */
static struct check_call forward(void) {
  return check_call(MAX_POOL2D_MASK_FORWARD, 4, ACL_FORMAT_NCHW, 5, 2);
}
static struct check_call backward(void) {
  return check_call(MAX_POOL2D_MASK, 4, ACL_FORMAT_NCHW, 5, 2);
}

static void nulls_and_wrong_handles_are_refused(void **state) {
  (void)state;
  check_nulls(forward());
  check_handles(forward());
  check_nulls(backward());
  check_handles(backward());
}

#define FLOATS "allowed is DT_FLOAT, DT_FLOAT16 or DT_BF16"

static void types_and_formats_must_match_and_be_known(void **state) {
  (void)state;
  static const aclFormat fine[] = {ACL_FORMAT_ND, ACL_FORMAT_NCHW, ACL_FORMAT_NCL};
  REFUSED_OF(forward(), "self is DT_DOUBLE, " FLOATS, set_gradients(&c, ACL_DOUBLE));
  REFUSED_OF(forward(), "out is DT_INT8, expected self's DT_FLOAT", OUT.dtype = ACL_INT8);
  REFUSED_OF(forward(), "indices is DT_INT32, allowed is DT_INT8", IDX.dtype = ACL_INT32);
  REFUSED_OF(forward(), "out has format ND, expected self's NCHW", OUT.format = ACL_FORMAT_ND);
  REFUSED_OF(forward(), "indices has format ND, expected self's NCHW", IDX.format = ACL_FORMAT_ND);
  REFUSED_OF(backward(), "self is DT_DOUBLE, " FLOATS, set_gradients(&c, ACL_DOUBLE));
  REFUSED_OF(backward(), "gradOutput is DT_FLOAT16, expected self's DT_FLOAT",
             GO.dtype = ACL_FLOAT16);
  REFUSED_OF(backward(), "gradInput is DT_BF16, expected self's DT_FLOAT", GI.dtype = ACL_BF16);
  REFUSED_OF(backward(), "indices is DT_INT64, allowed is DT_INT8", IDX.dtype = ACL_INT64);
  REFUSED_OF(backward(), "indices has format ND, expected self's NCHW", IDX.format = ACL_FORMAT_ND);
  check_formats(forward(), fine, 3, "self", "ND, NCHW or NCL");
  check_formats(backward(), fine, 3, "self", "ND, NCHW or NCL");
  for (int i = 0; i < 2; i++) {
    ACCEPTED_OF(i == 0 ? forward() : backward(), set_gradients(&c, ACL_FLOAT16));
    ACCEPTED_OF(i == 0 ? forward() : backward(), set_gradients(&c, ACL_BF16));
  }
}

static void arrays_must_make_sense(void **state) {
  (void)state;
  const void *const null = NULL;
  check_arrays(forward());
  check_arrays(backward());
  for (int i = 0; i < 2; i++) {
    const struct check_call right = i == 0 ? forward() : backward();
    REFUSED_OF(right, "dilation is [2,1], a mask takes 1 only", D = PAIR(2, 1));
    REFUSED_OF(right, "dilation is [0,1], both must be positive", D = PAIR(0, 1));
    ACCEPTED_OF(right, S.count = 0);
  }
  /* how many values kernelSize has comes before what else is NULL, and has that code */
  struct check_call c = backward();
  K.count = 3;
  IDX.handle = &null;
  refused(&c, ACLNN_ERR_PARAM_NULLPTR, "kernelSize has 3 values, allowed is 1 to 2");
  c = forward();
  K.count = 0;
  IDX.handle = &null;
  refused(&c, ACLNN_ERR_PARAM_NULLPTR, "indices is NULL, a valid pointer is required");
}

#define WINDOWS "kernelSize [2,2], stride [2,2], padding [0,0], dilation [1,1], ceilMode false"
#define MASK ": the cells of a window, and 32 bytes for each 16 outputs of a plane and 32 more"

static void ranks_and_shapes_must_match(void **state) {
  (void)state;
  REFUSED_OF(forward(), "self is [2,3], it must have 3 or 4 axes", set_ranks(&c, 2));
  REFUSED_OF(forward(), "self is [2,3,5,5,0], it must have 3 or 4 axes", set_ranks(&c, 5));
  REFUSED_OF(forward(), "self is [2,0,5,5], its C, H and W must be positive", set_axis(&c, 1, 0));
  REFUSED_OF(forward(), "out is [2,3,2,1], expected [2,3,2,2] for self [2,3,5,5], " WINDOWS,
             OUT.dims[3] = 1);
  REFUSED_OF(forward(), "indices is [2,3,4], it must have as many axes as out [2,3,2,2]",
             IDX.rank = 3);
  REFUSED_OF(forward(), "indices is [2,3,4,32], expected [2,3,4,64]" MASK, IDX.dims[3] = 32);
  REFUSED_OF(forward(), "indices is [1,3,4,64], expected [2,3,4,64]" MASK, IDX.dims[0] = 1);
  REFUSED_OF(backward(), "gradInput is [2,3,5,4], expected self's shape [2,3,5,5]", GI.dims[3] = 4);
  REFUSED_OF(backward(), "gradOutput is [2,3,2,1], expected [2,3,2,2] for self [2,3,5,5], " WINDOWS,
             GO.dims[3] = 1);
  REFUSED_OF(backward(), "indices is [2,3,2,64], expected [2,3,4,64]" MASK, IDX.dims[2] = 2);
  REFUSED_OF(backward(), "indices is [2,3,4], it must have as many axes as gradOutput [2,3,2,2]",
             IDX.rank = 3);
  ACCEPTED_OF(forward(), set_ranks(&c, 3), DIMS(X, 3, 5, 5), DIMS(OUT, 3, 2, 2),
              DIMS(IDX, 3, 4, 64));
  ACCEPTED_OF(backward(), set_ranks(&c, 3), INPUT_DIMS(3, 5, 5), DIMS(GO, 3, 2, 2),
              DIMS(IDX, 3, 4, 64));
}

static void a_mask_is_contiguous(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    const struct check_call right = i == 0 ? forward() : backward();
    REFUSED_OF(right, "indices is [2,3,4,64] with strides [1024,256,64,2], it must be contiguous",
               STRIDES(IDX, 1024, 256, 64, 2));
    REFUSED_OF(right, "indices is [2,3,4,64] with strides [0,256,64,1], it must be contiguous",
               STRIDES(IDX, 0, 256, 64, 1));
    REFUSED_OF(right, "indices has offset 2, it must be a multiple of 4", IDX.offset = 2);
    REFUSED_OF(right, "indices has offset -4, it must not be negative", IDX.offset = -4);
    ACCEPTED_OF(right, STRIDES(IDX, 768, 256, 64, 1), IDX.offset = 8);
  }
  REFUSED_OF(forward(), "out has stride 0 on axis 2 of length 2, its cells must not share memory",
             STRIDES(OUT, 12, 4, 0, 1));
  REFUSED_OF(backward(),
             "gradInput has stride 0 on axis 0 of length 2, its cells must not share memory",
             STRIDES(GI, 0, 25, 5, 1));
  ACCEPTED_OF(forward(), STRIDES(X, 0));
}

static void sizes_that_overflow_are_refused(void **state) {
  (void)state;
  REFUSED_OF(forward(), OVERFLOWS(2, 9223372036854775807, 0, 1, 5), S = PAIR(INT64_MAX, 2));
  REFUSED_OF(forward(), "self is [1,1,2147483648,2], a plane may have at most 2147483647 cells",
             DIMS(X, 1, 1, INT64_C(1) << 31, 2), STRIDES(X, 0));
  REFUSED_OF(backward(), OVERFLOWS(4611686018427387904, 2, 0, 1, 5), K = PAIR(huge, 2));
  REFUSED_OF(backward(), "self is [1,1,2147483648,2], a plane may have at most 2147483647 cells",
             DIMS(X, 1, 1, INT64_C(1) << 31, 2), STRIDES(X, 0),
             DIMS(GI, 1, 1, INT64_C(1) << 31, 2));
}

static void what_is_written_overlaps_nothing(void **state) {
  (void)state;
  check_overlaps(forward());
  check_overlaps(backward());
  struct check_call c = forward();
  char *const memory = device_memory(1 << 16);
  X.data = memory;
  OUT.data = memory + 8192;
  IDX.data = memory + 16386; /* the indices in it need more than its bytes do */
  char sentence[160];
  (void)snprintf(sentence, sizeof sentence,
                 "the data address of indices is %p, it must be a multiple of 4", IDX.data);
  refused_run(&c, sentence);
  OK_OR_SAY(aclrtFree(memory));
}

/* Nor the container of single cells, whose bytes nobody reads. */
static void a_gradient_overlaps_no_mask(void **state) {
  (void)state;
  char *const memory = device_memory(1 << 16);
  struct check_call c = backward();
  K = PAIR(1, 1);
  DIMS(GO, 2, 3, 3, 3);
  DIMS(IDX, 2, 3, 1, 64);
  GO.data = memory;
  GI.data = memory + 8192;
  IDX.data = memory + 8192;
  refused_run(&c, "the memory of gradInput overlaps that of indices");
  OK_OR_SAY(aclrtFree(memory));
}

enum { CELLS = 2 * 3 * 5 * 5, MASK_BYTES = 2 * 3 * 4 * 64, OUTPUTS = 2 * 3 * 2 * 2 };

static void a_mask_has_indices_and_zeros(void **state) {
  (void)state;
  float cells[CELLS], out[OUTPUTS];
  int32_t mask[MASK_BYTES / 4];
  struct check_call c = forward();
  for (int i = 0; i < CELLS; i++) cells[i] = (float)i;
  memset(mask, -1, sizeof mask);
  X.data = cells;
  OUT.data = out;
  IDX.data = mask;
  runs(&c);
  for (int i = 0; i < OUTPUTS; i++) { /* the last cell of each window */
    const int at = (i / 2 % 2 * 2 + 1) * 5 + i % 2 * 2 + 1;
    assert_int_equal(mask[i], at);
    assert_true(out[i] == (float)(i / 4 * 25 + at));
  }
  for (int i = OUTPUTS; i < MASK_BYTES / 4; i++) assert_int_equal(mask[i], 0);
}

/* Windows of one cell have no index: the mask is zeros, and the backward does not read it. */
static void a_mask_of_single_cells_is_zeros(void **state) {
  (void)state;
  enum { BYTES = 2 * 3 * 1 * 64 };
  float cells[CELLS], out[2 * 3 * 9];
  char mask[BYTES];
  struct check_call c = forward();
  K = PAIR(1, 1);
  DIMS(OUT, 2, 3, 3, 3);
  DIMS(IDX, 2, 3, 1, 64);
  for (int i = 0; i < CELLS; i++) cells[i] = (float)i;
  memset(mask, -1, sizeof mask);
  X.data = cells;
  OUT.data = out;
  IDX.data = mask;
  runs(&c);
  for (int i = 0; i < 54; i++)
    assert_true(out[i] == (float)(i / 9 * 25 + i / 3 % 3 * 10 + i % 3 * 2));
  for (int i = 0; i < BYTES; i++) assert_int_equal(mask[i], 0);
  memset(mask, 77, sizeof mask);
  struct check_call b = backward();
  b.a[KERNEL_ARRAY] = PAIR(1, 1);
  DIMS(b.t[GRAD_OUT], 2, 3, 3, 3);
  DIMS(b.t[INDICES], 2, 3, 1, 64);
  b.t[GRAD_OUT].data = out;
  b.t[INDICES].data = mask;
  b.t[GRAD_IN].data = cells;
  runs(&b);
  for (int i = 0; i < CELLS; i++)
    assert_true(cells[i] == (i % 5 % 2 == 0 && i / 5 % 5 % 2 == 0 ? (float)i : 0));
}

static void empty_batches_need_nothing(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    struct check_call c = i == 0 ? forward() : backward();
    set_axis(&c, 0, 0);
    runs(&c);
  }
}

static void as_910b(void **product) {
  (void)product;
  ACCEPTED_OF(forward(), set_gradients(&c, ACL_BF16));
  ACCEPTED_OF(backward(), set_gradients(&c, ACL_BF16));
}

/* A product without masks; three pointers are looked at before, in the forward operator alone. */
static void as_950(void **product) {
  const char *name = *product;
  const void *const null = NULL;
  struct check_call c = forward();
  refused(&c, BAD, "%s has no masks, call aclnnMaxPool2dWithIndices instead", name);
  S.handle = IDX.handle = &null;
  refused(&c, BAD, "%s has no masks, call aclnnMaxPool2dWithIndices instead", name);
  OUT.handle = &null;
  refused(&c, ACLNN_ERR_PARAM_NULLPTR, "out is NULL, a valid pointer is required");
  X.handle = &null;
  refused(&c, ACLNN_ERR_PARAM_NULLPTR, "self is NULL, a valid pointer is required");
  K.handle = &null;
  refused(&c, ACLNN_ERR_PARAM_NULLPTR, "kernelSize is NULL, a valid pointer is required");
  c = backward();
  K.handle = X.handle = GO.handle = &null;
  refused(&c, BAD, "%s has no masks, call aclnnMaxPool2dWithIndicesBackward instead", name);
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
      cmocka_unit_test(arrays_must_make_sense),
      cmocka_unit_test(ranks_and_shapes_must_match),
      cmocka_unit_test(a_mask_is_contiguous),
      cmocka_unit_test(sizes_that_overflow_are_refused),
      cmocka_unit_test_setup_teardown(what_is_written_overlaps_nothing, set_up_cpu,
                                      tear_down_device),
      cmocka_unit_test_setup_teardown(a_gradient_overlaps_no_mask, set_up_cpu, tear_down_device),
      cmocka_unit_test_setup_teardown(a_mask_has_indices_and_zeros, set_up_cpu, tear_down_device),
      cmocka_unit_test_setup_teardown(a_mask_of_single_cells_is_zeros, set_up_cpu,
                                      tear_down_device),
      cmocka_unit_test_setup_teardown(empty_batches_need_nothing, set_up_cpu, tear_down_device),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
