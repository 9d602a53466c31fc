#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rlx {

/// The types of metadata, numbered as in the file.
enum class GgufType : std::uint8_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };

/// "u32", "string", "array".
std::string_view name(GgufType type);

/// Bytes of one number or bool, 0 for strings and arrays.
std::size_t number_bytes(GgufType type);

/// One entry of a GGUF file's metadata, or one element of a nested array: a view into the file, which must live as long. Its bytes were
/// checked when the file was opened. Every accessor throws Error "file: key 'k': ..." that names the type or value seen and those allowed.
class GgufValue {
 public:
  static constexpr std::int64_t any_integer = std::numeric_limits<std::int64_t>::max();

  std::string_view key() const { return key_; }
  GgufType type() const { return type_; }
  /// Of an array, the type of its elements; of any other value its own.
  GgufType element_type() const { return element_; }
  bool is_array() const { return type_ == GgufType::array; }
  /// Elements of an array, 1 of any other value.
  std::size_t size() const { return size_; }

  /// Any bytes: neither UTF-8 nor free of NUL.
  std::string_view string() const;
  bool boolean() const;
  /// Of any integer type, for writers differ in the width that they choose.
  std::int64_t integer(std::int64_t least = 0, std::int64_t most = any_integer) const;
  /// Of any float or integer type.
  double number() const;

  /// The elements of an array, checked and converted as above. Strings are views into the file.
  std::vector<std::string_view> strings() const;
  std::vector<bool> booleans() const;
  std::vector<std::int64_t> integers(std::int64_t least = std::numeric_limits<std::int64_t>::min(), std::int64_t most = any_integer) const;
  std::vector<double> numbers() const;
  /// The elements of an array of arrays.
  std::vector<GgufValue> arrays() const;

  /// The value as the file stores it, little-endian, without key and type: of an array the elements only.
  std::span<const std::byte> bytes() const { return bytes_; }
  /// Bytes of the length in front of a string or array: 4 in version 1, else 8.
  std::size_t length_bytes() const { return length_bytes_; }

 private:
  friend class GgufParser;

  [[noreturn]] void fail_type(std::string_view wanted) const;
  void require_array(std::string_view wanted) const;
  std::int64_t integer_at(std::size_t index, std::int64_t least, std::int64_t most) const;
  double number_at(std::size_t index) const;

  const std::string* file_ = nullptr;
  std::string_view key_;
  GgufType type_ = GgufType::u8, element_ = GgufType::u8;
  std::uint8_t length_bytes_ = 8;
  std::size_t size_ = 1;
  std::span<const std::byte> bytes_;
};

}  // namespace rlx
