/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that reduce tensors of any shape, end to end: sums, means, truths and extrema along any
 * axes, whose elements are picked one by one here, and whether two tensors are equal. */
#include "elementwise_reference.h"
#include "operation_random_test.h"

#include <math.h>

/* --- Axes --- */

/* What each output is made of: the elements of its positions in row-major order. */
struct reduction {
  bool is_reduced[PG_GRID_AXES];
  struct pg_shape all, out; /* out: with axes of length 1, if they are kept */
  int64_t outputs, inner;
  enum pg_class class_of;
  union pg_number *x; /* `inner` of each output */
};

/* The arguments name axes from either end. */
static int64_t name_axis(uint64_t *state, int axis, int rank) {
  return tensor_chance(state, 2) ? axis : axis - rank;
}

static void draw_dims(uint64_t *state, struct operation_trial *o, struct reduction *r) {
  struct called_array *dims = &o->call.a[0];
  const int rank = r->all.rank;
  const bool leaves_out = tensor_chance(state, 5); /* then all axes are meant */
  for (int i = rank - 1; i >= 0; i--) {
    r->is_reduced[i] = leaves_out || tensor_chance(state, 2);
    if (r->is_reduced[i] && !leaves_out) dims->values[dims->count++] = name_axis(state, i, rank);
  }
  if (rank == 0 && !leaves_out) dims->values[dims->count++] = name_axis(state, 0, 1);
  for (int i = 0; i < rank && dims->count == 0; i++) r->is_reduced[i] = true;
}

static void lay_out_results(struct reduction *r, bool keeps_axes) {
  r->outputs = r->inner = 1;
  for (int i = 0; i < r->all.rank; i++) {
    if (r->is_reduced[i])
      r->inner *= r->all.dims[i];
    else
      r->outputs *= r->all.dims[i];
    if (keeps_axes || !r->is_reduced[i])
      r->out.dims[r->out.rank++] = r->is_reduced[i] ? 1 : r->all.dims[i];
  }
}

/* The output that a position is a part of. */
static int64_t output_of(const struct reduction *r, int64_t position) {
  int64_t output = 0, step = 1;
  for (int i = r->all.rank - 1; i >= 0; i--) {
    const int64_t along = position % r->all.dims[i];
    position /= r->all.dims[i];
    if (r->is_reduced[i]) continue;
    output += along * step;
    step *= r->all.dims[i];
  }
  return output;
}

static bool pick_elements(const struct operation_trial *o, int self, struct reduction *r) {
  const size_t count = (size_t)(r->outputs * r->inner);
  int64_t *filled = calloc((size_t)r->outputs + 1, sizeof *filled);
  r->x = calloc(count + 1, sizeof *r->x);
  for (size_t i = 0; i < count && filled != NULL && r->x != NULL; i++) {
    const int64_t output = output_of(r, (int64_t)i);
    r->x[output * r->inner + filled[output]++] =
        operation_load(o, self, r->class_of, &r->all, (int64_t)i);
  }
  free(filled);
  return filled != NULL && r->x != NULL;
}

static struct pg_shape draw_one_element(uint64_t *state) {
  return (struct pg_shape){.rank = (int)tensor_draw(state, 3), .dims = {1, 1}};
}

/* --- Sums, means, truths --- */

/* `what` lacks the class. */
static union pg_number result_of(const struct reduction *r, struct pg_reduce what, int64_t output,
                                 int64_t *position) {
  union pg_number n = {.integer = what.function == PG_REDUCE_ALL};
  what.class_of = r->class_of;
  *position = 0;
  if (r->inner > 0) return reference_reduce(&what, r->x + output * r->inner, r->inner, position);
  if (r->class_of != PG_CLASS_INT) n.real = (double)n.integer;
  if (what.divisor == 0) n.real = NAN; /* the mean of nothing */
  return n;
}

static aclDataType draw_result_type(uint64_t *state, aclDataType result) {
  aclDataType dtype;
  do dtype = operation_draw_type(state);
  while (!result_may_be(result, dtype));
  return dtype;
}

/* The type that a sum or a mean is computed as; truths are those of self's own elements. */
static aclDataType draw_computed(uint64_t *state, enum tensor_operator_id op) {
  aclDataType dtype;
  do dtype = op == OP_All || op == OP_Any ? ACL_BOOL : operation_draw_type(state);
  while (op == OP_Mean && !tensor_is_real(dtype));
  return dtype;
}

static enum pg_reduce_function function_of(enum tensor_operator_id op, aclDataType computed) {
  if (op == OP_All) return PG_REDUCE_ALL;
  return op == OP_Any || computed == ACL_BOOL ? PG_REDUCE_ANY : PG_REDUCE_SUM;
}

