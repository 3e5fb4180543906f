/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that a program with CUDA code of its own captures into a graph (docs/cuda.md): what a
 * replay gives has the bits of the CPU device. */
#include "cuda_graph.h"

/* Of every operator and of several kernels; the last ones cut their planes, which takes a
 * workspace. */
static const char *const lines[] = {
    "max_pool2d f32 i64 in=2x3x24x23 kernel=3 stride=2 pad=1 data=random",
    "max_pool2d bf16 i32 in=2x8x17x19 kernel=3x2 stride=2 pad=1 nhwc index=stray data=random",
    "avg_pool2d f32 in=2x3x31x29 kernel=5x3 stride=2x1 pad=1 ceil data=random",
    "adaptive_max_pool2d f16 i64 in=2x3x40x50 out=7x6 index=anywhere data=random",
    "adaptive_max_pool3d f32 i32 in=1x4x9x15x16 out=4x5x16 data=random",
    "adaptive_avg_pool3d bf16 in=2x2x11x17x13 out=5x6x11 data=random",
    "adaptive_avg_pool3d f32 in=2x3x4x5x6 out=1x1x1 data=random",
    "max_pool2d f32 i64 in=1x2x180x190 kernel=3 stride=2 pad=1 index=stray data=random",
    "adaptive_max_pool2d bf16 i32 in=1x2x200x150 out=60x70 index=stray data=random"};
enum { LINES = LENGTH(lines), CUT_LINES = 2 };

/* Without a launch before it, except where that is the way to get a workspace. */
static void every_operator_is_captured_and_replayed(void **state) {
  (void)state;
  for (int i = 0; i < LINES; i++) {
    struct trial t;
    open_trial(&t, lines[i], &devices);
    if (i >= LINES - CUT_LINES) GOOD(&t, trial_launch(&t) && trial_reset(&t));
    assert_int_equal(t.workspace.bytes > 0, i >= LINES - CUT_LINES);
    begin(gpu_stream(), CUDA_CAPTURE_THREAD_LOCAL);
    enqueue(&t);
    void *exec = end(gpu_stream(), 1);
    expect_untouched(&t);
    replay_with_new_data(exec, gpu_stream(), &t);
    drop(exec);
    GOOD(&t, trial_reset(&t) && trial_launch(&t)); /* the stream goes on as before */
    expect_right(&t);
    trial_close(&t);
  }
}

static void one_graph_holds_all_operators(void **state) {
  (void)state;
  struct trial t[LINES];
  for (int i = 0; i < LINES; i++) open_trial(&t[i], lines[i], &devices);
  for (int i = LINES - CUT_LINES; i < LINES; i++)
    GOOD(&t[i], trial_launch(&t[i]) && trial_reset(&t[i]));
  begin(gpu_stream(), CUDA_CAPTURE_RELAXED);
  for (int i = 0; i < LINES; i++) enqueue(&t[i]);
  void *exec = end(gpu_stream(), LINES);
  for (int i = 0; i < LINES; i++) expect_untouched(&t[i]);
  for (uint64_t round = 1; round <= REPLAYS; round++) {
    for (int i = 0; i < LINES; i++) change(&t[i], round * LINES + (uint64_t)i);
    replay(exec, gpu_stream());
    for (int i = 0; i < LINES; i++) expect_right(&t[i]);
  }
  drop(exec);
  for (int i = 0; i < LINES; i++) trial_close(&t[i]);
}

/* More than a stream keeps reports of: those of captured calls are not kept. */
static void a_graph_holds_any_number_of_calls(void **state) {
  (void)state;
  enum { CALLS = 1500 };
  struct trial t;
  open_trial(&t, lines[0], &devices);
  begin(gpu_stream(), CUDA_CAPTURE_THREAD_LOCAL);
  for (int i = 0; i < CALLS; i++) enqueue(&t);
  void *exec = end(gpu_stream(), CALLS);
  expect_untouched(&t);
  replay(exec, gpu_stream());
  expect_right(&t);
  drop(exec);
  trial_close(&t);
}

static void a_graph_outlives_its_stream(void **state) {
  (void)state;
  struct trial t;
  struct trial_devices on = devices;
  on.at[GPU].stream = make_stream();
  open_trial(&t, lines[0], &on);
  begin(on.at[GPU].stream, CUDA_CAPTURE_THREAD_LOCAL);
  enqueue(&t);
  void *exec = end(on.at[GPU].stream, 1);
  OK_OR_SAY(aclrtDestroyStream(on.at[GPU].stream));
  replay_with_new_data(exec, gpu_stream(), &t);
  drop(exec);
  trial_close(&t);
}

