// MILBlob, version 2: a head of 64 bytes, and at multiples of 64 a record of 64 bytes for each array, its elements behind it.
#include "backends/coreml/weight_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/half.h"
#include "rlx/error.h"

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

std::uint64_t Weights::add(const std::string& key, Element element, std::int64_t count, Source source) {
  const auto [known, is_new] = offset_of_.emplace(key, end_);
  if (!is_new) return known->second;
  const std::uint64_t bytes = (static_cast<std::uint64_t>(count) * form_of(element).bits + 7) / 8;
  records_.push_back({element, end_, bytes, std::move(source)});
  end_ += unit + rounded_up(bytes);
  return known->second;
}

std::string key_of(const Array& array, std::string_view part, Element element) {
  return fmt::format("{} {} {} {}", static_cast<const void*>(array.bytes().data()), array.size(), part, static_cast<int>(element));
}

void Weights::write(FileWriter& file, const std::function<void(std::uint64_t)>& progress) const {
  constexpr std::uint32_t version = 2, sentinel = 0xDEADBEEF;
  file.write(head(static_cast<std::uint32_t>(records_.size()), version));
  for (const Record& record : records_) {
    const ElementForm& element = form_of(record.element);
    const std::uint64_t unused_bits = element.bits < 8 ? record.bytes * 8 % element.bits : 0;
    file.write(head(sentinel, element.record, record.bytes, record.offset + unit, unused_bits));
    std::uint64_t done = 0;
    record.source([&](std::span<const std::byte> piece) {
      file.write(piece);
      progress(record.offset + (done += piece.size()));
    });
    if (done != record.bytes) fail_internal("coreml: {} bytes of a record of {}", done, record.bytes);
    file.write(std::string(rounded_up(record.bytes) - record.bytes, '\0'));
  }
}

namespace {

constexpr std::int64_t piece_elements = std::int64_t{1} << 18;

Array piece_of(const Array& array, std::int64_t first) {
  const std::int64_t count = std::min(piece_elements, array.size() - first);
  const auto bytes = array.bytes().subspan(static_cast<std::size_t>(bytes_for(array.dtype(), first)),
                                           static_cast<std::size_t>(bytes_for(array.dtype(), count)));
  return {array.dtype(), {count}, bytes, array.owner()};
}

void check_numbers(const std::string& name, const Array& array, Element element) {
  constexpr float largest = 65504;
  std::int64_t nans = 0, beyond = 0;
  for (std::int64_t first = 0; first < array.size(); first += piece_elements)
    for (const float x : piece_of(array, first).floats()) {
      nans += std::isnan(x);
      beyond += element == Element::f16 && std::isfinite(x) && std::fabs(x) > largest;
    }
  if (nans > 0) fail("coreml: '{}': {} of {} elements are NaN (mend the weights)", name, nans, array.size());
  if (beyond > 0)
    fail("coreml: '{}': {} of {} elements are beyond f16 (allowed: -65504 to 65504; precision f32 has a wider range)", name, beyond,
         array.size());
}

}  // namespace

Weights::Source floats_of(Array array, Element element, std::string name, std::function<void(float given, float stored)> watch) {
  return [array = std::move(array), element, name = std::move(name), watch = std::move(watch)](const Weights::Sink& sink) {
    check_numbers(name, array, element);
    if (element_of(array.dtype()) == element && array.dtype() != bf16) return sink(array.bytes());
    std::vector<std::uint16_t> halves;
    for (std::int64_t first = 0; first < array.size(); first += piece_elements) {
      const std::vector<float> wide = piece_of(array, first).floats();
      if (element == Element::f32) {
        sink(std::as_bytes(std::span(wide)));
        continue;
      }
      halves.clear();
      for (const float x : wide) {
        halves.push_back(f16_bits(x));
        if (watch) watch(x, f16_value(halves.back()));
      }
      sink(std::as_bytes(std::span(halves)));
    }
  };
}

}  // namespace rlx::coreml
