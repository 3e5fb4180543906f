/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes become a call: first one that is right in every respect, of any shapes, types and layouts,
 * then up to three changes to it (tensors_change.c).  So a good share is accepted, and what is
 * refused is nearly right. */
#include <string.h>

#include "tensors_decode.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* --- Shapes ------------------------------------------------------------------------------------
 */

enum { SHAPE_RANK_MOST = 8, POSITIONS_MOST = 1 << 16 };

struct shape {
  int rank;
  int64_t dims[CALL_RANK_MOST];
};

static int64_t take_length(struct input *in, int64_t *left) {
  static const int64_t lengths[] = {3,  1,  2,  4,  5,   7,   8,    9,    15,   16,    17,
                                    31, 33, 64, 65, 130, 257, 1024, 1030, 4100, 40000, 0};
  const int64_t length = lengths[take_below(in, COUNT(lengths))];
  if (length > *left) return 1;
  if (length > 0) *left /= length;
  return length;
}

static struct shape take_shape(struct input *in) {
  static const int ranks[] = {2, 1, 3, 0, 4, 5, 6, 7, 8};
  struct shape s = {.rank = ranks[take_below(in, COUNT(ranks))]};
  int64_t left = POSITIONS_MOST;
  for (int i = 0; i < s.rank; i++) s.dims[i] = take_length(in, &left);
  return s;
}

static void set_shape(struct operand *o, const struct shape *s) {
  for (int k = 0; k < LIST_MOST; k++) tensor_call_shape(&o->member[k], s->rank, s->dims);
}

/* What is broadcast to a shape: without some axes in front, and of length 1 along others. */
static struct shape take_narrowed(struct input *in, const struct shape *of) {
  const int dropped = take_below(in, of->rank + 1);
  const unsigned ones = take(in);
  struct shape s = {.rank = of->rank - dropped};
  for (int i = 0; i < s.rank; i++) s.dims[i] = (ones >> i & 1u) != 0 ? 1 : of->dims[i + dropped];
  return s;
}

static int64_t positions(const struct shape *s) {
  int64_t count = 1;
  for (int i = 0; i < s->rank; i++) count *= s->dims[i];
  return count;
}

/* All operands have one shape; an input may be broadcast to it. */
static void take_elementwise(struct input *in, struct fuzzed_call *f) {
  const struct shape all = take_shape(in);
  const int narrow = take_below(in, f->operands + 1) - 1;
  for (int n = 0; n < f->operands; n++) set_shape(&f->operand[n], &all);
  if (narrow < 0 || f->operand[narrow].is_written) return;
  const struct shape s = take_narrowed(in, &all);
  set_shape(&f->operand[narrow], &s);
}

/* An axis, counted from the front or from the end. */
static int take_axis(struct input *in, int rank, int64_t *dim) {
  const int axes = rank == 0 ? 1 : rank, axis = take_below(in, 2 * axes);
  *dim = axis < axes ? axis : axis - 2 * axes;
  return axis % axes;
}

static struct shape reduced(const struct shape *of, unsigned axes, bool keeps) {
  struct shape s = {.rank = 0};
  for (int i = 0; i < of->rank; i++)
    if ((axes >> i & 1u) == 0)
      s.dims[s.rank++] = of->dims[i];
    else if (keeps)
      s.dims[s.rank++] = 1;
  return s;
}

static void take_reduction(struct input *in, struct fuzzed_call *f) {
  const struct shape self = take_shape(in);
  struct called_array *dims = &f->call.a[0];
  const unsigned which = take(in) & ((1u << self.rank) - 1);
  f->call.flag = (take(in) & 1) != 0;
  dims->count = 0;
  for (int i = 0; i < self.rank; i++)
    if ((which >> i & 1u) != 0) dims->values[dims->count++] = f->call.flag ? i : i - self.rank;
  const struct shape out = reduced(&self, which == 0 ? ~0u : which, f->call.flag);
  set_shape(&f->operand[0], &self);
  set_shape(&f->operand[1], &out);
}

static void take_along(struct input *in, struct fuzzed_call *f) {
  const struct shape self = take_shape(in);
  const int axis = take_axis(in, self.rank, &f->call.integer[0]);
  f->call.flag = (take(in) & 1) != 0;
  const struct shape out = reduced(&self, 1u << axis, f->call.flag);
  set_shape(&f->operand[0], &self);
  for (int n = 1; n < f->operands; n++) set_shape(&f->operand[n], &out);
}

