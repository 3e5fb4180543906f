/* SPDX-License-Identifier: Apache-2.0 */
#include "core/handle.h"

#include <pthread.h>
#include <stdint.h>
#include <stddef.h>
#include <stdlib.h>

#include "core/fork.h"

_Static_assert(sizeof(void *) == 8, "handles need 64-bit pointers");

enum {
  INDEX_BITS = 24,
  GENERATION_BITS = 24,
  FIRST_BITS = 6, /* the first chunk of slots has 2^6, each later one as many as all before it */
  CHUNK_COUNT = INDEX_BITS - FIRST_BITS + 1,
  KIND_SHIFT = INDEX_BITS + GENERATION_BITS,
  TAG = 0x5047,        /* "PG"; the kind is added to it */
  OPEN = 1 << 30,      /* what an open handle adds to its object's count */
  TAKEN_MOST = 1 << 20 /* far below OPEN and 2^INDEX_BITS */
};

/* Looking a handle up takes no lock, only its slot's word:
 *
 *     63        48 47           24 23            0
 *    | tag + kind |  generation   |    taken     |      tag + kind is 0 in a free slot
 *
 * An acquire raises `taken` if the rest is the handle's, in one motion, and touches the object
 * only afterwards; a release lowers the object's own count.  The two meet when the handle closes:
 * `taken` moves into the object's count, which until then stands OPEN higher, so that releases
 * cannot bring it to 0. */
struct slot {
  _Atomic uint64_t word;
  _Atomic(struct pg_object *) object;
  uint32_t next_free;
};

/* Each kind has slots of its own: going through the few streams does not look at a million
 * tensors. */
struct table {
  _Atomic(struct slot *) chunks[CHUNK_COUNT]; /* read without the lock; never freed */
  uint32_t slot_count;                        /* given out so far; slot 0 is none */
  uint32_t free_first, free_last; /* 0: none; oldest first, so that a slot rests before its reuse */
  int live;
};

/* Guards the tables and every opening and closing.  Held for a few instructions only, never across
 * a destroy. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct table tables[PG_KIND_COUNT];

PG_HOLD_ACROSS_FORK(lock, PG_FORK_INNER);

static uint32_t index_of(const void *handle) {
  return (uint32_t)(uintptr_t)handle & ((1u << INDEX_BITS) - 1);
}

/* Chunk 0 has the indices below 2^FIRST_BITS, chunk c those from 2^(FIRST_BITS + c - 1) on. */
static unsigned chunk_of(uint32_t index) {
  return index >> FIRST_BITS == 0 ? 0 : (unsigned)(32 - FIRST_BITS - __builtin_clz(index));
}

static uint32_t chunk_begin(unsigned chunk) {
  return chunk == 0 ? 0 : 1u << (FIRST_BITS + chunk - 1);
}

/* NULL for an index whose chunk does not exist. */
static struct slot *slot_at(struct table *table, uint32_t index) {
  const unsigned chunk = chunk_of(index);
  struct slot *slots = atomic_load_explicit(&table->chunks[chunk], memory_order_acquire);
  return slots == NULL ? NULL : &slots[index - chunk_begin(chunk)];
}

/* The slot that a handle of this kind names, live or not; NULL when it can be no such handle. */
static struct slot *slot_of(const void *handle, enum pg_kind kind) {
  if ((uint64_t)(uintptr_t)handle >> KIND_SHIFT != (uint64_t)TAG + (uint64_t)kind) return NULL;
  return slot_at(&tables[kind], index_of(handle));
}

static bool is_of(uint64_t word, const void *handle) {
  return (word ^ (uint64_t)(uintptr_t)handle) >> INDEX_BITS == 0;
}

static uint64_t taken_of(uint64_t word) { return word & ((1u << INDEX_BITS) - 1); }
static bool is_free(uint64_t word) { return word >> KIND_SHIFT == 0; }

static void *encode(uint64_t word, uint32_t index) {
  return (void *)(uintptr_t)((word - taken_of(word)) | index);
}

/* Lock held, for this and the next two.  0: none is left, or no memory. */
static uint32_t take_slot(struct table *table) {
  if (table->free_first != 0) {
    const uint32_t index = table->free_first;
    table->free_first = slot_at(table, index)->next_free;
    return index;
  }
  const uint32_t index = table->slot_count + 1;
  if (index >> INDEX_BITS != 0) return 0;
  if (slot_at(table, index) == NULL) {
    const unsigned chunk = chunk_of(index);
    const size_t slots = chunk == 0 ? 1u << FIRST_BITS : chunk_begin(chunk);
    struct slot *fresh = calloc(1, slots * sizeof *fresh);
    if (fresh == NULL) return 0;
    atomic_store_explicit(&table->chunks[chunk], fresh, memory_order_release);
  }
  return table->slot_count = index;
}

/* A slot whose generations are used up is not used again: its next handle would be its first. */
static void give_slot(struct table *table, uint32_t index) {
  struct slot *s = slot_at(table, index);
  if (atomic_load_explicit(&s->word, memory_order_relaxed) >> INDEX_BITS == 0) return;
  s->next_free = 0;
  if (table->free_first == 0)
    table->free_first = index;
  else
    slot_at(table, table->free_last)->next_free = index;
  table->free_last = index;
}

/* Ends the slot's generation; the uses of it that have not ended are the object's from now on. */
static struct pg_object *close_slot(struct slot *s) {
  struct pg_object *object = atomic_load_explicit(&s->object, memory_order_relaxed);
  const uint64_t next = (atomic_load_explicit(&s->word, memory_order_relaxed) >> INDEX_BITS) + 1;
  const uint64_t free_word = (next & ((1u << GENERATION_BITS) - 1)) << INDEX_BITS;
  const uint64_t word = atomic_exchange_explicit(&s->word, free_word, memory_order_acq_rel);
  atomic_fetch_add_explicit(&object->refs, (int)taken_of(word) - OPEN, memory_order_acq_rel);
  return object;
}

