/* SPDX-License-Identifier: Apache-2.0 */
/* Memory: how it is allocated, freed, registered and asked about. */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "expect.h"
#include "reveal.h"
#include "runtime/context.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_device, tear_down_device)
#define WATCHED(name) cmocka_unit_test_setup_teardown(name, set_up_watch, tear_down_device)

/* The sanitizers would rather abort than let an allocation fail. */
#if defined(__SANITIZE_ADDRESS__)
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }
#elif defined(__SANITIZE_THREAD__)
const char *__tsan_default_options(void);
const char *__tsan_default_options(void) { return "allocator_may_return_null=1"; }
#endif

#define NORMAL ACL_MEM_MALLOC_NORMAL_ONLY
#define HUGE_FIRST ACL_MEM_MALLOC_HUGE_FIRST

static const size_t absurd = (size_t)1 << 60;

static aclError malloc_with_cfg(void **out, size_t size, aclrtMemMallocPolicy policy) {
  return aclrtMallocWithCfg(out, size, policy, NULL);
}

static aclError malloc_host(void **out, size_t size, aclrtMemMallocPolicy policy) {
  (void)policy;
  return aclrtMallocHost(out, size);
}

static aclError malloc_host_with_cfg(void **out, size_t size, aclrtMemMallocPolicy policy) {
  (void)policy;
  return aclrtMallocHostWithCfg(out, size, NULL);
}

/* Every function that allocates. */
static const struct {
  const char *name;
  aclError (*allocate)(void **out, size_t size, aclrtMemMallocPolicy policy);
  aclError (*release)(void *memory);
  size_t padding; /* behind the size rounded up to 32 */
} makers[] = {
    {"aclrtMalloc", aclrtMalloc, aclrtFree, 32},
    {"aclrtMallocCached", aclrtMallocCached, aclrtFree, 32},
    {"aclrtMallocWithCfg", malloc_with_cfg, aclrtFree, 32},
    {"aclrtMallocAlign32", aclrtMallocAlign32, aclrtFree, 0},
    {"aclrtMallocHost", malloc_host, aclrtFreeHost, 0},
    {"aclrtMallocHostWithCfg", malloc_host_with_cfg, aclrtFreeHost, 0},
};

static void sizes_and_places_are_checked(void **state) {
  (void)state;
  for (size_t i = 0; i < LENGTH(makers); i++) {
    void *memory = &memory;
    FAILS(makers[i].allocate(NULL, 8, NORMAL), 100000, makers[i].name, "is NULL");
    FAILS(makers[i].allocate(&memory, 0, NORMAL), 100000, makers[i].name, "size is 0");
    FAILS(makers[i].allocate(&memory, SIZE_MAX, NORMAL), 100000, makers[i].name, "too large");
    FAILS(makers[i].allocate(&memory, SIZE_MAX - 63, NORMAL), 100000, makers[i].name, "too large");
    FAILS(makers[i].allocate(&memory, absurd, NORMAL), 207001, makers[i].name, "no memory");
    FAILS(makers[i].allocate(&memory, absurd, HUGE_FIRST), 207001, makers[i].name, "no memory");
    assert_ptr_equal(memory, &memory);
  }
}

static void padding_is_there_and_zero(void **state) {
  (void)state;
  static const size_t sizes[] = {1, 31, 32, 33, 1000, 4096, (3 << 20) + 5};
  static const aclrtMemMallocPolicy policies[] = {NORMAL, HUGE_FIRST, (aclrtMemMallocPolicy)99,
                                                  ACL_MEM_TYPE_HIGH_BAND_WIDTH};
  for (size_t m = 0; m < LENGTH(makers); m++)
    for (size_t s = 0; s < LENGTH(sizes); s++)
      for (size_t p = 0; p < LENGTH(policies); p++) {
        void *memory = NULL;
        const size_t usable = (sizes[s] + 31) / 32 * 32 + makers[m].padding;
        OK_OR_SAY(makers[m].allocate(&memory, sizes[s], policies[p]));
        assert_int_equal((uintptr_t)memory % 64, 0);
        char padding[64] = {1};
        reveal_padding(memory);
        OK_OR_SAY(aclrtMemcpy(padding, sizeof padding, (char *)memory + sizes[s], usable - sizes[s],
                              ACL_MEMCPY_DEFAULT));
        for (size_t i = 0; i < usable - sizes[s]; i++) assert_int_equal(padding[i], 0);
        OK_OR_SAY(aclrtMemset(memory, usable, 0x5a, usable));
        FAILS(aclrtMemset(memory, SIZE_MAX, 0, usable + 1), 107000, "aclrtMemset", "end");
        OK_OR_SAY(makers[m].release(memory));
      }
}

