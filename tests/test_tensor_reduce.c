/* SPDX-License-Identifier: Apache-2.0 */
/* PG_REDUCE: every function in every class, between all types and layouts, by every method, with
 * sums in the order that is stated. */
#include "tensor_random_test.h"

enum { OUT, IN, INDEX };

/* Which axes of a shape are reduced. */
struct split {
  struct pg_shape all, outer, inner;
  bool is_inner[PG_GRID_AXES];
};

static struct split split_shape(uint64_t *state, struct pg_shape all) {
  struct split s = {.all = all};
  for (int i = 0; i < all.rank; i++) {
    struct pg_shape *part = &s.outer;
    s.is_inner[i] = tensor_chance(state, 2);
    if (s.is_inner[i]) part = &s.inner;
    part->dims[part->rank++] = all.dims[i];
  }
  return s;
}

/* The strides along the axes that are reduced, or along the others. */
static void strides_of(const struct split *s, const int64_t *all, bool inner, int64_t *strides) {
  int at = 0;
  for (int i = 0; i < s->all.rank; i++)
    if (s->is_inner[i] == inner) strides[at++] = all[i];
}

static aclDataType draw_type(uint64_t *state) {
  return tensor_types[tensor_draw(state, TENSOR_TYPES)];
}

static void add_sides(struct tensor_trial *t, uint64_t *state, const struct split *s,
                      bool has_index) {
  const size_t address = offsetof(struct pg_tensor_view, address);
  struct tensor_side out = {.name = "out", .is_written = true, .shared_with = -1};
  struct tensor_side in = {.name = "in", .shared_with = -1};
  struct tensor_side index = {.name = "index", .is_written = true, .shared_with = -1};
  in.dtype = draw_type(state);
  out.dtype = tensor_chance(state, 2) ? in.dtype : draw_type(state);
  index.dtype = tensor_chance(state, 2) ? ACL_INT32 : ACL_INT64;
  out.address_at = offsetof(struct pg_reduce, out) + address;
  in.address_at = offsetof(struct pg_reduce, in) + address;
  index.address_at = offsetof(struct pg_reduce, index) + address;
  tensor_draw_layout(state, &s->outer, TENSOR_APART, &out);
  tensor_draw_layout(state, &s->all, TENSOR_ANY, &in);
  tensor_draw_layout(state, &s->outer, TENSOR_APART, &index);
  tensor_trial_add(t, &out);
  tensor_trial_add(t, &in);
  if (has_index) tensor_trial_add(t, &index);
}

static void lay_out(struct tensor_trial *t, const struct split *s) {
  struct pg_reduce *r = &t->problem.args.reduce;
  int64_t *outer[] = {r->out.strides, r->in.strides, r->index.strides};
  int64_t *inner[] = {r->inner_strides};
  r->out.dtype = t->side[OUT].dtype;
  r->in.dtype = t->side[IN].dtype;
  memcpy(r->out.strides, t->side[OUT].strides, sizeof r->out.strides);
  strides_of(s, t->side[IN].strides, false, r->in.strides);
  strides_of(s, t->side[IN].strides, true, r->inner_strides);
  if (t->sides > INDEX) {
    r->index.dtype = t->side[INDEX].dtype;
    memcpy(r->index.strides, t->side[INDEX].strides, sizeof r->index.strides);
  }
  pg_lay_grid(&r->grid, &s->outer, outer, 3);
  pg_lay_grid(&r->inner, &s->inner, inner, 1);
  t->problem.dtype = r->in.dtype;
  t->problem.facts.bytes = r->grid.count * r->inner.count * (int64_t)tensor_bytes(r->in.dtype);
}

static void expect_output(struct tensor_trial *t, const struct split *s, int64_t output,
                          union pg_number *x) {
  const struct pg_reduce *r = &t->problem.args.reduce;
  const struct tensor_side *in = &t->side[IN];
  int64_t inner_strides[PG_GRID_AXES], outer_strides[PG_GRID_AXES], position;
  strides_of(s, in->strides, true, inner_strides);
  strides_of(s, in->strides, false, outer_strides);
  const int64_t begin = tensor_offset(&s->outer, outer_strides, output);
  const int64_t count = pg_positions(&s->inner);
  for (int64_t i = 0; i < count; i++)
    x[i] = reference_load(
        r->class_of, in->dtype,
        tensor_trial_element(in, begin + tensor_offset(&s->inner, inner_strides, i)));
  const union pg_number n = reference_reduce(r, x, count, &position);
  for (int side = OUT; side < t->sides; side += INDEX) {
    struct tensor_side *to = &t->side[side];
    char *element = tensor_trial_expect(to, tensor_offset(&s->outer, to->strides, output));
    if (side == OUT)
      reference_store(r->class_of, n, to->dtype, element);
    else
      reference_store(PG_CLASS_INT, (union pg_number){.integer = position}, to->dtype, element);
  }
}

static bool expect(struct tensor_trial *t, const struct split *s) {
  const int64_t outputs = pg_positions(&s->outer);
  union pg_number *x = malloc((size_t)pg_positions(&s->inner) * sizeof *x);
  for (int64_t i = 0; i < outputs && x != NULL; i++) expect_output(t, s, i, x);
  free(x);
  return x != NULL;
}

