/* SPDX-License-Identifier: Apache-2.0 */
/* Methods fall back to scattering plane by plane where an index lies outside its window. Scattering
 * gives the same bits everywhere, so that a method which falls back too often is only slow: what
 * tells is the part of the scratch memory that scattering computes in. */
#include "ops_fixture.h"

#include "cpu_problem.h"
#include "kernels/tiling.h"

static const char *const gathering[] = {"channels_last", "pairs"};
enum { GATHERING = sizeof gathering / sizeof gathering[0], UNTOUCHED = 0x5a };

static char *room; /* scratch memory */

static int set_up_room(void **state) {
  room = aligned_alloc(PG_SCRATCH_ALIGNMENT, PG_SCRATCH_BYTES);
  return room == NULL || set_up(state) != 0;
}

static int tear_down_room(void **state) {
  free(room);
  return tear_down(state);
}

static void *address_of(const struct trial *t, int tensor, size_t bytes) {
  return t->memory[tensor].device + t->layout[tensor].offset * (int64_t)bytes;
}

/* Runs all items of the task; did it scatter? */
static bool scatters(const struct pg_task *task) {
  const struct pg_cpu_method *method = task->choice.method;
  const atomic_bool stop = false;
  struct pg_scratch scratch = {.stop = &stop, .room = room};
  const char *fallback = pg_fallback_room(&scratch);
  memset(room, UNTOUCHED, PG_SCRATCH_BYTES);
  method->run(task, 0, task->choice.items, &scratch);
  for (int64_t i = 0; i < PG_SCRATCH_FALLBACK; i++)
    if (fallback[i] != UNTOUCHED) return true;
  return false;
}

/* By this method, which fits; with the data of the trial. */
static bool falls_back(const struct trial *t, const struct pg_problem *p,
                       const struct pg_choice *choice) {
  const size_t bytes = float_formats[t->problem.type].bytes;
  struct pg_index_report report = {.position = INT64_MAX};
  struct pg_task task = {.choice = *choice, .problem = *p};
  struct pg_max_backward *a = &task.problem.args.max_backward;
  a->grad_out = address_of(t, GRAD_OUT, bytes);
  a->index = address_of(t, INDICES, (size_t)t->problem.index_bytes);
  a->grad_in = address_of(t, GRAD_IN, bytes);
  a->flags = calloc(1, (size_t)choice->workspace_bytes + 1);
  a->report = &report;
  assert_non_null(a->flags);
  const bool scattered = scatters(&task);
  free(a->flags);
  return scattered;
}

/* A window that lies in the padding has no cell to name. */
static bool every_output_names_a_cell(const struct trial *t) {
  for (int64_t i = 0; i < t->outputs; i++)
    if (t->index[i] < 0) return false;
  return true;
}

struct count {
  int tried;     /* methods that may fall back */
  int fallbacks; /* those that did */
  int must; /* those that have to if indices may be anywhere: channels_last scatters as well, and
             * needs no help with planes that are not cut */
};

static struct count count_fallbacks(const struct problem *problem) {
  const struct pg_problem p = cpu_problem_of(problem);
  struct trial t;
  struct pg_choice choice;
  struct count count = {0, 0, 0};
  if (!trial_open(&t, problem, &devices)) fail_msg("%s", t.why);
  for (int i = 0; i < GATHERING && t.outputs > 0 && t.cells > 0; i++)
    if (every_output_names_a_cell(&t) && cpu_method(&p, gathering[i], &choice)) {
      count.tried++;
      count.fallbacks += falls_back(&t, &p, &choice);
      count.must += strcmp(choice.name, "channels_last") != 0 || pg_tiling_cuts(&choice.tiling);
    }
  trial_close(&t);
  return count;
}

static void skip_without_a_cpu(void) {
  if (strcmp(devices.at[0].backend, "cpu") != 0) SKIP("the first device is no CPU");
}

/* Windows of every pattern, rows and planes that are cut, three dimensions. */
#define LAST " grad_out=permuted indices=permuted grad_in=permuted"
static const char *const lines[] = {
    "max_pool2d f32 i64 in=2x3x66x200 kernel=2",
    "max_pool2d bf16 i64 in=1x2x66x201 kernel=2 stride=3x2 ceil",
    "max_pool2d f32 i32 in=1x2x67x211 kernel=2 stride=2 pad=1 indices=gap",
    "max_pool2d f16 i32 in=1x2x200x300 kernel=2x2 stride=2 pad=1x0 grad_in=gap",
    "max_pool2d f32 i64 in=1x2x40x1500 kernel=2",
    "max_pool2d f16 i64 in=2x17x40x45 kernel=3 stride=2 pad=1 nhwc",
    "max_pool2d f32 i32 in=1x16x40x45 kernel=3 stride=1 pad=1 nhwc",
    "max_pool2d f32 i64 in=1x5x40x45 kernel=4 stride=1 pad=2 dilation=2 nhwc",
    "max_pool2d bf16 i32 in=1x40x33x140 kernel=2 ceil nhwc",
    "adaptive_max_pool2d f32 i32 in=1x2x64x256 out=32x128",
    ("adaptive_max_pool3d f32 i64 in=1x16x7x9x8 out=5x6x4" LAST),
    ("adaptive_max_pool3d bf16 i32 in=1x5x7x9x8 out=4x6x5" LAST),
};
#undef LAST
enum { LINES = sizeof lines / sizeof lines[0] };

static void indices_in_their_windows_are_gathered(void **state) {
  (void)state;
  skip_without_a_cpu();
  for (int i = 0; i < LINES; i++) {
    const struct problem p = read_problem(lines[i]);
    const struct count count = count_fallbacks(&p);
    if (count.fallbacks > 0 || count.tried == 0) fail_msg("scattered: %s", lines[i]);
  }
}

/* Else the first test could not fail. */
static void other_indices_are_scattered(void **state) {
  (void)state;
  int must = 0;
  skip_without_a_cpu();
  for (int i = 0; i < LINES; i++) {
    struct problem p = read_problem(lines[i]);
    p.index = ANYWHERE;
    const struct count count = count_fallbacks(&p);
    must += count.must;
    if (count.fallbacks < count.must)
      fail_msg("%d of %d scattered: %s", count.fallbacks, count.must, lines[i]);
  }
  assert_true(must > 5);
}

static void random_maxima_are_gathered(void **state) {
  (void)state;
  skip_without_a_cpu();
  int tried = 0;
  for (uint64_t seed = 0; seed < 6000; seed++) {
    struct problem p = problem_random(seed, 5000);
    if (!problem_is_max(&p) || problem_is_forward(&p)) continue;
    if (p.op == MAX_POOL2D_MASK) continue; /* cpu_problem.h knows no containers of masks */
    p.index = FORWARD;
    if (p.layout[INDICES] == EXPAND || p.layout[INDICES] == SCALAR) continue; /* others' maxima */
    const struct count count = count_fallbacks(&p);
    if (count.fallbacks > 0) {
      char line[PROBLEM_TEXT];
      problem_print(&p, line);
      fail_msg("scattered: %s", line);
    }
    tried += count.tried;
  }
  assert_true(tried > 100);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(indices_in_their_windows_are_gathered),
      cmocka_unit_test(other_indices_are_scattered),
      cmocka_unit_test(random_maxima_are_gathered),
  };
  return cmocka_run_group_tests(tests, set_up_room, tear_down_room);
}
