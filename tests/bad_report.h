/* SPDX-License-Identifier: Apache-2.0 */
/* What every wrong call must leave behind, and what is said when it does not. */
#ifndef PG_TESTS_BAD_REPORT_H_
#define PG_TESTS_BAD_REPORT_H_

#include "core/handle.h"
#include "expect.h"

enum { BAD_SHOWN_MAX = 20 };

/* A word of the text, not a part of one. */
static inline bool has_word(const char *text, const char *word) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  const size_t length = strlen(word);
  for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word))
    if ((at == text || strchr(letters, at[-1]) == NULL) &&
        (at[length] == '\0' || strchr(letters, at[length]) == NULL))
      return true;
  return false;
}

/* One sentence, from this function and with one of these words.  NULL, or what is wrong with it. */
static inline const char *judge_sentence(const char *text, const char *api,
                                         const char *const *words, int count) {
  if (text == NULL) return "there is no sentence";
  if (strstr(text, "TraceBack") != NULL) return "there is more than one sentence";
  const char *begin = strstr(text, api);
  if (begin == NULL || strncmp(begin + strlen(api), ": ", 2) != 0)
    return "the function is not named";
  for (int i = 0; i < count; i++)
    if (has_word(begin + strlen(api), words[i])) return NULL;
  return count == 0 ? NULL : "the argument is not named";
}

/* Live handles of all kinds: a wrong call leaves them as they were. */
struct handle_counts {
  int of[PG_KIND_COUNT];
};

static inline struct handle_counts count_handles(void) {
  struct handle_counts counts;
  for (int i = 0; i < PG_KIND_COUNT; i++) counts.of[i] = pg_handle_count((enum pg_kind)i);
  return counts;
}

static inline bool same_handles(const struct handle_counts *a, const struct handle_counts *b) {
  return memcmp(a->of, b->of, sizeof a->of) == 0;
}

/* Counts a call that went wrong; the first ones are shown. */
__attribute__((format(printf, 2, 3))) static inline void complain(int *failed, const char *format,
                                                                  ...) {
  char text[2048];
  va_list args;
  if ((*failed)++ >= BAD_SHOWN_MAX) return;
  va_start(args, format);
  (void)vsnprintf(text, sizeof text, format, args);
  va_end(args);
  print_error("%s\n", text);
}

#endif
