/* SPDX-License-Identifier: Apache-2.0 */
/* What aclnnAvgPool2dBackward refuses, and in which words; what it accepts although it looks
 * odd. */
#include "expect.h"
#include "shape.h"
#include "aclnn/opdev/op_errno.h"
#include "aclnnop/aclnn_avgpool2d_backward.h"
#include "core/dtype.h"

enum { GRAD_OUT, SELF, GRAD_IN, TENSORS };
enum { KERNEL, STRIDE, PADDING, ARRAYS };
enum { BAD = ACLNN_ERR_PARAM_INVALID, CELLS = 2 * 3 * 5 * 5 };
static const char *const names[] = {"gradOutput", "self", "gradInput"};
static const char *const array_names[] = {"kernelSize", "stride", "padding"};
static const int64_t huge = INT64_C(1) << 62;

struct ints {
  uint64_t count;
  int64_t values[3];
  const void *const *handle; /* passed instead */
};

struct call {
  struct shape t[TENSORS];
  struct ints a[ARRAYS];
  bool ceil_mode;
  int64_t divisor;
  int8_t math;
};

/* The tensors and arrays of a call named c. */
#define GO c.t[GRAD_OUT]
#define X c.t[SELF]
#define GI c.t[GRAD_IN]
#define K c.a[KERNEL]
#define S c.a[STRIDE]
#define P c.a[PADDING]

#define PAIR(first, second) ((struct ints){2, {first, second}, NULL})

/* Planes of 5 x 5 cells, windows of 2 x 2 side by side, outputs of 2 x 2. */
static struct call valid(void) {
  struct call c = {.a = {PAIR(2, 2), PAIR(2, 2), PAIR(0, 0)}};
  for (int i = 0; i < TENSORS; i++) {
    const int64_t length = i == GRAD_OUT ? 2 : 5;
    c.t[i] = (struct shape){.rank = 4, .format = ACL_FORMAT_NCHW, .dtype = ACL_FLOAT};
    DIMS(c.t[i], 2, 3, length, length);
  }
  return c;
}

static aclnnStatus phase_1(const struct call *c, uint64_t *size, aclOpExecutor **executor) {
  const void *t[TENSORS], *a[ARRAYS];
  for (int i = 0; i < TENSORS; i++) {
    t[i] = shape_tensor(&c->t[i]);
    const struct ints *n = &c->a[i];
    a[i] = n->handle != NULL ? *n->handle : aclCreateIntArray(n->values, n->count);
  }
  const aclnnStatus status = aclnnAvgPool2dBackwardGetWorkspaceSize(
      t[GRAD_OUT], t[SELF], a[KERNEL], a[STRIDE], a[PADDING], c->ceil_mode, true, c->divisor,
      c->math, (aclTensor *)(uintptr_t)t[GRAD_IN], size, executor);
  for (int i = 0; i < TENSORS; i++) {
    if (c->t[i].handle == NULL) (void)aclDestroyTensor(t[i]);
    if (c->a[i].handle == NULL) (void)aclDestroyIntArray(a[i]);
  }
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
  (void)snprintf(text, sizeof text, "aclnnAvgPool2dBackwardGetWorkspaceSize: %s\n", sentence);
  FAILS(phase_1(c, &size, &executor), code, text);
  assert_int_equal(size, 77);
  assert_ptr_equal(executor, before);
}

static aclOpExecutor *prepare(const struct call *c) {
  uint64_t size = 77;
  aclOpExecutor *executor = NULL;
  OK_OR_SAY(phase_1(c, &size, &executor));
  assert_int_equal(size, 0);
  return executor;
}

/* A valid call c with these changes. */
#define REFUSED(sentence, ...)        \
  do {                                \
    struct call c = valid();          \
    __VA_ARGS__;                      \
    refused(&c, BAD, "%s", sentence); \
  } while (0)
#define ACCEPTED(...)                                \
  do {                                               \
    struct call c = valid();                         \
    __VA_ARGS__;                                     \
    OK_OR_SAY(aclDestroyAclOpExecutor(prepare(&c))); \
  } while (0)

static void set_types(struct call *c, aclDataType dtype) {
  for (int i = 0; i < TENSORS; i++) c->t[i].dtype = dtype;
}

static void set_formats(struct call *c, aclFormat format) {
  for (int i = 0; i < TENSORS; i++) c->t[i].format = format;
}

/* Unbatched: the batch's 2 becomes the channels. */
static void set_rank_3(struct call *c) {
  for (int i = 0; i < TENSORS; i++) {
    c->t[i].rank = 3;
    c->t[i].dims[1] = c->t[i].dims[2];
  }
}

