# Installs a build into an empty folder, where the tests of the examples look for it.
# Usage: cmake -DBUILD=<build folder> -DPREFIX=<where to> -DHAS_COMMAND=<ON with bin/rlx> -P package_test.cmake
file(REMOVE_RECURSE ${PREFIX})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${PREFIX} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
if(HAS_COMMAND)
  execute_process(COMMAND ${PREFIX}/bin/rlx --help COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endif()
