/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/tensor_grid.h"

#include <string.h>

#include "aclnn/opdev/op_errno.h"
#include "core/checked.h"
#include "core/dtype.h"

bool pg_is_plain(aclFormat format) {
  switch (format) {
    case ACL_FORMAT_ND:
    case ACL_FORMAT_NC:
    case ACL_FORMAT_NCL:
    case ACL_FORMAT_NCHW:
    case ACL_FORMAT_NHWC:
    case ACL_FORMAT_HWCN:
    case ACL_FORMAT_NCDHW:
    case ACL_FORMAT_NDHWC:
      return true;
    default:
      return false;
  }
}

aclnnStatus pg_check_axes(const char *api, const struct pg_view *view) {
  const struct pg_tensor *t = view->tensor;
  PG_CHECK_AS(api, pg_is_plain(t->format), ACLNN_ERR_PARAM_INVALID,
              "%s has format %s, allowed is a plain format, such as ND or NCHW", view->name,
              pg_format_name(t->format));
  PG_CHECK_AS(api, t->rank <= PG_GRID_AXES, ACLNN_ERR_PARAM_INVALID,
              "%s is %s, it must have at most %d axes", view->name, pg_view_shape(view),
              PG_GRID_AXES);
  for (int i = 0; i < t->rank; i++)
    PG_CHECK_AS(api, t->dims[i] >= 0, ACLNN_ERR_PARAM_INVALID, "%s is %s, no dim may be negative",
                view->name, pg_view_shape(view));
  return ACLNN_SUCCESS;
}

struct pg_shape pg_shape_of(const struct pg_view *view) {
  struct pg_shape shape = {.rank = view->tensor->rank};
  for (int i = 0; i < shape.rank; i++) shape.dims[i] = view->tensor->dims[i];
  return shape;
}

int64_t pg_positions(const struct pg_shape *shape) {
  int64_t count = 1;
  for (int i = 0; i < shape->rank; i++)
    if (shape->dims[i] == 0) return 0;
  for (int i = 0; i < shape->rank; i++) count = pg_mul_or_most(count, shape->dims[i]);
  return count;
}

aclnnStatus pg_broadcast(const char *api, const struct pg_view *a, const struct pg_view *b,
                         struct pg_shape *shape) {
  const int rank_a = a->tensor->rank, rank_b = b->tensor->rank;
  *shape = (struct pg_shape){.rank = rank_a > rank_b ? rank_a : rank_b};
  for (int i = 0; i < shape->rank; i++) {
    const int in_a = i - (shape->rank - rank_a), in_b = i - (shape->rank - rank_b);
    const int64_t dim_a = in_a < 0 ? 1 : a->tensor->dims[in_a];
    const int64_t dim_b = in_b < 0 ? 1 : b->tensor->dims[in_b];
    PG_CHECK_AS(api, dim_a == dim_b || dim_a == 1 || dim_b == 1, ACLNN_ERR_PARAM_INVALID,
                "%s is %s and %s %s, from the last axis on their lengths must be equal or 1",
                a->name, pg_view_shape(a), b->name, pg_view_shape(b));
    shape->dims[i] = dim_a == 1 ? dim_b : dim_a;
  }
  return ACLNN_SUCCESS;
}

aclnnStatus pg_check_shape(const char *api, const struct pg_view *view,
                           const struct pg_shape *shape, const char *whose) {
  char expected[PG_SHAPE_TEXT];
  const bool same =
      view->tensor->rank == shape->rank &&
      memcmp(view->tensor->dims, shape->dims, (size_t)shape->rank * sizeof shape->dims[0]) == 0;
  PG_CHECK_AS(api, same, ACLNN_ERR_PARAM_INVALID, "%s is %s, expected %s %s", view->name,
              pg_view_shape(view), whose, pg_shape_text(shape->rank, shape->dims, expected));
  return ACLNN_SUCCESS;
}

void pg_strides_over(const struct pg_view *view, const struct pg_shape *shape,
                     int64_t strides[PG_GRID_AXES]) {
  const struct pg_tensor *t = view->tensor;
  for (int i = 0; i < PG_GRID_AXES; i++) {
    const int from = i - (shape->rank - t->rank);
    strides[i] = i < shape->rank && from >= 0 && t->dims[from] > 1 ? t->strides[from] : 0;
  }
}

void pg_contiguous_strides(const struct pg_shape *shape, int64_t strides[PG_GRID_AXES]) {
  int64_t stride = 1;
  for (int i = shape->rank - 1; i >= 0; i--) {
    strides[i] = shape->dims[i] > 1 ? stride : 0;
    stride = pg_mul_or_most(stride, shape->dims[i]);
  }
}

bool pg_is_contiguous(const struct pg_view *view) {
  const struct pg_shape shape = pg_shape_of(view);
  int64_t own[PG_GRID_AXES], contiguous[PG_GRID_AXES];
  pg_strides_over(view, &shape, own);
  pg_contiguous_strides(&shape, contiguous);
  return memcmp(own, contiguous, (size_t)shape.rank * sizeof own[0]) == 0;
}

static void swap(int64_t *a, int64_t *b) {
  const int64_t kept = *a;
  *a = *b;
  *b = kept;
}

void pg_sort_axes(struct pg_shape *shape, int64_t *const *strides, int count) {
  for (int end = 1; end < shape->rank; end++)
    for (int i = end; i > 0 && strides[0][i - 1] < strides[0][i]; i--) {
      swap(&shape->dims[i - 1], &shape->dims[i]);
      for (int k = 0; k < count; k++) swap(&strides[k][i - 1], &strides[k][i]);
    }
}

/* Does every row pass over both axes in the inner one's stride? */
static bool is_joined(int64_t *const *strides, int count, int outer, int inner, int64_t length) {
  for (int k = 0; k < count; k++) {
    int64_t far;
    if (!pg_mul(strides[k][inner], length, &far) || strides[k][outer] != far) return false;
  }
  return true;
}

/* Axes move to the front as others are left out: axis `last` of the grid is never behind axis i of
 * the shape. */
void pg_lay_grid(struct pg_grid *grid, const struct pg_shape *shape, int64_t *const *strides,
                 int count) {
  int last = -1;
  *grid = (struct pg_grid){.count = pg_positions(shape)};
  for (int i = 0; i < shape->rank; i++) {
    const int64_t length = shape->dims[i];
    if (length == 1) continue;
    const bool joins = last >= 0 && is_joined(strides, count, last, i, length);
    if (!joins) last++;
    grid->sizes[last] = joins ? grid->sizes[last] * length : length;
    for (int k = 0; k < count; k++) strides[k][last] = strides[k][i];
  }
  grid->rank = last + 1;
  for (int k = 0; k < count; k++)
    for (int i = grid->rank; i < PG_GRID_AXES; i++) strides[k][i] = 0;
}
