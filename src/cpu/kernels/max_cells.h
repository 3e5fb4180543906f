/* SPDX-License-Identifier: Apache-2.0 */
/* Max-backward, the loops over outputs: each goes to the cell that it names, in one of two ways.
 *
 * Adding: cells are sums in fp32.  FLOAT elements are their own sums; others are rounded once all
 * outputs are there.
 *
 * Moving, for 16-bit elements: the first output that names a cell is stored there as it is, because
 * nothing has to be rounded.  The others are latecomers, and are noted in a list.  At the end the
 * sums of their cells alone are made, in the order of the outputs, and rounded.  So cells that are
 * 0 or have one output, which are most of them where windows overlap little, cost nothing. */
#ifndef PG_MAX_CELLS_H_
#define PG_MAX_CELLS_H_

#include "cpu/kernels/max_staging.h"

enum {
  MOST_CELLS = 65536, /* of a box: places are 16-bit numbers, and sums a quarter of a cache */
  MOST_NAMED = 4096,  /* outputs of a box whose places are kept */
  BLOCK = 256,        /* outputs that are handled at once */
  /* The outputs of planes that are handled several at once where they are added; with FLOAT, which
   * need not be widened, that does not pay. */
  SMALL = ELEMENT_IS_FLOAT ? 0 : 32,
  AHEAD = 4096 /* bytes of prefetching */
};

/* Cells that follow each other: the place of the first one in the box, its position in its plane,
 * and their number. */
struct cell_run {
  int64_t place, begin, count;
};

struct cells {
  bool moves;
  bool finds;   /* the places of a block of outputs are found before they are given */
  bool several; /* blocks may have the outputs of several planes */
  bool keeps;   /* the places that outputs name are kept, */
  int64_t named_count;
  uint16_t named[MOST_NAMED + BLOCK]; /* here */
  union {
    void *any;
    float *sum;      /* they are sums, */
    uint16_t *moved; /* or elements that were moved */
  } box;
  int64_t late_count;
  /* Latecomers, each with its element in the upper half and its place in the lower one. */
  uint32_t late[ELEMENT_IS_FLOAT ? 1 : MOST_NAMED + LANES];
  /* Of a block of outputs: gradients as floats, or as elements; and the places that they name. */
  _Alignas(LINE) float grad[BLOCK + LANES];
  _Alignas(LINE) element exact[BLOCK + LANES];
  _Alignas(LINE) uint16_t place[BLOCK + LANES];
  _Alignas(LINE) uint16_t old[BLOCK]; /* what there was before, where outputs are moved */
  /* Small planes share a block: how far the plane of each output is from the first one's. */
  _Alignas(LINE) int32_t further[BLOCK + LANES];
};

static inline void begin_cells(struct cells *k, const struct pg_task *task) {
  const struct pg_tiling *t = &task->choice.tiling;
  const int64_t outputs = task->problem.facts.outputs, cells = task->problem.facts.cells;
  const int64_t planes = pg_tiling_cuts(t) || outputs == 0 ? 1 : least(t->planes, BLOCK / outputs);
  memset(k->further, 0, sizeof k->further);
  for (int64_t plane = 1; plane < planes; plane++)
    for (int64_t i = 0; i < outputs; i++)
      k->further[plane * outputs + i] = (int32_t)(plane * cells);
}

static inline int64_t read_index(const void *index, const bool is_i64, int64_t i) {
  return is_i64 ? ((const int64_t *)index)[i] : ((const int32_t *)index)[i];
}

/* --- Blocks of outputs --- */

/* Outputs as the elements that their cells have if they are alone there: 0 is added, which changes
 * -0.  Up to LANES places more are written. */
static inline const element *alone(const element *from, int64_t count, element *to) {
  int64_t i = 0;
  for (; i + LANES <= count; i += LANES) {
    __builtin_prefetch(from + i + AHEAD / 2);
    store_packed(to + i, pack_exact(add(zeros(), load_elements(from + i))));
  }
  if (i < count) store_packed(to + i, pack_exact(add(zeros(), load_part(from + i, count - i))));
  return to;
}

