# SPDX-License-Identifier: Apache-2.0
# The installed tree has the shape of a CANN installation, so that programs written for CANN build unchanged.
# Everything in it is relative: the tree may be moved.
include(CMakePackageConfigHelpers)

install(TARGETS poolgrad EXPORT poolgrad LIBRARY DESTINATION lib64)
install(DIRECTORY include/ DESTINATION include)
install(FILES cmake/set_env.sh DESTINATION .)

# One library under all of CANN's names. A program linked with any of them needs libpoolgrad.so.0 at run time.
foreach(name ascendcl acl_rt nnopbase opapi opapi_nn opapi_math aclnn_ops_infer aclnn_math)
  set(link ${CMAKE_BINARY_DIR}/lib64/lib${name}.so)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/lib64)
  file(CREATE_LINK libpoolgrad.so ${link} SYMBOLIC)
  install(FILES ${link} DESTINATION lib64)
endforeach()

# Links and version files are laid out here and copied as they are.
set(tree ${CMAKE_BINARY_DIR}/tree)
set(arch ${CMAKE_SYSTEM_PROCESSOR}-linux)
file(MAKE_DIRECTORY ${tree}/bin ${tree}/share ${tree}/${arch})
file(CREATE_LINK ../set_env.sh ${tree}/bin/setenv.bash SYMBOLIC)
file(CREATE_LINK ../include ${tree}/${arch}/include SYMBOLIC)
file(CREATE_LINK ../lib64 ${tree}/${arch}/lib64 SYMBOLIC)
# Debian's CMake looks for packages below share, but not below lib64.
file(CREATE_LINK ../lib64/cmake ${tree}/share/cmake SYMBOLIC)
foreach(package cann runtime toolkit opp)
  file(WRITE ${tree}/share/info/${package}/version.info "Version=${POOLGRAD_CANN_VERSION}\n")
endforeach()
install(DIRECTORY ${tree}/ DESTINATION .)

configure_file(cmake/poolgrad.pc.in poolgrad.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/poolgrad.pc DESTINATION lib64/pkgconfig)

# The exported targets are the whole package configuration: the library asks nothing of its users.
install(EXPORT poolgrad NAMESPACE poolgrad:: FILE poolgradConfig.cmake DESTINATION lib64/cmake/poolgrad)
write_basic_package_version_file(poolgradConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/poolgradConfigVersion.cmake DESTINATION lib64/cmake/poolgrad)
