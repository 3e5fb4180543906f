/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/device_cuda.h"

#include <cudaTypedefs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"

enum {
  DEVICES_MAX = 64,
  SPARE_STREAMS = 16,
  LEAST_MAJOR = 8, /* compute capability the kernels are built for */
  CHAIN_NS = 2000000000,
  KERNELS_MAX = 2048,       /* places in the table of kernels, a power of two */
  SHARED_ALWAYS = 48 * 1024 /* bytes that a block may have without asking for more */
};

struct device {
  int number;                        /* CUDA's; the same for ever */
  int spares;                        /* how many there are; guarded like what follows */
  pthread_mutex_t lock;              /* guards what follows */
  _Atomic(CUcontext) context;        /* the primary one; NULL: not asked for yet */
  cudaStream_t spare[SPARE_STREAMS]; /* idle streams */
  cudaEvent_t base;                  /* an event whose time is known; NULL: none yet */
  int64_t base_ns;
};

static struct device devices[DEVICES_MAX];
static int device_count;
static struct pg_cuda_limits limits = {INT32_MAX, INT64_MAX, INT64_MAX};

/* The driver's functions for which the runtime API has none, and its launch, which is quicker. */
static struct {
  PFN_cuDeviceGet_v2000 device_get;
  PFN_cuDevicePrimaryCtxRetain_v7000 retain;
  PFN_cuCtxGetCurrent_v4000 get_current;
  PFN_cuCtxSetCurrent_v4000 set_current;
  PFN_cuMemsetD32Async_v3020 fill_words;
  PFN_cuStreamGetCaptureInfo_v10010 capture_info;
  PFN_cuLaunchKernel_v4000 launch;
} driver;

bool pg_cuda_find_function(const char *name, unsigned int version, void *place) {
  enum cudaDriverEntryPointQueryResult result;
  void *function = NULL;
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion(name, &function, version, cudaEnableDefault, &result);
  memcpy(place, &function, sizeof function);
  return error == cudaSuccess && result == cudaDriverEntryPointSuccess && function != NULL;
}

static bool find_functions(void) {
  return pg_cuda_find_function("cuDeviceGet", 2000, &driver.device_get) &&
         pg_cuda_find_function("cuDevicePrimaryCtxRetain", 7000, &driver.retain) &&
         pg_cuda_find_function("cuCtxGetCurrent", 4000, &driver.get_current) &&
         pg_cuda_find_function("cuCtxSetCurrent", 4000, &driver.set_current) &&
         pg_cuda_find_function("cuMemsetD32Async", 3020, &driver.fill_words) &&
         pg_cuda_find_function("cuStreamGetCaptureInfo", 10010, &driver.capture_info) &&
         pg_cuda_find_function("cuLaunchKernel", 4000, &driver.launch);
}

/* 0 where CUDA does not answer. */
static int attribute_of(int number, enum cudaDeviceAttr attribute) {
  int value = 0;
  return cudaDeviceGetAttribute(&value, attribute, number) == cudaSuccess ? value : 0;
}

static void lower_limits(int number) {
  const int processors = attribute_of(number, cudaDevAttrMultiProcessorCount);
  const int cache = attribute_of(number, cudaDevAttrL2CacheSize);
  const int shared = attribute_of(number, cudaDevAttrMaxSharedMemoryPerBlockOptin);
  if (processors < limits.processors) limits.processors = processors;
  if (cache < limits.cache_bytes) limits.cache_bytes = cache;
  if (shared < limits.shared_bytes) limits.shared_bytes = shared;
}

static void add_device(int number) {
  if (attribute_of(number, cudaDevAttrComputeCapabilityMajor) < LEAST_MAJOR ||
      device_count == DEVICES_MAX)
    return;
  lower_limits(number);
  struct device *device = &devices[device_count++];
  device->number = number;
  pthread_mutex_init(&device->lock, NULL);
}

/* What keeps the driver from answering; NULL when it does. */
static const char *driver_trouble(int *found) {
  static char text[160];
  int version = 0;
  (void)cudaDriverGetVersion(&version);
  if (version == 0) return "no driver answers";
  if (version / 1000 < CUDART_VERSION / 1000) {
    snprintf(text, sizeof text, "the driver serves CUDA %d.%d, it must be %d.0 or newer",
             version / 1000, version % 1000 / 10, CUDART_VERSION / 1000);
    return text;
  }
  const cudaError_t error = cudaGetDeviceCount(found);
  if (error == cudaSuccess && find_functions()) return NULL;
  (void)cudaGetLastError();
  snprintf(text, sizeof text, "the driver says: %s",
           cudaGetErrorString(error == cudaSuccess ? cudaErrorSymbolNotFound : error));
  return text;
}

