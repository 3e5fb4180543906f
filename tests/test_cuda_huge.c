/* SPDX-License-Identifier: Apache-2.0 */
/* Results of 2^32 cells, which only a GPU has the time for.  Planes repeat after a prime number of
 * them, so that a wrong step shows; what each of these must become the CPU device says. */
#include "expect.h"

#include "aclnnop/aclnn_adaptive_avg_pool3d_backward.h"
#include "aclnnop/aclnn_max_pool2d_with_indices_backward.h"

enum { GPU, CPU, DEVICES, NEEDED_GB = 40, PATTERNS = 31 };

/* Planes of bf16; indices are 32 bits wide. */
struct huge {
  uint64_t rank;
  int64_t planes, in[3], out[3]; /* rank 4: the last two */
  bool max;                      /* 2 x 2 side by side; else adaptive averages */
};

static aclrtContext contexts[DEVICES];

static void enter(int device) { OK_OR_SAY(aclrtSetCurrentContext(contexts[device])); }

static size_t cells(const int64_t edges[3]) { return (size_t)(edges[0] * edges[1] * edges[2]); }

/* The data of all patterns, and what becomes of it. */
struct patterns {
  uint16_t *grads, *results;
  int32_t *index;
};

static uint32_t next_number(void) {
  static uint64_t state = 1;
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(state >> 33);
}

static struct patterns make_patterns(const struct huge *h) {
  const size_t outputs = cells(h->out), all = PATTERNS * outputs, width = (size_t)h->out[2];
  struct patterns p = {.grads = malloc(all * sizeof *p.grads),
                       .results = malloc(PATTERNS * cells(h->in) * sizeof *p.results),
                       .index = malloc(all * sizeof *p.index)};
  assert_true(p.grads != NULL && p.results != NULL && p.index != NULL);
  for (size_t i = 0; i < all; i++) {
    const size_t row = i % outputs / width, column = i % width;
    const uint32_t number = next_number();
    p.grads[i] = (uint16_t)(0x3f00 | (number & 0x80ff)); /* 0.5 to 2, of either sign */
    p.index[i] =
        (int32_t)((2 * row + (number >> 16 & 1)) * 2 * width + 2 * column + (number >> 17 & 1));
  }
  return p;
}

static void free_patterns(struct patterns *p) {
  free(p->grads);
  free(p->results);
  free(p->index);
}

static aclTensor *tensor(const struct huge *h, int64_t planes, const int64_t edges[3],
                         aclDataType dtype, void *memory) {
  int64_t dims[5] = {planes, 1, edges[0], edges[1], edges[2]};
  if (h->rank == 4) memcpy(dims + 2, edges + 1, 2 * sizeof *dims);
  return aclCreateTensor(dims, h->rank, dtype, NULL, 0, ACL_FORMAT_ND, dims, h->rank, memory);
}

struct memory {
  void *grads, *index, *cells;
};

static void launch(const struct huge *h, int64_t planes, const struct memory *m) {
  static const int64_t numbers[] = {2, 0, 1};
  uint64_t size;
  aclOpExecutor *executor;
  aclIntArray *a[3];
  aclTensor *t[] = {tensor(h, planes, h->out, ACL_BF16, m->grads),
                    tensor(h, planes, h->out, ACL_INT32, m->index),
                    tensor(h, planes, h->in, ACL_BF16, m->cells)};
  for (int i = 0; i < 3; i++) a[i] = aclCreateIntArray(&numbers[i], 1);
  if (h->max)
    OK_OR_SAY(aclnnMaxPool2dWithIndicesBackwardGetWorkspaceSize(
        t[0], t[2], t[1], a[0], a[0], a[1], a[2], false, t[2], &size, &executor));
  else
    OK_OR_SAY(aclnnAdaptiveAvgPool3dBackwardGetWorkspaceSize(t[0], t[2], t[2], &size, &executor));
  void *workspace = size > 0 ? device_memory(size) : NULL;
  OK_OR_SAY((h->max ? aclnnMaxPool2dWithIndicesBackward : aclnnAdaptiveAvgPool3dBackward)(
      workspace, size, executor, NULL));
  OK_OR_SAY(aclrtSynchronizeStream(NULL));
  if (workspace != NULL) OK_OR_SAY(aclrtFree(workspace));
  for (int i = 0; i < 3; i++) OK_OR_SAY(aclDestroyTensor(t[i]));
  for (int i = 0; i < 3; i++) OK_OR_SAY(aclDestroyIntArray(a[i]));
}

