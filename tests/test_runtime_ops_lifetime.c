/* SPDX-License-Identifier: Apache-2.0 */
/* The five operators on streams: who may be destroyed when, many calls, many threads, and what
 * phase 2 refuses.  Runs under ThreadSanitizer. */
#include <pthread.h>
#include <semaphore.h>

#include "expect.h"
#include "aclnn/opdev/op_errno.h"
#include "core/handle.h"
#include "operator_call.h"

enum op { ADAPTIVE_MAX_2D, ADAPTIVE_MAX_3D, MAX_POOL, ADAPTIVE_AVG_3D, AVG_POOL, OPS };
enum { OUTPUTS = 2 * 3 * 2 * 2 * 2, CELLS = 2 * 3 * 4 * 4 * 4, CALLS = 1000, THREADS = 8 };

/* Those with indices come first. */
static const struct operator_call *const calls[OPS] = {
    &operator_calls[ADAPTIVE_MAX_POOL2D], &operator_calls[ADAPTIVE_MAX_POOL3D],
    &operator_calls[MAX_POOL2D], &operator_calls[ADAPTIVE_AVG_POOL3D], &operator_calls[AVG_POOL2D]};

/* Windows of 2 x 2 (x 2) side by side in planes of 4 x 4 (x 4) cells; each gradient is 8 times its
 * number, and where there are indices it goes to the first cell of its window.  A pointer to this
 * points into the device's memory. */
struct data {
  float grads[OUTPUTS], cells[CELLS];
  int32_t index[OUTPUTS];
};

static struct data *data; /* two of them */
static aclrtStream stream;
static sem_t gate;

static bool has_depth(enum op op) { return op == ADAPTIVE_MAX_3D || op == ADAPTIVE_AVG_3D; }
static bool has_indices(enum op op) { return op <= MAX_POOL; }

static aclError try_fill(struct data *d, enum op op) {
  struct data made;
  for (int i = 0; i < OUTPUTS; i++) {
    made.grads[i] = (float)(i * 8);
    made.index[i] = (has_depth(op) ? i / 4 % 2 * 32 : 0) + i / 2 % 2 * 8 + i % 2 * 2;
  }
  for (int i = 0; i < CELLS; i++) made.cells[i] = -1;
  return aclrtMemcpy(d, sizeof *d, &made, sizeof made, ACL_MEMCPY_HOST_TO_DEVICE);
}

static void fill(struct data *d, enum op op) { OK_OR_SAY(try_fill(d, op)); }

static bool is_right(const struct data *d, enum op op) {
  float cells[CELLS];
  if (aclrtMemcpy(cells, sizeof cells, d->cells, sizeof cells, ACL_MEMCPY_DEVICE_TO_HOST) != 0)
    return false;
  const int depth = has_depth(op) ? 4 : 1, windows = has_depth(op) ? 2 : 1;
  for (int i = 0; i < 6 * depth * 16; i++) {
    const int w = i % 4, h = i / 4 % 4, d = i / 16 % depth, plane = i / 16 / depth;
    const int number = ((plane * windows + d / 2) * 2 + h / 2) * 2 + w / 2;
    const bool first = w % 2 == 0 && h % 2 == 0 && d % 2 == 0;
    const int share = has_depth(op) ? 1 : 2; /* of 8 */
    if (cells[i] != (float)(number * (!has_indices(op) ? share : first ? 8 : 0))) return false;
  }
  return true;
}

static struct operator_arguments make(enum op op, struct data *d, int64_t batch, int64_t out) {
  static const int64_t values[POOL_ARRAYS] = {2, 2, 0, 1};
  struct operator_arguments o = {.include_pad = true};
  void *const address[] = {d->grads, NULL, d->index, d->cells};
  for (int i = 0; i < POOL_TENSORS; i++) {
    const int64_t edge = i == SELF || i == GRAD_IN ? 2 * out : out;
    o.tensor[i] = aclCreateTensor((const int64_t[]){batch, 3, edge, edge, edge},
                                  has_depth(op) ? 5 : 4, i == INDICES ? ACL_INT32 : ACL_FLOAT, NULL,
                                  0, ACL_FORMAT_NCHW, NULL, 0, address[i]);
  }
  for (int i = 0; i < POOL_ARRAYS; i++) o.array[i] = aclCreateIntArray(&values[i], 1);
  return o;
}

