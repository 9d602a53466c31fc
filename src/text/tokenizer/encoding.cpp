#include "text/tokenizer/encoding.h"

namespace rlx {
namespace {

template <class T>
void append_to(std::vector<T>& all, const std::vector<T>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

template <class T>
void keep_range(std::vector<T>& all, std::size_t begin, std::size_t end) {
  all.resize(end);
  all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(begin));
}

}  // namespace

void Encoding::append(const Encoding& other) {
  append_to(ids, other.ids);
  append_to(type_ids, other.type_ids);
  append_to(attention_mask, other.attention_mask);
  append_to(special_mask, other.special_mask);
  append_to(offsets, other.offsets);
  append_to(tokens, other.tokens);
}

void Encoding::keep(std::size_t begin, std::size_t end) {
  keep_range(ids, begin, end);
  keep_range(type_ids, begin, end);
  keep_range(attention_mask, begin, end);
  keep_range(special_mask, begin, end);
  keep_range(offsets, begin, end);
  keep_range(tokens, begin, end);
}

}  // namespace rlx
