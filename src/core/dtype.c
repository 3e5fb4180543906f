/* SPDX-License-Identifier: Apache-2.0 */
/* Data types and formats: one row each. */
#include "core/dtype.h"

#include <stddef.h>
#include <stdio.h>

/* Looked up often: a row lies at its type's number + 1. */
static const struct dtype_row {
  size_t bytes; /* CANN's aclDataTypeSize: sub-byte types count as one byte, unknown ones as 8 */
  const char *name; /* NULL: no type has this number */
} dtypes[] = {
    [ACL_DT_UNDEFINED + 1] = {0, "DT_UNDEFINED"},
    [ACL_FLOAT + 1] = {4, "DT_FLOAT"},
    [ACL_FLOAT16 + 1] = {2, "DT_FLOAT16"},
    [ACL_INT8 + 1] = {1, "DT_INT8"},
    [ACL_INT32 + 1] = {4, "DT_INT32"},
    [ACL_UINT8 + 1] = {1, "DT_UINT8"},
    [ACL_INT16 + 1] = {2, "DT_INT16"},
    [ACL_UINT16 + 1] = {2, "DT_UINT16"},
    [ACL_UINT32 + 1] = {4, "DT_UINT32"},
    [ACL_INT64 + 1] = {8, "DT_INT64"},
    [ACL_UINT64 + 1] = {8, "DT_UINT64"},
    [ACL_DOUBLE + 1] = {8, "DT_DOUBLE"},
    [ACL_BOOL + 1] = {1, "DT_BOOL"},
    [ACL_STRING + 1] = {0, "DT_STRING"},
    [ACL_COMPLEX64 + 1] = {8, "DT_COMPLEX64"},
    [ACL_COMPLEX128 + 1] = {16, "DT_COMPLEX128"},
    [ACL_BF16 + 1] = {2, "DT_BF16"},
    [ACL_INT4 + 1] = {1, "DT_INT4"},
    [ACL_UINT1 + 1] = {1, "DT_UINT1"},
    [ACL_COMPLEX32 + 1] = {4, "DT_COMPLEX32"},
    [ACL_HIFLOAT8 + 1] = {1, "DT_HIFLOAT8"},
    [ACL_FLOAT8_E5M2 + 1] = {1, "DT_FLOAT8_E5M2"},
    [ACL_FLOAT8_E4M3FN + 1] = {1, "DT_FLOAT8_E4M3FN"},
    [ACL_FLOAT8_E8M0 + 1] = {1, "DT_FLOAT8_E8M0"},
    [ACL_FLOAT6_E3M2 + 1] = {8, "DT_FLOAT6_E3M2"},
    [ACL_FLOAT6_E2M3 + 1] = {8, "DT_FLOAT6_E2M3"},
    [ACL_FLOAT4_E2M1 + 1] = {8, "DT_FLOAT4_E2M1"},
    [ACL_FLOAT4_E1M2 + 1] = {8, "DT_FLOAT4_E1M2"},
};

static const struct {
  aclFormat format;
  const char *name;
} formats[] = {
    {ACL_FORMAT_UNDEFINED, "UNDEFINED"},
    {ACL_FORMAT_NCHW, "NCHW"},
    {ACL_FORMAT_NHWC, "NHWC"},
    {ACL_FORMAT_ND, "ND"},
    {ACL_FORMAT_NC1HWC0, "NC1HWC0"},
    {ACL_FORMAT_FRACTAL_Z, "FRACTAL_Z"},
    {ACL_FORMAT_NC1HWC0_C04, "NC1HWC0_C04"},
    {ACL_FORMAT_HWCN, "HWCN"},
    {ACL_FORMAT_NDHWC, "NDHWC"},
    {ACL_FORMAT_FRACTAL_NZ, "FRACTAL_NZ"},
    {ACL_FORMAT_NCDHW, "NCDHW"},
    {ACL_FORMAT_NDC1HWC0, "NDC1HWC0"},
    {ACL_FRACTAL_Z_3D, "FRACTAL_Z_3D"},
    {ACL_FORMAT_NC, "NC"},
    {ACL_FORMAT_NCL, "NCL"},
    {ACL_FORMAT_FRACTAL_NZ_C0_16, "FRACTAL_NZ_C0_16"},
    {ACL_FORMAT_FRACTAL_NZ_C0_32, "FRACTAL_NZ_C0_32"},
    {ACL_FORMAT_FRACTAL_NZ_C0_2, "FRACTAL_NZ_C0_2"},
    {ACL_FORMAT_FRACTAL_NZ_C0_4, "FRACTAL_NZ_C0_4"},
    {ACL_FORMAT_FRACTAL_NZ_C0_8, "FRACTAL_NZ_C0_8"},
};

static const struct dtype_row *find(aclDataType type) {
  const size_t at = (size_t)((int64_t)type + 1); /* below -1: beyond the end */
  return at < sizeof dtypes / sizeof dtypes[0] && dtypes[at].name != NULL ? &dtypes[at] : NULL;
}

size_t aclDataTypeSize(aclDataType dataType) {
  const struct dtype_row *row = find(dataType);
  return row == NULL ? 8 : row->bytes;
}

const char *pg_dtype_name(aclDataType type) {
  static _Thread_local char unknown[32];
  const struct dtype_row *row = find(type);
  if (row != NULL) return row->name;
  snprintf(unknown, sizeof unknown, "dtype %d", (int)type);
  return unknown;
}

const char *pg_format_name(aclFormat format) {
  static _Thread_local char unknown[32];
  for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
    if (formats[i].format == format) return formats[i].name;
  snprintf(unknown, sizeof unknown, "format %d", (int)format);
  return unknown;
}
