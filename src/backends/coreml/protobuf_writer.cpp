#include "backends/coreml/protobuf_writer.h"

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
