#include <cstdint>
#include <span>

#include "formats/graph_file.h"
#include "ir/verifier.h"
#include "parts.h"

/// The input is a graph file, see safetensors_of. What is accepted must be a sound graph whose arrays can be read.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* input, std::size_t size) {
  static volatile double sum = 0;
  const std::string file = rlx::fuzz::safetensors_of({reinterpret_cast<const char*>(input), size});
  try {
    const rlx::SavedGraph saved = rlx::load_graph(rlx::SafetensorsFile::parse(std::as_bytes(std::span(file)), "fuzz.safetensors"));
    rlx::verify(saved.graph, "load_graph");
    for (const auto& [name, array] : saved.weights)
      if (array.size() > 0) sum = sum + array.get_double(array.size() - 1);
  } catch (const rlx::Error&) {
    // A refusal is the right answer to most inputs.
  }
  return 0;
}
