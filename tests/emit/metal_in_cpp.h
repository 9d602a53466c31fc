#pragma once
#include <string>

#include "emit/cuda_in_cpp.h"

// Kernels of Metal without a Mac: C++ by Clang with tests/metal/metal_stdlib, in which every thread is a call.
namespace rlx::test {

/// A function that runs all threads of a kernel, by threads_in_cpp; its one argument is the struct that the kernel gets.
inline std::string metal_runner(const std::string& name) {
  const std::string thread = "thread_of_" + name;
  return "static void " + thread + "(Given_" + name + "* given) { " + name +
         "(*given, blockIdx.x, threadIdx.x, blockDim.x); }\n"
         "extern \"C\" void run_all_of_" +
         name + "(void** arguments, unsigned blocks, unsigned threads, unsigned seed) {\n  run_threads(" + thread +
         ", {arguments, blocks, threads, 32, seed, 0, 0, 0});\n}\n";
}

}  // namespace rlx::test
