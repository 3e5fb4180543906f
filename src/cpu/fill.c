/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/fill.h"

#include <string.h>

#include "cpu/method.h"

static void fill_row(char *dst, const struct pg_fill_args *a) {
  switch (a->element_bytes) {
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

void pg_fill_items(const void *args, int64_t begin, int64_t end, struct pg_scratch *scratch) {
  const struct pg_fill_args *a = args;
  for (int64_t i = begin; i < end && !pg_is_stopped(scratch); i++)
    fill_row((char *)a->dst + i * a->stride * a->element_bytes, a);
}

static void fill_task(const void *args, int64_t begin, int64_t end, struct pg_scratch *scratch) {
  const struct pg_task *task = args;
  pg_fill_items(&task->problem.args.fill, begin, end, scratch);
}

const struct pg_cpu_method pg_cpu_fill = {.name = "fill", .run = fill_task};
