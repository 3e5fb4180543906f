/* SPDX-License-Identifier: Apache-2.0 */
/* The methods for doubles, best first.  Only methods in plain C are compiled for them. */
#include "cpu/kernels/variant.h"
#include "cpu/method.h"

extern const struct pg_cpu_method VARIANT(avg_one_window), VARIANT(avg_any),
    VARIANT(max_forward_any);

static const struct pg_cpu_method *const avg_backward_f64[] = {&VARIANT(avg_one_window),
                                                               &VARIANT(avg_any), NULL};

static const struct pg_cpu_method *const max_forward_f64[] = {&VARIANT(max_forward_any), NULL};

const struct pg_cpu_methods VARIANT(methods) = {
    .of = {[PG_AVG_BACKWARD] = avg_backward_f64, [PG_MAX_FORWARD] = max_forward_f64}};
