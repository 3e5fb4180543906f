/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/report_cuda.h"

#include <stdlib.h>
#include <string.h>

#include "core/clock.h"

enum { QUARTERS = 4, QUARTER = 256, SLOTS = QUARTERS * QUARTER, DEVICES_MAX = 64 };

/* What judging a slot needs. */
struct entry {
  aclError (*judge)(const union pg_kernel_args *args, const struct pg_index_report *report,
                    struct pg_failure *why);
  uint64_t ticket;
  union pg_kernel_args args;
};

/* Guarded by the lock of the queue that has it. */
struct pg_cuda_reports {
  struct pg_cuda_report *slots; /* in pinned memory */
  struct entry *entries;
  cudaEvent_t passed[QUARTERS]; /* behind each quarter's last slot */
  uint64_t posted, judged;      /* slot numbers, which go on for ever */
  bool judging;
  pthread_t judge;              /* who is */
  struct pg_cuda_reports *next; /* of the spare ones */
};

/* Rings are kept: giving pinned memory back waits for the whole device. */
static pthread_mutex_t spare_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the lists */
static struct pg_cuda_reports *spare[DEVICES_MAX];

static struct pg_cuda_reports *take_spare(int device) {
  pthread_mutex_lock(&spare_lock);
  struct pg_cuda_reports *reports = spare[device];
  if (reports != NULL) spare[device] = reports->next;
  pthread_mutex_unlock(&spare_lock);
  return reports;
}

static void destroy(struct pg_cuda_reports *r) {
  for (int i = 0; i < QUARTERS; i++)
    if (r->passed[i] != NULL) (void)cudaEventDestroy(r->passed[i]);
  if (r->slots != NULL) (void)cudaFreeHost(r->slots);
  (void)cudaGetLastError();
  free(r->entries);
  free(r);
}

static struct pg_cuda_reports *make(void) {
  struct pg_cuda_reports *r = calloc(1, sizeof *r);
  if (r == NULL) return NULL;
  r->entries = malloc(SLOTS * sizeof *r->entries);
  bool ok = r->entries != NULL &&
            cudaHostAlloc((void **)&r->slots, SLOTS * sizeof *r->slots,
                          cudaHostAllocMapped | cudaHostAllocPortable) == cudaSuccess;
  for (int i = 0; i < QUARTERS; i++)
    ok = ok && cudaEventCreateWithFlags(&r->passed[i], cudaEventDisableTiming) == cudaSuccess;
  if (ok) return r;
  destroy(r);
  return NULL;
}

struct pg_cuda_reports *pg_cuda_reports_open(int device) {
  struct pg_cuda_reports *reports = take_spare(device);
  if (reports == NULL) reports = make();
  if (reports != NULL) reports->posted = reports->judged = 0;
  return reports;
}

void pg_cuda_reports_close(int device, struct pg_cuda_reports *reports) {
  pthread_mutex_lock(&spare_lock);
  reports->next = spare[device];
  spare[device] = reports;
  pthread_mutex_unlock(&spare_lock);
}

bool pg_cuda_reports_have_room(const struct pg_queue *queue, size_t count) {
  const struct pg_cuda_reports *r = queue->reports;
  return r->posted - r->judged + count <= SLOTS;
}

void pg_cuda_reports_make_room(struct pg_queue *queue) {
  const struct pg_cuda_reports *r = queue->reports;
  const uint64_t quarter = r->judged / QUARTER, posted = r->posted;
  const uint64_t end = (quarter + 1) * QUARTER;
  const cudaEvent_t passed = r->passed[quarter % QUARTERS];
  const bool whole = end <= posted; /* else its event is an old one */
  pthread_mutex_unlock(&queue->lock);
  const cudaError_t error =
      whole ? cudaEventSynchronize(passed) : cudaStreamSynchronize(queue->stream);
  pthread_mutex_lock(&queue->lock);
  if (error == cudaSuccess)
    pg_cuda_reports_judge(queue, whole ? end : posted);
  else
    pg_cuda_reports_forget(queue, whole ? end : posted); /* sync will meet the error again */
}

struct pg_cuda_report *pg_cuda_report_take(struct pg_queue *queue,
                                           const struct pg_kernel_step *step, uint64_t ticket) {
  struct pg_cuda_reports *r = queue->reports;
  struct entry *entry = &r->entries[r->posted % SLOTS];
  struct pg_cuda_report *slot = &r->slots[r->posted % SLOTS];
  entry->judge = step->judge;
  entry->ticket = ticket;
  entry->args = step->task.problem.args;
  *slot = (struct pg_cuda_report){.found = {.count = 0, .position = INT64_MAX}};
  return slot;
}

void pg_cuda_report_post(struct pg_queue *queue) {
  struct pg_cuda_reports *r = queue->reports;
  r->posted++;
  if (r->posted % QUARTER == 0 && cudaEventRecord(r->passed[(r->posted / QUARTER - 1) % QUARTERS],
                                                  queue->stream) != cudaSuccess)
    (void)cudaStreamSynchronize(queue->stream); /* the event says nothing, so nothing may be left */
}

uint64_t pg_cuda_reports_posted(const struct pg_queue *queue) { return queue->reports->posted; }

/* The slot and its entry stay as they are until judged has passed them. */
static void judge_next(struct pg_queue *queue) {
  struct pg_cuda_reports *r = queue->reports;
  const struct entry *entry = &r->entries[r->judged % SLOTS];
  const struct pg_index_report found = r->slots[r->judged % SLOTS].found;
  struct pg_failure failure;
  r->judging = true;
  r->judge = pthread_self();
  pthread_mutex_unlock(&queue->lock);
  if (entry->judge(&entry->args, &found, &failure) != ACL_SUCCESS)
    pg_cuda_fail(queue, entry->ticket, &failure);
  pthread_mutex_lock(&queue->lock);
  r->judging = false;
  r->judged++;
  pg_cuda_note_progress(queue);
}

void pg_cuda_reports_judge(struct pg_queue *queue, uint64_t up_to) {
  struct pg_cuda_reports *r = queue->reports;
  while (r->judged < up_to) {
    const volatile int64_t *count = &r->slots[r->judged % SLOTS].found.count;
    if (r->judging)
      (void)pg_cuda_observe(queue, PG_FOREVER);
    else if (*count != 0)
      judge_next(queue);
    else
      r->judged++;
  }
}

void pg_cuda_reports_forget(struct pg_queue *queue, uint64_t up_to) {
  struct pg_cuda_reports *r = queue->reports;
  while (r->judged < up_to)
    if (r->judging)
      (void)pg_cuda_observe(queue, PG_FOREVER);
    else
      r->judged = up_to;
}

bool pg_cuda_reports_is_judge(const struct pg_queue *queue) {
  const struct pg_cuda_reports *r = queue->reports;
  return r->judging && pthread_equal(r->judge, pthread_self());
}
