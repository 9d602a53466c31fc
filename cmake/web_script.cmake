# The sources of src/formats/web that browsers read, as text in the library: the page, the scripts one behind the other, and those of word
# models by their names in tokenizer.json, without comments, indentation, most ends of lines, and spaces around signs.
set(web_folder ${PROJECT_SOURCE_DIR}/src/formats/web)
function(read_web_script result)
  set(all "")
  foreach(name ${ARGN})
    file(READ ${web_folder}/${name}.js text)
    string(APPEND all "${text}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${web_folder}/${name}.js)
  endforeach()
  string(REGEX REPLACE "\n +" "\n" all "\n${all}")
  string(REGEX REPLACE "(\n|  )//[^\n]*" "" all "${all}")
  string(REGEX REPLACE "\n/?\\*[^\n]*" "" all "${all}")
  string(REGEX REPLACE "\n\n+" "\n" all "${all}")
  string(REGEX REPLACE "([,;({])\n" "\\1" all "${all}")
  string(REGEX REPLACE " (=>|===|!==|<=|>=|<|>|=|&&|\\|\\||\\?\\?|\\*) " "\\1" all "${all}")
  string(REGEX REPLACE "(if|for|while|\\)) ([({])" "\\1\\2" all "${all}")
  set(${result} "${all}" PARENT_SCOPE)
endfunction()
read_web_script(web_script plan program tokenizer models page)
read_web_script(web_byte_pairs byte_pairs)
read_web_script(web_unigram unigram)
read_web_script(web_word_piece word_piece)
file(READ ${web_folder}/page.html web_page)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${web_folder}/page.html)
set(RLX_WEB_SOURCE ${PROJECT_BINARY_DIR}/generated/web_script.cpp)
file(CONFIGURE OUTPUT ${RLX_WEB_SOURCE} @ONLY CONTENT [[
#include "formats/web/web_folder.h"

std::string_view rlx::web_script() { return R"---(@web_script@)---"; }
std::string_view rlx::web_words(std::string_view model) {
  if (model == "BPE") return R"---(@web_byte_pairs@)---";
  if (model == "Unigram") return R"---(@web_unigram@)---";
  return model == "WordPiece" ? R"---(@web_word_piece@)---" : "";
}
std::string_view rlx::web_page() { return R"---(@web_page@)---"; }
]])
target_sources(rlx PRIVATE ${RLX_WEB_SOURCE})
