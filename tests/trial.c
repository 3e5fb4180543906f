/* SPDX-License-Identifier: Apache-2.0 */
#include "trial.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "float_format.h"
#include "poolgrad.h"

static const char *const tensor_names[POOL_TENSORS] = {"gradOutput or out", "self", "indices",
                                                       "gradInput"};

/* Poison is NaN where numbers lie, and where integers do a large one.  Between indices that are
 * read it is 0, a cell like any other: a stray read there must not be dropped as out of range.
 * Indices that are written are never -1. */
enum {
  NAN_BYTES = 0xff,
  INTEGER_BYTES = 0x7f,
  INDEX_BYTES = 0x00,
  NO_INDEX_BYTES = 0xff,
  WORKSPACE_BYTES = 0xa5
};

static int poison_of(const struct problem *p, int tensor) {
  if (tensor == INDICES) return problem_role(p, tensor) == READ ? INDEX_BYTES : NO_INDEX_BYTES;
  return p->type < FLOAT_FORMATS ? NAN_BYTES : INTEGER_BYTES;
}

static bool fail(struct trial *t, const char *what, int status) {
  const char *text = aclGetRecentErrMsg();
  snprintf(t->why, sizeof t->why, "%s gave %d: %.380s", what, status,
           text == NULL ? "(no sentence)" : text);
  return false;
}

int64_t trial_place(const struct trial *t, int tensor, int64_t element) {
  if (tensor == INDICES && problem_is_mask(&t->problem)) return element * (int64_t)sizeof(int32_t);
  return tensor_place(&t->layout[tensor], element) * problem_element_bytes(&t->problem, tensor);
}

int64_t trial_count(const struct trial *t, int tensor) {
  return tensor == GRAD_OUT || tensor == INDICES ? t->outputs : t->cells;
}

/* --- devices -----------------------------------------------------------------------------------
 */

/* The word behind the number in each line of "0: cpu (2 threads)\n1: cuda:0 ...". */
static void name_backends(struct trial_devices *devices) {
  const char *line = poolgrad_devices();
  for (int i = 0; i < devices->count && line != NULL; i++) {
    const char *word = strstr(line, ": ") + 2;
    const int length = (int)strspn(word, "abcdefghijklmnopqrstuvwxyz");
    snprintf(devices->at[i].backend, sizeof devices->at[i].backend, "%.*s", length, word);
    line = strchr(word, '\n');
    if (line != NULL) line++;
  }
}

bool trial_devices_open(struct trial_devices *devices) {
  uint32_t count = 0;
  *devices = (struct trial_devices){.count = 0};
  if (aclrtGetDeviceCount(&count) != ACL_SUCCESS) return false;
  for (int i = 0; i < (int)count && i < TRIAL_DEVICES; i++, devices->count++)
    if ((i > 0 && aclrtSetDevice(i) != ACL_SUCCESS) ||
        aclrtGetCurrentContext(&devices->at[i].context) != ACL_SUCCESS ||
        aclrtCreateStream(&devices->at[i].stream) != ACL_SUCCESS)
      return false;
  name_backends(devices);
  return aclrtSetCurrentContext(devices->at[0].context) == ACL_SUCCESS;
}

bool trial_devices_close(struct trial_devices *devices) {
  bool good = true;
  for (int i = devices->count - 1; i >= 0; i--)
    good = aclrtSetCurrentContext(devices->at[i].context) == ACL_SUCCESS &&
           aclrtDestroyStream(devices->at[i].stream) == ACL_SUCCESS &&
           (i == 0 || aclrtResetDevice(i) == ACL_SUCCESS) && good;
  return good;
}

/* --- the data ----------------------------------------------------------------------------------
 */

