/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/strict.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "aclnn/opdev/op_errno.h"
#include "core/environment.h"
#include "core/fork.h"
#include "core/log.h"
#include "runtime/memory.h"
#include "runtime/stream.h"

#define WHY "(POOLGRAD_STRICT=1)" /* every sentence of this mode ends so */

atomic_bool pg_strict_on;

aclError pg_strict_configure(const char *api) {
  const char *text = pg_getenv("POOLGRAD_STRICT");
  const bool on = text != NULL && strcmp(text, "1") == 0;
  if (!on && text != NULL && text[0] != '\0' && strcmp(text, "0") != 0)
    return PG_REFUSE_VARIABLE(api, "POOLGRAD_STRICT", text);
  if (atomic_exchange(&pg_strict_on, on) == on) return ACL_SUCCESS;
  pg_strict_forget();
  if (on) pg_log(ACL_INFO, "strict mode is on: what a card would not forgive is refused " WHY);
  return ACL_SUCCESS;
}

/* --- where memory lies --- */

static const char *origin(enum pg_memory_kind kind) {
  static const char *const words[] = {"plain host memory", "memory from aclrtMalloc",
                                      "memory from aclrtMallocHost",
                                      "memory from aclrtHostRegister"};
  return words[kind];
}

aclError pg_strict_check_data(const char *api, const char *name, const void *data, int device_id) {
  const struct pg_memory found = pg_memory_find(data);
  if (found.kind == PG_MEMORY_REGISTERED) return ACL_SUCCESS;
  if (found.kind != PG_MEMORY_DEVICE)
    return pg_fail(api, ACLNN_ERR_PARAM_INVALID,
                   "the data address of %s lies in %s, memory from aclrtMalloc on device %d is "
                   "required " WHY,
                   name, origin(found.kind), device_id);
  if (found.device_id != device_id)
    return pg_fail(api, ACLNN_ERR_PARAM_INVALID,
                   "the data address of %s lies in memory of device %d, the stream's device %d is "
                   "required " WHY,
                   name, found.device_id, device_id);
  return ACL_SUCCESS;
}

static aclError check_side(const char *api, const char *kind, const char *name, const void *address,
                           bool device) {
  const enum pg_memory_kind found = pg_memory_find(address).kind;
  if (found == PG_MEMORY_REGISTERED || (found == PG_MEMORY_DEVICE) == device) return ACL_SUCCESS;
  return pg_fail(api, ACL_ERROR_RT_PARAM_INVALID, "kind is %s, but %s is %s, %s is required " WHY,
                 kind, name, origin(found), device ? "memory from aclrtMalloc" : "host memory");
}

aclError pg_strict_check_kind(const char *api, aclrtMemcpyKind kind, const void *dst,
                              const void *src) {
  static const struct {
    const char *name;
    bool to_device, from_device;
  } kinds[] = {{"ACL_MEMCPY_HOST_TO_HOST", false, false},
               {"ACL_MEMCPY_HOST_TO_DEVICE", true, false},
               {"ACL_MEMCPY_DEVICE_TO_HOST", false, true},
               {"ACL_MEMCPY_DEVICE_TO_DEVICE", true, true},
               {NULL, false, false}, /* ACL_MEMCPY_DEFAULT: as the addresses say */
               {"ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE", true, false}};
  if (kinds[kind].name == NULL) return ACL_SUCCESS;
  PG_TRY(check_side(api, kinds[kind].name, "dst", dst, kinds[kind].to_device));
  return check_side(api, kinds[kind].name, "src", src, kinds[kind].from_device);
}

aclError pg_strict_check_known(const char *api, const char *name, const void *address) {
  if (pg_memory_find(address).kind != PG_MEMORY_UNKNOWN) return ACL_SUCCESS;
  return pg_fail(api, ACL_ERROR_RT_PARAM_INVALID,
                 "%s is %s, memory from aclrtMalloc or aclrtMallocHost is required " WHY, name,
                 origin(PG_MEMORY_UNKNOWN));
}

/* --- work that was not waited for --- */

struct use {
  const void *block;
  struct pg_strict_point at;
  int stream_id;
  const char *api;
};