static void destroy_arrays(struct operator_arguments *o) {
  for (int i = 0; i < POOL_ARRAYS; i++) {
    (void)aclDestroyIntArray(o->array[i]);
    o->array[i] = NULL;
  }
}

static void destroy(struct operator_arguments *o) {
  destroy_arrays(o);
  for (int i = 0; i < POOL_TENSORS; i++) (void)aclDestroyTensor(o->tensor[i]);
}

static aclOpExecutor *prepare(enum op op, const struct operator_arguments *o) {
  uint64_t size;
  aclOpExecutor *executor = NULL;
  OK_OR_SAY(calls[op]->first(o, &size, &executor));
  return executor;
}

/* The whole call; everything is gone when it returns. */
static aclnnStatus call(enum op op, struct data *d, aclrtStream on) {
  uint64_t size;
  aclOpExecutor *executor = NULL;
  struct operator_arguments o = make(op, d, 2, 2);
  aclnnStatus status = calls[op]->first(&o, &size, &executor);
  destroy_arrays(&o);
  if (status == ACLNN_SUCCESS) status = calls[op]->second(NULL, size, executor, on);
  destroy(&o);
  return status;
}

static int set_up(void **state) {
  setenv("POOLGRAD_INDEX_CHECK", "error", 1);
  sem_init(&gate, 0, 0);
  if (set_up_device(state) != 0 || aclrtCreateStream(&stream) != ACL_SUCCESS) return 1;
  data = device_memory(2 * sizeof *data);
  return 0;
}

static int tear_down(void **state) {
  for (int i = 0; i < 4; i++) sem_post(&gate); /* a test that failed may have left it shut */
  const bool left = pg_handle_count(PG_EXECUTOR) > 0 || pg_handle_count(PG_TENSOR) > 0 ||
                    pg_handle_count(PG_INT_ARRAY) > 0;
  if (left) print_error("executors, tensors or arrays are left\n");
  const int status = tear_down_device(state);
  sem_destroy(&gate);
  return status != 0 || left;
}

static void wait_at_gate(void *unused) {
  (void)unused;
  while (sem_wait(&gate) != 0) continue;
}

static void block(aclrtStream on) { OK_OR_SAY(aclrtLaunchHostFunc(on, wait_at_gate, NULL)); }

static void unblock_and_sync(void) {
  sem_post(&gate);
  OK_OR_SAY(aclrtSynchronizeStream(stream));
}

static void nothing_is_needed_once_phase_2_returned(void **state) {
  (void)state;
  for (enum op op = 0; op < OPS; op++) {
    fill(&data[0], op);
    block(stream);
    OK_OR_SAY(call(op, &data[0], stream));
    float first;
    fetch(&first, data[0].cells, sizeof first);
    assert_true(first == -1); /* not begun */
    unblock_and_sync();
    assert_true(is_right(&data[0], op));
  }
}

static void a_thousand_calls_wait_for_one_synchronise(void **state) {
  (void)state;
  struct data *many = device_memory(CALLS * sizeof *many);
  block(stream);
  for (int i = 0; i < CALLS; i++) {
    fill(&many[i], (enum op)(i % OPS));
    OK_OR_SAY(call((enum op)(i % OPS), &many[i], stream));
  }
  unblock_and_sync();
  for (int i = 0; i < CALLS; i++) assert_true(is_right(&many[i], (enum op)(i % OPS)));
  OK_OR_SAY(aclrtFree(many));
}

struct elsewhere {
  enum op op;
  aclOpExecutor *executor;
  aclnnStatus status;
};

static void *run_elsewhere(void *argument) {
  struct elsewhere *e = argument;
  e->status = calls[e->op]->second(NULL, 0, e->executor, stream);
  return NULL;
}

