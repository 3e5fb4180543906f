/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes become a call: first one that is right in every respect, of any shape and layout, then up
 * to three changes to it.  So a good share is accepted, and what is refused is nearly right. */
#include <inttypes.h>
#include <string.h>

#include "operators.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

bool call_is_max(const struct call *call) {
  return call->op != AVG_POOL2D && call->op != ADAPTIVE_AVG_POOL3D;
}

bool call_is_sliding(const struct call *call) {
  return call->op == MAX_POOL2D || call->op == AVG_POOL2D;
}

int call_spatial(const struct call *call) {
  return call->op == ADAPTIVE_MAX_POOL3D || call->op == ADAPTIVE_AVG_POOL3D ? 3 : 2;
}

/* --- the shape ---------------------------------------------------------------------------------
 */

struct shape {
  bool batched, last; /* channels last */
  int64_t n, c, in[3], out[3];
};

static int64_t take_length(struct input *in, int64_t *left, bool large) {
  const int64_t byte = take(in);
  int64_t length = byte < 192 ? 1 + byte % 12 : large ? 8 * (byte - 191) : 1 + (byte - 192);
  if (length > *left) length = *left;
  *left /= length;
  return length;
}

static void take_in(struct input *in, const struct call *call, bool large, struct shape *s) {
  int64_t left = large ? 1 << 17 : 3000;
  s->batched = !take_rarely(in, 4);
  s->in[2] = take_length(in, &left, large);
  s->in[1] = take_length(in, &left, large);
  s->in[0] = 1;
  if (call_spatial(call) == 3) s->in[0] = take_length(in, &left, false);
  s->c = take_length(in, &left, false);
  s->n = s->batched ? take_length(in, &left, false) : 1;
}

static void take_adaptive_out(struct input *in, const struct call *call, struct shape *s) {
  s->out[0] = 1;
  for (int i = 3 - call_spatial(call); i < 3; i++) s->out[i] = 1 + take(in) % (s->in[i] + 2);
}

/* Two values, or one where they are the same. */
static void set_array(struct call_array *a, const int64_t of[2], bool short_form) {
  a->count = short_form && of[0] == of[1] ? 1 : 2;
  a->of[0] = of[0];
  a->of[1] = of[1];
}

static void take_windows(struct input *in, struct call *call, struct shape *s) {
  int64_t kernel[2], stride[2], pad[2], dilation[2];
  const unsigned forms = take(in);
  call->ceil = (forms & 1) != 0;
  call->include_pad = (forms & 2) != 0;
  for (int i = 0; i < 2; i++) {
    kernel[i] = 1 + take_below(in, take_rarely(in, 8) ? 30 : 5);
    stride[i] = (forms & 4) != 0 ? kernel[i] : 1 + take_below(in, 5);
    pad[i] = take(in) % (kernel[i] / 2 + 1);
    dilation[i] = call->op == MAX_POOL2D && (forms & 8) != 0 ? 1 + take_below(in, 4) : 1;
    struct reference_axis axis = {s->in[1 + i], 0,           kernel[i], stride[i],
                                  pad[i],       dilation[i], pad[i]};
    s->out[1 + i] = reference_sliding_out(&axis, call->ceil);
    if (s->out[1 + i] > 0) continue;
    kernel[i] = stride[i] = dilation[i] = 1;
    pad[i] = 0;
    s->out[1 + i] = s->in[1 + i];
  }
  s->out[0] = 1;
  set_array(&call->array[KERNEL], kernel, (forms & 16) != 0);
  set_array(&call->array[STRIDE], stride, (forms & 32) != 0);
  set_array(&call->array[PADDING], pad, (forms & 64) != 0);
  set_array(&call->array[DILATION], dilation, (forms & 128) != 0);
  if ((forms & 36) == 36 && stride[0] == kernel[0] && stride[1] == kernel[1]) {
    call->array[STRIDE].count = 0;
    if (call->op == AVG_POOL2D && call->ceil) call->array[STRIDE].handle = ABSENT;
  }
}

static void take_average(struct input *in, struct call *call) {
  static const int64_t divisors[] = {
      0, 0, 0, 1, -1, 2, 7, 3000000000, -(INT64_C(1) << 40), INT64_MAX, INT64_MIN, 16777217};
  call->divisor = divisors[take_below(in, COUNT(divisors))];
  call->cube = take_below(in, 2);
}

/* --- the tensors -------------------------------------------------------------------------------
 */

static int take_format(struct input *in, const struct call *call, const struct shape *s) {
  static const int any[] = {ACL_FORMAT_NCHW, ACL_FORMAT_ND, ACL_FORMAT_NCL, ACL_FORMAT_NCDHW,
                            ACL_FORMAT_NC};
  if (s->last) return ACL_FORMAT_NHWC;
  if (call->op == AVG_POOL2D)
    return !s->batched && take_rarely(in, 2) ? ACL_FORMAT_NCL : ACL_FORMAT_NCHW;
  return any[take_below(in, call->op == MAX_POOL2D ? 3 : 5)];
}

