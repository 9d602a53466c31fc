# With RLX_UNITY the compiler reads several sources of a directory as one, so that what they instantiate from the same headers is compiled
# once: a whole build in two thirds of the time. Their file-local names must then differ; directories that repeat such names on purpose (a
# kernel per instruction set, a parser per format) are not in the list.
if(NOT RLX_UNITY)
  return()
endif()
set_target_properties(rlx PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
foreach(directory backends/coreml backends/gpu backends/metal backends/opencl backends/webgpu base emit ir kernel lowering models ops passes
                  runtime text transform)
  set(sources ${library_sources})
  list(FILTER sources INCLUDE REGEX "/src/${directory}/")
  string(REPLACE "/" "_" group_name ${directory})
  set(count 0)
  foreach(source ${sources})
    math(EXPR group "${count} / 8")
    math(EXPR count "${count} + 1")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group_name}_${group})
  endforeach()
endforeach()
foreach(target rlx_command rlx_llvm rlx_mlx)
  if(TARGET ${target})
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  endif()
endforeach()
