#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "formats/graph_file.h"
#include "ir/verify.h"

/// The input is a header, a zero byte and the data; the length that a file begins with is made here, as mutation would rarely hit it.
/// What is accepted must be a sound graph whose arrays can be read.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* input, std::size_t size) {
  static volatile double sum = 0;
  const std::string_view text(reinterpret_cast<const char*>(input), size);
  const std::string_view header = text.substr(0, text.find('\0'));
  const std::string_view data = text.substr(std::min(header.size() + 1, text.size()));
  const std::uint64_t length = header.size();
  std::string file(sizeof length, '\0');
  std::memcpy(file.data(), &length, sizeof length);
  file.append(header).append(data);
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
