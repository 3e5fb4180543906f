/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes become one call of one operator with anything at all in it (operators.h).
 *
 * The first phase must give what the operators' documents say: 0, or 161001 or 161002 with a
 * sentence and without any effect.  What it accepts and is not too large is executed on every
 * device, on a CPU with every kernel set it has, and must have the bits of the reference; nothing
 * but gradInput's cells may change.  Before that the second phase may be given something wrong. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "aclnn/opdev/op_errno.h"
#include "core/handle.h"
#include "core/index_policy.h"
#include "core/soc.h"
#include "cpu/method.h"
#include "cpu/nontemporal.h"
#include "device.h"
#include "float_format.h"
#include "operators.h"
#include "trial.h"

enum { NOT_TOUCHED = 0x5a };

static struct call current;

/* The call comes before what is wrong with it. */
#define wrong(...) (call_print(&current), wrong(__VA_ARGS__))

static struct trial_devices devices;
static const char *kernel_sets[4]; /* those of this CPU, NULL behind the last */

static const char *sentence(void) {
  const char *text = aclGetRecentErrMsg();
  return text == NULL ? "(no sentence)" : text;
}

#define NEED(call)                                                         \
  do {                                                                     \
    const int status_ = (call);                                            \
    if (status_ != 0) wrong("%s gave %d: %s", #call, status_, sentence()); \
  } while (0)

static void set(const char *name, const char *value, aclError (*configure)(const char *)) {
  setenv(name, value, 1);
  NEED(configure("fuzz_operators"));
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  static const char *const names[] = {"avx512", "avx2", "neon", "scalar"};
  int count = 0;
  (void)argc;
  (void)argv;
  NEED(aclInit(NULL));
  NEED(aclrtSetDevice(0));
  if (!trial_devices_open(&devices)) wrong("no devices: %s", sentence());
  NEED(poolgrad_set_threads(1));
  for (int i = 0; i < 4; i++) {
    setenv("POOLGRAD_ISA", names[i], 1);
    if (pg_isa_configure("fuzz_operators") == ACL_SUCCESS) kernel_sets[count++] = names[i];
  }
  (void)aclGetRecentErrMsg();
  return 0;
}

/* --- the first phase ---------------------------------------------------------------------------
 */

/* The handles of one call, and what it gives. */
struct made {
  struct operator_arguments arguments;
  uint64_t size;
  aclOpExecutor *executor;
};

/* What cannot be a live handle of the right kind. */
static void *wrong_handle(enum handle_kind kind, bool tensor) {
  static const int64_t one = 1;
  void *handle;
  switch (kind) {
    case STALE:
      if (tensor) {
        handle = aclCreateTensor(&one, 1, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, &one, 1, NULL);
        NEED(aclDestroyTensor(handle));
      } else {
        handle = aclCreateIntArray(&one, 1);
        NEED(aclDestroyIntArray(handle));
      }
      return handle;
    case OTHER_KIND:
      return devices.at[0].stream;
    case NONSENSE:
      return (void *)(uintptr_t)0x123456789;
    default:
      return NULL;
  }
}

static aclTensor *make_tensor(const struct call_tensor *t, void *address) {
  if (t->handle != LIVE) return wrong_handle(t->handle, true);
  aclTensor *made = aclCreateTensor(t->dims, (uint64_t)t->rank, (aclDataType)t->dtype,
                                    t->strided ? t->strides : NULL, t->offset, (aclFormat)t->format,
                                    t->dims, (uint64_t)t->rank, address);
  if (made == NULL) wrong("a tensor cannot be described: %s", sentence());
  return made;
}

static void make(const struct call *call, void *const address[POOL_TENSORS], struct made *m) {
  struct operator_arguments *a = &m->arguments;
  *m = (struct made){.arguments = {.ceil = call->ceil,
                                   .include_pad = call->include_pad,
                                   .divisor = call->divisor,
                                   .cube = (int8_t)call->cube},
                     .size = NOT_TOUCHED,
                     .executor = (aclOpExecutor *)(uintptr_t)NOT_TOUCHED};
  for (int i = 0; i < POOL_TENSORS; i++) a->tensor[i] = make_tensor(&call->tensor[i], address[i]);
  for (int i = 0; i < CALL_ARRAYS; i++) {
    const struct call_array *from = &call->array[i];
    a->array[i] = from->handle == LIVE ? aclCreateIntArray(from->of, (uint64_t)from->count)
                                       : wrong_handle(from->handle, false);
  }
}

static void unmake(const struct call *call, struct made *m) {
  for (int i = 0; i < POOL_TENSORS; i++)
    if (call->tensor[i].handle == LIVE && m->arguments.tensor[i] != NULL)
      NEED(aclDestroyTensor(m->arguments.tensor[i]));
  for (int i = 0; i < CALL_ARRAYS; i++)
    if (call->array[i].handle == LIVE) NEED(aclDestroyIntArray(m->arguments.array[i]));
}

/* A failure has a sentence, a success has none. */
static void expect_sentence(const char *what, int status) {
  const char *text = aclGetRecentErrMsg();
  if (status != 0 && text == NULL) wrong("%s gave %d without a sentence", what, status);
  if (status == 0 && text != NULL) wrong("%s succeeded and said: %s", what, text);
}

static aclnnStatus first_phase(const struct call *call, struct made *m) {
  (void)aclGetRecentErrMsg();
  const aclnnStatus status = operator_calls[call->op].first(
      &m->arguments, call->no_size ? NULL : &m->size, call->no_executor ? NULL : &m->executor);
  const bool touched =
      m->size != NOT_TOUCHED || m->executor != (aclOpExecutor *)(uintptr_t)NOT_TOUCHED;
  if (status != ACLNN_SUCCESS && touched) wrong("the first phase gave %d and results", status);
  return status;
}

static bool phase_one(const struct call *call) {
  static void *const nowhere[POOL_TENSORS] = {NULL};
  static const int codes[] = {[ACCEPT] = ACLNN_SUCCESS,
                              [REFUSE_NULL] = ACLNN_ERR_PARAM_NULLPTR,
                              [REFUSE] = ACLNN_ERR_PARAM_INVALID};
  const enum verdict verdict = call_verdict(call);
  struct made m;
  make(call, nowhere, &m);
  const aclnnStatus status = first_phase(call, &m);
  if (verdict == EITHER ? status != ACLNN_SUCCESS && status != ACLNN_ERR_PARAM_INVALID
                        : status != codes[verdict])
    wrong("the first phase gave %d, verdict %d: %s", status, (int)verdict, sentence());
  expect_sentence("the first phase", status);
  if (status == ACLNN_SUCCESS) NEED(aclDestroyAclOpExecutor(m.executor));
  unmake(call, &m);
  return status == ACLNN_SUCCESS;
}

/* --- is it small enough to be run? -------------------------------------------------------------
 */

enum { MOST_BYTES = 1 << 21, MOST_CELLS = 1 << 17, MOST_WORK = 1 << 21 };

/* Bytes from the data address to the end of the last element; 0 when empty, -1 when too many. */
static int64_t span(const struct call_tensor *t) {
  int64_t strides[CALL_AXES];
  double last = (double)t->offset;
  if (call_is_empty(t)) return 0;
  call_strides(t, strides);
  for (int i = 0; i < t->rank; i++) last += (double)(t->dims[i] - 1) * (double)strides[i];
  const double bytes = (last + 1) * (double)call_element(t->dtype);
  return bytes <= MOST_BYTES ? (int64_t)bytes : -1;
}

static double cells(const struct call_tensor *t) {
  double product = 1;
  for (int i = 0; i < t->rank; i++) product *= (double)t->dims[i];
  return product;
}

/* The tensor by N, C, D, H and W, as the library must understand it. */
static void lay_out(const struct call *call, int which, struct tensor_layout *l) {
  const struct call_tensor *t = &call->tensor[which];
  const int spatial = call_spatial(call), batch = t->rank - spatial - 1;
  const bool last = call_channels_last(call);
  int64_t strides[CALL_AXES];
  call_strides(t, strides);
  *l = (struct tensor_layout){.offset = t->offset, .size = {1, 1, 1, 1, 1}};
  for (int i = 0; i < t->rank; i++) {
    int axis = AXIS_W - (t->rank - 1 - i) + (last ? 1 : 0);
    if (i < batch) axis = AXIS_N;
    if (last ? i == t->rank - 1 : i == batch) axis = AXIS_C;
    l->size[axis] = t->dims[i];
    l->step[axis] = t->dims[i] == 1 ? 0 : strides[i];
  }
  const int64_t bytes = span(t);
  l->elements = bytes < 0 ? 0 : bytes / (int64_t)call_element(t->dtype);
}

static struct window_sizes window_sizes(const struct call_array *a) {
  if (a->handle != LIVE) return (struct window_sizes){.count = STRIDE_NULL};
  return (struct window_sizes){.count = a->count, .of = {a->of[0], a->of[1]}};
}

static int float_type(int dtype) {
  int type = F32;
  while (float_formats[type].dtype != (aclDataType)dtype) type++;
  return type;
}

/* The same call in the language of the tests. */
static struct problem describe(const struct call *call, const struct tensor_layout *layout) {
  struct problem p = {.op = call->op,
                      .type = float_type(call->tensor[SELF].dtype),
                      .index_bytes = call->tensor[INDICES].dtype == ACL_INT64 ? 8 : 4,
                      .format = (aclFormat)call->tensor[SELF].format,
                      .n = layout[GRAD_IN].size[AXIS_N],
                      .c = layout[GRAD_IN].size[AXIS_C],
                      .ceil = call->ceil,
                      .include_pad = call->include_pad,
                      .divisor = call->op == AVG_POOL2D ? call->divisor : 0,
                      .index = call->index,
                      .data = call->data,
                      .seed = call->seed};
  for (int i = 0; i < 3; i++) {
    p.in[i] = layout[GRAD_IN].size[AXIS_D + i];
    p.out[i] = layout[GRAD_OUT].size[AXIS_D + i];
  }
  if (!call_is_sliding(call)) return p;
  p.kernel = window_sizes(&call->array[KERNEL]);
  p.stride = window_sizes(&call->array[STRIDE]);
  p.pad = window_sizes(&call->array[PADDING]);
  if (call->op == MAX_POOL2D) p.dilation = window_sizes(&call->array[DILATION]);
  return p;
}

/* Cells of all windows, roughly: the reference walks over them one by one. */
static double work(const struct reference_pooling *pool) {
  double windows = (double)pool->planes;
  for (int i = 0; i < 3; i++) {
    const struct reference_axis *a = &pool->axis[i];
    const double wide = a->kernel > 0 ? (double)a->kernel : (double)a->in / (double)(a->out + 1);
    windows *= (double)a->out * ((wide < (double)a->in ? wide : (double)a->in) + 2);
  }
  return windows;
}

/* Divisors that a double cannot hold exactly have no reference. */
static bool is_exact(const struct reference_pooling *pool) {
  double product = 1;
  for (int i = 0; i < 3; i++) product *= (double)pool->axis[i].kernel + 1;
  return product < 0x1p50;
}

static bool is_small(const struct call *call) {
  const bool max = call_is_max(call);
  for (int i = 0; i < POOL_TENSORS; i++)
    if (i != SELF && (i != INDICES || max) &&
        (span(&call->tensor[i]) < 0 || cells(&call->tensor[i]) > MOST_CELLS))
      return false;
  return true;
}

/* --- the data ----------------------------------------------------------------------------------
 */

static void make_memory(struct trial *t, int which, size_t element, int poison) {
  const size_t bytes = (size_t)t->layout[which].elements * element;
  if (!guarded_make(&t->memory[which], bytes, poison)) wrong("no memory");
}

static void *make_numbers(int64_t count, size_t bytes) {
  void *numbers = calloc((size_t)count + 1, bytes);
  if (numbers == NULL) wrong("no memory");
  return numbers;
}

/* Any bits but two kinds: all ones, which is poison, and numbers so large that a sum of them in
 * single precision could leave its range on the way, where the reference does not follow. */
static uint64_t raw_bits(const struct float_format *format, uint64_t *state) {
  const uint64_t bits = problem_next(state) & ~UINT64_C(1);
  const double value = float_decode(format, &bits);
  return isfinite(value) && fabs(value) > 0x1p100 ? 0 : bits;
}

/* Gradients with all kinds of NaN, all exponents. */
static void fill_raw(struct trial *t) {
  const struct float_format *format = &float_formats[t->problem.type];
  char *to = guarded_payload(&t->memory[GRAD_OUT]);
  uint64_t state = t->problem.seed;
  for (int64_t i = 0; i < t->outputs; i++) {
    const uint64_t bits = raw_bits(format, &state);
    memcpy(to + tensor_place(&t->layout[GRAD_OUT], i) * (int64_t)format->bytes, &bits,
           format->bytes);
  }
  for (int64_t i = 0; i < t->outputs; i++)
    t->grad_out[i] =
        float_decode(format, to + tensor_place(&t->layout[GRAD_OUT], i) * (int64_t)format->bytes);
}

static bool open_trial(const struct call *call, struct trial *t) {
  *t = (struct trial){.devices = &devices};
  for (int i = 0; i < POOL_TENSORS; i++)
    if (i != INDICES || call_is_max(call)) lay_out(call, i, &t->layout[i]);
  t->problem = describe(call, t->layout);
  t->pool = problem_pooling(&t->problem);
  if (!is_exact(&t->pool) || work(&t->pool) > MOST_WORK) return false;
  t->outputs = tensor_cells(&t->layout[GRAD_OUT]);
  t->cells = tensor_cells(&t->layout[GRAD_IN]);
  const size_t element = float_formats[t->problem.type].bytes;
  for (int i = 0; i < POOL_TENSORS; i++)
    make_memory(t, i, i == INDICES ? (size_t)t->problem.index_bytes : element,
                i == INDICES ? 0x00 : 0xff);
  t->x = make_numbers(t->cells, sizeof *t->x);
  t->results = t->cells;
  t->result = make_numbers(t->results, sizeof *t->result);
  t->bits = make_numbers(t->results, sizeof(double));
  t->grad_out = make_numbers(t->outputs, sizeof *t->grad_out);
  t->index = make_numbers(t->outputs, sizeof *t->index);
  trial_fill(t);
  if (call->raw_bits) fill_raw(t);
  for (int i = 0; i < POOL_TENSORS; i++) NEED(guarded_send(&t->memory[i]));
  return true;
}

/* --- the second phase --------------------------------------------------------------------------
 */

static void addresses(const struct trial *t, void *address[POOL_TENSORS]) {
  for (int i = 0; i < POOL_TENSORS; i++) address[i] = t->memory[i].device;
}

static void make_workspace(struct trial *t, uint64_t size) {
  if (t->workspace.device == NULL && size > 0) {
    if (size > MOST_BYTES * UINT64_C(16)) wrong("a workspace of %" PRIu64 " bytes", size);
    if (!guarded_make(&t->workspace, (size_t)size, 0xa5)) wrong("no memory");
    NEED(guarded_send(&t->workspace));
  }
  if (t->workspace.bytes != size) wrong("another workspaceSize than before");
}

/* An executor that is ready to run with these addresses. */
static void prepare(const struct call *call, struct trial *t, void *const address[POOL_TENSORS],
                    struct made *m) {
  static void *const nowhere[POOL_TENSORS] = {NULL};
  make(call, call->late ? nowhere : address, m);
  NEED(first_phase(call, m));
  make_workspace(t, m->size);
  for (int i = 0; i < POOL_TENSORS && call->late; i++)
    if (call->tensor[i].handle == LIVE)
      NEED(aclSetRawTensorAddr(m->arguments.tensor[i], address[i]));
  if (call->repeatable) NEED(aclSetAclOpExecutorRepeatable(m->executor));
}

/* What a tensor is described as after the first phase is the next call's business. */
static void redescribe(const struct call *call, struct made *m) {
  static const int64_t dims[] = {3}, strides[] = {INT64_MAX};
  for (int i = 0; i < POOL_TENSORS; i++)
    if (call->tensor[i].handle == LIVE)
      NEED(aclInitTensor(m->arguments.tensor[i], dims, 1, ACL_INT8, strides, -5, ACL_FORMAT_NHWC,
                         dims, 1, NULL));
}

static void release_tensors(const struct call *call, struct made *m) {
  for (int i = 0; i < POOL_TENSORS; i++) {
    if (call->tensor[i].handle != LIVE) continue;
    NEED(aclDestroyTensor(m->arguments.tensor[i]));
    m->arguments.tensor[i] = NULL;
  }
}

/* The report of indices outside their plane ends the stream with an error where it is told to. */
static void finish(struct trial *t, aclrtStream stream) {
  const int status = aclrtSynchronizeStream(stream);
  t->bad_index_reported = status == ACL_ERROR_RT_AICORE_EXCEPTION;
  if (!t->bad_index_reported && status != ACL_SUCCESS)
    wrong("the stream gave %d: %s", status, sentence());
  const char *text = aclGetRecentErrMsg();
  const char *count = text == NULL ? NULL : strstr(text, "Backward: ");
  t->reported = count == NULL ? -1 : strtoll(count + strlen("Backward: "), NULL, 10);
}

static void launch(const struct call *call, struct trial *t) {
  const aclrtStream stream = devices.at[t->device].stream;
  operator_second_phase *run = operator_calls[call->op].second;
  void *address[POOL_TENSORS];
  struct made m;
  addresses(t, address);
  prepare(call, t, address, &m);
  if (call->redescribed) redescribe(call, &m);
  if (call->released) release_tensors(call, &m);
  NEED(run(t->workspace.device, m.size, m.executor, stream));
  if (call->repeatable) {
    NEED(run(t->workspace.device, m.size, m.executor, stream));
    NEED(aclDestroyAclOpExecutor(m.executor));
  }
  unmake(call, &m); /* before the work is waited for */
  expect_sentence("the second phase", ACLNN_SUCCESS);
  finish(t, stream);
}

/* --- what is wrong with the second phase alone -------------------------------------------------
 */

static bool is_operand(const struct call *call, int i) {
  return i != SELF && (i != INDICES || call_is_max(call)) && !call_is_empty(&call->tensor[i]);
}

/* Do gradInput and another operand overlap if both have this one's address? */
static bool would_overlap(const struct call *call, const struct trial *t, int other) {
  const int64_t a = (int64_t)call_element(call->tensor[GRAD_IN].dtype);
  const int64_t b = (int64_t)call_element(call->tensor[other].dtype);
  return t->layout[GRAD_IN].offset * a < t->layout[other].elements * b &&
         t->layout[other].offset * b < t->layout[GRAD_IN].elements * a;
}

/* Moves an operand's address; what the second phase must give, 0 if nothing is wrong with it. */
static int move_address(const struct call *call, struct trial *t, void *address[POOL_TENSORS]) {
  const int i = call->troubled;
  if (!is_operand(call, i) || !is_operand(call, GRAD_IN)) return 0;
  switch (call->trouble) {
    case NO_ADDRESS:
      address[i] = NULL;
      return ACLNN_ERR_PARAM_NULLPTR;
    case ODD_ADDRESS:
      address[i] = t->memory[i].device + 1;
      return ACLNN_ERR_PARAM_INVALID;
    case SHORT_MEMORY: /* so near the end of its allocation that less than 256 bytes are left */
      if (t->memory[i].bytes < 256) return 0;
      address[i] = t->memory[i].device + (t->memory[i].bytes + 192) / 64 * 64;
      return ACLNN_ERR_PARAM_INVALID;
    case OVERLAP:
      if (i == GRAD_IN || !would_overlap(call, t, i)) return 0;
      address[GRAD_IN] = address[i];
      return ACLNN_ERR_PARAM_INVALID;
    default:
      return 0;
  }
}

static aclrtStream stale_stream(void) {
  aclrtStream stream;
  NEED(aclrtCreateStream(&stream));
  NEED(aclrtDestroyStream(stream));
  return stream;
}

/* Makes the wrong call; what it must give goes to *expected, -1 for any failure. */
static aclnnStatus call_wrongly(const struct call *call, struct trial *t, struct made *m,
                                int *expected) {
  const aclrtStream stream = devices.at[t->device].stream;
  operator_second_phase *run = operator_calls[call->op].second;
  void *workspace = t->workspace.device;
  switch (call->trouble) {
    case BAD_WORKSPACE:
      *expected =
          m->size == 0 || call->troubled == 0 ? ACLNN_ERR_PARAM_NULLPTR : ACLNN_ERR_PARAM_INVALID;
      if (*expected == ACLNN_ERR_PARAM_NULLPTR) return run(NULL, m->size + 1, m->executor, stream);
      return run(workspace, m->size - 1, m->executor, stream);
    case STALE_STREAM:
      *expected = ACLNN_ERR_RUNTIME_ERROR;
      return run(workspace, m->size, m->executor, stale_stream());
    case OTHER_OPERATOR:
      *expected = -1;
      run = operator_calls[(call->op + 1) % FIRST_OPERATORS].second;
      return run(workspace, m->size, m->executor, stream);
    case NO_EXECUTOR:
      *expected = call->troubled == 0 ? ACLNN_ERR_PARAM_NULLPTR : ACLNN_ERR_INNER;
      if (call->troubled == 0) return run(workspace, m->size, NULL, stream);
      NEED(aclDestroyAclOpExecutor(m->executor));
      return run(workspace, m->size, m->executor, stream);
    default:
      return run(workspace, m->size, m->executor, stream);
  }
}

static void expect_unchanged(struct trial *t) {
  for (int i = 0; i < POOL_TENSORS; i++) {
    int64_t offset;
    NEED(guarded_fetch(&t->memory[i]));
    if (guarded_differs(&t->memory[i], false, &offset))
      wrong("a failed call changed byte %" PRId64 " of tensor %d", offset, i);
    NEED(guarded_send(&t->memory[i]));
  }
}

static void try_trouble(const struct call *call, struct trial *t) {
  void *address[POOL_TENSORS];
  struct made m;
  addresses(t, address);
  int expected = move_address(call, t, address);
  if (expected == 0 && call->trouble < BAD_WORKSPACE) return;
  if (call->trouble == BAD_WORKSPACE && !is_operand(call, GRAD_IN)) return;
  prepare(call, t, address, &m);
  const aclnnStatus status = call_wrongly(call, t, &m, &expected);
  if (expected == -1 ? status == ACLNN_SUCCESS : status != expected)
    wrong("trouble %d of operand %d: the second phase gave %d, expected %d: %s", (int)call->trouble,
          call->troubled, status, expected, sentence());
  expect_sentence("the second phase", status);
  (void)aclDestroyAclOpExecutor(m.executor); /* where the call has not taken it */
  (void)aclGetRecentErrMsg();
  unmake(call, &m);
  NEED(aclrtSynchronizeStream(devices.at[t->device].stream));
  expect_unchanged(t);
}

/* --- runs --------------------------------------------------------------------------------------
 */

static void run_once(const struct call *call, struct trial *t, const char *kernel_set) {
  if (kernel_set != NULL) set("POOLGRAD_ISA", kernel_set, pg_isa_configure);
  NEED(guarded_send(&t->memory[GRAD_IN]));
  launch(call, t);
  if (!trial_fetch(t) || !trial_compare(t))
    wrong("device %d, %s: %s", t->device, kernel_set == NULL ? "cuda" : kernel_set, t->why);
}

static void run_everywhere(const struct call *call, struct trial *t) {
  for (int device = 0; device < devices.count; device++) {
    if (!trial_move(t, device)) wrong("%s", t->why);
    if (call->trouble != NO_TROUBLE) try_trouble(call, t);
    if (on_cuda()) run_once(call, t, NULL);
    for (int i = 0; !on_cuda() && kernel_sets[i] != NULL; i++) run_once(call, t, kernel_sets[i]);
  }
}

static void run(const struct call *call) {
  struct trial t;
  set("POOLGRAD_STREAM_BYTES", call->past_caches ? "1" : "1000000000", pg_nontemporal_configure);
  /* without cells there is no work, and nobody looks at the indices */
  const bool errors = call->errors && !call_is_empty(&call->tensor[GRAD_IN]);
  set("POOLGRAD_INDEX_CHECK", errors ? "error" : "off", pg_index_policy_configure);
  if (call->many_threads) NEED(poolgrad_set_threads(3));
  if (open_trial(call, &t)) run_everywhere(call, &t);
  trial_close(&t);
  if (call->many_threads) NEED(poolgrad_set_threads(1));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct input in = {data, data + size};
  call_decode(&in, &current);
  set("POOLGRAD_SOC", current.soc, pg_soc_configure);
  if (phase_one(&current) && is_small(&current)) run(&current);
  const enum pg_kind kinds[] = {PG_TENSOR, PG_INT_ARRAY, PG_EXECUTOR};
  for (int i = 0; i < 3; i++)
    if (pg_handle_count(kinds[i]) != 0) wrong("objects of kind %d are left", (int)kinds[i]);
  return 0;
}
