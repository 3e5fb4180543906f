/* SPDX-License-Identifier: Apache-2.0 */
/* The padding behind an allocation, under a memory checker.
 *
 * CANN lets vector code read the padding, so it is there and zero.  To a program that is watched by
 * AddressSanitizer or valgrind it is out of bounds all the same: the checker then reports the first
 * byte that is touched behind those asked for. */
#ifndef PG_PADDING_H_
#define PG_PADDING_H_

#include <stddef.h>

/* From now on the checker reports every access; nothing without a checker. */
void pg_padding_forbid(const void *padding, size_t bytes);

/* Undoes it, which must happen before the memory is given back. */
void pg_padding_allow(const void *padding, size_t bytes);

#endif
