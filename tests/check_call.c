/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/wait.h>
#include <unistd.h>

#include "bad_calls.h"
#include "core/dtype.h"
#include "check_call.h" /* the last: its short macros are for tests only */

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* --- making a call -----------------------------------------------------------------------------
 */

void put(int64_t *to, const int64_t from[SHAPE_AXES]) { memcpy(to, from, SHAPE_AXES * sizeof *to); }

void set_inputs(struct check_call *c, int axis, int64_t length) {
  c->t[SELF].dims[axis] = c->t[GRAD_IN].dims[axis] = length;
}

void set_outputs(struct check_call *c, int axis, int64_t length) {
  c->t[GRAD_OUT].dims[axis] = c->t[INDICES].dims[axis] = length;
}

void set_axis(struct check_call *c, int axis, int64_t length) {
  set_inputs(c, axis, length);
  set_outputs(c, axis, length);
}

void set_ranks(struct check_call *c, int rank) {
  for (int i = 0; i < POOL_TENSORS; i++) c->t[i].rank = rank;
}

void set_formats(struct check_call *c, aclFormat format) {
  for (int i = 0; i < POOL_TENSORS; i++) c->t[i].format = format;
}

void set_gradients(struct check_call *c, aclDataType dtype) {
  c->t[GRAD_OUT].dtype = c->t[SELF].dtype = c->t[GRAD_IN].dtype = dtype;
}

struct check_call check_call(enum pool_operator op, int rank, aclFormat format, int64_t in,
                             int64_t out) {
  struct check_call c = {.op = op};
  K = S = PAIR(2, 2);
  P = PAIR(0, 0);
  D = PAIR(1, 1);
  set_ranks(&c, rank);
  set_formats(&c, format);
  set_gradients(&c, ACL_FLOAT);
  IDX.dtype = ACL_INT32;
  set_axis(&c, 0, 2);
  set_axis(&c, 1, 3);
  for (int axis = 2; axis < rank; axis++) {
    set_inputs(&c, axis, in);
    set_outputs(&c, axis, out);
  }
  return c;
}

static const void *make_tensor(const struct shape *s) {
  if (s->handle != NULL) return *s->handle;
  return aclCreateTensor(s->dims, (uint64_t)s->rank, s->dtype, s->strided ? s->strides : NULL,
                         s->offset, s->format, s->dims, (uint64_t)s->rank, s->data);
}

static const void *make_array(const struct ints *n) {
  return n->handle != NULL ? *n->handle : aclCreateIntArray(n->values, n->count);
}

static aclnnStatus first_phase(const struct check_call *c, uint64_t *size,
                               aclOpExecutor **executor) {
  struct operator_arguments a = {
      .ceil = c->ceil_mode, .include_pad = true, .divisor = c->divisor, .cube = c->math};
  for (int i = 0; i < POOL_TENSORS; i++)
    a.tensor[i] = (aclTensor *)(uintptr_t)make_tensor(&c->t[i]);
  for (int i = 0; i < POOL_ARRAYS; i++) a.array[i] = (aclIntArray *)(uintptr_t)make_array(&c->a[i]);
  const aclnnStatus status = operator_calls[c->op].first(&a, size, executor);
  for (int i = 0; i < POOL_TENSORS; i++)
    if (c->t[i].handle == NULL) (void)aclDestroyTensor(a.tensor[i]);
  for (int i = 0; i < POOL_ARRAYS; i++)
    if (c->a[i].handle == NULL) (void)aclDestroyIntArray(a.array[i]);
  return status;
}

/* --- one call ----------------------------------------------------------------------------------
 */

void refused(const struct check_call *c, int code, const char *format, ...) {
  char sentence[256], text[400];
  uint64_t size = 77;
  aclOpExecutor *const before = (void *)&size, *executor = before;
  va_list args;
  va_start(args, format);
  (void)vsnprintf(sentence, sizeof sentence, format, args);
  va_end(args);
  (void)snprintf(text, sizeof text, "%s: %s\n", operator_calls[c->op].first_name, sentence);
  FAILS(first_phase(c, &size, &executor), code, text);
  assert_int_equal(size, 77);
  assert_ptr_equal(executor, before);
}

