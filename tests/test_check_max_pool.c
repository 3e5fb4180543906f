/* SPDX-License-Identifier: Apache-2.0 */
/* What aclnnMaxPool2dWithIndicesBackward refuses, and in which words; what it accepts although it
 * looks odd. */
#include "expect.h"
#include "product.h"
#include "shape.h"
#include "aclnn/opdev/op_errno.h"
#include "aclnnop/aclnn_max_pool2d_with_indices_backward.h"
#include "core/dtype.h"

enum { GRAD_OUT, SELF, INDICES, GRAD_IN, TENSORS };
enum { KERNEL, STRIDE, PADDING, DILATION, ARRAYS };
enum { BAD = ACLNN_ERR_PARAM_INVALID };
static const char *const names[] = {"gradOutput", "self", "indices", "gradInput"};
static const char *const array_names[] = {"kernelSize", "stride", "padding", "dilation"};
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
};

/* The tensors and arrays of a call named c. */
#define GO c.t[GRAD_OUT]
#define X c.t[SELF]
#define IDX c.t[INDICES]
#define GI c.t[GRAD_IN]
#define K c.a[KERNEL]
#define S c.a[STRIDE]
#define P c.a[PADDING]
#define D c.a[DILATION]

#define PAIR(first, second) ((struct ints){2, {first, second}, NULL})

/* Planes of 5 x 5 cells, windows of 2 x 2 side by side, outputs of 2 x 2. */
static struct call valid(void) {
  struct call c = {.a = {PAIR(2, 2), PAIR(2, 2), PAIR(0, 0), PAIR(1, 1)}};
  for (int i = 0; i < TENSORS; i++) {
    const int64_t length = i == SELF || i == GRAD_IN ? 5 : 2;
    c.t[i] = (struct shape){.rank = 4, .format = ACL_FORMAT_NCHW, .dtype = ACL_FLOAT};
    DIMS(c.t[i], 2, 3, length, length);
  }
  IDX.dtype = ACL_INT32;
  return c;
}

