/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels for x86-64 CPUs with AVX-512 F, BW, DQ and VL. */
#include "cpu/simd_avx512.h"
#define ISA avx512
#include "cpu/isa.inc"