static void pages_of_a_gigabyte_have_no_padding(void **state) {
  (void)state;
  void *memory = NULL;
  OK_OR_SAY(aclrtMalloc(&memory, 33, ACL_MEM_MALLOC_HUGE1G_ONLY));
  reveal_padding(memory);
  OK_OR_SAY(aclrtMemset(memory, 64, 0, 64));
  FAILS(aclrtMemset(memory, 65, 0, 65), 107000, "aclrtMemset", "64 left");
}

static void configurations_are_checked(void **state) {
  (void)state;
  aclrtMallocAttribute attribute = {.attr = ACL_RT_MEM_ATTR_MODULE_ID, .value = {.moduleId = 1}};
  aclrtMallocConfig full = {&attribute, 1}, empty = {NULL, 0}, broken = {NULL, 1};
  void *memory = NULL;
  OK_OR_SAY(aclrtMallocWithCfg(&memory, 8, NORMAL, &full));
  OK_OR_SAY(aclrtMallocWithCfg(&memory, 8, NORMAL, &empty));
  OK_OR_SAY(aclrtMallocHostWithCfg(&memory, 8, &full));
  FAILS(aclrtMallocWithCfg(&memory, 8, NORMAL, &broken), 100000, "aclrtMallocWithCfg", "numAttrs");
  FAILS(aclrtMallocHostWithCfg(&memory, 8, &broken), 100000, "aclrtMallocHostWithCfg", "numAttrs");
}

static void *use_without_context(void *argument) {
  aclError *codes = argument;
  static char own[8];
  void *memory;
  size_t free_bytes, total;
  for (size_t i = 0; i < LENGTH(makers); i++) *codes++ = makers[i].allocate(&memory, 8, NORMAL);
  *codes++ = aclrtHostRegister(own, sizeof own, ACL_HOST_REGISTER_MAPPED, &memory);
  *codes++ = aclrtGetMemInfo(ACL_HBM_MEM, &free_bytes, &total);
  *codes++ = aclrtMemset(own, sizeof own, 0, sizeof own);
  return NULL;
}

static void *free_without_context(void *memory) { return aclrtFree(memory) == 0 ? memory : NULL; }

static void allocating_needs_a_context_and_freeing_none(void **state) {
  (void)state;
  aclError codes[LENGTH(makers) + 3];
  pthread_t thread;
  void *memory = NULL, *freed = NULL;
  assert_int_equal(pthread_create(&thread, NULL, use_without_context, codes), 0);
  (void)pthread_join(thread, NULL);
  for (size_t i = 0; i < LENGTH(codes); i++) assert_int_equal(codes[i], 107002);
  OK_OR_SAY(aclrtMalloc(&memory, 8, NORMAL));
  assert_int_equal(pthread_create(&thread, NULL, free_without_context, memory), 0);
  (void)pthread_join(thread, &freed);
  assert_ptr_equal(freed, memory);
}

static void only_starts_of_living_memory_can_be_freed(void **state) {
  (void)state;
  char own[8];
  void *device = NULL, *host = NULL, *registered = NULL;
  OK_OR_SAY(aclrtMalloc(&device, 100, NORMAL));
  OK_OR_SAY(aclrtMallocHost(&host, 100));
  OK_OR_SAY(aclrtHostRegister(own, sizeof own, ACL_HOST_REGISTER_MAPPED, &registered));
  FAILS(aclrtFree(NULL), 100000, "aclrtFree", "NULL");
  FAILS(aclrtFreeHost(NULL), 100000, "aclrtFreeHost", "NULL");
  FAILS(aclrtFreeWithDevSync(NULL), 100000, "aclrtFreeWithDevSync", "NULL");
  FAILS(aclrtFreeHostWithDevSync(NULL), 100000, "aclrtFreeHostWithDevSync", "NULL");
  FAILS(aclrtFree(&device), 107000, "aclrtFree", "unknown", "aclrtMalloc");
  FAILS(aclrtFree((char *)device + 64), 107000, "aclrtFree", "64 bytes inside");
  FAILS(aclrtFree(host), 107000, "aclrtFree", "from aclrtMallocHost");
  FAILS(aclrtFree(own), 107000, "aclrtFree", "from aclrtHostRegister");
  FAILS(aclrtFreeHost(device), 107000, "aclrtFreeHost", "from aclrtMalloc");
  FAILS(aclrtFreeHost((char *)host + 1), 107000, "aclrtFreeHost", "1 bytes inside");
  FAILS(aclrtFreeWithDevSync(host), 107000, "aclrtFreeWithDevSync");
  OK_OR_SAY(aclrtFreeWithDevSync(device));
  OK_OR_SAY(aclrtFreeHostWithDevSync(host));
  FAILS(aclrtFree(device), 107000, "aclrtFree", "unknown");
  FAILS(aclrtFreeHost(host), 107000, "aclrtFreeHost", "unknown");
  OK_OR_SAY(aclrtHostUnregister(own));
}

