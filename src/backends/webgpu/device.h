#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "backends/webgpu/driver.h"
#include "rlx/error.h"

namespace rlx::webgpu {

/// A device as its driver describes it.
struct DeviceFacts {
  std::shared_ptr<const Driver> driver;
  std::shared_ptr<InstanceOf> instance;
  std::shared_ptr<AdapterOf> adapter;
  std::string name;     // "webgpu:0"
  std::string title;    // of its maker
  std::string version;  // of the driver below
  bool is_cpu = false;
  Limits limits = {};            // what is asked for
  std::int64_t most_rounds = 0;  // of the loops of an invocation, all together, after which the driver ends them; 0: any number

  /// The largest buffer that a kernel can read all of.
  std::int64_t largest_buffer() const;
};

/// The least that every device of WebGPU has, as far as kernels ask.
Limits standard_limits(Limits limits);

/// The devices of the library; where there are none, why, and what to install.
struct Devices {
  std::vector<DeviceFacts> found;
  std::string missing;
};
Devices find_devices(const std::vector<std::string>& files);

/// A device in use, with what it has to say. Errors come with the call that makes them, or from a thread of the driver.
class OpenDevice {
 public:
  /// `facts` must outlive it. Throws Error where the driver does not open it.
  explicit OpenDevice(const DeviceFacts& facts);
  ~OpenDevice();
  OpenDevice(const OpenDevice&) = delete;
  OpenDevice& operator=(const OpenDevice&) = delete;

  const Driver& driver() const { return *facts.driver; }
  /// Waits for a callback, which sets `done`.
  void wait(const bool& done) const;
  /// What was reported since this was last asked for; empty: nothing.
  std::string take_report();
  /// Throws Error where something was reported: the device, what was asked of it, what its driver said.
  template <class... Args>
  void check(fmt::format_string<Args...> action, Args&&... args) {
    if (const std::string report = take_report(); !report.empty())
      fail("{} ({}): {}: {}", facts.name, facts.title, fmt::vformat(action, fmt::make_format_args(args...)), report);
  }

  const DeviceFacts& facts;
  DeviceHandle handle = nullptr;
  Queue queue = nullptr;
  bool has_clock = false;  // which passes note

 private:
  void note(std::string_view kind, const Text& message);

  std::mutex mutex_;
  std::string report_;
};

}  // namespace rlx::webgpu
