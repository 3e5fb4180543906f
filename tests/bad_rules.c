/* SPDX-License-Identifier: Apache-2.0 */
/* What the operators allow and in which order they look, as it is written down: in the documents'
 * tables of checks, whose numbers the steps have, and in the decisions about what those leave
 * open. */
#include "bad_calls.h"

/* --- the operators -----------------------------------------------------------------------------
 */

/* The numbers of the steps in each operator's documented order of checks.  BAD_ANY_STEP: the
 * documents do not say when, so either of two flaws may be reported. */
enum { RESULT_STEP = -1000, NULL_STEP = -100 };

static const struct rules {
  const char *grad_in;
  unsigned arguments;
  int least_rank;
  int dtype, index_dtype, format, rank[POOL_TENSORS], all_ranks;
  int length[POOL_TENSORS]; /* an axis that differs from the partner's */
  int count[BAD_ARRAYS], value[BAD_ARRAYS], math;
} rules[POOL_OPERATORS] = {
#define RESULTS (1u << WORKSPACE_SIZE | 1u << EXECUTOR)
    [ADAPTIVE_MAX_POOL2D] = {"gradInput", 0xf | RESULTS, 3, .dtype = 2, .index_dtype = 5,
                             .rank = {6, 6, 6, 6}, .length = {7, 7, 7, 7}, .format = 8,
                             .all_ranks = 10},
    [ADAPTIVE_MAX_POOL3D] = {"gradInput", 0xf | RESULTS, 4, .dtype = 2, .index_dtype = 5,
                             .rank = {6, 6, 6, 6}, .length = {7, 7, 7, 7}, .format = 9,
                             .all_ranks = 11},
    [ADAPTIVE_AVG_POOL3D] = {"out", 0xb | RESULTS, 4, .rank = {2, 2, 0, 2}, .all_ranks = 2,
                             .length = {5, 4, 0, 4}, .dtype = 7, .format = 9},
    [MAX_POOL2D] = {"gradInput", 0xff | RESULTS, 3, .dtype = 2, .index_dtype = 4, .format = 5,
                    .rank = {7, 7, 7, 7}, .all_ranks = 7, .count = {8, 9, 10, 11},
                    .value = {12, 13, 14, 15}, .length = {20, 16, 21, 16}},
    [AVG_POOL2D] = {"gradInput", 0x7b | 1u << MATH_TYPE | RESULTS, 3, .dtype = 2, .format = 4,
                    .rank = {6, 13, 0, 6}, .all_ranks = 6, .count = {8, 9, 10}, .value = {8, 9, 11},
                    .math = 12, .length = {BAD_ANY_STEP, 13, 0, 13}},
};

enum { AVG_NEGATIVE_STEP = 7, AVG3D_OUTPUT_STEP = 6, MAX_EMPTY_STEP = 17 };

const char *bad_name(enum pool_operator op, int argument) {
  static const char *const names[BAD_ARGUMENTS] = {
      "gradOutput", "self",     "indices",      "gradInput",     "kernelSize", "stride",
      "padding",    "dilation", "cubeMathType", "workspaceSize", "executor"};
  return argument == GRAD_IN ? rules[op].grad_in : names[argument];
}

unsigned bad_arguments_of(enum pool_operator op) { return rules[op].arguments; }

static bool is_sliding(enum pool_operator op) { return op == MAX_POOL2D || op == AVG_POOL2D; }

/* --- what a flaw must lead to ------------------------------------------------------------------
 */

static const struct bad_tensor *tensor_of(const struct bad_question *q) {
  return &q->base->tensor[q->argument];
}

/* N and C, which every operator wants to be the same in all tensors. */
static bool is_outer(const struct bad_question *q) {
  const struct bad_tensor *t = &q->base->tensor[SELF];
  const bool batched = t->rank == rules[q->base->op].least_rank + 1;
  const int channel = t->format == ACL_FORMAT_NHWC ? t->rank - 1 : batched ? 1 : 0;
  return q->axis == channel || (batched && q->axis == 0);
}

static bool is_batch(const struct bad_question *q) {
  return q->axis == 0 && q->base->tensor[SELF].rank == rules[q->base->op].least_rank + 1;
}

static int handle_step(const struct bad_question *q) {
  if (q->to != NO_HANDLE) return BAD_ANY_STEP;
  if (q->argument >= WORKSPACE_SIZE) return RESULT_STEP;
  if (q->base->op == AVG_POOL2D && q->argument == STRIDE) return BAD_NO_FLAW; /* the kernel's */
  return NULL_STEP + (q->argument == GRAD_IN ? BAD_ARGUMENTS : q->argument);
}

static int rank_step(const struct bad_question *q) {
  const int64_t rank = q->to, least = rules[q->base->op].least_rank;
  const bool allowed = rank == least || rank == least + 1;
  if (q->scope == ALL) return allowed ? BAD_NO_FLAW : rules[q->base->op].all_ranks;
  if (rank == tensor_of(q)->rank) return BAD_NO_FLAW;
  /* this operator compares shapes, not ranks */
  if (q->base->op == MAX_POOL2D && allowed) return rules[q->base->op].length[q->argument];
  /* four axes make its format a wrong one */
  if (q->base->op == AVG_POOL2D && q->argument == GRAD_OUT && rank == 4 &&
      tensor_of(q)->format == ACL_FORMAT_NCL)
    return rules[AVG_POOL2D].format;
  return rules[q->base->op].rank[q->argument];
}

