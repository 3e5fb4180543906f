/* SPDX-License-Identifier: Apache-2.0 */
/* Copies, fills and flags in memory: at once, in a stream, and what is refused. */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "expect.h"
#include "poolgrad.h"
#include "reveal.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* aclrtMemcpyAsyncWithCondition */

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down_device)

enum { BYTES = 100, USABLE = 160, LARGE = 9 * 1000 * 1000 + 7 };
static char *device, *pinned, *large, *other; /* all but pinned on the device */
static char pageable[USABLE + 1], found[LARGE], pattern[LARGE];
static aclrtStream stream;
static sem_t gate;

static void *on_device(size_t bytes) {
  void *memory = NULL;
  return aclrtMalloc(&memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST) == 0 ? memory : NULL;
}

static int set_up(void **state) {
  void *host = NULL;
  if (set_up_device(state) != 0 || aclrtCreateStream(&stream) != 0) return 1;
  if (aclrtMallocHost(&host, BYTES) != 0) return 1;
  (void)sem_init(&gate, 0, 0);
  memset(host, 1, BYTES);
  memset(pageable, 2, sizeof pageable);
  pinned = host;
  device = on_device(BYTES);
  large = on_device(LARGE);
  other = on_device(LARGE);
  return device == NULL || large == NULL || other == NULL || aclrtMemset(device, BYTES, 3, BYTES);
}

static void wait_at_gate(void *unused) {
  (void)unused;
  while (sem_wait(&gate) != 0) continue;
}

static aclrtMemcpyKind kind_of(int number) { return (aclrtMemcpyKind)number; }

/* What is wrong first is told first; with no context what is right comes last. */
static const struct {
  bool dst, src, same;
  size_t dest_max, count;
  int kind;
  aclError code, without_context;
  const char *word;
} copies[] = {
    {false, false, false, 0, 0, 99, 0, 0, ""},
    {false, true, false, 0, 8, 99, 100000, 100000, "dst is NULL"},
    {true, false, false, 0, 8, 99, 100000, 100000, "src is NULL"},
    {true, true, false, 0, 8, 99, 100000, 100000, "kind is 99"},
    {true, true, false, 8, 8, 6, 100000, 100000, "kind is 6"},
    {true, true, false, 8, 8, 7, 100000, 100000, "kind is 7"},
    {true, true, false, 8, 8, -1, 100000, 100000, "kind is -1"},
    {true, true, false, 0, 8, 1, 107000, 107000, "destMax"},
    {true, true, false, 7, 8, 4, 107000, 107000, "destMax"},
    {true, true, true, 7, 8, 4, 107000, 107000, "destMax"},
    {true, true, true, 8, 8, 4, 0, 0, ""},
    {true, true, false, 8, 8, 4, 0, 107002, ""},
};

static aclError copy_row(size_t i, bool async) {
  void *dst = copies[i].dst ? device : NULL;
  const void *src = copies[i].src ? (copies[i].same ? device : device + 50) : NULL;
  const aclrtMemcpyKind kind = kind_of(copies[i].kind);
  if (async) return aclrtMemcpyAsync(dst, copies[i].dest_max, src, copies[i].count, kind, NULL);
  return aclrtMemcpy(dst, copies[i].dest_max, src, copies[i].count, kind);
}

static void copies_are_checked_in_order(void **state) {
  (void)state;
  for (size_t i = 0; i < LENGTH(copies); i++) {
    if (copies[i].code == 0) {
      OK_OR_SAY(copy_row(i, false));
      OK_OR_SAY(copy_row(i, true));
      OK_OR_SAY(aclrtSynchronizeStream(NULL));
    } else {
      FAILS(copy_row(i, false), copies[i].code, "aclrtMemcpy: ", copies[i].word);
      FAILS(copy_row(i, true), copies[i].code, "aclrtMemcpyAsync: ", copies[i].word);
    }
  }
}

static void *copy_without_context(void *codes) {
  for (size_t i = 0; i < LENGTH(copies); i++) ((aclError *)codes)[i] = copy_row(i, false);
  return NULL;
}

static void copies_ask_for_the_context_last(void **state) {
  (void)state;
  aclError codes[LENGTH(copies)];
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, copy_without_context, codes), 0);
  (void)pthread_join(thread, NULL);
  for (size_t i = 0; i < LENGTH(copies); i++) assert_int_equal(codes[i], copies[i].without_context);
}

