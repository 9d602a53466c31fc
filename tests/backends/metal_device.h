#pragma once
#include <gtest/gtest.h>

#include "backends/device_test.h"
#include "backends/metal/backend.h"
#include "backends/metal/driver.h"
#include "formats/temporary_folder.h"
#include "message.h"
#include "rlx/session.h"

namespace rlx::test {

/// Tests on the first GPU of Metal. Those that ctest runs meet one that needs no Mac, see fake_gpu/fake_metal.cpp.
class MetalTest : public DeviceTest {
 protected:
  void SetUp() override {
    if (metal::backends().empty()) GTEST_SKIP() << "needs Metal, or LD_LIBRARY_PATH as ctest sets it: " << metal::missing();
  }

  const Backend& backend() const override { return *metal::backends().front(); }
};

/// b1[i] = b0[i] * s0 + `added`, under a name that says what is added.
inline KernelText affine_metal_kernel(int added) {
  const std::string name = "affine_" + std::to_string(added);
  std::string text = "#include <metal_stdlib>\nusing namespace metal;\n";
  text += "struct Given_" + name + " {\n  device const float* b0;\n  device float* b1;\n  long s0, positions;\n};\n";
  text += "kernel void " + name + "(constant Given_" + name +
          "& given [[buffer(0)]], uint group [[threadgroup_position_in_grid]], "
          "uint lane [[thread_position_in_threadgroup]], uint lanes [[threads_per_threadgroup]]) {\n";
  text += "  const long i = group * (long)lanes + lane;\n  if (i >= given.positions) return;\n";
  text += "  given.b1[i] = given.b0[i] * given.s0 + " + std::to_string(added) + ";\n}\n";
  return {.name = name, .text = text, .element_bytes = {4, 4}};
}

}  // namespace rlx::test
