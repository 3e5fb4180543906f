/* SPDX-License-Identifier: Apache-2.0 */
/* How the library starts and ends, and what the environment tells it. Each check has a process of
 * its own, because the first call fixes what follows. */
#include <sys/mman.h>
#include <sys/stat.h>

#include "apart.h"
#include "poolgrad.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

/* A file with this text that goes with the process. */
static const char *file_with(const char *text, char path[static 64]) {
  const int file = memfd_create("acl.json", 0);
  assert_true(file >= 0);
  assert_int_equal(write(file, text, strlen(text)), strlen(text));
  (void)snprintf(path, 64, "/proc/self/fd/%d", file);
  return path;
}

static void a_second_init_counts_and_says_so(void **state) {
  (void)state;
  uint64_t left = 99;
  OK_OR_SAY(aclInit(NULL));
  FAILS(aclInit(NULL), 100002, "aclInit", "already initialised", "reference 2");
  FAILS(aclInit(""), 100002, "aclInit", "reference 3");
  OK_OR_SAY(aclFinalizeReference(&left));
  assert_int_equal(left, 2);
  OK_OR_SAY(aclrtSetDevice(0));
}

static void finalize_ends_every_reference(void **state) {
  (void)state;
  OK_OR_SAY(aclInit(NULL));
  assert_int_equal(aclInit(NULL), 100002);
  OK_OR_SAY(aclFinalize());
  FAILS(aclFinalize(), 100037, "aclFinalize", "already finalised");
  FAILS(aclFinalizeReference(NULL), 100037, "aclFinalizeReference", "aclInit");
}

static void the_first_finalize_needs_no_init(void **state) {
  (void)state;
  OK_OR_SAY(aclFinalize());
  FAILS(aclFinalize(), 100037, "aclFinalize", "aclInit");
  OK_OR_SAY(aclInit(NULL));
  OK_OR_SAY(aclFinalize());
}

static void references_are_taken_back_one_by_one(void **state) {
  (void)state;
  uint64_t left = 99;
  int32_t device;
  OK_OR_SAY(aclInit(NULL));
  assert_int_equal(aclInit(NULL), 100002);
  OK_OR_SAY(aclrtSetDevice(0));
  OK_OR_SAY(aclFinalizeReference(&left));
  assert_int_equal(left, 1);
  OK_OR_SAY(aclrtGetDevice(&device));
  OK_OR_SAY(aclFinalizeReference(&left));
  assert_int_equal(left, 0);
  FAILS(aclrtGetDevice(&device), 107002, "aclrtGetDevice", "destroyed");
  FAILS(aclFinalizeReference(&left), 100037, "aclFinalizeReference", "0");
  OK_OR_SAY(aclInit(NULL));
  OK_OR_SAY(aclFinalizeReference(NULL));
}

static void a_missing_file_is_named(void **state) {
  (void)state;
  FAILS(aclInit("/nowhere/acl.json"), 100003, "aclInit", "/nowhere/acl.json");
  FAILS(aclInit("/"), 100003, "aclInit", "'/'");
  FAILS(aclFinalizeReference(NULL), 100037, "aclFinalizeReference", "0");
}

/* Opening a pipe that nobody writes to would wait for ever. */
static void what_is_no_regular_file_is_refused(void **state) {
  (void)state;
  char folder[] = "/tmp/poolgrad-init-XXXXXX", pipe_path[64], link_path[64], socket_path[64];
  assert_non_null(mkdtemp(folder));
  snprintf(pipe_path, sizeof pipe_path, "%s/pipe", folder);
  snprintf(link_path, sizeof link_path, "%s/link", folder);
  snprintf(socket_path, sizeof socket_path, "%s/socket", folder);
  assert_int_equal(mkfifo(pipe_path, 0600), 0);
  assert_int_equal(symlink(pipe_path, link_path), 0);
  assert_int_equal(mknod(socket_path, S_IFSOCK | 0600, 0), 0);
  (void)alarm(60); /* ends the process if it hangs */
  const char *const paths[] = {pipe_path, link_path, "/dev/zero", "/dev/null", folder};
  for (size_t i = 0; i < LENGTH(paths); i++)
    FAILS(aclInit(paths[i]), 100003, "aclInit", paths[i], "not a regular file");
  FAILS(aclInit(socket_path), 100003, "aclInit", "socket", "cannot be opened");
  (void)alarm(0);
  (void)unlink(pipe_path), (void)unlink(link_path), (void)unlink(socket_path);
  assert_int_equal(rmdir(folder), 0);
}

