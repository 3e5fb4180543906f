/* SPDX-License-Identifier: Apache-2.0 */
/* Small axes, all tiny ones and many random ones, and what can be counted along them output by
 * output.  The definition of a window is pg_window; nothing else of the library is used here. */
#ifndef PG_TESTS_AXES_H_
#define PG_TESTS_AXES_H_

#include "expect.h"

#include "kernels/window.h"

static inline int64_t any_of(uint64_t *seed, int64_t least, int64_t most) {
  *seed ^= *seed << 13;
  *seed ^= *seed >> 7;
  *seed ^= *seed << 17;
  return least + (int64_t)(*seed % (uint64_t)(most - least + 1));
}

/* The outputs that the operators expect; none where the window is longer than the padded axis. */
static inline struct pg_axis slide(struct pg_axis axis, bool ceil_mode) {
  const int64_t reach = (axis.kernel - 1) * axis.dilation;
  const int64_t room = axis.in + 2 * axis.pad - reach - 1 + (ceil_mode ? axis.stride - 1 : 0);
  axis.out = room < 0 ? 0 : room / axis.stride + 1;
  if (axis.out > 0 && ceil_mode && (axis.out - 1) * axis.stride >= axis.in + axis.pad) axis.out--;
  return axis;
}

static inline struct pg_axis any_sliding(uint64_t *seed, int64_t longest, int64_t dilation) {
  struct pg_axis axis = {.in = any_of(seed, 1, longest), .kernel = any_of(seed, 1, 9)};
  axis.stride = any_of(seed, 0, 2) == 0 ? 1 : any_of(seed, 1, 11);
  axis.pad = any_of(seed, 0, any_of(seed, 0, 3) == 0 ? 12 : axis.kernel / 2);
  axis.dilation = any_of(seed, 0, 1) == 0 ? 1 : any_of(seed, 1, dilation);
  return slide(axis, any_of(seed, 0, 1) == 0);
}

static inline struct pg_axis any_adaptive(uint64_t *seed, int64_t longest) {
  const int64_t in = any_of(seed, 1, longest), out = any_of(seed, 1, longest);
  if (any_of(seed, 0, 3) > 0) return (struct pg_axis){.in = in, .out = out};
  return (struct pg_axis){.in = in * any_of(seed, 1, 4), .out = in}; /* equal lengths */
}

static inline struct pg_axis any_axis(uint64_t *seed, int64_t longest) {
  return any_of(seed, 0, 2) == 0 ? any_adaptive(seed, longest) : any_sliding(seed, longest, 4);
}

/* Digits of the number choose the sizes. */
static inline void each_tiny_axis(void (*check)(const struct pg_axis *axis)) {
  enum { IN = 8, KERNEL = 4, STRIDE = 5, PAD = 5, DILATION = 3, MODE = 2 };
  for (int number = 0; number < IN * KERNEL * STRIDE * PAD * DILATION * MODE; number++) {
    int rest = number;
    struct pg_axis axis = {.in = 1 + rest % IN};
    axis.kernel = 1 + (rest /= IN) % KERNEL;
    axis.stride = 1 + (rest /= KERNEL) % STRIDE;
    axis.pad = (rest /= STRIDE) % PAD;
    axis.dilation = 1 + (rest /= PAD) % DILATION;
    axis = slide(axis, rest / DILATION == 1);
    check(&axis);
  }
  for (int64_t in = 1; in <= 16; in++)
    for (int64_t out = 0; out <= 20; out++) check(&(struct pg_axis){.in = in, .out = out});
}

static inline void each_axis(void (*check)(const struct pg_axis *axis)) {
  uint64_t seed = 88172645463325252u;
  each_tiny_axis(check);
  for (int round = 0; round < 20000; round++) {
    const struct pg_axis axis = any_axis(&seed, 40);
    check(&axis);
  }
}

/* The outputs whose windows hold one of the cells [begin, end). */
static inline int64_t count_touching(const struct pg_axis *axis, int64_t begin, int64_t end) {
  int64_t count = 0;
  for (int64_t o = 0; o < axis->out; o++) {
    const struct pg_range window = pg_window(axis, o);
    count += window.begin < end && window.end > begin;
  }
  return count;
}

/* The most of them, wherever the cells lie. */
static inline int64_t most_touching(const struct pg_axis *axis, int64_t cells) {
  int64_t most = 0;
  for (int64_t cell = 0; cell + cells <= axis->in; cell++) {
    const int64_t count = count_touching(axis, cell, cell + cells);
    if (count > most) most = count;
  }
  return most;
}

#define FAIL_ON_AXIS(axis, ...)                                                              \
  do {                                                                                       \
    print_error(__VA_ARGS__);                                                                \
    fail_msg(" (in %d, out %d, kernel %d, stride %d, pad %d, dilation %d)", (int)(axis)->in, \
             (int)(axis)->out, (int)(axis)->kernel, (int)(axis)->stride, (int)(axis)->pad,   \
             (int)(axis)->dilation);                                                         \
  } while (0)

#endif
