/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/pool_plan.h"

#include <stddef.h>

#include "aclnn/opdev/op_errno.h"
#include "core/checked.h"
#include "ops/index_report.h"

/* Inputs with stride 0 can ask for any amount of work on hardly any memory, which would keep a
 * stream busy for days.  So many outputs are always done, and so many more for each byte of memory.
 */
#define OUTPUTS_FREE (INT64_C(1) << 30)
enum { OUTPUTS_PER_BYTE = 64 };

enum { REPEAT_PLANES = 64, BOX_CELLS = 4096 /* 16 KiB of floats: half a first-level cache */ };

/* Memory a view's cells take, for choosing the number of threads: what 64 bits cannot hold (inputs
 * with stride 0 get there) counts as the most they can. */
static int64_t byte_count(const struct pg_view *view) {
  int64_t bytes = (int64_t)aclDataTypeSize(view->tensor->dtype);
  if (pg_tensor_is_empty(view->tensor)) return 0;
  for (int i = 0; i < PG_AXES; i++)
    if (!pg_mul(bytes, view->dims[i], &bytes)) return INT64_MAX;
  return bytes;
}

/* Likewise: a count that 64 bits cannot hold is the most they can. */
static int64_t product(int64_t a, int64_t b) {
  int64_t ab;
  return pg_mul(a, b, &ab) ? ab : INT64_MAX;
}

static int64_t add_bytes(int64_t a, int64_t b) {
  int64_t sum;
  return pg_add(a, b, &sum) ? sum : INT64_MAX;
}

static int64_t element_count(const struct pg_view *view) {
  const int64_t element = (int64_t)aclDataTypeSize(view->tensor->dtype), bytes = byte_count(view);
  return bytes == INT64_MAX ? INT64_MAX : bytes / element;
}

/* The memory that the views span must be in proportion to the outputs. */
static aclnnStatus check_work(const char *api, const struct pg_view *grad_out,
                              const struct pg_view *const *views, int count) {
  const int64_t outputs = element_count(grad_out);
  int64_t bytes = 0;
  for (int i = 0; i < count; i++) bytes = add_bytes(bytes, views[i]->end - views[i]->begin);
  PG_CHECK_AS(api, outputs <= OUTPUTS_FREE || outputs / OUTPUTS_PER_BYTE <= bytes,
              ACLNN_ERR_PARAM_INVALID,
              "gradOutput is %s, but all tensors together span %lld bytes of memory, for which at "
              "most %lld elements of gradOutput are allowed",
              pg_view_shape(grad_out), (long long)bytes,
              (long long)(bytes < OUTPUTS_FREE / OUTPUTS_PER_BYTE ? OUTPUTS_FREE
                                                                  : bytes * OUTPUTS_PER_BYTE));
  return ACLNN_SUCCESS;
}

static bool is_empty(const struct pg_view *view) { return pg_tensor_is_empty(view->tensor); }

/* Binds the pointer at args_offset of the latest step to where the view begins. */
static void bind(struct pg_plan *plan, size_t args_offset, int operand,
                 const struct pg_view *view) {
  pg_plan_bind(plan, args_offset, operand, view->begin);
}

static int64_t blocks(int64_t length, int64_t block) { return (length + block - 1) / block; }

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t at_least_one(int64_t a) { return a < 1 ? 1 : a; }

/* Counts the items. */
static void count_items(struct pg_tiling *t, const struct pg_pooling *p) {
  t->d_items = blocks(p->d.in, t->d);
  t->h_items = blocks(p->h.in, t->h);
  t->w_items = blocks(p->w.in, t->w);
  t->plane_items = t->interleaved ? p->n * blocks(p->c, t->planes) : blocks(p->n * p->c, t->planes);
}

static int64_t items_of(const struct pg_tiling *t) {
  return t->plane_items * t->d_items * t->h_items * t->w_items;
}

/* Up to `most` of a length, such that all parts are about as long. */
static int64_t even_part(int64_t length, int64_t most) {
  return most < 1 ? 1 : blocks(length, blocks(length, most));
}

/* Flat runs of `cells`: whole planes, several if they are small, else whole slices, whole rows, or
 * a part of one row. */
