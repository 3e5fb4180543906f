/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that move elements of tensors of any shape to other places, end to end: gathering,
 * unpooling, selecting, and putting one behind the other.  Indices outside are among them, about
 * which nothing is said here (tests/ops_fixture.h). */
#include "elementwise_reference.h"
#include "operation_random_test.h"

/* As it is in memory. */
static void expect_bits(struct operation_trial *o, int out, int64_t to, const char *element) {
  memcpy(operation_expected(o, out, to), element, tensor_bytes(o->t.side[out].dtype));
}

static const char zero[8];

static int64_t load_index(const struct operation_trial *o, int index, int64_t position) {
  return operation_load(o, index, PG_CLASS_INT, &o->shape[index], position).integer;
}

/* One in `odds` lies outside; 0: none does. */
static void put_indices(struct operation_trial *o, uint64_t *state, int side, int64_t count) {
  const int64_t odds = tensor_chance(state, 3) ? 8 : 0, all = pg_positions(&o->shape[side]);
  for (int64_t i = 0; i < all; i++) {
    int64_t index = count > 0 ? tensor_draw(state, count) : 0;
    if (odds > 0 && tensor_chance(state, odds))
      index = tensor_chance(state, 2) ? count + tensor_draw(state, 3) : -1 - tensor_draw(state, 3);
    operation_put(o, side, i, &index); /* of an INT32 the low half, which comes first */
  }
}

static aclDataType draw_index_type(uint64_t *state) {
  return tensor_chance(state, 2) ? ACL_INT32 : ACL_INT64;
}

/* The arguments name axes from either end. */
static int64_t name_axis(uint64_t *state, int axis, int rank) {
  return tensor_chance(state, 2) ? axis : axis - rank;
}

/* --- aclnnGather --- */

enum { INPUT, INDEX, OUT };

/* Self is as long as the index or longer, and of any length along the axis. */
static struct pg_shape draw_gathered_shape(uint64_t *state, const struct pg_shape *index,
                                           int axis) {
  struct pg_shape self = *index;
  for (int i = 0; i < self.rank; i++)
    if (i == axis)
      self.dims[i] = tensor_draw(state, 12);
    else if (tensor_chance(state, 4) && self.dims[i] < 50)
      self.dims[i] += tensor_draw(state, 3);
  return self;
}

/* The position of self that is named by a position of the index and what stands there. */
static int64_t named_position(const struct pg_shape *self, const struct pg_shape *index, int axis,
                              int64_t position, int64_t named) {
  int64_t found = 0, step = 1;
  for (int i = index->rank - 1; i >= 0; i--) {
    found += (i == axis ? named : position % index->dims[i]) * step;
    position /= index->dims[i];
    step *= self->dims[i];
  }
  return found;
}

static bool make_gather(struct operation_trial *o, enum tensor_operator_id op, uint64_t seed,
                        int64_t most) {
  uint64_t state = seed;
  const aclDataType dtype = operation_draw_type(&state);
  const struct pg_shape shape = operation_draw_shape(&state, most);
  const int axes = shape.rank > 0 ? shape.rank : 1, axis = (int)tensor_draw(&state, axes);
  const struct pg_shape self = draw_gathered_shape(&state, &shape, axis);
  const int64_t length = self.rank > 0 ? self.dims[axis] : 1;
  (void)op;
  o->call.integer[0] = name_axis(&state, axis, axes);
  (void)operation_add_input(o, &state, 0, dtype, &self);
  (void)operation_add_input(o, &state, 1, draw_index_type(&state), &shape);
  (void)operation_add_output(o, &state, 2, dtype, &shape);
  if (!operation_fill(o, &state)) return false;
  put_indices(o, &state, INDEX, length);
  for (int64_t i = 0; i < pg_positions(&shape); i++) {
    const int64_t index = load_index(o, INDEX, i);
    const bool is_inside = index >= 0 && index < length;
    const int64_t from = is_inside ? named_position(&self, &shape, axis, i, index) : 0;
    expect_bits(o, OUT, i, is_inside ? operation_element(o, INPUT, &self, from) : zero);
  }
  return true;
}