/* Before `taken` grows beyond its bits, or beyond what the object's count can pay back. */
static void settle(struct slot *s) {
  pthread_mutex_lock(&lock);
  const uint64_t word = atomic_load_explicit(&s->word, memory_order_acquire);
  if (!is_free(word)) {
    struct pg_object *object = atomic_load_explicit(&s->object, memory_order_relaxed);
    atomic_fetch_add_explicit(&object->refs, (int)taken_of(word), memory_order_relaxed);
    atomic_fetch_sub_explicit(&s->word, taken_of(word), memory_order_acq_rel);
  }
  pthread_mutex_unlock(&lock);
}

void *pg_handle_open(enum pg_kind kind, struct pg_object *object) {
  void *handle = NULL;
  struct table *table = &tables[kind];
  pthread_mutex_lock(&lock);
  const uint32_t index = take_slot(table);
  if (index != 0) {
    struct slot *s = slot_at(table, index);
    const uint64_t word = atomic_load_explicit(&s->word, memory_order_relaxed) |
                          ((uint64_t)TAG + (uint64_t)kind) << KIND_SHIFT;
    const int refs = atomic_load_explicit(&object->refs, memory_order_relaxed); /* ours alone */
    atomic_store_explicit(&object->refs, refs + OPEN, memory_order_relaxed);
    atomic_store_explicit(&s->object, object, memory_order_relaxed);
    atomic_store_explicit(&s->word, word, memory_order_release);
    table->live++;
    handle = encode(word, index);
  }
  pthread_mutex_unlock(&lock);
  return handle;
}

void *pg_acquire(const void *handle, enum pg_kind kind) {
  struct slot *s = slot_of(handle, kind);
  if (s == NULL) return NULL;
  struct pg_object *object;
  uint64_t word = atomic_load_explicit(&s->word, memory_order_acquire);
  do {
    if (!is_of(word, handle)) return NULL;
    object = atomic_load_explicit(&s->object, memory_order_relaxed);
  } while (!atomic_compare_exchange_weak_explicit(&s->word, &word, word + 1, memory_order_acq_rel,
                                                  memory_order_acquire));
  if (taken_of(word) >= TAKEN_MOST) settle(s);
  return object;
}

void *pg_handle_close(const void *handle, enum pg_kind kind) {
  struct pg_object *object = NULL;
  struct slot *s = slot_of(handle, kind);
  if (s == NULL) return NULL;
  pthread_mutex_lock(&lock);
  if (is_of(atomic_load_explicit(&s->word, memory_order_relaxed), handle)) {
    object = close_slot(s);
    give_slot(&tables[kind], index_of(handle));
    tables[kind].live--;
  }
  pthread_mutex_unlock(&lock);
  return object;
}

bool pg_is_live(const void *handle, enum pg_kind kind) {
  struct slot *s = slot_of(handle, kind);
  return s != NULL && is_of(atomic_load_explicit(&s->word, memory_order_acquire), handle);
}

void *pg_handle_next(enum pg_kind kind, const void *after) {
  void *handle = NULL;
  struct table *t = &tables[kind];
  pthread_mutex_lock(&lock);
  for (uint32_t i = index_of(after) + 1; t->live > 0 && handle == NULL && i <= t->slot_count; i++) {
    const uint64_t word = atomic_load_explicit(&slot_at(t, i)->word, memory_order_relaxed);
    if (!is_free(word)) handle = encode(word, i);
  }
  pthread_mutex_unlock(&lock);
  return handle;
}

int pg_handle_count(enum pg_kind kind) {
  pthread_mutex_lock(&lock);
  const int count = tables[kind].live;
  pthread_mutex_unlock(&lock);
  return count;
}

const char *pg_handle_what(const void *handle) {
  static const char *const words[PG_KIND_COUNT][2] = {
      [PG_CONTEXT] = {"a context", "a destroyed context"},
      [PG_STREAM] = {"a stream", "a destroyed stream"},
      [PG_EVENT] = {"an event", "a destroyed event"},
      [PG_NOTIFY] = {"a notify", "a destroyed notify"},
      [PG_DATA_BUFFER] = {"a data buffer", "a destroyed data buffer"},
      [PG_TENSOR_DESC] = {"a tensor description", "a destroyed tensor description"},
      [PG_OPERATOR_ATTRIBUTE] = {"attributes of an operator",
                                 "destroyed attributes of an operator"},
      [PG_PHYSICAL_MEMORY] = {"physical memory", "freed physical memory"},
      [PG_TENSOR] = {"a tensor", "a destroyed tensor"},
      [PG_SCALAR] = {"a scalar", "a destroyed scalar"},
      [PG_INT_ARRAY] = {"an int array", "a destroyed int array"},
      [PG_FLOAT_ARRAY] = {"a float array", "a destroyed float array"},
      [PG_BOOL_ARRAY] = {"a bool array", "a destroyed bool array"},
      [PG_TENSOR_LIST] = {"a tensor list", "a destroyed tensor list"},
      [PG_SCALAR_LIST] = {"a scalar list", "a destroyed scalar list"},
      [PG_EXECUTOR] = {"an executor", "a spent or destroyed executor"},
  };
  if (handle == NULL) return "NULL";
  const uint64_t kind = ((uint64_t)(uintptr_t)handle >> KIND_SHIFT) - TAG;
  if (kind >= PG_KIND_COUNT) return "not a handle";
  return words[kind][pg_is_live(handle, (enum pg_kind)kind) ? 0 : 1];
}