static void take_extreme_of_all(struct input *in, struct fuzzed_call *f) {
  const struct shape self = take_shape(in), out = {.rank = 0};
  set_shape(&f->operand[0], &self);
  set_shape(&f->operand[1], &out);
}

static void take_gather(struct input *in, struct fuzzed_call *f) {
  const struct shape self = take_shape(in);
  struct shape index = self;
  int64_t left = 64;
  const int axis = take_axis(in, self.rank, &f->call.integer[0]);
  const unsigned shorter = take(in);
  for (int i = 0; i < index.rank; i++)
    if ((shorter >> i & 1u) != 0 && (i == axis || index.dims[i] > 0))
      index.dims[i] = i == axis ? take_length(in, &left) : 1 + take(in) % index.dims[i];
  set_shape(&f->operand[0], &self);
  set_shape(&f->operand[1], &index);
  set_shape(&f->operand[2], &index);
}

static void take_unpool(struct input *in, struct fuzzed_call *f) {
  const int spatial = tensor_operators[f->call.op].kind == KIND_UNPOOL2D ? 2 : 3;
  int64_t left = POSITIONS_MOST / 16;
  struct shape self = {.rank = spatial + 1 + take_below(in, 2)}, out;
  for (int i = 0; i < self.rank; i++) self.dims[i] = take_length(in, &left);
  out = self;
  left = POSITIONS_MOST;
  for (int i = 0; i < out.rank - spatial; i++) left /= out.dims[i] > 0 ? out.dims[i] : 1;
  for (int i = 0; i < spatial; i++) {
    int64_t *const length = &out.dims[out.rank - spatial + i];
    *length = take_length(in, &left);
    if (*length == 0) *length = 1;
    f->call.a[0].values[i] = *length;
  }
  set_shape(&f->operand[0], &self);
  set_shape(&f->operand[1], &self);
  set_shape(&f->operand[2], &out);
}

static void take_select(struct input *in, struct fuzzed_call *f) {
  const struct shape all = take_shape(in);
  const int narrow = take_below(in, 3) - 1;
  const struct shape out = {.rank = 1, .dims = {positions(&all) + take_below(in, 3)}};
  for (int n = 0; n < 2; n++) {
    const struct shape s = n == narrow ? take_narrowed(in, &all) : all;
    set_shape(&f->operand[n], &s);
  }
  set_shape(&f->operand[2], &out);
}

static void take_equal(struct input *in, struct fuzzed_call *f) {
  const struct shape self = take_shape(in);
  const struct shape out = {.rank = take_below(in, 4), .dims = {1, 1, 1}};
  for (int n = 0; n < 2; n++) set_shape(&f->operand[n], &self);
  if (take_rarely(in, 8)) f->operand[1].member[0].rank = self.rank > 0 ? self.rank - 1 : 0;
  set_shape(&f->operand[2], &out);
}

static int take_list_length(struct input *in) {
  static const int lengths[] = {2, 1, 3, 0, 5, LIST_MOST};
  return lengths[take_below(in, COUNT(lengths))];
}

/* Each tensor of a list has a shape of its own. */
static void take_lists(struct input *in, struct fuzzed_call *f) {
  const int count = take_list_length(in);
  take_elementwise(in, f);
  for (int n = 0; n < f->operands; n++) {
    struct operand *o = &f->operand[n];
    o->count = count;
    for (int k = 0; k < count; k++)
      if (o->member[k].rank > 0 && o->member[k].dims[0] > 1) o->member[k].dims[0] += k;
  }
}

static void take_cat(struct input *in, struct fuzzed_call *f) {
  struct shape out = take_shape(in);
  struct operand *tensors = &f->operand[0];
  tensors->count = take_list_length(in);
  const int axis = take_axis(in, out.rank, &f->call.integer[0]);
  set_shape(tensors, &out);
  if (out.rank > 0) out.dims[axis] = 0;
  for (int k = 0; k < tensors->count; k++) {
    struct called_tensor *t = &tensors->member[k];
    const unsigned byte = take(in);
    if (byte == 255)
      tensor_call_shape(t, 1, (const int64_t[]){0});
    else if (out.rank > 0)
      out.dims[axis] += t->dims[axis] = byte == 0 ? t->dims[axis] : byte % 8;
  }
  set_shape(&f->operand[1], &out);
}

