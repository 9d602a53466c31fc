#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "models/tokenizer/json_field.h"

namespace rlx {

/// Turns tokens back into text.
class Decoder {
 public:
  virtual ~Decoder() = default;
  virtual std::string decode(std::span<const std::string_view> tokens) const = 0;
};

/// Reads a decoder of kind WordPiece. Throws Error for any other kind and for malformed fields.
std::unique_ptr<Decoder> read_decoder(const JsonField& field);

/// For a file without a decoder: the tokens with a space between them.
std::unique_ptr<Decoder> spaced_decoder();

}  // namespace rlx
