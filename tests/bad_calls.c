/* SPDX-License-Identifier: Apache-2.0 */
#include "bad_calls.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "aclnn/acl_meta.h"
#include "float_format.h"
#include "operator_call.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* The codes, as CANN's documents have them. */
enum { NULL_POINTER = 161001, INVALID = 161002 };

/* --- the table of wrongs -----------------------------------------------------------------------
 */

static const char *const change_words[CHANGES] = {
    "handle", "rank",   "dtype",   "format", "length",      "length +", "stride",
    "shared", "offset", "entries", "value",  "over half +", "number"};

#define PAIRED true
#define EACH(number) (number), (number)
static const struct bad_wrong wrongs[] = {
    {HANDLE, EACH(NO_HANDLE), TENSOR | ARRAY | RESULT, NULL_POINTER, PAIRED},
    {HANDLE, EACH(DEAD_TENSOR), TENSOR | ARRAY, INVALID, PAIRED},
    {HANDLE, EACH(DEAD_ARRAY), TENSOR | ARRAY, INVALID, false},
    {HANDLE, EACH(HOST_ADDRESS), TENSOR | ARRAY, INVALID, PAIRED},
    {HANDLE, SMALL_NUMBER, OTHER_GENERATION, TENSOR | ARRAY, INVALID, false},
    {HANDLE, EACH(LIVE_TENSOR), ARRAY, INVALID, PAIRED},
    {HANDLE, EACH(LIVE_ARRAY), TENSOR, INVALID, PAIRED},
    {HANDLE, LIVE_FLOATS, LIVE_BUFFER, TENSOR | ARRAY, INVALID, false},

    {RANK, 0, 6, TENSOR | ALL, INVALID, PAIRED},
    {RANK, 7, BAD_AXES, TENSOR | ALL, INVALID, false},

    /* all of CANN's numbers, those that are nobody's between them, and nonsense */
    {DTYPE, ACL_FLOAT, ACL_FLOAT16, TENSOR | GRADIENTS, INVALID, PAIRED},
    {DTYPE, EACH(ACL_INT8), TENSOR | GRADIENTS, INVALID, false},
    {DTYPE, EACH(ACL_INT32), TENSOR | GRADIENTS, INVALID, PAIRED},
    {DTYPE, ACL_UINT8, ACL_UINT32, TENSOR | GRADIENTS, INVALID, false},
    {DTYPE, EACH(ACL_INT64), TENSOR | GRADIENTS, INVALID, PAIRED},
    {DTYPE, EACH(ACL_UINT64), TENSOR | GRADIENTS, INVALID, false},
    {DTYPE, EACH(ACL_DOUBLE), TENSOR | GRADIENTS, INVALID, PAIRED},
    {DTYPE, ACL_BOOL, ACL_FLOAT4_E1M2 + 5, TENSOR | GRADIENTS, INVALID, false},
    {DTYPE, EACH(ACL_DT_UNDEFINED), TENSOR | GRADIENTS, INVALID, false},
    {DTYPE, EACH(1000), TENSOR | GRADIENTS, INVALID, PAIRED},
    {DTYPE, EACH(INT32_MAX), TENSOR | GRADIENTS, INVALID, false},
    {DTYPE, EACH(INT32_MIN), TENSOR | GRADIENTS, INVALID, false},

    {FORMAT, ACL_FORMAT_NCHW, ACL_FORMAT_NC1HWC0, TENSOR | ALL, INVALID, PAIRED},
    {FORMAT, ACL_FORMAT_FRACTAL_Z, ACL_FORMAT_FRACTAL_NZ_C0_8 + 5, TENSOR | ALL, INVALID, false},
    {FORMAT, EACH(ACL_FORMAT_UNDEFINED), TENSOR | ALL, INVALID, false},
    {FORMAT, EACH(1000), TENSOR | ALL, INVALID, PAIRED},
    {FORMAT, EACH(INT32_MAX), TENSOR | ALL, INVALID, false},
    {FORMAT, EACH(INT32_MIN), TENSOR | ALL, INVALID, false},

    {LENGTH, -1, 0, TENSOR | INPUTS | OUTPUTS | ALL, INVALID, PAIRED},
    {LENGTH, EACH(INT64_MIN), TENSOR | INPUTS | OUTPUTS | ALL, INVALID, PAIRED},
    {LENGTH, EACH(PLANE), TENSOR | INPUTS | OUTPUTS, INVALID, PAIRED},
    {LENGTH, EACH(HUGE), TENSOR | INPUTS | OUTPUTS | ALL, INVALID, PAIRED},
    {LENGTH, INT64_MAX - 1, INT64_MAX, TENSOR | INPUTS | OUTPUTS | ALL, INVALID, false},
    {LONGER, EACH(1), TENSOR | INPUTS | OUTPUTS, INVALID, PAIRED},

    {STEP, -1, 0, TENSOR, INVALID, PAIRED},
    {STEP, EACH(INT64_MIN), TENSOR, INVALID, false},
    {STEP, EACH(HUGE), TENSOR, INVALID, PAIRED},
    {STEP, EACH(INT64_MAX), TENSOR, INVALID, false},
    {SHARED, 0, 1, TENSOR, INVALID, PAIRED},
    {OFFSET_TO, EACH(-1), TENSOR, INVALID, PAIRED},
    {OFFSET_TO, EACH(INT64_MIN), TENSOR, INVALID, false},
    {OFFSET_TO, EACH(HUGE), TENSOR, INVALID, PAIRED},
    {OFFSET_TO, EACH(INT64_MAX), TENSOR, INVALID, false},

    {ENTRIES, EACH(0), ARRAY, INVALID, PAIRED},
    {ENTRIES, EACH(3), ARRAY, INVALID, PAIRED},
    {VALUE, -1, 0, ARRAY, INVALID, PAIRED},
    {VALUE, EACH(INT64_MIN), ARRAY, INVALID, PAIRED},
    {VALUE, EACH(2), ARRAY, INVALID, PAIRED}, /* a dilation that some products refuse */
    {VALUE, EACH(LARGE), ARRAY, INVALID, PAIRED},
    {VALUE, EACH(INT64_MAX), ARRAY, INVALID, PAIRED},
    {OVER_HALF, EACH(1), ARRAY, INVALID, PAIRED},
    {NUMBER, -1, 4, MATH, INVALID, PAIRED},
    {NUMBER, EACH(INT8_MIN), MATH, INVALID, false},
    {NUMBER, EACH(INT8_MAX), MATH, INVALID, false},
};