static bool make_reduce(struct operation_trial *o, enum tensor_operator_id op, uint64_t seed,
                        int64_t most) {
  uint64_t state = seed * TENSOR_OPERATORS + (uint64_t)op;
  struct reduction r = {.all = operation_draw_shape(&state, most)};
  const aclDataType dtype = operation_draw_type(&state), computed = draw_computed(&state, op);
  const bool is_truth = op == OP_All || op == OP_Any;
  const aclDataType out_type = !is_truth                  ? draw_result_type(&state, computed)
                               : tensor_chance(&state, 2) ? ACL_BOOL
                                                          : ACL_UINT8;
  int64_t position;
  draw_dims(&state, o, &r);
  o->call.flag = tensor_chance(&state, 2);
  o->call.dtype = computed;
  lay_out_results(&r, o->call.flag);
  r.class_of = tensor_class(computed == ACL_BOOL ? dtype : computed);
  const int out = operation_add_output(o, &state, 1, out_type, &r.out);
  const int self = operation_add_input(o, &state, 0, dtype, &r.all);
  bool good = operation_fill(o, &state) && pick_elements(o, self, &r);
  const struct pg_reduce what = {.function = function_of(op, computed),
                                 .divisor = op == OP_Mean ? r.inner : 1};
  for (int64_t i = 0; i < r.outputs && good; i++)
    operation_expect(o, out, i, r.class_of, result_of(&r, what, i, &position));
  free(r.x);
  return good;
}

/* --- Extrema --- */

/* Nothing has no extremum, unless nothing is asked for. */
static void make_extremum_possible(struct reduction *r) {
  for (int i = 0; i < r->all.rank; i++)
    if (r->all.dims[i] == 0 && r->is_reduced[i]) r->all.dims[i] = 1;
}

static bool expect_extrema(struct operation_trial *o, struct reduction *r, const int sides[3]) {
  const bool is_max = o->call.op == OP_Max || o->call.op == OP_MaxDim;
  const struct pg_reduce what = {.function = is_max ? PG_REDUCE_MAX : PG_REDUCE_MIN, .divisor = 1};
  const bool good = pick_elements(o, sides[0], r);
  for (int64_t i = 0; i < r->outputs && good; i++) {
    int64_t position;
    const union pg_number n = result_of(r, what, i, &position);
    operation_expect(o, sides[1], i, r->class_of, n);
    if (sides[2] >= 0)
      operation_expect(o, sides[2], i, PG_CLASS_INT, (union pg_number){.integer = position});
  }
  free(r->x);
  return good;
}

static bool make_extreme(struct operation_trial *o, enum tensor_operator_id op, uint64_t seed,
                         int64_t most) {
  uint64_t state = seed * TENSOR_OPERATORS + (uint64_t)op;
  const bool is_along = tensor_operators[op].kind == KIND_ALONG;
  const aclDataType dtype = operation_draw_type(&state);
  struct reduction r = {.all = operation_draw_shape(&state, most), .class_of = tensor_class(dtype)};
  const int axis = (int)tensor_draw(&state, r.all.rank > 0 ? r.all.rank : 1);
  for (int i = 0; i < r.all.rank; i++) r.is_reduced[i] = !is_along || i == axis;
  o->call.integer[0] = name_axis(&state, axis, r.all.rank > 0 ? r.all.rank : 1);
  o->call.flag = is_along && tensor_chance(&state, 2);
  make_extremum_possible(&r);
  lay_out_results(&r, o->call.flag);
  if (!is_along) r.out = draw_one_element(&state);
  int sides[] = {-1, -1, -1};
  sides[1] = operation_add_output(o, &state, 1, draw_result_type(&state, dtype), &r.out);
  if (is_along)
    sides[2] = operation_add_output(o, &state, 2, tensor_chance(&state, 2) ? ACL_INT32 : ACL_INT64,
                                    &r.out);
  sides[0] = operation_add_input(o, &state, 0, dtype, &r.all);
  return operation_fill(o, &state) && expect_extrema(o, &r, sides);
}

/* --- aclnnEqual --- */

/* The elements are few numbers; those of other are self's, but for one that is drawn, and zeros
 * that may have another sign. */
