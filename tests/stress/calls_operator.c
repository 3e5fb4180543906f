/* SPDX-License-Identifier: Apache-2.0 */
/* The operators: on streams that others disturb, and on streams of their own, where the result must
 * be right. */
#include <stdlib.h>
#include <string.h>

#include "../trial.h"
#include "stress.h"

enum { CHANNELS = 3, WORKSPACE_BYTES = 1024, RANK_MAX = 5, LARGE = BACKWARD_OPERATORS, SAMPLES };

/* Windows of 2 cells, 2 apart, along every axis: all operators agree on those.  Gradients are
 * integers that the divisors divide, so results are exact.  Forward operators are run by run_trial
 * and run_forward. */
static struct sample {
  int64_t channels, out; /* outputs along an axis; twice as many cells */
  float *grad_out;
  int64_t *index;
  int32_t *mask;         /* the indices packed into the container of a mask, and zeros */
  float *x;              /* what the indices are of */
  float *right;          /* what gradInput must be */
  float *maxima, *means; /* and what forward operators must give for x */
} samples[SAMPLES] = {
    [MAX_POOL2D] = {.channels = CHANNELS, .out = 6},
    [AVG_POOL2D] = {.channels = CHANNELS, .out = 5},
    [ADAPTIVE_MAX_POOL2D] = {.channels = CHANNELS, .out = 9},
    [ADAPTIVE_MAX_POOL3D] = {.channels = CHANNELS, .out = 3},
    [ADAPTIVE_AVG_POOL3D] = {.channels = CHANNELS, .out = 2},
    [ADAPTIVE_AVG_POOL2D] = {.channels = CHANNELS, .out = 7},
    [AVG_POOL3D] = {.channels = CHANNELS, .out = 3},
    [MAX_POOL2D_MASK] = {.channels = CHANNELS, .out = 6},
    [MAX_POOL3D] = {.channels = CHANNELS, .out = 2},
    [LARGE] = {.channels = 16, .out = 96}, /* an average that several threads compute */
};

/* The forward operators, each with the sample whose x it reads. */
static const struct {
  int op, sample;
} forwards[] = {
    {MAX_POOL_FORWARD, MAX_POOL2D},
    {MAX_POOL2D_FORWARD, MAX_POOL2D},
    {MAX_POOL2D_MASK_FORWARD, MAX_POOL2D_MASK},
    {MAX_POOL3D_FORWARD, MAX_POOL3D},
    {ADAPTIVE_MAX_POOL2D_FORWARD, ADAPTIVE_MAX_POOL2D},
    {ADAPTIVE_MAX_POOL3D_FORWARD, ADAPTIVE_MAX_POOL3D},
    {AVG_POOL2D_FORWARD, AVG_POOL2D},
    {AVG_POOL3D_FORWARD, AVG_POOL3D},
    {ADAPTIVE_AVG_POOL2D_FORWARD, ADAPTIVE_AVG_POOL2D},
    {ADAPTIVE_AVG_POOL3D_FORWARD, ADAPTIVE_AVG_POOL3D},
};
enum { FORWARDS = sizeof forwards / sizeof forwards[0], MASK_ROWS = 4 };

static int64_t bad_index[CHANNELS * 6 * 6]; /* all -1 */

static int operator_of(int sample) { return sample == LARGE ? AVG_POOL2D : sample; }

static int axes_of(int sample) {
  return problem_spatial(&(struct problem){.op = (enum pool_operator)operator_of(sample)});
}

static bool is_max(int op) {
  return problem_is_max(&(struct problem){.op = (enum pool_operator)op});
}

/* The last axis of the container of a mask, in bytes. */
static int64_t mask_width(int sample) {
  const int64_t outputs = samples[sample].out * samples[sample].out;
  return ((outputs + 15) / 16 + 1) * 32;
}

static int64_t count_of(int sample, int64_t side) {
  const int64_t plane = axes_of(sample) == 3 ? side * side * side : side * side;
  return samples[sample].channels * plane;
}

