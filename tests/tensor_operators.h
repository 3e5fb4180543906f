/* SPDX-License-Identifier: Apache-2.0 */
/* The two phases of every operator on tensors of any shape, called with arguments from one plain
 * struct.  Tests and fuzzers learn only here which operator takes which arguments in which order.
 *
 * `arguments` has the words of a first phase, in order, as tests/python/poolgrad_ctypes.py has
 * them: "self" is a tensor, "alpha*" an aclScalar, "dims[]" an aclIntArray, "x1{}" an
 * aclTensorList, and "dim:int64" a number.  Those of one kind come from one array of struct
 * tensor_arguments, in order; tensors and lists are counted together. */
#ifndef PG_TESTS_TENSOR_OPERATORS_H_
#define PG_TESTS_TENSOR_OPERATORS_H_

#include "acl/acl.h"
#include "aclnn/acl_meta.h"

enum { TENSORS_MOST = 3, SCALARS_MOST = 2, ARRAYS_MOST = 3, INTEGERS_MOST = 4, REALS_MOST = 2 };

struct tensor_arguments {
  aclTensor *tensor[TENSORS_MOST];
  aclTensorList *list[TENSORS_MOST];
  aclScalar *scalar[SCALARS_MOST];
  aclIntArray *array[ARRAYS_MOST];
  int64_t integer[INTEGERS_MOST];
  double real[REALS_MOST];
  bool flag;
  aclDataType dtype;
};

/* What an operator's arguments have to do with each other. */
enum tensor_kind {
  KIND_UNARY,   /* out, or self itself, is like self */
  KIND_BINARY,  /* self and other are broadcast to out, or to self itself */
  KIND_PASS,    /* so are gradOutput and self, which have out's type */
  KIND_SCALAR,  /* a scalar is the second operand */
  KIND_COPY,    /* src is broadcast to selfRef; of casts what is copied comes first */
  KIND_FILL,    /* selfRef alone */
  KIND_MASKED,  /* selfRef, and a mask that is broadcast to it */
  KIND_REDUCE,  /* self along dims to out */
  KIND_EXTREME, /* all of self to out */
  KIND_ALONG,   /* self along dim to out and indices */
  KIND_GATHER,
  KIND_UNPOOL2D,
  KIND_UNPOOL3D,
  KIND_SELECT,
  KIND_EQUAL, /* self and other have one type, and out one element */
  KIND_LIST,
  KIND_CAT /* a list of tensors to out, which has one axis more when they are stacked */
};

struct tensor_operator {
  const char *first_name, *second_name, *arguments;
  enum tensor_kind kind;
  aclnnStatus (*first)(const struct tensor_arguments *arguments, uint64_t *workspace_size,
                       aclOpExecutor **executor);
  aclnnStatus (*second)(void *workspace, uint64_t workspace_size, aclOpExecutor *executor,
                        aclrtStream stream);
};

/* clang-format off */
enum tensor_operator_id {
  OP_Add, OP_Sub, OP_Adds, OP_Subs, OP_InplaceAdd, OP_InplaceSub, OP_InplaceAdds, OP_InplaceSubs,
  OP_Mul, OP_Div, OP_InplaceMul, OP_InplaceDiv, OP_Muls, OP_Divs, OP_InplaceMuls, OP_InplaceDivs,
  OP_BitwiseAndTensor, OP_BitwiseAndScalar, OP_PowTensorScalar, OP_ThresholdBackward,
  OP_Abs, OP_Neg, OP_Sign, OP_Relu, OP_InplaceRelu, OP_Ceil, OP_Floor, OP_Sqrt, OP_IsFinite,
  OP_EqTensor, OP_NeTensor, OP_LtTensor, OP_LeTensor, OP_GtTensor, OP_GeTensor,
  OP_EqScalar, OP_NeScalar, OP_LtScalar, OP_LeScalar, OP_GtScalar, OP_GeScalar, OP_IsClose,
  OP_InplaceCopy, OP_Cast, OP_NpuFormatCast, OP_InplaceFillScalar, OP_InplaceOne, OP_InplaceZero,
  OP_InplaceMaskedFillScalar, OP_InplaceNormal, OP_InplaceUniform, OP_InplaceRandom,
  OP_ReduceSum, OP_Mean, OP_All, OP_Any, OP_Max, OP_Min, OP_MaxDim, OP_MinDim,
  OP_Gather, OP_MaxUnpool2d, OP_MaxUnpool3d, OP_MaskedSelect, OP_Equal,
  OP_ForeachAddListV2, OP_ForeachMulScalarV2, OP_Cat, OP_Stack,
  TENSOR_OPERATORS
};
/* clang-format on */

extern const struct tensor_operator tensor_operators[TENSOR_OPERATORS];

/* One word of `arguments`: its name without what says its kind. */
enum argument_kind { IS_TENSOR, IS_SCALAR, IS_ARRAY, IS_LIST, IS_NUMBER };
struct tensor_argument {
  char name[24];
  enum argument_kind kind;
  int number; /* among those of its kind */
};
enum { ARGUMENTS_MOST = 8 };

/* Gives how many there are. */
int tensor_operator_arguments(enum tensor_operator_id op,
                              struct tensor_argument all[ARGUMENTS_MOST]);

/* Does the operator write its tensor (or list) with this number? */
bool tensor_operator_writes(enum tensor_operator_id op, int tensor);

#endif
