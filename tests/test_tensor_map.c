/* SPDX-License-Identifier: Apache-2.0 */
/* PG_MAP: every function in every class, between all types and layouts, by every method. */
#include "tensor_random_test.h"

enum { OUT, FIRST, SECOND };

static int inputs_of(enum pg_map_function f) {
  switch (f) {
    case PG_MAP_VALUE:
    case PG_MAP_UNIFORM:
    case PG_MAP_NORMAL:
    case PG_MAP_RANDOM:
      return 0;
    case PG_MAP_ADD:
    case PG_MAP_MUL:
    case PG_MAP_DIV:
    case PG_MAP_AND:
    case PG_MAP_EQ:
    case PG_MAP_NE:
    case PG_MAP_LT:
    case PG_MAP_LE:
    case PG_MAP_GT:
    case PG_MAP_GE:
    case PG_MAP_IS_CLOSE:
    case PG_MAP_SET_WHERE:
    case PG_MAP_PASS:
      return 2;
    default:
      return 1;
  }
}

static bool is_random(enum pg_map_function f) { return f >= PG_MAP_UNIFORM; }

/* Quotients and roots are of reals, bits of integers. */
static bool is_defined(enum pg_map_function f, enum pg_class c) {
  if (f == PG_MAP_AND || f == PG_MAP_AND_VALUE || f == PG_MAP_RANDOM) return c == PG_CLASS_INT;
  if (f == PG_MAP_DIV || f == PG_MAP_DIV_VALUE || f == PG_MAP_SQRT || f == PG_MAP_IS_CLOSE ||
      f == PG_MAP_UNIFORM || f == PG_MAP_NORMAL)
    return c != PG_CLASS_INT;
  return true;
}

static aclDataType draw_type(uint64_t *state) {
  return tensor_types[tensor_draw(state, TENSOR_TYPES)];
}

/* --- The arguments --- */

static void draw_scalars(uint64_t *state, struct pg_map *m) {
  double real[2];
  int64_t integer[2];
  for (int i = 0; i < 2; i++) {
    tensor_draw_element(state, ACL_DOUBLE, &real[i]);
    tensor_draw_element(state, ACL_INT64, &integer[i]);
  }
  m->flag = tensor_chance(state, 2);
  if (m->class_of == PG_CLASS_INT) {
    m->s.integer = integer[0];
    m->t.integer = integer[1];
  } else {
    m->s.real = real[0];
    m->t.real = real[1];
  }
}

/* What the operators see to. */
static void limit_scalars(uint64_t *state, struct pg_map *m) {
  static const double tolerances[] = {0, 1e-5, 0.125, 1e300};
  static const int64_t exponents[] = {0, 1, 2, 3, 7, 63, 64};
  if (m->function == PG_MAP_IS_CLOSE) {
    m->s.real = tolerances[tensor_draw(state, 4)];
    m->t.real = tolerances[tensor_draw(state, 4)];
  }
  if (m->function == PG_MAP_POW_VALUE && m->class_of == PG_CLASS_INT)
    m->s.integer = exponents[tensor_draw(state, 7)];
  if (m->function == PG_MAP_UNIFORM || m->function == PG_MAP_NORMAL) {
    m->s.real = (double)(tensor_draw(state, 9) - 4);
    m->t.real = m->s.real + (double)tensor_draw(state, 4) * 0.75;
  }
  if (m->function == PG_MAP_NORMAL) m->t.real -= m->s.real; /* a deviation */
  if (m->function == PG_MAP_RANDOM) {
    const int64_t other = m->t.integer;
    if (m->s.integer > other) m->t.integer = m->s.integer;
    if (m->s.integer > other) m->s.integer = other;
    if (m->s.integer == m->t.integer) m->s.integer = m->t.integer - (m->t.integer > INT64_MIN);
    if (m->s.integer == m->t.integer) m->t.integer++;
  }
}

static enum pg_class draw_class(uint64_t *state, enum pg_map_function f) {
  enum pg_class c;
  do c = (enum pg_class)tensor_draw(state, 3);
  while (!is_defined(f, c));
  return c;
}

/* A copy has the class of its input, or doubles for any real. */
static void draw_types(uint64_t *state, const struct pg_map *m, aclDataType types[3]) {
  for (int i = 0; i < 3; i++) types[i] = draw_type(state);
  if (tensor_chance(state, 3)) types[FIRST] = types[OUT];
  while (m->function == PG_MAP_COPY && tensor_class(types[FIRST]) != m->class_of)
    types[FIRST] = draw_type(state);
  if (m->function == PG_MAP_COPY && tensor_chance(state, 3)) types[OUT] = types[FIRST];
  while ((m->function == PG_MAP_UNIFORM || m->function == PG_MAP_NORMAL) &&
         tensor_class(types[OUT]) != m->class_of)
    types[OUT] = draw_type(state);
  if (m->function == PG_MAP_SET_WHERE)
    types[SECOND] = tensor_chance(state, 2) ? ACL_BOOL : ACL_UINT8;
}

/* --- A problem --- */

static size_t address_at(int operand) {
  const size_t view =
      operand == OUT
          ? offsetof(struct pg_map, out)
          : offsetof(struct pg_map, in) + (size_t)(operand - FIRST) * sizeof(struct pg_tensor_view);
  return view + offsetof(struct pg_tensor_view, address);
}

