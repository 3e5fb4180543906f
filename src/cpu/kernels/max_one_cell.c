/* SPDX-License-Identifier: Apache-2.0 */
/* Max-backward for windows of one cell that slide by one: as many outputs as cells, each of which
 * names the cell at its own place.  Tensors are contiguous, planar or channels last.
 *
 * So gradInput is a copy of gradOutput, provided that every index is the position of its output,
 * which is compared in vectors with a table of the positions in a box.  If an index is another one,
 * the box is scattered. */
#include "core/checked.h"
#include "cpu/kernels/max_staging.h"

enum {
  BOX_ELEMENTS = 4096, /* cells times planes of a box */
  SOON = 1024          /* outputs that are prefetched */
};

struct one_cell {
  const struct pg_task *task;
  const struct pg_pooling *pool;
  const struct pg_max_backward *args;
  struct grad_in grad_in;
  _Alignas(LINE) int32_t position[BOX_ELEMENTS + LANES]; /* less that of the box's first cell */
};
_Static_assert(sizeof(struct one_cell) <= PG_SCRATCH_METHOD, "one cell needs more scratch");

/* The elements of a box follow each other, plane by plane or cell by cell.  The first ones have the
 * same positions in smaller boxes. */
static void make_table(struct one_cell *k) {
  const struct pg_tiling *t = &k->task->choice.tiling;
  const int64_t cells = t->d * t->h * t->w;
  int32_t *to = k->position;
  for (int64_t plane = 0; !t->interleaved && plane < t->planes; plane++)
    for (int64_t i = 0; i < cells; i++) *to++ = (int32_t)i;
  for (int64_t cell = 0; t->interleaved && cell < cells; cell++)
    for (int64_t i = 0; i < t->planes; i++) *to++ = (int32_t)cell;
}

/* The elements of a box: where they are in each tensor, how many, and the position of the first. */
struct elements {
  element *to;
  const element *grad;
  const void *index;
  int64_t count;
  ints first;
};

static struct elements elements_of(const struct one_cell *k, const struct pg_box *b) {
  const struct pg_pooling *p = k->pool;
  const struct pg_max_backward *a = k->args;
  const int64_t n = b->first / p->c, c = b->first % p->c;
  const int64_t at =
      pg_offset(k->grad_in.strides, n, c, b->d.begin, b->h.begin, b->w.begin); /* in all tensors */
  const int64_t first = (b->d.begin * p->h.in + b->h.begin) * p->w.in + b->w.begin;
  return (struct elements){.to = k->grad_in.address + at,
                           .grad = (const element *)a->grad_out + at,
                           .index = (const char *)a->index + at * a->index_bytes,
                           .count = b->planes * b->cells,
                           .first = all_i((int32_t)first)};
}

/* Are LANES indices, from the i-th on, the positions of their outputs? */
static inline __attribute__((always_inline)) truths are_positions(const struct one_cell *k,
                                                                  const struct elements *e,
                                                                  int64_t i, const bool is_i64,
                                                                  ints *high) {
  const ints x = load_index(e->index, is_i64, i, SOON, high);
  const ints position = add_i(e->first, load_i32(k->position + i));
  return below(sub_i(x, position), all_i(1));
}

/* Copies fewer than LANES elements, `count` from the i-th on; 0 is added, which changes -0. */
static inline bool copy_part(const struct one_cell *k, const struct elements *e, int64_t i,
                             int64_t count, const bool is_i64) {
  ints x;
  if (!load_last_index(e->index, is_i64, i, count, &x)) return false;
  const ints position = add_i(e->first, load_i32(k->position + i));
  store_part(e->to + i, pack_exact(add(zeros(), load_part(e->grad + i, count))), count);
  return every(below(sub_i(x, position), all_i(1)), count);
}

/* Copies the elements of a box, past the caches where lines are complete if asked to.  False when
 * an index is not the position of its output. */
