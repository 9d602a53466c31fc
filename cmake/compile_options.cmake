# Options of every target of this project: the language, the warnings, the floating-point rules, the sanitizers, the cache.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)

if(PROJECT_IS_TOP_LEVEL AND NOT RLX_PYTHON)  # a wheel is built by compilers that nobody here has tried
  set(CMAKE_COMPILE_WARNING_AS_ERROR ON)
endif()
add_compile_options(-Wall -Wextra)
set(RLX_SANITIZE "" CACHE STRING "Sanitizers for everything that is built, e.g. address,undefined or thread (needs Clang)")
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # libstdc++ 12 uses a deprecated function of its own in std::stable_sort, and Clang blames the caller.
  add_compile_options(-Wno-deprecated-declarations)
  # Lint reads headers in each file, so one that forgets an include is found.
  if(NOT RLX_SANITIZE)
    set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)
  endif()
endif()

# Results must not depend on what a compiler chooses to contract, nor pay for an errno that nobody reads. Calls inside librlx need
# no detour through the PLT: nobody replaces its functions.
add_compile_options(-fno-math-errno -ffp-contract=off -fno-semantic-interposition)

if(RLX_SANITIZE)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "RLX_SANITIZE=${RLX_SANITIZE}: the compiler is ${CMAKE_CXX_COMPILER_ID} (allowed: Clang)")
  endif()
  add_compile_options(-fsanitize=${RLX_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${RLX_SANITIZE})
  if(RLX_SANITIZE MATCHES "undefined")
    # `function` reads a word before the callee, which code from the JIT does not have; `vptr` needs type information of LLVM's classes.
    add_compile_options(-fno-sanitize=function,vptr)
    add_link_options(-fno-sanitize=function,vptr)
  endif()
endif()

# What the cache asks for where headers are precompiled. Clones share nothing: a precompiled header holds the paths of its own clone.
# By preprocessed text (without CCACHE_DEPEND) a header of which only a comment changed would be taken for the same, and one precompiled
# before the change for its own: GCC then reads it a second time, past its `#pragma once`. The namespace leaves such entries behind.
find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_DEPEND=1 CCACHE_NAMESPACE=depend CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
endif()

# The tests of a folder are one executable: with gold or lld it is linked in a tenth of the time.
include(CheckLinkerFlag)
set(linker gold)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  set(linker lld)
endif()
check_linker_flag(CXX -fuse-ld=${linker} RLX_HAS_FAST_LINKER)
if(RLX_HAS_FAST_LINKER)
  add_link_options(-fuse-ld=${linker})
endif()
