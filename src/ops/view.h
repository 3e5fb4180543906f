/* SPDX-License-Identifier: Apache-2.0 */
/* A tensor of an operator seen as (n, c, d, h, w), whatever its rank and layout. */
#ifndef PG_VIEW_H_
#define PG_VIEW_H_

#include "aclnn/executor.h"

struct pg_view {
  const char *name;
  struct pg_tensor *tensor; /* holds a reference once acquired */
  int64_t dims[PG_AXES];
  struct pg_strides strides;
  int64_t begin, end; /* bytes from the data address that the view spans */
  size_t alignment;   /* of the data address; 0: that of the elements */
};

/* Acquires the tensors in their order: 161001 for the first NULL, 161002 for what is no tensor.
 * On failure none is held. */
aclnnStatus pg_views_acquire(const char *api, struct pg_view *views,
                             const aclTensor *const *handles, int count);
void pg_views_release(struct pg_view *views, int count);

/* Lays the axes out: spatial is 2 or 3, the rank spatial + 1 or + 2, checked before.
 * Channels last: (n, spatial..., c) instead of (n, c, spatial...). */
void pg_view_lay_out(struct pg_view *view, int spatial, bool channels_last);

/* Both of these for several views; a bit of `written` says which of them are written. */
void pg_views_lay_out(struct pg_view *views, int count, int spatial, bool channels_last);
aclnnStatus pg_views_check(const char *api, struct pg_view *views, int count, unsigned written);

/* 161002 unless every dim, stride and the offset are not negative and every address the view
 * spans fits into 64 bits; what is written must not have two cells in one place. */
aclnnStatus pg_view_check(const char *api, struct pg_view *view, bool written);

/* 161002 unless the memory that the views span is in proportion to the elements that are read. */
aclnnStatus pg_check_work(const char *api, const struct pg_view *read,
                          const struct pg_view *const *views, int count);

/* "[1,16,5,5]" of the tensor; the text lives in a ring of the thread's, good for one sentence. */
const char *pg_view_shape(const struct pg_view *view);

/* Adds the view to a plan. */
int pg_view_operand(struct pg_plan *plan, const struct pg_view *view, bool written);

#endif
