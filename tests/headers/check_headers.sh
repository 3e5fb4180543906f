#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# check_headers.sh INCLUDE-DIR
# Compiles the files beside this script in every include style, and every header alone, as C11 and
# C++11 with the compilers in CC and CXX and with gcc and clang where they are, all warnings being
# errors. Stops at the first error.

set -u
[ $# -eq 1 ] || { echo "usage: check_headers.sh INCLUDE-DIR" >&2; exit 2; }
include=$(cd "$1" && pwd) || { echo "no such folder: $1" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
warnings="-Wall -Wextra -Wpedantic -Wconversion -Werror"

# check NAME COMPILER STANDARD LANGUAGE FILE FLAGS...
check() {
  name=$1 compiler=$2 standard=$3 language=$4 file=$5
  shift 5
  # $warnings is a list of words
  if ! "$compiler" -fsyntax-only $warnings "-std=$standard" "$@" -x "$language" "$file"; then
    echo "FAILED $compiler -std=$standard $name" >&2
    exit 1
  fi
  echo "ok $compiler -std=$standard $name"
}

styles() {
  acl=$include/acl aclnn=$include/aclnn aclnnop=$include/aclnnop
  check "style_include" "$@" "$here/style_include.c" -I "$include"
  check "style_acl, acl alone" "$@" "$here/style_acl.c" -I "$acl"
  check "style_acl, acl first" "$@" "$here/style_acl.c" -I "$acl" -I "$include"
  check "style_acl, include first" "$@" "$here/style_acl.c" -I "$include" -I "$acl"
  check "style_aclnn" "$@" "$here/style_aclnn.c" -I "$include" -I "$aclnn"
  check "style_aclnnop" "$@" "$here/style_aclnnop.c" -I "$include" -I "$aclnnop"
  check "style_mixed" "$@" "$here/style_mixed.c" -I "$include" -I "$acl" -I "$aclnn" -I "$aclnnop"
  check "meta_guard" "$@" "$here/meta_guard.c" -I "$include"
  check "style_include, building" "$@" "$here/style_include.c" -I "$include" -DFUNC_VISIBILITY
}

# Each header must need nothing before it. The declaration keeps the file from being empty.
alone() {
  for header in $(cd "$include" && find . -name '*.h' | sed 's|^\./||' | sort); do
    printf '#include "%s"\n#include "%s"\nint header_probe(void);\n' "$header" "$header" >"$probe"
    check "$header alone" "$@" "$probe" -I "$include"
  done
}

probe=$(mktemp) || exit 2
trap 'rm -f "$probe"' EXIT

# Compilers that say the same of their version are one: cc is gcc or clang.
seen=
new_compiler() {
  version=$("$1" --version 2>/dev/null | sed -n '1s/^[^ ]* //p')
  case $seen in *"[$version]"*) return 1 ;; esac
  seen="$seen[$version]"
}

for cc in "${CC:-cc}" gcc clang; do
  command -v "$cc" >/dev/null 2>&1 && new_compiler "$cc" || continue
  styles "$cc" c11 c
  alone "$cc" c11 c
done
[ -n "$seen" ] || { echo "FAILED: no C compiler: CC is '${CC:-cc}'" >&2; exit 1; }

seen=
for cxx in "${CXX-c++}" g++ clang++; do
  command -v "$cxx" >/dev/null 2>&1 && new_compiler "$cxx" || continue
  styles "$cxx" c++11 c++
  alone "$cxx" c++11 c++
  check "client" "$cxx" c++11 c++ "$here/client.cpp" -I "$include"
done
[ -n "$seen" ] || echo "skipped: the headers as C++, there is no C++ compiler here (Debian: g++)"
