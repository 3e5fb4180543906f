/* SPDX-License-Identifier: Apache-2.0 */
/* Problems and their text. */
#include "problem.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "float_format.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

enum index_kind { NO_INDICES, POSITIONS, MASK };

/* What there is to know about each operator. */
static const struct {
  const char *word;
  bool forward, is_max, sliding;
  int spatial;
  enum index_kind indices;
} operators[POOL_OPERATORS] = {
    [MAX_POOL2D] = {"max_pool2d", false, true, true, 2, POSITIONS},
    [MAX_POOL2D_MASK] = {"max_pool2d_mask", false, true, true, 2, MASK},
    [MAX_POOL3D] = {"max_pool3d", false, true, true, 3, POSITIONS},
    [AVG_POOL2D] = {"avg_pool2d", false, false, true, 2, NO_INDICES},
    [AVG_POOL3D] = {"avg_pool3d", false, false, true, 3, NO_INDICES},
    [ADAPTIVE_MAX_POOL2D] = {"adaptive_max_pool2d", false, true, false, 2, POSITIONS},
    [ADAPTIVE_MAX_POOL3D] = {"adaptive_max_pool3d", false, true, false, 3, POSITIONS},
    [ADAPTIVE_AVG_POOL2D] = {"adaptive_avg_pool2d", false, false, false, 2, NO_INDICES},
    [ADAPTIVE_AVG_POOL3D] = {"adaptive_avg_pool3d", false, false, false, 3, NO_INDICES},
    [MAX_POOL_FORWARD] = {"max_pool_forward", true, true, true, 2, NO_INDICES},
    [MAX_POOL2D_FORWARD] = {"max_pool2d_forward", true, true, true, 2, POSITIONS},
    [MAX_POOL2D_MASK_FORWARD] = {"max_pool2d_mask_forward", true, true, true, 2, MASK},
    [MAX_POOL3D_FORWARD] = {"max_pool3d_forward", true, true, true, 3, POSITIONS},
    [ADAPTIVE_MAX_POOL2D_FORWARD] = {"adaptive_max_pool2d_forward", true, true, false, 2,
                                     POSITIONS},
    [ADAPTIVE_MAX_POOL3D_FORWARD] = {"adaptive_max_pool3d_forward", true, true, false, 3,
                                     POSITIONS},
    [AVG_POOL2D_FORWARD] = {"avg_pool2d_forward", true, false, true, 2, NO_INDICES},
    [AVG_POOL3D_FORWARD] = {"avg_pool3d_forward", true, false, true, 3, NO_INDICES},
    [ADAPTIVE_AVG_POOL2D_FORWARD] = {"adaptive_avg_pool2d_forward", true, false, false, 2,
                                     NO_INDICES},
    [ADAPTIVE_AVG_POOL3D_FORWARD] = {"adaptive_avg_pool3d_forward", true, false, false, 3,
                                     NO_INDICES},
};

static const char *const layout_words[LAYOUTS] = {"dense",    "offset",     "rows",   "gap",
                                                  "permuted", "transposed", "expand", "scalar"};
static const char *const index_words[INDEX_SOURCES] = {"forward", "anywhere", "stray", "outside",
                                                       "beside",  "one",      "lone",  "next"};
static const char *const data_words[GRADIENT_DATA] = {"integers", "random", "specials", "largest",
                                                      "ties",     "lowest", "constant"};
static const char *const tensor_words[POOL_TENSORS] = {"grad_out", "self", "indices", "grad_in"};

static const struct {
  const char *word;
  aclFormat format;
} formats[] = {{"nchw", ACL_FORMAT_NCHW},  {"nhwc", ACL_FORMAT_NHWC},   {"ncl", ACL_FORMAT_NCL},
               {"nc", ACL_FORMAT_NC},      {"ncdhw", ACL_FORMAT_NCDHW}, {"nd", ACL_FORMAT_ND},
               {"ndhwc", ACL_FORMAT_NDHWC}};

