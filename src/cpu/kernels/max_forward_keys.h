/* SPDX-License-Identifier: Apache-2.0 */
/* Keys: how max-forward compares elements of 16 bits.
 *
 * An element becomes a 16-bit integer that is greater where the element is, so a vector compares
 * twice as many of them as it has floats.  Beside the element a key has the position, in 16 bits
 * that are greater the earlier it comes: of two keys in a lane the greater integer is then the
 * result, whatever order they are looked at in, and one instruction finds it.
 *
 *   bits  31 ... 16                                  15 ... 0
 *         element: negative ones have their lower    0xffff - (position - that of the first cell
 *         bits flipped; all less NAN_KEYS            that the window may have)
 *
 * Two things are not in the order of integers.  A NaN replaces what was found before it.  NAN_KEYS
 * is subtracted so that NaNs of either sign have the greatest keys, and one of them is found if
 * there are any.  And -0 has a lesser key than +0, which matters only where +0 was found: cells are
 * then searched for -0.  If there was either, floats are compared instead. */
#ifndef PG_MAX_FORWARD_KEYS_H_
#define PG_MAX_FORWARD_KEYS_H_

#include "core/checked.h"
#include "cpu/kernels/max_forward_keep.h"

enum {
  NAN_KEYS = 0x7fff - INFINITY_BITS,       /* so many NaNs there are of each sign */
  GREATEST_KEY = INFINITY_BITS - NAN_KEYS, /* of a number: that of infinity */
  ZERO_KEY = -NAN_KEYS,                    /* that of +0 */
  KEY_POSITIONS = 0x10000                  /* as many can be told apart */
};

/* The most cells of an axis that a window has. */
static inline int64_t most_taps(const struct pg_axis *axis) {
  if (axis->kernel == 0) return least(axis->in, pg_ceil_div(axis->in, axis->out) + 1);
  return least(axis->kernel, (axis->in - 1) / axis->dilation + 1);
}

/* The distance between the first and the last cell of a window along an axis, at most. */
static inline int64_t most_steps(const struct pg_axis *axis) {
  if (axis->kernel == 0) return most_taps(axis) - 1;
  return least(axis->in - 1, pg_window_span(axis));
}

/* Can keys tell the positions of all windows of a row of outputs apart? */
static inline bool keys_fit(const struct pg_pooling *p) {
  const int64_t rows = most_steps(&p->d) * p->h.in + most_steps(&p->h) + 1;
  return !ELEMENT_IS_FLOAT && pg_mul_or_most(rows, p->w.in) <= KEY_POSITIONS;
}

static inline shorts keys_of(shorts v) {
  return sub_shorts(flip_negative(v), all_shorts(NAN_KEYS));
}

static inline shorts load_keys(const element *p, int64_t count) {
  const uint16_t *bits = (const void *)p;
  return keys_of(count == TWO_VECTORS ? load_shorts(bits) : load_part_shorts(bits, count));
}

/* The two halves of each lane as numbers of their own. */
static inline shorts halves_of(ints v) {
  shorts halves;
  memcpy(&halves, &v, sizeof halves);
  return halves;
}
static inline ints lanes_of(shorts v) {
  ints lanes;
  memcpy(&lanes, &v, sizeof lanes);
  return lanes;
}

/* What is known about results: the greatest key of each lane, and where there was a +0. */
struct doubts {
  ints greatest;
  truths zero;
};

static inline struct doubts no_doubts(void) { return (struct doubts){all_i(INT32_MIN), none()}; }

static inline bool has_nan(const struct doubts *d) {
  return !nowhere(is_less_i(all_i(GREATEST_KEY), upper_short(d->greatest)));
}

/* Of the numbers that are elements less 1, that of -0 is the greatest. */
static inline shorts look_for_minus_zero(shorts greatest, const element *p, int64_t count) {
  const uint16_t *bits = (const void *)p;
  const shorts v = count == TWO_VECTORS ? load_shorts(bits) : load_part_shorts(bits, count);
  return greater_short(greatest, sub_shorts(v, all_shorts(1)));
}
static inline bool was_minus_zero(shorts greatest) {
  const ints v = lanes_of(greatest);
  const truths lower = below(sub_i(lower_short(v), all_i(INT16_MAX)), all_i(1));
  return !nowhere(either(lower, is_less_i(all_i(INT16_MAX - 1), upper_short(v))));
}

/* Is there a -0 among cells that follow each other? */
static inline bool has_minus_zero(const element *cells, int64_t count) {
  shorts greatest = all_shorts(0);
  int64_t i = 0;
  for (; i + TWO_VECTORS <= count; i += TWO_VECTORS)
    greatest = look_for_minus_zero(greatest, cells + i, TWO_VECTORS);
  if (i < count) greatest = look_for_minus_zero(greatest, cells + i, count - i);
  return was_minus_zero(greatest);
}

/* Puts a vector of results, from the i-th on, in their place.  `origin`: the positions that belong
 * to the lower halves 0. */
static inline SPECIALISED void put_keys(const struct place *to, int64_t i, ints key, ints origin,
                                        const int index_bytes, struct doubts *doubts) {
  const ints from_zero = sub_i(key, all_i(ZERO_KEY * KEY_POSITIONS)); /* lower halves stay */
  const ints at = sub_i(origin, lower_short(key));
  doubts->greatest = greater_i(doubts->greatest, key);
  doubts->zero = either(doubts->zero, below(from_zero, all_i(KEY_POSITIONS)));
  store_words((uint16_t *)(void *)to->out + i,
              upper_short(lanes_of(flip_negative(halves_of(from_zero)))));
  if (index_bytes == 4) store_i32((int32_t *)to->index + i, at);
  if (index_bytes == 8) store_i64((int64_t *)to->index + i, at);
}

#endif
