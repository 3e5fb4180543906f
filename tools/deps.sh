#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# deps.sh [what...]: installs the Debian packages that are missing for what is asked for. Says first which, how much that
# is and how to refuse; says nothing and touches nothing when all are there.
#   build     the library: a C compiler, CMake, make          test      all that `make test` uses
#   clang     builds with clang and its sanitizers            lint      static analysis and layout
#   aarch64   the build for that processor, under qemu        package   Debian packages
#   bench     the peers of the benchmarks                     coverage  the reader of gcc's counters
#   docs      the site                                        ci        all of them that .ci/run uses
# POOLGRAD_DEPS=no refuses: then it only names what is missing.
set -euo pipefail
CC=${CC:-}

missing=()  # nothing goes without them
wanted=()   # something is left out without them, with a word
has() { command -v "$1" > /dev/null 2>&1; }
need() {  # need <package> <command that succeeds if it is there>
  local package=$1
  shift
  "$@" > /dev/null 2>&1 || missing+=("$package")
}
want() {
  local package=$1
  shift
  "$@" > /dev/null 2>&1 || wanted+=("$package")
}
compiles() { echo 'int main(void) { return 0; }' | "${@:2}" -x "$1" -o /dev/null - ; }
has_c() {
  if [ -n "$CC" ]; then $CC --version; else has cc || has gcc || has clang; fi
}
compiler_package() {  # Debian names its compilers as they are called
  local name
  name=$(basename "${CC%% *}")
  if [[ ${name:=gcc} =~ ^(gcc|clang)(-[0-9]+)?$ ]]; then echo "$name"; fi
}
has_cxx() { compiles c++ c++ || compiles c++ g++ || compiles c++ clang++; }
has_module() {  # asks Debian's own Python: its packages are no use to another one
  /usr/bin/python3 -c 'import importlib.util as u, sys; sys.exit(not u.find_spec(sys.argv[1]))' "$1"
}
has_venv() { python3 -c 'import ensurepip, venv'; }
clang_runtime() { ls "$(clang -print-resource-dir)"/lib/linux/libclang_rt.asan*.a; }
has_for_arm64() { [ -e "$(aarch64-linux-gnu-gcc -print-file-name="$1")" ]; }
has_header() { echo "#include <$1>" | c++ -x c++ -E - ; }

foreign=
check() {
  case $1 in
    build)
      if ! has_c > /dev/null 2>&1; then
        [ -n "$(compiler_package)" ] || { echo "deps: there is no compiler '$CC' (CC)" >&2 && exit 1; }
        missing+=("$(compiler_package)")
      fi
      need libc6-dev test -e /usr/include/stdio.h
      need cmake has cmake
      need make has make ;;
    test)
      check build
      need pkg-config has pkg-config
      need libcmocka-dev pkg-config --exists cmocka
      need python3 has python3
      need binutils has readelf
      want g++ has_cxx ;;  # the headers as C++; gcc and clang both bring one
    clang)
      need clang has clang
      local version
      version=$(clang -dumpversion 2> /dev/null | cut -d. -f1) || version=
      need "libclang-rt-${version:+$version-}dev" clang_runtime ;;
    lint)
      check clang
      need clang-tidy has clang-tidy
      need clang-format has clang-format
      need cppcheck has cppcheck ;;
    aarch64)
      [ "$(uname -m)" != aarch64 ] || return 0  # such a machine tests itself
      want gcc-aarch64-linux-gnu has aarch64-linux-gnu-gcc
      want libc6-dev-arm64-cross has_for_arm64 crt1.o
      want qemu-user has qemu-aarch64
      has_for_arm64 libcmocka.so 2> /dev/null || { wanted+=(libcmocka-dev:arm64) && foreign=arm64; } ;;
    coverage) need gcovr has gcovr ;;
    package)
      need dpkg-dev has dpkg-shlibdeps
      need file has file ;;
    docs)
      need python3 has python3
      need python3-venv has_venv ;;
    bench)
      need python3 has python3
      python3 -c 'import torch' 2> /dev/null || want python3-torch has_module torch
      want libdnnl-dev has_header dnnl.hpp ;;
    ci)
      for part in test lint aarch64 package docs; do check $part; done
      need musl-tools has musl-gcc
      need valgrind has valgrind
      need debootstrap has debootstrap
      [ "$(uname -m)" != x86_64 ] || need qemu-user has qemu-x86_64
      need python3-numpy has_module numpy
      want python3-torch has_module torch ;;  # not every Debian has it
    *)
      echo "deps.sh: '$1' is none of build, test, clang, lint, aarch64, package, bench, coverage, docs, ci" >&2
      exit 2 ;;
  esac
}
for what in "${@:-test}"; do check "$what"; done
[ ${#missing[@]} -gt 0 ] || [ ${#wanted[@]} -gt 0 ] || exit 0

as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo -n)
give_up() {  # what was only wanted can be done without
  echo "deps: $1; Debian's names of what is missing: ${missing[*]} ${wanted[*]}" >&2
  [ ${#missing[@]} -gt 0 ] || exit 0
  exit 1
}
[ "${POOLGRAD_DEPS:-}" != no ] || give_up "POOLGRAD_DEPS is no, so nothing is installed"
has apt-get || give_up "there is no apt-get here, please install them your way"
"${as_root[@]}" true 2> /dev/null || give_up "installing needs root or sudo without a password"

echo "deps: missing here: ${missing[*]} ${wanted[*]}"
echo "deps: asking apt what they need"
[ -z "$foreign" ] || "${as_root[@]}" dpkg --add-architecture "$foreign"
"${as_root[@]}" apt-get -qq update || [ ${#missing[@]} -eq 0 ]
can_be_had() { LC_ALL=C apt-get -s install --no-install-recommends "$@" > /dev/null 2>&1; }
packages=("${missing[@]}")
for package in "${wanted[@]}"; do
  if can_be_had "${packages[@]}" "$package"; then
    packages+=("$package")
  else
    echo "deps: $package cannot be installed here; what needs it will be left out"
  fi
done
[ ${#packages[@]} -gt 0 ] || exit 0

apt=(apt-get install -y --no-install-recommends "${packages[@]}")
# apt answers with the sizes and, asked to assume a no, does nothing.
sizes=$(LC_ALL=C apt-get --assume-no install --no-install-recommends "${packages[@]}" 2>&1 |
  grep -E '^(Need to get|After this operation|[0-9]+ upgraded)' || true)
echo "deps: this is about to run (refuse with Ctrl-C, or POOLGRAD_DEPS=no before the command):"
echo "        ${as_root[*]} ${apt[*]}"
sed 's/^/        /' <<< "$sizes"
if [ -t 0 ] && [ -t 1 ]; then
  read -r -p "deps: go on? [Y/n] " answer
  case $answer in [nN]*) give_up "refused" ;; esac
fi
# One line for each package: something moves on the screen, and no more.
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive LC_ALL=C "${apt[@]}" -q -o Dpkg::Use-Pty=0 |
  grep --line-buffered -E '^(Get:|Setting up)' | cut -c1-100
