/* SPDX-License-Identifier: Apache-2.0 */
/* Writing results past the caches.  Bytes that follow each other in memory are collected in a
 * buffer, the room, and whenever there are enough of them the complete cache lines are written with
 * non-temporal stores.  The room is small so that computing and storing overlap: with a larger one
 * the core and the memory would take turns in waiting for each other. */
#ifndef PG_LINE_WRITER_H_
#define PG_LINE_WRITER_H_

#include <string.h>

#include "cpu/kernels/variant.h"
#include "kernels/tiling.h"

enum {
  LINE = 64,          /* bytes of a cache line */
  WRITER_FULL = 4096, /* when there are so many bytes, complete lines are written */
  /* Up to two rows of the widest box are put there at once, and vectors end behind them. */
  WRITER_ROOM = WRITER_FULL + 2 * (int)sizeof(element) * PG_BOX_WIDTH + 1024
};

struct line_writer {
  char *next;         /* the address where the byte at `end` belongs; NULL: there are no bytes */
  int64_t begin, end; /* of the bytes in the room, which itself stands for whole lines */
  _Alignas(LINE) char room[WRITER_ROOM];
};

static inline void writer_clear(struct line_writer *w) {
  w->begin = w->end = 0;
  w->next = NULL;
}

/* Writes the complete lines; what is left of a line moves to the front of the room. */
static inline void writer_write_lines(struct line_writer *w) {
  char *base = w->next - w->end;
  const int64_t lines = w->end / LINE, rest = w->end % LINE;
  if (lines == 0) return;
  int64_t i = 0;
  if (w->begin > 0) { /* of the first line there is only the end */
    memcpy(base + w->begin, w->room + w->begin, (size_t)(LINE - w->begin));
    i = 1;
  }
  for (; i < lines; i++) store_line_nontemporal(base + i * LINE, w->room + i * LINE);
  memcpy(w->room, w->room + lines * LINE, (size_t)rest);
  w->begin = 0;
  w->end = rest;
}

/* Writes everything. */
static inline void writer_flush(struct line_writer *w) {
  if (w->next == NULL) return;
  writer_write_lines(w);
  memcpy(w->next - w->end + w->begin, w->room + w->begin, (size_t)(w->end - w->begin));
  writer_clear(w);
}

/* Says where in the room the bytes go that belong at `to`. */
static inline char *writer_place(struct line_writer *w, void *to) {
  if (w->next != to) {
    writer_flush(w);
    w->begin = w->end = (int64_t)((uintptr_t)to % LINE);
    w->next = to;
  }
  return w->room + w->end;
}

/* To be called when so many bytes have been put where writer_place said. */
static inline void writer_advance(struct line_writer *w, int64_t bytes) {
  w->end += bytes;
  w->next += bytes;
  if (w->end >= WRITER_FULL) writer_write_lines(w);
}

/* Copies bytes, past the caches if asked to and if there is a complete line.  Lines are stored
 * whole and in order in either case: memory then takes them as fast through the caches as past
 * them, which it does not for what memcpy of the C library stores (measured: 2.4 and 6 ns for a
 * line). */
static inline void copy_bytes(void *to, const void *from, int64_t bytes, bool nontemporal) {
  const int64_t head = (int64_t)(-(uintptr_t)to % LINE);
  if (bytes < head + LINE) {
    memcpy(to, from, (size_t)bytes);
    return;
  }
  char *dst = to;
  const char *src = from;
  memcpy(dst, src, (size_t)head);
  int64_t i = head;
  if (nontemporal)
    for (; i + LINE <= bytes; i += LINE) store_line_nontemporal(dst + i, src + i);
  else
    for (; i + LINE <= bytes; i += LINE) memcpy(dst + i, src + i, LINE);
  memcpy(dst + i, src + i, (size_t)(bytes - i));
}

#endif
