/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/pool_check.h"

#include <stdio.h>
#include <string.h>

#include "aclnn/opdev/op_errno.h"
#include "core/dtype.h"

static const struct {
  const char *words;
  aclDataType types[4];
  int count;
} dtypes[] = {
    [PG_FLOAT_ONLY] = {"DT_FLOAT", {ACL_FLOAT}, 1},
    [PG_FLOATS] = {"DT_FLOAT, DT_FLOAT16 or DT_BF16", {ACL_FLOAT, ACL_FLOAT16, ACL_BF16}, 3},
    [PG_FLOATS_AND_DOUBLE] = {"DT_FLOAT, DT_FLOAT16, DT_BF16 or DT_DOUBLE",
                              {ACL_FLOAT, ACL_FLOAT16, ACL_BF16, ACL_DOUBLE},
                              4},
    [PG_INT32_ONLY] = {"DT_INT32", {ACL_INT32}, 1},
    [PG_INDEXES] = {"DT_INT32 or DT_INT64", {ACL_INT32, ACL_INT64}, 2},
};

aclnnStatus pg_check_required(const char *api, const struct pg_required *list) {
  for (; list->name != NULL; list++)
    if (list->pointer == NULL) return pg_fail_null(api, ACLNN_ERR_PARAM_NULLPTR, list->name);
  return ACLNN_SUCCESS;
}

aclnnStatus pg_check_results(const char *api, const uint64_t *workspace_size,
                             aclOpExecutor *const *executor) {
  const struct pg_required list[] = {
      {"workspaceSize", workspace_size}, {"executor", executor}, {NULL, NULL}};
  return pg_check_required(api, list);
}

aclnnStatus pg_check_dtype(const char *api, const struct pg_view *view, enum pg_dtypes allowed) {
  for (int i = 0; i < dtypes[allowed].count; i++)
    if (view->tensor->dtype == dtypes[allowed].types[i]) return ACLNN_SUCCESS;
  /* the short lists are some product's */
  const bool product = allowed == PG_FLOAT_ONLY || allowed == PG_INT32_ONLY;
  return pg_fail(api, ACLNN_ERR_PARAM_INVALID, "%s is %s, allowed is %s%s%s", view->name,
                 pg_dtype_name(view->tensor->dtype), dtypes[allowed].words, product ? " on " : "",
                 product ? aclrtGetSocName() : "");
}

aclnnStatus pg_check_same_dtype(const char *api, const struct pg_view *view,
                                const struct pg_view *like) {
  PG_CHECK_AS(api, view->tensor->dtype == like->tensor->dtype, ACLNN_ERR_PARAM_INVALID,
              "%s is %s, expected %s's %s", view->name, pg_dtype_name(view->tensor->dtype),
              like->name, pg_dtype_name(like->tensor->dtype));
  return ACLNN_SUCCESS;
}

aclnnStatus pg_check_rank(const char *api, const struct pg_view *view, int least, int most) {
  PG_CHECK_AS(api, view->tensor->rank >= least && view->tensor->rank <= most,
              ACLNN_ERR_PARAM_INVALID, "%s is %s, it must have %d or %d axes", view->name,
              pg_view_shape(view), least, most);
  return ACLNN_SUCCESS;
}

aclnnStatus pg_check_same_rank(const char *api, const struct pg_view *view,
                               const struct pg_view *like) {
  PG_CHECK_AS(api, view->tensor->rank == like->tensor->rank, ACLNN_ERR_PARAM_INVALID,
              "%s is %s, it must have as many axes as %s %s", view->name, pg_view_shape(view),
              like->name, pg_view_shape(like));
  return ACLNN_SUCCESS;
}

aclnnStatus pg_check_same_shape(const char *api, const struct pg_view *view,
                                const struct pg_view *like) {
  const struct pg_tensor *a = view->tensor, *b = like->tensor;
  PG_CHECK_AS(
      api, a->rank == b->rank && memcmp(a->dims, b->dims, (size_t)a->rank * sizeof a->dims[0]) == 0,
      ACLNN_ERR_PARAM_INVALID, "%s is %s, expected %s's shape %s", view->name, pg_view_shape(view),
      like->name, pg_view_shape(like));
  return ACLNN_SUCCESS;
}

aclnnStatus pg_check_same_format(const char *api, const struct pg_view *view,
                                 const struct pg_view *like) {
  PG_CHECK_AS(api, view->tensor->format == like->tensor->format, ACLNN_ERR_PARAM_INVALID,
              "%s has format %s, expected %s's %s", view->name,
              pg_format_name(view->tensor->format), like->name,
              pg_format_name(like->tensor->format));
  return ACLNN_SUCCESS;
}

