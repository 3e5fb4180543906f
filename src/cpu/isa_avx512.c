/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels for x86-64 CPUs with AVX-512 F, BW, DQ and VL.  Conversions are AVX2's: eight lanes
 * keep up with memory. */
#include "cpu/simd_avx2.h"
#define ISA avx512
#include "cpu/isa.inc"
