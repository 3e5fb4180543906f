/* SPDX-License-Identifier: Apache-2.0 */

/* Compiling single operators, and the options of the compiler. Nothing is compiled here: an
 * execution is refused by name, and the options are kept for those who ask for them.
 *
 * aclGetRecentErrMsg() (acl_rt.h) has the sentence of a failure, and ASCEND_LOG_PRINT_TO_STDOUT=1
 * prints it. Every function here may be called from any thread, before aclInit and after
 * aclFinalize. */

#ifndef PG_ACL_OP_COMPILER_H_
#define PG_ACL_OP_COMPILER_H_

#include "acl_base.h"
#include "acl_op.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum aclCompileType { ACL_COMPILE_SYS = 0, ACL_COMPILE_UNREGISTERED = 1 } aclopCompileType;

typedef enum aclCompileOpt {
  ACL_PRECISION_MODE = 0,
  ACL_AICORE_NUM = 1,
  ACL_AUTO_TUNE_MODE = 2,
  ACL_OP_SELECT_IMPL_MODE = 3,
  ACL_OPTYPELIST_FOR_IMPLMODE = 4,
  ACL_OP_DEBUG_LEVEL = 5,
  ACL_DEBUG_DIR = 6,
  ACL_OP_COMPILER_CACHE_MODE = 7,
  ACL_OP_COMPILER_CACHE_DIR = 8,
  ACL_OP_PERFORMANCE_MODE = 9,
  ACL_OP_JIT_COMPILE = 10,
  ACL_OP_DETERMINISTIC = 11,
  ACL_CUSTOMIZE_DTYPES = 12,
  ACL_OP_PRECISION_MODE = 13,
  ACL_ALLOW_HF32 = 14,
  ACL_PRECISION_MODE_V2 = 15,
  ACL_OP_DEBUG_OPTION = 16
} aclCompileOpt;

/* Executes the operator of type opType: there is none that could be. Always refused, with the
 * operator's type in the sentence: 200001 API_NOT_SUPPORT, or 100000 INVALID_PARAM for an opType of
 * NULL. The other arguments are not looked at, but that attr is named by the number of attributes
 * that were set. */
ACL_FUNC_VISIBILITY aclError aclopCompileAndExecute(
    const char *opType, int numInputs, const aclTensorDesc *const inputDesc[],
    const aclDataBuffer *const inputs[], int numOutputs, const aclTensorDesc *const outputDesc[],
    aclDataBuffer *const outputs[], const aclopAttr *attr, aclopEngineType engineType,
    aclopCompileType compileFlag, const char *opPath, aclrtStream stream);

/* Keeps a copy of the value, for the process and beyond aclFinalize. It changes no result: these
 * are always deterministic, and their precision is never lowered. ACL_OP_JIT_COMPILE, the mode in
 * which operators are compiled, is refused whatever its value: they cannot be compiled in any.
 * 0, 100000 INVALID_PARAM for an opt that is none or a value of NULL, 200000 BAD_ALLOC, 200001
 * API_NOT_SUPPORT. */
ACL_FUNC_VISIBILITY aclError aclSetCompileopt(aclCompileOpt opt, const char *value);

/* The bytes of an option's value with the 0 behind it; 0 for an opt that is none. An option that
 * was not set has the value "". */
ACL_FUNC_VISIBILITY size_t aclGetCompileoptSize(aclCompileOpt opt);

/* Copies an option's value to length bytes at value.
 * 0, 100000 INVALID_PARAM for an opt that is none, NULL, or a length below the value's bytes. */
ACL_FUNC_VISIBILITY aclError aclGetCompileopt(aclCompileOpt opt, char *value, size_t length);

#ifdef __cplusplus
}
#endif

#endif
