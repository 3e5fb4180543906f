/* SPDX-License-Identifier: Apache-2.0 */
/* One call of one operator, with everything a caller can get wrong in it.
 *
 *   operators_decode.c   bytes become a call
 *   operators_rules.c    what the first phase must answer
 *   fuzz_operators.c     makes the call, runs what is accepted, and compares */
#ifndef PG_FUZZ_OPERATORS_H_
#define PG_FUZZ_OPERATORS_H_

#include "input.h"
#include "operator_call.h"

enum { CALL_AXES = 7, CALL_VALUES = 3 };

/* What is passed in the place of a handle. */
enum handle_kind { LIVE, ABSENT, STALE, OTHER_KIND, NONSENSE, HANDLE_KINDS };

struct call_tensor {
  enum handle_kind handle;
  int rank, dtype, format;
  int64_t dims[CALL_AXES], strides[CALL_AXES], offset;
  bool strided; /* otherwise strides are NULL: contiguous */
};

struct call_array {
  enum handle_kind handle;
  int count;
  int64_t of[CALL_VALUES];
};

enum {
  KERNEL = KERNEL_ARRAY,
  STRIDE = STRIDE_ARRAY,
  PADDING = PADDING_ARRAY,
  DILATION = DILATION_ARRAY,
  CALL_ARRAYS = OUTPUT_ARRAY /* those before it */
};

/* What is wrong with the second phase alone. */
enum trouble {
  NO_TROUBLE,
  NO_ADDRESS,     /* of one operand */
  ODD_ADDRESS,    /* not aligned */
  SHORT_MEMORY,   /* the operand reaches over the end of its allocation */
  OVERLAP,        /* gradInput lies on gradOutput or on the indices */
  BAD_WORKSPACE,  /* too small, or NULL */
  STALE_STREAM,   /* destroyed */
  OTHER_OPERATOR, /* the executor is another one's */
  NO_EXECUTOR,    /* NULL, or spent */
  TROUBLES
};

struct call {
  enum pool_operator op;
  const char *soc; /* POOLGRAD_SOC */
  struct call_tensor tensor[POOL_TENSORS];
  struct call_array array[CALL_ARRAYS];
  bool ceil, include_pad, no_size, no_executor;
  int64_t divisor;
  int cube;
  /* how it is run */
  bool late, repeatable, redescribed, released, many_threads, past_caches, errors;
  bool raw_bits; /* gradients are any bits at all */
  enum trouble trouble;
  int troubled; /* the operand */
  enum index_source index;
  enum gradient_data data;
  uint64_t seed;
};

void call_decode(struct input *in, struct call *call);
void call_print(const struct call *call); /* to stderr */

enum verdict { ACCEPT, REFUSE_NULL, REFUSE, EITHER };

/* EITHER where numbers are so large that whether they fit is a matter of how sums are taken. */
enum verdict call_verdict(const struct call *call);

bool call_is_max(const struct call *call);
bool call_is_sliding(const struct call *call);
int call_spatial(const struct call *call);
bool call_channels_last(const struct call *call);

/* The size that an attribute has on an axis, 0 for H; `missing` where it has no values. */
int64_t call_size(const struct call_array *array, int axis, int64_t missing);

/* Strides as the library will see them. */
void call_strides(const struct call_tensor *t, int64_t strides[CALL_AXES]);
bool call_is_empty(const struct call_tensor *t);
size_t call_element(int dtype); /* bytes; 0 for a type that no operator takes */

#endif
