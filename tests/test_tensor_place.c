/* SPDX-License-Identifier: Apache-2.0 */
/* PG_GATHER, PG_UNPOOL and PG_SELECT, which move elements to where indices or a mask say: all
 * types, layouts and numbers of indices outside, by every method. */
#include "tensor_random_test.h"

enum { OUT, IN, PLACE /* the indices or the mask */ };

static const size_t address_in_view = offsetof(struct pg_tensor_view, address);

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

static aclDataType draw_type(uint64_t *state) {
  return tensor_types[tensor_draw(state, TENSOR_TYPES)];
}

static struct tensor_side draw_index_side(uint64_t *state) {
  const aclDataType dtype = tensor_chance(state, 2) ? ACL_INT32 : ACL_INT64;
  return (struct tensor_side){.name = "index", .dtype = dtype, .shared_with = -1};
}

/* Elements that follow each other, behind some that are not looked at.  Where there is none there
 * is an address all the same. */
static void lay_in_a_row(uint64_t *state, int64_t count, struct tensor_side *side) {
  side->strides[0] = 1;
  side->offset = tensor_chance(state, 2) ? tensor_draw(state, 9) : 0;
  side->elements = larger(side->offset + count, 1);
}

/* --- What the tensors hold --- */

/* The input must be as it was in the end. */
static void put(struct tensor_side *side, int64_t at, const void *element) {
  const size_t bytes = tensor_bytes(side->dtype), from = (size_t)at * bytes;
  memcpy(guarded_payload(&side->memory) + from, element, bytes);
  memcpy(side->expected + from, element, bytes);
}

/* Elements are moved as they are, whatever their bits mean: BOOLs too that are neither 0 nor 1. */
static void put_any_bits(struct tensor_side *side, uint64_t *state) {
  for (int64_t i = 0; i < side->elements; i++) {
    const uint64_t bits = problem_next(state);
    put(side, i, &bits);
  }
}

/* Names one of `count` places, but for one in `odds`; 0: never.  Some of those that do not would if
 * their high half were lost. */
static int64_t draw_index(uint64_t *state, int64_t count, int64_t odds) {
  if (count > 0 && (odds == 0 || !tensor_chance(state, odds))) return tensor_draw(state, count);
  switch (tensor_draw(state, 6)) {
    case 0:
      return count;
    case 1:
      return -1;
    case 2:
      return -count;
    case 3:
      return tensor_chance(state, 2) ? INT64_MIN : INT64_MAX;
    case 4:
      return (INT64_C(1) << 32) * (1 + tensor_draw(state, 3)) + tensor_draw(state, count + 1);
    default:
      return (int64_t)problem_next(state);
  }
}

/* A GPU's blocks tell of what they have found one after the other, which takes long if all of a
 * large problem's do. */
static void put_indices(struct tensor_side *side, uint64_t *state, int64_t count) {
  static const int64_t odds[] = {0, 0, 1000, 50, 2};
  const int64_t drawn = odds[tensor_draw(state, 5)];
  const int64_t bad = drawn > 0 && side->elements > 200000 ? 20000 : drawn;
  for (int64_t i = 0; i < side->elements; i++) {
    const int64_t index = draw_index(state, count, bad);
    put(side, i, &index); /* of an INT32 the low half, as every processor here has it first */
  }
}

static void put_mask(struct tensor_side *side, uint64_t *state) {
  static const int64_t odds[] = {1, 2, 2, 10, 3000, INT64_C(1) << 40};
  const int64_t set = odds[tensor_draw(state, 6)];
  for (int64_t i = 0; i < side->elements; i++) {
    uint64_t element = 0;
    if (tensor_chance(state, set)) {
      element = 1 + problem_next(state) % 255;
      if (tensor_bytes(side->dtype) > 1) tensor_draw_element(state, side->dtype, &element);
    }
    put(side, i, &element);
  }
}

static int64_t index_at(const struct tensor_trial *t, int64_t at) {
  const struct tensor_side *side = &t->side[PLACE];
  return reference_load(PG_CLASS_INT, side->dtype, tensor_trial_element(side, at)).integer;
}

/* Is the index outside?  Then it is in the report; they come by rising position. */
static bool is_outside(struct tensor_trial *t, int64_t index, int64_t count, int64_t position) {
  if (index >= 0 && index < count) return false;
  if (t->report.count++ == 0) {
    t->report.position = position;
    t->report.value = index;
  }
  return true;
}

