/* SPDX-License-Identifier: Apache-2.0 */
/* The values of a trial: what is read, from the problem's seed. */
#include <math.h>
#include <string.h>

#include "float_format.h"
#include "trial.h"

/* A plane without cells has no number below its size. */
static uint64_t below(uint64_t *state, uint64_t limit) {
  return limit == 0 ? 0 : problem_next(state) % limit;
}

static double integer(uint64_t *state, int most) {
  return (double)below(state, 2 * (uint64_t)most + 1) - most;
}

/* A sum of four uniform numbers: near enough to normal, and the same on every machine. */
static double random_number(uint64_t *state) {
  double sum = 0;
  for (int i = 0; i < 4; i++) sum += (double)(problem_next(state) >> 11) * 0x1p-53 - 0.5;
  return sum * ldexp(1, (int)below(state, 6));
}

static double special(uint64_t *state, const struct float_format *format) {
  const double least = ldexp(1, format->least),
               normal = ldexp(1, format->least + format->digits - 1);
  const double values[] = {NAN,    INFINITY, -INFINITY,      -0.0,    0,  least,
                           -least, normal,   normal - least, -normal, -1, 1};
  const uint64_t count = sizeof values / sizeof values[0];
  /* three in four are harmless, so that not every sum is NaN */
  if (below(state, 4) != 0) return below(state, 2) == 0 ? -0.0 : random_number(state);
  return values[below(state, count)];
}

/* The divisor times a small integer, if the type can hold that. */
static double divisible(uint64_t *state, const struct trial *t, const int64_t at[3]) {
  const double factor = integer(state, 4), value = factor * reference_divisor(&t->pool, at);
  return float_round(&float_formats[t->problem.type], value) == value ? value : factor;
}

/* Depth, height and width of an output. */
static void locate(const struct trial *t, int64_t output, int64_t at[3]) {
  for (int i = 2; i >= 0; i--) {
    at[i] = output % t->pool.axis[i].out;
    output /= t->pool.axis[i].out;
  }
}

/* Integers for a backward average are such that their quotients are integers as well. */
static double any_integer(uint64_t *state, const struct trial *t, int64_t element) {
  int64_t at[3];
  if (problem_is_max(&t->problem) || problem_is_forward(&t->problem)) return integer(state, 100);
  locate(t, element, at);
  return divisible(state, t, at);
}

static double number(uint64_t *state, const struct trial *t, int64_t element) {
  const struct float_format *format = &float_formats[t->problem.type];
  switch (t->problem.data) {
    case RANDOM:
      return random_number(state);
    case SPECIALS:
      return special(state, format);
    case LARGEST:
      return below(state, 2) == 0 ? 0 : format->largest;
    case TIES:
      return below(state, 2) == 0 ? 0 : (double)below(state, 4);
    case LOWEST:
      return -INFINITY;
    case CONSTANT:
      return 3;
    default:
      return any_integer(state, t, element);
  }
}

static int64_t largest_integer(int type) {
  return type == I64 ? INT64_MAX : (int64_t)float_formats[type].largest;
}

static int64_t least_integer(int type) {
  return type == U8 || type == U16 ? 0 : -largest_integer(type) - 1;
}

static int64_t special_integer(uint64_t *state, int type) {
  const int64_t most = largest_integer(type), least = least_integer(type);
  const int64_t values[] = {most, most - 1, least, least + 1, 0, 1, most / 2, most / 2 + 1};
  return values[below(state, sizeof values / sizeof values[0])];
}

/* Of integer types; the low bytes of what it gives are the element. */
static int64_t integer_element(uint64_t *state, const struct trial *t) {
  const int type = t->problem.type;
  switch (t->problem.data) {
    case RANDOM:
      return (int64_t)problem_next(state);
    case SPECIALS:
      return special_integer(state, type);
    case LARGEST:
      return below(state, 2) == 0 ? 0 : largest_integer(type);
    case TIES:
      return below(state, 2) == 0 ? 0 : (int64_t)below(state, 4);
    case LOWEST:
      return least_integer(type);
    case CONSTANT:
      return 3;
    default:
      return (int64_t)below(state, 100) + (least_integer(type) < 0 ? -50 : 0);
  }
}

static void write_element(uint64_t *state, const struct trial *t, int64_t element, char *to) {
  const struct float_format *format = &float_formats[t->problem.type];
  if (t->problem.type < FLOAT_FORMATS)
    float_encode(format, number(state, t, element), to);
  else
    memcpy(to, &(int64_t){integer_element(state, t)}, format->bytes);
}

/* Writes the elements of a tensor, then reads them: rounded, and shared where the layout shares. */
static void fill_elements(struct trial *t, int tensor, double *values, uint64_t *state) {
  const int64_t count = trial_count(t, tensor);
  char *to = guarded_payload(&t->memory[tensor]);
  for (int64_t i = 0; i < count; i++) write_element(state, t, i, to + trial_place(t, tensor, i));
  for (int64_t i = 0; i < count; i++)
    values[i] = float_decode(&float_formats[t->problem.type], to + trial_place(t, tensor, i));
}

