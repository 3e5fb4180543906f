/* SPDX-License-Identifier: Apache-2.0 */
/* replay_<target> <file or folder>...: runs a fuzzer's function over kept inputs, without
 * libFuzzer.
 *
 * An input that finds something ends the process, as it would under libFuzzer; its name is the last
 * one on stderr then. */
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

#include "input.h"

static int inputs;

static void replay_file(const char *path) {
  FILE *file = fopen(path, "rb");
  struct stat about;
  if (file == NULL || fstat(fileno(file), &about) != 0) wrong("'%s' cannot be opened", path);
  const size_t size = (size_t)about.st_size;
  uint8_t *data = malloc(size + 1); /* exactly as much is shown, so that a sanitizer sees its end */
  if (data == NULL || fread(data, 1, size, file) != size) wrong("'%s' cannot be read", path);
  (void)fclose(file);
  uint8_t *exact = realloc(data, size > 0 ? size : 1);
  if (exact != NULL) data = exact;
  (void)fprintf(stderr, "%s\n", path);
  (void)LLVMFuzzerTestOneInput(data, size);
  free(data);
  inputs++;
}

static int by_name(const struct dirent **a, const struct dirent **b) {
  return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_visible(const struct dirent *entry) { return entry->d_name[0] != '.'; }

static void replay_folder(const char *path) {
  struct dirent **entries;
  const int count = scandir(path, &entries, is_visible, by_name);
  if (count < 0) wrong("'%s' cannot be read", path);
  for (int i = 0; i < count; i++) {
    char name[4096];
    if ((size_t)snprintf(name, sizeof name, "%s/%s", path, entries[i]->d_name) >= sizeof name)
      wrong("the name of '%s' is too long", entries[i]->d_name);
    replay_file(name);
    free(entries[i]);
  }
  free(entries);
}

int main(int argc, char **argv) {
  (void)LLVMFuzzerInitialize(&argc, &argv);
  for (int i = 1; i < argc; i++) {
    struct stat about;
    if (stat(argv[i], &about) == 0 && S_ISDIR(about.st_mode))
      replay_folder(argv[i]);
    else
      replay_file(argv[i]);
  }
  (void)fprintf(stderr, "%d inputs replayed\n", inputs);
  return inputs == 0; /* a corpus that is not found is no success */
}
