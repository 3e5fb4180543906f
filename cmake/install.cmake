# SPDX-License-Identifier: Apache-2.0
# The installed tree has the shape of a CANN installation, so that programs written for CANN build unchanged. Everything
# in it is relative: the tree may be moved.
#
# /usr and /usr/local are the system's own: there the libraries go where loader, pkg-config and CMake look for them, and
# what only a CANN tree has (set_env.sh, bin, <arch>-linux) goes below share/poolgrad.
include(CMakePackageConfigHelpers)

if(CMAKE_INSTALL_PREFIX MATCHES "^/usr(/local)?/?$")
  set(libdir lib)
  if(NOT CMAKE_LIBRARY_ARCHITECTURE AND IS_DIRECTORY /usr/lib64 AND NOT IS_SYMLINK /usr/lib64) # Fedora and its kin
    set(libdir lib64)
  endif()
  if(CMAKE_LIBRARY_ARCHITECTURE AND CMAKE_INSTALL_PREFIX MATCHES "^/usr/?$")
    set(libdir lib/${CMAKE_LIBRARY_ARCHITECTURE})
  endif()
  set(cann_tree share/poolgrad)
else()
  set(libdir lib64)
  set(cann_tree .)
endif()
if(CMAKE_INSTALL_LIBDIR)
  set(libdir ${CMAKE_INSTALL_LIBDIR})
endif()
if(IS_ABSOLUTE "${libdir}" OR libdir MATCHES "\\.\\.")
  message(FATAL_ERROR "CMAKE_INSTALL_LIBDIR is '${libdir}'; it may be a folder below the prefix, such as lib64")
endif()

install(TARGETS poolgrad EXPORT poolgrad LIBRARY DESTINATION ${libdir})
if(POOLGRAD_STATIC)
  install(TARGETS poolgrad_static EXPORT poolgrad ARCHIVE DESTINATION ${libdir})
endif()
install(DIRECTORY include/ DESTINATION include)

# One library under all of CANN's names. A program linked with any of them needs libpoolgrad.so.0 at run time. PyTorch's
# adapter torch_npu is linked with the five of the second line.
foreach(name ascendcl acl_rt nnopbase opapi opapi_nn opapi_math aclnn_ops_infer aclnn_math
    hccl acl_op_compiler ge_runner graph acl_tdt_channel)
  set(link ${PROJECT_BINARY_DIR}/lib64/lib${name}.so)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/lib64)
  file(CREATE_LINK libpoolgrad.so ${link} SYMBOLIC)
  install(FILES ${link} DESTINATION ${libdir})
endforeach()

# Where the tree's root is, seen from a folder of it.
function(way_to_root variable folder)
  file(RELATIVE_PATH way /prefix/${folder} /prefix)
  string(REGEX REPLACE "/$" "" way "${way}")
  set(${variable} "${way}" PARENT_SCOPE)
endfunction()

# What only a CANN tree has: links and version files are laid out here and copied as they are.
way_to_root(tree_to_root ${cann_tree})
if(NOT tree_to_root)
  set(tree_to_root .)
endif()
install(FILES cmake/set_env.sh DESTINATION ${cann_tree})
set(tree ${PROJECT_BINARY_DIR}/tree)
set(arch ${CMAKE_SYSTEM_PROCESSOR}-linux)
file(REMOVE_RECURSE ${tree})
file(MAKE_DIRECTORY ${tree}/bin ${tree}/share ${tree}/${arch})
file(CREATE_LINK ../set_env.sh ${tree}/bin/setenv.bash SYMBOLIC)
file(CREATE_LINK ../${tree_to_root}/include ${tree}/${arch}/include SYMBOLIC)
file(CREATE_LINK ../${tree_to_root}/${libdir} ${tree}/${arch}/lib64 SYMBOLIC)
if(NOT cann_tree STREQUAL ".") # programs for CANN look for both below ASCEND_HOME_PATH
  file(CREATE_LINK ${tree_to_root}/include ${tree}/include SYMBOLIC)
  file(CREATE_LINK ${tree_to_root}/${libdir} ${tree}/lib64 SYMBOLIC)
elseif(NOT libdir STREQUAL "lib64")
  file(CREATE_LINK ${libdir} ${tree}/lib64 SYMBOLIC)
endif()
foreach(package cann runtime toolkit opp opp_kernel ops_math ops_nn ops_transformer ops_cv ops_legacy)
  file(WRITE ${tree}/share/info/${package}/version.info "Version=${POOLGRAD_CANN_VERSION}\n")
endforeach()
# torch_npu does not start without these folders.
foreach(package opp runtime compiler)
  file(WRITE ${tree}/${package}/version.info "Version=${POOLGRAD_CANN_VERSION}\n")
endforeach()
install(DIRECTORY ${tree}/ DESTINATION ${cann_tree})
# The command finds its tree from where it lies, through a link as well.
install(PROGRAMS cmake/poolgrad-torch-npu.py DESTINATION ${cann_tree}/bin RENAME poolgrad-torch-npu)
if(NOT cann_tree STREQUAL ".")
  file(CREATE_LINK ../${cann_tree}/bin/poolgrad-torch-npu ${PROJECT_BINARY_DIR}/poolgrad-torch-npu SYMBOLIC)
  install(FILES ${PROJECT_BINARY_DIR}/poolgrad-torch-npu DESTINATION bin)
endif()

way_to_root(pc_to_root ${libdir}/pkgconfig)
configure_file(cmake/poolgrad.pc.in poolgrad.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/poolgrad.pc DESTINATION ${libdir}/pkgconfig)

# The exported targets are the whole package configuration, but for the threads that a static library asks of its users.
# Debian's CMake looks for packages below share, but not below lib64: a file there leads to the other.
set(package_dir ${libdir}/cmake/poolgrad)
install(EXPORT poolgrad NAMESPACE poolgrad:: FILE poolgradTargets.cmake DESTINATION ${package_dir})
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/poolgradConfig.cmake
"include(CMakeFindDependencyMacro)
find_dependency(Threads)
get_filename_component(_poolgrad_here \${CMAKE_CURRENT_LIST_DIR} REALPATH) # lib64 may be a link
include(\${_poolgrad_here}/poolgradTargets.cmake)
unset(_poolgrad_here)
")
write_basic_package_version_file(poolgradConfigVersion.cmake COMPATIBILITY SameMinorVersion)
way_to_root(share_to_root share/poolgrad/cmake)
foreach(file poolgradConfig poolgradConfigVersion)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${file}.cmake DESTINATION ${package_dir})
  file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/share/${file}.cmake
    "include(\${CMAKE_CURRENT_LIST_DIR}/${share_to_root}/${package_dir}/${file}.cmake)\n")
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/share/${file}.cmake DESTINATION share/poolgrad/cmake)
endforeach()

set(doc share/doc/poolgrad)
install(FILES LICENSE README.md CHANGELOG.md SECURITY.md DESTINATION ${doc})
install(DIRECTORY docs/ DESTINATION ${doc}/docs FILES_MATCHING PATTERN "*.md" PATTERN "*.svg")
install(DIRECTORY examples/ DESTINATION ${doc}/examples FILES_MATCHING PATTERN "*.c" PATTERN "*.py")

if(NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()
# --- packages: make package -------------------------------------------------------------------------------------------
set(CPACK_PACKAGE_NAME poolgrad)
set(CPACK_PACKAGE_CONTACT "the poolgrad developers <developers@poolgrad.invalid>")
set(CPACK_PACKAGING_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_CURRENT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON) # which libc it was linked with
file(WRITE ${PROJECT_BINARY_DIR}/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/triggers)
include(CPack)