static void text_that_is_no_json_object_is_refused(void **state) {
  (void)state;
  static const char *const texts[] = {
      "",
      "   ",
      "{",
      "}",
      "[]",
      "null",
      "{]",
      "{} x",
      "{}{}",
      "{\"a\"}",
      "{\"a\":}",
      "{a:1}",
      "{'a':1}",
      "{\"a\":1,}",
      "{,}",
      "{\"a\":01}",
      "{\"a\":1.}",
      "{\"a\":.5}",
      "{\"a\":+1}",
      "{\"a\":1e}",
      "{\"a\":tru}",
      "{\"a\":\"\n\"}",
      "{\"a\":-}",
      "{\"a\":[1,]}",
      "{\"a\":\"\\x\"}",
      "{\"a\":\"\\u12g4\"}",
      "{\"a\":\"b",
      "{\"a\" 1}",
      "{\"a\":1 \"b\":2}",
      "{\"a\":1} // c",
      "{\"a\":[1 2]}",
  };
  char path[64];
  for (size_t i = 0; i < LENGTH(texts); i++)
    if (aclInit(file_with(texts[i], path)) != 100006) fail_msg("accepted: %s", texts[i]);
  (void)aclGetRecentErrMsg();
  FAILS(aclInit(file_with("{", path)), 100006, "aclInit", path, "JSON");
  FAILS(aclFinalizeReference(NULL), 100037, "aclFinalizeReference", "0");
}

static void any_json_object_is_accepted(void **state) {
  (void)state;
  static const char *const texts[] = {
      "{}",
      " \t\r\n{ } \n",
      "{\"dump\":{\"dump_list\":[]},\"profiler\":{},\"err_msg_mode\":\"1\"}",
      "{\"a\":[true,false,null,0,-0,-1.5e+3,10E-2,{\"b\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\"}]}",
      "{\"\":\"\xc3\xa9\", \"a\" : [ ] , \"a\":1}",
  };
  char path[64];
  for (size_t i = 0; i < LENGTH(texts); i++) {
    if (aclInit(file_with(texts[i], path)) != 0) fail_msg("refused: %s", texts[i]);
    OK_OR_SAY(aclFinalize());
  }
}

/* Spaces between the braces, on both sides of what is read at once and of what is allowed. */
static void a_file_is_read_whole_up_to_10_mib(void **state) {
  (void)state;
  static const size_t lengths[] = {4094, 4095, 4096, 4097, 8190, 8191, 8192, 10485760, 10485761};
  char *text = malloc(10485762), path[64];
  assert_non_null(text);
  for (size_t i = 0; i < LENGTH(lengths); i++) {
    memset(text, ' ', lengths[i]);
    text[0] = '{';
    text[lengths[i] - 1] = '}';
    text[lengths[i]] = '\0';
    if (lengths[i] > 10485760) {
      FAILS(aclInit(file_with(text, path)), 100006, "configPath is '",
            "larger than 10485760 bytes");
    } else {
      OK_OR_SAY(aclInit(file_with(text, path)));
      OK_OR_SAY(aclFinalize());
      text[lengths[i] - 1] = ' ';
      FAILS(aclInit(file_with(text, path)), 100006, "configPath is '", "not a JSON object");
    }
  }
  free(text);
}

