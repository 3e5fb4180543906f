/* SPDX-License-Identifier: Apache-2.0 */
/* Reserved addresses and physical memory: neighbours are one piece, and what is wrong is refused.
 */
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "aclnnop/aclnn_avgpool2d.h"
#include "expect.h"
#include "faults.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_range, tear_down_range)

enum { PIECE = 2 << 20, PIECES = 4 };

static char *range; /* of PIECES pieces, nothing mapped */

static aclrtPhysicalMemProp prop_of(uint32_t device) {
  return (aclrtPhysicalMemProp){.memAttr = ACL_HBM_MEM_HUGE,
                                .location = {.id = device, .type = ACL_MEM_LOCATION_TYPE_DEVICE}};
}

static int set_up_range(void **state) {
  void *base = NULL;
  if (set_up_device(state) != 0) return 1;
  OK_OR_SAY(aclrtReserveMemAddress(&base, (size_t)PIECES * PIECE, 0, NULL, 1));
  range = base;
  return 0;
}

/* aclFinalize unmaps and releases whatever a test has left. */
static int tear_down_range(void **state) { return tear_down_device(state); }

static aclrtDrvMemHandle take(size_t pieces) {
  const aclrtPhysicalMemProp prop = prop_of(0);
  aclrtDrvMemHandle memory = NULL;
  OK_OR_SAY(aclrtMallocPhysical(&memory, pieces * PIECE, &prop, 0));
  return memory;
}

static void map(size_t at, size_t pieces, aclrtDrvMemHandle memory) {
  OK_OR_SAY(aclrtMapMem(range + at * PIECE, pieces * PIECE, 0, memory, 0));
}

static aclrtDrvMemHandle map_new(size_t at, size_t pieces) {
  aclrtDrvMemHandle memory = take(pieces);
  map(at, pieces, memory);
  return memory;
}

static void fill(size_t at, int value, size_t bytes) {
  OK_OR_SAY(aclrtMemset(range + at, bytes, value, bytes));
}

static void neighbours_are_one_piece(void **state) {
  (void)state;
  unsigned char bytes[64];
  map_new(1, 1);
  map_new(0, 1); /* in any order */
  map_new(2, 2);
  fill(0, 7, (size_t)PIECES * PIECE);
  fill(PIECE - 32, 9, 64);
  fetch(bytes, range + PIECE - 32, sizeof bytes);
  for (size_t i = 0; i < sizeof bytes; i++) assert_int_equal(bytes[i], 9);
  assert_int_equal(fetch_byte(range + PIECE - 33), 7);
  assert_int_equal(fetch_byte(range + PIECE + 32), 7);
  assert_int_equal(fetch_byte(range + (size_t)PIECES * PIECE - 1), 7);
  FAILS(aclrtMemset(range + 1, (size_t)PIECES * PIECE, 0, (size_t)PIECES * PIECE),
        ACL_ERROR_RT_PARAM_INVALID, "aclrtMemset", "over the end");
}

static void a_gap_ends_the_piece(void **state) {
  (void)state;
  char byte = 1;
  aclrtDrvMemHandle middle;
  map_new(0, 1);
  middle = map_new(1, 1);
  map_new(2, 1);
  fill(0, 1, 3 * PIECE);
  OK_OR_SAY(aclrtUnmapMem(range + PIECE));
  FAILS(aclrtMemset(range, 3 * PIECE, 0, PIECE + 1), ACL_ERROR_RT_PARAM_INVALID, "aclrtMemset");
  FAILS(aclrtMemset(range + PIECE, 1, 0, 1), ACL_ERROR_RT_PARAM_INVALID, "aclrtMemset");
  FAILS(aclrtMemcpy(&byte, 1, range + 2 * PIECE - 1, 1, ACL_MEMCPY_DEVICE_TO_HOST),
        ACL_ERROR_RT_PARAM_INVALID, "aclrtMemcpy", "src");
  fill(0, 2, PIECE);
  fill(2 * PIECE, 2, PIECE);
  map(1, 1, middle);
  fill(0, 3, 3 * PIECE);
  assert_int_equal(fetch_byte(range + PIECE), 3);
  FAILS(aclrtMemset(range, 4 * PIECE, 0, 3 * PIECE + 1), ACL_ERROR_RT_PARAM_INVALID, "over");
}

