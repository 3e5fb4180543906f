/* SPDX-License-Identifier: Apache-2.0 */
/* A problem over tensors of any shape with its data: run by every method on every device, and
 * compared byte by byte with what the reference says.  Random shapes, layouts and elements. */
#ifndef PG_TESTS_TENSOR_TRIAL_H_
#define PG_TESTS_TENSOR_TRIAL_H_

#include "aclnn/executor.h"
#include "guarded.h"
#include "ops/tensor_grid.h"
#include "tensor_reference.h"
#include "trial.h"

enum { TENSOR_SIDES = 12, TENSOR_TRIAL_TEXT = 400 };

/* One tensor: where its elements lie over a shape, and what must be in memory afterwards. */
struct tensor_side {
  const char *name;
  aclDataType dtype;
  int64_t strides[PG_GRID_AXES]; /* elements */
  int64_t offset, elements;      /* to its first element; from its address to the last one */
  bool is_written, is_updated;   /* updated: it is written, and read before */
  int shared_with;               /* the side whose memory it is; -1: it has its own */
  size_t address_at;             /* in the arguments of the problem */
  char *expected;                /* as the payload of `memory` */
  bool *touched;                 /* for each element: is it written? */
  struct guarded memory;
};

/* The arguments of the problem lack addresses. */
struct tensor_trial {
  struct pg_problem problem;
  size_t workspace_at; /* in the arguments; 0: the kernel has none */
  bool reports;        /* the kernel has a report: what it must be, where its count is not 0 */
  struct pg_index_report report;
  int sides;
  struct tensor_side side[TENSOR_SIDES];
  char why[TENSOR_TRIAL_TEXT];
};

/* --- Random numbers, shapes and layouts --- */

int64_t tensor_draw(uint64_t *state, int64_t below);
bool tensor_chance(uint64_t *state, int64_t odds); /* one in so many */

/* At most so many positions; of any rank, with lengths that vector code and panels like, and those
 * beside them. */
struct pg_shape tensor_draw_shape(uint64_t *state, int64_t most);

/* Over all positions, the first axis being the slowest: the offset of the position with this number
 * in row-major order. */
int64_t tensor_offset(const struct pg_shape *shape, const int64_t *strides, int64_t number);

enum tensor_layout_kind { TENSOR_ANY, TENSOR_APART /* no two elements share a place */ };

/* Strides, offset and extent of a tensor over a shape: without gaps or with, in any order of the
 * axes, and with elements repeated where that is allowed. */
void tensor_draw_layout(uint64_t *state, const struct pg_shape *shape, enum tensor_layout_kind kind,
                        struct tensor_side *side);

/* An element of any value; specials are among them. */
void tensor_draw_element(uint64_t *state, aclDataType dtype, void *to);

/* --- The trial --- */

/* Adds a side with these members; the rest is made by tensor_trial_fill. */
struct tensor_side *tensor_trial_add(struct tensor_trial *t, const struct tensor_side *side);

/* Memory for all sides: random elements in what is read, poison in what is only written.  Then the
 * payloads may be changed, and what is expected noted. */
bool tensor_trial_fill(struct tensor_trial *t, uint64_t *state);

const char *tensor_trial_element(const struct tensor_side *side, int64_t at);

/* Where to write the element that must be there in the end. */
char *tensor_trial_expect(struct tensor_side *side, int64_t at);

/* Runs it on every device by every method, with each of these numbers of threads (0: as many as
 * usual).  False leaves a sentence in why.  The trial must then still be freed. */
bool tensor_trial_run(struct tensor_trial *t, const struct trial_devices *devices,
                      const int *threads, int counts);

/* The parts of it that do not mind what runs: sends every side to the current device; brings them
 * back and compares all of their memory; gives the device's memory back, for another device. */
bool tensor_trial_send(struct tensor_trial *t);
bool tensor_trial_compare(struct tensor_trial *t);
void tensor_trial_leave(struct tensor_trial *t);

void tensor_trial_free(struct tensor_trial *t);

#endif
