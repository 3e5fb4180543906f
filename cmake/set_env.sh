# SPDX-License-Identifier: Apache-2.0
# Source this file to use the tree it lies in:  . <prefix>/set_env.sh
# Works in bash, zsh and, where /proc exists, in dash and its kin; the tree may have been moved.

_pg_self=
if [ -n "${BASH_SOURCE:-}" ]; then
  _pg_self=$BASH_SOURCE
elif [ -n "${ZSH_VERSION:-}" ]; then
  eval '_pg_self=${(%):-%x}'
else
  # A plain POSIX shell does not tell a sourced file its name, but holds it open while reading it.
  for _pg_fd in /proc/$$/fd/*; do
    case $(readlink "$_pg_fd") in
      */set_env.sh) _pg_self=$(readlink "$_pg_fd") ;;
    esac
  done
fi

_pg_root=$(dirname "$(readlink -f "${_pg_self:-set_env.sh}")")
if [ -f "$_pg_root/lib64/libpoolgrad.so" ]; then
  export ASCEND_HOME_PATH="$_pg_root"
  export ASCEND_TOOLKIT_HOME="$_pg_root"
  export ASCEND_OPP_PATH="$_pg_root/opp"
  # Prepended once: an empty entry would mean the current folder, and sourcing twice should change nothing.
  case "${LD_LIBRARY_PATH:-}:" in
    "$_pg_root/lib64:"*) ;;
    *) export LD_LIBRARY_PATH="$_pg_root/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" ;;
  esac
  case "${PATH:-}:" in
    "$_pg_root/bin:"*) ;;
    *) export PATH="$_pg_root/bin${PATH:+:$PATH}" ;;
  esac
  case "${CMAKE_PREFIX_PATH:-}:" in
    "$_pg_root:"*) ;;
    *) export CMAKE_PREFIX_PATH="$_pg_root${CMAKE_PREFIX_PATH:+:$CMAKE_PREFIX_PATH}" ;;
  esac
  case "${PKG_CONFIG_PATH:-}:" in
    "$_pg_root/lib64/pkgconfig:"*) ;;
    *) export PKG_CONFIG_PATH="$_pg_root/lib64/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}" ;;
  esac
else
  echo "set_env.sh: this shell does not say where the file lies; source it from its own folder" >&2
fi
unset _pg_self _pg_fd _pg_root
