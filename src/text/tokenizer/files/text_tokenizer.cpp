#include "rlx/text_tokenizer.h"

#include "text/tokenizer/files/open_tokenizer.h"

namespace rlx {

TextTokenizer TextTokenizer::open(const std::filesystem::path& path) {
  return TextTokenizer(std::make_shared<const Tokenizer>(open_tokenizer(path)));
}

std::vector<std::int32_t> TextTokenizer::encode(std::string_view text, bool add_special_tokens) const {
  return tokenizer_->encode_ids(text, add_special_tokens);
}

std::string TextTokenizer::decode(std::span<const std::int32_t> ids, bool skip_special_tokens) const {
  return tokenizer_->decode(ids, skip_special_tokens);
}

std::optional<std::int32_t> TextTokenizer::id_of(std::string_view token) const { return tokenizer_->token_to_id(token); }

std::string_view TextTokenizer::token_of(std::int32_t id) const { return tokenizer_->id_to_token(id); }

std::string TextTokenizer::bytes_of(std::int32_t id) const { return tokenizer_->bytes_of(id); }

std::int64_t TextTokenizer::vocab_size() const { return static_cast<std::int64_t>(tokenizer_->vocab_size()); }

}  // namespace rlx
