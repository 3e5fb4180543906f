/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/step.h"

#include <pthread.h>
#include <string.h>

#include "core/clock.h"
#include "core/handle.h"
#include "core/value.h"
#include "cpu/fill.h"
#include "cpu/float_env.h"
#include "cpu/method.h"
#include "cpu/workers.h"

enum {
  BYTES_PER_THREAD = 65536, /* with fewer bytes another thread costs more than it brings */
  BYTES_TO_WAKE = 2097152,  /* from here on a step is long whatever it computes */
  COPY_BLOCK = 262144
};

/* Runs fn with as many threads as so many bytes are worth. */
static void run_items(pg_items_fn *fn, const void *args, int64_t items, int64_t bytes,
                      struct pg_scratch *scratch) {
  const int64_t threads = 1 + bytes / BYTES_PER_THREAD;
  pg_workers_run(fn, args, items, threads > INT32_MAX ? INT32_MAX : (int)threads,
                 bytes >= BYTES_TO_WAKE, scratch);
}

/* An item is a row of the copy, or a block of its only row. */
static void copy_items(const void *args, int64_t begin, int64_t end, struct pg_scratch *scratch) {
  const struct pg_copy *c = args;
  if (c->height == 1) {
    const size_t from = (size_t)begin * COPY_BLOCK;
    const size_t to = (size_t)end * COPY_BLOCK < c->width ? (size_t)end * COPY_BLOCK : c->width;
    memmove((char *)c->dst + from, (const char *)c->src + from, to - from);
    return;
  }
  for (int64_t row = begin; row < end && !pg_is_stopped(scratch); row++)
    memmove((char *)c->dst + (size_t)row * c->dst_pitch,
            (const char *)c->src + (size_t)row * c->src_pitch, c->width);
}

/* Ranges that overlap are copied by one memmove. */
static bool overlaps(const struct pg_copy *c) {
  const char *dst = c->dst, *src = c->src;
  return dst < src + c->width && src < dst + c->width;
}

void pg_copy_run(const struct pg_copy *copy, const atomic_bool *stop) {
  if (copy->height == 1 && overlaps(copy)) {
    memmove(copy->dst, copy->src, copy->width);
    return;
  }
  const int64_t items = copy->height == 1 ? (int64_t)((copy->width + COPY_BLOCK - 1) / COPY_BLOCK)
                                          : (int64_t)copy->height;
  struct pg_scratch scratch = {.stop = stop};
  run_items(copy_items, copy, items, (int64_t)(copy->width * copy->height), &scratch);
}

void pg_fill_run(const struct pg_fill *fill, const atomic_bool *stop) {
  const int64_t bytes = (int64_t)fill->count * fill->element_bytes;
  const int64_t block = COPY_BLOCK / fill->element_bytes;
  const struct pg_fill_args whole = {.dst = fill->dst,
                                     .stride = block,
                                     .width = block,
                                     .value = fill->value,
                                     .element_bytes = fill->element_bytes};
  const int64_t blocks = (int64_t)fill->count / block, rest = (int64_t)fill->count % block;
  struct pg_scratch scratch = {.stop = stop};
  run_items(pg_fill_items, &whole, blocks, bytes, &scratch);
  if (rest > 0) {
    struct pg_fill_args tail = whole;
    tail.dst = (char *)fill->dst + blocks * COPY_BLOCK;
    tail.width = rest;
    pg_fill_items(&tail, 0, 1, &scratch);
  }
}

/* A waiter holds this lock from its look at the value until it sleeps, so that no change of the
 * value is missed in between. */
static pthread_mutex_t values_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t values_cond; /* woken by value writes and by dropped queues */
static pthread_once_t values_once = PTHREAD_ONCE_INIT;
static void values_init(void) { pg_cond_init(&values_cond); }

void pg_values_changed(void) {
  (void)pthread_once(&values_once, values_init);
  pthread_mutex_lock(&values_lock);
  pthread_cond_broadcast(&values_cond);
  pthread_mutex_unlock(&values_lock);
}

static void write_value(const struct pg_value *v) {
  __atomic_store_n(v->address, v->value, __ATOMIC_RELEASE);
  pg_release(v->owner);
  pg_values_changed();
}

static bool is_satisfied(const struct pg_value *v) {
  uint64_t found = __atomic_load_n(v->address, __ATOMIC_ACQUIRE);
  while (pg_value_satisfies(found, v->value,
                            v->comparison)) /* if several want to take it, one does; others retry */
    if (!v->take || __atomic_compare_exchange_n(v->address, &found, 0, false, __ATOMIC_ACQ_REL,
                                                __ATOMIC_ACQUIRE))
      return true;
  return false;
}

