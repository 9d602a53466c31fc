#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// How byte-level vocabularies write bytes (GPT-2): printable ones of Latin-1 as themselves, the others from U+0100 on.
namespace rlx::byte_chars {

/// The UTF-8 of the character for a byte.
std::string_view character(std::uint8_t byte);
/// What is written for the bytes.
std::string text_for(std::string_view bytes);
/// The bytes that `text` is written for, or nothing if one of its characters stands for none.
std::optional<std::string> bytes(std::string_view text);

}  // namespace rlx::byte_chars