struct slow {
  sem_t gate;
  atomic_bool done;
};

/* Takes its time behind the gate. */
static void finish(void *argument) {
  struct slow *slow = argument;
  struct timespec from, now;
  while (sem_wait(&slow->gate) != 0) continue;
  (void)clock_gettime(CLOCK_MONOTONIC, &from);
  do (void)clock_gettime(CLOCK_MONOTONIC, &now);
  while ((now.tv_sec - from.tv_sec) * 1000000000L + now.tv_nsec - from.tv_nsec < 20000000);
  atomic_store(&slow->done, true);
}

static void free_does_not_wait_unless_told_to(void **state) {
  (void)state;
  struct slow slow = {.done = false};
  aclrtStream stream;
  void *one = NULL, *two = NULL;
  (void)sem_init(&slow.gate, 0, 0);
  OK_OR_SAY(aclrtCreateStream(&stream));
  OK_OR_SAY(aclrtMalloc(&one, 8, NORMAL));
  OK_OR_SAY(aclrtMalloc(&two, 8, NORMAL));
  OK_OR_SAY(aclrtLaunchHostFunc(stream, finish, &slow));
  OK_OR_SAY(aclrtFree(one)); /* the gate is shut still */
  (void)sem_post(&slow.gate);
  OK_OR_SAY(aclrtFreeWithDevSync(two));
  assert_true(atomic_load(&slow.done));
}

static aclrtPtrAttributes about(const void *address) {
  aclrtPtrAttributes found;
  memset(&found, 0xff, sizeof found);
  OK_OR_SAY(aclrtPointerGetAttributes(address, &found));
  return found;
}

static void addresses_know_where_they_lie(void **state) {
  (void)state;
  char own[64];
  void *device = NULL, *host = NULL, *registered = NULL;
  OK_OR_SAY(aclrtMalloc(&device, 100, NORMAL));
  OK_OR_SAY(aclrtMallocHost(&host, 100));
  assert_int_equal(about(device).location.type, ACL_MEM_LOCATION_TYPE_DEVICE);
  assert_int_equal(about(device).location.id, 0);
  if (!on_cuda()) assert_int_equal(about(device).pageSize, sysconf(_SC_PAGESIZE));
  assert_int_equal(about((char *)device + 159).location.type, ACL_MEM_LOCATION_TYPE_DEVICE);
  assert_int_equal(about((char *)device + 160).location.type, ACL_MEM_LOCATION_TYPE_UNREGISTERED);
  assert_int_equal(about(host).location.type, ACL_MEM_LOCATION_TYPE_HOST);
  assert_int_equal(about(host).location.id, 0);
  assert_int_equal(about(own).location.type, ACL_MEM_LOCATION_TYPE_UNREGISTERED);
  OK_OR_SAY(aclrtHostRegister(own, sizeof own, ACL_HOST_REGISTER_MAPPED, &registered));
  assert_int_equal(about(own + 63).location.type, ACL_MEM_LOCATION_TYPE_HOST);
  FAILS(aclrtPointerGetAttributes(NULL, &(aclrtPtrAttributes){.pageSize = 0}), 100000,
        "aclrtPointerGetAttributes", "ptr is NULL");
  FAILS(aclrtPointerGetAttributes(own, NULL), 100000, "aclrtPointerGetAttributes", "attributes");
}

