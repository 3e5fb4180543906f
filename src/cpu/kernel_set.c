/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/kernel_set.h"

#include <stddef.h>

static const struct pg_kernel_set *const sets[] = {&pg_kernels_scalar}; /* best first */

pg_kernel_fn *pg_kernel_find(enum pg_kernel id) {
  for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++)
    if (sets[i]->fn[id] != NULL) return sets[i]->fn[id];
  return pg_kernels_scalar.fn[id];
}