static void expect_element(struct tensor_trial *t, int64_t to, const void *element) {
  struct tensor_side *out = &t->side[OUT];
  memcpy(tensor_trial_expect(out, to), element, tensor_bytes(out->dtype));
}

static const uint64_t zero;

/* --- Gathering --- */

/* The input has another length along one axis, but not many more elements for it; where there is no
 * axis it has one all the same. */
struct gathered {
  struct pg_shape shape, in;
  int axis;
};

static struct gathered draw_gathered(uint64_t *state, int64_t most) {
  struct gathered g = {.shape = tensor_draw_shape(state, most)};
  g.in = g.shape;
  if (g.in.rank == 0) g.in.rank = 1;
  g.axis = (int)tensor_draw(state, g.in.rank);
  g.in.dims[g.axis] = 1;
  const int64_t longest = larger(least(3 * most / pg_positions(&g.in), 40), 1);
  g.in.dims[g.axis] = tensor_chance(state, 20) ? 0 : 1 + tensor_draw(state, longest);
  return g;
}

/* An input without elements has an address all the same. */
static void lay_gathered(uint64_t *state, const struct gathered *g, struct tensor_side *in) {
  if (g->in.dims[g->axis] > 0)
    tensor_draw_layout(state, &g->in, TENSOR_ANY, in);
  else
    in->elements = 1;
}

static void add_gather_sides(struct tensor_trial *t, uint64_t *state, const struct gathered *g) {
  const aclDataType dtype = draw_type(state);
  struct tensor_side out = {.name = "out", .dtype = dtype, .is_written = true, .shared_with = -1};
  struct tensor_side in = {.name = "in", .dtype = dtype, .shared_with = -1};
  struct tensor_side index = draw_index_side(state);
  out.address_at = offsetof(struct pg_gather, out) + address_in_view;
  in.address_at = offsetof(struct pg_gather, in) + address_in_view;
  index.address_at = offsetof(struct pg_gather, index) + address_in_view;
  tensor_draw_layout(state, &g->shape, TENSOR_APART, &out);
  tensor_draw_layout(state, &g->shape, TENSOR_ANY, &index);
  lay_gathered(state, g, &in);
  tensor_trial_add(t, &out);
  tensor_trial_add(t, &in);
  tensor_trial_add(t, &index);
}

static void lay_out_gather(struct tensor_trial *t, const struct gathered *g) {
  struct pg_gather *a = &t->problem.args.gather;
  struct pg_tensor_view *views[] = {&a->out, &a->in, &a->index};
  int64_t *strides[] = {a->out.strides, a->in.strides, a->index.strides};
  for (int i = OUT; i <= PLACE; i++) {
    views[i]->dtype = t->side[i].dtype;
    memcpy(views[i]->strides, t->side[i].strides, sizeof views[i]->strides);
  }
  a->length = g->in.dims[g->axis];
  a->axis_stride = a->in.strides[g->axis];
  a->in.strides[g->axis] = 0;
  pg_lay_grid(&a->grid, &g->shape, strides, 3);
  t->problem.dtype = a->in.dtype;
  t->problem.facts.bytes = a->grid.count * (int64_t)(2 * tensor_bytes(a->in.dtype) + 8);
}

static void expect_gathered(struct tensor_trial *t, const struct gathered *g) {
  const struct tensor_side *in = &t->side[IN];
  const int64_t count = pg_positions(&g->shape), stride = in->strides[g->axis];
  int64_t others[PG_GRID_AXES];
  memcpy(others, in->strides, sizeof others);
  others[g->axis] = 0;
  for (int64_t i = 0; i < count; i++) {
    const int64_t index = index_at(t, tensor_offset(&g->shape, t->side[PLACE].strides, i));
    const int64_t to = tensor_offset(&g->shape, t->side[OUT].strides, i);
    if (is_outside(t, index, g->in.dims[g->axis], i))
      expect_element(t, to, &zero);
    else
      expect_element(
          t, to, tensor_trial_element(in, tensor_offset(&g->shape, others, i) + index * stride));
  }
}

static bool make_gather(struct tensor_trial *t, uint64_t seed, int64_t most) {
  uint64_t state = seed;
  const struct gathered g = draw_gathered(&state, most);
  t->problem.kernel = PG_GATHER;
  t->reports = true;
  add_gather_sides(t, &state, &g);
  lay_out_gather(t, &g);
  if (!tensor_trial_fill(t, &state)) return false;
  put_any_bits(&t->side[IN], &state);
  put_indices(&t->side[PLACE], &state, g.in.dims[g.axis]);
  expect_gathered(t, &g);
  return true;
}