static void prepare(int sample) {
  struct sample *s = &samples[sample];
  const int64_t outputs = count_of(sample, s->out), cells = count_of(sample, 2 * s->out);
  const struct reference_axis axis = {2 * s->out, s->out, 2, 2, 0, 1, 0};
  const struct reference_pooling pool = {
      .planes = s->channels,
      .axis = {axes_of(sample) == 3 ? axis : reference_unit_axis(), axis, axis}};
  double *x = calloc((size_t)cells, sizeof *x), *maxima = calloc((size_t)outputs, sizeof *maxima),
         *grad = calloc((size_t)outputs, sizeof *grad);
  struct reference_sums sums = {.sum = calloc((size_t)cells, sizeof(double)),
                                .magnitude = calloc((size_t)cells, sizeof(double)),
                                .terms = calloc((size_t)cells, sizeof(int64_t))};
  s->grad_out = calloc((size_t)outputs, sizeof *s->grad_out);
  s->index = calloc((size_t)outputs, sizeof *s->index);
  s->mask = calloc((size_t)s->channels, (size_t)(MASK_ROWS * mask_width(sample)));
  s->right = calloc((size_t)cells, sizeof *s->right);
  s->x = calloc((size_t)cells, sizeof *s->x);
  s->maxima = calloc((size_t)outputs, sizeof *s->maxima);
  s->means = calloc((size_t)outputs, sizeof *s->means);
  uint64_t state = (uint64_t)sample;
  for (int64_t i = 0; i < cells; i++) x[i] = (double)(problem_next(&state) % 1000);
  for (int64_t i = 0; i < outputs; i++)
    s->grad_out[i] = (float)(grad[i] = (double)(8 * (problem_next(&state) % 100 + 1)));
  reference_max_forward(&pool, x, maxima, s->index);
  reference_avg_forward(&pool, x, &sums); /* of at most 8 integers, divided by a power of 2 */
  for (int64_t i = 0; i < outputs; i++) s->means[i] = (float)sums.sum[i];
  for (int64_t i = 0; i < outputs; i++) s->maxima[i] = (float)maxima[i];
  for (int64_t i = 0; i < outputs; i++) s->mask[i] = (int32_t)s->index[i];
  for (int64_t i = 0; i < cells; i++) s->x[i] = (float)x[i];
  if (is_max(operator_of(sample)))
    reference_max_backward(&pool, grad, s->index, &sums);
  else
    reference_avg_backward(&pool, grad, &sums);
  for (int64_t i = 0; i < cells; i++) s->right[i] = (float)sums.sum[i];
  free(x), free(maxima), free(grad);
  free(sums.sum), free(sums.magnitude), free(sums.terms);
}

void problems_prepare(void) {
  for (int i = 0; i < SAMPLES; i++) prepare(i);
  memset(bad_index, 0xff, sizeof bad_index);
}

void problems_release(void) {
  for (int i = 0; i < SAMPLES; i++)
    free(samples[i].grad_out), free(samples[i].index), free(samples[i].mask),
        free(samples[i].right), free(samples[i].x), free(samples[i].maxima), free(samples[i].means);
}

/* --- a call --- */

static aclTensor *tensor(struct turn *t, int sample, int64_t side, aclDataType type, void *data) {
  const int64_t dims[RANK_MAX] = {1, samples[sample].channels, side, side, side};
  const uint64_t rank = (uint64_t)axes_of(sample) + 2;
  return MAKE(t, aclCreateTensor,
              (dims, rank, type, NULL, 0, rank == 5 ? ACL_FORMAT_NCDHW : ACL_FORMAT_NCHW, dims,
               rank, data));
}

static aclTensor *indices(struct turn *t, int sample, void *positions, void *mask) {
  const int64_t dims[] = {1, samples[sample].channels, MASK_ROWS, mask_width(sample)};
  if (sample != MAX_POOL2D_MASK)
    return tensor(t, sample, samples[sample].out, ACL_INT64, positions);
  return MAKE(t, aclCreateTensor, (dims, 4, ACL_INT8, NULL, 0, ACL_FORMAT_NCHW, dims, 4, mask));
}