static inline __attribute__((always_inline)) bool copy_elements(const struct one_cell *k,
                                                                const struct elements *e,
                                                                const bool is_i64,
                                                                const bool nontemporal) {
  const int64_t unit = most(LINE, TWO_VECTORS * (int64_t)sizeof(element));
  const int64_t beyond = (int64_t)((uintptr_t)e->to % (uintptr_t)unit) / (int64_t)sizeof(element);
  const int64_t head = nontemporal && beyond > 0 ? unit / (int64_t)sizeof(element) - beyond : 0;
  truths fine = below(all_i(0), all_i(1));
  ints high = all_i(0);
  bool parts = true;
  int64_t i = 0;
  for (int64_t part; i < least(head, e->count); i += part) {
    part = least(LANES - 1, least(head, e->count) - i);
    parts = copy_part(k, e, i, part, is_i64) && parts;
  }
  for (; i + TWO_VECTORS <= e->count; i += TWO_VECTORS) {
    fine = both(fine, are_positions(k, e, i, is_i64, &high));
    fine = both(fine, are_positions(k, e, i + LANES, is_i64, &high));
    __builtin_prefetch(e->grad + i + SOON);
    const floats v = add(zeros(), load_elements(e->grad + i));
    const floats w = add(zeros(), load_elements(e->grad + i + LANES));
    if (nontemporal) {
      store_two_nontemporal(e->to + i, v, w);
    } else {
      store_packed(e->to + i, pack_exact(v));
      store_packed(e->to + i + LANES, pack_exact(w));
    }
  }
  for (int64_t part; i < e->count; i += part) {
    part = least(LANES - 1, e->count - i);
    parts = copy_part(k, e, i, part, is_i64) && parts;
  }
  return parts && every(fine, LANES) && high_halves_are_zero(high);
}

static bool copy_box(const struct one_cell *k, const struct pg_box *box) {
  const struct elements e = elements_of(k, box);
  const bool is_i64 = k->args->index_bytes == 8;
  if (k->grad_in.nontemporal)
    return is_i64 ? copy_elements(k, &e, true, true) : copy_elements(k, &e, false, true);
  return is_i64 ? copy_elements(k, &e, true, false) : copy_elements(k, &e, false, false);
}

static void one_cell_items(const void *args, int64_t begin, int64_t end,
                           struct pg_scratch *scratch) {
  const struct pg_task *task = args;
  const struct pg_facts *facts = &task->problem.facts;
  struct one_cell *k = scratch->room;
  k->task = task;
  k->pool = &facts->pool;
  k->args = &task->problem.args.max_backward;
  k->grad_in = grad_in_of(facts, k->args->grad_in, &k->args->in_strides);
  if ((uintptr_t)k->grad_in.address % sizeof(element) != 0) k->grad_in.nontemporal = false;
  make_table(k);
  for (int64_t item = begin; item < end && !pg_is_stopped(scratch); item++) {
    const struct pg_box box = pg_box_of(&task->choice.tiling, k->pool, item);
    if (copy_box(k, &box)) continue;
    if (k->grad_in.nontemporal) fence_nontemporal();
    VARIANT(scatter_box)(task, &box, scratch);
  }
  if (k->grad_in.nontemporal) fence_nontemporal();
}

/* --- The method --- */

static bool has_own_cell(const struct pg_axis *axis) {
  return axis->kernel == 1 && axis->stride == 1 && axis->pad == 0 && axis->in == axis->out;
}

/* Is a tensor contiguous with the channels of a cell side by side? */
static bool is_channels_last(const struct pg_pooling *p, const struct pg_strides *strides) {
  const int64_t *s = strides->of, row = p->c * p->w.in, slice = row * p->h.in;
  return s[PG_C] == 1 && (p->w.in == 1 || s[PG_W] == p->c) && (p->h.in == 1 || s[PG_H] == row) &&
         (p->d.in == 1 || s[PG_D] == slice) && (p->n == 1 || s[PG_N] == slice * p->d.in);
}

static bool one_cell_fits(const struct pg_problem *problem, struct pg_tiling *tiling) {
  const struct pg_facts *f = &problem->facts;
  const struct pg_pooling *p = &f->pool;
  const struct pg_max_backward *a = &problem->args.max_backward;
  if (!has_own_cell(&p->d) || !has_own_cell(&p->h) || !has_own_cell(&p->w) ||
      f->cells > MOST_POSITIONS)
    return false;
  if (f->in.all && f->out.all) {
    *tiling = pg_tile_flat(p, BOX_ELEMENTS);
    return true;
  }
  const int64_t row = pg_mul_or_most(p->c, p->w.in);
  if (!f->neighbours || row > BOX_ELEMENTS || !is_channels_last(p, &a->in_strides) ||
      !is_channels_last(p, &a->out_strides) || !is_channels_last(p, &a->index_strides))
    return false;
  *tiling = pg_tile_boxes(p, &(struct pg_tiling){.interleaved = true,
                                                 .planes = p->c,
                                                 .d = 1,
                                                 .h = least(p->h.in, BOX_ELEMENTS / row),
                                                 .w = p->w.in});
  return true;
}

const struct pg_cpu_method VARIANT(max_one_cell) = {.name = "one_cell",
                                                    .fits = one_cell_fits,
                                                    .workspace = pg_flags_bytes,
                                                    .run = one_cell_items,
                                                    .mend = VARIANT(mend_flagged)};
