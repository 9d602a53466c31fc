#include "formats/gguf/gguf_json.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include <fmt/core.h>

namespace rlx {
namespace {

/// The double that prints as shortly as the f32 does: 1e-05, and not 9.999999747378752e-06.
double short_double(double number, GgufType type) {
  if (type != GgufType::f32 || !std::isfinite(number)) return number;
  const std::string text = fmt::format("{}", static_cast<float>(number));
  double out = number;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

json::Value elements_of(const GgufValue& array) {
  json::Value out = json::Value::array();
  switch (array.element_type()) {
    case GgufType::array:
      for (const GgufValue& inner : array.arrays()) out.push_back(to_json(inner));
      return out;
    case GgufType::string: return array.strings();
    case GgufType::boolean: return array.booleans();
    case GgufType::f32:
    case GgufType::f64:
      for (double number : array.numbers()) out.push_back(short_double(number, array.element_type()));
      return out;
    case GgufType::u64:
      for (std::size_t i = 0; i < array.size(); ++i) {
        std::uint64_t number = 0;
        std::memcpy(&number, array.bytes().data() + i * sizeof number, sizeof number);
        out.push_back(number);
      }
      return out;
    default: return array.integers();
  }
}

}  // namespace

json::Value to_json(const GgufValue& value) {
  switch (value.type()) {
    case GgufType::array: return elements_of(value);
    case GgufType::string: return value.string();
    case GgufType::boolean: return value.boolean();
    case GgufType::f32:
    case GgufType::f64: return short_double(value.number(), value.type());
    case GgufType::u64: {
      std::uint64_t number = 0;
      std::memcpy(&number, value.bytes().data(), sizeof number);
      return number;
    }
    default: return value.integer(std::numeric_limits<std::int64_t>::min());
  }
}

std::string json_text(const json::Value& value) { return value.dump(-1, ' ', false, json::Value::error_handler_t::replace); }

}  // namespace rlx