/* The tensors; the arrays are made for each first phase. */
static struct operator_arguments describe(struct turn *t, int sample, float *grad_in) {
  const struct sample *s = &samples[sample];
  return (struct operator_arguments){
      .tensor = {[GRAD_OUT] = tensor(t, sample, s->out, ACL_FLOAT, s->grad_out),
                 [SELF] = tensor(t, sample, 2 * s->out, ACL_FLOAT, NULL),
                 [INDICES] = indices(t, sample, s->index, s->mask),
                 [GRAD_IN] = tensor(t, sample, 2 * s->out, ACL_FLOAT, grad_in)},
      .include_pad = true};
}

static void drop(struct turn *t, const struct operator_arguments *a) {
  for (int i = 0; i < POOL_TENSORS; i++) CALL(t, aclDestroyTensor, (a->tensor[i]), 0);
}

/* The first phase.  Codes: what it may fail with. */
#define PLAN(t, op, a, bytes, executor, ...) \
  plan(t, op, a, bytes, executor, (const int[]){__VA_ARGS__, CODES_END})

static int plan(struct turn *t, int op, const struct operator_arguments *tensors, uint64_t *bytes,
                aclOpExecutor **executor, const int *codes) {
  int64_t values[POOL_ARRAYS][3] = {[KERNEL_ARRAY] = {2, 2, 2},
                                    [STRIDE_ARRAY] = {2, 2, 2},
                                    [PADDING_ARRAY] = {0, 0, 0},
                                    [DILATION_ARRAY] = {1, 1, 1}};
  const uint64_t axes = (uint64_t)problem_spatial(&(struct problem){.op = (enum pool_operator)op});
  const struct operator_call *call = &operator_calls[op];
  struct operator_arguments a = *tensors;
  for (int i = 0; i < FORWARDS; i++)
    for (uint64_t axis = 0; axis < axes && forwards[i].op == op; axis++)
      values[OUTPUT_ARRAY][axis] = samples[forwards[i].sample].out;
  for (int i = 0; i < POOL_ARRAYS; i++) {
    const bool missing = op == AVG_POOL2D && i == STRIDE_ARRAY; /* its windows lie side by side */
    a.array[i] = missing ? NULL : MAKE(t, aclCreateIntArray, (values[i], axes));
  }
  enter(t, call->first_name);
  const int status = judge(t, call->first_name, call->first(&a, bytes, executor), codes);
  for (int i = 0; i < POOL_ARRAYS; i++) CALL(t, aclDestroyIntArray, (a.array[i]), 0);
  return status;
}

static int run(struct turn *t, int op, aclOpExecutor *executor, aclrtStream stream,
               const int *codes) {
  const struct operator_call *call = &operator_calls[op];
  void *workspace = fresh(t, WORKSPACE_BYTES);
  if (workspace == NULL) return -1;
  enter(t, call->second_name);
  return judge(t, call->second_name, call->second(workspace, WORKSPACE_BYTES, executor, stream),
               codes);
}

#define RUN(t, op, executor, stream, ...) \
  run(t, op, executor, stream, (const int[]){__VA_ARGS__, CODES_END})

/* --- executors that threads share --- */

/* Tensors of the shelf: most plans are refused, and none is run. */
static void plan_with_shared_tensors(struct turn *t) {
  struct operator_arguments a = {.include_pad = true};
  uint64_t bytes = 0;
  aclOpExecutor *executor = NULL;
  for (int i = 0; i < POOL_TENSORS; i++) a.tensor[i] = shelf_any(t, TENSORS);
  if (PLAN(t, (int)pick(t, POOL_OPERATORS), &a, &bytes, &executor, 161001, 161002, 561103) == 0)
    CALL(t, aclDestroyAclOpExecutor, (executor), 0);
}

