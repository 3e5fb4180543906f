/* SPDX-License-Identifier: Apache-2.0 */
#include "operation_trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORKSPACE_POISON = 0x5b };

void operation_begin(struct operation_trial *o, enum tensor_operator_id op) {
  *o = (struct operation_trial){.call = {.op = op, .dtype = ACL_FLOAT}};
}

void operation_free(struct operation_trial *o) { tensor_trial_free(&o->t); }

/* --- Shapes, layouts and types --- */

struct pg_shape operation_draw_shape(uint64_t *state, int64_t most) {
  struct pg_shape shape = tensor_draw_shape(state, most);
  if (shape.rank > 0 && tensor_chance(state, 25)) shape.dims[tensor_draw(state, shape.rank)] = 0;
  return shape;
}

struct pg_shape operation_draw_narrower(uint64_t *state, const struct pg_shape *shape) {
  const int left_out =
      shape->rank > 0 && tensor_chance(state, 3) ? (int)tensor_draw(state, shape->rank + 1) : 0;
  struct pg_shape narrower = {.rank = shape->rank - left_out};
  for (int i = 0; i < narrower.rank; i++)
    narrower.dims[i] = tensor_chance(state, 3) ? 1 : shape->dims[i + left_out];
  return narrower;
}

void operation_draw_pair(uint64_t *state, const struct pg_shape *both, struct pg_shape pair[2]) {
  const int narrow = (int)tensor_draw(state, 2);
  pair[0] = pair[1] = *both;
  if (tensor_chance(state, 2)) return;
  pair[narrow] = operation_draw_narrower(state, both);
  const int missing = both->rank - pair[narrow].rank;
  for (int i = 0; i < pair[narrow].rank; i++)
    if (pair[narrow].dims[i] == both->dims[i + missing] && tensor_chance(state, 4))
      pair[1 - narrow].dims[i + missing] = 1;
}

aclDataType operation_draw_type(uint64_t *state) {
  return tensor_types[tensor_draw(state, TENSOR_TYPES)];
}

/* An axis that nobody takes a step along may have any stride. */
static void draw_idle_strides(uint64_t *state, const struct pg_shape *shape,
                              struct tensor_side *side) {
  const bool empty = pg_positions(shape) == 0;
  for (int i = 0; i < shape->rank; i++)
    if (empty || shape->dims[i] == 1) side->strides[i] = tensor_draw(state, 1000);
}

static void lay_out(uint64_t *state, const struct operation_tensor *of, struct tensor_side *side) {
  if (pg_positions(&of->shape) == 0) {
    side->offset = side->elements = 0;
  } else if (of->is_dense) {
    pg_contiguous_strides(&of->shape, side->strides);
    side->offset = tensor_chance(state, 2) ? tensor_draw(state, 9) : 0;
    side->elements = side->offset + pg_positions(&of->shape);
  } else {
    tensor_draw_layout(state, &of->shape, of->is_written ? TENSOR_APART : TENSOR_ANY, side);
  }
  draw_idle_strides(state, &of->shape, side);
}

/* The owner's memory becomes long enough for both, which may have other types. */
static void share(const struct operation_tensor *of, struct tensor_side *owner,
                  struct tensor_side *side) {
  side->shared_with = of->shared_with;
  if (of->memory == SAME_MEMORY) {
    memcpy(side->strides, owner->strides, sizeof side->strides);
    side->offset = owner->offset;
    side->elements = owner->elements;
  }
  const int64_t bytes = side->elements * (int64_t)tensor_bytes(side->dtype);
  const int64_t own = (int64_t)tensor_bytes(owner->dtype), needed = (bytes + own - 1) / own;
  if (owner->elements < needed) owner->elements = needed;
}

int operation_add(struct operation_trial *o, uint64_t *state, const struct operation_tensor *of) {
  static const char *const names[] = {"tensor 0", "tensor 1", "tensor 2"};
  const int number = o->t.sides;
  struct tensor_side side = {.name = names[of->place.number],
                             .dtype = of->dtype,
                             .is_written = of->is_written,
                             .is_updated = of->is_updated,
                             .shared_with = -1};
  lay_out(state, of, &side);
  if (of->memory != OWN_MEMORY) share(of, &o->t.side[of->shared_with], &side);
  tensor_trial_add(&o->t, &side);
  o->shape[number] = of->shape;
  o->place[number] = of->place;
  return number;
}

