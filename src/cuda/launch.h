/* SPDX-License-Identifier: Apache-2.0 */
/* The door between the plug-in's C files and its kernels. */
#ifndef PG_CUDA_LAUNCH_H_
#define PG_CUDA_LAUNCH_H_

#include <cuda_runtime_api.h>

#include "runtime/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Puts one task on a CUDA stream of the current device. report (PG_MAX_BACKWARD; NULL otherwise):
 * memory both sides see, empty. Returns CUDA's code; cudaSuccess when there is nothing to do. */
struct pg_cuda_report {
  struct pg_index_report found;
  int32_t lock;
};
cudaError_t pg_cuda_launch(const struct pg_task *task, struct pg_cuda_report *report,
                           cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
