/* SPDX-License-Identifier: Apache-2.0 */
/* What an operator's second phase does not take on trust: addresses, workspace, and the caller's
 * floating-point mode. */
#include <fenv.h>
#include <semaphore.h>

#include "aclnn/opdev/op_errno.h"
#include "aclnnop/aclnn_adaptive_max_pool2d_backward.h"
#include "cpu/float_env.h"
#include "expect.h"
#include "faults.h"
#include "poolgrad.h"

enum { EDGE = 300, CELLS = EDGE * EDGE }; /* two tiles: the call asks for workspace */

struct call {
  aclTensor *grad_out, *self, *indices, *grad_in;
  uint64_t size;
  aclOpExecutor *executor;
};

static float *grad_out, *grad_in; /* these four are the device's */
static int32_t *index_data;
static char *workspace;

static aclTensor *tensor(aclDataType type, int64_t edge, void *data) {
  const int64_t dims[] = {1, edge, edge};
  aclTensor *t = aclCreateTensor(dims, 3, type, NULL, 0, ACL_FORMAT_ND, dims, 3, data);
  assert_non_null(t);
  return t;
}

static struct call prepare(void *out, void *index, void *in) {
  struct call c = {.grad_out = tensor(ACL_FLOAT, 1, out),
                   .self = tensor(ACL_FLOAT, EDGE, NULL),
                   .indices = tensor(ACL_INT32, 1, index),
                   .grad_in = tensor(ACL_FLOAT, EDGE, in)};
  OK_OR_SAY(aclnnAdaptiveMaxPool2dBackwardGetWorkspaceSize(c.grad_out, c.self, c.indices, c.grad_in,
                                                           &c.size, &c.executor));
  assert_int_equal(c.size, 64);
  return c;
}

static void destroy(struct call *c) {
  OK_OR_SAY(aclDestroyTensor(c->grad_out));
  OK_OR_SAY(aclDestroyTensor(c->self));
  OK_OR_SAY(aclDestroyTensor(c->indices));
  OK_OR_SAY(aclDestroyTensor(c->grad_in));
}

static int set_up(void **state) {
  if (set_up_device(state) != 0) return 1;
  OK_OR_SAY(aclrtMalloc((void **)&grad_out, 64, ACL_MEM_MALLOC_NORMAL_ONLY));
  OK_OR_SAY(aclrtMalloc((void **)&index_data, 64, ACL_MEM_MALLOC_NORMAL_ONLY));
  OK_OR_SAY(aclrtMalloc((void **)&grad_in, CELLS * sizeof *grad_in, ACL_MEM_MALLOC_NORMAL_ONLY));
  OK_OR_SAY(aclrtMalloc((void **)&workspace, 64, ACL_MEM_MALLOC_NORMAL_ONLY));
  send(grad_out, &(float){1}, sizeof(float));
  send(index_data, &(int32_t){5}, sizeof(int32_t));
  return 0;
}

#define REFUSED(work, out, index, in, ...)                                                        \
  do {                                                                                            \
    struct call c_ = prepare(out, index, in);                                                     \
    FAILS(aclnnAdaptiveMaxPool2dBackward(work, c_.size, c_.executor, NULL), 161002, __VA_ARGS__); \
    destroy(&c_);                                                                                 \
  } while (0)

static void workspace_must_lie_in_its_allocation(void **state) {
  (void)state;
  REFUSED(workspace + 64, grad_out, index_data, grad_in, "workspace reaches 64 bytes",
          "only 32 are allocated");
}

static void workspace_must_not_overlap_a_tensor(void **state) {
  (void)state;
  REFUSED(grad_in + 16, grad_out, index_data, grad_in, "gradInput overlaps that of workspace");
  REFUSED(grad_out, grad_out, index_data, grad_in, "workspace overlaps that of gradOutput");
}

static void addresses_must_be_aligned_to_their_type(void **state) {
  (void)state;
  REFUSED(workspace, (char *)grad_out + 1, index_data, grad_in, "gradOutput", "multiple of 4");
  REFUSED(workspace, grad_out, (char *)index_data + 2, grad_in, "indices", "multiple of 4");
  REFUSED(workspace, grad_out, index_data, (char *)grad_in + 1, "gradInput", "multiple of 4");
  REFUSED(workspace + 4, grad_out, index_data, grad_in, "workspace", "multiple of 8");
}

