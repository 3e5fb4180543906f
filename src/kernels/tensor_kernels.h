/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels over tensors of any shape: what programs need around pooling.  They are few kinds, and an
 * operator is one function of a kind: a row of a table in src/ops.
 *
 *   PG_MAP      out[i] = f(in0[i], in1[i], ...): copies, casts, fills, arithmetic, comparisons,
 *               random numbers
 *   PG_REDUCE   out[i] = f over j of in[i, j]: sums, means, extrema, all, any
 *   PG_GATHER   out[i] = in[i with position index[i] along one axis]
 *   PG_UNPOOL   out = 0, then out[n, c, index[i]] = in[i]
 *   PG_SELECT   out = the elements of in whose mask is set, one behind the other
 *
 * Operands may have any strides that are not negative, and types of their own.  What a kernel
 * computes with has one of three classes, which the operator chooses; elements are converted when
 * they are loaded and stored. */
#ifndef PG_TENSOR_KERNELS_H_
#define PG_TENSOR_KERNELS_H_

#include <stdbool.h>
#include <stdint.h>

#include "acl/acl_base.h"
#include "kernels/report.h"

enum { PG_GRID_AXES = 8 };

/* The positions that a kernel runs over, outermost axis first: no axis has length 1, and axes that
 * every operand passes over in one stride are joined.  rank 0 is one position. */
struct pg_grid {
  int32_t rank;
  int64_t count; /* of positions */
  int64_t sizes[PG_GRID_AXES];
};

/* A tensor seen over a grid: address + sum of position * stride, in elements.  A stride of 0
 * repeats an element: broadcasting. */
struct pg_tensor_view {
  void *address; /* of the first element; an input is only read */
  aclDataType dtype;
  int64_t strides[PG_GRID_AXES];
};

/* What is computed with.  FLOAT, FLOAT16 and BF16 fit into PG_CLASS_FLOAT, with DOUBLE among them
 * PG_CLASS_DOUBLE; integers and BOOL (0 and 1) are PG_CLASS_INT, which wraps around.
 *
 * Converting: to FLOAT16 and BF16 by way of fp32, each step rounded to nearest even, as PyTorch
 * does; a float becomes an integer by truncation, clamped to 64 bits, a NaN 0, of which a narrower
 * type keeps the low bits; anything but 0 becomes the BOOL 1, NaN too. */
enum pg_class { PG_CLASS_FLOAT, PG_CLASS_DOUBLE, PG_CLASS_INT };

/* A number of any class. */
union pg_number {
  double real; /* of a float: its value */
  int64_t integer;
};

/* The functions of PG_MAP.  a, b, c are the inputs in their order, s and t the scalars.  A
 * comparison gives 0 or 1. */
enum pg_map_function {
  PG_MAP_COPY,      /* a */
  PG_MAP_VALUE,     /* s; no input */
  PG_MAP_ADD,       /* a + s * b */
  PG_MAP_ADD_VALUE, /* a + s */
  PG_MAP_MUL,       /* a * b */
  PG_MAP_MUL_VALUE, /* a * s */
  PG_MAP_DIV,       /* a / b; of floats */
  PG_MAP_DIV_VALUE, /* a / s; of floats */
  PG_MAP_ABS,
  PG_MAP_NEG,
  PG_MAP_SIGN, /* -1, 0, 1; NaN of NaN */
  PG_MAP_RELU, /* a < 0 ? 0 : a: NaN of NaN */
  PG_MAP_CEIL,
  PG_MAP_FLOOR,
  PG_MAP_SQRT,
  PG_MAP_POW_VALUE, /* a to the power s; kernels/functions.h */
  PG_MAP_AND,       /* bits; of integers */
  PG_MAP_AND_VALUE, /* a & s */
  PG_MAP_EQ,        /* a == b */
  PG_MAP_NE,
  PG_MAP_LT,
  PG_MAP_LE,
  PG_MAP_GT,
  PG_MAP_GE,
  PG_MAP_EQ_VALUE, /* a == s */
  PG_MAP_NE_VALUE,
  PG_MAP_LT_VALUE,
  PG_MAP_LE_VALUE,
  PG_MAP_GT_VALUE,
  PG_MAP_GE_VALUE,
  PG_MAP_IS_FINITE,
  PG_MAP_IS_CLOSE,  /* |a - b| is finite and <= t + s * |b|, or equal; flag: so are two NaNs */
  PG_MAP_SET_WHERE, /* b ? s : a */
  PG_MAP_PASS,      /* b <= s ? 0 : a: where b is NaN a passes */
  PG_MAP_UNIFORM,   /* from s to t, t excluded; no input, as the two below */
  PG_MAP_NORMAL,    /* of mean s and standard deviation t */
  PG_MAP_RANDOM,    /* integers from s to t, t excluded */
  PG_MAP_FUNCTIONS
};