static bool has_global_output(const struct bad_call *c) {
  const struct bad_tensor *t = &c->tensor[GRAD_OUT];
  const int64_t *last = t->dims + t->rank - 3;
  return last[0] == 1 && last[1] == 1 && last[2] == 1;
}

static bool is_gradient_type(const struct bad_question *q, int64_t dtype) {
  const enum pool_operator op = q->base->op;
  const bool halves = op != MAX_POOL2D || q->product->max_any;
  return dtype == ACL_FLOAT || (halves && (dtype == ACL_FLOAT16 || dtype == ACL_BF16)) ||
         (dtype == ACL_DOUBLE && op == ADAPTIVE_AVG_POOL3D && has_global_output(q->base));
}

static int dtype_step(const struct bad_question *q) {
  const int64_t to = q->to;
  const enum pool_operator op = q->base->op;
  const bool wide = op == MAX_POOL2D            ? q->product->max_any
                    : op == ADAPTIVE_MAX_POOL3D ? q->product->max3d_int64
                                                : true;
  if (q->scope == GRADIENTS)
    return is_gradient_type(q, to) ? BAD_NO_FLAW : rules[q->base->op].dtype;
  if (q->argument != INDICES)
    return to == tensor_of(q)->dtype ? BAD_NO_FLAW : rules[q->base->op].dtype;
  if (to == ACL_INT32 || (to == ACL_INT64 && wide)) return BAD_NO_FLAW;
  return to == ACL_INT64 ? BAD_ANY_STEP
                         : rules[q->base->op].index_dtype; /* products refuse late or early */
}

static bool is_positional(int64_t format) {
  return format == ACL_FORMAT_ND || format == ACL_FORMAT_NCHW || format == ACL_FORMAT_NCL ||
         format == ACL_FORMAT_NCDHW || format == ACL_FORMAT_NC;
}

static int format_step(const struct bad_question *q) {
  const int64_t to = q->to;
  const enum pool_operator op = q->base->op;
  bool allowed = is_positional(to);
  if (op ==
      AVG_POOL2D) { /* does not compare formats; only gradOutput and gradInput of 4 axes differ */
    const bool strict =
        q->base->tensor[GRAD_OUT].rank == 4 && (q->scope == ALL || q->argument != SELF);
    return to == ACL_FORMAT_NCHW || (to == ACL_FORMAT_NCL && !strict) ? BAD_NO_FLAW
                                                                      : rules[q->base->op].format;
  }
  if (op == MAX_POOL2D)
    allowed = to == ACL_FORMAT_ND || to == ACL_FORMAT_NCHW || to == ACL_FORMAT_NCL ||
              (to == ACL_FORMAT_NHWC && q->product->max_any);
  if (q->scope == ALL) return allowed ? BAD_NO_FLAW : rules[q->base->op].format;
  return to == tensor_of(q)->format ? BAD_NO_FLAW : rules[q->base->op].format;
}

/* One tensor alone has another length. */
static int lone_length_step(const struct bad_question *q) {
  const int64_t to = q->wrong->change == LONGER ? 1 : q->to;
  const enum pool_operator op = q->base->op;
  if (op == AVG_POOL2D && to < 0) return AVG_NEGATIVE_STEP;
  if (q->argument != GRAD_OUT || is_outer(q)) return rules[q->base->op].length[q->argument];
  if (op == AVG_POOL2D && to == 0) return BAD_NO_FLAW; /* no windows, so gradInput becomes zeros */
  if (op != ADAPTIVE_AVG_POOL3D) return rules[q->base->op].length[GRAD_OUT];
  /* any size of output is as good, but for doubles */
  if (to <= 0) return AVG3D_OUTPUT_STEP;
  if (to >= HUGE) return BAD_ANY_STEP;
  return tensor_of(q)->dtype == ACL_DOUBLE ? rules[q->base->op].dtype : BAD_NO_FLAW;
}

/* self and gradInput have it. */
static int input_length_step(const struct bad_question *q) {
  const int64_t to = q->wrong->change == LONGER ? 1 : q->to;
  const bool wide = q->base->tensor[INDICES].dtype == ACL_INT64;
  switch (q->base->op) {
    case ADAPTIVE_AVG_POOL3D:
      if (to < 0 || (to == 0 && !(q->axis == 0 && q->product->empty_batch)))
        return rules[q->base->op].length[SELF];
      if (is_outer(q)) return rules[q->base->op].length[GRAD_OUT];
      return to >= HUGE ? BAD_ANY_STEP : BAD_NO_FLAW;
    case MAX_POOL2D:
      if (to < 0 || to >= HUGE) return BAD_ANY_STEP;
      if (to == 0 && !is_batch(q)) return MAX_EMPTY_STEP;
      return is_outer(q) || to == PLANE ? rules[q->base->op].length[GRAD_OUT] : BAD_NO_FLAW;
    case AVG_POOL2D:
      if (to < 0) return AVG_NEGATIVE_STEP;
      return is_outer(q) || to >= PLANE ? BAD_ANY_STEP : BAD_NO_FLAW;
    default:
      if (is_outer(q) || to < 0 || to >= HUGE) return BAD_ANY_STEP;
      return to == PLANE && !(q->product->large_planes && wide) ? BAD_ANY_STEP : BAD_NO_FLAW;
  }
}

