/* SPDX-License-Identifier: Apache-2.0 */
/* What aclnnAdaptiveAvgPool3dBackward refuses, and in which words; what it accepts although it
 * looks odd. */
#include "expect.h"
#include "product.h"
#include "shape.h"
#include "aclnn/opdev/op_errno.h"
#include "aclnnop/aclnn_adaptive_avg_pool3d_backward.h"
#include "core/dtype.h"

enum { GRAD_OUT, SELF, RESULT, TENSORS };
enum { BAD = ACLNN_ERR_PARAM_INVALID };
static const char *const names[] = {"gradOutput", "self", "out"};
static const int64_t huge = INT64_C(1) << 62;

struct call {
  struct shape t[TENSORS];
};

/* The tensors of a call named c. */
#define GO c.t[GRAD_OUT]
#define X c.t[SELF]
#define OUT c.t[RESULT]

/* 2 x 3 volumes of 4 x 4 x 4 cells, outputs of 2 x 2 x 2. */
static struct call valid(void) {
  struct call c;
  for (int i = 0; i < TENSORS; i++) {
    const int64_t length = i == GRAD_OUT ? 2 : 4;
    c.t[i] = (struct shape){.rank = 5, .format = ACL_FORMAT_ND, .dtype = ACL_FLOAT};
    DIMS(c.t[i], 2, 3, length, length, length);
  }
  return c;
}

static aclnnStatus phase_1(const struct call *c, uint64_t *size, aclOpExecutor **executor) {
  const void *t[TENSORS];
  for (int i = 0; i < TENSORS; i++) t[i] = shape_tensor(&c->t[i]);
  const aclnnStatus status = aclnnAdaptiveAvgPool3dBackwardGetWorkspaceSize(
      t[GRAD_OUT], t[SELF], (aclTensor *)(uintptr_t)t[RESULT], size, executor);
  for (int i = 0; i < TENSORS; i++)
    if (c->t[i].handle == NULL) (void)aclDestroyTensor(t[i]);
  return status;
}

/* Phase 1 fails with exactly this sentence and writes nothing. */
__attribute__((format(printf, 3, 4))) static void refused(const struct call *c, int code,
                                                          const char *format, ...) {
  char sentence[256], text[400];
  uint64_t size = 77;
  aclOpExecutor *const before = (void *)&size, *executor = before;
  va_list args;
  va_start(args, format);
  (void)vsnprintf(sentence, sizeof sentence, format, args);
  va_end(args);
  (void)snprintf(text, sizeof text, "aclnnAdaptiveAvgPool3dBackwardGetWorkspaceSize: %s\n",
                 sentence);
  FAILS(phase_1(c, &size, &executor), code, text);
  assert_int_equal(size, 77);
  assert_ptr_equal(executor, before);
}

static void accepted(const struct call *c) {
  uint64_t size = 77;
  aclOpExecutor *executor = NULL;
  OK_OR_SAY(phase_1(c, &size, &executor));
  assert_int_equal(size, 0);
  OK_OR_SAY(aclDestroyAclOpExecutor(executor));
}

/* A valid call c with these changes. */
#define REFUSED(sentence, ...)        \
  do {                                \
    struct call c = valid();          \
    __VA_ARGS__;                      \
    refused(&c, BAD, "%s", sentence); \
  } while (0)
#define ACCEPTED(...)        \
  do {                       \
    struct call c = valid(); \
    __VA_ARGS__;             \
    accepted(&c);            \
  } while (0)

static void set_types(struct call *c, aclDataType dtype) {
  for (int i = 0; i < TENSORS; i++) c->t[i].dtype = dtype;
}

static void set_formats(struct call *c, aclFormat format) {
  for (int i = 0; i < TENSORS; i++) c->t[i].format = format;
}

static void set_ranks(struct call *c, int rank) {
  for (int i = 0; i < TENSORS; i++) c->t[i].rank = rank;
}

/* Every tensor has this length on the axis. */
static void set_axis(struct call *c, int axis, int64_t length) {
  for (int i = 0; i < TENSORS; i++) c->t[i].dims[axis] = length;
}

static void set_global(struct call *c) { DIMS(c->t[GRAD_OUT], 2, 3, 1, 1, 1); }