/* So many planes on the current device, one pattern after the other, and poison for cells. */
static struct memory send_planes(const struct huge *h, const struct patterns *p, int64_t planes) {
  const size_t outputs = cells(h->out), bytes = (size_t)planes * cells(h->in) * 2;
  struct memory m = {device_memory((size_t)planes * outputs * 2),
                     device_memory((size_t)planes * outputs * 4), device_memory(bytes)};
  for (int64_t at = 0; at < planes; at += PATTERNS) {
    const size_t count = (size_t)(planes - at < PATTERNS ? planes - at : PATTERNS) * outputs;
    send((uint16_t *)m.grads + (size_t)at * outputs, p->grads, count * 2);
    send((int32_t *)m.index + (size_t)at * outputs, p->index, count * 4);
  }
  OK_OR_SAY(aclrtMemset(m.cells, bytes, 0xff, bytes));
  return m;
}

static void free_planes(struct memory *m) {
  OK_OR_SAY(aclrtFree(m->grads));
  OK_OR_SAY(aclrtFree(m->index));
  OK_OR_SAY(aclrtFree(m->cells));
}

static void compare_planes(const struct huge *h, const struct patterns *p, const uint16_t *found) {
  const size_t plane = cells(h->in), block = PATTERNS * plane;
  uint16_t *block_found = malloc(block * 2);
  assert_non_null(block_found);
  for (int64_t at = 0; at < h->planes; at += PATTERNS) {
    const int64_t count = h->planes - at < PATTERNS ? h->planes - at : PATTERNS;
    fetch(block_found, found + (size_t)at * plane, (size_t)count * plane * 2);
    for (size_t i = 0; i < (size_t)count * plane; i += plane)
      if (memcmp(block_found + i, p->results + i, plane * 2) != 0)
        fail_msg("plane %lld differs from the CPU's", (long long)(at + (int64_t)(i / plane)));
  }
  free(block_found);
}

static void run(const struct huge *h) {
  struct patterns p = make_patterns(h);
  enter(CPU);
  struct memory few = send_planes(h, &p, PATTERNS);
  launch(h, PATTERNS, &few);
  fetch(p.results, few.cells, PATTERNS * cells(h->in) * 2);
  free_planes(&few);
  enter(GPU);
  struct memory all = send_planes(h, &p, h->planes);
  launch(h, h->planes, &all);
  compare_planes(h, &p, all.cells);
  free_planes(&all);
  free_patterns(&p);
}

/* 64 x 256 x 512 x 512 */
static void maxima_fill_two_to_the_32_cells(void **state) {
  (void)state;
  const struct huge h = {4, 64 * 256, {1, 512, 512}, {1, 256, 256}, true};
  run(&h);
}

/* 8 x 64 x 128 x 256 x 256 */
static void averages_fill_two_to_the_32_cells(void **state) {
  (void)state;
  const struct huge h = {5, 8 * 64, {128, 256, 256}, {7, 7, 7}, false};
  run(&h);
}

static const char *trouble(void) {
  static char text[128];
  size_t available = 0, total;
  const char *devices = getenv("POOLGRAD_DEVICES");
  if (devices != NULL && strncmp(devices, "cuda", 4) != 0)
    return "POOLGRAD_DEVICES does not name one";
  setenv("POOLGRAD_DEVICES", "cuda:0,cpu", 1);
  for (int i = 0; i < DEVICES; i++)
    if ((i == 0 && aclInit(NULL) != ACL_SUCCESS) || aclrtSetDevice(i) != ACL_SUCCESS ||
        aclrtGetCurrentContext(&contexts[i]) != ACL_SUCCESS)
      return aclGetRecentErrMsg();
  enter(GPU);
  OK_OR_SAY(aclrtGetMemInfo(ACL_HBM_MEM, &available, &total));
  snprintf(text, sizeof text, "%zu GB are free on it, %d are needed", available >> 30, NEEDED_GB);
  return available >> 30 < NEEDED_GB ? text : NULL;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(maxima_fill_two_to_the_32_cells),
                                     cmocka_unit_test(averages_fill_two_to_the_32_cells)};
  const char *why = trouble();
  if (why == NULL) return cmocka_run_group_tests(tests, NULL, NULL) + (aclFinalize() != 0);
  return skip_without_gpu(why);
}