static void the_kind_is_only_a_hint(void **state) {
  (void)state;
  for (int kind = ACL_MEMCPY_HOST_TO_HOST; kind <= ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE; kind++) {
    memset(pageable, 10 + kind, BYTES);
    OK_OR_SAY(aclrtMemcpy(device, BYTES, pageable, BYTES, kind_of(kind)));
    OK_OR_SAY(aclrtMemcpy(pinned, BYTES, device, BYTES, kind_of(kind)));
    assert_memory_equal(pinned, pageable, BYTES);
  }
}

static void known_memory_is_not_overrun(void **state) {
  (void)state;
  const aclrtMemcpyKind kind = ACL_MEMCPY_DEFAULT;
  reveal_padding(device);
  OK_OR_SAY(aclrtMemcpy(device, USABLE, pageable, USABLE, kind));
  FAILS(aclrtMemcpy(device, USABLE + 1, pageable, USABLE + 1, kind), 107000, "dst", "160 left");
  FAILS(aclrtMemcpy(pageable, USABLE + 1, device, USABLE + 1, kind), 107000, "src", "160 left");
  FAILS(aclrtMemcpy(device + 100, 61, pageable, 61, kind), 107000, "aclrtMemcpy", "60 left");
  FAILS(aclrtMemcpyAsync(device, 161, pageable, 161, kind, stream), 107000, "dst");
  FAILS(aclrtMemsetAsync(device, 161, 0, 161, stream), 107000, "aclrtMemsetAsync", "160 left");
  FAILS(aclrtMemcpy2d(device, 80, pageable, 80, 8, 4, kind), 107000, "aclrtMemcpy2d", "dst");
  FAILS(aclrtMemsetD32(device, 1000, 0, 41), 107000, "aclrtMemsetD32", "160 left");
}

static void pinned_copies_return_at_once(void **state) {
  (void)state;
  void *seen = NULL;
  OK_OR_SAY(aclrtHostRegister(pageable, BYTES, ACL_HOST_REGISTER_MAPPED, &seen));
  OK_OR_SAY(aclrtLaunchHostFunc(stream, wait_at_gate, NULL));
  OK_OR_SAY(aclrtMemcpyAsync(device, BYTES, pinned, BYTES, ACL_MEMCPY_HOST_TO_DEVICE, stream));
  OK_OR_SAY(
      aclrtMemcpyAsyncWithCondition(pageable, BYTES, device, BYTES, ACL_MEMCPY_DEFAULT, stream));
  memset(pinned, 77, BYTES); /* the stream has not looked yet */
  (void)sem_post(&gate);
  OK_OR_SAY(aclrtSynchronizeStream(stream));
  assert_int_equal(fetch_byte(device + BYTES - 1), 77);
  assert_int_equal(pageable[BYTES - 1], 77);
  OK_OR_SAY(aclrtHostUnregister(pageable));
}

static void write_slowly(void *unused) {
  (void)unused;
  for (int turn = 0; turn < 100000; turn++) sched_yield();
  memset(pinned, 88, BYTES);
}

static void pageable_copies_wait_for_the_stream(void **state) {
  (void)state;
  OK_OR_SAY(aclrtLaunchHostFunc(stream, write_slowly, NULL));
  OK_OR_SAY(aclrtMemcpyAsync(device, BYTES, pinned, BYTES, ACL_MEMCPY_HOST_TO_DEVICE, stream));
  OK_OR_SAY(aclrtMemcpyAsync(pageable, BYTES, device, BYTES, ACL_MEMCPY_DEVICE_TO_HOST, stream));
  assert_int_equal(pageable[BYTES - 1], 88);
  FAILS(aclrtMemcpyAsync(pageable, 8, pinned, 8, ACL_MEMCPY_HOST_TO_HOST, stream), 207000,
        "aclrtMemcpyAsync", "host to host");
}

