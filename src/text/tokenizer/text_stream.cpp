#include "text/tokenizer/text_stream.h"

namespace rlx {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";
constexpr std::size_t most_kept = 64;  // a code point has four bytes: what is not whole by then never will be

}  // namespace

std::string TextStream::push(std::int32_t id) {
  ids_.push_back(id);
  const std::string text = decoded();
  const bool open = text.ends_with(replacement) && ids_.size() - context_ < most_kept;
  if (open || text.size() <= shown_.size()) return {};
  std::string fresh = text.substr(shown_.size());
  // Some decoders treat the first token of a text in its own way, so that one whose text is out stays in front.
  ids_.erase(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(context_));
  context_ = ids_.size();
  shown_ = decoded();
  return fresh;
}

std::string TextStream::finish() {
  const std::string text = decoded();
  std::string fresh = text.size() > shown_.size() ? text.substr(shown_.size()) : "";
  ids_.clear();
  context_ = 0;
  shown_.clear();
  return fresh;
}

}  // namespace rlx
