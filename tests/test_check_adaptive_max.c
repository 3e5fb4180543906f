/* SPDX-License-Identifier: Apache-2.0 */
/* What aclnnAdaptiveMaxPool2dBackward and aclnnAdaptiveMaxPool3dBackward refuse, and in which
 * words; what they accept although it looks odd. */
#include "expect.h"
#include "product.h"
#include "shape.h"
#include "aclnn/opdev/op_errno.h"
#include "aclnnop/aclnn_adaptive_max_pool2d_backward.h"
#include "aclnnop/aclnn_adaptive_max_pool3d_backward.h"
#include "core/dtype.h"

enum { GRAD_OUT, SELF, INDICES, GRAD_IN, TENSORS };
enum { CELLS = 2 * 3 * 4 * 4, BAD = ACLNN_ERR_PARAM_INVALID };
static const char *const names[] = {"gradOutput", "self", "indices", "gradInput"};
static const int64_t huge = INT64_C(1) << 62;

struct call {
  int spatial; /* 2 or 3 */
  struct shape t[TENSORS];
};

/* The tensors of a call named c. */
#define GO c.t[GRAD_OUT]
#define X c.t[SELF]
#define IDX c.t[INDICES]
#define GI c.t[GRAD_IN]

/* Planes of 4 x 4 (x 4) cells, outputs of 2 x 2 (x 2), a batch of 2 with 3 channels. */
static struct call valid(int spatial) {
  struct call c = {.spatial = spatial};
  for (int i = 0; i < TENSORS; i++) {
    const int64_t length = i == SELF || i == GRAD_IN ? 4 : 2;
    c.t[i] = (struct shape){.rank = spatial + 2, .format = ACL_FORMAT_ND, .dtype = ACL_FLOAT};
    DIMS(c.t[i], 2, 3, length, length, length);
  }
  IDX.dtype = ACL_INT32;
  return c;
}

static aclnnStatus phase_1(const struct call *c, uint64_t *size, aclOpExecutor **executor) {
  const void *t[TENSORS];
  for (int i = 0; i < TENSORS; i++) t[i] = shape_tensor(&c->t[i]);
  const aclnnStatus status = (c->spatial == 2 ? aclnnAdaptiveMaxPool2dBackwardGetWorkspaceSize
                                              : aclnnAdaptiveMaxPool3dBackwardGetWorkspaceSize)(
      t[GRAD_OUT], t[SELF], t[INDICES], (aclTensor *)(uintptr_t)t[GRAD_IN], size, executor);
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
  (void)snprintf(text, sizeof text, "aclnnAdaptiveMaxPool%ddBackwardGetWorkspaceSize: %s\n",
                 c->spatial, sentence);
  FAILS(phase_1(c, &size, &executor), code, text);
  assert_int_equal(size, 77);
  assert_ptr_equal(executor, before);
}

static void accepted(const struct call *c) {
  uint64_t size;
  aclOpExecutor *executor = NULL;
  OK_OR_SAY(phase_1(c, &size, &executor));
  OK_OR_SAY(aclDestroyAclOpExecutor(executor));
}

/* The call needs no workspace and runs to its end. */
static void run(const struct call *c) {
  uint64_t size = 77;
  aclOpExecutor *executor = NULL;
  OK_OR_SAY(phase_1(c, &size, &executor));
  assert_int_equal(size, 0);
  OK_OR_SAY((c->spatial == 2 ? aclnnAdaptiveMaxPool2dBackward : aclnnAdaptiveMaxPool3dBackward)(
      NULL, 0, executor, NULL));
  OK_OR_SAY(aclrtSynchronizeStream(NULL));
}

/* A valid call c with these changes. */
#define REFUSED(spatial, sentence, ...) \
  do {                                  \
    struct call c = valid(spatial);     \
    __VA_ARGS__;                        \
    refused(&c, BAD, "%s", sentence);   \
  } while (0)
#define ACCEPTED(spatial, ...)      \
  do {                              \
    struct call c = valid(spatial); \
    __VA_ARGS__;                    \
    accepted(&c);                   \
  } while (0)

static void set_gradients(struct call *c, aclDataType dtype) {
  c->t[GRAD_OUT].dtype = c->t[SELF].dtype = c->t[GRAD_IN].dtype = dtype;
}

static void set_formats(struct call *c, aclFormat format) {
  for (int i = 0; i < TENSORS; i++) c->t[i].format = format;
}

static void set_ranks(struct call *c, int rank) {
  for (int i = 0; i < TENSORS; i++) c->t[i].rank = rank;
}

/* One plane h x w (x 1). */
static void set_plane(struct call *c, int64_t h, int64_t w) {
  for (int i = 0; i < TENSORS; i++) DIMS(c->t[i], 1, 1, 1, 1, 1);
  c->t[SELF].dims[2] = c->t[GRAD_IN].dims[2] = h;
  c->t[SELF].dims[3] = c->t[GRAD_IN].dims[3] = w;
}