static void neighbours_of_another_reservation_are_apart(void **state) {
  (void)state;
  void *second = NULL;
  OK_OR_SAY(aclrtReserveMemAddress(&second, PIECE, 0, NULL, 0));
  map_new(PIECES - 1, 1);
  OK_OR_SAY(aclrtMapMem(second, PIECE, 0, take(1), 0));
  FAILS(aclrtMemset(second, PIECE + 1, 0, PIECE + 1), ACL_ERROR_RT_PARAM_INVALID, "over");
  FAILS(aclrtMemset(range + (PIECES - 1) * PIECE, PIECE + 1, 0, PIECE + 1),
        ACL_ERROR_RT_PARAM_INVALID, "over");
}

static void memory_may_be_mapped_twice(void **state) {
  (void)state;
  aclrtDrvMemHandle memory = map_new(0, 1);
  map(2, 1, memory);
  fill(5, 77, 1);
  assert_int_equal(fetch_byte(range + 2 * PIECE + 5), 77);
  OK_OR_SAY(aclrtUnmapMem(range));
  assert_int_equal(fetch_byte(range + 2 * PIECE + 5), 77);
}

static void memory_keeps_its_bytes_while_it_is_mapped_nowhere(void **state) {
  (void)state;
  aclrtDrvMemHandle memory = map_new(0, 2);
  fill(0, 5, 2 * PIECE);
  OK_OR_SAY(aclrtUnmapMem(range));
  map(1, 2, memory);
  assert_int_equal(fetch_byte(range + PIECE), 5);
  assert_int_equal(fetch_byte(range + 3 * PIECE - 1), 5);
}

static void freed_memory_lasts_until_it_is_unmapped(void **state) {
  (void)state;
  aclrtMemUsageInfo use;
  size_t count;
  aclrtDrvMemHandle memory = map_new(0, 1);
  fill(0, 8, PIECE);
  OK_OR_SAY(aclrtFreePhysical(memory));
  assert_int_equal(fetch_byte(range + PIECE - 1), 8);
  OK_OR_SAY(aclrtGetMemUsageInfo(0, &use, 1, &count));
  assert_int_equal(use.curMemSize, PIECE);
  FAILS(aclrtMapMem(range + PIECE, PIECE, 0, memory, 0), ACL_ERROR_RT_INVALID_HANDLE, "handle",
        "freed physical memory");
  FAILS(aclrtFreePhysical(memory), ACL_ERROR_RT_INVALID_HANDLE, "aclrtFreePhysical", "freed");
  OK_OR_SAY(aclrtUnmapMem(range));
  OK_OR_SAY(aclrtGetMemUsageInfo(0, &use, 1, &count));
  assert_int_equal(use.curMemSize, 0);
}

/* Averages of 2 x 2 over rows of COLUMNS floats; input and output cross borders of pieces. */
enum { COLUMNS = 2048, ROWS = 2 * PIECE / COLUMNS / (int)sizeof(float) };

static void average(void *in, void *out) {
  const int64_t dims[] = {1, 1, ROWS, COLUMNS}, half[] = {1, 1, ROWS / 2, COLUMNS / 2};
  const int64_t two[] = {2, 2}, none[] = {0, 0};
  aclTensor *self = aclCreateTensor(dims, 4, ACL_FLOAT, NULL, 0, ACL_FORMAT_NCHW, dims, 4, in);
  aclTensor *result = aclCreateTensor(half, 4, ACL_FLOAT, NULL, 0, ACL_FORMAT_NCHW, half, 4, out);
  aclIntArray *twos = aclCreateIntArray(two, 2), *zeros = aclCreateIntArray(none, 2);
  aclOpExecutor *executor;
  uint64_t size;
  OK_OR_SAY(aclnnAvgPool2dGetWorkspaceSize(self, twos, twos, zeros, false, true, 0, 0, result,
                                           &size, &executor));
  assert_int_equal(size, 0);
  OK_OR_SAY(aclnnAvgPool2d(NULL, 0, executor, NULL));
  OK_OR_SAY(aclrtSynchronizeStream(NULL));
  OK_OR_SAY(aclDestroyTensor(self));
  OK_OR_SAY(aclDestroyTensor(result));
  OK_OR_SAY(aclDestroyIntArray(twos));
  OK_OR_SAY(aclDestroyIntArray(zeros));
}

