// MILBlob, version 2: a head of 64 bytes, and at multiples of 64 a record of 64 bytes for each array, its elements behind it.
#include "backends/coreml/weights.h"

#include <array>
#include <cstring>
#include <string>

namespace rlx::coreml {
namespace {

constexpr std::uint64_t unit = 64;

constexpr std::uint64_t rounded_up(std::uint64_t bytes) { return (bytes + unit - 1) / unit * unit; }

template <class... Numbers>
std::string head(Numbers... numbers) {
  std::string bytes;
  const auto put = [&](auto number) { bytes.append(reinterpret_cast<const char*>(&number), sizeof number); };
  (put(numbers), ...);
  bytes.resize(unit, '\0');
  return bytes;
}

}  // namespace

std::uint64_t Weights::add(const Array& array) {
  arrays_.push_back(array);
  offsets_.push_back(end_);
  end_ += unit + rounded_up(array.bytes().size());
  return offsets_.back();
}

void Weights::write(FileWriter& file) const {
  constexpr std::uint32_t version = 2, sentinel = 0xDEADBEEF, of_f16 = 1, of_f32 = 2;
  file.write(head(static_cast<std::uint32_t>(arrays_.size()), version));
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    const std::uint64_t bytes = arrays_[i].bytes().size();
    file.write(head(sentinel, arrays_[i].dtype() == f16 ? of_f16 : of_f32, bytes, offsets_[i] + unit));
    file.write(arrays_[i].bytes());
    file.write(std::string(rounded_up(bytes) - bytes, '\0'));
  }
}

}  // namespace rlx::coreml
