/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/regular_file.h"

enum { FILE_FIRST_BYTES = 4096, FILE_MAX_BYTES = 10 << 20, DEPTH_MAX = 64 };

/* A JSON checker by recursive descent: each function skips one thing and returns what follows,
 * or NULL when the text is not that thing. */
static const char *value(const char *p, int depth);

static const char *space(const char *p) {
  while (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r') p++;
  return p;
}

static const char *string(const char *p) {
  if (*p++ != '"') return NULL;
  for (; *p != '"'; p++) {
    if ((unsigned char)*p < 0x20) return NULL; /* the end of the text as well */
    if (*p != '\\') continue;
    p++;
    if (*p == 'u') {
      for (int i = 0; i < 4; i++)
        if (!isxdigit((unsigned char)*++p)) return NULL;
    } else if (*p == '\0' || strchr("\"\\/bfnrt", *p) == NULL) {
      return NULL;
    }
  }
  return p + 1;
}

static const char *digits(const char *p) {
  if (!isdigit((unsigned char)*p)) return NULL;
  while (isdigit((unsigned char)*p)) p++;
  return p;
}

static const char *number(const char *p) {
  if (*p == '-') p++;
  const bool zero = *p == '0';
  p = zero ? p + 1 : digits(p);
  if (p != NULL && *p == '.') p = digits(p + 1);
  if (p != NULL && (*p == 'e' || *p == 'E')) {
    p++;
    if (*p == '+' || *p == '-') p++;
    p = digits(p);
  }
  return p;
}

/* Items between open and close; an object's have a key in front. */
static const char *items(const char *p, char close, bool keys, int depth) {
  p = space(p + 1);
  if (*p == close) return p + 1;
  for (;;) {
    if (keys) {
      p = string(space(p));
      if (p == NULL) return NULL;
      p = space(p);
      if (*p++ != ':') return NULL;
    }
    p = value(p, depth);
    if (p == NULL) return NULL;
    p = space(p);
    if (*p == close) return p + 1;
    if (*p++ != ',') return NULL;
  }
}

static const char *word(const char *p, const char *expected) {
  const size_t length = strlen(expected);
  return strncmp(p, expected, length) == 0 ? p + length : NULL;
}

static const char *value(const char *p, int depth) {
  p = space(p);
  if (depth > DEPTH_MAX) return NULL;
  switch (*p) {
    case '{':
      return items(p, '}', true, depth + 1);
    case '[':
      return items(p, ']', false, depth + 1);
    case '"':
      return string(p);
    case 't':
      return word(p, "true");
    case 'f':
      return word(p, "false");
    case 'n':
      return word(p, "null");
    default:
      return number(p);
  }
}

static uint64_t fnv1a(const char *text, size_t length) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (size_t i = 0; i < length; i++)
    hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
  return hash;
}

/* The whole file with a 0 behind it, or one byte more than is allowed; NULL without memory.  Room
 * grows with what is there: the size that a file claims may be 0 or change meanwhile. */
static char *read_text(FILE *file, size_t *length) {
  size_t room = FILE_FIRST_BYTES;
  char *text = malloc(room);
  *length = 0;
  while (text != NULL) {
    *length += fread(text + *length, 1, room - 1 - *length, file);
    if (*length < room - 1 || *length > FILE_MAX_BYTES) {
      text[*length] = '\0';
      return text;
    }
    room = room * 2 < FILE_MAX_BYTES ? room * 2 : FILE_MAX_BYTES + 2;
    char *larger = realloc(text, room);
    if (larger == NULL) free(text);
    text = larger;
  }
  return NULL;
}

static aclError read_open(const char *api, const char *path, FILE *file, uint64_t *hash) {
  size_t length;
  char *text = read_text(file, &length);
  if (text == NULL) return pg_fail(api, ACL_ERROR_BAD_ALLOC, "no memory to read '%s'", path);
  aclError status = ACL_SUCCESS;
  if (ferror(file)) {
    status =
        pg_fail(api, ACL_ERROR_INVALID_FILE, "configPath is '%s', which could not be read", path);
  } else if (length > FILE_MAX_BYTES) {
    status = pg_fail(api, ACL_ERROR_PARSE_FILE, "configPath is '%s', which is larger than %d bytes",
                     path, FILE_MAX_BYTES);
  } else {
    const char *end = space(text)[0] == '{' ? value(text, 0) : NULL;
    if (end == NULL || *space(end) != '\0' || strlen(text) != length)
      status = pg_fail(api, ACL_ERROR_PARSE_FILE, "configPath is '%s', which is not a JSON object",
                       path);
    else
      *hash = fnv1a(text, length);
  }
  free(text);
  return status;
}

aclError pg_config_read(const char *api, const char *path, uint64_t *hash) {
  *hash = 0;
  if (path == NULL || path[0] == '\0') return ACL_SUCCESS;
  bool other;
  FILE *file = pg_open_regular(path, &other);
  if (file == NULL)
    return pg_fail(api, ACL_ERROR_INVALID_FILE, "configPath is '%s', which %s", path,
                   other ? "is not a regular file" : "cannot be opened");
  const aclError status = read_open(api, path, file, hash);
  fclose(file);
  return status;
}
