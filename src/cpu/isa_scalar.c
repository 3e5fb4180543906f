/* SPDX-License-Identifier: Apache-2.0 */
/* The scalar kernel set: plain C, every kernel. */
#include <string.h>

#include "core/half.h"
#include "cpu/kernel_set.h"
#include "cpu/scatter.h"

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

/* How many cells of an axis an output's window counts for the divisor. */
static int64_t extent(const struct pg_spread_args *a, const struct pg_axis *axis, int64_t o) {
  struct pg_range r = pg_window(axis, o);
  if (!a->count_include_pad)
    r = pg_window_clip(axis, r);
  else if (r.end > axis->in + axis->pad)
    r.end = axis->in + axis->pad;
  return r.end - r.begin;
}

#define SUM float

#define NAME(function) function##_f32
#define ELEMENT float
#define LOAD(value) (value)
#define STORE(value) (value)
#include "cpu/scatter.inc"
#include "cpu/spread.inc"
#undef NAME
#undef ELEMENT
#undef LOAD
#undef STORE

#define NAME(function) function##_f16
#define ELEMENT uint16_t
#define LOAD(value) pg_float_of_fp16(value)
#define STORE(value) pg_fp16_of_float(value)
#include "cpu/scatter.inc"
#include "cpu/spread.inc"
#undef NAME
#undef LOAD
#undef STORE

#define NAME(function) function##_bf16
#define LOAD(value) pg_float_of_bf16(value)
#define STORE(value) pg_bf16_of_float(value)
#include "cpu/scatter.inc"
#include "cpu/spread.inc"
#undef NAME
#undef ELEMENT
#undef LOAD
#undef STORE
#undef SUM

#define NAME(function) function##_f64
#define ELEMENT double
#define SUM double
#define LOAD(value) (value)
#define STORE(value) (value)
#include "cpu/spread.inc"

const struct pg_kernel_set pg_kernels_scalar = {
    .isa = "scalar",
    .fn = {[PG_KERNEL_FILL] = {fill, fill, fill, fill},
           [PG_KERNEL_SCATTER] = {scatter_f32, scatter_f16, scatter_bf16},
           [PG_KERNEL_RESCATTER] = {rescatter_f32, rescatter_f16, rescatter_bf16},
           [PG_KERNEL_SPREAD] = {spread_f32, spread_f16, spread_bf16, spread_f64}},
};