static bool has(const struct check_call *c, int argument) {
  return (bad_arguments_of(c->op) & 1u << argument) != 0;
}

static aclOpExecutor *prepare(const struct check_call *c, bool without_workspace) {
  uint64_t size = 77;
  aclOpExecutor *executor = NULL;
  OK_OR_SAY(first_phase(c, &size, &executor));
  if (without_workspace) assert_int_equal(size, 0);
  return executor;
}

void accepted(const struct check_call *c) {
  OK_OR_SAY(aclDestroyAclOpExecutor(prepare(c, !has(c, INDICES))));
}

void runs(const struct check_call *c) {
  OK_OR_SAY(operator_calls[c->op].second(NULL, 0, prepare(c, true), NULL));
  OK_OR_SAY(aclrtSynchronizeStream(NULL));
}

void leaves_zeros(struct check_call c) {
  float cells[2 * 3 * 5 * 5];
  int64_t count = 1;
  for (int i = 0; i < GI.rank; i++) count *= GI.dims[i];
  BETWEEN(count, 1, COUNT(cells));
  for (int i = 0; i < count; i++) cells[i] = -1;
  GI.data = cells;
  runs(&c);
  for (int i = 0; i < count; i++) assert_true(cells[i] == 0);
}

/* --- what every operator must refuse -----------------------------------------------------------
 */

static void replace(struct check_call *c, int argument, const void *const *handle) {
  if (argument < POOL_TENSORS)
    c->t[argument].handle = handle;
  else
    c->a[argument - KERNEL_SIZE].handle = handle;
}

void check_nulls(struct check_call right) {
  static const int order[] = {GRAD_OUT, SELF,    INDICES,  KERNEL_SIZE,
                              STRIDE,   PADDING, DILATION, GRAD_IN};
  const void *const null = NULL, *const wrong = &null;
  struct check_call c = right;
  uint64_t size = 77;
  aclOpExecutor *executor = NULL;
  for (int i = COUNT(order) - 1; i >= 0; i--) { /* those behind it are NULL as well */
    const bool optional = c.op == AVG_POOL2D && order[i] == STRIDE; /* it is the kernel's then */
    if (!has(&c, order[i]) || optional) continue;
    replace(&c, order[i], &null);
    refused(&c, ACLNN_ERR_PARAM_NULLPTR, "%s is NULL, a valid pointer is required",
            bad_name(c.op, order[i]));
  }
  FAILS(first_phase(&c, &size, NULL), ACLNN_ERR_PARAM_NULLPTR, ": executor is NULL");
  FAILS(first_phase(&c, NULL, &executor), ACLNN_ERR_PARAM_NULLPTR, ": workspaceSize is NULL");
  assert_int_equal(size, 77);
  assert_null(executor);
  c = right;
  GO.handle = &wrong;
  GI.handle = &null;
  refused(&c, ACLNN_ERR_PARAM_NULLPTR, "%s is NULL, a valid pointer is required",
          bad_name(c.op, GRAD_IN));
}

static void replaced(struct check_call c, int argument, const void *handle, const char *what) {
  if (!has(&c, argument)) return;
  replace(&c, argument, &handle);
  refused(&c, BAD, "%s is %s, a live %s is required", bad_name(c.op, argument), what,
          argument < POOL_TENSORS ? "aclTensor" : "aclIntArray");
}

