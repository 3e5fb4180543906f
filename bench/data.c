/* SPDX-License-Identifier: Apache-2.0 */
#include "data.h"

#include <pthread.h>
#include <string.h>

#include "float_format.h"

enum { MOST_THREADS = 256 };

/* The data is a function of the cell's number and never stored: 24 bits, so that fp32 holds it. */
static uint32_t value_at(uint64_t cell) {
  uint32_t h = (uint32_t)cell * 0x9e3779b1u ^ (uint32_t)(cell >> 32);
  h = (h ^ (h >> 15)) * 0x85ebca77u;
  h = (h ^ (h >> 13)) * 0xc2b2ae3du;
  return (h ^ (h >> 16)) >> 8;
}

/* A number between 0.5 and 1 in size, of either sign: never zero, and sums stay near 1. */
static void put_gradient(int type, void *to, int64_t place, uint64_t cell) {
  const uint32_t bits = value_at(~cell), sign = bits & 1;
  if (type == F64) {
    ((uint64_t *)to)[place] = 0x3fe0000000000000u | (uint64_t)sign << 63 | (uint64_t)bits << 28;
  } else if (type == F32) {
    ((uint32_t *)to)[place] = 0x3f000000u | sign << 31 | (bits >> 1);
  } else {
    const uint32_t digits = type == F16 ? 0x3800u | bits >> 14 : 0x3f00u | bits >> 17;
    ((uint16_t *)to)[place] = (uint16_t)(sign << 15 | digits);
  }
}

struct job {
  const struct problem *p;
  const struct tensor_layout *layout;
  struct reference_pooling pool;
  void *grad_out, *index;
  int64_t *wide_index;
  int64_t first, last; /* planes */
};

static int64_t argmax(const struct job *j, int64_t plane, const struct reference_span span[3]) {
  const struct reference_axis *axis = j->pool.axis;
  const int64_t cells = reference_in_cells(&j->pool);
  int64_t best = -1, most = -1;
  for (int64_t d = span[0].first; d <= span[0].last; d += span[0].step)
    for (int64_t h = span[1].first; h <= span[1].last; h += span[1].step)
      for (int64_t w = span[2].first; w <= span[2].last; w += span[2].step) {
        const int64_t cell = (d * axis[1].in + h) * axis[2].in + w;
        const int64_t value = value_at((uint64_t)(plane * cells + cell));
        if (value <= most) continue;
        most = value;
        best = cell;
      }
  return best;
}

static void put_index(const struct job *j, int64_t place, int64_t cell) {
  if (j->p->index_bytes == 8)
    ((int64_t *)j->index)[place] = cell;
  else
    ((int32_t *)j->index)[place] = (int32_t)cell;
  if (j->wide_index != NULL) j->wide_index[place] = cell;
}

static int64_t place_of(const struct tensor_layout *t, int64_t plane, const int64_t at[3]) {
  int64_t place = t->offset + plane / t->size[AXIS_C] * t->step[AXIS_N] +
                  plane % t->size[AXIS_C] * t->step[AXIS_C];
  for (int i = 0; i < 3; i++) place += at[i] * t->step[AXIS_D + i];
  return place;
}

static void fill_plane(const struct job *j, int64_t plane) {
  const struct reference_axis *axis = j->pool.axis;
  uint64_t output = (uint64_t)(plane * reference_out_cells(&j->pool));
  struct reference_span span[3];
  int64_t at[3];
  for (at[0] = 0; at[0] < axis[0].out; at[0]++) {
    span[0] = reference_window(&axis[0], at[0]);
    for (at[1] = 0; at[1] < axis[1].out; at[1]++) {
      span[1] = reference_window(&axis[1], at[1]);
      for (at[2] = 0; at[2] < axis[2].out; at[2]++, output++) {
        put_gradient(j->p->type, j->grad_out, place_of(&j->layout[GRAD_OUT], plane, at), output);
        if (j->index == NULL) continue;
        span[2] = reference_window(&axis[2], at[2]);
        put_index(j, place_of(&j->layout[INDICES], plane, at), argmax(j, plane, span));
      }
    }
  }
}

static void *fill_planes(void *argument) {
  const struct job *j = argument;
  for (int64_t plane = j->first; plane < j->last; plane++) fill_plane(j, plane);
  return NULL;
}

void data_fill(const struct problem *p, const struct tensor_layout layout[POOL_TENSORS],
               void *grad_out, void *index, int64_t *wide_index, int threads) {
  pthread_t handle[MOST_THREADS];
  bool running[MOST_THREADS];
  struct job job[MOST_THREADS];
  const int count = threads > MOST_THREADS ? MOST_THREADS : threads;
  const int64_t planes = p->n * p->c;
  for (int i = 0; i < count; i++) {
    job[i] = (struct job){.p = p,
                          .layout = layout,
                          .pool = problem_pooling(p),
                          .grad_out = grad_out,
                          .index = index,
                          .wide_index = wide_index,
                          .first = planes * i / count,
                          .last = planes * (i + 1) / count};
    running[i] = pthread_create(&handle[i], NULL, fill_planes, &job[i]) == 0;
    if (!running[i]) (void)fill_planes(&job[i]);
  }
  for (int i = 0; i < count; i++)
    if (running[i]) pthread_join(handle[i], NULL);
}

void data_field(const struct problem *p, const struct tensor_layout *grad_in, void *to) {
  const int64_t cells = tensor_cells(grad_in);
  for (int64_t i = 0; i < cells; i++) {
    const float value = (float)value_at((uint64_t)i) * 0x1p-24f;
    const int64_t place = tensor_place(grad_in, i);
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (p->type == F32)
      ((uint32_t *)to)[place] = bits;
    else if (p->type == BF16)
      ((uint16_t *)to)[place] = (uint16_t)(bits >> 16);
  }
}
