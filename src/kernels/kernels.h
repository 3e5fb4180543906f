/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels: what a backend can compute.
 *
 * An operator turns a checked call into a problem: a kernel, an element type, and plain arguments
 * (sizes, strides, windows, addresses).  How the problem is computed is the backend's business: it
 * has an ordered list of methods for each kernel and chooses one when the executor is made (struct
 * pg_choice).  Kernels cannot fail.
 *
 * Elements are FLOAT, FLOAT16 or BF16; PG_AVG_BACKWARD and PG_MAX_FORWARD take DOUBLE as well, and
 * PG_MAX_FORWARD integers of 8 to 64 bits.  They are summed in fp32 (fp64), from +0, in the order
 * stated, then rounded once to nearest even; so every method on every backend gives the same bits.
 * Indices are INT32 or INT64. */
#ifndef PG_KERNELS_H_
#define PG_KERNELS_H_

#include <stddef.h>

#include "acl/acl_base.h"
#include "kernels/facts.h"
#include "kernels/report.h"
#include "kernels/tensor_kernels.h"

enum pg_kernel {
  PG_FILL,         /* struct pg_fill_args; it has no facts */
  PG_MAX_BACKWARD, /* struct pg_max_backward */
  PG_AVG_BACKWARD, /* struct pg_avg_backward */
  PG_MAX_FORWARD,  /* struct pg_max_forward */
  PG_AVG_FORWARD,  /* struct pg_avg_forward */
  PG_MAP,          /* struct pg_map and so on: kernels/tensor_kernels.h; of their facts only */
  PG_REDUCE,       /* `bytes` is known */
  PG_GATHER,
  PG_UNPOOL,
  PG_SELECT,
  PG_KERNEL_COUNT
};

/* dst[i * stride .. + width) = value for i in [0, count); stride and width are in elements, which
 * have 1, 2, 4 or 8 bytes: the low bytes of value. */
struct pg_fill_args {
  void *dst;
  int64_t count, stride, width;
  uint64_t value;
  int32_t element_bytes;
};

/* grad_in[n, c, i] = sum of grad_out[n, c, o] over the outputs o with index[n, c, o] == i, in
 * ascending order of o; i is the flat position in the plane.  Every cell of grad_in is written
 * once, cells without an output as 0.  An index outside the plane contributes nothing and is noted
 * in *report (unless NULL).  An index inside its plane but outside its output's window, a stray,
 * counts like any other. */
struct pg_max_backward {
  const void *grad_out, *index;
  void *grad_in;
  int32_t *flags; /* the workspace, where the method asked for one */
  struct pg_index_report *report;
  struct pg_strides out_strides, index_strides, in_strides;
  struct pg_pooling pool;
  const char *op;      /* the operator's name, for the sentence about a report */
  bool has_depth;      /* for that sentence: outputs have an od */
  int32_t index_bytes; /* 4 or 8 */
};

/* grad_in[n, c, d, h, w] = sum over od (sum over oh (sum over ow (grad_out / divisor))) of the
 * outputs in whose windows the cell lies, each sum ascending.  The divisor is `divisor` if it is
 * not 0, else the number of cells of the window, with or without padding (pg_window_extent). */
struct pg_avg_backward {
  const void *grad_out;
  void *grad_in;
  struct pg_strides out_strides, in_strides;
  struct pg_pooling pool;
  int64_t divisor;
  bool count_include_pad;
};

/* out[n, c, o] = the greatest cell in the window of o, and index[n, c, o] its flat position in the
 * plane.  Of cells that are equal the first one in row-major order counts, and out has its bits: +0
 * and -0 are equal.  A NaN always replaces what was found before it, and nothing but a later NaN
 * replaces it.  Every window holds a cell; the operator has checked that. */
struct pg_max_forward {
  const void *in;
  void *out, *index;
  struct pg_strides in_strides, out_strides, index_strides;
  struct pg_pooling pool;
  int32_t index_bytes; /* 4 or 8; 0: nobody wants the positions, and index is NULL */
};