/* --- handles -----------------------------------------------------------------------------------
 */

static const void *handles[BAD_HANDLES];

static aclTensor *any_tensor(void) {
  return aclCreateTensor(NULL, 0, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, NULL, 0, NULL);
}

void bad_handles_open(void) {
  static const int host_word;
  float one = 1;
  const aclTensor *element = any_tensor();
  handles[DEAD_TENSOR] = any_tensor();
  handles[DEAD_ARRAY] = aclCreateIntArray(NULL, 0);
  handles[SMALL_NUMBER] = (const void *)(uintptr_t)16;
  handles[HOST_ADDRESS] = &host_word;
  handles[ALL_ONES] = (const void *)UINTPTR_MAX;
  handles[LIVE_TENSOR] = any_tensor();
  handles[OTHER_GENERATION] = (const void *)((uintptr_t)handles[LIVE_TENSOR] ^ (uintptr_t)1 << 46);
  handles[LIVE_ARRAY] = aclCreateIntArray(NULL, 0);
  handles[LIVE_FLOATS] = aclCreateFloatArray(&one, 1);
  handles[LIVE_SCALAR] = aclCreateScalar(&one, ACL_FLOAT);
  handles[LIVE_LIST] = aclCreateTensorList(&element, 1);
  handles[LIVE_BUFFER] = aclCreateDataBuffer(NULL, 0);
  (void)aclDestroyTensor(handles[DEAD_TENSOR]);
  (void)aclDestroyIntArray(handles[DEAD_ARRAY]);
}

void bad_handles_close(void) {
  (void)aclDestroyTensor(handles[LIVE_TENSOR]);
  (void)aclDestroyIntArray(handles[LIVE_ARRAY]);
  (void)aclDestroyFloatArray(handles[LIVE_FLOATS]);
  (void)aclDestroyScalar(handles[LIVE_SCALAR]);
  (void)aclDestroyTensorList(handles[LIVE_LIST]);
  (void)aclDestroyDataBuffer(handles[LIVE_BUFFER]);
}

