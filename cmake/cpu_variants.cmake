# Kernels written for one instruction set: src/backends/cpu/**/<name>_avx2.cpp and <name>_avx512.cpp. They alone may use those
# instructions; which of them runs is decided from CPUID bits. Everything else is compiled for the baseline of the architecture.
set(avx2_sources ${library_sources})
list(FILTER avx2_sources INCLUDE REGEX "/src/backends/cpu/.*_avx2\\.cpp$")
set(avx512_sources ${library_sources})
list(FILTER avx512_sources INCLUDE REGEX "/src/backends/cpu/.*_avx512\\.cpp$")

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$")
  set(avx2_options -mavx2 -mfma -mf16c)
  set(avx512_options -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mf16c)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # GCC 12 warns of its own intrinsics, whose "undefined" registers are initialised with themselves (GCC bug 105593).
    list(APPEND avx512_options -Wno-uninitialized -Wno-maybe-uninitialized)
    list(APPEND avx2_options -Wno-uninitialized -Wno-maybe-uninitialized)
  endif()
  set_source_files_properties(${avx2_sources} PROPERTIES COMPILE_OPTIONS "${avx2_options}")
  set_source_files_properties(${avx512_sources} PROPERTIES COMPILE_OPTIONS "${avx512_options}")
elseif(avx2_sources OR avx512_sources)
  list(REMOVE_ITEM library_sources ${avx2_sources} ${avx512_sources})
endif()