static void fills_are_checked_and_take_eight_bits(void **state) {
  (void)state;
  OK_OR_SAY(aclrtMemset(NULL, 0, 0, 0));
  OK_OR_SAY(aclrtMemsetAsync(NULL, 0, 0, 0, stream));
  FAILS(aclrtMemset(NULL, 8, 0, 8), 100000, "aclrtMemset", "devPtr is NULL");
  FAILS(aclrtMemset(device, 7, 0, 8), 107000, "aclrtMemset", "count is 8");
  FAILS(aclrtMemsetAsync(NULL, 8, 0, 8, stream), 100000, "aclrtMemsetAsync", "NULL");
  FAILS(aclrtMemsetAsync(device, 7, 0, 8, stream), 107000, "aclrtMemsetAsync", "count is 8");
  OK_OR_SAY(aclrtMemset(device, BYTES, 0x1ff, 50));
  OK_OR_SAY(aclrtMemsetAsync(device + 50, 50, -2, 25, stream));
  OK_OR_SAY(aclrtSynchronizeStream(stream));
  assert_int_equal(fetch_byte(device + 49), 0xff);
  assert_int_equal(fetch_byte(device + 74), 0xfe);
  assert_int_equal(fetch_byte(device + 75), 3);
}

static void words_are_filled_whole(void **state) {
  (void)state;
  const uint32_t word = 0x12345678;
  uint32_t filled[4];
  OK_OR_SAY(aclrtMemsetD32(device, 16, word, 4));
  OK_OR_SAY(aclrtMemsetD32Async(device + 4, 4, ~word, 1, stream));
  OK_OR_SAY(aclrtSynchronizeStream(stream));
  fetch(filled, device, sizeof filled);
  assert_true(filled[0] == word && filled[1] == ~word && filled[3] == word);
  OK_OR_SAY(aclrtMemsetD32(device, 0, word, 0));
  FAILS(aclrtMemsetD32(NULL, 8, 0, 1), 100000, "aclrtMemsetD32", "NULL");
  FAILS(aclrtMemsetD32(device + 2, 8, 0, 1), 100000, "aclrtMemsetD32", "multiple of 4");
  FAILS(aclrtMemsetD32(device, 7, 0, 2), 100000, "aclrtMemsetD32", "numElements is 2");
  FAILS(aclrtMemsetD32(device, 8, 0, SIZE_MAX / 2), 100000, "aclrtMemsetD32", "numElements");
  FAILS(aclrtMemsetD32Async(device + 1, 8, 0, 1, stream), 100000, "aclrtMemsetD32Async", "4");
  FAILS(aclrtMemsetD32Async(device, 3, 0, 1, stream), 100000, "aclrtMemsetD32Async", "memSize");
}

static void expect_on_device(const void *at, const char *bytes, size_t count) {
  fetch(found, at, count);
  assert_memory_equal(found, bytes, count);
}

static void rows_are_copied_by_their_pitch(void **state) {
  (void)state;
  static const char expected[] = "ab\3\3\3cd\3\3\3ef\3\3";
  const aclrtMemcpyKind kind = ACL_MEMCPY_HOST_TO_DEVICE;
  OK_OR_SAY(aclrtMemcpy2d(device, 5, "ab-cd-ef", 3, 2, 3, kind));
  expect_on_device(device, expected, 14);
  memcpy(pinned, "gh-ij-kl", 8);
  OK_OR_SAY(aclrtMemcpy2dAsync(device, 5, pinned, 3, 2, 3, kind, stream));
  OK_OR_SAY(aclrtSynchronizeStream(stream));
  expect_on_device(device + 5, "ij\3\3\3kl", 7);
  OK_OR_SAY(aclrtMemcpy2d(NULL, 0, NULL, 0, 0, 1, kind_of(99)));
  OK_OR_SAY(aclrtMemcpy2dAsync(NULL, 0, NULL, 0, 1, 0, kind_of(99), stream));
  FAILS(aclrtMemcpy2d(NULL, 8, pinned, 8, 8, 1, kind), 100000, "aclrtMemcpy2d", "dst is NULL");
  FAILS(aclrtMemcpy2d(device, 8, NULL, 8, 8, 1, kind), 100000, "aclrtMemcpy2d", "src is NULL");
  FAILS(aclrtMemcpy2d(device, 7, pinned, 8, 8, 1, kind), 100000, "aclrtMemcpy2d", "dpitch (7)");
  FAILS(aclrtMemcpy2d(device, 8, pinned, 7, 8, 1, kind), 100000, "aclrtMemcpy2d", "spitch (7)");
  FAILS(aclrtMemcpy2d(device, 8, pinned, 8, 8, 1, kind_of(0)), 100000, "kind is 0");
  FAILS(aclrtMemcpy2d(device, 8, pinned, 8, 8, 1, kind_of(5)), 100000, "kind is 5");
  FAILS(aclrtMemcpy2d(device, SIZE_MAX, pinned, 8, 8, 9, kind), 100000, "too large");
  FAILS(aclrtMemcpy2dAsync(device, 7, pinned, 8, 8, 1, kind, stream), 100000, "2dAsync: width");
}

