/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic that says when it overflows.  Each returns false and leaves *out unspecified then. */
#ifndef PG_CHECKED_H_
#define PG_CHECKED_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool pg_mul(int64_t a, int64_t b, int64_t *out) {
  return !__builtin_mul_overflow(a, b, out);
}
static inline bool pg_add(int64_t a, int64_t b, int64_t *out) {
  return !__builtin_add_overflow(a, b, out);
}
/* A product of numbers that are not negative, or INT64_MAX if 64 bits cannot hold it. */
static inline int64_t pg_mul_or_most(int64_t a, int64_t b) {
  int64_t ab;
  return pg_mul(a, b, &ab) ? ab : INT64_MAX;
}
static inline bool pg_mul_size(size_t a, size_t b, size_t *out) {
  return !__builtin_mul_overflow(a, b, out);
}
static inline bool pg_add_size(size_t a, size_t b, size_t *out) {
  return !__builtin_add_overflow(a, b, out);
}

#endif
