#pragma once
#include <cstddef>
#include <memory>
#include <string_view>

#include "formats/json/json_field.h"
#include "text/unicode/aligned_text.h"

namespace rlx {

/// Rewrites a text before it is split. Code points that it inserts take the origin of a neighbour, so that every token can be
/// traced back to the text that the user gave.
class Normalizer {
 public:
  virtual ~Normalizer() = default;
  /// Throws Error where the text grows beyond `most` code points (growth.h).
  virtual void apply(AlignedText& text, std::size_t most) const = 0;
};

/// Reads every normalizer of `tokenizers` 0.23, with its meaning there. Throws Error for any other kind and for malformed fields.
std::unique_ptr<Normalizer> read_normalizer(const JsonField& field);

/// Those that tokenizers need which are not written as JSON.
std::unique_ptr<Normalizer> replace_normalizer(std::string_view text, std::string_view by);
std::unique_ptr<Normalizer> lowercase_normalizer();
std::unique_ptr<Normalizer> bert_normalizer(bool lowercase, bool strip_accents);

}  // namespace rlx