/* Outputs h x w in that plane, all in one place. */
static void set_outputs(struct call *c, int64_t h, int64_t w) {
  for (int i = GRAD_OUT; i <= INDICES; i += INDICES - GRAD_OUT) {
    DIMS(c->t[i], 1, 1, h, w);
    STRIDES(c->t[i], 0);
  }
}

static void missing_results_come_first(void **state) {
  (void)state;
  uint64_t size = 77;
  aclOpExecutor *executor = NULL;
  FAILS(aclnnAdaptiveMaxPool2dBackwardGetWorkspaceSize(NULL, NULL, NULL, NULL, NULL, &executor),
        ACLNN_ERR_PARAM_NULLPTR, "workspaceSize is NULL");
  FAILS(aclnnAdaptiveMaxPool3dBackwardGetWorkspaceSize(NULL, NULL, NULL, NULL, &size, NULL),
        ACLNN_ERR_PARAM_NULLPTR, "executor is NULL");
  assert_int_equal(size, 77);
  assert_null(executor);
}

static void the_first_null_tensor_is_named(void **state) {
  (void)state;
  const void *const null = NULL;
  for (int spatial = 2; spatial <= 3; spatial++) {
    struct call c = valid(spatial);
    for (int i = TENSORS - 1; i >= 0; i--) { /* those behind it are NULL as well */
      c.t[i].handle = &null;
      refused(&c, ACLNN_ERR_PARAM_NULLPTR, "%s is NULL, a valid pointer is required", names[i]);
    }
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
    struct call c = valid(2);
    c.t[i / 3].handle = &wrong[i % 3];
    refused(&c, BAD, "%s is %s, a live aclTensor is required", names[i / 3], what[i % 3]);
  }
  OK_OR_SAY(aclDestroyIntArray(wrong[1]));
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
          GO.dims[1] = IDX.dims[1] = 1);
  REFUSED(3, "gradOutput is [1,3,2,2,2], its N and C must be those of self [2,3,4,4,4]",
          GO.dims[0] = IDX.dims[0] = 1);
}

static void formats_must_match_and_be_positional(void **state) {
  (void)state;
  static const aclFormat fine[] = {ACL_FORMAT_NCHW, ACL_FORMAT_NCL, ACL_FORMAT_NCDHW,
                                   ACL_FORMAT_NC};
  static const aclFormat others[] = {ACL_FORMAT_NHWC,       ACL_FORMAT_NDHWC, ACL_FORMAT_HWCN,
                                     ACL_FORMAT_NC1HWC0,    ACL_FRACTAL_Z_3D, ACL_FORMAT_UNDEFINED,
                                     ACL_FORMAT_FRACTAL_NZ, (aclFormat)99};
  REFUSED(2, "gradOutput has format NCHW, expected self's ND", GO.format = ACL_FORMAT_NCHW);
  REFUSED(3, "indices has format NCDHW, expected self's ND", IDX.format = ACL_FORMAT_NCDHW);
  REFUSED(2, "gradInput has format NCL, expected self's ND", GI.format = ACL_FORMAT_NCL);
  for (int spatial = 2; spatial <= 3; spatial++) {
    struct call c = valid(spatial);
    for (int i = 0; i < 8; i++) {
      set_formats(&c, others[i]);
      refused(&c, BAD, "self has format %s, allowed is ND, NCHW, NCL, NCDHW or NC",
              pg_format_name(others[i]));
    }
    for (int i = 0; i < 4; i++) ACCEPTED(spatial, set_formats(&c, fine[i]));
  }
}

static void ranks_are_those_of_the_operator(void **state) {
  (void)state;
  REFUSED(2, "self is [2,3], it must have 3 or 4 axes", set_ranks(&c, 2));
  REFUSED(2, "self is [], it must have 3 or 4 axes", set_ranks(&c, 0));
  REFUSED(2, "self is [2,3,4,4,4], it must have 3 or 4 axes", set_ranks(&c, 5));
  REFUSED(3, "self is [2,3,4], it must have 4 or 5 axes", set_ranks(&c, 3));
  REFUSED(3, "self is [2,3,4,4,4,0], it must have 4 or 5 axes", set_ranks(&c, 6));
  ACCEPTED(2, set_ranks(&c, 3), GO.dims[0] = IDX.dims[0] = 2);
  ACCEPTED(3, set_ranks(&c, 4), IDX.dtype = ACL_INT64);
}

