#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "models/tokenizer/tokenizer.h"

namespace rlx {

/// The text of tokens that come one by one, cut where a stop text begins.
class StoppableText {
 public:
  StoppableText(const Tokenizer& tokenizer, std::vector<std::string> stop) : tokenizer_(tokenizer), stop_(std::move(stop)) {}

  /// What the token adds and can be given away: whole code points, and nothing that may be the beginning of a stop text.
  std::string push(std::int32_t id);
  /// What was held back, when no more tokens come.
  std::string finish();
  bool stopped() const { return stopped_; }

 private:
  std::string take(std::size_t end);
  /// Where the first stop text begins, or may begin at the end of the text.
  std::size_t safe_end(bool more_may_come);

  const Tokenizer& tokenizer_;
  std::vector<std::string> stop_;
  std::vector<std::int32_t> ids_;
  std::string text_;
  std::size_t given_ = 0;  // bytes of the text
  bool stopped_ = false;
};

}  // namespace rlx
