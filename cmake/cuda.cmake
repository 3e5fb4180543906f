# SPDX-License-Identifier: Apache-2.0
# The CUDA backend: a plug-in beside the library, built where nvcc is found and needed by nobody. Its CUDA runtime is
# linked in, so that only the driver has to be there when it is loaded.
#
# Its kernels take minutes to compile, so by default it is built only where a GPU could use it, and for that GPU.
set(POOLGRAD_CUDA AUTO CACHE STRING "Build the CUDA plug-in: ON, OFF, or AUTO: where nvcc and an NVIDIA GPU are")
set_property(CACHE POOLGRAD_CUDA PROPERTY STRINGS AUTO ON OFF)
function(cuda_decided sentence)
  message(NOTICE "cuda: ${sentence}")
endfunction()
if(POOLGRAD_SANITIZE OR CMAKE_CROSSCOMPILING)
  if(NOT POOLGRAD_CUDA STREQUAL AUTO AND POOLGRAD_CUDA)
    cuda_decided("plug-in not built: there is none with sanitizers, or for another processor")
  endif()
  return()
endif()
if(NOT POOLGRAD_CUDA STREQUAL AUTO AND NOT POOLGRAD_CUDA)
  cuda_decided("plug-in not built, POOLGRAD_CUDA is ${POOLGRAD_CUDA} (make cuda, or -DPOOLGRAD_CUDA=ON, builds it)")
  return()
endif()

find_program(POOLGRAD_NVCC nvcc PATHS /usr/local/cuda/bin ENV CUDA_PATH PATH_SUFFIXES bin)
set(gpus "")
if(POOLGRAD_CUDA STREQUAL AUTO)
  execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
    OUTPUT_VARIABLE answer ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed)
    string(REGEX MATCHALL "[0-9]+\\.[0-9]+" gpus "${answer}") # compute capabilities, such as 9.0
  endif()
  if(NOT gpus)
    cuda_decided("plug-in not built, there is no NVIDIA GPU here (make cuda, or -DPOOLGRAD_CUDA=ON, builds it)")
    return()
  elseif(NOT POOLGRAD_NVCC)
    cuda_decided("plug-in not built, there is a GPU but no nvcc (install CUDA's toolkit, or -DPOOLGRAD_NVCC=<file>)")
    return()
  endif()
elseif(NOT POOLGRAD_NVCC)
  message(FATAL_ERROR "POOLGRAD_CUDA is ON, but there is no nvcc (install CUDA's toolkit, or -DPOOLGRAD_NVCC=<file>)")
endif()
set(ENV{CUDACXX} ${POOLGRAD_NVCC})
include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  message(FATAL_ERROR "${POOLGRAD_NVCC} compiles nothing with this C++ compiler (-DPOOLGRAD_CUDA=OFF leaves CUDA out)")
endif()

# Without -real: PTX as well, which newer devices compile for themselves. Each architecture takes a minute.
set(POOLGRAD_CUDA_ARCHITECTURES "" CACHE STRING "What the CUDA plug-in has code for; empty: the GPUs here, or 80-real 90")
if(DEFINED ENV{POOLGRAD_CUDA_ARCHITECTURES})
  set(POOLGRAD_CUDA_ARCHITECTURES $ENV{POOLGRAD_CUDA_ARCHITECTURES})
endif()
if(POOLGRAD_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES ${POOLGRAD_CUDA_ARCHITECTURES})
elseif(gpus)
  list(REMOVE_DUPLICATES gpus)
  list(TRANSFORM gpus REPLACE "\\." "" OUTPUT_VARIABLE CMAKE_CUDA_ARCHITECTURES)
  list(TRANSFORM CMAKE_CUDA_ARCHITECTURES APPEND -real)
else()
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90)
endif()
enable_language(CUDA)
find_package(CUDAToolkit REQUIRED)

file(GLOB cuda_sources CONFIGURE_DEPENDS src/cuda/*.c src/cuda/kernels/*.cu src/kernels/*.c)
add_library(poolgrad_cuda MODULE ${cuda_sources})
target_include_directories(poolgrad_cuda PRIVATE include src)
# No contraction, exact division, no flushing: the bits must be the CPU's.
# Host code without exceptions and without guards around local statics needs no libstdc++.
target_compile_options(poolgrad_cuda PRIVATE
  "$<$<COMPILE_LANGUAGE:CUDA>:--fmad=false;-prec-div=true;-prec-sqrt=true;-ftz=false>"
  "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Wno-missing-field-initializers>"
  "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-fno-exceptions,-fno-rtti,-fno-threadsafe-statics,-ffp-contract=off>"
  $<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${POOLGRAD_WERROR}>>:--Werror=all-warnings>)
# Code for GPUs is a third as large when compressed; the driver unpacks a file's kernels when it needs the first.
if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.8)
  target_compile_options(poolgrad_cuda PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--compress-mode=size>)
endif()
harden(poolgrad_cuda) # not marked for CET: the CUDA runtime in it is not
target_link_libraries(poolgrad_cuda PRIVATE CUDA::cudart_static)
# The CUDA runtime's own symbols stay inside: the program may have another one.
target_link_options(poolgrad_cuda PRIVATE LINKER:--exclude-libs,ALL LINKER:--no-undefined LINKER:--as-needed
  LINKER:-z,nodelete)
set_target_properties(poolgrad_cuda PROPERTIES
  LINKER_LANGUAGE C C_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden POSITION_INDEPENDENT_CODE ON
  CUDA_STANDARD 17 CUDA_STANDARD_REQUIRED ON CUDA_RUNTIME_LIBRARY Static
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib64)
# The kernels take minutes and are nvcc's either way: a build with clang leaves them out and only knows of the files.
if(CMAKE_C_COMPILER_ID MATCHES Clang)
  set_target_properties(poolgrad_cuda PROPERTIES EXCLUDE_FROM_ALL ON)
else()
  install(TARGETS poolgrad_cuda LIBRARY DESTINATION ${libdir})
endif()

string(REGEX MATCH "^[0-9]+\\.[0-9]+" cuda_version ${CMAKE_CUDA_COMPILER_VERSION})
list(JOIN CMAKE_CUDA_ARCHITECTURES ", " architectures)
if(CMAKE_C_COMPILER_ID MATCHES Clang)
  cuda_decided("plug-in not built: with clang its files are known, but gcc builds it (make cuda CC=gcc)")
else()
  cuda_decided("plug-in built with nvcc ${cuda_version} for ${architectures}, which takes minutes (make OPTIONS=-DPOOLGRAD_CUDA=OFF leaves it out)")
endif()
