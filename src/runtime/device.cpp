#include <algorithm>
#include <cstdlib>

#include "backends/coreml/blocks.h"
#include "backends/coreml/device/backend.h"
#include "backends/coreml/refusals.h"
#include "backends/cpu/backend.h"
#include "backends/gpu/backend.h"
#include "backends/metal/backend.h"
#include "backends/mlx/backend.h"
#include "backends/opencl/backend.h"
#include "backends/webgpu/backend.h"
#include "base/names.h"
#include "ops/control/registered_kernels.h"
#include "runtime/coverage.h"

namespace rlx {
namespace {

/// Whether two names, or a name and a line of Device::missing(), are of one kind.
bool same_kind(std::string_view a, std::string_view b) { return a.substr(0, a.find(':')) == b.substr(0, b.find(':')); }

Device device_named(std::string_view name, std::string_view what) {
  const std::vector<Device> all = Device::all();
  std::vector<std::string> names;
  for (const Device& device : all) {
    names.push_back(device.name());
    if (name == names.back() || (name.find(':') == std::string_view::npos && same_kind(name, names.back()))) return device;
  }
  if (name == "auto") return Device::automatic();
  names.emplace_back("auto");
  const std::vector<std::string_view> known(names.begin(), names.end());
  std::string missing;
  for (const std::string& line : Device::missing())
    if (same_kind(line, name)) missing += "; " + line;
  fail("{} {}{}{}", what, quote_name(name), near_or_allowed(name, known), missing);
}

/// Throws Error for a device of a kind that is neither there nor missing.
void check_kind(std::string_view name, std::string_view what) {
  const auto is_like = [&](std::string_view other) { return same_kind(other, name); };
  const std::vector<Device> there = Device::all();
  if (std::ranges::any_of(there, [&](const Device& device) { return is_like(device.name()); })) return;
  if (!std::ranges::any_of(Device::missing(), is_like)) device_named(name, what);
}

}  // namespace

void register_kernel(std::string_view op, std::string_view device, HostKernel kernel) {
  if (device == "auto") fail("rlx.register_kernel: the device auto is another one for each graph (allowed: a name or a kind)");
  if (device != "cpu") check_kind(device, "rlx.register_kernel: no device");
  keep_kernel(op, device, std::move(kernel));
}

Device Device::cpu() { return Device(cpu::backend()); }

std::vector<Device> Device::all() {
  std::vector<Device> devices{cpu()};
  for (const auto* found :
       {&gpu::backends(), &metal::backends(), &opencl::backends(), &webgpu::backends(), &mlx::backends(), &coreml::backends()})
    for (const Backend* backend : *found) devices.push_back(Device(*backend));
  return devices;
}

std::vector<std::string> Device::missing() {
  std::vector<std::string> lines = gpu::missing();
  if (const std::string& why = metal::missing(); !why.empty()) lines.push_back("metal: " + why);
  if (const std::string& why = opencl::missing(); !why.empty()) lines.push_back("opencl: " + why);
  if (const std::string& why = webgpu::missing(); !why.empty()) lines.push_back("webgpu: " + why);
  if (const std::string& why = mlx::missing(); !why.empty()) lines.push_back("mlx: " + why);
  if (const std::string& why = coreml::missing(); !why.empty()) lines.push_back("coreml: " + why);
  return lines;
}

std::vector<DeviceKind> device_kinds() {
  std::vector<DeviceKind> kinds{kind_by_kernels(cpu::backend().target({})), kind_by_kernels(opencl::usual_target()),
                                kind_by_kernels(gpu::usual_target("cuda")), kind_by_kernels(gpu::usual_target("rocm")),
                                kind_by_kernels(metal::usual_target()),     kind_by_kernels(webgpu::usual_target())};
  if (!mlx::backends().empty()) kinds.push_back(kind_by_graphs(*mlx::backends().back()));
  kinds.push_back({"coreml", [](const Graph& graph) { return coreml::refusals(graph); }});
  return kinds;
}

std::string coreml_block_forms() { return coreml::block_forms(); }
TargetDevice web_target() { return webgpu::usual_target(); }

Device Device::named(std::string_view name) { return name == "cpu" ? cpu() : device_named(name, "no device"); }

Device Device::usual() {
  const char* const name = std::getenv("RLX_DEVICE");
  if (!name || std::string_view(name) == "cpu") return cpu();
  return device_named(name, "RLX_DEVICE: no device");
}

std::string Device::name() const { return backend_->name(); }
std::string Device::description() const { return backend_->description(); }
bool Device::multiplies(DType dtype) const { return backend_->target({}).caps.multiplies(dtype); }

}  // namespace rlx
