#pragma once
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/gpu/device.h"
#include "backends/kernels_by_text.h"

namespace rlx::gpu {

/// A binary that a driver has loaded. Let go, it is unloaded once what was launched is done.
struct LoadedModule {
  LoadedModule(const DeviceFacts& on, Context in, Stream launched_in, ModuleHandle made)
      : device(on), context(in), stream(launched_in), handle(made) {}
  ~LoadedModule();
  LoadedModule(const LoadedModule&) = delete;
  LoadedModule& operator=(const LoadedModule&) = delete;

  const DeviceFacts& device;
  Context context;
  Stream stream;
  ModuleHandle handle;
};

struct LoadedKernel {
  std::shared_ptr<const LoadedModule> module;
  std::string name;
  std::vector<int> element_bytes;  // by buffer
  int group, on_chip_bytes;        // see KernelText
  std::vector<BoxMap> maps;
  std::vector<std::string> symbols;
  FunctionHandle function = nullptr;
};

/// Makes kernels of texts, once for each text that something holds. Thread-safe.
class Modules {
 public:
  Modules(const DeviceFacts& device, Context context, Stream stream) : device_(device), context_(context), stream_(stream) {}

  /// One kernel for each text. Those that are not loaded become one binary. It comes from the cache folder (empty: none), where it was
  /// made by the same compiler for the same device. Throws Error for a text that the compiler refuses: its log.
  std::vector<std::shared_ptr<const LoadedKernel>> load(std::span<const KernelText> texts, const std::filesystem::path& cache,
                                                        CompileCounters& counters);

 private:
  using Texts = std::span<const KernelText* const>;
  std::shared_ptr<const LoadedModule> module_of(Texts texts, const std::filesystem::path& cache, CompileCounters& counters) const;
  std::string binary_of(Texts texts) const;
  std::shared_ptr<const LoadedModule> loaded(const void* binary, Code& code) const;

  const DeviceFacts& device_;
  Context context_;
  Stream stream_;
  KernelsByText<LoadedKernel> kernels_;
};

/// All that a binary depends on beside the texts.
std::string fingerprint(const DeviceFacts& device);

}  // namespace rlx::gpu
