/* SPDX-License-Identifier: Apache-2.0 */
/* The files of this folder are compiled once for each instruction set and element type.  The build
 * names the variant (PG_ISA, PG_ELEMENT) and its two headers; a tool that reads a file without
 * these definitions sees plain C and floats.
 *
 * simd_<isa>.h has vectors of LANES lanes, element_<type>.h the element type and how it is loaded
 * and stored.  Everything here is static, except what VARIANT names. */
#ifndef PG_VARIANT_H_
#define PG_VARIANT_H_

#ifndef PG_ISA
#define PG_ISA scalar
#define PG_ELEMENT f32
#define PG_SIMD_HEADER "cpu/kernels/simd_scalar.h"
#define PG_ELEMENT_HEADER "cpu/kernels/element_f32.h"
#endif

#include PG_SIMD_HEADER
#include PG_ELEMENT_HEADER

#define PG_VARIANT_NAME(name, isa, element) pg_##name##_##isa##_##element
#define PG_VARIANT_OF(name, isa, element) PG_VARIANT_NAME(name, isa, element)
/* VARIANT(max_pairs) is pg_max_pairs_avx2_f16: the name that other files know it by. */
#define VARIANT(name) PG_VARIANT_OF(name, PG_ISA, PG_ELEMENT)

#endif
