/* SPDX-License-Identifier: Apache-2.0 */
/* Threads with little stack run every operator and wait for it in every way there is.
 *
 * A thread's stack is cut out of one mapping, so that what happens below it is known:
 *
 *     | canary, 1 MiB of 0xA5 | one page that nobody may touch | stack |
 *
 * A frame that is touched page by page and is too large ends in the page, where a handler names the
 * call; one that is not may jump over the page and is then seen in the canary.  Results must be
 * those that the main thread, with a stack of megabytes, has got. */
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "acl/acl.h"
#include "aclnnop/aclnn_adaptive_avg_pool3d_backward.h"
#include "aclnnop/aclnn_adaptive_max_pool2d_backward.h"
#include "aclnnop/aclnn_adaptive_max_pool3d_backward.h"
#include "aclnnop/aclnn_avgpool2d_backward.h"
#include "aclnnop/aclnn_max_pool2d_with_indices_backward.h"

enum { CANARY_BYTES = 1 << 20, CANARY = 0xA5, SIGNAL_BYTES = 1 << 16, LEAST_STACK = 16384 };
enum { OPERATORS = 5, TYPES = 2 };

/* --- the problems ----------------------------------------------------------------------------- */

struct problem {
  aclDataType type;
  aclTensor *grad_output, *self, *indices, *grad_input;
  aclIntArray *kernel, *stride, *padding, *dilation;
  void *result, *expected; /* gradInput's memory, and what must stand there */
  size_t bytes;
};

typedef aclnnStatus plan(const struct problem *p, uint64_t *bytes, aclOpExecutor **executor);
typedef aclnnStatus execute(void *workspace, uint64_t bytes, aclOpExecutor *executor,
                            aclrtStream stream);

static aclnnStatus adaptive_max_2d(const struct problem *p, uint64_t *bytes, aclOpExecutor **e) {
  return aclnnAdaptiveMaxPool2dBackwardGetWorkspaceSize(p->grad_output, p->self, p->indices,
                                                        p->grad_input, bytes, e);
}

static aclnnStatus adaptive_max_3d(const struct problem *p, uint64_t *bytes, aclOpExecutor **e) {
  return aclnnAdaptiveMaxPool3dBackwardGetWorkspaceSize(p->grad_output, p->self, p->indices,
                                                        p->grad_input, bytes, e);
}

static aclnnStatus adaptive_avg_3d(const struct problem *p, uint64_t *bytes, aclOpExecutor **e) {
  return aclnnAdaptiveAvgPool3dBackwardGetWorkspaceSize(p->grad_output, p->self, p->grad_input,
                                                        bytes, e);
}

static aclnnStatus max_2d(const struct problem *p, uint64_t *bytes, aclOpExecutor **e) {
  return aclnnMaxPool2dWithIndicesBackwardGetWorkspaceSize(
      p->grad_output, p->self, p->indices, p->kernel, p->stride, p->padding, p->dilation, false,
      p->grad_input, bytes, e);
}

static aclnnStatus avg_2d(const struct problem *p, uint64_t *bytes, aclOpExecutor **e) {
  return aclnnAvgPool2dBackwardGetWorkspaceSize(p->grad_output, p->self, p->kernel, p->stride,
                                                p->padding, false, true, 0, 0, p->grad_input, bytes,
                                                e);
}

/* Windows overlap in each of them: outputs are summed up in a box, which is what needs scratch. */
static const struct operation {
  const char *name;
  plan *plan;
  execute *execute;
  int rank;
  int64_t in[5], out[5];
} operators[OPERATORS] = {
    {"aclnnAdaptiveMaxPool2dBackward",
     adaptive_max_2d,
     aclnnAdaptiveMaxPool2dBackward,
     4,
     {2, 3, 96, 96},
     {2, 3, 25, 25}},
    {"aclnnAdaptiveMaxPool3dBackward",
     adaptive_max_3d,
     aclnnAdaptiveMaxPool3dBackward,
     5,
     {1, 2, 16, 40, 40},
     {1, 2, 5, 11, 11}},
    {"aclnnAdaptiveAvgPool3dBackward",
     adaptive_avg_3d,
     aclnnAdaptiveAvgPool3dBackward,
     5,
     {1, 2, 16, 40, 40},
     {1, 2, 5, 11, 11}},
    {"aclnnMaxPool2dWithIndicesBackward",
     max_2d,
     aclnnMaxPool2dWithIndicesBackward,
     4,
     {2, 3, 97, 97},
     {2, 3, 48, 48}},
    {"aclnnAvgPool2dBackward", avg_2d, aclnnAvgPool2dBackward, 4, {2, 3, 97, 97}, {2, 3, 48, 48}},
};

