/* SPDX-License-Identifier: Apache-2.0 */
/* Right calls of every operator, each with one thing changed that no operator can accept.  The
 * first phase must refuse it with a code of its kind and one sentence, and do nothing else: no
 * result is written, no handle is left, no memory is touched.  Which sentence comes first is the
 * business of test_check_*.c and test_ops_bad_calls.c.
 *
 * POOLGRAD_TEST_SEED starts another sequence. */
#include <inttypes.h>

#include "aclnn/aclnn_base.h"
#include "bad_report.h"
#include "float_format.h"
#include "ops_fixture.h"

enum { ROUNDS = 12000, AXES = 8, VALUES = 6, UNTOUCHED = 77 };

static const char *const products[] = {"", "Ascend910B1", "Ascend910_93", "Ascend950"};

/* A call before its handles are made. */
struct call {
  struct problem problem;
  struct {
    aclDataType dtype;
    aclFormat format;
    uint64_t rank;
    int64_t dims[AXES], strides[AXES], offset, storage;
  } tensor[POOL_TENSORS];
  struct {
    uint64_t count;
    int64_t of[VALUES];
  } array[POOL_ARRAYS];
  int null;    /* the argument that is NULL: a tensor, or POOL_TENSORS and an array; -1: none */
  int swapped; /* likewise, of which the other kind of handle is passed */
  bool no_size, no_executor;
};

enum change {
  NULL_ARGUMENT,
  OTHER_HANDLE,
  NO_RESULT,
  DTYPE,
  FORMAT,
  RANK,
  LONGER, /* an axis of what is written */
  NEGATIVE_STRIDE,
  SHARED_RESULT,
  NEGATIVE_OFFSET,
  COUNT_OF_VALUES,
  BAD_VALUE,
  CHANGES
};

static const char *const change_words[CHANGES] = {
    "NULL",       "another handle", "no result",  "dtype",  "format",          "rank",
    "one longer", "stride < 0",     "stride = 0", "offset", "count of values", "value"};

static int tallies[POOL_OPERATORS][CHANGES], failed;

static bool uses_array(const struct problem *p, int array) {
  if (array == OUTPUT_ARRAY) return problem_is_forward(p) && !problem_is_sliding(p);
  return problem_is_sliding(p) && (array != DILATION_ARRAY || problem_is_max(p));
}

static void set_array(struct call *c, int array) {
  const struct problem *p = &c->problem;
  const struct window_sizes *const sizes[] = {&p->kernel, &p->stride, &p->pad, &p->dilation};
  const int spatial = problem_spatial(p);
  if (array == OUTPUT_ARRAY) {
    c->array[array].count = (uint64_t)spatial;
    memcpy(c->array[array].of, p->out + 3 - spatial, (size_t)spatial * sizeof(int64_t));
    return;
  }
  memcpy(c->array[array].of, sizes[array]->of, sizeof sizes[array]->of);
  c->array[array].count = sizes[array]->count > 0 ? (uint64_t)sizes[array]->count : 0;
  if (c->array[array].count > 0 || array == STRIDE_ARRAY) return;
  c->array[array].count = 1;
  c->array[array].of[0] = array == PADDING_ARRAY ? 0 : 1;
}

static struct call right_call(const struct problem *p) {
  struct call c = {.problem = *p, .null = -1, .swapped = -1};
  for (int i = 0; i < POOL_TENSORS; i++) {
    const struct tensor_layout l = tensor_lay_out(p, i);
    const aclDataType position = p->index_bytes == 8 ? ACL_INT64 : ACL_INT32;
    const aclDataType index = problem_is_mask(p) ? ACL_INT8 : position;
    c.tensor[i].dtype = i == INDICES ? index : float_formats[p->type].dtype;
    c.tensor[i].format = p->format;
    c.tensor[i].rank = (uint64_t)l.rank;
    c.tensor[i].offset = l.offset;
    c.tensor[i].storage = l.elements;
    memcpy(c.tensor[i].dims, l.dims, sizeof l.dims);
    memcpy(c.tensor[i].strides, l.strides, sizeof l.strides);
  }
  for (int i = 0; i < POOL_ARRAYS; i++) set_array(&c, i);
  return c;
}