void operation_draw_memory(uint64_t *state, const struct operation_trial *o, int result,
                           struct operation_tensor *in) {
  const struct pg_shape *shape = &o->shape[result];
  const bool same_shape =
      in->shape.rank == shape->rank &&
      memcmp(in->shape.dims, shape->dims, (size_t)shape->rank * sizeof shape->dims[0]) == 0;
  in->shared_with = result;
  if (tensor_chance(state, 5)) in->memory = OVERLAPPING_MEMORY;
  if (same_shape && in->dtype == o->t.side[result].dtype && tensor_chance(state, 5))
    in->memory = SAME_MEMORY;
}

int operation_add_output(struct operation_trial *o, uint64_t *state, int number, aclDataType dtype,
                         const struct pg_shape *shape) {
  return operation_add(
      o, state,
      &(struct operation_tensor){
          .place.number = number, .dtype = dtype, .shape = *shape, .is_written = true});
}

int operation_add_input(struct operation_trial *o, uint64_t *state, int number, aclDataType dtype,
                        const struct pg_shape *shape) {
  return operation_add(
      o, state,
      &(struct operation_tensor){.place.number = number, .dtype = dtype, .shape = *shape});
}

/* --- Scalars --- */

static void read_scalar(struct operation_scalar *s) {
  s->real = reference_load(PG_CLASS_DOUBLE, s->dtype, s->bytes).real;
  s->integer = reference_load(PG_CLASS_INT, s->dtype, s->bytes).integer;
}

void operation_draw_scalar(uint64_t *state, aclDataType dtype, struct operation_scalar *scalar) {
  *scalar = (struct operation_scalar){.dtype = dtype};
  tensor_draw_element(state, dtype, scalar->bytes);
  read_scalar(scalar);
}

void operation_set_integer(struct operation_scalar *scalar, int64_t value) {
  reference_store(PG_CLASS_INT, (union pg_number){.integer = value}, scalar->dtype, scalar->bytes);
  read_scalar(scalar);
}

/* --- Data --- */

/* A BOOL is set if its byte is not 0. */
static void draw_bool_bytes(struct operation_trial *o, uint64_t *state, int side) {
  struct tensor_side *s = &o->t.side[side];
  if (s->dtype != ACL_BOOL || s->shared_with >= 0 || s->is_written || !tensor_chance(state, 3))
    return;
  for (int64_t i = 0; i < s->elements; i++)
    if (guarded_payload(&s->memory)[i] != 0)
      s->expected[i] = guarded_payload(&s->memory)[i] = (char)(1 + problem_next(state) % 255);
}

bool operation_fill(struct operation_trial *o, uint64_t *state) {
  if (!tensor_trial_fill(&o->t, state)) return false;
  for (int i = 0; i < o->t.sides; i++) draw_bool_bytes(o, state, i);
  return true;
}

static int owner_of(const struct operation_trial *o, int side) {
  const int shared_with = o->t.side[side].shared_with;
  return shared_with >= 0 ? shared_with : side;
}

/* Which element of its memory the position is. */
static int64_t place_of(const struct operation_trial *o, int side, const struct pg_shape *shape,
                        int64_t position) {
  const struct tensor_side *s = &o->t.side[side];
  const struct pg_shape *own = &o->shape[side];
  int64_t place = s->offset;
  for (int i = shape->rank - 1, at = own->rank - 1; at >= 0; i--, at--) {
    if (own->dims[at] > 1) place += position % shape->dims[i] * s->strides[at];
    position /= shape->dims[i];
  }
  return place;
}

const char *operation_element(const struct operation_trial *o, int side,
                              const struct pg_shape *shape, int64_t position) {
  const size_t bytes = tensor_bytes(o->t.side[side].dtype);
  return guarded_payload(&o->t.side[owner_of(o, side)].memory) +
         (size_t)place_of(o, side, shape, position) * bytes;
}

