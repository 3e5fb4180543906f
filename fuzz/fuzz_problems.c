/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes become a problem of any of the operators (tests/problem.h): any windows, types, formats and
 * layouts, whose tensors agree with each other.  What the documents allow must be accepted, and be
 * right by every method on every device; what they do not must be refused with a sentence.
 * Arguments that do not agree are the business of fuzz_operators.c. */
#include <stdlib.h>
#include <string.h>

#include "float_format.h"
#include "input.h"
#include "trial.h"

enum { MOST_WORK = 200000 };

static struct trial_devices devices;

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  (void)argc;
  (void)argv;
  setenv("POOLGRAD_INDEX_CHECK", "off", 1);
  if (aclInit(NULL) != ACL_SUCCESS || aclrtSetDevice(0) != ACL_SUCCESS ||
      !trial_devices_open(&devices))
    wrong("no device");
  return 0;
}

/* --- the problem -------------------------------------------------------------------------------
 */

static struct window_sizes take_sizes(struct input *in, int axes, int least, int most) {
  struct window_sizes s = {.count = take_rarely(in, 3) ? 1 : axes};
  for (int i = 0; i < axes; i++) s.of[i] = least + take_below(in, most - least + 1);
  return s;
}

static void take_windows(struct input *in, struct problem *p) {
  const int axes = problem_spatial(p);
  const unsigned forms = take(in);
  p->kernel = take_sizes(in, axes, 1, (forms & 1) != 0 ? 40 : 4);
  p->stride = take_sizes(in, axes, 1, 5);
  if ((forms & 2) != 0) p->stride.count = 0;
  p->pad = take_sizes(in, axes, 0, 2);
  if (p->op == MAX_POOL_FORWARD && (forms & 4) != 0) {
    p->pad.count = 4;
    for (int i = 0; i < 4; i++) p->pad.of[i] = take_below(in, 4);
  }
  if (problem_is_max(p) && (forms & 8) != 0) p->dilation = take_sizes(in, axes, 1, 3);
  p->ceil = (forms & 16) != 0;
  if (problem_is_max(p)) return;
  static const int64_t divisors[] = {0, 1, -3, 7, 3000000000};
  p->include_pad = (forms & 32) != 0;
  p->divisor = divisors[take_below(in, 5)];
  if (axes == 2) p->cube = take_below(in, 5);
}

static void take_layouts(struct input *in, struct problem *p) {
  for (int i = 0; i < POOL_TENSORS; i++) {
    const enum tensor_role role = problem_role(p, i);
    const bool fixed = role == ABSENT_TENSOR || (i == INDICES && problem_is_mask(p));
    const int choices = role == WRITTEN ? TRANSPOSED + 1 : LAYOUTS;
    p->layout[i] = fixed ? DENSE : (enum layout)take_below(in, choices);
  }
}

static int64_t take_length(struct input *in) {
  const int64_t byte = take(in);
  return byte < 224 ? 1 + byte % 12 : byte - 200;
}

/* False where no window fits. */
static bool take_problem(struct input *in, struct problem *p) {
  static const aclFormat formats[] = {ACL_FORMAT_ND,    ACL_FORMAT_NCHW, ACL_FORMAT_NCL,
                                      ACL_FORMAT_NCDHW, ACL_FORMAT_NC,   ACL_FORMAT_NHWC,
                                      ACL_FORMAT_NDHWC};
  *p = (struct problem){.op = (enum pool_operator)take_below(in, POOL_OPERATORS)};
  const int axes = problem_spatial(p);
  p->type = take_below(in, ELEMENT_FORMATS);
  p->index_bytes = take_rarely(in, 2) || !problem_has_indices(p) ? 8 : 4;
  if (problem_is_mask(p)) p->index_bytes = 4;
  p->format = formats[take_below(in, 7)];
  p->batched = !take_rarely(in, 3);
  p->n = p->batched ? take_below(in, 4) : 1;
  p->c = take_length(in);
  p->in[0] = p->out[0] = 1;
  for (int i = 3 - axes; i < 3; i++) p->in[i] = take_length(in);
  p->late = take_rarely(in, 4);
  p->index =
      problem_role(p, INDICES) == READ ? (enum index_source)take_below(in, INDEX_SOURCES) : FORWARD;
  p->data = (enum gradient_data)take_below(in, GRADIENT_DATA);
  p->seed = take(in);
  take_layouts(in, p);
  for (int i = 3 - axes; i < 3 && !problem_is_sliding(p); i++) p->out[i] = take_length(in);
  if (!problem_is_sliding(p)) return true;
  take_windows(in, p);
  return problem_set_out(p);
}

/* --- what the documents allow ------------------------------------------------------------------
 */

static bool takes_type(const struct problem *p) {
  if (p->type >= FLOAT_FORMATS) return p->op == MAX_POOL_FORWARD;
  if (p->type != F64) return true;
  if (p->op == ADAPTIVE_AVG_POOL3D) return p->out[0] * p->out[1] * p->out[2] == 1;
  return p->op == ADAPTIVE_MAX_POOL2D_FORWARD;
}

