/* SPDX-License-Identifier: Apache-2.0 */
/* A tensor that a test describes, changes in one place and hands to an operator. */
#ifndef PG_TESTS_SHAPE_H_
#define PG_TESTS_SHAPE_H_

#include <string.h>

#include "aclnn/acl_meta.h"

enum { SHAPE_AXES = 6 };

struct shape {
  int rank;
  int64_t dims[SHAPE_AXES], strides[SHAPE_AXES], offset;
  bool strided; /* otherwise contiguous */
  aclDataType dtype;
  aclFormat format;
  void *data;
  const void *const *handle; /* passed instead of all this */
};

static inline const void *shape_tensor(const struct shape *s) {
  if (s->handle != NULL) return *s->handle;
  return aclCreateTensor(s->dims, (uint64_t)s->rank, s->dtype, s->strided ? s->strides : NULL,
                         s->offset, s->format, s->dims, (uint64_t)s->rank, s->data);
}

static inline void put(int64_t *to, const int64_t from[SHAPE_AXES]) {
  memcpy(to, from, SHAPE_AXES * sizeof *to);
}

/* What is left out becomes 0. */
#define DIMS(shape, ...) put((shape).dims, (const int64_t[SHAPE_AXES]){__VA_ARGS__})
#define STRIDES(shape, ...) \
  ((shape).strided = true, put((shape).strides, (const int64_t[SHAPE_AXES]){__VA_ARGS__}))

#endif
