/* SPDX-License-Identifier: Apache-2.0 */
/* PG_SELECT: the elements whose mask is set, one behind the other.
 *
 * Positions are cut into parts.  What is set in each part is counted first; then each part knows
 * where its elements begin, and moves them.  A single part does so at once. */
#include "cpu/grid_walk.h"
#include "cpu/kernels/tensor_numbers.h"
#include "cpu/method.h"

enum { PART = 16384 };

/* In scratch memory. */
struct select_room {
  union numbers mask, elements;
  uint8_t set[NUMBERS];
  int32_t chosen[NUMBERS + 1];
};

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Where there is no position, there still is a count. */
static int64_t parts_of(const struct pg_select *a) {
  return a->grid.count <= PART ? 1 : pg_ceil_div(a->grid.count, PART);
}

static bool is_row(const struct pg_grid *grid, const struct pg_tensor_view *view) {
  return grid->rank == 0 || (grid->rank == 1 && view->strides[0] == 1);
}

static bool is_float(aclDataType dtype) {
  return dtype == ACL_FLOAT || dtype == ACL_FLOAT16 || dtype == ACL_BF16 || dtype == ACL_DOUBLE;
}

/* --- Which are set --- */

/* A byte for each position, which is not 0 where the mask is set. */
static const uint8_t *load_mask(const struct pg_select *a, int64_t first, int64_t count,
                                struct select_room *room) {
  const struct pg_tensor_view *mask = &a->mask;
  if (pg_element_bytes(mask->dtype) == 1 && is_row(&a->grid, mask))
    return (const uint8_t *)mask->address + first;
  const bool floats = is_float(mask->dtype);
  VARIANT(load_in_order)
  (&room->mask, floats ? PG_CLASS_DOUBLE : PG_CLASS_INT, mask->address, mask->dtype, &a->grid,
   mask->strides, first, count);
  if (floats)
    for (int64_t i = 0; i < count; i++) room->set[i] = room->mask.doubles[i] != 0;
  else
    for (int64_t i = 0; i < count; i++) room->set[i] = room->mask.integers[i] != 0;
  return room->set;
}

static int64_t count_part(const struct pg_select *a, int64_t part, struct select_room *room) {
  const int64_t end = least((part + 1) * PART, a->grid.count);
  int64_t sum = 0;
  for (int64_t first = part * PART; first < end; first += NUMBERS) {
    const int64_t count = least(NUMBERS, end - first);
    const uint8_t *const set = load_mask(a, first, count, room);
    int32_t some = 0;
    for (int64_t i = 0; i < count; i++) some += set[i] != 0;
    sum += some;
  }
  return sum;
}

/* --- Moving them --- */

/* The elements at the places `chosen`; of integers in a buffer the low bits. */
/* NOLINTBEGIN(bugprone-macro-parentheses): types */
#define DEFINE_MOVE(name, type, source)                                                  \
  static void name(type *to, const source *from, const int32_t *chosen, int64_t count) { \
    for (int64_t i = 0; i < count; i++) to[i] = (type)from[chosen[i]];                   \
  }
/* NOLINTEND(bugprone-macro-parentheses) */

DEFINE_MOVE(move_8, uint8_t, uint8_t)
DEFINE_MOVE(move_16, uint16_t, uint16_t)
DEFINE_MOVE(move_32, uint32_t, uint32_t)
DEFINE_MOVE(move_64, uint64_t, uint64_t)

static void move_chosen(void *to, const void *from, const int32_t *chosen, int64_t count,
                        int64_t bytes) {
  if (bytes == 8)
    move_64(to, from, chosen, count);
  else if (bytes == 4)
    move_32(to, from, chosen, count);
  else if (bytes == 2)
    move_16(to, from, chosen, count);
  else
    move_8(to, from, chosen, count);
}

static aclDataType integer_of_bytes(int64_t bytes) {
  return bytes == 8 ? ACL_INT64 : bytes == 4 ? ACL_INT32 : bytes == 2 ? ACL_INT16 : ACL_INT8;
}

/* The elements of positions that follow each other, where they lie or packed in `room`. */
static const void *load_elements(const struct pg_select *a, int64_t first, int64_t count,
                                 struct select_room *room) {
  const int64_t bytes = pg_element_bytes(a->in.dtype);
  const struct pg_plot packed = {1, count, count, 1};
  if (is_row(&a->grid, &a->in)) return (const char *)a->in.address + first * bytes;
  const aclDataType as = integer_of_bytes(bytes);
  VARIANT(load_in_order)
  (&room->mask, PG_CLASS_INT, a->in.address, as, &a->grid, a->in.strides, first, count);
  VARIANT(store_numbers)(&room->elements, as, &packed, &room->mask, PG_CLASS_INT);
  return &room->elements;
}

/* Moves what is set in a part to `to` and further on; returns how much it is. */
static int64_t move_part(const struct pg_select *a, int64_t part, int64_t to,
                         struct select_room *room) {
  const int64_t end = least((part + 1) * PART, a->grid.count), begin = to;
  const int64_t bytes = pg_element_bytes(a->in.dtype);
  for (int64_t first = part * PART; first < end; first += NUMBERS) {
    const int64_t count = least(NUMBERS, end - first);
    const uint8_t *const set = load_mask(a, first, count, room);
    int32_t number = 0;
    for (int32_t i = 0; i < (int32_t)count; i++) {
      room->chosen[number] = i;
      number += set[i] != 0;
    }
    if (number == 0) continue;
    move_chosen((char *)a->out + to * bytes, load_elements(a, first, count, room), room->chosen,
                number, bytes);
    to += number;
  }
  return to - begin;
}

static void tell_count(const struct pg_select *a, int64_t count) {
  if (a->report != NULL)
    *a->report = (struct pg_index_report){.count = 1, .position = 0, .value = count};
}

/* --- The method --- */

static void count_items(const void *args, int64_t begin, int64_t end, struct pg_scratch *scratch) {
  const struct pg_select *a = &((const struct pg_task *)args)->problem.args.select;
  if (parts_of(a) == 1) {
    tell_count(a, move_part(a, 0, 0, scratch->room));
    return;
  }
  for (int64_t part = begin; part < end && !pg_is_stopped(scratch); part++)
    a->counts[part] = count_part(a, part, scratch->room);
}

static void move_items(const void *args, int64_t begin, int64_t end, struct pg_scratch *scratch) {
  const struct pg_select *a = &((const struct pg_task *)args)->problem.args.select;
  int64_t to = 0;
  for (int64_t part = 0; part < begin; part++) to += a->counts[part];
  for (int64_t part = begin; part < end && !pg_is_stopped(scratch); part++)
    to += move_part(a, part, to, scratch->room);
  if (end == parts_of(a)) tell_count(a, to);
}

static bool any_fits(const struct pg_problem *problem, struct pg_tiling *tiling) {
  *tiling = pg_tile_items(parts_of(&problem->args.select));
  return true;
}

static int64_t any_workspace(const struct pg_problem *problem, const struct pg_tiling *tiling) {
  (void)tiling;
  const int64_t parts = parts_of(&problem->args.select);
  return parts > 1 ? parts * (int64_t)sizeof(int64_t) : 0;
}

const struct pg_cpu_method VARIANT(select_any) = {.name = "any",
                                                  .fits = any_fits,
                                                  .workspace = any_workspace,
                                                  .run = count_items,
                                                  .finish = move_items};
