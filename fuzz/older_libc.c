/* SPDX-License-Identifier: Apache-2.0 */
/* The one function of glibc 2.36 that libFuzzer's C++ library asks for, so that a fuzzer built here
 * also runs where glibc is older: fuzzing takes machines as it finds them. */
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

uint32_t arc4random(void) {
  uint32_t number;
  if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number) abort();
  return number;
}