static void set_dims(struct call_tensor *t, const struct call *call, const struct shape *s,
                     const int64_t spatial[3]) {
  t->rank = 0;
  if (s->batched) t->dims[t->rank++] = s->n;
  if (!s->last) t->dims[t->rank++] = s->c;
  for (int i = 3 - call_spatial(call); i < 3; i++) t->dims[t->rank++] = spatial[i];
  if (s->last) t->dims[t->rank++] = s->c;
}

/* The order of the axes in memory, slowest first: a permutation from one byte. */
static void take_order(struct input *in, int rank, int order[CALL_AXES]) {
  unsigned number = take(in);
  for (int i = 0; i < rank; i++) order[i] = i;
  for (int i = rank - 1; i > 0; i--) {
    const int j = i - (int)(number % (unsigned)(i + 1)), axis = order[i];
    number /= (unsigned)(i + 1);
    order[i] = order[j];
    order[j] = axis;
  }
}

enum { NULL_STRIDES = 4, CONTIGUOUS, PERMUTED_AXES, GAPS, SHARED, LAYOUT_CHOICES };

static void take_layout(struct input *in, struct call_tensor *t, bool written) {
  const int layout = take_below(in, written ? SHARED : LAYOUT_CHOICES);
  int order[CALL_AXES];
  int64_t step = 1;
  if (layout < NULL_STRIDES) return;
  t->strided = true;
  t->offset = take_below(in, 9);
  if (layout == CONTIGUOUS)
    for (int i = 0; i < t->rank; i++) order[i] = i;
  else
    take_order(in, t->rank, order);
  for (int i = t->rank - 1; i >= 0; i--) {
    const int axis = order[i];
    const bool shared = layout == SHARED && take_rarely(in, 2);
    if (layout == GAPS) step += take_below(in, 4);
    t->strides[axis] = shared ? 0 : step;
    if (!shared) step *= t->dims[axis] > 0 ? t->dims[axis] : 1;
    if (t->dims[axis] == 1 && take_rarely(in, 4)) { /* any stride at all that is not negative */
      const int64_t any = take_extreme(in);
      t->strides[axis] = any < 0 ? 0 : any;
    }
  }
}

static void take_tensors(struct input *in, struct call *call, const struct shape *s, int dtype) {
  const int format = take_format(in, call, s);
  const int index_type = take_rarely(in, 2) ? ACL_INT64 : ACL_INT32;
  for (int i = 0; i < POOL_TENSORS; i++) {
    struct call_tensor *t = &call->tensor[i];
    t->dtype = i == INDICES ? index_type : dtype;
    t->format = format;
    set_dims(t, call, s, i == GRAD_OUT || i == INDICES ? s->out : s->in);
    take_layout(in, t, i == GRAD_IN);
  }
}

/* --- what is changed ---------------------------------------------------------------------------
 */

static void materialise(struct call_tensor *t) {
  int64_t strides[CALL_AXES];
  call_strides(t, strides);
  memcpy(t->strides, strides, sizeof strides);
  t->strided = true;
}

/* Next to what is right, or far away from it. */
static int64_t take_other(struct input *in, int64_t value) {
  const int choice = take_below(in, 4);
  if (choice == 3) return take_extreme(in);
  return (int64_t)((uint64_t)value + (choice == 0 ? 1u : choice == 1 ? UINT64_MAX : 0u));
}

static void change_tensor(struct input *in, struct call_tensor *t, int what) {
  const int axis = take_below(in, CALL_AXES - 1);
  switch (what) {
    case 0:
      t->handle = (enum handle_kind)take_below(in, HANDLE_KINDS);
      break;
    case 1:
      t->dtype = take_below(in, 45) - 2;
      break;
    case 2:
      t->format = take_below(in, 60) - 2;
      break;
    case 3:
      t->dims[axis] = take_other(in, t->dims[axis]);
      break;
    case 4:
      materialise(t);
      t->strides[axis] = take_other(in, t->strides[axis]);
      break;
    case 5:
      t->offset = take_extreme(in);
      break;
    case 6:
      t->rank = take_below(in, CALL_AXES);
      break;
    default:
      materialise(t);
      t->strides[axis] = take_below(in, 8);
  }
}

static void change_array(struct input *in, struct call_array *a, int what) {
  switch (what) {
    case 0:
      a->handle = (enum handle_kind)take_below(in, HANDLE_KINDS);
      break;
    case 1:
      a->count = take_below(in, CALL_VALUES + 1);
      break;
    default:
      a->of[take_below(in, CALL_VALUES)] = take_extreme(in);
  }
}

/* The same axis of several tensors: empty or huge, and still in agreement. */
static void change_axis(struct input *in, struct call *call) {
  const int axis = take_below(in, 5), which = take_below(in, 3);
  const int64_t length = take_rarely(in, 2) ? take_extreme(in) : 0;
  for (int i = 0; i < POOL_TENSORS; i++) {
    const bool small = i == GRAD_OUT || i == INDICES;
    if (which == 0 || small == (which == 1)) call->tensor[i].dims[axis] = length;
  }
}