bool problem_is_max(const struct problem *p) { return operators[p->op].is_max; }

bool problem_is_forward(const struct problem *p) { return operators[p->op].forward; }

bool problem_is_sliding(const struct problem *p) { return operators[p->op].sliding; }

bool problem_has_indices(const struct problem *p) { return operators[p->op].indices != NO_INDICES; }

bool problem_is_mask(const struct problem *p) { return operators[p->op].indices == MASK; }

int problem_spatial(const struct problem *p) { return operators[p->op].spatial; }

bool problem_has_channels_last(const struct problem *p) {
  return p->format == ACL_FORMAT_NHWC || p->format == ACL_FORMAT_NDHWC;
}

enum tensor_role problem_role(const struct problem *p, int tensor) {
  const bool forward = problem_is_forward(p);
  switch (tensor) {
    case GRAD_OUT:
      return forward ? WRITTEN : READ;
    case SELF:
      return forward ? READ : SHAPE_ONLY;
    case INDICES:
      if (!problem_has_indices(p)) return ABSENT_TENSOR;
      return forward ? WRITTEN : READ;
    default:
      return forward ? ABSENT_TENSOR : WRITTEN;
  }
}

int64_t problem_element_bytes(const struct problem *p, int tensor) {
  if (tensor != INDICES) return (int64_t)float_formats[p->type].bytes;
  return problem_is_mask(p) ? 1 : p->index_bytes;
}

static aclFormat default_format(const struct problem *p) {
  const bool by_rank = p->op == AVG_POOL2D_FORWARD || p->op == ADAPTIVE_AVG_POOL2D_FORWARD;
  if (by_rank && !p->batched) return ACL_FORMAT_NCL;
  return problem_spatial(p) == 3 ? ACL_FORMAT_NCDHW : ACL_FORMAT_NCHW;
}

static int64_t size_of_axis(const struct window_sizes *sizes, int axis, int64_t missing) {
  return sizes->count <= 0 ? missing : sizes->of[sizes->count == 1 ? 0 : axis];
}

/* Depth, height or width; two dimensions have no windows along the first. */
static struct reference_axis sliding_axis(const struct problem *p, int i) {
  const int axis = i - (3 - problem_spatial(p)); /* in the arrays of the attributes */
  if (axis < 0) return reference_unit_axis();
  const int64_t kernel = size_of_axis(&p->kernel, axis, 1), pad = size_of_axis(&p->pad, axis, 0);
  const bool one_sided = p->pad.count == 4;
  return (struct reference_axis){
      .in = p->in[i],
      .out = p->out[i],
      .kernel = kernel,
      .stride = size_of_axis(&p->stride, axis, p->op == MAX_POOL_FORWARD ? 1 : kernel),
      .pad = pad,
      .pad_behind = one_sided ? p->pad.of[2 + axis] : pad,
      .dilation = size_of_axis(&p->dilation, axis, 1)};
}

bool problem_set_out(struct problem *p) {
  for (int i = 0; i < 3; i++) {
    const struct reference_axis axis = sliding_axis(p, i);
    p->out[i] = reference_sliding_out(&axis, p->ceil);
  }
  return p->out[0] > 0 && p->out[1] > 0 && p->out[2] > 0;
}

bool problem_implies_indices(const struct problem *p) {
  return problem_is_mask(p) && size_of_axis(&p->kernel, 0, 1) == 1 &&
         size_of_axis(&p->kernel, 1, 1) == 1;
}

bool problem_windows_hold_cells(const struct problem *p) {
  const struct reference_pooling pool = problem_pooling(p);
  for (int i = 0; i < 3; i++)
    for (int64_t o = 0; o < pool.axis[i].out; o++) {
      const struct reference_span window = reference_window(&pool.axis[i], o);
      if (window.first > window.last) return false;
    }
  return true;
}

