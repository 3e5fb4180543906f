/* SPDX-License-Identifier: Apache-2.0 */
/* Values that others chose (variables, paths, names) stand in sentences and log lines.  Their line
 * breaks and other control characters are written out, so that no value can pass for a line. */
#ifndef PG_PRINTABLE_H_
#define PG_PRINTABLE_H_

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { PG_PRINTED_MOST = 4 }; /* bytes that one character may become */

/* Writes the character as it is to be shown, without a 0 behind it; how many bytes. */
static inline size_t pg_print(char c, char out[static PG_PRINTED_MOST]) {
  static const char digits[] = "0123456789abcdef";
  const unsigned code = (unsigned char)c;
  out[0] = c;
  if (code >= 0x20 && code != 0x7f) return 1;
  out[0] = '\\';
  out[1] = c == '\n' ? 'n' : c == '\r' ? 'r' : c == '\t' ? 't' : 'x';
  if (out[1] != 'x') return 2;
  out[2] = digits[code >> 4];
  out[3] = digits[code & 15];
  return 4;
}

/* Does so with a text in its place, where there is room for size bytes; cuts what is too much. */
static inline void pg_make_printable(char *text, size_t size) {
  char shown[PG_PRINTED_MOST];
  size_t length = strlen(text), needed = 0;
  for (size_t i = 0; i < length; i++) needed += pg_print(text[i], shown);
  while (needed >= size) needed -= pg_print(text[--length], shown);
  text[needed] = '\0';
  while (needed > length) { /* from the end, until what is left stands as it is */
    const size_t bytes = pg_print(text[--length], shown);
    needed -= bytes;
    memcpy(text + needed, shown, bytes);
  }
}

#endif