static void a_later_file_must_have_the_first_ones_content(void **state) {
  (void)state;
  char first[64], same[64], other[64];
  OK_OR_SAY(aclInit(file_with("{\"a\":1}", first)));
  FAILS(aclInit(file_with("{\"a\":2}", other)), 100000, "aclInit", "differs");
  FAILS(aclInit(NULL), 100000, "aclInit", "differs");
  FAILS(aclInit(file_with("{\"a\":1}", same)), 100002, "aclInit", "reference 2");
  OK_OR_SAY(aclFinalize());
  OK_OR_SAY(aclInit(other));
}

static void runtime_functions_do_without_init(void **state) {
  (void)state;
  uint32_t count = 0;
  void *memory = NULL;
  OK_OR_SAY(aclrtGetDeviceCount(&count));
  BETWEEN(count, 1, 64);
  OK_OR_SAY(aclrtSetDevice(0));
  OK_OR_SAY(aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST));
  OK_OR_SAY(aclrtMemsetAsync(memory, 64, 1, 64, NULL));
  OK_OR_SAY(aclrtSynchronizeStream(NULL));
  OK_OR_SAY(aclrtFree(memory));
  OK_OR_SAY(aclrtResetDevice(0));
}

static void an_unknown_device_word_is_refused(void **state) {
  const char *text = *state;
  uint32_t count;
  setenv("POOLGRAD_DEVICES", text, 1);
  FAILS(aclInit(NULL), 100000, "aclInit", "POOLGRAD_DEVICES", "cpu");
  FAILS(aclrtGetDeviceCount(&count), 100000, "aclrtGetDeviceCount", "POOLGRAD_DEVICES");
  FAILS(aclrtSetDevice(0), 100000, "aclrtSetDevice", "POOLGRAD_DEVICES");
}

static void unknown_device_words_are_refused(void **state) {
  (void)state;
  static const char *const texts[] = {"abacus", "cpu,abacus", "cpu,", ",", "CPU", "cpu cpu"};
  for (size_t i = 0; i < LENGTH(texts); i++)
    apart(texts[i], an_unknown_device_word_is_refused, texts[i]);
}

static void a_device_word_given_twice_makes_two_devices(void **state) {
  (void)state;
  uint32_t count = 0;
  int32_t device = -1;
  setenv("POOLGRAD_DEVICES", "cpu,cpu", 1);
  OK_OR_SAY(aclInit(NULL));
  OK_OR_SAY(aclrtGetDeviceCount(&count));
  assert_int_equal(count, 2);
  OK_OR_SAY(aclrtSetDevice(1));
  OK_OR_SAY(aclrtGetDevice(&device));
  assert_int_equal(device, 1);
  FAILS(aclrtSetDevice(2), 107001, "aclrtSetDevice", "2");
  assert_non_null(strstr(poolgrad_devices(), "0: cpu"));
  assert_non_null(strstr(poolgrad_devices(), "1: cpu"));
}

static void a_device_may_be_named_by_its_number(void **state) {
  (void)state;
  uint32_t count = 0;
  setenv("POOLGRAD_DEVICES", "cpu:0,cpu", 1);
  OK_OR_SAY(aclInit(NULL));
  OK_OR_SAY(aclrtGetDeviceCount(&count));
  assert_int_equal(count, 2);
}

static void a_wrong_device_number_is_refused(void **state) {
  (void)state;
  static const char *const texts[] = {"cpu:1", "cpu:7", "cpu:", "cpu:-1", "cpu:0x", "cpu:0:0"};
  for (size_t i = 0; i < LENGTH(texts); i++) {
    setenv("POOLGRAD_DEVICES", texts[i], 1);
    FAILS(aclInit(NULL), 100000, "aclInit", "POOLGRAD_DEVICES", texts[i], "1 such device");
  }
}

static void cuda_without_a_device_says_why(void **state) {
  (void)state;
  static const char *const texts[] = {"cuda", "cuda:0", "cpu,cuda"};
  for (size_t i = 0; i < LENGTH(texts); i++) {
    setenv("POOLGRAD_DEVICES", texts[i], 1);
    FAILS(aclInit(NULL), 100000, "aclInit", "POOLGRAD_DEVICES", "'cuda'", "POOLGRAD_CUDA is off");
  }
}