static void change_rest(struct input *in, struct call *call) {
  switch (take_below(in, 4)) {
    case 0:
      call->no_size = true;
      break;
    case 1:
      call->no_executor = true;
      break;
    case 2:
      call->cube = take_below(in, 256) - 128;
      break;
    default:
      call->divisor = take_extreme(in);
  }
}

static void take_change(struct input *in, struct call *call) {
  const int what = take_below(in, 14), which = take_below(in, 4);
  if (what < 8)
    change_tensor(in, &call->tensor[which], what);
  else if (what < 11)
    change_array(in, &call->array[which], what - 8);
  else if (what == 11)
    change_axis(in, call);
  else if (what == 12)
    call->tensor[which] = call->tensor[take_below(in, 4)];
  else
    change_rest(in, call);
}

/* --- all of it ---------------------------------------------------------------------------------
 */

static void take_run(struct input *in, struct call *call, bool large) {
  const unsigned bits = take(in);
  call->late = (bits & 1) != 0;
  call->repeatable = (bits & 2) != 0;
  call->redescribed = (bits & 4) != 0;
  call->released = (bits & 8) != 0;
  call->past_caches = (bits & 16) != 0;
  call->errors = (bits & 32) != 0;
  call->raw_bits = (bits & 64) != 0;
  call->many_threads = large && (bits & 128) != 0;
  call->index = (enum index_source)take_below(in, LONE + 1); /* as many as the corpus knows */
  call->data = (enum gradient_data)take_below(in, TIES);
  call->seed = take(in) | take(in) << 8;
}

void call_decode(struct input *in, struct call *call) {
  static const char *const socs[] = {"", "", "", "Ascend910B1", "Ascend910_93", "Ascend950"};
  static const int dtypes[] = {ACL_FLOAT, ACL_FLOAT16, ACL_BF16};
  *call = (struct call){.op = (enum pool_operator)take_below(in, FIRST_OPERATORS)};
  struct shape s = {.n = 1};
  const int changes = take_below(in, 8) - 4;
  const bool large = take_rarely(in, 64);
  int dtype = dtypes[take_below(in, 3)];
  call->soc = socs[take_below(in, COUNT(socs))];
  take_run(in, call, large);
  if (take_rarely(in, 4)) {
    call->trouble = (enum trouble)take_below(in, TROUBLES);
    call->troubled = take_below(in, POOL_TENSORS);
  }
  take_in(in, call, large, &s);
  s.last = call->op == MAX_POOL2D && take_rarely(in, 3);
  if (call_is_sliding(call))
    take_windows(in, call, &s);
  else
    take_adaptive_out(in, call, &s);
  if (call->op == AVG_POOL2D) take_average(in, call);
  if (call->op == ADAPTIVE_AVG_POOL3D && s.out[0] * s.out[1] * s.out[2] == 1 && take_rarely(in, 2))
    dtype = ACL_DOUBLE;
  take_tensors(in, call, &s, dtype);
  for (int i = 0; i < changes; i++) take_change(in, call);
}

static void print_numbers(const char *name, const int64_t *numbers, int count) {
  fprintf(stderr, " %s=[", name);
  for (int i = 0; i < count; i++) fprintf(stderr, "%s%" PRId64, i == 0 ? "" : ",", numbers[i]);
  fprintf(stderr, "]");
}

void call_print(const struct call *call) {
  static const char *const ops[] = {"max_pool2d", "avg_pool2d", "adaptive_max_pool2d",
                                    "adaptive_max_pool3d", "adaptive_avg_pool3d"};
  static const char *const tensors[] = {"gradOutput", "self", "indices", "gradInput"};
  static const char *const arrays[] = {"kernel", "stride", "padding", "dilation"};
  fprintf(stderr, "%s soc='%s' ceil=%d include_pad=%d divisor=%" PRId64 " cube=%d no=%d,%d\n",
          ops[call->op], call->soc, call->ceil, call->include_pad, call->divisor, call->cube,
          call->no_size, call->no_executor);
  for (int i = 0; i < POOL_TENSORS; i++) {
    const struct call_tensor *t = &call->tensor[i];
    fprintf(stderr, "  %s handle=%d dtype=%d format=%d offset=%" PRId64, tensors[i], (int)t->handle,
            t->dtype, t->format, t->offset);
    print_numbers("dims", t->dims, t->rank);
    print_numbers("strides", t->strides, t->strided ? t->rank : 0);
    fprintf(stderr, "\n");
  }
  for (int i = 0; i < CALL_ARRAYS && call_is_sliding(call); i++) {
    fprintf(stderr, "  handle=%d", (int)call->array[i].handle);
    print_numbers(arrays[i], call->array[i].of, call->array[i].count);
  }
  fprintf(stderr,
          "  late=%d repeatable=%d redescribed=%d released=%d past_caches=%d errors=%d raw=%d "
          "threads=%d trouble=%d,%d index=%d data=%d seed=%" PRIu64 "\n",
          call->late, call->repeatable, call->redescribed, call->released, call->past_caches,
          call->errors, call->raw_bits, call->many_threads, (int)call->trouble, call->troubled,
          (int)call->index, (int)call->data, call->seed);
}
