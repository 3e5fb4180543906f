/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/wait.h>
#include <unistd.h>

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

/* The pointers that an operator takes, in the order in which it looks at them. */
enum { KERNEL_SIZE = POOL_TENSORS, MOST_POINTERS = 9 };
static const struct pointers {
  int spatial;
  struct {
    const char *name; /* NULL: no more */
    int argument;     /* a tensor, or an array behind the tensors */
  } of[MOST_POINTERS];
} pointers[POOL_OPERATORS] = {
#define GRAD \
  { "gradOutput", GRAD_OUT }
#define SELF_ \
  { "self", SELF }
#define INDEX \
  { "indices", INDICES }
#define TO(name) \
  { name, GRAD_IN }
#define OUT_(name) \
  { name, GRAD_OUT }
#define KERNEL_ \
  { "kernelSize", KERNEL_SIZE + KERNEL_ARRAY }
#define STRIDE_(name) \
  { name, KERNEL_SIZE + STRIDE_ARRAY }
#define PADDING_(name) \
  { name, KERNEL_SIZE + PADDING_ARRAY }
#define DILATION_(name) \
  { name, KERNEL_SIZE + DILATION_ARRAY }
#define SIZE_ \
  { "outputSize", KERNEL_SIZE + OUTPUT_ARRAY }
#define WINDOWS_ KERNEL_, STRIDE_("stride"), PADDING_("padding"), DILATION_("dilation")
    [MAX_POOL2D] = {2, {GRAD, SELF_, INDEX, WINDOWS_, TO("gradInput")}},
    [AVG_POOL2D] = {2, {GRAD, SELF_, KERNEL_, PADDING_("padding"), TO("gradInput")}},
    [ADAPTIVE_MAX_POOL2D] = {2, {GRAD, SELF_, INDEX, TO("gradInput")}},
    [ADAPTIVE_MAX_POOL3D] = {3, {GRAD, SELF_, INDEX, TO("gradInput")}},
    [ADAPTIVE_AVG_POOL3D] = {3, {GRAD, SELF_, TO("out")}},
    [ADAPTIVE_AVG_POOL2D] = {2, {GRAD, SELF_, TO("out")}},
    [AVG_POOL3D] = {3,
                    {GRAD, SELF_, KERNEL_, STRIDE_("stride"), PADDING_("padding"), TO("output")}},
    [MAX_POOL2D_MASK] = {2,
                         {KERNEL_, SELF_, GRAD, INDEX, STRIDE_("stride"), PADDING_("padding"),
                          DILATION_("dilation"), TO("gradInput")}},
    [MAX_POOL3D] = {3, {GRAD, SELF_, INDEX, WINDOWS_, TO("gradInput")}},
    [MAX_POOL2D_FORWARD] = {2, {SELF_, WINDOWS_, OUT_("out"), INDEX}},
    [AVG_POOL2D_FORWARD] = {2,
                            {SELF_, KERNEL_, STRIDE_("strides"), PADDING_("paddings"),
                             OUT_("out")}},
    [ADAPTIVE_MAX_POOL2D_FORWARD] = {2, {SELF_, SIZE_, OUT_("outputOut"), {"indicesOut", INDICES}}},
    [ADAPTIVE_MAX_POOL3D_FORWARD] = {3, {SELF_, SIZE_, OUT_("outputOut"), {"indicesOut", INDICES}}},
    [ADAPTIVE_AVG_POOL3D_FORWARD] = {3, {SELF_, SIZE_, OUT_("out")}},
    [ADAPTIVE_AVG_POOL2D_FORWARD] = {2, {SELF_, SIZE_, OUT_("out")}},
    [AVG_POOL3D_FORWARD] = {3,
                            {SELF_, KERNEL_, STRIDE_("stride"), PADDING_("padding"), OUT_("out")}},
    [MAX_POOL2D_MASK_FORWARD] = {2,
                                 {KERNEL_, SELF_, OUT_("out"), STRIDE_("stride"),
                                  PADDING_("padding"), DILATION_("dilation"), INDEX}},
    [MAX_POOL3D_FORWARD] = {3, {SELF_, WINDOWS_, OUT_("out"), INDEX}},
    [MAX_POOL_FORWARD] = {2,
                          {SELF_,
                           {"kernelShape", KERNEL_SIZE + KERNEL_ARRAY},
                           STRIDE_("strides"),
                           PADDING_("pads"),
                           DILATION_("dilations"),
                           OUT_("out")}},
};

/* What the operator calls an argument; NULL: it has none. */
static const char *name_of(const struct check_call *c, int argument) {
  const struct pointers *p = &pointers[c->op];
  for (int i = 0; i < MOST_POINTERS && p->of[i].name != NULL; i++)
    if (p->of[i].argument == argument) return p->of[i].name;
  /* the only one that may be NULL */
  return c->op == AVG_POOL2D && argument == KERNEL_SIZE + STRIDE_ARRAY ? "stride" : NULL;
}

