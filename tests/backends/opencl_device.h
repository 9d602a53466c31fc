#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "backends/device_test.h"
#include "backends/opencl/backend.h"
#include "backends/opencl/device.h"
#include "formats/temporary_folder.h"

namespace rlx::test {

/// The device that RLX_DEVICE names, else the first; null where there is none.
inline const Backend* chosen_opencl() {
  const auto& all = opencl::backends();
  const char* const wanted = std::getenv("RLX_DEVICE");
  for (const Backend* const backend : all)
    if (wanted && backend->name() == wanted) return backend;
  return all.empty() ? nullptr : all.front();
}

/// Tests on one OpenCL device. What the driver keeps on disk by itself goes to a folder of their own.
class OpenClTest : public DeviceTest {
 protected:
  void SetUp() override {
    static const TemporaryFolder kept;
    ::setenv("POCL_CACHE_DIR", kept.path().c_str(), 1);
    if (opencl::backends().empty()) GTEST_SKIP() << "needs an OpenCL device: " << opencl::missing();
  }

  const Backend& backend() const override { return *chosen_opencl(); }
};

/// The first device as if its driver described it otherwise.
inline std::unique_ptr<Backend> first_device_with(const std::function<void(opencl::DeviceFacts&)>& change) {
  opencl::DeviceFacts facts = opencl::find_devices().found.front();
  change(facts);
  return opencl::backend_of(std::move(facts));
}

/// The first device as one that kernels are written for as for a GPU: scalar items, groups of 64 and more, no f64.
inline std::unique_ptr<Backend> as_gpu() {
  return first_device_with([](opencl::DeviceFacts& facts) {
    facts.is_cpu = false;
    facts.local_is_memory = false;
    facts.has_f64 = false;
    facts.local_bytes = 16 << 10;
  });
}

/// The first device as a small one of OpenCL 1.2 with an old driver.
inline std::unique_ptr<Backend> as_old_device() {
  return first_device_with([](opencl::DeviceFacts& facts) {
    facts.has_f64 = facts.has_f16 = facts.divides_exactly = false;
    facts.local_bytes = 16 << 10;
    facts.largest_group = 16;
    facts.largest_buffer = 1 << 20;
  });
}

/// The first device with another function of its driver.
inline std::unique_ptr<Backend> with_driver(const std::function<void(opencl::Driver&)>& change) {
  return first_device_with([&](opencl::DeviceFacts& facts) {
    opencl::Driver driver = *facts.driver;
    change(driver);
    facts.driver = std::make_shared<const opencl::Driver>(driver);
  });
}

/// b1[i] = b0[i] * s0 + `added`, under a name that says what is added.
inline KernelText affine_kernel(int added) {
  const std::string name = "affine_" + std::to_string(added);
  const std::string text =
      "__kernel void " + name +
      "(__global const float* b0, const long o0, __global float* b1, const long o1, const long s0, const long positions) {\n"
      "  const long i = get_global_id(0);\n"
      "  if (i >= positions) return;\n"
      "  b1[o1 + i] = b0[o0 + i] * s0 + " +
      std::to_string(added) + ";\n}\n";
  return {.name = name, .text = text, .element_bytes = {4, 4}};
}

}  // namespace rlx::test
