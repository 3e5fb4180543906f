// SPDX-License-Identifier: Apache-2.0
// What a plug-in loader does: open libopapi.so alone and look up everything by name, the runtime's
// functions too.
#include <dlfcn.h>
#include <stdio.h>

int main(void) {
  static const char *const names[] = {"aclCreateTensor", "aclInit", "InitHugeMemThreadLocal",
                                      "aclnnAdd", "aclnnAddGetWorkspaceSize"};
  void *library = dlopen("libopapi.so", RTLD_LAZY);
  if (!library) {
    fprintf(stderr, "load: %s\n", dlerror());
    return 1;
  }
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (!dlsym(library, names[i])) {
      fprintf(stderr, "load: libopapi.so has no %s\n", names[i]);
      return 1;
    }
  }
  puts("load ok");
  return dlclose(library);
}
