/* SPDX-License-Identifier: Apache-2.0 */
/* Converting between elements and numbers, one pair of loops for each type and class, which the
 * compiler makes vectors of.  Elements are passed over in the order that suits the tensor: the
 * buffer is small enough for any order. */
#include "cpu/kernels/tensor_numbers.h"

#include "core/half.h"
#include "kernels/functions.h"

/* --- Between the classes --- */

#define TWO_TO_63 9223372036854775808.0 /* cppcheck cannot read 0x1p63 */

static inline int64_t integer_of_double(double x) {
  const double inside = x >= -TWO_TO_63 && x < TWO_TO_63 ? x : 0; /* 0 of a NaN too */
  const int64_t truncated = (int64_t)inside;
  return x >= TWO_TO_63 ? INT64_MAX : x < -TWO_TO_63 ? INT64_MIN : truncated;
}
static inline int64_t integer_of_float(float x) {
  const float end = (float)TWO_TO_63, inside = x >= -end && x < end ? x : 0;
  const int64_t truncated = (int64_t)inside;
  return x >= end ? INT64_MAX : x < -end ? INT64_MIN : truncated;
}
static inline int64_t integer_of_integer(int64_t x) { return x; }

#define AS_FLOAT(x) ((float)(x))
#define AS_DOUBLE(x) ((double)(x))
#define AS_INTEGER(x)                   \
  _Generic((x), float                   \
           : integer_of_float, double   \
           : integer_of_double, int64_t \
           : integer_of_integer)(x)

/* --- Between elements and the first class that holds them --- */

#define WIDEN_F32(e) (e)
#define WIDEN_F16(e) pg_float_of_fp16(e)
#define WIDEN_BF16(e) pg_float_of_bf16(e)
#define WIDEN_F64(e) (e)
#define WIDEN_INTEGER(e) ((int64_t)(e))
#define WIDEN_BOOL(e) ((int64_t)((e) != 0))

#define NARROW_F32(x) AS_FLOAT(x)
#define NARROW_F16(x) pg_fp16_of_float(AS_FLOAT(x))
#define NARROW_BF16(x) pg_bf16_of_float(AS_FLOAT(x))
#define NARROW_F64(x) AS_DOUBLE(x)
#define NARROW_I8(x) ((int8_t)(uint8_t)(uint64_t)AS_INTEGER(x))
#define NARROW_U8(x) ((uint8_t)(uint64_t)AS_INTEGER(x))
#define NARROW_I16(x) ((int16_t)(uint16_t)(uint64_t)AS_INTEGER(x))
#define NARROW_U16(x) ((uint16_t)(uint64_t)AS_INTEGER(x))
#define NARROW_I32(x) ((int32_t)(uint32_t)(uint64_t)AS_INTEGER(x))
#define NARROW_U32(x) ((uint32_t)(uint64_t)AS_INTEGER(x))
#define NARROW_I64(x) AS_INTEGER(x)
#define NARROW_U64(x) ((uint64_t)AS_INTEGER(x))
#define NARROW_BOOL(x) ((uint8_t)((x) != 0))

/* Every type: its name, ours, what an element is in memory, how it is widened and narrowed. */
#define EACH_TYPE(row)                                                                             \
  row(ACL_FLOAT, f32, float, WIDEN_F32, NARROW_F32)                                                \
      row(ACL_FLOAT16, f16, uint16_t, WIDEN_F16, NARROW_F16)                                       \
          row(ACL_BF16, bf16, uint16_t, WIDEN_BF16, NARROW_BF16)                                   \
              row(ACL_DOUBLE, f64, double, WIDEN_F64, NARROW_F64)                                  \
                  row(ACL_INT8, i8, int8_t, WIDEN_INTEGER, NARROW_I8)                              \
                      row(ACL_UINT8, u8, uint8_t, WIDEN_INTEGER, NARROW_U8)                        \
                          row(ACL_INT16, i16, int16_t, WIDEN_INTEGER, NARROW_I16)                  \
                              row(ACL_UINT16, u16, uint16_t, WIDEN_INTEGER, NARROW_U16)            \
                                  row(ACL_INT32, i32, int32_t, WIDEN_INTEGER, NARROW_I32) row(     \
                                      ACL_UINT32, u32, uint32_t, WIDEN_INTEGER, NARROW_U32)        \
                                      row(ACL_INT64, i64, int64_t, WIDEN_INTEGER, NARROW_I64) row( \
                                          ACL_UINT64, u64, uint64_t, WIDEN_INTEGER, NARROW_U64)    \
                                          row(ACL_BOOL, b8, uint8_t, WIDEN_BOOL, NARROW_BOOL)

