#pragma once
#include <span>
#include <string>
#include <vector>

#include "backends/gpu/driver.h"
#include "emit/emit.h"

namespace rlx::gpu {

/// For an architecture of NVRTC's, "sm_90"; of HIP the device at hand is meant.
std::vector<std::string> options_for(Vendor vendor, std::string_view architecture);

struct CompiledTexts {
  std::string binary;
  std::string error;  // with the compiler's log; empty: none
};
/// One binary of all these texts, which needs no device to be made.
CompiledTexts compile(const Compiler& compiler, std::span<const KernelText* const> texts, std::span<const std::string> options);

}  // namespace rlx::gpu