struct plugin {
  const char *file, *reason; /* the latter NULL: the file's own name */
};

static void a_plugin_is_left_out(void **state) {
  const struct plugin *row = *state;
  if (row->file != NULL)
    setenv("POOLGRAD_CUDA", row->file, 1);
  else
    unsetenv("POOLGRAD_CUDA");
  OK_OR_SAY(aclInit(NULL));
  OK_OR_SAY(aclrtSetDevice(0));
  const char *text = poolgrad_devices();
  assert_int_equal(strncmp(text, "0: cpu (", 8), 0);
  const char *last = strstr(text, "\ncuda: not used, ");
  assert_non_null(last);
  assert_non_null(strstr(last, row->reason != NULL ? row->reason : row->file));
  assert_int_equal(text[strlen(text) - 1], '\n');
}

/* These programs lie beside no plug-in. */
static void without_a_plugin_the_cpu_serves(void **state) {
  (void)state;
  char text[64];
  const char *file = file_with("no library at all\n", text);
  const struct plugin rows[] = {{"off", "POOLGRAD_CUDA is off"},
                                {NULL, "no libpoolgrad_cuda.so beside"},
                                {"", "no libpoolgrad_cuda.so beside"},
                                {"/nowhere/plugin.so", NULL},
                                {"plugin.so", NULL},
                                {file, NULL},
                                {"libc.so.6", "poolgrad_cuda_backend"}};
  for (size_t i = 0; i < LENGTH(rows); i++) apart("a plug-in", a_plugin_is_left_out, &rows[i]);
}

static void the_cpus_streams_have_no_cuda_stream(void **state) {
  (void)state;
  aclrtStream stream;
  OK_OR_SAY(aclrtSetDevice(0));
  OK_OR_SAY(aclrtCreateStream(&stream));
  FAILS(poolgrad_cuda_stream(stream) != NULL, 0, "poolgrad_cuda_stream", "device 0", "cpu");
  FAILS(poolgrad_cuda_stream(NULL) != NULL, 0, "poolgrad_cuda_stream", "device 0", "cpu");
  OK_OR_SAY(aclrtDestroyStream(stream));
  FAILS(poolgrad_cuda_stream(stream) != NULL, 0, "poolgrad_cuda_stream", "a destroyed stream");
}

struct visible {
  const char *text;
  int count; /* of three devices; 0: refused */
};

static void a_visible_list_leaves_so_many(void **state) {
  const struct visible *row = *state;
  uint32_t count = 77;
  setenv("POOLGRAD_DEVICES", "cpu,cpu,cpu", 1);
  setenv("ASCEND_RT_VISIBLE_DEVICES", row->text, 1);
  OK_OR_SAY(aclInit(NULL));
  if (row->count == 0) {
    FAILS(aclrtGetDeviceCount(&count), 207004, "aclrtGetDeviceCount", "ASCEND_RT_VISIBLE_DEVICES");
    assert_int_equal(count, 77);
  } else {
    OK_OR_SAY(aclrtGetDeviceCount(&count));
    assert_int_equal(count, row->count);
    OK_OR_SAY(aclrtSetDevice(row->count - 1));
  }
  char named[64];
  snprintf(named, sizeof named, "ASCEND_RT_VISIBLE_DEVICES is '%s' and leaves %d of 3", row->text,
           row->count);
  setenv("ASCEND_RT_VISIBLE_DEVICES", "changed later", 1);
  FAILS(aclrtSetDevice(row->count), 107001, "aclrtSetDevice: deviceId is",
        row->count == 3 ? "there are 3 devices, counted from 0\n" : named);
  if (row->count == 0) FAILS(aclrtGetDeviceCount(&count), 207004, "no device is visible", named);
}

