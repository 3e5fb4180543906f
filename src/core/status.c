/* SPDX-License-Identifier: Apache-2.0 */
/* Error text and last error, both per thread.
 *
 * A thread keeps its newest unread sentences, at most PENDING_MAX of them; the oldest go first.
 * Reading takes them all: the newest is the headline, the others follow as its trace-back.
 * The storage is the thread's own memory, given back when the thread ends.  Where there is none to
 * be had, a short sentence in the thread's few static bytes takes its place. */
#include "core/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "acl/acl_rt.h"
#include "core/local_time.h"
#include "core/log.h"
#include "core/printable.h"
#include "core/thread_memory.h"

enum { PENDING_MAX = 16, SENTENCE_MAX = 1024, HEAD_MAX = 160, SHORT_MAX = 160 };

struct sentence {
  const struct family *family;
  bool answer; /* gives way to the next sentence */
  char time[32];
  char text[SENTENCE_MAX];
};

struct thread_errors {
  struct sentence pending[PENDING_MAX + 1]; /* oldest first; the next is written behind them */
  int count;
  char shown[PENDING_MAX * (SENTENCE_MAX + HEAD_MAX) + HEAD_MAX]; /* what the last read returned */
};

/* Which title and code a status is shown under. */
struct family {
  int first, last; /* statuses, inclusive */
  const char *title, *code;
  bool inner; /* never a headline while another sentence is pending */
};

/* The first that fits.  CANN's number says which layer found a fault, not whose it is: the single
 * codes in front would otherwise call a caller's mistake or a time limit an internal error. */
static const struct family families[] = {
    {107019, 107019, "Timeout_Error", "EE1011", false},    /* a wait in a stream */
    {107023, 107023, "Execution_Error", "EE1011", false},  /* the work was discarded */
    {200001, 200001, "Not_Supported", "EH0012", false},    /* a function that is not here */
    {207000, 207000, "Not_Supported", "EE1011", false},    /* nothing is exhausted */
    {507007, 507007, "Invalid_Argument", "EE1003", false}, /* reset of a device that is not set */
    {507012, 507012, "Timeout_Error", "EE1011", false},    /* no callback came */
    {507015, 507015, "Invalid_Argument", "EE1003", false}, /* indices outside their plane */
    {507046, 507047, "Timeout_Error", "EE1011", false},    /* a stream or an event */
    {507910, 507911, "Invalid_Argument", "EE1003", false}, /* memory registered twice or not */
    {561000, 561000, "Invalid_Argument", "EZ1010", false}, /* an executor that is not live */
    {561003, 561003, "Not_Supported", "EZ1010", false},    /* an operator that is not here */
    {561101, 561101, "Resource_Error", "EH0009", false},   /* no memory for an executor */
    {561103, 561103, "Invalid_Argument_Null_Pointer", "EZ1011", false},
    {100000, 106999, "Invalid_Argument", "EH0012", false},
    {107000, 109999, "Invalid_Argument", "EE1003", false},
    {110000, 149999, "Invalid_Argument", "EH0012", false},
    {160000, 169999, "AclNN_Parameter_Error", "EZ1001", false},
    {200000, 206999, "Resource_Error", "EH0009", false},
    {207000, 209999, "Resource_Error", "EE1011", false},
    {360000, 369999, "AclNN_Runtime_Error", "EZ9903", false},
    {500000, 506999, "Inner_Error", "EH9999", true},
    {507000, 509999, "Execution_Error", "EE9999", true},
    {560000, 569999, "AclNN_Inner_Error", "EZ9999", true},
    {INT32_MIN, INT32_MAX, "Inner_Error", "EH9999", true},
};
static const struct family null_acl = {0, 0, "Invalid_Argument_Null_Pointer", "EH0008", false};

static _Thread_local aclError last_error;

/* For a thread without memory: its newest sentence. */
static _Thread_local struct {
  const struct family *family; /* NULL: none, or read already */
  char text[SHORT_MAX + HEAD_MAX];
} last_resort;

static struct thread_errors *mine(void) {
  return pg_thread_memory_made(PG_THREAD_ERRORS, sizeof(struct thread_errors));
}

static const struct family *family_of(int code) {
  const struct family *f = families;
  while (code < f->first || code > f->last) f++;
  return f;
}

static void stamp(char out[32]) {
  struct timespec now;
  struct tm local;
  char day[24];
  clock_gettime(CLOCK_REALTIME, &now);
  pg_local_time(now.tv_sec, &local);
  strftime(day, sizeof day, "%Y-%m-%d-%H:%M:%S", &local);
  snprintf(out, 32, "%.19s.%03d.%03d", day, (int)(now.tv_nsec / 1000000) % 1000,
           (int)(now.tv_nsec / 1000) % 1000);
}

static void drop(struct thread_errors *errors, int i) {
  memmove(&errors->pending[i], &errors->pending[i + 1],
          (size_t)(errors->count - i - 1) * sizeof errors->pending[0]);
  errors->count--;
}

/* Where the next sentence is written. */
static char *begin_sentence(size_t *room) {
  struct thread_errors *errors = mine();
  *room = errors != NULL ? SENTENCE_MAX : SHORT_MAX;
  return errors != NULL ? errors->pending[errors->count].text : last_resort.text;
}

/* An identical one that is pending already is the same sentence, now the newest.  An answer is of
 * no interest any more: behind a failure it would look like its reason. */
