# SPDX-License-Identifier: Apache-2.0
# The CUDA backend: a plug-in beside the library, built where nvcc is found and needed by nobody. Its CUDA runtime is
# linked in, so that only the driver has to be there when it is loaded.
option(POOLGRAD_CUDA "Build the CUDA plug-in where nvcc is found" ON)
if(NOT POOLGRAD_CUDA OR POOLGRAD_SANITIZE OR CMAKE_CROSSCOMPILING)
  return()
endif()
file(GLOB cuda_kernels CONFIGURE_DEPENDS src/cuda/*.cu)
if(NOT cuda_kernels)
  return()
endif()

find_program(POOLGRAD_NVCC nvcc PATHS /usr/local/cuda/bin ENV CUDA_PATH PATH_SUFFIXES bin)
if(NOT POOLGRAD_NVCC)
  message(NOTICE "cuda: no nvcc, CPU only")
  return()
endif()
set(ENV{CUDACXX} ${POOLGRAD_NVCC})
include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  message(NOTICE "cuda: ${POOLGRAD_NVCC} compiles nothing, CPU only")
  return()
endif()
# Without -real: PTX as well, which newer devices compile for themselves. Each architecture takes a minute.
set(POOLGRAD_CUDA_ARCHITECTURES 80-real 90 CACHE STRING "What the CUDA plug-in has code for")
if(DEFINED ENV{POOLGRAD_CUDA_ARCHITECTURES})
  set(POOLGRAD_CUDA_ARCHITECTURES $ENV{POOLGRAD_CUDA_ARCHITECTURES})
endif()
set(CMAKE_CUDA_ARCHITECTURES ${POOLGRAD_CUDA_ARCHITECTURES})
enable_language(CUDA)
find_package(CUDAToolkit REQUIRED)

file(GLOB cuda_sources CONFIGURE_DEPENDS src/cuda/*.c)
add_library(poolgrad_cuda MODULE ${cuda_sources} ${cuda_kernels})
target_include_directories(poolgrad_cuda PRIVATE include src)
# No contraction, exact division, no flushing: the bits must be the CPU's.
# Host code without exceptions and without guards around local statics needs no libstdc++.
target_compile_options(poolgrad_cuda PRIVATE
  "$<$<COMPILE_LANGUAGE:CUDA>:--fmad=false;-prec-div=true;-prec-sqrt=true;-ftz=false>"
  "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Wno-missing-field-initializers>"
  "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-fno-exceptions,-fno-rtti,-fno-threadsafe-statics>"
  $<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${POOLGRAD_WERROR}>>:--Werror=all-warnings>)
harden(poolgrad_cuda) # not marked for CET: the CUDA runtime in it is not
target_link_libraries(poolgrad_cuda PRIVATE CUDA::cudart_static)
# The CUDA runtime's own symbols stay inside: the program may have another one.
target_link_options(poolgrad_cuda PRIVATE LINKER:--exclude-libs,ALL LINKER:--no-undefined LINKER:--as-needed
  LINKER:-z,nodelete)
set_target_properties(poolgrad_cuda PROPERTIES
  LINKER_LANGUAGE C C_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden POSITION_INDEPENDENT_CODE ON
  CUDA_STANDARD 17 CUDA_STANDARD_REQUIRED ON CUDA_RUNTIME_LIBRARY Static
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib64)
# The kernels take minutes and are nvcc's either way: a build with clang leaves them out and only knows of the files.
if(CMAKE_C_COMPILER_ID MATCHES Clang)
  set_target_properties(poolgrad_cuda PROPERTIES EXCLUDE_FROM_ALL ON)
else()
  install(TARGETS poolgrad_cuda LIBRARY DESTINATION lib64)
endif()

string(REGEX MATCH "^[0-9]+\\.[0-9]+" cuda_version ${CMAKE_CUDA_COMPILER_VERSION})
message(NOTICE "cuda: plug-in built with nvcc ${cuda_version}")