/* gradOutput and indices have it. */
static int output_length_step(const struct bad_question *q) {
  const int64_t to = q->wrong->change == LONGER ? 1 : q->to;
  if (q->base->op == MAX_POOL2D) return rules[q->base->op].length[GRAD_OUT];
  return is_outer(q) || to < 0 || to >= HUGE ? BAD_ANY_STEP : BAD_NO_FLAW;
}

/* All tensors have it; the first axis only. */
static int common_length_step(const struct bad_question *q) {
  const int64_t to = q->to;
  const enum pool_operator op = q->base->op;
  if (q->axis > 0) return BAD_NO_FLAW;
  if (to < 0 && op == AVG_POOL2D) return AVG_NEGATIVE_STEP;
  if (to < 0 && op == ADAPTIVE_AVG_POOL3D) return rules[q->base->op].length[SELF];
  if (to != 0) return BAD_ANY_STEP;
  if (op == ADAPTIVE_AVG_POOL3D)
    return q->product->empty_batch ? BAD_NO_FLAW : rules[q->base->op].length[SELF];
  return op == MAX_POOL2D && !is_batch(q) ? MAX_EMPTY_STEP : BAD_NO_FLAW;
}

static int length_step(const struct bad_question *q) {
  if (q->scope == ALL) return common_length_step(q);
  if (q->scope == OUTPUTS) return output_length_step(q);
  return q->scope == INPUTS ? input_length_step(q) : lone_length_step(q);
}

static int view_step(const struct bad_question *q) {
  const struct bad_tensor *t = tensor_of(q);
  const int64_t to = q->to;
  if (q->wrong->change == OFFSET_TO || to < 0) return BAD_ANY_STEP;
  if (t->dims[q->axis] <= 1) return BAD_NO_FLAW; /* its stride is not used */
  if (q->wrong->change == STEP && to > 0) return BAD_ANY_STEP;
  if (q->argument != GRAD_IN) return BAD_NO_FLAW; /* what is read may share memory */
  const bool shares = q->axis + 1 < t->rank && t->dims[q->axis + 1] > 1;
  return q->wrong->change == STEP || shares ? BAD_ANY_STEP : BAD_NO_FLAW;
}

static int array_step(const struct bad_question *q) {
  const int64_t to = q->to;
  const int i = q->argument - KERNEL_SIZE;
  if (q->wrong->change == ENTRIES)
    return q->argument == STRIDE && to == 0 ? BAD_NO_FLAW : rules[q->base->op].count[i];
  if (q->wrong->change == OVER_HALF)
    return q->argument == PADDING ? rules[q->base->op].value[i] : BAD_NO_FLAW;
  if (q->argument == PADDING)
    return to < 0 || to >= LARGE ? rules[q->base->op].value[i] : BAD_NO_FLAW;
  if (to <= 0) return rules[q->base->op].value[i];
  if (to == 2)
    return q->argument == DILATION && !q->product->max_any ? rules[q->base->op].value[i]
                                                           : BAD_NO_FLAW;
  return q->argument == STRIDE && to == LARGE ? BAD_NO_FLAW : BAD_ANY_STEP;
}

static int math_step(const struct bad_question *q) {
  const int64_t to = q->to;
  const int dtype = q->base->tensor[SELF].dtype;
  const bool allowed =
      to == 0 || to == 1 || (to == 2 && dtype != ACL_BF16) || (to == 3 && dtype == ACL_FLOAT);
  return allowed ? BAD_NO_FLAW : rules[q->base->op].math;
}

int bad_step(const struct bad_question *q) {
  switch (q->wrong->change) {
    case HANDLE:
      return handle_step(q);
    case RANK:
      return rank_step(q);
    case DTYPE:
      return dtype_step(q);
    case FORMAT:
      return format_step(q);
    case LENGTH:
    case LONGER:
      return length_step(q);
    case STEP:
    case SHARED:
    case OFFSET_TO:
      return view_step(q);
    case NUMBER:
      return math_step(q);
    default:
      return array_step(q);
  }
}

/* Sums and products of many things: the sentence need not name the one that was changed. */
bool bad_unnamed(const struct bad_question *q) {
  const bool length = q->wrong->change == LENGTH || q->wrong->change == LONGER;
  if (q->wrong->change == VALUE) return q->to >= LARGE && q->argument != PADDING;
  if (length && q->argument == GRAD_OUT && tensor_of(q)->dtype == ACL_DOUBLE)
    return true; /* the types are wrong then, of all tensors */
  return length && q->to >= HUGE && q->scope != TENSOR && is_sliding(q->base->op);
}
