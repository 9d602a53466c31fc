#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/device_test.h"
#include "backends/webgpu/backend.h"
#include "backends/webgpu/device.h"
#include "rlx/session.h"

namespace rlx::test {

/// Tests on the first device of WebGPU.
class WebGpuTest : public DeviceTest {
 protected:
  void SetUp() override {
    if (webgpu::backends().empty()) GTEST_SKIP() << "needs a WebGPU device: " << webgpu::missing();
  }

  const Backend& backend() const override { return *webgpu::backends().front(); }
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