/* Finds the places that outputs name.  False when one names none of these cells. */
static inline __attribute__((always_inline)) bool find_places(struct cells *k, const void *index,
                                                              int64_t count, const bool is_i64,
                                                              const struct cell_run *to) {
  const ints begin = all_i((int32_t)to->begin), cells = all_i((int32_t)to->count);
  const ints place = all_i((int32_t)to->place);
  ints high = all_i(0), x;
  truths fine = below(high, all_i(1));
  int64_t i = 0;
  for (; i + LANES <= count; i += LANES) {
    x = sub_i(load_index(index, is_i64, i, AHEAD / (is_i64 ? 8 : 4), &high), begin);
    fine = both(fine, below(x, cells));
    store_words(k->place + i, add_i(add_i(x, place), load_i32(k->further + i)));
  }
  if (!every(fine, LANES) || !high_halves_are_zero(high)) return false;
  if (i == count) return true;
  if (!load_last_index(index, is_i64, i, count - i, &x)) return false;
  x = sub_i(x, begin);
  store_words(k->place + i, add_i(add_i(x, place), load_i32(k->further + i)));
  return every(below(x, cells), count - i);
}

/* Moves one output to its cell, without a branch, which could not be predicted, and says what was
 * there.  An output that is 0 changes nothing, whether it comes first or late. */
static inline __attribute__((always_inline)) uint16_t move_one(uint16_t *cell, uint16_t value) {
  const int32_t old = *cell, nothing = -(int32_t)(old == 0); /* all bits, or none */
  *cell = (uint16_t)(old | (value & nothing));
  return (uint16_t)old;
}

/* Notes the latecomers of a block.  In the loop that moves outputs this would take long: where to
 * note the next one is known only when all cells before it have been read.  Nor can it be foreseen
 * which outputs they are, so nothing branches. */
static inline void note_latecomers(struct cells *k, const uint16_t *value, int64_t count) {
  for (int64_t i = 0; i < count; i += LANES) {
    const truths is_late = below(all_i(0), load_words(k->old + i));
    const ints output = add_i(as_ints(load_bf16(value + i)), load_words(k->place + i));
    k->late_count += store_true(k->late + k->late_count, output, is_late);
  }
}

/* To be called when places of outputs have been found. */
static inline void keep_places(struct cells *k, int64_t count) {
  if (!k->keeps) return;
  memcpy(k->named + k->named_count, k->place, (size_t)count * sizeof *k->named);
  k->named_count += count;
}

/* To be called when a block of outputs has been moved. */
static inline void end_moved(struct cells *k, const uint16_t *value, int64_t count) {
  for (int64_t i = count; i % LANES != 0; i++) k->old[i] = 0;
  note_latecomers(k, value, count);
}

static inline void move_block(struct cells *k, const uint16_t *value, int64_t count) {
  uint16_t *box = k->box.moved;
#pragma GCC unroll 8
  for (int64_t i = 0; i < count; i++) k->old[i] = move_one(box + k->place[i], value[i]);
  end_moved(k, value, count);
}

static inline void add_block(const struct cells *k, const float *grad, int64_t count) {
  float *sum = k->box.sum;
#pragma GCC unroll 8
  for (int64_t i = 0; i < count; i++) sum[k->place[i]] += grad[i];
}

/* Adds outputs of one plane without finding their places first.  Where neighbours name the same
 * cell the additions wait for each other, and checking indices meanwhile costs nothing. */
static inline __attribute__((always_inline)) bool add_some(const void *index, const float *grad,
                                                           const int64_t count, const bool is_i64,
                                                           int64_t begin, uint64_t cells,
                                                           float *sum) {
  bool fine = true;
#pragma GCC unroll 8
  for (int64_t i = 0; i < count; i++) {
    const uint64_t at = (uint64_t)read_index(index, is_i64, i) - (uint64_t)begin;
    if (__builtin_expect(at < cells, 1))
      sum[at] += grad[i];
    else
      fine = false;
  }
  return fine;
}

