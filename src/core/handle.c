/* SPDX-License-Identifier: Apache-2.0 */
#include "core/handle.h"

#include <pthread.h>
#include <stdint.h>
#include <stddef.h>

#include "core/alloc.h"

_Static_assert(sizeof(void *) == 8, "handles need 64-bit pointers");

enum {
  INDEX_BITS = 24,
  GENERATION_BITS = 24,
  CHUNK_BITS = 10,
  CHUNK = 1 << CHUNK_BITS,
  CHUNK_COUNT = 1 << (INDEX_BITS - CHUNK_BITS),
  TAG = 0x5047 /* "PG"; the kind is added to it */
};

struct slot {
  struct pg_object *object; /* NULL: free */
  uint32_t generation;
  uint32_t next_free;
  enum pg_kind kind;
};

/* Guards everything below.  Held for a few instructions only, never across a destroy. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct slot *chunks[CHUNK_COUNT];
static uint32_t slot_count = 1;        /* slot 0 stays unused: it ends the free list */
static uint32_t free_first, free_last; /* oldest first, so that a slot rests before its reuse */
static int live[PG_KIND_COUNT];

static struct slot *slot_at(uint32_t index) {
  return &chunks[index >> CHUNK_BITS][index & (CHUNK - 1)];
}

static void *encode(enum pg_kind kind, uint32_t index, uint32_t generation) {
  const uint64_t tag = (uint64_t)TAG + (uint64_t)kind;
  return (void *)(uintptr_t)(tag << 48 | (uint64_t)generation << INDEX_BITS | index);
}

static uint32_t take_slot(void) {
  if (free_first != 0) {
    const uint32_t index = free_first;
    free_first = slot_at(index)->next_free;
    return index;
  }
  if (slot_count == 1u << INDEX_BITS) return 0;
  struct slot **chunk = &chunks[slot_count >> CHUNK_BITS];
  if (*chunk == NULL) *chunk = pg_alloc_zeroed(CHUNK * sizeof **chunk);
  return *chunk == NULL ? 0 : slot_count++;
}

static void give_slot(uint32_t index) {
  struct slot *s = slot_at(index);
  s->object = NULL;
  s->generation = (s->generation + 1) & ((1u << GENERATION_BITS) - 1);
  s->next_free = 0;
  if (free_first == 0)
    free_first = index;
  else
    slot_at(free_last)->next_free = index;
  free_last = index;
}

/* The handle's slot if it is live and of this kind.  Lock held. */
static struct slot *find(const void *handle, enum pg_kind kind) {
  const uint64_t bits = (uint64_t)(uintptr_t)handle;
  const uint32_t index = (uint32_t)(bits & ((1u << INDEX_BITS) - 1));
  if (bits >> 48 != (uint64_t)TAG + (uint64_t)kind || index == 0 || index >= slot_count)
    return NULL;
  struct slot *s = slot_at(index);
  const uint32_t generation = (uint32_t)(bits >> INDEX_BITS) & ((1u << GENERATION_BITS) - 1);
  return s->object != NULL && s->kind == kind && s->generation == generation ? s : NULL;
}

void *pg_handle_open(enum pg_kind kind, struct pg_object *object) {
  void *handle = NULL;
  pthread_mutex_lock(&lock);
  const uint32_t index = take_slot();
  if (index != 0) {
    struct slot *s = slot_at(index);
    s->object = object;
    s->kind = kind;
    live[kind]++;
    handle = encode(kind, index, s->generation);
  }
  pthread_mutex_unlock(&lock);
  return handle;
}

void *pg_acquire(const void *handle, enum pg_kind kind) {
  pthread_mutex_lock(&lock);
  struct slot *s = find(handle, kind);
  struct pg_object *object = s != NULL ? s->object : NULL;
  if (object != NULL) pg_retain(object);
  pthread_mutex_unlock(&lock);
  return object;
}

void *pg_handle_close(const void *handle, enum pg_kind kind) {
  pthread_mutex_lock(&lock);
  struct slot *s = find(handle, kind);
  struct pg_object *object = s != NULL ? s->object : NULL;
  if (object != NULL) {
    give_slot((uint32_t)((uintptr_t)handle & ((1u << INDEX_BITS) - 1)));
    live[kind]--;
  }
  pthread_mutex_unlock(&lock);
  return object;
}

void pg_retain(struct pg_object *object) {
  atomic_fetch_add_explicit(&object->refs, 1, memory_order_relaxed);
}

void pg_release(struct pg_object *object) {
  if (object != NULL && atomic_fetch_sub_explicit(&object->refs, 1, memory_order_acq_rel) == 1)
    object->destroy(object);
}

bool pg_is_live(const void *handle, enum pg_kind kind) {
  pthread_mutex_lock(&lock);
  const bool found = find(handle, kind) != NULL;
  pthread_mutex_unlock(&lock);
  return found;
}

void *pg_handle_next(enum pg_kind kind, const void *after) {
  void *handle = NULL;
  const uint32_t first = (uint32_t)((uintptr_t)after & ((1u << INDEX_BITS) - 1)) + 1;
  pthread_mutex_lock(&lock);
  for (uint32_t i = first; live[kind] > 0 && handle == NULL && i < slot_count; i++) {
    const struct slot *s = slot_at(i);
    if (s->object != NULL && s->kind == kind) handle = encode(kind, i, s->generation);
  }
  pthread_mutex_unlock(&lock);
  return handle;
}

int pg_handle_count(enum pg_kind kind) {
  pthread_mutex_lock(&lock);
  const int count = live[kind];
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
  const uint64_t kind = ((uint64_t)(uintptr_t)handle >> 48) - TAG;
  if (kind >= PG_KIND_COUNT) return "not a handle";
  return words[kind][pg_is_live(handle, (enum pg_kind)kind) ? 0 : 1];
}
