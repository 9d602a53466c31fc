#include "backends/opencl/backend.h"

#include "backends/found_backends.h"
#include "backends/opencl/measure.h"
#include "backends/opencl/memory.h"
#include "backends/opened_once.h"
#include "lowering/kernels_only/kernel_claims.h"

namespace rlx::opencl {
namespace {

KernelText print(const Kernel& kernel, const Caps& caps) { return emit_opencl(kernel, caps.schedule); }

/// What an item of a CPU's driver computes at a time, whatever its registers are; elsewhere items themselves are the elements of vectors.
constexpr int f32_of_vector = 16;

struct OpenClDevice : Backend {
  explicit OpenClDevice(DeviceFacts of) : facts(std::move(of)) {}

  std::string name() const override { return facts.name; }
  std::string description() const override {
    std::string types = "f32";
    if (facts.has_f64) types += ", f64";
    if (facts.has_f16) types += ", f16";
    return fmt::format("{}, {} units; {}, driver {}; {} of memory, buffers up to {}, {} in a group; computes in {}", facts.title,
                       facts.units, facts.platform, facts.version, bytes_text(facts.memory), bytes_text(facts.largest_buffer),
                       bytes_text(facts.local_bytes), types);
  }
  DeviceFigures measure() const override { return opencl::measure(facts, *memory()); }
  TargetDevice target(const SessionOptions& options) const override {
    refuse_cpu_level(options, facts.name);
    Caps caps;
    caps.multiplied = {f32};
    if (facts.has_f64) caps.multiplied.push_back(f64);
    else caps.lacks.push_back(f64);
    caps.schedule = {.lanes = true, .vector = facts.is_cpu ? f32_of_vector : 1};
    caps.schedule.dots = facts.is_cpu && facts.registers >= f32_of_vector;
    return {"opencl", fingerprint(facts), 0, std::move(caps), print, kernel_claims(options.claims)};
  }
  DeviceMemory* memory() const override { return opened.get(facts); }

  DeviceFacts facts;
  OpenedOnce<Memory> opened;
};

FoundBackends find() {
  Devices devices = find_devices();
  FoundBackends found{{}, std::move(devices.missing)};
  for (DeviceFacts& facts : devices.found) found.backends.push_back(backend_of(std::move(facts)).release());
  return found;
}

}  // namespace

std::unique_ptr<Backend> backend_of(DeviceFacts facts) { return std::make_unique<OpenClDevice>(std::move(facts)); }
TargetDevice usual_target() {
  DeviceFacts facts;
  facts.has_f64 = true;
  return backend_of(std::move(facts))->target({});
}

const std::vector<const Backend*>& backends() { return found_once<find>().backends; }
const std::string& missing() { return found_once<find>().missing; }

}  // namespace rlx::opencl
