#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# check_install.sh <build folder>: installs into a temporary prefix, builds small programs against it in every way
# that programs for CANN are built, then moves the prefix and does it all again.
set -euo pipefail
build=$(cd "${1:?usage: check_install.sh <build folder>}" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
cc=${CC:-cc} cxx=${CXX-c++}
[ -n "$cxx" ] || echo "skipped: the sample in C++, there is no C++ compiler here (Debian: g++)"
tmp=$(mktemp -d)
# Only what set_env.sh says may count.
unset LD_LIBRARY_PATH CMAKE_PREFIX_PATH PKG_CONFIG_PATH ASCEND_HOME_PATH ASCEND_TOOLKIT_HOME ASCEND_OPP_PATH

step="start"
exec 3>&2  # a command under quiet may be the one that ends the script
finish() {
  local status=$?
  [ $status -eq 0 ] || { cat "$tmp/log"; echo "check_install: failed at: $step"; } >&3
  rm -rf "$tmp"
}
trap finish EXIT
step() { step=$1; : > "$tmp/log"; echo "-- $1"; }
quiet() { "$@" > "$tmp/log" 2>&1; }
runs() {  # runs <expected line> <program> [argument...]: in the environment that set_env.sh makes
  local expected=$1 output
  shift
  output=$(set -u; . "$prefix/set_env.sh"; "$@")
  [ "$output" = "$expected" ]
}
in_env() { (. "$prefix/set_env.sh"; "$@"); }

check_tree() {
  step "tree: folders, links and version files"
  local arch file
  arch=$(uname -m)-linux
  for file in include/poolgrad.h include/acl/acl.h include/aclnn/acl_meta.h include/aclnnop/level2 \
      lib64/libpoolgrad.so lib64/libpoolgrad.so.0 \
      lib64/lib{ascendcl,acl_rt,nnopbase,opapi,opapi_nn,opapi_math,aclnn_ops_infer,aclnn_math}.so \
      lib64/lib{hccl,acl_op_compiler,ge_runner,graph,acl_tdt_channel}.so \
      "$arch/include/acl/acl.h" "$arch/lib64/libascendcl.so" bin/setenv.bash \
      share/info/{cann,runtime,toolkit,opp,opp_kernel,ops_{math,nn,transformer,cv,legacy}}/version.info \
      {opp,runtime,compiler}/version.info; do
    step="tree: $file is missing"
    [ -e "$prefix/$file" ]
  done
  step="tree: a link is absolute"
  [ -z "$(find "$prefix" -type l -lname '/*')" ]
}

check_environment() {
  local shell
  for shell in bash dash zsh; do
    command -v $shell > /dev/null || continue
    step "set_env.sh in $shell"
    [ "$($shell -uc ". '$prefix/set_env.sh'; . '$prefix/set_env.sh'; echo \$ASCEND_HOME_PATH:\$ASCEND_OPP_PATH:\$LD_LIBRARY_PATH")" \
      = "$prefix:$prefix/opp:$prefix/lib64" ]
  done
  step "bin/setenv.bash"
  [ "$(. "$prefix/bin/setenv.bash"; echo "$ASCEND_TOOLKIT_HOME")" = "$prefix" ]
}

check_programs() {
  local out=$tmp/$1 version
  mkdir "$out"
  version=$(sed -n 's/^Version=//p' "$prefix/share/info/runtime/version.info")

  step "-lascendcl -lnnopbase -lopapi"
  quiet "$cc" "$here/client.c" -I"$prefix/include" -L"$prefix/lib64" -lascendcl -lnnopbase -lopapi -o "$out/plain"
  runs "client ok" "$out/plain"
  step "aclsysGetVersionStr gives $version"
  runs "client ok" "$out/plain" "$version"

  step "-lacl_rt -lnnopbase -lopapi_nn -lopapi_math"
  quiet "$cc" "$here/client.c" -I"$prefix/include" -L"$prefix/lib64" -lacl_rt -lnnopbase -lopapi_nn -lopapi_math \
    -o "$out/split"
  runs "client ok" "$out/split"

  step "pkg-config poolgrad"
  # shellcheck disable=SC2046
  quiet "$cc" "$here/client.c" $(in_env pkg-config --cflags --libs poolgrad) -o "$out/pkgconfig"
  runs "client ok" "$out/pkgconfig"

  step "find_package(poolgrad)"
  quiet in_env cmake -S "$here/find_package" -B "$out/find_package"
  quiet cmake --build "$out/find_package"
  runs "client ok" "$out/find_package/client"

  if [ -n "$cxx" ]; then
    step "CMake sample of CANN's kind, C++11"
    quiet in_env cmake -S "$here/cann_sample" -B "$out/cann_sample" -DCMAKE_SKIP_RPATH=TRUE
    quiet cmake --build "$out/cann_sample"
    runs "client ok" "$out/cann_sample/client"
  fi

  step "dlopen of libopapi.so alone"
  quiet "$cc" "$here/load.c" -ldl -o "$out/load"
  runs "load ok" "$out/load"
}

prefix=$tmp/prefix
step "install"
quiet cmake --install "$build" --prefix "$prefix"
check_tree
check_environment
check_programs first

step "moved prefix"
mkdir "$tmp/elsewhere"
mv "$prefix" "$tmp/elsewhere/moved"
prefix=$tmp/elsewhere/moved
for program in plain split pkgconfig find_package/client ${cxx:+cann_sample/client}; do
  step "moved prefix: the old $program"
  runs "client ok" "$tmp/first/$program"
done
check_environment
check_programs moved
echo "install ok"
