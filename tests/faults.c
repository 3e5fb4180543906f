/* SPDX-License-Identifier: Apache-2.0 */
#include "faults.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <search.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A sanitizer that is linked into the program comes here as well: before the program begins, and
 * before and behind what a thread is made for.  Its requests are not for us. */
static atomic_bool has_begun;
static _Thread_local bool is_inside;

static void __attribute__((constructor)) begin(void) {
  is_inside = true;
  atomic_store(&has_begun, true);
}

/* --- the plan --------------------------------------------------------------------------------- */

static atomic_int chosen = FAULT_NEVER;
static atomic_bool counting, from_then_on;
static atomic_int requests, refusals;
static atomic_uint refused_kinds;

void faults_plan(int nth, enum faults_mode mode) {
  atomic_store(&counting, false);
  atomic_store(&chosen, nth);
  atomic_store(&from_then_on, mode == FAULT_FROM_THEN_ON);
  atomic_store(&requests, 0);
  atomic_store(&refusals, 0);
}

void faults_begin(void) {
  atomic_store(&refused_kinds, 0);
  atomic_store(&counting, true);
}

void faults_end(void) { atomic_store(&counting, false); }

void faults_arm(int nth, enum faults_mode mode) {
  faults_plan(nth, mode);
  faults_begin();
}

int faults_requests(void) { return atomic_load(&requests); }
int faults_refusals(void) { return atomic_load(&refusals); }
unsigned faults_refused_kinds(void) { return atomic_load(&refused_kinds); }

/* Is this request to fail?  With what, errno then says. */
static bool refused(enum faults_kind kind, int error) {
  if (!atomic_load(&counting) || !is_inside) return false;
  const int n = atomic_fetch_add(&requests, 1), nth = atomic_load(&chosen);
  if (atomic_load(&from_then_on) ? n < nth : n != nth) return false;
  atomic_fetch_add(&refusals, 1);
  atomic_fetch_or(&refused_kinds, 1u << kind);
  errno = error;
  return true;
}

/* --- what is held ----------------------------------------------------------------------------- */

static atomic_int block_count, map_count, file_count, thread_count;

struct faults_held faults_held(void) {
  return (struct faults_held){.blocks = atomic_load(&block_count),
                              .maps = atomic_load(&map_count),
                              .files = atomic_load(&file_count),
                              .threads = atomic_load(&thread_count)};
}

/* The blocks by address, so that a block from elsewhere may be freed here and is not counted.  Open
 * addressing: a block lies at the first free place from its own on. */
enum { PLACE_BITS = 16, PLACES = 1 << PLACE_BITS };

static struct block {
  const void *address; /* NULL: free */
  size_t bytes;
  unsigned long moment;
} blocks[PLACES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the blocks and the clock */
static unsigned long now;

static size_t place_of(const void *address) {
  return (size_t)(((uint64_t)(uintptr_t)address * UINT64_C(0x9e3779b97f4a7c15)) >>
                  (64 - PLACE_BITS));
}

static void *note(void *address, size_t bytes) {
  if (address == NULL || !atomic_load(&has_begun)) return address;
  pthread_mutex_lock(&lock);
  size_t i = place_of(address);
  while (blocks[i].address != NULL) i = (i + 1) % PLACES;
  blocks[i] = (struct block){address, bytes, ++now};
  pthread_mutex_unlock(&lock);
  if (atomic_fetch_add(&block_count, 1) == PLACES / 2) {
    (void)fputs("faults: more blocks than there are places for\n", stderr);
    abort();
  }
  return address;
}

/* Closes the gap at i: a block behind it that does not lie in its own place moves up. */
static void close_gap(size_t i) {
  for (size_t j = (i + 1) % PLACES; blocks[j].address != NULL; j = (j + 1) % PLACES) {
    const size_t home = place_of(blocks[j].address);
    if ((j - home) % PLACES >= (j - i) % PLACES) {
      blocks[i] = blocks[j];
      i = j;
    }
  }
  blocks[i].address = NULL;
}

static struct block forget(const void *address) {
  struct block found = {.address = NULL};
  if (!atomic_load(&has_begun)) return found;
  pthread_mutex_lock(&lock);
  size_t i = place_of(address);
  while (blocks[i].address != NULL && blocks[i].address != address) i = (i + 1) % PLACES;
  if (blocks[i].address != NULL) {
    found = blocks[i];
    close_gap(i);
    atomic_fetch_sub(&block_count, 1);
  }
  pthread_mutex_unlock(&lock);
  return found;
}

unsigned long faults_moment(void) {
  pthread_mutex_lock(&lock);
  const unsigned long moment = now;
  pthread_mutex_unlock(&lock);
  return moment;
}

void faults_print_blocks(FILE *out, unsigned long since) {
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < PLACES; i++)
    if (blocks[i].address != NULL && blocks[i].moment > since)
      (void)fprintf(out, " %zu", blocks[i].bytes);
  pthread_mutex_unlock(&lock);
  (void)fputc('\n', out);
}

