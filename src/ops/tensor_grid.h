/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes, broadcasting, and the grid of positions that a kernel runs over. */
#ifndef PG_TENSOR_GRID_H_
#define PG_TENSOR_GRID_H_

#include "kernels/tensor_kernels.h"
#include "ops/view.h"

struct pg_shape {
  int rank;
  int64_t dims[PG_GRID_AXES];
};

/* Does a format say nothing but the order of the axes, so that elements lie as the strides say? */
bool pg_is_plain(aclFormat format);

/* 161002 if the tensor's format is not plain, or it has more axes than a grid or a negative dim. */
aclnnStatus pg_check_axes(const char *api, const struct pg_view *view);

/* The shape of a tensor that was checked so. */
struct pg_shape pg_shape_of(const struct pg_view *view);

/* How many positions it has; INT64_MAX if 64 bits cannot count them. */
int64_t pg_positions(const struct pg_shape *shape);

/* The shape that both have when axes are matched from the last one on, and one of length 1 is
 * repeated.  161002 where they do not match. */
aclnnStatus pg_broadcast(const char *api, const struct pg_view *a, const struct pg_view *b,
                         struct pg_shape *shape);

/* 161002 unless the tensor has this shape; `whose` is what it is the shape of. */
aclnnStatus pg_check_shape(const char *api, const struct pg_view *view,
                           const struct pg_shape *shape, const char *whose);

/* The tensor's strides along the axes of a shape that it is broadcast to. */
void pg_strides_over(const struct pg_view *view, const struct pg_shape *shape,
                     int64_t strides[PG_GRID_AXES]);

/* The strides of a tensor of this shape that has no gaps. */
void pg_contiguous_strides(const struct pg_shape *shape, int64_t strides[PG_GRID_AXES]);

/* Does the tensor have those strides? */
bool pg_is_contiguous(const struct pg_view *view);

/* Sorts the axes by falling strides of the first row, where the order of the positions does not
 * matter: a permuted tensor is then walked over as it lies in memory. */
void pg_sort_axes(struct pg_shape *shape, int64_t *const *strides, int count);

/* Makes the grid of a shape: leaves axes of length 1 out and joins those that all rows of strides
 * pass over in one stride.  The rows become those over the grid. */
void pg_lay_grid(struct pg_grid *grid, const struct pg_shape *shape, int64_t *const *strides,
                 int count);

#endif
