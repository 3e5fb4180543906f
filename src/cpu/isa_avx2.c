/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels for x86-64 CPUs with AVX2, FMA and F16C. */
#include "cpu/simd_avx2.h"
#define ISA avx2
#include "cpu/isa.inc"