static void memory_is_registered_once(void **state) {
  (void)state;
  static _Alignas(4096) char own[8192];
  const size_t next = on_cuda() ? 4096 : 64; /* a GPU takes a page once */
  void *seen = NULL, *host = NULL;
  OK_OR_SAY(aclrtMallocHost(&host, 64));
  OK_OR_SAY(aclrtHostRegister(own, 64, ACL_HOST_REGISTER_READONLY, &seen));
  assert_ptr_equal(seen, own);
  FAILS(aclrtHostRegister(own, 64, ACL_HOST_REGISTER_MAPPED, &seen), 507910, "aclrtHostRegister");
  FAILS(aclrtHostRegisterV2(own + 63, 2, ACL_HOST_REG_PINNED), 507910, "aclrtHostRegisterV2");
  FAILS(aclrtHostRegisterV2(host, 64, ACL_HOST_REG_PINNED), 507910, "aclrtHostRegisterV2");
  OK_OR_SAY(aclrtHostRegisterV2(own + next, 64, ACL_HOST_REG_MAPPED | ACL_HOST_REG_PINNED));
  OK_OR_SAY(aclrtHostGetDevicePointer(own + next + 6, &seen, 0));
  assert_ptr_equal(seen, own + next + 6);
  FAILS(aclrtHostGetDevicePointer(own, &seen, 1), 100000, "aclrtHostGetDevicePointer", "flag");
  FAILS(aclrtHostGetDevicePointer(NULL, &seen, 0), 100000, "aclrtHostGetDevicePointer", "pHost");
  FAILS(aclrtHostGetDevicePointer(own, NULL, 0), 100000, "aclrtHostGetDevicePointer", "pDevice");
  FAILS(aclrtHostGetDevicePointer(&seen, &seen, 0), 507911, "aclrtHostGetDevicePointer");
  FAILS(aclrtHostUnregister(own + 1), 507911, "aclrtHostUnregister", "1 bytes inside");
  FAILS(aclrtHostUnregister(host), 507911, "aclrtHostUnregister", "aclrtMallocHost");
  FAILS(aclrtHostUnregister(NULL), 100000, "aclrtHostUnregister", "NULL");
  OK_OR_SAY(aclrtHostUnregister(own));
  FAILS(aclrtHostUnregister(own), 507911, "aclrtHostUnregister", "unknown");
  OK_OR_SAY(aclrtHostUnregister(own + next));
}

static void an_overlapped_range_is_named(void **state) {
  (void)state;
  SKIP_ON_CUDA("a GPU takes whole pages");
  static _Alignas(4096) char own[8192];
  void *seen = NULL;
  OK_OR_SAY(aclrtHostRegister(own + 128, 64, ACL_HOST_REGISTER_MAPPED, &seen));
  FAILS(aclrtHostRegister(own, 4096, ACL_HOST_REGISTER_MAPPED, &seen), 507910,
        "from aclrtHostRegister that begins 128 bytes behind ptr, 64 bytes");
  FAILS(aclrtHostRegister(own + 130, 4096, ACL_HOST_REGISTER_MAPPED, &seen), 507910,
        "from aclrtHostRegister that begins 2 bytes before ptr, 64 bytes");
  FAILS(aclrtHostRegister(own + 128, 1, ACL_HOST_REGISTER_MAPPED, &seen), 507910,
        "from aclrtHostRegister that begins at ptr too");
  OK_OR_SAY(aclrtHostUnregister(own + 128));
}

/* A backend whose memory is the CPU's, and which looks at what the map says while it works. */
static struct pg_backend watching;
static const void *watched; /* a range that is registered */
static atomic_int known_early, registered_now, registered_wrong, frees;

static aclError watch_fill(int device, const struct pg_fill *fill) {
  if (pg_memory_find(fill->dst).kind != PG_MEMORY_UNKNOWN) atomic_fetch_add(&known_early, 1);
  return pg_backend_cpu.fill(device, fill);
}

static aclError watch_register(int device, void *memory, size_t bytes, bool read_only) {
  (void)device, (void)bytes, (void)read_only;
  if (pg_memory_find(memory).kind != PG_MEMORY_UNKNOWN) atomic_fetch_add(&known_early, 1);
  if (atomic_fetch_add(&registered_now, 1) != 0) atomic_fetch_add(&registered_wrong, 1);
  return ACL_SUCCESS;
}

static void watch_unregister(int device, void *memory) {
  (void)device, (void)memory;
  if (atomic_fetch_sub(&registered_now, 1) != 1) atomic_fetch_add(&registered_wrong, 1);
}

/* As if another thread allocated anew whenever some memory is freed, a hundred times. */
static void watch_free(int device, void *memory) {
  static char places[100][64];
  const int i = atomic_fetch_add(&frees, 1);
  const struct pg_memory more = {
      .kind = PG_MEMORY_DEVICE, .base = places[i % 100], .bytes = 64, .device = {&watching, 0}};
  if (i < 100) assert_int_equal(pg_memory_add(&more), PG_MEMORY_ADDED);
  if ((char *)memory < places[0] || (char *)memory >= (char *)places + sizeof places)
    pg_backend_cpu.free(device, memory);
}

