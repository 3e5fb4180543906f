/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes become one call of one of the operators on tensors of any shape (tests/tensor_operators.h)
 * with anything at all in it.
 *
 * The first phase accepts it, or gives 161001 or 161002 with a sentence and without any effect.
 * What it accepts and is small is run on every device, on a CPU with every kernel set it has, by
 * every method that fits: in memory of just the size that the views span, with guards on both
 * sides.  Nothing but elements of results may change; a second run of the same executor must leave
 * the same bytes, every other run the same results, and so must tensors that lie in one memory and
 * those that do not. */
#include <inttypes.h>
#include <string.h>

#include "aclnn/opdev/op_errno.h"
#include "core/handle.h"
#include "core/index_policy.h"
#include "cpu/method.h"
#include "cpu/nontemporal.h"
#include "device.h"
#include "tensors.h"
#include "trial.h"

enum { MOST_WORKSPACE = 64 << 20 };

struct fuzzed_call current;

static struct trial_devices devices;
static const char *kernel_sets[4]; /* those of this CPU, NULL behind the last */
static bool trace;                 /* POOLGRAD_FUZZ_TRACE is set: every call is shown */

static void set(const char *name, const char *value, aclError (*configure)(const char *)) {
  setenv(name, value, 1);
  NEED(configure("fuzz_tensors"));
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
    if (pg_isa_configure("fuzz_tensors") == ACL_SUCCESS && count < 3)
      kernel_sets[count++] = names[i];
  }
  (void)aclGetRecentErrMsg();
  trace = getenv("POOLGRAD_FUZZ_TRACE") != NULL;
  return 0;
}

/* --- The first phase ---------------------------------------------------------------------------
 */

/* A failure has a sentence, a success has none. */
static void expect_sentence(const char *what, int status) {
  const char *text = aclGetRecentErrMsg();
  if (status != 0 && text == NULL) wrong("%s gave %d without a sentence", what, status);
  if (status == 0 && text != NULL) wrong("%s succeeded and said: %s", what, text);
}

static aclnnStatus first_phase(const struct fuzzed_call *f, struct made *m) {
  (void)aclGetRecentErrMsg();
  const aclnnStatus status = tensor_call_first(
      &m->call, &m->arguments, f->no_size ? NULL : &m->size, f->no_executor ? NULL : &m->executor);
  const bool touched =
      m->size != NOT_TOUCHED || m->executor != (aclOpExecutor *)(uintptr_t)NOT_TOUCHED;
  if (status != ACLNN_SUCCESS && touched) wrong("the first phase gave %d and results", status);
  return status;
}

static bool is_refusal(aclnnStatus status) {
  return status == ACLNN_ERR_PARAM_NULLPTR || status == ACLNN_ERR_PARAM_INVALID;
}

static bool phase_one(const struct fuzzed_call *f) {
  struct made m;
  made_open(&m, f, NULL);
  const aclnnStatus status = first_phase(f, &m);
  if (status != ACLNN_SUCCESS && !is_refusal(status))
    wrong("the first phase gave %d: %s", status, sentence());
  expect_sentence("the first phase", status);
  if (status == ACLNN_SUCCESS) NEED(aclDestroyAclOpExecutor(m.executor));
  made_drop(&m);
  return status == ACLNN_SUCCESS;
}

/* --- The second phase --------------------------------------------------------------------------
 */

/* A call that is ready to run. */
struct ready {
  struct made m;
  struct guarded workspace;
  aclrtStream stream;
  const char *backend;
};

static void make_workspace(struct ready *r) {
  if (r->m.size > MOST_WORKSPACE) wrong("a workspace of %" PRIu64 " bytes", r->m.size);
  if (r->m.size == 0) return;
  if (!guarded_make(&r->workspace, (size_t)r->m.size, 0xa5)) wrong("no memory");
  NEED(guarded_send(&r->workspace));
}

static void set_addresses(const struct stage *s, struct made *m) {
  for (int n = 0; n < s->f->operands; n++)
    NEED(aclSetRawTensorAddr(m->arguments.tensor[n], stage_address(s, n, 0)));
}

/* By the method with this number, among those that fit; false if there are fewer, or if the
 * executor's methods stay as they are. */
static bool prepare(struct stage *s, int device, int method, struct ready *r) {
  const struct fuzzed_call *f = s->f;
  *r = (struct ready){.stream = devices.at[device].stream, .backend = devices.at[device].backend};
  stage_send(s);
  made_open(&r->m, f, s);
  NEED(first_phase(f, &r->m));
  const char *name = poolgrad_method(r->m.executor, r->backend, method);
  const bool fits = method == 0 || (name != NULL && poolgrad_use_method(r->m.executor, r->backend,
                                                                        name, &r->m.size) == 0);
  (void)aclGetRecentErrMsg();
  if (!fits) {
    NEED(aclDestroyAclOpExecutor(r->m.executor));
    made_drop(&r->m);
    return false;
  }
  make_workspace(r);
  if (f->is_late) set_addresses(s, &r->m);
  NEED(aclSetAclOpExecutorRepeatable(r->m.executor));
  return true;
}