static void make_executor(struct turn *t) {
  float *grad_in = fresh(t, (size_t)count_of(AVG_POOL2D, 10) * sizeof *grad_in);
  uint64_t bytes = 0;
  aclOpExecutor *executor = NULL;
  if (grad_in == NULL) return;
  const struct operator_arguments a = describe(t, AVG_POOL2D, grad_in);
  if (PLAN(t, AVG_POOL2D, &a, &bytes, &executor, 0) == 0)
    shelf_destroy(t, EXECUTORS, shelf_put(t, EXECUTORS, executor));
  drop(t, &a); /* they live on in the executor */
}

/* Every executor here is spent by its first run, so that its memory is written once. */
static void run_executor(struct turn *t) {
  aclOpExecutor *executor = shelf_any(t, EXECUTORS);
  const int op = chance(t, 16) ? (int)pick(t, POOL_OPERATORS) : AVG_POOL2D;
  RUN(t, op, executor, shelf_any(t, STREAMS), 161001, 161002, 361001, 561000);
}

/* A method is chosen for an executor that no other thread knows. */
static void choose_method(struct turn *t) {
  float *grad_in = fresh(t, (size_t)count_of(AVG_POOL2D, 10) * sizeof *grad_in);
  uint64_t bytes = 0;
  aclOpExecutor *executor = NULL;
  if (grad_in == NULL) return;
  const struct operator_arguments a = describe(t, AVG_POOL2D, grad_in);
  if (PLAN(t, AVG_POOL2D, &a, &bytes, &executor, 0) == 0) {
    const char *last = TELL(t, poolgrad_method_used, (executor, "cpu"));
    for (int i = 1; TELL(t, poolgrad_method, (executor, "cpu", i)) != NULL; i++)
      last = poolgrad_method(executor, "cpu", i);
    CALL(t, poolgrad_use_method, (executor, "cpu", last, &bytes), 0);
    CALL(t, poolgrad_use_method, (executor, "cpu", "no such method", &bytes), 161002);
    shelf_destroy(t, EXECUTORS, shelf_put(t, EXECUTORS, executor));
  }
  drop(t, &a);
}

/* Indices outside their plane make the stream fail, for whoever synchronises it. */
static void fail_in_a_stream(struct turn *t) {
  float *grad_in = fresh(t, (size_t)count_of(MAX_POOL2D, 2 * samples[MAX_POOL2D].out) * 4);
  uint64_t bytes = 0;
  aclOpExecutor *executor = NULL;
  if (grad_in == NULL) return;
  const struct operator_arguments a = describe(t, MAX_POOL2D, grad_in);
  CALL(t, aclSetRawTensorAddr, (a.tensor[INDICES], bad_index), 0);
  if (PLAN(t, MAX_POOL2D, &a, &bytes, &executor, 0) == 0)
    RUN(t, MAX_POOL2D, executor, shelf_any(t, STREAMS), 361001);
  drop(t, &a);
}

static void destroy_executor(struct turn *t) {
  const enum shelf shelf = chance(t, 2) ? EXECUTORS : REPEATABLES;
  shelf_destroy(t, shelf, shelf_any(t, shelf));
}

#define EXECUTOR_CODES 561000

static void set_addresses(struct turn *t, aclOpExecutor *executor,
                          const struct operator_arguments *a, aclTensorList *list, float *grad_in) {
  void *grad_out = samples[AVG_POOL2D].grad_out;
  CALL(t, aclSetOutputTensorAddr, (executor, 0, a->tensor[GRAD_IN], grad_in), EXECUTOR_CODES);
  CALL(t, aclSetInputTensorAddr, (executor, 0, a->tensor[GRAD_OUT], grad_out), EXECUTOR_CODES);
  CALL(t, aclSetTensorAddr, (executor, 0, a->tensor[GRAD_OUT], grad_out), EXECUTOR_CODES);
  CALL(t, aclSetDynamicOutputTensorAddr, (executor, 0, 0, list, grad_in), EXECUTOR_CODES);
  CALL(t, aclSetDynamicInputTensorAddr, (executor, 0, 1, list, grad_out), EXECUTOR_CODES);
  CALL(t, aclSetDynamicTensorAddr, (executor, 0, 1, list, grad_out), EXECUTOR_CODES);
}

