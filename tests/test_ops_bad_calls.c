/* SPDX-License-Identifier: Apache-2.0 */
/* Thousands of wrong first phases of each operator, with one flaw and with two.  Each must give its
 * code and one sentence, and nothing else: no result written, no handle left, no memory touched.
 * They come from the table in bad_calls.c; the second phases are in test_ops_bad_runs.c. */
#include <inttypes.h>
#include <sys/mman.h>

#include "aclnn/aclnn_base.h"
#include "bad_calls.h"
#include "bad_report.h"
#include "ops_fixture.h"

enum { FLAWS_MAX = 8000, CALLS_MIN = 2000 };

/* Of the pairs every one is tried, or one of a few where that takes minutes: under an emulator, and
 * under ThreadSanitizer, which has nothing to see in calls of one thread. */
#if defined(EMULATED) || defined(__SANITIZE_THREAD__)
enum { PAIR_STEP = 16 };
#else
enum { PAIR_STEP = 1 };
#endif

/* The products, by what they allow: the documents' table of profiles. */
static const struct bad_product products[] = {
    {"", .max_any = true, .max3d_int64 = true},
    {"Ascend910B1", .max_any = false},
    {"Ascend910_93", .max_any = false},
    {"Ascend950", .max_any = true, .max3d_int64 = true, .large_planes = true, .empty_batch = true},
};
enum { PRODUCTS = sizeof products / sizeof products[0], PORTABLE = 1, EVERYWHERE = 15, NEW = 9 };

/* Calls that are right, by the products they are right on.  Axes are longer than 1 where they can
 * be, so that their strides matter. */
static const struct {
  unsigned on; /* bit i: products[i] */
  const char *line;
} bases[] = {
    {EVERYWHERE, "adaptive_max_pool2d f32 i64 in=2x3x5x7 out=2x3 nchw"},
    {PORTABLE, "adaptive_max_pool2d f16 i32 in=3x4x6 out=2x2 nd"},
    {PORTABLE, "adaptive_max_pool2d bf16 i64 in=2x2x4x4 out=3x2 ncl grad_in=gap grad_out=permuted"},
    {PORTABLE, "adaptive_max_pool2d f32 i32 in=2x2x3x3 out=4x4 nc indices=offset self=rows"},
    {EVERYWHERE, "adaptive_max_pool3d f32 i32 in=2x3x4x5x3 out=2x3x2 ncdhw"},
    {NEW, "adaptive_max_pool3d bf16 i64 in=2x4x4x3 out=2x2x3 nd"},
    {PORTABLE, "adaptive_max_pool3d f16 i64 in=2x2x3x3x3 out=2x2x2 nchw grad_in=transposed"},
    {EVERYWHERE, "adaptive_avg_pool3d f32 in=2x3x4x5x3 out=2x3x2 ncdhw"},
    {PORTABLE, "adaptive_avg_pool3d f16 in=3x4x4x3 out=2x2x3 nd"},
    {PORTABLE, "adaptive_avg_pool3d bf16 in=2x2x3x3x3 out=2x2x2 ncl grad_in=gap grad_out=expand"},
    {EVERYWHERE, "adaptive_avg_pool3d f64 in=2x3x4x3x2 out=1x1x1 ncdhw"},
    {EVERYWHERE, "max_pool2d f32 i32 in=2x3x5x7 kernel=2x3 stride=2 pad=1 nchw"},
    {NEW, "max_pool2d f16 i64 in=2x7x5x3 kernel=3 stride=2x1 pad=0x1 dilation=1x1 nhwc"},
    {PORTABLE, "max_pool2d bf16 i32 in=3x6x6 kernel=2 stride=2x2 dilation=2x1 ceil nd"},
    {PORTABLE, "max_pool2d f32 i64 in=2x2x6x6 kernel=3x2 ncl grad_in=gap indices=permuted"},
    {EVERYWHERE, "avg_pool2d f32 in=2x3x5x7 kernel=2x3 stride=2 pad=1 nchw"},
    {PORTABLE, "avg_pool2d f16 in=3x6x6 kernel=3 stride=2x1 pad=0x1 ncl cube=1 include_pad"},
    {PORTABLE, "avg_pool2d bf16 in=2x2x6x6 kernel=2 stride=null divisor=3 nchw ceil"},
    {PORTABLE, "avg_pool2d f32 in=4x6x6 kernel=3x2 nchw cube=3 grad_in=permuted grad_out=scalar"},
};

/* How many calls were made, and how many of all went wrong. */
static struct { int single, pairs; } tallies[POOL_OPERATORS];
static int failed;

static void *no_mans_land; /* a page that cannot be read or written */

/* Makes the call; NULL, or what is wrong with how it went.  *status and *text are for the report;
 * a status of 0 is expected when there is no verdict. */