static void phase_2_may_run_on_another_thread(void **state) {
  (void)state;
  for (enum op op = 0; op < OPS; op++) {
    pthread_t thread;
    struct operator_arguments o = make(op, &data[0], 2, 2);
    struct elsewhere e = {op, prepare(op, &o), ACLNN_ERR_INNER};
    fill(&data[0], op);
    assert_int_equal(pthread_create(&thread, NULL, run_elsewhere, &e), 0);
    pthread_join(thread, NULL);
    destroy(&o);
    assert_int_equal(e.status, ACLNN_SUCCESS);
    OK_OR_SAY(aclrtSynchronizeStream(stream));
    assert_true(is_right(&data[0], op));
  }
}

static void a_repeatable_executor_follows_its_addresses(void **state) {
  (void)state;
  for (enum op op = 0; op < OPS; op++) {
    struct operator_arguments o = make(op, &data[0], 2, 2);
    aclOpExecutor *executor = prepare(op, &o);
    destroy_arrays(&o);
    OK_OR_SAY(aclSetAclOpExecutorRepeatable(executor));
    for (int i = 0; i < 2; i++) fill(&data[i], op);
    block(stream);
    OK_OR_SAY(calls[op]->second(NULL, 0, executor, stream));
    OK_OR_SAY(aclSetInputTensorAddr(executor, 0, o.tensor[GRAD_OUT], data[1].grads));
    OK_OR_SAY(aclSetInputTensorAddr(executor, 2, o.tensor[INDICES], data[1].index));
    OK_OR_SAY(aclSetOutputTensorAddr(executor, 0, o.tensor[GRAD_IN], data[1].cells));
    OK_OR_SAY(calls[op]->second(NULL, 0, executor, stream));
    OK_OR_SAY(aclDestroyAclOpExecutor(executor));
    destroy(&o);
    unblock_and_sync();
    for (int i = 0; i < 2; i++) assert_true(is_right(&data[i], op));
  }
}

struct worker {
  pthread_t thread;
  struct data *data; /* OPS of them */
  int failures;
};

static void *work(void *argument) {
  struct worker *w = argument;
  aclrtStream mine;
  w->failures = aclrtSetDevice(0) != ACL_SUCCESS || aclrtCreateStream(&mine) != ACL_SUCCESS;
  for (int round = 0; round < 50 && w->failures == 0; round++) {
    for (enum op op = 0; op < OPS; op++) {
      w->failures += try_fill(&w->data[op], op) != ACL_SUCCESS;
      w->failures += call(op, &w->data[op], mine) != ACLNN_SUCCESS;
    }
    w->failures += aclrtSynchronizeStream(mine) != ACL_SUCCESS;
    for (enum op op = 0; op < OPS; op++) w->failures += !is_right(&w->data[op], op);
  }
  w->failures += aclrtDestroyStream(mine) != ACL_SUCCESS;
  return NULL;
}

static void eight_threads_run_all_operators_on_streams_of_their_own(void **state) {
  (void)state;
  static struct worker workers[THREADS];
  for (int i = 0; i < THREADS; i++) workers[i].data = device_memory(OPS * sizeof(struct data));
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
  for (int i = 0; i < THREADS; i++) pthread_join(workers[i].thread, NULL);
  for (int i = 0; i < THREADS; i++) assert_int_equal(workers[i].failures, 0);
}

static void two_streams_may_read_one_grad_output(void **state) {
  (void)state;
  aclrtStream other;
  OK_OR_SAY(aclrtCreateStream(&other));
  for (int round = 0; round < 100; round++) {
    const enum op op = (enum op)(round % OPS);
    struct operator_arguments o = make(op, &data[0], 2, 2);
    for (int i = 0; i < 2; i++) fill(&data[i], op);
    for (int i = 0; i < 2; i++) {
      OK_OR_SAY(aclSetRawTensorAddr(o.tensor[GRAD_IN], data[i].cells));
      OK_OR_SAY(calls[op]->second(NULL, 0, prepare(op, &o), i == 0 ? stream : other));
    }
    destroy(&o);
    OK_OR_SAY(aclrtSynchronizeStream(stream));
    OK_OR_SAY(aclrtSynchronizeStream(other));
    for (int i = 0; i < 2; i++) assert_true(is_right(&data[i], op));
  }
  OK_OR_SAY(aclrtDestroyStream(other));
}

