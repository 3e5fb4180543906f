/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a call: what lies where, what may change, and what has. */
#include <inttypes.h>
#include <string.h>

#include "tensor_trial.h"
#include "tensors.h"

enum { MOST_BYTES = 1 << 21, MOST_POSITIONS = 1 << 17, POISON = 0xa7 };

/* --- Sizes -------------------------------------------------------------------------------------
 */

static double positions(const struct called_tensor *t) {
  double count = 1;
  for (int i = 0; i < t->rank; i++) count *= (double)t->dims[i];
  return count;
}

/* Bytes from the data address to the end of the last element. */
static double span(const struct called_tensor *t) {
  int64_t strides[CALL_RANK_MOST];
  double last = (double)t->offset;
  if (positions(t) == 0) return 0;
  fuzzed_strides(t, strides);
  for (int i = 0; i < t->rank; i++) last += (double)(t->dims[i] - 1) * (double)strides[i];
  return (last + 1) * (double)tensor_bytes(t->dtype);
}

bool fuzzed_is_small(const struct fuzzed_call *f) {
  for (int n = 0; n < f->operands; n++) {
    const struct operand *o = &f->operand[n];
    for (int k = 0; k < o->count; k++)
      if (span(&o->member[k]) > MOST_BYTES || positions(&o->member[k]) > MOST_POSITIONS)
        return false;
  }
  return true;
}

/* Where the element with this number lies, in bytes from the data address. */
static int64_t place(const struct called_tensor *t, const int64_t *strides, int64_t number) {
  int64_t at = t->offset;
  for (int i = t->rank - 1; i >= 0; i--) {
    at += number % t->dims[i] * strides[i];
    number /= t->dims[i];
  }
  return at * (int64_t)tensor_bytes(t->dtype);
}

/* --- Layout ------------------------------------------------------------------------------------
 */

static void *zeros(size_t bytes) {
  void *memory = calloc(bytes + 1, 1);
  if (memory == NULL) wrong("no memory");
  return memory;
}

static int home_of(const struct stage *s, int n) { return s->is_apart ? n : s->f->operand[n].home; }

/* Members lie one behind the other, or all begin where the first one does. */
static void place_members(struct stage *s, int n, int64_t bytes[TENSORS_MOST]) {
  const struct operand *o = &s->f->operand[n];
  int64_t *const most = &bytes[home_of(s, n)];
  int64_t next = 0;
  for (int k = 0; k < o->count; k++) {
    const struct called_tensor *t = &o->member[k];
    const int64_t own = (int64_t)span(t);
    s->at[n][k] = (s->is_apart ? 0 : o->shift * (int64_t)tensor_bytes(t->dtype)) + next;
    if (s->at[n][k] + own > *most) *most = s->at[n][k] + own;
    if (!o->is_stacked) next += (own + 63) / 64 * 64;
  }
}

/* Two elements of a result in one place would have to be refused. */
static void mark_member(const struct called_tensor *t, bool *marks) {
  const int64_t count = (int64_t)positions(t);
  const size_t bytes = tensor_bytes(t->dtype);
  bool *const seen = zeros((size_t)span(t));
  int64_t strides[CALL_RANK_MOST];
  fuzzed_strides(t, strides);
  for (int64_t i = 0; i < count; i++) {
    const int64_t at = place(t, strides, i);
    if (seen[at]) wrong("a result was accepted whose elements share memory");
    seen[at] = true;
    memset(marks + at, true, bytes);
  }
  free(seen);
}

static void mark_written(struct stage *s, int n) {
  const struct operand *o = &s->f->operand[n];
  for (int k = 0; k < o->count; k++)
    mark_member(&o->member[k], s->may_change[home_of(s, n)] + s->at[n][k]);
}

static void lay_out(struct stage *s) {
  int64_t bytes[TENSORS_MOST] = {0};
  for (int n = 0; n < s->f->operands; n++) place_members(s, n, bytes);
  for (int n = 0; n < TENSORS_MOST; n++) {
    if (!guarded_make(&s->memory[n], (size_t)bytes[n], POISON)) wrong("no memory");
    s->may_change[n] = zeros((size_t)bytes[n]);
  }
  for (int n = 0; n < s->f->operands; n++)
    if (s->f->operand[n].is_written) mark_written(s, n);
}

/* --- Elements ----------------------------------------------------------------------------------
 */

/* How far the indices of an operand may go; 0 for what are no indices. */
static int64_t index_limit(const struct fuzzed_call *f, int n) {
  const enum tensor_kind kind = tensor_operators[f->call.op].kind;
  const struct called_tensor *self = &f->operand[0].member[0], *out = &f->operand[2].member[0];
  const int64_t dim = f->call.integer[0];
  int64_t cells = 1;
  if (n != 1 || (kind != KIND_GATHER && kind != KIND_UNPOOL2D && kind != KIND_UNPOOL3D)) return 0;
  if (kind == KIND_GATHER)
    return self->rank == 0 ? 1 : self->dims[dim < 0 ? dim + self->rank : dim];
  for (int i = out->rank - (kind == KIND_UNPOOL2D ? 2 : 3); i < out->rank; i++)
    cells *= out->dims[i];
  return cells;
}