static void a_batch_tells_which_copy_was_wrong(void **state) {
  (void)state;
  void *dsts[] = {device, device + 8, device + 16}, *srcs[] = {pinned, pinned, pinned};
  size_t rooms[] = {8, 8, 8}, sizes[] = {8, 0, 8}, at[] = {0, 1}, failed = 5;
  aclrtMemcpyBatchAttr attrs[2];
  memset(attrs, 0, sizeof attrs);
  OK_OR_SAY(aclrtMemcpyBatch(dsts, rooms, srcs, sizes, 3, attrs, at, 2, &failed));
  fetch(found, device, BYTES);
  assert_true(found[7] == 1 && found[8] == 3 && found[23] == 1 && found[24] == 3);
  memset(pinned, 9, BYTES);
  OK_OR_SAY(aclrtMemcpyBatchAsync(dsts, rooms, srcs, sizes, 3, NULL, NULL, 0, NULL, stream));
  OK_OR_SAY(aclrtSynchronizeStream(stream));
  assert_true(fetch_byte(device) == 9 && fetch_byte(device + 23) == 9);
  rooms[2] = 7;
  memset(pinned, 4, BYTES);
  FAILS(aclrtMemcpyBatch(dsts, rooms, srcs, sizes, 3, attrs, at, 2, &failed), 107000, "destMax");
  assert_int_equal(failed, 2);
  assert_int_equal(fetch_byte(device + 16), 9);
  srcs[0] = NULL;
  FAILS(aclrtMemcpyBatchAsync(dsts, rooms, srcs, sizes, 3, attrs, at, 2, &failed, stream), 100000,
        "aclrtMemcpyBatchAsync", "src is NULL");
  assert_int_equal(failed, 0);
  FAILS(aclrtMemcpyBatch(NULL, rooms, srcs, sizes, 3, attrs, at, 2, &failed), 100000, "dsts");
  assert_true(failed == SIZE_MAX);
  FAILS(aclrtMemcpyBatch(dsts, NULL, srcs, sizes, 3, attrs, at, 2, &failed), 100000, "destMaxs");
  FAILS(aclrtMemcpyBatch(dsts, rooms, NULL, sizes, 3, attrs, at, 2, &failed), 100000, "srcs");
  FAILS(aclrtMemcpyBatch(dsts, rooms, srcs, NULL, 3, attrs, at, 2, &failed), 100000, "sizes");
  FAILS(aclrtMemcpyBatch(dsts, rooms, srcs, sizes, 0, attrs, at, 2, &failed), 100000, "numBatches");
  FAILS(aclrtMemcpyBatch(dsts, rooms, srcs, sizes, 3, NULL, at, 2, &failed), 100000, "attrs");
  at[0] = 1;
  FAILS(aclrtMemcpyBatch(dsts, rooms, srcs, sizes, 3, attrs, at, 2, &failed), 100000, "ascend");
}

