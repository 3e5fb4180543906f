/* SPDX-License-Identifier: Apache-2.0 */
/* The methods over tensors of any shape and types, best first: the first that fits a problem
 * computes it. */
#include "cpu/kernels/variant.h"
#include "cpu/method.h"

extern const struct pg_cpu_method VARIANT(map_move), VARIANT(map_any), VARIANT(reduce_any),
    VARIANT(gather_any), VARIANT(unpool_any), VARIANT(select_any);

static const struct pg_cpu_method *const map[] = {&VARIANT(map_move), &VARIANT(map_any), NULL};
static const struct pg_cpu_method *const reduce[] = {&VARIANT(reduce_any), NULL};
static const struct pg_cpu_method *const gather[] = {&VARIANT(gather_any), NULL};
static const struct pg_cpu_method *const unpool[] = {&VARIANT(unpool_any), NULL};
static const struct pg_cpu_method *const selecting[] = {&VARIANT(select_any), NULL};

const struct pg_cpu_methods VARIANT(methods) = {.of = {[PG_MAP] = map,
                                                       [PG_REDUCE] = reduce,
                                                       [PG_GATHER] = gather,
                                                       [PG_UNPOOL] = unpool,
                                                       [PG_SELECT] = selecting}};
