#include <cmath>
#include <cstdint>

#include "fuzz_folder.h"
#include "parts.h"
#include "rlx/calibration.h"
#include "rlx/error.h"

/// The input is a calibration, see safetensors_of. What is accepted is in order, and the same when it is written and read again.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const rlx::fuzz::FuzzFolder folder;
  const auto file = folder.path() / "calibration";
  folder.write("calibration", rlx::fuzz::safetensors_of({reinterpret_cast<const char*>(data), size}));
  rlx::Calibration read;
  try {
    read = rlx::load_calibration(file);
  } catch (const rlx::Error&) {
    return 0;  // a refusal is the right answer to most inputs
  }
  for (const rlx::CalibratedRange& range : read.ranges)
    for (std::int64_t i = 0; i < range.least.size(); ++i)
      if (!(range.least.get_double(i) <= range.largest.get_double(i))) __builtin_trap();
  rlx::save_calibration(file, read);
  const rlx::Calibration again = rlx::load_calibration(file);
  if (again.ranges.size() != read.ranges.size()) __builtin_trap();
  for (std::size_t i = 0; i < read.ranges.size(); ++i)
    if (again.ranges[i].product != read.ranges[i].product || again.ranges[i].least != read.ranges[i].least ||
        again.ranges[i].largest != read.ranges[i].largest)
      __builtin_trap();
  return 0;
}
