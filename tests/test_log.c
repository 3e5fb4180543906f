/* SPDX-License-Identifier: Apache-2.0 */
/* The log: silent by default, in the documented layout when asked for.  Each case runs in a child
 * process with its own environment. */
#include "expect.h"

#include <dirent.h>
#include <fcntl.h>
#include <regex.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/status.h"

#define STAMP "[0-9]{4}-[0-9]{2}-[0-9]{2}-[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}\\.[0-9]{3}"

struct output {
  char out[65536], err[65536];
};

static void read_back(int file, char *text, size_t room) {
  const ssize_t bytes = pread(file, text, room - 1, 0);
  assert_true(bytes >= 0);
  text[bytes] = '\0';
  close(file);
}

static void enter_child(const char *const *environment, int out, int err) {
  clearenv(); /* whoever runs the tests may have set variables of the build, which are unknown here
               */
  for (; *environment != NULL; environment += 2) setenv(environment[0], environment[1], 1);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
}

/* Runs work in a child whose environment has these pairs of names and values. */
static void run_child(void (*work)(void), const char *const *environment, struct output *output) {
  const int out = memfd_create("out", 0), err = memfd_create("err", 0);
  int status;
  fflush(NULL);
  const pid_t child = fork();
  assert_true(child >= 0 && out >= 0 && err >= 0);
  if (child == 0) {
    enter_child(environment, out, err);
    work();
    fflush(NULL);
    _exit(0);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  read_back(out, output->out, sizeof output->out);
  read_back(err, output->err, sizeof output->err);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    fail_msg("the child ended with status 0x%x: %s", (unsigned)status, output->err);
}

#define RUN(work, output, ...) run_child(work, (const char *const[]){__VA_ARGS__, NULL}, output)
#define STDOUT_ON "ASCEND_LOG_PRINT_TO_STDOUT", "1"

static bool matches(const char *text, const char *pattern) {
  regex_t regex;
  assert_int_equal(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB | REG_NEWLINE), 0);
  const bool found = regexec(&regex, text, 0, NULL, 0) == 0;
  regfree(&regex);
  return found;
}

static void expect_match(const char *text, const char *pattern) {
  if (!matches(text, pattern)) fail_msg("no '%s' in: %s", pattern, text);
}

static void expect_none(const char *text, const char *word) {
  if (strstr(text, word) != NULL) fail_msg("'%s' in: %s", word, text);
}

/* One line of the program at each level, one failure of the library. */
static void say_everything(void) {
  ACL_APP_LOG(ACL_DEBUG, "a debug line");
  ACL_APP_LOG(ACL_INFO, "an info line");
  ACL_APP_LOG(ACL_WARNING, "a warning line");
  ACL_APP_LOG(ACL_ERROR, "an error line, %d", 42);
  (void)aclrtFree(NULL);
}

static void fail_and_finish(void) {
  (void)aclInit(NULL);
  (void)aclrtSetDevice(0);
  (void)aclrtSetDevice(999);
  (void)aclrtSynchronizeStream((aclrtStream)1);
  say_everything();
  (void)aclFinalize();
  (void)aclFinalize();
}

static void nothing_is_printed_by_default(void **state) {
  (void)state;
  struct output o;
  RUN(fail_and_finish, &o, NULL);
  assert_string_equal(o.out, "");
  assert_string_equal(o.err, "");
}

static void a_low_level_alone_prints_nothing(void **state) {
  (void)state;
  struct output o;
  RUN(fail_and_finish, &o, "ASCEND_GLOBAL_LOG_LEVEL", "0", "ASCEND_LOG_PRINT_TO_STDOUT", "0");
  assert_string_equal(o.out, "");
  assert_string_equal(o.err, "");
}

static void lines_have_the_documented_layout(void **state) {
  (void)state;
  struct output o;
  RUN(say_everything, &o, STDOUT_ON);
  expect_match(o.out, "^\\[ERROR\\] APP\\([0-9]+,test_log\\):" STAMP
                      " [0-9]+ say_everything:test_log\\.c:[0-9]+: \"an error line, 42\"$");
  expect_match(o.out, "^\\[ERROR\\] POOLGRAD\\([0-9]+,test_log\\):" STAMP
                      " \\[memory\\.c:[0-9]+\\]aclrtFree: .* is NULL.*$");
  assert_string_equal(o.err, "");
}

