/* SPDX-License-Identifier: Apache-2.0 */
/* Which method computes a call: what poolgrad.h says of it, and that another can be chosen. */
#include "ops_fixture.h"

#include "poolgrad.h"

/* A line of tests/problem.h, and the methods that fit it on the CPU, best first. */
static const struct {
  const char *line, *methods[6];
} rows[] = {
    {"max_pool2d f32 i64 in=1x2x64x192 kernel=2", {"pairs", "scatter"}},
    {"max_pool2d bf16 i32 in=1x2x64x64 kernel=3 stride=2 pad=1", {"scatter"}},
    {"max_pool2d bf16 i64 in=1x2x64x64 kernel=3 stride=3", {"scatter"}},
    {"max_pool2d f32 i64 in=1x2x64x64 kernel=3 stride=3", {"scatter"}},
    {"adaptive_max_pool3d f32 i64 in=1x2x4x64x64 out=2x32x32", {"scatter"}},
    {"max_pool2d f32 i64 in=1x2x64x64 kernel=3 stride=1", {"scatter"}},
    {"max_pool2d f16 i64 in=1x16x12x12 kernel=2 nhwc", {"patch", "channels_last", "scatter"}},
    {"max_pool2d f16 i64 in=1x64x12x12 kernel=2 nhwc",
     {"gather", "patch", "channels_last", "scatter"}},
    {"adaptive_max_pool2d f32 i64 in=1x2x64x64 out=2x2", {"scatter"}},
    {"adaptive_max_pool2d f32 i64 in=1x2x64x64 out=64x64", {"one_cell", "scatter"}},
    {"avg_pool2d f32 in=1x2x64x64 kernel=2", {"columns", "rows", "any"}},
    {"avg_pool2d f32 in=1x2x64x64 kernel=4", {"rows", "any"}},
    {"avg_pool2d f32 in=1x2x64x64 kernel=7 stride=1 pad=3", {"rows", "any"}},
    {"avg_pool2d f32 in=1x32x20x20 kernel=3 grad_out=permuted grad_in=permuted", {"rows", "any"}},
    {"avg_pool2d f32 in=2x64x8x8 kernel=8", {"one_window", "bundles", "rows", "any"}},
    {"avg_pool2d f32 in=2x64x8x8 kernel=1", {"one_cell", "bundles", "rows", "any"}},
    {"adaptive_avg_pool3d f16 in=2x64x4x4x4 out=1x1x1", {"one_window", "bundles", "rows", "any"}},
    {"adaptive_avg_pool3d bf16 in=2x3x4x4x4 out=40x40x40", {"rows", "any"}},
    /* floats hold divisors up to 2^24; a pooling in two dimensions has no windows along depth */
    {"avg_pool2d f32 in=1x1x4096x4096 kernel=4096", {"one_window", "rows", "any"}},
    {"avg_pool2d f32 in=1x1x4097x4096 kernel=4097x4096", {"any"}},
    {"max_pool2d_mask f32 in=1x2x64x192 kernel=2", {"pairs", "scatter"}},
    {"max_pool3d f32 i64 in=1x2x8x32x32 kernel=2", {"scatter"}},
    {"avg_pool3d f32 in=1x2x8x32x32 kernel=2", {"columns", "rows", "any"}},
    /* slices of cells between windows are not for columns */
    {"avg_pool3d f32 in=1x2x8x32x32 kernel=1 stride=2", {"rows", "any"}},
    {"adaptive_avg_pool2d f32 in=1x2x64x64 out=32x32", {"columns", "rows", "any"}},
    {"max_pool2d_forward f32 i64 in=1x2x64x64 kernel=2", {"rows", "any"}},
    {"max_pool2d_forward f16 i64 in=1x16x12x12 kernel=2 nhwc", {"channels_last", "rows", "any"}},
    {"max_pool2d_forward f32 i64 in=2x64x8x8 kernel=2", {"bundles", "rows", "any"}},
    {"max_pool3d_forward f32 i32 in=1x2x8x32x32 kernel=2", {"rows", "any"}},
    {"max_pool2d_mask_forward f32 in=1x2x64x64 kernel=2", {"rows", "any"}},
    {"max_pool_forward f32 in=1x2x64x64 kernel=2 stride=2", {"rows", "any"}},
    {"max_pool_forward of=u8 in=1x2x64x64 kernel=2", {"any"}},
    {"adaptive_max_pool2d_forward f64 in=1x2x64x64 out=8x8", {"any"}},
    {"adaptive_max_pool3d_forward f32 i64 in=1x2x8x16x16 out=1x1x1", {"rows", "any"}},
    {"avg_pool2d_forward f32 in=1x2x64x64 kernel=2", {"rows", "any"}},
    {"avg_pool3d_forward bf16 in=1x2x8x32x32 kernel=2", {"rows", "any"}},
    {"adaptive_avg_pool2d_forward f32 in=2x64x7x7 out=1x1", {"one_window", "any"}},
    {"adaptive_avg_pool3d_forward f32 in=1x2x8x32x32 out=3x5x7", {"rows", "any"}},
    /* planes of more cells than 32 bits count */
    {"max_pool2d_forward f32 i64 in=1x1x65536x65536 kernel=2", {"any"}},
    {"max_pool_forward f32 in=1x1x65536x65536 kernel=2 stride=2", {"any"}},
    {"avg_pool2d_forward f32 in=1x1x65536x65536 kernel=2", {"rows", "any"}},
};

