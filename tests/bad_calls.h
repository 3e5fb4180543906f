/* SPDX-License-Identifier: Apache-2.0 */
/* Wrong first-phase calls of the five operators, made from one table.
 *
 * A *base* is a call that is right.  A *wrong* is a row of the table: one change, such as "this
 * dtype" or "an axis of this length", for the kinds of arguments it fits.  A *flaw* is a wrong at a
 * place of a base.  What the flaw must lead to is worked out from the rules of the operators as
 * they are written down, never from the library: the code, and the step of the documented order of
 * checks that notices it, so that of two flaws in one call the one to be reported is known too. */
#ifndef PG_TESTS_BAD_CALLS_H_
#define PG_TESTS_BAD_CALLS_H_

#include "acl/acl.h"
#include "aclnn/acl_meta.h"
#include "problem.h"

/* The arguments of all operators; the tensors come first, with problem.h's numbers. */
enum bad_argument {
  KERNEL_SIZE = POOL_TENSORS,
  STRIDE,
  PADDING,
  DILATION,
  MATH_TYPE, /* cubeMathType */
  WORKSPACE_SIZE,
  EXECUTOR,
  BAD_ARGUMENTS
};
enum { BAD_ARRAYS = MATH_TYPE - KERNEL_SIZE, BAD_AXES = 25 };

struct bad_tensor {
  int rank, dtype, format;
  int64_t dims[BAD_AXES], strides[BAD_AXES], offset;
  bool strided; /* otherwise the strides are NULL */
  void *data;
};

struct bad_array {
  uint64_t count;
  int64_t values[3];
};

/* A call in the making. */
struct bad_call {
  enum pool_operator op;
  struct bad_tensor tensor[POOL_TENSORS];
  struct bad_array array[BAD_ARRAYS];
  bool ceil, include_pad;
  int64_t divisor;
  int math;
  bool replaced[BAD_ARGUMENTS]; /* by `handle` instead of all this */
  const void *handle[BAD_ARGUMENTS];
};

/* What a product allows beyond what all do: the table of product profiles. */
struct bad_product {
  const char *name; /* for POOLGRAD_SOC; "" is the portable profile */
  bool max_any;     /* MaxPool2dWithIndicesBackward: halves, INT64 indices, dilation, NHWC */
  bool max3d_int64, large_planes, empty_batch;
};

/* Handles that are wrong for somebody; the first ones are NULL, dead or invented. */
enum bad_handle {
  NO_HANDLE,
  DEAD_TENSOR,
  DEAD_ARRAY,
  HOST_ADDRESS,
  SMALL_NUMBER,
  ALL_ONES,
  OTHER_GENERATION, /* of a live tensor, with a bit of its generation turned over */
  LIVE_TENSOR,
  LIVE_ARRAY,
  LIVE_FLOATS,
  LIVE_SCALAR,
  LIVE_LIST,
  LIVE_BUFFER,
  BAD_HANDLES
};
void bad_handles_open(void);
void bad_handles_close(void);

enum change {
  HANDLE, /* another handle, by enum bad_handle */
  RANK,   /* that many axes */
  DTYPE,  /* this number */
  FORMAT, /* this number */
  LENGTH, /* an axis of that length */
  LONGER, /* an axis longer by that */
  STEP,   /* an axis with that stride */
  SHARED, /* an axis whose stride lets cells of the next axis share memory */
  OFFSET_TO,
  ENTRIES,   /* an array of that many values */
  VALUE,     /* one value of an array */
  OVER_HALF, /* a padding of more than half of its kernel */
  NUMBER,    /* the number itself */
  CHANGES
};

/* Whom the change is for: one argument at a time, or several at once, which then still agree. */
enum scope {
  TENSOR = 1, /* each tensor */
  ARRAY = 2,  /* each array */
  MATH = 4,
  RESULT = 8,
  GRADIENTS = 16, /* gradOutput, self and gradInput */
  INPUTS = 32,    /* self and gradInput */
  OUTPUTS = 64,   /* gradOutput and indices */
  ALL = 128,      /* all tensors */
};

struct bad_wrong {
  enum change change;
  int64_t from, until; /* one flaw for each number */
  unsigned scopes;
  int code;
  bool paired;
};

#define PLANE (INT64_C(1) << 31) /* one cell more than 32 bits count */
#define LARGE (INT64_C(1) << 40) /* fits into 64 bits, but not to the rest of the call */
#define HUGE (INT64_C(1) << 62)  /* times two bytes it is beyond 64 bits */

struct flaw {
  const struct bad_wrong *wrong;
  int64_t to;   /* one of the row's numbers */
  int argument; /* the first of those it touches */
  int axis;     /* of a tensor, or the place in an array */
  unsigned touches;
  int code, step;
  bool paired;  /* takes part in pairs */
  bool unnamed; /* its sentence may speak of sizes in general */
};

/* A flaw on its way to its step. */
struct bad_question {
  const struct bad_call *base;
  const struct bad_product *product;
  const struct bad_wrong *wrong;
  int64_t to;
  enum scope scope;
  int argument, axis;
};

/* The step of the documented order of checks that notices the flaw. */
enum { BAD_ANY_STEP = 0, BAD_NO_FLAW = 1000 };
int bad_step(const struct bad_question *q);
bool bad_unnamed(const struct bad_question *q);
unsigned bad_arguments_of(enum pool_operator op);

struct bad_call bad_base(const struct problem *p);

/* Every flaw this base can have, at most `most`; how many. */
int bad_flaws(const struct bad_call *base, const struct bad_product *product, struct flaw *flaws,
              int most);

void bad_apply(const struct flaw *flaw, struct bad_call *call);

/* Whether both may be in one call: two flaws must not be one, or mend each other. */
bool bad_meet(const struct flaw *a, const struct flaw *b);

/* What must come of a call with a flaw, and with another unless that is NULL. */
struct bad_verdict {
  int code;
  unsigned named; /* one of these arguments is in the sentence; 0: any words will do */
};
struct bad_verdict bad_judge(const struct flaw *a, const struct flaw *b);

/* Makes what the call needs, calls, and gives it back; false when that was no longer there. */
struct bad_arguments {
  const void *of[DILATION + 1];
};
struct bad_arguments bad_make(const struct bad_call *c);
aclnnStatus bad_first_phase(const struct bad_call *c, const struct bad_arguments *h, uint64_t *size,
                            aclOpExecutor **executor);
bool bad_drop(const struct bad_call *c, const struct bad_arguments *h);

const char *bad_name(enum pool_operator op, int argument);
void bad_describe(const struct flaw *flaw, enum pool_operator op, char text[PROBLEM_TEXT]);

#endif
