/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/map_plan.h"

#include <stddef.h>
#include <string.h>

#include "aclnn/opdev/op_errno.h"
#include "core/checked.h"

/* Where the address of an operand lies in the arguments: 0 is out, the others are inputs. */
static size_t address_at(int operand) {
  const size_t view = operand == 0 ? offsetof(struct pg_map, out)
                                   : offsetof(struct pg_map, in) +
                                         (size_t)(operand - 1) * sizeof(struct pg_tensor_view);
  return view + offsetof(struct pg_tensor_view, address);
}

/* Adds a problem whose views are laid out over the shape; addresses are bound afterwards. */
static void add_step(struct pg_plan *plan, struct pg_map args, struct pg_shape shape) {
  int64_t *strides[1 + PG_MAP_INPUTS] = {args.out.strides, args.in[0].strides, args.in[1].strides};
  struct pg_problem problem = {.kernel = PG_MAP, .dtype = args.out.dtype};
  const bool in_order = args.function == PG_MAP_UNIFORM || args.function == PG_MAP_NORMAL ||
                        args.function == PG_MAP_RANDOM;
  if (!in_order) pg_sort_axes(&shape, strides, 1 + args.inputs);
  pg_lay_grid(&args.grid, &shape, strides, 1 + args.inputs);
  size_t bytes = aclDataTypeSize(args.out.dtype);
  for (int i = 0; i < args.inputs; i++) bytes += aclDataTypeSize(args.in[i].dtype);
  problem.facts.bytes = pg_mul_or_most(args.grid.count, (int64_t)bytes);
  problem.args.map = args;
  (void)pg_plan_add(plan, &problem, NULL); /* maps need no workspace */
}

static void bind(struct pg_plan *plan, int operand, const struct pg_view *view, bool written,
                 bool may_be_written) {
  const struct pg_plan_operand added = {.name = view->name,
                                        .tensor = view->tensor,
                                        .begin = view->begin,
                                        .end = view->end,
                                        .written = written,
                                        .may_be_written = may_be_written};
  pg_plan_bind(plan, address_at(operand), pg_plan_operand(plan, &added), view->begin);
}

static struct pg_tensor_view seen_over(const struct pg_view *view, const struct pg_shape *shape) {
  struct pg_tensor_view seen = {.dtype = view->tensor->dtype};
  pg_strides_over(view, shape, seen.strides);
  return seen;
}

/* Has the input, seen over out's shape, the elements of out at their places if both begin at one
 * address? */
static bool is_same_view(const struct pg_tensor_view *in, const struct pg_tensor_view *out) {
  return in->dtype == out->dtype && memcmp(in->strides, out->strides, sizeof in->strides) == 0;
}

static char *address_of(const struct pg_view *view) {
  return atomic_load_explicit(&view->tensor->data, memory_order_acquire);
}

static bool overlaps(const struct pg_view *in, const struct pg_view *out, bool is_same) {
  const uintptr_t in_at = (uintptr_t)address_of(in), out_at = (uintptr_t)address_of(out);
  if (in_at == 0 || out_at == 0) return false;
  if (is_same && in_at + (uintptr_t)in->begin == out_at + (uintptr_t)out->begin) return false;
  return in_at + (uintptr_t)in->begin < out_at + (uintptr_t)out->end &&
         out_at + (uintptr_t)out->begin < in_at + (uintptr_t)in->end;
}

/* An input of a call, seen over a shape: as it lies, or as it was copied to the workspace. */
struct input {
  struct pg_tensor_view seen;
  bool is_same; /* the view that out is */
  bool is_copied;
  int64_t copied_to;
};

/* The strides, over `shape`, of a copy without gaps. */
static void copied_strides(const struct pg_view *view, const struct pg_shape *shape,
                           int64_t strides[PG_GRID_AXES]) {
  const struct pg_shape own = pg_shape_of(view);
  int64_t contiguous[PG_GRID_AXES];
  pg_contiguous_strides(&own, contiguous);
  memset(strides, 0, PG_GRID_AXES * sizeof strides[0]);
  for (int i = 0; i < own.rank; i++) strides[i + shape->rank - own.rank] = contiguous[i];
}

