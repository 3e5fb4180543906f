#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# lint.sh <folder with compile_commands.json> <libpoolgrad.so>: layout, static analysis and the house rules.
set -euo pipefail
compile_commands=${1:?usage: lint.sh <folder with compile_commands.json> <libpoolgrad.so>}
library=${2:?usage: lint.sh <folder with compile_commands.json> <libpoolgrad.so>}
cd "$(dirname "$0")/.."
jobs=$(nproc)

echo "clang-format"
for folder in src include tests bench examples fuzz; do
  [ ! -d $folder ] || find $folder \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' \) -print0
done | xargs -0 -r -P "$jobs" -n 8 clang-format --dry-run -Werror

echo "include guards"
guards=$(grep -rhoE '^#ifndef PG_\w+_(H|CUH)_$' src include tests bench fuzz | sort | uniq -d)
[ -z "$guards" ] || { echo "two files have the same include guard: $guards" >&2 && exit 1; }

# Kernels are compiled for every instruction set and element type: one of these variants is looked at, AVX2 and bf16
# where there is one.
one_each=$compile_commands/lint
mkdir -p "$one_each"
python3 - "$compile_commands/compile_commands.json" >"$one_each/compile_commands.json" <<'EOF'
import json, sys
chosen = {}
for entry in json.load(open(sys.argv[1], encoding='utf-8')):
    if entry['file'] not in chosen or {'-DPG_ISA=avx2', '-DPG_ELEMENT=bf16'} <= set(entry['command'].split()):
        chosen[entry['file']] = entry
json.dump(list(chosen.values()), sys.stdout, indent=0)
EOF

echo "clang-tidy"
# What this processor's build has: the headers of another one's kernel sets are not here.
sed -nE 's|^ *"file": "(.*/src/.*\.c)".*|\1|p' "$one_each/compile_commands.json" | tr '\n' '\0' |
  xargs -0 -r -P "$jobs" -n 1 clang-tidy --quiet -p "$one_each" \
    2> >(grep -vE '^[0-9]+ warnings? generated' >&2)

echo "cppcheck"
# The defines are what -mavx2 -mf16c would say, which it does not read.
# Suppressed: where its parser gives up on C11, and what the compilers check better (integers as pointers).
cppcheck --quiet -j "$jobs" -D__AVX2__ -D__F16C__ -D__FMA__ -D__AVX512F__ -D__AVX512BW__ -D__AVX512DQ__ \
  -D__AVX512VL__ --enable=warning,performance,portability --inline-suppr \
  --error-exitcode=1 \
  --suppress=internalAstError --suppress=CastIntegerToAddressAtReturn \
  --project="$one_each/compile_commands.json" --file-filter='src/*'

echo "gcc -fanalyzer"
# Wrong guesses of gcc 12 are explained here; the kernels are left out, whose paths it does not get to the end of.
analyze() {  # analyze <source>
  local guesses=()
  case $1 in
    # A slot that was given out once has its chunk for ever; slot_at's NULL is for invented handles.
    src/core/handle.c) guesses=(-Wno-analyzer-null-dereference) ;;
    # What tsearch keeps is not lost, though it takes its key as const.
    src/runtime/memory_map.c) guesses=(-Wno-analyzer-malloc-leak) ;;
    # The granules of a reservation have its mappings.
    src/runtime/virtual_memory.c) guesses=(-Wno-analyzer-malloc-leak) ;;
  esac
  gcc -std=c11 -D_GNU_SOURCE= -DFUNC_VISIBILITY -DPOOLGRAD_VERSION='""' -O1 -fPIC -Iinclude -Isrc -fanalyzer -Werror \
    "${guesses[@]}" -c "$1" -o /dev/null
}
export -f analyze
find src -name '*.c' -not -path 'src/cuda/*' -not -path 'src/cpu/kernels/*' -print0 |
  xargs -0 -r -P "$jobs" -I{} bash -c 'analyze {}'

python3 tools/check_includes.py
bash tools/check_symbols.sh "$library"