static void take_shapes(struct input *in, struct fuzzed_call *f) {
  switch (tensor_operators[f->call.op].kind) {
    case KIND_REDUCE:
      take_reduction(in, f);
      return;
    case KIND_EXTREME:
      take_extreme_of_all(in, f);
      return;
    case KIND_ALONG:
      take_along(in, f);
      return;
    case KIND_GATHER:
      take_gather(in, f);
      return;
    case KIND_UNPOOL2D:
    case KIND_UNPOOL3D:
      take_unpool(in, f);
      return;
    case KIND_SELECT:
      take_select(in, f);
      return;
    case KIND_EQUAL:
      take_equal(in, f);
      return;
    case KIND_LIST:
      take_lists(in, f);
      return;
    case KIND_CAT:
      take_cat(in, f);
      return;
    default:
      take_elementwise(in, f);
  }
}

/* --- Types and numbers -------------------------------------------------------------------------
 */

static aclDataType type_of(unsigned byte) {
  static const aclDataType types[] = {ACL_FLOAT, ACL_FLOAT16, ACL_BF16,  ACL_DOUBLE, ACL_INT8,
                                      ACL_INT16, ACL_INT32,   ACL_INT64, ACL_UINT8,  ACL_BOOL};
  return types[byte % COUNT(types)];
}

static void set_type(struct operand *o, aclDataType dtype) {
  for (int k = 0; k < LIST_MOST; k++) o->member[k].dtype = dtype;
}

/* What is FLOAT in a right call becomes one other type; indices and truths stay what they are. */
static void take_types(struct input *in, struct fuzzed_call *f) {
  const unsigned byte = take(in), own = take(in);
  const aclDataType given = f->operand[0].member[0].dtype;
  const aclDataType type = byte == 0 ? given : type_of(byte);
  f->call.dtype = type;
  for (int n = 0; n < f->operands; n++) {
    struct operand *o = &f->operand[n];
    if (o->member[0].dtype == given) set_type(o, type);
    if ((own >> n & 1u) != 0) set_type(o, type_of(take(in)));
  }
  if ((own >> 3 & 1u) != 0) f->call.dtype = type_of(take(in));
}

static const double reals[] = {2,     0,      -0.0,    1,      -1,     0.5,
                               0.1,   1e-5,   100,     1e300,  -1e300, 1e-300,
                               65504, 0x1p63, -0x1p63, 0x1p64, 3e38,   0x1p-149};

double take_real(struct input *in) {
  const int choice = take_below(in, COUNT(reals) + 3);
  if (choice < COUNT(reals)) return reals[choice];
  const double infinite = 1e308 * 10;
  return choice == COUNT(reals) ? infinite : choice == COUNT(reals) + 1 ? -infinite : 0 * infinite;
}

static void take_scalar(struct input *in, struct called_scalar *s) {
  static const aclDataType types[] = {ACL_INT64, ACL_DOUBLE, ACL_BOOL};
  const unsigned byte = take(in);
  if (byte == 0) return;
  s->dtype = types[byte % 3];
  s->real = take_real(in);
  s->integer = take_extreme(in);
}

static void take_numbers(struct input *in, struct fuzzed_call *f) {
  const unsigned which = take(in);
  for (int i = 0; i < SCALARS_MOST; i++) take_scalar(in, &f->call.s[i]);
  if (tensor_operators[f->call.op].kind == KIND_FILL)
    for (int i = 0; i < INTEGERS_MOST; i++)
      if ((which >> i & 1u) != 0) f->call.integer[i] = take_extreme(in);
  for (int i = 0; i < REALS_MOST; i++)
    if ((which >> (4 + i) & 1u) != 0) f->call.real[i] = take_real(in);
  if ((which >> 6 & 1u) != 0 && tensor_operators[f->call.op].kind == KIND_BINARY)
    f->call.flag = true;
}

/* --- Layouts -----------------------------------------------------------------------------------
 */

/* Axes in any order, with gaps, with repeated elements in what is read, behind an offset. */
static void lay_out(struct called_tensor *t, unsigned form, unsigned order, bool is_written) {
  const int rank = t->rank, turn = (int)(order % 8);
  int64_t step = (form & 1) != 0 ? 1 + (int64_t)(order >> 6) : 1;
  t->strided = form != 0;
  t->offset = (form & 2) != 0 ? 1 + (int64_t)(order >> 4) : 0;
  for (int i = rank - 1; i >= 0; i--) {
    int axis = (form & 4) != 0 ? (i + turn) % rank : i;
    if ((form & 8) != 0) axis = rank - 1 - axis;
    const bool repeats = (form & 16) != 0 && !is_written && (order >> (axis % 8) & 1u) != 0;
    t->strides[axis] = repeats ? 0 : t->dims[axis] == 1 && (form & 32) != 0 ? 977 : step;
    if (repeats || t->dims[axis] == 0) continue;
    step *= t->dims[axis];
    if ((form & 64) != 0 && i == rank - 1) step += 1 + (int64_t)(order & 3);
  }
}

