/* SPDX-License-Identifier: Apache-2.0 */
/* The operators' documents once more, as plain questions without an order: whether the first phase
 * must accept a call.  Written from the pages in docs/ops, not from the checks in src/ops. */
#include <string.h>

#include "operators.h"

/* Beyond this the answer may be "too large", which depends on the order of the arithmetic. */
#define LARGE (INT64_C(1) << 20)

static bool is_product(const struct call *call, const char *prefix) {
  return strncmp(call->soc, prefix, strlen(prefix)) == 0;
}

static bool is_older_product(const struct call *call) { return is_product(call, "Ascend910"); }

bool call_channels_last(const struct call *call) {
  return call->op == MAX_POOL2D && call->tensor[SELF].format == ACL_FORMAT_NHWC;
}

int64_t call_size(const struct call_array *array, int axis, int64_t missing) {
  if (array->handle != LIVE || array->count == 0) return missing;
  return array->of[array->count == 1 ? 0 : axis];
}

void call_strides(const struct call_tensor *t, int64_t strides[CALL_AXES]) {
  uint64_t step = 1;
  memcpy(strides, t->strides, CALL_AXES * sizeof *strides);
  for (int i = t->rank - 1; i >= 0 && !t->strided; i--) {
    strides[i] = (int64_t)step;
    step *= (uint64_t)t->dims[i];
  }
}

bool call_is_empty(const struct call_tensor *t) {
  for (int i = 0; i < t->rank; i++)
    if (t->dims[i] == 0) return true;
  return false;
}

size_t call_element(int dtype) {
  switch (dtype) {
    case ACL_FLOAT16:
    case ACL_BF16:
      return 2;
    case ACL_FLOAT:
    case ACL_INT32:
      return 4;
    case ACL_DOUBLE:
    case ACL_INT64:
      return 8;
    default:
      return 0;
  }
}

/* --- one tensor --------------------------------------------------------------------------------
 */

static bool is_used(const struct call *call, int i) { return i != INDICES || call_is_max(call); }

static bool is_one_of(int value, const int *list, int count) {
  for (int i = 0; i < count; i++)
    if (value == list[i]) return true;
  return false;
}

static bool is_float(int dtype) {
  return dtype == ACL_FLOAT || dtype == ACL_FLOAT16 || dtype == ACL_BF16;
}

static bool same_shape(const struct call_tensor *a, const struct call_tensor *b) {
  return a->rank == b->rank && memcmp(a->dims, b->dims, (size_t)a->rank * sizeof a->dims[0]) == 0;
}

/* Two cells in one place?  Exact, by looking at all of them; the caller keeps it small. */
static bool cells_collide(const struct call_tensor *t, const int64_t *strides) {
  enum { SPAN = 1 << 16 };
  static unsigned char seen[SPAN];
  int64_t at[CALL_AXES] = {0}, step[CALL_AXES], place = 0, last = 0;
  for (int i = 0; i < t->rank; i++) {
    step[i] = t->dims[i] == 1 ? 0 : strides[i]; /* nobody goes along it, however long */
    last += (t->dims[i] - 1) * step[i];
  }
  if (last >= SPAN) return false;
  memset(seen, 0, (size_t)last + 1);
  for (int axis = 0; axis >= 0;) {
    if (seen[place]++ != 0) return true;
    for (axis = t->rank - 1; axis >= 0; axis--) {
      place += step[axis];
      if (++at[axis] < t->dims[axis]) break;
      place -= t->dims[axis] * step[axis];
      at[axis] = 0;
    }
  }
  return false;
}

/* Each axis steps over all that the faster ones reach: nobody can doubt that cells lie apart. */
static bool is_nested(const struct call_tensor *t, const int64_t *strides) {
  int64_t reached = 1, last = 0;
  for (int round = 0; round < t->rank; round++) {
    int next = -1;
    for (int i = 0; i < t->rank; i++)
      if (t->dims[i] > 1 && strides[i] > last && (next < 0 || strides[i] < strides[next])) next = i;
    if (next < 0) break;
    if (strides[next] < reached) return false;
    last = strides[next];
    reached += (t->dims[next] - 1) * strides[next];
  }
  return true;
}

static enum verdict judge_written(const struct call_tensor *t, const int64_t *strides) {
  double span = 1;
  for (int i = 0; i < t->rank; i++) {
    if (t->dims[i] > 1 && strides[i] == 0) return REFUSE;
    span += (double)(t->dims[i] - 1) * (double)strides[i];
  }
  if (span > (double)LARGE) return EITHER;
  if (cells_collide(t, strides)) return REFUSE;
  return is_nested(t, strides) ? ACCEPT : EITHER;
}

