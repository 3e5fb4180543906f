/* SPDX-License-Identifier: Apache-2.0 */
/* Operators on tensors of any shape that compute each element of a result from one of each input,
 * end to end: random calls of all types, shapes and layouts, in place and not, also where tensors
 * lie in each other's memory.  Those that reduce are in test_ops_tensors_reduce.c, those that move
 * elements in test_ops_tensors_place.c, random numbers in test_ops_tensors_random.c. */
#include "elementwise_reference.h"
#include "operation_random_test.h"

#include <math.h>

/* --- What calls have in common --- */

static struct operation_place at(int number) { return (struct operation_place){false, number}; }
static struct operation_place in_list(int number) { return (struct operation_place){true, number}; }

static int add_output(struct operation_trial *o, uint64_t *state, struct operation_place place,
                      aclDataType dtype, const struct pg_shape *shape, bool is_updated) {
  return operation_add(o, state,
                       &(struct operation_tensor){.place = place,
                                                  .dtype = dtype,
                                                  .shape = *shape,
                                                  .is_written = true,
                                                  .is_updated = is_updated});
}

/* It may be the result, or lie between its elements. */
static int add_input(struct operation_trial *o, uint64_t *state, int result,
                     struct operation_place place, aclDataType dtype,
                     const struct pg_shape *shape) {
  struct operation_tensor in = {.place = place, .dtype = dtype, .shape = *shape};
  operation_draw_memory(state, o, result, &in);
  return operation_add(o, state, &in);
}

static bool has_word(enum tensor_operator_id op, const char *word) {
  return strstr(tensor_operators[op].arguments, word) != NULL;
}

static bool is_in_place(enum tensor_operator_id op) { return has_word(op, "selfRef"); }

/* A number as a scalar says it, in the class of a type; to a BOOL it is whether it is 0. */
static union pg_number number_of(const struct operation_scalar *s, aclDataType dtype) {
  if (tensor_is_real(dtype)) return (union pg_number){.real = s->real};
  return (union pg_number){.integer = dtype == ACL_BOOL ? s->real != 0 : s->integer};
}

/* --- Arithmetic, comparisons, functions of one number --- */

/* Sides are the output and then the inputs; self is the output if it is in place. */
enum { RESULT };

static void expect_elementwise(struct operation_trial *o, const struct elementwise *e, int result,
                               int self, int other) {
  const struct pg_shape *shape = &o->shape[result];
  const int64_t count = pg_positions(shape);
  for (int64_t i = 0; i < count; i++) {
    const union pg_number a = operation_load(o, self, e->class_of, shape, i);
    const union pg_number b =
        other >= 0 ? operation_load(o, other, e->class_of, shape, i) : e->scalar;
    const union pg_number n = elementwise_value(e, a, b, other >= 0);
    operation_expect(o, result, i, e->class_of, n);
  }
}

static void draw_shapes(uint64_t *state, enum tensor_operator_id op, const struct pg_shape *shape,
                        struct pg_shape pair[2]) {
  pair[0] = pair[1] = *shape;
  if (is_in_place(op))
    pair[1] = operation_draw_narrower(state, shape);
  else if (tensor_operators[op].kind == KIND_BINARY)
    operation_draw_pair(state, shape, pair);
}

static bool make_elementwise(struct operation_trial *o, enum tensor_operator_id op, uint64_t seed,
                             int64_t most) {
  uint64_t state = seed * TENSOR_OPERATORS + (uint64_t)op;
  const bool in_place = is_in_place(op), has_other = tensor_operators[op].kind == KIND_BINARY;
  const bool has_scalar = tensor_operators[op].kind == KIND_SCALAR;
  struct operation_scalar *scalar = has_scalar ? &o->scalar[0] : NULL;
  struct operation_scalar *alpha = has_word(op, "alpha") ? &o->scalar[has_scalar] : NULL;
  const struct pg_shape shape = operation_draw_shape(&state, most);
  struct pg_shape pair[2];
  draw_shapes(&state, op, &shape, pair);
  const struct elementwise_types d =
      elementwise_draw_types(&state, op, pair[0].rank, has_other ? pair[1].rank : -1, has_scalar);
  if (scalar != NULL) operation_draw_scalar(&state, d.scalar, scalar);
  if (alpha != NULL) operation_draw_scalar(&state, operation_draw_type(&state), alpha);
  const struct elementwise e = elementwise_of(&state, op, &d.p, scalar, alpha);
  add_output(o, &state, at(in_place ? 0 : 1 + has_other), d.out, &shape, in_place);
  const int self = in_place ? RESULT : add_input(o, &state, RESULT, at(0), d.self, &pair[0]);
  const int other = has_other ? add_input(o, &state, RESULT, at(1), d.other, &pair[1]) : -1;
  if (!operation_fill(o, &state)) return false;
  expect_elementwise(o, &e, RESULT, self, other);
  return true;
}

