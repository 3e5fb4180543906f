/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of CUDA graphs start with: a GPU and the CPU, trials that are captured on the one and
 * compared with the other. */
#ifndef PG_TESTS_CUDA_GRAPH_H_
#define PG_TESTS_CUDA_GRAPH_H_

#include "cuda_driver.h"
#include "ops_fixture.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, NULL, end_what_is_left)
#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

#define GOOD(trial, call)                                 \
  do {                                                    \
    if (!(call)) fail_msg("%s: %s", #call, (trial)->why); \
  } while (0)

enum { GPU, CPU, REPLAYS = 3 };

static inline aclrtStream gpu_stream(void) { return devices.at[GPU].stream; }

static inline aclrtStream make_stream(void) {
  aclrtStream stream = NULL;
  OK_OR_SAY(aclrtCreateStream(&stream));
  return stream;
}

/* --- graphs --- */

static inline void *native(aclrtStream stream) {
  void *found = poolgrad_cuda_stream(stream);
  if (found == NULL) fail_msg("%s", aclGetRecentErrMsg());
  return found;
}

static inline void begin(aclrtStream stream, int mode) {
  CUDA_OK(cuda.cuStreamBeginCapture_v2(native(stream), mode));
}

static inline int capture_status(aclrtStream stream) {
  int status = -1;
  CUDA_OK(cuda.cuStreamIsCapturing(native(stream), &status));
  return status;
}

/* Something to launch, made of so many nodes at least. */
static inline void *end(aclrtStream stream, size_t least) {
  void *graph = NULL, *exec = NULL;
  size_t nodes = 0;
  CUDA_OK(cuda.cuStreamEndCapture(native(stream), &graph));
  CUDA_OK(cuda.cuGraphGetNodes(graph, NULL, &nodes));
  assert_true(nodes >= least);
  CUDA_OK(cuda.cuGraphInstantiateWithFlags(&exec, graph, 0));
  CUDA_OK(cuda.cuGraphDestroy(graph));
  return exec;
}

static inline void replay(void *exec, aclrtStream stream) {
  CUDA_OK(cuda.cuGraphLaunch(exec, native(stream)));
  OK_OR_SAY(aclrtSynchronizeStream(stream));
}

static inline void drop(void *exec) { CUDA_OK(cuda.cuGraphExecDestroy(exec)); }

/* --- what is captured --- */

static inline void open_trial(struct trial *t, const char *line, const struct trial_devices *on) {
  const struct problem p = read_problem(line);
  GOOD(t, trial_open(t, &p, on));
}

static inline void enqueue(struct trial *t) { GOOD(t, trial_enqueue(t)); }

/* Other gradients and indices at the same addresses, and poison in gradInput. */
static inline void change(struct trial *t, uint64_t seed) {
  t->problem.seed = seed;
  free(t->right);
  t->right = NULL;
  trial_fill(t);
  for (int i = 0; i < POOL_TENSORS; i++) OK_OR_SAY(guarded_send(&t->memory[i]));
}

static inline void expect_untouched(struct trial *t) {
  int64_t at;
  OK_OR_SAY(aclrtSynchronizeStream(t->devices->at[t->device].stream));
  OK_OR_SAY(guarded_fetch(&t->memory[GRAD_IN]));
  if (guarded_differs(&t->memory[GRAD_IN], false, &at)) fail_msg("byte %d was written", (int)at);
}

/* gradInput is, byte for byte, what the CPU device makes of the same data. */
static inline void expect_cpu_bytes(struct trial *t) {
  struct trial twin;
  struct guarded *mine = &t->memory[GRAD_IN], *its = &twin.memory[GRAD_IN];
  GOOD(&twin, trial_open(&twin, &t->problem, &devices) && trial_move(&twin, CPU));
  GOOD(&twin, trial_launch(&twin));
  OK_OR_SAY(guarded_fetch(its));
  OK_OR_SAY(guarded_fetch(mine));
  assert_memory_equal(guarded_found(mine), guarded_found(its), mine->bytes);
  trial_close(&twin);
}

/* And right, with nothing written beside it. */
static inline void expect_right(struct trial *t) {
  expect_cpu_bytes(t);
  GOOD(t, trial_fetch(t) && trial_compare(t));
}

static inline void replay_with_new_data(void *exec, aclrtStream stream, struct trial *t) {
  for (uint64_t seed = 1; seed <= REPLAYS; seed++) {
    change(t, seed * 77);
    replay(exec, stream);
    expect_right(t);
  }
}

/* --- the program --- */

static inline int set_up_capture(void **state) {
  void *context = NULL;
  if (set_up_with("error", state) != 0) return 1;
  cuda_open();
  CUDA_OK(cuda.cuStreamGetCtx(native(gpu_stream()), &context));
  CUDA_OK(cuda.cuCtxSetCurrent(context)); /* as CUDA code of the program's own would have it */
  return 0;
}

/* A test that failed within a capture must not fail those behind it. */
static inline int end_what_is_left(void **state) {
  (void)state;
  void *graph;
  return capture_status(gpu_stream()) != CUDA_NOT_CAPTURED &&
         cuda.cuStreamEndCapture(native(gpu_stream()), &graph) != 0;
}

/* Else a word on why not. */
static inline bool gpu_is_there(void) {
  const char *words = getenv("POOLGRAD_DEVICES"), *why = NULL;
  if (words != NULL && strncmp(words, "cuda", 4) != 0) why = "POOLGRAD_DEVICES does not name one";
  setenv("POOLGRAD_DEVICES", "cuda:0,cpu", 1);
  if (why == NULL && aclInit(NULL) != ACL_SUCCESS) why = aclGetRecentErrMsg();
  if (why != NULL) (void)skip_without_gpu(why);
  return why == NULL && aclFinalize() == ACL_SUCCESS;
}

#endif