/* Where say_places failed by itself. */
static int place_of_failure, place_of_null, place_of_title;

static void say_places(void) {
  (void)aclrtSetDevice(999);
  (void)aclrtSynchronizeStream((aclrtStream)1);
  place_of_failure = __LINE__, pg_fail_with("api", 107000, "a failure");
  place_of_null = __LINE__, pg_fail_null_with("api", 107000, "pointer");
  place_of_title = __LINE__, (void)pg_fail_titled(200000, "api", 561000, "a title");
  printf("%d %d %d\n", place_of_failure, place_of_null, place_of_title);
}

static void lines_name_the_place_of_the_check(void **state) {
  (void)state;
  struct output o;
  int failure, null, title;
  char pattern[128];
  RUN(say_places, &o, STDOUT_ON);
  expect_match(o.out, "\\[device\\.c:[0-9]+\\]aclrtSetDevice: deviceId is 999");
  expect_match(o.out, "\\[stream\\.c:[0-9]+\\]aclrtSynchronizeStream: stream is not a handle");
  expect_none(o.out, "status.c");
  const char *last = strstr(o.out, "a title");
  assert_non_null(last);
  assert_int_equal(sscanf(strchr(last, '\n'), "%d %d %d", &failure, &null, &title), 3);
  snprintf(pattern, sizeof pattern, "\\[test_log\\.c:%d\\]api: a failure", failure);
  expect_match(o.out, pattern);
  snprintf(pattern, sizeof pattern, "\\[test_log\\.c:%d\\]api: pointer is NULL", null);
  expect_match(o.out, pattern);
  snprintf(pattern, sizeof pattern, "\\[test_log\\.c:%d\\]api: a title", title);
  expect_match(o.out, pattern);
}

static void only_errors_are_printed_unless_asked(void **state) {
  (void)state;
  struct output o;
  RUN(say_everything, &o, STDOUT_ON);
  assert_non_null(strstr(o.out, "an error line"));
  expect_none(o.out, "a warning line");
  RUN(say_everything, &o, STDOUT_ON, "ASCEND_GLOBAL_LOG_LEVEL", "nonsense");
  assert_non_null(strstr(o.out, "an error line"));
  expect_none(o.out, "a warning line");
}

static void the_level_decides_what_is_printed(void **state) {
  (void)state;
  static const char *const lines[] = {"[DEBUG] APP", "[INFO] APP", "[WARNING] APP", "[ERROR] APP"};
  static const char *const levels[] = {"0", "1", "2", "3", "4"};
  struct output o;
  for (int level = 0; level <= 4; level++) {
    RUN(say_everything, &o, STDOUT_ON, "ASCEND_GLOBAL_LOG_LEVEL", levels[level]);
    for (int line = 0; line < 4; line++)
      if ((strstr(o.out, lines[line]) != NULL) != (line >= level))
        fail_msg("level %d, '%s': %s", level, lines[line], o.out);
  }
}

static void the_old_name_still_works(void **state) {
  (void)state;
  struct output o;
  RUN(say_everything, &o, "ASCEND_SLOG_PRINT_TO_STDOUT", "1");
  assert_non_null(strstr(o.out, "an error line"));
}

static void the_new_name_wins(void **state) {
  (void)state;
  struct output o;
  RUN(say_everything, &o, "ASCEND_SLOG_PRINT_TO_STDOUT", "1", "ASCEND_LOG_PRINT_TO_STDOUT", "0");
  assert_string_equal(o.out, "");
  RUN(say_everything, &o, "ASCEND_SLOG_PRINT_TO_STDOUT", "0", STDOUT_ON);
  assert_non_null(strstr(o.out, "an error line"));
}

static void a_module_has_its_own_level(void **state) {
  (void)state;
  struct output o;
  RUN(say_everything, &o, STDOUT_ON, "ASCEND_MODULE_LOG_LEVEL", "OTHER=0:APP=1:POOLGRAD=4");
  assert_non_null(strstr(o.out, "an info line"));
  expect_none(o.out, "a debug line");
  expect_none(o.out, "POOLGRAD(");
  RUN(say_everything, &o, STDOUT_ON, "ASCEND_GLOBAL_LOG_LEVEL", "0", "ASCEND_MODULE_LOG_LEVEL",
      "APP=4");
  expect_none(o.out, "APP(");
  assert_non_null(strstr(o.out, "POOLGRAD("));
}