static struct pg_tiling tile_flat(const struct pg_pooling *p, int64_t cells) {
  struct pg_tiling t = {.planes = 1, .d = 1, .h = 1};
  t.w = even_part(p->w.in, least(cells, PG_BOX_WIDTH));
  if (t.w == p->w.in) t.h = even_part(p->h.in, least(PG_BOX_ROWS, cells / t.w));
  if (t.h == p->h.in && t.w == p->w.in)
    t.d = even_part(p->d.in, least(PG_BOX_ROWS, cells / (t.w * t.h)));
  if (t.d == p->d.in && t.h == p->h.in && t.w == p->w.in)
    t.planes = least(at_least_one(p->n * p->c), at_least_one(cells / (t.w * t.h * t.d)));
  count_items(&t, p);
  return t;
}

/* The most outputs along an axis that can touch `cells` neighbours. */
static int64_t most_touching(const struct pg_axis *axis, int64_t cells) {
  if (axis->kernel == 0) return product(cells, axis->out) / axis->in + 2;
  return least(axis->out, (cells + (axis->kernel - 1) * axis->dilation - 1) / axis->stride + 1);
}

/* The most neighbours, up to `staged`, that touch no more than staged - 3 outputs. */
static int64_t most_cells(const struct pg_axis *axis, int64_t staged) {
  const int64_t most = staged - 3;
  if (axis->out == 0) return staged;
  if (most < 1) return 0;
  if (axis->kernel == 0) return least(staged, product(most - 2, axis->in) / axis->out);
  if (axis->out <= most) return staged; /* else most strides are shorter than the axis */
  return least(staged, most * axis->stride - (axis->kernel - 1) * axis->dilation);
}

/* Channels-last boxes: up to `row` elements of a row of cells, so narrow that the rows of outputs
 * that a cell lies in, and one more, are staged together.  Vectors of channels stay whole. */
static struct pg_tiling tile_last(const struct pg_pooling *p, int64_t row) {
  enum { STAGED = 8192, LANES = 16, CHANNELS = 64, WIDTH = 8, ROWS = 32 };
  const int64_t rows = product(most_touching(&p->d, 1), most_touching(&p->h, 1) + 1);
  struct pg_tiling t = {.interleaved = true, .d = 1};
  int64_t vectors = row / p->w.in / LANES;
  if (vectors < CHANNELS / LANES) vectors = CHANNELS / LANES;
  do {
    t.planes = least(p->c, even_part(blocks(p->c, LANES), vectors) * LANES);
    t.w = most_cells(&p->w, (STAGED / rows - LANES) / t.planes);
    t.w = at_least_one(least(least(p->w.in, row / t.planes), t.w));
    vectors = blocks(t.planes, LANES) / 2;
  } while (t.w < least(p->w.in, WIDTH) && vectors > 0);
  t.w = even_part(p->w.in, t.w);
  t.h = even_part(p->h.in, least(ROWS, BOX_CELLS / t.w));
  t.h = least(p->h.in, t.h + t.h % 2); /* two rows are made at once */
  count_items(&t, p);
  return t;
}

/* Do channels lie next to each other, and are there enough of them to go through together? */
static bool is_last(const struct pg_view *const *views, int count, int64_t channels) {
  for (int i = 0; i < count; i++)
    if (views[i]->strides.of[PG_C] != 1) return false;
  return channels >= 4;
}

/* Overlapping windows make a box read more outputs than it has cells: a square box the fewest. */
static struct pg_tiling tile_spread(const struct pg_avg_call *call) {
  const struct pg_pooling *p = &call->pool;
  const struct pg_view *const views[] = {call->grad_in, call->grad_out};
  if (is_last(views, 2, p->c)) return tile_last(p, BOX_CELLS);
  if (p->w.in <= 256 || p->w.kernel <= p->w.stride) return tile_flat(p, BOX_CELLS);
  struct pg_tiling t = {.planes = 1, .d = 1, .w = 128};
  t.h = least(p->h.in, BOX_CELLS / 128);
  count_items(&t, p);
  return t;
}

/* An empty gradOutput has no windows to spread, which leaves zeros; its address stays unread. */
static void plan_spread(struct pg_plan *plan, const struct pg_avg_call *call) {
  struct pg_spread_args args = {.in_strides = call->grad_in->strides,
                                .out_strides = call->grad_out->strides,
                                .pool = call->pool,
                                .divisor = call->divisor,
                                .count_include_pad = call->count_include_pad};
  args.tiling = tile_spread(call);
  const struct pg_plan_kernel kernel = {
      .id = PG_KERNEL_SPREAD,
      .dtype = call->grad_in->tensor->dtype,
      .items = items_of(&args.tiling),
      .bytes = add_bytes(byte_count(call->grad_in), byte_count(call->grad_out)),
      .args = &args,
      .args_bytes = sizeof args};
  pg_plan_add(plan, &kernel);
  if (!is_empty(call->grad_out))
    bind(plan, offsetof(struct pg_spread_args, grad_out),
         pg_view_operand(plan, call->grad_out, false), call->grad_out);
  bind(plan, offsetof(struct pg_spread_args, grad_in), pg_view_operand(plan, call->grad_in, true),
       call->grad_in);
}