int pg_cuda_find_devices(const char **why) {
  int found = 0;
  *why = driver_trouble(&found);
  if (*why != NULL) return 0;
  for (int i = 0; i < found; i++) add_device(i);
  if (found == 0)
    *why = "the driver has no device";
  else if (device_count == 0)
    *why = "no device has compute capability 8.0 or more";
  return device_count;
}

int pg_cuda_device_count(void) { return device_count; }
const struct pg_cuda_limits *pg_cuda_least_limits(void) { return &limits; }
int pg_cuda_number(int device) { return devices[device].number; }

/* Making a context takes long, so a device gets it when first used; it is kept for good. */
static CUcontext context_of(struct device *device) {
  CUcontext context = atomic_load_explicit(&device->context, memory_order_acquire);
  if (context != NULL) return context;
  CUdevice handle;
  pthread_mutex_lock(&device->lock);
  context = atomic_load(&device->context);
  if (context == NULL && driver.device_get(&handle, device->number) == CUDA_SUCCESS &&
      driver.retain(&context, handle) == CUDA_SUCCESS)
    atomic_store_explicit(&device->context, context, memory_order_release);
  pthread_mutex_unlock(&device->lock);
  return context;
}

bool pg_cuda_enter(int device, CUcontext *before) {
  const CUcontext context = context_of(&devices[device]);
  if (context == NULL || driver.get_current(before) != CUDA_SUCCESS) return false;
  return *before == context || driver.set_current(context) == CUDA_SUCCESS;
}

void pg_cuda_leave(int device, CUcontext before) {
  const bool stays = before == NULL && devices[device].number == 0;
  if (!stays && before != context_of(&devices[device])) (void)driver.set_current(before);
}

enum cudaStreamCaptureMode pg_cuda_relax(void) {
  enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  return cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess ? mode
                                                                   : cudaStreamCaptureModeGlobal;
}

void pg_cuda_unrelax(enum cudaStreamCaptureMode mode) {
  (void)cudaThreadExchangeStreamCaptureMode(&mode);
}

uint64_t pg_cuda_capture_of(cudaStream_t stream) {
  enum { NONE, BROKEN, FIRST };
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t id = 0;
  if (driver.capture_info(stream, &status, &id) != CUDA_SUCCESS) return NONE;
  if (status == CU_STREAM_CAPTURE_STATUS_ACTIVE) return FIRST + id;
  return status == CU_STREAM_CAPTURE_STATUS_NONE ? NONE : BROKEN;
}

enum pg_cuda_place pg_cuda_place(const void *address) {
  struct cudaPointerAttributes about;
  if (cudaPointerGetAttributes(&about, address) != cudaSuccess) {
    (void)cudaGetLastError();
    return PG_CUDA_PAGEABLE;
  }
  if (about.type == cudaMemoryTypeDevice || about.type == cudaMemoryTypeManaged)
    return PG_CUDA_DEVICE;
  return about.type == cudaMemoryTypeHost ? PG_CUDA_PINNED : PG_CUDA_PAGEABLE;
}

cudaError_t pg_cuda_fill_words(void *dst, uint32_t value, size_t count, cudaStream_t stream) {
  const CUresult result = driver.fill_words((CUdeviceptr)(uintptr_t)dst, value, count, stream);
  return (cudaError_t)result; /* both count alike */
}

/* --- Kernels --- */

/* The runtime API takes a kernel by its address and has to find it again in every launch.  We keep
 * the handles of kernels, which are the same for all devices, in a table of our own and launch with
 * them.  A place is written once: the handle first, then the address, by which others find it. */
static struct {
  _Atomic(const void *) kernel; /* NULL: the place is free */
  cudaKernel_t handle;
} kernels[KERNELS_MAX];
static pthread_mutex_t kernels_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the writing of places */

/* The place of a kernel, or the free one in which it would be; -1: there is neither. */
static int place_of_kernel(const void *kernel) {
  const size_t first = (uintptr_t)kernel / 16;
  for (size_t i = 0; i < KERNELS_MAX; i++) {
    const size_t at = (first + i) % KERNELS_MAX;
    const void *found = atomic_load_explicit(&kernels[at].kernel, memory_order_acquire);
    if (found == kernel || found == NULL) return (int)at;
  }
  return -1;
}

static cudaError_t ask_for_handle(const void *kernel, cudaKernel_t *handle) {
  const cudaError_t error = cudaGetKernel(handle, kernel);
  if (error != cudaSuccess) return error;
  pthread_mutex_lock(&kernels_lock);
  const int at = place_of_kernel(kernel);
  if (at >= 0 && atomic_load(&kernels[at].kernel) == NULL) {
    kernels[at].handle = *handle;
    atomic_store_explicit(&kernels[at].kernel, kernel, memory_order_release);
  }
  pthread_mutex_unlock(&kernels_lock);
  return cudaSuccess;
}