static bool make_memory(struct trial *t) {
  for (int i = 0; i < POOL_TENSORS; i++) {
    t->layout[i] = tensor_lay_out(&t->problem, i);
    const int64_t bytes = t->layout[i].elements * problem_element_bytes(&t->problem, i);
    if (!guarded_make(&t->memory[i], (size_t)bytes, poison_of(&t->problem, i))) return false;
  }
  t->outputs = tensor_cells(&t->layout[GRAD_OUT]);
  t->cells = tensor_cells(&t->layout[GRAD_IN]);
  t->results = problem_is_forward(&t->problem) ? t->outputs : t->cells;
  t->x = calloc((size_t)t->cells + 1, sizeof *t->x);
  t->result = calloc((size_t)t->results + 1, sizeof *t->result);
  t->bits = calloc((size_t)t->results + 1, sizeof(double));
  t->grad_out = calloc((size_t)t->outputs + 1, sizeof *t->grad_out);
  t->index = calloc((size_t)t->outputs + 1, sizeof *t->index);
  return t->x != NULL && t->result != NULL && t->bits != NULL && t->grad_out != NULL &&
         t->index != NULL;
}

static bool send_all(struct trial *t) {
  for (int i = 0; i < POOL_TENSORS; i++) {
    const int status = guarded_send(&t->memory[i]);
    if (status != ACL_SUCCESS) return fail(t, "sending the data", status);
  }
  return true;
}

bool trial_open(struct trial *t, const struct problem *p, const struct trial_devices *devices) {
  *t = (struct trial){.devices = devices, .problem = *p, .pool = problem_pooling(p)};
  if (!make_memory(t)) {
    snprintf(t->why, sizeof t->why, "no memory for the problem");
    return false;
  }
  trial_fill(t);
  return send_all(t);
}

bool trial_move(struct trial *t, int device) {
  if (device == t->device) return true;
  for (int i = 0; i < POOL_TENSORS; i++) guarded_leave(&t->memory[i]);
  guarded_free(&t->workspace);
  t->device = device;
  const int status = aclrtSetCurrentContext(t->devices->at[device].context);
  return status == ACL_SUCCESS ? send_all(t) : fail(t, "changing the device", status);
}

void trial_close(struct trial *t) {
  if (t->device != 0) (void)aclrtSetCurrentContext(t->devices->at[0].context);
  for (int i = 0; i < POOL_TENSORS; i++) guarded_free(&t->memory[i]);
  guarded_free(&t->workspace);
  free(t->x);
  free(t->result);
  free(t->bits);
  free(t->grad_out);
  free(t->index);
  free(t->right);
  free(t->right_index);
}

/* --- the call ----------------------------------------------------------------------------------
 */

aclTensor *trial_make_tensor(const struct trial *t, int i) {
  const struct tensor_layout *l = &t->layout[i];
  const bool nowhere = t->problem.late || l->elements == 0; /* an empty tensor needs no address */
  return operator_tensor(&t->problem, l, i, nowhere ? NULL : t->memory[i].device);
}

aclIntArray *trial_make_array(const struct trial *t, int i) {
  return operator_array(&t->problem, i);
}

static void make_call(const struct trial *t, struct trial_call *c) {
  *c = (struct trial_call){.workspace_size = 0};
  for (int i = 0; i < POOL_TENSORS; i++) c->tensor[i] = trial_make_tensor(t, i);
  for (int i = 0; i < POOL_ARRAYS; i++) c->array[i] = trial_make_array(t, i);
}

static void drop_call(struct trial_call *c) {
  for (int i = 0; i < POOL_TENSORS; i++) (void)aclDestroyTensor(c->tensor[i]);
  for (int i = 0; i < POOL_ARRAYS; i++) (void)aclDestroyIntArray(c->array[i]);
}

aclnnStatus trial_first_phase(const struct trial *t, struct trial_call *c) {
  const struct operator_arguments a = operator_arguments(&t->problem, c->tensor, c->array);
  return operator_calls[t->problem.op].first(&a, &c->workspace_size, &c->executor);
}

/* Exactly what was asked for, with garbage in it; the same in every launch. */
static bool make_workspace(struct trial *t, uint64_t size) {
  if (t->workspace.device == NULL && size > 0) {
    if (!guarded_make(&t->workspace, (size_t)size, WORKSPACE_BYTES)) return false;
    const int status = guarded_send(&t->workspace);
    if (status != ACL_SUCCESS) return fail(t, "making the workspace", status);
  }
  if (t->workspace.bytes == size) return true;
  snprintf(t->why, sizeof t->why, "workspaceSize was %zu, now it is %" PRIu64, t->workspace.bytes,
           size);
  return false;
}

