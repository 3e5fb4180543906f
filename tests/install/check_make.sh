#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# check_make.sh: the front door as a user meets it, in a copy of the tree whose path has blanks: the debug build, make run,
# and make install in all its forms. The debug build, because it takes seconds.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
client=$root/tests/install/client.c
tmp=$(mktemp -d)
copy="$tmp/a copy"
export PRESET=debug POOLGRAD_DEPS=no CMAKE_TARGET_MESSAGES=OFF
unset LD_LIBRARY_PATH CMAKE_PREFIX_PATH PKG_CONFIG_PATH ASCEND_HOME_PATH DESTDIR PREFIX MAKEFLAGS MAKELEVEL || true

step=start
finish() {
  local status=$?
  [ $status -eq 0 ] || { [ ! -f "$tmp/log" ] || cat "$tmp/log"; echo "check_make: failed at: $step"; } >&2
  chmod -R u+w "$tmp"
  rm -rf "$tmp"
}
trap finish EXIT
step() { step=$1; echo "-- $1"; }
quiet() { "$@" > "$tmp/log" 2>&1; }
makes() { quiet make -C "$copy" "$@"; }
says() { grep -qF -- "$1" "$tmp/log"; }
contents() { (cd "$1" && find . | LC_ALL=C sort); }
compile() {  # compile <output> <option...>
  local output=$1
  shift
  quiet "${CC:-cc}" "$client" "$@" -o "$output"
}

mkdir "$copy"
(cd "$root" && git ls-files -z --cached --others --exclude-standard | tar --null -T - -cf -) | tar -xf - -C "$copy"

step "make run, in a path with blanks, configured without tests"
makes run
says "examples ran"
[ ! -e "$copy/build/debug/tests" ]

step "compilers that are not there, and a launcher"
! makes build CC=no-such-compiler
says "no-such-compiler"
! makes build CC="gcc -O1 -g"
says "flags go into CFLAGS"
printf '#!/bin/sh\nexec "$@"\n' > "$tmp/launcher"
chmod +x "$tmp/launcher"
makes run CC="$tmp/launcher ${CC:-cc}"
makes run  # in the folder that the launcher's build has left

step "no step is silent for ten seconds, and its status is kept"
status=0
quiet bash "$root/tools/aloud.sh" "waiting" bash -c 'sleep 9; echo partly; exit 3' || status=$?
[ $status -eq 3 ]
says "still waiting, "
says partly

prefix="$tmp/a prefix"
step "make install PREFIX=<path with blanks>"
makes install PREFIX="$prefix"
says "next: source $prefix/set_env.sh"
compile "$tmp/client" -I"$prefix/include" -L"$prefix/lib64" -lascendcl -lnnopbase -lopapi
[ "$(. "$prefix/set_env.sh"; "$tmp/client")" = "client ok" ]
for file in LICENSE README.md CHANGELOG.md docs/runtime.md examples/streams.c; do
  [ -f "$prefix/share/doc/poolgrad/$file" ]
done
step "a debugger finds the lines of the library"
[[ $(readelf -S "$prefix/lib64/libpoolgrad.so") == *debug_line* ]]

step "make install again changes nothing"
contents "$prefix" > "$tmp/before"
makes install PREFIX="$prefix"
contents "$prefix" | diff "$tmp/before" -

step "an installation that fails leaves nothing half done"
rm "$prefix/lib64/libopapi.so"
mkdir "$prefix/lib64/libopapi.so"  # in the way
contents "$prefix" > "$tmp/before"
! makes install PREFIX="$prefix"
says "libopapi.so is in the way"
contents "$prefix" | diff "$tmp/before" -
rmdir "$prefix/lib64/libopapi.so"
if [ "$(id -u)" -ne 0 ]; then  # root may write everywhere
  mkdir "$tmp/closed"
  chmod a-w "$tmp/closed"
  ! makes install PREFIX="$tmp/closed/prefix"
fi

step "what is somebody else's is not replaced"
rm "$prefix/include/acl/acl.h"
makes uninstall PREFIX="$prefix"
[ ! -e "$prefix" ]
mkdir -p "$prefix/include/acl"
echo theirs > "$prefix/include/acl/acl.h"
! makes install PREFIX="$prefix"
says "acl.h is there and not poolgrad's"
[ "$(contents "$prefix")" = $'.\n./include\n./include/acl\n./include/acl/acl.h' ]
rm -r "$prefix"

step "a rename that fails: the list is there, and nothing under other names"
mkdir "$tmp/bin"
printf '#!/bin/sh\ncase "$*" in *libascendcl*) exit 1 ;; esac\nexec /bin/mv "$@"\n' > "$tmp/bin/mv"
chmod +x "$tmp/bin/mv"
! PATH="$tmp/bin:$PATH" makes install PREFIX="$prefix"
says "make uninstall removes both"
[ -z "$(find "$prefix" -name '*.poolgrad-new')" ]
makes uninstall PREFIX="$prefix"
[ ! -e "$prefix" ]

