/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/view.h"

#include "aclnn/opdev/op_errno.h"
#include "core/checked.h"

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

void pg_view_lay_out(struct pg_view *view, int spatial, bool channels_last) {
  const struct pg_tensor *t = view->tensor;
  const int batch = t->rank - spatial - 1; /* 1, or 0 for an unbatched tensor */
  int source[PG_AXES] = {batch == 1 ? 0 : -1, batch + (channels_last ? spatial : 0), -1, -1, -1};
  for (int i = 0; i < spatial; i++)
    source[PG_W - spatial + 1 + i] = batch + (channels_last ? 0 : 1) + i;
  for (int axis = 0; axis < PG_AXES; axis++) {
    view->dims[axis] = source[axis] < 0 ? 1 : t->dims[source[axis]];
    view->strides.of[axis] = source[axis] < 0 ? 0 : t->strides[source[axis]];
  }
}

/* How many elements, and how far the last one is from the data address; false on overflow. */
static bool span(const struct pg_tensor *t, int64_t *end) {
  int64_t elements = 1, last = t->offset, far;
  *end = t->offset;
  if (pg_tensor_is_empty(t)) return true;
  for (int i = 0; i < t->rank; i++)
    if (!pg_mul(elements, t->dims[i], &elements)) return false;
  for (int i = 0; i < t->rank; i++)
    if (!pg_mul(t->dims[i] - 1, t->strides[i], &far) || !pg_add(last, far, &last)) return false;
  return pg_add(last, 1, end);
}

aclnnStatus pg_view_check(const char *api, struct pg_view *view, bool written) {
  const struct pg_tensor *t = view->tensor;
  const int64_t bytes = (int64_t)aclDataTypeSize(t->dtype);
  int64_t end;
  for (int i = 0; i < t->rank; i++)
    PG_CHECK_AS(api, t->dims[i] >= 0, ACLNN_ERR_PARAM_INVALID, "%s is %s, no dim may be negative",
                view->name, pg_view_shape(view));
  PG_CHECK_AS(
      api,
      span(t, &end) && pg_mul(end, bytes, &view->end) && pg_mul(t->offset, bytes, &view->begin),
      ACLNN_ERR_PARAM_INVALID, "%s is %s, too large for 64-bit addresses", view->name,
      pg_view_shape(view));
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
  return ACLNN_SUCCESS;
}

const char *pg_view_shape(const struct pg_view *view) {
  static _Thread_local char ring[4][PG_SHAPE_TEXT];
  static _Thread_local unsigned next;
  return pg_shape_text(view->tensor->rank, view->tensor->dims, ring[next++ % 4]);
}

int pg_view_operand(struct pg_plan *plan, const struct pg_view *view, bool written) {
  const struct pg_plan_operand operand = {.name = view->name,
                                          .tensor = view->tensor,
                                          .begin = view->begin,
                                          .end = view->end,
                                          .written = written};
  return pg_plan_operand(plan, &operand);
}