/* --- memory ----------------------------------------------------------------------------------- */

/* The linker gives the system's functions these names, and ours the others. */
#define WRAPPED(type, name, ...)   \
  type __real_##name(__VA_ARGS__); \
  type __wrap_##name(__VA_ARGS__); \
  type __wrap_##name(__VA_ARGS__)

WRAPPED(void, free, void *address) {
  if (address != NULL) (void)forget(address); /* first: another thread may be given the address */
  __real_free(address);
}

WRAPPED(void *, malloc, size_t bytes) {
  return refused(FAULT_MEMORY, ENOMEM) ? NULL : note(__real_malloc(bytes), bytes);
}

WRAPPED(void *, calloc, size_t count, size_t bytes) {
  return refused(FAULT_MEMORY, ENOMEM) ? NULL : note(__real_calloc(count, bytes), count * bytes);
}

WRAPPED(void *, realloc, void *old, size_t bytes) {
  if (refused(FAULT_MEMORY, ENOMEM)) return NULL;
  const struct block before = old == NULL ? (struct block){.address = NULL} : forget(old);
  void *moved = __real_realloc(old, bytes);
  if (moved == NULL && before.address != NULL && bytes > 0) (void)note(old, before.bytes);
  return note(moved, bytes);
}

WRAPPED(int, posix_memalign, void **out, size_t alignment, size_t bytes) {
  if (refused(FAULT_MEMORY, ENOMEM)) return ENOMEM;
  const int status = __real_posix_memalign(out, alignment, bytes);
  if (status == 0) (void)note(*out, bytes);
  return status;
}

WRAPPED(void *, aligned_alloc, size_t alignment, size_t bytes) {
  return refused(FAULT_MEMORY, ENOMEM) ? NULL : note(__real_aligned_alloc(alignment, bytes), bytes);
}

WRAPPED(char *, strdup, const char *text) {
  return refused(FAULT_MEMORY, ENOMEM) ? NULL : note(__real_strdup(text), strlen(text) + 1);
}

WRAPPED(void *, mmap, void *at, size_t bytes, int protection, int flags, int file, off_t offset) {
  if (refused(FAULT_MEMORY, ENOMEM)) return MAP_FAILED;
  void *map = __real_mmap(at, bytes, protection, flags, file, offset);
  /* A map at a fixed address takes the place of a part of one that is counted. */
  if (map != MAP_FAILED && (flags & MAP_FIXED) == 0) atomic_fetch_add(&map_count, 1);
  return map;
}

/* The library maps memory a second time, at a fixed address. */
WRAPPED(void *, mremap, void *old, size_t old_bytes, size_t bytes, int flags, void *at) {
  if (refused(FAULT_MEMORY, ENOMEM)) return MAP_FAILED;
  return __real_mremap(old, old_bytes, bytes, flags, at);
}

WRAPPED(int, munmap, void *at, size_t bytes) {
  const int status = __real_munmap(at, bytes);
  if (status == 0) atomic_fetch_sub(&map_count, 1);
  return status;
}

WRAPPED(int, madvise, void *at, size_t bytes, int advice) {
  return refused(FAULT_MEMORY, ENOMEM) ? -1 : __real_madvise(at, bytes, advice);
}

WRAPPED(int, mprotect, void *at, size_t bytes, int protection) {
  return refused(FAULT_MEMORY, ENOMEM) ? -1 : __real_mprotect(at, bytes, protection);
}

/* The tree's nodes are the C library's own: those found again take no memory. */
WRAPPED(void *, tsearch, const void *key, void **root, int (*compare)(const void *, const void *)) {
  return refused(FAULT_MEMORY, ENOMEM) ? NULL : __real_tsearch(key, root, compare);
}

/* --- threads ---------------------------------------------------------------------------------- */

