/* SPDX-License-Identifier: Apache-2.0 */
/* Reserved addresses and physical memory by the driver, which alone has functions for them. */
#include "cuda/physical_cuda.h"

#include <cudaTypedefs.h>
#include <pthread.h>
#include <stdlib.h>

#include "cuda/device_cuda.h"

struct pg_physical {
  CUmemGenericAllocationHandle handle;
  size_t bytes;
};

static struct {
  PFN_cuMemAddressReserve_v10020 reserve;
  PFN_cuMemAddressFree_v10020 unreserve;
  PFN_cuMemCreate_v10020 create;
  PFN_cuMemRelease_v10020 release;
  PFN_cuMemMap_v10020 map;
  PFN_cuMemUnmap_v10020 unmap;
  PFN_cuMemSetAccess_v10020 set_access;
} driver;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool found;

static void find_functions(void) {
  found = pg_cuda_find_function("cuMemAddressReserve", 10020, &driver.reserve) &&
          pg_cuda_find_function("cuMemAddressFree", 10020, &driver.unreserve) &&
          pg_cuda_find_function("cuMemCreate", 10020, &driver.create) &&
          pg_cuda_find_function("cuMemRelease", 10020, &driver.release) &&
          pg_cuda_find_function("cuMemMap", 10020, &driver.map) &&
          pg_cuda_find_function("cuMemUnmap", 10020, &driver.unmap) &&
          pg_cuda_find_function("cuMemSetAccess", 10020, &driver.set_access);
}

static bool enter(int device, CUcontext *before) {
  (void)pthread_once(&once, find_functions);
  return found && pg_cuda_enter(device, before);
}

static CUmemLocation location_of(int device) {
  return (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = pg_cuda_number(device)};
}

void *pg_cuda_reserve(int device, size_t bytes) {
  CUcontext before;
  CUdeviceptr addresses = 0;
  if (!enter(device, &before)) return NULL;
  const CUresult result = driver.reserve(&addresses, bytes, PG_GRANULARITY, 0, 0);
  pg_cuda_leave(device, before);
  return result == CUDA_SUCCESS ? (void *)(uintptr_t)addresses : NULL;
}

void pg_cuda_unreserve(int device, void *addresses, size_t bytes) {
  CUcontext before;
  if (!enter(device, &before)) return;
  (void)driver.unreserve((CUdeviceptr)(uintptr_t)addresses, bytes);
  pg_cuda_leave(device, before);
}

struct pg_physical *pg_cuda_physical_make(int device, size_t bytes) {
  const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                    .location = location_of(device)};
  CUcontext before;
  struct pg_physical *memory = malloc(sizeof *memory);
  if (memory == NULL || !enter(device, &before)) {
    free(memory);
    return NULL;
  }
  memory->bytes = bytes;
  const CUresult result = driver.create(&memory->handle, bytes, &prop, 0);
  pg_cuda_leave(device, before);
  if (result == CUDA_SUCCESS) return memory;
  free(memory);
  return NULL;
}

void pg_cuda_physical_release(int device, struct pg_physical *memory) {
  CUcontext before;
  if (enter(device, &before)) {
    (void)driver.release(memory->handle);
    pg_cuda_leave(device, before);
  }
  free(memory);
}

bool pg_cuda_map(int device, void *at, struct pg_physical *memory) {
  const CUdeviceptr address = (CUdeviceptr)(uintptr_t)at;
  const CUmemAccessDesc access = {.location = location_of(device),
                                  .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUcontext before;
  if (!enter(device, &before)) return false;
  CUresult result = driver.map(address, memory->bytes, 0, memory->handle, 0);
  if (result == CUDA_SUCCESS) {
    result = driver.set_access(address, memory->bytes, &access, 1);
    if (result != CUDA_SUCCESS) (void)driver.unmap(address, memory->bytes);
  }
  pg_cuda_leave(device, before);
  return result == CUDA_SUCCESS;
}

bool pg_cuda_unmap(int device, void *at, size_t bytes) {
  CUcontext before;
  if (!enter(device, &before)) return false;
  const CUresult result = driver.unmap((CUdeviceptr)(uintptr_t)at, bytes);
  pg_cuda_leave(device, before);
  return result == CUDA_SUCCESS;
}
