/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels: what a backend can compute.  Ids, argument structs, and each kernel's contract.
 *
 * A kernel is a function over a range of items.  Items are independent: any split of
 * [0, items) over any number of threads gives the same bits.  Arguments are plain data, copied
 * into the stream; pointers in them are final addresses.  Kernels cannot fail. */
#ifndef PG_KERNELS_H_
#define PG_KERNELS_H_

#include <stdint.h>

enum pg_kernel {
  PG_KERNEL_FILL, /* pg_fill_args */
  PG_KERNEL_COUNT
};

/* dst[item * stride .. + width) = value, for every item; stride and width in elements of
 * `element` bytes (1, 2, 4 or 8), value's low bytes being the element. */
struct pg_fill_args {
  void *dst;
  int64_t stride, width;
  uint64_t value;
  int32_t element;
};

union pg_kernel_args {
  struct pg_fill_args fill;
};

typedef void pg_kernel_fn(const void *args, int64_t begin, int64_t end);

#endif