/* Makes the executor of a line.  The first phase needs no memory behind its tensors. */
static void prepare(const char *line, struct trial_call *c) {
  const struct problem p = read_problem(line);
  *c = (struct trial_call){.workspace_size = 0};
  for (int i = 0; i < POOL_TENSORS; i++) {
    const struct tensor_layout layout = tensor_lay_out(&p, i);
    c->tensor[i] = operator_tensor(&p, &layout, i, NULL);
  }
  for (int i = 0; i < POOL_ARRAYS; i++) c->array[i] = operator_array(&p, i);
  const struct operator_arguments a = operator_arguments(&p, c->tensor, c->array);
  OK_OR_SAY(operator_calls[p.op].first(&a, &c->workspace_size, &c->executor));
}

static void end(struct trial_call *c) {
  OK_OR_SAY(aclDestroyAclOpExecutor(c->executor));
  for (int i = 0; i < POOL_TENSORS; i++) OK_OR_SAY(aclDestroyTensor(c->tensor[i]));
  for (int i = 0; i < POOL_ARRAYS; i++) OK_OR_SAY(aclDestroyIntArray(c->array[i]));
}

static void the_methods_that_fit_have_names_in_order(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct trial_call c;
    prepare(rows[i].line, &c);
    print_message("%s: %s\n", rows[i].line, poolgrad_method_used(c.executor, "cpu"));
    assert_string_equal(poolgrad_method_used(c.executor, "cpu"), rows[i].methods[0]);
    int j = 0;
    for (; rows[i].methods[j] != NULL; j++) {
      const char *name = poolgrad_method(c.executor, "cpu", j);
      assert_non_null(name);
      assert_string_equal(name, rows[i].methods[j]);
    }
    assert_null(poolgrad_method(c.executor, "cpu", j));
    end(&c);
  }
}

static void another_method_is_used_and_asks_for_its_workspace(void **state) {
  (void)state;
  struct trial_call c;
  uint64_t size = 7;
  prepare("max_pool2d f32 i64 in=1x8x300x300 kernel=2 nhwc", &c); /* planes are cut */
  assert_string_equal(poolgrad_method_used(c.executor, "cpu"), "patch");
  OK_OR_SAY(poolgrad_use_method(c.executor, "cpu", "scatter", &size));
  assert_string_equal(poolgrad_method_used(c.executor, "cpu"), "scatter");
  assert_true(size > 0 && size != c.workspace_size);
  OK_OR_SAY(poolgrad_use_method(c.executor, "cpu", "patch", &size));
  assert_int_equal(size, c.workspace_size);
  end(&c);
}

static void what_is_not_there_is_refused_and_changes_nothing(void **state) {
  (void)state;
  struct trial_call c;
  uint64_t size = 7;
  prepare("avg_pool2d f32 in=1x2x64x64 kernel=7 stride=1 pad=3", &c);
  FAILS(poolgrad_use_method(c.executor, "cpu", "scatter", &size), 161002, "method is 'scatter'");
  FAILS(poolgrad_use_method(c.executor, "cpu", "", &size), 161002, "method is ''");
  FAILS(poolgrad_use_method(c.executor, "npu", "any", &size), 161002, "backend is npu", "cpu");
  FAILS(poolgrad_use_method(c.executor, NULL, "any", &size), 161002, "backend is NULL");
  FAILS(poolgrad_use_method(c.executor, "cpu", NULL, &size), 161001, "method is NULL");
  FAILS(poolgrad_use_method(c.executor, "cpu", "any", NULL), 161001, "workspaceSize is NULL");
  FAILS(poolgrad_use_method(NULL, "cpu", "any", &size), 561103, "executor is NULL");
  FAILS(poolgrad_use_method(c.tensor[0], "cpu", "any", &size), 561000, "executor is a tensor");
  assert_int_equal(size, 7);
  assert_string_equal(poolgrad_method_used(c.executor, "cpu"), "rows");
  assert_null(poolgrad_method(c.executor, "cpu", -1));
  assert_null(poolgrad_method(c.executor, "npu", 0));
  assert_null(poolgrad_method(c.tensor[0], "cpu", 0));
  assert_null(poolgrad_method_used(NULL, "cpu"));
  assert_null(poolgrad_method_used(c.executor, NULL));
  end(&c);
}

static void a_call_without_work_has_no_method(void **state) {
  (void)state;
  struct trial_call c;
  prepare("avg_pool2d f32 in=0x2x8x8 kernel=2", &c);
  assert_null(poolgrad_method_used(c.executor, "cpu"));
  assert_null(poolgrad_method(c.executor, "cpu", 0));
  end(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_methods_that_fit_have_names_in_order),
      cmocka_unit_test(another_method_is_used_and_asks_for_its_workspace),
      cmocka_unit_test(what_is_not_there_is_refused_and_changes_nothing),
      cmocka_unit_test(a_call_without_work_has_no_method),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
