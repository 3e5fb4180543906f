/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels for aarch64 CPUs: all have NEON. */
#include "cpu/simd_neon.h"
#define ISA neon
#include "cpu/isa.inc"