/* --- Unpooling --- */

static void draw_planes(uint64_t *state, int64_t most, struct pg_unpool *u) {
  static const int64_t lengths[] = {1, 2, 3, 31, 32, 33, 100, 1023, 1024, 1025, 2100, 5000};
  int64_t length[2];
  for (int i = 0; i < 2; i++) {
    length[i] = least(lengths[tensor_draw(state, 12)], most);
    if (tensor_chance(state, 3)) length[i] = 1 + tensor_draw(state, most);
  }
  u->outputs = tensor_chance(state, 40) ? 0 : length[0];
  u->cells = tensor_chance(state, 40) ? 0 : length[1];
  u->planes = 1 + tensor_draw(state, larger(most / larger(length[0], length[1]), 1));
  if (tensor_chance(state, 4)) u->planes = larger(u->planes / 2, 1);
}

static bool fill_unpool(struct tensor_trial *t, uint64_t *state) {
  struct pg_unpool *u = &t->problem.args.unpool;
  const int64_t in_count = u->planes * u->outputs;
  struct tensor_side out = {
      .name = "out", .dtype = draw_type(state), .is_written = true, .shared_with = -1};
  struct tensor_side in = {.name = "in", .dtype = out.dtype, .shared_with = -1};
  struct tensor_side index = draw_index_side(state);
  t->problem.kernel = PG_UNPOOL;
  t->problem.dtype = u->dtype = out.dtype;
  u->index_dtype = index.dtype;
  t->problem.facts.bytes =
      u->planes * (u->outputs + u->cells) * (int64_t)tensor_bytes(u->dtype) + 8 * in_count;
  t->workspace_at = offsetof(struct pg_unpool, winners);
  t->reports = true;
  out.address_at = offsetof(struct pg_unpool, out);
  in.address_at = offsetof(struct pg_unpool, in);
  index.address_at = offsetof(struct pg_unpool, index);
  lay_in_a_row(state, u->planes * u->cells, &out);
  lay_in_a_row(state, in_count, &in);
  lay_in_a_row(state, in_count, &index);
  tensor_trial_add(t, &out);
  tensor_trial_add(t, &in);
  tensor_trial_add(t, &index);
  if (!tensor_trial_fill(t, state)) return false;
  put_any_bits(&t->side[IN], state);
  return true;
}

static void expect_unpooled(struct tensor_trial *t) {
  const struct pg_unpool *u = &t->problem.args.unpool;
  for (int64_t i = 0; i < u->planes * u->cells; i++) expect_element(t, i, &zero);
  for (int64_t i = 0; i < u->planes * u->outputs; i++) {
    const int64_t index = index_at(t, i), plane = i / u->outputs;
    if (!is_outside(t, index, u->cells, i))
      expect_element(t, plane * u->cells + index, tensor_trial_element(&t->side[IN], i));
  }
}

/* Where there are more outputs than cells, and often elsewhere, several name one cell. */
static bool make_unpool(struct tensor_trial *t, uint64_t seed, int64_t most) {
  uint64_t state = seed;
  struct pg_unpool *u = &t->problem.args.unpool;
  draw_planes(&state, most, u);
  if (!fill_unpool(t, &state)) return false;
  const int64_t few = tensor_chance(&state, 3) ? least(u->cells, 3) : u->cells;
  put_indices(&t->side[PLACE], &state, few);
  expect_unpooled(t);
  return true;
}

/* Large planes, but few. */
static bool make_large_unpool(struct tensor_trial *t, uint64_t seed, int64_t most) {
  uint64_t state = seed;
  struct pg_unpool *u = &t->problem.args.unpool;
  u->planes = 1 + tensor_draw(&state, 3);
  u->cells = most / u->planes;
  u->outputs = u->cells / (1 + tensor_draw(&state, 4));
  if (!fill_unpool(t, &state)) return false;
  put_indices(&t->side[PLACE], &state, u->cells);
  expect_unpooled(t);
  return true;
}

/* --- Selecting --- */

