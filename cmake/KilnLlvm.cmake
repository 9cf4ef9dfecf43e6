# LLVM 22 as the target kiln_llvm (IR, NVPTX, native, ORC), shared or by KILN_STATIC static. Headers are SYSTEM.
set(llvm_version 22)
find_program(KILN_LLVM_CONFIG NAMES llvm-config-${llvm_version} llvm-config-${llvm_version}-64 llvm-config
             HINTS /usr/lib64/llvm${llvm_version}/bin REQUIRED)
execute_process(COMMAND ${KILN_LLVM_CONFIG} --version OUTPUT_VARIABLE llvm_found OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT llvm_found MATCHES "^${llvm_version}\\.")
  message(FATAL_ERROR "Kiln needs LLVM ${llvm_version}; ${KILN_LLVM_CONFIG} is of version ${llvm_found}")
endif()
execute_process(COMMAND ${KILN_LLVM_CONFIG} --includedir OUTPUT_VARIABLE llvm_include OUTPUT_STRIP_TRAILING_WHITESPACE)
execute_process(COMMAND ${KILN_LLVM_CONFIG} --libdir OUTPUT_VARIABLE llvm_libdir OUTPUT_STRIP_TRAILING_WHITESPACE)

if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(llvm_native x86)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  set(llvm_native aarch64)
else()
  message(FATAL_ERROR "no host target for ${CMAKE_SYSTEM_PROCESSOR}: Kiln's host JIT knows x86-64 and AArch64")
endif()

# kiln_llvm_static: the archives, for libkiln.so in every build. The includes are kiln_llvm's alone.
execute_process(COMMAND ${KILN_LLVM_CONFIG} --link-static --libs nvptx ${llvm_native} orcjit passes asmparser debuginfodwarf
                OUTPUT_VARIABLE llvm_libs OUTPUT_STRIP_TRAILING_WHITESPACE)
separate_arguments(llvm_libs)
find_library(ZSTD_STATIC libzstd.a REQUIRED)
find_library(ZLIB_STATIC libz.a REQUIRED)
add_library(kiln_llvm_static INTERFACE)
target_link_libraries(kiln_llvm_static INTERFACE -L${llvm_libdir} ${llvm_libs} ${ZLIB_STATIC} ${ZSTD_STATIC} dl pthread m)

add_library(kiln_llvm INTERFACE)
target_include_directories(kiln_llvm SYSTEM INTERFACE ${llvm_include})
if(KILN_STATIC)
  target_link_libraries(kiln_llvm INTERFACE kiln_llvm_static)
else()
  target_link_libraries(kiln_llvm INTERFACE -L${llvm_libdir} LLVM-${llvm_version})
endif()
