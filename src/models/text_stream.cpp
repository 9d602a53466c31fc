#include "models/text_stream.h"

#include <algorithm>

namespace rlx {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";  // stands for bytes that are no whole code point

/// How many bytes at the end of `text` are the beginning of `stop`.
std::size_t begun(std::string_view text, std::string_view stop) {
  for (std::size_t length = std::min(text.size(), stop.size() - 1); length > 0; --length)
    if (text.ends_with(stop.substr(0, length))) return length;
  return 0;
}

}  // namespace

std::size_t StoppableText::safe_end(bool more_may_come) {
  std::size_t end = text_.size();
  for (const std::string& stop : stop_) {
    if (stop.empty()) continue;
    if (const std::size_t at = text_.find(stop, given_); at != std::string::npos) stopped_ = true, end = std::min(end, at);
    else if (more_may_come) end = std::min(end, text_.size() - begun(std::string_view(text_).substr(given_), stop));
  }
  return end;
}

std::string StoppableText::take(std::size_t end) {
  std::string piece = text_.substr(given_, end - given_);
  given_ = end;
  return piece;
}

std::string StoppableText::push(std::int32_t id) {
  ids_.push_back(id);
  std::string text = tokenizer_.decode(ids_);
  if (text.ends_with(replacement)) return {};  // the next token may complete the code point
  text_ = std::move(text);
  given_ = std::min(given_, text_.size());
  return take(safe_end(true));
}

std::string StoppableText::finish() {
  if (stopped_) return {};
  text_ = ids_.empty() ? text_ : tokenizer_.decode(ids_);
  given_ = std::min(given_, text_.size());
  return take(safe_end(false));
}

}  // namespace rlx