/* Do the cells of a plane follow each other? */
static bool has_contiguous_planes(const struct pg_view *view) {
  const int64_t *dims = view->dims, *s = view->strides.of;
  const int64_t row = dims[PG_W], slice = row * dims[PG_H];
  return (s[PG_W] == 1 || dims[PG_W] == 1) && (s[PG_H] == row || dims[PG_H] == 1) &&
         (s[PG_D] == slice || dims[PG_D] == 1);
}

static bool covers(const struct pg_axis *axis) {
  const struct pg_range r = pg_window(axis, 0);
  return axis->out == 1 && r.begin <= 0 && r.end >= axis->in;
}

/* A global average: each plane is one value.  Few large planes are left to SPREAD, which cuts
 * them. */
static bool is_repeat(const struct pg_avg_call *call) {
  const struct pg_pooling *p = &call->pool;
  return covers(&p->d) && covers(&p->h) && covers(&p->w) && p->n * p->c >= REPEAT_PLANES &&
         has_contiguous_planes(call->grad_in);
}

static void plan_repeat(struct pg_plan *plan, const struct pg_avg_call *call) {
  const struct pg_pooling *p = &call->pool;
  const bool pad = call->count_include_pad;
  const struct pg_repeat_args args = {.c = p->c,
                                      .out_n = call->grad_out->strides.of[PG_N],
                                      .out_c = call->grad_out->strides.of[PG_C],
                                      .in_n = call->grad_in->strides.of[PG_N],
                                      .in_c = call->grad_in->strides.of[PG_C],
                                      .cells = p->d.in * p->h.in * p->w.in,
                                      .divisor = call->divisor != 0
                                                     ? call->divisor
                                                     : pg_window_extent(&p->d, 0, pad) *
                                                           pg_window_extent(&p->h, 0, pad) *
                                                           pg_window_extent(&p->w, 0, pad)};
  const struct pg_plan_kernel kernel = {
      .id = PG_KERNEL_REPEAT,
      .dtype = call->grad_in->tensor->dtype,
      .items = p->n * p->c,
      .bytes = add_bytes(byte_count(call->grad_in), byte_count(call->grad_out)),
      .args = &args,
      .args_bytes = sizeof args};
  pg_plan_add(plan, &kernel);
  bind(plan, offsetof(struct pg_repeat_args, grad_out),
       pg_view_operand(plan, call->grad_out, false), call->grad_out);
  bind(plan, offsetof(struct pg_repeat_args, grad_in), pg_view_operand(plan, call->grad_in, true),
       call->grad_in);
}

struct max_operands {
  int grad_out, index, grad_in;
};

static void bind_scatter(struct pg_plan *plan, const struct pg_max_call *call,
                         const struct max_operands *o, bool stray) {
  bind(plan, offsetof(struct pg_scatter_args, grad_out), o->grad_out, call->grad_out);
  bind(plan, offsetof(struct pg_scatter_args, index), o->index, call->index);
  bind(plan, offsetof(struct pg_scatter_args, grad_in), o->grad_in, call->grad_in);
  if (stray) pg_plan_bind(plan, offsetof(struct pg_scatter_args, stray), PG_WORKSPACE, 0);
}

/* The items' stray flags, all of the workspace, start as 0. */
static void plan_clear(struct pg_plan *plan, int64_t items) {
  const struct pg_fill_args args = {.stride = items, .width = items, .element = sizeof(int32_t)};
  const struct pg_plan_kernel kernel = {.id = PG_KERNEL_FILL,
                                        .dtype = ACL_DT_UNDEFINED,
                                        .items = 1,
                                        .bytes = items * (int64_t)sizeof(int32_t),
                                        .args = &args,
                                        .args_bytes = sizeof args};
  pg_plan_add(plan, &kernel);
  pg_plan_bind(plan, offsetof(struct pg_fill_args, dst), PG_WORKSPACE, 0);
}

