#pragma once
#include <string>
#include <string_view>

namespace rlx {

/// The bytes of a base64 text (RFC 4648, padded or not). Throws Error naming `what` for any other character or length.
std::string decode_base64(std::string_view text, std::string_view what);

/// The bytes as base64, padded.
std::string encode_base64(std::string_view bytes);

}  // namespace rlx
