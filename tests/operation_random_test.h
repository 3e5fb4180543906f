/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of operators on tensors share: many random calls of each from one seed, on small
 * tensors and on some that have several panels.
 *
 * POOLGRAD_TEST_SEED is the seed of the first call, which a failure names; POOLGRAD_TEST_SECONDS
 * makes a run longer or shorter. */
#ifndef PG_TESTS_OPERATION_RANDOM_TEST_H_
#define PG_TESTS_OPERATION_RANDOM_TEST_H_

#include "operation_trial.h"
#include "tensor_random_test.h"

/* Makes the call of a seed, of about so many positions, with its data and what is expected. */
typedef bool operation_make_fn(struct operation_trial *o, enum tensor_operator_id op, uint64_t seed,
                               int64_t most);

static inline bool operation_try(operation_make_fn *make, enum tensor_operator_id op, uint64_t seed,
                                 int64_t most) {
  struct operation_trial o;
  operation_begin(&o, op);
  bool good = make(&o, op, seed, most);
  if (!good) print_error("no memory for the call\n");
  if (good && !operation_run(&o, &devices)) {
    print_error("%s\n  POOLGRAD_TEST_SEED=%" PRIu64 ", %lld positions at most\n", o.t.why, seed,
                (long long)most);
    good = false;
  }
  operation_free(&o);
  return good;
}

/* All operators of the kinds in turn, for this share of the time; at least a few times. */
static inline void operation_try_kinds(operation_make_fn *make, unsigned kinds, double share) {
  enum { LEAST = 4 };
  const double end = tensor_now() + share * tensor_seconds();
  const uint64_t first = tensor_first_seed();
  uint64_t count = 0;
  int wrong = 0;
  for (; wrong < 10 && (count < LEAST || tensor_now() < end); count++)
    for (int op = 0; op < TENSOR_OPERATORS; op++)
      if ((kinds >> tensor_operators[op].kind & 1u) != 0)
        wrong += !operation_try(make, (enum tensor_operator_id)op, first + count,
                                count % 16 == 15 ? 20000 : 300);
  print_message("%" PRIu64 " calls of each from POOLGRAD_TEST_SEED=%" PRIu64 "\n", count, first);
  if (wrong > 0) fail_msg("%d calls are wrong", wrong);
}

#define KINDS(kind) (1u << (kind))

#endif
