/* SPDX-License-Identifier: Apache-2.0 */
#include "core/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/environment.h"
#include "core/fork.h"
#include "core/local_time.h"
#include "core/printable.h"
#include "core/thread.h"

enum { LINE_MAX_BYTES = 1024, LEVEL_NONE = 4, LEVEL_DEFAULT = ACL_ERROR };
enum module { APP, POOLGRAD, MODULE_COUNT };

static const char *const module_names[MODULE_COUNT] = {"APP", "POOLGRAD"};
static const char truncated[] = "...[truncated]";

/* Guards the sink.  The levels are read without it: a line more or less does no harm. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *sink; /* NULL: nowhere */
static atomic_int levels[MODULE_COUNT];
static atomic_int configured; /* how often */
static pthread_once_t once = PTHREAD_ONCE_INIT;

PG_HOLD_ACROSS_FORK(lock, PG_FORK_INNER);

static int level_word(const char *text, int otherwise) {
  if (text == NULL || text[0] < '0' || text[0] > '4') return otherwise;
  return text[1] == '\0' || text[1] == ':' ? text[0] - '0' : otherwise;
}

/* MODULE=n[:MODULE=n] */
static int module_level(const char *text, const char *module, int otherwise) {
  const size_t length = strlen(module);
  while (text != NULL && *text != '\0') {
    if (strncmp(text, module, length) == 0 && text[length] == '=')
      return level_word(text + length + 1, otherwise);
    text = strchr(text, ':');
    if (text != NULL) text++;
  }
  return otherwise;
}

static bool is_one(const char *name, bool *set) {
  const char *value = pg_getenv(name);
  *set = value != NULL;
  return value != NULL && strcmp(value, "1") == 0;
}

static bool to_stdout(void) {
  bool set;
  const bool current = is_one("ASCEND_LOG_PRINT_TO_STDOUT", &set);
  return set ? current : is_one("ASCEND_SLOG_PRINT_TO_STDOUT", &set);
}

/* A folder in another, made if need be; links are not followed: who may write into the log's folder
 * must not send it elsewhere. */
