/* SPDX-License-Identifier: Apache-2.0 */
/* The two phases of every operator, called with arguments from one plain struct.  Tests, fuzzers
 * and benchmarks learn only here which operator takes which arguments in which order. */
#ifndef PG_TESTS_OPERATOR_CALL_H_
#define PG_TESTS_OPERATOR_CALL_H_

#include "acl/acl.h"
#include "aclnn/acl_meta.h"
#include "guarded.h"

enum { KERNEL_ARRAY, STRIDE_ARRAY, PADDING_ARRAY, DILATION_ARRAY, OUTPUT_ARRAY, POOL_ARRAYS };

/* Everything that some operator takes; each of them looks at its own part.  Of a forward operator
 * the tensor SELF is read, GRAD_OUT is its output, and INDICES, or the mask, is written as well;
 * GRAD_IN is nothing.  Its outputSize is OUTPUT_ARRAY. */
struct operator_arguments {
  aclTensor *tensor[POOL_TENSORS];
  aclIntArray *array[POOL_ARRAYS];
  bool ceil, include_pad;
  int64_t divisor, auto_pad;
  int8_t cube;
};

typedef aclnnStatus operator_first_phase(const struct operator_arguments *arguments,
                                         uint64_t *workspace_size, aclOpExecutor **executor);
typedef aclnnStatus operator_second_phase(void *workspace, uint64_t workspace_size,
                                          aclOpExecutor *executor, aclrtStream stream);

struct operator_call {
  const char *first_name, *second_name;
  operator_first_phase *first;
  operator_second_phase *second;
};

extern const struct operator_call operator_calls[POOL_OPERATORS];

/* The descriptions that a problem's call is made with, to be destroyed by the caller. */
aclTensor *operator_tensor(const struct problem *p, const struct tensor_layout *layout, int tensor,
                           void *address);
aclIntArray *operator_array(const struct problem *p, int array); /* NULL where the line says so */

/* Those descriptions with the problem's other attributes. */
struct operator_arguments operator_arguments(const struct problem *p,
                                             aclTensor *const tensor[POOL_TENSORS],
                                             aclIntArray *const array[POOL_ARRAYS]);

#endif