static void missing_results_come_first(void **state) {
  (void)state;
  uint64_t size = 77;
  aclOpExecutor *executor = NULL;
  FAILS(aclnnAdaptiveAvgPool3dBackwardGetWorkspaceSize(NULL, NULL, NULL, NULL, &executor),
        ACLNN_ERR_PARAM_NULLPTR, "workspaceSize is NULL");
  FAILS(aclnnAdaptiveAvgPool3dBackwardGetWorkspaceSize(NULL, NULL, NULL, &size, NULL),
        ACLNN_ERR_PARAM_NULLPTR, "executor is NULL");
  assert_int_equal(size, 77);
  assert_null(executor);
}

static void the_first_null_tensor_is_named(void **state) {
  (void)state;
  const void *const null = NULL;
  struct call c = valid();
  for (int i = TENSORS - 1; i >= 0; i--) { /* those behind it are NULL as well */
    c.t[i].handle = &null;
    refused(&c, ACLNN_ERR_PARAM_NULLPTR, "%s is NULL, a valid pointer is required", names[i]);
  }
}

static void what_is_no_tensor_is_refused(void **state) {
  (void)state;
  static const char *const what[] = {"not a handle", "an int array", "a destroyed tensor"};
  const void *const wrong[] = {
      &what, aclCreateIntArray(NULL, 0),
      aclCreateTensor(NULL, 0, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, NULL, 0, NULL)};
  OK_OR_SAY(aclDestroyTensor(wrong[2]));
  for (int i = 0; i < 3 * TENSORS; i++) {
    struct call c = valid();
    c.t[i / 3].handle = &wrong[i % 3];
    refused(&c, BAD, "%s is %s, a live aclTensor is required", names[i / 3], what[i % 3]);
  }
  OK_OR_SAY(aclDestroyIntArray(wrong[1]));
}

static void a_null_wins_over_a_stale_handle_before_it(void **state) {
  (void)state;
  const void *const null = NULL, *const wrong = &null;
  struct call c = valid();
  GO.handle = &wrong;
  OUT.handle = &null;
  refused(&c, ACLNN_ERR_PARAM_NULLPTR, "out is NULL, a valid pointer is required");
}

static void ranks_are_4_or_5_and_equal(void **state) {
  (void)state;
  REFUSED("self is [2,3,4], it must have 4 or 5 axes", set_ranks(&c, 3));
  REFUSED("self is [], it must have 4 or 5 axes", set_ranks(&c, 0));
  REFUSED("self is [2,3,4,4,4,0], it must have 4 or 5 axes", set_ranks(&c, 6));
  REFUSED("gradOutput is [2,3,2,2], it must have as many axes as self [2,3,4,4,4]", GO.rank = 4);
  REFUSED("out is [2,3,4,4], it must have as many axes as self [2,3,4,4,4]", OUT.rank = 4);
  ACCEPTED(set_ranks(&c, 4), GO.dims[1] = 2);
}

static void every_axis_of_self_is_positive_and_that_of_out(void **state) {
  (void)state;
  for (int axis = 0; axis < 5; axis++) {
    for (int64_t length = -1; length <= 0; length++) {
      struct call c = valid();
      char dims[5][24];
      set_axis(&c, axis, length);
      for (int i = 0; i < 5; i++)
        (void)snprintf(dims[i], sizeof dims[i], "%lld", (long long)X.dims[i]);
      refused(&c, BAD, "self is [%s,%s,%s,%s,%s], axis %d must be at least 1", dims[0], dims[1],
              dims[2], dims[3], dims[4], axis);
    }
  }
  REFUSED("out is [1,3,4,4,4], expected self's shape [2,3,4,4,4]", OUT.dims[0] = 1);
  REFUSED("out is [2,3,4,4,0], expected self's shape [2,3,4,4,4]", OUT.dims[4] = 0);
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
  REFUSED("out is DT_BF16, expected self's DT_FLOAT", OUT.dtype = ACL_BF16);
  ACCEPTED(set_types(&c, ACL_FLOAT16));
  ACCEPTED(set_types(&c, ACL_BF16));
}