/* --- aclnnMaxUnpool2d, aclnnMaxUnpool3d --- */

/* The last axes are those of the cells. */
static void draw_unpooled_shapes(uint64_t *state, struct operation_trial *o, int64_t most,
                                 struct pg_shape *self, struct pg_shape *out) {
  const int spatial = tensor_operators[o->call.op].kind == KIND_UNPOOL2D ? 2 : 3;
  int64_t left = most;
  self->rank = out->rank = spatial + 1 + (int)tensor_draw(state, 2);
  for (int i = 0; i < self->rank; i++) {
    const bool is_spatial = i >= self->rank - spatial;
    out->dims[i] = 1 + tensor_draw(state, is_spatial ? 9 : 4);
    if (left / out->dims[i] == 0) out->dims[i] = 1;
    left /= out->dims[i];
    if (i == self->rank - 1) out->dims[i] += tensor_draw(state, left);
    self->dims[i] = is_spatial ? 1 + tensor_draw(state, out->dims[i]) : out->dims[i];
    if (is_spatial && tensor_chance(state, 8)) self->dims[i] += tensor_draw(state, 3);
  }
  if (tensor_chance(state, 25)) self->dims[self->rank - 1] = 0;
  if (tensor_chance(state, 40)) self->dims[0] = out->dims[0] = 0;
  for (int i = 0; i < ARRAYS_MOST; i++) o->call.a[i].count = (uint64_t)spatial;
  for (int i = 0; i < spatial; i++) {
    o->call.a[0].values[i] = out->dims[out->rank - spatial + i];
    o->call.a[1].values[i] = 1 + tensor_draw(state, 3); /* which nobody looks at */
    o->call.a[2].values[i] = tensor_draw(state, 3);
  }
}

/* Of several that name a cell, the last one stays. */
static void expect_unpooled(struct operation_trial *o, int64_t planes) {
  const int64_t inputs = pg_positions(&o->shape[INPUT]), cells = pg_positions(&o->shape[OUT]);
  for (int64_t i = 0; i < cells; i++) expect_bits(o, OUT, i, zero);
  for (int64_t i = 0; i < inputs && cells > 0; i++) {
    const int64_t index = load_index(o, INDEX, i), plane = i / (inputs / planes);
    if (index >= 0 && index < cells / planes)
      expect_bits(o, OUT, plane * (cells / planes) + index,
                  operation_element(o, INPUT, &o->shape[INPUT], i));
  }
}

static bool make_unpool(struct operation_trial *o, enum tensor_operator_id op, uint64_t seed,
                        int64_t most) {
  uint64_t state = seed * TENSOR_OPERATORS + (uint64_t)op;
  struct pg_shape self = {.rank = 0}, out = {.rank = 0};
  aclDataType dtype;
  int64_t planes = 1;
  do dtype = operation_draw_type(&state);
  while (dtype == ACL_BOOL);
  draw_unpooled_shapes(&state, o, most, &self, &out);
  for (int i = 0; i < out.rank - (int)o->call.a[0].count; i++) planes *= out.dims[i];
  (void)operation_add_input(o, &state, 0, dtype, &self);
  (void)operation_add_input(o, &state, 1, draw_index_type(&state), &self);
  (void)operation_add_output(o, &state, 2, dtype, &out);
  if (!operation_fill(o, &state)) return false;
  put_indices(o, &state, INDEX, planes > 0 ? pg_positions(&out) / planes : 0);
  expect_unpooled(o, planes);
  return true;
}

/* --- aclnnMaskedSelect --- */

enum { MASK = INDEX };

