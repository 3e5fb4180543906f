/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA for tests that play a program with CUDA code of its own: the driver's functions, under their
 * own names and found at run time, since tests are built where there is no CUDA. */
#ifndef PG_TESTS_CUDA_DRIVER_H_
#define PG_TESTS_CUDA_DRIVER_H_

#include <dlfcn.h>

#include "expect.h"

#define CUDA_FUNCTIONS(X)                                                    \
  X(cuCtxGetCurrent, (void **context))                                       \
  X(cuCtxSetCurrent, (void *context))                                        \
  X(cuCtxCreate_v2, (void **context, unsigned flags, int device))            \
  X(cuCtxDestroy_v2, (void *context))                                        \
  X(cuDevicePrimaryCtxRetain, (void **context, int device))                  \
  X(cuStreamGetCtx, (void *stream, void **context))                          \
  X(cuStreamWaitEvent, (void *stream, void *event, unsigned flags))          \
  X(cuEventCreate, (void **event, unsigned flags))                           \
  X(cuEventRecord, (void *event, void *stream))                              \
  X(cuEventDestroy_v2, (void *event))                                        \
  X(cuStreamBeginCapture_v2, (void *stream, int mode))                       \
  X(cuStreamIsCapturing, (void *stream, int *status))                        \
  X(cuStreamEndCapture, (void *stream, void **graph))                        \
  X(cuGraphGetNodes, (void *graph, void **nodes, size_t *count))             \
  X(cuGraphInstantiateWithFlags, (void **exec, void *graph, uint64_t flags)) \
  X(cuGraphLaunch, (void *exec, void *stream))                               \
  X(cuGraphExecDestroy, (void *exec))                                        \
  X(cuGraphDestroy, (void *graph))

#define CUDA_FIELD(name, arguments) int(*name) arguments;
static struct { CUDA_FUNCTIONS(CUDA_FIELD) } cuda;

enum { CUDA_CAPTURE_GLOBAL, CUDA_CAPTURE_THREAD_LOCAL, CUDA_CAPTURE_RELAXED };
enum { CUDA_NOT_CAPTURED, CUDA_CAPTURED, CUDA_CAPTURE_BROKEN }; /* cuStreamIsCapturing */
enum { CUDA_CAPTURE_INVALIDATED = 901 };

/* Whatever is missing is named. */
static inline void cuda_open(void) {
  void *file = dlopen("libcuda.so.1", RTLD_NOW);
  if (file == NULL) fail_msg("%s", dlerror());
#define CUDA_FIND(name, arguments)           \
  *(void **)&cuda.name = dlsym(file, #name); \
  if (cuda.name == NULL) fail_msg("%s", dlerror());
  CUDA_FUNCTIONS(CUDA_FIND)
#undef CUDA_FIND
}

#define CUDA_OK(call)                                                \
  do {                                                               \
    const int status_ = (call);                                      \
    if (status_ != 0) fail_msg("%s gave CUDA's %d", #call, status_); \
  } while (0)

#endif