static void double_is_for_the_global_average(void **state) {
  (void)state;
  REFUSED("gradOutput is DT_DOUBLE, allowed is DT_FLOAT, DT_FLOAT16 or DT_BF16",
          set_types(&c, ACL_DOUBLE));
  REFUSED("gradOutput is DT_DOUBLE, allowed is DT_FLOAT, DT_FLOAT16 or DT_BF16",
          set_types(&c, ACL_DOUBLE), DIMS(GO, 2, 3, 1, 1, 2));
  REFUSED("gradOutput is DT_INT64, allowed is DT_FLOAT, DT_FLOAT16, DT_BF16 or DT_DOUBLE",
          set_types(&c, ACL_INT64), set_global(&c));
  REFUSED("self is DT_UINT8, allowed is DT_FLOAT, DT_FLOAT16, DT_BF16 or DT_DOUBLE", set_global(&c),
          X.dtype = ACL_UINT8);
  REFUSED("gradOutput is DT_DOUBLE, expected self's DT_FLOAT", set_global(&c),
          GO.dtype = ACL_DOUBLE);
  ACCEPTED(set_types(&c, ACL_DOUBLE), set_global(&c));
  ACCEPTED(set_types(&c, ACL_DOUBLE), set_ranks(&c, 4), DIMS(GO, 2, 1, 1, 1));
}

static void formats_must_match_and_be_positional(void **state) {
  (void)state;
  static const aclFormat fine[] = {ACL_FORMAT_NCHW, ACL_FORMAT_NCL, ACL_FORMAT_NCDHW,
                                   ACL_FORMAT_NC};
  static const aclFormat others[] = {ACL_FORMAT_NHWC,       ACL_FORMAT_NDHWC, ACL_FORMAT_HWCN,
                                     ACL_FORMAT_NDC1HWC0,   ACL_FRACTAL_Z_3D, ACL_FORMAT_UNDEFINED,
                                     ACL_FORMAT_FRACTAL_NZ, (aclFormat)99};
  struct call c = valid();
  REFUSED("gradOutput has format NCDHW, expected self's ND", GO.format = ACL_FORMAT_NCDHW);
  REFUSED("out has format NCHW, expected self's ND", OUT.format = ACL_FORMAT_NCHW);
  for (int i = 0; i < 8; i++) {
    set_formats(&c, others[i]);
    refused(&c, BAD, "gradOutput has format %s, allowed is ND, NCHW, NCL, NCDHW or NC",
            pg_format_name(others[i]));
  }
  for (int i = 0; i < 4; i++) ACCEPTED(set_formats(&c, fine[i]));
}

static void views_must_make_sense(void **state) {
  (void)state;
  REFUSED("self has stride -16 on axis 2, no stride may be negative",
          STRIDES(X, 192, 64, -16, 4, 1));
  REFUSED("gradOutput has stride -1 on axis 4, no stride may be negative",
          STRIDES(GO, 24, 8, 4, 2, -1));
  REFUSED("out has stride 0 on axis 0 of length 2, its cells must not share memory",
          STRIDES(OUT, 0, 64, 16, 4, 1));
  REFUSED("out is [2,3,4,4,4] with strides [192,64,16,4,2], its cells must not share memory",
          STRIDES(OUT, 192, 64, 16, 4, 2));
  REFUSED("out has offset -8, it must not be negative", OUT.offset = -8);
  REFUSED("gradOutput is [2,3,2,2,2], too large for 64-bit addresses", GO.offset = INT64_MAX);
  REFUSED("out is [2,3,4,4,4], too large for 64-bit addresses",
          STRIDES(OUT, INT64_MAX, 64, 16, 4, 1));
  REFUSED("out is [2,3,4,4,4], too large for 64-bit addresses",
          STRIDES(OUT, huge / 2, 64, 16, 4, 1)); /* in bytes */
  ACCEPTED(STRIDES(GO, 0), STRIDES(X, 0), OUT.offset = 3);
  /* channels last: tiles are chosen by numbers of this size */
  ACCEPTED(DIMS(GO, 1, 4, 1, 1, 2), DIMS(X, 1, 4, 1, 1, huge / 64),
           DIMS(OUT, 1, 4, 1, 1, huge / 64), STRIDES(OUT, 0, 1, 0, 0, 4),
           STRIDES(GO, 0, 1, 0, 0, 4));
  ACCEPTED(set_axis(&c, 0, 1), STRIDES(OUT, 0, 64, 16, 4, 1));
}

