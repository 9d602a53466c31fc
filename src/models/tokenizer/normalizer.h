#pragma once
#include <memory>

#include "models/tokenizer/aligned_text.h"
#include "models/tokenizer/json_field.h"

namespace rlx {

/// Rewrites a text before it is split. Code points that it inserts take the origin of a neighbour, so that every token can be
/// traced back to the text that the user gave.
class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual void apply(AlignedText& text) const = 0;
};

/// Reads BertNormalizer, Lowercase, NFC, NFD, NFKC, NFKD, StripAccents, Strip, Replace (of a string), Prepend and Sequence, with
/// their meaning in `tokenizers` 0.23. Throws Error for any other kind and for malformed fields.
std::unique_ptr<Normalizer> read_normalizer(const JsonField& field);

}  // namespace rlx
