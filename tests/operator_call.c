/* SPDX-License-Identifier: Apache-2.0 */
#include "operator_call.h"

#include <string.h>

#include "aclnnop/aclnn_ops_nn.h"
#include "float_format.h"

/* What a row passes on. */
#define GO a->tensor[GRAD_OUT]
#define X a->tensor[SELF]
#define IDX a->tensor[INDICES]
#define GI a->tensor[GRAD_IN]
#define K a->array[KERNEL_ARRAY]
#define S a->array[STRIDE_ARRAY]
#define P a->array[PADDING_ARRAY]
#define D a->array[DILATION_ARRAY]
#define O a->array[OUTPUT_ARRAY]
#define OUT a->tensor[GRAD_OUT] /* of a forward call */

/* One row for each operator: its second phase, whose name the first one's begins with, and what the
 * first one takes before workspaceSize and executor. */
#define OPERATORS(ROW)                                                                             \
  ROW(MAX_POOL2D, aclnnMaxPool2dWithIndicesBackward, GO, X, IDX, K, S, P, D, a->ceil, GI)          \
  ROW(AVG_POOL2D, aclnnAvgPool2dBackward, GO, X, K, S, P, a->ceil, a->include_pad, a->divisor,     \
      a->cube, GI)                                                                                 \
  ROW(ADAPTIVE_MAX_POOL2D, aclnnAdaptiveMaxPool2dBackward, GO, X, IDX, GI)                         \
  ROW(ADAPTIVE_MAX_POOL3D, aclnnAdaptiveMaxPool3dBackward, GO, X, IDX, GI)                         \
  ROW(ADAPTIVE_AVG_POOL3D, aclnnAdaptiveAvgPool3dBackward, GO, X, GI)                              \
  ROW(ADAPTIVE_AVG_POOL2D, aclnnAdaptiveAvgPool2dBackward, GO, X, GI)                              \
  ROW(AVG_POOL3D, aclnnAvgPool3dBackward, GO, X, K, S, P, a->ceil, a->include_pad, a->divisor, GI) \
  ROW(MAX_POOL2D_MASK, aclnnMaxPool2dWithMaskBackward, GO, X, IDX, K, S, P, D, a->ceil, GI)        \
  ROW(MAX_POOL3D, aclnnMaxPool3dWithArgmaxBackward, GO, X, IDX, K, S, P, D, a->ceil, GI)           \
  ROW(MAX_POOL2D_FORWARD, aclnnMaxPool2dWithIndices, X, K, S, P, D, a->ceil, OUT, IDX)             \
  ROW(AVG_POOL2D_FORWARD, aclnnAvgPool2d, X, K, S, P, a->ceil, a->include_pad, a->divisor,         \
      a->cube, OUT)                                                                                \
  ROW(ADAPTIVE_MAX_POOL2D_FORWARD, aclnnAdaptiveMaxPool2d, X, O, OUT, IDX)                         \
  ROW(ADAPTIVE_MAX_POOL3D_FORWARD, aclnnAdaptiveMaxPool3d, X, O, OUT, IDX)                         \
  ROW(ADAPTIVE_AVG_POOL3D_FORWARD, aclnnAdaptiveAvgPool3d, X, O, OUT)                              \
  ROW(ADAPTIVE_AVG_POOL2D_FORWARD, aclnnAdaptiveAvgPool2d, X, O, OUT)                              \
  ROW(AVG_POOL3D_FORWARD, aclnnAvgPool3d, X, K, S, P, a->ceil, a->include_pad, a->divisor, OUT)    \
  ROW(MAX_POOL2D_MASK_FORWARD, aclnnMaxPool2dWithMask, X, K, S, P, D, a->ceil, OUT, IDX)           \
  ROW(MAX_POOL3D_FORWARD, aclnnMaxPool3dWithArgmax, X, K, S, P, D, a->ceil, OUT, IDX)              \
  ROW(MAX_POOL_FORWARD, aclnnMaxPool, X, K, S, a->auto_pad, P, D, a->ceil, OUT)

#define FIRST_PHASE(op, api, ...)                                                      \
  static aclnnStatus first_of_##op(const struct operator_arguments *a, uint64_t *size, \
                                   aclOpExecutor **executor) {                         \
    return api##GetWorkspaceSize(__VA_ARGS__, size, executor);                         \
  }
OPERATORS(FIRST_PHASE)

#define BOTH_PHASES(op, api, ...) [op] = {#api "GetWorkspaceSize", #api, first_of_##op, api},
const struct operator_call operator_calls[POOL_OPERATORS] = {OPERATORS(BOTH_PHASES)};

/* Dense tensors come with no strides and their shape as storage, others with a flat storage. */
aclTensor *operator_tensor(const struct problem *p, const struct tensor_layout *l, int tensor,
                           void *address) {
  const aclDataType position = p->index_bytes == 8 ? ACL_INT64 : ACL_INT32;
  const aclDataType index = problem_is_mask(p) ? ACL_INT8 : position;
  const aclDataType dtype = tensor == INDICES ? index : float_formats[p->type].dtype;
  return aclCreateTensor(l->dims, (uint64_t)l->rank, dtype, l->dense ? NULL : l->strides, l->offset,
                         p->format, l->dense ? l->dims : &l->elements,
                         l->dense ? (uint64_t)l->rank : 1, address);
}

aclIntArray *operator_array(const struct problem *p, int array) {
  const struct {
    const struct window_sizes *sizes;
    int64_t missing; /* what the operator takes when the line has none; negative: none */
  } of[POOL_ARRAYS] = {[KERNEL_ARRAY] = {&p->kernel, -1},
                       [STRIDE_ARRAY] = {&p->stride, -1},
                       [PADDING_ARRAY] = {&p->pad, 0},
                       [DILATION_ARRAY] = {&p->dilation, 1}};
  if (array == OUTPUT_ARRAY) {
    const int spatial = problem_spatial(p);
    return aclCreateIntArray(p->out + 3 - spatial, (uint64_t)spatial);
  }
  const struct window_sizes *s = of[array].sizes;
  if (s->count == STRIDE_NULL) return NULL;
  if (s->count == 0 && of[array].missing >= 0) return aclCreateIntArray(&of[array].missing, 1);
  return aclCreateIntArray(s->of, (uint64_t)s->count);
}

struct operator_arguments operator_arguments(const struct problem *p,
                                             aclTensor *const tensor[POOL_TENSORS],
                                             aclIntArray *const array[POOL_ARRAYS]) {
  struct operator_arguments a = {.ceil = p->ceil,
                                 .include_pad = p->include_pad,
                                 .divisor = p->divisor,
                                 .cube = (int8_t)p->cube};
  memcpy(a.tensor, tensor, sizeof a.tensor);
  memcpy(a.array, array, sizeof a.array);
  return a;
}
