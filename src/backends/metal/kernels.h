#pragma once
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/kernels_by_text.h"
#include "backends/metal/driver.h"

namespace rlx::metal {

/// A kernel of a Memory, which outlives it.
struct LoadedKernel {
  Gpu& gpu;
  void* handle;
  std::string name;
  std::vector<int> element_bytes;  // by buffer

  LoadedKernel(Gpu& of, void* its_handle, const KernelText& text)
      : gpu(of), handle(its_handle), name(text.name), element_bytes(text.element_bytes) {}
  LoadedKernel(const LoadedKernel&) = delete;
  LoadedKernel& operator=(const LoadedKernel&) = delete;
  ~LoadedKernel() { gpu.let_go_kernel(handle); }
};

/// All that kernels depend on beside their text.
std::string fingerprint(const Gpu& gpu);

/// One kernel for each text. Metal compiles them, by what an archive in the cache folder has of them.
std::vector<std::shared_ptr<const LoadedKernel>> make_kernels(Gpu& gpu, const std::string& device, std::span<const KernelText* const> texts,
                                                              const std::filesystem::path& cache, CompileCounters& counters);

}  // namespace rlx::metal
