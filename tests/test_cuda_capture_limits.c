/* SPDX-License-Identifier: Apache-2.0 */
/* What cannot be captured into a CUDA graph says so and breaks nothing else, and what goes on
 * beside a capture (docs/cuda.md). */
#include <pthread.h>

#include "aclnnop/aclnn_avgpool2d_backward.h"
#include "cuda_graph.h"

static const char plain[] = "max_pool2d f32 i64 in=2x3x24x23 kernel=3 stride=2 pad=1 data=random";
static const char adaptive[] = "adaptive_max_pool2d f16 i64 in=2x3x40x50 out=7x6 data=random";

static bool ran;

static void run(void *unused) {
  (void)unused;
  ran = true;
}

/* The capture goes on afterwards. */
static void what_needs_the_host_is_refused(void **state) {
  (void)state;
  struct trial t;
  aclrtNotify notify;
  aclrtStreamStatus status = ACL_STREAM_STATUS_COMPLETE;
  const aclrtStream s = gpu_stream();
  open_trial(&t, plain, &devices);
  OK_OR_SAY(aclrtCreateNotify(&notify, 0));
  begin(s, CUDA_CAPTURE_THREAD_LOCAL);
  FAILS(aclrtLaunchHostFunc(s, run, NULL), 207000, "aclrtLaunchHostFunc", "captured");
  FAILS(aclrtRecordNotify(notify, s), 207000, "aclrtRecordNotify", "captured");
  FAILS(aclrtWaitAndResetNotify(notify, s, 0), 207000, "aclrtWaitAndResetNotify", "captured");
  FAILS(aclnnAvgPool2dBackward(NULL, 0, NULL, s), 161001, "aclnnAvgPool2dBackward", "executor");
  OK_OR_SAY(aclrtStreamQuery(s, &status)); /* which does no harm */
  assert_int_equal(status, ACL_STREAM_STATUS_NOT_READY);
  assert_int_equal(capture_status(s), CUDA_CAPTURED);
  enqueue(&t);
  void *exec = end(s, 1);
  expect_untouched(&t);
  OK_OR_SAY(aclrtStreamQuery(s, &status));
  assert_int_equal(status, ACL_STREAM_STATUS_COMPLETE);
  replay_with_new_data(exec, s, &t);
  drop(exec);
  assert_false(ran);
  OK_OR_SAY(aclrtDestroyNotify(notify));
  trial_close(&t);
}

static int synchronise_stream(void) { return aclrtSynchronizeStream(gpu_stream()); }
static int synchronise_in_time(void) { return aclrtSynchronizeStreamWithTimeout(gpu_stream(), 10); }
static int synchronise_device(void) { return aclrtSynchronizeDevice(); }

/* It fails, and what is captured is lost; the next capture is not. */
static void synchronising_breaks_a_capture_and_nothing_else(void **state) {
  (void)state;
  static int (*const ways[])(void) = {synchronise_stream, synchronise_in_time, synchronise_device};
  struct trial t;
  open_trial(&t, plain, &devices);
  for (size_t i = 0; i < LENGTH(ways); i++) {
    void *graph = NULL;
    begin(gpu_stream(), CUDA_CAPTURE_THREAD_LOCAL);
    enqueue(&t);
    FAILS(ways[i](), 507000, "aclrtSynchronize", "CUDA says", "StreamCapture");
    assert_int_equal(capture_status(gpu_stream()), CUDA_CAPTURE_BROKEN);
    FAILS(aclrtLaunchHostFunc(gpu_stream(), run, NULL), 207000, "aclrtLaunchHostFunc");
    assert_int_equal(cuda.cuStreamEndCapture(native(gpu_stream()), &graph),
                     CUDA_CAPTURE_INVALIDATED);
    assert_null(graph);
    expect_untouched(&t);
    begin(gpu_stream(), CUDA_CAPTURE_THREAD_LOCAL);
    enqueue(&t);
    void *exec = end(gpu_stream(), 1);
    replay_with_new_data(exec, gpu_stream(), &t);
    drop(exec);
    GOOD(&t, trial_reset(&t) && trial_launch(&t));
    expect_right(&t);
    change(&t, 1);
  }
  trial_close(&t);
}