static bool make_select(struct operation_trial *o, enum tensor_operator_id op, uint64_t seed,
                        int64_t most) {
  uint64_t state = seed;
  const aclDataType dtype = operation_draw_type(&state);
  const struct pg_shape shape = operation_draw_shape(&state, most);
  const int64_t count = pg_positions(&shape);
  const struct pg_shape room = {.rank = 1, .dims = {count + tensor_draw(&state, 4)}};
  struct pg_shape pair[2];
  (void)op;
  operation_draw_pair(&state, &shape, pair);
  (void)operation_add_input(o, &state, 0, dtype, &pair[0]);
  (void)operation_add_input(o, &state, 1, tensor_chance(&state, 2) ? ACL_BOOL : ACL_UINT8,
                            &pair[1]);
  (void)operation_add(
      o, &state,
      &(struct operation_tensor){
          .place.number = 2, .dtype = dtype, .shape = room, .is_written = true, .is_dense = true});
  if (!operation_fill(o, &state)) return false;
  o->selects = true;
  for (int64_t i = 0; i < count; i++)
    if (operation_load(o, MASK, PG_CLASS_INT, &shape, i).integer != 0)
      expect_bits(o, OUT, o->selected++, operation_element(o, INPUT, &shape, i));
  return true;
}

/* --- aclnnCat, aclnnStack --- */

enum { PARTS_MOST = 6 };

/* A type that may become out's. */
static aclDataType draw_part_type(uint64_t *state, aclDataType out) {
  aclDataType dtype = out;
  if (tensor_chance(state, 2)) return dtype;
  do dtype = operation_draw_type(state);
  while (!result_may_be(dtype, out) || (out == ACL_BOOL && dtype != ACL_BOOL));
  return dtype;
}

/* Adds the tensors and gives how many; `begins` says where each one begins along the axis, or -1:
 * it is passed over. */
static int add_parts(struct operation_trial *o, uint64_t *state, int axis, struct pg_shape *out,
                     aclDataType dtype, int64_t begins[PARTS_MOST]) {
  static const struct pg_shape nothing = {.rank = 1};
  const int count = (int)tensor_draw(state, PARTS_MOST + 1);
  out->dims[axis] = 0;
  for (int i = 0; i < count; i++) {
    struct operation_tensor part = {.place = {.in_list = true}, .shape = *out};
    part.dtype = draw_part_type(state, dtype);
    part.shape.dims[axis] = tensor_chance(state, 6) ? 0 : 1 + tensor_draw(state, 9);
    begins[i] = out->dims[axis];
    if (tensor_chance(state, 8)) {
      part.shape = nothing;
      begins[i] = -1;
    } else {
      out->dims[axis] += part.shape.dims[axis];
    }
    (void)operation_add(o, state, &part);
  }
  return count;
}

/* They are copied as numbers: a BOOL becomes 0 or 1.  `shape` is the part's, with all axes of
 * out. */
static void expect_part(struct operation_trial *o, int out, int part, const struct pg_shape *shape,
                        int axis, int64_t begin) {
  const struct pg_shape *all = &o->shape[out];
  const enum pg_class c = tensor_class(o->t.side[part].dtype);
  const int64_t count = pg_positions(shape);
  for (int64_t i = 0; i < count; i++) {
    int64_t to = 0, step = 1, left = i;
    for (int k = all->rank - 1; k >= 0; k--) {
      to += (left % shape->dims[k] + (k == axis ? begin : 0)) * step;
      left /= shape->dims[k];
      step *= all->dims[k];
    }
    operation_expect(o, out, to, c, operation_load(o, part, c, &o->shape[part], i));
  }
}

static struct pg_shape draw_shape_with_axes(uint64_t *state, int64_t most) {
  const struct pg_shape shape = operation_draw_shape(state, most);
  return shape.rank > 0 ? shape : (struct pg_shape){.rank = 1, .dims = {1}};
}