struct reference_pooling problem_pooling(const struct problem *p) {
  struct reference_pooling pool = {
      .planes = p->n * p->c, .include_pad = p->include_pad, .divisor = p->divisor};
  for (int i = 0; i < 3; i++)
    pool.axis[i] = problem_is_sliding(p)
                       ? sliding_axis(p, i)
                       : (struct reference_axis){.in = p->in[i], .out = p->out[i]};
  return pool;
}

uint64_t problem_next(uint64_t *state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/* --- reading -----------------------------------------------------------------------------------
 */

/* "3x4x5" into numbers; how many, or 0 for anything else. */
static int read_sizes(const char *text, int64_t *sizes, int most) {
  for (int count = 0; count < most; text++) {
    char *end;
    errno = 0;
    sizes[count++] = strtoll(text, &end, 10);
    if (end == text || errno != 0 || isspace((unsigned char)*text)) return 0;
    if (*end == '\0') return count;
    if (*end != 'x') return 0;
    text = end;
  }
  return 0;
}

static int find_operator(const char *word) {
  for (int i = 0; i < POOL_OPERATORS; i++)
    if (strcmp(word, operators[i].word) == 0) return i;
  return -1;
}

static int find_word(const char *word, const char *const *words, int count) {
  for (int i = 0; i < count; i++)
    if (strcmp(word, words[i]) == 0) return i;
  return -1;
}

static bool read_format(const char *word, struct problem *p) {
  for (int i = 0; i < COUNT(formats); i++)
    if (strcmp(word, formats[i].word) == 0) {
      p->format = formats[i].format;
      return true;
    }
  return false;
}

static bool read_flag(const char *word, struct problem *p) {
  for (int i = 0; i < FLOAT_FORMATS; i++)
    if (strcmp(word, float_formats[i].word) == 0) {
      p->type = i;
      return true;
    }
  if (strcmp(word, "i32") == 0)
    p->index_bytes = 4;
  else if (strcmp(word, "i64") == 0)
    p->index_bytes = 8;
  else if (strcmp(word, "ceil") == 0)
    p->ceil = true;
  else if (strcmp(word, "include_pad") == 0)
    p->include_pad = true;
  else if (strcmp(word, "late") == 0)
    p->late = true;
  else
    return read_format(word, p);
  return true;
}

/* One value for all axes, one for each, or the stride's word for none; four paddings where there
 * are two axes with two sides. */
static bool is_count_of_axes(const struct problem *p, int count, bool paddings) {
  if (count == 4) return paddings && p->op == MAX_POOL_FORWARD;
  return count == STRIDE_NULL || count == 1 || count == problem_spatial(p);
}

static bool read_window(const char *key, const char *value, struct problem *p) {
  const struct {
    const char *key;
    struct window_sizes *sizes;
  } windows[] = {
      {"kernel", &p->kernel}, {"stride", &p->stride}, {"pad", &p->pad}, {"dilation", &p->dilation}};
  for (int i = 0; i < COUNT(windows); i++) {
    if (strcmp(key, windows[i].key) != 0) continue;
    if (windows[i].sizes == &p->stride && strcmp(value, "null") == 0)
      p->stride.count = STRIDE_NULL;
    else
      windows[i].sizes->count = read_sizes(value, windows[i].sizes->of, 4);
    return is_count_of_axes(p, windows[i].sizes->count, windows[i].sizes == &p->pad);
  }
  return false;
}

/* N and C before the D, H and W at the end. */
static bool read_in(const char *value, struct problem *p) {
  int64_t sizes[5];
  const int spatial = problem_spatial(p), count = read_sizes(value, sizes, 5);
  p->batched = count == spatial + 2;
  if (!p->batched && count != spatial + 1) return false;
  p->n = p->batched ? sizes[0] : 1;
  p->c = sizes[count - spatial - 1];
  p->in[0] = 1;
  for (int i = 0; i < spatial; i++) p->in[3 - spatial + i] = sizes[count - spatial + i];
  return true;
}

static bool read_out(const char *value, struct problem *p) {
  const int spatial = problem_spatial(p);
  p->out[0] = 1;
  return read_sizes(value, p->out + 3 - spatial, spatial) == spatial;
}

static bool read_number(const char *value, int64_t *number) {
  return read_sizes(value, number, 1) == 1;
}

static bool read_choice(const char *key, const char *value, struct problem *p) {
  const int tensor = find_word(key, tensor_words, POOL_TENSORS);
  const int layout = find_word(value, layout_words, LAYOUTS);
  const int index = find_word(value, index_words, INDEX_SOURCES);
  const int data = find_word(value, data_words, GRADIENT_DATA);
  if (tensor >= 0 && layout >= 0)
    p->layout[tensor] = (enum layout)layout;
  else if (strcmp(key, "index") == 0 && index >= 0)
    p->index = (enum index_source)index;
  else if (strcmp(key, "data") == 0 && data >= 0)
    p->data = (enum gradient_data)data;
  else
    return false;
  return true;
}

static bool read_integer_type(const char *word, struct problem *p) {
  for (int i = FLOAT_FORMATS; i < ELEMENT_FORMATS; i++)
    if (strcmp(word, float_formats[i].word) == 0) {
      p->type = i;
      return true;
    }
  return false;
}

static bool read_pair(const char *key, const char *value, struct problem *p) {
  int64_t number;
  if (strcmp(key, "in") == 0) return read_in(value, p);
  if (strcmp(key, "out") == 0) return read_out(value, p);
  if (strcmp(key, "of") == 0) return read_integer_type(value, p);
  if (strcmp(key, "divisor") == 0) return read_number(value, &p->divisor);
  if (strcmp(key, "method") == 0)
    return (size_t)snprintf(p->method, sizeof p->method, "%s", value) < sizeof p->method;
  if (strcmp(key, "cube") == 0 && read_number(value, &number)) {
    p->cube = (int)number;
    return true;
  }
  if (strcmp(key, "seed") == 0) {
    char *end;
    p->seed = strtoull(value, &end, 10);
    return end != value && *end == '\0';
  }
  return read_window(key, value, p) || read_choice(key, value, p);
}

static bool read_word(char *word, struct problem *p) {
  char *equals = strchr(word, '=');
  if (equals == NULL) return read_flag(word, p);
  *equals = '\0';
  const bool good = read_pair(word, equals + 1, p);
  *equals = '=';
  return good;
}

static const char *shared_result(const struct problem *p) {
  static const char *const sentences[POOL_TENSORS] = {
      [GRAD_OUT] = "grad_out= cannot share memory between its elements",
      [SELF] = NULL,
      [INDICES] = "indices= cannot share memory between its elements",
      [GRAD_IN] = "grad_in= cannot share memory between its elements"};
  for (int i = 0; i < POOL_TENSORS; i++)
    if (problem_role(p, i) == WRITTEN && (p->layout[i] == EXPAND || p->layout[i] == SCALAR))
      return sentences[i];
  return NULL;
}

/* What the words together must have. */
static const char *missing(struct problem *p) {
  const bool has_out = p->out[2] >= 0;
  if (p->c < 0) return "in= is missing";
  if (problem_is_sliding(p) && p->kernel.count == 0) return "kernel= is missing";
  if (!problem_is_sliding(p) && !has_out) return "out= is missing";
  if (problem_is_sliding(p) && !has_out && !problem_set_out(p)) return "no window fits into in=";
  if (problem_is_mask(p) && p->layout[INDICES] != DENSE) return "a mask is always dense";
  return shared_result(p);
}

bool problem_parse(const char *line, struct problem *out, char why[PROBLEM_TEXT]) {
  char copy[PROBLEM_TEXT], *rest = copy;
  snprintf(copy, sizeof copy, "%s", line);
  const char *word = strtok_r(copy, " \t\r\n", &rest);
  const int op = word == NULL ? -1 : find_operator(word);
  struct problem p = {.op = (enum pool_operator)op, .index_bytes = 8, .seed = 1};
  p.c = p.out[2] = -1; /* not given */
  if (op < 0) {
    snprintf(why, PROBLEM_TEXT, "'%s' is no operator", word == NULL ? "" : word);
    return false;
  }
  p.format = ACL_FORMAT_UNDEFINED;
  if (problem_is_mask(&p)) p.index_bytes = 4;
  for (char *next; (next = strtok_r(NULL, " \t\r\n", &rest)) != NULL;)
    if (!read_word(next, &p)) {
      snprintf(why, PROBLEM_TEXT, "'%s' is not understood", next);
      return false;
    }
  if (p.format == ACL_FORMAT_UNDEFINED) p.format = default_format(&p);
  const char *lacks = missing(&p);
  if (lacks != NULL) snprintf(why, PROBLEM_TEXT, "%s", lacks);
  *out = p;
  return lacks == NULL;
}

/* --- printing ----------------------------------------------------------------------------------
 */

struct text {
  char *to;
  size_t used;
};

static void put(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(struct text *t, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const int length = vsnprintf(t->to + t->used, PROBLEM_TEXT - t->used, format, args);
  va_end(args);
  if (length > 0) t->used += (size_t)length;
  if (t->used >= PROBLEM_TEXT) t->used = PROBLEM_TEXT - 1;
}

static void put_sizes(struct text *t, const char *key, const int64_t *sizes, int count) {
  for (int i = 0; i < count; i++)
    put(t, "%s%s%" PRId64, i == 0 ? key : "", i == 0 ? "" : "x", sizes[i]);
}

static void put_shape(struct text *t, const struct problem *p) {
  const int first = 3 - problem_spatial(p);
  int64_t sizes[5] = {p->n, p->c};
  for (int i = first; i < 3; i++) sizes[2 + i - first] = p->in[i];
  put_sizes(t, " in=", p->batched ? sizes : sizes + 1, 5 - first - !p->batched);
  if (!problem_is_sliding(p) || p->out[0] * p->out[1] * p->out[2] == 0)
    put_sizes(t, " out=", p->out + first, 3 - first);
}

static void put_windows(struct text *t, const struct problem *p) {
  put_sizes(t, " kernel=", p->kernel.of, p->kernel.count);
  if (p->stride.count == STRIDE_NULL) put(t, " stride=null");
  put_sizes(t, " stride=", p->stride.of, p->stride.count);
  put_sizes(t, " pad=", p->pad.of, p->pad.count);
  put_sizes(t, " dilation=", p->dilation.of, p->dilation.count);
  if (p->ceil) put(t, " ceil");
  if (p->include_pad) put(t, " include_pad");
  if (p->divisor != 0) put(t, " divisor=%" PRId64, p->divisor);
  if (p->cube != 0) put(t, " cube=%d", p->cube);
}

static void put_tensors(struct text *t, const struct problem *p) {
  for (int i = 0; i < COUNT(formats) && p->format != default_format(p); i++)
    if (formats[i].format == p->format) put(t, " %s", formats[i].word);
  for (int i = 0; i < POOL_TENSORS; i++)
    if (p->layout[i] != DENSE) put(t, " %s=%s", tensor_words[i], layout_words[p->layout[i]]);
  if (p->method[0] != '\0') put(t, " method=%s", p->method);
  if (p->late) put(t, " late");
  if (p->index != FORWARD) put(t, " index=%s", index_words[p->index]);
  if (p->data != INTEGERS) put(t, " data=%s", data_words[p->data]);
}

void problem_print(const struct problem *p, char text[PROBLEM_TEXT]) {
  struct text t = {.to = text};
  put(&t, "%s %s%s", operators[p->op].word,
      p->type < FLOAT_FORMATS ? "" : "of=", float_formats[p->type].word);
  if (problem_has_indices(p) && !problem_is_mask(p)) put(&t, " i%d", p->index_bytes * 8);
  put_shape(&t, p);
  put_windows(&t, p);
  put_tensors(&t, p);
  put(&t, " seed=%" PRIu64, p->seed);
}
