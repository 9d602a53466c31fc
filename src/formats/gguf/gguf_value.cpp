#include "formats/gguf/gguf_value.h"

#include <cstring>
#include <utility>

#include "base/names.h"
#include "formats/gguf/gguf_parser.h"
#include "rlx/error.h"

namespace rlx {
namespace {

template <class T>
T load(std::span<const std::byte> bytes, std::size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

/// Calls `use` with the number of type `type` at `index`; false for types that are no numbers.
template <class Use>
bool with_number(GgufType type, std::span<const std::byte> bytes, std::size_t index, Use use) {
  switch (type) {
    case GgufType::u8: return use(load<std::uint8_t>(bytes, index)), true;
    case GgufType::i8: return use(load<std::int8_t>(bytes, index)), true;
    case GgufType::u16: return use(load<std::uint16_t>(bytes, index)), true;
    case GgufType::i16: return use(load<std::int16_t>(bytes, index)), true;
    case GgufType::u32: return use(load<std::uint32_t>(bytes, index)), true;
    case GgufType::i32: return use(load<std::int32_t>(bytes, index)), true;
    case GgufType::u64: return use(load<std::uint64_t>(bytes, index)), true;
    case GgufType::i64: return use(load<std::int64_t>(bytes, index)), true;
    case GgufType::f32: return use(load<float>(bytes, index)), true;
    case GgufType::f64: return use(load<double>(bytes, index)), true;
    case GgufType::boolean:
    case GgufType::string:
    case GgufType::array: break;
  }
  return false;
}

}  // namespace

void GgufValue::fail_type(std::string_view wanted) const {
  const std::string seen = is_array() ? fmt::format("an array of {}", name(element_)) : std::string(name(type_));
  fail("{}: key {}: is {}, {} is needed", *file_, quote_name(key_), seen, wanted);
}

void GgufValue::require_array(std::string_view wanted) const {
  if (!is_array()) fail_type(wanted);
}

std::string_view GgufValue::string() const {
  if (type_ != GgufType::string) fail_type("a string");
  return GgufParser(*this).read_string();
}

bool GgufValue::boolean() const {
  if (type_ != GgufType::boolean) fail_type("a bool");
  return bytes_[0] != std::byte{0};
}

std::int64_t GgufValue::integer_at(std::size_t index, std::int64_t least, std::int64_t most) const {
  std::int64_t result = 0;
  const bool is_number = with_number(element_, bytes_, index, [&](auto value) {
    if constexpr (std::is_integral_v<decltype(value)>) {
      if (std::cmp_less(value, least) || std::cmp_greater(value, most))
        fail("{}: key {}: {} (allowed: {}..{})", *file_, quote_name(key_), value, least, most);
      result = static_cast<std::int64_t>(+value);
    } else {
      fail_type(is_array() ? "an array of integers" : "an integer");
    }
  });
  if (!is_number) fail_type(is_array() ? "an array of integers" : "an integer");
  return result;
}

double GgufValue::number_at(std::size_t index) const {
  double result = 0;
  if (!with_number(element_, bytes_, index, [&](auto value) { result = static_cast<double>(value); }))
    fail_type(is_array() ? "an array of numbers" : "a number");
  return result;
}

std::int64_t GgufValue::integer(std::int64_t least, std::int64_t most) const {
  if (is_array()) fail_type("an integer");
  return integer_at(0, least, most);
}

double GgufValue::number() const {
  if (is_array()) fail_type("a number");
  return number_at(0);
}

std::vector<std::string_view> GgufValue::strings() const {
  if (!is_array() || element_ != GgufType::string) fail_type("an array of strings");
  std::vector<std::string_view> out(size_);
  GgufParser parser(*this);
  for (std::string_view& text : out) text = parser.read_string();
  return out;
}

std::vector<bool> GgufValue::booleans() const {
  if (!is_array() || element_ != GgufType::boolean) fail_type("an array of bools");
  std::vector<bool> out;
  out.reserve(size_);
  for (std::byte value : bytes_) out.push_back(value != std::byte{0});
  return out;
}

std::vector<std::int64_t> GgufValue::integers(std::int64_t least, std::int64_t most) const {
  require_array("an array of integers");
  std::vector<std::int64_t> out;
  out.reserve(size_);
  for (std::size_t i = 0; i < size_; ++i) out.push_back(integer_at(i, least, most));
  return out;
}

std::vector<double> GgufValue::numbers() const {
  require_array("an array of numbers");
  std::vector<double> out;
  out.reserve(size_);
  for (std::size_t i = 0; i < size_; ++i) out.push_back(number_at(i));
  return out;
}

std::vector<GgufValue> GgufValue::arrays() const {
  if (!is_array() || element_ != GgufType::array) fail_type("an array of arrays");
  std::vector<GgufValue> out;
  out.reserve(size_);
  GgufParser parser(*this);
  for (std::size_t i = 0; i < size_; ++i) out.push_back(parser.read_array());
  return out;
}

}  // namespace rlx
