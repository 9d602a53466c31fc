# With RLX_UNITY the compiler reads several sources of a directory as one, so that what they instantiate from the same headers is compiled
# once: a whole build in two thirds of the time. Their file-local names must then differ; directories that repeat such names on purpose (a
# kernel per instruction set, a parser per format) are not in the list.
if(NOT RLX_UNITY)
  return()
endif()
set_target_properties(rlx PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)

# join_sources(<directory of src> <sources a unit> [<option>...]): the options are the unit's, as a source that has some is not joined.
function(join_sources directory size)
  set(sources ${library_sources})
  list(FILTER sources INCLUDE REGEX "/src/${directory}/")
  string(REPLACE "/" "_" name ${directory})
  set(count 0)
  foreach(source ${sources})
    math(EXPR group "${count} / ${size}")
    math(EXPR count "${count} + 1")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${name}_${group})
    set_source_files_properties(${PROJECT_BINARY_DIR}/CMakeFiles/rlx.dir/Unity/unity_${name}_${group}_cxx.cxx
      PROPERTIES COMPILE_OPTIONS "${ARGN}")
  endforeach()
endfunction()

foreach(directory backends/gpu backends/metal backends/opencl backends/webgpu base emit ir kernel lowering passes runtime text transform)
  join_sources(${directory} 8)
endforeach()
foreach(directory conversion run weights)
  join_sources(models/${directory} 16)
endforeach()
# What nobody waits for is optimised less, which takes a quarter less time: it builds graphs, or reads and writes small files.
set(less $<$<CONFIG:Release>:-O1>)
foreach(directory backends/coreml ops)
  join_sources(${directory} 8 ${less})
endforeach()
foreach(directory api config families layers)
  join_sources(models/${directory} 16 ${less})
endforeach()
foreach(target rlx_command rlx_llvm rlx_mlx)
  if(TARGET ${target})
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  endif()
endforeach()
if(TARGET rlx_command)
  set_target_properties(rlx_command PROPERTIES UNITY_BUILD_BATCH_SIZE 16)
endif()

# Large units make garbage that GCC would collect several times: without, they take up to an eighth less time and 120 MB more each.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  foreach(target rlx rlx_command)
    if(TARGET ${target})
      target_compile_options(${target} PRIVATE --param=ggc-min-heapsize=524288)
    endif()
  endforeach()
endif()
