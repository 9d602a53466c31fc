# Installs a build into an empty folder, then builds and runs examples/hello against it as a stranger would.
# Usage: cmake -DBUILD=<build folder> -DEXAMPLE=<examples/hello> -DCOMPILER=<c++> -DHAS_COMMAND=<ON with bin/rlx> -P package_test.cmake
set(prefix ${BUILD}/package_test/prefix)
set(example_build ${BUILD}/package_test/hello)
file(REMOVE_RECURSE ${BUILD}/package_test)

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})
run(${CMAKE_COMMAND} -G Ninja -S ${EXAMPLE} -B ${example_build} -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_CXX_COMPILER=${COMPILER})
run(${CMAKE_COMMAND} --build ${example_build})
run(${example_build}/hello)
if(HAS_COMMAND)
  run(${prefix}/bin/rlx --help)
endif()