/* self and gradInput. */
static void set_inputs(struct call *c, int axis, int64_t length) {
  c->t[SELF].dims[axis] = c->t[GRAD_IN].dims[axis] = length;
}

static void the_first_null_argument_is_named_and_results_before_all(void **state) {
  (void)state;
  const void *const null = NULL;
  uint64_t size;
  aclOpExecutor *executor;
  struct call c = valid();
  const void *const **order[] = {&GO.handle, &X.handle, &K.handle, &P.handle, &GI.handle};
  static const char *const argument[] = {"gradOutput", "self", "kernelSize", "padding",
                                         "gradInput"};
  for (int i = 4; i >= 0; i--) { /* those behind it are NULL as well */
    *order[i] = &null;
    refused(&c, ACLNN_ERR_PARAM_NULLPTR, "%s is NULL, a valid pointer is required", argument[i]);
  }
  FAILS(phase_1(&c, &size, NULL), ACLNN_ERR_PARAM_NULLPTR, ": executor is NULL");
  FAILS(phase_1(&c, NULL, &executor), ACLNN_ERR_PARAM_NULLPTR, ": workspaceSize is NULL");
}

static void what_is_no_tensor_or_array_is_refused(void **state) {
  (void)state;
  static const char *const what[] = {"not a handle", "an int array", "a destroyed tensor"};
  const void *const wrong[] = {
      &what, aclCreateIntArray(NULL, 0),
      aclCreateTensor(NULL, 0, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, NULL, 0, NULL)};
  const void *const gone = aclCreateIntArray(NULL, 0);
  OK_OR_SAY(aclDestroyTensor(wrong[2]));
  OK_OR_SAY(aclDestroyIntArray(gone));
  for (int i = 0; i < 3 * TENSORS; i++) {
    struct call c = valid();
    c.t[i / 3].handle = &wrong[i % 3];
    refused(&c, BAD, "%s is %s, a live aclTensor is required", names[i / 3], what[i % 3]);
  }
  for (int i = 0; i < 2 * ARRAYS; i++) {
    struct call c = valid();
    c.a[i / 2].handle = i % 2 == 0 ? &wrong[0] : &gone;
    refused(&c, BAD, "%s is %s, a live aclIntArray is required", array_names[i / 2],
            i % 2 == 0 ? what[0] : "a destroyed int array");
  }
  OK_OR_SAY(aclDestroyIntArray(wrong[1]));
}

static void types_must_match_and_be_known(void **state) {
  (void)state;
  for (int i = 0; i < TENSORS; i++) {
    struct call c = valid();
    c.t[i].dtype = ACL_DOUBLE;
    refused(&c, BAD, "%s is DT_DOUBLE, allowed is DT_FLOAT, DT_FLOAT16 or DT_BF16", names[i]);
  }
  REFUSED("gradOutput is DT_FLOAT16, expected gradInput's DT_FLOAT", GO.dtype = ACL_FLOAT16);
  REFUSED("self is DT_BF16, expected gradInput's DT_FLOAT", X.dtype = ACL_BF16);
  ACCEPTED(set_types(&c, ACL_FLOAT16));
  ACCEPTED(set_types(&c, ACL_BF16));
}

