# Builds an example against an installed package, as a stranger would, runs it, and compares what it prints.
# Usage: cmake -DEXAMPLE=<folder> -DBUILD=<where to build it> -DPREFIX=<the package> -DCOMPILER=<c++> -DEXPECTED=<regular expression>
#              [-DARGUMENTS=<list>] [-DINPUT=<file for its standard input>] -P example_test.cmake
function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

cmake_path(GET EXAMPLE FILENAME name)
file(REMOVE_RECURSE ${BUILD})
run(${CMAKE_COMMAND} -G Ninja -S ${EXAMPLE} -B ${BUILD} -DCMAKE_PREFIX_PATH=${PREFIX} -DCMAKE_CXX_COMPILER=${COMPILER})
run(${CMAKE_COMMAND} --build ${BUILD})
execute_process(COMMAND ${BUILD}/${name} ${ARGUMENTS} INPUT_FILE ${INPUT} WORKING_DIRECTORY ${BUILD}
  OUTPUT_VARIABLE printed ECHO_OUTPUT_VARIABLE COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
if(NOT printed MATCHES "${EXPECTED}")
  message(FATAL_ERROR "${name} does not print what it should: ${EXPECTED}")
endif()
