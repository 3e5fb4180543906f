/* SPDX-License-Identifier: Apache-2.0 */
/* Writing results past the caches while the next ones are computed.  Bytes that follow each other
 * in memory are collected in a room.  When it is full its complete lines become pending, another
 * room takes its place, and whoever fills that one asks now and then for some of the pending lines
 * to be written.  So computing and storing overlap, and no line is read back from a room before
 * its bytes have left the store buffers. */
#ifndef PG_SLAB_WRITER_H_
#define PG_SLAB_WRITER_H_

#include "cpu/kernels/line_writer.h"

enum {
  SLAB_FULL = 2048,      /* bytes in a room from which on its lines are written */
  SLAB_ELEMENTS = 4096,  /* the most elements that are put into a room as one piece */
  SLAB_SLACK = 4 * LINE, /* whole vectors may be stored so far beyond the last byte */
  SLAB_ROOM = SLAB_FULL + SLAB_ELEMENTS * (int)sizeof(element) + LINE + SLAB_SLACK
};

struct slab_writer {
  bool nontemporal;
  char *next;         /* the address where the byte at `end` belongs; NULL: there are no bytes */
  int64_t begin, end; /* of the bytes in the room, which itself stands for whole lines */
  bool held;          /* what is in the room stays there for now */
  int which;          /* of the rooms is being filled */
  const char *from;   /* the pending lines are in the other one */
  char *to;
  int64_t lines;
  _Alignas(LINE) char room[2][SLAB_ROOM];
};

static inline void slab_begin(struct slab_writer *w, bool nontemporal) {
  w->nontemporal = nontemporal;
  w->held = false;
  w->next = NULL;
  w->begin = w->end = w->lines = 0;
  w->which = 0;
}

static inline void slab_store_lines(const struct slab_writer *w, char *to, const char *from,
                                    int64_t lines) {
  if (w->nontemporal)
    for (int64_t i = 0; i < lines; i++) store_line_nontemporal(to + i * LINE, from + i * LINE);
  else
    for (int64_t i = 0; i < lines; i++) memcpy(to + i * LINE, from + i * LINE, LINE);
}

/* Writes some of the pending lines. */
static inline void slab_write(struct slab_writer *w, int64_t lines) {
  const char *from = w->from;
  char *to = w->to;
  if (lines > w->lines) lines = w->lines;
  if (lines == 0) return;
  slab_store_lines(w, to, from, lines);
  w->from = from + lines * LINE;
  w->to = to + lines * LINE;
  w->lines -= lines;
}

/* Makes the complete lines pending; what is left of a line moves to the other room. */
static inline void slab_turn(struct slab_writer *w) {
  const char *room = w->room[w->which];
  char *base = w->next - w->end;
  const int64_t lines = w->end / LINE, rest = w->end % LINE;
  if (lines == 0) return;
  slab_write(w, w->lines);
  const int64_t part = w->begin > 0; /* of the first line there is only the end */
  if (part > 0) memcpy(base + w->begin, room + w->begin, (size_t)(LINE - w->begin));
  w->from = room + part * LINE;
  w->to = base + part * LINE;
  w->lines = lines - part;
  w->which = 1 - w->which;
  memcpy(w->room[w->which], room + lines * LINE, LINE);
  w->begin = 0;
  w->end = rest;
}

/* Writes everything. */
static inline void slab_flush(struct slab_writer *w) {
  if (w->next == NULL) return;
  slab_turn(w);
  slab_write(w, w->lines);
  memcpy(w->next - w->end + w->begin, w->room[w->which] + w->begin, (size_t)(w->end - w->begin));
  w->next = NULL;
  w->begin = w->end = 0;
}

/* Writes bytes that belong at `to` without putting them into the room, except what is left of a
 * line.  They are in scratch memory, of which a line beyond them may be read.  The room they may be
 * in stays as it is until something is put into a room again. */
static inline void slab_append(struct slab_writer *w, void *to, const char *from, int64_t bytes) {
  if (w->next != to) {
    slab_flush(w);
    w->begin = w->end = (int64_t)((uintptr_t)to % LINE);
    w->next = to;
  }
  if (w->end >= LINE) slab_turn(w);
  slab_write(w, w->lines);
  char *line = w->room[w->which], *base = w->next - w->end;
  const int64_t head = LINE - w->end, lines = (bytes - head) / LINE, tail = (bytes - head) % LINE;
  memcpy(line + w->end, from, LINE);
  w->next += bytes;
  if (bytes < head) {
    w->end += bytes;
    return;
  }
  if (w->begin > 0)
    memcpy(base + w->begin, line + w->begin, (size_t)(LINE - w->begin));
  else
    slab_store_lines(w, base, line, 1);
  slab_store_lines(w, base + LINE, from + head, lines);
  memcpy(line, from + bytes - tail, LINE);
  w->begin = 0;
  w->end = tail;
}

/* Says where in the room the bytes go that belong at `to`; SLAB_ELEMENTS elements fit there. */
static inline char *slab_place(struct slab_writer *w, void *to) {
  if (w->next != to) {
    slab_flush(w);
    w->begin = w->end = (int64_t)((uintptr_t)to % LINE);
    w->next = to;
  }
  if (w->end >= SLAB_FULL && !w->held) slab_turn(w);
  return w->room[w->which] + w->end;
}

/* To be called when so many bytes have been put where slab_place said. */
static inline void slab_advance(struct slab_writer *w, int64_t bytes) {
  w->end += bytes;
  w->next += bytes;
  slab_write(w, bytes / LINE + 1);
}

#endif
