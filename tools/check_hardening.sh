#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# check_hardening.sh <libpoolgrad.so>: what cmake/hardening.cmake asks for is in the built file. The same of the CUDA
# plug-in if it lies beside it, but for what the CUDA runtime in it, which comes ready built, does not have.
# READELF and OBJDUMP name the tools of another processor.
set -euo pipefail
lib=${1:?usage: check_hardening.sh <libpoolgrad.so>}
readelf=${READELF:-readelf} objdump=${OBJDUMP:-objdump}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

status=0
complain() {  # complain <sentence>
  echo "$file: $1" >&2
  status=1
}
# Files, not pipes: grep -q would end a pipe early, which pipefail takes for a failure.
holds() { grep -qE "$2" "$tmp/$1"; }  # holds <what readelf showed> <pattern>

check_segments() {
  holds segments ' GNU_RELRO ' || complain "no RELRO segment: relocated addresses stay writable"
  holds dynamic '\(FLAGS(_1)?\).*\b(BIND_NOW|NOW)\b|\(BIND_NOW\)' ||
    complain "no BIND_NOW: functions are bound at their first call, through a writable table"
  holds segments ' GNU_STACK ' || complain "no GNU_STACK segment: the stack would be executable"
  ! holds segments ' GNU_STACK .* RWE ' || complain "asks for an executable stack"
  ! holds segments ' LOAD .* RWE ' || complain "has a segment that is both writable and executable"
  ! holds dynamic 'TEXTREL' || complain "has relocations in its code (TEXTREL)"
}

check_imports() {
  holds symbols ' UND __stack_chk_fail(@|$)' || complain "no function is guarded by the stack protector"
  holds symbols ' UND __[a-z]+_chk(@|$)' || complain "no fortified function is called (_FORTIFY_SOURCE)"
}

# CET on x86-64. On aarch64 the start files decide about the note, so only the code is looked at.
check_branches() {
  case $machine in
    *X86-64*)
      holds notes 'x86 feature:.*\bIBT\b' || complain "not marked for indirect branch tracking (IBT)"
      holds notes 'x86 feature:.*\bSHSTK\b' || complain "not marked for the shadow stack (SHSTK)"
      # What the mark promises for the start files' code, which has no landing pads.
      ! holds dynamic '\((INIT|FINI)\)' || complain "has DT_INIT or DT_FINI, which lack a landing pad" ;;
    *AArch64*)
      grep -qE '\b(bti|paciasp)\b' "$tmp/code" || complain "no landing pads or signed return addresses" ;;
  esac
}

# A frame beyond a page is entered page by page, each touched before the next: a step that is larger, or a whole page
# that is not touched, could jump over the guard page.
check_probes() {
  case $machine in *X86-64*) ;; *) return 0 ;; esac
  # Hexadecimal numbers of one length compare as words; awk alone does not read them.
  LC_ALL=C awk '
    function take(hex) {
      if (hex ~ /^0xffffffff/) return 0 # less than nothing: given back
      if (length(hex) > 6 || (length(hex) == 6 && hex > "0x1000")) print name " takes " hex " bytes at once"
      return hex == "0x1000"
    }
    / <.*>:$/ { name = $2 }
    page && !/(or|mov|test)[a-z]* +\$0x0,(0x[0-9a-f]+)?\(%rsp\)/ { print name " takes a page and does not touch it" }
    { page = 0 }
    match($0, /sub +\$0x[0-9a-f]+,%rsp/) { split($0, word, /[$,]/); page = take(word[2]) }
    match($0, /lea +-0x[0-9a-f]+\(%rsp\),%rsp/) { split($0, word, /-|\(/); take(word[2]) }
  ' "$tmp/code" > "$tmp/leaps"
  [ ! -s "$tmp/leaps" ] || complain "stack frames that are not probed (-fstack-clash-protection):
$(sed 's/^/  /' "$tmp/leaps")"
}

look_at() {
  file=$1
  "$readelf" -lW "$1" > "$tmp/segments"
  "$readelf" -dW "$1" > "$tmp/dynamic"
  "$readelf" -nW "$1" > "$tmp/notes"
  "$readelf" --dyn-syms -W "$1" > "$tmp/symbols"
  "$objdump" -d --no-show-raw-insn "$1" > "$tmp/code"
  machine=$("$readelf" -hW "$1" | grep Machine)
}

look_at "$lib"
check_segments
check_imports
check_branches
check_probes
[ $status -ne 0 ] || echo "hardening ok"
plugin=$(dirname "$lib")/libpoolgrad_cuda.so
if [ -e "$plugin" ]; then
  look_at "$plugin"
  check_segments
  check_imports
fi
exit $status
