/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes become the values of all environment variables that the library reads.  aclInit takes them
 * or refuses them with 100000 and a sentence; what is written to the log are lines of the log and
 * nothing else; and the library works, after a refusal once the variables are gone.
 *
 * POOLGRAD_CUDA is left out: it names code to load, and is read once in a process. */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tiny_call.h"

static const char *const variables[] = {"POOLGRAD_THREADS",
                                        "POOLGRAD_ISA",
                                        "POOLGRAD_STREAM_BYTES",
                                        "POOLGRAD_DEVICES",
                                        "POOLGRAD_INDEX_CHECK",
                                        "POOLGRAD_SOC",
                                        "ASCEND_RT_VISIBLE_DEVICES",
                                        "ASCEND_GLOBAL_LOG_LEVEL",
                                        "ASCEND_MODULE_LOG_LEVEL",
                                        "ASCEND_LOG_PRINT_TO_STDOUT",
                                        "ASCEND_SLOG_PRINT_TO_STDOUT",
                                        "ASCEND_HOME_PATH",
                                        "ASCEND_PROCESS_LOG_PATH"};

enum {
  VARIABLES = sizeof variables / sizeof variables[0],
  LOG_PATH = VARIABLES - 1,
  VALUE_MAX = 300
};

static char folder[] = "/tmp/poolgrad_fuzz_environment_XXXXXX";
static int printed = -1; /* what stdout is, a file */

static char *in_folder(const char *name) {
  static char path[256];
  (void)snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static void remove_logs(const char *below) {
  char plog[512];
  (void)snprintf(plog, sizeof plog, "%s/debug/plog", below);
  DIR *dir = opendir(plog);
  for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;)
    if (entry->d_name[0] != '.') (void)unlinkat(dirfd(dir), entry->d_name, 0);
  if (dir != NULL) (void)closedir(dir);
  (void)rmdir(plog);
  (void)snprintf(plog, sizeof plog, "%s/debug", below);
  (void)rmdir(plog);
}

static void remove_folder(void) {
  remove_logs(folder);
  (void)unlink(in_folder("file"));
  (void)unlink(in_folder("link"));
  (void)unlink(in_folder("stdout"));
  (void)rmdir(folder);
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  (void)argc;
  (void)argv;
  if (mkdtemp(folder) == NULL || atexit(remove_folder) != 0) wrong("'%s' cannot be made", folder);
  const int file = open(in_folder("file"), O_CREAT | O_WRONLY, 0600);
  if (file < 0 || close(file) != 0) wrong("no file");
  if (symlink("/nowhere/at/all", in_folder("link")) != 0) wrong("no link");
  setenv("POOLGRAD_CUDA", "off", 1);
  if (freopen(in_folder("stdout"), "w+", stdout) == NULL) wrong("no stdout");
  printed = open(in_folder("stdout"), O_RDWR);
  if (printed < 0) wrong("no stdout to read");
  return 0;
}

/* --- the values --------------------------------------------------------------------------------
 */

/* Words that mean something, to begin with; what follows them comes from the input. */
static const char *const words[] = {"",
                                    "1",
                                    "cpu",
                                    "cpu,cpu,cpu",
                                    "scalar",
                                    "avx2",
                                    "warn",
                                    "error",
                                    "off",
                                    "Ascend910B1",
                                    "Ascend950PR",
                                    "0,1,2",
                                    "APP=0:POOLGRAD=0",
                                    "99999999999999999999",
                                    "-1",
                                    "cuda:0",
                                    "0",
                                    "\n[ERROR] POOLGRAD(1,x):"};

static void take_value(struct input *in, char value[VALUE_MAX]) {
  enum { WORDS = sizeof words / sizeof words[0] };
  int length = snprintf(value, VALUE_MAX, "%s", words[take_below(in, WORDS)]);
  for (int more = take_below(in, 64); more > 0 && length < VALUE_MAX - 1; more--)
    value[length++] = (char)take(in);
  value[length] = '\0';
}

/* Only places inside the fuzzer's own folder: logs are really written. */
static const char *take_log_path(struct input *in) {
  static char longest[5000];
  switch (take_below(in, 6)) {
    case 0:
      return folder;
    case 1:
      return in_folder("file");
    case 2:
      return in_folder("link");
    case 3:
      return in_folder("not/there");
    case 4:
      memset(longest, 'x', sizeof longest - 1);
      return longest;
    default:
      return "";
  }
}