/* --- A row, whose elements may lie apart in the tensor and in the buffer --- */

/* NOLINTBEGIN(bugprone-macro-parentheses): types */
#define DEFINE_LOAD(number, as, name, type, widen)                                         \
  static void name(number *to, int64_t to_stride, const type *from, int64_t stride,        \
                   int64_t count) {                                                        \
    if (stride == 1 && to_stride == 1)                                                     \
      for (int64_t i = 0; i < count; i++) to[i] = as(widen(from[i]));                      \
    else if (stride == 0 && to_stride == 1) {                                              \
      const number x = as(widen(from[0]));                                                 \
      for (int64_t i = 0; i < count; i++) to[i] = x;                                       \
    } else                                                                                 \
      for (int64_t i = 0; i < count; i++) to[i * to_stride] = as(widen(from[i * stride])); \
  }
#define DEFINE_STORE(number, name, type, narrow)                                          \
  static void name(type *to, int64_t stride, const number *from, int64_t from_stride,     \
                   int64_t count) {                                                       \
    if (stride == 1 && from_stride == 1)                                                  \
      for (int64_t i = 0; i < count; i++) to[i] = narrow(from[i]);                        \
    else                                                                                  \
      for (int64_t i = 0; i < count; i++) to[i * stride] = narrow(from[i * from_stride]); \
  }
/* NOLINTEND(bugprone-macro-parentheses) */

