/* SPDX-License-Identifier: Apache-2.0 */
/* What bench.py needs of CUDA itself: the limits of the machine, times by events and by replays of
 * a graph, and max pooling with atomic additions for comparison. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "native.h"

static cudaError_t trouble;

static bool good(cudaError_t status) {
  if (status != cudaSuccess) trouble = status;
  return status == cudaSuccess;
}

const char *cuda_trouble(void) { return cudaGetErrorString(trouble); }

int cuda_describe(char *name, int64_t *cache_bytes, int64_t *free_bytes) {
  cudaDeviceProp found;
  size_t available, total;
  if (!good(cudaGetDeviceProperties(&found, 0)) || !good(cudaMemGetInfo(&available, &total)))
    return -1;
  snprintf(name, BENCH_TEXT, "%s", found.name);
  *cache_bytes = found.l2CacheSize;
  *free_bytes = (int64_t)available;
  return 0;
}

int64_t cuda_multiprocessors(void) {
  int count = 0;
  return good(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0)) ? count : -1;
}

/* --- limits -----------------------------------------------------------------------------------
 */

enum { LIMIT_BLOCK = 512, LIMIT_UNROLL = 4, LIMIT_RUNS = 21 };
static const size_t LIMIT_BYTES = (size_t)2 << 30; /* far beyond any cache */

__device__ static uint32_t scatter_bits(uint32_t h) {
  h = (h ^ (h >> 15)) * 0x85ebca77u;
  return h ^ (h >> 13);
}

/* What was read must be needed for something. */
template <bool Streaming>
__global__ void read_all(const uint4 *from, uint32_t *sink) {
  const size_t first = (size_t)blockIdx.x * LIMIT_BLOCK * LIMIT_UNROLL + threadIdx.x;
  uint4 v[LIMIT_UNROLL];
#pragma unroll
  for (int i = 0; i < LIMIT_UNROLL; i++)
    v[i] =
        Streaming ? __ldcs(from + first + i * LIMIT_BLOCK) : __ldg(from + first + i * LIMIT_BLOCK);
  uint32_t sum = 0;
#pragma unroll
  for (int i = 0; i < LIMIT_UNROLL; i++) sum |= v[i].x ^ v[i].y ^ v[i].z ^ v[i].w;
  if (sum == 0) *sink = 1;
}

template <bool Streaming>
__global__ void fill_all(uint4 *to, uint32_t seed) {
  const size_t first = (size_t)blockIdx.x * LIMIT_BLOCK * LIMIT_UNROLL + threadIdx.x;
#pragma unroll
  for (int i = 0; i < LIMIT_UNROLL; i++) {
    const size_t at = first + i * LIMIT_BLOCK;
    const uint32_t bits = scatter_bits((uint32_t)at * 0x9e3779b1u + seed);
    const uint4 value = make_uint4(bits, bits ^ 0x55555555u, bits * 3, bits + 0x12345u);
    if (Streaming)
      __stcs(to + at, value);
    else
      to[at] = value;
  }
}

static void run_limit(bool fill, bool streaming, uint4 *memory, uint32_t seed) {
  const unsigned blocks = (unsigned)(LIMIT_BYTES / sizeof(uint4) / LIMIT_BLOCK / LIMIT_UNROLL);
  uint32_t *sink = (uint32_t *)memory;
  if (fill && streaming) fill_all<true><<<blocks, LIMIT_BLOCK>>>(memory, seed);
  if (fill && !streaming) fill_all<false><<<blocks, LIMIT_BLOCK>>>(memory, seed);
  if (!fill && streaming) read_all<true><<<blocks, LIMIT_BLOCK>>>(memory, sink);
  if (!fill && !streaming) read_all<false><<<blocks, LIMIT_BLOCK>>>(memory, sink);
}

