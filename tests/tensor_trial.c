/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor_trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aclnn/opdev/op_errno.h"
#include "core/dtype.h"
#include "poolgrad.h"

enum { POISON = 0xa7, WORKSPACE_POISON = 0x5b };

static const char phase_2[] = "tensorTrial", phase_1[] = "tensorTrialGetWorkspaceSize";

/* What the latest run has reported.  A judge has no other way to tell; the stream has passed before
 * anybody looks. */
static struct pg_index_report reported;

static aclError keep_report(const union pg_kernel_args *args, const struct pg_index_report *report,
                            struct pg_failure *why) {
  (void)args;
  (void)why;
  reported = *report;
  return ACL_SUCCESS;
}

static bool fail(struct tensor_trial *t, const char *what, int status) {
  const char *text = aclGetRecentErrMsg();
  snprintf(t->why, sizeof t->why, "%s gave %d: %.300s", what, status,
           text == NULL ? "(no sentence)" : text);
  return false;
}

/* --- Data --- */

struct tensor_side *tensor_trial_add(struct tensor_trial *t, const struct tensor_side *side) {
  t->side[t->sides] = *side;
  return &t->side[t->sides++];
}

static bool fill_side(struct tensor_side *s, bool is_read, uint64_t *state) {
  const size_t bytes = tensor_bytes(s->dtype), count = (size_t)s->elements;
  if (!guarded_make(&s->memory, count * bytes, POISON)) return false;
  char *const payload = guarded_payload(&s->memory);
  for (size_t i = 0; i < count && is_read; i++)
    tensor_draw_element(state, s->dtype, payload + i * bytes);
  s->expected = malloc(count * bytes + 1);
  s->touched = calloc(count + 1, sizeof *s->touched);
  return s->expected != NULL && s->touched != NULL;
}

bool tensor_trial_fill(struct tensor_trial *t, uint64_t *state) {
  bool is_read[TENSOR_SIDES] = {false};
  for (int i = 0; i < t->sides; i++)
    is_read[t->side[i].shared_with >= 0 ? t->side[i].shared_with : i] |=
        !t->side[i].is_written || t->side[i].is_updated;
  for (int i = 0; i < t->sides; i++) {
    struct tensor_side *s = &t->side[i];
    if (s->shared_with >= 0) continue;
    if (!fill_side(s, is_read[i], state)) return false;
    memcpy(s->expected, guarded_payload(&s->memory), s->memory.bytes);
  }
  return true;
}

/* An input that is another side's memory has its layout too. */
static const struct tensor_side *owner_of(const struct tensor_trial *t,
                                          const struct tensor_side *s) {
  return s->shared_with >= 0 ? &t->side[s->shared_with] : s;
}

const char *tensor_trial_element(const struct tensor_side *side, int64_t at) {
  return guarded_payload(&side->memory) + (size_t)(side->offset + at) * tensor_bytes(side->dtype);
}

char *tensor_trial_expect(struct tensor_side *side, int64_t at) {
  side->touched[side->offset + at] = true;
  return side->expected + (size_t)(side->offset + at) * tensor_bytes(side->dtype);
}

void tensor_trial_free(struct tensor_trial *t) {
  for (int i = 0; i < t->sides; i++) {
    guarded_free(&t->side[i].memory);
    free(t->side[i].expected);
    free(t->side[i].touched);
  }
}

/* --- Running it --- */

/* The plan holds the tensor, whose handle is not needed longer. */
static aclnnStatus bind_side(struct tensor_trial *t, struct pg_plan *plan,
                             const struct tensor_side *s) {
  const struct tensor_side *owner = owner_of(t, s);
  const int64_t bytes = (int64_t)tensor_bytes(s->dtype);
  struct pg_tensor *tensor;
  aclTensor *handle = aclCreateTensor((const int64_t[]){owner->elements}, 1, s->dtype, NULL, 0,
                                      ACL_FORMAT_ND, NULL, 0, owner->memory.device);
  PG_TRY(pg_tensor_get(phase_1, s->name, handle, &tensor));
  const struct pg_plan_operand operand = {.name = s->name,
                                          .tensor = tensor,
                                          .begin = owner->offset * bytes,
                                          .end = owner->elements * bytes,
                                          .written = s->is_written,
                                          .may_be_written = s->shared_with >= 0};
  pg_plan_bind(plan, s->address_at, pg_plan_operand(plan, &operand), owner->offset * bytes);
  pg_release(&tensor->object);
  return aclDestroyTensor(handle);
}