void check_handles(struct check_call right) {
  const aclTensor *const gone_tensor =
      aclCreateTensor(NULL, 0, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, NULL, 0, NULL);
  const aclIntArray *const array = aclCreateIntArray(NULL, 0);
  const aclIntArray *const gone_array = aclCreateIntArray(NULL, 0);
  OK_OR_SAY(aclDestroyTensor(gone_tensor));
  OK_OR_SAY(aclDestroyIntArray(gone_array));
  for (int i = 0; i < POOL_TENSORS; i++) {
    replaced(right, i, &right, "not a handle");
    replaced(right, i, array, "an int array");
    replaced(right, i, gone_tensor, "a destroyed tensor");
  }
  for (int i = KERNEL_SIZE; i <= DILATION; i++) {
    replaced(right, i, &right, "not a handle");
    replaced(right, i, gone_array, "a destroyed int array");
  }
  OK_OR_SAY(aclDestroyIntArray(array));
}

static void check_array_lengths(struct check_call right) {
  for (int i = KERNEL_SIZE; i <= DILATION; i++) {
    if (!has(&right, i)) continue;
    struct check_call c = right;
    struct ints *array = &c.a[i - KERNEL_SIZE];
    const char *name = bad_name(c.op, i);
    array->count = 3;
    refused(&c, BAD, "%s has 3 values, allowed is %d to 2", name, i == STRIDE ? 0 : 1);
    array->count = 0;
    if (i != STRIDE) refused(&c, BAD, "%s has 0 values, allowed is 1 to 2", name);
    array->count = 1;
    accepted(&c);
  }
}

void check_arrays(struct check_call right) {
  check_array_lengths(right);
  REFUSED_OF(right, "kernelSize is [0,2], both must be positive", K = PAIR(0, 2));
  REFUSED_OF(right, "stride is [2,0], both must be positive", S = PAIR(2, 0));
  REFUSED_OF(right, "stride is [-2,-2], both must be positive", S = PAIR(-2, 9), S.count = 1);
  REFUSED_OF(right, "padding is [-1,0], allowed is 0 to half of kernelSize [2,2]", P = PAIR(-1, 0));
  REFUSED_OF(right, "padding is [1,2], allowed is 0 to half of kernelSize [2,3]", P = PAIR(1, 2),
             K = PAIR(2, 3));
}

void check_formats(struct check_call right, const aclFormat *fine, int count, const char *named,
                   const char *allowed) {
  static const aclFormat all[] = {ACL_FORMAT_ND,        ACL_FORMAT_NCHW,       ACL_FORMAT_NHWC,
                                  ACL_FORMAT_NCL,       ACL_FORMAT_NC,         ACL_FORMAT_NCDHW,
                                  ACL_FORMAT_NDHWC,     ACL_FORMAT_HWCN,       ACL_FORMAT_NC1HWC0,
                                  ACL_FORMAT_NDC1HWC0,  ACL_FORMAT_FRACTAL_NZ, ACL_FRACTAL_Z_3D,
                                  ACL_FORMAT_UNDEFINED, (aclFormat)99};
  for (int i = 0; i < COUNT(all); i++) {
    bool is_fine = false;
    for (int j = 0; j < count; j++) is_fine = is_fine || fine[j] == all[i];
    set_formats(&right, all[i]);
    if (is_fine)
      accepted(&right);
    else
      refused(&right, BAD, "%s has format %s, allowed is %s", named, pg_format_name(all[i]),
              allowed);
  }
}

/* --- products ----------------------------------------------------------------------------------
 */

static void check_product(CMUnitTestFunction check, const char *product) {
  const struct CMUnitTest test[] = {
      {.name = product, .test_func = check, .initial_state = (void *)(uintptr_t)product}};
  int status;
  (void)fflush(NULL);
  const pid_t child = fork();
  if (child == 0) {
    setenv("POOLGRAD_SOC", product, 1);
    exit(aclInit(NULL) != ACL_SUCCESS || cmocka_run_group_tests(test, NULL, NULL) != 0);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

void check_products(CMUnitTestFunction as_910b, CMUnitTestFunction as_950) {
  check_product(as_910b, "Ascend910B1");
  check_product(as_910b, "Ascend910_93");
  check_product(as_950, "Ascend950");
  check_product(as_950, "Ascend910_95");
}

int set_up_cpu(void **state) {
  setenv("POOLGRAD_DEVICES", "cpu", 1);
  return set_up_device(state);
}
