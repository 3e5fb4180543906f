/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of the public API say again and again. */
#ifndef PG_TESTS_EXPECT_H_
#define PG_TESTS_EXPECT_H_

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "acl/acl.h"
#include "device.h"

/* The call succeeds; on failure its sentence is shown. */
#define OK_OR_SAY(call)                                                             \
  do {                                                                              \
    const int status_ = (call);                                                     \
    if (status_ != 0) {                                                             \
      const char *text_ = aclGetRecentErrMsg();                                     \
      fail_msg("%s gave %d: %s", #call, status_, text_ == NULL ? "(none)" : text_); \
    }                                                                               \
  } while (0)

/* The call fails with this code and leaves one sentence that has the function's name and every
 * word of a comma-separated list in it: FAILS(aclrtMalloc(&p, 0, 0), 100000, "aclrtMalloc",
 * "size"). */
#define FAILS(call, code, ...)                                                   \
  do {                                                                           \
    (void)aclGetRecentErrMsg();                                                  \
    expect_words(#call, (call), code, (const char *const[]){__VA_ARGS__, NULL}); \
  } while (0)

static inline void expect_words(const char *call, int status, int code, const char *const *words) {
  const char *text = aclGetRecentErrMsg();
  if (status != code)
    fail_msg("%s gave %d, expected %d (%s)", call, status, code, text == NULL ? "no text" : text);
  if (text == NULL) fail_msg("%s failed without a sentence", call);
  for (; *words != NULL; words++)
    if (strstr(text, *words) == NULL) fail_msg("%s: no '%s' in: %s", call, *words, text);
  if (aclGetRecentErrMsg() != NULL) fail_msg("%s: the sentence can be read twice", call);
}

/* cmocka 2.0 deprecates assert_in_range, and the names that replace it are not in 1.1. */
#define BETWEEN(value, least, most)                                                 \
  do {                                                                              \
    const long long value_ = (long long)(value), least_ = (long long)(least);       \
    const long long most_ = (long long)(most);                                      \
    if (value_ < least_ || value_ > most_)                                          \
      fail_msg("%s is %lld, expected %lld to %lld", #value, value_, least_, most_); \
  } while (0)

/* Device memory is reached through copies: not every device's is the host's as well. */
static inline void *device_memory(size_t bytes) {
  void *memory = NULL;
  OK_OR_SAY(aclrtMalloc(&memory, bytes, ACL_MEM_MALLOC_NORMAL_ONLY));
  return memory;
}

static inline void send(void *device, const void *host, size_t bytes) {
  OK_OR_SAY(aclrtMemcpy(device, bytes, host, bytes, ACL_MEMCPY_HOST_TO_DEVICE));
}

static inline void fetch(void *host, const void *device, size_t bytes) {
  OK_OR_SAY(aclrtMemcpy(host, bytes, device, bytes, ACL_MEMCPY_DEVICE_TO_HOST));
}

static inline unsigned char fetch_byte(const void *device) {
  unsigned char byte = 0;
  fetch(&byte, device, 1);
  return byte;
}

/* Ends a test that cannot be made here; tools/run_tests.sh shows why. The first argument is a
 * printf format as a literal. */
#define SKIP(...)                           \
  do {                                      \
    print_message("skipped: " __VA_ARGS__); \
    print_message("\n");                    \
    skip();                                 \
  } while (0)

/* For what only the CPU device is about. */
#define SKIP_ON_CUDA(why)     \
  do {                        \
    if (on_cuda()) SKIP(why); \
  } while (0)

/* cmocka fixtures: a process with aclInit and device 0, and its end. */
static inline int set_up_device(void **state) {
  (void)state;
  if (aclInit(NULL) == ACL_SUCCESS && aclrtSetDevice(0) == ACL_SUCCESS) return 0;
  const char *text = aclGetRecentErrMsg();
  (void)fprintf(stderr, "no device: %s\n", text == NULL ? "" : text);
  return 1;
}

static inline int tear_down_device(void **state) {
  (void)state;
  (void)aclrtResetDevice(0);
  return aclFinalize() != ACL_SUCCESS;
}

#endif
