/* SPDX-License-Identifier: Apache-2.0 */
/* Changes to a right call, and what a call looks like in the end. */
#include <inttypes.h>
#include <string.h>

#include "core/dtype.h"
#include "tensors_decode.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

void fuzzed_strides(const struct called_tensor *t, int64_t strides[CALL_RANK_MOST]) {
  int64_t step = 1;
  for (int i = t->rank - 1; i >= 0; i--) {
    strides[i] = t->strided ? t->strides[i] : step;
    if (__builtin_mul_overflow(step, t->dims[i], &step)) step = 0; /* refused in any case */
  }
}

bool fuzzed_has_lists(const struct fuzzed_call *f) {
  for (int n = 0; n < f->operands; n++)
    if (f->operand[n].is_list) return true;
  return false;
}

bool fuzzed_shares(const struct fuzzed_call *f) {
  for (int n = 0; n < f->operands; n++)
    if (f->operand[n].home != n || (f->operand[n].is_stacked && f->operand[n].count > 1))
      return true;
  return false;
}

bool fuzzed_may_overlap(const struct fuzzed_call *f) {
  for (int n = 0; n < f->operands; n++) {
    const struct operand *o = &f->operand[n];
    bool is_alone = !o->is_stacked || o->count < 2;
    for (int other = 0; other < f->operands; other++)
      if (other != n && f->operand[other].home == o->home) is_alone = false;
    if (o->is_written && !is_alone) return true;
  }
  return false;
}

/* --- Changes -----------------------------------------------------------------------------------
 */

static enum handle_kind take_handle(struct input *in) {
  return (enum handle_kind)(ABSENT + take_below(in, HANDLE_KINDS - ABSENT));
}

static void change_axis(struct input *in, struct called_tensor *t, bool is_dim) {
  if (t->rank == 0) return;
  const int axis = take_below(in, t->rank);
  if (is_dim && take_rarely(in, 2)) {
    t->dims[axis] = take_below(in, 5);
  } else if (is_dim) {
    t->dims[axis] = take_extreme(in);
  } else {
    fuzzed_strides(t, t->strides);
    t->strided = true;
    t->strides[axis] = take_rarely(in, 2) ? take_below(in, 9) : take_extreme(in);
  }
}

static void change_rank(struct input *in, struct called_tensor *t) {
  const int rank = take_below(in, CALL_RANK_MOST + 1);
  fuzzed_strides(t, t->strides);
  for (int i = t->rank; i < rank; i++) {
    t->dims[i] = 1;
    t->strides[i] = take_rarely(in, 4) ? take_extreme(in) : 1;
  }
  t->rank = rank;
}

/* Huge shapes that little memory is needed for. */
static void change_to_repeated(struct input *in, struct called_tensor *t) {
  fuzzed_strides(t, t->strides);
  t->strided = true;
  for (int i = 0; i < t->rank; i++) {
    t->dims[i] = INT64_C(1) << take_below(in, 63);
    t->strides[i] = 0;
  }
}

static void change_tensor(struct input *in, struct called_tensor *t) {
  switch (take_below(in, 7)) {
    case 0:
      t->dtype = (aclDataType)(take_below(in, 48) - 2);
      return;
    case 1:
      t->format = (aclFormat)(take_below(in, 48) - 2);
      return;
    case 2:
      change_rank(in, t);
      return;
    case 3:
      change_axis(in, t, true);
      return;
    case 4:
      change_axis(in, t, false);
      return;
    case 5:
      t->offset = take_extreme(in);
      return;
    default:
      change_to_repeated(in, t);
  }
}

static void change_handles(struct input *in, struct operand *o) {
  switch (take_below(in, 3)) {
    case 0:
      o->handle = take_handle(in);
      return;
    case 1:
      if (o->is_list) o->count = take_below(in, LIST_MOST + 1);
      return;
    default:
      if (o->is_list) o->dead = take_below(in, LIST_MOST);
  }
}

/* Axes and sizes, right ones and those beside them; or anything. */
static int64_t take_number(struct input *in) {
  return take_rarely(in, 2) ? take_extreme(in) : take_below(in, 21) - 10;
}

static void change_array(struct input *in, struct called_array *a, enum handle_kind *handle) {
  int at;
  switch (take_below(in, 3)) {
    case 0:
      *handle = take_handle(in);
      return;
    case 1:
      a->count = (uint64_t)take_below(in, CALL_RANK_MOST + 1);
      return;
    default:
      at = take_below(in, 4);
      a->values[at] = take_number(in);
  }
}

static void change_attribute(struct input *in, struct fuzzed_call *f) {
  static const int integers[] = {0, 0, 0, 1, 2, 3};
  const int which = take_below(in, COUNT(integers) + REALS_MOST + 1);
  if (which < COUNT(integers))
    f->call.integer[integers[which]] = take_number(in);
  else if (which < COUNT(integers) + REALS_MOST)
    f->call.real[which - COUNT(integers)] = take_real(in);
  else
    f->call.dtype = (aclDataType)(take_below(in, 48) - 2);
}