struct link {
  struct pg_strict_point from, to; /* what is at `from` or later runs behind `to` */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
PG_HOLD_ACROSS_FORK(lock, PG_FORK_INNER);

static uint64_t ticket; /* of the latest use or link */
static struct {
  size_t count, room;
  struct use *row;
} uses;
static struct {
  size_t count, room;
  struct link *row; /* those of streams by ascending ticket */
} links;
/* Scratch of pg_strict_take: up to which ticket the work of each place is known to be waited for.
 * One row for each place. */
static struct {
  size_t count, room;
  struct pg_strict_point *row;
} reached;

/* Room for one more row.  Where memory is exhausted all that was noted is forgotten: a link that
 * went unnoted would make a right program a wrong one. */
#define GROW(table) \
  ((table).count < (table).room || grow((void **)&(table).row, &(table).room, sizeof *(table).row))
static bool grow(void **row, size_t *room, size_t size) {
  const size_t more = *room == 0 ? 16 : *room * 2;
  void *larger = realloc(*row, more * size);
  if (larger == NULL) {
    uses.count = links.count = 0;
    return false;
  }
  *row = larger;
  *room = more;
  return true;
}

/* Places: streams have numbers of their own, words are told from them by the highest bit. */
static uint64_t place_of(const struct pg_stream *stream) { return (uint32_t)stream->id; }
static uint64_t word_place(const void *word) { return (uintptr_t)word | UINT64_C(1) << 63; }

/* Of several uses of a block by one stream only the latest counts. */
static void note_use(const void *block, const struct use *use) {
  size_t i = 0;
  while (i < uses.count && (uses.row[i].block != block || uses.row[i].at.place != use->at.place))
    i++;
  if (i == uses.count && !GROW(uses)) return;
  if (i == uses.count) uses.count++;
  uses.row[i] = *use;
  uses.row[i].block = block;
}

void pg_strict_use(const char *api, const struct pg_stream *stream, int count,
                   void *const *addresses) {
  for (int i = 0; i < count; i++) {
    const struct pg_memory found = pg_memory_find(addresses[i]);
    if (found.kind == PG_MEMORY_UNKNOWN) continue;
    pthread_mutex_lock(&lock);
    note_use(
        found.base,
        &(struct use){.at = {place_of(stream), ++ticket}, .stream_id = stream->id, .api = api});
    pthread_mutex_unlock(&lock);
  }
}

struct pg_strict_point pg_strict_point_of(const struct pg_stream *stream) {
  pthread_mutex_lock(&lock);
  const struct pg_strict_point point = {place_of(stream), ticket};
  pthread_mutex_unlock(&lock);
  return point;
}

static void add_link(uint64_t from, struct pg_strict_point to) {
  pthread_mutex_lock(&lock);
  if (GROW(links)) links.row[links.count++] = (struct link){{from, ++ticket}, to};
  pthread_mutex_unlock(&lock);
}

void pg_strict_link(const struct pg_stream *stream, struct pg_strict_point point) {
  add_link(place_of(stream), point);
}

void pg_strict_word_written(const struct pg_stream *stream, const void *word) {
  add_link(word_place(word), pg_strict_point_of(stream));
}

void pg_strict_word_awaited(const struct pg_stream *stream, const void *word) {
  add_link(place_of(stream), (struct pg_strict_point){word_place(word), UINT64_MAX});
}

static struct pg_strict_point *reached_at(uint64_t place) {
  for (size_t i = 0; i < reached.count; i++)
    if (reached.row[i].place == place) return &reached.row[i];
  return NULL;
}

static bool is_reached(struct pg_strict_point point) {
  const struct pg_strict_point *at = reached_at(point.place);
  return at != NULL && point.ticket <= at->ticket;
}

/* True when it was not reached before. */
static bool reach(struct pg_strict_point point) {
  struct pg_strict_point *at = reached_at(point.place);
  if (at != NULL && point.ticket <= at->ticket) return false;
  if (at == NULL && !GROW(reached)) return false;
  if (at == NULL) at = &reached.row[reached.count++];
  *at = point;
  return true;
}

/* From the latest link to the first: a stream's links lead to what came before them, so one pass
 * follows a whole chain.  Only words, which may be awaited before they are written, need more. */
static void follow_links(void) {
  for (bool more = true; more;) {
    more = false;
    for (size_t i = links.count; i > 0; i--)
      if (is_reached(links.row[i - 1].from) && reach(links.row[i - 1].to)) more = true;
  }
}

void pg_strict_unlink(int stream_id) {
  size_t kept = 0;
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < links.count; i++)
    if (links.row[i].from.place != (uint32_t)stream_id) links.row[kept++] = links.row[i];
  links.count = kept;
  pthread_mutex_unlock(&lock);
}

/* Links that were followed are not needed again; but a word may be written once more. */
static bool is_spent(const struct link *link) {
  return is_reached(link->from) || (link->to.ticket != UINT64_MAX && is_reached(link->to));
}

void pg_strict_take(struct pg_strict_point point) {
  size_t kept = 0;
  pthread_mutex_lock(&lock);
  reached.count = 0;
  if (reach(point)) follow_links();
  for (size_t i = 0; i < uses.count; i++)
    if (!is_reached(uses.row[i].at)) uses.row[kept++] = uses.row[i];
  uses.count = kept;
  kept = 0;
  for (size_t i = 0; i < links.count; i++)
    if (!is_spent(&links.row[i])) links.row[kept++] = links.row[i];
  links.count = kept;
  pthread_mutex_unlock(&lock);
}

aclError pg_strict_check_free(const char *api, const char *name, const void *base) {
  struct use left = {.block = NULL};
  if (pg_fork_has_lost()) return ACL_SUCCESS; /* nobody can wait in the child of a fork */
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < uses.count; i++)
    if (uses.row[i].block == base) left = uses.row[i];
  pthread_mutex_unlock(&lock);
  if (left.block == NULL) return ACL_SUCCESS;
  return pg_fail_titled(
      ACL_ERROR_RT_PARAM_INVALID, api, ACL_ERROR_RT_MEMORY_FREE,
      "%s is used by %s on stream %d, which the program has not waited for: the stream, "
      "the device or an event recorded behind it must be synchronised first " WHY,
      name, left.api, left.stream_id);
}

void pg_strict_forget(void) {
  pthread_mutex_lock(&lock);
  free(uses.row);
  free(links.row);
  free(reached.row);
  memset(&uses, 0, sizeof uses);
  memset(&links, 0, sizeof links);
  memset(&reached, 0, sizeof reached);
  pthread_mutex_unlock(&lock);
}
