/* SPDX-License-Identifier: Apache-2.0 */
/* aclnnMaxPool.
 *
 *     out[n, c, oh, ow] = the greatest cell in the window of (oh, ow)
 *
 * Its attributes are ONNX's: paddings may differ on the two sides of an axis, and windows slide by
 * 1 where strides has no values.  Of equal cells the first one counts; a NaN counts more than any
 * number. */
#include "aclnn/opdev/op_errno.h"
#include "aclnnop/aclnn_max_pool.h"
#include "ops/pool_check.h"
#include "ops/pool_plan.h"

enum { SELF, OUT, TENSORS };

struct args {
  const char *api;
  struct pg_view view[TENSORS];
  struct pg_sliding sliding;
  int64_t auto_pad;
};

static aclnnStatus check_tensors(const struct args *a) {
  const struct pg_view *v = a->view;
  const bool integers = pg_soc()->max_pool_integers;
  PG_TRY(pg_check_dtype(a->api, &v[SELF], integers ? PG_FLOATS_AND_INTEGERS : PG_FLOAT_AND_HALF));
  PG_TRY(pg_check_same_dtype(a->api, &v[OUT], &v[SELF]));
  PG_TRY(pg_check_same_format(a->api, &v[OUT], &v[SELF]));
  PG_TRY(pg_check_format(a->api, &v[SELF], PG_FLAT));
  PG_TRY(pg_check_rank(a->api, &v[SELF], 3, 4));
  return pg_check_same_rank(a->api, &v[OUT], &v[SELF]);
}

/* Reads an array of 0, 1, 2 or 4 values. */
static aclnnStatus read_sides(const struct args *a, const char *name, const aclIntArray *handle,
                              struct pg_values *values) {
  PG_TRY(pg_read_values(a->api, name, handle, values));
  PG_CHECK_AS(a->api, values->count <= 4 && values->count != 3, ACLNN_ERR_PARAM_INVALID,
              "%s has %llu values, allowed is 0, 1, 2 or 4", name,
              (unsigned long long)values->count);
  return ACLNN_SUCCESS;
}

/* One value counts for all sides, two are top and bottom, left and right; four are top, left,
 * bottom, right. */
static aclnnStatus read_pads(struct args *a) {
  struct pg_sliding *s = &a->sliding;
  struct pg_values pads;
  PG_TRY(read_sides(a, s->names.padding, s->arrays.padding, &pads));
  const int64_t *of = pads.of, last = pads.count == 1 ? of[0] : of[1]; /* none: zeros */
  s->padding = (struct pg_sizes){0, of[0], last};
  s->padding_after = pads.count == 4 ? (struct pg_sizes){0, of[2], of[3]} : s->padding;
  s->one_sided = true;
  return ACLNN_SUCCESS;
}

/* The paddings of an axis are not negative, and together not longer than the kernel. */
static aclnnStatus check_pads(const struct args *a) {
  const struct pg_sliding *s = &a->sliding;
  const struct pg_sizes p = s->padding, q = s->padding_after, k = s->kernel;
  PG_CHECK_AS(a->api,
              p.h >= 0 && p.w >= 0 && q.h >= 0 && q.w >= 0 && p.h <= k.h && p.w <= k.w &&
                  q.h <= k.h - p.h && q.w <= k.w - p.w,
              ACLNN_ERR_PARAM_INVALID,
              "pads is %s before and %s behind, none may be negative and an axis may have at most "
              "kernelShape %s together",
              pg_sizes_text(2, p), pg_sizes_text(2, q), pg_sizes_text(2, k));
  return ACLNN_SUCCESS;
}

static aclnnStatus check_attributes(struct args *a) {
  struct pg_sliding *s = &a->sliding;
  struct pg_values dilations;
  PG_TRY(pg_read_sizes(a->api, s->names.kernel, s->arrays.kernel, 2, 1, &s->kernel));
  PG_TRY(pg_read_sizes(a->api, s->names.stride, s->arrays.stride, 2, 0, &s->stride));
  PG_TRY(read_pads(a));
  PG_TRY(read_sides(a, "dilations", s->arrays.dilation, &dilations));
  PG_TRY(pg_check_positive(a->api, s->names.kernel, 2, s->kernel));
  PG_TRY(pg_check_positive(a->api, s->names.stride, 2, s->stride));
  PG_CHECK_AS(a->api, a->auto_pad == 0, ACLNN_ERR_PARAM_INVALID, "autoPad is %lld, allowed is 0",
              (long long)a->auto_pad);
  PG_TRY(check_pads(a));
  for (uint64_t i = 0; i < dilations.count; i++)
    PG_CHECK_AS(a->api, dilations.of[i] == 1, ACLNN_ERR_PARAM_INVALID,
                "dilations has %lld at place %llu, allowed is 1", (long long)dilations.of[i],
                (unsigned long long)i);
  return ACLNN_SUCCESS;
}

/* Every way the caller can be wrong, in the order of the documents. */
static aclnnStatus check(struct args *a, struct pg_pooling *pool) {
  struct pg_view *v = a->view;
  PG_TRY(check_tensors(a));
  PG_TRY(check_attributes(a));
  PG_TRY(pg_check_not_negative(a->api, &v[SELF]));
  pg_views_lay_out(v, TENSORS, 2, false);
  PG_TRY(pg_sliding_pooling(a->api, &v[SELF], &a->sliding, pool));
  PG_TRY(pg_check_pooled(a->api, &a->sliding, &v[SELF], &v[OUT], pool));
  if (!pg_tensor_is_empty(v[OUT].tensor)) PG_TRY(pg_check_windows(a->api, &v[SELF], pool));
  return pg_views_check(a->api, v, TENSORS, 1u << OUT);
}

aclnnStatus aclnnMaxPoolGetWorkspaceSize(const aclTensor *self, const aclIntArray *kernelShape,
                                         const aclIntArray *strides, const int64_t autoPad,
                                         const aclIntArray *pads, const aclIntArray *dilations,
                                         const int64_t ceilMode, aclTensor *out,
                                         uint64_t *workspaceSize, aclOpExecutor **executor) {
  const aclTensor *const handles[] = {self, out};
  struct pg_pooling pool;
  struct args a = {.api = __func__,
                   .view = {{.name = "self"}, {.name = "out"}},
                   .sliding = pg_sliding_begin(2, ceilMode != 0, false),
                   .auto_pad = autoPad};
  const struct pg_required required[] = {
      {"self", self}, {"kernelShape", kernelShape}, {"strides", strides},
      {"pads", pads}, {"dilations", dilations},     {"out", out},
      {NULL, NULL}};
  a.sliding.names.kernel = "kernelShape";
  a.sliding.names.stride = "strides";
  a.sliding.names.padding = "pads";
  pg_sliding_arrays(&a.sliding, kernelShape, strides, pads, dilations);
  PG_TRY(pg_check_results(a.api, workspaceSize, executor));
  PG_TRY(pg_check_required(a.api, required));
  PG_TRY(pg_views_acquire(a.api, a.view, handles, TENSORS));
  aclnnStatus status = check(&a, &pool);
  if (status == ACLNN_SUCCESS) {
    const struct pg_max_forward_call call = {
        .in = &a.view[SELF], .out = &a.view[OUT], .pool = pool};
    status = pg_plan_max_forward(a.api, &call, workspaceSize, executor);
  }
  pg_views_release(a.view, TENSORS);
  return status;
}

aclnnStatus aclnnMaxPool(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor,
                         aclrtStream stream) {
  return pg_execute(__func__, workspace, workspaceSize, executor, stream);
}
