# cmake -DOUT=page.cc -DNAMESPACE=… -DNAMES=A,B -DFILES=a.css,b.js -P EmbedText.cmake: each file as a string_view.
string(REPLACE "," ";" names "${NAMES}")
string(REPLACE "," ";" files "${FILES}")
set(code "#include <string_view>\nnamespace ${NAMESPACE} {\n")
foreach(name file IN ZIP_LISTS names files)
  file(READ "${file}" text)
  string(APPEND code "extern const std::string_view ${name};\nconst std::string_view ${name} = R\"kiln~(${text})kiln~\";\n")
endforeach()
file(WRITE "${OUT}" "${code}}\n")
