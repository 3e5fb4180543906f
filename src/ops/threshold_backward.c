/* SPDX-License-Identifier: Apache-2.0 */
/* aclnnThresholdBackward: out[i] = self[i] <= threshold ? 0 : gradOutput[i]. */
#include "aclnn/opdev/op_errno.h"
#include "aclnnop/aclnn_threshold_backward.h"
#include "ops/map_plan.h"
#include "ops/pool_check.h"

enum { GRAD, SELF, OUT, TENSORS };

static aclnnStatus check(const char *api, struct pg_view *v) {
  struct pg_shape both;
  PG_TRY(pg_check_type(api, v[GRAD].name, v[GRAD].tensor->dtype, PG_NUMBERS));
  PG_TRY(pg_check_same_dtype(api, &v[SELF], &v[GRAD]));
  PG_TRY(pg_check_same_dtype(api, &v[OUT], &v[GRAD]));
  for (int i = 0; i < TENSORS; i++) PG_TRY(pg_check_axes(api, &v[i]));
  PG_TRY(pg_broadcast(api, &v[GRAD], &v[SELF], &both));
  PG_TRY(pg_check_shape(api, &v[OUT], &both, "the shape that gradOutput and self have together,"));
  return pg_views_check(api, v, TENSORS, 1u << OUT);
}

static aclnnStatus plan(const char *api, struct pg_view *v, const aclScalar *threshold,
                        uint64_t *workspace_size, aclOpExecutor **executor) {
  struct pg_scalar_value number;
  PG_TRY(pg_read_scalar(api, "threshold", threshold, &number));
  PG_TRY(check(api, v));
  const aclDataType dtype = v[OUT].tensor->dtype;
  const struct pg_map_call call = {.out = &v[OUT],
                                   .in = {&v[GRAD], &v[SELF]},
                                   .args = {.function = PG_MAP_PASS,
                                            .class_of = pg_class_of(dtype),
                                            .s = pg_number_of(&number, dtype)}};
  return pg_publish_map(api, &call, workspace_size, executor);
}

aclnnStatus aclnnThresholdBackwardGetWorkspaceSize(const aclTensor *gradOutput,
                                                   const aclTensor *self,
                                                   const aclScalar *threshold, aclTensor *out,
                                                   uint64_t *workspaceSize,
                                                   aclOpExecutor **executor) {
  const aclTensor *const handles[] = {gradOutput, self, out};
  const struct pg_required required[] = {{"gradOutput", gradOutput},
                                         {"self", self},
                                         {"threshold", threshold},
                                         {"out", out},
                                         {NULL, NULL}};
  struct pg_view views[TENSORS] = {{.name = "gradOutput"}, {.name = "self"}, {.name = "out"}};
  PG_TRY(pg_check_results(__func__, workspaceSize, executor));
  PG_TRY(pg_check_required(__func__, required));
  PG_TRY(pg_views_acquire(__func__, views, handles, TENSORS));
  const aclnnStatus status = plan(__func__, views, threshold, workspaceSize, executor);
  pg_views_release(views, TENSORS);
  return status;
}
PG_SECOND_PHASE(aclnnThresholdBackward)