static aclnnStatus phase_1(const struct call *c, uint64_t *size, aclOpExecutor **executor) {
  const void *t[TENSORS], *a[ARRAYS];
  for (int i = 0; i < TENSORS; i++) {
    t[i] = shape_tensor(&c->t[i]);
    const struct ints *n = &c->a[i];
    a[i] = n->handle != NULL ? *n->handle : aclCreateIntArray(n->values, n->count);
  }
  const aclnnStatus status = aclnnMaxPool2dWithIndicesBackwardGetWorkspaceSize(
      t[GRAD_OUT], t[SELF], t[INDICES], a[KERNEL], a[STRIDE], a[PADDING], a[DILATION], c->ceil_mode,
      (aclTensor *)(uintptr_t)t[GRAD_IN], size, executor);
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
  (void)snprintf(text, sizeof text, "aclnnMaxPool2dWithIndicesBackwardGetWorkspaceSize: %s\n",
                 sentence);
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

static void set_gradients(struct call *c, aclDataType dtype) {
  c->t[GRAD_OUT].dtype = c->t[SELF].dtype = c->t[GRAD_IN].dtype = dtype;
}

static void set_formats(struct call *c, aclFormat format) {
  for (int i = 0; i < TENSORS; i++) c->t[i].format = format;
}

static void set_channels_last(struct call *c) {
  set_formats(c, ACL_FORMAT_NHWC);
  for (int i = 0; i < TENSORS; i++) {
    c->t[i].dims[1] = c->t[i].dims[2];
    c->t[i].dims[3] = 3;
  }
}

/* self and gradInput; gradOutput and indices. */
static void set_inputs(struct call *c, int axis, int64_t length) {
  c->t[SELF].dims[axis] = c->t[GRAD_IN].dims[axis] = length;
}

static void set_outputs(struct call *c, int axis, int64_t length) {
  c->t[GRAD_OUT].dims[axis] = c->t[INDICES].dims[axis] = length;
}

static void the_first_null_argument_is_named_and_results_before_all(void **state) {
  (void)state;
  const void *const null = NULL;
  uint64_t size;
  aclOpExecutor *executor;
  struct call c = valid();
  const void *const **order[] = {&GO.handle, &X.handle, &IDX.handle, &K.handle,
                                 &S.handle,  &P.handle, &D.handle,   &GI.handle};
  for (int i = 7; i >= 0; i--) { /* those behind it are NULL as well */
    *order[i] = &null;
    refused(&c, ACLNN_ERR_PARAM_NULLPTR, "%s is NULL, a valid pointer is required",
            i == 7   ? "gradInput"
            : i >= 3 ? array_names[i - 3]
                     : names[i]);
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

static void types_and_formats_must_match_and_be_known(void **state) {
  (void)state;
  static const aclFormat others[] = {ACL_FORMAT_NC1HWC0, ACL_FORMAT_FRACTAL_NZ, ACL_FORMAT_NDHWC,
                                     ACL_FORMAT_HWCN,    ACL_FORMAT_NCDHW,      ACL_FORMAT_NC};
  struct call c = valid();
  REFUSED("self is DT_DOUBLE, allowed is DT_FLOAT, DT_FLOAT16 or DT_BF16",
          set_gradients(&c, ACL_DOUBLE));
  REFUSED("gradOutput is DT_FLOAT16, expected self's DT_FLOAT", GO.dtype = ACL_FLOAT16);
  REFUSED("gradInput is DT_BF16, expected self's DT_FLOAT", GI.dtype = ACL_BF16);
  REFUSED("indices is DT_INT8, allowed is DT_INT32 or DT_INT64", IDX.dtype = ACL_INT8);
  ACCEPTED(set_gradients(&c, ACL_BF16), IDX.dtype = ACL_INT64);
  REFUSED("gradOutput has format ND, expected self's NCHW", GO.format = ACL_FORMAT_ND);
  REFUSED("gradInput has format NHWC, expected self's NCHW", GI.format = ACL_FORMAT_NHWC);
  REFUSED("indices has format NCL, expected self's NCHW", IDX.format = ACL_FORMAT_NCL);
  for (int i = 0; i < 6; i++) {
    set_formats(&c, others[i]);
    refused(&c, BAD, "self has format %s, allowed is ND, NCHW, NCL or NHWC",
            pg_format_name(others[i]));
  }
  ACCEPTED(set_formats(&c, ACL_FORMAT_ND));
  ACCEPTED(set_formats(&c, ACL_FORMAT_NCL));
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
          set_formats(&c, ACL_FORMAT_NHWC), DIMS(X, 5, 5, 3), DIMS(GI, 5, 5, 3), DIMS(GO, 3, 2, 2),
          X.rank = GI.rank = GO.rank = IDX.rank = 3);
}

static void arrays_have_one_or_two_sensible_values(void **state) {
  (void)state;
  for (int i = 0; i < ARRAYS; i++) {
    struct call c = valid();
    c.a[i].count = 3;
    refused(&c, BAD, "%s has 3 values, allowed is %d to 2", array_names[i], i == STRIDE ? 0 : 1);
    c.a[i].count = 0;
    if (i != STRIDE) refused(&c, BAD, "%s has 0 values, allowed is 1 to 2", array_names[i]);
    c.a[i].count = 1;
    accepted(&c);
  }
  REFUSED("padding has 3 values, allowed is 1 to 2", P.count = 3, K = PAIR(0, 0)); /* comes first */
  ACCEPTED(S.count = 0);
  REFUSED(
      "gradOutput is [2,3,2,2], expected [2,3,1,2] for self [2,3,5,5], kernelSize [3,2], "
      "stride [3,2], padding [0,0], dilation [1,1], ceilMode false",
      S.count = 0, K = PAIR(3, 2));
  REFUSED("kernelSize is [0,2], both must be positive", K = PAIR(0, 2));
  REFUSED("stride is [2,0], both must be positive", S = PAIR(2, 0));
  REFUSED("stride is [-2,-2], both must be positive", S = PAIR(-2, 9), S.count = 1);
  REFUSED("padding is [-1,0], allowed is 0 to half of kernelSize [2,2]", P = PAIR(-1, 0));
  REFUSED("padding is [1,2], allowed is 0 to half of kernelSize [2,3]", P = PAIR(1, 2),
          K = PAIR(2, 3));
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
  ACCEPTED(DIMS(X, 3, 5, 5), DIMS(GI, 3, 5, 5), DIMS(GO, 3, 2, 2), DIMS(IDX, 3, 2, 2),
           X.rank = GI.rank = GO.rank = IDX.rank = 3);
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
      DIMS(GO, 1, 16, 2, 2), DIMS(X, 1, 16, 5, 5), DIMS(GI, 1, 16, 5, 5), c.ceil_mode = true);
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
  REFUSED(
      "kernel 4611686018427387904, stride 2, padding 0 and dilation 3 overflow 64 bits on an axis "
      "of "
      "length 5",
      K = PAIR(huge, 2), D = PAIR(3, 1));
  REFUSED(
      "kernel 2, stride 2, padding 0 and dilation 9223372036854775807 overflow 64 bits on an axis "
      "of "
      "length 5",
      D = PAIR(1, INT64_MAX));
  REFUSED(
      "kernel 2, stride 9223372036854775807, padding 0 and dilation 1 overflow 64 bits on an axis "
      "of "
      "length 5",
      S = PAIR(INT64_MAX, 2));
  REFUSED(
      "kernel 9223372036854775807, stride 2, padding 4611686018427387903 and dilation 1 "
      "overflow 64 bits on an axis of "
      "length 5",
      K = PAIR(INT64_MAX, 2), P = PAIR(INT64_MAX / 2, 0));
  REFUSED(
      "kernel 2, stride 2, padding 0 and dilation 1 overflow 64 bits on an axis of "
      "length 9223372036854775807",
      set_inputs(&c, 2, INT64_MAX));
  REFUSED("gradOutput is [2,3,2,1073741824], too large for 64-bit addresses",
          set_inputs(&c, 3, INT64_C(1) << 31), set_outputs(&c, 3, INT64_C(1) << 30), STRIDES(X, 0),
          STRIDES(GO, 0, 0, 0, huge));
  ACCEPTED(S = PAIR(huge, huge), set_outputs(&c, 2, 1), set_outputs(&c, 3, 1));
  /* bytes beyond 64 bits, all in a few places */
  ACCEPTED(DIMS(X, INT64_C(1) << 30, INT64_C(1) << 30, 1, 1), K = S = PAIR(1, 1),
           put(GI.dims, X.dims), put(GO.dims, X.dims), put(IDX.dims, X.dims), STRIDES(X, 0),
           STRIDES(GO, 0), STRIDES(IDX, 0));
}

static void as_910b(void **product) {
  const char *name = *product;
  struct call c = valid();
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
  check_product(as_910b, "Ascend910B1");
  check_product(as_910b, "Ascend910_93");
  check_product(as_950, "Ascend950");
  check_product(as_950, "Ascend910_95");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(products_have_limits_of_their_own),
      cmocka_unit_test(the_first_null_argument_is_named_and_results_before_all),
      cmocka_unit_test(what_is_no_tensor_or_array_is_refused),
      cmocka_unit_test(types_and_formats_must_match_and_be_known),
      cmocka_unit_test(nhwc_has_its_channels_last),
      cmocka_unit_test(arrays_have_one_or_two_sensible_values),
      cmocka_unit_test(ranks_and_shapes_must_match),
      cmocka_unit_test(grad_output_has_the_pooled_size),
      cmocka_unit_test(views_must_make_sense),
      cmocka_unit_test(no_size_overflows),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