/* Copies the tensor to the workspace, as this type. */
static aclnnStatus plan_copy_as(const char *api, struct pg_plan *plan, const struct pg_view *view,
                                aclDataType dtype, int64_t *at) {
  const struct pg_shape shape = pg_shape_of(view);
  const struct pg_map_call call = {
      .in = {view},
      .args = {.function = PG_MAP_COPY, .class_of = pg_class_of(view->tensor->dtype)}};
  return pg_plan_map_out(api, plan, &call, &shape, dtype, at);
}

/* in_out: the result goes to call->out itself. */
static aclnnStatus prepare_input(const char *api, struct pg_plan *plan,
                                 const struct pg_map_call *call, int number, bool in_out,
                                 const struct pg_shape *shape, struct input *input) {
  const struct pg_view *view = call->in[number];
  *input = (struct input){.seen = seen_over(view, shape)};
  if (in_out) {
    const struct pg_tensor_view out = seen_over(call->out, shape);
    input->is_same = is_same_view(&input->seen, &out);
    input->is_copied = overlaps(view, call->out, input->is_same);
  }
  if (call->converts[number]) {
    input->is_copied = true;
    input->seen.dtype = call->between;
  }
  if (!input->is_copied) return ACLNN_SUCCESS;
  copied_strides(view, shape, input->seen.strides);
  return plan_copy_as(api, plan, view, input->seen.dtype, &input->copied_to);
}

/* Makes the views of the inputs, with a step for each that is copied first.  The caller adds the
 * step that reads them. */
static aclnnStatus plan_inputs(const char *api, struct pg_plan *plan,
                               const struct pg_map_call *call, bool in_out,
                               const struct pg_shape *shape, struct pg_map *args,
                               struct input inputs[PG_MAP_INPUTS]) {
  for (args->inputs = 0; args->inputs < PG_MAP_INPUTS && call->in[args->inputs] != NULL;) {
    const int i = args->inputs++;
    PG_TRY(prepare_input(api, plan, call, i, in_out, shape, &inputs[i]));
    args->in[i] = inputs[i].seen;
  }
  return ACLNN_SUCCESS;
}

static void bind_inputs(struct pg_plan *plan, const struct pg_map_call *call,
                        const struct input inputs[PG_MAP_INPUTS], int count) {
  for (int i = 0; i < count; i++)
    if (inputs[i].is_copied)
      pg_plan_bind(plan, address_at(1 + i), PG_WORKSPACE, inputs[i].copied_to);
    else
      bind(plan, 1 + i, call->in[i], false, inputs[i].is_same);
}

aclnnStatus pg_plan_map_out(const char *api, struct pg_plan *plan, const struct pg_map_call *call,
                            const struct pg_shape *shape, aclDataType dtype, int64_t *at) {
  struct pg_map args = call->args;
  struct input inputs[PG_MAP_INPUTS] = {{.is_copied = false}};
  PG_TRY(plan_inputs(api, plan, call, false, shape, &args, inputs));
  PG_TRY(pg_plan_reserve(api, plan,
                         pg_mul_or_most(pg_positions(shape), (int64_t)aclDataTypeSize(dtype)), at));
  args.out.dtype = dtype;
  pg_contiguous_strides(shape, args.out.strides);
  add_step(plan, args, *shape);
  pg_plan_bind(plan, address_at(0), PG_WORKSPACE, *at);
  bind_inputs(plan, call, inputs, args.inputs);
  return ACLNN_SUCCESS;
}

aclnnStatus pg_plan_copy_out(const char *api, struct pg_plan *plan, const struct pg_view *view,
                             int64_t *at) {
  return plan_copy_as(api, plan, view, view->tensor->dtype, at);
}

