#include <cstdint>

#include "lowering/program_file/program_parts.h"
#include "rlx/error.h"

/// The input is a program as it stands in a program file, behind its hash; elements of constants are one blob of so many zeros as they ask
/// for. What is read is the same when it is written and read again.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::array<std::byte, 64> zeros{};
  const auto read = [](std::span<const std::byte> bytes) {
    rlx::ProgramReader way("fuzz", bytes, 1, [](std::int64_t) { return rlx::FoundBlob{zeros, nullptr}; });
    return rlx::read_program(way);
  };
  const auto written = [](const rlx::Program& program) {
    rlx::Blobs blobs;
    rlx::ProgramWriter way(blobs);
    rlx::write_program(way, program);
    return way.bytes();
  };
  try {
    const std::string once = written(read(std::as_bytes(std::span(data, size))));
    if (written(read(std::as_bytes(std::span(once)))) != once) __builtin_trap();
  } catch (const rlx::Error&) {  // a refusal is the right answer to most inputs
  }
  return 0;
}
