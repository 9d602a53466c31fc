#include <cstdint>
#include <string>

#include "lowering/program_file/program_parts.h"
#include "rlx/error.h"

namespace {

/// What constants are of: elements of 4 bytes, all different, as equal constants are one.
const rlx::Blobs& constants() {
  static const rlx::Blobs once = [] {
    rlx::Blobs blobs;
    for (char number = 0; number < 32; ++number) blobs.add(std::string{number, 0, 0, 0});
    return blobs;
  }();
  return once;
}

}  // namespace

/// The input is a program as it stands in a program file, behind its hash. What is read is the same when it is written and read again.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto read = [](std::span<const std::byte> bytes) {
    rlx::ProgramReader way("fuzz", bytes, std::ssize(constants().all()), [](std::int64_t number) {
      const rlx::Blobs::Blob& blob = constants().all()[static_cast<std::size_t>(number)];
      return rlx::FoundBlob{blob.bytes, blob.owner};
    });
    return rlx::read_program(way);
  };
  const auto written = [](const rlx::Program& program) {
    rlx::Blobs blobs = constants();
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
