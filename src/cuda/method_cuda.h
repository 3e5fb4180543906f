/* SPDX-License-Identifier: Apache-2.0 */
/* Methods: the ways in which the CUDA backend computes a kernel.  Each is one file of cuda/kernels;
 * methods_cuda.c lists them in order. */
#ifndef PG_CUDA_METHOD_H_
#define PG_CUDA_METHOD_H_

#include <cuda_runtime_api.h>

#include "runtime/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where kernels note the indices that point out of their plane: memory that both sides see. */
struct pg_cuda_report {
  struct pg_index_report found;
  int32_t lock;
};

/* A task on its way to a CUDA stream of the current device. */
struct pg_cuda_call {
  const struct pg_task *task;
  struct pg_cuda_report *report; /* NULL: bad indices are dropped without a word */
  cudaStream_t stream;
};

/* Launches what a task needs, and returns CUDA's code. */
typedef cudaError_t pg_cuda_run_fn(const struct pg_cuda_call *call);

struct pg_cuda_method {
  const char *name;
  /* Can it compute the problem, and how does it cut it into items?  Addresses are not known yet:
   * a method that needs them aligned has a slower way for those that are not.  The last method of
   * a list can compute every problem. */
  bool (*fits)(const struct pg_problem *problem, struct pg_tiling *tiling);
  /* Bytes of zeros that it needs; NULL: none. */
  int64_t (*workspace)(const struct pg_problem *problem, const struct pg_tiling *tiling);
  pg_cuda_run_fn *run;
  /* Launched after `run` where there is a workspace; NULL: nothing to do. */
  pg_cuda_run_fn *mend;
};

/* pg_backend's function; see runtime/backend.h. */
bool pg_cuda_choose(const struct pg_problem *problem, int skip, struct pg_choice *choice);

/* Puts a task onto a stream; cudaSuccess when there is nothing to do. */
cudaError_t pg_cuda_launch(const struct pg_cuda_call *call);

/* The method of PG_FILL, which has no other. */
extern const struct pg_cuda_method pg_cuda_fill_rows;

#ifdef __cplusplus
}
#endif

#endif