void trial_gather(const struct trial *t, char *elements) {
  const size_t bytes = float_formats[t->problem.type].bytes;
  const char *from = guarded_payload(&t->memory[SELF]);
  for (int64_t i = 0; i < t->cells; i++, elements += bytes)
    memcpy(elements, from + trial_place(t, SELF, i), bytes);
}

/* Just outside, far outside, and what a cut to 32 bits would bring back inside. */
static int64_t outside(uint64_t *state, const struct trial *t, int64_t plane) {
  const int64_t near[] = {-1, plane, plane + 1, -plane, INT32_MIN, INT32_MAX};
  const int64_t far[] = {INT64_C(1) << 32, -(INT64_C(1) << 32), INT64_MIN, INT64_MAX,
                         (INT64_C(1) << 40) + 1};
  if (t->problem.index_bytes == 8 && below(state, 2) == 0) return far[below(state, 5)];
  return near[below(state, 6)];
}

/* The flat position before the window's first cell or behind its last one. */
static int64_t beside(uint64_t *state, const struct trial *t, int64_t output) {
  const bool behind = below(state, 2) == 0;
  int64_t at[3], position = 0;
  locate(t, output, at);
  for (int i = 0; i < 3; i++) {
    const struct reference_span window = reference_window(&t->pool.axis[i], at[i]);
    position = position * t->pool.axis[i].in + (behind ? window.last : window.first);
  }
  return position + (behind ? 1 : -1);
}

static int64_t change_index(uint64_t *state, const struct trial *t, int64_t output) {
  const int64_t plane = reference_in_cells(&t->pool), per_plane = reference_out_cells(&t->pool);
  uint64_t plane_seed = t->problem.seed + (uint64_t)(output / per_plane);
  switch (t->problem.index) {
    case ANYWHERE:
      return (int64_t)below(state, (uint64_t)plane);
    case STRAY:
      return below(state, 16) == 0 ? (int64_t)below(state, (uint64_t)plane) : t->index[output];
    case OUTSIDE:
      return below(state, 8) == 0 ? outside(state, t, plane) : t->index[output];
    case BESIDE:
      return below(state, 4) == 0 ? beside(state, t, output) : t->index[output];
    case ONE:
      return (int64_t)below(&plane_seed, (uint64_t)plane);
    case LONE:
      if ((uint64_t)output != t->problem.seed % (uint64_t)t->outputs) return t->index[output];
      return (int64_t)below(state, (uint64_t)plane);
    case NEXT:
      if ((uint64_t)output != t->problem.seed % (uint64_t)t->outputs) return t->index[output];
      return beside(state, t, output);
    default:
      return t->index[output];
  }
}

static void encode_index(const struct trial *t, int64_t value, char *to) {
  if (t->problem.index_bytes == 8)
    memcpy(to, &value, sizeof value);
  else
    memcpy(to, &(int32_t){(int32_t)value}, sizeof(int32_t));
}

int64_t trial_decode_index(const struct trial *t, const char *from) {
  int64_t wide;
  int32_t narrow;
  if (t->problem.index_bytes == 8) {
    memcpy(&wide, from, sizeof wide);
    return wide;
  }
  memcpy(&narrow, from, sizeof narrow);
  return narrow;
}

/* The container of a mask has zeros behind its positions.  Where windows imply these, nobody looks
 * at what the container has. */
static void fill_mask(struct trial *t) {
  const struct guarded *g = &t->memory[INDICES];
  memset(guarded_payload(g), problem_implies_indices(&t->problem) ? 0x5a : 0, g->bytes);
}

static void fill_indices(struct trial *t, uint64_t *state) {
  const bool implied = problem_implies_indices(&t->problem);
  const bool forward = implied || (t->problem.index != ANYWHERE && t->problem.index != ONE);
  char *to = guarded_payload(&t->memory[INDICES]);
  if (problem_is_mask(&t->problem)) fill_mask(t);
  if (forward && t->outputs > 0) {
    for (int64_t i = 0; i < t->cells; i++) t->x[i] = integer(state, 1000);
    reference_max_forward(&t->pool, t->x, t->grad_out, t->index); /* grad_out comes later */
  }
  for (int64_t i = 0; i < t->outputs && !implied; i++)
    encode_index(t, change_index(state, t, i), to + trial_place(t, INDICES, i));
  for (int64_t i = 0; i < t->outputs && !implied; i++)
    t->index[i] = trial_decode_index(t, to + trial_place(t, INDICES, i));
}

void trial_fill(struct trial *t) {
  uint64_t state = t->problem.seed;
  if (problem_is_forward(&t->problem)) {
    fill_elements(t, SELF, t->x, &state);
    return;
  }
  if (problem_has_indices(&t->problem)) fill_indices(t, &state);
  fill_elements(t, GRAD_OUT, t->grad_out, &state);
}
