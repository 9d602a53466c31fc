#include "models/run/stoppable_text.h"

#include <algorithm>
#include <string_view>

namespace rlx {
namespace {

/// How many bytes at the end of `text` are the beginning of `stop`.
std::size_t begun(std::string_view text, std::string_view stop) {
  for (std::size_t length = std::min(text.size(), stop.size() - 1); length > 0; --length)
    if (text.ends_with(stop.substr(0, length))) return length;
  return 0;
}

}  // namespace

StoppableText::StoppableText(const Tokenizer& tokenizer, std::vector<std::string> stop, std::span<const std::int32_t> before)
    : stream_(tokenizer), stop_(std::move(stop)) {
  std::erase(stop_, "");
  constexpr std::size_t enough = 16;  // tokens: some stand for no text, some for a part of a code point
  for (std::int32_t id : before.last(std::min(before.size(), enough))) stream_.push(id);
}

std::string StoppableText::take(const std::string& more, bool more_may_come) {
  held_ += more;
  std::size_t end = held_.size();
  for (const std::string& stop : stop_)
    if (const std::size_t at = held_.find(stop); at != std::string::npos) stopped_ = true, end = std::min(end, at);
  if (!stopped_ && more_may_come)
    for (const std::string& stop : stop_) end = std::min(end, held_.size() - begun(held_, stop));
  std::string piece = held_.substr(0, end);
  held_.erase(0, end);
  return piece;
}

}  // namespace rlx