/* --- the call ----------------------------------------------------------------------------------
 */

struct answer {
  int status;
  uint64_t size;
  aclOpExecutor *executor;
  const char *text;
};

/* `foreign` are live handles of the two kinds. */
static struct answer make_call(const struct call *c, aclTensor *foreign_tensor,
                               aclIntArray *foreign_array) {
  struct operator_arguments a = {.ceil = c->problem.ceil,
                                 .include_pad = c->problem.include_pad,
                                 .divisor = c->problem.divisor,
                                 .cube = (int8_t)c->problem.cube};
  struct answer r = {.size = UNTOUCHED, .executor = (void *)foreign_array};
  void *made[POOL_TENSORS + POOL_ARRAYS] = {NULL};
  for (int i = 0; i < POOL_TENSORS; i++)
    made[i] = a.tensor[i] = aclCreateTensor(
        c->tensor[i].dims, c->tensor[i].rank, c->tensor[i].dtype, c->tensor[i].strides,
        c->tensor[i].offset, c->tensor[i].format, &c->tensor[i].storage, 1, NULL);
  for (int i = 0; i < POOL_ARRAYS; i++)
    made[POOL_TENSORS + i] = a.array[i] = aclCreateIntArray(c->array[i].of, c->array[i].count);
  for (int i = 0; i < POOL_TENSORS; i++) {
    if (c->null == i) a.tensor[i] = NULL;
    if (c->swapped == i) a.tensor[i] = (aclTensor *)foreign_array;
  }
  for (int i = 0; i < POOL_ARRAYS; i++) {
    if (c->null == POOL_TENSORS + i) a.array[i] = NULL;
    if (c->swapped == POOL_TENSORS + i) a.array[i] = (aclIntArray *)foreign_tensor;
  }
  (void)aclGetRecentErrMsg();
  r.status = operator_calls[c->problem.op].first(&a, c->no_size ? NULL : &r.size,
                                                 c->no_executor ? NULL : &r.executor);
  r.text = aclGetRecentErrMsg();
  for (int i = 0; i < POOL_TENSORS; i++) (void)aclDestroyTensor(made[i]);
  for (int i = 0; i < POOL_ARRAYS; i++) (void)aclDestroyIntArray(made[POOL_TENSORS + i]);
  return r;
}

/* --- the changes -------------------------------------------------------------------------------
 */

static uint64_t below(uint64_t *state, uint64_t limit) { return problem_next(state) % limit; }

static int any_tensor(uint64_t *state, const struct problem *p, bool written) {
  for (;;) {
    const int tensor = (int)below(state, POOL_TENSORS);
    const enum tensor_role role = problem_role(p, tensor);
    if (role == WRITTEN || (!written && role != ABSENT_TENSOR)) return tensor;
  }
}

/* An array that the operator takes, or -1. */
static int any_array(uint64_t *state, const struct problem *p) {
  for (int tries = 0; tries < 40; tries++) {
    const int array = (int)below(state, POOL_ARRAYS);
    if (uses_array(p, array)) return array;
  }
  return -1;
}

static bool change_argument(uint64_t *state, struct call *c, enum change change) {
  const int array = below(state, 2) == 0 ? any_array(state, &c->problem) : -1;
  const int argument = array < 0 ? any_tensor(state, &c->problem, false) : POOL_TENSORS + array;
  if (change == NULL_ARGUMENT && c->problem.op == AVG_POOL2D && array == STRIDE_ARRAY) return false;
  *(change == NULL_ARGUMENT ? &c->null : &c->swapped) = argument;
  return true;
}

/* aclnnAvgPool3dBackward takes self for its shape alone, and aclnnAdaptiveMaxPool3d does not look
 * at the format of its indices. */
static bool ignores_format(const struct problem *p, int tensor) {
  return (p->op == AVG_POOL3D && tensor == SELF) ||
         (p->op == ADAPTIVE_MAX_POOL3D_FORWARD && tensor == INDICES);
}

