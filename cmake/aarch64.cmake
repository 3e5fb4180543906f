# SPDX-License-Identifier: Apache-2.0
# The build for aarch64 on another Debian machine, its programs run by qemu (make deps WHAT=aarch64).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)
# Debian keeps the libraries of each processor in a folder of its own; pkg-config looks into this machine's.
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig)
