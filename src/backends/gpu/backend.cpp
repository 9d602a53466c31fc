#include "backends/gpu/backend.h"

#include "backends/found_backends.h"
#include "backends/gpu/claims.h"
#include "backends/gpu/measure.h"
#include "backends/gpu/memory.h"
#include "backends/opened_once.h"
#include "base/bytes_text.h"

namespace rlx::gpu {
namespace {

KernelText print(const Kernel& kernel, const Caps& caps) { return emit_cuda(kernel, caps.schedule); }

struct GpuDevice : Backend {
  explicit GpuDevice(DeviceFacts of) : facts(std::move(of)) {}

  std::string name() const override { return facts.name; }
  std::string description() const override {
    return fmt::format("{}, {}, {} units; {}; {} of memory; computes in f32, f64", facts.title, facts.architecture(), facts.units,
                       facts.version, bytes_text(facts.memory));
  }
  DeviceFigures measure() const override { return gpu::measure(facts, *memory()); }
  TargetDevice target(const SessionOptions& options) const override {
    refuse_cpu_level(options, facts.name);
    Caps caps;
    const int level = 10 * facts.major + facts.minor;
    const bool has_matrix_units = facts.driver->vendor == Vendor::cuda && level >= 80;
    caps.multiplied = {f32, f64};
    if (has_matrix_units) caps.multiplied.insert(caps.multiplied.end(), {bf16, f16, i8});
    caps.units = static_cast<int>(facts.units);
    caps.multiplies_in_groups = facts.is_hopper();
    caps.schedule = {.lanes = true, .group = 512};
    return {std::string(kind_of(facts.driver->vendor)), fingerprint(facts), level, std::move(caps), print, claims(options.claims)};
  }
  DeviceMemory* memory() const override { return opened.get(facts); }

  DeviceFacts facts;
  OpenedOnce<Memory> opened;
};

struct Found {
  std::vector<const Backend*> backends;
  std::vector<std::string> missing;
};

Found find() {
  Found found;
  for (const Vendor vendor : {Vendor::cuda, Vendor::rocm}) {
    Devices devices = find_devices(vendor);
    for (DeviceFacts& facts : devices.found) found.backends.push_back(backend_of(std::move(facts)).release());
    if (!devices.missing.empty()) found.missing.push_back(std::move(devices.missing));
  }
  return found;
}

}  // namespace

std::unique_ptr<Backend> backend_of(DeviceFacts facts) { return std::make_unique<GpuDevice>(std::move(facts)); }
TargetDevice usual_target(std::string_view kind) {
  Driver driver{};
  driver.vendor = kind == "cuda" ? Vendor::cuda : Vendor::rocm;
  DeviceFacts facts;
  facts.driver = std::make_shared<const Driver>(driver);
  facts.major = 9;
  return backend_of(std::move(facts))->target({});
}

const std::vector<const Backend*>& backends() { return found_once<find>().backends; }
const std::vector<std::string>& missing() { return found_once<find>().missing; }

}  // namespace rlx::gpu
