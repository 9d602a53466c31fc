#include "backends/gpu/box_maps.h"

#include <bit>
#include <cstdint>

namespace rlx::gpu {
namespace {

constexpr std::uint64_t alignment = 16;  // of what copy engines read

EncodedMap encoded(const DeviceFacts& device, const BoxMap& map, std::uint64_t begin, const Bindings& bindings) {
  const std::int64_t bytes = info(map.dtype).bits / 8;
  const std::uint64_t address = begin + static_cast<std::uint64_t>(map.first * bytes);
  if (address % alignment != 0)
    fail_internal("{}: buffer {} of a product begins at no multiple of {} bytes", device.name, map.buffer, alignment);
  std::array<std::uint64_t, 3> extents{};
  std::array<std::uint64_t, 2> strides{};
  for (std::size_t i = 0; i < extents.size(); ++i) extents[i] = static_cast<std::uint64_t>(map.extents[i].evaluate(bindings));
  for (std::size_t i = 0; i < strides.size(); ++i) strides[i] = static_cast<std::uint64_t>(map.strides[i].evaluate(bindings) * bytes);
  const std::array<std::uint32_t, 3> box{static_cast<std::uint32_t>(map.box[0]), static_cast<std::uint32_t>(map.box[1]), 1};
  constexpr std::array<std::uint32_t, 3> steps{1, 1, 1};
  constexpr int words_of_16_bits = 1, turned_by_128_bytes = 3, cached_by_256_bytes = 3;
  EncodedMap result{};
  const Code code = device.driver->EncodeBoxes(&result, words_of_16_bits, 3, std::bit_cast<const std::byte*>(address), extents.data(),
                                               strides.data(), box.data(), steps.data(), 0, turned_by_128_bytes, cached_by_256_bytes, 0);
  check(device, code, "describing boxes of {} x {} x {} elements", extents[0], extents[1], extents[2]);
  return result;
}

}  // namespace

std::vector<EncodedMap> encoded_maps(const DeviceFacts& device, const LoadedKernel& kernel, std::span<const std::uint64_t> values) {
  if (kernel.maps.empty()) return {};
  Bindings bindings;
  for (std::size_t i = 0; i < kernel.symbols.size(); ++i)
    bindings[kernel.symbols[i]] = static_cast<std::int64_t>(values[kernel.element_bytes.size() + i]);
  std::vector<EncodedMap> all;
  for (const BoxMap& map : kernel.maps) all.push_back(encoded(device, map, values[static_cast<std::size_t>(map.buffer)], bindings));
  return all;
}

}  // namespace rlx::gpu