/* --- bases -------------------------------------------------------------------------------------
 */

static struct bad_array read_sizes(const struct window_sizes *sizes, int64_t missing) {
  struct bad_array array = {.count = 1, .values = {missing}};
  if (sizes->count > 0) array.count = (uint64_t)sizes->count;
  for (int i = 0; i < sizes->count; i++) array.values[i] = sizes->of[i];
  return array;
}

struct bad_call bad_base(const struct problem *p) {
  struct bad_call c = {.op = p->op,
                       .ceil = p->ceil,
                       .include_pad = p->include_pad,
                       .divisor = p->divisor,
                       .math = p->cube};
  for (int i = 0; i < POOL_TENSORS; i++) {
    const struct tensor_layout layout = tensor_lay_out(p, i);
    struct bad_tensor *t = &c.tensor[i];
    t->rank = layout.rank;
    t->dtype = (int)float_formats[p->type].dtype;
    t->format = (int)p->format;
    t->offset = layout.offset;
    t->strided = !layout.dense;
    memcpy(t->dims, layout.dims, sizeof layout.dims);
    memcpy(t->strides, layout.strides, sizeof layout.strides);
  }
  c.tensor[INDICES].dtype = p->index_bytes == 8 ? ACL_INT64 : ACL_INT32;
  c.array[KERNEL_SIZE - KERNEL_SIZE] = read_sizes(&p->kernel, 1);
  c.array[STRIDE - KERNEL_SIZE] = read_sizes(&p->stride, 1);
  if (p->stride.count <= 0) c.array[STRIDE - KERNEL_SIZE].count = 0; /* the kernel's */
  c.replaced[STRIDE] = p->stride.count == STRIDE_NULL;
  c.array[PADDING - KERNEL_SIZE] = read_sizes(&p->pad, 0);
  c.array[DILATION - KERNEL_SIZE] = read_sizes(&p->dilation, 1);
  return c;
}

/* --- all flaws of a base -----------------------------------------------------------------------
 */

static bool has_axes(enum change change) {
  return change == LENGTH || change == LONGER || change == STEP || change == SHARED;
}

/* In how many places of the argument the change can be made. */
static int places(const struct bad_call *c, const struct bad_wrong *w, int argument) {
  if (argument < POOL_TENSORS) return has_axes(w->change) ? c->tensor[argument].rank : 1;
  if (w->change != VALUE && w->change != OVER_HALF) return 1;
  return c->replaced[argument] ? 0 : (int)c->array[argument - KERNEL_SIZE].count;
}

static unsigned touched(enum scope scope, int argument) {
  switch (scope) {
    case GRADIENTS:
      return 1u << GRAD_OUT | 1u << SELF | 1u << GRAD_IN;
    case INPUTS:
      return 1u << SELF | 1u << GRAD_IN;
    case OUTPUTS:
      return 1u << GRAD_OUT | 1u << INDICES;
    case ALL:
      return 0xf;
    default:
      return 1u << argument;
  }
}

static bool fits(enum scope scope, int argument) {
  switch (scope) {
    case TENSOR:
      return argument < POOL_TENSORS;
    case ARRAY:
      return argument >= KERNEL_SIZE && argument <= DILATION;
    case MATH:
      return argument == MATH_TYPE;
    case RESULT:
      return argument >= WORKSPACE_SIZE;
    case INPUTS:
      return argument == SELF;
    default:
      return argument == GRAD_OUT; /* stands for all it touches */
  }
}

static int add_flaws(struct bad_question *q, struct flaw *flaws, int most) {
  int count = 0;
  const unsigned has = bad_arguments_of(q->base->op), touches = touched(q->scope, q->argument);
  if ((has & 1u << q->argument) == 0 || (q->scope == OUTPUTS && (has & 1u << INDICES) == 0))
    return 0;
  for (q->axis = 0; q->axis < places(q->base, q->wrong, q->argument) && count < most; q->axis++) {
    const int step = bad_step(q);
    if (step == BAD_NO_FLAW) continue;
    flaws[count++] = (struct flaw){.wrong = q->wrong,
                                   .argument = q->argument,
                                   .axis = q->axis,
                                   .to = q->to,
                                   .touches = touches & has,
                                   .code = q->wrong->code,
                                   .step = step,
                                   .paired = q->wrong->paired,
                                   .unnamed = bad_unnamed(q)};
  }
  return count;
}

