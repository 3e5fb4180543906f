/* SPDX-License-Identifier: Apache-2.0 */
/* SPECIALISED marks functions that shall be compiled anew for the constants they are called with.
 * Under a sanitizer speed does not matter, and so much code of its checks would take minutes to
 * compile: there they are ordinary functions. */
#ifndef PG_SPECIALISED_H_
#define PG_SPECIALISED_H_

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(PG_SANITIZE_INTEGER)
#define SPECIALISED
#define FLATTENED
#else
#define SPECIALISED __attribute__((always_inline))
#define FLATTENED __attribute__((flatten)) /* the same for all functions that this one calls */
#endif

/* Before a loop whose turns may run in any order: what one reads no other one writes, even if the
 * arrays are the same. */
#if defined(__clang__)
#define EACH_ALONE _Pragma("clang loop vectorize(assume_safety)")
#pragma clang diagnostic ignored "-Wpass-failed" /* not every such loop can become vectors */
#else
#define EACH_ALONE _Pragma("GCC ivdep")
#endif

#endif
