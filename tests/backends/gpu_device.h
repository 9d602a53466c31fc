#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "backends/device_test.h"
#include "backends/gpu/backend.h"
#include "backends/gpu/device.h"
#include "formats/temporary_folder.h"
#include "message.h"
#include "rlx/session.h"

namespace rlx::test {

/// The first device of a kind, or of any; null where there is none.
inline const Backend* first_gpu(std::string_view kind) {
  const auto& all = gpu::backends();
  const auto found = std::ranges::find_if(all, [&](const Backend* backend) { return backend->name().starts_with(kind); });
  return found == all.end() ? nullptr : *found;
}

/// Tests on the first GPU. Those that ctest runs meet drivers that need no GPU, see fake_gpu/fake_gpu.cpp.
class GpuTest : public DeviceTest {
 protected:
  explicit GpuTest(std::string_view kind = "") : backend_(first_gpu(kind)) {}
  void SetUp() override {
    if (!backend_) GTEST_SKIP() << "needs a GPU, or LD_LIBRARY_PATH as ctest sets it";
  }

  const Backend& backend() const override { return *backend_; }

 private:
  const Backend* backend_;
};

/// Tests on a device of each vendor.
class EachGpuTest : public GpuTest, public testing::WithParamInterface<const char*> {
 protected:
  EachGpuTest() : GpuTest(GetParam()) {}
};

/// The first GPU as if its driver described it otherwise.
inline std::unique_ptr<Backend> first_gpu_with(const std::function<void(gpu::DeviceFacts&)>& change) {
  const bool is_cuda = first_gpu("")->name().starts_with("cuda");
  gpu::DeviceFacts facts = gpu::find_devices(is_cuda ? gpu::Vendor::cuda : gpu::Vendor::rocm).found.front();
  change(facts);
  return gpu::backend_of(std::move(facts));
}

/// b1[i] = b0[i] * s0 + `added`, under a name that says what is added.
inline KernelText affine_cuda_kernel(int added) {
  const std::string name = "affine_" + std::to_string(added);
  const std::string text = "extern \"C\" __global__ void " + name +
                           "(const float* b0, float* b1, const long long s0, const long long positions) {\n"
                           "  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;\n"
                           "  if (i >= positions) return;\n"
                           "  b1[i] = b0[i] * s0 + " +
                           std::to_string(added) + ";\n}\n";
  return {.name = name, .text = text, .element_bytes = {4, 4}};
}

}  // namespace rlx::test
