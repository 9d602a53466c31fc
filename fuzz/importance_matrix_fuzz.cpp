#include <cstdint>
#include <string_view>

#include "fuzz_folder.h"
#include "models/conversion/importance_matrix.h"
#include "rlx/error.h"

/// The input is an importance matrix, in either of its formats. What is accepted holds something.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const rlx::fuzz::FuzzFolder folder;
  folder.write("imatrix", {reinterpret_cast<const char*>(data), size});
  try {
    const auto matrix = rlx::ImportanceMatrix::open(folder.path() / "imatrix");
    if (matrix.size() == 0) __builtin_trap();
    matrix.columns("a", 2, 1);
  } catch (const rlx::Error&) {
    // A refusal is the right answer to most inputs.
  }
  return 0;
}