union pg_number operation_load(const struct operation_trial *o, int side, enum pg_class c,
                               const struct pg_shape *shape, int64_t position) {
  return reference_load(c, o->t.side[side].dtype, operation_element(o, side, shape, position));
}

void operation_put(struct operation_trial *o, int side, int64_t number, const void *element) {
  struct tensor_side *s = &o->t.side[side];
  const size_t bytes = tensor_bytes(s->dtype);
  const size_t from = (size_t)place_of(o, side, &o->shape[side], number) * bytes;
  memcpy(guarded_payload(&s->memory) + from, element, bytes);
  memcpy(s->expected + from, element, bytes);
}

char *operation_expected(struct operation_trial *o, int side, int64_t position) {
  struct tensor_side *s = &o->t.side[side];
  return tensor_trial_expect(s, place_of(o, side, &o->shape[side], position) - s->offset);
}

void operation_expect(struct operation_trial *o, int side, int64_t position, enum pg_class c,
                      union pg_number n) {
  reference_store(c, n, o->t.side[side].dtype, operation_expected(o, side, position));
}

/* --- Handles --- */

/* Of one call on one device. */
struct handles {
  const void *side[TENSOR_SIDES], *list[TENSORS_MOST], *scalar[SCALARS_MOST];
  struct tensor_arguments made;
};

static bool fail(struct operation_trial *o, const char *what, int status) {
  const char *text = aclGetRecentErrMsg();
  snprintf(o->t.why, sizeof o->t.why, "%s: %s gave %d: %.250s",
           tensor_operators[o->call.op].second_name, what, status,
           text == NULL ? "(no sentence)" : text);
  return false;
}

static aclTensor *make_tensor(const struct operation_trial *o, int side) {
  const struct tensor_side *s = &o->t.side[side];
  const struct pg_shape *shape = &o->shape[side];
  const uint64_t rank = (uint64_t)shape->rank;
  return aclCreateTensor(shape->dims, rank, s->dtype, s->strides, s->offset, ACL_FORMAT_ND,
                         shape->dims, rank, o->t.side[owner_of(o, side)].memory.device);
}

static aclTensorList *make_list(const struct operation_trial *o, const struct handles *h,
                                int number) {
  const aclTensor *members[TENSOR_SIDES] = {NULL};
  uint64_t count = 0;
  for (int i = 0; i < o->t.sides; i++)
    if (o->place[i].in_list && o->place[i].number == number) members[count++] = h->side[i];
  return aclCreateTensorList(members, count);
}

/* The calls of tensor_call.h with handles for all but the arrays. */
static void make_handles(const struct operation_trial *o, struct handles *h) {
  struct tensor_argument all[ARGUMENTS_MOST];
  const int count = tensor_operator_arguments(o->call.op, all);
  struct tensor_call call = o->call;
  *h = (struct handles){.made = {.flag = false}};
  for (int i = 0; i < o->t.sides; i++) {
    h->side[i] = make_tensor(o, i);
    if (!o->place[i].in_list) call.t[o->place[i].number].handle = &h->side[i];
  }
  for (int i = 0; i < count; i++) {
    const int n = all[i].number;
    if (all[i].kind == IS_LIST) {
      h->list[n] = make_list(o, h, n);
      call.list_handle[n] = &h->list[n];
    } else if (all[i].kind == IS_SCALAR) {
      h->scalar[n] = aclCreateScalar((void *)(uintptr_t)o->scalar[n].bytes, o->scalar[n].dtype);
      call.s[n].handle = &h->scalar[n];
    }
  }
  tensor_call_make(&call, &h->made);
}

/* A list destroys its tensors. */
static void drop_handles(const struct operation_trial *o, struct handles *h) {
  for (int i = 0; i < o->t.sides; i++)
    if (!o->place[i].in_list) (void)aclDestroyTensor(h->side[i]);
  for (int i = 0; i < TENSORS_MOST; i++) (void)aclDestroyTensorList(h->list[i]);
  for (int i = 0; i < SCALARS_MOST; i++) (void)aclDestroyScalar(h->scalar[i]);
  for (int i = 0; i < ARRAYS_MOST; i++) (void)aclDestroyIntArray(h->made.array[i]);
}

