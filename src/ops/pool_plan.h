/* SPDX-License-Identifier: Apache-2.0 */
/* From a checked pooling call to a plan: which kernels run on what. */
#ifndef PG_POOL_PLAN_H_
#define PG_POOL_PLAN_H_

#include "ops/view.h"

struct pg_max_call {
  const char *op; /* for reports of bad indices */
  bool has_depth; /* likewise: outputs have an od */
  const struct pg_view *grad_out, *index, *grad_in;
  struct pg_pooling pool;
  int32_t index_bytes; /* 0: those of the indices' type */
};

struct pg_avg_call {
  const struct pg_view *grad_out, *grad_in;
  const struct pg_view *unread; /* an input whose values nobody needs; NULL: there is none */
  struct pg_pooling pool;
  int64_t divisor; /* 0: counted */
  bool count_include_pad;
};

struct pg_max_forward_call {
  const struct pg_view *in, *out;
  const struct pg_view *index; /* NULL: none are wanted */
  struct pg_pooling pool;
  /* So many bytes from `zeros` on, counted from the data address of the tensor of `index` or, if
   * there is none, of `container`, become 0: what the indices leave of the container of a mask. */
  const struct pg_view *container;
  int64_t zeros, zero_bytes;
  int32_t index_bytes; /* 0: those of the indices' type */
};

struct pg_avg_forward_call {
  const struct pg_view *in, *out;
  struct pg_pooling pool;
  int64_t divisor; /* 0: counted */
  bool count_include_pad;
};

/* Each makes the executor of a call that passed its checks, and writes phase 1's results.  An
 * empty gradInput needs no step; with an empty gradOutput it becomes zeros. */
aclnnStatus pg_plan_max_backward(const char *api, const struct pg_max_call *call,
                                 uint64_t *workspace_size, aclOpExecutor **executor);
aclnnStatus pg_plan_avg_backward(const char *api, const struct pg_avg_call *call,
                                 uint64_t *workspace_size, aclOpExecutor **executor);

/* Likewise.  An empty input or output needs no step. */
aclnnStatus pg_plan_max_forward(const char *api, const struct pg_max_forward_call *call,
                                uint64_t *workspace_size, aclOpExecutor **executor);
aclnnStatus pg_plan_avg_forward(const char *api, const struct pg_avg_forward_call *call,
                                uint64_t *workspace_size, aclOpExecutor **executor);

#endif
