#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# configure.sh <preset> [option of cmake...]: configures build/<preset>. CC, if it is set, is a compiler, or a launcher
# such as ccache and a compiler. A folder that was configured for another compiler is begun anew, since CMake itself
# would then forget the preset's options.
set -euo pipefail
fail() {
  echo "configure: $1" >&2
  exit 1
}
preset=$1
shift
# Options that shape an installation hold for the call that gives them.
options=(-UCMAKE_INSTALL_LIBDIR -UPOOLGRAD_STATIC)
read -ra words <<< "${CC:-}"
if [ ${#words[@]} -gt 0 ] && [ "$preset" != aarch64 ]; then
  compiler=${words[-1]}
  case ${#words[@]} in
    1) ;;
    2) options+=(-DCMAKE_C_COMPILER_LAUNCHER="${words[0]}") ;;
    *) compiler=- ;;
  esac
  case $compiler in -*) fail "CC is '$CC', a compiler is required, or a launcher and a compiler; flags go into CFLAGS" ;; esac
  asked=$(command -v "$compiler") || fail "there is no compiler $compiler (CC)"
  cache=build/$preset/CMakeCache.txt
  used=$(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' "$cache" 2> /dev/null) || used=
  [ -z "$used" ] || [ "$used" = "$asked" ] || rm -rf "$cache" "build/$preset/CMakeFiles"
  options+=(-DCMAKE_C_COMPILER="$asked") # the whole path: CMake takes the bare name for another one
fi
cmake --preset "$preset" "${options[@]}" "$@" > /dev/null
