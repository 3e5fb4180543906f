/* SPDX-License-Identifier: Apache-2.0 */
/* The methods of each kernel, best first: the first that fits a problem computes it. */
#include "cpu/kernels/variant.h"
#include "cpu/method.h"

extern const struct pg_cpu_method VARIANT(max_one_cell), VARIANT(max_gather), VARIANT(max_patch),
    VARIANT(max_channels_last), VARIANT(max_pairs), VARIANT(max_scatter);
extern const struct pg_cpu_method VARIANT(avg_one_window), VARIANT(avg_one_cell),
    VARIANT(avg_bundles), VARIANT(avg_columns), VARIANT(avg_rows), VARIANT(avg_any);
extern const struct pg_cpu_method VARIANT(max_forward_channels_last), VARIANT(max_forward_bundles),
    VARIANT(max_forward_rows), VARIANT(max_forward_any);
extern const struct pg_cpu_method VARIANT(avg_forward_one_window), VARIANT(avg_forward_rows),
    VARIANT(avg_forward_any);

static const struct pg_cpu_method *const max_backward[] = {&VARIANT(max_one_cell),
                                                           &VARIANT(max_gather),
                                                           &VARIANT(max_patch),
                                                           &VARIANT(max_channels_last),
                                                           &VARIANT(max_pairs),
                                                           &VARIANT(max_scatter),
                                                           NULL};

static const struct pg_cpu_method *const avg_backward[] = {&VARIANT(avg_one_window),
                                                           &VARIANT(avg_one_cell),
                                                           &VARIANT(avg_bundles),
                                                           &VARIANT(avg_columns),
                                                           &VARIANT(avg_rows),
                                                           &VARIANT(avg_any),
                                                           NULL};

static const struct pg_cpu_method *const max_forward[] = {
    &VARIANT(max_forward_channels_last), &VARIANT(max_forward_bundles), &VARIANT(max_forward_rows),
    &VARIANT(max_forward_any), NULL};

static const struct pg_cpu_method *const avg_forward[] = {
    &VARIANT(avg_forward_one_window), &VARIANT(avg_forward_rows), &VARIANT(avg_forward_any), NULL};

const struct pg_cpu_methods VARIANT(methods) = {.of = {[PG_MAX_BACKWARD] = max_backward,
                                                       [PG_AVG_BACKWARD] = avg_backward,
                                                       [PG_MAX_FORWARD] = max_forward,
                                                       [PG_AVG_FORWARD] = avg_forward}};