static bool change_type(uint64_t *state, struct call *c, enum change change) {
  static const aclDataType types[] = {ACL_STRING, ACL_BOOL, ACL_COMPLEX64, ACL_UINT64};
  static const aclFormat formats[] = {ACL_FORMAT_FRACTAL_NZ, ACL_FORMAT_HWCN, ACL_FORMAT_NC1HWC0};
  const int tensor = any_tensor(state, &c->problem, false);
  if (change == DTYPE) {
    c->tensor[tensor].dtype = types[below(state, 4)];
    return true;
  }
  c->tensor[tensor].format = formats[below(state, 3)];
  return !ignores_format(&c->problem, tensor);
}

static bool change_rank(uint64_t *state, struct call *c) {
  static const uint64_t ranks[] = {1, 2, 6, 7};
  const int tensor = any_tensor(state, &c->problem, false);
  c->tensor[tensor].rank = ranks[below(state, 4)];
  for (uint64_t i = 0; i < AXES; i++)
    if (i >= 5) c->tensor[tensor].dims[i] = c->tensor[tensor].strides[i] = 1;
  return true;
}

static bool change_view(uint64_t *state, struct call *c, enum change change) {
  const bool written = change == LONGER || change == SHARED_RESULT;
  const int tensor = any_tensor(state, &c->problem, written);
  const int axis = (int)below(state, c->tensor[tensor].rank);
  if (change == NEGATIVE_OFFSET) c->tensor[tensor].offset = -1 - (int64_t)below(state, 5);
  if (change == NEGATIVE_STRIDE) c->tensor[tensor].strides[axis] = -1 - (int64_t)below(state, 5);
  if (change == SHARED_RESULT) c->tensor[tensor].strides[axis] = 0;
  if (change == LONGER) { /* far enough from the others not to share their memory */
    c->tensor[tensor].dims[axis]++;
    c->tensor[tensor].strides[axis] = INT64_C(1) << 24;
  }
  if (change == SHARED_RESULT) return c->tensor[tensor].dims[axis] > 1;
  /* A mask may have any size that is large enough?  No: exactly one. */
  return true;
}

static bool change_count(uint64_t *state, struct call *c) {
  const int array = any_array(state, &c->problem);
  if (array < 0) return false;
  c->array[array].count = below(state, 2) == 0 ? 5 : problem_spatial(&c->problem) == 2 ? 3 : 2;
  for (int i = 0; i < VALUES; i++)
    if (i > 0) c->array[array].of[i] = c->array[array].of[0];
  return true;
}

static bool change_value(uint64_t *state, struct call *c) {
  const int array = any_array(state, &c->problem);
  if (array < 0 || c->array[array].count == 0) return false;
  const int64_t kernel = c->array[KERNEL_ARRAY].of[0], which = (int64_t)below(state, 3);
  int64_t *value = &c->array[array].of[0];
  if (array == PADDING_ARRAY)
    *value = which == 0 ? kernel + 1 : -which;
  else if (array == OUTPUT_ARRAY && which == 0)
    *value += 1;
  else
    *value = which == 0 ? INT64_MIN : 1 - which;
  return true;
}

/* False where the change is none. */
static bool apply(uint64_t *state, struct call *c, enum change change) {
  switch (change) {
    case NULL_ARGUMENT:
    case OTHER_HANDLE:
      return change_argument(state, c, change);
    case NO_RESULT:
      *(below(state, 2) == 0 ? &c->no_size : &c->no_executor) = true;
      return true;
    case DTYPE:
    case FORMAT:
      return change_type(state, c, change);
    case RANK:
      return change_rank(state, c);
    case COUNT_OF_VALUES:
      return change_count(state, c);
    case BAD_VALUE:
      return change_value(state, c);
    default:
      return change_view(state, c, change);
  }
}

/* --- what must come of it ----------------------------------------------------------------------
 */

static bool is_expected(const struct call *c, enum change change, int status) {
  if (change == NULL_ARGUMENT || change == NO_RESULT) return status == 161001;
  if (change == OTHER_HANDLE) return status != 0;
  if (status == 161002) return true;
  /* as the vendor's code has it: late checks, and a kernelSize of a wrong length */
  if (status == 561103) return c->problem.op == ADAPTIVE_MAX_POOL2D_FORWARD;
  return status == 161001 && c->problem.op == MAX_POOL2D_MASK && change == COUNT_OF_VALUES;
}