/* What of the capture is left is CUDA's to say. */
static void what_cuda_refuses_meanwhile_has_a_status(void **state) {
  (void)state;
  struct trial t;
  void *memory = NULL, *graph = NULL;
  open_trial(&t, plain, &devices);
  begin(gpu_stream(), CUDA_CAPTURE_THREAD_LOCAL);
  assert_int_not_equal(aclrtMalloc(&memory, 1 << 20, ACL_MEM_MALLOC_NORMAL_ONLY), ACL_SUCCESS);
  assert_non_null(aclGetRecentErrMsg());
  if (cuda.cuStreamEndCapture(native(gpu_stream()), &graph) == 0)
    CUDA_OK(cuda.cuGraphDestroy(graph));
  GOOD(&t, trial_launch(&t));
  expect_right(&t);
  trial_close(&t);
}

static void *launch_elsewhere(void *trial) {
  struct trial *t = trial;
  const bool good = aclrtSetCurrentContext(t->devices->at[GPU].context) == ACL_SUCCESS &&
                    trial_launch(t) && trial_launch(t);
  return good ? t : NULL;
}

/* The thread that captures, and others, use and synchronise them. */
static void other_streams_go_on_beside_a_capture(void **state) {
  (void)state;
  struct trial t, beside;
  struct trial_devices on = devices;
  pthread_t thread;
  void *good = NULL;
  on.at[GPU].stream = make_stream();
  open_trial(&t, plain, &devices);
  open_trial(&beside, adaptive, &on);
  GOOD(&beside, trial_launch(&beside));
  for (int mode = CUDA_CAPTURE_GLOBAL; mode <= CUDA_CAPTURE_RELAXED; mode++) {
    change(&beside, (uint64_t)mode);
    begin(gpu_stream(), mode);
    GOOD(&beside, trial_launch(&beside));
    assert_int_equal(pthread_create(&thread, NULL, launch_elsewhere, &beside), 0);
    assert_int_equal(pthread_join(thread, &good), 0);
    enqueue(&t);
    void *exec = end(gpu_stream(), 1);
    if (good == NULL) fail_msg("on another thread: %s", beside.why);
    expect_right(&beside);
    expect_untouched(&t);
    replay_with_new_data(exec, gpu_stream(), &t);
    drop(exec);
    GOOD(&t, trial_reset(&t));
  }
  OK_OR_SAY(aclrtDestroyStream(on.at[GPU].stream));
  trial_close(&beside);
  trial_close(&t);
}

/* Reports of calls made by now would lie where that of the captured one would have been. */
static void replay_among_other_calls(void *exec) {
  enum { CALLS = 1100 };
  struct trial good;
  open_trial(&good, plain, &devices);
  for (int i = 0; i < CALLS; i++) enqueue(&good);
  replay(exec, gpu_stream());
  expect_right(&good);
  trial_close(&good);
}

/* POOLGRAD_INDEX_CHECK is "error" here: the same call fails the stream when it is not captured. */
static void replays_drop_wrong_indices_in_silence(void **state) {
  (void)state;
  static const char *const wrong[] = {
      "max_pool2d f32 i64 in=2x3x24x23 kernel=3 stride=2 pad=1 index=outside data=random",
      "adaptive_max_pool2d bf16 i32 in=1x2x200x150 out=60x70 index=outside data=random"};
  for (size_t i = 0; i < LENGTH(wrong); i++) {
    struct trial t;
    open_trial(&t, wrong[i], &devices);
    GOOD(&t, trial_launch(&t) && trial_fetch(&t) && trial_compare(&t));
    assert_true(t.bad_index_reported);
    GOOD(&t, trial_reset(&t));
    begin(gpu_stream(), CUDA_CAPTURE_THREAD_LOCAL);
    enqueue(&t);
    void *exec = end(gpu_stream(), 1);
    expect_untouched(&t);
    for (uint64_t seed = 1; seed <= REPLAYS; seed++) {
      change(&t, seed);
      replay(exec, gpu_stream());
      expect_cpu_bytes(&t);
    }
    replay_among_other_calls(exec);
    drop(exec);
    GOOD(&t, trial_launch(&t) && trial_fetch(&t) && trial_compare(&t));
    assert_true(t.bad_index_reported);
    trial_close(&t);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(what_needs_the_host_is_refused),
      TEST(synchronising_breaks_a_capture_and_nothing_else),
      TEST(what_cuda_refuses_meanwhile_has_a_status),
      TEST(other_streams_go_on_beside_a_capture),
      TEST(replays_drop_wrong_indices_in_silence),
  };
  return gpu_is_there() ? cmocka_run_group_tests(tests, set_up_capture, tear_down) : 77;
}
