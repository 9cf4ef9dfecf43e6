# libkiln: everything that include/kiln declares, as one shared library with LLVM inside (kiln::kiln), and as one archive
# of Kiln's own code (kiln::static). Both are made of the rooms' archives: nothing is compiled twice.

# kiln_archives(RESULT TARGET...): the static libraries of Kiln that these targets are linked from, themselves included.
function(kiln_archives result)
  set(found "")
  set(seen "")
  set(todo ${ARGN})
  while(todo)
    list(POP_FRONT todo target)
    if(NOT TARGET ${target} OR target IN_LIST seen)
      continue()
    endif()
    list(APPEND seen ${target})
    get_target_property(imported ${target} IMPORTED)
    if(imported)
      continue()
    endif()
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "STATIC_LIBRARY" AND NOT target STREQUAL "kiln_fmt_static")
      list(APPEND found ${target})
    endif()
    get_target_property(links ${target} INTERFACE_LINK_LIBRARIES)
    if(links)
      list(APPEND todo ${links})
    endif()
  endwhile()
  set(${result} ${found} PARENT_SCOPE)
endfunction()

kiln_archives(kiln_library_archives kiln_expr kiln_tune)
# The prompt (kiln/session.h) comes with the shared library, and only where the program is built: it needs more packages.
set(kiln_shared_archives ${kiln_library_archives})
set(kiln_shared_extra "")
if(KILN_PROGRAM)
  kiln_archives(kiln_shared_archives kiln_expr kiln_tune kiln_repl)
  set(kiln_shared_extra ${PCRE2_LIBRARY})
endif()
set(archive_files "")
foreach(archive IN LISTS kiln_shared_archives)
  list(APPEND archive_files $<TARGET_FILE:${archive}>)
endforeach()

file(WRITE ${PROJECT_BINARY_DIR}/libkiln.cc "")
add_library(kiln_shared SHARED ${PROJECT_BINARY_DIR}/libkiln.cc)
add_library(kiln::kiln ALIAS kiln_shared)
set_target_properties(kiln_shared PROPERTIES OUTPUT_NAME kiln EXPORT_NAME kiln VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib
  LINK_DEPENDS "${PROJECT_SOURCE_DIR}/cmake/libkiln.map")
target_include_directories(kiln_shared INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
target_compile_features(kiln_shared INTERFACE cxx_std_20)
# By file, so that what the archives themselves are linked with (a shared LLVM, say) does not follow them.
add_dependencies(kiln_shared ${kiln_shared_archives})
set_property(TARGET kiln_shared APPEND PROPERTY LINK_DEPENDS ${archive_files})
target_link_libraries(kiln_shared PRIVATE -Wl,--whole-archive ${archive_files} -Wl,--no-whole-archive
  $<BUILD_INTERFACE:kiln_llvm_static> ${kiln_shared_extra} Threads::Threads dl)
if(TARGET kiln_fmt_static)
  target_link_libraries(kiln_shared PRIVATE $<BUILD_INTERFACE:kiln_fmt_static>)
else()
  target_link_libraries(kiln_shared PRIVATE fmt::fmt)
endif()
target_link_options(kiln_shared PRIVATE $<$<BOOL:${KILN_LLD}>:-fuse-ld=lld> -Wl,--gc-sections -Wl,--build-id
  -Wl,-z,defs -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/libkiln.map)

# The archive is for who links LLVM himself: it names LLVM's symbols and has none of them.
set(kiln_static_file ${PROJECT_BINARY_DIR}/lib/libkiln.a)
set(merged ${kiln_library_archives})
if(TARGET kiln_fmt_static)
  list(APPEND merged kiln_fmt_static)
endif()
set(merge_script "CREATE ${kiln_static_file}\n")
foreach(archive IN LISTS merged)
  string(APPEND merge_script "ADDLIB $<TARGET_FILE:${archive}>\n")
endforeach()
file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/libkiln.mri CONTENT "${merge_script}SAVE\nEND\n")
add_custom_command(OUTPUT ${kiln_static_file}
  COMMAND ${CMAKE_COMMAND} -E rm -f ${kiln_static_file}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/lib
  COMMAND ${CMAKE_AR} -M < ${PROJECT_BINARY_DIR}/libkiln.mri
  DEPENDS ${merged} ${PROJECT_BINARY_DIR}/libkiln.mri
  COMMENT "Merging libkiln.a"
  VERBATIM)
add_custom_target(kiln_static DEPENDS ${kiln_static_file})
add_library(kiln_static_library INTERFACE)
add_library(kiln::static ALIAS kiln_static_library)
add_dependencies(kiln_static_library kiln_static)
target_include_directories(kiln_static_library INTERFACE ${PROJECT_SOURCE_DIR}/include)
target_compile_features(kiln_static_library INTERFACE cxx_std_20)
target_link_libraries(kiln_static_library INTERFACE ${kiln_static_file} kiln_llvm_static Threads::Threads dl)
if(NOT TARGET kiln_fmt_static)
  target_link_libraries(kiln_static_library INTERFACE fmt::fmt)
endif()
