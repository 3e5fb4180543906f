/* SPDX-License-Identifier: Apache-2.0 */
/* Random shapes, layouts and elements. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "tensor_trial.h"

int64_t tensor_draw(uint64_t *state, int64_t below) {
  return (int64_t)(problem_next(state) % (uint64_t)below);
}

bool tensor_chance(uint64_t *state, int64_t odds) { return tensor_draw(state, odds) == 0; }

/* --- Shapes --- */

static int64_t draw_length(uint64_t *state) {
  static const int64_t lengths[] = {
      1,  1,  1,  2,   2,   2,   3,   3,   4,   5,   7,   8,    15,   16,   17,   31,   32,   33,
      63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 513, 1023, 1024, 1025, 4095, 4096, 4097, 8193};
  return lengths[tensor_draw(state, (int64_t)(sizeof lengths / sizeof lengths[0]))];
}

struct pg_shape tensor_draw_shape(uint64_t *state, int64_t most) {
  struct pg_shape shape = {.rank = (int)tensor_draw(state, PG_GRID_AXES + 1)};
  for (int i = 0; i < shape.rank; i++) {
    const int64_t length = draw_length(state);
    shape.dims[i] = length <= most ? length : 1 + tensor_draw(state, most < 4 ? most : 4);
    most /= shape.dims[i];
  }
  for (int i = shape.rank - 1; i > 0; i--) { /* the first axes took what there was */
    const int other = (int)tensor_draw(state, i + 1);
    const int64_t kept = shape.dims[i];
    shape.dims[i] = shape.dims[other];
    shape.dims[other] = kept;
  }
  return shape;
}

int64_t tensor_offset(const struct pg_shape *shape, const int64_t *strides, int64_t number) {
  int64_t offset = 0;
  for (int i = shape->rank - 1; i >= 0; i--) {
    offset += number % shape->dims[i] * strides[i];
    number /= shape->dims[i];
  }
  return offset;
}

/* --- Layouts --- */

/* Mostly row-major, else in any order: which axis is the i-th fastest. */
static void draw_order(uint64_t *state, int rank, int order[PG_GRID_AXES]) {
  const bool turned = tensor_chance(state, 2);
  for (int i = 0; i < rank; i++) order[i] = rank - 1 - i;
  for (int i = rank - 1; i > 0 && turned; i--) {
    const int other = (int)tensor_draw(state, i + 1), kept = order[i];
    order[i] = order[other];
    order[other] = kept;
  }
}

void tensor_draw_layout(uint64_t *state, const struct pg_shape *shape, enum tensor_layout_kind kind,
                        struct tensor_side *side) {
  const bool repeats = kind == TENSOR_ANY && tensor_chance(state, 3);
  const bool has_gaps = tensor_chance(state, 3);
  int order[PG_GRID_AXES];
  int64_t step = has_gaps && tensor_chance(state, 2) ? 2 + tensor_draw(state, 2) : 1;
  draw_order(state, shape->rank, order);
  memset(side->strides, 0, sizeof side->strides);
  side->offset = tensor_chance(state, 2) ? tensor_draw(state, 9) : 0;
  side->elements = side->offset + 1;
  for (int i = 0; i < shape->rank; i++) {
    const int64_t length = shape->dims[order[i]];
    if (length == 1 || (repeats && tensor_chance(state, 2))) continue;
    side->strides[order[i]] = step;
    side->elements += (length - 1) * step;
    step *= length;
    if (has_gaps && tensor_chance(state, 3)) step += 1 + tensor_draw(state, 20);
  }
}

/* --- Elements --- */

static double draw_special(uint64_t *state) {
  static const double values[] = {
      NAN,         INFINITY,    -INFINITY, 0.0,      -0.0,     0.5,       -0.5,       1.5,
      -2.5,        0x1p31,      -0x1p31,   0x1p32,   0x1p63,   -0x1p63,   0x1p64,     FLT_MAX,
      -FLT_MAX,    DBL_MAX,     65504,     65520,    65519.99, 0x1p-14,   0x1p-24,    0x1p-25,
      0x1p-133,    0x1p-126,    0x1p-149,  0x1p-150, DBL_MIN,  0x1p-1074, 1 + 0x1p-8, 1 + 0x3p-9,
      1 + 0x1p-11, 1 + 0x1p-24, 16777217,  255.9};
  return values[tensor_draw(state, (int64_t)(sizeof values / sizeof values[0]))];
}

static double draw_real(uint64_t *state) {
  const double unit = (double)(problem_next(state) >> 11) * 0x1p-53 * 2 - 1;
  switch (tensor_draw(state, 8)) {
    case 0:
      return draw_special(state);
    case 1:
      return ldexp(unit, (int)tensor_draw(state, 300) - 150);
    case 2:
    case 3:
    case 4:
      return (double)(tensor_draw(state, 17) - 8);
    default:
      return unit * 100;
  }
}

static int64_t draw_integer(uint64_t *state) {
  static const int64_t values[] = {INT64_MIN, INT64_MAX, INT32_MIN, INT32_MAX,
                                   INT16_MIN, INT16_MAX, INT8_MIN,  INT8_MAX,
                                   UINT8_MAX, 0,         -1,        16777217,
                                   65519,     65520,     2049,      INT64_C(9007199254740993)};
  switch (tensor_draw(state, 4)) {
    case 0:
      return values[tensor_draw(state, (int64_t)(sizeof values / sizeof values[0]))];
    case 1:
      return (int64_t)problem_next(state);
    default:
      return tensor_draw(state, 17) - 8;
  }
}

void tensor_draw_element(uint64_t *state, aclDataType dtype, void *to) {
  if (dtype == ACL_BOOL) {
    memcpy(to, &(uint8_t){tensor_chance(state, 2)}, 1);
  } else if (tensor_is_real(dtype)) {
    const union pg_number n = {.real = draw_real(state)};
    reference_store(PG_CLASS_DOUBLE, n, dtype, to);
  } else {
    const union pg_number n = {.integer = draw_integer(state)};
    reference_store(PG_CLASS_INT, n, dtype, to);
  }
}
