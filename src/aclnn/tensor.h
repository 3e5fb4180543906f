/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors: the caller's memory, and the shape, strides and offset it is seen through. */
#ifndef PG_TENSOR_H_
#define PG_TENSOR_H_

#include "aclnn/acl_meta.h"
#include "core/handle.h"
#include "core/status.h"

enum { PG_RANK_MAX = 25 };

struct pg_tensor {
  struct pg_object object;
  aclDataType dtype;
  aclFormat format;
  int rank, storage_rank;
  bool empty;           /* some axis has length 0 */
  bool spans;           /* nothing is negative but strides or the offset, and begin and end below,
                           and the number of elements, fit into 64 bits */
  bool plain;           /* it does, nothing is negative, and each stride passes over all that the
                           smaller ones reach, so that no two elements share a place */
  size_t element;       /* bytes of one */
  int64_t begin, end;   /* bytes from data that its elements span */
  int64_t offset;       /* elements */
  _Atomic(void *) data; /* without the offset; may be set between runs of a repeatable executor */
  int64_t dims[PG_RANK_MAX], strides[PG_RANK_MAX]; /* elements */
  int64_t storage_dims[PG_RANK_MAX];               /* recorded, never enforced */
};

/* The tensor behind a handle with a reference for the caller: 161001 for NULL, 161002 for what
 * is no live tensor, both with a sentence that names the argument. */
aclnnStatus pg_tensor_get(const char *api, const char *name, const aclTensor *handle,
                          struct pg_tensor **out);

/* Makes it a view of one axis without gaps: what an operator has found so many elements for. */
void pg_tensor_set_length(struct pg_tensor *tensor, int64_t length);

/* Gives the caller an array of the values that is the caller's to release. */
aclnnStatus pg_tensor_copy_out(const char *api, const int64_t *values, int count, int64_t **out,
                               uint64_t *out_count);

/* "[1,16,5,5]" */
enum { PG_SHAPE_TEXT = 128 };
const char *pg_shape_text(int rank, const int64_t *dims, char text[PG_SHAPE_TEXT]);

/* Does any axis have length 0?  (A tensor without axes is one value, not empty.) */
static inline bool pg_tensor_is_empty(const struct pg_tensor *tensor) { return tensor->empty; }

#endif
