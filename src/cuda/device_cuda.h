/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA devices that can be used, and what is kept ready for each. */
#ifndef PG_CUDA_DEVICE_H_
#define PG_CUDA_DEVICE_H_

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Asks the driver; 0 and a reason when there is no device to use.  Called once, before all else. */
int pg_cuda_find_devices(const char **why);
int pg_cuda_device_count(void);

/* What every device that can be used has: methods are chosen before the device is known. */
struct pg_cuda_limits {
  int processors;       /* streaming multiprocessors */
  int64_t cache_bytes;  /* level 2 */
  int64_t shared_bytes; /* the most that a block may have */
};
const struct pg_cuda_limits *pg_cuda_least_limits(void);

/* A function of the driver that the runtime API has no name for, as it was in this version of CUDA.
 * Places a pointer; false where the driver does not have it. */
bool pg_cuda_find_function(const char *name, unsigned int version, void *place);

/* CUDA's own number for a device of ours. */
int pg_cuda_number(int device);

/* While somebody captures a stream CUDA refuses this thread to ask and to wait, unless it says that
 * it knows what it does: what we ask about is not being captured.  relax gives what unrelax puts
 * back. */
enum cudaStreamCaptureMode pg_cuda_relax(void);
void pg_cuda_unrelax(enum cudaStreamCaptureMode mode);

/* The number of the capture into a graph that the stream is part of, which no other has; 0: none.
 * Captures that an error has broken are 1, until the program ends them. */
uint64_t pg_cuda_capture_of(cudaStream_t stream);

/* Between enter and leave the device is the calling thread's current one; leave brings back what
 * was current before, which may be another library's choice.  A thread without a context has CUDA's
 * device 0 for its current one: that device's context then stays, and the next call need not change
 * it again.  False: the device does not answer, and leave must not follow. */
bool pg_cuda_enter(int device, CUcontext *before);
void pg_cuda_leave(int device, CUcontext before);

/* Where an address lies. */
enum pg_cuda_place {
  PG_CUDA_PAGEABLE, /* memory of the host that CUDA does not know */
  PG_CUDA_PINNED,   /* the host's, in the device's sight */
  PG_CUDA_DEVICE
};
enum pg_cuda_place pg_cuda_place(const void *address);

/* cuMemsetD32Async, which the runtime API has no name for. */
cudaError_t pg_cuda_fill_words(void *dst, uint32_t value, size_t count, cudaStream_t stream);

/* Launches a __global__ function of ours, by its address on the host.  The device is current. */
struct pg_cuda_grid {
  uint32_t blocks, threads; /* of the grid, of a block */
  uint32_t shared_bytes;    /* of a block, beside what the kernel declares */
  cudaStream_t stream;
};
cudaError_t pg_cuda_launch_kernel(const void *kernel, const struct pg_cuda_grid *grid,
                                  void **arguments);

/* A stream that nobody else uses until it is given back idle, for what is done at once; NULL when
 * none can be had.  The device is current. */
cudaStream_t pg_cuda_borrow_stream(int device);
void pg_cuda_return_stream(int device, cudaStream_t stream);

/* When a finished event was reached, in pg_now_ns's time; 0 when CUDA cannot tell.  The device is
 * current. */
int64_t pg_cuda_event_time(int device, cudaEvent_t event);

#ifdef __cplusplus
}
#endif

#endif
