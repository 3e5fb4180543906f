/* SPDX-License-Identifier: Apache-2.0 */
/* What the first phase of an operator refuses, and what it accepts although it looks odd.
 *
 * A test_check_*.c has a call that is right, and rows: changes of that call, and the sentence with
 * which it is then refused.  What every operator must refuse is checked by the functions below. */
#ifndef PG_TESTS_CHECK_CALL_H_
#define PG_TESTS_CHECK_CALL_H_

#include "aclnn/opdev/op_errno.h"
#include "expect.h"
#include "operator_call.h"

enum { SHAPE_AXES = 6, BAD = ACLNN_ERR_PARAM_INVALID };
static const int64_t huge = INT64_C(1) << 62;

struct shape {
  int rank;
  int64_t dims[SHAPE_AXES], strides[SHAPE_AXES], offset;
  bool strided; /* otherwise contiguous */
  aclDataType dtype;
  aclFormat format;
  void *data;
  const void *const *handle; /* passed instead of all this */
};

struct ints {
  uint64_t count;
  int64_t values[4];
  const void *const *handle; /* passed instead */
};

struct check_call {
  enum pool_operator op;
  struct shape t[POOL_TENSORS];
  struct ints a[POOL_ARRAYS];
  bool ceil_mode;
  int64_t divisor, auto_pad;
  int8_t math;
};

/* The tensors and arrays of a call named c. */
#define GO c.t[GRAD_OUT]
#define X c.t[SELF]
#define IDX c.t[INDICES]
#define GI c.t[GRAD_IN]
#define OUT c.t[GRAD_OUT] /* of a forward operator */
#define K c.a[KERNEL_ARRAY]
#define S c.a[STRIDE_ARRAY]
#define P c.a[PADDING_ARRAY]
#define D c.a[DILATION_ARRAY]
#define O c.a[OUTPUT_ARRAY]

#define PAIR(first, second) ((struct ints){2, {first, second}, NULL})
#define TRIPLE(first, second, third) ((struct ints){3, {first, second, third}, NULL})
#define FOUR(first, second, third, fourth) ((struct ints){4, {first, second, third, fourth}, NULL})

/* Of the call c or of one of its tensors; what is left out becomes 0. */
#define AXES(...) ((const int64_t[SHAPE_AXES]){__VA_ARGS__})
#define DIMS(shape, ...) put((shape).dims, AXES(__VA_ARGS__))
#define STRIDES(shape, ...) ((shape).strided = true, put((shape).strides, AXES(__VA_ARGS__)))
#define INPUT_DIMS(...) (DIMS(X, __VA_ARGS__), DIMS(GI, __VA_ARGS__))
#define OUTPUT_DIMS(...) (DIMS(GO, __VA_ARGS__), DIMS(IDX, __VA_ARGS__))
void put(int64_t *to, const int64_t from[SHAPE_AXES]);

/* Of self and gradInput, of gradOutput and indices, of all; gradients are all but the indices. */
void set_inputs(struct check_call *c, int axis, int64_t length);
void set_outputs(struct check_call *c, int axis, int64_t length);
void set_axis(struct check_call *c, int axis, int64_t length);
void set_ranks(struct check_call *c, int rank);
void set_formats(struct check_call *c, aclFormat format);
void set_gradients(struct check_call *c, aclDataType dtype);

/* FLOAT and INT32 tensors of this many axes, or the operator's only type of indices: N is 2, C is
 * 3, the others are `in` or `out`; windows of 2 cells side by side.  A mask has its own shape. */
struct check_call check_call(enum pool_operator op, int rank, aclFormat format, int64_t in,
                             int64_t out);

/* --- one call --- */

/* The first phase fails with exactly this sentence and writes nothing. */
__attribute__((format(printf, 3, 4))) void refused(const struct check_call *c, int code,
                                                   const char *format, ...);

/* The first phase succeeds; only the backward of a maximum needs a workspace. */
void accepted(const struct check_call *c);

/* The call needs no workspace and runs to its end on the current device. */
void runs(const struct check_call *c);

/* The same on a CPU, and all that it leaves in gradInput is zeros. */
void leaves_zeros(struct check_call c);

/* The first phase succeeds, and the second one is refused with exactly this sentence. */
void refused_run(const struct check_call *c, const char *sentence);

/* The second phase refuses what it writes where it lies on another tensor, at its first byte or at
 * its last one; and accepts that tensors which are read share memory.  On a CPU. */
void check_overlaps(struct check_call right);

/* Rows: the right call, under the name c, with these changes. */
#define REFUSED_OF(right, sentence, ...) \
  do {                                   \
    struct check_call c = (right);       \
    __VA_ARGS__;                         \
    refused(&c, BAD, "%s", sentence);    \
  } while (0)
#define ACCEPTED_OF(right, ...)    \
  do {                             \
    struct check_call c = (right); \
    __VA_ARGS__;                   \
    accepted(&c);                  \
  } while (0)

/* How windows that are too large for one axis are refused. */
#define OVERFLOWS(kernel, stride, padding, dilation, length)                             \
  "kernel " #kernel ", stride " #stride ", padding " #padding " and dilation " #dilation \
  " overflow 64 bits on an axis of length " #length

/* --- what every operator must refuse --- */

/* The first argument that is NULL is named, the results before all others, and a NULL before what
 * is wrong with another handle. */
void check_nulls(struct check_call right);

/* What is no tensor, and what is no array. */
void check_handles(struct check_call right);

/* Arrays with too many values or too few, with none but for a stride; one value is enough.  Kernels
 * and strides that are not positive, paddings outside 0 to half of the kernel. */
void check_arrays(struct check_call right);

/* If all tensors have them, these formats are accepted, and others are refused in the name of one
 * argument: "self has format NHWC, allowed is ...". */
void check_formats(struct check_call right, const aclFormat *fine, int count, const char *named,
                   const char *allowed);

/* The checks of two families of products, each in a process of its own for each product, because
 * the profile is chosen once.  Their state is the product's name. */
void check_products(CMUnitTestFunction as_910b, CMUnitTestFunction as_950);

/* A cmocka fixture: device 0 is a CPU, whose memory the test may look into. */
int set_up_cpu(void **state);

#endif