static void visible_devices_are_counted_anew(void **state) {
  (void)state;
  static const struct visible rows[] = {
      {"0,1,2", 3}, {"0,2", 2}, {"2", 1},     {"0,7,1", 1},
      {"1,0", 1},   {"1,1", 1}, {"0,x,2", 1}, {"0,", 1},
      {"", 0},      {"3", 0},   {"x", 0},     {"-1", 0},
      {"0x1", 0},   {",0", 0},  {"0 1", 0},   {"99999999999999999999", 0},
  };
  for (size_t i = 0; i < LENGTH(rows); i++)
    apart(rows[i].text, a_visible_list_leaves_so_many, &rows[i]);
}

static void an_unknown_product_is_refused(void **state) {
  (void)state;
  setenv("POOLGRAD_SOC", "Ascend1000", 1);
  FAILS(aclInit(NULL), 100000, "aclInit", "POOLGRAD_SOC", "Ascend1000", "Ascend910B",
        "Ascend910_93", "Ascend950");
  FAILS(aclFinalizeReference(NULL), 100037, "aclFinalizeReference");
  setenv("POOLGRAD_SOC", "ascend910b", 1);
  FAILS(aclInit(NULL), 100000, "aclInit", "ascend910b");
}

struct product {
  const char *chosen, *name;
  int64_t arch;
};

static void a_product_has_this_name(void **state) {
  const struct product *row = *state;
  int64_t arch = 0;
  if (row->chosen != NULL) setenv("POOLGRAD_SOC", row->chosen, 1);
  assert_string_equal(aclrtGetSocName(), row->name);
  OK_OR_SAY(aclInit(NULL));
  assert_string_equal(aclrtGetSocName(), row->name);
  OK_OR_SAY(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_NPU_ARCH, &arch));
  assert_int_equal(arch, row->arch);
}

static void the_product_is_the_chosen_one(void **state) {
  (void)state;
  static const struct product rows[] = {
      {NULL, "Ascend950PR_9599", 3510},
      {"", "Ascend950PR_9599", 3510},
      {"Ascend910B1", "Ascend910B1", 2201},
      {"Ascend910B", "Ascend910B", 2201},
      {"Ascend910B3", "Ascend910B3", 2201},
      {"Ascend910_93", "Ascend910_93", 2201},
      {"Ascend950", "Ascend950", 3510},
      {"Ascend950PR_9589", "Ascend950PR_9589", 3510},
      {"Ascend950PR_9599", "Ascend950PR_9599", 3510},
      {"Ascend910_95", "Ascend910_95", 3510},
      {"Ascend910_9589", "Ascend910_9589", 3510},
      {"Ascend910_9599", "Ascend910_9599", 3510},
  };
  for (size_t i = 0; i < LENGTH(rows); i++) apart(rows[i].name, a_product_has_this_name, &rows[i]);
}

static void a_wrong_thread_count_is_refused(void **state) {
  (void)state;
  static const char *const texts[] = {"0", "-1", "two", "2x", "1025", "99999999999999999999"};
  for (size_t i = 0; i < LENGTH(texts); i++) {
    setenv("POOLGRAD_THREADS", texts[i], 1);
    FAILS(aclInit(NULL), 100000, "aclInit", "POOLGRAD_THREADS", texts[i], "1024");
  }
}

static void the_thread_count_is_the_devices_cores(void **state) {
  (void)state;
  int64_t cores = 0;
  setenv("POOLGRAD_DEVICES", "cpu", 1);
  setenv("POOLGRAD_THREADS", "3", 1);
  OK_OR_SAY(aclInit(NULL));
  assert_int_equal(poolgrad_threads(), 3);
  OK_OR_SAY(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_AICORE_CORE_NUM, &cores));
  assert_int_equal(cores, 3);
}

