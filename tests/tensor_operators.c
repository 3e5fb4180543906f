/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor_operators.h"

#include <stdio.h>
#include <string.h>

#include "aclnnop/aclnn_abs.h"
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_all.h"
#include "aclnnop/aclnn_any.h"
#include "aclnnop/aclnn_bitwise_and_scalar.h"
#include "aclnnop/aclnn_bitwise_and_tensor.h"
#include "aclnnop/aclnn_cast.h"
#include "aclnnop/aclnn_cat.h"
#include "aclnnop/aclnn_ceil.h"
#include "aclnnop/aclnn_copy.h"
#include "aclnnop/aclnn_div.h"
#include "aclnnop/aclnn_eq_scalar.h"
#include "aclnnop/aclnn_eq_tensor.h"
#include "aclnnop/aclnn_equal.h"
#include "aclnnop/aclnn_fill_scalar.h"
#include "aclnnop/aclnn_floor.h"
#include "aclnnop/aclnn_foreach_add_list_v2.h"
#include "aclnnop/aclnn_foreach_mul_scalar_v2.h"
#include "aclnnop/aclnn_gather.h"
#include "aclnnop/aclnn_ge_scalar.h"
#include "aclnnop/aclnn_ge_tensor.h"
#include "aclnnop/aclnn_gt_scalar.h"
#include "aclnnop/aclnn_gt_tensor.h"
#include "aclnnop/aclnn_isclose.h"
#include "aclnnop/aclnn_isfinite.h"
#include "aclnnop/aclnn_le_scalar.h"
#include "aclnnop/aclnn_le_tensor.h"
#include "aclnnop/aclnn_lt_scalar.h"
#include "aclnnop/aclnn_lt_tensor.h"
#include "aclnnop/aclnn_masked_fill_scalar.h"
#include "aclnnop/aclnn_masked_select.h"
#include "aclnnop/aclnn_max.h"
#include "aclnnop/aclnn_max_dim.h"
#include "aclnnop/aclnn_max_unpool2d.h"
#include "aclnnop/aclnn_max_unpool3d.h"
#include "aclnnop/aclnn_mean.h"
#include "aclnnop/aclnn_min.h"
#include "aclnnop/aclnn_min_dim.h"
#include "aclnnop/aclnn_mul.h"
#include "aclnnop/aclnn_ne_scalar.h"
#include "aclnnop/aclnn_ne_tensor.h"
#include "aclnnop/aclnn_neg.h"
#include "aclnnop/aclnn_normal.h"
#include "aclnnop/aclnn_npu_format_cast.h"
#include "aclnnop/aclnn_one.h"
#include "aclnnop/aclnn_pow.h"
#include "aclnnop/aclnn_random.h"
#include "aclnnop/aclnn_reduce_sum.h"
#include "aclnnop/aclnn_relu.h"
#include "aclnnop/aclnn_sign.h"
#include "aclnnop/aclnn_sqrt.h"
#include "aclnnop/aclnn_stack.h"
#include "aclnnop/aclnn_sub.h"
#include "aclnnop/aclnn_threshold_backward.h"
#include "aclnnop/aclnn_uniform.h"
#include "aclnnop/aclnn_zero.h"

/* What a row passes on. */
#define T0 a->tensor[0]
#define T1 a->tensor[1]
#define T2 a->tensor[2]
#define L0 a->list[0]
#define L1 a->list[1]
#define L2 a->list[2]
#define S0 a->scalar[0]
#define S1 a->scalar[1]
#define A0 a->array[0]
#define A1 a->array[1]
#define A2 a->array[2]
#define N0 a->integer[0]
#define N1 a->integer[1]
#define N2 a->integer[2]
#define N3 a->integer[3]
#define R0 a->real[0]
#define R1 a->real[1]