static void views_must_make_sense(void **state) {
  (void)state;
  REFUSED(2, "gradOutput is [2,3,-2,2], no dim may be negative", GO.dims[2] = IDX.dims[2] = -2);
  REFUSED(3, "self is [2,3,4,4,-4], no dim may be negative", X.dims[4] = GI.dims[4] = -4);
  REFUSED(2, "indices has stride -1 on axis 3, no stride may be negative",
          STRIDES(IDX, 12, 4, 2, -1));
  REFUSED(2, "gradInput has stride 0 on axis 1 of length 3, its cells must not share memory",
          STRIDES(GI, 48, 0, 4, 1));
  REFUSED(2, "gradInput is [2,3,4,4] with strides [48,16,2,3], its cells must not share memory",
          STRIDES(GI, 48, 16, 2, 3));
  REFUSED(2, "self is [-9223372036854775808,3,4,4], no dim may be negative",
          X.dims[0] = GI.dims[0] = INT64_MIN);
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
          set_plane(&c, huge, 4), X.dims[0] = GI.dims[0] = 0);
  ACCEPTED(2, set_plane(&c, 1, INT32_MAX));
  ACCEPTED(3, set_plane(&c, INT32_MAX, 1));
}

static void sizes_that_overflow_are_refused(void **state) {
  (void)state;
  REFUSED(2,
          "self is [1,1,1,4] and gradOutput [1,1,1,4611686018427387904], too large for 64-bit "
          "windows",
          set_plane(&c, 1, 4), set_outputs(&c, 1, huge));
  REFUSED(2,
          "self is [1,1,1,1] and gradOutput [1,1,9223372036854775807,1], too large for 64-bit "
          "windows",
          set_plane(&c, 1, 1), set_outputs(&c, INT64_MAX, 1));
}

static void huge_axes_beside_an_empty_one_overflow_nothing(void **state) {
  (void)state;
  ACCEPTED(2, DIMS(X, huge, huge, 4, 0), DIMS(GI, huge, huge, 4, 0), DIMS(GO, huge, huge, 0, 1),
           DIMS(IDX, huge, huge, 0, 1));
  ACCEPTED(2, DIMS(X, 2, 4, 1, 4), DIMS(GI, 2, 4, 1, 4), DIMS(GO, 2, 4, huge / 2, 0),
           DIMS(IDX, 2, 4, huge / 2, 0));
}

static void work_that_is_absurd_for_its_memory_is_refused(void **state) {
  (void)state;
  ACCEPTED(2, set_plane(&c, 1, 1), set_outputs(&c, INT64_C(1) << 15, INT64_C(1) << 15));
  REFUSED(2,
          "gradOutput is [1,1,2147483648,1073741824], but all tensors together span 12 bytes of "
          "memory, for which at most 1073741824 elements of gradOutput are allowed",
          set_plane(&c, 1, 1), set_outputs(&c, INT64_C(1) << 31, INT64_C(1) << 30));
  /* a gradient, an index and 2^24 cells of 4 bytes each: 64 outputs for every byte, and no more */
  const int64_t bytes = ((INT64_C(1) << 24) + 2) * 4;
  ACCEPTED(2, set_plane(&c, 1, INT64_C(1) << 24), set_outputs(&c, 1, 64 * bytes + 63));
  REFUSED(
      2,
      "gradOutput is [1,1,1,4294967872], but all tensors together span 67108872 bytes of memory, "
      "for which at most 4294967808 elements of gradOutput are allowed",
      set_plane(&c, 1, INT64_C(1) << 24), set_outputs(&c, 1, 64 * bytes + 64));
}

static int set_up(void **state) {
  setenv("POOLGRAD_DEVICES", "cpu", 1); /* device memory is looked into here */
  return set_up_device(state);
}

static void truly_empty_work_needs_nothing(void **state) {
  (void)state;
  for (int axis = 0; axis < 5; axis++) {
    struct call c = valid(axis < 2 ? 2 : 3);
    for (int i = 0; i < TENSORS; i++) c.t[i].dims[axis] = 0;
    run(&c);
  }
}

static void an_empty_grad_output_leaves_zeros(void **state) {
  (void)state;
  for (int axis = 2; axis < 4; axis++) {
    float cells[CELLS];
    struct call c = valid(2);
    for (int i = 0; i < CELLS; i++) cells[i] = -1;
    GI.data = cells;
    GO.dims[axis] = IDX.dims[axis] = 0;
    STRIDES(GO, 12, 4, 2, 1);
    run(&c);
    for (int i = 0; i < CELLS; i++) assert_true(cells[i] == 0);
  }
}

static void as_910b(void **product) {
  struct call c = valid(3);
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
  check_product(as_910b, "Ascend910B1");
  check_product(as_910b, "Ascend910_93");
  check_product(as_950, "Ascend950");
  check_product(as_950, "Ascend910_95");
}

int main(void) {
#define ON_DEVICE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down_device)
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(products_have_limits_of_their_own),
      cmocka_unit_test(missing_results_come_first),
      cmocka_unit_test(the_first_null_tensor_is_named),
      cmocka_unit_test(what_is_no_tensor_is_refused),
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
