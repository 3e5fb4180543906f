/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/padding.h"

/* Valgrind's requests are a few instructions that do nothing on a real processor. */
#if defined(__has_include) && !defined(__cppcheck__) /* which cannot read the next line */
#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#endif
#endif
#ifndef VALGRIND_MAKE_MEM_NOACCESS
#define VALGRIND_MAKE_MEM_NOACCESS(address, bytes) ((void)(address), (void)(bytes), 0)
#define VALGRIND_MAKE_MEM_DEFINED(address, bytes) ((void)(address), (void)(bytes), 0)
#endif

/* AddressSanitizer's own functions.  They are weak because it is often the program alone that is
 * built with the sanitizer: the references are then bound when the library is loaded, and are NULL
 * in a program without it. */
void __asan_poison_memory_region(const volatile void *address, size_t bytes) __attribute__((weak));
void __asan_unpoison_memory_region(const volatile void *address, size_t bytes)
    __attribute__((weak));

void pg_padding_forbid(const void *padding, size_t bytes) {
  if (__asan_poison_memory_region != NULL) __asan_poison_memory_region(padding, bytes);
  (void)VALGRIND_MAKE_MEM_NOACCESS(padding, bytes);
}

void pg_padding_allow(const void *padding, size_t bytes) {
  if (__asan_unpoison_memory_region != NULL) __asan_unpoison_memory_region(padding, bytes);
  (void)VALGRIND_MAKE_MEM_DEFINED(padding, bytes);
}