/* --- The same for all tensors of lists --- */

enum { LISTED_MOST = 4 };

/* A tensor of each list: the sides, and what becomes of them. */
struct listed {
  int x1, x2, out; /* x2: -1 where there is no such list */
  struct promotion p;
};

/* Types are legal with the scalar of the call. */
static struct listed add_listed(struct operation_trial *o, uint64_t *state, bool has_other,
                                int64_t most) {
  const struct pg_shape shape = operation_draw_shape(state, most);
  struct elementwise_types d;
  struct pg_shape pair[2] = {shape, shape};
  if (has_other) operation_draw_pair(state, &shape, pair);
  do
    d = elementwise_draw_types(state, o->call.op, pair[0].rank, has_other ? pair[1].rank : -1,
                               !has_other);
  while (!has_other && d.scalar != o->scalar[0].dtype);
  struct listed l = {.x2 = -1, .p = d.p};
  l.out = add_output(o, state, in_list(1 + has_other), d.out, &shape, false);
  l.x1 = add_input(o, state, l.out, in_list(0), d.self, &pair[0]);
  if (has_other) l.x2 = add_input(o, state, l.out, in_list(1), d.other, &pair[1]);
  return l;
}

/* The alpha of all must be legal for each; then asking again does not change it. */
static bool make_lists(struct operation_trial *o, enum tensor_operator_id op, uint64_t seed,
                       int64_t most) {
  uint64_t state = seed * TENSOR_OPERATORS + (uint64_t)op;
  const bool has_other = op == OP_ForeachAddListV2;
  struct operation_scalar *const number = &o->scalar[0];
  const int count = (int)tensor_draw(&state, LISTED_MOST + 1);
  struct listed all[LISTED_MOST];
  operation_draw_scalar(&state, operation_draw_type(&state), number);
  for (int i = 0; i < count; i++) all[i] = add_listed(o, &state, has_other, most / 2);
  if (!operation_fill(o, &state)) return false;
  for (int pass = 0; pass < 2; pass++)
    for (int i = 0; i < count; i++) {
      const struct elementwise e = elementwise_of(&state, op, &all[i].p, has_other ? NULL : number,
                                                  has_other ? number : NULL);
      if (pass == 1) expect_elementwise(o, &e, all[i].out, all[i].x1, all[i].x2);
    }
  return true;
}

/* --- aclnnIsClose --- */

static double in_class(enum pg_class c, double x) {
  return c == PG_CLASS_FLOAT ? (double)(float)x : x;
}

static bool is_close(enum pg_class c, const struct operation_trial *o, double a, double b) {
  const double rtol = in_class(c, o->call.real[0]), atol = in_class(c, o->call.real[1]);
  const double apart = fabs(in_class(c, a - b));
  const volatile double fraction = in_class(c, rtol * fabs(b)); /* not a part of the sum */
  if (isnan(a) || isnan(b)) return o->call.flag && isnan(a) && isnan(b);
  return a == b || (isfinite(apart) && apart <= in_class(c, atol + fraction));
}

static bool make_is_close(struct operation_trial *o, enum tensor_operator_id op, uint64_t seed,
                          int64_t most) {
  static const double tolerances[] = {0, 0.25, 1e-5, 1e300};
  uint64_t state = seed;
  const struct pg_shape shape = operation_draw_shape(&state, most);
  const aclDataType dtype = operation_draw_type(&state);
  const enum pg_class c = tensor_class(dtype) == PG_CLASS_FLOAT ? PG_CLASS_FLOAT : PG_CLASS_DOUBLE;
  struct pg_shape pair[2];
  (void)op;
  operation_draw_pair(&state, &shape, pair);
  for (int i = 0; i < 2; i++) o->call.real[i] = tolerances[tensor_draw(&state, 4)];
  o->call.flag = tensor_chance(&state, 2);
  add_output(o, &state, at(2), operation_draw_type(&state), &shape, false);
  const int a = add_input(o, &state, RESULT, at(0), dtype, &pair[0]);
  const int b = add_input(o, &state, RESULT, at(1), dtype, &pair[1]);
  if (!operation_fill(o, &state)) return false;
  for (int64_t i = 0; i < pg_positions(&shape); i++) {
    const bool close = is_close(c, o, operation_load(o, a, c, &shape, i).real,
                                operation_load(o, b, c, &shape, i).real);
    operation_expect(o, RESULT, i, PG_CLASS_INT, (union pg_number){.integer = close});
  }
  return true;
}

