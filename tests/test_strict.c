/* SPDX-License-Identifier: Apache-2.0 */
/* Strict mode: where memory must lie, and how far it reaches.  Each mistake is refused in the mode
 * and works without it. */
#include <fcntl.h>
#include <sys/mman.h>

#include "aclnnop/aclnn_adaptive_max_pool2d_backward.h"
#include "apart.h"
#include "reveal.h"
#include "strict_fixture.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* aclrtMemcpyAsyncWithCondition */

static void the_variable_is_0_or_1(void **state) {
  (void)state;
  static const char *const wrong[] = {"2", "on", "yes", "01", "1 ", "-1"};
  for (size_t i = 0; i < LENGTH(wrong); i++) {
    setenv("POOLGRAD_STRICT", wrong[i], 1);
    FAILS(aclInit(NULL), 100000, "POOLGRAD_STRICT is '", wrong[i], "allowed is 0 or 1 (unset: 0)");
    FAILS(aclrtSetDevice(0), 100000, "aclrtSetDevice", "POOLGRAD_STRICT is '");
  }
  setenv("POOLGRAD_STRICT", "", 1);
  OK_OR_SAY(aclInit(NULL));
}

static aclError copy_the_wrong_way(void) {
  return aclrtMemcpy(device, BYTES, pinned, BYTES, ACL_MEMCPY_DEVICE_TO_HOST);
}

static void only_1_switches_it_on(void **state) {
  static const char *const off[] = {NULL, "", "0"};
  for (size_t i = 0; i < LENGTH(off); i++) {
    assert_int_equal(set_up_mode(off[i], state), 0);
    OK_OR_SAY(copy_the_wrong_way());
    assert_int_equal(tear_down(state), 0);
  }
  assert_int_equal(set_up_mode("1", state), 0);
  FAILS(copy_the_wrong_way(), 107000, "(POOLGRAD_STRICT=1)");
  assert_int_equal(tear_down(state), 0);
}

static void without_init_it_is_read_at_the_first_use(void **state) {
  (void)state;
  void *memory = NULL;
  setenv("POOLGRAD_STRICT", "1", 1);
  OK_OR_SAY(aclrtSetDevice(0));
  OK_OR_SAY(aclrtMalloc(&memory, 8, ACL_MEM_MALLOC_NORMAL_ONLY));
  FAILS(aclrtMemcpy(memory, 8, plain, 8, ACL_MEMCPY_DEVICE_TO_HOST), 107000, "POOLGRAD_STRICT");
}

static int count_words(const char *text, const char *word) {
  int count = 0;
  for (; (text = strstr(text, word)) != NULL; text++) count++;
  return count;
}

static void the_log_says_once_that_it_is_on(void **state) {
  (void)state;
  static char text[65536];
  const int file = memfd_create("log", 0);
  setenv("ASCEND_LOG_PRINT_TO_STDOUT", "1", 1);
  setenv("ASCEND_GLOBAL_LOG_LEVEL", "1", 1);
  setenv("POOLGRAD_STRICT", "1", 1);
  assert_true(file >= 0 && dup2(file, STDOUT_FILENO) == STDOUT_FILENO);
  OK_OR_SAY(aclInit(NULL));
  OK_OR_SAY(aclrtSetDevice(0));
  OK_OR_SAY(aclrtResetDevice(0));
  OK_OR_SAY(aclFinalize());
  OK_OR_SAY(aclInit(NULL));
  (void)fflush(stdout);
  assert_true(pread(file, text, sizeof text - 1, 0) > 0);
  assert_int_equal(count_words(text, "strict mode is on"), 1);
  assert_non_null(strstr(text, "INFO"));
}

/* --- the data of tensors --- */

static void host_memory_is_no_data(void **state) {
  (void)state;
  float on_stack[CELLS] = {0};
  float *from_malloc = calloc(CELLS, sizeof *from_malloc);
  void *const wrong[] = {plain, on_stack, from_malloc};
  for (size_t i = 0; i < LENGTH(wrong); i++) {
    FAILS(average(wrong[i], device, CELLS, stream), 161002, "aclnnAvgPool2dBackward",
          "the data address of gradOutput lies in plain host memory, "
          "memory from aclrtMalloc on device 0 is required (POOLGRAD_STRICT=1)");
    FAILS(average(device, wrong[i], CELLS, stream), 161002, "of gradInput lies in plain host");
  }
  FAILS(average(pinned, device, CELLS, stream), 161002,
        "of gradOutput lies in memory from aclrtMallocHost, memory from aclrtMalloc");
  free(from_malloc);
}

