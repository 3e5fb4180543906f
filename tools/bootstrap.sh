#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bootstrap.sh [lint|ci|bench|aarch64|coverage]: installs the Debian packages that building and testing need; with lint
# also what linting needs, with aarch64 also what the build for that processor needs, with ci also both, musl, valgrind,
# qemu and what the comparison with PyTorch needs, with bench also the peers of the benchmarks, with coverage also the
# reader of gcc's counters. Says nothing and touches nothing when all are there.
set -euo pipefail

missing=()
wanted=()  # only if they can be had
need() {  # need <package> <command that succeeds if it is there>
  local package=$1
  shift
  "$@" > /dev/null 2>&1 || missing+=("$package")
}
has() { command -v "$1"; }

need gcc has gcc
need g++ has g++
need binutils has readelf
need cmake has cmake
need make has make
need pkg-config has pkg-config
need python3 has python3
need libcmocka-dev pkg-config --exists cmocka

has_module() {  # asks Debian's own Python: its packages are no use to another one
  /usr/bin/python3 -c 'import importlib.util as u, sys; sys.exit(not u.find_spec(sys.argv[1]))' "$1" 2> /dev/null
}
clang_runtime() { ls "$(clang -print-resource-dir)"/lib/linux/libclang_rt.asan*.a; }
if [ "${1:-}" = lint ] || [ "${1:-}" = ci ]; then
  need clang has clang
  need clang-tidy has clang-tidy
  need clang-format has clang-format
  need cppcheck has cppcheck
  version=$(clang -dumpversion 2> /dev/null | cut -d. -f1) || version=
  need "libclang-rt-${version:+$version-}dev" clang_runtime
fi
if [ "${1:-}" = ci ]; then
  need musl-tools has musl-gcc
  need valgrind has valgrind
  [ "$(uname -m)" != x86_64 ] || need qemu-user has qemu-x86_64
  need python3-numpy has_module numpy
  has_module torch || wanted+=(python3-torch)  # not every Debian has it, and its tests skip without it
fi
has_for_arm64() { [ -e "$(aarch64-linux-gnu-gcc -print-file-name="$1" 2> /dev/null)" ]; }
foreign=
# An aarch64 machine tests itself. Without these the check for it skips.
if { [ "${1:-}" = aarch64 ] || [ "${1:-}" = ci ]; } && [ "$(uname -m)" != aarch64 ]; then
  has aarch64-linux-gnu-gcc > /dev/null || wanted+=(gcc-aarch64-linux-gnu)
  has_for_arm64 crt1.o || wanted+=(libc6-dev-arm64-cross)
  has qemu-aarch64 > /dev/null || wanted+=(qemu-user)
  has_for_arm64 libcmocka.so || { wanted+=(libcmocka-dev:arm64) && foreign=arm64; }
fi
if [ "${1:-}" = coverage ]; then
  need gcovr has gcovr
fi
has_header() { echo "#include <$1>" | gcc -x c++ -E - ; }
if [ "${1:-}" = bench ]; then
  python3 -c 'import torch' 2> /dev/null || has_module torch || wanted+=(python3-torch)
  has_header dnnl.hpp > /dev/null 2>&1 || wanted+=(libdnnl-dev)
fi

[ ${#missing[@]} -eq 0 ] && [ ${#wanted[@]} -eq 0 ] && exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  as_root=(sudo -n)
fi
if ! has apt-get > /dev/null || ! "${as_root[@]}" true 2> /dev/null; then
  echo "bootstrap: please install these packages (Debian's names) and run again: ${missing[*]} ${wanted[*]}" >&2
  [ ${#missing[@]} -eq 0 ] && exit 0
  exit 1
fi
install() {
  echo "bootstrap: installing $*"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$@" > /dev/null
}
[ -z "$foreign" ] || "${as_root[@]}" dpkg --add-architecture "$foreign"
"${as_root[@]}" apt-get -qq update || [ ${#missing[@]} -eq 0 ]
[ ${#missing[@]} -eq 0 ] || install "${missing[@]}"
for package in "${wanted[@]}"; do
  install "$package" || echo "bootstrap: $package cannot be installed; what needs it will be left out" >&2
done
