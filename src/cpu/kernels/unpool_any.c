/* SPDX-License-Identifier: Apache-2.0 */
/* PG_UNPOOL: a plane is cleared, then its outputs are put where they belong, one after another, so
 * the last of several values for a cell stays.  Small planes share an item. */
#include "cpu/bad_indices.h"
#include "cpu/grid_walk.h"
#include "cpu/kernels/tensor_numbers.h"
#include "cpu/method.h"

enum { ITEM_BYTES = 32768 };

/* Some outputs of a plane. */
struct unpooling {
  const struct pg_unpool *a;
  const int64_t *index;
  int64_t count, first; /* position of the first one */
  struct pg_index_report *found;
};

/* NOLINTBEGIN(bugprone-macro-parentheses): types */
#define DEFINE_PUT(name, type)                                               \
  static void name(const struct unpooling *u, type *plane, const type *in) { \
    for (int64_t i = 0; i < u->count; i++) {                                 \
      const int64_t index = u->index[i];                                     \
      if (index >= 0 && index < u->a->cells)                                 \
        plane[index] = in[i];                                                \
      else                                                                   \
        pg_note_bad_index(u->found, u->first + i, index);                    \
    }                                                                        \
  }
/* NOLINTEND(bugprone-macro-parentheses) */

DEFINE_PUT(put_8, uint8_t)
DEFINE_PUT(put_16, uint16_t)
DEFINE_PUT(put_32, uint32_t)
DEFINE_PUT(put_64, uint64_t)

static void put(const struct unpooling *u, void *plane, const void *in) {
  switch (pg_element_bytes(u->a->dtype)) {
    case 8:
      put_64(u, plane, in);
      return;
    case 4:
      put_32(u, plane, in);
      return;
    case 2:
      put_16(u, plane, in);
      return;
    default:
      put_8(u, plane, in);
  }
}

static void unpool_plane(const struct pg_unpool *a, int64_t number, struct pg_scratch *scratch,
                         struct pg_index_report *found) {
  const int64_t bytes = pg_element_bytes(a->dtype), end = (number + 1) * a->outputs;
  char *const plane = (char *)a->out + number * a->cells * bytes;
  if (a->cells > 0) memset(plane, 0, (size_t)(a->cells * bytes));
  for (int64_t first = number * a->outputs; first < end && !pg_is_stopped(scratch);
       first += NUMBERS) {
    const int64_t count = end - first < NUMBERS ? end - first : NUMBERS;
    const struct pg_plot plot = {1, count, count, 1};
    const char *const index = (const char *)a->index + first * pg_element_bytes(a->index_dtype);
    const struct unpooling u = {
        .a = a,
        .index = numbers_of(scratch->room, PG_CLASS_INT, index, a->index_dtype, &plot),
        .count = count,
        .first = first,
        .found = found};
    put(&u, plane, (const char *)a->in + first * bytes);
  }
}

static int64_t planes_of_item(const struct pg_unpool *a) {
  const int64_t elements = a->cells > a->outputs ? a->cells : a->outputs;
  const int64_t planes = ITEM_BYTES / pg_element_bytes(a->dtype) / (elements < 1 ? 1 : elements);
  return planes < 1 ? 1 : planes;
}

static void any_items(const void *args, int64_t begin, int64_t end, struct pg_scratch *scratch) {
  const struct pg_unpool *a = &((const struct pg_task *)args)->problem.args.unpool;
  const int64_t planes = planes_of_item(a);
  const int64_t last = end * planes < a->planes ? end * planes : a->planes;
  struct pg_index_report found = pg_no_bad_indices();
  for (int64_t plane = begin * planes; plane < last && !pg_is_stopped(scratch); plane++)
    unpool_plane(a, plane, scratch, &found);
  pg_report_bad_indices(a->report, &found);
}

static bool any_fits(const struct pg_problem *problem, struct pg_tiling *tiling) {
  const struct pg_unpool *a = &problem->args.unpool;
  *tiling = pg_tile_items(pg_ceil_div(a->planes, planes_of_item(a)));
  return true;
}

const struct pg_cpu_method VARIANT(unpool_any) = {
    .name = "any", .fits = any_fits, .run = any_items};
