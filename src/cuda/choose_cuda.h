/* SPDX-License-Identifier: Apache-2.0 */
/* How the CUDA backend computes a problem. */
#ifndef PG_CUDA_CHOOSE_H_
#define PG_CUDA_CHOOSE_H_

#include "kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* pg_backend's function; see runtime/backend.h. */
bool pg_cuda_choose(const struct pg_problem *problem, int skip, struct pg_choice *choice);

/* The method, by its name, of an average whose window is the whole plane. */
extern const char pg_cuda_one_window[];

#ifdef __cplusplus
}
#endif

#endif