static enum verdict judge_view(const struct call_tensor *t, bool written) {
  const bool empty = call_is_empty(t);
  int64_t strides[CALL_AXES];
  double elements = 1, reach = (double)t->offset;
  bool large = t->offset > LARGE;
  for (int i = 0; i < t->rank; i++)
    if (t->dims[i] < 0) return REFUSE;
  call_strides(t, strides);
  if (t->offset < 0) return REFUSE;
  for (int i = 0; i < t->rank; i++) {
    if (strides[i] < 0 && t->strided) return REFUSE;
    large = large || t->dims[i] > LARGE || strides[i] < 0 || (t->dims[i] > 1 && strides[i] > LARGE);
    elements *= (double)t->dims[i];
    if (t->dims[i] > 0) reach += (double)(t->dims[i] - 1) * (double)strides[i];
  }
  if (!empty && (elements > 0x1p64 || reach > 0x1p64)) return REFUSE;
  if (large || elements > 0x1p30) return EITHER;
  return written && !empty ? judge_written(t, strides) : ACCEPT;
}

/* --- attributes --------------------------------------------------------------------------------
 */

static bool is_small(const struct call_array *a) {
  return call_size(a, 0, 1) <= LARGE && call_size(a, 1, 1) <= LARGE;
}

static bool has_count(const struct call_array *a, int least) {
  return a->handle == ABSENT || (a->count >= least && a->count <= 2);
}

static enum verdict judge_arrays(const struct call *call) {
  const struct call_array *a = call->array;
  bool good = has_count(&a[KERNEL], 1) && has_count(&a[STRIDE], 0) && has_count(&a[PADDING], 1);
  bool small = is_small(&a[KERNEL]) && is_small(&a[STRIDE]) && is_small(&a[PADDING]);
  if (call->op == MAX_POOL2D) {
    good = good && has_count(&a[DILATION], 1);
    small = small && is_small(&a[DILATION]);
  }
  for (int i = 0; i < 2 && good; i++) {
    const int64_t kernel = call_size(&a[KERNEL], i, 1), pad = call_size(&a[PADDING], i, 0);
    good = kernel > 0 && call_size(&a[STRIDE], i, kernel) > 0 && pad >= 0 && pad <= kernel / 2;
    if (call->op != MAX_POOL2D) continue;
    const int64_t dilation = call_size(&a[DILATION], i, 1);
    good = good && dilation > 0 && (dilation == 1 || !is_older_product(call));
  }
  if (!good) return REFUSE;
  return small ? ACCEPT : EITHER;
}

/* gradOutput has the size that the windows give; all numbers are small. */
static bool is_pooled(const struct call *call) {
  const struct call_tensor *self = &call->tensor[SELF], *grad = &call->tensor[GRAD_OUT];
  const int first = self->rank - 2 - (call_channels_last(call) ? 1 : 0);
  if (grad->rank != self->rank) return false;
  for (int i = 0; i < grad->rank; i++) {
    int64_t expected = self->dims[i];
    if (i == first || i == first + 1) {
      const int64_t kernel = call_size(&call->array[KERNEL], i - first, 1);
      const bool dilated = call->op == MAX_POOL2D;
      const struct reference_axis axis = {
          .in = self->dims[i],
          .kernel = kernel,
          .stride = call_size(&call->array[STRIDE], i - first, kernel),
          .pad = call_size(&call->array[PADDING], i - first, 0),
          .pad_behind = call_size(&call->array[PADDING], i - first, 0),
          .dilation = dilated ? call_size(&call->array[DILATION], i - first, 1) : 1};
      expected = reference_sliding_out(&axis, call->ceil);
      if (expected <= 0) return false;
    }
    if (grad->dims[i] != expected) return false;
  }
  return true;
}

/* --- the operators -----------------------------------------------------------------------------
 */

static bool planar(int format) {
  static const int list[] = {ACL_FORMAT_ND, ACL_FORMAT_NCHW, ACL_FORMAT_NCL, ACL_FORMAT_NCDHW,
                             ACL_FORMAT_NC};
  return is_one_of(format, list, 5);
}

static bool agree(const struct call *call, bool formats) {
  const struct call_tensor *self = &call->tensor[SELF];
  for (int i = 0; i < POOL_TENSORS; i++) {
    const struct call_tensor *t = &call->tensor[i];
    if (!is_used(call, i)) continue;
    if (i != INDICES && t->dtype != self->dtype) return false;
    if (formats && t->format != self->format) return false;
  }
  return same_shape(&call->tensor[GRAD_IN], self) &&
         (!call_is_max(call) || same_shape(&call->tensor[INDICES], &call->tensor[GRAD_OUT]));
}

static bool good_indices(const struct call *call) {
  const int dtype = call->tensor[INDICES].dtype;
  const bool wide = call->op == ADAPTIVE_MAX_POOL2D || !is_older_product(call);
  return dtype == ACL_INT32 || (dtype == ACL_INT64 && wide);
}

static bool has_rank(const struct call *call) {
  const int rank = call->tensor[SELF].rank, spatial = call_spatial(call);
  return rank == spatial + 1 || rank == spatial + 2;
}

