/* SPDX-License-Identifier: Apache-2.0 */
/* The methods for integers, best first.  Only maxima are taken of them, by methods in plain C. */
#include "cpu/kernels/variant.h"
#include "cpu/method.h"

extern const struct pg_cpu_method VARIANT(max_forward_any);

static const struct pg_cpu_method *const max_forward_integer[] = {&VARIANT(max_forward_any), NULL};

const struct pg_cpu_methods VARIANT(methods) = {.of = {[PG_MAX_FORWARD] = max_forward_integer}};
