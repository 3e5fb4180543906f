#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# configure.sh <preset> [option of cmake...]: configures build/<preset>. A folder that was configured for another
# compiler is begun anew, since CMake itself would then forget the preset's options.
set -euo pipefail
preset=$1
shift
cache=build/$preset/CMakeCache.txt
options=()
for option in "$@"; do
  case $option in
    -DCMAKE_C_COMPILER=*)
      asked=$(command -v "${option#*=}") || { echo "configure: there is no compiler ${option#*=} (CC)" >&2; exit 1; }
      used=$(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' "$cache" 2> /dev/null) || used=
      [ -z "$used" ] || [ "$used" = "$asked" ] || rm -rf "$cache" "build/$preset/CMakeFiles"
      option=-DCMAKE_C_COMPILER=$asked ;;  # the whole path: CMake takes the bare name for another one
  esac
  options+=("$option")
done
cmake --preset "$preset" "${options[@]}" > /dev/null