/* Forms that many have. */
#define UNARY(ROW, name) ROW(name, KIND_UNARY, "self out", T0, T1)
#define BINARY(ROW, name) ROW(name, KIND_BINARY, "self other out", T0, T1, T2)
#define INPLACE(ROW, name) ROW(name, KIND_BINARY, "selfRef other", T0, T1)
#define SCALAR(ROW, name) ROW(name, KIND_SCALAR, "self other* out", T0, S0, T1)
#define INPLACE_SCALAR(ROW, name) ROW(name, KIND_SCALAR, "selfRef other*", T0, S0)
#define ALPHA(ROW, name) ROW(name, KIND_BINARY, "self other alpha* out", T0, T1, S0, T2)
#define INPLACE_ALPHA(ROW, name) ROW(name, KIND_BINARY, "selfRef other alpha*", T0, T1, S0)
#define SCALAR_ALPHA(ROW, name) ROW(name, KIND_SCALAR, "self other* alpha* out", T0, S0, S1, T1)
#define INPLACE_SCALAR_ALPHA(ROW, name) ROW(name, KIND_SCALAR, "selfRef other* alpha*", T0, S0, S1)
#define FILL(ROW, name) ROW(name, KIND_FILL, "selfRef", T0)
#define EXTREME(ROW, name) ROW(name, KIND_EXTREME, "self out", T0, T1)
#define ALONG(ROW, name) \
  ROW(name, KIND_ALONG, "self dim:int64 keepDim:bool out indices", T0, N0, a->flag, T1, T2)
#define TRUTH(ROW, name) ROW(name, KIND_REDUCE, "self dim[] keepDim:bool out", T0, A0, a->flag, T1)

/* clang-format off */
#define OPERATORS(ROW)                                                                             \
  ALPHA(ROW, Add) ALPHA(ROW, Sub) SCALAR_ALPHA(ROW, Adds) SCALAR_ALPHA(ROW, Subs)                  \
  INPLACE_ALPHA(ROW, InplaceAdd) INPLACE_ALPHA(ROW, InplaceSub)                                    \
  INPLACE_SCALAR_ALPHA(ROW, InplaceAdds) INPLACE_SCALAR_ALPHA(ROW, InplaceSubs)                    \
  BINARY(ROW, Mul) BINARY(ROW, Div) INPLACE(ROW, InplaceMul) INPLACE(ROW, InplaceDiv)              \
  SCALAR(ROW, Muls) SCALAR(ROW, Divs)                                                              \
  INPLACE_SCALAR(ROW, InplaceMuls) INPLACE_SCALAR(ROW, InplaceDivs)                                \
  BINARY(ROW, BitwiseAndTensor) SCALAR(ROW, BitwiseAndScalar)                                      \
  ROW(PowTensorScalar, KIND_SCALAR, "self exponent* out", T0, S0, T1)                              \
  ROW(ThresholdBackward, KIND_PASS, "gradOutput self threshold* out", T0, T1, S0, T2)              \
  UNARY(ROW, Abs) UNARY(ROW, Neg) UNARY(ROW, Sign) UNARY(ROW, Relu)                                \
  ROW(InplaceRelu, KIND_UNARY, "selfRef", T0)                                                      \
  UNARY(ROW, Ceil) UNARY(ROW, Floor) UNARY(ROW, Sqrt) UNARY(ROW, IsFinite)                         \
  BINARY(ROW, EqTensor) BINARY(ROW, NeTensor) BINARY(ROW, LtTensor)                                \
  BINARY(ROW, LeTensor) BINARY(ROW, GtTensor) BINARY(ROW, GeTensor)                                \
  SCALAR(ROW, EqScalar) SCALAR(ROW, NeScalar) SCALAR(ROW, LtScalar)                                \
  SCALAR(ROW, LeScalar) SCALAR(ROW, GtScalar) SCALAR(ROW, GeScalar)                                \
  ROW(IsClose, KIND_BINARY, "self other rtol:double atol:double equalNan:bool out",                \
      T0, T1, R0, R1, a->flag, T2)                                                                 \
  ROW(InplaceCopy, KIND_COPY, "selfRef src", T0, T1)                                               \
  ROW(Cast, KIND_COPY, "self dtype:dtype out", T0, a->dtype, T1)                                   \
  ROW(NpuFormatCast, KIND_COPY, "srcTensor dstTensor", T0, T1)                                     \
  ROW(InplaceFillScalar, KIND_FILL, "selfRef value*", T0, S0)                                      \
  FILL(ROW, InplaceOne) FILL(ROW, InplaceZero)                                                     \
  ROW(InplaceMaskedFillScalar, KIND_MASKED, "selfRef mask value*", T0, T1, S0)                     \
  ROW(InplaceNormal, KIND_FILL, "selfRef mean:float std:float seed:int64 offset:int64",            \
      T0, (float)R0, (float)R1, N2, N3)                                                            \
  ROW(InplaceUniform, KIND_FILL, "selfRef from:double to:double seed:uint64 offset:uint64",        \
      T0, R0, R1, (uint64_t)N2, (uint64_t)N3)                                                      \
  ROW(InplaceRandom, KIND_FILL, "selfRef from:int64 to:int64 seed:int64 offset:int64",             \
      T0, N0, N1, N2, N3)                                                                          \
  ROW(ReduceSum, KIND_REDUCE, "self dims[] keepDims:bool dtype:dtype out",                         \
      T0, A0, a->flag, a->dtype, T1)                                                               \
  ROW(Mean, KIND_REDUCE, "self dim[] keepDim:bool dtype:dtype out",                                \
      T0, A0, a->flag, a->dtype, T1)                                                               \
  TRUTH(ROW, All) TRUTH(ROW, Any) EXTREME(ROW, Max) EXTREME(ROW, Min)                              \
  ALONG(ROW, MaxDim) ALONG(ROW, MinDim)                                                            \
  ROW(Gather, KIND_GATHER, "self dim:int64 index out", T0, N0, T1, T2)                             \
  ROW(MaxUnpool2d, KIND_UNPOOL2D, "self indices outputSize[] out", T0, T1, A0, T2)                 \
  ROW(MaxUnpool3d, KIND_UNPOOL3D, "self indices outputSize[] stride[] padding[] outRef",           \
      T0, T1, A0, A1, A2, T2)                                                                      \
  ROW(MaskedSelect, KIND_SELECT, "self mask out", T0, T1, T2)                                      \
  ROW(Equal, KIND_EQUAL, "self other out", T0, T1, T2)                                             \
  ROW(ForeachAddListV2, KIND_LIST, "x1{} x2{} alpha* out{}", L0, L1, S0, L2)                       \
  ROW(ForeachMulScalarV2, KIND_LIST, "x{} scalar* out{}", L0, S0, L1)                              \
  ROW(Cat, KIND_CAT, "tensors{} dim:int64 out", L0, N0, T1)                                        \
  ROW(Stack, KIND_CAT, "tensors{} dim:int64 out", L0, N0, T1)
