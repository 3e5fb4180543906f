/* SPDX-License-Identifier: Apache-2.0 */
/* Forward, then backward with what the forward wrote: its bytes are the backward's gradOutput, and
 * its indices or its mask the backward's.  Every pair of operators, type, index type and layout, on
 * every device, for each product that takes both; where one takes only half of it, it says so. */
#include "ops_fixture.h"

#include "float_format.h"

enum profile { PORTABLE, OLDER, NEWER, PROFILES };
static const char *const products[PROFILES] = {"", "Ascend910B1", "Ascend950"};

static const struct pair {
  enum pool_operator forward, backward;
  const char *line; /* of the forward, without types and layouts */
} pairs[] = {
    {MAX_POOL2D_FORWARD, MAX_POOL2D, "max_pool2d_forward in=2x3x9x11 kernel=3x2 stride=2 pad=1"},
    {MAX_POOL2D_FORWARD, MAX_POOL2D, "max_pool2d_forward in=2x17x8x8 kernel=2"},
    {MAX_POOL2D_FORWARD, MAX_POOL2D, "max_pool2d_forward in=3x12x13 kernel=3 stride=1 pad=1 ceil"},
    {MAX_POOL2D_FORWARD, MAX_POOL2D, "max_pool2d_forward in=3x12x13 kernel=3 dilation=2 stride=2"},
    {MAX_POOL2D_MASK_FORWARD, MAX_POOL2D_MASK,
     "max_pool2d_mask_forward in=2x3x9x11 kernel=3x2 stride=2 pad=1"},
    {MAX_POOL2D_MASK_FORWARD, MAX_POOL2D_MASK,
     "max_pool2d_mask_forward in=3x12x13 kernel=3 stride=1 pad=1 ceil"},
    {MAX_POOL2D_MASK_FORWARD, MAX_POOL2D_MASK, "max_pool2d_mask_forward in=2x3x9x11 kernel=1"},
    {MAX_POOL2D_MASK_FORWARD, MAX_POOL2D_MASK,
     "max_pool2d_mask_forward in=2x3x9x11 kernel=1 stride=2x3"},
    {MAX_POOL3D_FORWARD, MAX_POOL3D, "max_pool3d_forward in=2x3x5x9x8 kernel=2x3x2 stride=2 pad=1"},
    {MAX_POOL3D_FORWARD, MAX_POOL3D, "max_pool3d_forward in=3x6x8x9 kernel=2 stride=1 ceil"},
    {ADAPTIVE_MAX_POOL2D_FORWARD, ADAPTIVE_MAX_POOL2D,
     "adaptive_max_pool2d_forward in=2x3x9x11 out=4x5"},
    {ADAPTIVE_MAX_POOL2D_FORWARD, ADAPTIVE_MAX_POOL2D,
     "adaptive_max_pool2d_forward in=3x12x8 out=1x1"},
    {ADAPTIVE_MAX_POOL3D_FORWARD, ADAPTIVE_MAX_POOL3D,
     "adaptive_max_pool3d_forward in=2x3x5x9x11 out=2x4x5"},
    {ADAPTIVE_MAX_POOL3D_FORWARD, ADAPTIVE_MAX_POOL3D,
     "adaptive_max_pool3d_forward in=3x4x8x6 out=2x4x3"},
    {AVG_POOL2D_FORWARD, AVG_POOL2D, "avg_pool2d_forward in=2x3x9x11 kernel=3x2 stride=2 pad=1"},
    {AVG_POOL2D_FORWARD, AVG_POOL2D,
     "avg_pool2d_forward in=3x12x13 kernel=3 stride=2 ceil include_pad pad=1"},
    {AVG_POOL3D_FORWARD, AVG_POOL3D, "avg_pool3d_forward in=2x3x5x9x8 kernel=2x3x2 stride=2 pad=1"},
    {AVG_POOL3D_FORWARD, AVG_POOL3D, "avg_pool3d_forward in=3x6x8x9 kernel=2 stride=3 divisor=-5"},
    {ADAPTIVE_AVG_POOL2D_FORWARD, ADAPTIVE_AVG_POOL2D,
     "adaptive_avg_pool2d_forward in=2x3x9x11 out=4x5"},
    {ADAPTIVE_AVG_POOL2D_FORWARD, ADAPTIVE_AVG_POOL2D,
     "adaptive_avg_pool2d_forward in=3x12x8 out=1x1"},
    {ADAPTIVE_AVG_POOL3D_FORWARD, ADAPTIVE_AVG_POOL3D,
     "adaptive_avg_pool3d_forward in=2x3x5x9x11 out=2x4x5"},
    {ADAPTIVE_AVG_POOL3D_FORWARD, ADAPTIVE_AVG_POOL3D,
     "adaptive_avg_pool3d_forward in=3x4x8x6 out=1x1x1"},
};
enum { PAIRS = sizeof pairs / sizeof pairs[0] };