static void a_stream_waits_until_a_word_compares(void **state) {
  (void)state;
  static const struct {
    uint32_t how;
    uint64_t value, before, after;
  } rows[] = {
      {ACL_STREAM_WAIT_VALUE_GEQ, 5, 4, 5},
      {ACL_STREAM_WAIT_VALUE_GEQ, 5, UINT64_MAX, 900}, /* counters wrap: this is -1 */
      {ACL_STREAM_WAIT_VALUE_GEQ, UINT64_MAX, UINT64_MAX - 1, 0},
      {ACL_STREAM_WAIT_VALUE_EQ, 7, 8, 7},
      {ACL_STREAM_WAIT_VALUE_AND, 6, 1, 4},
      {ACL_STREAM_WAIT_VALUE_NOR, 15, UINT64_MAX - 3, 16},
  };
  aclrtStream writer;
  uint64_t last = 1;
  OK_OR_SAY(aclrtCreateStream(&writer));
  for (size_t i = 0; i < LENGTH(rows); i++) {
    OK_OR_SAY(aclrtValueWrite(device, rows[i].before, 0, writer));
    OK_OR_SAY(aclrtSynchronizeStream(writer));
    OK_OR_SAY(aclrtValueWait(device, rows[i].value, rows[i].how, stream));
    FAILS(aclrtSynchronizeStreamWithTimeout(stream, 20), 507046, "20 ms");
    OK_OR_SAY(aclrtValueWrite(device, rows[i].after, 0, writer));
    OK_OR_SAY(aclrtSynchronizeStreamWithTimeout(stream, 60000));
  }
  fetch(&last, device, sizeof last);
  assert_int_equal(last, 16);
  FAILS(aclrtValueWrite(NULL, 0, 0, stream), 100000, "aclrtValueWrite", "devAddr is NULL");
  FAILS(aclrtValueWrite(device + 4, 0, 0, stream), 107008, "aclrtValueWrite", "multiple of 8");
  FAILS(aclrtValueWrite(device, 0, 1, stream), 107000, "aclrtValueWrite", "flag is 1");
  FAILS(aclrtValueWait(NULL, 0, 0, stream), 100000, "aclrtValueWait", "devAddr is NULL");
  FAILS(aclrtValueWait(device + 1, 0, 0, stream), 107008, "aclrtValueWait", "multiple of 8");
  FAILS(aclrtValueWait(device, 0, 4, stream), 107000, "aclrtValueWait", "flag is 4");
}

static void make_pattern(size_t bytes) {
  for (size_t i = 0; i < bytes; i++) pattern[i] = (char)(i * 7 + i / 251);
}

static void expect_all(const char *at, size_t bytes, int value) {
  fetch(found, at, bytes);
  for (size_t i = 0; i < bytes; i++)
    if (found[i] != (char)value) fail_msg("byte %zu is %d, not %d", i, found[i], value);
}

static void move_much(size_t bytes) {
  make_pattern(bytes);
  send(large, pattern, bytes);
  OK_OR_SAY(aclrtMemcpy(other, LARGE, large, bytes, ACL_MEMCPY_DEVICE_TO_DEVICE));
  expect_on_device(other, pattern, bytes);
  OK_OR_SAY(aclrtMemcpyAsync(large + 1, LARGE, large, bytes, ACL_MEMCPY_DEFAULT, stream));
  OK_OR_SAY(aclrtSynchronizeStream(stream));
  expect_on_device(large + 1, pattern, bytes); /* overlapping ranges move as if by memmove */
  OK_OR_SAY(aclrtMemcpy2d(large, 3000, other, 2999, 2999, 3000, ACL_MEMCPY_DEVICE_TO_DEVICE));
  fetch(pattern, other, LARGE);
  fetch(found, large, LARGE);
  for (size_t row = 0; row < 3000; row++)
    assert_memory_equal(found + row * 3000, pattern + row * 2999, 2999);
  OK_OR_SAY(aclrtMemset(other, LARGE, 6, LARGE));
  OK_OR_SAY(aclrtMemset(other + 1, LARGE, 5, bytes));
  expect_all(other + 1, bytes, 5);
  assert_true(fetch_byte(other) == 6 && fetch_byte(other + bytes + 1) == 6);
  OK_OR_SAY(aclrtMemsetD32Async(other + 4, LARGE, 0x07070707, bytes / 4, stream));
  OK_OR_SAY(aclrtSynchronizeStream(stream));
  expect_all(other + 4, bytes / 4 * 4, 7);
  assert_int_equal(fetch_byte(other + 3), 5);
}

static void much_memory_is_moved_right_by_any_number_of_threads(void **state) {
  (void)state;
  for (int threads = 1; threads <= 3; threads++) {
    OK_OR_SAY(poolgrad_set_threads(threads));
    move_much(LARGE - 6);
    move_much(262144 * 3);
    move_much(262144 * 2 + 1);
  }
  OK_OR_SAY(poolgrad_set_threads(0));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(copies_are_checked_in_order),
      TEST(copies_ask_for_the_context_last),
      TEST(the_kind_is_only_a_hint),
      TEST(known_memory_is_not_overrun),
      TEST(pinned_copies_return_at_once),
      TEST(pageable_copies_wait_for_the_stream),
      TEST(fills_are_checked_and_take_eight_bits),
      TEST(words_are_filled_whole),
      TEST(rows_are_copied_by_their_pitch),
      TEST(a_batch_tells_which_copy_was_wrong),
      TEST(a_stream_waits_until_a_word_compares),
      TEST(much_memory_is_moved_right_by_any_number_of_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
