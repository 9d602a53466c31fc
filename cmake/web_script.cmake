# The sources of src/formats/web that browsers read, as text in the library: the page, and the scripts one behind the other, without
# comments, indentation, and most ends of lines.
set(web_folder ${PROJECT_SOURCE_DIR}/src/formats/web)
set(web_script "")
foreach(name plan program tokenizer models page)
  file(READ ${web_folder}/${name}.js text)
  string(APPEND web_script "${text}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${web_folder}/${name}.js)
endforeach()
string(REGEX REPLACE "\n +" "\n" web_script "\n${web_script}")
string(REGEX REPLACE "(\n|  )//[^\n]*" "" web_script "${web_script}")
string(REGEX REPLACE "\n/\\*\\*[^\n]*\\*/" "" web_script "${web_script}")
string(REGEX REPLACE "\n\n+" "\n" web_script "${web_script}")
string(REGEX REPLACE "([,;({])\n" "\\1" web_script "${web_script}")
file(READ ${web_folder}/page.html web_page)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${web_folder}/page.html)
set(RLX_WEB_SOURCE ${PROJECT_BINARY_DIR}/generated/web_script.cpp)
file(CONFIGURE OUTPUT ${RLX_WEB_SOURCE} @ONLY CONTENT [[
#include "formats/web/web_folder.h"

std::string_view rlx::web_script() { return R"---(@web_script@)---"; }
std::string_view rlx::web_page() { return R"---(@web_page@)---"; }
]])
target_sources(rlx PRIVATE ${RLX_WEB_SOURCE})
