/* SPDX-License-Identifier: Apache-2.0 */
/* Methods: the ways in which the CPU computes a kernel.  Each is one file of cpu/kernels, compiled
 * for every instruction set and element type; cpu/kernels/methods.c lists them in order. */
#ifndef PG_METHOD_H_
#define PG_METHOD_H_

#include "cpu/scratch.h"
#include "kernels/kernels.h"

struct pg_cpu_method {
  const char *name;
  /* Can it compute the problem, and how does it cut it into items?  The last method of a list can
   * compute every problem. */
  bool (*fits)(const struct pg_problem *problem, struct pg_tiling *tiling);
  /* Bytes of zeros that it needs; NULL: none. */
  int64_t (*workspace)(const struct pg_tiling *tiling);
  /* Computes items of a struct pg_task. */
  pg_items_fn *run;
  /* Runs over all items after `run` has, where there is a workspace; NULL: nothing to do. */
  pg_items_fn *mend;
};

/* What one instruction set has for one element type: for each kernel its methods, best first, and
 * NULL behind the last. */
struct pg_cpu_methods {
  const struct pg_cpu_method *const *of[PG_KERNEL_COUNT];
};

/* Reads POOLGRAD_ISA; a sentence for a set that is not known or that this CPU cannot run. */
aclError pg_isa_configure(const char *api);

/* The `skip`-th method that fits a problem, best first.  False when fewer do. */
bool pg_cpu_choose(const struct pg_problem *problem, int skip, struct pg_choice *choice);

#endif
