/* SPDX-License-Identifier: Apache-2.0 */
/* What the two halves of decoding share. */
#ifndef PG_FUZZ_TENSORS_DECODE_H_
#define PG_FUZZ_TENSORS_DECODE_H_

#include "tensors.h"

/* Makes one thing wrong, or at least unusual. */
void fuzzed_change(struct input *in, struct fuzzed_call *f);

/* Puts an operand into another one's memory, or passes that one a second time. */
void fuzzed_share(struct input *in, struct fuzzed_call *f, int operand);

/* Any real, infinities and NaN too. */
double take_real(struct input *in);

#endif
