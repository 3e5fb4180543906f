/* SPDX-License-Identifier: Apache-2.0 */
/* The scalar kernel set: plain C, every kernel. */
#include <string.h>

#include "cpu/kernel_set.h"

static void fill_row(char *dst, const struct pg_fill_args *a) {
  switch (a->element) {
    case 1:
      memset(dst, (int)(a->value & 0xff), (size_t)a->width);
      return;
    case 2:
      for (int64_t i = 0; i < a->width; i++)
        memcpy(dst + i * 2, &(uint16_t){(uint16_t)a->value}, 2);
      return;
    case 4:
      for (int64_t i = 0; i < a->width; i++)
        memcpy(dst + i * 4, &(uint32_t){(uint32_t)a->value}, 4);
      return;
    default:
      for (int64_t i = 0; i < a->width; i++) memcpy(dst + i * 8, &a->value, 8);
  }
}

static void fill(const void *args, int64_t begin, int64_t end) {
  const struct pg_fill_args *a = args;
  for (int64_t i = begin; i < end; i++) fill_row((char *)a->dst + i * a->stride * a->element, a);
}

const struct pg_kernel_set pg_kernels_scalar = {
    .isa = "scalar",
    .fn = {[PG_KERNEL_FILL] = fill},
};