static void finish(struct ready *r) {
  (void)aclDestroyAclOpExecutor(r->m.executor); /* where no wrong call has spent it */
  made_drop(&r->m);
  guarded_free(&r->workspace);
  (void)aclGetRecentErrMsg();
}

/* Of indices outside their axis a stream fails where it was told to. */
static void synchronise(const struct fuzzed_call *f, aclrtStream stream) {
  const enum tensor_kind kind = tensor_operators[f->call.op].kind;
  const bool has_indices = kind == KIND_GATHER || kind == KIND_UNPOOL2D || kind == KIND_UNPOOL3D;
  const int status = aclrtSynchronizeStream(stream);
  if (status != ACL_SUCCESS &&
      !(status == ACL_ERROR_RT_AICORE_EXCEPTION && f->errors && has_indices))
    wrong("the stream gave %d: %s", status, sentence());
  expect_sentence("the stream", status);
}

/* How many elements were selected is told, and others of out stay as they were. */
static void check_selected(const struct stage *s, const struct made *m) {
  const struct called_tensor *t = &s->f->operand[2].member[0];
  int64_t *dims = NULL, selected;
  uint64_t rank = 0;
  NEED(aclGetViewShape(m->arguments.tensor[2], &dims, &rank));
  if (rank != 1 || dims[0] < 0 || dims[0] > t->dims[0])
    wrong("out became a tensor of another kind");
  selected = dims[0];
  free(dims);
  const struct guarded *g = &s->memory[s->is_apart ? 2 : s->f->operand[2].home];
  const int64_t bytes = (int64_t)aclDataTypeSize(t->dtype);
  const int64_t from = s->at[2][0] + (t->offset + selected) * bytes;
  if (memcmp(guarded_found(g) + from, guarded_payload(g) + from,
             (size_t)((t->dims[0] - selected) * bytes)) != 0)
    wrong("more than the %" PRId64 " selected elements of out have changed", selected);
}

/* Runs the executor; what it leaves is in the stage. */
static aclnnStatus run(struct stage *s, struct ready *r) {
  const struct fuzzed_call *f = s->f;
  int64_t offset;
  stage_send(s);
  const aclnnStatus status =
      tensor_operators[f->call.op].second(r->workspace.device, r->m.size, r->m.executor, r->stream);
  const bool selects = tensor_operators[f->call.op].kind == KIND_SELECT && status == ACLNN_SUCCESS;
  const bool overlaps = status == ACLNN_ERR_PARAM_INVALID && !s->is_apart && fuzzed_may_overlap(f);
  if (status != ACLNN_SUCCESS && !overlaps)
    wrong("the second phase gave %d: %s", status, sentence());
  expect_sentence("the second phase", status);
  if (f->is_released && !selects) made_drop(&r->m);
  synchronise(f, r->stream);
  stage_fetch(s, status == ACLNN_SUCCESS);
  if (selects && f->operand[2].handle == LIVE) check_selected(s, &r->m);
  if (r->workspace.device == NULL) return status;
  NEED(guarded_fetch(&r->workspace));
  if (guarded_differs(&r->workspace, true, &offset))
    wrong("byte %" PRId64 " beside the workspace of %" PRIu64 " has changed", offset, r->m.size);
  return status;
}

/* Twice, from the same bytes. */
static bool run_method(struct stage *s, int device, int method) {
  struct ready r;
  char *left[TENSORS_MOST];
  if (!prepare(s, device, method, &r)) return false;
  const aclnnStatus status = run(s, &r);
  for (int n = 0; n < TENSORS_MOST; n++) {
    left[n] = malloc(s->memory[n].bytes + 1);
    if (left[n] == NULL) wrong("no memory");
    memcpy(left[n], guarded_found(&s->memory[n]), s->memory[n].bytes);
  }
  if (run(s, &r) != status) wrong("the second run did not give %d", status);
  for (int n = 0; n < TENSORS_MOST; n++) {
    if (memcmp(left[n], guarded_found(&s->memory[n]), s->memory[n].bytes) != 0)
      wrong("the second run left other bytes in memory %d", n);
    free(left[n]);
  }
  finish(&r);
  /* a NaN's payload may become a number of another tensor of a list */
  if (status == ACLNN_SUCCESS && !(fuzzed_has_lists(s->f) && fuzzed_shares(s->f))) stage_compare(s);
  return true;
}

/* --- What is wrong with the second phase alone -------------------------------------------------
 */

/* Moves an operand's address; false where it cannot be made wrong so. */
static bool move_address(struct stage *s, struct made *m) {
  const int n = s->f->troubled;
  const struct guarded *g = &s->memory[s->f->operand[n].home];
  char *address = NULL;
  if (s->f->operand[n].is_list || fuzzed_shares(s->f)) return false;
  if ((int64_t)g->bytes - s->at[n][0] < 256) return false;
  if (s->f->trouble == ODD_ADDRESS) {
    if (aclDataTypeSize(s->f->operand[n].member[0].dtype) == 1) return false;
    address = (char *)stage_address(s, n, 0) + 1;
  } else if (s->f->trouble == SHORT_MEMORY) { /* less than 256 bytes are left behind it */
    address = g->device + (g->bytes + 192) / 64 * 64;
  }
  return aclSetRawTensorAddr(m->arguments.tensor[n], address) == ACLNN_SUCCESS;
}

