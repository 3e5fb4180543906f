/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that several operators share.  Each fails with 161002 (161001 for NULL) and a sentence
 * that has the values. */
#ifndef PG_POOL_CHECK_H_
#define PG_POOL_CHECK_H_

#include "aclnn/array.h"
#include "core/checked.h"
#include "core/soc.h"
#include "ops/view.h"

enum pg_dtypes {
  PG_FLOAT_ONLY,
  PG_FLOAT_AND_HALF,
  PG_FLOATS,
  PG_FLOATS_AND_DOUBLE,
  PG_FLOATS_AND_INTEGERS,
  PG_INT8_ONLY,
  PG_INT32_ONLY,
  PG_INT64_ONLY,
  PG_INDEXES
};

/* Which formats an operator takes.  PG_PLANAR: those that say nothing but the order of the axes,
 * with N and C before the others. */
enum pg_formats {
  PG_PLANAR,       /* ND, NCHW, NCL, NCDHW, NC */
  PG_PLANAR_NAMED, /* ND, NCHW, NCDHW on some product */
  PG_PLANAR_OR_NHWC,
  PG_FLAT,            /* in two dimensions: ND, NCHW, NCL */
  PG_FLAT_ON_PRODUCT, /* the same, where others take NHWC too */
  PG_FLAT_OR_LAST,    /* and NHWC */
  PG_DEEP,            /* in three dimensions: ND, NCHW, NCDHW */
  PG_DEEP_ON_PRODUCT, /* the same, where others take NDHWC too */
  PG_DEEP_OR_LAST,    /* and NDHWC */
  PG_NCHW_OR_NHWC,
  PG_NCHW_OR_NCDHW /* on some product */
};

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

aclnnStatus pg_check_format(const char *api, const struct pg_view *view, enum pg_formats allowed);

/* NCHW for 4 axes, NCL for 3. */
aclnnStatus pg_check_format_of_rank(const char *api, const struct pg_view *view);

/* No axis is shorter than 1, or the first one shorter than `first`. */
aclnnStatus pg_check_lengths(const char *api, const struct pg_view *view, int64_t first);
aclnnStatus pg_check_not_negative(const char *api, const struct pg_view *view);

/* The view's N and C are those of the other; both laid out. */
aclnnStatus pg_check_same_planes(const char *api, const struct pg_view *view,
                                 const struct pg_view *like);

/* A size for each spatial axis; pooling in two dimensions leaves d at what an axis without windows
 * has: 1, or 0 for a padding. */
struct pg_sizes {
  int64_t d, h, w;
};

/* "[3,2]" or "[1,3,2]"; the text lives in a ring of the thread's, good for one sentence. */
const char *pg_sizes_text(int spatial, struct pg_sizes sizes);

/* The values of an array, the first PG_VALUES of them, and how many it has. */
enum { PG_VALUES = 4 };
struct pg_values {
  uint64_t count;
  int64_t of[PG_VALUES];
};
aclnnStatus pg_read_values(const char *api, const char *name, const aclIntArray *handle,
                           struct pg_values *values);

/* Reads an attribute that has a value for each spatial axis, or a single one that counts for all of
 * them unless `least` is more.  With `least` 0 it may also be empty or NULL, and *sizes keeps what
 * it has. */
aclnnStatus pg_read_sizes(const char *api, const char *name, const aclIntArray *handle, int spatial,
                          int least, struct pg_sizes *sizes);

/* The windows of adaptive pooling from the cells of `in` to the outputs of `out`; both views laid
 * out.  Refuses what overflows. */
aclnnStatus pg_adaptive_pooling(const char *api, const struct pg_view *in,
                                const struct pg_view *out, struct pg_pooling *pool);

/* The output of adaptive pooling has self's N and C and these sizes; both laid out alike.  `code`
 * is what it fails with. */
aclnnStatus pg_check_adaptive_out(const char *api, int code, int spatial, const struct pg_view *out,
                                  const struct pg_view *self, struct pg_sizes sizes);

/* The attributes of sliding windows, with the names that the operator has for them. */
struct pg_sliding {
  int spatial; /* 2 or 3 */
  struct {
    const char *kernel, *stride, *padding, *dilation; /* dilation NULL: it has none */
  } names;
  struct {
    const aclIntArray *kernel, *stride, *padding, *dilation;
  } arrays;
  struct pg_sizes kernel, stride, padding, dilation; /* the arrays' values */
  struct pg_sizes padding_after;                     /* behind the last cell */
  bool one_sided; /* padding_after counts there; else `padding` does */
  bool ceil_mode;
};

/* The start of one: the names that most operators have, no windows along depth in two dimensions,
 * no dilation. */
struct pg_sliding pg_sliding_begin(int spatial, bool ceil_mode, bool has_dilation);

void pg_sliding_arrays(struct pg_sliding *sliding, const aclIntArray *kernel,
                       const aclIntArray *stride, const aclIntArray *padding,
                       const aclIntArray *dilation);

/* Reads the arrays: how many values each may have comes before what they are. */
aclnnStatus pg_read_sliding(const char *api, struct pg_sliding *sliding);

/* Kernel and stride are positive, padding is at most half of the kernel, dilation is positive and,
 * for `undilated` unless that is NULL, 1. */
aclnnStatus pg_check_sliding(const char *api, const struct pg_sliding *sliding,
                             const char *undilated);

aclnnStatus pg_check_positive(const char *api, const char *name, int spatial,
                              struct pg_sizes sizes);

/* 0 to half of the kernel. */
aclnnStatus pg_check_padding(const char *api, const struct pg_sliding *sliding);

/* The windows of sliding pooling over a laid-out self.  Refuses what overflows. */
aclnnStatus pg_sliding_pooling(const char *api, const struct pg_view *self,
                               const struct pg_sliding *sliding, struct pg_pooling *pool);

/* A window fits along each axis. */
aclnnStatus pg_check_outputs(const char *api, const struct pg_sliding *sliding,
                             const struct pg_view *self, const struct pg_pooling *pool);

/* Every window holds a cell of self; dilation and one-sided padding can bring about others. */
aclnnStatus pg_check_windows(const char *api, const struct pg_view *self,
                             const struct pg_pooling *pool);

/* The outputs (out, or gradOutput) have the pooled size. */
aclnnStatus pg_check_pooled(const char *api, const struct pg_sliding *sliding,
                            const struct pg_view *self, const struct pg_view *out,
                            const struct pg_pooling *pool);

/* What cubeMathType allows for a type.  Precision is never lowered here, but what the product would
 * refuse is refused. */
aclnnStatus pg_check_math_type(const char *api, int8_t type, aclDataType dtype);

/* Every axis of a laid-out self but the batch has a cell at least. */
aclnnStatus pg_check_planes_not_empty(const char *api, int spatial, const struct pg_view *self);

/* The product has masks; else `instead` is what to call. */
aclnnStatus pg_check_masks(const char *api, const char *instead);

/* A plane has at most 2^31 - 1 cells, or what 64 bits count if that is allowed and indices are wide
 * enough. */
aclnnStatus pg_check_plane(const char *api, const struct pg_view *self, bool large_allowed,
                           const struct pg_view *indices);

/* gradOutput has self's planes and the pooled size.  An empty one, or one for an empty self, has no
 * windows, so its sizes are not compared. */
aclnnStatus pg_check_grad_out(const char *api, const struct pg_sliding *sliding,
                              const struct pg_view *self, const struct pg_view *grad_out,
                              struct pg_pooling *pool);

#endif
