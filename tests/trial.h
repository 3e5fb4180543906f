/* SPDX-License-Identifier: Apache-2.0 */
/* A problem with its data on the device: run it through the public API, as often as wanted, and
 * compare what came out with the reference. */
#ifndef PG_TESTS_TRIAL_H_
#define PG_TESTS_TRIAL_H_

#include "acl/acl.h"
#include "guarded.h"

struct trial {
  struct problem problem;
  struct reference_pooling pool;
  struct tensor_layout layout[POOL_TENSORS];
  struct guarded memory[POOL_TENSORS], workspace;
  /* dense, in the order N, C, D, H, W */
  double *x;        /* what the forward saw; zeros when indices do not come from one */
  double *grad_out; /* as the device has it */
  int64_t *index;   /* as the device has it */
  double *grad_in;  /* after trial_fetch */
  int64_t outputs, cells;
  bool bad_index_reported; /* the latest run failed because of indices outside their plane */
  int64_t reported;        /* how many the message counted */
  char why[PROBLEM_TEXT];
};

/* Makes the data and sends it.  False leaves a sentence in why; close the trial all the same. */
bool trial_open(struct trial *t, const struct problem *p);

/* Both phases and a synchronise.  Descriptions are destroyed before the work is waited for. */
bool trial_launch(struct trial *t, aclrtStream stream);

/* Poison in gradInput again, for another launch. */
bool trial_reset(struct trial *t);

/* Brings everything back, fills grad_in, and checks all memory that must not have changed. */
bool trial_fetch(struct trial *t);

/* Compares grad_in with the reference.
 *
 * A result must lie between the roundings of sum - e and sum + e, where sum is the fp64 reference
 * and e bounds what fp32 (DOUBLE: fp64) can lose: (terms + 2) * 2^-24 * sum of absolute terms.  e
 * is 0 where nothing can be lost: integers, and a lone term, which is rounded once to fp32 and once
 * to its type.  NaN and infinities must be as the reference has them; zeros are +0, except for
 * negative sums that a half type cannot hold.  Then the bits: what single precision gives in the
 * one order of summation (ordered_sums.h). */
bool trial_compare(struct trial *t);

void trial_close(struct trial *t);

/* All of it once.  False leaves a sentence in `why`. */
bool trial_run(const struct problem *p, aclrtStream stream, char why[PROBLEM_TEXT]);

/* Used by trial_open: x, grad_out and index, and their images. */
void trial_fill(struct trial *t);

#endif