static void add_select_sides(struct tensor_trial *t, uint64_t *state,
                             const struct pg_shape *shape) {
  const aclDataType dtype = draw_type(state);
  struct tensor_side out = {.name = "out", .dtype = dtype, .is_written = true, .shared_with = -1};
  struct tensor_side in = {.name = "in", .dtype = dtype, .shared_with = -1};
  struct tensor_side mask = {.name = "mask", .shared_with = -1};
  mask.dtype = tensor_chance(state, 5)   ? draw_type(state)
               : tensor_chance(state, 2) ? ACL_BOOL
                                         : ACL_UINT8;
  out.address_at = offsetof(struct pg_select, out);
  in.address_at = offsetof(struct pg_select, in) + address_in_view;
  mask.address_at = offsetof(struct pg_select, mask) + address_in_view;
  lay_in_a_row(state, pg_positions(shape), &out);
  tensor_draw_layout(state, shape, TENSOR_ANY, &in);
  tensor_draw_layout(state, shape, TENSOR_ANY, &mask);
  tensor_trial_add(t, &out);
  tensor_trial_add(t, &in);
  tensor_trial_add(t, &mask);
}

static void lay_out_select(struct tensor_trial *t, const struct pg_shape *shape) {
  struct pg_select *a = &t->problem.args.select;
  int64_t *strides[] = {a->in.strides, a->mask.strides};
  a->in.dtype = t->side[IN].dtype;
  a->mask.dtype = t->side[PLACE].dtype;
  memcpy(a->in.strides, t->side[IN].strides, sizeof a->in.strides);
  memcpy(a->mask.strides, t->side[PLACE].strides, sizeof a->mask.strides);
  pg_lay_grid(&a->grid, shape, strides, 2);
  t->problem.kernel = PG_SELECT;
  t->problem.dtype = a->in.dtype;
  t->problem.facts.bytes = a->grid.count * (int64_t)(2 * tensor_bytes(a->in.dtype) + 1);
  t->workspace_at = offsetof(struct pg_select, counts);
  t->reports = true;
  t->report = (struct pg_index_report){.count = 1};
}

static void expect_selected(struct tensor_trial *t, const struct pg_shape *shape) {
  const struct tensor_side *in = &t->side[IN], *mask = &t->side[PLACE];
  const int64_t count = pg_positions(shape);
  for (int64_t i = 0; i < count; i++) {
    const char *set = tensor_trial_element(mask, tensor_offset(shape, mask->strides, i));
    if (reference_load(PG_CLASS_DOUBLE, mask->dtype, set).real == 0) continue;
    expect_element(t, t->report.value++,
                   tensor_trial_element(in, tensor_offset(shape, in->strides, i)));
  }
}

static bool make_select(struct tensor_trial *t, uint64_t seed, int64_t most) {
  uint64_t state = seed;
  const struct pg_shape shape = tensor_draw_shape(&state, most);
  add_select_sides(t, &state, &shape);
  lay_out_select(t, &shape);
  if (!tensor_trial_fill(t, &state)) return false;
  put_any_bits(&t->side[IN], &state);
  put_mask(&t->side[PLACE], &state);
  expect_selected(t, &shape);
  return true;
}

/* --- The tests --- */

static void random_gathers_are_right(void **state) {
  (void)state;
  tensor_try_many(make_gather);
}

static void random_unpoolings_are_right(void **state) {
  (void)state;
  tensor_try_many(make_unpool);
}

static void random_selections_are_right(void **state) {
  (void)state;
  tensor_try_many(make_select);
}

static void threads_do_not_change_where_elements_go(void **state) {
  (void)state;
  tensor_try_threads(make_gather, 8);
  tensor_try_threads(make_unpool, 8);
  tensor_try_threads(make_large_unpool, 4);
  tensor_try_threads(make_select, 8);
}

static void large_problems_are_right(void **state) {
  (void)state;
  enum { MOST = 1500000 };
  static const int threads[] = {0};
  static tensor_make_fn *const makes[] = {make_gather, make_large_unpool, make_select};
  for (int i = 0; i < 3; i++)
    for (uint64_t seed = 1; seed <= 2; seed++)
      assert_true(tensor_try(makes[i], seed, MOST, threads, 1));
}

/* Nothing is read or written, but it is told that nothing was selected. */
static void of_no_positions_none_is_selected(void **state) {
  (void)state;
  static const int threads[] = {0};
  const struct pg_shape shape = {.rank = 2, .dims = {3, 0}};
  struct tensor_trial t = {.sides = 0};
  lay_out_select(&t, &shape);
  const bool good = tensor_trial_run(&t, &devices, threads, 1);
  tensor_trial_free(&t);
  if (!good) fail_msg("%s", t.why);
}

int main(int argc, char **argv) {
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_gathers_are_right),
      cmocka_unit_test(random_unpoolings_are_right),
      cmocka_unit_test(random_selections_are_right),
      cmocka_unit_test(threads_do_not_change_where_elements_go),
      cmocka_unit_test(large_problems_are_right),
      cmocka_unit_test(of_no_positions_none_is_selected),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