static aclnnStatus make_plan(struct tensor_trial *t, struct pg_plan *plan) {
  const int64_t workspace =
      pg_plan_add(plan, &t->problem, t->reports ? keep_report : (pg_judge_fn *)NULL);
  int64_t at;
  for (int i = 0; i < t->sides; i++)
    if (t->side[i].elements > 0) PG_TRY(bind_side(t, plan, &t->side[i]));
  if (t->workspace_at == 0) return workspace == 0 ? ACLNN_SUCCESS : ACLNN_ERR_INNER;
  PG_TRY(pg_plan_reserve(phase_1, plan, workspace, &at));
  pg_plan_bind(plan, t->workspace_at, PG_WORKSPACE, at);
  return ACLNN_SUCCESS;
}

static aclnnStatus make_executor(struct tensor_trial *t, uint64_t *size, aclOpExecutor **executor) {
  struct pg_plan *plan;
  PG_TRY(pg_plan_create(phase_1, &plan));
  return pg_plan_publish(phase_1, plan, make_plan(t, plan), size, executor);
}

/* Runs an executor whose method is chosen, with a workspace of its own. */
static bool run_executor(struct tensor_trial *t, aclOpExecutor *executor, uint64_t size,
                         aclrtStream stream) {
  struct guarded workspace = {0};
  int64_t offset;
  int status = ACL_SUCCESS;
  reported = (struct pg_index_report){0};
  if (size > 0 && !guarded_make(&workspace, size, WORKSPACE_POISON)) return false;
  if (size > 0) status = guarded_send(&workspace);
  if (status == ACL_SUCCESS) status = pg_execute(phase_2, workspace.device, size, executor, stream);
  if (status == ACL_SUCCESS) status = aclrtSynchronizeStream(stream);
  if (status == ACL_SUCCESS && size > 0) status = guarded_fetch(&workspace);
  bool good = status == ACL_SUCCESS || fail(t, "the run", status);
  if (good && size > 0 && guarded_differs(&workspace, true, &offset)) {
    snprintf(t->why, sizeof t->why, "byte %lld beside the workspace of %llu bytes has changed",
             (long long)offset, (unsigned long long)size);
    good = false;
  }
  guarded_free(&workspace);
  return good;
}

/* --- Comparing --- */

static void show(aclDataType dtype, const char *element, char text[48]) {
  const union pg_number n =
      reference_load(tensor_is_real(dtype) ? PG_CLASS_DOUBLE : PG_CLASS_INT, dtype, element);
  if (tensor_is_real(dtype))
    snprintf(text, 48, "%.17g", n.real);
  else
    snprintf(text, 48, "%lld", (long long)n.integer);
}

/* What was not written must have kept its bits. */
static bool compare_elements(struct tensor_trial *t, const struct tensor_side *s) {
  const char *found = guarded_found(&s->memory);
  const size_t bytes = tensor_bytes(s->dtype);
  if (memcmp(found, s->expected, s->memory.bytes) == 0) return true;
  for (size_t i = 0; i < (size_t)s->elements; i++) {
    const char *a = found + i * bytes, *b = s->expected + i * bytes;
    if (memcmp(a, b, bytes) == 0 || (s->touched[i] && tensor_is_same(s->dtype, a, b))) continue;
    char is[48], expected[48];
    show(s->dtype, a, is);
    show(s->dtype, b, expected);
    snprintf(t->why, sizeof t->why,
             "element %zu of %s (%s, %lld, offset %lld) is %s, expected %s%s", i, s->name,
             pg_dtype_name(s->dtype), (long long)s->elements, (long long)s->offset, is, expected,
             s->touched[i] ? "" : " as it was");
    return false;
  }
  return true;
}

