#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/webgpu/backend.h"
#include "backends/webgpu/device.h"
#include "rlx/session.h"

namespace rlx::test {

/// Tests on the first device of WebGPU.
class WebGpuTest : public testing::Test {
 protected:
  void SetUp() override {
    if (webgpu::backends().empty()) GTEST_SKIP() << "needs a WebGPU device: " << webgpu::missing();
  }

  const Backend& backend() const { return *webgpu::backends().front(); }
  DeviceMemory& memory() const { return *backend().memory(); }
  Session session() const { return Session(Device(backend()), {.cache_folder = std::filesystem::path()}); }

  std::shared_ptr<std::byte> uploaded(std::span<const float> values) const {
    auto bytes = memory().allocate(static_cast<std::int64_t>(values.size_bytes()));
    memory().upload(bytes.get(), std::as_bytes(values));
    return bytes;
  }
  std::vector<float> downloaded(const std::byte* from, std::size_t count) const {
    std::vector<float> values(count);
    memory().download(std::as_writable_bytes(std::span(values)), from);
    return values;
  }
};

/// The first device as if its driver described it otherwise.
inline std::unique_ptr<Backend> webgpu_device_with(const std::function<void(webgpu::DeviceFacts&)>& change) {
  webgpu::DeviceFacts facts = webgpu::find_devices(webgpu::driver_files()).found.front();
  change(facts);
  return webgpu::backend_of(std::move(facts));
}

/// What the standard has every device do.
inline std::unique_ptr<Backend> standard_webgpu_device() {
  return webgpu_device_with([](webgpu::DeviceFacts& facts) { facts.limits = webgpu::standard_limits(facts.limits); });
}

}  // namespace rlx::test