static bool is_written(const struct check_call *c, int tensor) {
  if (name_of(c, tensor) == NULL) return false;
  return c->op < BACKWARD_OPERATORS ? tensor == GRAD_IN : tensor == GRAD_OUT || tensor == INDICES;
}

static void set_mask(struct check_call *c, int64_t out) {
  c->t[INDICES].dtype = ACL_INT8;
  c->t[INDICES].dims[2] = 4;
  c->t[INDICES].dims[3] = ((out * out + 15) / 16 + 1) * 32;
}

struct check_call check_call(enum pool_operator op, int rank, aclFormat format, int64_t in,
                             int64_t out) {
  struct check_call c = {.op = op};
  const bool deep = pointers[op].spatial == 3;
  K = S = deep ? TRIPLE(2, 2, 2) : PAIR(2, 2);
  P = deep ? TRIPLE(0, 0, 0) : PAIR(0, 0);
  D = deep ? TRIPLE(1, 1, 1) : PAIR(1, 1);
  O = deep ? TRIPLE(out, out, out) : PAIR(out, out);
  set_ranks(&c, rank);
  set_formats(&c, format);
  set_gradients(&c, ACL_FLOAT);
  IDX.dtype = op == ADAPTIVE_MAX_POOL2D_FORWARD ? ACL_INT64 : ACL_INT32;
  set_axis(&c, 0, 2);
  set_axis(&c, 1, 3);
  for (int axis = 2; axis < rank; axis++) {
    set_inputs(&c, axis, in);
    set_outputs(&c, axis, out);
  }
  if (op == MAX_POOL2D_MASK || op == MAX_POOL2D_MASK_FORWARD) set_mask(&c, out);
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
  struct operator_arguments a = {.ceil = c->ceil_mode,
                                 .include_pad = true,
                                 .divisor = c->divisor,
                                 .auto_pad = c->auto_pad,
                                 .cube = c->math};
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

static aclOpExecutor *prepare(const struct check_call *c, bool without_workspace) {
  uint64_t size = 77;
  aclOpExecutor *executor = NULL;
  OK_OR_SAY(first_phase(c, &size, &executor));
  if (without_workspace) assert_int_equal(size, 0);
  return executor;
}

void accepted(const struct check_call *c) {
  const bool workspace = c->op < BACKWARD_OPERATORS && name_of(c, INDICES) != NULL;
  OK_OR_SAY(aclDestroyAclOpExecutor(prepare(c, !workspace)));
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
  const struct pointers *p = &pointers[right.op];
  const void *const null = NULL, *const wrong = &null;
  struct check_call c = right;
  uint64_t size = 77;
  aclOpExecutor *executor = NULL;
  int last = 0;
  while (last + 1 < MOST_POINTERS && p->of[last + 1].name != NULL) last++;
  for (int i = last; i >= 0; i--) { /* those behind it are NULL as well */
    replace(&c, p->of[i].argument, &null);
    refused(&c, ACLNN_ERR_PARAM_NULLPTR, "%s is NULL, a valid pointer is required", p->of[i].name);
  }
  FAILS(first_phase(&c, &size, NULL), ACLNN_ERR_PARAM_NULLPTR, ": executor is NULL");
  FAILS(first_phase(&c, NULL, &executor), ACLNN_ERR_PARAM_NULLPTR, ": workspaceSize is NULL");
  assert_int_equal(size, 77);
  assert_null(executor);
  c = right;
  replace(&c, SELF, &wrong);
  replace(&c, p->of[last].argument, &null);
  refused(&c, ACLNN_ERR_PARAM_NULLPTR, "%s is NULL, a valid pointer is required", p->of[last].name);
}

static void replaced(struct check_call c, int argument, const void *handle, const char *what) {
  const char *name = name_of(&c, argument);
  if (name == NULL) return;
  replace(&c, argument, &handle);
  refused(&c, BAD, "%s is %s, a live %s is required", name, what,
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
  for (int i = KERNEL_SIZE; i < KERNEL_SIZE + POOL_ARRAYS; i++) {
    replaced(right, i, &right, "not a handle");
    replaced(right, i, gone_array, "a destroyed int array");
  }
  OK_OR_SAY(aclDestroyIntArray(array));
}

/* The backward of a mask looks at its kernelSize early, and as if it were not there. */
static int count_code(const struct check_call *c, int array) {
  return c->op == MAX_POOL2D_MASK && array == KERNEL_ARRAY ? ACLNN_ERR_PARAM_NULLPTR : BAD;
}

static void check_array_lengths(struct check_call right) {
  const int spatial = pointers[right.op].spatial;
  for (int i = 0; i < OUTPUT_ARRAY; i++) {
    struct check_call c = right;
    const char *name = name_of(&c, KERNEL_SIZE + i);
    if (name == NULL) continue;
    for (uint64_t count = 0; count <= 4; count++) {
      c.a[i].count = count;
      const char *none = i == STRIDE_ARRAY ? "0" : "1", *deep = i == STRIDE_ARRAY ? "0, " : "";
      if (count == 1 || count == (uint64_t)spatial || (count == 0 && i == STRIDE_ARRAY))
        accepted(&c);
      else if (spatial == 2)
        refused(&c, count_code(&c, i), "%s has %d values, allowed is %s to 2", name, (int)count,
                none);
      else
        refused(&c, BAD, "%s has %d values, allowed is %s1 or 3", name, (int)count, deep);
    }
  }
}

static void refused_value(struct check_call c, int array, int64_t value, const char *sentence) {
  const bool deep = pointers[c.op].spatial == 3;
  c.a[array].values[deep ? 2 : 1] = value;
  refused(&c, BAD, sentence, name_of(&c, KERNEL_SIZE + array), deep ? "2," : "",
          deep ? "all three" : "both");
}

void check_arrays(struct check_call right) {
  const bool deep = pointers[right.op].spatial == 3;
  const char *name = name_of(&right, KERNEL_SIZE + PADDING_ARRAY);
  struct check_call c = right;
  check_array_lengths(right);
  refused_value(right, KERNEL_ARRAY, 0, "%s is [%s2,0], %s must be positive");
  refused_value(right, KERNEL_ARRAY, -3, "%s is [%s2,-3], %s must be positive");
  refused_value(right, STRIDE_ARRAY, 0, "%s is [%s2,0], %s must be positive");
  refused_value(right, STRIDE_ARRAY, -1, "%s is [%s2,-1], %s must be positive");
  c.a[STRIDE_ARRAY] = (struct ints){1, {-2}, NULL};
  refused(&c, BAD, "%s is [-2,-2%s], %s must be positive", name_of(&c, KERNEL_SIZE + STRIDE_ARRAY),
          deep ? ",-2" : "", deep ? "all three" : "both");
  c = right;
  P.values[0] = -1;
  refused(&c, BAD, "%s is [-1,0%s], allowed is 0 to half of kernelSize [2,2%s]", name,
          deep ? ",0" : "", deep ? ",2" : "");
  P.values[0] = 1;
  P.values[1] = 2;
  K.values[1] = 3;
  refused(&c, BAD, "%s is [1,2%s], allowed is 0 to half of kernelSize [2,3%s]", name,
          deep ? ",0" : "", deep ? ",2" : "");
}

/* --- the second phase --------------------------------------------------------------------------
 */

void refused_run(const struct check_call *c, const char *sentence) {
  char text[400], room[1024];
  uint64_t size = 0;
  aclOpExecutor *executor = NULL;
  OK_OR_SAY(first_phase(c, &size, &executor));
  assert_true(size <= sizeof room);
  (void)snprintf(text, sizeof text, "%s: %s\n", operator_calls[c->op].second_name, sentence);
  FAILS(operator_calls[c->op].second(room, size, executor, NULL), BAD, text);
}

static int64_t bytes_of(const struct shape *s) {
  int64_t bytes = (int64_t)aclDataTypeSize(s->dtype);
  for (int i = 0; i < s->rank; i++) bytes *= s->dims[i];
  return bytes;
}

/* Puts tensor `other` onto the last byte of `written`, then the other way round. */
static void check_overlap(struct check_call c, int written, int other) {
  char sentence[128];
  char *const at = c.t[written].data;
  const int first = other > written || !is_written(&c, other) ? written : other;
  const char *names[] = {name_of(&c, first), name_of(&c, first == written ? other : written)};
  (void)snprintf(sentence, sizeof sentence, "the memory of %s overlaps that of %s", names[0],
                 names[1]);
  c.t[other].data = at + bytes_of(&c.t[written]) - 8;
  refused_run(&c, sentence);
  c.t[other].data = at;
  refused_run(&c, sentence);
}

void check_overlaps(struct check_call right) {
  enum { ROOM = 1 << 16 };
  char *const memory = device_memory((size_t)(POOL_TENSORS + 1) * ROOM);
  for (int i = 0; i < POOL_TENSORS; i++) right.t[i].data = memory + i * ROOM;
  for (int w = 0; w < POOL_TENSORS; w++)
    for (int i = 0; i < POOL_TENSORS; i++) {
      const bool read = right.op >= BACKWARD_OPERATORS || i != SELF; /* backward: its shape only */
      if (i != w && is_written(&right, w) && name_of(&right, i) != NULL && read)
        check_overlap(right, w, i);
    }
  OK_OR_SAY(aclrtFree(memory));
}

/* --- formats -----------------------------------------------------------------------------------
 */

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