/* Tensors that have no address yet get it now. */
aclnnStatus trial_second_phase(const struct trial *t, const struct trial_call *c, void *workspace,
                               aclrtStream stream) {
  for (int i = 0; i < POOL_TENSORS && t->problem.late; i++)
    if (t->layout[i].elements > 0) (void)aclSetRawTensorAddr(c->tensor[i], t->memory[i].device);
  return operator_calls[t->problem.op].second(workspace, c->workspace_size, c->executor, stream);
}

/* A call that has nothing to compute has no method. */
static bool use_method(struct trial *t, struct trial_call *c) {
  const char *backend = t->devices->at[t->device].backend, *name = t->problem.method;
  if (t->method == 0 && name[0] == '\0') return true;
  if (name[0] == '\0') name = poolgrad_method(c->executor, backend, t->method);
  t->too_few = name == NULL || (t->problem.method[0] != '\0' && t->method > 0);
  if (t->too_few) return false;
  const int status = poolgrad_use_method(c->executor, backend, name, &c->workspace_size);
  return status == 0 || fail(t, "poolgrad_use_method", status);
}

static bool start(struct trial *t, struct trial_call *c, aclrtStream stream) {
  aclnnStatus status = trial_first_phase(t, c);
  if (status != 0) return fail(t, "the first phase", status);
  if (!use_method(t, c) || !make_workspace(t, c->workspace_size)) {
    (void)aclDestroyAclOpExecutor(c->executor);
    return false;
  }
  status = trial_second_phase(t, c, t->workspace.device, stream);
  return status == 0 || fail(t, "the second phase", status);
}

/* The report of indices outside their plane ends a stream with an error where it is told to. */
static bool finish(struct trial *t, aclrtStream stream) {
  const int status = aclrtSynchronizeStream(stream);
  t->bad_index_reported = status == ACL_ERROR_RT_AICORE_EXCEPTION;
  if (!t->bad_index_reported) return status == ACL_SUCCESS || fail(t, "the stream", status);
  const char *text = aclGetRecentErrMsg();
  const char *count = text == NULL ? NULL : strstr(text, "Backward: ");
  t->reported = count == NULL ? -1 : strtoll(count + strlen("Backward: "), NULL, 10);
  return true;
}

static aclrtStream stream_of(const struct trial *t) { return t->devices->at[t->device].stream; }

bool trial_enqueue(struct trial *t) {
  struct trial_call c;
  make_call(t, &c);
  const bool started = start(t, &c, stream_of(t));
  drop_call(&c);
  return started;
}

bool trial_launch(struct trial *t) { return trial_enqueue(t) && finish(t, stream_of(t)); }

bool trial_reset(struct trial *t) {
  for (int i = 0; i < POOL_TENSORS; i++) {
    const bool written = problem_role(&t->problem, i) == WRITTEN;
    const int status = written ? guarded_send(&t->memory[i]) : ACL_SUCCESS;
    if (status != ACL_SUCCESS) return fail(t, "sending the data", status);
  }
  return true;
}

/* --- what came back ----------------------------------------------------------------------------
 */

/* Takes one element out and leaves poison in its place; false if there was nothing but poison. */
static bool take_element(const struct trial *t, int tensor, int64_t element, char *to) {
  const int64_t bytes = problem_element_bytes(&t->problem, tensor);
  char poison[8], *at = guarded_found(&t->memory[tensor]) + trial_place(t, tensor, element);
  memset(poison, poison_of(&t->problem, tensor), sizeof poison);
  memcpy(to, at, (size_t)bytes);
  memcpy(at, poison, (size_t)bytes);
  return memcmp(to, poison, (size_t)bytes) != 0;
}

/* An integer may be what the poison is; the comparison finds those that were not written. */
static bool take_result(struct trial *t, int tensor) {
  const struct float_format *format = &float_formats[t->problem.type];
  for (int64_t i = 0; i < t->results; i++) {
    char *element = t->bits + i * (int64_t)format->bytes;
    if (!take_element(t, tensor, i, element) && t->problem.type < FLOAT_FORMATS) {
      snprintf(t->why, sizeof t->why, "element %" PRId64 " of %s was not written", i,
               tensor_names[tensor]);
      return false;
    }
    t->result[i] = float_decode(format, element);
  }
  return true;
}

