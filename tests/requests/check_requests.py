#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_requests.py <library> <function>...: every function of the C library that the library calls and that can fail
for want of memory, threads or files is one of the given ones, which tests/faults.c refuses in turn."""

import subprocess
import sys

# What POSIX and glibc have of that kind; versions for large files and fortified ones count as the plain ones.
SCARCE = set("""
    malloc calloc realloc reallocarray posix_memalign aligned_alloc memalign valloc pvalloc free
    strdup strndup asprintf vasprintf getline getdelim open_memstream fmemopen realpath getcwd get_current_dir_name
    tsearch hcreate hcreate_r hsearch regcomp iconv_open setlocale newlocale wordexp glob scandir
    mmap mremap munmap mprotect madvise mlock mlockall brk sbrk shm_open shmget memfd_create
    fopen fdopen freopen fclose open openat creat close opendir fdopendir closedir dup dup2 dup3 tmpfile mkstemp mkdtemp
    mkdir mkdirat pipe pipe2 socket socketpair eventfd epoll_create epoll_create1 inotify_init inotify_init1 timerfd_create
    signalfd io_setup popen pclose dlopen dlmopen getaddrinfo
    pthread_create pthread_join pthread_detach pthread_attr_init pthread_key_create pthread_setspecific pthread_atfork
    thrd_create tss_create tss_set mtx_init cnd_init sem_open fork vfork clone posix_spawn posix_spawnp system
""".split())
# Not here: pthread_mutex_init, pthread_cond_init and their attributes. POSIX lets them fail; glibc's and musl's write a
# few words and cannot.


def plain(name):
    """open64 and __open_2 are open, __strdup is strdup."""
    name = name.split("@")[0]
    if name.startswith("__"):
        name = name[2:].removesuffix("_chk").removesuffix("_2")
    return name.removesuffix("64")


def main():
    library, hooked = sys.argv[1], set(sys.argv[2:])
    lines = subprocess.run(["nm", "-D", "--undefined-only", library], check=True, capture_output=True, text=True).stdout
    called = {line.split()[-1].split("@")[0] for line in lines.splitlines()}
    if "__register_atfork" in called:  # what glibc's pthread_atfork, a function in the caller's own file, calls
        called.add("pthread_atfork")
    if "malloc" not in called:
        sys.exit(f"{library} does not call malloc: this looks at the wrong thing")
    missed = sorted(name for name in called if plain(name) in SCARCE and name not in hooked)
    for name in missed:
        print(f"{name}: the library calls it, and no test can refuse it: add it to tests/faults.c and to the list in "
              "tests/CMakeLists.txt")
    print(f"{len(called & hooked)} functions of the system that the library calls can be refused")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
