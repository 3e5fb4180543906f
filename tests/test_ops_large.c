/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes beyond 32 bits: more than 2^31 elements, strides beyond 2^31, planes of more than 2^24
 * cells.  Looks at samples: the edges, what lies next to 2^31, and cells between. */
#include "ops_fixture.h"

#include "aclnnop/aclnn_adaptive_avg_pool3d_backward.h"
#include "aclnnop/aclnn_adaptive_max_pool2d_backward.h"
#include "aclnnop/aclnn_max_pool2d_with_indices_backward.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#else
#define SANITIZED false
#endif

enum { PLANES = 2050, SIDE = 1024, PLANE = SIDE * SIDE, BF16_ONE = 0x3f80, BF16_TWO = 0x4000 };

static uint64_t available_mib(void) {
  size_t available = 0, total;
  OK_OR_SAY(aclrtGetMemInfo(ACL_HBM_MEM, &available, &total));
  return available >> 20;
}

static void skip_unless_there_is_room(void) {
  const uint64_t mib = available_mib();
  if (!SANITIZED && mib >= 12 * 1024) return;
  if (SANITIZED) SKIP("a sanitizer multiplies the memory of the largest tensors");
  SKIP("%llu MiB of memory are available, 12288 are needed", (unsigned long long)mib);
}