/* One index of 16 is none: the nearest on both sides, or anything. */
static int64_t draw_index(uint64_t *state, int64_t limit) {
  const uint64_t bits = problem_next(state);
  const int64_t strays[] = {limit, -1, INT64_MAX, (int64_t)problem_next(state)};
  return bits % 16 == 0 ? strays[bits / 16 % 4] : (int64_t)(bits / 64 % (uint64_t)limit);
}

static void draw_element(const struct fuzzed_call *f, aclDataType dtype, int64_t limit,
                         uint64_t *state, char *to) {
  if (f->raw_bits) {
    const uint64_t bits = problem_next(state);
    memcpy(to, &bits, tensor_bytes(dtype));
  } else if (limit > 0) {
    const union pg_number index = {.integer = draw_index(state, limit)};
    reference_store(PG_CLASS_INT, index, dtype, to);
  } else {
    tensor_draw_element(state, dtype, to);
  }
}

static void draw_member(const struct stage *s, int n, int k, uint64_t *state) {
  const struct called_tensor *t = &s->f->operand[n].member[k];
  const size_t bytes = tensor_bytes(t->dtype), count = (size_t)span(t) / bytes;
  const int64_t limit = index_limit(s->f, n);
  char *const to = guarded_payload(&s->memory[home_of(s, n)]) + s->at[n][k];
  for (size_t i = 0; i < count; i++) draw_element(s->f, t->dtype, limit, state, to + i * bytes);
}

void stage_open(struct stage *s, const struct fuzzed_call *f) {
  uint64_t state = f->seed;
  *s = (struct stage){.f = f};
  lay_out(s);
  for (int n = 0; n < f->operands; n++)
    for (int k = 0; k < f->operand[n].count; k++) draw_member(s, n, k, &state);
}

void stage_open_apart(struct stage *s, const struct stage *from) {
  *s = (struct stage){.f = from->f, .is_apart = true};
  lay_out(s);
  for (int n = 0; n < s->f->operands; n++)
    memcpy(guarded_payload(&s->memory[n]),
           guarded_payload(&from->memory[home_of(from, n)]) + from->at[n][0], s->memory[n].bytes);
}

void stage_send(struct stage *s) {
  for (int n = 0; n < TENSORS_MOST; n++) NEED(guarded_send(&s->memory[n]));
}

void stage_leave(struct stage *s) {
  for (int n = 0; n < TENSORS_MOST; n++) guarded_leave(&s->memory[n]);
}

void stage_close(struct stage *s) {
  for (int n = 0; n < TENSORS_MOST; n++) {
    guarded_free(&s->memory[n]);
    free(s->may_change[n]);
    free(s->right[n]);
  }
}

void *stage_address(const struct stage *s, int operand, int member) {
  return s->memory[home_of(s, operand)].device + s->at[operand][member];
}

/* --- Comparing ---------------------------------------------------------------------------------
 */

void stage_fetch(struct stage *s, bool has_run) {
  for (int n = 0; n < TENSORS_MOST; n++) {
    struct guarded *g = &s->memory[n];
    int64_t offset;
    NEED(guarded_fetch(g));
    if (guarded_differs(g, has_run, &offset))
      wrong("byte %" PRId64 " of %zu of memory %d has changed", offset, g->bytes, n);
    const char *const found = guarded_found(g), *const before = guarded_payload(g);
    for (size_t i = 0; i < g->bytes && has_run; i++)
      if (found[i] != before[i] && !s->may_change[n][i])
        wrong("byte %zu of %zu of memory %d, of no result, has changed", i, g->bytes, n);
  }
}

/* Elements of a member in two memories, a NaN's payload aside. */
static void compare_member(const struct called_tensor *t, int n, const char *a, const char *b) {
  const int64_t count = (int64_t)positions(t);
  int64_t strides[CALL_RANK_MOST];
  fuzzed_strides(t, strides);
  for (int64_t i = 0; i < count; i++) {
    const int64_t at = place(t, strides, i);
    if (!tensor_is_same(t->dtype, a + at, b + at))
      wrong("element %" PRId64 " of tensor %d is not what another run has left", i, n);
  }
}

void stage_compare(struct stage *s) {
  const bool is_first = s->right[0] == NULL;
  for (int n = 0; n < TENSORS_MOST && is_first; n++) {
    s->right[n] = zeros(s->memory[n].bytes);
    memcpy(s->right[n], guarded_found(&s->memory[n]), s->memory[n].bytes);
  }
  for (int n = 0; n < s->f->operands && !is_first; n++) {
    const struct operand *o = &s->f->operand[n];
    const char *const found = guarded_found(&s->memory[home_of(s, n)]);
    for (int k = 0; k < o->count && o->is_written; k++)
      compare_member(&o->member[k], n, found + s->at[n][k], s->right[home_of(s, n)] + s->at[n][k]);
  }
}

void stage_compare_apart(const struct stage *s, const struct stage *apart) {
  for (int n = 0; n < s->f->operands; n++) {
    const struct operand *o = &s->f->operand[n];
    if (!o->is_written) continue;
    compare_member(&o->member[0], n, guarded_found(&apart->memory[n]),
                   s->right[home_of(s, n)] + s->at[n][0]);
  }
}