static struct problem problems[OPERATORS][TYPES];

static void check(aclError status, const char *what) {
  if (status == ACL_SUCCESS) return;
  const char *why = aclGetRecentErrMsg();
  fprintf(stderr, "small_stack: %s: %d %s\n", what, status, why ? why : "");
  exit(1);
}

static int64_t count_of(const int64_t *dims, int rank) {
  int64_t count = 1;
  for (int i = 0; i < rank; i++) count *= dims[i];
  return count;
}

static aclTensor *tensor(const struct operation *op, const int64_t *dims, aclDataType type,
                         void **memory) {
  check(aclrtMalloc(memory, (size_t)count_of(dims, op->rank) * aclDataTypeSize(type),
                    ACL_MEM_MALLOC_NORMAL_ONLY),
        "aclrtMalloc");
  const aclFormat format = op->rank == 5 ? ACL_FORMAT_NCDHW : ACL_FORMAT_NCHW;
  return aclCreateTensor(dims, (uint64_t)op->rank, type, NULL, 0, format, dims, (uint64_t)op->rank,
                         *memory);
}

/* The first cell of each output's window. */
static void fill_indices(const struct operation *op, int32_t *indices) {
  const int64_t *in = op->in, *out = op->out;
  const int axes = op->rank - 2;
  for (int64_t i = 0; i < count_of(out, op->rank); i++) {
    int64_t rest = i, cell = 0, size = 1;
    for (int axis = axes + 1; axis >= 2; axis--) {
      cell += rest % out[axis] * in[axis] / out[axis] * size;
      rest /= out[axis];
      size *= in[axis];
    }
    indices[i] = (int32_t)cell;
  }
}

static void fill_gradients(void *memory, int64_t count, aclDataType type) {
  for (int64_t i = 0; i < count; i++) {
    const float value = (float)(i % 13 - 6);
    if (type == ACL_FLOAT)
      ((float *)memory)[i] = value;
    else
      ((aclFloat16 *)memory)[i] = aclFloatToFloat16(value);
  }
}

static void prepare(const struct operation *op, struct problem *p, aclDataType type) {
  const int64_t three[] = {3, 3}, two[] = {2, 2}, none[] = {0, 0}, one[] = {1, 1};
  void *gradients, *self, *indices;
  p->type = type;
  p->bytes = (size_t)count_of(op->in, op->rank) * aclDataTypeSize(type);
  p->grad_output = tensor(op, op->out, type, &gradients);
  p->self = tensor(op, op->in, type, &self);
  p->grad_input = tensor(op, op->in, type, &p->result);
  p->indices = tensor(op, op->out, ACL_INT32, &indices);
  p->expected = malloc(p->bytes);
  p->kernel = aclCreateIntArray(three, 2), p->stride = aclCreateIntArray(two, 2);
  p->padding = aclCreateIntArray(none, 2), p->dilation = aclCreateIntArray(one, 2);
  if (p->expected == NULL || p->dilation == NULL) exit(1);
  fill_gradients(gradients, count_of(op->out, op->rank), type);
  fill_indices(op, indices);
  memset(self, 0, p->bytes);
}

/* --- what a thread does; all that is large lies in struct attempt, not on its stack -------------
 */

enum way { STREAM, DEVICE, EVENT, COPY, DESTROY, WAYS };
static const char *const way_names[WAYS] = {
    "aclrtSynchronizeStream", "aclrtSynchronizeDevice", "aclrtSynchronizeEvent",
    "aclrtMemcpyAsync of pageable memory", "aclrtDestroyStream"};

