/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels: what a backend can compute.  Ids, argument structs, and each kernel's contract.
 *
 * A kernel is a function over a range of items.  Items are independent: any split of
 * [0, items) over any number of threads gives the same bits.  Arguments are plain data, copied
 * into the stream; pointers in them are final addresses.  Kernels cannot fail.
 *
 * Gradients are FLOAT, FLOAT16 or BF16 (spread: DOUBLE as well) and summed in fp32 (fp64), from
 * +0, in the order stated, then rounded once to nearest even.  Indices are INT32 or INT64. */
#ifndef PG_KERNELS_H_
#define PG_KERNELS_H_

#include "kernels/window.h"

enum pg_kernel {
  PG_KERNEL_FILL,      /* pg_fill_args */
  PG_KERNEL_SCATTER,   /* pg_scatter_args */
  PG_KERNEL_RESCATTER, /* pg_scatter_args */
  PG_KERNEL_SPREAD,    /* pg_spread_args */
  PG_KERNEL_REPEAT,    /* pg_repeat_args */
  PG_KERNEL_COUNT
};

/* dst[item * stride .. + width) = value, for every item; stride and width in elements of
 * `element` bytes (1, 2, 4 or 8), value's low bytes being the element. */
struct pg_fill_args {
  void *dst;
  int64_t stride, width;
  uint64_t value;
  int32_t element;
};

/* Axes of a view, outermost first.  Two-dimensional pooling has a depth of 1, unbatched N = 1. */
enum { PG_N, PG_C, PG_D, PG_H, PG_W, PG_AXES };

/* Where a gradient or an index lies: address + sum of position * stride, in elements. */
struct pg_strides {
  int64_t of[PG_AXES];
};

/* The pooling itself: planes (n, c), and windows along depth, height, width. */
struct pg_pooling {
  int64_t n, c;
  struct pg_axis d, h, w;
};

/* How a call is cut into items.  An item is one box of cells in each of some planes that follow
 * each other in n * C + c: planes x d x h x w, less at the ends of the axes.  Items are counted
 * along w first, then h, d and planes.
 *
 * Interleaved: an item's planes are channels of one n, and in every tensor channels lie next to
 * each other.  Else a box is a run of flat positions: rows are cut only when a box is one row,
 * slices only when it is one slice. */
struct pg_tiling {
  bool interleaved;
  int64_t planes, d, h, w;
  int64_t plane_items, d_items, h_items, w_items;
};

/* Indices that point outside their plane, in one run of a kernel. */
struct pg_index_report {
  int64_t count;
  int64_t position, value; /* the first one: its flat place among all outputs, what it says */
};

/* grad_in[n, c, i] = sum of grad_out[n, c, o] over the outputs o with index[n, c, o] == i, in
 * ascending order of o; i is the flat position in the plane.  Every cell of grad_in is written
 * once, cells without an output as 0.  An index outside the plane contributes nothing and is
 * noted in *report (unless NULL).
 *
 * Where planes are cut, a box only looks at the outputs whose windows touch it.  An index inside
 * its plane but outside its window then sets stray[item] of the item it points into, and RESCATTER,
 * the next step with the same arguments, writes those again, looking at every output. */
struct pg_scatter_args {
  const void *grad_out, *index;
  void *grad_in;
  int32_t *stray; /* NULL when planes are whole; zero before SCATTER */
  struct pg_index_report *report;
  struct pg_strides out_strides, index_strides, in_strides;
  struct pg_pooling pool;
  struct pg_tiling tiling;
  const char *op;      /* for the report */
  bool has_depth;      /* likewise */
  int32_t index_bytes; /* 4 or 8 */
};

/* grad_in[n, c, d, h, w] = sum over od (sum over oh (sum over ow (grad_out / divisor))) of the
 * outputs whose windows hold the cell, each sum ascending.  The divisor is `divisor` if it is not
 * 0, else the number of cells the window covers, padding counted or not.  Boxes may cut rows and
 * slices in any way. */
struct pg_spread_args {
  const void *grad_out;
  void *grad_in;
  struct pg_strides out_strides, in_strides;
  struct pg_pooling pool;
  struct pg_tiling tiling;
  int64_t divisor;
  bool count_include_pad;
};

/* One output whose window is the whole plane: grad_in[n, c, i] = grad_out[n, c] / divisor for the
 * `cells` cells that follow each other.  An item is a plane. */
struct pg_repeat_args {
  const void *grad_out;
  void *grad_in;
  int64_t c, out_n, out_c, in_n, in_c; /* channels; strides in elements */
  int64_t cells, divisor;
};

/* What a box may hold: cells of all its planes (interleaved: of one) in SCATTER and in SPREAD,
 * rows, slices, and cells along W. */
enum { PG_BOX_CELLS = 8192, PG_SPREAD_CELLS = 4096, PG_BOX_ROWS = 512, PG_BOX_WIDTH = 4096 };

union pg_kernel_args {
  struct pg_fill_args fill;
  struct pg_scatter_args scatter;
  struct pg_spread_args spread;
  struct pg_repeat_args repeat;
};

#endif