void pg_plan_copy_back(struct pg_plan *plan, const struct pg_view *view, aclDataType dtype,
                       int64_t at) {
  const struct pg_shape shape = pg_shape_of(view);
  struct pg_map args = {
      .function = PG_MAP_COPY, .class_of = pg_class_of(dtype), .inputs = 1, .in[0].dtype = dtype};
  args.out = seen_over(view, &shape);
  pg_contiguous_strides(&shape, args.in[0].strides);
  add_step(plan, args, shape);
  bind(plan, 0, view, true, false);
  pg_plan_bind(plan, address_at(1), PG_WORKSPACE, at);
}

/* The strides of a part of out along a tensor's axes, which are all of out's or all but one. */
static void part_strides(const struct pg_tensor *out, int axis, const struct pg_shape *shape,
                         int64_t strides[PG_GRID_AXES]) {
  int from = 0;
  for (int i = 0; i < shape->rank; i++, from++) {
    if (from == axis && shape->rank < out->rank) from++;
    strides[i] = shape->dims[i] > 1 ? out->strides[from] : 0;
  }
}

void pg_plan_copy_into(struct pg_plan *plan, const struct pg_view *out, int axis, int64_t from,
                       const struct pg_view *in) {
  const struct pg_shape shape = pg_shape_of(in);
  const struct pg_tensor *to = out->tensor;
  struct pg_map args = {.function = PG_MAP_COPY,
                        .class_of = pg_class_of(in->tensor->dtype),
                        .inputs = 1,
                        .out.dtype = to->dtype};
  part_strides(to, axis, &shape, args.out.strides);
  args.in[0] = seen_over(in, &shape);
  add_step(plan, args, shape);
  pg_plan_bind(plan, address_at(0), pg_view_operand(plan, out, true),
               out->begin + from * to->strides[axis] * (int64_t)to->element);
  bind(plan, 1, in, false, false);
}

/* The result is rounded on its way. */
static aclnnStatus plan_rounded(const char *api, struct pg_plan *plan,
                                const struct pg_map_call *call) {
  const struct pg_shape shape = pg_shape_of(call->out);
  int64_t at;
  PG_TRY(pg_plan_map_out(api, plan, call, &shape, call->between, &at));
  pg_plan_copy_back(plan, call->out, call->between, at);
  return ACLNN_SUCCESS;
}

aclnnStatus pg_plan_map(const char *api, struct pg_plan *plan, const struct pg_map_call *call) {
  const struct pg_shape shape = pg_shape_of(call->out);
  struct pg_map args = call->args;
  struct input inputs[PG_MAP_INPUTS] = {{.is_copied = false}};
  if (call->out->tensor->empty) return ACLNN_SUCCESS;
  if (call->rounds) return plan_rounded(api, plan, call);
  PG_TRY(plan_inputs(api, plan, call, true, &shape, &args, inputs));
  args.out = seen_over(call->out, &shape);
  add_step(plan, args, shape);
  bind(plan, 0, call->out, true, false);
  bind_inputs(plan, call, inputs, args.inputs);
  return ACLNN_SUCCESS;
}

aclnnStatus pg_plan_fill(const char *api, struct pg_plan *plan, const struct pg_view *out,
                         union pg_number number) {
  const struct pg_map_call call = {
      .out = out,
      .args = {.function = PG_MAP_VALUE, .class_of = pg_class_of(out->tensor->dtype), .s = number}};
  return pg_plan_map(api, plan, &call);
}

aclnnStatus pg_publish_map(const char *api, const struct pg_map_call *call,
                           uint64_t *workspace_size, aclOpExecutor **executor) {
  struct pg_plan *plan;
  PG_TRY(pg_plan_create(api, &plan));
  return pg_plan_publish(api, plan, pg_plan_map(api, plan, call), workspace_size, executor);
}
