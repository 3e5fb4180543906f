/* SPDX-License-Identifier: Apache-2.0 */
/* Methods: the ways in which the CPU computes a kernel.  Each is one file of cpu/kernels, compiled
 * for every instruction set and element type; cpu/kernels/methods.c lists them, best first.  Those
 * of the kernels over tensors of any shape are compiled for every instruction set alone
 * (methods_tensor.c). */
#ifndef PG_METHOD_H_
#define PG_METHOD_H_

#include "cpu/scratch.h"
#include "kernels/kernels.h"

struct pg_cpu_method {
  const char *name;
  /* Can it compute the problem?  If so, *tiling is how it cuts the problem into items.  The last
   * method of a list can compute every problem. */
  bool (*fits)(const struct pg_problem *problem, struct pg_tiling *tiling);
  /* The bytes of workspace that it needs; NULL: none. */
  int64_t (*workspace)(const struct pg_problem *problem, const struct pg_tiling *tiling);
  /* Computes items of a struct pg_task. */
  pg_items_fn *run;
  /* The workspace is 32-bit flags, which are zeros when `run` begins, and where it has set one,
   * `mend` runs over all items; NULL: there are no flags. */
  pg_items_fn *mend;
  /* Runs over all items after `run` has, where there is a workspace, and makes results of what
   * `run` has left there; NULL: `run` has done everything. */
  pg_items_fn *finish;
};

/* The methods of one instruction set for one element type: a list for each kernel, best first, with
 * NULL behind the last. */
struct pg_cpu_methods {
  const struct pg_cpu_method *const *of[PG_KERNEL_COUNT];
};

/* Reads POOLGRAD_ISA; fails if this library or this CPU does not have that instruction set. */
aclError pg_isa_configure(const char *api);

/* Makes the choice of the best method that fits a problem, after skipping so many that fit.  False
 * when there is none. */
bool pg_cpu_choose(const struct pg_problem *problem, int skip, struct pg_choice *choice);

#endif
