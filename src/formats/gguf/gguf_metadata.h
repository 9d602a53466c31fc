#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "formats/gguf/gguf_value.h"

namespace rlx {

/// The type that metadata gives a C++ number.
template <class T>
inline constexpr GgufType gguf_type_of = [] {
  if constexpr (std::is_same_v<T, bool>) return GgufType::boolean;
  else if constexpr (std::is_same_v<T, float>) return GgufType::f32;
  else if constexpr (std::is_same_v<T, double>) return GgufType::f64;
  else if constexpr (std::is_same_v<T, std::uint8_t>) return GgufType::u8;
  else if constexpr (std::is_same_v<T, std::int8_t>) return GgufType::i8;
  else if constexpr (std::is_same_v<T, std::uint16_t>) return GgufType::u16;
  else if constexpr (std::is_same_v<T, std::int16_t>) return GgufType::i16;
  else if constexpr (std::is_same_v<T, std::uint32_t>) return GgufType::u32;
  else if constexpr (std::is_same_v<T, std::int32_t>) return GgufType::i32;
  else if constexpr (std::is_same_v<T, std::uint64_t>) return GgufType::u64;
  else {
    static_assert(std::is_same_v<T, std::int64_t>, "no metadata type for this C++ type");
    return GgufType::i64;
  }
}();

/// Metadata to be written, in the order in which keys were first set. Every setter throws Error for a key that is empty, longer than 65535
/// bytes or not UTF-8 text.
class GgufMetadata {
 public:
  /// Encoded as in a file: type, then the value.
  struct Entry {
    std::string key, value;
  };

  /// The number as the type that it has in C++: `set("llama.block_count", std::uint32_t{22})`.
  template <class Number>
    requires std::is_arithmetic_v<Number>
  void set(std::string_view key, Number number) {
    put(key, encoded(gguf_type_of<Number>, std::as_bytes(std::span(&number, 1))));
  }
  void set(std::string_view key, std::string_view text);

  template <class Number>
  void set_numbers(std::string_view key, std::span<const Number> numbers) {
    put(key, encoded_array(gguf_type_of<Number>, numbers.size(), std::as_bytes(numbers)));
  }
  void set_booleans(std::string_view key, const std::vector<bool>& values);
  void set_strings(std::string_view key, std::span<const std::string_view> texts);
  void set_strings(std::string_view key, std::span<const std::string> texts);

  /// The value of a file that was read, of any type, under its own key.
  void copy(const GgufValue& value);
  /// All that a file says, in its order.
  void copy(std::span<const GgufValue> values);
  void erase(std::string_view key);
  bool contains(std::string_view key) const;

  std::span<const Entry> entries() const { return entries_; }
  /// What general.alignment says, or 32.
  std::uint32_t alignment() const;

 private:
  static std::string encoded(GgufType type, std::span<const std::byte> bytes);
  static std::string encoded_array(GgufType element, std::uint64_t count, std::span<const std::byte> bytes);
  void put(std::string_view key, std::string value);

  std::vector<Entry> entries_;
};

}  // namespace rlx
