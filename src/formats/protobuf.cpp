#include "formats/protobuf.h"

#include <bit>

#include "rlx/error.h"

namespace rlx {

void ProtobufMessage::refuse(std::string_view why) const { fail("{}: byte {}: {}", what_, start_ + at_, why); }

std::span<const std::byte> ProtobufMessage::take(std::uint64_t count) {
  if (count > bytes_.size() - at_) refuse(fmt::format("a field of {} bytes, of which {} are there", count, bytes_.size() - at_));
  const auto taken = bytes_.subspan(at_, static_cast<std::size_t>(count));
  at_ += taken.size();
  return taken;
}

std::uint64_t ProtobufMessage::varint() {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const auto byte = std::to_integer<std::uint64_t>(take(1)[0]);
    value |= (byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  refuse("an integer of more than ten bytes");
}

std::optional<ProtobufMessage::Field> ProtobufMessage::next() {
  if (at_ == bytes_.size()) return std::nullopt;
  const std::uint64_t key = varint();
  if (key >> 3 == 0 || key >> 32 != 0) refuse("a field number out of range (allowed: 1..536870911)");
  Field field;
  field.number = static_cast<std::uint32_t>(key >> 3);
  field.wire_type = static_cast<std::uint32_t>(key & 7);
  switch (field.wire_type) {
    case 0: field.integer = varint(); break;
    case 1:
    case 5: {
      const auto little_endian = take(field.wire_type == 1 ? 8 : 4);
      for (std::size_t i = little_endian.size(); i-- > 0;)
        field.integer = field.integer << 8 | std::to_integer<std::uint64_t>(little_endian[i]);
      break;
    }
    case 2: field.bytes = take(varint()); break;
    default: refuse(fmt::format("a field of type {} (allowed: 0, 1, 2, 5)", field.wire_type));
  }
  return field;
}

void ProtobufMessage::require(const Field& field, std::uint32_t wire_type) const {
  if (field.wire_type != wire_type) refuse(fmt::format("field {} has type {} (allowed: {})", field.number, field.wire_type, wire_type));
}

std::uint64_t ProtobufMessage::integer(const Field& field) const {
  require(field, 0);
  return field.integer;
}

float ProtobufMessage::number(const Field& field) const {
  require(field, 5);
  return std::bit_cast<float>(static_cast<std::uint32_t>(field.integer));
}

std::string_view ProtobufMessage::text(const Field& field) const {
  require(field, 2);
  return {reinterpret_cast<const char*>(field.bytes.data()), field.bytes.size()};
}

ProtobufMessage ProtobufMessage::message(const Field& field) const {
  require(field, 2);
  return {field.bytes, what_, start_ + static_cast<std::size_t>(field.bytes.data() - bytes_.data())};
}

}  // namespace rlx