static void device_memory_and_registered_memory_are(void **state) {
  (void)state;
  OK_OR_SAY(average(device, other, CELLS, stream));
  OK_OR_SAY(average(device, registered, CELLS, stream));
  OK_OR_SAY(aclrtSynchronizeStream(stream));
}

enum { EDGE = 300 }; /* two tiles: the call asks for workspace */

static aclTensor *plane(aclDataType type, int64_t edge, void *data) {
  const int64_t dims[] = {1, edge, edge};
  return aclCreateTensor(dims, 3, type, NULL, 0, ACL_FORMAT_ND, dims, 3, data);
}

static void workspace_is_the_devices_too(void **state) {
  (void)state;
  void *large = device_memory(EDGE * EDGE * sizeof(float)), *workspace = device_memory(64);
  aclTensor *t[] = {plane(ACL_FLOAT, 1, device), plane(ACL_FLOAT, EDGE, NULL),
                    plane(ACL_INT32, 1, other), plane(ACL_FLOAT, EDGE, large)};
  void *const wrong[] = {plain, pinned};
  uint64_t size;
  aclOpExecutor *executor;
  send(other, &(int32_t){5}, sizeof(int32_t));
  for (size_t i = 0; i < LENGTH(wrong) + 1; i++) {
    OK_OR_SAY(
        aclnnAdaptiveMaxPool2dBackwardGetWorkspaceSize(t[0], t[1], t[2], t[3], &size, &executor));
    assert_int_equal(size, 64);
    if (i < LENGTH(wrong))
      FAILS(aclnnAdaptiveMaxPool2dBackward(wrong[i], size, executor, stream), 161002,
            "the data address of workspace lies in ", "memory from aclrtMalloc on device 0");
    else
      OK_OR_SAY(aclnnAdaptiveMaxPool2dBackward(workspace, size, executor, stream));
  }
  FAILS(aclrtFree(workspace), 207002, "devPtr is used by aclnnAdaptiveMaxPool2dBackward");
  for (size_t i = 0; i < LENGTH(t); i++) OK_OR_SAY(aclDestroyTensor(t[i]));
}

static void memory_of_another_device_is_no_data(void **state) {
  (void)state;
  setenv("POOLGRAD_STRICT", "1", 1);
  setenv("POOLGRAD_DEVICES", "cpu,cpu", 1);
  OK_OR_SAY(aclInit(NULL));
  OK_OR_SAY(aclrtSetDevice(1));
  void *far_away = device_memory(BYTES);
  OK_OR_SAY(aclrtSetDevice(0));
  void *near = device_memory(BYTES);
  FAILS(average(far_away, near, CELLS, NULL), 161002,
        "gradOutput lies in memory of device 1, the stream's device 0 is required");
}

/* Refused in every mode. */
static void an_executor_is_its_operators_own(void **state) {
  (void)state;
  aclTensor *t[] = {plane(ACL_FLOAT, 1, device), plane(ACL_FLOAT, 4, NULL),
                    plane(ACL_INT32, 1, other), plane(ACL_FLOAT, 4, device)};
  uint64_t size;
  aclOpExecutor *executor;
  OK_OR_SAY(
      aclnnAdaptiveMaxPool2dBackwardGetWorkspaceSize(t[0], t[1], t[2], t[3], &size, &executor));
  FAILS(aclnnAvgPool2dBackward(NULL, 0, executor, stream), 161002,
        "executor comes from aclnnAdaptiveMaxPool2dBackwardGetWorkspaceSize, it must come from "
        "aclnnAvgPool2dBackwardGetWorkspaceSize");
  OK_OR_SAY(aclDestroyAclOpExecutor(executor));
  for (size_t i = 0; i < LENGTH(t); i++) OK_OR_SAY(aclDestroyTensor(t[i]));
}

/* --- the direction of copies --- */

enum place { ON_DEVICE, PINNED, PLAIN, REGISTERED, PLACES };

static char *at(enum place place, bool second) {
  char *const begins[] = {device, pinned, plain, registered};
  return begins[place] + (second ? 32 : 0);
}

static const char *const names[PLACES] = {"memory from aclrtMalloc", "memory from aclrtMallocHost",
                                          "plain host memory", "memory from aclrtHostRegister"};