/* out[n, c, o] = (the sum of the cells in the window of o) / divisor, where the division is one of
 * fp32 and the divisor as for PG_AVG_BACKWARD.  Every window holds a cell.
 *
 * The order of the sum.  First the cells of each column of the window (those with the same w) are
 * added, ascending in d and then in h.  Then the columns are added: up to 16 of them ascending.  If
 * there are more, they are dealt out to 16 partial sums, the i-th of them to sum i mod 16, each
 * ascending; then sums 8 to 15 are added to sums 0 to 7, those 4 to 7 to 0 to 3, 2 and 3 to 0 and
 * 1, and 1 to 0.  If a plane has one output, whose window holds all of its cells, these count as
 * one row: each is a column of its own.  Every sum begins at +0. */
struct pg_avg_forward {
  const void *in;
  void *out;
  struct pg_strides in_strides, out_strides;
  struct pg_pooling pool;
  int64_t divisor;
  bool count_include_pad;
};

enum { PG_PARTIAL_SUMS = 16 };

union pg_kernel_args {
  struct pg_fill_args fill;
  struct pg_max_backward max_backward;
  struct pg_avg_backward avg_backward;
  struct pg_max_forward max_forward;
  struct pg_avg_forward avg_forward;
  struct pg_map map;
  struct pg_reduce reduce;
  struct pg_gather gather;
  struct pg_unpool unpool;
  struct pg_select select;
};

struct pg_problem {
  enum pg_kernel kernel;
  aclDataType dtype; /* of the elements; indices have their own */
  struct pg_facts facts;
  union pg_kernel_args args;
};

/* The workspace that a method asked for, as phase 2 has bound it. */
static inline void *pg_workspace_of(const struct pg_problem *problem) {
  const union pg_kernel_args *args = &problem->args;
  switch (problem->kernel) {
    case PG_MAX_BACKWARD:
      return args->max_backward.flags;
    case PG_REDUCE:
      return args->reduce.partial;
    case PG_UNPOOL:
      return args->unpool.winners;
    case PG_SELECT:
      return args->select.counts;
    default:
      return NULL;
  }
}

/* Where a problem keeps the report that a backend lends it; NULL: it has none. */
static inline struct pg_index_report **pg_report_of(struct pg_problem *problem) {
  union pg_kernel_args *args = &problem->args;
  switch (problem->kernel) {
    case PG_MAX_BACKWARD:
      return &args->max_backward.report;
    case PG_GATHER:
      return &args->gather.report;
    case PG_UNPOOL:
      return &args->unpool.report;
    case PG_SELECT:
      return &args->select.report;
    default:
      return NULL;
  }
}

/* How a problem is cut into items, which may be computed in any order and by any thread.  An item
 * is a box: d x h x w cells, fewer at the ends of the axes, in each of `planes` planes that follow
 * each other in n * C + c.  Items are counted along w first, then h, d and planes.  Forward kernels
 * cut outputs instead of cells (pg_output_grid in kernels/facts.h).
 *
 * Interleaved: the planes of an item are channels of one n, or all channels of several, and in
 * every tensor channels are neighbours in memory.  Otherwise rows are cut only when a box is one
 * row, slices only when it is one slice, unless the method allows more. */
struct pg_tiling {
  bool interleaved;
  int64_t planes, d, h, w;
  int64_t plane_items, d_items, h_items, w_items;
};

/* What a backend chose for a problem. */
struct pg_choice {
  const char *name;   /* of the method */
  const void *method; /* the method itself, in the backend's own struct */
  struct pg_tiling tiling;
  int64_t items;
  int64_t workspace_bytes;
};

/* A problem and how it is to be computed. */
struct pg_task {
  struct pg_choice choice;
  struct pg_problem problem;
};

#endif
