/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that several operators share.  Each fails with 161002 (161001 for NULL) and a sentence
 * that has the values. */
#ifndef PG_POOL_CHECK_H_
#define PG_POOL_CHECK_H_

#include "aclnn/array.h"
#include "core/checked.h"
#include "core/soc.h"
#include "ops/view.h"

enum pg_dtypes { PG_FLOAT_ONLY, PG_FLOATS, PG_FLOATS_AND_DOUBLE, PG_INT32_ONLY, PG_INDEXES };

/* A pointer argument that must not be NULL; a list of them ends with name NULL. */
struct pg_required {
  const char *name;
  const void *pointer;
};
aclnnStatus pg_check_required(const char *api, const struct pg_required *list);

/* Phase 1's own results. */
aclnnStatus pg_check_results(const char *api, const uint64_t *workspace_size,
                             aclOpExecutor *const *executor);

aclnnStatus pg_check_dtype(const char *api, const struct pg_view *view, enum pg_dtypes allowed);
aclnnStatus pg_check_same_dtype(const char *api, const struct pg_view *view,
                                const struct pg_view *like);
aclnnStatus pg_check_rank(const char *api, const struct pg_view *view, int least, int most);
aclnnStatus pg_check_same_rank(const char *api, const struct pg_view *view,
                               const struct pg_view *like);
aclnnStatus pg_check_same_shape(const char *api, const struct pg_view *view,
                                const struct pg_view *like);
aclnnStatus pg_check_same_format(const char *api, const struct pg_view *view,
                                 const struct pg_view *like);

/* ND, NCHW, NCL, NCDHW or NC: formats that say nothing but the order of the axes. */
aclnnStatus pg_check_positional_format(const char *api, const struct pg_view *view);

/* gradOutput's N and C are self's; both laid out. */
aclnnStatus pg_check_same_planes(const char *api, const struct pg_view *grad_out,
                                 const struct pg_view *self);

/* One or two values of an int array, H then W. */
struct pg_pair {
  int64_t h, w;
};

/* Reads an attribute of `least` to 2 values; a single one counts for both axes.  With none (or
 * NULL where least is 0) *pair keeps what it has. */
aclnnStatus pg_read_pair(const char *api, const char *name, const aclIntArray *handle, int least,
                         struct pg_pair *pair);

/* The windows of adaptive pooling; both views laid out.  Refuses what overflows. */
aclnnStatus pg_adaptive_pooling(const char *api, const struct pg_view *self,
                                const struct pg_view *grad_out, struct pg_pooling *pool);

/* The attributes of sliding windows. */
struct pg_sliding {
  struct pg_pair kernel, stride, padding, dilation;
  bool ceil_mode;
  bool has_dilation; /* whether the operator has that attribute, for sentences */
};

aclnnStatus pg_check_positive(const char *api, const char *name, struct pg_pair pair);

/* 0 to half of the kernel. */
aclnnStatus pg_check_padding(const char *api, const struct pg_sliding *sliding);

/* The windows of sliding pooling over a laid-out self.  Refuses what overflows. */
aclnnStatus pg_sliding_pooling(const char *api, const struct pg_view *self,
                               const struct pg_sliding *sliding, struct pg_pooling *pool);

/* gradOutput has the pooled size. */
aclnnStatus pg_check_pooled(const char *api, const struct pg_sliding *sliding,
                            const struct pg_view *self, const struct pg_view *grad_out,
                            const struct pg_pooling *pool);

#endif
