#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# deps.sh [what...]: installs the Debian packages that are missing for what is asked for. Says first which, how much that
# is and how to refuse; says nothing and touches nothing when all are there.
#   build     the library: a C compiler, CMake, make          test      all that `make test` uses
#   clang     builds with clang and its sanitizers            lint      static analysis and layout
#   aarch64   the build for that processor, under qemu        package   Debian packages
#   bench     the peers of the benchmarks                     coverage  the reader of gcc's counters
#   docs      the site                                        ci        all of them that .ci/run uses
# POOLGRAD_DEPS=no refuses: then it only names what is missing. POOLGRAD_DEPS=skip does not even look.
set -euo pipefail
CC=${CC:-}

[ "${POOLGRAD_DEPS:-}" != skip ] || exit 0
here=$(cd "$(dirname "$0")" && pwd)
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
has_headers() { echo '#include <stdio.h>' | ${CC:-cc} -E - || echo '#include <stdio.h>' | clang -E -; }
has_cmake() {  # 3.21 or newer
  [ "$(printf '3.21\n%s\n' "$(cmake --version | sed -n 's/^cmake version //p')" | sort -V | head -n 1)" = 3.21 ]
}
has_sanitizers() { compiles c "$clang" -fsanitize=address; }
has_for_arm64() { [ -e "$(aarch64-linux-gnu-gcc -print-file-name="$1")" ]; }
has_header() { echo "#include <$1>" | c++ -x c++ -E - ; }

foreign=  # a package of another processor, whose packages apt must be told of first
check() {
  case $1 in
    build)
      if ! has_c > /dev/null 2>&1; then
        [ -n "$(compiler_package)" ] || { echo "deps: there is no compiler '$CC' (CC)" >&2 && exit 1; }
        missing+=("$(compiler_package)")
      fi
      need libc6-dev has_headers
      need cmake has_cmake
      need make has make ;;
    test)
      check build
      need pkg-config has pkg-config
      need libcmocka-dev pkg-config --exists cmocka
      need python3 has python3
      need binutils has readelf
      want g++ has_cxx ;;  # the headers as C++; gcc and clang both bring one
    clang)
      local clang=clang version
      case $CC in clang*) clang=$CC ;; esac
      need "$clang" has "$clang"
      version=$("$clang" -dumpversion 2> /dev/null | cut -d. -f1) || version=${clang#clang-}
      need "libclang-rt-${version/clang/}${version:+-}dev" has_sanitizers ;;
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
      has_for_arm64 libcmocka.so 2> /dev/null || foreign=libcmocka-dev:arm64 ;;
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
[ ${#missing[@]} -gt 0 ] || [ ${#wanted[@]} -gt 0 ] || [ -n "$foreign" ] || exit 0

as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo -n)
give_up() {  # what was only wanted can be done without
  echo "deps: $1; Debian's names of what is missing: ${missing[*]} ${wanted[*]} $foreign" >&2
  [ ${#missing[@]} -gt 0 ] || exit 0
  exit 1
}
case ${POOLGRAD_DEPS:-} in
  '' | yes) ;;
  *) give_up "POOLGRAD_DEPS is $POOLGRAD_DEPS, so nothing is installed" ;;
esac
has apt-get || give_up "there is no apt-get here, please install them your way"
"${as_root[@]}" true 2> /dev/null || give_up "installing needs root or sudo without a password"
apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get "$@"; }
update() {
  bash "$here/aloud.sh" "asking apt" "${as_root[@]}" apt-get -qq update ||
    echo "deps: apt-get update failed, going on with the lists that are there" >&2
}

echo "deps: missing here: ${missing[*]} ${wanted[*]} $foreign"
update
packages=("${missing[@]}")
for package in "${wanted[@]}"; do
  if apt -s install --no-install-recommends "${packages[@]}" "$package" > /dev/null 2>&1; then
    packages+=("$package")
  else
    echo "deps: $package cannot be installed here; what needs it will be left out"
  fi
done
[ ${#packages[@]} -gt 0 ] || [ -n "$foreign" ] || exit 0

# apt answers with the sizes and, asked to assume a no, does nothing.
echo "deps: this is about to run (refuse with Ctrl-C, or POOLGRAD_DEPS=no before the command):"
if [ ${#packages[@]} -gt 0 ]; then
  echo "        ${as_root[*]} apt-get install -y --no-install-recommends ${packages[*]}"
  { apt --assume-no install --no-install-recommends "${packages[@]}" 2>&1 || true; } |
    { grep -E '^(Need to get|After this operation|[0-9]+ upgraded)' || true; } | sed 's/^/        /'
fi
if [ -n "$foreign" ]; then
  echo "        ${as_root[*]} dpkg --add-architecture ${foreign#*:} && apt-get update && apt-get install $foreign (1 MB)"
fi
if [ -t 0 ] && [ -t 1 ]; then
  read -r -p "deps: go on? [Y/n] " answer
  case $answer in [nN]*) give_up "refused" ;; esac
fi

# One line for each package: something moves on the screen, and no more.
install() {
  apt install -y --no-install-recommends "$@" -q -o Dpkg::Use-Pty=0 |
    { grep --line-buffered -E '^(Get:|Setting up)' || true; } | cut -c1-100
}
[ ${#packages[@]} -eq 0 ] || install "${packages[@]}" || give_up "apt-get failed"
if [ -n "$foreign" ]; then
  "${as_root[@]}" dpkg --add-architecture "${foreign#*:}"
  update
  install "$foreign" || echo "deps: $foreign cannot be installed here; what needs it will be left out"
fi

missing=() wanted=() foreign=
for what in "${@:-test}"; do check "$what"; done
[ ${#missing[@]} -eq 0 ] || give_up "still not found after the installation"
