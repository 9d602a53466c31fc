#include "backends/webgpu/backend.h"

#include "backends/found_backends.h"
#include "backends/opened_once.h"
#include "backends/webgpu/memory.h"
#include "base/bytes_text.h"
#include "lowering/kernels_only/kernel_claims.h"

namespace rlx::webgpu {
namespace {

KernelText print(const Kernel& kernel, const Caps& caps) { return emit_wgsl(kernel, caps.schedule, caps.most_buffers); }

struct WebGpuDevice : Backend {
  explicit WebGpuDevice(DeviceFacts of) : facts(std::move(of)) {}

  std::string name() const override { return facts.name; }
  std::string description() const override {
    return fmt::format("{}{}{}; buffers up to {}, {} of a kernel; computes in f32", facts.title, facts.version.empty() ? "" : ", driver ",
                       facts.version, bytes_text(facts.largest_buffer()), facts.limits.storage_buffers);
  }
  TargetDevice target(const SessionOptions& options) const override {
    refuse_cpu_level(options, facts.name);
    Caps caps;
    caps.multiplied = {f32};
    caps.lacks = {f64};
    caps.most_buffers = static_cast<int>(facts.limits.storage_buffers);
    caps.most_rounds = facts.most_rounds;
    caps.schedule = {.lanes = true, .products = false};
    return {"webgpu", fmt::format("webgpu; {}; {}", facts.title, facts.version), 0, std::move(caps), print, kernel_claims(options.claims)};
  }
  DeviceMemory* memory() const override { return opened.get(facts); }

  DeviceFacts facts;
  OpenedOnce<Memory> opened;
};

FoundBackends find() {
  Devices devices = find_devices(driver_files());
  FoundBackends found{{}, std::move(devices.missing)};
  for (DeviceFacts& facts : devices.found) found.backends.push_back(backend_of(std::move(facts)).release());
  return found;
}

}  // namespace

TargetDevice usual_target() {
  constexpr std::uint32_t most_buffers = 8;
  DeviceFacts facts;
  facts.limits.storage_buffers = most_buffers;
  return backend_of(std::move(facts))->target({});
}
std::unique_ptr<Backend> backend_of(DeviceFacts facts) { return std::make_unique<WebGpuDevice>(std::move(facts)); }
const std::vector<const Backend*>& backends() { return found_once<find>().backends; }
const std::string& missing() { return found_once<find>().missing; }

}  // namespace rlx::webgpu