static aclError memcpy_batch(void *dst, void *src, aclrtMemcpyKind kind, bool async) {
  const bool from = kind == ACL_MEMCPY_DEVICE_TO_HOST || kind == ACL_MEMCPY_DEVICE_TO_DEVICE;
  const bool to = kind == ACL_MEMCPY_HOST_TO_DEVICE || kind == ACL_MEMCPY_DEVICE_TO_DEVICE;
  aclrtMemcpyBatchAttr attrs[2] = {{.dstLoc = {.type = ACL_MEM_LOCATION_TYPE_HOST},
                                    .srcLoc = {.type = ACL_MEM_LOCATION_TYPE_HOST}}};
  size_t size[] = {8, 8}, indexes[] = {0, 1}, failed = 7;
  void *dsts[] = {plain + 64, dst}, *srcs[] = {plain + 128, src};
  attrs[1].dstLoc.type = to ? ACL_MEM_LOCATION_TYPE_DEVICE : ACL_MEM_LOCATION_TYPE_HOST;
  attrs[1].srcLoc.type = from ? ACL_MEM_LOCATION_TYPE_DEVICE : ACL_MEM_LOCATION_TYPE_HOST;
  const aclError status =
      async ? aclrtMemcpyBatchAsync(dsts, size, srcs, size, 2, attrs, indexes, 2, &failed, stream)
            : aclrtMemcpyBatch(dsts, size, srcs, size, 2, attrs, indexes, 2, &failed);
  assert_int_equal(failed, status == 0 ? SIZE_MAX : 1);
  return status;
}

/* Every function that copies; each says for itself which kinds it has. */
static aclError copy_by(int function, void *dst, void *src, aclrtMemcpyKind kind) {
  switch (function) {
    case 0:
      return aclrtMemcpy(dst, 8, src, 8, kind);
    case 1:
      return aclrtMemcpyAsync(dst, 8, src, 8, kind, stream);
    case 2:
      return aclrtMemcpyAsyncWithCondition(dst, 8, src, 8, kind, stream);
    case 3:
      return aclrtMemcpy2d(dst, 4, src, 4, 4, 2, kind);
    case 4:
      return aclrtMemcpy2dAsync(dst, 4, src, 4, 4, 2, kind, stream);
    default:
      return memcpy_batch(dst, src, kind, function == 6);
  }
}

static bool has_kind(int function, aclrtMemcpyKind kind) {
  if (kind == ACL_MEMCPY_HOST_TO_HOST) return function == 0 || function >= 5;
  if (kind == ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE) return function <= 2;
  return kind != ACL_MEMCPY_DEFAULT || function <= 4;
}

/* Where the side that the kind wants on the device, or on the host, may lie. */
static bool agrees(enum place place, bool wants_device) {
  return place == REGISTERED || (place == ON_DEVICE) == wants_device;
}

static void try_copy(int function, aclrtMemcpyKind kind, enum place to, enum place from) {
  const bool by_address = kind == ACL_MEMCPY_DEFAULT;
  const bool from_device = kind == ACL_MEMCPY_DEVICE_TO_HOST || kind == ACL_MEMCPY_DEVICE_TO_DEVICE;
  const bool to_device = kind == ACL_MEMCPY_HOST_TO_DEVICE || kind == ACL_MEMCPY_DEVICE_TO_DEVICE ||
                         kind == ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE;
  const bool dst_agrees = by_address || agrees(to, to_device);
  const bool src_agrees = by_address || agrees(from, from_device);
  if (dst_agrees && src_agrees) {
    OK_OR_SAY(copy_by(function, at(to, false), at(from, true), kind));
    OK_OR_SAY(aclrtSynchronizeStream(stream)); /* the next one writes there too */
  } else {
    FAILS(copy_by(function, at(to, false), at(from, true), kind), 107000, "kind is ACL_MEMCPY_",
          dst_agrees ? "but src is " : "but dst is ", names[dst_agrees ? from : to],
          (dst_agrees ? from_device : to_device) ? ", memory from aclrtMalloc is required"
                                                 : ", host memory is required",
          "(POOLGRAD_STRICT=1)");
  }
}

static void the_direction_of_a_copy_must_be_right(void **state) {
  (void)state;
  for (int function = 0; function < 7; function++)
    for (int kind = 0; kind <= ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE; kind++)
      for (enum place to = 0; to < PLACES && has_kind(function, (aclrtMemcpyKind)kind); to++)
        for (enum place from = 0; from < PLACES; from++)
          try_copy(function, (aclrtMemcpyKind)kind, to, from);
}

/* --- fills and values --- */

