/* SPDX-License-Identifier: Apache-2.0 */
/* A call of one operator in one line of text, for tests, bug reports and benchmarks:
 *
 *   max_pool2d bf16 i32 in=2x3x17x19 kernel=3x2 stride=2 pad=1 ceil nhwc grad_out=gap seed=7
 *
 * First the operator, then words and key=value pairs in any order:
 *
 *   operator   max_pool2d, max_pool2d_mask, max_pool3d, avg_pool2d, avg_pool3d (sliding),
 *              adaptive_max_pool2d, adaptive_max_pool3d, adaptive_avg_pool2d, adaptive_avg_pool3d:
 *              the backward ones; the same with _forward behind it, and max_pool_forward, which
 *              has no indices
 *   type       f32 (default), f16, bf16, f64 of the elements; i32, i64 (default) of the indices
 *   of=        an integer type of the elements: i8, u8, i16, u16, i32, i64
 *   in=        N x C x [D x] H x W; without N the tensors are unbatched
 *   out=       [D x] H x W of an adaptive operator; of a sliding one to make gradOutput empty
 *   kernel= stride= pad= dilation=   one value or [Dx]HxW; stride may be left out, or be "null";
 *              max_pool_forward: four paddings are those before and then those behind the cells
 *   ceil, include_pad, divisor=, cube=   the other attributes
 *   format     nchw, nhwc, ncl, nc, ncdhw, ndhwc, nd; left out, one that the operator takes
 *   grad_out= self= indices= grad_in=   layout of a tensor, dense when left out; a forward's out
 *              is at the place of grad_out, and it has no grad_in
 *   index=     where the indices come from, forward when left out
 *   data=      what the gradients are, or what a forward reads; integers when left out
 *   method=    computes it by this method alone (poolgrad.h); left out, by each that fits
 *   late       the tensors get their addresses between the two phases
 *   seed=      of the values */
#ifndef PG_TESTS_PROBLEM_H_
#define PG_TESTS_PROBLEM_H_

#include "acl/acl_base.h"
#include "reference.h"

enum pool_operator {
  MAX_POOL2D,
  AVG_POOL2D,
  ADAPTIVE_MAX_POOL2D,
  ADAPTIVE_MAX_POOL3D,
  ADAPTIVE_AVG_POOL3D,
  FIRST_OPERATORS, /* those above */
  ADAPTIVE_AVG_POOL2D = FIRST_OPERATORS,
  AVG_POOL3D,
  MAX_POOL2D_MASK,
  MAX_POOL3D,
  BACKWARD_OPERATORS, /* those above; the others are forward */
  MAX_POOL2D_FORWARD = BACKWARD_OPERATORS,
  AVG_POOL2D_FORWARD,
  ADAPTIVE_MAX_POOL2D_FORWARD,
  ADAPTIVE_MAX_POOL3D_FORWARD,
  ADAPTIVE_AVG_POOL3D_FORWARD,
  ADAPTIVE_AVG_POOL2D_FORWARD,
  AVG_POOL3D_FORWARD,
  MAX_POOL2D_MASK_FORWARD,
  MAX_POOL3D_FORWARD,
  MAX_POOL_FORWARD,
  POOL_OPERATORS
};

enum layout {
  DENSE,      /* strides NULL */
  OFFSET,     /* contiguous, from the fifth element on */
  ROWS,       /* rows that are contiguous and apart from each other */
  GAP,        /* no two elements next to each other */
  PERMUTED,   /* channels fastest; slowest where the format has them last */
  TRANSPOSED, /* the last two axes change places in memory */
  EXPAND,     /* inputs: all channels are the same memory */
  SCALAR,     /* inputs: all elements are the same memory */
  LAYOUTS
};

