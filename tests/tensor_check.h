/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of the checks of operators on tensors of any shape say. */
#ifndef PG_TESTS_TENSOR_CHECK_H_
#define PG_TESTS_TENSOR_CHECK_H_

#include "tensor_call.h"

/* The first phase fails with exactly this sentence, writes nothing and keeps nothing. */
__attribute__((format(printf, 3, 4))) void tensor_refused(const struct tensor_call *c, int code,
                                                          const char *format, ...);

/* It succeeds. */
void tensor_accepted(const struct tensor_call *c);

/* The executor of a right call, and the size of its workspace unless that is NULL. */
aclOpExecutor *tensor_planned(const struct tensor_call *c, uint64_t *size);

/* Both phases succeed, on the host's own memory. */
void tensor_runs(const struct tensor_call *c);

#endif