step "another folder for the libraries needs the old one to be removed first, in both orders"
makes install PREFIX="$prefix" OPTIONS=-DCMAKE_INSTALL_LIBDIR=lib
[ -e "$prefix/lib/libpoolgrad.so" ] && [ -L "$prefix/lib64" ]
! makes install PREFIX="$prefix"
says "make uninstall first"
[ -e "$prefix/lib/libpoolgrad.so" ]
makes uninstall PREFIX="$prefix"
makes install PREFIX="$prefix"
! makes install PREFIX="$prefix" OPTIONS=-DCMAKE_INSTALL_LIBDIR=lib
says "make uninstall first"
step "an older version's tree without a list is replaced whole"
rm "$prefix/share/poolgrad/installed"
ln -s ../lib64/cmake "$prefix/share/cmake"
makes install PREFIX="$prefix"
[ ! -e "$prefix/share/cmake" ]
makes uninstall PREFIX="$prefix" # its folders may be somebody else's and stay
[ -z "$(find "$prefix" ! -type d)" ]
rm -r "$prefix"
makes install PREFIX="$prefix"
step "empty and impossible prefixes, and two targets at once"
! makes install PREFIX=
says "PREFIX is empty"
! makes install PREFIX=/
says "PREFIX is /"
makes build install PREFIX=/usr DESTDIR="$tmp/two"
[ ! -e "$tmp/two/usr/set_env.sh" ]

step "make uninstall removes what was installed, and no more"
touch "$prefix/lib64/somebody_elses"
makes uninstall PREFIX="$prefix"
[ "$(contents "$prefix")" = $'.\n./lib64\n./lib64/somebody_elses' ]
! makes uninstall PREFIX="$prefix"
says "there is no poolgrad"

step "DESTDIR"
makes install PREFIX=/opt/poolgrad DESTDIR="$tmp/stage"
says "staged in $tmp/stage/opt/poolgrad, to be used below /opt/poolgrad"
[ -f "$tmp/stage/opt/poolgrad/set_env.sh" ]
makes uninstall PREFIX=/opt/poolgrad DESTDIR="$tmp/stage"
[ ! -e "$tmp/stage/opt" ] || [ -z "$(find "$tmp/stage" ! -type d)" ]

multiarch=$(sed -n 's/^CMAKE_C_LIBRARY_ARCHITECTURE[^=]*=//p; s/^set(CMAKE_C_LIBRARY_ARCHITECTURE "\(.*\)")/\1/p' \
  "$copy"/build/debug/CMakeFiles/*/CMakeCCompiler.cmake | head -1)
step "PREFIX=/usr, whose share/cmake is a folder already"
mkdir -p "$tmp/system/usr/share/cmake"
makes install PREFIX=/usr DESTDIR="$tmp/system"
[ -e "$tmp/system/usr/lib/${multiarch:+$multiarch/}libascendcl.so" ]
[ -e "$tmp/system/usr/lib/${multiarch:+$multiarch/}pkgconfig/poolgrad.pc" ]
[ ! -e "$tmp/system/usr/set_env.sh" ]
[ "$(. "$tmp/system/usr/share/poolgrad/set_env.sh"; "$tmp/client")" = "client ok" ]
step "PREFIX=/usr/local: lib, where the loader looks"
makes install PREFIX=/usr/local DESTDIR="$tmp/system"
[ -e "$tmp/system/usr/local/lib/libpoolgrad.so.0" ]

step "as a part of another project"
mkdir -p "$tmp/parent/build/tree"
touch "$tmp/parent/build/tree/theirs"
cat > "$tmp/parent/CMakeLists.txt" <<PARENT
cmake_minimum_required(VERSION 3.21)
project(parent LANGUAGES C)
add_custom_target(bench)
add_subdirectory("$copy" poolgrad)
add_executable(client "$client")
target_link_libraries(client PRIVATE poolgrad::poolgrad)
PARENT
quiet cmake -S "$tmp/parent" -B "$tmp/parent/build" -DCMAKE_C_FLAGS=-O0
quiet cmake --build "$tmp/parent/build" --parallel "$(nproc)"
[ "$("$tmp/parent/build/client")" = "client ok" ]
[ -e "$tmp/parent/build/tree/theirs" ] && [ ! -e "$tmp/parent/build/CPackConfig.cmake" ]

step "CMAKE_INSTALL_LIBDIR and a static library"
prefix="$tmp/another prefix"
makes install PREFIX="$prefix" OPTIONS="-DCMAKE_INSTALL_LIBDIR=lib/deep -DPOOLGRAD_STATIC=ON"
compile "$tmp/static" -I"$prefix/include" "$prefix/lib/deep/libpoolgrad.a" -lpthread -ldl -lm
[ "$("$tmp/static")" = "client ok" ]
export PKG_CONFIG_PATH="$prefix/lib/deep/pkgconfig"
if command -v pkg-config > /dev/null; then
  eval "compile '$tmp/client' $(pkg-config --cflags --libs poolgrad)"
  [ "$(LD_LIBRARY_PATH="$prefix/lib/deep" "$tmp/client")" = "client ok" ]
fi
sed 's/poolgrad::poolgrad)/poolgrad::poolgrad_static)/; s#\.\./client.c#'"$client#" \
  "$root/tests/install/find_package/CMakeLists.txt" > "$tmp/CMakeLists.txt"
mkdir "$tmp/static_package" && mv "$tmp/CMakeLists.txt" "$tmp/static_package"
quiet cmake -S "$tmp/static_package" -B "$tmp/static_package/build" -DCMAKE_PREFIX_PATH="$prefix"
quiet cmake --build "$tmp/static_package/build"
[ "$("$tmp/static_package/build/client")" = "client ok" ]
! makes install PREFIX="$prefix" OPTIONS="-DCMAKE_INSTALL_LIBDIR=/lib"
says "it may be a folder below the prefix"
echo "make ok"
