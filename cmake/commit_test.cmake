# What commit.cmake writes: nothing for a tarball, else the commit, and whether files were changed since.
# Usage: cmake -DFOLDER=<a folder for the test> -P commit_test.cmake
set(source ${FOLDER}/source)
file(REMOVE_RECURSE ${FOLDER})
file(MAKE_DIRECTORY ${source})

function(expect pattern)
  execute_process(COMMAND ${CMAKE_COMMAND} -DSOURCE=${source} -DOUT=${FOLDER}/commit.cpp -P ${CMAKE_CURRENT_LIST_DIR}/commit.cmake
    COMMAND_ERROR_IS_FATAL ANY)
  file(READ ${FOLDER}/commit.cpp written)
  if(NOT written MATCHES "commit = \"${pattern}\";")
    message(FATAL_ERROR "not ${pattern}: ${written}")
  endif()
endfunction()

function(git)
  execute_process(COMMAND git -c user.name=test -c user.email=test@localhost ${ARGV} WORKING_DIRECTORY ${source} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

expect("")
git(init --quiet)
file(WRITE ${source}/file "first")
git(add file)
git(commit --quiet --message first)
execute_process(COMMAND git rev-parse --short=12 HEAD WORKING_DIRECTORY ${source} OUTPUT_VARIABLE first OUTPUT_STRIP_TRAILING_WHITESPACE)
git(tag v1)  # the commit, whatever its name
expect(${first})
file(WRITE ${source}/file "second")
expect(${first}-dirty)