static bool make_cat(struct operation_trial *o, enum tensor_operator_id op, uint64_t seed,
                     int64_t most) {
  uint64_t state = seed;
  const aclDataType dtype = operation_draw_type(&state);
  struct pg_shape shape = draw_shape_with_axes(&state, most / 8);
  int64_t begins[PARTS_MOST];
  (void)op;
  const int axis = (int)tensor_draw(&state, shape.rank);
  o->call.integer[0] = name_axis(&state, axis, shape.rank);
  const int parts = add_parts(o, &state, axis, &shape, dtype, begins);
  const int out = operation_add_output(o, &state, 1, dtype, &shape);
  if (!operation_fill(o, &state)) return false;
  for (int i = 0; i < parts; i++)
    if (begins[i] >= 0) expect_part(o, out, i, &o->shape[i], axis, begins[i]);
  return true;
}

/* The parts have all axes but one, along which out has one place for each of them. */
static bool make_stack(struct operation_trial *o, enum tensor_operator_id op, uint64_t seed,
                       int64_t most) {
  uint64_t state = seed;
  const struct pg_shape shape = draw_shape_with_axes(&state, most / 8);
  const int axis = (int)tensor_draw(&state, shape.rank), parts = (int)tensor_draw(&state, 6) + 1;
  struct pg_shape all = shape, one = shape;
  struct operation_tensor part = {.place = {.in_list = true}};
  const aclDataType dtype = operation_draw_type(&state);
  (void)op;
  o->call.integer[0] = name_axis(&state, axis, shape.rank);
  all.dims[axis] = parts;
  one.dims[axis] = 1;
  for (int i = 0; i < shape.rank; i++)
    if (i != axis) part.shape.dims[part.shape.rank++] = shape.dims[i];
  for (int i = 0; i < parts; i++) {
    part.dtype = draw_part_type(&state, dtype);
    (void)operation_add(o, &state, &part);
  }
  const int out = operation_add_output(o, &state, 1, dtype, &all);
  if (!operation_fill(o, &state)) return false;
  for (int i = 0; i < parts; i++) expect_part(o, out, i, &one, axis, i);
  return true;
}

static bool make_joined(struct operation_trial *o, enum tensor_operator_id op, uint64_t seed,
                        int64_t most) {
  return (op == OP_Stack ? make_stack : make_cat)(o, op, seed, most);
}

/* --- The tests --- */

static void gathers_are_right(void **state) {
  (void)state;
  operation_try_kinds(make_gather, KINDS(KIND_GATHER), 0.5);
}

static void unpoolings_are_right(void **state) {
  (void)state;
  operation_try_kinds(make_unpool, KINDS(KIND_UNPOOL2D) | KINDS(KIND_UNPOOL3D), 0.7);
}

static void selections_are_right_and_give_their_number(void **state) {
  (void)state;
  operation_try_kinds(make_select, KINDS(KIND_SELECT), 0.5);
}

static void what_is_put_one_behind_the_other_is_right(void **state) {
  (void)state;
  operation_try_kinds(make_joined, KINDS(KIND_CAT), 0.5);
}

/* More parts of a selection than one, and planes of many outputs. */
static void large_calls_are_right(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 6; seed++) {
    assert_true(operation_try(make_gather, OP_Gather, seed, 150000));
    assert_true(operation_try(make_unpool, OP_MaxUnpool2d, seed, 150000));
    assert_true(operation_try(make_select, OP_MaskedSelect, seed, 150000));
    assert_true(operation_try(make_cat, OP_Cat, seed, 150000));
  }
}

int main(int argc, char **argv) {
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gathers_are_right),
      cmocka_unit_test(unpoolings_are_right),
      cmocka_unit_test(selections_are_right_and_give_their_number),
      cmocka_unit_test(what_is_put_one_behind_the_other_is_right),
      cmocka_unit_test(large_calls_are_right),
  };
  return TENSOR_RUN_GROUPS(tests);
}
