/* SPDX-License-Identifier: Apache-2.0 */
/* What the fuzzers share: bytes read as small choices, and the end of a run that went wrong.
 *
 * Every choice is made so that 0, which is also what an exhausted input gives, is the ordinary one:
 * short inputs are valid calls, and a fuzzer departs from them a byte at a time. */
#ifndef PG_FUZZ_INPUT_H_
#define PG_FUZZ_INPUT_H_

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Before the first input; the arguments are left alone. */
int LLVMFuzzerInitialize(int *argc, char ***argv);

struct input {
  const uint8_t *at, *end;
};

static inline unsigned take(struct input *in) { return in->at < in->end ? *in->at++ : 0; }

/* 0 to limit - 1; limit is 1 to 256. */
static inline int take_below(struct input *in, int limit) { return (int)take(in) % limit; }

/* True for the highest of `odds` values alone. */
static inline bool take_rarely(struct input *in, int odds) {
  return take_below(in, odds) == odds - 1;
}

static inline uint64_t take_word(struct input *in) {
  uint64_t word = 0;
  for (int i = 0; i < 8; i++) word = word << 8 | take(in);
  return word;
}

/* Numbers at which arithmetic goes wrong. */
static inline int64_t take_extreme(struct input *in) {
  static const int64_t values[] = {-1,
                                   0,
                                   1,
                                   2,
                                   3,
                                   7,
                                   25,
                                   100,
                                   977,
                                   4096,
                                   65536,
                                   1 << 20,
                                   INT32_MAX,
                                   INT64_C(1) << 31,
                                   INT64_C(1) << 32,
                                   INT64_C(1) << 40,
                                   INT64_C(1) << 53,
                                   INT64_C(1) << 60,
                                   INT64_C(1) << 61,
                                   INT64_C(1) << 62,
                                   INT64_MAX - 1,
                                   INT64_MAX,
                                   INT64_MIN,
                                   INT64_MIN + 1,
                                   -2,
                                   INT32_MIN,
                                   -(INT64_C(1) << 40)};
  enum { COUNT = sizeof values / sizeof values[0] };
  const int choice = take_below(in, COUNT + 1);
  return choice == COUNT ? (int64_t)take_word(in) : values[choice];
}

/* The library, or the fuzzer's idea of it, is wrong: says so and ends the process. */
__attribute__((format(printf, 1, 2), noreturn)) static inline void wrong(const char *format, ...) {
  va_list args;
  va_start(args, format);
  (void)fputs("WRONG: ", stderr);
  (void)vfprintf(stderr, format, args);
  (void)fputc('\n', stderr);
  va_end(args);
  abort();
}

#endif