static int open_folder(int in, const char *name) {
  if (mkdirat(in, name, 0700) != 0 && errno != EEXIST) return -1;
  return openat(in, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Nor is a file written to that somebody else has put there: a link, a pipe, one of their own. */
static int open_plog(int folder) {
  char name[64], when[24];
  struct timespec now;
  struct tm local;
  struct stat found;
  clock_gettime(CLOCK_REALTIME, &now);
  pg_local_time(now.tv_sec, &local);
  strftime(when, sizeof when, "%Y%m%d%H%M%S", &local);
  snprintf(name, sizeof name, "plog-%d_%s%03d.log", (int)getpid(), when,
           (int)(now.tv_nsec / 1000000) % 1000);
  const int file =
      openat(folder, name,
             O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
  if (file < 0) return -1;
  if (fstat(file, &found) == 0 && S_ISREG(found.st_mode) && found.st_nlink == 1 &&
      found.st_uid == geteuid())
    return file;
  close(file);
  return -1;
}

static FILE *open_file(const char *path) {
  if (mkdir(path, 0700) != 0 && errno != EEXIST) return NULL;
  const int top = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const int debug = top < 0 ? -1 : open_folder(top, "debug");
  const int plog = debug < 0 ? -1 : open_folder(debug, "plog");
  const int file = plog < 0 ? -1 : open_plog(plog);
  FILE *opened = file < 0 ? NULL : fdopen(file, "a");
  if (opened == NULL && file >= 0) close(file);
  if (plog >= 0) close(plog);
  if (debug >= 0) close(debug);
  if (top >= 0) close(top);
  return opened;
}

static void configure(void) {
  const char *folder = pg_getenv("ASCEND_PROCESS_LOG_PATH");
  const char *modules = pg_getenv("ASCEND_MODULE_LOG_LEVEL");
  const int global = level_word(pg_getenv("ASCEND_GLOBAL_LOG_LEVEL"), LEVEL_DEFAULT);
  const int cancel = pg_cancel_off(); /* opening a file would end a cancelled thread here */
  pthread_mutex_lock(&lock);
  if (sink != NULL && sink != stdout) fclose(sink);
  sink = NULL;
  if (to_stdout())
    sink = stdout;
  else if (folder != NULL && folder[0] != '\0')
    sink = open_file(folder);
  for (int m = 0; m < MODULE_COUNT; m++)
    atomic_store(&levels[m],
                 sink == NULL ? LEVEL_NONE : module_level(modules, module_names[m], global));
  pthread_mutex_unlock(&lock);
  pg_cancel_restore(cancel);
  atomic_fetch_add(&configured, 1);
}

void pg_log_configure(void) {
  const int before = atomic_load(&configured);
  (void)pthread_once(&once, configure);
  if (atomic_load(&configured) == before) configure();
}

static bool wanted(enum module module, aclLogLevel level) {
  (void)pthread_once(&once, configure);
  return (int)level >= atomic_load_explicit(&levels[module], memory_order_relaxed) &&
         level >= ACL_DEBUG && level <= ACL_ERROR;
}

/* Lock held.  What a program or a variable says stays on its line. */
static void put_printable(const char *text) {
  char shown[PG_PRINTED_MOST];
  for (; *text != '\0'; text++) {
    const size_t length = pg_print(*text, shown); /* before fwrite looks: arguments have no order */
    (void)fwrite(shown, 1, length, sink);
  }
}

/* [LEVEL] MODULE(pid,program):yyyy-mm-dd-hh:mm:ss.fff.zzz [file:line]text */
static void write_line(enum module module, aclLogLevel level, const char *where, const char *text) {
  static const char *const words[] = {"DEBUG", "INFO", "WARNING", "ERROR"};
  struct timespec now;
  struct tm local;
  char day[24];
  clock_gettime(CLOCK_REALTIME, &now);
  pg_local_time(now.tv_sec, &local);
  strftime(day, sizeof day, "%Y-%m-%d-%H:%M:%S", &local);
  const int cancel = pg_cancel_off(); /* fflush would end a cancelled thread with the lock held */
  pthread_mutex_lock(&lock);
  if (sink != NULL) {
    fprintf(sink, "[%s] %s(%d,", words[level], module_names[module], (int)getpid());
    put_printable(program_invocation_short_name);
    fprintf(sink, "):%s.%03ld.%03ld %s", day, now.tv_nsec / 1000000, now.tv_nsec / 1000 % 1000,
            where);
    put_printable(text);
    fputc('\n', sink);
    fflush(sink);
  }
  pthread_mutex_unlock(&lock);
  pg_cancel_restore(cancel);
}

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash == NULL ? path : slash + 1;
}

void pg_log_line(aclLogLevel level, const char *file, int line, const char *format, ...) {
  if (!wanted(POOLGRAD, level)) return;
  char text[LINE_MAX_BYTES], where[128];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  snprintf(where, sizeof where, "[%s:%d]", base_name(file), line);
  write_line(POOLGRAD, level, where, text);
}

void aclAppLog(aclLogLevel logLevel, const char *func, const char *file, uint32_t line,
               const char *fmt, ...) {
  if (func == NULL || file == NULL || fmt == NULL || !wanted(APP, logLevel)) return;
  char body[LINE_MAX_BYTES];
  const size_t room = sizeof body - 1; /* for the quote behind the text */
  const int head = snprintf(body, room, "%ld %s:%s:%u: \"", (long)syscall(SYS_gettid), func,
                            base_name(file), line);
  va_list args;
  va_start(args, fmt);
  const size_t begin = (size_t)head < room ? (size_t)head : room - 1;
  const int text = vsnprintf(body + begin, room - begin, fmt, args);
  va_end(args);
  if ((size_t)head >= room || text < 0 || begin + (size_t)text >= room)
    memcpy(body + sizeof body - sizeof truncated, truncated, sizeof truncated);
  else
    memcpy(body + begin + text, "\"", 2);
  write_line(APP, logLevel, "", body);
}