int bad_flaws(const struct bad_call *base, const struct bad_product *product, struct flaw *flaws,
              int most) {
  struct bad_question q = {.base = base, .product = product};
  int count = 0;
  for (int i = 0; i < COUNT(wrongs); i++)
    for (unsigned scope = TENSOR; scope <= ALL; scope *= 2)
      for (int argument = 0; argument < BAD_ARGUMENTS; argument++) {
        if ((wrongs[i].scopes & scope) == 0 || !fits((enum scope)scope, argument)) continue;
        q.wrong = &wrongs[i];
        q.scope = (enum scope)scope;
        q.argument = argument;
        for (int64_t n = wrongs[i].until - wrongs[i].from; n >= 0; n--) {
          q.to = wrongs[i].from + n;
          count += add_flaws(&q, flaws + count, most - count);
        }
      }
  return count;
}

/* --- making them -------------------------------------------------------------------------------
 */

static void set_rank(struct bad_tensor *t, int rank) {
  for (int i = t->rank; i < rank; i++) t->dims[i] = t->strides[i] = 1;
  t->rank = rank;
}

/* Explicit strides, to change one of them. */
static void set_strides(struct bad_tensor *t) {
  uint64_t stride = 1;
  for (int i = t->rank - 1; i >= 0 && !t->strided; i--) {
    t->strides[i] = (int64_t)stride;
    stride *= (uint64_t)t->dims[i];
  }
  t->strided = true;
}

static void share(struct bad_tensor *t, int axis, bool barely) {
  set_strides(t);
  const uint64_t step = (uint64_t)t->strides[axis + 1], length = (uint64_t)t->dims[axis + 1];
  t->strides[axis] = (int64_t)(barely ? step * (length - 1) : step);
}

static void change_tensor(struct bad_tensor *t, const struct flaw *f) {
  switch (f->wrong->change) {
    case RANK:
      set_rank(t, (int)f->to);
      break;
    case DTYPE:
      t->dtype = (int)f->to;
      break;
    case FORMAT:
      t->format = (int)f->to;
      break;
    case LENGTH:
      t->dims[f->axis] = f->to;
      break;
    case LONGER:
      t->dims[f->axis] += f->to;
      break;
    case STEP:
      set_strides(t);
      t->strides[f->axis] = f->to;
      break;
    case SHARED:
      share(t, f->axis, f->to == 1);
      break;
    default:
      t->offset = f->to;
  }
}

static void change_array(struct bad_call *call, const struct flaw *flaw) {
  struct bad_array *array = &call->array[flaw->argument - KERNEL_SIZE];
  const struct bad_array *kernel = &call->array[0];
  const int axis = flaw->axis;
  if (flaw->wrong->change == ENTRIES) array->count = (uint64_t)flaw->to;
  if (flaw->wrong->change == VALUE) array->values[axis] = flaw->to;
  if (flaw->wrong->change == OVER_HALF)
    array->values[axis] = kernel->values[kernel->count == 1 ? 0 : axis] / 2 + flaw->to;
}

void bad_apply(const struct flaw *flaw, struct bad_call *call) {
  if (flaw->wrong->change == HANDLE) {
    call->replaced[flaw->argument] = true;
    call->handle[flaw->argument] = handles[flaw->to];
  } else if (flaw->argument == MATH_TYPE) {
    call->math = (int)flaw->to;
  } else if (flaw->argument >= KERNEL_SIZE) {
    call->replaced[flaw->argument] = false;
    change_array(call, flaw);
  } else {
    for (int i = 0; i < POOL_TENSORS; i++)
      if (flaw->touches & 1u << i) change_tensor(&call->tensor[i], flaw);
  }
}

/* --- pairs -------------------------------------------------------------------------------------
 */

static bool is_length(const struct flaw *f) {
  return f->wrong->change == LENGTH || f->wrong->change == LONGER;
}

static bool is_stride(const struct flaw *f) {
  return f->wrong->change == STEP || f->wrong->change == SHARED;
}

