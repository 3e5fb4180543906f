/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/view.h"

#include "aclnn/opdev/op_errno.h"
#include "core/checked.h"
#include "ops/overlap.h"

/* Inputs with stride 0 can have any number of elements in hardly any memory, which would keep a
 * stream busy for days.  So many elements are always read, and so many more for each byte of
 * memory.  How often large windows that overlap read each of them is not limited. */
#define ELEMENTS_FREE (INT64_C(1) << 30)
enum { ELEMENTS_PER_BYTE = 64 };

aclnnStatus pg_views_acquire(const char *api, struct pg_view *views,
                             const aclTensor *const *handles, int count) {
  for (int i = 0; i < count; i++) /* a NULL anywhere wins over a stale handle before it */
    if (handles[i] == NULL) return pg_fail_null(api, ACLNN_ERR_PARAM_NULLPTR, views[i].name);
  for (int i = 0; i < count; i++) {
    const aclnnStatus status = pg_tensor_get(api, views[i].name, handles[i], &views[i].tensor);
    if (status != ACLNN_SUCCESS) {
      pg_views_release(views, i);
      return status;
    }
  }
  return ACLNN_SUCCESS;
}

void pg_views_release(struct pg_view *views, int count) {
  for (int i = 0; i < count; i++) pg_release(&views[i].tensor->object);
}

/* Axis `axis` of the view is axis `from` of the tensor.  A stride that nobody takes a step of may
 * be any number and is 0 here: kernels multiply with it. */
static void lay(struct pg_view *view, int axis, int from) {
  const struct pg_tensor *t = view->tensor;
  view->dims[axis] = t->dims[from];
  view->strides.of[axis] = t->dims[from] > 1 && !t->empty ? t->strides[from] : 0;
}

static void lay_unit(struct pg_view *view, int axis) {
  view->dims[axis] = 1;
  view->strides.of[axis] = 0;
}

void pg_view_lay_out(struct pg_view *view, int spatial, bool channels_last) {
  const int rank = view->tensor->rank, batch = rank - spatial - 1; /* 1, or 0 without a batch */
  const int last = channels_last ? rank - 2 : rank - 1;            /* W */
  lay_unit(view, PG_N);
  lay_unit(view, PG_D);
  if (batch == 1) lay(view, PG_N, 0);
  lay(view, PG_C, channels_last ? rank - 1 : batch);
  if (spatial == 3) lay(view, PG_D, last - 2);
  lay(view, PG_H, last - 1);
  lay(view, PG_W, last);
}

void pg_views_lay_out(struct pg_view *views, int count, int spatial, bool channels_last) {
  for (int i = 0; i < count; i++) pg_view_lay_out(&views[i], spatial, channels_last);
}

static aclnnStatus check_apart(const char *api, const struct pg_view *view) {
  const struct pg_tensor *t = view->tensor;
  char strides[PG_SHAPE_TEXT];
  const enum pg_overlap found = pg_overlap(t->rank, t->dims, t->strides);
  if (found == PG_APART) return ACLNN_SUCCESS;
  pg_shape_text(t->rank, t->strides, strides);
  if (found == PG_SHARED)
    return pg_fail(api, ACLNN_ERR_PARAM_INVALID,
                   "%s is %s with strides %s, its cells must not share memory", view->name,
                   pg_view_shape(view), strides);
  return pg_fail(api, ACLNN_ERR_PARAM_INVALID,
                 "%s is %s with strides %s, its cells must not share memory, and that they do not "
                 "cannot be shown in %d steps",
                 view->name, pg_view_shape(view), strides, PG_OVERLAP_STEPS);
}

aclnnStatus pg_view_check(const char *api, struct pg_view *view, bool written) {
  const struct pg_tensor *t = view->tensor;
  view->begin = t->begin;
  view->end = t->end;
  if (t->plain) return ACLNN_SUCCESS;
  for (int i = 0; i < t->rank; i++)
    PG_CHECK_AS(api, t->dims[i] >= 0, ACLNN_ERR_PARAM_INVALID, "%s is %s, no dim may be negative",
                view->name, pg_view_shape(view));
  PG_CHECK_AS(api, t->spans, ACLNN_ERR_PARAM_INVALID, "%s is %s, too large for 64-bit addresses",
              view->name, pg_view_shape(view));
  for (int i = 0; i < t->rank; i++) {
    PG_CHECK_AS(api, t->strides[i] >= 0, ACLNN_ERR_PARAM_INVALID,
                "%s has stride %lld on axis %d, no stride may be negative", view->name,
                (long long)t->strides[i], i);
    PG_CHECK_AS(api, !written || t->strides[i] > 0 || t->dims[i] <= 1 || pg_tensor_is_empty(t),
                ACLNN_ERR_PARAM_INVALID,
                "%s has stride 0 on axis %d of length %lld, its cells must not share memory",
                view->name, i, (long long)t->dims[i]);
  }
  PG_CHECK_AS(api, t->offset >= 0, ACLNN_ERR_PARAM_INVALID,
              "%s has offset %lld, it must not be negative", view->name, (long long)t->offset);
  return written && !t->empty ? check_apart(api, view) : ACLNN_SUCCESS;
}

aclnnStatus pg_views_check(const char *api, struct pg_view *views, int count, unsigned written) {
  for (int i = 0; i < count; i++) PG_TRY(pg_view_check(api, &views[i], (written >> i & 1u) != 0));
  return ACLNN_SUCCESS;
}

/* What 64 bits cannot hold (inputs with stride 0 get there) counts as the most they can. */
static int64_t element_count(const struct pg_tensor *t) {
  int64_t count = 1;
  if (t->empty) return 0;
  for (int i = 0; i < t->rank; i++) count = pg_mul_or_most(count, t->dims[i]);
  return count;
}

aclnnStatus pg_check_work(const char *api, const struct pg_view *read,
                          const struct pg_view *const *views, int count) {
  const int64_t elements = element_count(read->tensor);
  int64_t bytes = 0;
  for (int i = 0; i < count; i++)
    if (!pg_add(bytes, views[i]->end - views[i]->begin, &bytes)) bytes = INT64_MAX;
  PG_CHECK_AS(api, elements <= ELEMENTS_FREE || elements / ELEMENTS_PER_BYTE <= bytes,
              ACLNN_ERR_PARAM_INVALID,
              "%s is %s, but all tensors together span %lld bytes of memory, for which at most "
              "%lld elements of %s are allowed",
              read->name, pg_view_shape(read), (long long)bytes,
              (long long)(bytes < ELEMENTS_FREE / ELEMENTS_PER_BYTE ? ELEMENTS_FREE
                                                                    : bytes * ELEMENTS_PER_BYTE),
              read->name);
  return ACLNN_SUCCESS;
}

const char *pg_view_shape(const struct pg_view *view) {
  static _Thread_local char ring[3][PG_SHAPE_TEXT]; /* no sentence has more */
  static _Thread_local unsigned next;
  return pg_shape_text(view->tensor->rank, view->tensor->dims, ring[next++ % 3]);
}

int pg_view_operand(struct pg_plan *plan, const struct pg_view *view, bool written) {
  const struct pg_plan_operand operand = {.name = view->name,
                                          .tensor = view->tensor,
                                          .begin = view->begin,
                                          .end = view->end,
                                          .alignment = view->alignment,
                                          .written = written};
  return pg_plan_operand(plan, &operand);
}
