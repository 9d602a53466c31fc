#include "backends/gpu/device.h"

#include <algorithm>
#include <array>

namespace rlx::gpu {
namespace {

constexpr std::string_view to_install(Vendor vendor) {
  return vendor == Vendor::cuda ? "install NVIDIA's driver" : "install ROCm, whose package of HIP's runtime is hip-runtime-amd";
}

constexpr std::string_view compiler_to_install(Vendor vendor) {
  return vendor == Vendor::cuda
             ? "install cuda-nvrtc of the CUDA toolkit, or nvidia-cuda-nvrtc of PyPI and name its folder in LD_LIBRARY_PATH"
             : "install ROCm's hiprtc";
}

std::int64_t attribute(const DeviceFacts& facts, int which) {
  int value = 0;
  return facts.driver->GetAttribute(&value, which, facts.id) == 0 ? value : 0;
}

/// Nothing where the driver does not answer.
bool describe(DeviceFacts& facts, int number) {
  const Driver& driver = *facts.driver;
  std::array<char, 256> title{};
  std::size_t memory = 0;
  if (driver.GetDevice(&facts.id, number) != 0 || driver.GetName(title.data(), static_cast<int>(title.size()) - 1, facts.id) != 0 ||
      driver.GetTotalMemory(&memory, facts.id) != 0)
    return false;
  facts.title = title.data();
  facts.memory = static_cast<std::int64_t>(memory);
  facts.units = attribute(facts, driver.attributes.units);
  facts.major = static_cast<int>(attribute(facts, driver.attributes.major));
  facts.minor = static_cast<int>(attribute(facts, driver.attributes.minor));
  return attribute(facts, driver.attributes.pools) != 0;
}

std::string versions_of(const Driver& driver, int driver_version, const Compiler& compiler) {
  int major = 0, minor = 0;
  compiler.GetVersion(&major, &minor);
  const bool is_cuda = driver.vendor == Vendor::cuda;
  const std::string of_driver =
      is_cuda ? fmt::format("{}.{}", driver_version / 1000, driver_version % 1000 / 10) : fmt::format("{}", driver_version);
  return fmt::format("{} {}, {} {}.{}", is_cuda ? "CUDA" : "HIP", of_driver, is_cuda ? "NVRTC" : "hipRTC", major, minor);
}

std::string missing_of(Vendor vendor, std::string_view reason, std::string_view install) {
  return fmt::format("{}: {} ({})", kind_of(vendor), reason, install);
}

}  // namespace

bool is_lost(Code code) {
  constexpr std::array codes{700, 702, 709, 714, 715, 716, 717, 718, 719};  // what a kernel did, and that its context is gone
  return std::ranges::find(codes, code) != codes.end();
}

std::string_view kind_of(Vendor vendor) { return vendor == Vendor::cuda ? "cuda" : "rocm"; }

bool DeviceFacts::is_hopper() const {
  if (!driver->EncodeBoxes || major != 9 || minor != 0) return false;
  int compiler_major = 0, compiler_minor = 0;
  compiler->GetVersion(&compiler_major, &compiler_minor);
  constexpr int first_compiler = 12;
  return compiler_major >= first_compiler;
}

std::string DeviceFacts::architecture() const {
  if (is_hopper()) return "sm_90a";
  return driver->vendor == Vendor::cuda ? fmt::format("sm_{}{}", major, minor) : fmt::format("{}.{}", major, minor);
}

Devices find_devices(Vendor vendor, const Files& files) {
  Devices devices;
  const auto lacks = [&](std::string_view reason, std::string_view install) {
    devices.missing = missing_of(vendor, reason, install);
    return devices;
  };
  std::string reason;
  const auto driver = open_driver(vendor, files.driver.empty() ? driver_files(vendor) : files.driver, reason);
  if (!driver) return lacks(reason, to_install(vendor));
  int count = 0, version = 0;
  Code code = driver->Init(0);
  if (code == 0) code = driver->GetDeviceCount(&count);
  if (code == 0) code = driver->GetVersion(&version);
  if (code != 0) return lacks("the driver is there, but finds no device: " + driver->code_name(code), to_install(vendor));
  const auto compiler = open_compiler(vendor, files.compiler.empty() ? compiler_files(vendor, version) : files.compiler, reason);
  if (!compiler) return lacks("the driver is there, but no compiler: " + reason, compiler_to_install(vendor));
  for (int number = 0; number < count; ++number) {
    DeviceFacts facts;
    facts.driver = driver;
    facts.compiler = compiler;
    facts.version = versions_of(*driver, version, *compiler);
    if (!describe(facts, number)) continue;
    facts.name = fmt::format("{}:{}", kind_of(vendor), number);
    devices.found.push_back(std::move(facts));
  }
  if (devices.found.empty()) return lacks("no device has memory pools", "RLX needs them");
  return devices;
}

}  // namespace rlx::gpu
