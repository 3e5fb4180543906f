/* SPDX-License-Identifier: Apache-2.0 */
/* Loses a block, for LeakSanitizer to find. */
#include <stdlib.h>

static void *volatile block;

int main(void) {
  block = malloc(4321);
  block = NULL;
  return 0;
}