static void expect_right(struct turn *t, int sample, const float *grad_in) {
  const struct sample *s = &samples[sample];
  const int64_t cells = count_of(sample, 2 * s->out);
  for (int64_t i = 0; i < cells; i++)
    if (memcmp(&grad_in[i], &s->right[i], sizeof *grad_in) != 0) {
      complain(t, "operator %d said 0, but cell %lld is %g and not %g", operator_of(sample),
               (long long)i, (double)grad_in[i], (double)s->right[i]);
      return;
    }
}

/* One that is run by its maker only, and may be destroyed by others meanwhile. */
static void run_repeatedly(struct turn *t) {
  uint64_t bytes = 0;
  aclOpExecutor *executor = NULL;
  aclrtStream stream = NULL;
  if (CALL(t, aclrtCreateStream, (&stream), CONTEXT_CODES) != 0) return;
  const struct operator_arguments a = describe(t, AVG_POOL2D, NULL);
  const aclTensor *members[] = {a.tensor[GRAD_IN], a.tensor[GRAD_OUT]};
  aclTensorList *list = MAKE(t, aclCreateTensorList, (members, 2));
  (void)PLAN(t, AVG_POOL2D, &a, &bytes, &executor, 0);
  CALL(t, aclSetAclOpExecutorRepeatable, (executor), 0);
  shelf_destroy(t, REPEATABLES, shelf_put(t, REPEATABLES, executor));
  for (int i = 0; i < 3; i++) {
    float *grad_in = fresh(t, (size_t)count_of(AVG_POOL2D, 10) * sizeof *grad_in);
    if (grad_in == NULL) break;
    set_addresses(t, executor, &a, list, grad_in);
    if (RUN(t, AVG_POOL2D, executor, stream, 361001, 561000, 161001) == 0 &&
        CALL(t, aclrtSynchronizeStream, (stream), STREAM_CODES, OUTCOMES) == 0)
      expect_right(t, AVG_POOL2D, grad_in);
  }
  CALL(t, aclDestroyTensorList, (list), 0);
  CALL(t, aclDestroyTensor, (a.tensor[INDICES]), 0);
  CALL(t, aclDestroyTensor, (a.tensor[SELF]), 0);
  CALL(t, aclrtDestroyStream, (stream), STREAM_CODES);
}

/* --- results --- */

static void check_sample(struct turn *t, int sample, float *grad_in) {
  uint64_t bytes = 0;
  aclOpExecutor *executor = NULL;
  aclrtStream stream = NULL;
  if (grad_in == NULL || CALL(t, aclrtCreateStream, (&stream), CONTEXT_CODES) != 0) return;
  const int op = operator_of(sample);
  const struct operator_arguments a = describe(t, sample, grad_in);
  bool good = PLAN(t, op, &a, &bytes, &executor, 0) == 0;
  if (bytes > WORKSPACE_BYTES) complain(t, "operator %d wants %d bytes", op, (int)bytes);
  drop(t, &a);
  good = good && RUN(t, op, executor, stream, 361001) == 0;
  good = CALL(t, aclrtSynchronizeStream, (stream), STREAM_CODES, OUTCOMES) == 0 && good;
  if (good) expect_right(t, sample, grad_in);
  CALL(t, aclrtDestroyStream, (stream), STREAM_CODES);
}

static void run_alone(struct turn *t) {
  const int sample = (int)pick(t, BACKWARD_OPERATORS);
  const int64_t cells = count_of(sample, 2 * samples[sample].out);
  check_sample(t, sample, fresh(t, (size_t)cells * sizeof(float)));
}

static void run_large(struct turn *t) {
  check_sample(t, LARGE, fresh_large(t, (size_t)count_of(LARGE, 2 * samples[LARGE].out) * 4));
}

