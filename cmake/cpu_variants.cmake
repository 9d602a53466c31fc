# Kernels written for one instruction set: src/backends/cpu/**/<name>_<set>.cpp. They alone may use those instructions; which of them
# runs is decided from what the CPU says. Everything else is compiled for the baseline of the architecture.
set(x86_64_sets avx2 avx512 avx512bf16 avx512vnni amx)
set(avx2_options -mavx2 -mfma -mf16c)
set(avx512_options -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mf16c)
set(avx512bf16_options ${avx512_options} -mavx512bf16)
set(avx512vnni_options ${avx512_options} -mavx512vnni)
set(amx_options ${avx512_options} -mamx-tile -mamx-bf16 -mamx-int8)

set(aarch64_sets neon neondot neonbf16)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC's scheduler before the allocation of registers moves all loads to the front of a tile, and then has no registers for its sums.
  set(neon_options -fno-schedule-insns)
endif()
set(neondot_options ${neon_options} -march=armv8.2-a+dotprod)
set(neonbf16_options ${neon_options} -march=armv8.2-a+bf16)

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$")
  set(architecture x86_64)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64|ARM64)$")
  set(architecture aarch64)
endif()

# Checks written out beside each load of an unrolled tile keep the compiler busy for minutes: here they are calls, and of pointers
# AddressSanitizer's check alone remains (the largest of these files: 232 -> 54 s).
set(sanitized_kernel_options "")
if(RLX_SANITIZE MATCHES "address")
  list(APPEND sanitized_kernel_options -mllvm -asan-instrumentation-with-call-threshold=0)
endif()
if(RLX_SANITIZE MATCHES "undefined")
  list(APPEND sanitized_kernel_options -fno-sanitize=pointer-overflow,null,object-size)
endif()

set(variant_sources "")
foreach(instructions ${x86_64_sets} ${aarch64_sets})
  set(sources ${library_sources})
  list(FILTER sources INCLUDE REGEX "/src/backends/cpu/.*_${instructions}\\.cpp$")
  if(instructions IN_LIST ${architecture}_sets)
    set(options ${${instructions}_options})
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
      # GCC 12 warns of its own intrinsics, whose "undefined" registers are initialised with themselves (GCC bug 105593).
      list(APPEND options -Wno-uninitialized -Wno-maybe-uninitialized)
    endif()
    list(APPEND options ${sanitized_kernel_options})
    set_source_files_properties(${sources} PROPERTIES COMPILE_OPTIONS "${options}")
    list(APPEND variant_sources ${sources})
  elseif(sources)
    list(REMOVE_ITEM library_sources ${sources})
  endif()
endforeach()
