#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "text/tokenizer/tokenizer.h"

namespace rlx {

/// Decodes ids one by one. The pieces together are what `decode` makes of all ids; a piece holds whole code points only, so that bytes of
/// which more are to come are kept back.
class TextStream {
 public:
  /// The tokenizer must outlive it.
  explicit TextStream(const Tokenizer& tokenizer, bool skip_special_tokens = true)
      : tokenizer_(tokenizer), skip_special_(skip_special_tokens) {}

  /// The text that is certain now and was not before; often empty.
  std::string push(std::int32_t id);
  /// What was kept back, to be called after the last id: incomplete bytes count as U+FFFD.
  std::string finish();

 private:
  std::string decoded() const { return tokenizer_.decode(ids_, skip_special_); }

  const Tokenizer& tokenizer_;
  bool skip_special_;
  std::vector<std::int32_t> ids_;  // the last ids: some whose text is out, for context, then those that are kept back
  std::size_t context_ = 0;        // how many of them are context
  std::string shown_;              // the text of the context alone
};

}  // namespace rlx
