/* SPDX-License-Identifier: Apache-2.0 */
/* Indices that point outside their plane: dropped always, and told of as POOLGRAD_INDEX_CHECK
 * wants it.  Each check has a process of its own, whose stderr is read. */
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "expect.h"
#include "operator_call.h"

#define ADVICE "; POOLGRAD_INDEX_CHECK=error makes this an error, off silences it"

enum op { MAX_2D, MAX_3D, MAX_POOL, MAX_POOL_NHWC };
static const struct operator_call *const calls[] = {[MAX_2D] = &operator_calls[ADAPTIVE_MAX_POOL2D],
                                                    [MAX_3D] = &operator_calls[ADAPTIVE_MAX_POOL3D],
                                                    [MAX_POOL] = &operator_calls[MAX_POOL2D],
                                                    [MAX_POOL_NHWC] = &operator_calls[MAX_POOL2D]};
enum { TEXT_MAX = 4096, SMALL_OUTPUTS = 16, SMALL_CELLS = 2 * 2 * 16 };

/* n * c cubes or squares with edges of `in` cells and `out` outputs; the arrays are the host's. */
struct call {
  enum op op;
  int64_t n, c, in, out;
  aclDataType index_type;
  void *index;
  float *grads, *cells;
};

/* The latest call's arrays on the device. */
static struct { void *index, *grads, *cells, *workspace; } device;

static size_t volume(const struct call *c, int64_t edge, size_t bytes) {
  return (size_t)(c->n * c->c * edge * edge * (c->op == MAX_3D ? edge : 1)) * bytes;
}

static void *sent(void *last, const void *from, size_t bytes) {
  if (last != NULL) OK_OR_SAY(aclrtFree(last));
  void *memory = device_memory(bytes);
  if (from != NULL) send(memory, from, bytes);
  return memory;
}

static aclTensor *tensor_of(const struct call *c, int64_t edge, aclDataType dtype, void *data) {
  const int64_t first[] = {c->n, c->c, edge, edge, edge}, last[] = {c->n, edge, edge, c->c};
  const bool nhwc = c->op == MAX_POOL_NHWC;
  const uint64_t rank = c->op == MAX_3D ? 5 : 4;
  return aclCreateTensor(nhwc ? last : first, rank, dtype, NULL, 0,
                         nhwc ? ACL_FORMAT_NHWC : ACL_FORMAT_ND, NULL, 0, data);
}

static void send_call(const struct call *c) {
  const size_t index_bytes = c->index_type == ACL_INT64 ? 8 : 4;
  device.index = sent(device.index, c->index, volume(c, c->out, index_bytes));
  device.grads = sent(device.grads, c->grads, volume(c, c->out, sizeof *c->grads));
  device.cells = sent(device.cells, c->cells, volume(c, c->in, sizeof *c->cells));
}

/* Queues the call; a plane of many tiles needs a word of workspace for each. */
static void queue(const struct call *c, aclrtStream stream) {
  enum { ROOM = 4096 };
  uint64_t size;
  aclOpExecutor *executor;
  send_call(c);
  void *const workspace = device.workspace = sent(device.workspace, NULL, ROOM);
  const int64_t kernel = c->in / c->out, values[POOL_ARRAYS] = {kernel, kernel, 0, 1};
  struct operator_arguments a = {
      .tensor = {[GRAD_OUT] = tensor_of(c, c->out, ACL_FLOAT, device.grads),
                 [SELF] = tensor_of(c, c->in, ACL_FLOAT, NULL),
                 [INDICES] = tensor_of(c, c->out, c->index_type, device.index),
                 [GRAD_IN] = tensor_of(c, c->in, ACL_FLOAT, device.cells)}};
  for (int i = 0; i < POOL_ARRAYS; i++) a.array[i] = aclCreateIntArray(&values[i], 1);
  OK_OR_SAY(calls[c->op]->first(&a, &size, &executor));
  OK_OR_SAY(calls[c->op]->second(workspace, size, executor, stream));
  assert_true(size <= ROOM);
  for (int i = 0; i < POOL_TENSORS; i++) OK_OR_SAY(aclDestroyTensor(a.tensor[i]));
  for (int i = 0; i < POOL_ARRAYS; i++) OK_OR_SAY(aclDestroyIntArray(a.array[i]));
}

/* Runs a check in a fresh process under a policy (NULL: unset) and threads; *text gets what the
 * process wrote on stderr. */