/* All tensors of a call have the layout, or the first one in a format with channels last. */
enum form { FORM_DENSE, FORM_OFFSET, FORM_GAP, FORM_PERMUTED, FORM_CHANNELS_LAST, FORMS };

static int trips, refusals;

static bool takes_channels_last(enum pool_operator op) {
  return op == MAX_POOL2D_FORWARD || op == MAX_POOL3D_FORWARD || op == ADAPTIVE_MAX_POOL2D_FORWARD;
}

static void set_form(struct problem *p, enum form form) {
  static const enum layout layouts[FORMS] = {DENSE, OFFSET, GAP, PERMUTED, DENSE};
  for (int i = 0; i < POOL_TENSORS; i++)
    if (problem_role(p, i) != ABSENT_TENSOR && !(i == INDICES && problem_is_mask(p)))
      p->layout[i] = layouts[form];
  if (form == FORM_CHANNELS_LAST)
    p->format = problem_spatial(p) == 3 ? ACL_FORMAT_NDHWC : ACL_FORMAT_NHWC;
}

/* The backward of a forward, on the same memory.  Only aclnnMaxPool2dWithIndicesBackward knows a
 * format with channels last; others see that memory as a permuted tensor. */
static struct problem backward_of(const struct problem *forward, enum pool_operator op) {
  struct problem p = *forward;
  p.op = op;
  p.layout[GRAD_IN] = p.layout[SELF];
  if (!problem_has_channels_last(forward) || op == MAX_POOL2D) return p;
  p.format = problem_spatial(&p) == 3 ? ACL_FORMAT_NCDHW : ACL_FORMAT_NCHW;
  for (int i = 0; i < POOL_TENSORS; i++) p.layout[i] = PERMUTED;
  return p;
}

/* What the documents say of the two products. */
static bool both_take(enum profile profile, const struct problem *p) {
  const bool flat = p->op == MAX_POOL2D_FORWARD;
  if (profile == PORTABLE) return true;
  if (profile == NEWER) return !problem_is_mask(p);
  if (flat && (p->type != F32 || p->dilation.count > 0)) return false;
  if (problem_has_channels_last(p) && p->op != ADAPTIVE_MAX_POOL2D_FORWARD) return false;
  return p->index_bytes == 4 || p->op == ADAPTIVE_MAX_POOL2D_FORWARD || !problem_has_indices(p) ||
         problem_is_mask(p);
}

static void say(const struct problem *p, const struct trial *t) {
  char line[PROBLEM_TEXT];
  problem_print(p, line);
  say_wrong(line, t->why);
}

/* Puts what the forward's tensor has on the device into the backward's. */
static bool hand_over(const struct trial *forward, struct trial *backward, int tensor) {
  const struct guarded *from = &forward->memory[tensor], *to = &backward->memory[tensor];
  assert_int_equal(from->bytes, to->bytes);
  return aclrtMemcpy(guarded_payload(to), to->bytes, from->device, from->bytes,
                     ACL_MEMCPY_DEVICE_TO_HOST) == ACL_SUCCESS &&
         guarded_send(&backward->memory[tensor]) == ACL_SUCCESS;
}

/* The values are those that the forward was found to have written. */
static bool hand_over_all(const struct trial *forward, struct trial *backward) {
  const bool indices = problem_has_indices(&forward->problem);
  memcpy(backward->grad_out, forward->result,
         (size_t)backward->outputs * sizeof *backward->grad_out);
  if (indices && !problem_implies_indices(&forward->problem))
    memcpy(backward->index, forward->index, (size_t)backward->outputs * sizeof *backward->index);
  return hand_over(forward, backward, GRAD_OUT) &&
         (!indices || hand_over(forward, backward, INDICES));
}

static bool run_both(struct trial *forward, struct trial *backward, int device) {
  if (!trial_move(forward, device) || !trial_move(backward, device)) return false;
  if (!trial_reset(forward) || !trial_launch(forward)) return false;
  /* Fetching leaves the device's memory as it is. */
  if (!trial_fetch(forward) || !trial_compare(forward)) return false;
  if (!hand_over_all(forward, backward)) return false;
  return trial_reset(backward) && trial_launch(backward) && trial_fetch(backward) &&
         trial_compare(backward);
}