static bool compare_side(struct tensor_trial *t, struct tensor_side *s) {
  int64_t offset;
  if (s->shared_with >= 0 || s->elements == 0) return true;
  const int status = guarded_fetch(&s->memory);
  if (status != ACL_SUCCESS) return fail(t, "fetching", status);
  if (guarded_differs(&s->memory, true, &offset)) {
    snprintf(t->why, sizeof t->why, "byte %lld of %s, outside of it, has changed",
             (long long)offset, s->name);
    return false;
  }
  return compare_elements(t, s);
}

static bool compare_report(struct tensor_trial *t) {
  const struct pg_index_report *e = &t->report;
  const bool same =
      reported.count == e->count &&
      (e->count == 0 || (reported.position == e->position && reported.value == e->value));
  if (!same)
    snprintf(t->why, sizeof t->why,
             "the report is %lld at %lld with %lld, expected %lld at %lld with %lld",
             (long long)reported.count, (long long)reported.position, (long long)reported.value,
             (long long)e->count, (long long)e->position, (long long)e->value);
  return same;
}

bool tensor_trial_compare(struct tensor_trial *t) {
  for (int i = 0; i < t->sides; i++)
    if (!compare_side(t, &t->side[i])) return false;
  return true;
}

/* --- Every method on every device --- */

bool tensor_trial_send(struct tensor_trial *t) {
  for (int i = 0; i < t->sides; i++) {
    struct tensor_side *s = &t->side[i];
    const int status =
        s->shared_with >= 0 || s->elements == 0 ? ACL_SUCCESS : guarded_send(&s->memory);
    if (status != ACL_SUCCESS) return fail(t, "sending", status);
  }
  return true;
}

/* *fits: is there a method with this number? */
static bool run_method(struct tensor_trial *t, const char *backend, aclrtStream stream, int number,
                       bool *fits) {
  uint64_t size = 0;
  aclOpExecutor *executor = NULL;
  aclnnStatus status = make_executor(t, &size, &executor);
  if (status != ACLNN_SUCCESS) return fail(t, "making the executor", status);
  const char *method = poolgrad_method(executor, backend, number);
  *fits = method != NULL;
  if (*fits && number > 0) status = poolgrad_use_method(executor, backend, method, &size);
  if (!*fits || status != ACLNN_SUCCESS) {
    (void)aclDestroyAclOpExecutor(executor);
    return !*fits || fail(t, "choosing the method", status);
  }
  if (run_executor(t, executor, size, stream) && tensor_trial_compare(t) && compare_report(t))
    return true;
  char why[TENSOR_TRIAL_TEXT];
  memcpy(why, t->why, sizeof why);
  snprintf(t->why, sizeof t->why, "%s, method %s: %.330s", backend, method, why);
  return false;
}

static bool run_device(struct tensor_trial *t, const char *backend, aclrtStream stream) {
  bool fits = true;
  int methods = 0;
  for (; fits; methods++)
    if (!tensor_trial_send(t) || !run_method(t, backend, stream, methods, &fits)) return false;
  if (methods > 1) return true;
  snprintf(t->why, sizeof t->why, "no method of %s fits", backend);
  return false;
}

void tensor_trial_leave(struct tensor_trial *t) {
  for (int i = 0; i < t->sides; i++) guarded_leave(&t->side[i].memory);
}

bool tensor_trial_run(struct tensor_trial *t, const struct trial_devices *devices,
                      const int *threads, int counts) {
  bool good = true;
  for (int device = 0; device < devices->count && good; device++) {
    good = aclrtSetCurrentContext(devices->at[device].context) == ACL_SUCCESS;
    for (int i = 0; i < counts && good; i++)
      good = (counts == 1 || poolgrad_set_threads(threads[i]) == 0) &&
             run_device(t, devices->at[device].backend, devices->at[device].stream);
    tensor_trial_leave(t);
  }
  if (counts > 1) (void)poolgrad_set_threads(0);
  (void)aclrtSetCurrentContext(devices->at[0].context);
  return good;
}