struct start {
  void *(*body)(void *);
  void *argument;
};

static void *run_inside(void *argument) {
  const struct start start = *(struct start *)argument;
  __real_free(argument);
  is_inside = true;
  void *result = start.body(start.argument);
  is_inside = false;
  return result;
}

WRAPPED(int, pthread_create, pthread_t *thread, const pthread_attr_t *attributes,
        void *(*body)(void *), void *argument) {
  struct start *start = refused(FAULT_THREAD, EAGAIN) ? NULL : __real_malloc(sizeof *start);
  if (start == NULL) return EAGAIN;
  *start = (struct start){body, argument};
  const int status = __real_pthread_create(thread, attributes, run_inside, start);
  if (status == 0)
    atomic_fetch_add(&thread_count, 1);
  else
    __real_free(start);
  return status;
}

WRAPPED(int, pthread_join, pthread_t thread, void **result) {
  const int status = __real_pthread_join(thread, result);
  if (status == 0) atomic_fetch_sub(&thread_count, 1);
  return status;
}

WRAPPED(int, pthread_detach, pthread_t thread) {
  const int status = __real_pthread_detach(thread);
  if (status == 0) atomic_fetch_sub(&thread_count, 1);
  return status;
}

WRAPPED(int, pthread_attr_init, pthread_attr_t *attributes) {
  return refused(FAULT_THREAD, ENOMEM) ? ENOMEM : __real_pthread_attr_init(attributes);
}

WRAPPED(int, pthread_key_create, pthread_key_t *key, void (*destroy)(void *)) {
  return refused(FAULT_MEMORY, EAGAIN) ? EAGAIN : __real_pthread_key_create(key, destroy);
}

WRAPPED(int, pthread_setspecific, pthread_key_t key, const void *value) {
  return refused(FAULT_MEMORY, ENOMEM) ? ENOMEM : __real_pthread_setspecific(key, value);
}

WRAPPED(int, pthread_atfork, void (*prepare)(void), void (*parent)(void), void (*child)(void)) {
  return refused(FAULT_MEMORY, ENOMEM) ? ENOMEM : __real_pthread_atfork(prepare, parent, child);
}

/* --- files ------------------------------------------------------------------------------------ */

static FILE *note_file(FILE *file) {
  if (file != NULL) atomic_fetch_add(&file_count, 1);
  return file;
}

static int note_descriptor(int file) {
  if (file >= 0) atomic_fetch_add(&file_count, 1);
  return file;
}

WRAPPED(FILE *, fopen, const char *path, const char *mode) {
  return refused(FAULT_FILE, EMFILE) ? NULL : note_file(__real_fopen(path, mode));
}

/* The descriptor becomes the file's: still one. */
WRAPPED(FILE *, fdopen, int file, const char *mode) {
  return refused(FAULT_FILE, ENOMEM) ? NULL : __real_fdopen(file, mode);
}

WRAPPED(int, fclose, FILE *file) {
  atomic_fetch_sub(&file_count, 1);
  return __real_fclose(file);
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __real_openat(int folder, const char *path, int flags, ...);
int __wrap_openat(int folder, const char *path, int flags, ...);

static bool has_mode(int flags) {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
}

int __wrap_open(const char *path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = has_mode(flags) ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return refused(FAULT_FILE, EMFILE) ? -1 : note_descriptor(__real_open(path, flags, mode));
}

int __wrap_openat(int folder, const char *path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = has_mode(flags) ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return refused(FAULT_FILE, EMFILE) ? -1
                                     : note_descriptor(__real_openat(folder, path, flags, mode));
}

WRAPPED(int, close, int file) {
  const int status = __real_close(file);
  if (status == 0) atomic_fetch_sub(&file_count, 1);
  return status;
}

WRAPPED(int, mkdir, const char *path, mode_t mode) {
  return refused(FAULT_FILE, ENOSPC) ? -1 : __real_mkdir(path, mode);
}

WRAPPED(int, mkdirat, int folder, const char *path, mode_t mode) {
  return refused(FAULT_FILE, ENOSPC) ? -1 : __real_mkdirat(folder, path, mode);
}

/* A refused one leaves its text for dlerror, as a file that is not there does. */
WRAPPED(void *, dlopen, const char *path, int mode) {
  return __real_dlopen(refused(FAULT_FILE, ENOMEM) ? "/refused/for/a/test.so" : path, mode);
}