/* clang-format on */

#define FIRST_PHASE(name, kind, words, ...)                                            \
  static aclnnStatus first_of_##name(const struct tensor_arguments *a, uint64_t *size, \
                                     aclOpExecutor **executor) {                       \
    return aclnn##name##GetWorkspaceSize(__VA_ARGS__, size, executor);                 \
  }
OPERATORS(FIRST_PHASE)

#define BOTH_PHASES(name, kind, words, ...) \
  [OP_##name] = {                           \
      "aclnn" #name "GetWorkspaceSize", "aclnn" #name, words, kind, first_of_##name, aclnn##name},
const struct tensor_operator tensor_operators[TENSOR_OPERATORS] = {OPERATORS(BOTH_PHASES)};

static enum argument_kind kind_of(const char *word, size_t length) {
  if (memchr(word, ':', length) != NULL) return IS_NUMBER;
  switch (word[length - 1]) {
    case '*':
      return IS_SCALAR;
    case ']':
      return IS_ARRAY;
    case '}':
      return IS_LIST;
    default:
      return IS_TENSOR;
  }
}

int tensor_operator_arguments(enum tensor_operator_id op,
                              struct tensor_argument all[ARGUMENTS_MOST]) {
  int count = 0, of_kind[IS_NUMBER + 1] = {0};
  for (const char *word = tensor_operators[op].arguments; *word != '\0';) {
    const size_t length = strcspn(word, " ");
    struct tensor_argument *argument = &all[count++];
    argument->kind = kind_of(word, length);
    argument->number = of_kind[argument->kind == IS_LIST ? IS_TENSOR : argument->kind]++;
    (void)snprintf(argument->name, sizeof argument->name, "%.*s", (int)strcspn(word, " *:[{"),
                   word);
    word += length + (word[length] == ' ');
  }
  return count;
}

static bool ends_as_result(const char *name) {
  return strncmp(name, "out", 3) == 0 || strcmp(name, "selfRef") == 0 ||
         strcmp(name, "dstTensor") == 0;
}

bool tensor_operator_writes(enum tensor_operator_id op, int tensor) {
  struct tensor_argument all[ARGUMENTS_MOST];
  const int count = tensor_operator_arguments(op, all);
  for (int i = 0; i < count; i++)
    if ((all[i].kind == IS_TENSOR || all[i].kind == IS_LIST) && all[i].number == tensor)
      return ends_as_result(all[i].name) ||
             (tensor_operators[op].kind == KIND_ALONG && strcmp(all[i].name, "indices") == 0);
  return false;
}
