#pragma once
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/kernels_by_text.h"
#include "backends/opencl/device.h"
#include "emit/emit.h"
#include "rlx/session.h"

namespace rlx::opencl {

struct BuiltProgram;

struct LoadedKernel {
  LoadedKernel(const DeviceFacts& on, std::shared_ptr<const BuiltProgram> program, const KernelText& text);
  ~LoadedKernel();
  LoadedKernel(const LoadedKernel&) = delete;
  LoadedKernel& operator=(const LoadedKernel&) = delete;

  const DeviceFacts& device;
  std::shared_ptr<const BuiltProgram> program;
  std::string name;
  std::vector<int> element_bytes;  // by buffer
  cl_kernel handle = nullptr;
  std::size_t arguments = 0;
  std::int64_t largest_group = 1;
};

/// Makes kernels of texts, once for each text that something holds. Thread-safe.
class Programs {
 public:
  Programs(const DeviceFacts& device, cl_context context) : device_(device), context_(context) {}

  /// One kernel for each text. Those that are not loaded become one program: a driver takes as long for a program as for two kernels. It
  /// comes from the cache folder (empty: none), where it was built by the same driver for the same device. Throws Error for a text that
  /// the driver refuses: its log.
  std::vector<std::shared_ptr<const LoadedKernel>> load(std::span<const KernelText> texts, const std::filesystem::path& cache,
                                                        CompileCounters& counters);

 private:
  std::shared_ptr<const BuiltProgram> program_of(std::span<const KernelText* const> texts, const std::filesystem::path& cache,
                                                 CompileCounters& counters) const;
  std::shared_ptr<const BuiltProgram> built_from_source(std::span<const KernelText* const> texts) const;
  std::shared_ptr<const BuiltProgram> built_from_binary(std::span<const std::byte> binary) const;

  const DeviceFacts& device_;
  cl_context context_;
  KernelsByText<LoadedKernel> kernels_;
};

/// All that a binary depends on beside the texts.
std::string fingerprint(const DeviceFacts& device);

}  // namespace rlx::opencl