static cudaError_t handle_of(const void *kernel, cudaKernel_t *handle) {
  const int at = place_of_kernel(kernel);
  if (at < 0 || atomic_load_explicit(&kernels[at].kernel, memory_order_acquire) == NULL)
    return ask_for_handle(kernel, handle);
  *handle = kernels[at].handle;
  return cudaSuccess;
}

cudaError_t pg_cuda_launch_kernel(const void *kernel, const struct pg_cuda_grid *grid,
                                  void **arguments) {
  cudaKernel_t handle;
  cudaError_t error = handle_of(kernel, &handle);
  if (error == cudaSuccess && grid->shared_bytes > SHARED_ALWAYS)
    error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 (int)grid->shared_bytes);
  if (error != cudaSuccess) return error;
  const CUresult result = driver.launch((CUfunction)handle, grid->blocks, 1, 1, grid->threads, 1, 1,
                                        grid->shared_bytes, grid->stream, arguments, NULL);
  return (cudaError_t)result; /* both count alike */
}

cudaStream_t pg_cuda_borrow_stream(int device) {
  struct device *d = &devices[device];
  cudaStream_t stream = NULL;
  pthread_mutex_lock(&d->lock);
  if (d->spares > 0) stream = d->spare[--d->spares];
  pthread_mutex_unlock(&d->lock);
  if (stream != NULL) return stream;
  if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess) return stream;
  (void)cudaGetLastError();
  return NULL;
}

void pg_cuda_return_stream(int device, cudaStream_t stream) {
  struct device *d = &devices[device];
  pthread_mutex_lock(&d->lock);
  const bool kept = d->spares < SPARE_STREAMS;
  if (kept) d->spare[d->spares++] = stream;
  pthread_mutex_unlock(&d->lock);
  if (!kept) (void)cudaStreamDestroy(stream);
}

/* An event reached just now, and when that was by the host's clock, within a few microseconds. */
static cudaEvent_t event_of_now(int device, int64_t *now_ns) {
  cudaEvent_t event = NULL;
  const cudaStream_t stream = pg_cuda_borrow_stream(device);
  bool ok = stream != NULL && cudaEventCreate(&event) == cudaSuccess;
  ok = ok && cudaEventRecord(event, stream) == cudaSuccess; /* the first of a stream is slow */
  ok = ok && cudaEventSynchronize(event) == cudaSuccess;
  const int64_t before = pg_now_ns();
  ok = ok && cudaEventRecord(event, stream) == cudaSuccess;
  ok = ok && cudaEventSynchronize(event) == cudaSuccess;
  *now_ns = before + (pg_now_ns() - before) / 2;
  if (stream != NULL) pg_cuda_return_stream(device, stream);
  if (ok) return event;
  if (event != NULL) (void)cudaEventDestroy(event);
  (void)cudaGetLastError();
  return NULL;
}

/* event - base in ns; CUDA's answer is a float of milliseconds, good to 60 ns for one second. */
static bool elapsed(cudaEvent_t base, cudaEvent_t event, int64_t *ns) {
  float ms;
  if (base == NULL || cudaEventElapsedTime(&ms, base, event) != cudaSuccess) {
    (void)cudaGetLastError();
    return false;
  }
  *ns = (int64_t)((double)ms * (double)PG_NS_PER_MS);
  return true;
}

/* Takes a new base.  Near the old one it is placed by CUDA's clock, so that differences of times
 * told before and after stay exact; far from it the float says less than the host's clock. */
static void rebase(struct device *d, cudaEvent_t event, int64_t now_ns) {
  int64_t since;
  if (elapsed(d->base, event, &since) && since < CHAIN_NS) now_ns = d->base_ns + since;
  if (d->base != NULL) (void)cudaEventDestroy(d->base);
  d->base = event;
  d->base_ns = now_ns;
}

int64_t pg_cuda_event_time(int device, cudaEvent_t event) {
  struct device *d = &devices[device];
  int64_t since = 0, now_ns, time = 0;
  pthread_mutex_lock(&d->lock);
  bool known = elapsed(d->base, event, &since);
  const int64_t age = pg_now_ns() - (d->base_ns + since);
  pthread_mutex_unlock(&d->lock);
  /* nearer to this moment than to the base, and not near that: measure from here */
  const cudaEvent_t now =
      !known || (since > PG_NS_PER_S && since > age) ? event_of_now(device, &now_ns) : NULL;
  pthread_mutex_lock(&d->lock);
  if (now != NULL) rebase(d, now, now_ns);
  known = elapsed(d->base, event, &since);
  if (known) time = d->base_ns + since;
  pthread_mutex_unlock(&d->lock);
  return time;
}
