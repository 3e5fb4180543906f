/* SPDX-License-Identifier: Apache-2.0 */
/* The handles of a call: tensors, lists, scalars and arrays, and what is none of them. */
#include "tensors.h"

_Static_assert(SCALARS_MOST <= TENSORS_MOST && ARRAYS_MOST <= TENSORS_MOST, "made.wrong");

static const void *stale_tensor(void) {
  static const int64_t one = 1;
  aclTensor *tensor = aclCreateTensor(&one, 1, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, &one, 1, NULL);
  NEED(aclDestroyTensor(tensor));
  return tensor;
}

/* Of what is alive all the time: the context. */
static const void *other_kind(void) {
  aclrtContext context;
  NEED(aclrtGetCurrentContext(&context));
  return context;
}

static const void *wrong_handle(enum handle_kind kind) {
  switch (kind) {
    case STALE:
      return stale_tensor();
    case OTHER_KIND:
      return other_kind();
    case NONSENSE:
      return (const void *)(uintptr_t)0x123456789;
    default:
      return NULL;
  }
}

/* Where a call finds the handle to pass in place of a new one; NULL: it shall make one. */
static const void *const *instead(enum handle_kind kind, const void **wrong_one) {
  *wrong_one = NULL;
  if (kind == LIVE) return NULL;
  *wrong_one = wrong_handle(kind);
  return wrong_one;
}

static void *address_of(const struct fuzzed_call *f, const struct stage *s, int n, int k) {
  return s == NULL || f->is_late ? (void *)f->nowhere : stage_address(s, n, k);
}

static aclTensorList *make_list(const struct fuzzed_call *f, const struct stage *s, int n) {
  const struct operand *o = &f->operand[n];
  const aclTensor *member[LIST_MOST] = {NULL};
  for (int k = 0; k < o->count; k++) {
    const struct called_tensor *t = &o->member[k];
    if (k == o->dead)
      member[k] = stale_tensor();
    else
      member[k] =
          aclCreateTensor(t->dims, (uint64_t)t->rank, t->dtype, t->strided ? t->strides : NULL,
                          t->offset, t->format, t->dims, (uint64_t)t->rank, address_of(f, s, n, k));
    if (member[k] == NULL) wrong("a tensor cannot be described: %s", sentence());
  }
  aclTensorList *list = aclCreateTensorList(member, (uint64_t)o->count);
  if (list == NULL) wrong("a list cannot be described: %s", sentence());
  return list;
}

/* s: where the data is, NULL for nowhere. */
static void make_operand(const struct fuzzed_call *f, const struct stage *s, int n,
                         struct made *m) {
  const struct operand *o = &f->operand[n];
  const bool is_same = o->handle == SAME && (s == NULL || !s->is_apart);
  const enum handle_kind kind = o->handle == SAME ? LIVE : o->handle;
  const void *const *handle = instead(kind, &m->wrong[0][n]);
  if (o->is_list) {
    if (handle == NULL && is_same) {
      handle = m->call.list_handle[n - 1];
    } else if (handle == NULL) {
      m->list[n] = make_list(f, s, n);
      handle = (const void *const *)(const void *)&m->list[n];
    }
    m->call.list_handle[n] = handle;
    return;
  }
  if (is_same) handle = (const void *const *)(const void *)&m->arguments.tensor[n - 1];
  m->call.t[n] = o->member[0];
  m->call.t[n].data = address_of(f, s, n, 0);
  m->call.t[n].handle = handle;
}

void made_open(struct made *m, const struct fuzzed_call *f, const struct stage *s) {
  *m = (struct made){
      .call = f->call, .size = NOT_TOUCHED, .executor = (aclOpExecutor *)(uintptr_t)NOT_TOUCHED};
  for (int n = 0; n < f->operands; n++) make_operand(f, s, n, m);
  for (int i = 0; i < SCALARS_MOST; i++)
    m->call.s[i].handle = instead(f->scalar_handle[i], &m->wrong[1][i]);
  for (int i = 0; i < ARRAYS_MOST; i++)
    m->call.a[i].handle = instead(f->array_handle[i], &m->wrong[2][i]);
  tensor_call_make(&m->call, &m->arguments);
}

void made_drop(struct made *m) {
  tensor_call_drop(&m->call, &m->arguments);
  for (int n = 0; n < TENSORS_MOST; n++) {
    NEED(aclDestroyTensorList(m->list[n]));
    m->list[n] = NULL;
  }
}
