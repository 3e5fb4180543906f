/* SPDX-License-Identifier: Apache-2.0 */
#include "data.h"

#include <pthread.h>
#include <string.h>

#include "float_format.h"

enum { MOST_THREADS = 256 };

int64_t data_bytes(const struct problem *p, const struct tensor_layout *t, int tensor) {
  if (problem_role(p, tensor) == ABSENT_TENSOR) return 0;
  return t->elements * problem_element_bytes(p, tensor);
}

/* Of a mask a backward needs the indices that are packed at its begin, or nothing where they are
 * implied. */
static int64_t needed_bytes(const struct problem *p, const struct tensor_layout *t, int tensor) {
  if (tensor != INDICES || !problem_is_mask(p) || problem_is_forward(p))
    return data_bytes(p, t, tensor);
  const int64_t outputs = p->n * p->c * p->out[1] * p->out[2];
  return problem_implies_indices(p) ? 0 : outputs * (int64_t)sizeof(int32_t);
}

int64_t data_moved(const struct problem *p, const struct tensor_layout layout[POOL_TENSORS],
                   enum tensor_role role) {
  int64_t sum = 0;
  for (int i = 0; i < POOL_TENSORS; i++)
    if (problem_role(p, i) == role) sum += needed_bytes(p, &layout[i], i);
  return sum;
}

/* The data is a function of the cell's number and never stored: 24 bits, so that fp32 holds it. */
static uint32_t value_at(uint64_t cell) {
  uint32_t h = (uint32_t)cell * 0x9e3779b1u ^ (uint32_t)(cell >> 32);
  h = (h ^ (h >> 15)) * 0x85ebca77u;
  h = (h ^ (h >> 13)) * 0xc2b2ae3du;
  return (h ^ (h >> 16)) >> 8;
}

/* A number between 0.5 and 1 in size, of either sign: never zero, and sums stay near 1. */
static void put_value(int type, void *to, int64_t place, uint64_t cell) {
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
  const struct data_places *places;
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

/* The container of a mask that says nothing has no room for indices. */
static void put_index(const struct job *j, int64_t place, int64_t cell) {
  void *const index = j->places->of[INDICES];
  if (!problem_implies_indices(j->p) && j->p->index_bytes == 8)
    ((int64_t *)index)[place] = cell;
  else if (!problem_implies_indices(j->p))
    ((int32_t *)index)[place] = (int32_t)cell;
  if (j->places->wide_index != NULL) j->places->wide_index[place] = cell;
}

static int64_t place_of(const struct tensor_layout *t, int64_t plane, const int64_t at[3]) {
  int64_t place = t->offset + plane / t->size[AXIS_C] * t->step[AXIS_N] +
                  plane % t->size[AXIS_C] * t->step[AXIS_C];
  for (int i = 0; i < 3; i++) place += at[i] * t->step[AXIS_D + i];
  return place;
}

/* One plane of a tensor of numbers, each by its place among all of them. */
static void fill_values(const struct job *j, int tensor, int64_t plane) {
  const struct tensor_layout *t = &j->layout[tensor];
  const int64_t *size = t->size + AXIS_D;
  uint64_t number = (uint64_t)(plane * size[0] * size[1] * size[2]);
  int64_t at[3];
  for (at[0] = 0; at[0] < size[0]; at[0]++)
    for (at[1] = 0; at[1] < size[1]; at[1]++)
      for (at[2] = 0; at[2] < size[2]; at[2]++)
        put_value(j->p->type, j->places->of[tensor], place_of(t, plane, at), number++);
}

/* A mask has its indices packed, whatever its shape says. */
static void fill_indices(const struct job *j, int64_t plane) {
  const struct reference_axis *axis = j->pool.axis;
  const bool packed = problem_is_mask(j->p);
  int64_t output = plane * reference_out_cells(&j->pool), at[3];
  struct reference_span span[3];
  for (at[0] = 0; at[0] < axis[0].out; at[0]++) {
    span[0] = reference_window(&axis[0], at[0]);
    for (at[1] = 0; at[1] < axis[1].out; at[1]++) {
      span[1] = reference_window(&axis[1], at[1]);
      for (at[2] = 0; at[2] < axis[2].out; at[2]++, output++) {
        span[2] = reference_window(&axis[2], at[2]);
        const int64_t place = packed ? output : place_of(&j->layout[INDICES], plane, at);
        put_index(j, place, argmax(j, plane, span));
      }
    }
  }
}

static void fill_plane(const struct job *j, int64_t plane) {
  for (int i = 0; i < POOL_TENSORS; i++)
    if (j->places->of[i] != NULL && i != INDICES) fill_values(j, i, plane);
  if (j->places->of[INDICES] != NULL) fill_indices(j, plane);
}

static void *fill_planes(void *argument) {
  const struct job *j = argument;
  for (int64_t plane = j->first; plane < j->last; plane++) fill_plane(j, plane);
  return NULL;
}

void data_fill(const struct problem *p, const struct tensor_layout layout[POOL_TENSORS],
               const struct data_places *places, int threads) {
  pthread_t handle[MOST_THREADS];
  bool running[MOST_THREADS];
  struct job job[MOST_THREADS];
  const int count = threads > MOST_THREADS ? MOST_THREADS : threads;
  const int64_t planes = p->n * p->c;
  for (int i = 0; i < count; i++) {
    job[i] = (struct job){.p = p,
                          .layout = layout,
                          .pool = problem_pooling(p),
                          .places = places,
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