static bool takes_format(const struct problem *p) {
  const aclFormat f = p->format;
  const bool flat = f == ACL_FORMAT_ND || f == ACL_FORMAT_NCHW || f == ACL_FORMAT_NCL;
  const bool deep = f == ACL_FORMAT_ND || f == ACL_FORMAT_NCHW || f == ACL_FORMAT_NCDHW;
  switch (p->op) {
    case MAX_POOL2D:
    case MAX_POOL2D_FORWARD:
      return flat || f == ACL_FORMAT_NHWC;
    case ADAPTIVE_MAX_POOL2D_FORWARD:
      if (p->type == F64) return f == ACL_FORMAT_NCHW || f == ACL_FORMAT_NHWC;
      return flat || f == ACL_FORMAT_NCDHW || f == ACL_FORMAT_NC || f == ACL_FORMAT_NHWC;
    case MAX_POOL2D_MASK:
    case MAX_POOL2D_MASK_FORWARD:
    case MAX_POOL_FORWARD:
      return flat;
    case MAX_POOL3D_FORWARD:
      return deep || f == ACL_FORMAT_NDHWC;
    case MAX_POOL3D:
    case ADAPTIVE_MAX_POOL3D_FORWARD:
      return deep;
    case AVG_POOL2D:
      return f == ACL_FORMAT_NCHW || (f == ACL_FORMAT_NCL && !p->batched);
    case AVG_POOL2D_FORWARD:
    case ADAPTIVE_AVG_POOL2D_FORWARD:
      return f == (p->batched ? ACL_FORMAT_NCHW : ACL_FORMAT_NCL);
    default:
      return flat || f == ACL_FORMAT_NCDHW || f == ACL_FORMAT_NC;
  }
}

static bool takes_windows(const struct problem *p) {
  const struct reference_pooling pool = problem_pooling(p);
  const bool dilates = !problem_is_mask(p) && p->op != MAX_POOL_FORWARD;
  for (int i = 0; i < 3; i++) {
    const struct reference_axis *a = &pool.axis[i];
    if (a->dilation > 1 && !dilates) return false;
    if (p->op == MAX_POOL_FORWARD ? a->pad + a->pad_behind > a->kernel : a->pad > a->kernel / 2)
      return false;
    if (p->op == AVG_POOL3D_FORWARD && a->kernel > a->in + 2 * a->pad) return false;
  }
  return !problem_is_forward(p) || problem_windows_hold_cells(p);
}

static bool is_allowed(const struct problem *p) {
  const bool average2d = p->op == AVG_POOL2D || p->op == AVG_POOL2D_FORWARD;
  if (!takes_type(p) || !takes_format(p)) return false;
  if (p->op == ADAPTIVE_MAX_POOL2D_FORWARD && p->index_bytes != 8) return false;
  if (average2d &&
      (p->cube > 3 || (p->cube == 2 && p->type == BF16) || (p->cube == 3 && p->type != F32)))
    return false;
  if (p->n == 0 && p->op == ADAPTIVE_AVG_POOL3D) return false;
  return !problem_is_sliding(p) || takes_windows(p);
}

/* Without a batch there is nothing to do, and some operators do not look further then. */
static bool is_open(const struct problem *p) {
  struct problem with = *p;
  with.n = 1;
  return p->n == 0 && !is_allowed(&with);
}

/* --- the call ----------------------------------------------------------------------------------
 */

static aclnnStatus first_phase(const struct problem *p) {
  struct trial_call c = {.workspace_size = 0};
  for (int i = 0; i < POOL_TENSORS; i++) {
    const struct tensor_layout layout = tensor_lay_out(p, i);
    c.tensor[i] = operator_tensor(p, &layout, i, NULL);
  }
  for (int i = 0; i < POOL_ARRAYS; i++) c.array[i] = operator_array(p, i);
  const struct operator_arguments a = operator_arguments(p, c.tensor, c.array);
  const aclnnStatus status = operator_calls[p->op].first(&a, &c.workspace_size, &c.executor);
  if (status == 0) (void)aclDestroyAclOpExecutor(c.executor);
  for (int i = 0; i < POOL_TENSORS; i++) (void)aclDestroyTensor(c.tensor[i]);
  for (int i = 0; i < POOL_ARRAYS; i++) (void)aclDestroyIntArray(c.array[i]);
  return status;
}

static double work(const struct problem *p) {
  const struct reference_pooling pool = problem_pooling(p);
  double all = (double)pool.planes;
  for (int i = 0; i < 3; i++) {
    const struct reference_axis *a = &pool.axis[i];
    const double window = a->kernel > 0 ? (double)a->kernel : (double)a->in / (double)a->out;
    all *= (double)a->out * ((window < (double)a->in ? window : (double)a->in) + 1);
  }
  return all;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct input in = {data, data + size};
  struct problem p;
  char line[PROBLEM_TEXT], why[PROBLEM_TEXT];
  if (!take_problem(&in, &p) || work(&p) > MOST_WORK || is_open(&p)) return 0;
  problem_print(&p, line);
  (void)aclGetRecentErrMsg();
  const aclnnStatus status = first_phase(&p);
  const char *text = aclGetRecentErrMsg();
  if ((status == 0) != is_allowed(&p))
    wrong("%s: %d: %s", line, status, text == NULL ? "(no sentence)" : text);
  if ((status == 0) != (text == NULL)) wrong("%s: %d without its sentence", line, status);
  if (status == 0 && !trial_run(&p, &devices, why)) wrong("%s: %s", line, why);
  return 0;
}
