/* SPDX-License-Identifier: Apache-2.0 */
/* SPECIALISED marks functions that shall be compiled anew for the constants they are called with.
 * Under a sanitizer speed does not matter, and so much code of its checks would take minutes to
 * compile: there they are ordinary functions. */
#ifndef PG_SPECIALISED_H_
#define PG_SPECIALISED_H_

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(PG_SANITIZE_INTEGER)
#define SPECIALISED
#else
#define SPECIALISED __attribute__((always_inline))
#endif

#endif