static aclrtStream stale_stream(void) {
  aclrtStream stream;
  NEED(aclrtCreateStream(&stream));
  NEED(aclrtDestroyStream(stream));
  return stream;
}

/* Makes the wrong call.  It may succeed where nobody looks at what is wrong. */
static aclnnStatus call_wrongly(struct stage *s, struct ready *r, bool *may_succeed) {
  const struct tensor_operator *op = &tensor_operators[s->f->call.op];
  const struct made *m = &r->m;
  void *workspace = r->workspace.device;
  *may_succeed = false;
  switch (s->f->trouble) {
    case BAD_WORKSPACE:
      if (m->size == 0 || s->f->troubled == 0)
        return op->second(NULL, m->size + 1, m->executor, r->stream);
      return op->second(workspace, m->size - 1, m->executor, r->stream);
    case STALE_STREAM:
      return op->second(workspace, m->size, m->executor, stale_stream());
    case OTHER_OPERATOR:
      op = &tensor_operators[(s->f->call.op + 1) % TENSOR_OPERATORS];
      return op->second(workspace, m->size, m->executor, r->stream);
    case NO_EXECUTOR:
      if (s->f->troubled == 0) return op->second(workspace, m->size, NULL, r->stream);
      NEED(aclDestroyAclOpExecutor(m->executor));
      return op->second(workspace, m->size, m->executor, r->stream);
    default:
      *may_succeed = true;
      return op->second(workspace, m->size, m->executor, r->stream);
  }
}

static bool is_documented(aclnnStatus status) {
  return is_refusal(status) || status == ACLNN_ERR_RUNTIME_ERROR || status == ACLNN_ERR_INNER ||
         status == ACLNN_ERR_INNER_NULLPTR;
}

static void try_trouble(struct stage *s, int device) {
  struct ready r;
  bool may_succeed;
  if (!prepare(s, device, 0, &r)) wrong("no method");
  if (s->f->trouble >= BAD_WORKSPACE || move_address(s, &r.m)) {
    stage_send(s);
    const aclnnStatus status = call_wrongly(s, &r, &may_succeed);
    if (status == ACLNN_SUCCESS ? !may_succeed : !is_documented(status))
      wrong("a wrong second phase gave %d: %s", status, sentence());
    expect_sentence("a wrong second phase", status);
    NEED(aclrtSynchronizeStream(r.stream));
    stage_fetch(s, status == ACLNN_SUCCESS);
  }
  finish(&r);
}

/* --- Runs --------------------------------------------------------------------------------------
 */

static void run_methods(struct stage *s, int device) {
  int method = 0;
  while (run_method(s, device, method)) method++;
}

/* Inputs that lie in a result's memory count as they were before. */
static void run_apart(const struct stage *s, int device) {
  struct stage apart;
  struct ready r;
  if (fuzzed_has_lists(s->f) || !fuzzed_shares(s->f) || s->right[0] == NULL) return;
  stage_open_apart(&apart, s);
  if (!prepare(&apart, device, 0, &r)) wrong("no method");
  (void)run(&apart, &r);
  finish(&r);
  stage_compare_apart(s, &apart);
  stage_close(&apart);
}

static void run_everywhere(const struct fuzzed_call *f) {
  struct stage s;
  stage_open(&s, f);
  for (int device = 0; device < devices.count; device++) {
    NEED(aclrtSetCurrentContext(devices.at[device].context));
    if (f->trouble != NO_TROUBLE) try_trouble(&s, device);
    for (int i = 0; on_cuda() ? i == 0 : kernel_sets[i] != NULL; i++) {
      if (!on_cuda()) set("POOLGRAD_ISA", kernel_sets[i], pg_isa_configure);
      run_methods(&s, device);
    }
    run_apart(&s, device);
    stage_leave(&s);
  }
  NEED(aclrtSetCurrentContext(devices.at[0].context));
  stage_close(&s);
}

static void expect_nothing_left(void) {
  static const enum pg_kind kinds[] = {PG_TENSOR, PG_SCALAR, PG_INT_ARRAY, PG_TENSOR_LIST,
                                       PG_EXECUTOR};
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
    if (pg_handle_count(kinds[i]) != 0) wrong("objects of kind %d are left", (int)kinds[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct input in = {data, data + size};
  fuzzed_decode(&in, &current);
  if (trace) fuzzed_print(&current);
  if (phase_one(&current) && fuzzed_is_small(&current)) {
    set("POOLGRAD_STREAM_BYTES", current.past_caches ? "1" : "1000000000",
        pg_nontemporal_configure);
    set("POOLGRAD_INDEX_CHECK", current.errors ? "error" : "off", pg_index_policy_configure);
    if (current.many_threads) NEED(poolgrad_set_threads(3));
    run_everywhere(&current);
    if (current.many_threads) NEED(poolgrad_set_threads(1));
  }
  expect_nothing_left();
  return 0;
}