static void say_with_nulls(void) {
  aclAppLog(ACL_ERROR, NULL, "file", 1, "text");
  aclAppLog(ACL_ERROR, "func", NULL, 1, "text");
  aclAppLog(ACL_ERROR, "func", "file", 1, NULL);
  aclAppLog((aclLogLevel)9, "func", "file", 1, "text");
  aclAppLog((aclLogLevel)-1, "func", "file", 1, "text");
}

static void lines_with_a_null_or_a_strange_level_are_ignored(void **state) {
  (void)state;
  struct output o;
  RUN(say_with_nulls, &o, STDOUT_ON, "ASCEND_GLOBAL_LOG_LEVEL", "0");
  assert_string_equal(o.out, "");
}

static void say_much(void) { ACL_APP_LOG(ACL_ERROR, "%0*d", 3000, 7); }
static void say_enough(void) { ACL_APP_LOG(ACL_ERROR, "%0*d", 900, 7); }

static void say_much_about_a_long_function(void) {
  char name[3000];
  memset(name, 'f', sizeof name);
  name[sizeof name - 1] = '\0';
  aclAppLog(ACL_ERROR, name, "file", 1, "text");
}

static void a_long_line_is_cut_with_a_mark(void **state) {
  (void)state;
  struct output o;
  RUN(say_much, &o, STDOUT_ON);
  expect_match(o.out, "0\\.\\.\\.\\[truncated\\]$");
  BETWEEN(strlen(o.out), 900, 1200);
  RUN(say_much_about_a_long_function, &o, STDOUT_ON);
  expect_match(o.out, "f\\.\\.\\.\\[truncated\\]$");
  RUN(say_enough, &o, STDOUT_ON);
  expect_match(o.out, "07\"$");
  expect_none(o.out, "truncated");
}

/* The text of the only file in folder/debug/plog, which is removed with its folders. */
static void take_log(const char *folder, char *text, size_t room) {
  char path[512], name[256] = "";
  snprintf(path, sizeof path, "%s/debug/plog", folder);
  DIR *files = opendir(path);
  assert_non_null(files);
  for (struct dirent *entry = readdir(files); entry != NULL; entry = readdir(files))
    if (entry->d_name[0] != '.') snprintf(name, sizeof name, "%s", entry->d_name);
  closedir(files);
  expect_match(name, "^plog-[0-9]+_[0-9]{17}\\.log$");
  snprintf(path, sizeof path, "%s/debug/plog/%s", folder, name);
  read_back(open(path, O_RDONLY), text, room);
  assert_int_equal(unlink(path), 0);
  static const char *const below[] = {"/debug/plog", "/debug", ""};
  for (int i = 0; i < 3; i++) {
    snprintf(path, sizeof path, "%s%s", folder, below[i]);
    assert_int_equal(rmdir(path), 0);
  }
}

static void a_folder_receives_a_file(void **state) {
  (void)state;
  char folder[] = "/tmp/poolgrad-log-XXXXXX", text[65536];
  struct output o;
  assert_non_null(mkdtemp(folder));
  RUN(say_everything, &o, "ASCEND_PROCESS_LOG_PATH", folder);
  assert_string_equal(o.out, "");
  assert_string_equal(o.err, "");
  take_log(folder, text, sizeof text);
  expect_match(text, "^\\[ERROR\\] APP\\(.*an error line, 42\"$");
  expect_match(text, "^\\[ERROR\\] POOLGRAD\\(.*aclrtFree");
}

static void stdout_is_used_instead_of_the_folder(void **state) {
  (void)state;
  char folder[] = "/tmp/poolgrad-log-XXXXXX";
  struct output o;
  assert_non_null(mkdtemp(folder));
  RUN(say_everything, &o, STDOUT_ON, "ASCEND_PROCESS_LOG_PATH", folder);
  assert_non_null(strstr(o.out, "an error line"));
  assert_int_equal(rmdir(folder), 0);
}