static void take_environment(struct input *in) {
  char value[VALUE_MAX];
  for (int i = 0; i < VARIABLES; i++) unsetenv(variables[i]);
  while (in->at < in->end) {
    const int i = take_below(in, VARIABLES);
    if (i == LOG_PATH) {
      setenv(variables[i], take_log_path(in), 1);
    } else {
      take_value(in, value);
      setenv(variables[i], value, 1);
    }
  }
}

/* --- the log -----------------------------------------------------------------------------------
 */

/* [LEVEL] MODULE(pid,program):time text, and no control characters in it. */
static void check_line(const char *line, size_t length) {
  static const char *const levels[] = {"[DEBUG] ", "[INFO] ", "[WARNING] ", "[ERROR] "};
  char module[32];
  bool good = false;
  (void)snprintf(module, sizeof module, "POOLGRAD(%d,", (int)getpid());
  for (int i = 0; i < 4; i++) {
    const size_t level = strlen(levels[i]), begin = level + strlen(module);
    good = good || (length > begin && strncmp(line, levels[i], level) == 0 &&
                    strncmp(line + level, module, strlen(module)) == 0);
  }
  for (size_t i = 0; i < length; i++)
    good = good && ((unsigned char)line[i] >= ' ' || line[i] == '\t');
  if (!good) wrong("not a line of the log: '%.*s'", (int)length, line);
}

static void check_log(int file) {
  static char text[1 << 18];
  const ssize_t length = pread(file, text, sizeof text - 1, 0);
  if (length < 0) wrong("the log cannot be read");
  text[length] = '\0';
  if (strlen(text) != (size_t)length) wrong("a NUL in the log");
  for (char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1)
    check_line(line, (size_t)(end - line));
}

static void check_log_files(void) {
  DIR *dir = opendir(in_folder("debug/plog"));
  for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
    struct stat about;
    if (entry->d_name[0] == '.') continue;
    const int file = openat(dirfd(dir), entry->d_name, O_RDONLY | O_NOFOLLOW);
    if (file < 0 || fstat(file, &about) != 0) wrong("a log cannot be opened");
    if ((about.st_mode & 077) != 0) wrong("a log has mode %o", (unsigned)about.st_mode & 0777);
    check_log(file);
    (void)close(file);
  }
  if (dir != NULL) (void)closedir(dir);
}

/* --- a run -------------------------------------------------------------------------------------
 */

static void expect_working(void) {
  const float from[] = {8, -3, 0.5f};
  float to[3];
  uint32_t count = 0;
  if (aclrtGetDeviceCount(&count) != ACL_SUCCESS) { /* none is visible, which is not a mistake */
    if (aclGetRecentErrMsg() == NULL) wrong("no device, and no sentence");
    return;
  }
  NEED(aclrtSetDevice((int32_t)count - 1));
  tiny_call(ACL_FLOAT, 3, 2, from, to);
  for (int i = 0; i < 3; i++)
    if (to[i] != from[i] / 2) wrong("%g / 2 is %g", (double)from[i], (double)to[i]);
  NEED(aclrtResetDevice((int32_t)count - 1));
}

static void ask_versions(void) {
  char version[ACL_PKG_VERSION_MAX_SIZE];
  int32_t number;
  if (aclsysGetVersionStr((char[]){"runtime"}, version) != ACL_SUCCESS &&
      aclGetRecentErrMsg() == NULL)
    wrong("no version, and no sentence");
  if (aclsysGetVersionNum((char[]){"runtime"}, &number) != ACL_SUCCESS &&
      aclGetRecentErrMsg() == NULL)
    wrong("no version number, and no sentence");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct input in = {data, data + size};
  take_environment(&in);
  (void)aclGetRecentErrMsg();
  const int status = aclInit(NULL);
  const char *text = aclGetRecentErrMsg();
  if (status != ACL_SUCCESS && status != ACL_ERROR_INVALID_PARAM) wrong("aclInit gave %d", status);
  if ((status == ACL_SUCCESS) != (text == NULL))
    wrong("aclInit gave %d and the sentence '%s'", status, text == NULL ? "" : text);
  ask_versions();
  if (status == ACL_SUCCESS) {
    expect_working();
    NEED(aclFinalize());
  }
  for (int i = 0; i < VARIABLES; i++) unsetenv(variables[i]);
  NEED(aclInit(NULL));
  expect_working();
  NEED(aclFinalize());
  (void)fflush(stdout);
  check_log(printed);
  check_log_files();
  remove_logs(folder);
  if (ftruncate(printed, 0) != 0) wrong("stdout cannot be emptied");
  rewind(stdout);
  return 0;
}