static inline __attribute__((always_inline)) bool add_directly(struct cells *k,
                                                               const struct output_row *o,
                                                               const bool is_i64,
                                                               const struct cell_run *to) {
  enum { STEP = 8 };
  const int64_t step_bytes = is_i64 ? 64 : 32;
  const float *grad = widened(o->grad, o->count, AHEAD / 2, k->grad);
  const char *index = o->index;
  const uint64_t cells = (uint64_t)to->count;
  float *sum = k->box.sum + to->place;
  int64_t left = o->count;
  bool fine = true;
  for (; left >= STEP; left -= STEP, index += step_bytes, grad += STEP) {
    __builtin_prefetch(index + AHEAD);
    if (ELEMENT_IS_FLOAT) __builtin_prefetch((const char *)grad + AHEAD / 2);
    fine &= add_some(index, grad, STEP, is_i64, to->begin, cells, sum);
  }
  return add_some(index, grad, left, is_i64, to->begin, cells, sum) && fine;
}

/* One output whatever it is. */
static inline void give_one(struct cells *k, int64_t place, element grad) {
  if (!ELEMENT_IS_FLOAT && k->moves) {
    const uint16_t value = (uint16_t)round_one(0 + widen_one(grad));
    k->late[k->late_count] = (uint32_t)value << 16 | (uint32_t)place;
    k->late_count += move_one(k->box.moved + place, value) != 0;
  } else {
    k->box.sum[place] += widen_one(grad);
  }
  if (k->keeps) k->named[k->named_count++] = (uint16_t)place;
}

/* A block in which an output names none of the cells, or in a plane of too many cells for 32-bit
 * positions. */
static bool give_carefully(struct cells *k, const struct output_row *o, const bool is_i64,
                           const struct cell_run *to) {
  bool fine = true;
  for (int64_t i = 0; i < o->count; i++) {
    const int64_t at = read_index(o->index, is_i64, i);
    if (at >= to->begin && at - to->begin < to->count)
      give_one(k, at - to->begin + to->place + k->further[i], o->grad[i]);
    else
      fine = false;
  }
  return fine;
}

static inline __attribute__((always_inline)) bool give_block(struct cells *k,
                                                             const struct output_row *o,
                                                             const bool is_i64,
                                                             const struct cell_run *to) {
  if (!k->finds) return add_directly(k, o, is_i64, to);
  if (to->begin + to->count > MOST_POSITIONS || !find_places(k, o->index, o->count, is_i64, to))
    return give_carefully(k, o, is_i64, to);
  keep_places(k, o->count);
  if (!ELEMENT_IS_FLOAT && k->moves)
    move_block(k, (const uint16_t *)(const void *)alone(o->grad, o->count, k->exact), o->count);
  else if (k->several)
    add_block(k, widened(o->grad, o->count, AHEAD / 2, k->grad), o->count);
  else
    return add_directly(k, o, is_i64, to);
  return true;
}

/* The contiguous outputs of planes that follow each other, each of which has `outputs` of them, or
 * of a part of one plane.  False when one names none of the cells. */
static inline __attribute__((always_inline)) bool give_planes(struct cells *k,
                                                              const struct output_row *all,
                                                              int64_t outputs, const bool is_i64,
                                                              struct cell_run to,
                                                              const struct pg_scratch *scratch) {
  const int64_t planes = k->several ? most(1, BLOCK / most(1, outputs)) : 1; /* in a block */
  struct output_row o = *all;
  bool fine = true;
  for (int64_t left = all->count; left > 0 && !pg_is_stopped(scratch);
       to.place += planes * to.count)
    for (int64_t end = left - least(left, planes * outputs); left > end; left -= o.count) {
      o.count = least(left - end, BLOCK);
      fine &= give_block(k, &o, is_i64, &to);
      o.index = (const char *)o.index + o.count * (is_i64 ? 8 : 4);
      o.grad += o.count;
    }
  return fine;
}

static bool give_contiguous(struct cells *k, const struct output_row *o, int64_t outputs,
                            const bool is_i64, const struct cell_run *to,
                            const struct pg_scratch *scratch) {
  return is_i64 ? give_planes(k, o, outputs, true, *to, scratch)
                : give_planes(k, o, outputs, false, *to, scratch);
}

/* --- Staged outputs --- */

/* Many of them may name cells of other boxes; these go to a place that nobody reads, so that no
 * branch has to be predicted. */