static struct pg_tiling tile_scatter(const struct pg_max_call *call) {
  const struct pg_view *const views[] = {call->grad_in, call->grad_out, call->index};
  const struct pg_pooling *p = &call->pool;
  if (is_last(views, 3, p->c)) return tile_last(p, BOX_CELLS / 2);
  return tile_flat(p, p->w.in > BOX_CELLS / 4 ? PG_BOX_CELLS : BOX_CELLS);
}

/* Small planes are whole and one step.  Large ones are cut, their boxes look at near outputs only,
 * and a last step mends the boxes that an index from far away points into. */
static aclnnStatus plan_scatter(const char *api, struct pg_plan *plan,
                                const struct pg_max_call *call) {
  const struct pg_pooling *p = &call->pool;
  struct pg_scatter_args args = {
      .out_strides = call->grad_out->strides,
      .index_strides = call->index->strides,
      .in_strides = call->grad_in->strides,
      .pool = *p,
      .op = call->op,
      .has_depth = call->has_depth,
      .index_bytes = (int32_t)aclDataTypeSize(call->index->tensor->dtype)};
  args.tiling = tile_scatter(call);
  struct pg_plan_kernel kernel = {
      .id = PG_KERNEL_SCATTER,
      .dtype = call->grad_in->tensor->dtype,
      .items = items_of(&args.tiling),
      .bytes = add_bytes(byte_count(call->grad_in),
                         add_bytes(byte_count(call->grad_out), byte_count(call->index))),
      .args = &args,
      .args_bytes = sizeof args,
      .judge = pg_index_judge};
  const bool cut = kernel.items > args.tiling.plane_items;
  const struct max_operands o = {pg_view_operand(plan, call->grad_out, false),
                                 pg_view_operand(plan, call->index, false),
                                 pg_view_operand(plan, call->grad_in, true)};
  if (cut) {
    int64_t at; /* 0: nothing else is there */
    PG_TRY(pg_plan_reserve(api, plan, kernel.items * (int64_t)sizeof(int32_t), &at));
    plan_clear(plan, kernel.items);
  }
  pg_plan_add(plan, &kernel);
  bind_scatter(plan, call, &o, cut);
  if (cut) {
    kernel.id = PG_KERNEL_RESCATTER;
    kernel.judge = NULL;
    pg_plan_add(plan, &kernel);
    bind_scatter(plan, call, &o, true);
  }
  return ACLNN_SUCCESS;
}

static aclnnStatus publish(const char *api, struct pg_plan *plan, aclnnStatus status,
                           uint64_t *workspace_size, aclOpExecutor **executor) {
  if (status == ACLNN_SUCCESS) status = pg_plan_publish(api, plan, workspace_size, executor);
  if (status != ACLNN_SUCCESS) pg_plan_destroy(plan);
  return status;
}

aclnnStatus pg_plan_max_backward(const char *api, const struct pg_max_call *call,
                                 uint64_t *workspace_size, aclOpExecutor **executor) {
  const struct pg_view *const views[] = {call->grad_out, call->index, call->grad_in};
  struct pg_plan *plan;
  aclnnStatus status = ACLNN_SUCCESS;
  PG_TRY(check_work(api, call->grad_out, views, 3));
  PG_TRY(pg_plan_create(api, &plan));
  if (!is_empty(call->grad_in) && is_empty(call->grad_out)) {
    const struct pg_avg_call zeros = {
        .grad_out = call->grad_out, .grad_in = call->grad_in, .pool = call->pool};
    plan_spread(plan, &zeros);
  } else if (!is_empty(call->grad_in)) {
    status = plan_scatter(api, plan, call);
  }
  return publish(api, plan, status, workspace_size, executor);
}

aclnnStatus pg_plan_avg_backward(const char *api, const struct pg_avg_call *call,
                                 uint64_t *workspace_size, aclOpExecutor **executor) {
  const struct pg_view *const views[] = {call->grad_out, call->grad_in};
  struct pg_plan *plan;
  PG_TRY(check_work(api, call->grad_out, views, 2));
  PG_TRY(pg_plan_create(api, &plan));
  if (!is_empty(call->grad_in) && !is_empty(call->grad_out) && is_repeat(call))
    plan_repeat(plan, call);
  else if (!is_empty(call->grad_in))
    plan_spread(plan, call);
  return publish(api, plan, ACLNN_SUCCESS, workspace_size, executor);
}