static bool make_of(struct tensor_trial *t, const struct split *s, uint64_t *state) {
  struct pg_reduce *r = &t->problem.args.reduce;
  *r = (struct pg_reduce){
      .function = (enum pg_reduce_function)tensor_draw(state, PG_REDUCE_FUNCTIONS),
      .class_of = (enum pg_class)tensor_draw(state, 3),
      .divisor = 1};
  t->problem.kernel = PG_REDUCE;
  t->workspace_at = offsetof(struct pg_reduce, partial);
  const bool is_mean = r->function == PG_REDUCE_SUM && r->class_of != PG_CLASS_INT;
  if (is_mean && tensor_chance(state, 2)) r->divisor = pg_positions(&s->inner);
  add_sides(
      t, state, s,
      (r->function == PG_REDUCE_MAX || r->function == PG_REDUCE_MIN) && tensor_chance(state, 2));
  lay_out(t, s);
  return tensor_trial_fill(t, state) && expect(t, s);
}

static bool make(struct tensor_trial *t, uint64_t seed, int64_t most) {
  uint64_t state = seed;
  const struct split s = split_shape(&state, tensor_draw_shape(&state, most));
  return make_of(t, &s, &state);
}

/* Few outputs of many blocks, which are cut into chunks; and blocks of blocks. */
static bool make_long(struct tensor_trial *t, uint64_t seed, int64_t most) {
  static const int64_t lengths[] = {32768,  32769,   33792,   65535,  65537,
                                    100001, 1048576, 1048577, 2000003};
  uint64_t state = seed;
  struct split s = {.all = {.rank = 2}};
  (void)most;
  s.all.dims[1] = lengths[tensor_draw(&state, 9)];
  s.all.dims[0] = s.all.dims[1] > 200000 ? 1 : 1 + tensor_draw(&state, 3);
  const int inner = tensor_chance(&state, 3) ? 0 : 1; /* either may be the faster one in memory */
  s.is_inner[inner] = true;
  if (inner == 0) {
    const int64_t kept = s.all.dims[0];
    s.all.dims[0] = s.all.dims[1];
    s.all.dims[1] = kept;
  }
  s.inner = (struct pg_shape){.rank = 1, .dims = {s.all.dims[inner]}};
  s.outer = (struct pg_shape){.rank = 1, .dims = {s.all.dims[1 - inner]}};
  return make_of(t, &s, &state);
}

/* --- The tests --- */

static void random_reductions_are_right(void **state) {
  (void)state;
  tensor_try_many(make);
}

static void long_reductions_are_right(void **state) {
  (void)state;
  static const int threads[] = {1, 2};
  for (uint64_t seed = 0; seed < 24; seed++)
    assert_true(tensor_try(make_long, seed, 0, threads, 2));
}

static void threads_do_not_change_reductions(void **state) {
  (void)state;
  tensor_try_threads(make, 8);
}

/* More blocks than scratch memory has room for, of one element that is repeated: 1/3 is added up
 * and divided again.  There are enough outputs for all threads. */
static void an_output_may_have_more_blocks_than_scratch_memory(void **state) {
  (void)state;
  enum { LENGTH = 17 << 20, OUTPUTS = 33 };
  static const int threads[] = {0};
  struct split s = {.all = {.rank = 2, .dims = {OUTPUTS, LENGTH}},
                    .outer = {.rank = 1, .dims = {OUTPUTS}},
                    .inner = {.rank = 1, .dims = {LENGTH}},
                    .is_inner = {false, true}};
  struct tensor_trial t = {.problem.kernel = PG_REDUCE,
                           .workspace_at = offsetof(struct pg_reduce, partial)};
  const size_t address = offsetof(struct pg_tensor_view, address);
  uint64_t random = 1;
  t.problem.args.reduce =
      (struct pg_reduce){.function = PG_REDUCE_SUM, .class_of = PG_CLASS_FLOAT, .divisor = LENGTH};
  tensor_trial_add(&t,
                   &(struct tensor_side){.name = "out",
                                         .dtype = ACL_FLOAT,
                                         .strides = {1},
                                         .elements = OUTPUTS,
                                         .is_written = true,
                                         .shared_with = -1,
                                         .address_at = offsetof(struct pg_reduce, out) + address});
  tensor_trial_add(&t,
                   &(struct tensor_side){.name = "in",
                                         .dtype = ACL_FLOAT,
                                         .elements = 1,
                                         .shared_with = -1,
                                         .address_at = offsetof(struct pg_reduce, in) + address});
  lay_out(&t, &s);
  assert_true(tensor_trial_fill(&t, &random));
  const float third = 1.0f / 3;
  memcpy(guarded_payload(&t.side[IN].memory), &third, sizeof third);
  memcpy(t.side[IN].expected, &third, sizeof third);
  union pg_number *x = malloc(LENGTH * sizeof *x);
  assert_non_null(x);
  expect_output(&t, &s, 0, x);
  free(x);
  const char *first = t.side[OUT].expected;
  for (int i = 1; i < OUTPUTS; i++)
    memcpy(tensor_trial_expect(&t.side[OUT], i), first, sizeof(float));
  const bool good = tensor_trial_run(&t, &devices, threads, 1);
  tensor_trial_free(&t);
  if (!good) fail_msg("%s", t.why);
}

int main(int argc, char **argv) {
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_reductions_are_right),
      cmocka_unit_test(long_reductions_are_right),
      cmocka_unit_test(threads_do_not_change_reductions),
      cmocka_unit_test(an_output_may_have_more_blocks_than_scratch_memory),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