static bool good_max_pool(const struct call *call) {
  static const int formats[] = {ACL_FORMAT_ND, ACL_FORMAT_NCHW, ACL_FORMAT_NCL, ACL_FORMAT_NHWC};
  const struct call_tensor *self = &call->tensor[SELF];
  const bool older = is_older_product(call);
  if (!has_rank(call) || !agree(call, true) || !good_indices(call)) return false;
  if (older ? self->dtype != ACL_FLOAT : !is_float(self->dtype)) return false;
  if (!is_one_of(self->format, formats, older ? 3 : 4)) return false;
  for (int i = self->rank - 3; i < self->rank; i++)
    if (self->dims[i] <= 0) return false;
  return true;
}

static bool good_avg_pool(const struct call *call) {
  const struct call_tensor *self = &call->tensor[SELF], *grad = &call->tensor[GRAD_OUT];
  if (!has_rank(call) || !agree(call, false) || grad->rank != self->rank) return false;
  if (!is_float(self->dtype) || call->cube < 0 || call->cube > 3) return false;
  if ((call->cube == 2 && self->dtype == ACL_BF16) || (call->cube == 3 && self->dtype != ACL_FLOAT))
    return false;
  for (int i = 0; i < POOL_TENSORS; i++) {
    const int format = call->tensor[i].format;
    const bool line = format == ACL_FORMAT_NCL && (self->rank == 3 || i == SELF);
    if (is_used(call, i) && format != ACL_FORMAT_NCHW && !line) return false;
  }
  for (int i = 0; i < self->rank - 2; i++)
    if (grad->dims[i] != self->dims[i]) return false;
  return true;
}

static bool good_adaptive(const struct call *call) {
  const struct call_tensor *self = &call->tensor[SELF], *grad = &call->tensor[GRAD_OUT];
  if (!has_rank(call) || !agree(call, true) || grad->rank != self->rank || !planar(self->format))
    return false;
  for (int i = 0; i < self->rank - call_spatial(call); i++)
    if (grad->dims[i] != self->dims[i]) return false;
  return true;
}

static bool good_adaptive_avg(const struct call *call) {
  const struct call_tensor *self = &call->tensor[SELF], *grad = &call->tensor[GRAD_OUT];
  bool global = true;
  if (!good_adaptive(call)) return false;
  for (int i = 0; i < self->rank; i++)
    if (self->dims[i] < (i == 0 && is_product(call, "Ascend950") ? 0 : 1)) return false;
  for (int i = self->rank - 3; i < self->rank; i++) {
    if (grad->dims[i] <= 0) return false;
    global = global && grad->dims[i] == 1;
  }
  return is_float(self->dtype) || (global && self->dtype == ACL_DOUBLE);
}

static bool is_good(const struct call *call) {
  switch (call->op) {
    case MAX_POOL2D:
      return good_max_pool(call);
    case AVG_POOL2D:
      return good_avg_pool(call);
    case ADAPTIVE_AVG_POOL3D:
      return good_adaptive_avg(call);
    default:
      return good_adaptive(call) && is_float(call->tensor[SELF].dtype) && good_indices(call);
  }
}

/* --- together ----------------------------------------------------------------------------------
 */

static bool misses_something(const struct call *call) {
  bool missing = call->no_size || call->no_executor;
  for (int i = 0; i < POOL_TENSORS; i++)
    missing = missing || (is_used(call, i) && call->tensor[i].handle == ABSENT);
  for (int i = 0; i < CALL_ARRAYS && call_is_sliding(call); i++) {
    const bool optional = call->op == AVG_POOL2D && (i == STRIDE || i == DILATION);
    missing = missing || (!optional && call->array[i].handle == ABSENT);
  }
  return missing;
}

static bool has_wrong_handle(const struct call *call) {
  bool found = false;
  for (int i = 0; i < POOL_TENSORS; i++)
    found = found || (is_used(call, i) && call->tensor[i].handle > ABSENT);
  for (int i = 0; i < CALL_ARRAYS && call_is_sliding(call); i++)
    found = found || ((i != DILATION || call->op == MAX_POOL2D) && call->array[i].handle > ABSENT);
  return found;
}

/* An average without outputs, or without cells, has no windows to be compared with. */
static bool needs_no_windows(const struct call *call) {
  return call->op == AVG_POOL2D &&
         (call_is_empty(&call->tensor[GRAD_OUT]) || call_is_empty(&call->tensor[GRAD_IN]));
}

enum verdict call_verdict(const struct call *call) {
  enum verdict verdict = ACCEPT;
  if (misses_something(call)) return REFUSE_NULL;
  if (has_wrong_handle(call) || !is_good(call)) return REFUSE;
  if (call_is_sliding(call)) verdict = judge_arrays(call);
  if (verdict == REFUSE) return REFUSE;
  for (int i = 0; i < POOL_TENSORS; i++) {
    const enum verdict view =
        is_used(call, i) ? judge_view(&call->tensor[i], i == GRAD_IN) : ACCEPT;
    if (view == REFUSE) return REFUSE;
    if (view == EITHER) verdict = EITHER;
  }
  if (verdict == ACCEPT && call_is_sliding(call) && !needs_no_windows(call) && !is_pooled(call))
    return REFUSE;
  return verdict;
}
