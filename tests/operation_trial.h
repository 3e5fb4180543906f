/* SPDX-License-Identifier: Apache-2.0 */
/* A call of an operator on tensors of any shape with its data: run through the public API on every
 * device, twice by one executor, and compared byte by byte with what is expected. */
#ifndef PG_TESTS_OPERATION_TRIAL_H_
#define PG_TESTS_OPERATION_TRIAL_H_

#include "tensor_call.h"
#include "tensor_trial.h"

/* A scalar in one of the types that tensors have. */
struct operation_scalar {
  aclDataType dtype;
  char bytes[8];
  double real;     /* its value */
  int64_t integer; /* the same, truncated if it must be */
};

/* Which argument a tensor of the call is: one of its tensors, or one more of a list. */
struct operation_place {
  bool in_list;
  int number; /* of the tensor or of the list, as in struct tensor_call */
};

/* `t` has a side for each tensor, in the order in which they were added; its `why` is the run's. */
struct operation_trial {
  struct tensor_trial t;
  struct tensor_call call; /* numbers, arrays and the operator; the run puts the handles in */
  struct pg_shape shape[TENSOR_SIDES];
  struct operation_place place[TENSOR_SIDES];
  struct operation_scalar scalar[SCALARS_MOST];
  bool selects; /* the view of tensor 2 becomes so long: */
  int64_t selected;
};

void operation_begin(struct operation_trial *o, enum tensor_operator_id op);

/* What memory a tensor has: its own, or that of a side which is written.  There it is that very
 * tensor, or lies anywhere between its elements and behind them. */
enum operation_memory { OWN_MEMORY, SAME_MEMORY, OVERLAPPING_MEMORY };

struct operation_tensor {
  struct operation_place place;
  aclDataType dtype;
  struct pg_shape shape;
  bool is_written, is_updated; /* updated: it is written, and read before */
  bool is_dense;               /* its elements follow each other */
  enum operation_memory memory;
  int shared_with; /* unless the memory is its own */
};

/* Draws strides and an offset; returns the number of the side. */
int operation_add(struct operation_trial *o, uint64_t *state, const struct operation_tensor *of);

/* The memory that the input of a map may have, whose result is side `result`. */
void operation_draw_memory(uint64_t *state, const struct operation_trial *o, int result,
                           struct operation_tensor *in);

/* Most tensors: one that is written, and one that is read and has memory of its own. */
int operation_add_output(struct operation_trial *o, uint64_t *state, int number, aclDataType dtype,
                         const struct pg_shape *shape);
int operation_add_input(struct operation_trial *o, uint64_t *state, int number, aclDataType dtype,
                        const struct pg_shape *shape);

void operation_draw_scalar(uint64_t *state, aclDataType dtype, struct operation_scalar *scalar);
void operation_set_integer(struct operation_scalar *scalar, int64_t value);

/* A shape as tensor_draw_shape gives it, but now and then an axis is empty. */
struct pg_shape operation_draw_shape(uint64_t *state, int64_t most);

/* A shape that can be broadcast to the given one: axes of length 1, or fewer axes. */
struct pg_shape operation_draw_narrower(uint64_t *state, const struct pg_shape *shape);

/* Two shapes that have the given one together, each of which may be narrower. */
void operation_draw_pair(uint64_t *state, const struct pg_shape *both, struct pg_shape pair[2]);

aclDataType operation_draw_type(uint64_t *state);

/* Memory for all tensors, with random elements in those that are read. */
bool operation_fill(struct operation_trial *o, uint64_t *state);

/* An element of an input that is to be another one. */
void operation_put(struct operation_trial *o, int side, int64_t number, const void *element);

/* The element at a position of a shape that the tensor is broadcast to, and that as a number. */
const char *operation_element(const struct operation_trial *o, int side,
                              const struct pg_shape *shape, int64_t position);
union pg_number operation_load(const struct operation_trial *o, int side, enum pg_class c,
                               const struct pg_shape *shape, int64_t position);

/* Where the element at a position must be written, and that with a number. */
char *operation_expected(struct operation_trial *o, int side, int64_t position);
void operation_expect(struct operation_trial *o, int side, int64_t position, enum pg_class c,
                      union pg_number n);

/* False leaves a sentence in t.why.  The trial must then still be freed. */
bool operation_run(struct operation_trial *o, const struct trial_devices *devices);

void operation_free(struct operation_trial *o);

#endif
