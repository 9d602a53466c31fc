#pragma once
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/kernels_by_text.h"
#include "backends/webgpu/device.h"
#include "emit/emit.h"
#include "rlx/session.h"

namespace rlx::webgpu {

/// What kernels that bind so many buffers have: the table of sizes, and the buffers behind it.
struct Layout {
  Layout(OpenDevice& device, std::size_t buffers);
  ~Layout();
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;

  OpenDevice& device;
  BindGroupLayout group;
  PipelineLayout pipeline;
};

struct LoadedKernel {
  LoadedKernel(std::shared_ptr<const Layout> layout, const KernelText& text);
  ~LoadedKernel();
  LoadedKernel(const LoadedKernel&) = delete;
  LoadedKernel& operator=(const LoadedKernel&) = delete;

  std::shared_ptr<const Layout> layout;
  std::string name;
  std::vector<int> element_bytes;  // by buffer
  std::vector<std::optional<Dim>> gathered;
  std::vector<Rounds> rounds;
  std::vector<std::string> symbols;
  ComputePipeline pipeline = nullptr;
};

/// Makes kernels of texts, once for each text that something holds. Thread-safe. WebGPU has no form of a kernel that could be kept on disk;
/// drivers keep what they make themselves.
class Shaders {
 public:
  explicit Shaders(OpenDevice& device) : device_(device) {}

  /// One kernel for each text. Throws Error for a text that the driver refuses: what it says of which line.
  std::vector<std::shared_ptr<const LoadedKernel>> load(std::span<const KernelText> texts, CompileCounters& counters);

 private:
  std::shared_ptr<const LoadedKernel> made_of(const KernelText& text);

  OpenDevice& device_;
  KernelsByText<LoadedKernel> kernels_;
  std::map<std::size_t, std::shared_ptr<const Layout>> layouts_;  // by buffers
};

}  // namespace rlx::webgpu
