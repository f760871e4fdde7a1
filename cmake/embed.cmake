# Writes OUTPUT, a C file with one string for each of FILES: const char sql_NAME[].
# Run by `cmake -P`, so that what setup runs and what people run is one text.
set(text "/* Made from sql/ by cmake/embed.cmake. */\n#include \"app/sqlfile.h\"\n")
foreach(file IN LISTS FILES)
  get_filename_component(name ${file} NAME_WE)
  file(READ ${file} hex HEX)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
  string(REGEX REPLACE "(................................................................................)"
         "\\1\n" bytes "${bytes}")
  string(APPEND text "\nconst char sql_${name}[] = {\n${bytes}0};\n")
endforeach()
file(WRITE ${OUTPUT} "${text}")