static void keep_sentence(const struct family *family, const char *text) {
  struct thread_errors *errors = pg_thread_memory(PG_THREAD_ERRORS);
  if (errors == NULL) {
    last_resort.family = family;
    return;
  }
  struct sentence *s = &errors->pending[errors->count++];
  s->family = family;
  s->answer = false;
  stamp(s->time);
  for (int i = errors->count - 2; i >= 0; i--)
    if (errors->pending[i].answer ||
        (errors->pending[i].family == family && strcmp(errors->pending[i].text, text) == 0))
      drop(errors, i);
  if (errors->count > PENDING_MAX) drop(errors, 0);
}

/* The text was written where begin_sentence said; the place is for the log alone. */
static void fail(const char *file, int line, const struct family *family, int code, char *text,
                 size_t room) {
  const int layer = code / 1000;
  /* One that nobody has asked for would hide this one from programs that ask after every failure.
   */
  if (layer == 107 || layer == 207 || layer == 507 || last_error != ACL_SUCCESS) last_error = code;
  pg_make_printable(text, room);
  pg_log_line(ACL_ERROR, file, line, "%s (status %d)", text, code);
  keep_sentence(family, text);
}

void pg_fail_at(const char *file, int line, int like, const char *api, int code, const char *format,
                ...) {
  size_t room;
  char *text = begin_sentence(&room);
  const size_t length = (size_t)snprintf(text, room, "%s: ", api);
  va_list args;
  va_start(args, format);
  if (length < room) vsnprintf(text + length, room - length, format, args);
  va_end(args);
  fail(file, line, family_of(like), code, text, room);
}

void pg_fail_null_at(const char *file, int line, const char *api, int code, const char *argument) {
  size_t room;
  char *text = begin_sentence(&room);
  snprintf(text, room, "%s: %s is NULL, a valid pointer is required", api, argument);
  const struct family *family = code == ACL_ERROR_INVALID_PARAM ? &null_acl : family_of(code);
  fail(file, line, family, code, text, room);
}

void pg_recode_with(int code) {
  struct thread_errors *errors = pg_thread_memory(PG_THREAD_ERRORS);
  if (errors != NULL && errors->count > 0)
    errors->pending[errors->count - 1].family = family_of(code);
  else if (last_resort.family != NULL)
    last_resort.family = family_of(code);
}

void pg_was_answer(aclError before) {
  struct thread_errors *errors = pg_thread_memory(PG_THREAD_ERRORS);
  if (errors != NULL && errors->count > 0) errors->pending[errors->count - 1].answer = true;
  last_error = before;
}

void pg_failure_set(struct pg_failure *failure, aclError code, const char *format, ...) {
  va_list args;
  failure->code = code;
  va_start(args, format);
  vsnprintf(failure->text, sizeof failure->text, format, args);
  va_end(args);
}

/* The newest sentence that is not an inner one, else the newest. */
static int headline(const struct thread_errors *errors) {
  for (int i = errors->count - 1; i >= 0; i--)
    if (!errors->pending[i].family->inner) return i;
  return errors->count - 1;
}

static size_t print_head(char *out, size_t size, const struct family *family, const char *time,
                         const char *text) {
  char prefix[64] = "";
  if (family->inner)
    snprintf(prefix, sizeof prefix, "%s: Internal error!\n%s", family->code, family->code);
  return (size_t)snprintf(out, size, "%s[PID: %d] %s %s(%s):%s %s\n", prefix, (int)getpid(), time,
                          family->title, family->code, family->inner ? " " : "", text);
}

/* In its own place: the head moves the sentence on. */
static const char *read_last_resort(void) {
  char time[32], sentence[SHORT_MAX];
  if (last_resort.family == NULL) return NULL;
  stamp(time);
  memcpy(sentence, last_resort.text, sizeof sentence);
  (void)print_head(last_resort.text, sizeof last_resort.text, last_resort.family, time, sentence);
  last_resort.family = NULL;
  return last_resort.text;
}

const char *aclGetRecentErrMsg(void) {
  struct thread_errors *errors = pg_thread_memory(PG_THREAD_ERRORS);
  if (errors == NULL || errors->count == 0) return read_last_resort();
  const int top = headline(errors);
  const struct sentence *s = &errors->pending[top];
  size_t used = print_head(errors->shown, sizeof errors->shown, s->family, s->time, s->text);
  if (errors->count > 1)
    used += (size_t)snprintf(errors->shown + used, sizeof errors->shown - used,
                             "TraceBack (most recent call last):\n");
  for (int i = 0; i < errors->count; i++)
    if (i != top)
      used += (size_t)snprintf(errors->shown + used, sizeof errors->shown - used, "        %s\n",
                               errors->pending[i].text);
  errors->count = 0;
  return errors->shown;
}

/* Who asks wrongly may ask again: the last error stays as it is. */
static aclError check_level(const char *api, aclrtLastErrLevel level) {
  const aclError before = last_error;
  if (level == ACL_RT_THREAD_LEVEL) return ACL_SUCCESS;
  pg_fail_with(api, ACL_ERROR_INVALID_PARAM, "level is %d, only ACL_RT_THREAD_LEVEL (0) exists",
               (int)level);
  last_error = before;
  return ACL_ERROR_INVALID_PARAM;
}

aclError aclrtPeekAtLastError(aclrtLastErrLevel level) {
  PG_TRY(check_level(__func__, level));
  return last_error;
}

aclError aclrtGetLastError(aclrtLastErrLevel level) {
  PG_TRY(check_level(__func__, level));
  const aclError error = last_error;
  last_error = ACL_SUCCESS;
  return error;
}
