#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace rlx {

/// Reads the fields of one message of Protocol Buffers in order. Nothing is trusted: each length is checked against what is left.
class ProtobufMessage {
 public:
  struct Field {
    std::uint32_t number = 0;
    std::uint32_t wire_type = 0;       // 0 varint, 1 eight bytes, 2 bytes, 5 four bytes
    std::uint64_t integer = 0;         // of types 0, 1 and 5
    std::span<const std::byte> bytes;  // of type 2
  };

  /// Errors name `what` and the byte of the file; `start` is where the message lies in it.
  ProtobufMessage(std::span<const std::byte> bytes, std::string_view what, std::size_t start = 0)
      : bytes_(bytes), what_(what), start_(start) {}

  /// The next field, or nothing at the end. Throws Error for what is cut short or malformed.
  std::optional<Field> next();

  /// The value of the field that `next` gave; an Error if it is of another type.
  std::uint64_t integer(const Field& field) const;
  bool boolean(const Field& field) const { return integer(field) != 0; }
  float number(const Field& field) const;
  std::string_view text(const Field& field) const;
  ProtobufMessage message(const Field& field) const;

 private:
  [[noreturn]] void refuse(std::string_view why) const;
  void require(const Field& field, std::uint32_t wire_type) const;
  std::uint64_t varint();
  std::span<const std::byte> take(std::uint64_t count);

  std::span<const std::byte> bytes_;
  std::string_view what_;
  std::size_t start_;
  std::size_t at_ = 0;
};

}  // namespace rlx