enum { PG_MAP_INPUTS = 2 };

/* Position i, counted in row-major order over the grid before axes were joined, which is the same,
 * has the i-th random number: Philox 4x32-10 with the key `seed` and the counter `offset` + i, so
 * the strides of `out` do not matter (kernels/functions.h).
 *
 * An input may be the view that `out` is, with the same type: a method reads all elements of a
 * position before it writes there. */
struct pg_map {
  struct pg_grid grid;
  struct pg_tensor_view out, in[PG_MAP_INPUTS];
  union pg_number s, t; /* in the class of the problem */
  uint64_t seed, offset;
  enum pg_map_function function;
  enum pg_class class_of;
  int32_t inputs;
  bool flag;
};

/* The functions of PG_REDUCE. */
enum pg_reduce_function {
  PG_REDUCE_SUM, /* divided by `divisor`, which is 1 for a sum */
  PG_REDUCE_ALL,
  PG_REDUCE_ANY,
  PG_REDUCE_MAX, /* as PG_MAX_FORWARD compares: the first of equal ones, the last NaN */
  PG_REDUCE_MIN,
  PG_REDUCE_FUNCTIONS
};

/* out[i] = the function over all positions j of `inner`, where in has the address that `in` over
 * the grid and `inner_strides` over `inner` give together.  `index`, with PG_REDUCE_MAX and
 * PG_REDUCE_MIN where its address is not NULL, gets the row-major position of the element that was
 * found.
 *
 * The order of a sum: the elements are numbered in row-major order of `inner`.  Each 1024 that
 * follow each other are a block: the i-th of it goes to partial sum i mod 32, each of which begins
 * at +0 and is added up ascending; then sums 16 to 31 are added to sums 0 to 15, and so on down to
 * one.  The sums of the blocks are elements again, until one is left. */
struct pg_reduce {
  struct pg_grid grid, inner;
  struct pg_tensor_view out, in, index;
  int64_t inner_strides[PG_GRID_AXES];
  int64_t divisor;
  void *partial; /* workspace of a method that needs one */
  enum pg_reduce_function function;
  enum pg_class class_of;
};

enum { PG_REDUCE_BLOCK = 1024, PG_REDUCE_PARTIAL = 32 };

/* out[i] = in[i], but along one axis at position index[i]: `axis_stride` elements apart, `length`
 * of them.  in.strides is 0 along that axis.  An index outside [0, length) gives 0 and is noted in
 * the report. */
struct pg_gather {
  struct pg_grid grid;
  struct pg_tensor_view out, in, index;
  int64_t axis_stride, length;
  struct pg_index_report *report;
};

/* out[p, k] = 0 for each plane p and each of its cells k in [0, cells), then out[p, index[p, j]] =
 * in[p, j] for j in [0, outputs), ascending: of several values for one cell the last one stays.  An
 * index outside [0, cells) is dropped and noted in the report.  All three are contiguous. */
struct pg_unpool {
  void *out;
  const void *in, *index;
  aclDataType dtype, index_dtype;
  int64_t planes, cells, outputs;
  int32_t *winners; /* workspace of a method that needs one */
  struct pg_index_report *report;
};

/* out = in[i] for each position i with mask[i] != 0, ascending in i; out is contiguous.  The
 * report's count becomes 1, and its value says how many there are. */
struct pg_select {
  struct pg_grid grid;
  struct pg_tensor_view in, mask;
  void *out;         /* of in's type */
  int64_t *counts;   /* workspace of a method that needs one */
  const void *owner; /* for the judge: the handle of the tensor that out is */
  struct pg_index_report *report;
};

#endif