/* --- aclnnThresholdBackward --- */

static bool stays_below(enum pg_class c, union pg_number a, union pg_number threshold) {
  return c == PG_CLASS_INT ? a.integer <= threshold.integer : a.real <= threshold.real;
}

static bool make_threshold(struct operation_trial *o, enum tensor_operator_id op, uint64_t seed,
                           int64_t most) {
  uint64_t state = seed;
  const struct pg_shape shape = operation_draw_shape(&state, most);
  struct pg_shape pair[2];
  aclDataType dtype;
  (void)op;
  do dtype = operation_draw_type(&state);
  while (dtype == ACL_BOOL);
  const enum pg_class c = tensor_class(dtype);
  operation_draw_pair(&state, &shape, pair);
  operation_draw_scalar(&state, operation_draw_type(&state), &o->scalar[0]);
  add_output(o, &state, at(2), dtype, &shape, false);
  const int gradient = add_input(o, &state, RESULT, at(0), dtype, &pair[0]);
  const int self = add_input(o, &state, RESULT, at(1), dtype, &pair[1]);
  if (!operation_fill(o, &state)) return false;
  union pg_number threshold = number_of(&o->scalar[0], dtype), zero = {.integer = 0};
  if (c == PG_CLASS_FLOAT) threshold.real = in_class(c, threshold.real);
  if (c != PG_CLASS_INT) zero.real = 0;
  for (int64_t i = 0; i < pg_positions(&shape); i++) {
    const bool is_zero = stays_below(c, operation_load(o, self, c, &shape, i), threshold);
    operation_expect(o, RESULT, i, c, is_zero ? zero : operation_load(o, gradient, c, &shape, i));
  }
  return true;
}

/* Two tensors are broadcast to a third one. */
static bool make_binary(struct operation_trial *o, enum tensor_operator_id op, uint64_t seed,
                        int64_t most) {
  if (op == OP_IsClose) return make_is_close(o, op, seed, most);
  if (op == OP_ThresholdBackward) return make_threshold(o, op, seed, most);
  return make_elementwise(o, op, seed, most);
}

/* --- Copies and fills --- */

static void expect_copy(struct operation_trial *o, int from) {
  const struct pg_shape *shape = &o->shape[RESULT];
  const enum pg_class c = tensor_class(o->t.side[from].dtype);
  const int64_t count = pg_positions(shape);
  for (int64_t i = 0; i < count; i++)
    operation_expect(o, RESULT, i, c, operation_load(o, from, c, shape, i));
}

/* Casts have their source first and do not broadcast, and that of a format does not convert. */
static bool make_copy(struct operation_trial *o, enum tensor_operator_id op, uint64_t seed,
                      int64_t most) {
  uint64_t state = seed;
  const bool is_cast = op != OP_InplaceCopy;
  const struct pg_shape shape = operation_draw_shape(&state, most);
  const struct pg_shape narrower = is_cast ? shape : operation_draw_narrower(&state, &shape);
  const aclDataType dtype = operation_draw_type(&state);
  const bool same_type = op == OP_NpuFormatCast || tensor_chance(&state, 3);
  o->call.dtype = dtype; /* of aclnnCast */
  add_output(o, &state, at(is_cast), dtype, &shape, false);
  const int from = add_input(o, &state, RESULT, at(!is_cast),
                             same_type ? dtype : operation_draw_type(&state), &narrower);
  if (!operation_fill(o, &state)) return false;
  expect_copy(o, from);
  return true;
}

static bool make_fill(struct operation_trial *o, enum tensor_operator_id op, uint64_t seed,
                      int64_t most) {
  uint64_t state = seed;
  const aclDataType dtype = operation_draw_type(&state);
  const struct pg_shape shape = operation_draw_shape(&state, most);
  struct operation_scalar *value = &o->scalar[0];
  operation_draw_scalar(&state, operation_draw_type(&state), value);
  if (op != OP_InplaceFillScalar) operation_set_integer(value, op == OP_InplaceOne);
  add_output(o, &state, at(0), dtype, &shape, false);
  if (!operation_fill(o, &state)) return false;
  const union pg_number n = number_of(value, dtype);
  for (int64_t i = 0; i < pg_positions(&shape); i++)
    operation_expect(o, RESULT, i, tensor_class(dtype), n);
  return true;
}

