/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA's devices as a backend, in a file of its own: the library loads it where a driver answers.
 */
#include <stdio.h>

#include "cuda/method_cuda.h"
#include "cuda/device_cuda.h"
#include "cuda/mark_cuda.h"
#include "cuda/physical_cuda.h"
#include "cuda/queue_cuda.h"
#include "cuda/step_cuda.h"

enum { MIB = 1 << 20 };

static int attribute(int device, enum cudaDeviceAttr which) {
  int value = 0;
  if (cudaDeviceGetAttribute(&value, which, pg_cuda_number(device)) != cudaSuccess)
    (void)cudaGetLastError();
  return value;
}

static void describe(int device, char *text, size_t size) {
  struct cudaDeviceProp about;
  if (cudaGetDeviceProperties(&about, pg_cuda_number(device)) != cudaSuccess) {
    (void)cudaGetLastError();
    snprintf(text, size, "cuda (device %d does not answer)", pg_cuda_number(device));
    return;
  }
  snprintf(text, size, "cuda (%.64s, %zu MiB)", about.name, about.totalGlobalMem / MIB);
}

static int core_count(int device) { return attribute(device, cudaDevAttrMultiProcessorCount); }

static int64_t cache_bytes(int device) { return attribute(device, cudaDevAttrL2CacheSize); }

static aclError configure(const char *api) {
  (void)api;
  return ACL_SUCCESS;
}

static bool can_reach(int device, int peer) {
  int can = 0;
  const cudaError_t error =
      cudaDeviceCanAccessPeer(&can, pg_cuda_number(device), pg_cuda_number(peer));
  if (error != cudaSuccess) (void)cudaGetLastError();
  return error == cudaSuccess && can != 0;
}

static aclError reach(int device, int peer, bool enable) {
  CUcontext before;
  if (!pg_cuda_enter(device, &before)) return ACL_ERROR_RT_INTERNAL_ERROR;
  const cudaError_t error = enable ? cudaDeviceEnablePeerAccess(pg_cuda_number(peer), 0)
                                   : cudaDeviceDisablePeerAccess(pg_cuda_number(peer));
  if (error != cudaSuccess) (void)cudaGetLastError();
  pg_cuda_leave(device, before);
  const bool already = error == cudaErrorPeerAccessAlreadyEnabled; /* by the program itself */
  return error == cudaSuccess || already ? ACL_SUCCESS : ACL_ERROR_RT_INTERNAL_ERROR;
}

static void *allocate(int device, size_t bytes, bool huge) {
  (void)huge; /* CUDA's pages are large */
  CUcontext before;
  void *memory = NULL;
  if (!pg_cuda_enter(device, &before)) return NULL;
  if (cudaMalloc(&memory, bytes) != cudaSuccess) {
    (void)cudaGetLastError();
    memory = NULL;
  }
  pg_cuda_leave(device, before);
  return memory;
}

static void release(int device, void *memory) {
  CUcontext before;
  if (!pg_cuda_enter(device, &before)) return;
  if (cudaFree(memory) != cudaSuccess) (void)cudaGetLastError();
  pg_cuda_leave(device, before);
}

static void *host_allocate(int device, size_t bytes) {
  CUcontext before;
  void *memory = NULL;
  if (!pg_cuda_enter(device, &before)) return NULL;
  if (cudaHostAlloc(&memory, bytes, cudaHostAllocPortable | cudaHostAllocMapped) != cudaSuccess) {
    (void)cudaGetLastError();
    memory = NULL;
  }
  pg_cuda_leave(device, before);
  return memory;
}

static void host_release(int device, void *memory) {
  CUcontext before;
  if (!pg_cuda_enter(device, &before)) return;
  if (cudaFreeHost(memory) != cudaSuccess) (void)cudaGetLastError();
  pg_cuda_leave(device, before);
}

/* Memory that the program has registered with CUDA itself is in reach already. */
static aclError host_register(int device, void *memory, size_t bytes, bool read_only) {
  const unsigned int flags = cudaHostRegisterPortable | cudaHostRegisterMapped |
                             (read_only ? cudaHostRegisterReadOnly : 0);
  CUcontext before;
  if (!pg_cuda_enter(device, &before)) return ACL_ERROR_RT_INTERNAL_ERROR;
  cudaError_t error = cudaHostRegister(memory, bytes, flags);
  if (read_only && error == cudaErrorNotSupported) /* a hint that not every system takes */
    error = cudaHostRegister(memory, bytes, flags & ~(unsigned int)cudaHostRegisterReadOnly);
  if (error != cudaSuccess) (void)cudaGetLastError();
  pg_cuda_leave(device, before);
  const bool already = error == cudaErrorHostMemoryAlreadyRegistered;
  return error == cudaSuccess || already ? ACL_SUCCESS : ACL_ERROR_RT_MEMORY_ALLOCATION;
}

