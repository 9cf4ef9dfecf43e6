# `cmake --install`, by component: program (bin/kiln), runtime (libkiln.so.VERSION), devel (headers, package files) and, when
# the target kiln_static was built, static (libkiln.a).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS kiln_shared EXPORT kiln-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT devel)
install(FILES ${kiln_static_file} DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT static OPTIONAL)
install(DIRECTORY include/kiln DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT devel
  FILES_MATCHING PATTERN "*.h" PATTERN "*.def")
if(KILN_PROGRAM)
  install(TARGETS kiln RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
endif()

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/kiln)
install(EXPORT kiln-targets NAMESPACE kiln:: DESTINATION ${package_folder} COMPONENT devel)
if(TARGET kiln_fmt_static)
  set(fmt_inside ON)
else()
  set(fmt_inside OFF)
endif()
configure_package_config_file(cmake/kiln-config.cmake.in ${PROJECT_BINARY_DIR}/kiln-config.cmake
  INSTALL_DESTINATION ${package_folder} PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/kiln-config-version.cmake COMPATIBILITY SameMinorVersion)
string(REGEX REPLACE "[^/]+" ".." pc_to_prefix "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
configure_file(cmake/kiln.pc.in ${PROJECT_BINARY_DIR}/kiln.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/kiln-config.cmake ${PROJECT_BINARY_DIR}/kiln-config-version.cmake
  DESTINATION ${package_folder} COMPONENT devel)
install(FILES ${PROJECT_BINARY_DIR}/kiln.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT devel)