static const char *try_call(const struct bad_call *c, const struct bad_verdict *verdict,
                            int *status, const char **text) {
  enum { UNTOUCHED = 77 };
  uint64_t size = UNTOUCHED;
  aclOpExecutor *const before = (void *)&size, *executor = before;
  const struct bad_arguments h = bad_make(c);
  *status = bad_first_phase(c, &h, &size, &executor);
  *text = aclGetRecentErrMsg();
  const bool kept = bad_drop(c, &h);
  if (*status == 0 && executor != before) (void)aclDestroyAclOpExecutor(executor);
  if (*status != (verdict == NULL ? 0 : verdict->code)) return "the code is wrong";
  if (!kept) return "a handle of the caller's is gone";
  if (verdict == NULL) return *text == NULL ? NULL : "there is a sentence";
  if (size != UNTOUCHED || executor != before) return "a result was written";
  const char *words[BAD_ARGUMENTS];
  int count = 0;
  for (int i = 0; i < BAD_ARGUMENTS; i++)
    if (verdict->named & 1u << i) words[count++] = bad_name(c->op, i);
  return judge_sentence(*text, operator_calls[c->op].first_name, words, count);
}

static void check_call(const char *line, const struct bad_call *base, const struct flaw *a,
                       const struct flaw *b) {
  int status;
  char first[PROBLEM_TEXT], second[PROBLEM_TEXT] = "";
  const char *text;
  struct bad_call c = *base;
  const struct bad_verdict verdict = bad_judge(a, b);
  bad_apply(a, &c);
  if (b != NULL) bad_apply(b, &c);
  const struct handle_counts before = count_handles();
  const char *wrong = try_call(&c, &verdict, &status, &text);
  const struct handle_counts after = count_handles();
  if (wrong == NULL && !same_handles(&before, &after)) wrong = "a handle is left";
  *(b == NULL ? &tallies[base->op].single : &tallies[base->op].pairs) += 1;
  if (wrong == NULL) return;
  bad_describe(a, base->op, first);
  if (b != NULL) bad_describe(b, base->op, second);
  complain(&failed, "%s [%s]\n  %s%s%s\n  %s: %d, expected %d: %s", line, aclrtGetSocName(), first,
           b == NULL ? "" : " and ", second, wrong, status, verdict.code,
           text == NULL ? "(no sentence)\n" : text);
}

static void check_base(const char *line, const struct bad_product *product) {
  static struct flaw flaws[FLAWS_MAX];
  const struct problem p = read_problem(line);
  struct bad_call base = bad_base(&p);
  const char *text;
  int status;
  for (int i = 0; i < POOL_TENSORS; i++) base.tensor[i].data = no_mans_land;
  const char *wrong = try_call(&base, NULL, &status, &text);
  if (wrong != NULL) fail_msg("%s: %s: %d: %s", line, wrong, status, text == NULL ? "" : text);
  const int count = bad_flaws(&base, product, flaws, FLAWS_MAX);
  BETWEEN(count, 1, FLAWS_MAX - 1);
  for (int i = 0; i < count; i++) check_call(line, &base, &flaws[i], NULL);
  for (int i = 0; i < count; i++)
    for (int k = i + 1; k < count && flaws[i].paired; k += PAIR_STEP)
      if (flaws[k].paired && bad_meet(&flaws[i], &flaws[k]))
        check_call(line, &base, &flaws[i], &flaws[k]);
}

/* The profile of a product is read by aclnnInit. */
static void first_phases(int product) {
  setenv("POOLGRAD_SOC", products[product].name, 1);
  OK_OR_SAY(aclnnInit(NULL));
  for (size_t i = 0; i < sizeof bases / sizeof bases[0]; i++)
    if (bases[i].on & 1u << product) check_base(bases[i].line, &products[product]);
}

static void wrong_calls_are_refused(void **state) {
  (void)state;
  failed = 0;
  first_phases(0);
  assert_int_equal(failed, 0);
}

static void products_refuse_more(void **state) {
  (void)state;
  failed = 0;
  for (int i = 1; i < PRODUCTS; i++) first_phases(i);
  setenv("POOLGRAD_SOC", "", 1);
  OK_OR_SAY(aclnnInit(NULL));
  assert_int_equal(failed, 0);
}

static void each_operator_had_its_share(void **state) {
  (void)state;
  for (int i = 0; i < FIRST_OPERATORS; i++) {
    const int all = tallies[i].single + tallies[i].pairs;
    print_message("%s: %d wrong calls, %d of them with two flaws\n", operator_calls[i].first_name,
                  all, tallies[i].pairs);
    BETWEEN(all, CALLS_MIN, INT32_MAX);
  }
}

static int set_up_all(void **state) {
  no_mans_land = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (no_mans_land == MAP_FAILED || set_up(state) != 0) return 1;
  bad_handles_open();
  return 0;
}

static int tear_down_all(void **state) {
  bad_handles_close();
  (void)munmap(no_mans_land, 4096);
  return tear_down(state);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(wrong_calls_are_refused),
      cmocka_unit_test(products_refuse_more),
      cmocka_unit_test(each_operator_had_its_share),
  };
  return cmocka_run_group_tests(tests, set_up_all, tear_down_all);
}