static void an_event_orders_a_copy_behind_another_streams_operator(void **state) {
  (void)state;
  aclrtStream other;
  aclrtEvent event;
  const size_t bytes = sizeof data->cells;
  OK_OR_SAY(aclrtCreateStream(&other));
  OK_OR_SAY(aclrtCreateEvent(&event));
  for (enum op op = 0; op < OPS; op++) {
    for (int i = 0; i < 2; i++) fill(&data[i], op);
    block(stream);
    OK_OR_SAY(call(op, &data[0], stream));
    OK_OR_SAY(aclrtRecordEvent(event, stream));
    OK_OR_SAY(aclrtStreamWaitEvent(other, event));
    OK_OR_SAY(aclrtMemcpyAsync(data[1].cells, bytes, data[0].cells, bytes,
                               ACL_MEMCPY_DEVICE_TO_DEVICE, other));
    sem_post(&gate);
    OK_OR_SAY(aclrtSynchronizeStream(other));
    assert_true(is_right(&data[1], op));
  }
  OK_OR_SAY(aclrtDestroyEvent(event));
  OK_OR_SAY(aclrtDestroyStream(other));
}

static void destroying_a_stream_finishes_its_operators(void **state) {
  (void)state;
  struct data *each = device_memory(OPS * sizeof *each);
  aclrtStream other;
  OK_OR_SAY(aclrtCreateStream(&other));
  block(other);
  for (enum op op = 0; op < OPS; op++) {
    fill(&each[op], op);
    OK_OR_SAY(call(op, &each[op], other));
  }
  sem_post(&gate);
  OK_OR_SAY(aclrtDestroyStream(other));
  for (enum op op = 0; op < OPS; op++) assert_true(is_right(&each[op], op));
  FAILS(call(AVG_POOL, &each[0], other), ACLNN_ERR_RUNTIME_ERROR, "a destroyed stream");
}

static uint32_t told, told_code;
static void hear(aclrtExceptionInfo *info) {
  told++;
  told_code = aclrtGetErrorCodeFromExceptionInfo(info);
}

static void a_wrong_index_is_told_to_the_exception_callback(void **state) {
  (void)state;
  OK_OR_SAY(aclrtExceptionInfoCallbackRegister(hear));
  for (enum op op = 0; op <= MAX_POOL; op++) {
    told = 0;
    fill(&data[0], op);
    OK_OR_SAY(call(op, &data[0], stream));
    OK_OR_SAY(aclrtSynchronizeStream(stream));
    assert_int_equal(told, 0);
    send(&data[0].index[5], &(int32_t){-1}, sizeof(int32_t));
    OK_OR_SAY(call(op, &data[0], stream));
    FAILS(aclrtSynchronizeStream(stream), 507015, "the first at", "is -1;");
    assert_int_equal(told, 1);
    assert_int_equal(told_code, 507015);
  }
  OK_OR_SAY(aclrtExceptionInfoCallbackUnregister(hear));
}

/* Phase 2 fails with these words, and the executor is spent. */
static void refused(enum op op, const struct operator_arguments *o, int code, const char *name,
                    const char *words) {
  aclOpExecutor *executor = prepare(op, o);
  FAILS(calls[op]->second(NULL, 0, executor, stream), code, name, words);
  FAILS(calls[op]->second(NULL, 0, executor, stream), ACLNN_ERR_INNER,
        "executor is a spent or destroyed executor, a live one is required");
}