static void host_unregister(int device, void *memory) {
  CUcontext before;
  if (!pg_cuda_enter(device, &before)) return;
  if (cudaHostUnregister(memory) != cudaSuccess) (void)cudaGetLastError();
  pg_cuda_leave(device, before);
}

static void memory_info(int device, size_t *free_bytes, size_t *total_bytes) {
  CUcontext before;
  *free_bytes = *total_bytes = 0;
  if (!pg_cuda_enter(device, &before)) return;
  if (cudaMemGetInfo(free_bytes, total_bytes) != cudaSuccess) (void)cudaGetLastError();
  pg_cuda_leave(device, before);
}

/* Does it on a stream that has nothing else to do, and waits. */
static aclError at_once(int device, const struct pg_copy *copy, const struct pg_fill *fill) {
  const cudaStream_t stream = pg_cuda_borrow_stream(device);
  if (stream == NULL) return ACL_ERROR_RT_NO_STREAM_RESOURCE;
  cudaError_t error =
      copy != NULL ? pg_cuda_issue_copy(copy, stream) : pg_cuda_issue_fill(fill, stream);
  const cudaError_t end = cudaStreamSynchronize(stream);
  if (error == cudaSuccess) error = end;
  if (error != cudaSuccess) (void)cudaGetLastError();
  pg_cuda_return_stream(device, stream);
  return error == cudaSuccess ? ACL_SUCCESS : ACL_ERROR_RT_INTERNAL_ERROR;
}

static aclError copy_now(int device, const struct pg_copy *copy) {
  CUcontext before;
  if (!pg_cuda_enter(device, &before)) return ACL_ERROR_RT_INTERNAL_ERROR;
  const aclError status = at_once(device, copy, NULL);
  pg_cuda_leave(device, before);
  return status;
}

static aclError fill_now(int device, const struct pg_fill *fill) {
  CUcontext before;
  aclError status = ACL_SUCCESS;
  if (!pg_cuda_enter(device, &before)) return ACL_ERROR_RT_INTERNAL_ERROR;
  if (pg_cuda_place(fill->dst) == PG_CUDA_DEVICE)
    status = at_once(device, NULL, fill);
  else
    pg_cuda_fill_on_host(fill);
  pg_cuda_leave(device, before);
  return status;
}

static const struct pg_backend backend = {
    .name = "cuda",
    .on_host = false,
    .device_count = pg_cuda_device_count,
    .describe = describe,
    .core_count = core_count,
    .cache_bytes = cache_bytes,
    .configure = configure,
    .shut_down = pg_cuda_queues_wait_gone,
    .choose = pg_cuda_choose,
    .can_reach = can_reach,
    .reach = reach,
    .alloc = allocate,
    .free = release,
    .host_alloc = host_allocate,
    .host_free = host_release,
    .host_register = host_register,
    .host_unregister = host_unregister,
    .memory_info = memory_info,
    .copy = copy_now,
    .fill = fill_now,
    .reserve = pg_cuda_reserve,
    .unreserve = pg_cuda_unreserve,
    .physical_make = pg_cuda_physical_make,
    .physical_release = pg_cuda_physical_release,
    .map = pg_cuda_map,
    .unmap = pg_cuda_unmap,
    .queue_create = pg_cuda_queue_create,
    .queue_close = pg_cuda_queue_close,
    .queue_release = pg_cuda_queue_release,
    .submit = pg_cuda_submit,
    .sync = pg_cuda_sync,
    .idle = pg_cuda_idle,
    .activity = pg_cuda_activity,
    .hold = pg_cuda_hold,
    .discard = pg_cuda_discard,
    .interrupt = pg_cuda_interrupt,
    .set_stop_on_failure = pg_cuda_set_stop_on_failure,
    .on_own_step = pg_cuda_on_own_step,
    .native_stream = pg_cuda_native_stream,
    .mark_retain = pg_cuda_mark_retain,
    .mark_release = pg_cuda_mark_release,
    .mark_done = pg_cuda_mark_done,
    .mark_discarded = pg_cuda_mark_discarded,
    .mark_sync = pg_cuda_mark_sync,
    .mark_time_ns = pg_cuda_mark_time_ns,
};

__attribute__((visibility("default"))) pg_plugin_fn poolgrad_cuda_backend;

const struct pg_backend *poolgrad_cuda_backend(size_t size_of_backend, const char **why) {
  if (size_of_backend != sizeof backend) {
    *why = "the plug-in was built for another version of the library";
    return NULL;
  }
  return pg_cuda_find_devices(why) > 0 ? &backend : NULL;
}
