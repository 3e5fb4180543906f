/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions of any tensor: each output by itself, block by block.  A block's elements are
 * converted into a buffer, unless they are numbers of the class that follow each other in memory;
 * then there are 32 partial sums, or 32 lanes of a search, for vectors.
 *
 * An output with many elements is cut into chunks where there are not many outputs. */
#include "cpu/kernels/tensor_numbers.h"
#include "cpu/method.h"
#include "cpu/reduction.h"

enum {
  ITEM_ELEMENTS = 16384,
  CHUNK = 32,            /* blocks */
  MANY_ITEMS = 32,       /* are enough for all threads */
  MOST_BLOCKS = 16 << 10 /* of an output that is not cut; their sums are in scratch memory */
};

struct any_room {
  union numbers x, results;
  int64_t positions[NUMBERS];
  int64_t sums[MOST_BLOCKS];
};
_Static_assert(sizeof(struct any_room) <= PG_SCRATCH_METHOD, "scratch memory is too small");

struct any_reduce {
  struct pg_reduction plan;
  struct any_room *room;
  const struct pg_scratch *scratch;
  bool follow; /* the elements of an output are numbers that follow each other */
};

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* The numbers of a block of the output whose elements begin at `from`. */
static const void *load_block(const struct any_reduce *r, const char *from, int64_t block) {
  const struct pg_reduce *a = r->plan.a;
  const int64_t first = block * PG_REDUCE_BLOCK;
  if (r->follow) return from + first * pg_element_bytes(a->in.dtype);
  VARIANT(load_in_order)
  (&r->room->x, a->class_of, from, a->in.dtype, &a->inner, a->inner_strides, first,
   pg_block_length(&r->plan, block));
  return &r->room->x;
}

static inline int64_t wrapped_sum(int64_t a, int64_t b) {
  return (int64_t)((uint64_t)a + (uint64_t)b);
}

#define plus(a, b) ((a) + (b))
#define is_nan(x) ((x) != (x))
#define divided(sum, divisor) ((sum) / (number)(divisor))
#define number float
#define of(name) name##_of_floats
#include "cpu/kernels/reduce_any_class.h"
#undef number
#undef of
#define number double
#define of(name) name##_of_doubles
#include "cpu/kernels/reduce_any_class.h"
#undef plus
#undef is_nan
#undef divided
#undef number
#undef of
#define plus(a, b) wrapped_sum(a, b)
#define is_nan(x) false
#define divided(sum, divisor) (sum) /* of integers there are sums alone */
#define number int64_t
#define of(name) name##_of_integers
#include "cpu/kernels/reduce_any_class.h"

/* Calls the function of the class. */
#define CALL(name, ...)                              \
  do {                                               \
    if (r->plan.a->class_of == PG_CLASS_FLOAT)       \
      name##_of_floats(__VA_ARGS__);                 \
    else if (r->plan.a->class_of == PG_CLASS_DOUBLE) \
      name##_of_doubles(__VA_ARGS__);                \
    else                                             \
      name##_of_integers(__VA_ARGS__);               \
  } while (0)

/* --- Items --- */

static void store_results(const struct any_reduce *r, const struct pg_panel *p) {
  const struct pg_reduce *a = r->plan.a;
  const struct pg_plot out = pg_plot_of(&r->plan.walk, p, 1);
  const struct pg_plot index = pg_plot_of(&r->plan.walk, p, 2);
  VARIANT(store_numbers)
  (element_at(&a->out, p->at[1]), a->out.dtype, &out, &r->room->results, a->class_of);
  if (a->index.address == NULL || pg_is_sum(&r->plan) || pg_is_logic(&r->plan)) return;
  VARIANT(store_numbers)
  (element_at(&a->index, p->at[2]), a->index.dtype, &index, r->room->positions, PG_CLASS_INT);
}

static void reduce_item(const struct any_reduce *r, int64_t number_of_item) {
  const struct pg_reduce *a = r->plan.a;
  const struct pg_reduce_item item = pg_reduce_item_at(&r->plan, number_of_item);
  const struct pg_plot in = pg_plot_of(&r->plan.walk, &item.panel, 0);
  const char *const begin = element_at(&a->in, item.panel.at[0]);
  if (r->plan.chunks > 1) {
    CALL(reduce_chunk, r, begin, &item);
    return;
  }
  for (int64_t row = 0; row < in.rows; row++)
    for (int64_t column = 0; column < in.columns; column++) {
      const int64_t at = row * in.row_stride + column * in.column_stride;
      CALL(reduce_output, r, begin + at * pg_element_bytes(a->in.dtype), &item,
           row * in.columns + column);
    }
  store_results(r, &item.panel);
}

/* --- The method --- */

/* Items of about so many elements, of whole outputs if there are enough of them. */
static struct pg_reduction plan_of(const struct pg_reduce *a) {
  const int64_t blocks = pg_reduce_blocks(a);
  const int64_t length = a->inner.count < 1 ? 1 : a->inner.count;
  const int64_t outputs = least(NUMBERS, ITEM_ELEMENTS / length < 1 ? 1 : ITEM_ELEMENTS / length);
  const bool cut = blocks > MOST_BLOCKS || (blocks > CHUNK && a->grid.count < MANY_ITEMS);
  return pg_reduction_of(a, outputs, cut ? CHUNK : blocks, true);
}

static struct any_reduce reduce_of(const void *args, struct pg_scratch *scratch) {
  const struct pg_reduce *a = &((const struct pg_task *)args)->problem.args.reduce;
  const bool is_row = a->inner.rank == 0 || (a->inner.rank == 1 && a->inner_strides[0] == 1);
  return (struct any_reduce){.plan = plan_of(a),
                             .room = scratch->room,
                             .scratch = scratch,
                             .follow = is_row && is_of_class(a->in.dtype, a->class_of)};
}

static void any_items(const void *args, int64_t begin, int64_t end, struct pg_scratch *scratch) {
  const struct any_reduce r = reduce_of(args, scratch);
  for (int64_t item = begin; item < end && !pg_is_stopped(scratch); item++) reduce_item(&r, item);
}

/* The first item of each output finishes it. */
static void finish_items(const void *args, int64_t begin, int64_t end, struct pg_scratch *scratch) {
  const struct any_reduce of_task = reduce_of(args, scratch), *r = &of_task;
  const int64_t chunks = r->plan.chunks;
  for (int64_t i = pg_ceil_div(begin, chunks); i * chunks < end && !pg_is_stopped(scratch); i++) {
    const struct pg_panel p = pg_panel_at(&r->plan.walk, i);
    CALL(finish_output, r, i);
    store_results(r, &p);
  }
}

static bool any_fits(const struct pg_problem *problem, struct pg_tiling *tiling) {
  const struct pg_reduction plan = plan_of(&problem->args.reduce);
  *tiling = pg_reduction_tiling(&plan);
  return true;
}

static int64_t any_workspace(const struct pg_problem *problem, const struct pg_tiling *tiling) {
  (void)tiling;
  const struct pg_reduction plan = plan_of(&problem->args.reduce);
  return pg_reduction_workspace(&plan);
}

const struct pg_cpu_method VARIANT(reduce_any) = {.name = "any",
                                                  .fits = any_fits,
                                                  .workspace = any_workspace,
                                                  .run = any_items,
                                                  .finish = finish_items};