static void sizes_that_overflow_are_refused(void **state) {
  (void)state;
  REFUSED("gradOutput is [2,3,4611686018427387904,2,2], too large for 64-bit addresses",
          GO.dims[2] = huge, STRIDES(GO, 0));
  REFUSED("self is [2,3,4,4,4611686018427387904], too large for 64-bit addresses",
          X.dims[4] = OUT.dims[4] = huge, STRIDES(X, 0));
  REFUSED(
      "self is [1,1,4,4,4] and gradOutput [1,1,4611686018427387904,1,1], too large for 64-bit "
      "windows",
      set_axis(&c, 0, 1), set_axis(&c, 1, 1), DIMS(GO, 1, 1, huge, 1, 1), STRIDES(GO, 0));
  REFUSED(
      "self is [1,1,1,1,1] and gradOutput [1,1,1,1,9223372036854775807], too large for 64-bit "
      "windows",
      DIMS(X, 1, 1, 1, 1, 1), DIMS(OUT, 1, 1, 1, 1, 1), DIMS(GO, 1, 1, 1, 1, INT64_MAX),
      STRIDES(GO, 0));
}

static void contiguous_dims_beyond_64_bits_are_called_too_large(void **state) {
  (void)state;
  REFUSED("self is [2,3,1099511627776,2097152,4], too large for 64-bit addresses",
          DIMS(X, 2, 3, INT64_C(1) << 40, INT64_C(1) << 21, 4),
          DIMS(OUT, 2, 3, INT64_C(1) << 40, INT64_C(1) << 21, 4));
}

static void work_counted_in_bytes_does_not_overflow(void **state) {
  (void)state;
  ACCEPTED(DIMS(X, INT64_C(1) << 30, INT64_C(1) << 30, 1, 1, 1), OUT = X,
           DIMS(GO, INT64_C(1) << 30, INT64_C(1) << 30, 1, 1, 1), STRIDES(X, 0), STRIDES(GO, 0));
}

static void as_910b(void **product) {
  REFUSED("self is [0,3,4,4,4], axis 0 must be at least 1", set_axis(&c, 0, 0));
  struct call c = valid();
  set_types(&c, ACL_DOUBLE);
  refused(&c, BAD, "gradOutput is DT_DOUBLE, allowed is DT_FLOAT, DT_FLOAT16 or DT_BF16");
  (void)product;
  ACCEPTED((void)c);
}

/* The batch, or C where there is none, may be 0 here. */
static void as_950(void **product) {
  (void)product;
  for (int rank = 4; rank <= 5; rank++) {
    uint64_t size = 77;
    aclOpExecutor *executor = NULL;
    struct call c = valid();
    set_ranks(&c, rank);
    GO.dims[1] = X.dims[1];
    set_axis(&c, 0, 0);
    OK_OR_SAY(phase_1(&c, &size, &executor));
    assert_int_equal(size, 0);
    OK_OR_SAY(aclrtSetDevice(0));
    OK_OR_SAY(aclnnAdaptiveAvgPool3dBackward(NULL, 0, executor, NULL));
    OK_OR_SAY(aclrtSynchronizeStream(NULL));
  }
  REFUSED("self is [-1,3,4,4,4], axis 0 must be at least 0", set_axis(&c, 0, -1));
  REFUSED("self is [2,0,4,4,4], axis 1 must be at least 1", set_axis(&c, 1, 0));
  REFUSED("out is [2,3,4,4,4], expected self's shape [0,3,4,4,4]", GO.dims[0] = X.dims[0] = 0);
  REFUSED("gradOutput is [2,3,2,2,2], its N and C must be those of self [0,3,4,4,4]",
          OUT.dims[0] = X.dims[0] = 0);
}

static void products_have_limits_of_their_own(void **state) {
  (void)state;
  check_product(as_910b, "Ascend910B1");
  check_product(as_910b, "Ascend910_93");
  check_product(as_950, "Ascend950");
  check_product(as_950, "Ascend910_95");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(products_have_limits_of_their_own),
      cmocka_unit_test(missing_results_come_first),
      cmocka_unit_test(the_first_null_tensor_is_named),
      cmocka_unit_test(what_is_no_tensor_is_refused),
      cmocka_unit_test(a_null_wins_over_a_stale_handle_before_it),
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