enum index_source {
  FORWARD, /* the maxima of random data */
  ANYWHERE,
  STRAY,   /* maxima, one of 16 moved to anywhere in its plane */
  OUTSIDE, /* maxima, one of 8 outside its plane */
  BESIDE,  /* maxima, one of 4 moved to just before or just behind its window */
  ONE,     /* all outputs of a plane point at one cell */
  LONE,    /* maxima, only the seed-th of all outputs moved to anywhere in its plane */
  NEXT,    /* maxima, only the seed-th of all outputs moved as with BESIDE */
  INDEX_SOURCES
};

enum gradient_data {
  INTEGERS, /* of averages: the window's divisor times an integer, so that terms are integers */
  RANDOM,
  SPECIALS, /* NaN, infinities, zeros of both signs, subnormals among numbers */
  LARGEST,  /* the largest number, or 0 */
  TIES,     /* small integers, half of them 0, as behind a ReLU */
  LOWEST,   /* nothing but what is below every number: -inf, or the least integer */
  CONSTANT, /* all the same */
  GRADIENT_DATA
};

/* The tensors of a call.  GRAD_OUT has the outputs: a backward reads them there, a forward writes
 * them. */
enum { GRAD_OUT, SELF, INDICES, GRAD_IN, POOL_TENSORS };

/* What an operator does with a tensor. */
enum tensor_role {
  ABSENT_TENSOR,
  SHAPE_ONLY, /* it is described, and its memory is never touched */
  READ,
  WRITTEN
};

enum { STRIDE_NULL = -1 };

/* An attribute as the caller gives it: 0, 1, or as many values as there are axes; stride may be
 * NULL, and max_pool_forward has up to 4 paddings. */
struct window_sizes {
  int count;
  int64_t of[4];
};

enum { METHOD_TEXT = 32 };

struct problem {
  enum pool_operator op;
  int type;        /* of the elements, as in float_format.h */
  int index_bytes; /* 4 or 8 */
  aclFormat format;
  bool batched;
  int64_t n, c;
  int64_t in[3], out[3]; /* depth 1 in two dimensions */
  struct window_sizes kernel, stride, pad, dilation;
  bool ceil, include_pad, late;
  int64_t divisor;
  int cube;
  enum layout layout[POOL_TENSORS];
  enum index_source index;
  enum gradient_data data;
  char method[METHOD_TEXT]; /* "": each that fits */
  uint64_t seed;
};

enum { PROBLEM_TEXT = 512 };

/* Reads a line; false leaves a sentence in `why`. */
bool problem_parse(const char *line, struct problem *out, char why[PROBLEM_TEXT]);

/* The line that problem_parse reads back as the same problem. */
void problem_print(const struct problem *p, char text[PROBLEM_TEXT]);

/* A problem that every operator check lets pass, of at most `cells` cells in gradInput. */
struct problem problem_random(uint64_t seed, int64_t cells);

/* Puts a sliding operator's output sizes in; false when no window fits. */
bool problem_set_out(struct problem *p);

bool problem_is_max(const struct problem *p);
bool problem_is_forward(const struct problem *p);
bool problem_is_sliding(const struct problem *p);
bool problem_has_indices(const struct problem *p);
bool problem_is_mask(const struct problem *p); /* its indices are the container of a mask */
int problem_spatial(const struct problem *p);  /* 2 or 3 */

enum tensor_role problem_role(const struct problem *p, int tensor);

/* The size of one element of a tensor; a mask counts as bytes. */
int64_t problem_element_bytes(const struct problem *p, int tensor);

/* Windows of one cell: a mask says nothing then, because the index follows from the window. */
bool problem_implies_indices(const struct problem *p);

/* NHWC or NDHWC. */
bool problem_has_channels_last(const struct problem *p);

/* Every window holds a cell of the input. */
bool problem_windows_hold_cells(const struct problem *p);

struct reference_pooling problem_pooling(const struct problem *p);

/* A sequence of 64-bit numbers without pattern. */
uint64_t problem_next(uint64_t *state);

#endif
