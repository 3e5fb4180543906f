/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes become the configuration file of aclInit, which must be taken if and only if it is a JSON
 * object: 0 or 100006 with a sentence, and the library works afterwards. */
#include <string.h>
#include <unistd.h>

#include "acl/acl.h"
#include "input.h"

enum { DEPTH = 60 }; /* both readers follow so far at least */

/* A JSON checker without recursion: one state, and a stack of open brackets. */
enum state { VALUE, FIRST_KEY, KEY, COLON, FIRST_VALUE, AFTER };

struct checker {
  const uint8_t *at, *end;
  enum state state;
  int depth;
  bool deep; /* deeper than DEPTH, where both answers are right */
  char open[4096];
};

static bool is_digit(const struct checker *c, const uint8_t *p) {
  return p < c->end && *p >= '0' && *p <= '9';
}

static bool skip_word(struct checker *c, const char *word) {
  const size_t length = strlen(word);
  if ((size_t)(c->end - c->at) < length || memcmp(c->at, word, length) != 0) return false;
  c->at += length;
  return true;
}

static bool skip_string(struct checker *c) {
  for (c->at++; c->at < c->end && *c->at != '"'; c->at++) {
    if (*c->at < ' ') return false;
    if (*c->at != '\\') continue;
    if (++c->at == c->end) return false;
    if (*c->at == 'u') {
      for (int i = 0; i < 4; i++)
        if (++c->at >= c->end || memchr("0123456789abcdefABCDEF", *c->at, 22) == NULL) return false;
    } else if (memchr("\"\\/bfnrt", *c->at, 8) == NULL) {
      return false;
    }
  }
  return c->at < c->end && *c->at++ == '"';
}

static bool skip_digits(struct checker *c) {
  const uint8_t *begin = c->at;
  while (is_digit(c, c->at)) c->at++;
  return c->at > begin;
}

static bool skip_number(struct checker *c) {
  if (*c->at == '-') c->at++;
  const bool zero = c->at < c->end && *c->at == '0';
  if (zero && is_digit(c, c->at + 1)) return false;
  if (!skip_digits(c)) return false;
  if (c->at < c->end && *c->at == '.') {
    c->at++;
    if (!skip_digits(c)) return false;
  }
  if (c->at < c->end && (*c->at == 'e' || *c->at == 'E')) {
    c->at++;
    if (c->at < c->end && (*c->at == '+' || *c->at == '-')) c->at++;
    if (!skip_digits(c)) return false;
  }
  return true;
}

static bool open_bracket(struct checker *c, char close, enum state next) {
  if (c->depth == (int)sizeof c->open) return false;
  c->open[c->depth++] = close;
  c->deep = c->deep || c->depth > DEPTH;
  c->state = next;
  c->at++;
  return true;
}

static bool close_bracket(struct checker *c, uint8_t close) {
  if (c->depth == 0 || c->open[c->depth - 1] != (char)close) return false;
  c->depth--;
  c->state = AFTER;
  c->at++;
  return true;
}

static bool skip_value(struct checker *c) {
  const uint8_t first = *c->at;
  if (first == '{') return open_bracket(c, '}', FIRST_KEY);
  if (first == '[') return open_bracket(c, ']', FIRST_VALUE);
  c->state = AFTER;
  if (first == '"') return skip_string(c);
  if (first == 't') return skip_word(c, "true");
  if (first == 'f') return skip_word(c, "false");
  if (first == 'n') return skip_word(c, "null");
  return skip_number(c);
}

static bool skip_next(struct checker *c) {
  const uint8_t next = *c->at;
  switch (c->state) {
    case FIRST_KEY:
      if (next == '}') return close_bracket(c, next);
      /* fall through */
    case KEY:
      c->state = COLON;
      return next == '"' && skip_string(c);
    case COLON:
      c->state = VALUE;
      c->at++;
      return next == ':';
    case FIRST_VALUE:
      if (next == ']') return close_bracket(c, next);
      /* fall through */
    case VALUE:
      return skip_value(c);
    default:
      if (next != ',') return close_bracket(c, next);
      if (c->depth == 0) return false;
      c->state = c->open[c->depth - 1] == '}' ? KEY : VALUE;
      c->at++;
      return true;
  }
}

static bool is_json_object(const uint8_t *data, size_t size, bool *deep) {
  static struct checker c;
  bool good = true, object = false;
  c = (struct checker){.at = data, .end = data + size, .state = VALUE};
  for (;;) {
    while (c.at < c.end && memchr(" \t\r\n", *c.at, 4) != NULL) c.at++;
    if (!good || c.at == c.end) break;
    if (!object && *c.at != '{') return false;
    if (object && c.depth == 0) return false; /* something follows the object */
    object = true;
    good = skip_next(&c);
  }
  *deep = c.deep;
  return good && object && c.depth == 0;
}

static char path[] = "/tmp/poolgrad_fuzz_config_XXXXXX";
static int file = -1;

static void remove_file(void) { (void)unlink(path); }

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  (void)argc;
  (void)argv;
  file = mkstemp(path);
  if (file < 0 || atexit(remove_file) != 0) wrong("'%s' cannot be made", path);
  return 0;
}

static void expect(int status, bool json, bool deep) {
  const char *text = aclGetRecentErrMsg();
  if (status != ACL_SUCCESS && status != ACL_ERROR_PARSE_FILE)
    wrong("aclInit gave %d: %s", status, text == NULL ? "(no sentence)" : text);
  if (!deep && json != (status == ACL_SUCCESS))
    wrong("aclInit gave %d for what is %s JSON object", status, json ? "a" : "no");
  if ((text == NULL) != (status == ACL_SUCCESS))
    wrong("aclInit gave %d and the sentence '%s'", status, text == NULL ? "" : text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  bool deep = false;
  if (ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) != (ssize_t)size)
    wrong("the file cannot be written");
  const bool json = is_json_object(data, size, &deep);
  (void)aclGetRecentErrMsg();
  const int status = aclInit(path);
  expect(status, json, deep);
  if (status != ACL_SUCCESS) return 0;
  if (aclInit(path) != ACL_ERROR_REPEAT_INITIALIZE) wrong("the same file twice is not a repeat");
  (void)aclGetRecentErrMsg();
  if (aclFinalize() != ACL_SUCCESS) wrong("aclFinalize failed");
  return 0;
}