static void change_scalar(struct input *in, struct called_scalar *s, enum handle_kind *handle) {
  if (take_rarely(in, 2))
    *handle = take_handle(in);
  else
    s->dtype = (aclDataType)(take_below(in, 48) - 2);
}

/* The tensor, or one of the list; or the whole argument. */
static void change_operand(struct input *in, struct fuzzed_call *f, struct operand *o) {
  static const uintptr_t addresses[] = {0, 1 << 16, UINTPTR_MAX - 63, (uintptr_t)1 << 63};
  if (take_rarely(in, 4)) {
    change_handles(in, o);
    return;
  }
  change_tensor(in, &o->member[take_below(in, o->count < 1 ? 1 : o->count)]);
  f->nowhere = addresses[take_below(in, COUNT(addresses))];
}

static void change_argument(struct input *in, struct fuzzed_call *f,
                            const struct tensor_argument *argument) {
  const int n = argument->number;
  if (argument->kind == IS_SCALAR)
    change_scalar(in, &f->call.s[n], &f->scalar_handle[n]);
  else if (argument->kind == IS_ARRAY)
    change_array(in, &f->call.a[n], &f->array_handle[n]);
  else if (argument->kind == IS_NUMBER)
    change_attribute(in, f);
  else
    change_operand(in, f, &f->operand[n]);
}

void fuzzed_change(struct input *in, struct fuzzed_call *f) {
  struct tensor_argument all[ARGUMENTS_MOST];
  const int count = tensor_operator_arguments(f->call.op, all), what = take_below(in, 16);
  if (what == 15)
    f->no_size = true;
  else if (what == 14)
    f->no_executor = true;
  else if (what == 13)
    fuzzed_share(in, f, take_below(in, f->operands));
  else
    change_argument(in, f, &all[take_below(in, count)]);
}

/* --- For who reads what was found --------------------------------------------------------------
 */

static void print_numbers(const char *name, int count, const int64_t *of) {
  (void)fprintf(stderr, " %s [", name);
  for (int i = 0; i < count; i++) (void)fprintf(stderr, "%s%" PRId64, i > 0 ? "," : "", of[i]);
  (void)fputs("]", stderr);
}

static void print_tensor(const struct called_tensor *t) {
  (void)fprintf(stderr, "   ");
  print_numbers(pg_dtype_name(t->dtype), t->rank, t->dims);
  if (t->strided) print_numbers("strides", t->rank, t->strides);
  (void)fprintf(stderr, " offset %" PRId64 " format %d\n", t->offset, (int)t->format);
}

static void print_operand(const struct operand *o, int n) {
  (void)fprintf(stderr, "  %s %d: handle %d, home %d, shift %" PRId64 "%s%s, dead %d\n",
                o->is_list ? "list" : "tensor", n, (int)o->handle, o->home, o->shift,
                o->is_written ? ", written" : "", o->is_stacked ? ", stacked" : "", o->dead);
  for (int k = 0; k < o->count; k++) print_tensor(&o->member[k]);
}

void fuzzed_print(const struct fuzzed_call *f) {
  const struct tensor_call *c = &f->call;
  (void)fprintf(stderr, "%s %s\n", tensor_operators[c->op].second_name,
                tensor_operators[c->op].arguments);
  for (int n = 0; n < f->operands; n++) print_operand(&f->operand[n], n);
  for (int i = 0; i < SCALARS_MOST; i++)
    (void)fprintf(stderr, "  scalar %d: handle %d, %s %.17g %" PRId64 "\n", i,
                  (int)f->scalar_handle[i], pg_dtype_name(c->s[i].dtype), c->s[i].real,
                  c->s[i].integer);
  for (int i = 0; i < ARRAYS_MOST; i++) {
    (void)fprintf(stderr, "  array %d: handle %d", i, (int)f->array_handle[i]);
    print_numbers("", (int)c->a[i].count, c->a[i].values);
    (void)fputs("\n", stderr);
  }
  print_numbers(" integers", INTEGERS_MOST, c->integer);
  (void)fprintf(stderr, " reals %.17g %.17g flag %d dtype %s\n", c->real[0], c->real[1], c->flag,
                pg_dtype_name(c->dtype));
  (void)fprintf(stderr,
                "  no size %d, no executor %d, nowhere %#" PRIxPTR
                ", late %d, released %d, "
                "threads %d, past caches %d, errors %d, raw %d, trouble %d of %d, seed %" PRIu64
                "\n",
                f->no_size, f->no_executor, f->nowhere, f->is_late, f->is_released, f->many_threads,
                f->past_caches, f->errors, f->raw_bits, (int)f->trouble, f->troubled, f->seed);
}