aclnnStatus pg_check_positional_format(const char *api, const struct pg_view *view) {
  switch (view->tensor->format) {
    case ACL_FORMAT_ND:
    case ACL_FORMAT_NCHW:
    case ACL_FORMAT_NCL:
    case ACL_FORMAT_NCDHW:
    case ACL_FORMAT_NC:
      return ACLNN_SUCCESS;
    default:
      return pg_fail(api, ACLNN_ERR_PARAM_INVALID,
                     "%s has format %s, allowed is ND, NCHW, NCL, NCDHW or NC", view->name,
                     pg_format_name(view->tensor->format));
  }
}

aclnnStatus pg_check_same_planes(const char *api, const struct pg_view *grad_out,
                                 const struct pg_view *self) {
  PG_CHECK_AS(api,
              grad_out->dims[PG_N] == self->dims[PG_N] && grad_out->dims[PG_C] == self->dims[PG_C],
              ACLNN_ERR_PARAM_INVALID, "%s is %s, its N and C must be those of %s %s",
              grad_out->name, pg_view_shape(grad_out), self->name, pg_view_shape(self));
  return ACLNN_SUCCESS;
}

aclnnStatus pg_read_pair(const char *api, const char *name, const aclIntArray *handle, int least,
                         struct pg_pair *pair) {
  if (handle == NULL && least == 0) return ACLNN_SUCCESS;
  struct pg_array *array = pg_acquire(handle, PG_INT_ARRAY);
  PG_CHECK_AS(api, array != NULL, ACLNN_ERR_PARAM_INVALID,
              "%s is %s, a live aclIntArray is required", name, pg_handle_what(handle));
  const uint64_t size = array->size;
  if (size >= 1 && size <= 2) *pair = (struct pg_pair){pg_ints(array)[0], pg_ints(array)[size - 1]};
  pg_release(&array->object);
  PG_CHECK_AS(api, size >= (uint64_t)least && size <= 2, ACLNN_ERR_PARAM_INVALID,
              "%s has %llu values, allowed is %d to 2", name, (unsigned long long)size, least);
  return ACLNN_SUCCESS;
}

static bool adaptive_axis(int64_t in, int64_t out, struct pg_axis *axis) {
  int64_t product;
  *axis = (struct pg_axis){.in = in, .out = out};
  return pg_mul(in, out, &product) && pg_add(product, in, &product) &&
         pg_add(product, out, &product);
}

aclnnStatus pg_adaptive_pooling(const char *api, const struct pg_view *self,
                                const struct pg_view *grad_out, struct pg_pooling *pool) {
  const int64_t *in = self->dims, *out = grad_out->dims;
  pool->n = in[PG_N];
  pool->c = in[PG_C];
  PG_CHECK_AS(api,
              adaptive_axis(in[PG_D], out[PG_D], &pool->d) &&
                  adaptive_axis(in[PG_H], out[PG_H], &pool->h) &&
                  adaptive_axis(in[PG_W], out[PG_W], &pool->w),
              ACLNN_ERR_PARAM_INVALID, "self is %s and gradOutput %s, too large for 64-bit windows",
              pg_view_shape(self), pg_view_shape(grad_out));
  return ACLNN_SUCCESS;
}

aclnnStatus pg_check_positive(const char *api, const char *name, struct pg_pair pair) {
  PG_CHECK_AS(api, pair.h > 0 && pair.w > 0, ACLNN_ERR_PARAM_INVALID,
              "%s is [%lld,%lld], both must be positive", name, (long long)pair.h,
              (long long)pair.w);
  return ACLNN_SUCCESS;
}

aclnnStatus pg_check_padding(const char *api, const struct pg_sliding *sliding) {
  const struct pg_pair k = sliding->kernel, p = sliding->padding;
  PG_CHECK_AS(api, p.h >= 0 && p.w >= 0 && p.h <= k.h / 2 && p.w <= k.w / 2,
              ACLNN_ERR_PARAM_INVALID,
              "padding is [%lld,%lld], allowed is 0 to half of kernelSize [%lld,%lld]",
              (long long)p.h, (long long)p.w, (long long)k.h, (long long)k.w);
  return ACLNN_SUCCESS;
}

/* out = floor((in + 2 pad - dilation (kernel - 1) - 1 + (ceil: stride - 1)) / stride) + 1, less one
 * when the last window would begin in the right padding. */
