#include <cstdint>

#include "backends/cpu/linked_kernel.h"
#include "rlx/error.h"

/// What is linked is not run.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const rlx::cpu::LinkedKernel kernel(std::as_bytes(std::span(data, size)), "kernel");
  } catch (const rlx::Error&) {
    // A refusal is the right answer to most inputs.
  }
  return 0;
}
