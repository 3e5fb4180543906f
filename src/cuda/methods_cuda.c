/* SPDX-License-Identifier: Apache-2.0 */
/* The methods of each kernel, best first: the first that fits a problem computes it. */
#include "cuda/method_cuda.h"

#include "kernels/tiling.h"

extern const struct pg_cuda_method pg_cuda_max_few, pg_cuda_max_channels_last_columns,
    pg_cuda_max_columns, pg_cuda_max_sparse, pg_cuda_max_dense, pg_cuda_max_scatter,
    pg_cuda_max_strips, pg_cuda_max_any;
extern const struct pg_cuda_method pg_cuda_avg_same, pg_cuda_avg_one_window,
    pg_cuda_avg_channels_last_columns, pg_cuda_avg_tiles, pg_cuda_avg_columns,
    pg_cuda_avg_two_windows, pg_cuda_avg_staged, pg_cuda_avg_rows, pg_cuda_avg_strips,
    pg_cuda_avg_any;
extern const struct pg_cuda_method pg_cuda_max_forward_direct, pg_cuda_max_forward_wide,
    pg_cuda_max_forward_columns, pg_cuda_max_forward_any;
extern const struct pg_cuda_method pg_cuda_avg_forward_one_window, pg_cuda_avg_forward_direct,
    pg_cuda_avg_forward_wide, pg_cuda_avg_forward_columns, pg_cuda_avg_forward_any;
extern const struct pg_cuda_method pg_cuda_map_vectors, pg_cuda_map_any, pg_cuda_reduce_short,
    pg_cuda_reduce_any, pg_cuda_gather, pg_cuda_unpool_winners, pg_cuda_unpool_planes,
    pg_cuda_select;

static const struct pg_cuda_method *const max_backward[] = {&pg_cuda_max_channels_last_columns,
                                                            &pg_cuda_max_columns,
                                                            &pg_cuda_max_sparse,
                                                            &pg_cuda_max_dense,
                                                            &pg_cuda_max_few,
                                                            &pg_cuda_max_strips,
                                                            &pg_cuda_max_scatter,
                                                            &pg_cuda_max_any,
                                                            NULL};

static const struct pg_cuda_method *const avg_backward[] = {&pg_cuda_avg_same,
                                                            &pg_cuda_avg_one_window,
                                                            &pg_cuda_avg_channels_last_columns,
                                                            &pg_cuda_avg_tiles,
                                                            &pg_cuda_avg_columns,
                                                            &pg_cuda_avg_two_windows,
                                                            &pg_cuda_avg_staged,
                                                            &pg_cuda_avg_rows,
                                                            &pg_cuda_avg_strips,
                                                            &pg_cuda_avg_any,
                                                            NULL};

static const struct pg_cuda_method *const max_forward[] = {
    &pg_cuda_max_forward_direct, &pg_cuda_max_forward_wide, &pg_cuda_max_forward_columns,
    &pg_cuda_max_forward_any, NULL};

static const struct pg_cuda_method *const avg_forward[] = {
    &pg_cuda_avg_forward_one_window, &pg_cuda_avg_forward_direct, &pg_cuda_avg_forward_wide,
    &pg_cuda_avg_forward_columns,    &pg_cuda_avg_forward_any,    NULL};

static const struct pg_cuda_method *const map[] = {&pg_cuda_map_vectors, &pg_cuda_map_any, NULL};
static const struct pg_cuda_method *const reduce[] = {&pg_cuda_reduce_short, &pg_cuda_reduce_any,
                                                      NULL};
static const struct pg_cuda_method *const gather[] = {&pg_cuda_gather, NULL};
static const struct pg_cuda_method *const unpool[] = {&pg_cuda_unpool_winners,
                                                      &pg_cuda_unpool_planes, NULL};
static const struct pg_cuda_method *const select[] = {&pg_cuda_select, NULL};

static const struct pg_cuda_method *const *const methods[PG_KERNEL_COUNT] = {
    [PG_MAX_BACKWARD] = max_backward,
    [PG_AVG_BACKWARD] = avg_backward,
    [PG_MAX_FORWARD] = max_forward,
    [PG_AVG_FORWARD] = avg_forward,
    [PG_MAP] = map,
    [PG_REDUCE] = reduce,
    [PG_GATHER] = gather,
    [PG_UNPOOL] = unpool,
    [PG_SELECT] = select};

bool pg_cuda_choose(const struct pg_problem *problem, int skip, struct pg_choice *choice) {
  if (problem->kernel == PG_FILL) {
    *choice = (struct pg_choice){.name = pg_cuda_fill_rows.name,
                                 .method = &pg_cuda_fill_rows,
                                 .items = problem->args.fill.count};
    return skip == 0;
  }
  const struct pg_cuda_method *const *method = methods[problem->kernel];
  for (; *method != NULL; method++)
    if ((*method)->fits(problem, &choice->tiling) && skip-- == 0) break;
  if (*method == NULL) return false;
  choice->name = (*method)->name;
  choice->method = *method;
  choice->items = pg_tiling_items(&choice->tiling);
  choice->workspace_bytes =
      (*method)->workspace != NULL ? (*method)->workspace(problem, &choice->tiling) : 0;
  return true;
}

cudaError_t pg_cuda_launch(const struct pg_cuda_call *call) {
  const struct pg_choice *choice = &call->task->choice;
  const struct pg_cuda_method *method = choice->method;
  if (choice->items <= 0) return cudaSuccess;
  if (choice->workspace_bytes == 0) return method->run(call);
  cudaError_t status = cudaMemsetAsync(pg_workspace_of(&call->task->problem), 0,
                                       (size_t)choice->workspace_bytes, call->stream);
  if (status == cudaSuccess) status = method->run(call);
  if (status != cudaSuccess || method->mend == NULL) return status;
  return method->mend(call);
}
