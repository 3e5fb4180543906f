/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/step_cuda.h"

#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/handle.h"
#include "core/value.h"
#include "cuda/mark_cuda.h"

/* A notify's word is the host's, and taken by several backends. */
static bool is_device_word(const struct pg_value *v) {
  return v->owner == NULL && pg_cuda_place(v->address) != PG_CUDA_PAGEABLE;
}

static bool is_device_wait(const struct pg_wait *wait) {
  if (wait->timeout_ns == PG_FOREVER) return pg_cuda_mark_is_issued(wait->mark);
  return pg_cuda_mark_done(wait->mark);
}

bool pg_cuda_step_is_device(const struct pg_step *step) {
  switch (step->kind) {
    case PG_STEP_KERNEL:
    case PG_STEP_COPY:
    case PG_STEP_MARK:
      return true;
    case PG_STEP_FILL:
      return pg_cuda_place(step->u.fill.dst) != PG_CUDA_PAGEABLE;
    case PG_STEP_WAIT:
      return is_device_wait(&step->u.wait);
    case PG_STEP_WRITE_VALUE:
      return is_device_word(&step->u.value);
    default:
      return false;
  }
}

/* A wait's time starts when the stream gets there; without a limit that does not matter. */
bool pg_cuda_step_needs_idle(const struct pg_step *step) {
  return step->kind != PG_STEP_WAIT || step->u.wait.timeout_ns != PG_FOREVER;
}

enum { PITCH_MAX = INT32_MAX }; /* CUDA's own limit for rows copied in one go */

/* Overlapping ranges move as if by memmove, which CUDA does not promise. */
static bool overlaps(const struct pg_copy *c) {
  const char *dst = c->dst, *src = c->src;
  return dst < src + c->width && src < dst + c->width && dst != src;
}

static cudaError_t move(const struct pg_copy *c, cudaStream_t stream) {
  void *between = NULL;
  cudaError_t error = cudaMallocAsync(&between, c->width, stream);
  if (error == cudaSuccess)
    error = cudaMemcpyAsync(between, c->src, c->width, cudaMemcpyDefault, stream);
  if (error == cudaSuccess)
    error = cudaMemcpyAsync(c->dst, between, c->width, cudaMemcpyDefault, stream);
  if (between != NULL) (void)cudaFreeAsync(between, stream);
  return error;
}

cudaError_t pg_cuda_issue_copy(const struct pg_copy *c, cudaStream_t stream) {
  if (c->height == 1 && overlaps(c)) return move(c, stream);
  if (c->height == 1) return cudaMemcpyAsync(c->dst, c->src, c->width, cudaMemcpyDefault, stream);
  if (c->dst_pitch <= PITCH_MAX && c->src_pitch <= PITCH_MAX)
    return cudaMemcpy2DAsync(c->dst, c->dst_pitch, c->src, c->src_pitch, c->width, c->height,
                             cudaMemcpyDefault, stream);
  cudaError_t error = cudaSuccess;
  for (size_t row = 0; row < c->height && error == cudaSuccess; row++)
    error = cudaMemcpyAsync((char *)c->dst + row * c->dst_pitch,
                            (const char *)c->src + row * c->src_pitch, c->width, cudaMemcpyDefault,
                            stream);
  return error;
}

cudaError_t pg_cuda_issue_fill(const struct pg_fill *fill, cudaStream_t stream) {
  if (fill->element_bytes == 1)
    return cudaMemsetAsync(fill->dst, (int)(fill->value & 0xff), fill->count, stream);
  return pg_cuda_fill_words(fill->dst, fill->value, fill->count, stream);
}

void pg_cuda_fill_on_host(const struct pg_fill *fill) {
  uint32_t *words = fill->dst;
  if (fill->element_bytes == 1)
    memset(fill->dst, (int)(fill->value & 0xff), fill->count);
  else
    for (size_t i = 0; i < fill->count; i++) words[i] = fill->value;
}

/* One element for the fill kernel: eight bytes in one motion. */
static cudaError_t write_word(const struct pg_value *v, cudaStream_t stream) {
  const struct pg_task task = {.choice = {.method = &pg_cuda_fill_rows, .items = 1},
                               .problem = {.kernel = PG_FILL,
                                           .args.fill = {.dst = v->address,
                                                         .count = 1,
                                                         .stride = 1,
                                                         .width = 1,
                                                         .value = v->value,
                                                         .element_bytes = 8}}};
  const struct pg_cuda_call call = {.task = &task, .stream = stream};
  return pg_cuda_launch(&call);
}

cudaError_t pg_cuda_step_issue(const struct pg_step *step, struct pg_cuda_report *report,
                               cudaStream_t stream) {
  const struct pg_cuda_call call = {&step->u.kernel.task, report, stream};
  cudaError_t error = cudaSuccess;
  switch (step->kind) {
    case PG_STEP_KERNEL:
      error = pg_cuda_launch(&call);
      break;
    case PG_STEP_COPY:
      error = pg_cuda_issue_copy(&step->u.copy, stream);
      break;
    case PG_STEP_FILL:
      error = pg_cuda_issue_fill(&step->u.fill, stream);
      break;
    case PG_STEP_WAIT:
      error = pg_cuda_mark_wait_on(step->u.wait.mark, stream);
      pg_cuda_mark_release(step->u.wait.mark);
      break;
    case PG_STEP_WRITE_VALUE:
      error = write_word(&step->u.value, stream);
      break;
    default: /* PG_STEP_MARK */
      error = pg_cuda_mark_issue(step->u.mark, stream);
      pg_cuda_mark_release(step->u.mark);
  }
  if (error != cudaSuccess) (void)cudaGetLastError(); /* it is ours, not the program's */
  return error;
}

