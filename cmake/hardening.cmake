# SPDX-License-Identifier: Apache-2.0
# What makes a mistake in the library hard to use against the program around it. Every flag is asked for first: a
# compiler that lacks one leaves it out. tools/check_hardening.sh looks whether the built file has them.
include(CheckCCompilerFlag)
include(CheckCSourceCompiles)
include(CheckLinkerFlag)

set(hardening "")
set(CMAKE_REQUIRED_FLAGS -Werror) # clang only warns of a flag that its processor has no use for
foreach(flag -fstack-protector-strong -fstack-clash-protection -fcf-protection=full -mbranch-protection=standard)
  string(MAKE_C_IDENTIFIER "has${flag}" known)
  check_c_compiler_flag(${flag} ${known})
  if(${known})
    list(APPEND hardening ${flag})
  endif()
endforeach()

# Level 3 is asked of compiler and libc together: glibc warns where it takes 3 for 2. Some distributions define a level
# by themselves, and a second definition would be a warning: theirs is taken back first. It needs the optimiser, and
# it would hide from a sanitizer what that watches itself.
set(CMAKE_REQUIRED_FLAGS "-O2 -Werror -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3")
check_c_source_compiles([[
  #include <string.h>
  int main(int count, char **words) { return __builtin_dynamic_object_size(words[count - 1], 0) == strlen(words[0]); }
]] has_fortify_3)
unset(CMAKE_REQUIRED_FLAGS)
set(fortify "")
if(NOT sanitize)
  set(fortify "$<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=$<IF:$<BOOL:${has_fortify_3}>,3,2>>")
endif()

# A frame of more than two pages does not belong on a stack that a program chose. A worker's scratch lies on the stack
# that the library chose for it. Sanitizers and -O0 make frames of other sizes.
set(frames "")
if(NOT sanitize)
  set(frames $<$<NOT:$<CONFIG:Debug>>:-Wframe-larger-than=8192>)
  set_property(SOURCE src/cpu/workers.c APPEND PROPERTY
    COMPILE_OPTIONS $<$<NOT:$<CONFIG:Debug>>:-Wframe-larger-than=1150000>)
endif()

# All addresses are bound and made read-only before the first call; no page is both written and executed.
function(harden target)
  target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:C>:${hardening};${fortify};${frames}>")
  list(JOIN hardening "," for_nvcc)
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${for_nvcc}>)
  get_target_property(type ${target} TYPE)
  if(NOT type STREQUAL OBJECT_LIBRARY)
    target_link_options(${target} PRIVATE LINKER:-z,relro,-z,now,-z,noexecstack)
  endif()
endfunction()

# The mark that a file keeps to CET is lost when one object lacks it, and Debian's start files do. The shadow stack asks
# nothing of them; of their code only _init and _fini are reached by indirect branches, and those do nothing here, as
# constructors have a list of their own. With names that nothing defines the two are left out, so the mark is true.
check_linker_flag(C LINKER:-z,ibt,-z,shstk has_linker_cet)
function(mark_cet target)
  if(has_fcf_protection_full AND has_linker_cet)
    target_link_options(${target} PRIVATE LINKER:-z,ibt,-z,shstk LINKER:-init,pg_no_init,-fini,pg_no_fini)
  endif()
endfunction()