static void take_layouts(struct input *in, struct fuzzed_call *f) {
  const bool selects = tensor_operators[f->call.op].kind == KIND_SELECT;
  for (int n = 0; n < f->operands; n++) {
    struct operand *o = &f->operand[n];
    unsigned form = take(in);
    const unsigned order = form == 0 ? 0 : take(in);
    if (selects && o->is_written) form &= 2; /* without gaps */
    for (int k = 0; k < LIST_MOST; k++) lay_out(&o->member[k], form, order, o->is_written);
    if (form >= 128)
      for (int k = 0; k < LIST_MOST; k++) o->member[k].format = ACL_FORMAT_NCHW;
  }
}

/* --- Memory, and how it is run -----------------------------------------------------------------
 */

void fuzzed_share(struct input *in, struct fuzzed_call *f, int n) {
  struct operand *o = &f->operand[n];
  const unsigned byte = take(in);
  o->home = take_below(in, f->operands);
  if (f->operand[o->home].home != o->home) o->home = n; /* a home is at home itself */
  o->shift = byte < 128 ? 0 : (int64_t)byte - 127;
  if ((byte & 3) == 1 && n > 0 && f->operand[n - 1].is_list == o->is_list) o->handle = SAME;
}

/* What has the handle of the operand before is that one. */
static void repeat_handles(struct fuzzed_call *f) {
  for (int n = 1; n < f->operands; n++) {
    struct operand *o = &f->operand[n];
    const bool is_written = o->is_written;
    if (o->handle != SAME) continue;
    *o = f->operand[n - 1];
    o->is_written = is_written;
    o->handle = SAME;
  }
}

static void take_memory(struct input *in, struct fuzzed_call *f) {
  const unsigned byte = take(in);
  for (int n = 0; n < f->operands; n++) {
    if ((byte >> n & 1u) != 0) fuzzed_share(in, f, n);
    f->operand[n].is_stacked = (byte >> (3 + n) & 1u) != 0;
  }
}

static void take_run(struct input *in, struct fuzzed_call *f) {
  const unsigned byte = take(in);
  f->is_late = (byte & 1) != 0 && !fuzzed_has_lists(f);
  f->is_released = (byte & 2) != 0;
  f->many_threads = (byte & 4) != 0;
  f->past_caches = (byte & 8) != 0;
  f->errors = (byte & 16) != 0;
  f->raw_bits = (byte & 32) != 0;
  if ((byte & 64) != 0) f->trouble = (enum trouble)take_below(in, TROUBLES);
  f->troubled = f->trouble != NO_TROUBLE ? take_below(in, f->operands) : 0;
  f->seed = take(in);
}

/* --- The call ----------------------------------------------------------------------------------
 */

static void start(struct fuzzed_call *f, enum tensor_operator_id op) {
  struct tensor_argument all[ARGUMENTS_MOST];
  const int count = tensor_operator_arguments(op, all);
  *f = (struct fuzzed_call){.call = tensor_call_right(op)};
  for (int i = 0; i < count; i++) {
    if (all[i].kind != IS_TENSOR && all[i].kind != IS_LIST) continue;
    const int n = all[i].number;
    struct operand *o = &f->operand[n];
    *o = (struct operand){.is_list = all[i].kind == IS_LIST,
                          .is_written = tensor_operator_writes(op, n),
                          .count = all[i].kind == IS_LIST ? (int)f->call.list[n] : 1,
                          .dead = -1,
                          .home = n};
    for (int k = 0; k < LIST_MOST; k++) o->member[k] = f->call.t[n];
    if (n >= f->operands) f->operands = n + 1;
  }
}

void fuzzed_decode(struct input *in, struct fuzzed_call *f) {
  start(f, (enum tensor_operator_id)take_below(in, TENSOR_OPERATORS));
  const int changes = take_below(in, 4);
  take_shapes(in, f);
  take_types(in, f);
  take_layouts(in, f);
  take_numbers(in, f);
  take_run(in, f);
  take_memory(in, f);
  for (int i = 0; i < changes; i++) fuzzed_change(in, f);
  repeat_handles(f);
}
