# Flags every Kiln target shares, and the functions that declare a library and a test from a folder.

find_program(KILN_CCACHE ccache)
if(KILN_CCACHE)  # the sloppiness is what ccache asks for where headers are precompiled
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${KILN_CCACHE})
endif()

add_library(kiln_flags INTERFACE)
target_compile_options(kiln_flags INTERFACE -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion
                       -Werror=switch -Werror=return-type -fno-math-errno)
# g++ 12 at -O2 reports errors inside std::variant, std::string and fmt that are none (GCC bugs 105562, 105329); drop
# when g++ 13 is the floor.
target_compile_options(kiln_flags INTERFACE -Wno-maybe-uninitialized -Wno-restrict -Wno-array-bounds
                       -Wno-stringop-overflow -Wno-stringop-overread)
target_include_directories(kiln_flags INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
target_compile_definitions(kiln_flags INTERFACE KILN_VERSION="${PROJECT_VERSION}")
find_program(KILN_LLD ld.lld)
if(KILN_LLD)
  target_link_options(kiln_flags INTERFACE -fuse-ld=lld)
endif()
target_link_options(kiln_flags INTERFACE -Wl,--gc-sections -Wl,--build-id)  # the build id is part of cache keys
if(KILN_STATIC)
  target_link_options(kiln_flags INTERFACE -static-libstdc++ -static-libgcc)
endif()
target_compile_options(kiln_flags INTERFACE -ffunction-sections -fdata-sections)
if(CMAKE_BUILD_TYPE STREQUAL "Release")  # the same bytes, whatever folder it is built in; the last that matches counts
  target_compile_options(kiln_flags INTERFACE -ffile-prefix-map=${PROJECT_SOURCE_DIR}=.
                         -ffile-prefix-map=${PROJECT_BINARY_DIR}=build)
endif()

# kiln_precompiled(NAME PIC|PIE [HEADERS ...]): headers of others that most sources read, parsed once per set of flags.
# Sources still include what they use: the tidy preset compiles without.
function(kiln_precompiled name code)
  file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/${name}.cc "")
  add_library(${name} OBJECT ${CMAKE_CURRENT_BINARY_DIR}/${name}.cc)
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE -f${code})
  target_link_libraries(${name} PRIVATE kiln_flags kiln_fmt)
  target_precompile_headers(${name} PRIVATE <algorithm> <array> <bit> <cmath> <cstdint> <cstdlib> <cstring> <functional>
    <map> <memory> <mutex> <optional> <random> <set> <span> <string> <string_view> <unordered_map> <utility> <variant>
    <vector> <fmt/format.h> ${ARGN})
endfunction()

# kiln_unity(TARGET): sources of one folder are compiled six at a time, so that their headers are parsed once.
function(kiln_unity target)
  get_target_property(sources ${target} SOURCES)
  set(count 0)
  set(last "")
  foreach(source IN LISTS sources)
    cmake_path(GET source PARENT_PATH folder)
    if(NOT folder STREQUAL last OR count EQUAL 6)
      set(last ${folder})
      set(count 0)
      cmake_path(GET source STEM first)
      cmake_path(GET folder FILENAME folder_name)
    endif()
    math(EXPR count "${count} + 1")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder_name}_from_${first})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${KILN_UNITY} UNITY_BUILD_MODE GROUP)
endfunction()

# kiln_library(NAME [FOLDERS ...] [DEPS ...]): every .cc of the current folder and of these subfolders (no others) as
# static library NAME. main.cc belongs to a program. File-local names differ within a folder (kiln_unity), but in the files
# that are listed under ALONE.
function(kiln_library name)
  cmake_parse_arguments(arg "" "" "FOLDERS;DEPS;ALONE" ${ARGN})
  set(patterns ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  foreach(folder IN LISTS arg_FOLDERS)
    list(APPEND patterns ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cc)
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS ${patterns})
  list(FILTER sources EXCLUDE REGEX "/main\\.cc$")
  if(NOT sources)
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE kiln_flags ${arg_DEPS})
    return()
  endif()
  add_library(${name} STATIC ${sources})
  target_link_libraries(${name} PUBLIC kiln_flags ${arg_DEPS})
  target_precompile_headers(${name} REUSE_FROM kiln_library_headers)
  kiln_unity(${name})
  set_source_files_properties(${arg_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# kiln_test(NAME [FOLDERS ...] [ALONE ...] [DEPS ...] [LABEL host|gpu|perf] [COST SECONDS]): every .cc of the current folder
# and of these subfolders as one GoogleTest program. COST, of those that take long, lets ctest begin with them.
function(kiln_test name)
  cmake_parse_arguments(arg "" "LABEL;COST" "FOLDERS;DEPS;ALONE" ${ARGN})
  set(patterns ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  foreach(folder IN LISTS arg_FOLDERS)
    list(APPEND patterns ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cc)
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS ${patterns})
  if(NOT sources)
    return()
  endif()
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE kiln_flags ${arg_DEPS} kiln_test_main)
  target_precompile_headers(${name} REUSE_FROM kiln_test_headers)
  kiln_unity(${name})
  set_source_files_properties(${arg_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  target_compile_definitions(${name} PRIVATE KILN_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABEL}" TIMEOUT 600
    ENVIRONMENT "LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/lsan.supp:print_suppressions=0;TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/tsan.supp")
  if(arg_COST)
    set_tests_properties(${name} PROPERTIES COST ${arg_COST})
  endif()
endfunction()
