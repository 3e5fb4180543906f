/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about a pooling problem, computed once when an executor is made.  Methods of all backends
 * decide by them whether they fit, and read them while they compute. */
#ifndef PG_FACTS_H_
#define PG_FACTS_H_

#include "kernels/window.h"

/* Axes of a tensor, outermost first.  Two-dimensional pooling has a depth of 1, a tensor without a
 * batch axis N = 1. */
enum { PG_N, PG_C, PG_D, PG_H, PG_W, PG_AXES };

/* Where an element lies: address + sum of position * stride, in elements. */
struct pg_strides {
  int64_t of[PG_AXES];
};

/* The pooling itself: planes (n, c), and windows along depth, height and width. */
struct pg_pooling {
  int64_t n, c;
  struct pg_axis d, h, w;
};

/* What a problem consists of, for computing its facts. */
struct pg_subject {
  const struct pg_pooling *pool;
  const struct pg_strides *in, *out, *index; /* index: NULL where there is none */
  int64_t in_bytes, out_bytes, index_bytes;  /* of an element */
  int64_t divisor;                           /* of an average; 0: the window's cells count */
};

/* Which elements of a tensor follow each other in memory without a gap. */
struct pg_contiguity {
  bool rows;   /* those of a row */
  bool planes; /* those of a plane */
  bool all;    /* all of them */
};

struct pg_facts {
  /* The pooling; adaptive windows that have one length and follow each other are written as sliding
   * ones. */
  struct pg_pooling pool;
  int64_t planes, cells, outputs;          /* N * C; cells and outputs of one plane */
  int64_t d_windows, h_windows, w_windows; /* the most windows that one cell lies in */
  struct pg_contiguity in, out;            /* of the cells; of the outputs and their indices */
  bool neighbours;         /* channels are neighbours in every tensor, and more than one */
  bool channels_last;      /* the same, and they are four or more */
  bool has_depth;          /* the depth axis is more than one cell and one output */
  int64_t bytes;           /* that the problem reads and writes */
  int64_t grad_in_bytes;   /* of all cells: gradInput, or the input of a forward kernel */
  int64_t largest_divisor; /* INT64_MAX: fp32 may not represent all of them exactly */
};

#ifdef __cplusplus
extern "C" {
#endif

/* Products that 64 bits cannot hold (inputs with stride 0 get there) count as INT64_MAX. */
struct pg_facts pg_facts_of(const struct pg_subject *subject);

/* The most windows of an axis that one cell lies in. */
int64_t pg_most_windows(const struct pg_axis *axis);

/* An upper bound of the number of outputs whose windows touch `cells` neighbouring cells. */
int64_t pg_most_touching(const struct pg_axis *axis, int64_t cells);

/* The outputs of a pooling as if they were cells, for tilings and boxes of forward kernels: along
 * each axis as many cells as the pooling has outputs. */
struct pg_pooling pg_output_grid(const struct pg_pooling *pool);

/* Is the plane one window, which holds every cell? */
bool pg_is_global(const struct pg_pooling *pool);

/* Does the axis have one window, which holds every cell? */
bool pg_is_one_window(const struct pg_axis *axis);

/* Are the windows adaptive, or do they follow each other from one end of the axis to the other
 * without a gap or an overlap?  Every cell then lies in a window, and no window hangs over. */
bool pg_is_tiled(const struct pg_axis *axis);

#ifdef __cplusplus
}
#endif

#endif