static const char *judge(const struct call *c, enum change change, const struct answer *r,
                         const aclIntArray *before) {
  if (!is_expected(c, change, r->status)) return "the code is wrong";
  if (r->size != UNTOUCHED || (const void *)r->executor != (const void *)before)
    return "a result was written";
  return judge_sentence(r->text, operator_calls[c->problem.op].first_name, NULL, 0);
}

static void try_change(const struct problem *p, enum change change, uint64_t *state,
                       aclTensor *tensor, aclIntArray *array) {
  struct call c = right_call(p);
  if (!apply(state, &c, change)) return;
  const struct handle_counts before = count_handles();
  struct answer r = make_call(&c, tensor, array);
  if (r.status == 0) (void)aclDestroyAclOpExecutor(r.executor);
  const struct handle_counts after = count_handles();
  const char *wrong = judge(&c, change, &r, array);
  if (wrong == NULL && !same_handles(&before, &after)) wrong = "a handle is left";
  tallies[p->op][change]++;
  if (wrong == NULL) return;
  char line[PROBLEM_TEXT];
  problem_print(p, line);
  complain(&failed, "%s [%s]: %s: %s: %d: %s", line, aclrtGetSocName(), change_words[change], wrong,
           r.status, r.text == NULL ? "(no sentence)" : r.text);
}

/* Nothing changed: it is accepted, or it is not this product's. */
static bool is_accepted(const struct problem *p, bool portable, aclTensor *tensor,
                        aclIntArray *array) {
  const struct call c = right_call(p);
  const struct answer r = make_call(&c, tensor, array);
  if (r.status == 0) OK_OR_SAY(aclDestroyAclOpExecutor(r.executor));
  if (r.status == 0 && r.text == NULL) return true;
  if (!portable && r.status == 161002) return false;
  char line[PROBLEM_TEXT];
  problem_print(p, line);
  fail_msg("%s: %d: %s", line, r.status, r.text == NULL ? "" : r.text);
  return false;
}

static void every_operator_refuses_what_is_wrong(void **state) {
  (void)state;
  const char *text = getenv("POOLGRAD_TEST_SEED");
  uint64_t seed = text == NULL ? 1 : strtoull(text, NULL, 0);
  const int64_t one[] = {1};
  for (size_t product = 0; product < sizeof products / sizeof products[0]; product++) {
    setenv("POOLGRAD_SOC", products[product], 1);
    OK_OR_SAY(aclnnInit(NULL));
    aclTensor *tensor = aclCreateTensor(one, 1, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, one, 1, NULL);
    aclIntArray *array = aclCreateIntArray(one, 1);
    for (int i = 0; i < ROUNDS; i++) {
      const struct problem p = problem_random(seed + (uint64_t)i, 300);
      if (!is_accepted(&p, product == 0, tensor, array)) continue;
      try_change(&p, (enum change)below(&seed, CHANGES), &seed, tensor, array);
    }
    OK_OR_SAY(aclDestroyTensor(tensor));
    OK_OR_SAY(aclDestroyIntArray(array));
  }
  setenv("POOLGRAD_SOC", "", 1);
  OK_OR_SAY(aclnnInit(NULL));
  assert_int_equal(failed, 0);
}

static void every_operator_had_its_share(void **state) {
  (void)state;
  for (int op = 0; op < POOL_OPERATORS; op++) {
    int all = 0;
    const struct problem p = {.op = (enum pool_operator)op};
    for (int change = 0; change < CHANGES; change++) {
      const bool arrays = problem_is_sliding(&p) || problem_is_forward(&p);
      all += tallies[op][change];
      if (arrays || change < COUNT_OF_VALUES) assert_true(tallies[op][change] > 0);
    }
    print_message("%s: %d wrong calls\n", operator_calls[op].first_name, all);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_operator_refuses_what_is_wrong),
                                     cmocka_unit_test(every_operator_had_its_share)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
