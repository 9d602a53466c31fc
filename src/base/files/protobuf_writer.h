#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace rlx {

/// Writes the fields of one message of Protocol Buffers.
class ProtobufWriter {
 public:
  ProtobufWriter& integer(std::uint32_t field, std::uint64_t value);
  ProtobufWriter& number(std::uint32_t field, float value);
  ProtobufWriter& text(std::uint32_t field, std::string_view value);
  ProtobufWriter& message(std::uint32_t field, const ProtobufWriter& value) { return text(field, value.bytes_); }
  /// An entry of a map with words as keys.
  ProtobufWriter& entry(std::uint32_t field, std::string_view key, const ProtobufWriter& value);
  /// Repeated numbers in one field.
  ProtobufWriter& packed(std::uint32_t field, std::span<const std::int64_t> values);
  /// What another message of the same type holds, behind what is written: lists get longer.
  void append(const ProtobufWriter& other) { bytes_ += other.bytes_; }

  const std::string& bytes() const { return bytes_; }

 private:
  void varint(std::uint64_t value);

  std::string bytes_;
};

}  // namespace rlx
