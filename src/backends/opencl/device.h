#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backends/opencl/driver.h"
#include "base/bytes_text.h"
#include "rlx/error.h"

namespace rlx::opencl {

/// A device as its driver describes it.
struct DeviceFacts {
  std::shared_ptr<const Driver> driver;
  cl_device_id id = nullptr;
  std::string name;   // "opencl:0"
  std::string title;  // of its maker
  std::string platform, platform_version;
  std::string version;  // of the driver
  bool is_cpu = false, has_f64 = false, has_f16 = false;
  bool divides_exactly = false;  // f32, when asked to
  std::int64_t memory = 0, largest_buffer = 0, local_bytes = 0;
  bool memory_is_hosts = false;  // it reads the host's memory as fast as its own
  bool local_is_memory = false;  // what groups share is no faster than other memory
  std::int64_t units = 0, largest_group = 0, clock_mhz = 0;
  std::int64_t registers = 0;  // integers of 32 bits that one holds
};

/// The devices of all platforms; where there are none, why, and what to install.
struct Devices {
  std::vector<DeviceFacts> found;
  std::string missing;
};

/// `file`: of the loader. Devices below OpenCL 1.2, and those that compile no kernels, are left out.
Devices find_devices(const char* file = "libOpenCL.so.1");

/// "CL_OUT_OF_RESOURCES (-5)"
std::string code_name(cl_int code);

/// Throws Error for every code but CL_SUCCESS: the device, what was asked of it, what its driver said.
template <class... Args>
void check(const DeviceFacts& device, cl_int code, fmt::format_string<Args...> action, Args&&... args) {
  if (code == CL_SUCCESS) return;
  fail("{} ({}): {}: {}", device.name, device.title, fmt::vformat(action, fmt::make_format_args(args...)), code_name(code));
}

}  // namespace rlx::opencl
