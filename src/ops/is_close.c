/* SPDX-License-Identifier: Apache-2.0 */
/* aclnnIsClose:
 *
 *     out[i] = |self[i] - other[i]| <= atol + rtol * |other[i]| and finite,
 *              or self[i] == other[i], or, with equalNan, both are NaN */
#include "aclnn/opdev/op_errno.h"
#include "aclnnop/aclnn_isclose.h"
#include "ops/map_plan.h"
#include "ops/pool_check.h"

enum { SELF, OTHER, OUT, TENSORS };

struct args {
  const char *api;
  struct pg_view view[TENSORS];
  double rtol, atol;
};

static aclnnStatus check(struct args *a) {
  struct pg_view *v = a->view;
  struct pg_shape both;
  PG_TRY(pg_check_type(a->api, v[SELF].name, v[SELF].tensor->dtype, PG_ANY));
  PG_TRY(pg_check_same_dtype(a->api, &v[OTHER], &v[SELF]));
  PG_TRY(pg_check_result_type(a->api, &v[OUT], ACL_BOOL));
  for (int i = 0; i < TENSORS; i++) PG_TRY(pg_check_axes(a->api, &v[i]));
  PG_TRY(pg_broadcast(a->api, &v[SELF], &v[OTHER], &both));
  PG_TRY(pg_check_shape(a->api, &v[OUT], &both, "the shape that self and other have together,"));
  PG_CHECK_AS(a->api, a->rtol >= 0 && a->atol >= 0, ACLNN_ERR_PARAM_INVALID,
              "rtol is %g and atol %g, they must not be negative", a->rtol, a->atol);
  return pg_views_check(a->api, v, TENSORS, 1u << OUT);
}

/* Integers are compared as doubles: tolerances are fractions. */
static enum pg_class class_of(aclDataType dtype) {
  return pg_class_of(dtype) == PG_CLASS_FLOAT ? PG_CLASS_FLOAT : PG_CLASS_DOUBLE;
}

aclnnStatus aclnnIsCloseGetWorkspaceSize(const aclTensor *self, const aclTensor *other, double rtol,
                                         double atol, bool equalNan, aclTensor *out,
                                         uint64_t *workspaceSize, aclOpExecutor **executor) {
  const aclTensor *const handles[] = {self, other, out};
  struct args a = {.api = __func__,
                   .view = {{.name = "self"}, {.name = "other"}, {.name = "out"}},
                   .rtol = rtol,
                   .atol = atol};
  PG_TRY(pg_check_results(a.api, workspaceSize, executor));
  PG_TRY(pg_views_acquire(a.api, a.view, handles, TENSORS));
  aclnnStatus status = check(&a);
  if (status == ACLNN_SUCCESS) {
    const struct pg_map_call call = {.out = &a.view[OUT],
                                     .in = {&a.view[SELF], &a.view[OTHER]},
                                     .args = {.function = PG_MAP_IS_CLOSE,
                                              .class_of = class_of(a.view[SELF].tensor->dtype),
                                              .s.real = rtol,
                                              .t.real = atol,
                                              .flag = equalNan}};
    status = pg_publish_map(a.api, &call, workspaceSize, executor);
  }
  pg_views_release(a.view, TENSORS);
  return status;
}
PG_SECOND_PHASE(aclnnIsClose)
