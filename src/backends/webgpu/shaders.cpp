#include "backends/webgpu/shaders.h"

#include <algorithm>

namespace rlx::webgpu {

Layout::Layout(OpenDevice& on, std::size_t buffers) : device(on) {
  std::vector<BindGroupLayoutEntry> entries(buffers + 1);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    entries[i].binding = static_cast<std::uint32_t>(i);
    entries[i].buffer.type = i == 0 ? uniform_binding : storage_binding;
  }
  const BindGroupLayoutDescriptor bound{{}, entries.size(), entries.data()};
  group = device.driver().DeviceCreateBindGroupLayout(device.handle, &bound);
  const PipelineLayoutDescriptor descriptor{{}, 1, &group};
  pipeline = device.driver().DeviceCreatePipelineLayout(device.handle, &descriptor);
  device.check("binding {} buffers", buffers);
}

Layout::~Layout() {
  device.driver().PipelineLayoutRelease(pipeline);
  device.driver().BindGroupLayoutRelease(group);
}

LoadedKernel::LoadedKernel(std::shared_ptr<const Layout> bound, const KernelText& text)
    : layout(std::move(bound)),
      name(text.name),
      element_bytes(text.element_bytes),
      gathered(text.gathered),
      rounds(text.rounds),
      symbols(text.symbols) {
  OpenDevice& device = layout->device;
  WgslSource source{{nullptr, source_is_wgsl}, std::string_view(text.text)};
  const Label descriptor{&source.chain, std::string_view(name)};
  const ShaderModule module = device.driver().DeviceCreateShaderModule(device.handle, &descriptor);
  std::string report = device.take_report();
  if (report.empty()) {
    PipelineDescriptor made{{nullptr, std::string_view(name)}, layout->pipeline, {}};
    made.compute.module = module;
    made.compute.entry = std::string_view(name);
    pipeline = device.driver().DeviceCreateComputePipeline(device.handle, &made);
    report = device.take_report();
  }
  if (module) device.driver().ShaderModuleRelease(module);
  if (report.empty()) return;
  if (pipeline) device.driver().ComputePipelineRelease(pipeline);
  fail("{} ({}): the driver refuses kernel {} (rlx dump --stage kernels --device {} shows it)\n{}", device.facts.name, device.facts.title,
       name, device.facts.name, report);
}

LoadedKernel::~LoadedKernel() { layout->device.driver().ComputePipelineRelease(pipeline); }

std::vector<std::shared_ptr<const LoadedKernel>> Shaders::load(std::span<const KernelText> texts, CompileCounters& counters) {
  return kernels_.load(texts, counters, [&](std::span<const KernelText* const> missing) {
    std::vector<std::shared_ptr<const LoadedKernel>> kernels;
    for (const KernelText* text : missing) kernels.push_back(made_of(*text));
    counters.kernels_compiled += std::ssize(missing);
    return kernels;
  });
}

std::shared_ptr<const LoadedKernel> Shaders::made_of(const KernelText& text) {
  std::size_t buffers = text.element_bytes.size();
  if (!text.gathered.empty())
    buffers -= static_cast<std::size_t>(std::ranges::count_if(text.gathered, [](const auto& g) { return !!g; })) - 1;
  if (buffers > device_.facts.limits.storage_buffers)
    fail("{} ({}): kernel {} has {} buffers (allowed: {})", device_.facts.name, device_.facts.title, text.name, buffers,
         device_.facts.limits.storage_buffers);
  std::shared_ptr<const Layout>& layout = layouts_[buffers];
  if (!layout) layout = std::make_shared<const Layout>(device_, buffers);
  return std::make_shared<const LoadedKernel>(layout, text);
}

}  // namespace rlx::webgpu
