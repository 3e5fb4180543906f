/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels in plain C, for any CPU. */
#include "cpu/simd_plain.h"
#define ISA scalar
#include "cpu/isa.inc"