/* The value may also be written by a kernel or by the program itself, which wakes nobody.  So the
 * waiter looks again every millisecond. */
static aclError wait_value(const struct pg_value *v, const atomic_bool *stop,
                           struct pg_failure *why) {
  const int64_t deadline = pg_deadline(v->timeout_ns);
  (void)pthread_once(&values_once, values_init);
  pthread_mutex_lock(&values_lock);
  bool late = false;
  while (!atomic_load(stop) && !late && !is_satisfied(v)) {
    const int64_t now = pg_now_ns();
    const int64_t look = now + PG_NS_PER_MS;
    late = deadline != PG_FOREVER && now >= deadline;
    if (!late)
      (void)pg_cond_wait_until(&values_cond, &values_lock,
                               deadline != PG_FOREVER && deadline < look ? deadline : look);
  }
  pthread_mutex_unlock(&values_lock);
  pg_release(v->owner);
  if (!late) return ACL_SUCCESS;
  pg_failure_set(why, ACL_ERROR_RT_WAIT_TIMEOUT, "a wait was not satisfied within %lld ms",
                 (long long)(v->timeout_ns / PG_NS_PER_MS));
  return why->code;
}

/* Has an item a flag?  Looking here costs less than another job, and there is one very seldom. */
static bool is_flagged(const int32_t *flags, int64_t bytes) {
  const int64_t count = bytes / (int64_t)sizeof *flags;
  int32_t any = 0;
  for (int64_t i = 0; i < count; i++) any |= flags[i];
  return any != 0;
}

/* Computes the items of a task; where its method asked for a workspace, mends those with a flag, or
 * finishes all. */
static void run_method(const struct pg_task *task, int64_t bytes, struct pg_scratch *scratch) {
  const struct pg_cpu_method *method = task->choice.method;
  void *const workspace = task->choice.workspace_bytes > 0 ? pg_workspace_of(&task->problem) : NULL;
  const bool mends = method->mend != NULL && workspace != NULL;
  if (mends) memset(workspace, 0, (size_t)task->choice.workspace_bytes);
  run_items(method->run, task, task->choice.items, bytes, scratch);
  if (mends && !pg_is_stopped(scratch) && is_flagged(workspace, task->choice.workspace_bytes))
    run_items(method->mend, task, task->choice.items, bytes, scratch);
  if (method->finish != NULL && workspace != NULL && !pg_is_stopped(scratch))
    run_items(method->finish, task, task->choice.items, bytes, scratch);
}

static aclError run_kernel(struct pg_step *step, struct pg_scratch *scratch,
                           struct pg_failure *why) {
  struct pg_kernel_step *k = &step->u.kernel;
  struct pg_index_report report = {.count = 0, .position = INT64_MAX};
  struct pg_index_report **lent = pg_report_of(&k->task.problem);
  if (k->judge != NULL && lent != NULL) *lent = &report;
  run_method(&k->task, step->bytes, scratch);
  if (report.count == 0 || pg_is_stopped(scratch)) return ACL_SUCCESS;
  return k->judge(&k->task.problem.args, &report, why);
}

aclError pg_step_run(struct pg_step *step, struct pg_scratch *scratch, struct pg_failure *why) {
  switch (step->kind) {
    case PG_STEP_KERNEL: {
      const pg_float_env before = pg_float_env_enter();
      const aclError status = run_kernel(step, scratch, why);
      pg_float_env_leave(before);
      return status;
    }
    case PG_STEP_COPY:
      pg_copy_run(&step->u.copy, scratch->stop);
      return ACL_SUCCESS;
    case PG_STEP_FILL:
      pg_fill_run(&step->u.fill, scratch->stop);
      return ACL_SUCCESS;
    case PG_STEP_CALL:
      return step->u.call.fn(&step->u.call, why);
    case PG_STEP_WRITE_VALUE:
      write_value(&step->u.value);
      return ACL_SUCCESS;
    case PG_STEP_WAIT_VALUE:
      return wait_value(&step->u.value, scratch->stop, why);
    default:
      pg_failure_set(why, ACL_ERROR_RT_TASK_TYPE_NOT_SUPPORT, "step kind %d is unknown",
                     (int)step->kind);
      return why->code;
  }
}
