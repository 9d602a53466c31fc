# `cmake --install`: the library, the command, the headers, and a package that find_package(rlx) finds.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/rlx)

install(TARGETS rlx EXPORT rlxTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS rlx_llvm LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET rlx_mlx)
  install(TARGETS rlx_mlx LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
if(TARGET rlx_metal)
  install(TARGETS rlx_metal rlx_coreml LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
if(TARGET rlx_command)
  install(TARGETS rlx_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(DIRECTORY include/rlx ${RLX_GENERATED_INCLUDE}/rlx DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

configure_package_config_file(cmake/rlxConfig.cmake.in ${PROJECT_BINARY_DIR}/rlxConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/rlxConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(EXPORT rlxTargets NAMESPACE rlx:: DESTINATION ${package_dir})
install(FILES ${PROJECT_BINARY_DIR}/rlxConfig.cmake ${PROJECT_BINARY_DIR}/rlxConfigVersion.cmake DESTINATION ${package_dir})

# For builds without CMake: `c++ -std=c++20 main.cpp $(pkg-config --cflags --libs rlx)`. Paths are relative, as an installed tree may move.
set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH RLX_PREFIX_FROM_PC /${pkgconfig_dir} /)
configure_file(cmake/rlx.pc.in ${PROJECT_BINARY_DIR}/rlx.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/rlx.pc DESTINATION ${pkgconfig_dir})