static void the_format_is_nchw_or_ncl(void **state) {
  (void)state;
  static const aclFormat others[] = {ACL_FORMAT_ND,   ACL_FORMAT_NHWC,       ACL_FORMAT_NC1HWC0,
                                     ACL_FORMAT_HWCN, ACL_FORMAT_FRACTAL_NZ, ACL_FORMAT_NCDHW};
  for (int i = 0; i < 6 * TENSORS; i++) {
    struct call c = valid();
    c.t[i % 3].format = others[i / 3];
    refused(&c, BAD, "%s has format %s, allowed is NCHW%s", names[i % 3],
            pg_format_name(others[i / 3]), i % 3 == SELF ? " or NCL" : " for 4 axes");
    set_rank_3(&c);
    refused(&c, BAD, "%s has format %s, allowed is NCHW or NCL", names[i % 3],
            pg_format_name(others[i / 3]));
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
  REFUSED("gradOutput is [2,3], it must have 3 or 4 axes", GO.rank = X.rank = GI.rank = 2);
  REFUSED("gradOutput is [2,3,2,2,0], it must have 3 or 4 axes", GO.rank = X.rank = GI.rank = 5);
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

static void arrays_have_one_or_two_values(void **state) {
  (void)state;
  const void *const null = NULL;
  for (int i = 0; i < ARRAYS; i++) {
    struct call c = valid();
    c.a[i].count = 3;
    refused(&c, BAD, "%s has 3 values, allowed is %d to 2", array_names[i], i == STRIDE ? 0 : 1);
    c.a[i].count = 0;
    if (i != STRIDE) refused(&c, BAD, "%s has 0 values, allowed is 1 to 2", array_names[i]);
    c.a[i].count = 1;
    OK_OR_SAY(aclDestroyAclOpExecutor(prepare(&c)));
  }
  for (int i = 0; i < 2; i++) { /* no stride is the kernel */
    struct call c = valid();
    S.count = 0;
    S.handle = i == 0 ? NULL : &null;
    OK_OR_SAY(aclDestroyAclOpExecutor(prepare(&c)));
    K = PAIR(3, 2);
    refused(&c, BAD,
            "gradOutput is [2,3,2,2], expected [2,3,1,2] for self [2,3,5,5], kernelSize [3,2], "
            "stride [3,2], padding [0,0], ceilMode false");
  }
}

static void windows_must_make_sense(void **state) {
  (void)state;
  REFUSED("kernelSize is [0,2], both must be positive", K = PAIR(0, 2));
  REFUSED("kernelSize is [2,-1], both must be positive", K = PAIR(2, -1), S.count = 3);
  REFUSED("stride is [2,0], both must be positive", S = PAIR(2, 0));
  REFUSED("stride is [-2,-2], both must be positive", S = PAIR(-2, 9), S.count = 1);
  REFUSED("padding is [-1,0], allowed is 0 to half of kernelSize [2,2]", P = PAIR(-1, 0));
  REFUSED("padding is [1,2], allowed is 0 to half of kernelSize [2,3]", P = PAIR(1, 2),
          K = PAIR(2, 3));
  ACCEPTED(P = PAIR(1, 1), P.count = 1, GO.dims[2] = GO.dims[3] = 3);
  ACCEPTED(c.divisor = INT64_MIN);
}

static void math_types_have_rules(void **state) {
  (void)state;
  REFUSED("cubeMathType is -1, allowed is 0 to 3", c.math = -1);
  REFUSED("cubeMathType is 4, allowed is 0 to 3", c.math = 4);
  REFUSED("cubeMathType is 2 (USE_FP16), which DT_BF16 does not support", c.math = 2,
          set_types(&c, ACL_BF16));
  REFUSED("cubeMathType is 3 (USE_HF32), which is for DT_FLOAT, not for DT_FLOAT16", c.math = 3,
          set_types(&c, ACL_FLOAT16));
  REFUSED("cubeMathType is 3 (USE_HF32), which is for DT_FLOAT, not for DT_BF16", c.math = 3,
          set_types(&c, ACL_BF16));
  for (int8_t math = 0; math <= 3; math++) ACCEPTED(c.math = math);
  for (int8_t math = 0; math <= 2; math++) ACCEPTED(c.math = math, set_types(&c, ACL_FLOAT16));
  for (int8_t math = 0; math <= 1; math++) ACCEPTED(c.math = math, set_types(&c, ACL_BF16));
}

static void grad_output_has_the_pooled_size(void **state) {
  (void)state;
  REFUSED(
      "gradOutput is [1,16,2,2], expected [1,16,3,3] for self [1,16,5,5], kernelSize [2,2], "
      "stride [2,2], padding [0,0], ceilMode true",
      DIMS(GO, 1, 16, 2, 2), DIMS(X, 1, 16, 5, 5), DIMS(GI, 1, 16, 5, 5), c.ceil_mode = true);
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
      DIMS(GI, 62, 49, 33, 51), DIMS(X, 62, 49, 33, 51), DIMS(GO, 62, 49, 16, 25),
      STRIDES(GI, 1635723058, 1125898167, 1089018456, 1656478042));
  ACCEPTED(STRIDES(GI, 90, 30, 5, 6)); /* rows in columns: apart, though not nested */
  ACCEPTED(STRIDES(GO, 3, 1, 1, 1), STRIDES(X, 1, 1, 1, 1));
  REFUSED("self has offset -1, it must not be negative", X.offset = -1);
  REFUSED("gradInput is [2,3,5,5], too large for 64-bit addresses", GI.offset = INT64_MAX / 4);
  REFUSED("gradOutput is [2,3,2,2], too large for 64-bit addresses", STRIDES(GO, huge, huge, 2, 1));
  REFUSED("gradOutput is [2,3,-9223372036854775808,2], no dim may be negative",
          GO.dims[2] = INT64_MIN);
  ACCEPTED(DIMS(GO, 2, 1, 2, 2), DIMS(X, 2, 1, 5, 5), DIMS(GI, 2, 1, 5, 5),
           STRIDES(GI, 25, huge, 5, 1), STRIDES(GO, 4, INT64_MAX, 2, 1));
  ACCEPTED(STRIDES(GO, 0), STRIDES(X, 0), GI.offset = 2);
}

static void sizes_that_overflow_are_refused(void **state) {
  (void)state;
  REFUSED(
      "kernel 4611686018427387904, stride 2, padding 0 and dilation 1 overflow 64 bits on an axis "
      "of "
      "length 5",
      K = PAIR(huge, 2));
  REFUSED(
      "kernel 2, stride 9223372036854775807, padding 0 and dilation 1 overflow 64 bits on an axis "
      "of "
      "length 5",
      S = PAIR(2, INT64_MAX));
  REFUSED("self is [1,0,5,5] and padding [576460752303423488,2], too large for 64-bit windows",
          K = PAIR(huge / 4, 4), P = PAIR(huge / 8, 2), set_inputs(&c, 0, 1), set_inputs(&c, 1, 0),
          GO.dims[0] = 1, GO.dims[1] = 0);
  REFUSED(
      "kernel 2, stride 2, padding 0 and dilation 1 overflow 64 bits on an axis of "
      "length 9223372036854775807",
      set_inputs(&c, 2, INT64_MAX), set_inputs(&c, 0, 0), GO.dims[0] = 0);
  ACCEPTED(S = PAIR(huge, huge), GO.dims[2] = GO.dims[3] = 1);
}

static void work_counted_in_bytes_does_not_overflow(void **state) {
  (void)state;
  ACCEPTED(DIMS(X, INT64_C(1) << 30, INT64_C(1) << 30, 1, 1), put(GO.dims, X.dims),
           put(GI.dims, X.dims), K = S = PAIR(1, 1), STRIDES(X, 0), STRIDES(GO, 0));
}

static void truly_empty_work_needs_nothing(void **state) {
  (void)state;
  for (int axis = 0; axis < 4; axis++) {
    struct call c = valid();
    for (int i = 0; i < TENSORS; i++) c.t[i].dims[axis] = 0;
    OK_OR_SAY(aclnnAvgPool2dBackward(NULL, 0, prepare(&c), NULL));
    OK_OR_SAY(aclrtSynchronizeStream(NULL));
  }
  ACCEPTED(set_inputs(&c, 2, 0)); /* gradOutput has no cells to come from */
  ACCEPTED(DIMS(X, huge, huge, 5, 0), DIMS(GI, huge, huge, 5, 0), DIMS(GO, huge, huge, 2, 0));
}

static void an_empty_grad_output_leaves_zeros(void **state) {
  (void)state;
  for (int axis = 2; axis < 4; axis++) {
    float cells[CELLS];
    struct call c = valid();
    for (int i = 0; i < CELLS; i++) cells[i] = -1;
    GI.data = cells;
    GO.dims[axis] = 0;
    GO.dims[5 - axis] = huge;
    STRIDES(GO, 12, 4, 2, 1);
    OK_OR_SAY(aclnnAvgPool2dBackward(NULL, 0, prepare(&c), NULL));
    OK_OR_SAY(aclrtSynchronizeStream(NULL));
    for (int i = 0; i < CELLS; i++) assert_true(cells[i] == 0);
  }
}

static int set_up(void **state) {
  setenv("POOLGRAD_DEVICES", "cpu", 1); /* device memory is looked into here */
  return set_up_device(state);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_first_null_argument_is_named_and_results_before_all),
      cmocka_unit_test(what_is_no_tensor_or_array_is_refused),
      cmocka_unit_test(types_must_match_and_be_known),
      cmocka_unit_test(the_format_is_nchw_or_ncl),
      cmocka_unit_test(ranks_are_3_or_4_and_equal),
      cmocka_unit_test(no_dim_is_negative),
      cmocka_unit_test(arrays_have_one_or_two_values),
      cmocka_unit_test(windows_must_make_sense),
      cmocka_unit_test(math_types_have_rules),
      cmocka_unit_test(grad_output_has_the_pooled_size),
      cmocka_unit_test(views_must_make_sense),
      cmocka_unit_test(sizes_that_overflow_are_refused),
      cmocka_unit_test(work_counted_in_bytes_does_not_overflow),
      cmocka_unit_test(truly_empty_work_needs_nothing),
      cmocka_unit_test(an_empty_grad_output_leaves_zeros),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down_device);
}
