/* SPDX-License-Identifier: Apache-2.0 */
/* What kernels over tensors compute (kernels/tensor_kernels.h), one position at a time: in doubles
 * that are rounded after each operation to what the class has, and in 64-bit integers.  Powers and
 * random numbers are those of kernels/functions.h, which tests/test_functions.c is about; nothing
 * else is shared with the library. */
#ifndef PG_TESTS_TENSOR_REFERENCE_H_
#define PG_TESTS_TENSOR_REFERENCE_H_

#include <stddef.h>

#include "kernels/tensor_kernels.h"

enum { TENSOR_TYPES = 10 };

/* The types that these kernels take, reals first. */
extern const aclDataType tensor_types[TENSOR_TYPES];
enum { TENSOR_REALS = 4 };

bool tensor_is_real(aclDataType dtype);
size_t tensor_bytes(aclDataType dtype); /* of an element */
enum pg_class tensor_class(aclDataType dtype);

/* An element as a number of a class, and a number as an element. */
union pg_number reference_load(enum pg_class c, aclDataType dtype, const void *at);
void reference_store(enum pg_class c, union pg_number n, aclDataType dtype, void *at);

/* Do two elements have the same bits, a NaN's payload aside? */
bool tensor_is_same(aclDataType dtype, const void *a, const void *b);

/* What the map gives for a position, whose inputs are loaded already. */
union pg_number reference_map(const struct pg_map *map, union pg_number a, union pg_number b,
                              int64_t position);

/* Reduces numbers, which are overwritten, to one; *position: of the extremum. */
union pg_number reference_reduce(const struct pg_reduce *r, union pg_number *x, int64_t count,
                                 int64_t *position);

#endif