struct attempt {
  enum way way;
  size_t stack_bytes;
  char *guard;
  const char *now; /* the call it is in, for who reads a failure */
  aclError status;
  char sentence[1024];
  char signal_stack[SIGNAL_BYTES];
};

static _Thread_local struct attempt *mine;

static void on_fault(int number, siginfo_t *info, void *context) {
  (void)number, (void)context;
  char text[256];
  const char *at = info->si_addr;
  const bool guard = mine != NULL && at >= mine->guard && at < mine->guard + sysconf(_SC_PAGESIZE);
  const int length =
      snprintf(text, sizeof text, "small_stack: %s: %zu bytes of stack: %s, in %s\n",
               mine != NULL ? way_names[mine->way] : "", mine != NULL ? mine->stack_bytes : 0,
               guard ? "used up" : "a fault", mine != NULL ? mine->now : "the main thread");
  (void)!write(STDERR_FILENO, text, (size_t)length);
  _exit(1);
}

/* Forwards a failure with its sentence. */
#define TRY(call)                                                                \
  do {                                                                           \
    a->now = #call;                                                              \
    if ((a->status = (call)) != ACL_SUCCESS) return keep_sentence(a, a->status); \
  } while (0)

static aclError keep_sentence(struct attempt *a, aclError status) {
  const char *why = aclGetRecentErrMsg();
  strncpy(a->sentence, why != NULL ? why : "no sentence", sizeof a->sentence - 1);
  return status;
}

static aclError launch(struct attempt *a, const struct operation *op, const struct problem *p,
                       aclrtStream stream) {
  uint64_t bytes;
  aclOpExecutor *executor;
  void *workspace = NULL;
  memset(p->result, 0x77, p->bytes);
  TRY(op->plan(p, &bytes, &executor));
  if (bytes > 0) TRY(aclrtMalloc(&workspace, bytes, ACL_MEM_MALLOC_NORMAL_ONLY));
  TRY(op->execute(workspace, bytes, executor, stream));
  if (a->way == DEVICE) TRY(aclrtSynchronizeDevice());
  if (a->way == STREAM) TRY(aclrtSynchronizeStream(stream));
  if (a->way == EVENT) {
    aclrtEvent event;
    TRY(aclrtCreateEvent(&event));
    TRY(aclrtRecordEvent(event, stream));
    TRY(aclrtSynchronizeEvent(event));
    TRY(aclrtDestroyEvent(event));
  }
  if (a->way == COPY) {
    char pageable[8];
    TRY(aclrtMemcpyAsync(pageable, sizeof pageable, p->result, sizeof pageable,
                         ACL_MEMCPY_DEVICE_TO_HOST, stream));
  }
  if (a->way == DESTROY) TRY(aclrtDestroyStream(stream));
  if (workspace != NULL) TRY(aclrtFree(workspace));
  return ACL_SUCCESS;
}

static aclError run_one(struct attempt *a, const struct operation *op, const struct problem *p) {
  aclrtStream stream;
  TRY(aclrtCreateStream(&stream));
  const aclError status = launch(a, op, p, stream);
  if (status != ACL_SUCCESS) return status;
  if (a->way != DESTROY) TRY(aclrtDestroyStream(stream));
  if (memcmp(p->result, p->expected, p->bytes) == 0) return ACL_SUCCESS;
  strncpy(a->sentence, "another result than on the main thread", sizeof a->sentence - 1);
  a->now = op->name;
  return a->status = -1;
}

/* A failing call and its sentence, which is formatted on this stack. */
static aclError fail_once(struct attempt *a) {
  a->now = "aclrtDestroyStream(NULL)";
  const aclError status = aclrtDestroyStream(NULL);
  a->now = "aclGetRecentErrMsg";
  const char *why = aclGetRecentErrMsg();
  if (status != ACL_SUCCESS && why != NULL && strstr(why, "stream is NULL") != NULL)
    return ACL_SUCCESS;
  return keep_sentence(a, a->status = -1);
}