static void operators_cross_borders(void **state) {
  (void)state;
  const size_t in_bytes = (size_t)ROWS * COLUMNS * sizeof(float), out_bytes = in_bytes / 4;
  float *in = malloc(in_bytes), *out = malloc(out_bytes);
  assert_non_null(in);
  assert_non_null(out);
  for (size_t i = 0; i < (size_t)ROWS * COLUMNS; i++) in[i] = (float)(i / COLUMNS);
  for (size_t i = 0; i < PIECES; i++) map_new(i, 1);
  char *from = range + PIECE / 2, *to = from + in_bytes;
  send(from, in, in_bytes);
  average(from, to);
  fetch(out, to, out_bytes);
  for (size_t i = 0; i < out_bytes / sizeof(float); i++)
    if (out[i] != 2 * (float)(i / (COLUMNS / 2)) + 0.5f) fail_msg("element %zu is %f", i, out[i]);
  free(in);
  free(out);
}

static void mapped_memory_is_device_memory(void **state) {
  (void)state;
  aclrtPtrAttributes about;
  map_new(0, 1);
  OK_OR_SAY(aclrtPointerGetAttributes(range + 100, &about));
  assert_int_equal(about.location.type, ACL_MEM_LOCATION_TYPE_DEVICE);
  assert_int_equal(about.location.id, 0);
  OK_OR_SAY(aclrtPointerGetAttributes(range + PIECE, &about));
  assert_int_equal(about.location.type, ACL_MEM_LOCATION_TYPE_UNREGISTERED);
  FAILS(aclrtFree(range), ACL_ERROR_RT_PARAM_INVALID, "devPtr", "aclrtMapMem");
  FAILS(aclrtHostRegisterV2(range + PIECE - 4096, 4096, 0),
        ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "aclrtMapMem");
  OK_OR_SAY(aclrtUnmapMem(range));
}

static void sizes_are_checked(void **state) {
  (void)state;
  const aclrtPhysicalMemProp prop = prop_of(0);
  void *base = state;
  aclrtDrvMemHandle memory = state;
  FAILS(aclrtReserveMemAddress(NULL, PIECE, 0, NULL, 0), ACL_ERROR_INVALID_PARAM, "virPtr");
  FAILS(aclrtReserveMemAddress(&base, 0, 0, NULL, 0), ACL_ERROR_INVALID_PARAM, "size");
  FAILS(aclrtReserveMemAddress(&base, PIECE, 4096, NULL, 0), ACL_ERROR_RT_PARAM_INVALID,
        "alignment", "4096");
  FAILS(aclrtReserveMemAddress(&base, PIECE, 0, range, 0), ACL_ERROR_RT_PARAM_INVALID, "expectPtr");
  FAILS(aclrtReserveMemAddress(&base, PIECE, 0, NULL, 2), ACL_ERROR_RT_PARAM_INVALID, "flags");
  FAILS(aclrtMallocPhysical(NULL, PIECE, &prop, 0), ACL_ERROR_INVALID_PARAM, "handle");
  FAILS(aclrtMallocPhysical(&memory, 0, &prop, 0), ACL_ERROR_INVALID_PARAM, "size");
  FAILS(aclrtMallocPhysical(&memory, 1, &prop, 0), ACL_ERROR_RT_PARAM_INVALID, "size");
  FAILS(aclrtMallocPhysical(&memory, PIECE, NULL, 0), ACL_ERROR_INVALID_PARAM, "prop");
  FAILS(aclrtMallocPhysical(&memory, PIECE, &prop, 1), ACL_ERROR_RT_PARAM_INVALID, "flags");
  assert_true(base == (void *)state && memory == (void *)state);
}