static void put_alike(struct operation_trial *o, uint64_t *state, const int sides[2]) {
  const struct pg_shape *shape = &o->shape[sides[0]];
  const aclDataType dtype = o->t.side[sides[0]].dtype;
  const int64_t count = pg_positions(shape);
  const int64_t other_one = tensor_chance(state, 2) ? tensor_draw(state, count) : -1;
  char element[8];
  for (int64_t i = 0; i < count; i++) {
    const union pg_number n = {.integer = tensor_draw(state, 3)};
    reference_store(PG_CLASS_INT, n, dtype, element);
    operation_put(o, sides[0], i, element);
  }
  for (int64_t i = 0; i < count; i++) {
    memcpy(element, operation_element(o, sides[0], shape, i), tensor_bytes(dtype));
    const bool is_zero = reference_load(PG_CLASS_DOUBLE, dtype, element).real == 0;
    if (is_zero && tensor_is_real(dtype) && tensor_chance(state, 2))
      reference_store(PG_CLASS_DOUBLE, (union pg_number){.real = -0.0}, dtype, element);
    if (i == other_one) tensor_draw_element(state, dtype, element);
    operation_put(o, sides[1], i, element);
  }
}

static bool are_equal(const struct operation_trial *o, const int sides[2], enum pg_class c) {
  const struct pg_shape *shape = &o->shape[sides[0]];
  for (int64_t i = 0; i < pg_positions(shape); i++) {
    const union pg_number a = operation_load(o, sides[0], c, shape, i);
    const union pg_number b = operation_load(o, sides[1], c, shape, i);
    if (c == PG_CLASS_INT ? a.integer != b.integer : !(a.real == b.real)) return false;
  }
  return true;
}

static struct pg_shape draw_other_shape(uint64_t *state, const struct pg_shape *shape) {
  struct pg_shape other = *shape;
  if (other.rank == 0 || tensor_chance(state, 2))
    other.rank = other.rank < PG_GRID_AXES ? other.rank + 1 : other.rank - 1;
  other.dims[other.rank - 1] = 1 + tensor_draw(state, 3);
  return other;
}

static bool is_same_shape(const struct pg_shape *a, const struct pg_shape *b) {
  return a->rank == b->rank && memcmp(a->dims, b->dims, (size_t)a->rank * sizeof a->dims[0]) == 0;
}

static bool make_equal(struct operation_trial *o, enum tensor_operator_id op, uint64_t seed,
                       int64_t most) {
  uint64_t state = seed * TENSOR_OPERATORS + (uint64_t)op;
  const aclDataType dtype = operation_draw_type(&state);
  const struct pg_shape shape = operation_draw_shape(&state, most);
  const struct pg_shape second =
      tensor_chance(&state, 6) ? draw_other_shape(&state, &shape) : shape;
  const bool same_shape = is_same_shape(&shape, &second);
  const struct pg_shape one = draw_one_element(&state);
  const int out = operation_add_output(o, &state, 2, ACL_BOOL, &one);
  int sides[2];
  sides[0] = operation_add_input(o, &state, 0, dtype, &shape);
  sides[1] = operation_add(o, &state,
                           &(struct operation_tensor){.place.number = 1,
                                                      .dtype = dtype,
                                                      .shape = second,
                                                      .is_dense = tensor_chance(&state, 2)});
  if (!operation_fill(o, &state)) return false;
  if (same_shape && pg_positions(&shape) > 0 && !tensor_chance(&state, 5))
    put_alike(o, &state, sides);
  const bool equal = same_shape && are_equal(o, sides, tensor_class(dtype));
  operation_expect(o, out, 0, PG_CLASS_INT, (union pg_number){.integer = equal});
  return true;
}

/* --- The tests --- */

static void sums_means_and_truths_are_right(void **state) {
  (void)state;
  operation_try_kinds(make_reduce, KINDS(KIND_REDUCE), 1);
}

static void extrema_are_right(void **state) {
  (void)state;
  operation_try_kinds(make_extreme, KINDS(KIND_EXTREME) | KINDS(KIND_ALONG), 1);
}

static void whether_tensors_are_equal_is_right(void **state) {
  (void)state;
  operation_try_kinds(make_equal, KINDS(KIND_EQUAL), 0.5);
}

/* Sums have many blocks, of which some methods put partial sums into the workspace. */
static void large_reductions_are_right(void **state) {
  (void)state;
  static const enum tensor_operator_id ops[] = {OP_ReduceSum, OP_Mean, OP_All, OP_Max, OP_MinDim};
  for (int i = 0; i < 5; i++)
    for (uint64_t seed = 0; seed < 4; seed++)
      assert_true(operation_try(i < 3 ? make_reduce : make_extreme, ops[i], seed, 200000));
  for (uint64_t seed = 0; seed < 4; seed++)
    assert_true(operation_try(make_equal, OP_Equal, seed, 200000));
}

int main(int argc, char **argv) {
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sums_means_and_truths_are_right),
      cmocka_unit_test(extrema_are_right),
      cmocka_unit_test(whether_tensors_are_equal_is_right),
      cmocka_unit_test(large_reductions_are_right),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