/* --- Running it --- */

static bool has_selected(struct operation_trial *o, const struct handles *h) {
  int64_t *dims = NULL;
  uint64_t rank = 0;
  if (!o->selects) return true;
  const int status = aclGetViewShape(h->made.tensor[2], &dims, &rank);
  const bool good = status == ACL_SUCCESS && rank == 1 && dims[0] == o->selected;
  if (!good)
    snprintf(o->t.why, sizeof o->t.why, "out's view has %d axes, the first of length %lld not %lld",
             (int)rank, rank > 0 ? (long long)dims[0] : -1, (long long)o->selected);
  free(dims);
  return good;
}

/* Queues it and waits; what it has written is on the host then. */
static bool launch(struct operation_trial *o, struct guarded *workspace, aclOpExecutor *executor,
                   aclrtStream stream) {
  int64_t offset;
  const bool has_workspace = workspace->bytes > 0;
  int status = has_workspace ? guarded_send(workspace) : ACL_SUCCESS;
  if (status == ACL_SUCCESS)
    status =
        tensor_operators[o->call.op].second(workspace->device, workspace->bytes, executor, stream);
  if (status == ACL_SUCCESS) status = aclrtSynchronizeStream(stream);
  if (status == ACL_SUCCESS && has_workspace) status = guarded_fetch(workspace);
  if (status != ACL_SUCCESS) return fail(o, "the second phase", status);
  if (!has_workspace || !guarded_differs(workspace, true, &offset)) return true;
  snprintf(o->t.why, sizeof o->t.why, "byte %lld beside the workspace of %lld bytes has changed",
           (long long)offset, (long long)workspace->bytes);
  return false;
}

static bool launch_twice(struct operation_trial *o, const struct handles *h,
                         struct guarded *workspace, aclOpExecutor *executor, aclrtStream stream) {
  const int status = aclSetAclOpExecutorRepeatable(executor);
  if (status != ACL_SUCCESS) return fail(o, "aclSetAclOpExecutorRepeatable", status);
  for (int i = 0; i < 2; i++)
    if (!tensor_trial_send(&o->t) || !launch(o, workspace, executor, stream) ||
        !tensor_trial_compare(&o->t) || !has_selected(o, h))
      return false;
  return true;
}

static bool plan_and_run(struct operation_trial *o, const struct handles *h, aclrtStream stream) {
  struct guarded workspace = {0};
  uint64_t size = 0;
  aclOpExecutor *executor = NULL;
  int status = tensor_operators[o->call.op].first(&h->made, &size, &executor);
  if (status != ACL_SUCCESS) return fail(o, "the first phase", status);
  bool good = size == 0 || guarded_make(&workspace, size, WORKSPACE_POISON);
  good = good && launch_twice(o, h, &workspace, executor, stream);
  status = aclDestroyAclOpExecutor(executor);
  guarded_free(&workspace);
  return good && (status == ACL_SUCCESS || fail(o, "aclDestroyAclOpExecutor", status));
}

static bool run_on(struct operation_trial *o, const char *backend, aclrtStream stream) {
  struct handles h;
  if (!tensor_trial_send(&o->t)) return false;
  make_handles(o, &h);
  const bool good = plan_and_run(o, &h, stream);
  drop_handles(o, &h);
  tensor_trial_leave(&o->t);
  if (good) return true;
  char why[TENSOR_TRIAL_TEXT];
  memcpy(why, o->t.why, sizeof why);
  snprintf(o->t.why, sizeof o->t.why, "%s on %s: %.330s", tensor_operators[o->call.op].second_name,
           backend, why);
  return false;
}

bool operation_run(struct operation_trial *o, const struct trial_devices *devices) {
  bool good = true;
  for (int device = 0; device < devices->count && good; device++)
    good = aclrtSetCurrentContext(devices->at[device].context) == ACL_SUCCESS &&
           run_on(o, devices->at[device].backend, devices->at[device].stream);
  (void)aclrtSetCurrentContext(devices->at[0].context);
  return good;
}