static void add_sides(struct tensor_trial *t, uint64_t *state, const struct pg_map *m,
                      const struct pg_shape *shape) {
  static const char *const names[] = {"out", "the first input", "the second input"};
  aclDataType types[3];
  draw_types(state, m, types);
  for (int i = 0; i <= m->inputs; i++) {
    struct tensor_side s = {.name = names[i], .dtype = types[i], .shared_with = -1};
    s.is_written = i == OUT;
    s.address_at = address_at(i);
    tensor_draw_layout(state, shape, i == OUT ? TENSOR_APART : TENSOR_ANY, &s);
    if (i > OUT && s.dtype == types[OUT] && tensor_chance(state, 3)) { /* in place */
      memcpy(s.strides, t->side[OUT].strides, sizeof s.strides);
      s.offset = t->side[OUT].offset;
      s.elements = t->side[OUT].elements;
      s.shared_with = OUT;
    }
    tensor_trial_add(t, &s);
  }
}

/* As an operator does, the axes are sorted first or not. */
static void lay_out(struct tensor_trial *t, uint64_t *state, struct pg_shape shape) {
  struct pg_map *m = &t->problem.args.map;
  struct pg_tensor_view *views[] = {&m->out, &m->in[0], &m->in[1]};
  int64_t *strides[3], bytes = 0;
  for (int i = 0; i < t->sides; i++) {
    views[i]->dtype = t->side[i].dtype;
    memcpy(views[i]->strides, t->side[i].strides, sizeof views[i]->strides);
    strides[i] = views[i]->strides;
    bytes += (int64_t)tensor_bytes(t->side[i].dtype);
  }
  if (!is_random(m->function) && tensor_chance(state, 2)) pg_sort_axes(&shape, strides, t->sides);
  pg_lay_grid(&m->grid, &shape, strides, t->sides);
  t->problem.dtype = m->out.dtype;
  t->problem.facts.bytes = m->grid.count * bytes;
}

static void expect(struct tensor_trial *t, const struct pg_shape *shape) {
  const struct pg_map *m = &t->problem.args.map;
  const int64_t count = pg_positions(shape);
  for (int64_t i = 0; i < count; i++) {
    union pg_number x[3] = {{.integer = 0}};
    for (int k = FIRST; k < t->sides; k++) {
      const struct tensor_side *s = &t->side[k];
      const struct tensor_side *owner = s->shared_with >= 0 ? &t->side[s->shared_with] : s;
      x[k] = reference_load(m->class_of, s->dtype,
                            tensor_trial_element(owner, tensor_offset(shape, s->strides, i)));
    }
    char *to = tensor_trial_expect(&t->side[OUT], tensor_offset(shape, t->side[OUT].strides, i));
    reference_store(m->class_of, reference_map(m, x[FIRST], x[SECOND], i), t->side[OUT].dtype, to);
  }
}

static bool make_with(struct tensor_trial *t, enum pg_map_function f, uint64_t seed, int64_t most) {
  uint64_t state = seed;
  const struct pg_shape shape = tensor_draw_shape(&state, most);
  struct pg_map *m = &t->problem.args.map;
  *m = (struct pg_map){.function = f,
                       .class_of = draw_class(&state, f),
                       .inputs = inputs_of(f),
                       .seed = problem_next(&state),
                       .offset = problem_next(&state)};
  t->problem.kernel = PG_MAP;
  draw_scalars(&state, m);
  limit_scalars(&state, m);
  add_sides(t, &state, m, &shape);
  lay_out(t, &state, shape);
  if (!tensor_trial_fill(t, &state)) return false;
  expect(t, &shape);
  return true;
}

static bool make(struct tensor_trial *t, uint64_t seed, int64_t most) {
  uint64_t state = ~seed;
  return make_with(t, (enum pg_map_function)tensor_draw(&state, PG_MAP_FUNCTIONS), seed, most);
}

/* Which a copy is one in many of, but most of what there is. */
static bool make_copy(struct tensor_trial *t, uint64_t seed, int64_t most) {
  return make_with(t, seed % 4 == 0 ? PG_MAP_VALUE : PG_MAP_COPY, seed, most);
}

/* --- The tests --- */

static void every_function_gives_what_the_reference_gives(void **state) {
  (void)state;
  static const int threads[] = {0};
  for (int f = 0; f < PG_MAP_FUNCTIONS; f++)
    for (uint64_t i = 0; i < 12; i++) {
      struct tensor_trial t = {.sides = 0};
      assert_true(make_with(&t, (enum pg_map_function)f, i * 1000 + (uint64_t)f, 400));
      const bool good = tensor_trial_run(&t, &devices, threads, 1);
      tensor_trial_free(&t);
      if (!good) fail_msg("function %d, problem %d: %s", f, (int)i, t.why);
    }
}

static void random_maps_are_right(void **state) {
  (void)state;
  tensor_try_many(make);
}

static void random_copies_and_fills_are_right(void **state) {
  (void)state;
  tensor_try_many(make_copy);
}

static void threads_do_not_change_maps(void **state) {
  (void)state;
  tensor_try_threads(make, 8);
  tensor_try_threads(make_copy, 4);
}

int main(int argc, char **argv) {
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_function_gives_what_the_reference_gives),
      cmocka_unit_test(random_maps_are_right),
      cmocka_unit_test(random_copies_and_fills_are_right),
      cmocka_unit_test(threads_do_not_change_maps),
  };
  return TENSOR_RUN_GROUPS(tests);
}