static void apart(CMUnitTestFunction check, const char *policy, const char *threads,
                  char text[TEXT_MAX]) {
  const struct CMUnitTest test[] = {
      {.name = "apart", .test_func = check, .initial_state = (void *)(uintptr_t)policy}};
  const int file = memfd_create("stderr", 0);
  int status;
  (void)fflush(NULL);
  const pid_t child = fork();
  if (child == 0) {
    setenv("POOLGRAD_THREADS", threads, 1);
    unsetenv("POOLGRAD_INDEX_CHECK");
    if (policy != NULL) setenv("POOLGRAD_INDEX_CHECK", policy, 1);
    if (freopen("/dev/null", "w", stdout) == NULL || dup2(file, STDERR_FILENO) < 0) exit(99);
    exit(cmocka_run_group_tests(test, NULL, NULL));
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  memset(text, 0, TEXT_MAX);
  assert_true(pread(file, text, TEXT_MAX - 1, 0) >= 0);
  close(file);
  if (status != 0) fail_msg("its process ended with status 0x%x: %s", (unsigned)status, text);
  char *verdict = strstr(text, "[  PASSED  ]"); /* cmocka's, after all else */
  if (verdict != NULL) *verdict = '\0';
}

/* Four planes of 4 x 4 cells; gradients 1, 2, ... go to cell 5 of their plane but for two. */
static float small_grads[SMALL_OUTPUTS], small_cells[SMALL_CELLS];
static int32_t small_index[SMALL_OUTPUTS];

static struct call small_call(enum op op) {
  for (int i = 0; i < SMALL_OUTPUTS; i++) {
    small_grads[i] = (float)(i + 1);
    small_index[i] = 5;
  }
  memset(small_cells, 0xff, sizeof small_cells);
  return (struct call){op, 2, 2, 4, 2, ACL_INT32, small_index, small_grads, small_cells};
}

static struct call bad_call(enum op op) {
  const struct call c = small_call(op);
  small_index[6] = 16;
  small_index[11] = -1;
  return c;
}

/* What is left of the gradients of each plane. */
static void expect_cells(const float sums[4]) {
  for (int i = 0; i < SMALL_CELLS; i++)
    assert_true(small_cells[i] == (i % 16 == 5 ? sums[i / 16] : 0));
}
static const float all_of_them[] = {1 + 2 + 3 + 4, 5 + 6 + 7 + 8, 9 + 10 + 11 + 12,
                                    13 + 14 + 15 + 16};
static const float but_two[] = {1 + 2 + 3 + 4, 5 + 6 + 8, 9 + 10 + 11, 13 + 14 + 15 + 16};
#define BUT_TWO                                                                               \
  ": 2 of 16 indices lie outside their plane of 16 cells and were dropped, the first at n=0 " \
  "c=1 oh=1 ow=0 is 16"

static void start(aclrtStream *stream) {
  OK_OR_SAY(aclInit(NULL));
  OK_OR_SAY(aclrtSetDevice(0));
  OK_OR_SAY(aclrtCreateStream(stream));
}

static void fetch_cells(const struct call *c) {
  fetch(c->cells, device.cells, volume(c, c->in, sizeof *c->cells));
}

static void run(const struct call *c, aclrtStream stream) {
  queue(c, stream);
  OK_OR_SAY(aclrtSynchronizeStream(stream));
  fetch_cells(c);
}

static void run_good_and_bad_calls(void **state) {
  (void)state;
  static const enum op ops[] = {MAX_2D, MAX_POOL};
  aclrtStream stream;
  start(&stream);
  for (int i = 0; i < 2; i++) {
    struct call c = small_call(ops[i]);
    run(&c, stream);
    expect_cells(all_of_them);
    c = bad_call(ops[i]);
    run(&c, stream);
    expect_cells(but_two);
  }
}

static void a_warning_is_one_line_for_each_offending_call(void **state) {
  (void)state;
  char text[TEXT_MAX];
  static const char *const policies[] = {NULL, "", "warn"};
  for (int i = 0; i < 3; i++) {
    apart(run_good_and_bad_calls, policies[i], "2", text);
    assert_string_equal(text, "poolgrad: aclnnAdaptiveMaxPool2dBackward" BUT_TWO ADVICE
                              "\npoolgrad: aclnnMaxPool2dWithIndicesBackward" BUT_TWO ADVICE "\n");
  }
}

static void off_is_silent(void **state) {
  (void)state;
  char text[TEXT_MAX];
  apart(run_good_and_bad_calls, "off", "2", text);
  assert_string_equal(text, "");
}

static void run_into_an_error(void **state) {
  (void)state;
  aclrtStream stream;
  start(&stream);
  struct call c = bad_call(MAX_2D);
  queue(&c, stream);
  FAILS(aclrtSynchronizeStream(stream), 507015, "aclnnAdaptiveMaxPool2dBackward" BUT_TWO "; ",
        "POOLGRAD_INDEX_CHECK=warn goes on with a warning");
  fetch_cells(&c);
  expect_cells(but_two);
  OK_OR_SAY(aclrtSynchronizeStream(stream)); /* told once */
  c = small_call(MAX_POOL);
  run(&c, stream);
  expect_cells(all_of_them);
}

static void an_error_fails_the_stream_once_and_is_silent(void **state) {
  (void)state;
  char text[TEXT_MAX];
  apart(run_into_an_error, "error", "2", text);
  assert_string_equal(text, "");
}

static void init_with_another_word(void **state) {
  FAILS(aclInit(NULL), 100000, "POOLGRAD_INDEX_CHECK is '", *state,
        "', allowed is 'warn', 'error' or 'off' (unset: 'warn')");
}

static void another_word_is_refused_at_the_start(void **state) {
  (void)state;
  char text[TEXT_MAX];
  apart(init_with_another_word, "loud", "2", text);
  apart(init_with_another_word, "ERROR", "2", text);
}

static void change_the_word_after_the_start(void **state) {
  (void)state;
  aclrtStream stream;
  start(&stream);
  setenv("POOLGRAD_INDEX_CHECK", "off", 1);
  const struct call c = bad_call(MAX_2D);
  queue(&c, stream);
  FAILS(aclrtSynchronizeStream(stream), 507015, "POOLGRAD_INDEX_CHECK=warn");
}

static void the_policy_is_that_of_the_start(void **state) {
  (void)state;
  char text[TEXT_MAX];
  apart(change_the_word_after_the_start, "error", "2", text);
}

/* One cube of 2 x 2 x 2 outputs in 4 x 4 x 4 cells, 64-bit indices that wrap to good ones. */
static void run_wide_indices(void **state) {
  (void)state;
  aclrtStream stream;
  int64_t index[8] = {63, 0, INT64_C(1) << 32, INT64_MIN, 64, INT64_MAX, -(INT64_C(1) << 32), -1};
  float grads[8] = {1, 2, 3, 4, 5, 6, 7, 8}, cells[64];
  start(&stream);
  const struct call c = {MAX_3D, 1, 1, 4, 2, ACL_INT64, index, grads, cells};
  run(&c, stream);
  for (int i = 0; i < 64; i++) assert_true(cells[i] == (i == 63 ? 1 : i == 0 ? 2 : 0));
  index[2] = INT64_MAX;
  run(&c, stream);
  index[1] = INT64_MIN;
  run(&c, stream);
}

static void wide_values_are_told_in_full(void **state) {
  (void)state;
  char text[TEXT_MAX];
#define WIDE(count, place, value)                                                     \
  "poolgrad: aclnnAdaptiveMaxPool3dBackward: " count                                  \
  " of 8 indices lie outside their plane of 64 cells and were dropped, the first at " \
  "n=0 c=0 " place " is " value ADVICE "\n"
  apart(run_wide_indices, "warn", "2", text);
  assert_string_equal(text, WIDE("6", "od=0 oh=1 ow=0", "4294967296")
                                WIDE("6", "od=0 oh=1 ow=0", "9223372036854775807")
                                    WIDE("7", "od=0 oh=0 ow=1", "-9223372036854775808"));
}

static void run_channels_last(void **state) {
  (void)state;
  aclrtStream stream;
  start(&stream);
  const struct call c = small_call(MAX_POOL_NHWC);
  small_index[3] = small_index[4] = INT32_MIN; /* (0, 0, 1, 1) and (0, 1, 0, 0) of N, H, W, C */
  run(&c, stream);
}

static void the_first_is_counted_by_planes_in_nhwc_too(void **state) {
  (void)state;
  char text[TEXT_MAX];
  apart(run_channels_last, "warn", "2", text);
  assert_non_null(strstr(text, ": 2 of 16 indices "));
  assert_non_null(strstr(text, " the first at n=0 c=0 oh=1 ow=0 is -2147483648;"));
}

/* Four planes of 300 x 300 cells are 44 tiles.  Some indices are wrong, and one that is right is
 * far from its window, so that its plane is written twice. */
enum { EDGE = 300, OUT_EDGE = 150, PLANE = EDGE * EDGE, OUTPUTS = OUT_EDGE * OUT_EDGE };
static float big_grads[4 * OUTPUTS], big_cells[4 * PLANE];
static int32_t big_index[4 * OUTPUTS];

static void run_many_tiles(void **state) {
  (void)state;
  static const enum op ops[] = {MAX_2D, MAX_POOL};
  static const int wrong[] = {OUTPUTS + 37 * OUT_EDGE + 5,
                              OUTPUTS + 37 * OUT_EDGE + 6,
                              OUTPUTS + 40 * OUT_EDGE,
                              2 * OUTPUTS,
                              3 * OUTPUTS + 17,
                              4 * OUTPUTS - 1};
  aclrtStream stream;
  start(&stream);
  for (int i = 0; i < 4 * OUTPUTS; i++) {
    const int o = i % OUTPUTS;
    big_grads[i] = 1;
    big_index[i] = o / OUT_EDGE * 2 * EDGE + o % OUT_EDGE * 2;
  }
  for (int i = 0; i < 6; i++) big_index[wrong[i]] = i % 2 == 0 ? PLANE + i : -i;
  big_index[OUTPUTS + 1] = PLANE - 1;
  for (int round = 0; round < 10; round++) {
    const struct call c = {ops[round % 2], 2,         2,         EDGE,     OUT_EDGE,
                           ACL_INT32,      big_index, big_grads, big_cells};
    run(&c, stream);
    double sum = 0;
    for (int i = 0; i < 4 * PLANE; i++) sum += big_cells[i];
    assert_true(sum == 4 * OUTPUTS - 6);
    assert_true(big_cells[2 * PLANE - 1] == 1);
  }
}

static void the_lowest_position_is_told_whatever_the_threads(void **state) {
  (void)state;
  static const char *const threads[] = {"1", "2", "8"};
  char text[TEXT_MAX];
  for (int i = 0; i < 3; i++) {
    apart(run_many_tiles, "warn", threads[i], text);
    int lines = 0;
    for (const char *line = text; *line != '\0'; line = strchr(line, '\n') + 1) {
      const char *tail = strstr(line,
                                ": 6 of 90000 indices lie outside their plane of 90000 cells and "
                                "were dropped, the first at n=0 c=1 oh=37 ow=5 is 90000;");
      assert_true(tail != NULL && tail < strchr(line, '\n'));
      lines++;
    }
    assert_int_equal(lines, 10);
  }
}

static void fail_with_many_tiles(void **state) {
  (void)state;
  aclrtStream stream;
  start(&stream);
  for (int i = 0; i < OUTPUTS; i++) {
    big_grads[i] = 1;
    big_index[i] = PLANE - 1; /* far from nearly every window */
  }
  big_index[7] = -5;
  const struct call c = {MAX_2D, 1, 1, EDGE, OUT_EDGE, ACL_INT32, big_index, big_grads, big_cells};
  queue(&c, stream);
  FAILS(aclrtSynchronizeStream(stream), 507015, ": 1 of 22500 indices", "oh=0 ow=7 is -5");
  fetch_cells(&c);
  assert_true(big_cells[0] == 0 && big_cells[PLANE - 1] == OUTPUTS - 1);
}

static void an_error_in_large_planes_still_leaves_the_result(void **state) {
  (void)state;
  char text[TEXT_MAX];
  apart(fail_with_many_tiles, "error", "2", text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_warning_is_one_line_for_each_offending_call),
      cmocka_unit_test(off_is_silent),
      cmocka_unit_test(an_error_fails_the_stream_once_and_is_silent),
      cmocka_unit_test(another_word_is_refused_at_the_start),
      cmocka_unit_test(the_policy_is_that_of_the_start),
      cmocka_unit_test(wide_values_are_told_in_full),
      cmocka_unit_test(the_first_is_counted_by_planes_in_nhwc_too),
      cmocka_unit_test(the_lowest_position_is_told_whatever_the_threads),
      cmocka_unit_test(an_error_in_large_planes_still_leaves_the_result),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
