# Builds a program with what pkg-config says of an installed package, and runs it: nothing but librlx is linked.
# Usage: cmake -DSOURCE=<main.cpp> -DBUILD=<where to build it> -DPREFIX=<the package> -DLIBDIR=<lib> -DCOMPILER=<c++> -DPKG_CONFIG=<pkg-config>
#              -DEXPECTED=<regular expression of what it prints> -P pkg_config_test.cmake
set(ENV{PKG_CONFIG_PATH} ${PREFIX}/${LIBDIR}/pkgconfig)
execute_process(COMMAND ${PKG_CONFIG} --cflags --libs rlx OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
if(flags MATCHES "fmt")
  message(FATAL_ERROR "a program needs more than librlx: ${flags}")
endif()
separate_arguments(flags UNIX_COMMAND "${flags}")
file(MAKE_DIRECTORY ${BUILD})
execute_process(COMMAND ${COMPILER} -std=c++20 ${SOURCE} ${flags} -Wl,-rpath,${PREFIX}/${LIBDIR} -o ${BUILD}/program
  COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${BUILD}/program OUTPUT_VARIABLE printed ECHO_OUTPUT_VARIABLE COMMAND_ERROR_IS_FATAL ANY)
if(NOT printed MATCHES "${EXPECTED}")
  message(FATAL_ERROR "the program does not print what it should: ${EXPECTED}")
endif()
