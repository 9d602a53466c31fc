#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "text/tokenizer/text_stream.h"

namespace rlx {

/// The text of tokens that come one by one, cut where a stop text begins.
class StoppableText {
 public:
  /// Behind the tokens `before`, whose text is no part of it: a word that follows others begins with its space. The tokenizer must outlive
  /// it.
  StoppableText(const Tokenizer& tokenizer, std::vector<std::string> stop, std::span<const std::int32_t> before = {});

  /// What the token adds and can be given away: whole code points, and nothing that may be the beginning of a stop text.
  std::string push(std::int32_t id) { return take(stream_.push(id), true); }
  /// What was held back, when no more tokens come.
  std::string finish() { return stopped_ ? std::string() : take(stream_.finish(), false); }
  bool stopped() const { return stopped_; }

 private:
  std::string take(const std::string& more, bool more_may_come);

  TextStream stream_;
  std::vector<std::string> stop_;
  std::string held_;  // not given away yet
  bool stopped_ = false;
};

}  // namespace rlx
