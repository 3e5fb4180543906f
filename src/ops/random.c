/* SPDX-License-Identifier: Apache-2.0 */
/* aclnnInplaceNormal, aclnnInplaceUniform and aclnnInplaceRandom.  The number of a position depends
 * on the seed, the offset and the position alone (struct pg_map). */
#include <math.h>

#include "aclnn/opdev/op_errno.h"
#include "aclnnop/aclnn_normal.h"
#include "aclnnop/aclnn_random.h"
#include "aclnnop/aclnn_uniform.h"
#include "ops/map_plan.h"
#include "ops/pool_check.h"

/* What comes behind the attributes' own checks; `args` lacks the class of what is real. */
static aclnnStatus plan_random(const char *api, struct pg_view *self, const struct pg_map *args,
                               uint64_t *workspace_size, aclOpExecutor **executor) {
  struct pg_map_call call = {.out = self, .args = *args};
  PG_TRY(pg_check_axes(api, self));
  PG_TRY(pg_view_check(api, self, true));
  if (args->function == PG_MAP_RANDOM)
    call.args.class_of = PG_CLASS_INT; /* reals too get whole numbers */
  else
    call.args.class_of = pg_class_of(self->tensor->dtype);
  return pg_publish_map(api, &call, workspace_size, executor);
}

static aclnnStatus acquire(const char *api, const aclTensor *handle, unsigned types,
                           struct pg_view *self) {
  PG_TRY(pg_views_acquire(api, self, &handle, 1));
  const aclnnStatus status = pg_check_type(api, self->name, self->tensor->dtype, types);
  if (status != ACLNN_SUCCESS) pg_views_release(self, 1);
  return status;
}

static aclnnStatus normal(const char *api, struct pg_view *self, const struct pg_map *args,
                          uint64_t *workspace_size, aclOpExecutor **executor) {
  PG_CHECK_AS(api, args->t.real >= 0, ACLNN_ERR_PARAM_INVALID, "std is %g, it must not be negative",
              args->t.real);
  return plan_random(api, self, args, workspace_size, executor);
}

aclnnStatus aclnnInplaceNormalGetWorkspaceSize(aclTensor *selfRef, float mean, float std,
                                               int64_t seed, int64_t offset,
                                               uint64_t *workspaceSize, aclOpExecutor **executor) {
  const struct pg_map args = {.function = PG_MAP_NORMAL,
                              .s.real = (double)mean,
                              .t.real = (double)std,
                              .seed = (uint64_t)seed,
                              .offset = (uint64_t)offset};
  struct pg_view self = {.name = "selfRef"};
  PG_TRY(pg_check_results(__func__, workspaceSize, executor));
  PG_TRY(acquire(__func__, selfRef, PG_REALS, &self));
  const aclnnStatus status = normal(__func__, &self, &args, workspaceSize, executor);
  pg_views_release(&self, 1);
  return status;
}
PG_SECOND_PHASE(aclnnInplaceNormal)

static aclnnStatus uniform(const char *api, struct pg_view *self, const struct pg_map *args,
                           uint64_t *workspace_size, aclOpExecutor **executor) {
  PG_CHECK_AS(api, isfinite(args->s.real) && isfinite(args->t.real), ACLNN_ERR_PARAM_INVALID,
              "from is %g and to %g, both must be finite", args->s.real, args->t.real);
  PG_CHECK_AS(api, args->s.real <= args->t.real, ACLNN_ERR_PARAM_INVALID,
              "from is %g and to %g, from must not be greater", args->s.real, args->t.real);
  return plan_random(api, self, args, workspace_size, executor);
}

aclnnStatus aclnnInplaceUniformGetWorkspaceSize(aclTensor *selfRef, double from, double to,
                                                uint64_t seed, uint64_t offset,
                                                uint64_t *workspaceSize, aclOpExecutor **executor) {
  const struct pg_map args = {
      .function = PG_MAP_UNIFORM, .s.real = from, .t.real = to, .seed = seed, .offset = offset};
  struct pg_view self = {.name = "selfRef"};
  PG_TRY(pg_check_results(__func__, workspaceSize, executor));
  PG_TRY(acquire(__func__, selfRef, PG_REALS, &self));
  const aclnnStatus status = uniform(__func__, &self, &args, workspaceSize, executor);
  pg_views_release(&self, 1);
  return status;
}
PG_SECOND_PHASE(aclnnInplaceUniform)

static aclnnStatus integers(const char *api, struct pg_view *self, const struct pg_map *args,
                            uint64_t *workspace_size, aclOpExecutor **executor) {
  PG_CHECK_AS(api, args->s.integer < args->t.integer, ACLNN_ERR_PARAM_INVALID,
              "from is %lld and to %lld, from must be less", (long long)args->s.integer,
              (long long)args->t.integer);
  return plan_random(api, self, args, workspace_size, executor);
}

aclnnStatus aclnnInplaceRandomGetWorkspaceSize(aclTensor *selfRef, int64_t from, int64_t to,
                                               int64_t seed, int64_t offset,
                                               uint64_t *workspaceSize, aclOpExecutor **executor) {
  const struct pg_map args = {.function = PG_MAP_RANDOM,
                              .s.integer = from,
                              .t.integer = to,
                              .seed = (uint64_t)seed,
                              .offset = (uint64_t)offset};
  struct pg_view self = {.name = "selfRef"};
  PG_TRY(pg_check_results(__func__, workspaceSize, executor));
  PG_TRY(acquire(__func__, selfRef, PG_ANY, &self));
  const aclnnStatus status = integers(__func__, &self, &args, workspaceSize, executor);
  pg_views_release(&self, 1);
  return status;
}
PG_SECOND_PHASE(aclnnInplaceRandom)
