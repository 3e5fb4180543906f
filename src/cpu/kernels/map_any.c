/* SPDX-License-Identifier: Apache-2.0 */
/* Maps of any tensors and functions, panel by panel: each input is converted to numbers of the
 * class, unless its elements are such numbers and follow each other; a loop for the one function
 * computes; the results are converted and stored.  The buffers stay in the nearest cache, so what
 * takes time is memory.  Large results go past the caches.
 *
 * An input may be the output's view: a panel's elements are read before they are written, each by
 * the turn of the loop that writes it or into a buffer before. */
#include "cpu/grid_walk.h"
#include "cpu/kernels/line_writer.h"
#include "cpu/kernels/map_loops.h"
#include "cpu/kernels/tensor_numbers.h"
#include "cpu/method.h"
#include "cpu/nontemporal.h"

/* In scratch memory. */
struct any_room {
  union numbers in[PG_MAP_INPUTS], out;
  _Alignas(64) char elements[sizeof(union numbers)];
};

struct any_map {
  const struct pg_map *a;
  struct pg_walk walk; /* of out and the inputs */
  struct any_room *room;
  struct map_scalars scalars;
  bool nontemporal, is_random;
};

/* Random numbers depend on the position. */
static struct pg_walk walk_of(const struct pg_map *a) {
  const int64_t *const strides[] = {a->out.strides, a->in[0].strides, a->in[1].strides};
  return pg_walk_of(&a->grid, strides, 1 + a->inputs, NUMBERS, is_random(a->function));
}

static const void *load_input(const struct any_map *m, const struct pg_panel *p, int input) {
  const struct pg_tensor_view *in = &m->a->in[input];
  const struct pg_plot plot = pg_plot_of(&m->walk, p, 1 + input);
  return numbers_of(&m->room->in[input], m->a->class_of, element_at(in, p->at[1 + input]),
                    in->dtype, &plot);
}

/* Stores results past the caches: those of other types than the class's are converted first. */
static void store_past_caches(const struct any_map *m, void *to, const struct pg_plot *plot,
                              const void *results) {
  const aclDataType dtype = m->a->out.dtype;
  if (!is_of_class(dtype, m->a->class_of)) {
    VARIANT(store_numbers)(m->room->elements, dtype, plot, results, m->a->class_of);
    results = m->room->elements;
  }
  copy_bytes(to, results, plot->rows * plot->columns * pg_element_bytes(dtype), true);
}

static void map_panel(const struct any_map *m, int64_t number) {
  const struct pg_map *a = m->a;
  const struct pg_panel p = pg_panel_at(&m->walk, number);
  const struct pg_plot plot = pg_plot_of(&m->walk, &p, 0);
  const int64_t count = p.rows * p.columns;
  void *const to = element_at(&a->out, p.at[0]);
  const bool is_dense = pg_is_dense(&plot), past_caches = is_dense && m->nontemporal;
  const bool in_place = is_dense && !past_caches && is_of_class(a->out.dtype, a->class_of);
  void *const results = in_place ? to : (void *)&m->room->out;
  const void *const x = a->inputs > 0 ? load_input(m, &p, 0) : &m->room->in[0];
  const void *const y = a->inputs > 1 ? load_input(m, &p, 1) : x;
  if (m->is_random)
    VARIANT(map_random)(results, a, &m->scalars, (uint64_t)p.first, count);
  else
    VARIANT(map_numbers)(results, x, y, a, &m->scalars, count);
  if (past_caches)
    store_past_caches(m, to, &plot, results);
  else if (!in_place)
    VARIANT(store_numbers)(to, a->out.dtype, &plot, results, a->class_of);
}

static void any_items(const void *args, int64_t begin, int64_t end, struct pg_scratch *scratch) {
  const struct pg_map *a = &((const struct pg_task *)args)->problem.args.map;
  struct any_map m = {.a = a, .walk = walk_of(a), .room = scratch->room};
  _Static_assert(sizeof(struct any_room) <= PG_SCRATCH_METHOD, "scratch memory is too small");
  m.scalars = map_scalars_of(a);
  m.is_random = is_random(a->function);
  m.nontemporal = pg_prefers_nontemporal(a->grid.count * pg_element_bytes(a->out.dtype));
  for (int64_t item = begin; item < end && !pg_is_stopped(scratch); item++) map_panel(&m, item);
  if (m.nontemporal) fence_nontemporal();
}

static bool any_fits(const struct pg_problem *problem, struct pg_tiling *tiling) {
  *tiling = pg_tile_items(walk_of(&problem->args.map).panels);
  return true;
}

const struct pg_cpu_method VARIANT(map_any) = {.name = "any", .fits = any_fits, .run = any_items};