static void an_instruction_set_can_be_forced_and_asked_for(void **state) {
  (void)state;
  setenv("POOLGRAD_ISA", "mmx", 1);
  FAILS(aclInit(NULL), 100000, "aclInit", "POOLGRAD_ISA", "mmx", "scalar");
  setenv("POOLGRAD_ISA", "scalar", 1);
  OK_OR_SAY(aclInit(NULL));
  assert_string_equal(poolgrad_isa(), "scalar");
}

static void the_size_to_stream_from_is_a_number(void **state) {
  (void)state;
  static const char *const wrong[] = {"0", "-1", "16M", "much"};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    setenv("POOLGRAD_STREAM_BYTES", wrong[i], 1);
    FAILS(aclInit(NULL), 100000, "aclInit", "POOLGRAD_STREAM_BYTES", wrong[i], "from 1 on");
  }
  setenv("POOLGRAD_STREAM_BYTES", "1048576", 1);
  OK_OR_SAY(aclInit(NULL));
}

static void the_last_error_is_the_runtimes_alone(void **state) {
  (void)state;
  const aclrtLastErrLevel thread = ACL_RT_THREAD_LEVEL;
  assert_int_equal(aclrtPeekAtLastError(thread), 0);
  assert_int_equal(aclrtGetDeviceCount(NULL), 100000);
  assert_int_equal(aclrtPeekAtLastError(thread), 0);
  assert_int_equal(aclrtSetDevice(-1), 107001);
  assert_int_equal(aclrtPeekAtLastError(thread), 107001);
  OK_OR_SAY(aclrtSetDevice(0));
  assert_int_equal(aclrtGetLastError(thread), 107001);
  assert_int_equal(aclrtGetLastError(thread), 0);
  FAILS(aclrtGetLastError((aclrtLastErrLevel)1), 100000, "aclrtGetLastError", "level");
  FAILS(aclrtPeekAtLastError((aclrtLastErrLevel)1), 100000, "aclrtPeekAtLastError", "level");
}

static void a_question_leaves_the_last_error_as_it_is(void **state) {
  (void)state;
  const aclrtLastErrLevel thread = ACL_RT_THREAD_LEVEL;
  int32_t device = 7;
  aclrtContext context = &device;
  FAILS(aclrtGetDevice(&device), 107002, "aclrtGetDevice", "none was set");
  FAILS(aclrtGetCurrentContext(&context), 107002, "aclrtGetCurrentContext", "none was set");
  assert_int_equal(aclrtPeekAtLastError(thread), 0);
  assert_int_equal(aclrtSetDevice(-1), 107001);
  FAILS(aclrtGetDevice(&device), 107002, "aclrtGetDevice");
  FAILS(aclrtGetCurrentContext(&context), 107002, "aclrtGetCurrentContext");
  assert_int_equal(aclrtGetLastError(thread), 107001);
  assert_int_equal(device, 7);
  assert_ptr_equal(context, &device);
  FAILS(aclrtSynchronizeDevice(), 107002, "aclrtSynchronizeDevice"); /* no question */
  assert_int_equal(aclrtGetLastError(thread), 107002);
}

