#include "base/files/protobuf_writer.h"

#include <bit>

namespace rlx {

void ProtobufWriter::varint(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>((value & 0x7F) | 0x80);
  bytes_ += static_cast<char>(value);
}

ProtobufWriter& ProtobufWriter::integer(std::uint32_t field, std::uint64_t value) {
  varint(std::uint64_t{field} << 3);
  varint(value);
  return *this;
}

ProtobufWriter& ProtobufWriter::number(std::uint32_t field, float value) {
  constexpr std::uint64_t of_four_bytes = 5;
  varint((std::uint64_t{field} << 3) | of_four_bytes);
  const auto bits = std::bit_cast<std::uint32_t>(value);
  for (unsigned shift = 0; shift < 32; shift += 8) bytes_ += static_cast<char>(bits >> shift & 0xFF);
  return *this;
}

ProtobufWriter& ProtobufWriter::text(std::uint32_t field, std::string_view value) {
  constexpr std::uint64_t of_bytes = 2;
  varint((std::uint64_t{field} << 3) | of_bytes);
  varint(value.size());
  bytes_ += value;
  return *this;
}

ProtobufWriter& ProtobufWriter::entry(std::uint32_t field, std::string_view key, const ProtobufWriter& value) {
  return message(field, ProtobufWriter().text(1, key).message(2, value));
}

ProtobufWriter& ProtobufWriter::packed(std::uint32_t field, std::span<const std::int64_t> values) {
  ProtobufWriter list;
  for (const std::int64_t value : values) list.varint(static_cast<std::uint64_t>(value));
  return text(field, list.bytes_);
}

}  // namespace rlx
