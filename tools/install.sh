#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# install.sh <build folder>: installs the build into PREFIX so that a failure leaves nothing half done: all files are
# written beside their places first, under other names, and only then renamed. Also removes what an older version had
# and this one has not. Refuses to replace files that are not poolgrad's, unless FORCE is yes.
# install.sh --remove: removes what was installed into PREFIX, and the folders that were made for it.
#
# PREFIX and DESTDIR come from the environment. share/poolgrad/installed below the prefix lists all that was installed:
# files, and folders with a / behind.
set -euo pipefail
umask 022
list=share/poolgrad/installed
new=.poolgrad-new

fail() {
  echo "install: $1" >&2
  exit 1
}
is_there() { [ -e "$1" ] || [ -L "$1" ]; }
has_line() { grep -qxF -- "$2" "$1" 2> /dev/null; }

[ -n "${PREFIX:-}" ] || fail "PREFIX is empty, a folder is required"
prefix=$(realpath -ms -- "$PREFIX") # links stay: below DESTDIR those of this machine mean nothing
[ "$prefix" != / ] || fail "PREFIX is /, a folder below it is required, such as /usr"
root=${DESTDIR:+$(realpath -ms -- "$DESTDIR")}$prefix

# remove <list of what to remove>: files first, the list itself behind them, then folders from the innermost on, if
# they are empty. What fails can so be done again.
remove() {
  local entries=$1 entry
  while IFS= read -r entry; do
    case $entry in */ | '' | "$list") ;; *) rm -f -- "$root/$entry" ;; esac
  done < "$entries"
  ! has_line "$entries" "$list" || rm -f -- "$root/$list"
  { grep '/$' "$entries" || true; } | LC_ALL=C sort -r | while IFS= read -r entry; do
    rmdir -- "$root/$entry" 2> /dev/null || true
  done
}

stage=$(mktemp -d)
if [ "$1" = --remove ]; then
  trap 'rm -rf "$stage"' EXIT
  [ -f "$root/$list" ] || fail "there is no poolgrad below $root (no $root/$list)"
  cp -- "$root/$list" "$stage/list"
  remove "$stage/list"
  ! has_line "$stage/list" ./ || rmdir -- "$root" 2> /dev/null || true
  echo "removed from $root"
  exit 0
fi

build=$1
made=$stage/made # folders and files that this run has made so far
entries=$stage/entries old=$stage/old
: > "$made"
: > "$old"
complete=
finish() {
  if [ -z "$complete" ]; then # back to what was
    while IFS= read -r entry; do rm -f -- "$entry"; done < <(grep -v '/$' "$made")
    { tac "$made" | grep '/$' || true; } | while IFS= read -r entry; do rmdir -- "$entry" 2> /dev/null || true; done
    echo "install: nothing was changed below $root" >&2
  fi
  rm -rf "$stage"
}
trap finish EXIT

(unset DESTDIR && cmake --install "$build" --prefix "$stage/tree" > "$stage/log" 2>&1) || { cat "$stage/log" >&2; exit 1; }
mkdir -p "$stage/tree/${list%/*}"
(cd "$stage/tree" && find . -mindepth 1 \( -type d -printf '%P/\n' \) -o -printf '%P\n' | LC_ALL=C sort) > "$entries"

# What is ours already. 0.1.0 left no list; its tree is known by its header, and had these besides.
if [ -f "$root/$list" ]; then
  cp -- "$root/$list" "$old"
elif [ -f "$root/include/poolgrad.h" ]; then
  { grep -v '/$' "$entries"; printf '%s\n' lib64/libpoolgrad.so.0.1.0 share/cmake; } | LC_ALL=C sort > "$old"
fi

make_folder() {  # make_folder <path>: and those above it, each noted
  local folder=${1%/}
  [ -d "$folder" ] && return
  ! is_there "$folder" || fail "$folder is in the way: it is not a folder"
  case $folder in */*) [ "${folder%/*}" = "" ] || make_folder "${folder%/*}" ;; esac
  mkdir -- "$folder" || fail "$folder cannot be made"
  echo "$folder/" >> "$made"
}
check_place() {  # check_place <entry>: may a file or link be put there?
  local place=$root/$1
  is_there "$place" || return 0
  [ ! -d "$place" ] || [ -L "$place" ] || fail "$place is in the way: it is a folder (make uninstall first, if it is poolgrad's)"
  has_line "$old" "$1" || [ "${FORCE:-}" = yes ] ||
    fail "$place is there and not poolgrad's (FORCE=yes replaces it, and make uninstall would then remove it)"
}
make_folder "$root"
while IFS= read -r entry; do
  case $entry in
    */)
      ! { [ -L "$root/${entry%/}" ] && has_line "$old" "${entry%/}"; } ||
        fail "$root/${entry%/} is a link of the version that is installed (make uninstall first)"
      make_folder "$root/$entry" ;;
    *)
      check_place "$entry"
      echo "$root/$entry$new" >> "$made"
      cp -dR --preserve=mode,timestamps -- "$stage/tree/$entry" "$root/$entry$new" || fail "$root/$entry cannot be written" ;;
  esac
done < "$entries"

# The list: our files, and the folders that are ours because this or an earlier installation made them.
{
  grep -v '/$' "$entries"
  { grep '/$' "$made" || true; } | while IFS= read -r entry; do
    case $entry in "$root"/) echo ./ ;; "$root"/?*) printf '%s\n' "${entry#"$root"/}" ;; esac
  done
  grep '/$' "$old" || true
  echo "$list"
} | LC_ALL=C sort -u > "$stage/list"
echo "$root/$list$new" >> "$made"
cp -- "$stage/list" "$root/$list$new" || fail "$root/$list cannot be written"

# From here on only renames, which need no space and are not interrupted; the list comes first, so that whatever
# happens make uninstall finds all.
trap '' INT TERM HUP
complete=yes
{ echo "$list"; grep -v '/$' "$stage/list" | grep -vxF -- "$list"; } > "$stage/order"
while IFS= read -r entry; do
  mv -fT -- "$root/$entry$new" "$root/$entry" || {
    while IFS= read -r rest; do rm -f -- "$root/$rest$new"; done < "$stage/order"
    fail "$root/$entry cannot be replaced, files of two versions are mixed now (make uninstall removes both)"
  }
done < "$stage/order"

# What only the old version had; but a link may have led a new file to an old one's place.
place_of() { printf '%s/%s\n' "$(realpath -m -- "$(dirname -- "$root/$1")")" "${1##*/}"; }
grep -v '/$' "$entries" | while IFS= read -r entry; do place_of "$entry"; done > "$stage/places"
LC_ALL=C comm -23 "$old" "$stage/list" | while IFS= read -r entry; do
  has_line "$stage/places" "$(place_of "$entry")" || printf '%s\n' "$entry"
done > "$stage/gone"
remove "$stage/gone"

if [ -n "${DESTDIR:-}" ]; then
  echo "staged in $root, to be used below $prefix"
elif has_line "$entries" set_env.sh; then
  echo "installed; next: source $root/set_env.sh"
else
  echo "installed; next: ldconfig (as root), then cc program.c -lascendcl -lnnopbase -lopapi"
fi
