/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of any type as numbers of a class: floats, doubles or int64_t that follow each other in
 * a buffer, row by row of a plot.
 *
 * The loops are not compiled for each method: which types they convert between is asked once for a
 * plot. */
#ifndef PG_TENSOR_NUMBERS_H_
#define PG_TENSOR_NUMBERS_H_

#include "cpu/grid_walk.h"
#include "cpu/kernels/variant.h"

/* Numbers of a plot at most: few enough that some buffers of them stay in the nearest cache. */
enum { NUMBERS = 1024 };

/* A buffer, for any class. */
union numbers {
  _Alignas(64) float floats[NUMBERS];
  double doubles[NUMBERS];
  int64_t integers[NUMBERS];
};

/* Where the elements of a plot begin, in a tensor with elements of this type. */
static inline void *element_at(const struct pg_tensor_view *view, int64_t offset) {
  return (char *)view->address + offset * pg_element_bytes(view->dtype);
}

/* Does the class hold elements of this type as they are? */
static inline bool is_of_class(aclDataType dtype, enum pg_class c) {
  if (c == PG_CLASS_FLOAT) return dtype == ACL_FLOAT;
  return c == PG_CLASS_DOUBLE ? dtype == ACL_DOUBLE : dtype == ACL_INT64 || dtype == ACL_UINT64;
}

/* Converts the elements of a plot. */
void VARIANT(load_numbers)(void *to, enum pg_class c, const void *from, aclDataType dtype,
                           const struct pg_plot *plot);
void VARIANT(store_numbers)(void *to, aclDataType dtype, const struct pg_plot *plot,
                            const void *from, enum pg_class c);

/* The numbers of a plot: where they lie, if they lie there as the class has them, or in `room`. */
static inline const void *numbers_of(void *room, enum pg_class c, const void *from,
                                     aclDataType dtype, const struct pg_plot *plot) {
  if (is_of_class(dtype, c) && pg_is_dense(plot)) return from;
  VARIANT(load_numbers)(room, c, from, dtype, plot);
  return room;
}

/* The elements that follow each other in the order of a grid, from position `first` on; the tensor
 * begins at `from`. */
void VARIANT(load_in_order)(void *to, enum pg_class c, const void *from, aclDataType dtype,
                            const struct pg_grid *grid, const int64_t *strides, int64_t first,
                            int64_t count);

#endif
