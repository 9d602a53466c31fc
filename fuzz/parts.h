#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace rlx::fuzz {

/// What comes before the next zero byte of an input, which is taken off it.
inline std::string_view take_part(std::string_view& rest) {
  const std::string_view part = rest.substr(0, rest.find('\0'));
  rest.remove_prefix(std::min(part.size() + 1, rest.size()));
  return part;
}

/// A safetensors file of a header, a zero byte and the data. The length that a file begins with is made here: mutation would rarely hit it.
inline std::string safetensors_of(std::string_view input) {
  const std::string_view header = take_part(input);
  std::string file;
  for (unsigned shift = 0; shift < 64; shift += 8) file.push_back(static_cast<char>(std::uint64_t{header.size()} >> shift & 0xFF));
  return file.append(header).append(input);
}

}  // namespace rlx::fuzz
