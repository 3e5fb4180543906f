/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses and physical memory, apart; the functions are those of struct pg_backend. */
#ifndef PG_CUDA_PHYSICAL_H_
#define PG_CUDA_PHYSICAL_H_

#include "runtime/backend.h"

void *pg_cuda_reserve(int device, size_t bytes);
void pg_cuda_unreserve(int device, void *addresses, size_t bytes);
struct pg_physical *pg_cuda_physical_make(int device, size_t bytes);
void pg_cuda_physical_release(int device, struct pg_physical *memory);
bool pg_cuda_map(int device, void *at, struct pg_physical *memory);
bool pg_cuda_unmap(int device, void *at, size_t bytes);

#endif