static float fifth_cell(void) {
  float value = -1;
  fetch(&value, grad_in + 5, sizeof value);
  return value;
}

static void run(float value) {
  struct call c = prepare(grad_out, index_data, grad_in);
  send(grad_out, &value, sizeof value);
  OK_OR_SAY(aclnnAdaptiveMaxPool2dBackward(workspace, c.size, c.executor, NULL));
  OK_OR_SAY(aclrtSynchronizeStream(NULL)); /* this thread computes */
  destroy(&c);
}

static void the_callers_rounding_mode_does_not_matter(void **state) {
  (void)state;
  const int before = fegetround();
  fesetround(FE_TOWARDZERO);
  run(0.1f);
  assert_int_equal(fegetround(), FE_TOWARDZERO); /* and is left alone */
  fesetround(before);
  assert_true(fifth_cell() == 0.1f);
}

#if defined(__x86_64__)
enum { FLUSH = 0x8040 }; /* flush to zero, denormals are zero */

static uint64_t float_mode(void) { return _mm_getcsr(); }
static void set_float_mode(uint64_t mode) { _mm_setcsr((uint32_t)mode); }
#elif defined(__aarch64__)
enum { FLUSH = 1 << 24 | 1 << 26 }; /* flush to zero, halves without infinities */

static uint64_t float_mode(void) {
  uint64_t mode;
  __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
  return mode;
}
static void set_float_mode(uint64_t mode) { __asm__ volatile("msr fpcr, %0" : : "r"(mode)); }
#else
enum { FLUSH = 0 };

static uint64_t float_mode(void) { return 0; }
static void set_float_mode(uint64_t mode) { (void)mode; }
#endif

static void subnormal_gradients_arrive_whatever_the_caller_flushes(void **state) {
  (void)state;
  const uint64_t before = float_mode();
  set_float_mode(before | FLUSH);
  run(0x1p-140f);
  assert_int_equal(float_mode() & FLUSH, FLUSH);
  set_float_mode(before);
  uint32_t bits;
  fetch(&bits, grad_in + 5, sizeof bits);
  assert_int_equal(bits, 1u << 9);
}

static void kernels_see_nothing_of_the_callers_mode(void **state) {
  (void)state;
  const uint64_t before = float_mode();
  set_float_mode(before | FLUSH);
  const pg_float_env callers = pg_float_env_enter();
  const uint64_t inside = float_mode();
  pg_float_env_leave(callers);
  const uint64_t after = float_mode();
  set_float_mode(before);
  assert_int_equal(inside & FLUSH, 0);
  assert_int_equal(after, before | FLUSH);
}

static void wait_for_gate(void *gate) { sem_wait(gate); }

static void nothing_is_allocated_while_kernels_run(void **state) {
  (void)state;
  sem_t gate;
  sem_init(&gate, 0, 0);
  assert_int_equal(poolgrad_set_threads(1), 0); /* starting a worker would allocate its stack */
  struct call c = prepare(grad_out, index_data, grad_in);
  send(grad_out, &(float){3}, sizeof(float));
  OK_OR_SAY(aclrtLaunchHostFunc(NULL, wait_for_gate, &gate));
  OK_OR_SAY(aclnnAdaptiveMaxPool2dBackward(workspace, c.size, c.executor, NULL));
  destroy(&c);
  faults_arm(0, FAULT_ONCE); /* the next request is refused, whoever asks */
  sem_post(&gate);
  OK_OR_SAY(aclrtSynchronizeStream(NULL));
  assert_null(aclCreateIntArray(NULL, 0)); /* the refusal was still there to be had */
  faults_disarm();
  assert_int_equal(poolgrad_set_threads(0), 0);
  assert_true(fifth_cell() == 3);
  sem_destroy(&gate);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(workspace_must_lie_in_its_allocation),
      cmocka_unit_test(workspace_must_not_overlap_a_tensor),
      cmocka_unit_test(addresses_must_be_aligned_to_their_type),
      cmocka_unit_test(nothing_is_allocated_while_kernels_run),
      cmocka_unit_test(the_callers_rounding_mode_does_not_matter),
      cmocka_unit_test(subnormal_gradients_arrive_whatever_the_caller_flushes),
      cmocka_unit_test(kernels_see_nothing_of_the_callers_mode),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down_device);
}
