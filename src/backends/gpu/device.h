#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backends/gpu/driver.h"
#include "rlx/error.h"

namespace rlx::gpu {

/// A device as its driver describes it.
struct DeviceFacts {
  std::shared_ptr<const Driver> driver;
  std::shared_ptr<const Compiler> compiler;
  int id = 0;
  std::string name;     // "cuda:0"
  std::string title;    // of its maker
  std::string version;  // of driver and compiler
  int major = 0, minor = 0;
  std::int64_t memory = 0, units = 0;

  /// Whether kernels may use what only NVIDIA's Hopper has: products by groups of warps, and copies of boxes.
  bool is_hopper() const;
  /// "sm_80", "sm_90a"; of HIP "9.0", as hipRTC knows the device at hand.
  std::string architecture() const;
};

/// The devices of a vendor; where there are none, why, and what to install.
struct Devices {
  std::vector<DeviceFacts> found;
  std::string missing;
};

/// Under these names the driver and the compiler are looked for; none: those under which they are installed.
struct Files {
  std::vector<std::string> driver = {}, compiler = {};
};
Devices find_devices(Vendor vendor, const Files& files = {});

/// "cuda", "rocm"
std::string_view kind_of(Vendor vendor);

/// Whether a driver refuses everything else in this process after that code.
bool is_lost(Code code);

/// Throws Error for every code but success: the device, what was asked of it, what its driver said.
template <class... Args>
void check(const DeviceFacts& device, Code code, fmt::format_string<Args...> action, Args&&... args) {
  if (code == 0) return;
  fail("{} ({}): {}: {}{}", device.name, device.title, fmt::vformat(action, fmt::make_format_args(args...)), device.driver->code_name(code),
       is_lost(code) ? "; the device is lost to this process, which must start anew to use it" : "");
}

}  // namespace rlx::gpu
