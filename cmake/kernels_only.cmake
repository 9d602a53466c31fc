# RLX_KERNELS_ONLY: the hand-written kernels of the CPU and their tests, without LLVM and what else only generated code needs, for an
# architecture that this machine emulates. Every test runs once as each of these CPUs: one that has all instructions, and one that has
# the oldest.
set(emulated_cpus max cortex-a72)
set(googletest /usr/src/googletest/googletest CACHE PATH "The sources of GoogleTest")

file(GLOB library_sources CONFIGURE_DEPENDS src/base/*.cpp src/base/*/*.cpp src/backends/cpu/gemm/*.cpp
  src/backends/cpu/gemm/micro_kernels/*.cpp src/backends/cpu/peaks/*.cpp src/quant/*.cpp)
foreach(source ir/operand backends/cpu/machine/cpu_features backends/cpu/machine/denormals)
  list(APPEND library_sources ${PROJECT_SOURCE_DIR}/src/${source}.cpp)
endforeach()
file(GLOB claim_sources CONFIGURE_DEPENDS src/backends/cpu/attention/*.cpp src/backends/cpu/attention/tiles/*.cpp
  src/backends/cpu/quantized/*.cpp)
list(FILTER claim_sources EXCLUDE REGEX "/(claim|step)\\.cpp$")  # of graphs
list(APPEND library_sources ${claim_sources})
include(cmake/cpu_variants.cmake)

add_library(gtest STATIC EXCLUDE_FROM_ALL ${googletest}/src/gtest-all.cc ${googletest}/src/gtest_main.cc)
target_include_directories(gtest PRIVATE ${googletest})
target_compile_options(gtest PRIVATE -w)  # not our sources
find_package(Threads REQUIRED)
add_library(kernels OBJECT ${library_sources})
target_include_directories(kernels PUBLIC include src)
target_compile_definitions(kernels PUBLIC FMT_HEADER_ONLY)

enable_testing()
foreach(test base/thread_pool backends/amx backends/attention_levels backends/block_levels backends/cpu_features backends/denormals backends/dot_products backends/gemm backends/peaks
        backends/tune)
  string(MAKE_C_IDENTIFIER ${test} target)
  add_executable(${target} tests/${test}_test.cpp)
  target_include_directories(${target} PRIVATE tests)
  target_link_libraries(${target} PRIVATE kernels gtest Threads::Threads)
  target_compile_options(${target} PRIVATE -O1)  # shortens the build; the time of the tests is spent in the kernels
  foreach(cpu ${emulated_cpus})
    add_test(NAME ${test}@${cpu} COMMAND ${target})
    # Speeds of an emulated CPU say nothing.
    set_tests_properties(${test}@${cpu} PROPERTIES TIMEOUT 600
      ENVIRONMENT "QEMU_CPU=${cpu};GTEST_FILTER=-Peaks.ComputeLoopsAreOfDifferentArithmeticAndRun")
  endforeach()
endforeach()
