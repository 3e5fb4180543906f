/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/pool_check.h"

#include <stdio.h>
#include <string.h>

#include "aclnn/opdev/op_errno.h"
#include "core/dtype.h"

static const struct {
  const char *words;
  bool product; /* the list is short because of some product */
  int count;
  aclDataType types[9];
} dtypes[] = {
    [PG_FLOAT_ONLY] = {"DT_FLOAT", true, 1, {ACL_FLOAT}},
    [PG_FLOAT_AND_HALF] = {"DT_FLOAT or DT_FLOAT16", true, 2, {ACL_FLOAT, ACL_FLOAT16}},
    [PG_FLOATS] = {"DT_FLOAT, DT_FLOAT16 or DT_BF16", false, 3, {ACL_FLOAT, ACL_FLOAT16, ACL_BF16}},
    [PG_FLOATS_AND_DOUBLE] = {"DT_FLOAT, DT_FLOAT16, DT_BF16 or DT_DOUBLE",
                              false,
                              4,
                              {ACL_FLOAT, ACL_FLOAT16, ACL_BF16, ACL_DOUBLE}},
    [PG_FLOATS_AND_INTEGERS] = {"DT_FLOAT, DT_FLOAT16, DT_BF16, DT_INT32, DT_INT64, DT_UINT8, "
                                "DT_INT16, DT_INT8 or DT_UINT16",
                                false,
                                9,
                                {ACL_FLOAT, ACL_FLOAT16, ACL_BF16, ACL_INT32, ACL_INT64, ACL_UINT8,
                                 ACL_INT16, ACL_INT8, ACL_UINT16}},
    [PG_INT8_ONLY] = {"DT_INT8", false, 1, {ACL_INT8}},
    [PG_INT32_ONLY] = {"DT_INT32", true, 1, {ACL_INT32}},
    [PG_INT64_ONLY] = {"DT_INT64", false, 1, {ACL_INT64}},
    [PG_INDEXES] = {"DT_INT32 or DT_INT64", false, 2, {ACL_INT32, ACL_INT64}},
};