static void copies_and_fills_become_part_of_the_graph(void **state) {
  (void)state;
  enum { BYTES = 4096 };
  char *from = device_memory(BYTES), *to = device_memory(BYTES);
  OK_OR_SAY(aclrtMemset(from, BYTES, 1, BYTES));
  OK_OR_SAY(aclrtMemset(to, BYTES, 2, BYTES));
  begin(gpu_stream(), CUDA_CAPTURE_THREAD_LOCAL);
  OK_OR_SAY(aclrtMemcpyAsync(to, BYTES, from, BYTES, ACL_MEMCPY_DEVICE_TO_DEVICE, gpu_stream()));
  OK_OR_SAY(aclrtMemsetAsync(from, BYTES, 3, BYTES, gpu_stream()));
  void *exec = end(gpu_stream(), 2);
  assert_int_equal(fetch_byte(from), 1);
  assert_int_equal(fetch_byte(to + BYTES - 1), 2);
  replay(exec, gpu_stream());
  assert_int_equal(fetch_byte(from), 3);
  assert_int_equal(fetch_byte(to + BYTES - 1), 1);
  replay(exec, gpu_stream());
  assert_int_equal(fetch_byte(to + BYTES - 1), 3);
  drop(exec);
  OK_OR_SAY(aclrtFree(from));
  OK_OR_SAY(aclrtFree(to));
}

/* --- events --- */

static bool is_complete(aclrtEvent event) {
  aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_NOT_READY;
  OK_OR_SAY(aclrtQueryEventStatus(event, &status));
  return status == ACL_EVENT_RECORDED_STATUS_COMPLETE;
}

/* Nobody outside waits for them, neither the host nor a stream nor another capture. */
static void events_of_a_capture_are_complete_outside_it(void **state) {
  (void)state;
  struct trial t;
  aclrtEvent event;
  const aclrtStream other = make_stream();
  open_trial(&t, lines[0], &devices);
  OK_OR_SAY(aclrtCreateEvent(&event));
  begin(gpu_stream(), CUDA_CAPTURE_THREAD_LOCAL);
  enqueue(&t);
  OK_OR_SAY(aclrtRecordEvent(event, gpu_stream()));
  OK_OR_SAY(aclrtStreamWaitEvent(gpu_stream(), event));
  OK_OR_SAY(aclrtStreamWaitEvent(other, event));
  assert_int_equal(capture_status(other), CUDA_NOT_CAPTURED);
  assert_true(is_complete(event));
  OK_OR_SAY(aclrtSynchronizeEvent(event));
  drop(end(gpu_stream(), 1));
  assert_true(is_complete(event));
  OK_OR_SAY(aclrtSynchronizeStream(other));
  begin(gpu_stream(), CUDA_CAPTURE_THREAD_LOCAL);
  OK_OR_SAY(aclrtStreamWaitEvent(gpu_stream(), event));
  enqueue(&t);
  void *exec = end(gpu_stream(), 1);
  expect_untouched(&t);
  replay_with_new_data(exec, gpu_stream(), &t);
  drop(exec);
  OK_OR_SAY(aclrtDestroyEvent(event));
  OK_OR_SAY(aclrtDestroyStream(other));
  trial_close(&t);
}

/* The program's own event draws the second stream in, ours brings it back. */
static void two_streams_are_captured_into_one_graph(void **state) {
  (void)state;
  struct trial t[2];
  struct trial_devices on = devices;
  aclrtEvent join;
  void *fork = NULL;
  on.at[GPU].stream = make_stream();
  open_trial(&t[0], lines[0], &devices);
  open_trial(&t[1], lines[2], &on);
  OK_OR_SAY(aclrtCreateEvent(&join));
  CUDA_OK(cuda.cuEventCreate(&fork, 0));
  begin(gpu_stream(), CUDA_CAPTURE_THREAD_LOCAL);
  CUDA_OK(cuda.cuEventRecord(fork, native(gpu_stream())));
  CUDA_OK(cuda.cuStreamWaitEvent(native(on.at[GPU].stream), fork, 0));
  enqueue(&t[1]);
  OK_OR_SAY(aclrtRecordEvent(join, on.at[GPU].stream));
  enqueue(&t[0]);
  OK_OR_SAY(aclrtStreamWaitEvent(gpu_stream(), join));
  void *exec = end(gpu_stream(), 2);
  for (int i = 0; i < 2; i++) expect_untouched(&t[i]);
  replay(exec, gpu_stream());
  for (int i = 0; i < 2; i++) expect_right(&t[i]);
  drop(exec);
  CUDA_OK(cuda.cuEventDestroy_v2(fork));
  OK_OR_SAY(aclrtDestroyEvent(join));
  OK_OR_SAY(aclrtDestroyStream(on.at[GPU].stream));
  for (int i = 0; i < 2; i++) trial_close(&t[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(every_operator_is_captured_and_replayed),
      TEST(one_graph_holds_all_operators),
      TEST(a_graph_holds_any_number_of_calls),
      TEST(a_graph_outlives_its_stream),
      TEST(copies_and_fills_become_part_of_the_graph),
      TEST(events_of_a_capture_are_complete_outside_it),
      TEST(two_streams_are_captured_into_one_graph),
  };
  return gpu_is_there() ? cmocka_run_group_tests(tests, set_up_capture, tear_down) : 77;
}
