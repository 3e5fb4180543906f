/* SPDX-License-Identifier: Apache-2.0 */
/* From a checked call to steps of PG_MAP. */
#ifndef PG_MAP_PLAN_H_
#define PG_MAP_PLAN_H_

#include "ops/tensor_grid.h"
#include "ops/tensor_types.h"

/* The second phase of an operator. */
#define PG_SECOND_PHASE(name)                                                        \
  aclnnStatus name(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, \
                   aclrtStream stream) {                                             \
    return pg_execute(__func__, workspace, workspaceSize, executor, stream);         \
  }

struct pg_map_call {
  const struct pg_view *out;
  const struct pg_view *in[PG_MAP_INPUTS]; /* NULL: fewer; each can be broadcast to out's shape */
  /* Types on the way: inputs that become this type before, and a result that is rounded to it
   * before it becomes out's.  Both go through the workspace, so only what must is marked. */
  aclDataType between;
  bool converts[PG_MAP_INPUTS], rounds;
  /* Everything but grid, views and inputs. */
  struct pg_map args;
};

/* Adds the steps of a call; none if out is empty.  An input may be the view that out is, as for
 * operators that work in place.  One that overlaps out otherwise, as far as the addresses are known
 * now, is copied to the workspace first: so columns of one matrix can be copied to each other. */
aclnnStatus pg_plan_map(const char *api, struct pg_plan *plan, const struct pg_map_call *call);

/* Adds a step whose result, of this shape and type and without gaps, goes to the workspace; *at is
 * its place there.  The call has no out. */
aclnnStatus pg_plan_map_out(const char *api, struct pg_plan *plan, const struct pg_map_call *call,
                            const struct pg_shape *shape, aclDataType dtype, int64_t *at);

/* Adds a step that copies the tensor to the workspace in this way. */
aclnnStatus pg_plan_copy_out(const char *api, struct pg_plan *plan, const struct pg_view *view,
                             int64_t *at);

/* Adds a step that copies what lies at that place of the workspace, without gaps and of this type,
 * to the tensor. */
void pg_plan_copy_back(struct pg_plan *plan, const struct pg_view *view, aclDataType dtype,
                       int64_t at);

/* Adds a step that copies a tensor to the part of out that begins at this position of the axis.  A
 * tensor that lacks the axis goes to that position alone. */
void pg_plan_copy_into(struct pg_plan *plan, const struct pg_view *out, int axis, int64_t from,
                       const struct pg_view *in);

/* Adds steps that write a number, in the class of the tensor, everywhere. */
aclnnStatus pg_plan_fill(const char *api, struct pg_plan *plan, const struct pg_view *out,
                         union pg_number number);

/* The executor of a call that is one map. */
aclnnStatus pg_publish_map(const char *api, const struct pg_map_call *call,
                           uint64_t *workspace_size, aclOpExecutor **executor);

#endif
