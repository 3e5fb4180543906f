/* SPDX-License-Identifier: Apache-2.0 */
/* A line of tests/problem.h as the methods of the CPU see it: without tensors, executors and
 * memory.  Addresses are left open. */
#ifndef PG_TESTS_CPU_PROBLEM_H_
#define PG_TESTS_CPU_PROBLEM_H_

#include "cpu/method.h"
#include "float_format.h"
#include "ops_fixture.h"

static inline struct pg_axis cpu_axis(const struct reference_axis *a) {
  return (struct pg_axis){a->in, a->out, a->kernel, a->stride, a->pad, a->dilation};
}

/* As ops/view.c: a stride that nobody takes a step of may be any number and is 0 for kernels. */
static inline struct pg_strides cpu_strides(const struct problem *p, int tensor) {
  const struct tensor_layout layout = tensor_lay_out(p, tensor);
  struct pg_strides s;
  for (int axis = 0; axis < PG_AXES; axis++)
    s.of[axis] = layout.size[axis] > 1 ? layout.step[axis] : 0;
  return s;
}

static inline void cpu_set_forward(struct pg_problem *to, const struct problem *p,
                                   const struct pg_pooling *pool) {
  const struct pg_strides in = cpu_strides(p, SELF), out = cpu_strides(p, GRAD_OUT);
  if (to->kernel == PG_MAX_FORWARD)
    to->args.max_forward =
        (struct pg_max_forward){.in_strides = in,
                                .out_strides = out,
                                .index_strides = cpu_strides(p, INDICES),
                                .pool = *pool,
                                .index_bytes = problem_has_indices(p) ? p->index_bytes : 0};
  else
    to->args.avg_forward = (struct pg_avg_forward){.in_strides = in,
                                                   .out_strides = out,
                                                   .pool = *pool,
                                                   .divisor = p->divisor,
                                                   .count_include_pad = p->include_pad};
}

static inline void cpu_set_arguments(struct pg_problem *to, const struct problem *p,
                                     const struct pg_pooling *pool) {
  if (problem_is_forward(p))
    cpu_set_forward(to, p, pool);
  else if (to->kernel == PG_MAX_BACKWARD)
    to->args.max_backward = (struct pg_max_backward){.out_strides = cpu_strides(p, GRAD_OUT),
                                                     .index_strides = cpu_strides(p, INDICES),
                                                     .in_strides = cpu_strides(p, GRAD_IN),
                                                     .pool = *pool,
                                                     .index_bytes = p->index_bytes};
  else
    to->args.avg_backward = (struct pg_avg_backward){.out_strides = cpu_strides(p, GRAD_OUT),
                                                     .in_strides = cpu_strides(p, GRAD_IN),
                                                     .pool = *pool,
                                                     .divisor = p->divisor,
                                                     .count_include_pad = p->include_pad};
}

static inline enum pg_kernel cpu_kernel(const struct problem *p) {
  if (problem_is_forward(p)) return problem_is_max(p) ? PG_MAX_FORWARD : PG_AVG_FORWARD;
  return problem_is_max(p) ? PG_MAX_BACKWARD : PG_AVG_BACKWARD;
}

/* A mask is not asked for here: its indices lie packed, unlike its tensor. */
static inline struct pg_problem cpu_problem_of(const struct problem *p) {
  const struct reference_pooling r = problem_pooling(p);
  const struct pg_pooling pool = {p->n, p->c, cpu_axis(&r.axis[0]), cpu_axis(&r.axis[1]),
                                  cpu_axis(&r.axis[2])};
  const struct pg_strides in = cpu_strides(p, problem_is_forward(p) ? SELF : GRAD_IN);
  const struct pg_strides out = cpu_strides(p, GRAD_OUT), index = cpu_strides(p, INDICES);
  const bool has_indices = problem_has_indices(p);
  const int64_t bytes = (int64_t)float_formats[p->type].bytes;
  struct pg_problem made = {.kernel = cpu_kernel(p),
                            .dtype = (aclDataType)float_formats[p->type].dtype};
  made.facts = pg_facts_of(&(struct pg_subject){.pool = &pool,
                                                .in = &in,
                                                .out = &out,
                                                .index = has_indices ? &index : NULL,
                                                .in_bytes = bytes,
                                                .out_bytes = bytes,
                                                .index_bytes = has_indices ? p->index_bytes : 0,
                                                .divisor = p->divisor});
  cpu_set_arguments(&made, p, &pool);
  return made;
}

static inline struct pg_problem cpu_problem(const char *line) {
  const struct problem p = read_problem(line);
  return cpu_problem_of(&p);
}

/* The choice of the method with this name; false when it does not fit. */
static inline bool cpu_method(const struct pg_problem *p, const char *name,
                              struct pg_choice *choice) {
  for (int i = 0; pg_cpu_choose(p, i, choice); i++)
    if (strcmp(choice->name, name) == 0) return true;
  return false;
}

#endif
