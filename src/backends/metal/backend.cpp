#include "backends/metal/backend.h"

#include "backends/found_backends.h"
#include "backends/metal/measure.h"
#include "backends/metal/memory.h"
#include "backends/opened_once.h"
#include "base/bytes_text.h"
#include "lowering/kernels_only/kernel_claims.h"

namespace rlx::metal {
namespace {

KernelText print(const Kernel& kernel, const Caps& caps) { return emit_metal(kernel, caps.schedule); }

TargetDevice target_with(std::string fingerprint, bool claims) {
  Caps caps;
  caps.multiplied = {f32};
  caps.lacks = {f64};
  caps.schedule = {.lanes = true};
  return {"metal", std::move(fingerprint), 0, std::move(caps), print, kernel_claims(claims)};
}

struct MetalDevice : Backend {
  MetalDevice(Gpu& of, std::string called) : gpu(of), its_name(std::move(called)) {}

  std::string name() const override { return its_name; }
  std::string description() const override {
    return fmt::format("{}; {}; {} of memory, buffers up to {}; computes in f32", gpu.title, gpu.version, bytes_text(gpu.memory),
                       bytes_text(gpu.largest_buffer));
  }
  DeviceFigures measure() const override { return metal::measure(gpu, *memory()); }
  TargetDevice target(const SessionOptions& options) const override {
    refuse_cpu_level(options, its_name);
    return target_with(fingerprint(gpu), options.claims);
  }
  DeviceMemory* memory() const override { return opened.get(gpu, its_name); }

  Gpu& gpu;
  const std::string its_name;
  OpenedOnce<Memory> opened;
};

FoundBackends find() {
  return found_in_library<LibraryEntry>(
      "metal", library_entry, "macOS alone has Metal: building RLX there makes it", [](const Library& library, FoundBackends& found) {
        found.missing = library.missing;
        for (const auto& gpu : library.gpus)
          found.backends.push_back(backend_of(*gpu, fmt::format("metal:{}", found.backends.size())).release());
      });
}

}  // namespace

std::unique_ptr<Backend> backend_of(Gpu& gpu, std::string name) { return std::make_unique<MetalDevice>(gpu, std::move(name)); }
TargetDevice usual_target() { return target_with({}, true); }
const std::vector<const Backend*>& backends() { return found_once<find>().backends; }
const std::string& missing() { return found_once<find>().missing; }

}  // namespace rlx::metal