static bool make_masked_fill(struct operation_trial *o, enum tensor_operator_id op, uint64_t seed,
                             int64_t most) {
  uint64_t state = seed;
  const aclDataType dtype = operation_draw_type(&state);
  const struct pg_shape shape = operation_draw_shape(&state, most);
  const struct pg_shape narrower = operation_draw_narrower(&state, &shape);
  (void)op;
  operation_draw_scalar(&state, operation_draw_type(&state), &o->scalar[0]);
  add_output(o, &state, at(0), dtype, &shape, true);
  const int mask = add_input(o, &state, RESULT, at(1),
                             tensor_chance(&state, 2) ? ACL_BOOL : ACL_UINT8, &narrower);
  if (!operation_fill(o, &state)) return false;
  const enum pg_class c = tensor_class(dtype);
  for (int64_t i = 0; i < pg_positions(&shape); i++) {
    const bool is_set = operation_load(o, mask, PG_CLASS_INT, &shape, i).integer != 0;
    operation_expect(
        o, RESULT, i, c,
        is_set ? number_of(&o->scalar[0], dtype) : operation_load(o, RESULT, c, &shape, i));
  }
  return true;
}

/* --- The tests --- */

static void every_operator_has_a_rule(void **state) {
  (void)state;
  const unsigned kinds =
      KINDS(KIND_UNARY) | KINDS(KIND_BINARY) | KINDS(KIND_SCALAR) | KINDS(KIND_LIST);
  for (int op = 0; op < TENSOR_OPERATORS; op++)
    if ((kinds >> tensor_operators[op].kind & 1u) != 0 && op != OP_IsClose &&
        elementwise_rules[op].does == '\0')
      fail_msg("%s has none", tensor_operators[op].second_name);
}

static void functions_of_one_tensor_are_right(void **state) {
  (void)state;
  operation_try_kinds(make_elementwise, KINDS(KIND_UNARY) | KINDS(KIND_SCALAR), 1);
}

static void functions_of_two_tensors_are_right(void **state) {
  (void)state;
  operation_try_kinds(make_binary, KINDS(KIND_BINARY) | KINDS(KIND_PASS), 1);
}

static void functions_of_lists_are_right(void **state) {
  (void)state;
  operation_try_kinds(make_lists, KINDS(KIND_LIST), 0.3);
}

static void copies_are_right(void **state) {
  (void)state;
  operation_try_kinds(make_copy, KINDS(KIND_COPY), 0.3);
}

static void fills_are_right(void **state) {
  (void)state;
  static const enum tensor_operator_id fills[] = {OP_InplaceFillScalar, OP_InplaceOne,
                                                  OP_InplaceZero};
  for (uint64_t seed = 0; seed < 150; seed++)
    for (int i = 0; i < 3; i++) assert_true(operation_try(make_fill, fills[i], seed, 2000));
}

static void masked_fills_are_right(void **state) {
  (void)state;
  operation_try_kinds(make_masked_fill, KINDS(KIND_MASKED), 0.3);
}

/* Steps of one matrix's columns, as programs shift a window: the first three become the last. */
static void columns_of_one_matrix_are_copied_to_each_other(void **state) {
  (void)state;
  enum { ROWS = 700, COLUMNS = 4 };
  const struct pg_shape shape = {.rank = 2, .dims = {ROWS, COLUMNS - 1}};
  uint64_t random = 1;
  struct operation_trial o;
  operation_begin(&o, OP_InplaceCopy);
  add_output(&o, &random, at(0), ACL_INT32, &shape, true);
  const int from = operation_add(
      &o, &random,
      &(struct operation_tensor){
          .place.number = 1, .dtype = ACL_INT32, .shape = shape, .memory = OVERLAPPING_MEMORY});
  for (int i = RESULT; i <= from; i++) {
    o.t.side[i].strides[0] = COLUMNS;
    o.t.side[i].strides[1] = 1;
    o.t.side[i].offset = i == RESULT;
    o.t.side[i].elements = ROWS * COLUMNS;
  }
  assert_true(operation_fill(&o, &random));
  expect_copy(&o, from);
  const bool good = operation_run(&o, &devices);
  operation_free(&o);
  if (!good) fail_msg("%s", o.t.why);
}

int main(int argc, char **argv) {
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_operator_has_a_rule),
      cmocka_unit_test(functions_of_one_tensor_are_right),
      cmocka_unit_test(functions_of_two_tensors_are_right),
      cmocka_unit_test(functions_of_lists_are_right),
      cmocka_unit_test(copies_are_right),
      cmocka_unit_test(fills_are_right),
      cmocka_unit_test(masked_fills_are_right),
      cmocka_unit_test(columns_of_one_matrix_are_copied_to_each_other),
  };
  return TENSOR_RUN_GROUPS(tests);
}