static void add_staged(struct cells *k, const struct staging *s, int64_t count,
                       const struct cell_run *to) {
  const uint32_t cells = (uint32_t)to->count;
  float elsewhere = 0, *sum = k->box.sum + to->place;
  for (int64_t i = 0; i < count; i++) {
    const uint32_t there = (uint32_t)s->index[i] - (uint32_t)to->begin;
    float *cell = there < cells ? sum + there : &elsewhere;
    *cell += s->grad[i];
    if (k->keeps) k->named[k->named_count++] = (uint16_t)(there < cells ? to->place + there : 0);
  }
}

static void move_staged(struct cells *k, const struct staging *s, int64_t count,
                        const struct cell_run *to) {
  const uint32_t cells = (uint32_t)to->count;
  const uint16_t *value = (const uint16_t *)(const void *)k->exact;
  uint16_t elsewhere;
  for (int64_t at = 0, end; at < count; at += end) {
    end = least(count - at, BLOCK);
    for (int64_t i = 0; i < end; i += LANES)
      store_packed(k->exact + i, pack_exact(add(zeros(), load_f32(s->grad + at + i))));
    for (int64_t i = 0; i < end; i++) {
      const uint32_t there = (uint32_t)s->index[at + i] - (uint32_t)to->begin;
      k->place[i] = (uint16_t)(there < cells ? (uint32_t)to->place + there : 0);
      elsewhere = 0;
      k->old[i] = move_one(there < cells ? k->box.moved + k->place[i] : &elsewhere, value[i]);
    }
    end_moved(k, value, end);
    keep_places(k, end);
  }
}

static void give_staged(struct cells *k, const struct staging *s, int64_t count,
                        const struct cell_run *to) {
  if (!ELEMENT_IS_FLOAT && k->moves)
    move_staged(k, s, count, to);
  else
    add_staged(k, s, count, to);
}

/* --- Latecomers --- */

static inline int64_t place_of(uint32_t output) { return output & 0xffff; }

/* Copies what the cells of some latecomers have to their sums. */
static void begin_sums(struct cells *k, const element *box, int64_t from, int64_t count,
                       float *sum) {
  const uint32_t *late = k->late + from;
#pragma GCC unroll 4
  for (int64_t i = 0; i < count; i++) k->exact[i] = box[place_of(late[i])];
  for (int64_t i = 0; i < count; i += LANES) store_f32(k->grad + i, load_elements(k->exact + i));
#pragma GCC unroll 4
  for (int64_t i = 0; i < count; i++) sum[place_of(late[i])] = k->grad[i];
}

static void add_late(struct cells *k, int64_t from, int64_t count, float *sum) {
  const uint32_t *late = k->late + from;
#pragma GCC unroll 4
  for (int64_t i = 0; i < count; i++) k->exact[i] = (element)(late[i] >> 16);
  for (int64_t i = 0; i < count; i += LANES) store_f32(k->grad + i, load_elements(k->exact + i));
#pragma GCC unroll 4
  for (int64_t i = 0; i < count; i++) sum[place_of(late[i])] += k->grad[i];
}

static void round_late(struct cells *k, element *box, int64_t from, int64_t count,
                       const float *sum) {
  const uint32_t *late = k->late + from;
#pragma GCC unroll 4
  for (int64_t i = 0; i < count; i++) k->grad[i] = sum[place_of(late[i])];
  for (int64_t i = 0; i < count; i += LANES)
    store_packed(k->exact + i, pack(load_f32(k->grad + i)));
#pragma GCC unroll 4
  for (int64_t i = 0; i < count; i++) box[place_of(late[i])] = k->exact[i];
}

/* Makes the sums of cells that latecomers name, in the room from `sum` on, and rounds them. */
static void settle_latecomers(struct cells *k, float *sum) {
  element *box = (element *)k->box.any;
  const int64_t count = k->late_count;
  for (int64_t i = 0; i < count; i += BLOCK) begin_sums(k, box, i, least(BLOCK, count - i), sum);
  for (int64_t i = 0; i < count; i += BLOCK) add_late(k, i, least(BLOCK, count - i), sum);
  for (int64_t i = 0; i < count; i += BLOCK) round_late(k, box, i, least(BLOCK, count - i), sum);
}

#endif