static const struct {
  const char *words;
  bool product;
  int count;
  aclFormat formats[6];
} formats[] = {
    [PG_PLANAR] = {"ND, NCHW, NCL, NCDHW or NC",
                   false,
                   5,
                   {ACL_FORMAT_ND, ACL_FORMAT_NCHW, ACL_FORMAT_NCL, ACL_FORMAT_NCDHW,
                    ACL_FORMAT_NC}},
    [PG_PLANAR_NAMED] = {"ND, NCHW or NCDHW",
                         true,
                         3,
                         {ACL_FORMAT_ND, ACL_FORMAT_NCHW, ACL_FORMAT_NCDHW}},
    [PG_PLANAR_OR_NHWC] = {"ND, NCHW, NCL, NCDHW, NC or NHWC",
                           false,
                           6,
                           {ACL_FORMAT_ND, ACL_FORMAT_NCHW, ACL_FORMAT_NCL, ACL_FORMAT_NCDHW,
                            ACL_FORMAT_NC, ACL_FORMAT_NHWC}},
    [PG_FLAT] = {"ND, NCHW or NCL", false, 3, {ACL_FORMAT_ND, ACL_FORMAT_NCHW, ACL_FORMAT_NCL}},
    [PG_FLAT_ON_PRODUCT] = {"ND, NCHW or NCL",
                            true,
                            3,
                            {ACL_FORMAT_ND, ACL_FORMAT_NCHW, ACL_FORMAT_NCL}},
    [PG_FLAT_OR_LAST] = {"ND, NCHW, NCL or NHWC",
                         false,
                         4,
                         {ACL_FORMAT_ND, ACL_FORMAT_NCHW, ACL_FORMAT_NCL, ACL_FORMAT_NHWC}},
    [PG_DEEP] = {"ND, NCHW or NCDHW", false, 3, {ACL_FORMAT_ND, ACL_FORMAT_NCHW, ACL_FORMAT_NCDHW}},
    [PG_DEEP_ON_PRODUCT] = {"ND, NCHW or NCDHW",
                            true,
                            3,
                            {ACL_FORMAT_ND, ACL_FORMAT_NCHW, ACL_FORMAT_NCDHW}},
    [PG_DEEP_OR_LAST] = {"ND, NCHW, NCDHW or NDHWC",
                         false,
                         4,
                         {ACL_FORMAT_ND, ACL_FORMAT_NCHW, ACL_FORMAT_NCDHW, ACL_FORMAT_NDHWC}},
    [PG_NCHW_OR_NHWC] = {"NCHW or NHWC", false, 2, {ACL_FORMAT_NCHW, ACL_FORMAT_NHWC}},
    [PG_NCHW_OR_NCDHW] = {"NCHW or NCDHW", true, 2, {ACL_FORMAT_NCHW, ACL_FORMAT_NCDHW}},
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
  const bool product = dtypes[allowed].product;
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

aclnnStatus pg_check_format(const char *api, const struct pg_view *view, enum pg_formats allowed) {
  for (int i = 0; i < formats[allowed].count; i++)
    if (view->tensor->format == formats[allowed].formats[i]) return ACLNN_SUCCESS;
  const bool product = formats[allowed].product;
  return pg_fail(api, ACLNN_ERR_PARAM_INVALID, "%s has format %s, allowed is %s%s%s", view->name,
                 pg_format_name(view->tensor->format), formats[allowed].words,
                 product ? " on " : "", product ? aclrtGetSocName() : "");
}

aclnnStatus pg_check_format_of_rank(const char *api, const struct pg_view *view) {
  const aclFormat format = view->tensor->format;
  const int rank = view->tensor->rank;
  PG_CHECK_AS(api, format == ACL_FORMAT_NCHW || format == ACL_FORMAT_NCL, ACLNN_ERR_PARAM_INVALID,
              "%s has format %s, allowed is NCHW or NCL", view->name, pg_format_name(format));
  PG_CHECK_AS(api, (format == ACL_FORMAT_NCHW) == (rank == 4) && (rank == 3 || rank == 4),
              ACLNN_ERR_PARAM_INVALID, "%s is %s with format %s, NCHW has 4 axes and NCL 3",
              view->name, pg_view_shape(view), pg_format_name(format));
  return ACLNN_SUCCESS;
}

aclnnStatus pg_check_lengths(const char *api, const struct pg_view *view, int64_t first) {
  for (int i = 0; i < view->tensor->rank; i++) {
    const int64_t least = i == 0 ? first : 1;
    PG_CHECK_AS(api, view->tensor->dims[i] >= least, ACLNN_ERR_PARAM_INVALID,
                "%s is %s, axis %d must be at least %lld", view->name, pg_view_shape(view), i,
                (long long)least);
  }
  return ACLNN_SUCCESS;
}

aclnnStatus pg_check_not_negative(const char *api, const struct pg_view *view) {
  for (int i = 0; i < view->tensor->rank; i++)
    PG_CHECK_AS(api, view->tensor->dims[i] >= 0, ACLNN_ERR_PARAM_INVALID,
                "%s is %s, no dim may be negative", view->name, pg_view_shape(view));
  return ACLNN_SUCCESS;
}

aclnnStatus pg_check_same_planes(const char *api, const struct pg_view *view,
                                 const struct pg_view *like) {
  PG_CHECK_AS(api, view->dims[PG_N] == like->dims[PG_N] && view->dims[PG_C] == like->dims[PG_C],
              ACLNN_ERR_PARAM_INVALID, "%s is %s, its N and C must be those of %s %s", view->name,
              pg_view_shape(view), like->name, pg_view_shape(like));
  return ACLNN_SUCCESS;
}

const char *pg_sizes_text(int spatial, struct pg_sizes sizes) {
  static _Thread_local char ring[5][PG_SHAPE_TEXT]; /* no sentence has more */
  static _Thread_local unsigned next;
  const int64_t of[] = {sizes.d, sizes.h, sizes.w};
  return pg_shape_text(spatial, of + 3 - spatial, ring[next++ % 5]);
}

static aclnnStatus refuse_count(const char *api, const char *name, uint64_t size, int spatial,
                                int least) {
  const char *fewer = least > 1 ? "" : least == 1 ? "1 or " : "0, 1 or ";
  if (spatial == 2 && least <= 1)
    return pg_fail(api, ACLNN_ERR_PARAM_INVALID, "%s has %llu values, allowed is %d to 2", name,
                   (unsigned long long)size, least);
  return pg_fail(api, ACLNN_ERR_PARAM_INVALID, "%s has %llu values, allowed is %s%d", name,
                 (unsigned long long)size, fewer, spatial);
}

aclnnStatus pg_read_values(const char *api, const char *name, const aclIntArray *handle,
                           struct pg_values *values) {
  struct pg_array *array = pg_acquire(handle, PG_INT_ARRAY);
  PG_CHECK_AS(api, array != NULL, ACLNN_ERR_PARAM_INVALID,
              "%s is %s, a live aclIntArray is required", name, pg_handle_what(handle));
  *values = (struct pg_values){.count = array->size};
  for (uint64_t i = 0; i < array->size && i < PG_VALUES; i++) values->of[i] = pg_ints(array)[i];
  pg_release(&array->object);
  return ACLNN_SUCCESS;
}

aclnnStatus pg_read_sizes(const char *api, const char *name, const aclIntArray *handle, int spatial,
                          int least, struct pg_sizes *sizes) {
  struct pg_values values;
  if (handle == NULL && least == 0) return ACLNN_SUCCESS;
  PG_TRY(pg_read_values(api, name, handle, &values));
  if (values.count == 0 && least == 0) return ACLNN_SUCCESS;
  const bool one = values.count == 1 && least <= 1;
  if (!one && values.count != (uint64_t)spatial)
    return refuse_count(api, name, values.count, spatial, least);
  const int last = one ? 0 : spatial - 1;
  sizes->w = values.of[last];
  sizes->h = values.of[one ? 0 : last - 1];
  if (spatial == 3) sizes->d = values.of[0];
  return ACLNN_SUCCESS;
}

static bool adaptive_axis(int64_t in, int64_t out, struct pg_axis *axis) {
  int64_t product;
  *axis = (struct pg_axis){.in = in, .out = out};
  return pg_mul(in, out, &product) && pg_add(product, in, &product) &&
         pg_add(product, out, &product);
}

aclnnStatus pg_adaptive_pooling(const char *api, const struct pg_view *in,
                                const struct pg_view *out, struct pg_pooling *pool) {
  const int64_t *from = in->dims, *to = out->dims;
  pool->n = from[PG_N];
  pool->c = from[PG_C];
  PG_CHECK_AS(api,
              adaptive_axis(from[PG_D], to[PG_D], &pool->d) &&
                  adaptive_axis(from[PG_H], to[PG_H], &pool->h) &&
                  adaptive_axis(from[PG_W], to[PG_W], &pool->w),
              ACLNN_ERR_PARAM_INVALID, "%s is %s and %s %s, too large for 64-bit windows", in->name,
              pg_view_shape(in), out->name, pg_view_shape(out));
  return ACLNN_SUCCESS;
}

aclnnStatus pg_check_adaptive_out(const char *api, int code, int spatial, const struct pg_view *out,
                                  const struct pg_view *self, struct pg_sizes sizes) {
  const int64_t *to = out->dims, *from = self->dims;
  PG_CHECK_AS(api,
              to[PG_N] == from[PG_N] && to[PG_C] == from[PG_C] && to[PG_D] == sizes.d &&
                  to[PG_H] == sizes.h && to[PG_W] == sizes.w,
              code, "%s is %s, expected N and C of self %s and outputSize %s", out->name,
              pg_view_shape(out), pg_view_shape(self), pg_sizes_text(spatial, sizes));
  return ACLNN_SUCCESS;
}

struct pg_sliding pg_sliding_begin(int spatial, bool ceil_mode, bool has_dilation) {
  const struct pg_sizes ones = {1, 1, 1};
  return (struct pg_sliding){.spatial = spatial,
                             .names = {.kernel = "kernelSize",
                                       .stride = "stride",
                                       .padding = "padding",
                                       .dilation = has_dilation ? "dilation" : NULL},
                             .kernel = ones,
                             .stride = ones,
                             .dilation = ones,
                             .ceil_mode = ceil_mode};
}

void pg_sliding_arrays(struct pg_sliding *s, const aclIntArray *kernel, const aclIntArray *stride,
                       const aclIntArray *padding, const aclIntArray *dilation) {
  s->arrays.kernel = kernel;
  s->arrays.stride = stride;
  s->arrays.padding = padding;
  s->arrays.dilation = dilation;
}

aclnnStatus pg_read_sliding(const char *api, struct pg_sliding *s) {
  PG_TRY(pg_read_sizes(api, s->names.kernel, s->arrays.kernel, s->spatial, 1, &s->kernel));
  s->stride = s->kernel;
  PG_TRY(pg_read_sizes(api, s->names.stride, s->arrays.stride, s->spatial, 0, &s->stride));
  PG_TRY(pg_read_sizes(api, s->names.padding, s->arrays.padding, s->spatial, 1, &s->padding));
  if (s->names.dilation == NULL) return ACLNN_SUCCESS;
  return pg_read_sizes(api, s->names.dilation, s->arrays.dilation, s->spatial, 1, &s->dilation);
}

aclnnStatus pg_check_sliding(const char *api, const struct pg_sliding *s, const char *undilated) {
  PG_TRY(pg_check_positive(api, s->names.kernel, s->spatial, s->kernel));
  PG_TRY(pg_check_positive(api, s->names.stride, s->spatial, s->stride));
  PG_TRY(pg_check_padding(api, s));
  if (s->names.dilation == NULL) return ACLNN_SUCCESS;
  PG_TRY(pg_check_positive(api, s->names.dilation, s->spatial, s->dilation));
  PG_CHECK_AS(api,
              undilated == NULL || (s->dilation.d == 1 && s->dilation.h == 1 && s->dilation.w == 1),
              ACLNN_ERR_PARAM_INVALID, "%s is %s, %s takes 1 only", s->names.dilation,
              pg_sizes_text(s->spatial, s->dilation), undilated);
  return ACLNN_SUCCESS;
}

aclnnStatus pg_check_positive(const char *api, const char *name, int spatial,
                              struct pg_sizes sizes) {
  PG_CHECK_AS(api, (spatial == 2 || sizes.d > 0) && sizes.h > 0 && sizes.w > 0,
              ACLNN_ERR_PARAM_INVALID, "%s is %s, %s must be positive", name,
              pg_sizes_text(spatial, sizes), spatial == 2 ? "both" : "all three");
  return ACLNN_SUCCESS;
}

static bool is_padding(int64_t padding, int64_t kernel) {
  return padding >= 0 && padding <= kernel / 2;
}

aclnnStatus pg_check_padding(const char *api, const struct pg_sliding *s) {
  PG_CHECK_AS(api,
              is_padding(s->padding.d, s->kernel.d) && is_padding(s->padding.h, s->kernel.h) &&
                  is_padding(s->padding.w, s->kernel.w),
              ACLNN_ERR_PARAM_INVALID, "%s is %s, allowed is 0 to half of %s %s", s->names.padding,
              pg_sizes_text(s->spatial, s->padding), s->names.kernel,
              pg_sizes_text(s->spatial, s->kernel));
  return ACLNN_SUCCESS;
}

/* out = floor((in + pad + after - dilation (kernel - 1) - 1 + (ceil: stride - 1)) / stride) + 1,
 * less one when the last window would begin in the padding behind the last cell. */
static aclnnStatus set_output(const char *api, struct pg_axis *axis, int64_t after,
                              bool ceil_mode) {
  int64_t span, padded, top;
  PG_CHECK_AS(
      api,
      pg_mul(axis->kernel - 1, axis->dilation, &span) && pg_add(axis->pad, after, &padded) &&
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
  const struct pg_sizes k = sliding->kernel, s = sliding->stride, p = sliding->padding,
                        d = sliding->dilation,
                        after = sliding->one_sided ? sliding->padding_after : p;
  const int64_t *in = self->dims;
  int64_t cells;
  *pool = (struct pg_pooling){
      .n = in[PG_N],
      .c = in[PG_C],
      .d = {.in = in[PG_D], .kernel = k.d, .stride = s.d, .pad = p.d, .dilation = d.d},
      .h = {.in = in[PG_H], .kernel = k.h, .stride = s.h, .pad = p.h, .dilation = d.h},
      .w = {.in = in[PG_W], .kernel = k.w, .stride = s.w, .pad = p.w, .dilation = d.w}};
  PG_TRY(set_output(api, &pool->d, after.d, sliding->ceil_mode));
  PG_TRY(set_output(api, &pool->h, after.h, sliding->ceil_mode));
  PG_TRY(set_output(api, &pool->w, after.w, sliding->ceil_mode));
  PG_CHECK_AS(api,
              pg_mul(in[PG_H] + p.h + after.h, in[PG_W] + p.w + after.w, &cells) &&
                  pg_mul(cells, in[PG_D] + p.d + after.d, &cells),
              ACLNN_ERR_PARAM_INVALID, "self is %s and %s %s, too large for 64-bit windows",
              pg_view_shape(self), sliding->names.padding, pg_sizes_text(sliding->spatial, p));
  return ACLNN_SUCCESS;
}

aclnnStatus pg_check_outputs(const char *api, const struct pg_sliding *sliding,
                             const struct pg_view *self, const struct pg_pooling *pool) {
  const struct pg_sizes out = {pool->d.out, pool->h.out, pool->w.out};
  PG_CHECK_AS(api, out.d > 0 && out.h > 0 && out.w > 0, ACLNN_ERR_PARAM_INVALID,
              "self is %s and %s %s, the output would be %s", pg_view_shape(self),
              sliding->names.kernel, pg_sizes_text(sliding->spatial, sliding->kernel),
              pg_sizes_text(sliding->spatial, out));
  return ACLNN_SUCCESS;
}

/* The first output of an axis whose window holds no cell, or -1.  Windows that begin inside the
 * axis hold that cell.  Of those that begin behind it the last is one; of those that begin before
 * it the first is, unless dilation is longer than the axis and cells fall into gaps.  Then strides
 * are long too, because the output would otherwise be empty, and hardly any window begins there. */
static int64_t empty_window(const struct pg_axis *axis) {
  const int64_t gaps = axis->dilation > axis->in ? pg_ceil_div(axis->pad, axis->stride) : 1;
  for (int64_t o = 0; o < axis->out && o < gaps; o++)
    if (pg_window_taps(axis, o).count == 0) return o;
  return axis->out > 0 && pg_window_taps(axis, axis->out - 1).count == 0 ? axis->out - 1 : -1;
}

aclnnStatus pg_check_windows(const char *api, const struct pg_view *self,
                             const struct pg_pooling *pool) {
  const struct {
    const char *name;
    const struct pg_axis *axis;
  } axes[] = {{"depth", &pool->d}, {"height", &pool->h}, {"width", &pool->w}};
  for (int i = 0; i < 3; i++) {
    const int64_t o = axes[i].axis->kernel > 0 ? empty_window(axes[i].axis) : -1;
    PG_CHECK_AS(api, o < 0, ACLNN_ERR_PARAM_INVALID,
                "self is %s, the window of output %lld along its %s holds no cell of it",
                pg_view_shape(self), (long long)o, axes[i].name);
  }
  return ACLNN_SUCCESS;
}

/* The shape that the outputs should have, in self's order of axes. */
static int pooled_shape(const struct pg_view *self, int spatial, const struct pg_pooling *pool,
                        int64_t shape[5]) {
  const aclFormat format = self->tensor->format;
  const bool last = format == ACL_FORMAT_NHWC || format == ACL_FORMAT_NDHWC;
  int rank = 0;
  if (self->tensor->rank == spatial + 2) shape[rank++] = pool->n;
  if (!last) shape[rank++] = pool->c;
  if (spatial == 3) shape[rank++] = pool->d.out;
  shape[rank++] = pool->h.out;
  shape[rank++] = pool->w.out;
  if (last) shape[rank++] = pool->c;
  return rank;
}

aclnnStatus pg_check_pooled(const char *api, const struct pg_sliding *s, const struct pg_view *self,
                            const struct pg_view *out, const struct pg_pooling *pool) {
  int64_t expected[5];
  char text[PG_SHAPE_TEXT], dilation[PG_SHAPE_TEXT + 32] = "";
  const int rank = pooled_shape(self, s->spatial, pool, expected);
  if (out->tensor->rank == rank &&
      memcmp(out->tensor->dims, expected, (size_t)rank * sizeof *expected) == 0)
    return ACLNN_SUCCESS;
  if (s->names.dilation != NULL)
    snprintf(dilation, sizeof dilation, "%s %s, ", s->names.dilation,
             pg_sizes_text(s->spatial, s->dilation));
  return pg_fail(api, ACLNN_ERR_PARAM_INVALID,
                 "%s is %s, expected %s for self %s, %s %s, %s %s, %s %s, %sceilMode %s", out->name,
                 pg_view_shape(out), pg_shape_text(rank, expected, text), pg_view_shape(self),
                 s->names.kernel, pg_sizes_text(s->spatial, s->kernel), s->names.stride,
                 pg_sizes_text(s->spatial, s->stride), s->names.padding,
                 pg_sizes_text(s->spatial, s->padding), dilation, s->ceil_mode ? "true" : "false");
}

aclnnStatus pg_check_math_type(const char *api, int8_t type, aclDataType dtype) {
  PG_CHECK_AS(api, type >= 0 && type <= 3, ACLNN_ERR_PARAM_INVALID,
              "cubeMathType is %d, allowed is 0 to 3", type);
  PG_CHECK_AS(api, type != 2 || dtype != ACL_BF16, ACLNN_ERR_PARAM_INVALID,
              "cubeMathType is 2 (USE_FP16), which DT_BF16 does not support");
  PG_CHECK_AS(api, type != 3 || dtype == ACL_FLOAT, ACLNN_ERR_PARAM_INVALID,
              "cubeMathType is 3 (USE_HF32), which is for DT_FLOAT, not for %s",
              pg_dtype_name(dtype));
  return ACLNN_SUCCESS;
}

aclnnStatus pg_check_planes_not_empty(const char *api, int spatial, const struct pg_view *self) {
  const int64_t *dims = self->dims;
  PG_CHECK_AS(api, dims[PG_C] > 0 && dims[PG_D] > 0 && dims[PG_H] > 0 && dims[PG_W] > 0,
              ACLNN_ERR_PARAM_INVALID, "%s is %s, its C, %sH and W must be positive", self->name,
              pg_view_shape(self), spatial == 3 ? "D, " : "");
  return ACLNN_SUCCESS;
}

aclnnStatus pg_check_masks(const char *api, const char *instead) {
  PG_CHECK_AS(api, pg_soc()->masks, ACLNN_ERR_PARAM_INVALID, "%s has no masks, call %s instead",
              aclrtGetSocName(), instead);
  return ACLNN_SUCCESS;
}

aclnnStatus pg_check_grad_out(const char *api, const struct pg_sliding *sliding,
                              const struct pg_view *self, const struct pg_view *grad_out,
                              struct pg_pooling *pool) {
  PG_TRY(pg_check_same_planes(api, grad_out, self));
  PG_TRY(pg_sliding_pooling(api, self, sliding, pool));
  if (!pg_tensor_is_empty(grad_out->tensor) && !pg_tensor_is_empty(self->tensor))
    return pg_check_pooled(api, sliding, self, grad_out, pool);
  pool->d.out = grad_out->dims[PG_D];
  pool->h.out = grad_out->dims[PG_H];
  pool->w.out = grad_out->dims[PG_W];
  return ACLNN_SUCCESS;
}

aclnnStatus pg_check_plane(const char *api, const struct pg_view *self, bool large_allowed,
                           const struct pg_view *indices) {
  const int64_t *dims = self->dims;
  const bool large = large_allowed && indices->tensor->dtype == ACL_INT64;
  int64_t cells;
  const bool fits = pg_mul(dims[PG_D], dims[PG_H], &cells) && pg_mul(cells, dims[PG_W], &cells);
  PG_CHECK_AS(api, fits && (cells <= INT32_MAX || large), ACLNN_ERR_PARAM_INVALID,
              "%s is %s, a plane may have at most %d cells%s", self->name, pg_view_shape(self),
              INT32_MAX, large_allowed ? ", or what 64 bits count with DT_INT64" : "");
  return ACLNN_SUCCESS;
}
