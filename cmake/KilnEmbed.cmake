# kiln_embed(TARGET FUNCTION FILE...): adds to TARGET a generated source that defines
#   namespace kiln::embedded { std::string_view FUNCTION(std::string_view path); }
# which gives a file's text by its path from the current folder, or a view with a null data() when there is no such file.
# Declare the function where it is used.
function(kiln_embed target function)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/${function}.cc)
  list(JOIN ARGN "|" joined)
  add_custom_command(
    OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DOUT=${out} -DFUNCTION=${function} -DROOT=${CMAKE_CURRENT_SOURCE_DIR} "-DFILES=${joined}"
            -P ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${ARGN} ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
    VERBATIM)
  target_sources(${target} PRIVATE ${out})
endfunction()