#define DEFINE_FOR_CLASSES(dtype, name, type, widen, narrow)       \
  DEFINE_LOAD(float, AS_FLOAT, float_of_##name, type, widen)       \
  DEFINE_LOAD(double, AS_DOUBLE, double_of_##name, type, widen)    \
  DEFINE_LOAD(int64_t, AS_INTEGER, integer_of_##name, type, widen) \
  DEFINE_STORE(float, name##_of_float, type, narrow)               \
  DEFINE_STORE(double, name##_of_double, type, narrow)             \
  DEFINE_STORE(int64_t, name##_of_integer, type, narrow)

EACH_TYPE(DEFINE_FOR_CLASSES)

/* Halves and floats have instructions of their own, which the compiler does not find. */
static void load_halves(float *to, const uint16_t *from, int64_t count) {
  int64_t i = 0;
  for (; i + LANES <= count; i += LANES) store_f32(to + i, load_f16(from + i));
  for (; i < count; i++) to[i] = pg_float_of_fp16(from[i]);
}

static void store_halves(uint16_t *to, const float *from, int64_t count) {
  int64_t i = 0;
  for (; i + LANES <= count; i += LANES) store_f16(to + i, pack_f16(load_f32(from + i)));
  for (; i < count; i++) to[i] = pg_fp16_of_float(from[i]);
}

/* --- A plot --- */

/* The rows of a plot, or its columns; all of it is one line if it has one stride. */
struct lines {
  int64_t count, length;
  int64_t step, stride;         /* from line to line and from element to element, in the tensor */
  int64_t own_step, own_stride; /* the same in the buffer */
};

static struct lines lines_of(const struct pg_plot *p) {
  if (p->row_stride == p->columns * p->column_stride)
    return (struct lines){1, p->rows * p->columns, 0, p->column_stride, 0, 1};
  if (p->columns == 1) return (struct lines){1, p->rows, 0, p->row_stride, 0, 1};
  if (pg_goes_by_columns(p))
    return (struct lines){p->columns, p->rows, p->column_stride, p->row_stride, 1, p->columns};
  return (struct lines){p->rows, p->columns, p->row_stride, p->column_stride, p->columns, 1};
}

#define LOAD_CASE(dtype, name, type, widen, narrow)                                           \
  case dtype:                                                                                 \
    for (int64_t i = 0; i < l.count; i++) NUMBER_OF(name)                                     \
    (to + i * l.own_step, l.own_stride, (const type *)from + i * l.step, l.stride, l.length); \
    return;
#define STORE_CASE(dtype, name, type, widen, narrow)                                    \
  case dtype:                                                                           \
    for (int64_t i = 0; i < l.count; i++) OF_NUMBER(name)                               \
    ((type *)to + i * l.step, l.stride, from + i * l.own_step, l.own_stride, l.length); \
    return;

static void load_floats(float *to, const void *from, aclDataType dtype, struct lines l) {
  if (dtype == ACL_FLOAT16 && l.stride == 1 && l.own_stride == 1) {
    for (int64_t i = 0; i < l.count; i++)
      load_halves(to + i * l.own_step, (const uint16_t *)from + i * l.step, l.length);
    return;
  }
#define NUMBER_OF(name) float_of_##name
  switch (dtype) {
    EACH_TYPE(LOAD_CASE)
    default:
      return;
  }
#undef NUMBER_OF
}

static void load_doubles(double *to, const void *from, aclDataType dtype, struct lines l) {
#define NUMBER_OF(name) double_of_##name
  switch (dtype) {
    EACH_TYPE(LOAD_CASE)
    default:
      return;
  }
#undef NUMBER_OF
}

static void load_integers(int64_t *to, const void *from, aclDataType dtype, struct lines l) {
#define NUMBER_OF(name) integer_of_##name
  switch (dtype) {
    EACH_TYPE(LOAD_CASE)
    default:
      return;
  }
#undef NUMBER_OF
}

static void store_floats(void *to, aclDataType dtype, const float *from, struct lines l) {
  if (dtype == ACL_FLOAT16 && l.stride == 1 && l.own_stride == 1) {
    for (int64_t i = 0; i < l.count; i++)
      store_halves((uint16_t *)to + i * l.step, from + i * l.own_step, l.length);
    return;
  }
#define OF_NUMBER(name) name##_of_float
  switch (dtype) {
    EACH_TYPE(STORE_CASE)
    default:
      return;
  }
#undef OF_NUMBER
}

static void store_doubles(void *to, aclDataType dtype, const double *from, struct lines l) {
#define OF_NUMBER(name) name##_of_double
  switch (dtype) {
    EACH_TYPE(STORE_CASE)
    default:
      return;
  }
#undef OF_NUMBER
}

static void store_integers(void *to, aclDataType dtype, const int64_t *from, struct lines l) {
#define OF_NUMBER(name) name##_of_integer
  switch (dtype) {
    EACH_TYPE(STORE_CASE)
    default:
      return;
  }
#undef OF_NUMBER
}

void VARIANT(load_numbers)(void *to, enum pg_class c, const void *from, aclDataType dtype,
                           const struct pg_plot *plot) {
  const struct lines l = lines_of(plot);
  if (c == PG_CLASS_FLOAT)
    load_floats(to, from, dtype, l);
  else if (c == PG_CLASS_DOUBLE)
    load_doubles(to, from, dtype, l);
  else
    load_integers(to, from, dtype, l);
}

void VARIANT(store_numbers)(void *to, aclDataType dtype, const struct pg_plot *plot,
                            const void *from, enum pg_class c) {
  const struct lines l = lines_of(plot);
  if (c == PG_CLASS_FLOAT)
    store_floats(to, dtype, from, l);
  else if (c == PG_CLASS_DOUBLE)
    store_doubles(to, dtype, from, l);
  else
    store_integers(to, dtype, from, l);
}

/* --- In the order of a grid --- */

static int64_t number_bytes(enum pg_class c) { return c == PG_CLASS_FLOAT ? 4 : 8; }

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* The offset of a position, counted along the axes before `rank`. */
static int64_t offset_of(const struct pg_grid *grid, const int64_t *strides, int rank,
                         int64_t number) {
  int64_t offset = 0;
  for (int axis = rank - 1; axis >= 0; axis--) {
    offset += number % grid->sizes[axis] * strides[axis];
    number /= grid->sizes[axis];
  }
  return offset;
}

/* Whole rows of the last axis are loaded several at once, others alone. */
void VARIANT(load_in_order)(void *to, enum pg_class c, const void *from, aclDataType dtype,
                            const struct pg_grid *grid, const int64_t *strides, int64_t first,
                            int64_t count) {
  const int last = grid->rank - 1;
  const int64_t width = last >= 0 ? grid->sizes[last] : 1, stride = last >= 0 ? strides[last] : 0;
  const int64_t height = last >= 1 ? grid->sizes[last - 1] : 1;
  while (count > 0) {
    const int64_t row = first / width, column = first % width;
    struct pg_plot plot = {1, least(count, width - column), last >= 1 ? strides[last - 1] : 0,
                           stride};
    if (column == 0 && count >= width && last >= 1)
      plot.rows = least(count / width, height - row % height);
    const int64_t at = offset_of(grid, strides, last, row) + column * stride;
    VARIANT(load_numbers)(to, c, (const char *)from + at * pg_element_bytes(dtype), dtype, &plot);
    const int64_t loaded = plot.rows * plot.columns;
    to = (char *)to + loaded * number_bytes(c);
    first += loaded;
    count -= loaded;
  }
}
