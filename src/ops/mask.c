/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/mask.h"

#include <string.h>

#include "aclnn/opdev/op_errno.h"

bool pg_mask_has_indices(const struct pg_pooling *pool) {
  return pool->h.kernel > 1 || pool->w.kernel > 1;
}

/* False if 64 bits do not hold it. */
static bool mask_shape(const struct pg_pooling *pool, int rank, int64_t shape[4]) {
  int64_t *last = shape + rank - 3, outputs;
  shape[0] = pool->n;
  last[0] = pool->c;
  return pg_mul(pool->h.kernel, pool->w.kernel, &last[1]) &&
         pg_mul(pool->h.out, pool->w.out, &outputs) &&
         pg_mul(pg_ceil_div(outputs, 16) + 1, 32, &last[2]);
}

static bool is_contiguous(const struct pg_tensor *t) {
  int64_t next = 1;
  for (int i = t->rank - 1; i >= 0 && !t->empty; i--) {
    if (t->dims[i] != 1 && t->strides[i] != next) return false;
    if (!pg_mul(next, t->dims[i], &next)) return false;
  }
  return true;
}

aclnnStatus pg_mask_check(const char *api, const struct pg_view *mask,
                          const struct pg_pooling *pool) {
  const struct pg_tensor *t = mask->tensor;
  int64_t shape[4];
  char text[PG_SHAPE_TEXT];
  PG_CHECK_AS(api, mask_shape(pool, t->rank, shape), ACLNN_ERR_PARAM_INVALID,
              "%s would have more bytes than 64 bits count", mask->name);
  PG_CHECK_AS(api, memcmp(t->dims, shape, (size_t)t->rank * sizeof *shape) == 0,
              ACLNN_ERR_PARAM_INVALID,
              "%s is %s, expected %s: the cells of a window, and 32 bytes for each 16 outputs of a "
              "plane and 32 more",
              mask->name, pg_view_shape(mask), pg_shape_text(t->rank, shape, text));
  PG_CHECK_AS(api, is_contiguous(t), ACLNN_ERR_PARAM_INVALID,
              "%s is %s with strides %s, it must be contiguous", mask->name, pg_view_shape(mask),
              pg_shape_text(t->rank, t->strides, text));
  PG_CHECK_AS(api, t->offset % (int64_t)sizeof(int32_t) == 0, ACLNN_ERR_PARAM_INVALID,
              "%s has offset %lld, it must be a multiple of 4", mask->name, (long long)t->offset);
  return ACLNN_SUCCESS;
}

struct pg_view pg_mask_indices(const struct pg_view *mask, const struct pg_pooling *pool) {
  struct pg_view view = *mask;
  const int64_t dims[PG_AXES] = {
      [PG_N] = pool->n, [PG_C] = pool->c, [PG_D] = 1, [PG_H] = pool->h.out, [PG_W] = pool->w.out};
  memcpy(view.dims, dims, sizeof dims);
  view.alignment = sizeof(int32_t);
  view.strides = (struct pg_strides){{0}};
  if (mask->tensor->empty) return view; /* the products below may then be too large for 64 bits */
  view.strides.of[PG_W] = 1;
  view.strides.of[PG_H] = pool->w.out;
  view.strides.of[PG_C] = pool->h.out * pool->w.out;
  view.strides.of[PG_N] = pool->c * view.strides.of[PG_C];
  for (int i = 0; i < PG_AXES; i++)
    if (dims[i] <= 1) view.strides.of[i] = 0;
  return view;
}