static void phase_2_looks_at_the_addresses(void **state) {
  (void)state;
  static const char *const names[] = {"gradOutput", "self", "indices", "gradInput"};
  char words[128];
  void *memory; /* 32 bytes of padding included: 64 */
  OK_OR_SAY(aclrtMalloc(&memory, 32, ACL_MEM_MALLOC_NORMAL_ONLY));
  for (enum op op = 0; op < OPS; op++) {
    struct operator_arguments o = make(op, &data[0], 2, 2);
    void *const right[] = {data[0].grads, NULL, data[0].index, data[0].cells};
    for (int i = 0; i < POOL_TENSORS; i++) {
      const char *name = op == ADAPTIVE_AVG_3D && i == GRAD_IN ? "out" : names[i];
      const int bytes = (i == GRAD_IN ? 16 : 4) * (has_depth(op) ? i == GRAD_IN ? 4 : 2 : 1) * 24;
      if (i == SELF || (i == INDICES && !has_indices(op))) continue;
      OK_OR_SAY(aclSetRawTensorAddr(o.tensor[i], NULL));
      refused(op, &o, ACLNN_ERR_PARAM_NULLPTR, name, " is NULL\n");
      OK_OR_SAY(aclSetRawTensorAddr(o.tensor[i], memory));
      (void)snprintf(words, sizeof words,
                     " reaches %d bytes from its data address, where only 64 are allocated\n",
                     bytes);
      refused(op, &o, ACLNN_ERR_PARAM_INVALID, name, words);
      OK_OR_SAY(aclSetRawTensorAddr(o.tensor[i], data[0].cells + 1));
      (void)snprintf(words, sizeof words, " overlaps that of %s\n", name);
      if (i != GRAD_IN) refused(op, &o, ACLNN_ERR_PARAM_INVALID, "the memory of ", words);
      OK_OR_SAY(aclSetRawTensorAddr(o.tensor[i], right[i]));
    }
    fill(&data[0], op);
    OK_OR_SAY(aclSetRawTensorAddr(o.tensor[SELF], data[0].cells)); /* never read */
    OK_OR_SAY(calls[op]->second(NULL, 0, prepare(op, &o), stream));
    OK_OR_SAY(aclrtSynchronizeStream(stream));
    assert_true(is_right(&data[0], op));
    FAILS(calls[op]->second(NULL, 0, NULL, stream), ACLNN_ERR_PARAM_NULLPTR, ": executor is NULL");
    destroy(&o);
  }
  OK_OR_SAY(aclrtFree(memory));
}

static void workspace_is_what_phase_1_asked_for(void **state) {
  (void)state;
  char workspace[8];
  for (enum op op = 0; op <= MAX_POOL; op++) {
    char too_small[96];
    uint64_t size = 77;
    aclOpExecutor *executor = NULL;
    struct operator_arguments o = make(op, &data[0], 2, 64);
    OK_OR_SAY(calls[op]->first(&o, &size, &executor));
    BETWEEN(size, sizeof workspace, 65536); /* planes of 128^2 and 128^3 cells are cut */
    snprintf(too_small, sizeof too_small, ": workspaceSize is %d, the first phase asked for %d\n",
             (int)size - 1, (int)size);
    FAILS(calls[op]->second(workspace, size - 1, executor, stream), ACLNN_ERR_PARAM_INVALID,
          too_small);
    FAILS(calls[op]->second(NULL, 64, prepare(op, &o), stream), ACLNN_ERR_PARAM_NULLPTR,
          ": workspace is NULL while workspaceSize is 64\n");
    destroy(&o);
    o = make(op, &data[0], 0, 64); /* an empty batch is no work */
    OK_OR_SAY(calls[op]->second(NULL, 0, prepare(op, &o), stream));
    destroy(&o);
  }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      TEST(nothing_is_needed_once_phase_2_returned),
      TEST(a_thousand_calls_wait_for_one_synchronise),
      TEST(phase_2_may_run_on_another_thread),
      TEST(a_repeatable_executor_follows_its_addresses),
      TEST(eight_threads_run_all_operators_on_streams_of_their_own),
      TEST(two_streams_may_read_one_grad_output),
      TEST(an_event_orders_a_copy_behind_another_streams_operator),
      TEST(destroying_a_stream_finishes_its_operators),
      TEST(a_wrong_index_is_told_to_the_exception_callback),
      TEST(phase_2_looks_at_the_addresses),
      TEST(workspace_is_what_phase_1_asked_for),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