/* Between aclFinalize and the next aclInit, for addresses that mean nothing any more. */
static void freeing_after_finalize_is_no_failure(void **state) {
  (void)state;
  static char own[64];
  void *memory[2], *host[2], *seen;
  OK_OR_SAY(aclInit(NULL));
  OK_OR_SAY(aclrtSetDevice(0));
  for (int i = 0; i < 2; i++) {
    OK_OR_SAY(aclrtMalloc(&memory[i], 64, ACL_MEM_MALLOC_NORMAL_ONLY));
    OK_OR_SAY(aclrtMallocHost(&host[i], 64));
  }
  OK_OR_SAY(aclrtHostRegister(own, sizeof own, ACL_HOST_REGISTER_MAPPED, &seen));
  FAILS(aclrtFree(own + 1), 107000, "aclrtFree", "inside");
  OK_OR_SAY(aclFinalize());
  OK_OR_SAY(aclrtFree(memory[0]));
  OK_OR_SAY(aclrtFreeWithDevSync(memory[1]));
  OK_OR_SAY(aclrtFreeHost(host[0]));
  OK_OR_SAY(aclrtFreeHostWithDevSync(host[1]));
  OK_OR_SAY(aclrtHostUnregister(own));
  assert_null(aclGetRecentErrMsg());
  FAILS(aclrtFree(NULL), 100000, "aclrtFree", "NULL");
  OK_OR_SAY(aclrtSetDevice(0)); /* what is known is still told apart */
  OK_OR_SAY(aclrtMalloc(&memory[0], 64, ACL_MEM_MALLOC_NORMAL_ONLY));
  FAILS(aclrtFreeHost(memory[0]), 107000, "aclrtFreeHost", "from aclrtMalloc");
  FAILS(aclrtFree((char *)memory[0] + 8), 107000, "aclrtFree", "8 bytes inside");
  FAILS(aclrtHostUnregister(memory[0]), 507911, "aclrtHostUnregister", "from aclrtMalloc");
  OK_OR_SAY(aclrtFree(memory[0]));
  OK_OR_SAY(aclInit(NULL));
  FAILS(aclrtFree(own), 107000, "aclrtFree", "unknown");
  FAILS(aclrtFreeHost(own), 107000, "aclrtFreeHost", "unknown");
  FAILS(aclrtHostUnregister(own), 507911, "aclrtHostUnregister", "unknown");
}

static void a_context_that_has_ended_with_all_is_still_named(void **state) {
  (void)state;
  aclrtContext had = NULL, told = NULL;
  OK_OR_SAY(aclInit(NULL));
  OK_OR_SAY(aclrtSetDevice(0));
  OK_OR_SAY(aclrtGetCurrentContext(&had));
  OK_OR_SAY(aclFinalize());
  OK_OR_SAY(aclrtGetCurrentContext(&told));
  assert_ptr_equal(told, had);
  assert_null(aclGetRecentErrMsg());
  FAILS(aclrtSynchronizeDevice(), 107002, "aclrtSynchronizeDevice", "destroyed");
  OK_OR_SAY(aclInit(NULL));
  FAILS(aclrtGetCurrentContext(&told), 107002, "aclrtGetCurrentContext", "destroyed");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      APART(a_second_init_counts_and_says_so),
      APART(finalize_ends_every_reference),
      APART(the_first_finalize_needs_no_init),
      APART(references_are_taken_back_one_by_one),
      APART(a_missing_file_is_named),
      APART(what_is_no_regular_file_is_refused),
      APART(text_that_is_no_json_object_is_refused),
      APART(any_json_object_is_accepted),
      APART(a_file_is_read_whole_up_to_10_mib),
      APART(a_later_file_must_have_the_first_ones_content),
      APART(runtime_functions_do_without_init),
      cmocka_unit_test(unknown_device_words_are_refused),
      APART(a_device_word_given_twice_makes_two_devices),
      APART(a_device_may_be_named_by_its_number),
      APART(a_wrong_device_number_is_refused),
      APART(cuda_without_a_device_says_why),
      cmocka_unit_test(without_a_plugin_the_cpu_serves),
      APART(the_cpus_streams_have_no_cuda_stream),
      cmocka_unit_test(visible_devices_are_counted_anew),
      APART(an_unknown_product_is_refused),
      cmocka_unit_test(the_product_is_the_chosen_one),
      APART(a_wrong_thread_count_is_refused),
      APART(the_thread_count_is_the_devices_cores),
      APART(an_instruction_set_can_be_forced_and_asked_for),
      APART(the_size_to_stream_from_is_a_number),
      APART(the_last_error_is_the_runtimes_alone),
      APART(a_question_leaves_the_last_error_as_it_is),
      APART(freeing_after_finalize_is_no_failure),
      APART(a_context_that_has_ended_with_all_is_still_named),
  };
  setenv("POOLGRAD_CUDA", "off", 1); /* these are the CPU's */
  return cmocka_run_group_tests(tests, NULL, NULL);
}
