/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays, scalars and lists: values handed to operators. */
#ifndef PG_ARRAY_H_
#define PG_ARRAY_H_

#include "aclnn/acl_meta.h"
#include "core/handle.h"
#include "core/status.h"

/* One struct for int64, float and bool arrays: their values follow it. */
struct pg_array {
  struct pg_object object;
  uint64_t size;
  _Alignas(8) unsigned char values[];
};

struct pg_scalar {
  struct pg_object object;
  aclDataType dtype;
  _Alignas(8) unsigned char value[16];
};

/* A list keeps the handles it was given and destroys them with itself. */
struct pg_list {
  struct pg_object object;
  enum pg_kind element;
  uint64_t size;
  const void *elements[];
};

static inline const int64_t *pg_ints(const struct pg_array *array) {
  return (const int64_t *)(const void *)array->values;
}

#endif
