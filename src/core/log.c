/* SPDX-License-Identifier: Apache-2.0 */
#include "core/log.h"

#include <errno.h>
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

#include "core/fork.h"

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
  const char *value = getenv(name);
  *set = value != NULL;
  return value != NULL && strcmp(value, "1") == 0;
}

static bool to_stdout(void) {
  bool set;
  const bool current = is_one("ASCEND_LOG_PRINT_TO_STDOUT", &set);
  return set ? current : is_one("ASCEND_SLOG_PRINT_TO_STDOUT", &set);
}

static FILE *open_file(const char *folder) {
  char path[4096], when[24];
  struct timespec now;
  struct tm local;
  static const char *const below[] = {"", "/debug", "/debug/plog"};
  for (int i = 0; i < 3; i++) {
    if ((size_t)snprintf(path, sizeof path, "%s%s", folder, below[i]) >= sizeof path) return NULL;
    if (mkdir(path, 0750) != 0 && errno != EEXIST) return NULL;
  }
  clock_gettime(CLOCK_REALTIME, &now);
  localtime_r(&now.tv_sec, &local);
  strftime(when, sizeof when, "%Y%m%d%H%M%S", &local);
  if ((size_t)snprintf(path, sizeof path, "%s/debug/plog/plog-%d_%s%03d.log", folder, (int)getpid(),
                       when, (int)(now.tv_nsec / 1000000) % 1000) >= sizeof path)
    return NULL;
  return fopen(path, "ae");
}

static void configure(void) {
  const char *folder = getenv("ASCEND_PROCESS_LOG_PATH");
  const char *modules = getenv("ASCEND_MODULE_LOG_LEVEL");
  const int global = level_word(getenv("ASCEND_GLOBAL_LOG_LEVEL"), LEVEL_DEFAULT);
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

/* [LEVEL] MODULE(pid,program):yyyy-mm-dd-hh:mm:ss.fff.zzz [file:line]text */
static void write_line(enum module module, aclLogLevel level, const char *where, const char *text) {
  static const char *const words[] = {"DEBUG", "INFO", "WARNING", "ERROR"};
  struct timespec now;
  struct tm local;
  char day[24];
  clock_gettime(CLOCK_REALTIME, &now);
  localtime_r(&now.tv_sec, &local);
  strftime(day, sizeof day, "%Y-%m-%d-%H:%M:%S", &local);
  pthread_mutex_lock(&lock);
  if (sink != NULL) {
    fprintf(sink, "[%s] %s(%d,%s):%s.%03ld.%03ld %s%s\n", words[level], module_names[module],
            (int)getpid(), program_invocation_short_name, day, now.tv_nsec / 1000000,
            now.tv_nsec / 1000 % 1000, where, text);
    fflush(sink);
  }
  pthread_mutex_unlock(&lock);
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
  char text[LINE_MAX_BYTES], body[LINE_MAX_BYTES];
  va_list args;
  va_start(args, fmt);
  const int needed = vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  const int whole = snprintf(body, sizeof body, "%ld %s:%s:%u: \"%s\"", (long)syscall(SYS_gettid),
                             func, base_name(file), line, text);
  if (needed >= (int)sizeof text || whole >= (int)sizeof body)
    memcpy(body + sizeof body - sizeof truncated, truncated, sizeof truncated);
  write_line(APP, logLevel, "", body);
}