static int set_up_watch(void **state) {
  void *context;
  if (set_up_device(state) != 0) return 1;
  watching = pg_backend_cpu;
  watching.fill = watch_fill;
  watching.host_register = watch_register;
  watching.host_unregister = watch_unregister;
  atomic_store(&known_early, 0);
  atomic_store(&registered_wrong, 0);
  const struct pg_device device = {&watching, 0};
  if (pg_context_create("test", &device, 0, false, &context) != ACL_SUCCESS) return 1;
  pg_context_make_current(context);
  return 0;
}

static void memory_is_complete_before_it_is_known(void **state) {
  (void)state;
  char own[64];
  void *memory = NULL, *host = NULL, *seen = NULL;
  OK_OR_SAY(aclrtMalloc(&memory, 33, NORMAL));
  OK_OR_SAY(aclrtMallocHost(&host, 33));
  OK_OR_SAY(aclrtHostRegister(own, sizeof own, ACL_HOST_REGISTER_MAPPED, &seen));
  OK_OR_SAY(aclrtHostUnregister(own));
  OK_OR_SAY(aclrtFree(memory));
  OK_OR_SAY(aclrtFreeHost(host));
  assert_int_equal(atomic_load(&known_early), 0);
  assert_int_equal(atomic_load(&registered_now), 0);
}

static void *register_again_and_again(void *context) {
  void *range = (void *)(uintptr_t)watched;
  pg_context_make_current(context);
  for (int i = 0; i < 2000; i++)
    if (aclrtHostRegisterV2(range, 64, 0) == ACL_SUCCESS) (void)aclrtHostUnregister(range);
  return NULL;
}

static void the_map_and_the_backend_agree_on_what_is_registered(void **state) {
  (void)state;
  char own[64];
  pthread_t threads[3];
  watched = own;
  for (size_t i = 0; i < LENGTH(threads); i++)
    assert_int_equal(
        pthread_create(&threads[i], NULL, register_again_and_again, pg_context_current_handle()),
        0);
  for (int i = 0; i < 200; i++) pg_memory_release_all();
  for (size_t i = 0; i < LENGTH(threads); i++) (void)pthread_join(threads[i], NULL);
  pg_memory_release_all();
  assert_int_equal(atomic_load(&registered_wrong), 0);
  assert_int_equal(atomic_load(&registered_now), 0);
}

static void releasing_all_ends_while_others_allocate(void **state) {
  (void)state;
  void *memory;
  for (int i = 0; i < 3; i++) OK_OR_SAY(aclrtMalloc(&memory, 8, NORMAL));
  watching.free = watch_free;
  atomic_store(&frees, 0);
  pg_memory_release_all();
  const int first = atomic_load(&frees);
  atomic_store(&frees, 100); /* no more comes */
  pg_memory_release_all();
  assert_int_equal(first, 3);
  assert_int_equal(atomic_load(&frees), 103);
}

static void registering_is_checked(void **state) {
  (void)state;
  char own[8];
  void *seen = NULL;
  const aclrtHostRegisterType mapped = ACL_HOST_REGISTER_MAPPED;
  FAILS(aclrtHostRegister(NULL, 8, mapped, &seen), 100000, "aclrtHostRegister", "ptr is NULL");
  FAILS(aclrtHostRegister(own, 8, mapped, NULL), 100000, "aclrtHostRegister", "devPtr is NULL");
  FAILS(aclrtHostRegister(own, 0, mapped, &seen), 100000, "aclrtHostRegister", "size is 0");
  FAILS(aclrtHostRegister(own, UINT64_MAX, mapped, &seen), 100000, "aclrtHostRegister", "beyond");
  FAILS(aclrtHostRegister(own, 8, (aclrtHostRegisterType)1, &seen), 100000, "type is 1");
  FAILS(aclrtHostRegisterV2(NULL, 8, 0), 100000, "aclrtHostRegisterV2", "ptr is NULL");
  FAILS(aclrtHostRegisterV2(own, 0, 0), 100000, "aclrtHostRegisterV2", "size is 0");
  FAILS(aclrtHostRegisterV2(own, 8, 1), 100000, "aclrtHostRegisterV2", "flag is 0x1");
  FAILS(aclrtHostUnregister(own), 507911, "aclrtHostUnregister");
}