/* Two changes of the same argument. */
static bool stay_apart(const struct flaw *a, const struct flaw *b) {
  if (a->touches != b->touches || a->wrong->change == b->wrong->change) return false;
  if (a->wrong->change == HANDLE || b->wrong->change == HANDLE) return false;
  if (a->argument >= KERNEL_SIZE) /* the limit of one value may be another array's */
    return a->wrong->change == ENTRIES || b->wrong->change == ENTRIES;
  if (a->wrong->change == RANK || b->wrong->change == RANK) return false;
  return !(is_length(a) && is_length(b)) && !(is_stride(a) && is_stride(b));
}

/* Tensors that differ from the others in the same way may agree with each other again; what is
 * negative stays wrong. */
static bool may_mend(const struct flaw *a, const struct flaw *b) {
  return is_length(a) && is_length(b) && a->axis == b->axis && a->wrong == b->wrong &&
         a->to == b->to && a->to >= 0;
}

bool bad_meet(const struct flaw *a, const struct flaw *b) {
  if ((a->touches & b->touches) != 0) return stay_apart(a, b);
  return !may_mend(a, b);
}

struct bad_verdict bad_judge(const struct flaw *a, const struct flaw *b) {
  struct bad_verdict v = {.code = a->code, .named = a->unnamed ? 0 : a->touches};
  if (b == NULL) return v;
  const bool either = a->step == b->step || (a->step >= 0 && b->step >= 0 &&
                                             (a->step == BAD_ANY_STEP || b->step == BAD_ANY_STEP));
  if (either) {
    v.named = a->unnamed || b->unnamed ? 0 : a->touches | b->touches;
  } else if (b->step < a->step) {
    v.code = b->code;
    v.named = b->unnamed ? 0 : b->touches;
  }
  return v;
}

void bad_describe(const struct flaw *flaw, enum pool_operator op, char text[PROBLEM_TEXT]) {
  int used = 0;
  for (int i = 0; i < BAD_ARGUMENTS; i++)
    if (flaw->touches & 1u << i)
      used += snprintf(text + used, PROBLEM_TEXT - (size_t)used, "%s%s", used == 0 ? "" : ", ",
                       bad_name(op, i));
  (void)snprintf(text + used, PROBLEM_TEXT - (size_t)used, ": %s %" PRId64 " (place %d)",
                 change_words[flaw->wrong->change], flaw->to, flaw->axis);
}

/* --- calling -----------------------------------------------------------------------------------
 */

static const void *make_tensor(const struct bad_tensor *t) {
  return aclCreateTensor(t->dims, (uint64_t)t->rank, (aclDataType)t->dtype,
                         t->strided ? t->strides : NULL, t->offset, (aclFormat)t->format, t->dims,
                         (uint64_t)t->rank, t->data);
}

struct bad_arguments bad_make(const struct bad_call *c) {
  struct bad_arguments h;
  for (int i = 0; i <= DILATION; i++) {
    const struct bad_array *a = i < KERNEL_SIZE ? NULL : &c->array[i - KERNEL_SIZE];
    h.of[i] = c->replaced[i]    ? c->handle[i]
              : i < KERNEL_SIZE ? make_tensor(&c->tensor[i])
                                : (const void *)aclCreateIntArray(a->values, a->count);
  }
  return h;
}

/* What the caller made is still the caller's. */
bool bad_drop(const struct bad_call *c, const struct bad_arguments *h) {
  bool good = true;
  for (int i = 0; i <= DILATION; i++)
    if (!c->replaced[i])
      good = (i < KERNEL_SIZE ? aclDestroyTensor(h->of[i]) : aclDestroyIntArray(h->of[i])) == 0 &&
             good;
  return good;
}

aclnnStatus bad_first_phase(const struct bad_call *c, const struct bad_arguments *h, uint64_t *size,
                            aclOpExecutor **executor) {
  struct operator_arguments a = {.ceil = c->ceil,
                                 .include_pad = c->include_pad,
                                 .divisor = c->divisor,
                                 .cube = (int8_t)c->math};
  for (int i = 0; i < POOL_TENSORS; i++) a.tensor[i] = (aclTensor *)(uintptr_t)h->of[i];
  for (int i = 0; i < BAD_ARRAYS; i++)
    a.array[i] = (aclIntArray *)(uintptr_t)h->of[KERNEL_SIZE + i];
  return operator_calls[c->op].first(&a, c->replaced[WORKSPACE_SIZE] ? NULL : size,
                                     c->replaced[EXECUTOR] ? NULL : executor);
}