static void absurd_sizes_are_refused(void **state) {
  (void)state;
  const aclrtPhysicalMemProp prop = prop_of(0);
  const size_t most = SIZE_MAX / PIECE * PIECE;
  void *base = state;
  aclrtDrvMemHandle memory = state;
  FAILS(aclrtReserveMemAddress(&base, SIZE_MAX, 0, NULL, 0), ACL_ERROR_RT_PARAM_INVALID, "size");
  assert_int_not_equal(aclrtReserveMemAddress(&base, most, 0, NULL, 0), ACL_SUCCESS);
  assert_non_null(aclGetRecentErrMsg());
  FAILS(aclrtMallocPhysical(&memory, most, &prop, 0), ACL_ERROR_RT_MEMORY_ALLOCATION, "no memory");
  assert_true(base == (void *)state && memory == (void *)state);
}

/* A change of one field each, and the word of the sentence. */
static void properties_are_checked(void **state) {
  (void)state;
  size_t granularity = 1;
  aclrtDrvMemHandle memory = NULL;
  aclrtPhysicalMemProp good = prop_of(0);
  const struct {
    aclrtPhysicalMemProp prop;
    int code;
    const char *word;
  } rows[] = {
      {{.handleType = ACL_MEM_HANDLE_TYPE_POSIX, .location = good.location}, 107000, "handleType"},
      {{.allocationType = (aclrtMemAllocationType)1, .location = good.location},
       107000,
       "allocationType"},
      {{.memAttr = (aclrtMemAttr)18, .location = good.location}, 107000, "memAttr"},
      {{.memAttr = (aclrtMemAttr)-1, .location = good.location}, 107000, "memAttr"},
      {{.location = {.type = ACL_MEM_LOCATION_TYPE_HOST}}, 107000, "location.type"},
      {{.location = {.type = ACL_MEM_LOCATION_TYPE_DEVICE, .id = 99}}, 107001, "location.id"},
      {{.location = {.type = ACL_MEM_LOCATION_TYPE_DEVICE, .id = UINT32_MAX}},
       107001,
       "location.id"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    aclrtPhysicalMemProp prop = rows[i].prop;
    FAILS(aclrtMallocPhysical(&memory, PIECE, &prop, 0), rows[i].code, rows[i].word);
    FAILS(
        aclrtMemGetAllocationGranularity(&prop, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM, &granularity),
        rows[i].code, rows[i].word);
  }
  FAILS(aclrtMemGetAllocationGranularity(&good, ACL_RT_MEM_ALLOC_GRANULARITY_UNDEF, &granularity),
        ACL_ERROR_INVALID_PARAM, "option");
  FAILS(aclrtMemGetAllocationGranularity(&good, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM, NULL),
        ACL_ERROR_INVALID_PARAM, "granularity");
  assert_int_equal(granularity, 1);
  OK_OR_SAY(aclrtMemGetAllocationGranularity(&good, ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED,
                                             &granularity));
  assert_int_equal(granularity, PIECE);
}

static void reservations_are_rounded_up(void **state) {
  (void)state;
  void *base = NULL;
  OK_OR_SAY(aclrtReserveMemAddress(&base, PIECE + 512, 0, NULL, 0));
  OK_OR_SAY(aclrtMapMem((char *)base + PIECE, PIECE, 0, take(1), 0));
  OK_OR_SAY(aclrtUnmapMem((char *)base + PIECE));
  FAILS(aclrtMapMem((char *)base + PIECE, 2 * PIECE, 0, take(2), 0), ACL_ERROR_RT_PARAM_INVALID,
        "reservation ends 2097152 bytes behind");
}

static void maps_are_checked(void **state) {
  (void)state;
  char plain[8] = {0};
  aclrtDrvMemHandle one = take(1), two = take(2);
  FAILS(aclrtMapMem(NULL, PIECE, 0, one, 0), ACL_ERROR_INVALID_PARAM, "virPtr");
  FAILS(aclrtMapMem(range, 0, 0, one, 0), ACL_ERROR_INVALID_PARAM, "size");
  FAILS(aclrtMapMem(range, PIECE, PIECE, one, 0), ACL_ERROR_RT_PARAM_INVALID, "offset");
  FAILS(aclrtMapMem(range, PIECE, 0, one, 1), ACL_ERROR_RT_PARAM_INVALID, "flags");
  FAILS(aclrtMapMem(range, PIECE, 0, NULL, 0), ACL_ERROR_INVALID_PARAM, "handle");
  FAILS(aclrtMapMem(range, PIECE, 0, plain, 0), ACL_ERROR_RT_INVALID_HANDLE, "not a handle");
  FAILS(aclrtMapMem(range, PIECE, 0, two, 0), ACL_ERROR_RT_PARAM_INVALID, "size", "4194304");
  FAILS(aclrtMapMem(range, 2 * PIECE, 0, one, 0), ACL_ERROR_RT_PARAM_INVALID, "size");
  FAILS(aclrtMapMem(plain, PIECE, 0, one, 0), ACL_ERROR_RT_PARAM_INVALID, "virPtr", "not in");
  FAILS(aclrtMapMem(range + 4096, PIECE, 0, one, 0), ACL_ERROR_RT_PARAM_INVALID, "virPtr", "4096");
  FAILS(aclrtMapMem(range + (PIECES - 1) * PIECE, 2 * PIECE, 0, two, 0), ACL_ERROR_RT_PARAM_INVALID,
        "size", "reservation ends");
  FAILS(aclrtMapMem(range + PIECES * PIECE, PIECE, 0, one, 0), ACL_ERROR_RT_PARAM_INVALID,
        "virPtr");
  map(1, 1, one);
  FAILS(aclrtMapMem(range + PIECE, PIECE, 0, one, 0), ACL_ERROR_RT_PARAM_INVALID, "already");
  FAILS(aclrtMapMem(range, 2 * PIECE, 0, two, 0), ACL_ERROR_RT_PARAM_INVALID, "already",
        "2097152 bytes behind");
  map(2, 2, two);
}

static void unmaps_and_releases_are_checked(void **state) {
  (void)state;
  char plain[8] = {0};
  map_new(0, 2);
  FAILS(aclrtUnmapMem(NULL), ACL_ERROR_INVALID_PARAM, "virPtr");
  FAILS(aclrtUnmapMem(plain), ACL_ERROR_RT_PARAM_INVALID, "virPtr", "not in a reservation");
  FAILS(aclrtUnmapMem(range + PIECE), ACL_ERROR_RT_PARAM_INVALID, "inside mapped memory");
  FAILS(aclrtUnmapMem(range + 2 * PIECE), ACL_ERROR_RT_PARAM_INVALID, "nothing is mapped");
  FAILS(aclrtReleaseMemAddress(NULL), ACL_ERROR_INVALID_PARAM, "virPtr");
  FAILS(aclrtReleaseMemAddress(plain), ACL_ERROR_RT_PARAM_INVALID, "not in a reservation");
  FAILS(aclrtReleaseMemAddress(range + PIECE), ACL_ERROR_RT_PARAM_INVALID, "inside");
  FAILS(aclrtReleaseMemAddress(range), ACL_ERROR_RT_PARAM_INVALID, "virPtr", "4194304",
        "aclrtUnmapMem");
  FAILS(aclrtFreePhysical(NULL), ACL_ERROR_INVALID_PARAM, "handle");
  FAILS(aclrtFreePhysical(plain), ACL_ERROR_RT_INVALID_HANDLE, "not a handle");
  OK_OR_SAY(aclrtUnmapMem(range));
  FAILS(aclrtUnmapMem(range), ACL_ERROR_RT_PARAM_INVALID, "nothing is mapped");
  OK_OR_SAY(aclrtReleaseMemAddress(range));
  FAILS(aclrtReleaseMemAddress(range), ACL_ERROR_RT_PARAM_INVALID, "not in a reservation");
}

static void memory_of_other_devices_is_mapped_but_not_joined(void **state) {
  (void)state;
  uint32_t devices = 0;
  aclrtDrvMemHandle memory = NULL;
  const aclrtPhysicalMemProp prop = prop_of(1);
  OK_OR_SAY(aclrtGetDeviceCount(&devices));
  if (devices < 2) SKIP("there is one device");
  OK_OR_SAY(aclrtMallocPhysical(&memory, PIECE, &prop, 0));
  map_new(0, 1);
  map(1, 1, memory);
  fill(0, 1, PIECE);
  fill(PIECE, 2, PIECE);
  FAILS(aclrtMemset(range + PIECE - 1, 2, 0, 2), ACL_ERROR_RT_PARAM_INVALID, "over the end");
}

static void the_end_gives_all_back(void **state) {
  const struct faults_held held = faults_held();
  aclrtMemUsageInfo use;
  size_t count;
  OK_OR_SAY(set_up_range(state));
  aclrtDrvMemHandle memory = map_new(0, 1), unmapped = take(1);
  OK_OR_SAY(aclrtFreePhysical(map_new(2, 1)));
  OK_OR_SAY(aclFinalize());
  assert_int_equal(faults_held().maps, held.maps);
  OK_OR_SAY(aclrtUnmapMem(range));
  OK_OR_SAY(aclrtFreePhysical(memory));
  OK_OR_SAY(aclrtFreePhysical(unmapped));
  OK_OR_SAY(aclrtReleaseMemAddress(range));
  OK_OR_SAY(set_up_device(state));
  FAILS(aclrtUnmapMem(range), ACL_ERROR_RT_PARAM_INVALID, "virPtr");
  FAILS(aclrtFreePhysical(memory), ACL_ERROR_RT_INVALID_HANDLE, "handle");
  FAILS(aclrtReleaseMemAddress(range), ACL_ERROR_RT_PARAM_INVALID, "virPtr");
  OK_OR_SAY(aclrtGetMemUsageInfo(0, &use, 1, &count));
  assert_int_equal(use.curMemSize, 0);
  OK_OR_SAY(tear_down_device(state) ? 1 : 0);
}

/* A program may try before it sets a device whether addresses can be reserved. */
static void addresses_need_no_context_and_memory_does(void **state) {
  (void)state;
  const aclrtPhysicalMemProp prop = prop_of(0);
  void *base = NULL;
  aclrtDrvMemHandle memory = NULL;
  OK_OR_SAY(aclrtResetDevice(0));
  (void)aclGetRecentErrMsg();
  OK_OR_SAY(aclrtReserveMemAddress(&base, 512, 0, NULL, 1));
  OK_OR_SAY(aclrtReleaseMemAddress(base));
  assert_null(aclGetRecentErrMsg());
  FAILS(aclrtMallocPhysical(&memory, PIECE, &prop, 0), ACL_ERROR_RT_CONTEXT_NULL,
        "aclrtMallocPhysical");
  OK_OR_SAY(aclrtSetDevice(0));
}

/* All calls once; false if one of them failed, with what was made given back. */
static bool use_once(void) {
  const aclrtPhysicalMemProp prop = prop_of(0);
  aclrtDrvMemHandle memory = NULL;
  void *base = NULL;
  faults_begin();
  bool ok = aclrtReserveMemAddress(&base, PIECE, 0, NULL, 0) == ACL_SUCCESS;
  ok = ok && aclrtMallocPhysical(&memory, PIECE, &prop, 0) == ACL_SUCCESS;
  const bool mapped = ok && aclrtMapMem(base, PIECE, 0, memory, 0) == ACL_SUCCESS;
  const bool unmapped = mapped && aclrtUnmapMem(base) == ACL_SUCCESS;
  ok = ok && mapped && unmapped;
  faults_end();
  if (!ok) assert_non_null(aclGetRecentErrMsg());
  if (mapped && !unmapped) {
    fill((size_t)((char *)base - range), 1, PIECE); /* it is still there */
    OK_OR_SAY(aclrtUnmapMem(base));
  }
  if (base != NULL && !mapped)
    FAILS(aclrtMemset(base, 1, 0, 1), ACL_ERROR_RT_PARAM_INVALID, "aclrtMemset");
  if (memory != NULL) OK_OR_SAY(aclrtFreePhysical(memory));
  if (base != NULL) OK_OR_SAY(aclrtReleaseMemAddress(base));
  return ok;
}

static void each_lack_of_memory_is_a_clean_failure(void **state) {
  (void)state;
  SKIP_ON_CUDA("the driver's requests are not refused");
  faults_plan(FAULT_NEVER, FAULT_ONCE);
  assert_true(use_once());
  const int requests = faults_requests();
  const struct faults_held held = faults_held();
  int failed = 0;
  for (int nth = 0; nth < requests; nth++) {
    (void)aclGetRecentErrMsg();
    faults_plan(nth, FAULT_ONCE);
    if (!use_once()) failed++;
    assert_int_equal(faults_held().blocks, held.blocks);
    assert_int_equal(faults_held().maps, held.maps);
  }
  assert_true(failed >= 8); /* all but the hint about huge pages */
}

static void a_child_may_look_and_give_back(void **state) {
  (void)state;
  int status = -1;
  if (on_cuda()) SKIP("CUDA does not work in the child of a process that uses it");
  aclrtDrvMemHandle memory = map_new(0, 1);
  fill(0, 4, PIECE);
  const pid_t child = fork();
  if (child == 0) {
    void *base = NULL;
    if (range[0] != 4) _exit(1);
    if (aclrtUnmapMem(range) != ACL_SUCCESS) _exit(2);
    if (aclrtFreePhysical(memory) != ACL_SUCCESS) _exit(3);
    if (aclrtReleaseMemAddress(range) != ACL_SUCCESS) _exit(4);
    _exit(aclrtReserveMemAddress(&base, PIECE, 0, NULL, 0) != ACL_ERROR_RT_CONTEXT_NULL);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_int_equal(fetch_byte(range), 4);
  OK_OR_SAY(aclrtUnmapMem(range));
}

static void *map_again_and_again(void *argument) {
  char *at = argument;
  const aclrtPhysicalMemProp prop = prop_of(0);
  aclrtDrvMemHandle memory = NULL;
  OK_OR_SAY(aclrtSetDevice(0));
  for (int i = 0; i < 200; i++) {
    OK_OR_SAY(aclrtMallocPhysical(&memory, PIECE, &prop, 0));
    OK_OR_SAY(aclrtMapMem(at, PIECE, 0, memory, 0));
    OK_OR_SAY(aclrtMemset(at, PIECE, i, 8));
    assert_int_equal(fetch_byte(at), i % 256);
    OK_OR_SAY(aclrtFreePhysical(memory));
    OK_OR_SAY(aclrtUnmapMem(at));
  }
  OK_OR_SAY(aclrtResetDevice(0));
  return NULL;
}

static void threads_map_side_by_side(void **state) {
  (void)state;
  pthread_t threads[PIECES];
  for (size_t i = 0; i < PIECES; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, map_again_and_again, range + i * PIECE), 0);
  for (size_t i = 0; i < PIECES; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
  OK_OR_SAY(aclrtReleaseMemAddress(range));
}

/* What the CPU device's memory is made of; qemu's emulation of a process does not have it. */
static bool pages_can_have_two_addresses(void) {
  void *first = mmap(NULL, PIECE, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0), *second;
  if (first == MAP_FAILED) return false;
  second = mremap(first, 0, PIECE, MREMAP_MAYMOVE);
  (void)munmap(first, PIECE);
  if (second == MAP_FAILED) return false;
  (void)munmap(second, PIECE);
  return true;
}

int main(void) {
  if (!pages_can_have_two_addresses()) {
    printf("skipped: this system cannot put pages at a second address\n");
    return 77;
  }
  const struct CMUnitTest tests[] = {
      TEST(neighbours_are_one_piece),
      TEST(a_gap_ends_the_piece),
      TEST(neighbours_of_another_reservation_are_apart),
      TEST(memory_may_be_mapped_twice),
      TEST(memory_keeps_its_bytes_while_it_is_mapped_nowhere),
      TEST(freed_memory_lasts_until_it_is_unmapped),
      TEST(operators_cross_borders),
      TEST(mapped_memory_is_device_memory),
      TEST(sizes_are_checked),
      TEST(absurd_sizes_are_refused),
      TEST(properties_are_checked),
      TEST(reservations_are_rounded_up),
      TEST(maps_are_checked),
      TEST(unmaps_and_releases_are_checked),
      TEST(memory_of_other_devices_is_mapped_but_not_joined),
      cmocka_unit_test(the_end_gives_all_back),
      TEST(addresses_need_no_context_and_memory_does),
      TEST(each_lack_of_memory_is_a_clean_failure),
      TEST(a_child_may_look_and_give_back),
      TEST(threads_map_side_by_side),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