static aclError too_late(struct pg_failure *why, const char *what, int64_t timeout_ns) {
  why->code = ACL_ERROR_RT_WAIT_TIMEOUT;
  snprintf(why->text, sizeof why->text, "%s was not satisfied within %lld ms", what,
           (long long)(timeout_ns / PG_NS_PER_MS));
  return why->code;
}

static aclError cuda_refused(struct pg_failure *why, const char *what, cudaError_t error) {
  (void)cudaGetLastError();
  why->code = ACL_ERROR_RT_INTERNAL_ERROR;
  snprintf(why->text, sizeof why->text, "CUDA could not %s: %s", what, cudaGetErrorString(error));
  return why->code;
}

/* With a time limit the thread waits; without one it hands the wait on once CUDA can do it. */
static aclError wait_for_mark(struct pg_queue *queue, const struct pg_wait *wait,
                              struct pg_failure *why) {
  const bool limited = wait->timeout_ns != PG_FOREVER;
  const bool in_time =
      pg_cuda_mark_await(wait->mark, limited, pg_deadline(wait->timeout_ns), &queue->stop);
  cudaError_t error = cudaSuccess;
  if (!limited) error = pg_cuda_mark_wait_on(wait->mark, queue->stream);
  pg_cuda_mark_release(wait->mark);
  if (!in_time) return too_late(why, "a wait for an event", wait->timeout_ns);
  return error == cudaSuccess ? ACL_SUCCESS : cuda_refused(why, "wait for an event", error);
}

/* In device memory the word is copied out for each look. */
static cudaError_t look_at(int device, const uint64_t *address, bool on_device, uint64_t *found) {
  if (!on_device) {
    *found = __atomic_load_n(address, __ATOMIC_ACQUIRE);
    return cudaSuccess;
  }
  const cudaStream_t stream = pg_cuda_borrow_stream(device);
  if (stream == NULL) return cudaErrorMemoryAllocation;
  cudaError_t error =
      cudaMemcpyAsync(found, address, sizeof *found, cudaMemcpyDeviceToHost, stream);
  if (error == cudaSuccess) error = cudaStreamSynchronize(stream);
  pg_cuda_return_stream(device, stream);
  return error;
}

static bool is_satisfied(const struct pg_value *v, uint64_t found) {
  while (pg_value_satisfies(found, v->value, v->comparison)) /* of several takers one wins */
    if (!v->take || __atomic_compare_exchange_n(v->address, &found, 0, false, __ATOMIC_ACQ_REL,
                                                __ATOMIC_ACQUIRE))
      return true;
  return false;
}

static aclError wait_value(struct pg_queue *queue, const struct pg_value *v,
                           struct pg_failure *why) {
  const bool on_device = v->owner == NULL && pg_cuda_place(v->address) == PG_CUDA_DEVICE;
  const int64_t deadline = pg_deadline(v->timeout_ns);
  cudaError_t error = cudaSuccess;
  uint64_t found = 0;
  int looks = 0;
  bool late = false;
  while (!atomic_load(&queue->stop) && !late) {
    error = look_at(queue->options.device, v->address, on_device, &found);
    if (error != cudaSuccess || is_satisfied(v, found)) break;
    late = deadline != PG_FOREVER && pg_now_ns() >= deadline;
    if (!late) pg_cuda_pause(&looks, deadline);
  }
  pg_release(v->owner);
  if (late) return too_late(why, "a wait", v->timeout_ns);
  return error == cudaSuccess ? ACL_SUCCESS : cuda_refused(why, "look at a value", error);
}

aclError pg_cuda_step_run(struct pg_queue *queue, const struct pg_step *step,
                          struct pg_failure *why) {
  switch (step->kind) {
    case PG_STEP_CALL:
      return step->u.call.fn(&step->u.call, why);
    case PG_STEP_WAIT:
      return wait_for_mark(queue, &step->u.wait, why);
    case PG_STEP_FILL:
      pg_cuda_fill_on_host(&step->u.fill);
      return ACL_SUCCESS;
    case PG_STEP_WRITE_VALUE:
      __atomic_store_n(step->u.value.address, step->u.value.value, __ATOMIC_RELEASE);
      pg_release(step->u.value.owner);
      return ACL_SUCCESS;
    default: /* PG_STEP_WAIT_VALUE */
      return wait_value(queue, &step->u.value, why);
  }
}

void pg_cuda_step_discard(const struct pg_step *step) {
  if (step->kind == PG_STEP_WAIT) {
    pg_cuda_mark_release(step->u.wait.mark);
  } else if (step->kind == PG_STEP_MARK) {
    pg_cuda_mark_drop(step->u.mark);
    pg_cuda_mark_release(step->u.mark);
  } else if (step->kind == PG_STEP_CALL && step->u.call.discard != NULL) {
    step->u.call.discard(&step->u.call);
  } else if (step->kind == PG_STEP_WRITE_VALUE || step->kind == PG_STEP_WAIT_VALUE) {
    pg_release(step->u.value.owner);
  }
}
