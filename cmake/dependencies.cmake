# The libraries that RLX stands on. All of them are Debian packages, listed in scripts/packages.txt.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)

# LLVM's version file accepts only an exact major.minor, so each accepted release is tried in turn.
# What it says about its own optional dependencies is of no interest here.
set(CMAKE_MESSAGE_LOG_LEVEL WARNING)
foreach(release 19.1 20.1 21.1 22.1)
  string(REGEX MATCH "^[0-9]+" major ${release})
  find_package(LLVM ${release} CONFIG QUIET HINTS /usr/lib/llvm-${major}/lib/cmake/llvm)
  if(LLVM_FOUND)
    break()
  endif()
endforeach()
unset(CMAKE_MESSAGE_LOG_LEVEL)
if(NOT LLVM_FOUND)
  message(FATAL_ERROR "LLVM was not found (allowed: 19.1 to 22.1; on Debian: apt-get install llvm-19-dev, or set LLVM_DIR)")
endif()
message(STATUS "LLVM ${LLVM_PACKAGE_VERSION} in ${LLVM_DIR}")

# MLX is optional: that of build/mlx, where scripts/fetch_mlx.sh installs it, or any other that CMake finds. It is built without sanitizers,
# which would report what it does.
file(GLOB mlx_folders ${PROJECT_SOURCE_DIR}/build/mlx/lib/python3*/site-packages/mlx)
if(NOT RLX_SANITIZE)
  find_package(MLX CONFIG QUIET HINTS ${mlx_folders})
endif()
if(MLX_FOUND)
  message(STATUS "MLX in ${MLX_DIR}")
endif()

find_path(UTF8PROC_INCLUDE_DIR utf8proc.h REQUIRED)
find_library(UTF8PROC_LIBRARY utf8proc REQUIRED)
find_path(EDIT_INCLUDE_DIR histedit.h REQUIRED)
find_library(EDIT_LIBRARY edit REQUIRED)
find_path(XXHASH_INCLUDE_DIR xxhash.h REQUIRED)
find_path(OPENCL_INCLUDE_DIR CL/cl.h REQUIRED)  # the library is opened at run time, where there is one

# What librlx uses inside and its public headers never show.
separate_arguments(llvm_definitions UNIX_COMMAND "${LLVM_DEFINITIONS}")
add_library(rlx_private_dependencies INTERFACE)
target_include_directories(rlx_private_dependencies SYSTEM INTERFACE
  ${UTF8PROC_INCLUDE_DIR} ${XXHASH_INCLUDE_DIR} ${OPENCL_INCLUDE_DIR} ${LLVM_INCLUDE_DIRS})
target_compile_definitions(rlx_private_dependencies INTERFACE XXH_INLINE_ALL)
target_compile_options(rlx_private_dependencies INTERFACE ${llvm_definitions})
target_link_libraries(rlx_private_dependencies INTERFACE
  nlohmann_json::nlohmann_json ${UTF8PROC_LIBRARY} Threads::Threads ${CMAKE_DL_LIBS})