static void a_folder_that_cannot_be_made_is_silence(void **state) {
  (void)state;
  struct output o;
  RUN(say_everything, &o, "ASCEND_PROCESS_LOG_PATH", "/dev/null/nowhere");
  assert_string_equal(o.out, "");
  assert_string_equal(o.err, "");
}

static void change_the_variables(void) {
  ACL_APP_LOG(ACL_ERROR, "before");
  setenv("ASCEND_LOG_PRINT_TO_STDOUT", "1", 1);
  (void)aclInit(NULL);
  ACL_APP_LOG(ACL_ERROR, "after");
  (void)aclFinalize();
}

static void init_reads_the_variables_again(void **state) {
  (void)state;
  struct output o;
  RUN(change_the_variables, &o, NULL);
  expect_none(o.out, "before");
  assert_non_null(strstr(o.out, "after"));
}

static int count_of(const char *text, const char *word) {
  int count = 0;
  for (; (text = strstr(text, word)) != NULL; text += strlen(word)) count++;
  return count;
}

static void init_twice(void) {
  (void)aclInit(NULL);
  (void)aclFinalize();
  (void)aclInit(NULL);
  (void)aclFinalize();
}

static void use_without_init(void) {
  uint32_t count;
  (void)aclrtGetDeviceCount(&count);
  (void)aclrtSetDevice(0);
  (void)aclrtResetDevice(0);
}

#define WARNINGS_ON STDOUT_ON, "ASCEND_GLOBAL_LOG_LEVEL", "2"
#define A_LINE "^\\[WARNING\\] POOLGRAD\\([^)]*\\):" STAMP " "

static void a_misspelt_variable_is_said_once(void **state) {
  (void)state;
  static const struct {
    const char *name, *meant;
  } rows[] = {{"POOLGRAD_THREAD", "THREADS"}, {"POOLGRAD_THRAEDS", "THREADS"},
              {"POOLGRAD_IAS", "ISA"},        {"POOLGRAD_INDEXCHECK", "INDEX_CHECK"},
              {"POOLGRAD_DEVICE", "DEVICES"}, {"POOLGRAD_CUDDA", "CUDA"}};
  static void (*const ways[])(void) = {init_twice, use_without_init};
  struct output o;
  char pattern[256];
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    RUN(ways[i % 2], &o, WARNINGS_ON, rows[i].name, "1", "POOLGRAD_THREADS", "2");
    snprintf(pattern, sizeof pattern,
             A_LINE
             "\\[environment\\.c:[0-9]+\\]%s is set and has no meaning, perhaps POOLGRAD_%s "
             "was meant$",
             rows[i].name, rows[i].meant);
    expect_match(o.out, pattern);
    assert_int_equal(count_of(o.out, rows[i].name), 1 + (i == 0 || i == 4 ? 1 : 0));
    expect_none(o.out, "POOLGRAD_THREADS is set");
  }
}

static void a_strange_variable_is_said_with_the_known_ones(void **state) {
  (void)state;
  struct output o;
  char name[200] = "POOLGRAD_";
  RUN(init_twice, &o, WARNINGS_ON, "POOLGRAD_Q", "1", "POOLGRAD_", "x");
  expect_match(o.out, A_LINE
               "\\[environment\\.c:[0-9]+\\]POOLGRAD_Q is set and has no meaning, "
               "known are:.* POOLGRAD_DEVICES .*POOLGRAD_THREADS$");
  expect_match(o.out, "POOLGRAD_ is set and has no meaning, known are");
  expect_none(o.out, "perhaps");
  expect_none(o.out, "ASCEND_");
  memset(name + 9, 'X', sizeof name - 10);
  RUN(init_twice, &o, WARNINGS_ON, name, "1");
  expect_match(o.out, "POOLGRAD_X{54} is set and has no meaning");
}

static void an_unknown_variable_is_no_error(void **state) {
  (void)state;
  struct output o;
  RUN(init_twice, &o, STDOUT_ON, "POOLGRAD_THREAD", "1", "POOLGRAD_CUDA", "/nowhere/plugin.so");
  assert_string_equal(o.out, "");
  assert_string_equal(o.err, "");
}

