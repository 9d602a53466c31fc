# What the build writes: rlx/version.h, rlx/ops.h with one builder function per op, collected from src/ops, the same as the table of
# rlx/registry.h, and the commit.
set(RLX_GENERATED_INCLUDE ${PROJECT_BINARY_DIR}/generated/include)
configure_file(${PROJECT_SOURCE_DIR}/cmake/version.h.in ${RLX_GENERATED_INCLUDE}/rlx/version.h @ONLY)

find_package(Python3 REQUIRED COMPONENTS Interpreter)
file(GLOB_RECURSE op_sources CONFIGURE_DEPENDS src/ops/*.cpp)
file(GLOB_RECURSE op_tables CONFIGURE_DEPENDS src/ops/*.def src/ops/*.h)
set(op_declarations ${PROJECT_SOURCE_DIR}/scripts/op_declarations.py)
set(op_types ${PROJECT_SOURCE_DIR}/include/rlx/op_types.h)

set(RLX_BUILDER_TABLE ${PROJECT_BINARY_DIR}/generated/builder_table.cpp)

# The script leaves unchanged files alone, so that editing the body of an op recompiles one file.
add_custom_command(
  OUTPUT ${RLX_GENERATED_INCLUDE}/rlx/ops.h ${RLX_BUILDER_TABLE}
  COMMAND ${Python3_EXECUTABLE} ${op_declarations} ${RLX_GENERATED_INCLUDE}/rlx/ops.h ${RLX_BUILDER_TABLE} ${op_types} ${op_tables} ${op_sources}
  DEPENDS ${op_declarations} ${PROJECT_SOURCE_DIR}/scripts/op_parameters.py ${op_types} ${op_sources} ${op_tables}
  COMMENT "Collecting the declarations of the ops"
  VERBATIM)
add_custom_target(op_declarations DEPENDS ${RLX_GENERATED_INCLUDE}/rlx/ops.h)
add_dependencies(rlx op_declarations)
target_sources(rlx PRIVATE ${RLX_GENERATED_INCLUDE}/rlx/ops.h ${RLX_BUILDER_TABLE})
set_source_files_properties(${RLX_BUILDER_TABLE} PROPERTIES COMPILE_OPTIONS "$<$<CONFIG:Release>:-O1>")  # called once an op: shortens the build

set(RLX_COMMIT_SOURCE ${PROJECT_BINARY_DIR}/generated/commit.cpp)
add_custom_target(commit
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DOUT=${RLX_COMMIT_SOURCE} -P ${PROJECT_SOURCE_DIR}/cmake/commit.cmake
  BYPRODUCTS ${RLX_COMMIT_SOURCE}
  COMMENT "Asking for the commit"
  VERBATIM)
