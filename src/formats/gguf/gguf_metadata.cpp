#include "formats/gguf/gguf_metadata.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/names.h"
#include "rlx/error.h"

namespace rlx {
namespace {

constexpr std::size_t longest_key = 65535;

template <class Number>
void append(std::string& out, Number number) {
  out.append(reinterpret_cast<const char*>(&number), sizeof(Number));
}

void append_string(std::string& out, std::string_view text) {
  append(out, std::uint64_t{text.size()});
  out += text;
}

/// Type of the elements, their number, the elements; lengths in 64 bits whatever version the value was read from.
void append_array(std::string& out, const GgufValue& value) {
  append(out, static_cast<std::uint32_t>(value.element_type()));
  append(out, std::uint64_t{value.size()});
  if (value.element_type() == GgufType::array) {
    for (const GgufValue& inner : value.arrays()) append_array(out, inner);
  } else if (value.element_type() == GgufType::string) {
    for (std::string_view text : value.strings()) append_string(out, text);
  } else {
    out.append(reinterpret_cast<const char*>(value.bytes().data()), value.bytes().size());
  }
}

template <class Text>
std::string encoded_strings(std::span<const Text> texts) {
  std::string out;
  append(out, static_cast<std::uint32_t>(GgufType::array));
  append(out, static_cast<std::uint32_t>(GgufType::string));
  append(out, std::uint64_t{texts.size()});
  for (const Text& text : texts) append_string(out, text);
  return out;
}

}  // namespace

std::string GgufMetadata::encoded(GgufType type, std::span<const std::byte> bytes) {
  std::string out;
  append(out, static_cast<std::uint32_t>(type));
  out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return out;
}

std::string GgufMetadata::encoded_array(GgufType element, std::uint64_t count, std::span<const std::byte> bytes) {
  std::string out;
  append(out, static_cast<std::uint32_t>(GgufType::array));
  append(out, static_cast<std::uint32_t>(element));
  append(out, count);
  out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return out;
}

void GgufMetadata::put(std::string_view key, std::string value) {
  if (key.empty() || key.size() > longest_key || !is_utf8(key) || key.find('\0') != std::string_view::npos)
    fail("metadata key {}: 1 to {} bytes of UTF-8 text without NUL are needed", quote_name(key), longest_key);
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.key == key; });
  if (found != entries_.end()) found->value = std::move(value);
  else entries_.push_back({std::string(key), std::move(value)});
}

void GgufMetadata::set(std::string_view key, std::string_view text) {
  std::string value;
  append(value, static_cast<std::uint32_t>(GgufType::string));
  append_string(value, text);
  put(key, std::move(value));
}

void GgufMetadata::set_booleans(std::string_view key, const std::vector<bool>& values) {
  std::vector<std::byte> bytes;
  for (bool value : values) bytes.push_back(static_cast<std::byte>(value));
  put(key, encoded_array(GgufType::boolean, bytes.size(), bytes));
}

void GgufMetadata::set_strings(std::string_view key, std::span<const std::string_view> texts) { put(key, encoded_strings(texts)); }
void GgufMetadata::set_strings(std::string_view key, std::span<const std::string> texts) { put(key, encoded_strings(texts)); }

void GgufMetadata::copy(const GgufValue& value) {
  if (value.type() == GgufType::string) return set(value.key(), value.string());
  if (!value.is_array()) return put(value.key(), encoded(value.type(), value.bytes()));
  std::string out;
  append(out, static_cast<std::uint32_t>(GgufType::array));
  append_array(out, value);
  put(value.key(), std::move(out));
}

void GgufMetadata::copy(std::span<const GgufValue> values) {
  for (const GgufValue& value : values) copy(value);
}

void GgufMetadata::erase(std::string_view key) {
  std::erase_if(entries_, [&](const Entry& entry) { return entry.key == key; });
}

bool GgufMetadata::contains(std::string_view key) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.key == key; });
}

std::uint32_t GgufMetadata::alignment() const {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [](const Entry& entry) { return entry.key == "general.alignment"; });
  if (found == entries_.end()) return 32;
  std::uint32_t type = 0, alignment = 0;
  if (found->value.size() == sizeof type + sizeof alignment) {
    std::memcpy(&type, found->value.data(), sizeof type);
    std::memcpy(&alignment, found->value.data() + sizeof type, sizeof alignment);
  }
  if (type != static_cast<std::uint32_t>(GgufType::u32) || !std::has_single_bit(alignment))
    fail("metadata key 'general.alignment': a u32 that is a power of two is needed");
  return alignment;
}

}  // namespace rlx