static void free_and_total_bytes_are_real(void **state) {
  (void)state;
  static const aclrtMemAttr real[] = {ACL_DDR_MEM, ACL_HBM_MEM, ACL_HBM_MEM_NORMAL, ACL_MEM_NORMAL};
  static const aclrtMemAttr none[] = {ACL_HBM_MEM_HUGE1G, ACL_DDR_MEM_P2P_HUGE, ACL_MEM_P2P_NORMAL,
                                      (aclrtMemAttr)18, (aclrtMemAttr)-1};
  const size_t machine = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
  size_t available = 0, total = 0;
  for (size_t i = 0; i < LENGTH(real); i++) {
    OK_OR_SAY(aclrtGetMemInfo(real[i], &available, &total));
    if (!on_cuda()) assert_int_equal(total, machine);
    assert_true(available > 0 && available < total);
  }
  for (size_t i = 0; i < LENGTH(none); i++) {
    OK_OR_SAY(aclrtGetMemInfo(none[i], &available, &total));
    assert_true(available == 0 && total == 0);
  }
  FAILS(aclrtGetMemInfo(ACL_HBM_MEM, NULL, &total), 100000, "aclrtGetMemInfo", "free is NULL");
  FAILS(aclrtGetMemInfo(ACL_HBM_MEM, &available, NULL), 100000, "aclrtGetMemInfo", "total");
}

static void usage_follows_allocation(void **state) {
  (void)state;
  aclrtMemUsageInfo before, during, after;
  size_t entries = 0;
  void *memory = NULL;
  OK_OR_SAY(aclrtGetMemUsageInfo(0, &before, 1, &entries));
  assert_int_equal(entries, 1);
  OK_OR_SAY(aclrtMalloc(&memory, 1 << 20, NORMAL));
  OK_OR_SAY(aclrtGetMemUsageInfo(0, &during, 1, &entries));
  OK_OR_SAY(aclrtFree(memory));
  OK_OR_SAY(aclrtGetMemUsageInfo(0, &after, 1, &entries));
  assert_int_equal(during.curMemSize, before.curMemSize + (1 << 20) + 32);
  assert_int_equal(after.curMemSize, before.curMemSize);
  assert_true(after.memPeakSize >= during.curMemSize);
  FAILS(aclrtGetMemUsageInfo(0, NULL, 1, &entries), 100000, "aclrtGetMemUsageInfo", "NULL");
  FAILS(aclrtGetMemUsageInfo(0, &after, 1, NULL), 100000, "aclrtGetMemUsageInfo", "outputNum");
  FAILS(aclrtGetMemUsageInfo(0, &after, 0, &entries), 100000, "aclrtGetMemUsageInfo", "inputNum");
}

static void cache_upkeep_checks_its_arguments(void **state) {
  (void)state;
  void *memory = NULL;
  OK_OR_SAY(aclrtMalloc(&memory, 64, NORMAL));
  OK_OR_SAY(aclrtMemFlush(memory, 64));
  OK_OR_SAY(aclrtMemInvalidate(memory, 64));
  FAILS(aclrtMemFlush(NULL, 64), 100000, "aclrtMemFlush", "NULL");
  FAILS(aclrtMemFlush(memory, 0), 100000, "aclrtMemFlush", "size is 0");
  FAILS(aclrtMemInvalidate(NULL, 64), 100000, "aclrtMemInvalidate", "NULL");
  FAILS(aclrtMemInvalidate(memory, 0), 100000, "aclrtMemInvalidate", "size is 0");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(sizes_and_places_are_checked),
      TEST(padding_is_there_and_zero),
      TEST(pages_of_a_gigabyte_have_no_padding),
      TEST(configurations_are_checked),
      TEST(allocating_needs_a_context_and_freeing_none),
      TEST(only_starts_of_living_memory_can_be_freed),
      TEST(free_does_not_wait_unless_told_to),
      TEST(addresses_know_where_they_lie),
      TEST(memory_is_registered_once),
      TEST(an_overlapped_range_is_named),
      WATCHED(memory_is_complete_before_it_is_known),
      WATCHED(the_map_and_the_backend_agree_on_what_is_registered),
      WATCHED(releasing_all_ends_while_others_allocate),
      TEST(registering_is_checked),
      TEST(free_and_total_bytes_are_real),
      TEST(usage_follows_allocation),
      TEST(cache_upkeep_checks_its_arguments),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
