#include <cstdint>

#include "formats/json/json.h"
#include "rlx/error.h"

/// What is accepted is the same when it is written and read again.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  for (const bool wide_integers : {true, false}) {
    rlx::json::Value value;
    try {
      value = rlx::json::parse({reinterpret_cast<const char*>(data), size}, "fuzz", {.wide_integers = wide_integers});
    } catch (const rlx::Error&) {
      continue;  // a refusal is the right answer to most inputs
    }
    if (rlx::json::parse(value.dump(), "written") != value) __builtin_trap();
  }
  try {
    rlx::json::parse({reinterpret_cast<const char*>(data), size}, "fuzz", {.max_depth = 4, .allow_non_finite = true});
  } catch (const rlx::Error&) {  // as well
  }
  return 0;
}