static float median(std::vector<float> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

struct limit_run {
  bool fill, streaming;
  uint4 *memory;
  uint32_t seed;
};

static int limit_work(void *what, int64_t) {
  limit_run *run = (limit_run *)what;
  run_limit(run->fill, run->streaming, run->memory, run->seed++);
  return 0;
}

/* The better of both kinds of access. */
static double limit_rate(bool fill) {
  uint4 *memory = NULL;
  double best = -1;
  if (!good(cudaMalloc(&memory, LIMIT_BYTES))) return -1;
  run_limit(true, false, memory, 1); /* data without pattern, for reading too */
  for (int streaming = 0; streaming < 2; streaming++) {
    limit_run run = {fill, streaming != 0, memory, 2};
    std::vector<float> us(LIMIT_RUNS);
    const cuda_series series = {1, 0, LIMIT_RUNS, 1};
    if (cuda_samples(NULL, limit_work, &run, &series, us.data()) == 0)
      best = std::max(best, (double)LIMIT_BYTES / median(us));
  }
  (void)cudaFree(memory);
  return best;
}

double cuda_read_rate(void) { return limit_rate(false); }
double cuda_fill_rate(void) { return limit_rate(true); }

/* --- times ------------------------------------------------------------------------------------
 */

/* Keeps the stream busy while calls are queued behind it: the device then never waits for them. */
__global__ void spin(uint64_t ns) {
  uint64_t begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  while (now - begin < ns);
}

static bool make_events(std::vector<cudaEvent_t> &events, size_t count) {
  for (size_t i = 0; i < count; i++) {
    cudaEvent_t event;
    if (!good(cudaEventCreate(&event))) return false;
    events.push_back(event);
  }
  return true;
}

static bool queue_samples(cudaStream_t stream, bench_work *work, void *what, const cuda_series &s,
                          const std::vector<cudaEvent_t> &events) {
  int64_t set = s.first;
  for (int64_t i = 0; i < s.count; i++) {
    if (!good(cudaEventRecord(events[2 * i], stream))) return false;
    for (int64_t call = 0; call < s.batch; call++, set++)
      if (work(what, set % s.sets) != 0) return false;
    if (!good(cudaEventRecord(events[2 * i + 1], stream))) return false;
  }
  return true;
}

int cuda_samples(void *stream_handle, bench_work *work, void *what,
                 const struct cuda_series *series, float *us) {
  const cudaStream_t stream = (cudaStream_t)stream_handle;
  std::vector<cudaEvent_t> events;
  trouble = cudaSuccess;
  bool right = make_events(events, 2 * (size_t)series->count);
  if (right) spin<<<1, 1, 0, stream>>>(2000000);
  right = right && queue_samples(stream, work, what, *series, events);
  right = good(cudaStreamSynchronize(stream)) && right;
  for (int64_t i = 0; right && i < series->count; i++) {
    right = good(cudaEventElapsedTime(&us[i], events[2 * i], events[2 * i + 1]));
    us[i] *= 1000.0f / (float)series->batch;
  }
  for (cudaEvent_t event : events) (void)cudaEventDestroy(event);
  return right ? 0 : -1;
}

static bool capture(cudaStream_t stream, bench_work *work, void *what, int calls,
                    cudaGraphExec_t *exec) {
  cudaGraph_t graph = NULL;
  bool right = good(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  if (!right) return false;
  for (int i = 0; right && i < calls; i++) right = work(what, 0) == 0;
  right = good(cudaStreamEndCapture(stream, &graph)) && right;
  right = right && good(cudaGraphInstantiate(exec, graph, 0));
  if (graph != NULL) (void)cudaGraphDestroy(graph);
  return right;
}

struct replayed {
  cudaGraphExec_t exec;
  cudaStream_t stream;
};

static int replay_work(void *what, int64_t) {
  const replayed *r = (const replayed *)what;
  return good(cudaGraphLaunch(r->exec, r->stream)) ? 0 : -1;
}

double cuda_replay(void *stream, bench_work *work, void *what, int calls, int replays) {
  replayed r = {NULL, (cudaStream_t)stream};
  std::vector<float> us(replays);
  const cuda_series series = {1, 0, replays, 1};
  trouble = cudaSuccess;
  bool right = capture(r.stream, work, what, calls, &r.exec);
  right = right && good(cudaGraphLaunch(r.exec, r.stream)) &&
          good(cudaStreamSynchronize(r.stream)) &&
          cuda_samples(stream, replay_work, &r, &series, us.data()) == 0;
  if (r.exec != NULL) (void)cudaGraphExecDestroy(r.exec);
  return right ? median(us) / calls : -1;
}

/* --- zeros and atomic additions ---------------------------------------------------------------
 */

/* Outputs in the order of their memory: plane by plane, or channels last. */
struct scatter {
  int64_t count, outputs, channels;
  int64_t step_n, step_c, step_cell; /* of gradInput */
  bool last;
};

template <typename T, typename I, typename N>
__global__ void scatter_add(const T *grad, const I *index, T *to, scatter s) {
  const N i = (N)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= (N)s.count) return;
  const N channels = (N)s.channels, outputs = (N)s.outputs;
  const N plane = i / outputs;
  const N n = s.last ? i / (outputs * channels) : plane / channels;
  const N c = s.last ? i % channels : plane % channels;
  const int64_t cell = (int64_t)index[i];
  atomicAdd(to + (int64_t)n * s.step_n + (int64_t)c * s.step_c + cell * s.step_cell, grad[i]);
}

template <typename T, typename I>
static void launch_scatter(cudaStream_t stream, const scatter &s, const void *grad,
                           const void *index, void *to) {
  const unsigned blocks = (unsigned)((s.count + 255) / 256);
  if (s.count < INT32_MAX)
    scatter_add<T, I, uint32_t>
        <<<blocks, 256, 0, stream>>>((const T *)grad, (const I *)index, (T *)to, s);
  else
    scatter_add<T, I, uint64_t>
        <<<blocks, 256, 0, stream>>>((const T *)grad, (const I *)index, (T *)to, s);
}

template <typename T>
static void choose_index(cudaStream_t stream, const bench_facts *f, const scatter &s,
                         const void *grad, const void *index, void *to) {
  if (f->index_bytes == 8)
    launch_scatter<T, int64_t>(stream, s, grad, index, to);
  else
    launch_scatter<T, int32_t>(stream, s, grad, index, to);
}

int cuda_scatter(void *stream_handle, const struct bench_facts *f, const void *grad_out,
                 const void *index, void *grad_in) {
  const cudaStream_t stream = (cudaStream_t)stream_handle;
  const int64_t outputs = f->out[2] * f->out[3] * f->out[4];
  const scatter s = {f->out[0] * f->out[1] * outputs,
                     outputs,
                     f->out[1],
                     f->in_step[0],
                     f->in_step[1],
                     f->in_step[4],
                     f->in_step[4] != 1};
  if (!good(cudaMemsetAsync(grad_in, 0, (size_t)f->write_bytes, stream))) return -1;
  switch (f->type) { /* F32, F16, BF16, F64 of tests/float_format.h */
    case 0:
      choose_index<float>(stream, f, s, grad_out, index, grad_in);
      break;
    case 1:
      choose_index<__half>(stream, f, s, grad_out, index, grad_in);
      break;
    case 2:
      choose_index<__nv_bfloat16>(stream, f, s, grad_out, index, grad_in);
      break;
    default:
      choose_index<double>(stream, f, s, grad_out, index, grad_in);
  }
  return good(cudaGetLastError()) ? 0 : -1;
}

/* --- what a launch costs the host
 * -----------------------------------------------------------------
 */

__global__ void do_nothing(void) {}

double cuda_launch_host(void *stream, int launches) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < launches; i++) do_nothing<<<1, 32, 0, (cudaStream_t)stream>>>();
  const std::chrono::duration<double, std::micro> us = std::chrono::steady_clock::now() - start;
  const bool right = good(cudaGetLastError()) && good(cudaStreamSynchronize((cudaStream_t)stream));
  return right ? us.count() / launches : -1;
}

/* --- what came out ----------------------------------------------------------------------------
 */

template <typename T>
__global__ void count_poison(const T *cells, int64_t count, unsigned long long *found) {
  unsigned long long mine = 0;
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
       i += (int64_t)gridDim.x * blockDim.x)
    mine += cells[i] == (T) ~(T)0;
  if (mine > 0) atomicAdd(found, mine);
}

int64_t cuda_unwritten(const void *result, int64_t elements, int64_t element_bytes) {
  unsigned long long *counter = NULL, found = 0;
  if (!good(cudaMalloc(&counter, sizeof found))) return -1;
  bool right = good(cudaMemset(counter, 0, sizeof found));
  if (element_bytes == 2)
    count_poison<uint16_t><<<1056, 256>>>((const uint16_t *)result, elements, counter);
  else if (element_bytes == 4)
    count_poison<uint32_t><<<1056, 256>>>((const uint32_t *)result, elements, counter);
  else
    count_poison<uint64_t><<<1056, 256>>>((const uint64_t *)result, elements, counter);
  right = good(cudaMemcpy(&found, counter, sizeof found, cudaMemcpyDeviceToHost)) && right;
  (void)cudaFree(counter);
  return right ? (int64_t)found : -1;
}