static void an_unusable_plugin_is_said_once(void **state) {
  (void)state;
  static const char *const files[] = {"/nowhere/plugin.so", "/", "/proc/self/exe", "libm.so.6"};
  struct output o;
  char pattern[256];
  for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
    RUN(init_twice, &o, WARNINGS_ON, "POOLGRAD_CUDA", files[i]);
    snprintf(pattern, sizeof pattern,
             A_LINE "\\[backends\\.c:[0-9]+\\]POOLGRAD_CUDA is '%s', which cannot be used: .+$",
             files[i]);
    expect_match(o.out, pattern);
    assert_int_equal(count_of(o.out, "POOLGRAD_CUDA is '"), 1);
  }
  RUN(init_twice, &o, WARNINGS_ON, "POOLGRAD_CUDA", "off");
  expect_none(o.out, "POOLGRAD_CUDA");
}

static void say_lines(void) {
  program_invocation_short_name = (char[]){"a\nb"};
  ACL_APP_LOG(ACL_ERROR, "one\r\n[ERROR] APP(1,x): two\t\x1b[0m");
  aclAppLog(ACL_ERROR, "f\nunc", "fi\nle", 1, "text");
  setenv("POOLGRAD_SOC", "x\n[ERROR] POOLGRAD(1,x): three", 1);
  (void)aclInit(NULL);
}

static void values_cannot_make_lines(void **state) {
  (void)state;
  struct output o;
  RUN(say_lines, &o, STDOUT_ON);
  expect_match(o.out,
               "^\\[ERROR\\] APP\\([0-9]+,a\\\\nb\\):.*: "
               "\"one\\\\r\\\\n\\[ERROR\\] APP\\(1,x\\): two\\\\t\\\\x1b\\[0m\"$");
  expect_match(o.out, "f\\\\nunc:fi\\\\nle:1: \"text\"$");
  expect_match(o.out,
               "^\\[ERROR\\] POOLGRAD\\([0-9]+,a\\\\nb\\):.*aclInit: POOLGRAD_SOC is "
               "'x\\\\n\\[ERROR\\] POOLGRAD\\(1,x\\): three'.*$");
  int lines = 0;
  for (const char *p = o.out; *p != '\0'; p++) lines += *p == '\n';
  assert_int_equal(lines, 3);
}

/* The log's clock, which stands still when told to: names of files are then known before. */
static bool clock_stands;

int clock_gettime(clockid_t id, struct timespec *time) {
  if (!clock_stands || id != CLOCK_REALTIME) return (int)syscall(SYS_clock_gettime, id, time);
  *time = (struct timespec){.tv_sec = 1700000000, .tv_nsec = 5000000};
  return 0;
}

static char folder[] = "/tmp/poolgrad-log-XXXXXX";