static void plain_memory_is_not_filled(void **state) {
  (void)state;
  static const char words[] =
      "devPtr is plain host memory, memory from aclrtMalloc or aclrtMallocHost is required";
  FAILS(aclrtMemset(plain, 8, 1, 8), 107000, words);
  FAILS(aclrtMemsetAsync(plain, 8, 1, 8, stream), 107000, words);
  FAILS(aclrtMemsetD32(plain, 8, 1, 2), 107000, words);
  FAILS(aclrtMemsetD32Async(plain, 8, 1, 2, stream), 107000, words);
  FAILS(aclrtValueWrite(plain, 1, 0, stream), 107000, "devAddr is plain host memory");
  FAILS(aclrtValueWait(plain, 1, 0, stream), 107000, "devAddr is plain host memory");
  OK_OR_SAY(aclrtMemset(device, 8, 1, 8));
  OK_OR_SAY(aclrtMemset(pinned, 8, 1, 8));
  OK_OR_SAY(aclrtMemsetD32Async(registered, 8, 1, 2, stream));
  OK_OR_SAY(aclrtValueWrite(device, 1, 0, stream));
  OK_OR_SAY(aclrtValueWait(device, 1, 0, stream));
}

/* --- the padding --- */

static void padding_is_not_the_programs(void **state) {
  (void)state;
  const aclrtMemcpyKind down = ACL_MEMCPY_HOST_TO_DEVICE, up = ACL_MEMCPY_DEVICE_TO_HOST;
  OK_OR_SAY(average(device, other, CELLS, stream));
  FAILS(average(device, other, CELLS + 1, stream), 161002,
        "reaches 104 bytes from its data address, where only 100 are allocated");
  OK_OR_SAY(aclrtMemcpy(device, BYTES, plain, BYTES, down));
  FAILS(aclrtMemcpy(device, BYTES + 1, plain, BYTES + 1, down), 107000,
        "101 bytes at dst run over the end of its allocation, which has 100 left");
  FAILS(aclrtMemcpy(plain, BYTES + 1, device, BYTES + 1, up), 107000, "101 bytes at src",
        "100 left");
  FAILS(aclrtMemcpy(plain, 1, device + BYTES, 1, up), 107000, "1 bytes at src", "0 left");
  FAILS(aclrtMemcpy(plain, 1, device + BYTES + 20, 1, up), 107000, "1 bytes at src", "0 left");
  FAILS(aclrtMemcpyAsync(pinned, BYTES + 1, device, BYTES + 1, up, stream), 107000, "100 left");
  FAILS(aclrtMemcpy2d(plain, 51, device, 51, 51, 2, up), 107000, "102 bytes at src", "100 left");
  FAILS(aclrtMemset(device, BYTES + 1, 0, BYTES + 1), 107000, "101 bytes at devPtr", "100 left");
  FAILS(aclrtMemset(pinned, BYTES + 1, 0, BYTES + 1), 107000, "101 bytes at devPtr", "100 left");
  OK_OR_SAY(aclrtMemset(device + 1, BYTES - 1, 0, BYTES - 1));
  OK_OR_SAY(aclrtSynchronizeStream(stream));
}

/* --- without the mode --- */

static void without_the_mode_all_of_it_works(void **state) {
  (void)state;
  SKIP_ON_CUDA("a GPU reaches no host memory");
  reveal_padding(device);
  reveal_padding(other);
  OK_OR_SAY(average((float *)plain, device, CELLS, stream));
  OK_OR_SAY(average(device, pinned, CELLS, stream));
  OK_OR_SAY(average(device, other, CELLS + 1, stream));
  OK_OR_SAY(aclrtSynchronizeStream(stream));
  for (int function = 0; function < 7; function++)
    for (int kind = 0; kind <= ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE; kind++)
      for (enum place to = 0; to < PLACES && has_kind(function, (aclrtMemcpyKind)kind); to++)
        for (enum place from = 0; from < PLACES; from++) {
          OK_OR_SAY(copy_by(function, at(to, false), at(from, true), (aclrtMemcpyKind)kind));
          OK_OR_SAY(aclrtSynchronizeStream(stream));
        }
  OK_OR_SAY(aclrtMemset(plain, 8, 1, 8));
  OK_OR_SAY(aclrtValueWrite(plain, 1, 0, stream));
  OK_OR_SAY(aclrtSynchronizeStream(stream));
  OK_OR_SAY(aclrtMemset(device, BYTES + 60, 0, BYTES + 60));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      APART(the_variable_is_0_or_1),
      APART(only_1_switches_it_on),
      APART(without_init_it_is_read_at_the_first_use),
      APART(the_log_says_once_that_it_is_on),
      APART(memory_of_another_device_is_no_data),
      STRICT(host_memory_is_no_data),
      STRICT(device_memory_and_registered_memory_are),
      STRICT(workspace_is_the_devices_too),
      STRICT(an_executor_is_its_operators_own),
      RELAXED(an_executor_is_its_operators_own),
      STRICT(the_direction_of_a_copy_must_be_right),
      STRICT(plain_memory_is_not_filled),
      STRICT(padding_is_not_the_programs),
      RELAXED(without_the_mode_all_of_it_works),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