static bool take_indices(struct trial *t) {
  for (int64_t i = 0; i < t->outputs; i++) {
    char element[8];
    if (!take_element(t, INDICES, i, element)) {
      snprintf(t->why, sizeof t->why, "index %" PRId64 " was not written", i);
      return false;
    }
    t->index[i] = trial_decode_index(t, element);
  }
  return true;
}

/* The positions, and zeros behind them; where they are implied, zeros alone.  Leaves poison. */
static bool take_mask(struct trial *t) {
  const struct guarded *g = &t->memory[INDICES];
  const bool implied = problem_implies_indices(&t->problem);
  char *found = guarded_found(g);
  for (int64_t i = 0; i < t->outputs && !implied; i++) {
    t->index[i] = trial_decode_index(t, found + trial_place(t, INDICES, i));
    memset(found + trial_place(t, INDICES, i), 0, sizeof(int32_t));
  }
  for (size_t i = 0; i < g->bytes; i++)
    if (found[i] != 0) {
      snprintf(t->why, sizeof t->why, "byte %zu of the mask is %d, not 0", i, found[i]);
      return false;
    }
  memset(found, NO_INDEX_BYTES, g->bytes);
  return true;
}

static bool take_written(struct trial *t, int tensor) {
  if (tensor != INDICES) return take_result(t, tensor);
  return problem_is_mask(&t->problem) ? take_mask(t) : take_indices(t);
}

static int tensor_of(const struct trial *t, const struct guarded *memory) {
  return memory == &t->workspace ? POOL_TENSORS : (int)(memory - t->memory);
}

static bool fetch(struct trial *t, struct guarded *memory, const char *name) {
  const int tensor = tensor_of(t, memory);
  const bool written = tensor < POOL_TENSORS && problem_role(&t->problem, tensor) == WRITTEN;
  int64_t offset;
  if (memory->device == NULL) return true;
  const int status = guarded_fetch(memory);
  if (status != ACL_SUCCESS) return fail(t, "fetching the data", status);
  if (written && !t->bad_index_reported && !take_written(t, tensor)) return false;
  const bool guards_only = tensor == POOL_TENSORS || (written && t->bad_index_reported);
  if (!guarded_differs(memory, guards_only, &offset)) return true;
  snprintf(t->why, sizeof t->why, "byte %" PRId64 " of the %zu of %s was changed", offset,
           memory->bytes, name);
  return false;
}

bool trial_fetch(struct trial *t) {
  for (int i = 0; i < POOL_TENSORS; i++)
    if (!fetch(t, &t->memory[i], tensor_names[i])) return false;
  return fetch(t, &t->workspace, "the workspace");
}

void trial_set_method(struct trial *t, int method) {
  guarded_free(&t->workspace);
  t->method = method;
  t->too_few = false;
}

/* On the current device by every method. */
static bool run_methods(struct trial *t) {
  for (int i = 0;; i++) {
    trial_set_method(t, i);
    if (i > 0 && !trial_reset(t)) return false;
    if (!trial_launch(t)) return t->too_few;
    if (!trial_fetch(t) || !trial_compare(t)) return false;
  }
}

/* The name of the method that has failed. */
static const char *method_name(struct trial *t, struct trial_call *c) {
  const char *backend = t->devices->at[t->device].backend, *name = NULL;
  make_call(t, c);
  if (trial_first_phase(t, c) == 0) {
    name = poolgrad_method(c->executor, backend, t->method);
    (void)aclDestroyAclOpExecutor(c->executor);
  }
  drop_call(c);
  return name == NULL ? "none" : name;
}

bool trial_run(const struct problem *p, const struct trial_devices *devices,
               char why[PROBLEM_TEXT]) {
  struct trial t;
  struct trial_call c;
  bool right = trial_open(&t, p, devices);
  for (int i = 0; right && i < devices->count; i++) right = trial_move(&t, i) && run_methods(&t);
  if (!right)
    snprintf(why, PROBLEM_TEXT, "device %d, method %s: %.450s", t.device,
             p->method[0] != '\0' ? p->method : method_name(&t, &c), t.why);
  trial_close(&t);
  return right;
}
