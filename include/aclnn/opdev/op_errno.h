/* SPDX-License-Identifier: Apache-2.0 */

/* Values of aclnnStatus. aclnn/aclnn_base.h does not include this file: a program that only asks
 * "did it work" compares with 0 or ACL_SUCCESS.
 *
 * First digit: 1 an argument, 3 a runtime call made inside, 5 an inner fault. poolgrad returns
 * those with a comment; the others exist so that programs which name them compile.
 * aclGetRecentErrMsg() says in a sentence what a call found; ASCEND_LOG_PRINT_TO_STDOUT=1 in the
 * environment prints it. */

#ifndef PG_OP_ERRNO_H_
#define PG_OP_ERRNO_H_

#define ACLNN_SUCCESS 0

#define ACLNN_ERR_PARAM_NULLPTR 161001 /* NULL where an object is needed */
#define ACLNN_ERR_PARAM_INVALID 161002 /* any other argument: type, shape, format, attribute */

#define ACLNN_ERR_RUNTIME_ERROR 361001 /* a runtime call made inside failed: memory, stream */

#define ACLNN_ERR_INNER 561000 /* a spent executor, none of this library, or out of memory */
#define ACLNN_ERR_INNER_INFERSHAPE_ERROR 561001
#define ACLNN_ERR_INNER_TILING_ERROR 561002
#define ACLNN_ERR_INNER_FIND_KERNEL_ERROR 561003 /* the operator is not implemented */
#define ACLNN_ERR_INNER_CREATE_EXECUTOR 561101   /* out of memory for an executor */
#define ACLNN_ERR_INNER_NOT_TRANS_EXECUTOR 561102
#define ACLNN_ERR_INNER_NULLPTR 561103 /* a NULL executor or tensor */
#define ACLNN_ERR_INNER_WRONG_ATTR_INFO_SIZE 561104
#define ACLNN_ERR_INNER_KEY_CONFLICT 561105
#define ACLNN_ERR_INNER_KEY_CONFILICT 561105 /* old spelling */
#define ACLNN_ERR_INNER_INVALID_IMPL_MODE 561106
#define ACLNN_ERR_INNER_OPP_PATH_NOT_FOUND 561107
#define ACLNN_ERR_INNER_LOAD_JSON_FAILED 561108
#define ACLNN_ERR_INNER_JSON_VALUE_NOT_FOUND 561109
#define ACLNN_ERR_INNER_JSON_FORMAT_INVALID 561110
#define ACLNN_ERR_INNER_JSON_DTYPE_INVALID 561111
#define ACLNN_ERR_INNER_OPP_KERNEL_PKG_NOT_FOUND 561112
#define ACLNN_ERR_INNER_OP_FILE_INVALID 561113
#define ACLNN_ERR_INNER_ATTR_NUM_OUT_OF_BOUND 561114
#define ACLNN_ERR_INNER_ATTR_LEN_NOT_ENOUGH 561115
#define ACLNN_ERR_INNER_INPUT_NUM_IN_JSON_TOO_LARGE 561116
#define ACLNN_ERR_INNER_INPUT_JSON_IS_NULL 561117
#define ACLNN_ERR_INNER_STATIC_WORKSPACE_INVALID 561118
#define ACLNN_ERR_INNER_STATIC_BLOCK_DIM_INVALID 561119

#endif