static aclnnStatus set_output(const char *api, struct pg_axis *axis, bool ceil_mode) {
  int64_t span, padded, top;
  PG_CHECK_AS(
      api,
      pg_mul(axis->kernel - 1, axis->dilation, &span) && pg_mul(axis->pad, 2, &padded) &&
          pg_add(padded, axis->in, &padded) && pg_add(padded, axis->stride, &top) &&
          pg_add(top, span, &top) && span <= INT64_MAX / 4 && padded <= INT64_MAX / 4,
      ACLNN_ERR_PARAM_INVALID,
      "kernel %lld, stride %lld, padding %lld and dilation %lld overflow 64 bits on an axis "
      "of length %lld",
      (long long)axis->kernel, (long long)axis->stride, (long long)axis->pad,
      (long long)axis->dilation, (long long)axis->in);
  const int64_t travel = padded - span - 1 + (ceil_mode ? axis->stride - 1 : 0);
  axis->out = pg_floor_div(travel, axis->stride) + 1;
  if (ceil_mode && (axis->out - 1) * axis->stride >= axis->in + axis->pad) axis->out--;
  return ACLNN_SUCCESS;
}

aclnnStatus pg_sliding_pooling(const char *api, const struct pg_view *self,
                               const struct pg_sliding *sliding, struct pg_pooling *pool) {
  const struct pg_pair k = sliding->kernel, s = sliding->stride, p = sliding->padding,
                       d = sliding->dilation;
  const int64_t *in = self->dims;
  int64_t cells;
  *pool = (struct pg_pooling){
      .n = in[PG_N],
      .c = in[PG_C],
      .d = pg_axis_unit(),
      .h = {.in = in[PG_H], .kernel = k.h, .stride = s.h, .pad = p.h, .dilation = d.h},
      .w = {.in = in[PG_W], .kernel = k.w, .stride = s.w, .pad = p.w, .dilation = d.w}};
  PG_TRY(set_output(api, &pool->h, sliding->ceil_mode));
  PG_TRY(set_output(api, &pool->w, sliding->ceil_mode));
  PG_CHECK_AS(api, pg_mul(in[PG_H] + 2 * p.h, in[PG_W] + 2 * p.w, &cells), ACLNN_ERR_PARAM_INVALID,
              "self is %s and padding [%lld,%lld], too large for 64-bit windows",
              pg_view_shape(self), (long long)p.h, (long long)p.w);
  return ACLNN_SUCCESS;
}

/* The shape that gradOutput should have, in self's order of axes. */
static int pooled_shape(const struct pg_view *self, const struct pg_pooling *pool,
                        int64_t shape[4]) {
  const bool last = self->tensor->format == ACL_FORMAT_NHWC;
  int rank = 0;
  if (self->tensor->rank == 4) shape[rank++] = pool->n;
  if (!last) shape[rank++] = pool->c;
  shape[rank++] = pool->h.out;
  shape[rank++] = pool->w.out;
  if (last) shape[rank++] = pool->c;
  return rank;
}

aclnnStatus pg_check_pooled(const char *api, const struct pg_sliding *sliding,
                            const struct pg_view *self, const struct pg_view *grad_out,
                            const struct pg_pooling *pool) {
  const struct pg_pair k = sliding->kernel, s = sliding->stride, p = sliding->padding,
                       d = sliding->dilation;
  const struct pg_tensor *grad = grad_out->tensor;
  int64_t expected[4];
  char text[PG_SHAPE_TEXT], dilation[64] = "";
  const int rank = pooled_shape(self, pool, expected);
  if (grad->rank == rank && memcmp(grad->dims, expected, (size_t)rank * sizeof *expected) == 0)
    return ACLNN_SUCCESS;
  if (sliding->has_dilation)
    snprintf(dilation, sizeof dilation, "dilation [%lld,%lld], ", (long long)d.h, (long long)d.w);
  return pg_fail(api, ACLNN_ERR_PARAM_INVALID,
                 "gradOutput is %s, expected %s for self %s, kernelSize [%lld,%lld], stride "
                 "[%lld,%lld], padding [%lld,%lld], %sceilMode %s",
                 pg_view_shape(grad_out), pg_shape_text(rank, expected, text), pg_view_shape(self),
                 (long long)k.h, (long long)k.w, (long long)s.h, (long long)s.w, (long long)p.h,
                 (long long)p.w, dilation, sliding->ceil_mode ? "true" : "false");
}