static void *device_copy(const void *from, size_t bytes) {
  void *memory = NULL;
  OK_OR_SAY(aclrtMalloc(&memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  if (from != NULL) OK_OR_SAY(aclrtMemcpy(memory, bytes, from, bytes, ACL_MEMCPY_HOST_TO_DEVICE));
  return memory;
}

static uint64_t element_at(const void *memory, int64_t index, size_t bytes) {
  uint64_t element = 0;
  const char *at = (const char *)memory + index * (int64_t)bytes;
  OK_OR_SAY(aclrtMemcpy(&element, bytes, at, bytes, ACL_MEMCPY_DEVICE_TO_HOST));
  return element;
}

static void expect_element(const void *memory, int64_t index, size_t bytes, uint64_t expected) {
  const uint64_t found = element_at(memory, index, bytes);
  if (found != expected)
    fail_msg("element %lld is %#llx, expected %#llx", (long long)index, (unsigned long long)found,
             (unsigned long long)expected);
}

struct shape {
  uint64_t rank;
  int64_t dims[5];
};

static aclTensor *tensor(const struct shape *s, aclDataType dtype, const int64_t *strides,
                         void *memory) {
  aclTensor *made =
      aclCreateTensor(s->dims, s->rank, dtype, strides, 0, ACL_FORMAT_ND, s->dims, s->rank, memory);
  assert_non_null(made);
  return made;
}

typedef aclnnStatus second_phase(void *, uint64_t, aclOpExecutor *, aclrtStream);

static void run(second_phase *phase, uint64_t size, aclOpExecutor *executor) {
  void *workspace = size > 0 ? device_copy(NULL, size) : NULL;
  OK_OR_SAY(phase(workspace, size, executor, devices.at[0].stream));
  OK_OR_SAY(aclrtSynchronizeStream(devices.at[0].stream));
  if (workspace != NULL) OK_OR_SAY(aclrtFree(workspace));
}

static void run_adaptive_max(aclTensor *grad_out, aclTensor *indices, aclTensor *grad_in) {
  uint64_t size;
  aclOpExecutor *executor;
  OK_OR_SAY(aclnnAdaptiveMaxPool2dBackwardGetWorkspaceSize(grad_out, grad_in, indices, grad_in,
                                                           &size, &executor));
  run(aclnnAdaptiveMaxPool2dBackward, size, executor);
  OK_OR_SAY(aclDestroyTensor(grad_out));
  OK_OR_SAY(aclDestroyTensor(indices));
  OK_OR_SAY(aclDestroyTensor(grad_in));
}

/* Positions whose neighbours are worth a look as well. */
static const int64_t planes_of_interest[] = {0, 1, 1023, 1024, 2046, 2047, 2048, 2049};

static int32_t position_in(int64_t plane) { return (int32_t)(plane * 524309 % PLANE); }

/* 1 x 2050 x 1024 x 1024: the flat position passes 2^31 at plane 2048. */
static void maxima_reach_beyond_two_to_the_31(void **state) {
  (void)state;
  skip_unless_there_is_room();
  const struct shape out = {4, {1, PLANES, 1, 1}}, in = {4, {1, PLANES, SIDE, SIDE}};
  uint16_t gradients[PLANES];
  int32_t positions[PLANES];
  for (int64_t i = 0; i < PLANES; i++) {
    gradients[i] = i % 2 == 0 ? BF16_ONE : BF16_TWO;
    positions[i] = position_in(i);
  }
  positions[PLANES - 1] = PLANE - 1;
  void *grad_out = device_copy(gradients, sizeof gradients);
  void *indices = device_copy(positions, sizeof positions);
  void *grad_in = device_copy(NULL, (size_t)PLANES * PLANE * 2);
  run_adaptive_max(tensor(&out, ACL_BF16, NULL, grad_out), tensor(&out, ACL_INT32, NULL, indices),
                   tensor(&in, ACL_BF16, NULL, grad_in));
  for (size_t i = 0; i < sizeof planes_of_interest / sizeof planes_of_interest[0]; i++) {
    const int64_t plane = planes_of_interest[i], base = plane * PLANE;
    expect_element(grad_in, base + positions[plane], 2, gradients[plane]);
    if (positions[plane] > 0) expect_element(grad_in, base + positions[plane] - 1, 2, 0);
    if (positions[plane] < PLANE - 1) expect_element(grad_in, base + positions[plane] + 1, 2, 0);
    if (plane > 0) expect_element(grad_in, base, 2, 0);
  }
  OK_OR_SAY(aclrtFree(grad_out));
  OK_OR_SAY(aclrtFree(indices));
  OK_OR_SAY(aclrtFree(grad_in));
}

static void averages_reach_beyond_two_to_the_31(void **state) {
  (void)state;
  skip_unless_there_is_room();
  const struct shape out = {4, {PLANES, 1, 1, 1}}, in = {4, {PLANES, 1, SIDE, SIDE}};
  uint16_t gradients[PLANES];
  uint64_t size;
  aclOpExecutor *executor;
  for (int64_t i = 0; i < PLANES; i++) gradients[i] = i % 2 == 0 ? BF16_ONE : BF16_TWO;
  void *grad_out = device_copy(gradients, sizeof gradients);
  void *grad_in = device_copy(NULL, (size_t)PLANES * PLANE * 2);
  aclTensor *from = tensor(&out, ACL_BF16, NULL, grad_out);
  aclTensor *to = tensor(&in, ACL_BF16, NULL, grad_in);
  OK_OR_SAY(aclnnAdaptiveAvgPool3dBackwardGetWorkspaceSize(from, to, to, &size, &executor));
  run(aclnnAdaptiveAvgPool3dBackward, size, executor);
  for (size_t i = 0; i < sizeof planes_of_interest / sizeof planes_of_interest[0]; i++) {
    const int64_t plane = planes_of_interest[i], base = plane * PLANE;
    const uint64_t average = gradients[plane] - (20u << 7); /* divided by 2^20 */
    expect_element(grad_in, base, 2, average);
    expect_element(grad_in, base + position_in(plane), 2, average);
    expect_element(grad_in, base + PLANE - 1, 2, average);
  }
  OK_OR_SAY(aclDestroyTensor(from));
  OK_OR_SAY(aclDestroyTensor(to));
  OK_OR_SAY(aclrtFree(grad_out));
  OK_OR_SAY(aclrtFree(grad_in));
}

static void send_element(void *memory, int64_t index, size_t bytes, uint64_t element) {
  char *at = (char *)memory + index * (int64_t)bytes;
  OK_OR_SAY(aclrtMemcpy(at, bytes, &element, bytes, ACL_MEMCPY_HOST_TO_DEVICE));
}

/* Two planes of 2 x 2 cells.  The batch stride of one tensor is beyond 2^31; of its memory only the
 * pages around the elements are ever touched. */
static void run_far(int64_t out_step, int64_t index_step, int64_t in_step) {
  const struct shape out = {4, {2, 1, 1, 1}}, in = {4, {2, 1, 2, 2}};
  void *grad_out = device_copy(NULL, (size_t)(out_step + 1) * 2);
  void *indices = device_copy(NULL, (size_t)(index_step + 1) * 4);
  void *grad_in = device_copy(NULL, (size_t)(in_step + 4) * 2);
  send_element(grad_out, 0, 2, BF16_ONE);
  send_element(grad_out, out_step, 2, BF16_TWO);
  send_element(indices, 0, 4, 3);
  send_element(indices, index_step, 4, 1);
  run_adaptive_max(tensor(&out, ACL_BF16, (const int64_t[]){out_step, 1, 1, 1}, grad_out),
                   tensor(&out, ACL_INT32, (const int64_t[]){index_step, 1, 1, 1}, indices),
                   tensor(&in, ACL_BF16, (const int64_t[]){in_step, 4, 2, 1}, grad_in));
  for (int64_t i = 0; i < 4; i++) {
    expect_element(grad_in, i, 2, i == 3 ? BF16_ONE : 0);
    expect_element(grad_in, in_step + i, 2, i == 1 ? BF16_TWO : 0);
  }
  OK_OR_SAY(aclrtFree(grad_out));
  OK_OR_SAY(aclrtFree(indices));
  OK_OR_SAY(aclrtFree(grad_in));
}

static void strides_reach_beyond_two_to_the_31(void **state) {
  (void)state;
  skip_unless_there_is_room();
  const int64_t far = (INT64_C(1) << 31) + 5;
  run_far(far, 1, 4);
  run_far(1, far, 4);
  run_far(1, 1, far);
}

enum { WIDE = 4100, WIDE_PLANE = WIDE * WIDE, TWO_TO_24 = 1 << 24 };

static uint64_t float_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/* Indices that a float could not tell from their neighbours; two of them strays. */
static void scatter_into_a_wide_plane(aclDataType index_type) {
  static const int32_t narrow[] = {TWO_TO_24 + 1, 0, WIDE_PLANE - 1, TWO_TO_24 - 1};
  const int64_t wide[] = {narrow[0], narrow[1], narrow[2], narrow[3]};
  const float gradients[] = {1, 2, 3, 4};
  const struct shape out = {3, {1, 2, 2}}, in = {3, {1, WIDE, WIDE}};
  const int64_t kernel = WIDE / 2, zero = 0, one = 1;
  uint64_t size;
  aclOpExecutor *executor;
  void *grad_out = device_copy(gradients, sizeof gradients);
  void *indices =
      index_type == ACL_INT32 ? device_copy(narrow, sizeof narrow) : device_copy(wide, sizeof wide);
  void *grad_in = device_copy(NULL, (size_t)WIDE_PLANE * sizeof(float));
  aclTensor *t[] = {tensor(&out, ACL_FLOAT, NULL, grad_out),
                    tensor(&out, index_type, NULL, indices), tensor(&in, ACL_FLOAT, NULL, grad_in)};
  aclIntArray *a[] = {aclCreateIntArray(&kernel, 1), aclCreateIntArray(&zero, 1),
                      aclCreateIntArray(&one, 1)};
  OK_OR_SAY(aclnnMaxPool2dWithIndicesBackwardGetWorkspaceSize(t[0], t[2], t[1], a[0], a[0], a[1],
                                                              a[2], false, t[2], &size, &executor));
  run(aclnnMaxPool2dWithIndicesBackward, size, executor);
  for (int i = 0; i < 4; i++) {
    expect_element(grad_in, narrow[i], 4, float_bits(gradients[i]));
    if (narrow[i] > 0) expect_element(grad_in, narrow[i] - 1, 4, 0);
    if (narrow[i] < WIDE_PLANE - 1) expect_element(grad_in, narrow[i] + 1, 4, 0);
  }
  for (int i = 0; i < 3; i++) OK_OR_SAY(aclDestroyTensor(t[i]));
  for (int i = 0; i < 3; i++) OK_OR_SAY(aclDestroyIntArray(a[i]));
  OK_OR_SAY(aclrtFree(grad_out));
  OK_OR_SAY(aclrtFree(indices));
  OK_OR_SAY(aclrtFree(grad_in));
}

static void planes_may_have_more_than_two_to_the_24_cells(void **state) {
  (void)state;
  scatter_into_a_wide_plane(ACL_INT32);
  scatter_into_a_wide_plane(ACL_INT64);
}

/* The divisor is the number of cells. */
static void averages_may_count_more_than_two_to_the_24_cells(void **state) {
  (void)state;
  const struct shape out = {4, {1, 1, 1, 1}}, in = {4, {1, 1, WIDE, WIDE}};
  const float gradient = 3;
  uint64_t size;
  aclOpExecutor *executor;
  void *grad_out = device_copy(&gradient, sizeof gradient);
  void *grad_in = device_copy(NULL, (size_t)WIDE_PLANE * sizeof gradient);
  aclTensor *from = tensor(&out, ACL_FLOAT, NULL, grad_out);
  aclTensor *to = tensor(&in, ACL_FLOAT, NULL, grad_in);
  OK_OR_SAY(aclnnAdaptiveAvgPool3dBackwardGetWorkspaceSize(from, to, to, &size, &executor));
  run(aclnnAdaptiveAvgPool3dBackward, size, executor);
  for (int64_t i = 0; i < WIDE_PLANE; i += 999983)
    expect_element(grad_in, i, 4, float_bits(gradient / (float)WIDE_PLANE));
  expect_element(grad_in, WIDE_PLANE - 1, 4, float_bits(gradient / (float)WIDE_PLANE));
  OK_OR_SAY(aclDestroyTensor(from));
  OK_OR_SAY(aclDestroyTensor(to));
  OK_OR_SAY(aclrtFree(grad_out));
  OK_OR_SAY(aclrtFree(grad_in));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(maxima_reach_beyond_two_to_the_31),
      cmocka_unit_test(averages_reach_beyond_two_to_the_31),
      cmocka_unit_test(strides_reach_beyond_two_to_the_31),
      cmocka_unit_test(planes_may_have_more_than_two_to_the_24_cells),
      cmocka_unit_test(averages_may_count_more_than_two_to_the_24_cells),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