static const char *in_folder(const char *name) {
  static char path[512];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static const char *plog_name(void) {
  static char name[128];
  const time_t second = 1700000000;
  struct tm local;
  char when[24];
  localtime_r(&second, &local);
  strftime(when, sizeof when, "%Y%m%d%H%M%S", &local);
  snprintf(name, sizeof name, "debug/plog/plog-%d_%s005.log", (int)getpid(), when);
  return name;
}

static void must(bool done) {
  if (!done) _exit(3);
}

static void make(const char *name) { must(mkdir(in_folder(name), 0700) == 0 || errno == EEXIST); }

static void debug_is_a_link(void) {
  must(symlink("victim", in_folder("debug")) == 0);
  say_everything();
}

static void plog_is_a_link(void) {
  make("debug");
  must(symlink("../victim", in_folder("debug/plog")) == 0);
  say_everything();
}

static void in_plog(void) {
  make("debug");
  make("debug/plog");
  clock_stands = true;
}

static void the_file_is_a_link(void) {
  in_plog();
  must(symlink("../../victim/file", in_folder(plog_name())) == 0);
  say_everything();
}

static void the_file_is_a_dangling_link(void) {
  in_plog();
  must(symlink("../../victim/new", in_folder(plog_name())) == 0);
  say_everything();
}

static void the_file_is_a_second_name(void) {
  char file[512];
  in_plog();
  snprintf(file, sizeof file, "%s", in_folder("victim/file"));
  must(link(file, in_folder(plog_name())) == 0);
  say_everything();
}

static void the_file_is_a_pipe(void) {
  in_plog();
  must(mkfifo(in_folder(plog_name()), 0600) == 0);
  say_everything();
}

static void remove_all(const char *path) {
  char command[600];
  snprintf(command, sizeof command, "rm -rf '%s'", path);
  assert_int_equal(system(command), 0);
}

static int count_files(const char *path) {
  int count = 0;
  DIR *files = opendir(path);
  assert_non_null(files);
  for (struct dirent *entry = readdir(files); entry != NULL; entry = readdir(files))
    count += entry->d_name[0] != '.';
  closedir(files);
  return count;
}

static void nothing_is_written_through_links(void **state) {
  (void)state;
  static void (*const traps[])(void) = {debug_is_a_link,    plog_is_a_link,
                                        the_file_is_a_link, the_file_is_a_dangling_link,
                                        the_file_is_a_pipe, the_file_is_a_second_name};
  for (size_t i = 0; i < sizeof traps / sizeof traps[0]; i++) {
    struct output o;
    struct stat file;
    snprintf(folder, sizeof folder, "/tmp/poolgrad-log-XXXXXX");
    assert_non_null(mkdtemp(folder));
    assert_int_equal(mkdir(in_folder("victim"), 0700), 0);
    close(open(in_folder("victim/file"), O_CREAT | O_WRONLY, 0600));
    RUN(traps[i], &o, "ASCEND_PROCESS_LOG_PATH", folder);
    assert_string_equal(o.out, "");
    assert_string_equal(o.err, "");
    assert_int_equal(stat(in_folder("victim/file"), &file), 0);
    if (file.st_size != 0) fail_msg("trap %zu has written", i);
    if (count_files(in_folder("victim")) != 1) fail_msg("trap %zu has made a file", i);
    remove_all(folder);
  }
}

static void say_openly(void) {
  umask(0);
  clock_stands = true;
  say_everything();
  printf("%s", plog_name());
}

static void the_log_is_the_users_own(void **state) {
  (void)state;
  struct output o;
  struct stat found;
  char below[64];
  snprintf(folder, sizeof folder, "/tmp/poolgrad-log-XXXXXX");
  assert_non_null(mkdtemp(folder));
  snprintf(below, sizeof below, "%s/new", folder);
  RUN(say_openly, &o, "ASCEND_PROCESS_LOG_PATH", below);
  static const char *const folders[] = {"new", "new/debug", "new/debug/plog"};
  for (int i = 0; i < 3; i++) {
    assert_int_equal(stat(in_folder(folders[i]), &found), 0);
    assert_int_equal(found.st_mode & 07777, 0700);
  }
  char name[256];
  snprintf(name, sizeof name, "new/%.200s", o.out);
  assert_int_equal(stat(in_folder(name), &found), 0);
  assert_int_equal(found.st_mode & 07777, 0600);
  assert_true(found.st_size > 0);
  remove_all(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nothing_is_printed_by_default),
      cmocka_unit_test(a_low_level_alone_prints_nothing),
      cmocka_unit_test(lines_have_the_documented_layout),
      cmocka_unit_test(lines_name_the_place_of_the_check),
      cmocka_unit_test(only_errors_are_printed_unless_asked),
      cmocka_unit_test(the_level_decides_what_is_printed),
      cmocka_unit_test(the_old_name_still_works),
      cmocka_unit_test(the_new_name_wins),
      cmocka_unit_test(a_module_has_its_own_level),
      cmocka_unit_test(lines_with_a_null_or_a_strange_level_are_ignored),
      cmocka_unit_test(a_long_line_is_cut_with_a_mark),
      cmocka_unit_test(a_folder_receives_a_file),
      cmocka_unit_test(stdout_is_used_instead_of_the_folder),
      cmocka_unit_test(a_folder_that_cannot_be_made_is_silence),
      cmocka_unit_test(init_reads_the_variables_again),
      cmocka_unit_test(a_misspelt_variable_is_said_once),
      cmocka_unit_test(a_strange_variable_is_said_with_the_known_ones),
      cmocka_unit_test(an_unknown_variable_is_no_error),
      cmocka_unit_test(an_unusable_plugin_is_said_once),
      cmocka_unit_test(values_cannot_make_lines),
      cmocka_unit_test(nothing_is_written_through_links),
      cmocka_unit_test(the_log_is_the_users_own),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
