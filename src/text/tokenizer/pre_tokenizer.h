#pragma once
#include <memory>
#include <string>
#include <vector>

#include "formats/json/json_field.h"
#include "text/tokenizer/traced_text.h"

namespace rlx {

/// Cuts a normalized text into the words that the model sees one by one.
class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  /// Replaces each piece by its words, in order and none of them empty.
  virtual void split(Pieces& pieces) const = 0;
  /// Asks the last step not to write bytes as printable characters, because the model can take them as they are. False if it does
  /// nothing of the kind.
  virtual bool leave_bytes() { return false; }
};

/// Reads every pre-tokenizer of `tokenizers` 0.23 but UnicodeScripts, with its meaning there. Throws Error for any other kind and for
/// malformed fields.
std::unique_ptr<PreTokenizer> read_pre_tokenizer(const JsonField& field);

/// Cuts at the matches of each pattern in turn, each match and what lies between matches being a word of its own. Throws Error naming
/// `what` for a pattern that cannot be read.
std::unique_ptr<PreTokenizer> pattern_pre_tokenizer(const std::vector<std::string>& patterns, std::string_view what);

/// White space separates words.
std::unique_ptr<PreTokenizer> space_pre_tokenizer();

/// BERT's: white space separates words, and each punctuation mark is one.
std::unique_ptr<PreTokenizer> bert_pre_tokenizer();

}  // namespace rlx
