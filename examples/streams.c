/* SPDX-License-Identifier: Apache-2.0 */
/* Two streams, an event between them, and a copy back to the host. */
#include <stdio.h>

#include "acl/acl.h"

#define CHECK(call)                                                     \
  do {                                                                  \
    const aclError status_ = (call);                                    \
    if (status_ != ACL_SUCCESS) {                                       \
      const char *why_ = aclGetRecentErrMsg();                          \
      fprintf(stderr, "%s: %d %s\n", #call, status_, why_ ? why_ : ""); \
      return 1;                                                         \
    }                                                                   \
  } while (0)

int main(void) {
  enum { COUNT = 8 };
  float host[COUNT], milliseconds;
  void *a, *b;
  aclrtStream producer, consumer;
  aclrtEvent begun, ready;

  CHECK(aclInit(NULL));
  CHECK(aclrtSetDevice(0));
  CHECK(aclrtCreateStream(&producer));
  CHECK(aclrtCreateStream(&consumer));
  CHECK(aclrtCreateEvent(&begun));
  CHECK(aclrtCreateEvent(&ready));
  CHECK(aclrtMalloc(&a, sizeof host, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclrtMalloc(&b, sizeof host, ACL_MEM_MALLOC_HUGE_FIRST));

  /* The producer fills a with 1.0f; the consumer copies it to b, but not before. */
  CHECK(aclrtRecordEvent(begun, producer));
  CHECK(aclrtMemsetD32Async(a, sizeof host, 0x3f800000u, COUNT, producer));
  CHECK(aclrtRecordEvent(ready, producer));
  CHECK(aclrtStreamWaitEvent(consumer, ready));
  CHECK(aclrtMemcpyAsync(b, sizeof host, a, sizeof host, ACL_MEMCPY_DEVICE_TO_DEVICE, consumer));
  CHECK(aclrtSynchronizeStream(consumer));

  CHECK(aclrtMemcpy(host, sizeof host, b, sizeof host, ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK(aclrtEventElapsedTime(&milliseconds, begun, ready));
  printf("b, %d floats: what one stream wrote and the other copied\n ", COUNT);
  for (int i = 0; i < COUNT; i++) printf(" %g", host[i]);
  printf("\non a device that counts as %s, filled in %.3f ms\n", aclrtGetSocName(), milliseconds);

  CHECK(aclrtFree(a));
  CHECK(aclrtFree(b));
  CHECK(aclrtDestroyEvent(begun));
  CHECK(aclrtDestroyEvent(ready));
  CHECK(aclrtDestroyStream(producer));
  CHECK(aclrtDestroyStream(consumer));
  CHECK(aclrtResetDevice(0));
  CHECK(aclFinalize());
  printf("summary: two streams filled and copied 8 floats, an event between them\n");
  return 0;
}