static void there_and_back(const struct problem *p, const struct problem *q) {
  struct trial forward, backward;
  bool right = trial_open(&forward, p, &devices) && trial_open(&backward, q, &devices);
  for (int i = 0; right && i < devices.count; i++) right = run_both(&forward, &backward, i);
  if (!right) {
    say(p, &forward);
    say(q, &backward);
  }
  trial_close(&backward);
  trial_close(&forward);
  assert_true(right);
  trips++;
}

static aclnnStatus try_first_phase(const struct problem *p) {
  struct trial t;
  struct trial_call c = {.workspace_size = 0};
  assert_true(trial_open(&t, p, &devices));
  for (int i = 0; i < POOL_TENSORS; i++) c.tensor[i] = trial_make_tensor(&t, i);
  for (int i = 0; i < POOL_ARRAYS; i++) c.array[i] = trial_make_array(&t, i);
  const aclnnStatus status = trial_first_phase(&t, &c);
  if (status == 0) OK_OR_SAY(aclDestroyAclOpExecutor(c.executor));
  for (int i = 0; i < POOL_TENSORS; i++) OK_OR_SAY(aclDestroyTensor(c.tensor[i]));
  for (int i = 0; i < POOL_ARRAYS; i++)
    if (c.array[i] != NULL) OK_OR_SAY(aclDestroyIntArray(c.array[i]));
  trial_close(&t);
  return status;
}

/* The product refuses one of the two. */
static void half_is_refused(const struct problem *p, const struct problem *q) {
  const aclnnStatus there = try_first_phase(p), back = try_first_phase(q);
  if (there != 161002 && back != 161002) {
    char line[PROBLEM_TEXT];
    problem_print(p, line);
    fail_msg("forward gave %d, backward %d, one 161002 was expected for %s", there, back, line);
  }
  refusals++;
}

static void try_pair(const struct pair *pair, enum profile profile, int type, int choice) {
  static const enum gradient_data data[] = {RANDOM, TIES, SPECIALS};
  struct problem p = read_problem(pair->line);
  const enum form form = (enum form)(choice % FORMS);
  const bool wide = choice / FORMS == 1;
  if (form == FORM_CHANNELS_LAST && !takes_channels_last(p.op)) return;
  if (wide && (!problem_has_indices(&p) || problem_is_mask(&p)))
    return; /* there is no such thing */
  if (!wide && p.op == ADAPTIVE_MAX_POOL2D_FORWARD) return;
  p.type = type;
  if (problem_has_indices(&p) && !problem_is_mask(&p)) p.index_bytes = wide ? 8 : 4;
  p.data = problem_is_max(&p) ? data[(type + choice) % 3] : RANDOM;
  p.seed = (uint64_t)(choice + 7 * type + 1);
  set_form(&p, form);
  const struct problem q = backward_of(&p, pair->backward);
  if (both_take(profile, &p))
    there_and_back(&p, &q);
  else
    half_is_refused(&p, &q);
}

static void try_pairs(enum profile profile) {
  static const int types[] = {F32, F16, BF16};
  trips = refusals = 0;
  for (int i = 0; i < PAIRS; i++)
    for (int type = 0; type < 3; type++)
      for (int choice = 0; choice < 2 * FORMS; choice++)
        try_pair(&pairs[i], profile, types[type], choice);
  print_message("%s: %d round trips, %d half refused\n",
                profile == PORTABLE ? "portable" : products[profile], trips, refusals);
  assert_true(trips > 0);
}

static void every_pair_makes_the_round_trip(void **state) { try_pairs(*(enum profile *)*state); }

static int set_up_product(enum profile profile, void **state) {
  if (products[profile][0] == '\0')
    unsetenv("POOLGRAD_SOC");
  else
    setenv("POOLGRAD_SOC", products[profile], 1);
  return set_up(state);
}

static int set_up_portable(void **state) { return set_up_product(PORTABLE, state); }
static int set_up_older(void **state) { return set_up_product(OLDER, state); }
static int set_up_newer(void **state) { return set_up_product(NEWER, state); }

int main(void) {
  static enum profile profiles[PROFILES] = {PORTABLE, OLDER, NEWER};
  static int (*const set_ups[PROFILES])(void **) = {set_up_portable, set_up_older, set_up_newer};
  int failed = 0;
  for (int i = 0; i < PROFILES; i++) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(every_pair_makes_the_round_trip, &profiles[i])};
    failed += cmocka_run_group_tests(tests, set_ups[i], tear_down);
  }
  return failed;
}