static aclError run_all(struct attempt *a) {
  TRY(aclrtSetDevice(0));
  for (int op = 0; op < OPERATORS; op++)
    for (int type = 0; type < TYPES; type++)
      if (run_one(a, &operators[op], &problems[op][type]) != ACL_SUCCESS) return a->status;
  if (fail_once(a) != ACL_SUCCESS) return a->status;
  TRY(aclrtResetDevice(0));
  return ACL_SUCCESS;
}

static void *attempt(void *argument) {
  struct attempt *a = mine = argument;
  const stack_t own = {.ss_sp = a->signal_stack, .ss_size = SIGNAL_BYTES};
  (void)sigaltstack(&own, NULL);
  (void)run_all(a);
  const stack_t off = {.ss_flags = SS_DISABLE};
  (void)sigaltstack(&off, NULL);
  return NULL;
}

/* --- the stacks ------------------------------------------------------------------------------- */

static bool try_stack(size_t stack_bytes, enum way way) {
  static struct attempt a;
  const size_t page = (size_t)sysconf(_SC_PAGESIZE), all = CANARY_BYTES + page + stack_bytes;
  pthread_t thread;
  pthread_attr_t attributes;
  char *memory = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  memset(memory, CANARY, CANARY_BYTES);
  a = (struct attempt){.way = way, .stack_bytes = stack_bytes, .guard = memory + CANARY_BYTES};
  if (mprotect(a.guard, page, PROT_NONE) != 0 || pthread_attr_init(&attributes) != 0 ||
      pthread_attr_setstack(&attributes, a.guard + page, stack_bytes) != 0 ||
      pthread_create(&thread, &attributes, attempt, &a) != 0) {
    fprintf(stderr, "small_stack: no thread with %zu bytes of stack\n", stack_bytes);
    return false;
  }
  pthread_join(thread, NULL);
  size_t sound = 0;
  while (sound < CANARY_BYTES && memory[sound] == (char)CANARY) sound++;
  if (sound < CANARY_BYTES)
    fprintf(stderr, "small_stack: %s: %zu bytes of stack: foreign memory was written\n",
            way_names[way], stack_bytes);
  if (a.status != ACL_SUCCESS)
    fprintf(stderr, "small_stack: %s: %zu bytes of stack: %s: %d %s\n", way_names[way], stack_bytes,
            a.now, a.status, a.sentence);
  (void)munmap(memory, all);
  return sound == CANARY_BYTES && a.status == ACL_SUCCESS;
}

static void find_expected(void) {
  static struct attempt a = {.way = STREAM};
  for (int op = 0; op < OPERATORS; op++)
    for (int type = 0; type < TYPES; type++) {
      struct problem *p = &problems[op][type];
      aclrtStream stream;
      prepare(&operators[op], p, type == 0 ? ACL_FLOAT : ACL_FLOAT16);
      check(aclrtCreateStream(&stream), "aclrtCreateStream");
      if (launch(&a, &operators[op], p, stream) != ACL_SUCCESS) {
        fprintf(stderr, "small_stack: main thread: %s: %d %s\n", a.now, a.status, a.sentence);
        exit(1);
      }
      check(aclrtDestroyStream(stream), "aclrtDestroyStream");
      memcpy(p->expected, p->result, p->bytes);
    }
}

int main(void) {
  /* The library may need what the system calls the least a thread can live with, but musl's 2 KiB
   * are less than a printf takes. */
  const size_t least = PTHREAD_STACK_MIN > LEAST_STACK ? (size_t)PTHREAD_STACK_MIN : LEAST_STACK;
  const size_t stacks[] = {least, 64 << 10, 128 << 10, 256 << 10};
  struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
  (void)sigaction(SIGSEGV, &action, NULL);
  (void)sigaction(SIGBUS, &action, NULL);
  setenv("POOLGRAD_CUDA", "off", 1); /* the CPU's memory is the process's: it can be looked into */
  check(aclInit(NULL), "aclInit");
  check(aclrtSetDevice(0), "aclrtSetDevice");
  find_expected();
  bool passed = true;
  for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++)
    for (int way = 0; way < WAYS; way++) passed = try_stack(stacks[i], (enum way)way) && passed;
  check(aclFinalize(), "aclFinalize");
  if (passed) printf("small stacks ok: from %zu bytes on\n", least);
  return passed ? 0 : 1;
}