/* What a forward operator wrote, its indices or its mask too. */
static void expect_forward(struct turn *t, int number, const float *out, const void *held) {
  const int op = forwards[number].op, sample = forwards[number].sample;
  const struct sample *s = &samples[sample];
  const size_t outputs = (size_t)count_of(sample, s->out);
  const bool mask = op == MAX_POOL2D_MASK_FORWARD;
  const size_t bytes =
      mask ? (size_t)(s->channels * MASK_ROWS * mask_width(sample)) : outputs * sizeof *s->index;
  if (memcmp(out, is_max(op) ? s->maxima : s->means, outputs * sizeof *out) != 0)
    complain(t, "operator %d said 0, but its outputs are wrong", op);
  if (is_max(op) && op != MAX_POOL_FORWARD &&
      memcmp(held, mask ? s->mask : (void *)s->index, bytes) != 0)
    complain(t, "operator %d said 0, but its indices are wrong", op);
}

static void run_forward(struct turn *t) {
  const int number = (int)pick(t, FORWARDS);
  const int op = forwards[number].op, sample = forwards[number].sample;
  const struct sample *s = &samples[sample];
  uint64_t bytes = 0;
  aclOpExecutor *executor = NULL;
  aclrtStream stream = NULL;
  float *out = fresh(t, (size_t)count_of(sample, s->out) * sizeof *out);
  void *held = fresh(
      t, (size_t)(count_of(sample, s->out) * 8 + s->channels * MASK_ROWS * mask_width(sample)));
  if (out == NULL || held == NULL) return;
  if (CALL(t, aclrtCreateStream, (&stream), CONTEXT_CODES) != 0) return;
  const struct operator_arguments a = {
      .tensor = {[GRAD_OUT] = tensor(t, sample, s->out, ACL_FLOAT, out),
                 [SELF] = tensor(t, sample, 2 * s->out, ACL_FLOAT, s->x),
                 [INDICES] = indices(t, sample, held, held)},
      .include_pad = true};
  bool good = PLAN(t, op, &a, &bytes, &executor, 0) == 0;
  drop(t, &a);
  good = good && RUN(t, op, executor, stream, 361001) == 0;
  good = CALL(t, aclrtSynchronizeStream, (stream), STREAM_CODES, OUTCOMES) == 0 && good;
  if (good) expect_forward(t, number, out, held);
  CALL(t, aclrtDestroyStream, (stream), STREAM_CODES);
}

/* A random problem with guarded memory, in a context of its own: nothing can disturb it. */
static void run_trial(struct turn *t) {
  struct trial_devices devices = {.count = 1};
  char why[PROBLEM_TEXT], text[PROBLEM_TEXT];
  const struct problem p = problem_random(pick(t, UINT32_MAX), 1500);
  if (CALL(t, aclrtCreateContext, (&devices.at[0].context, QUIET_DEVICE), 0) != 0) return;
  if (CALL(t, aclrtCreateStream, (&devices.at[0].stream), 0) == 0) {
    enter(t, "trial_run");
    if (!trial_run(&p, &devices, why)) {
      problem_print(&p, text);
      complain(t, "%s: %s", text, why);
    }
    CALL(t, aclrtDestroyStream, (devices.at[0].stream), 0);
  }
  CALL(t, aclrtDestroyContext, (devices.at[0].context), 0);
}

const struct row operator_rows[] = {
    ROW(plan_with_shared_tensors, 40, ANY_WEATHER),
    ROW(make_executor, 40, ANY_WEATHER),
    ROW(choose_method, 10, ANY_WEATHER),
    ROW(run_executor, 60, ANY_WEATHER),
    ROW(fail_in_a_stream, 10, ANY_WEATHER),
    ROW(destroy_executor, 10, ANY_WEATHER),
    ROW(run_repeatedly, 15, ANY_WEATHER),
    ROW(run_alone, 40, ANY_WEATHER),
    ROW(run_forward, 40, ANY_WEATHER),
    ROW(run_large, 4, ANY_WEATHER),
    ROW(run_trial, 10, CALM | UNCANCELLED),
    {NULL, 0, 0, NULL},
};
