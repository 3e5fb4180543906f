/* SPDX-License-Identifier: Apache-2.0 */
/* A call of one operator in one line of text, for tests, bug reports and benchmarks:
 *
 *   max_pool2d bf16 i32 in=2x3x17x19 kernel=3x2 stride=2 pad=1 ceil nhwc grad_out=gap seed=7
 *
 * First the operator, then words and key=value pairs in any order:
 *
 *   operator   max_pool2d, avg_pool2d (sliding), adaptive_max_pool2d, adaptive_max_pool3d,
 *              adaptive_avg_pool3d
 *   type       f32 (default), f16, bf16, f64 of the gradients; i32, i64 (default) of the indices
 *   in=        N x C x [D x] H x W; without N the tensors are unbatched
 *   out=       [D x] H x W of an adaptive operator; of a sliding one to make gradOutput empty
 *   kernel= stride= pad= dilation=   one value or HxW; stride may be left out, or be "null"
 *   ceil, include_pad, divisor=, cube=   the other attributes
 *   format     nchw, nhwc, ncl, nc, ncdhw, nd
 *   grad_out= self= indices= grad_in=   layout of a tensor, dense when left out
 *   index=     where the indices come from, forward when left out
 *   data=      what the gradients are, integers when left out
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
  POOL_OPERATORS
};

enum layout {
  DENSE,      /* strides NULL */
  OFFSET,     /* contiguous, from the fifth element on */
  ROWS,       /* rows that are contiguous and apart from each other */
  GAP,        /* no two elements next to each other */
  PERMUTED,   /* channels fastest; for NHWC slowest */
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
  GRADIENT_DATA
};

enum { GRAD_OUT, SELF, INDICES, GRAD_IN, POOL_TENSORS };

enum { STRIDE_NULL = -1 };

/* An attribute as the caller gives it: 0, 1 or 2 values; stride may be NULL. */
struct window_sizes {
  int count;
  int64_t of[2];
};

enum { METHOD_TEXT = 32 };

struct problem {
  enum pool_operator op;
  int type;        /* F32, F16, BF16 or F64 */
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
bool problem_is_sliding(const struct problem *p);
int problem_spatial(const struct problem *p); /* 2 or 3 */

struct reference_pooling problem_pooling(const struct problem *p);

/* A sequence of 64-bit numbers without pattern. */
uint64_t problem_next(uint64_t *state);

#endif
