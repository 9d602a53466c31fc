#include "models/tokenizer/tokenizer.h"

#include "models/tokenizer/added_tokens.h"
#include "models/tokenizer/decoder.h"
#include "models/tokenizer/json_field.h"
#include "models/tokenizer/normalizer.h"
#include "models/tokenizer/post_processor.h"
#include "models/tokenizer/pre_tokenizer.h"
#include "models/tokenizer/split_text.h"
#include "models/tokenizer/word_model.h"

namespace rlx {

Tokenizer Tokenizer::open(const std::filesystem::path& tokenizer_json) {
  const json::Value document = json::read_file(tokenizer_json);
  return Tokenizer(JsonField(document, tokenizer_json.string()));
}

Tokenizer Tokenizer::parse(std::string_view json, std::string_view what) {
  const json::Value document = json::parse(json, what);
  return Tokenizer(JsonField(document, std::string(what)));
}

Tokenizer::Tokenizer(const JsonField& file) {
  if (const auto version = file.find("version")) version->as_one_of({"1.0"});
  if (const auto field = file.find("normalizer")) normalizer_ = read_normalizer(*field);
  if (const auto field = file.find("pre_tokenizer")) pre_tokenizer_ = read_pre_tokenizer(*field);
  model_ = read_word_model(file.at("model"));
  added_tokens_ = std::make_unique<AddedTokens>(file.find("added_tokens"), *model_, normalizer_.get());
  const auto post_processor = file.find("post_processor");
  post_processor_ = post_processor ? std::make_unique<PostProcessor>(*post_processor) : std::make_unique<PostProcessor>();
  const auto decoder = file.find("decoder");
  decoder_ = decoder ? read_decoder(*decoder) : spaced_decoder();
  if (const auto field = file.find("padding")) padding_ = read_padding(*field);
  if (const auto field = file.find("truncation")) {
    truncation_ = read_truncation(*field);
    const std::size_t special = post_processor_->added_tokens(false);
    if (truncation_->max_length < special)
      field->refuse("max_length {} leaves no room for {} special tokens", truncation_->max_length, special);
  }
}

Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Encoding Tokenizer::encode_words(std::string_view text) const {
  const SplitText words(text, *added_tokens_, normalizer_.get(), pre_tokenizer_.get());
  Encoding encoding;
  for (std::size_t word = 0; word < words.size(); ++word) words.encode_word(word, *model_, encoding);
  return encoding;
}

Encoding Tokenizer::encode_unpadded(std::string_view a, std::optional<std::string_view> b, bool add_special_tokens) const {
  Encoding first = encode_words(a);
  std::optional<Encoding> second;
  if (b) second = encode_words(*b);
  if (truncation_) {
    const std::size_t special = add_special_tokens ? post_processor_->added_tokens(b.has_value()) : 0;
    if (truncation_->max_length < special) {
      fail("tokenizer: truncation to {} tokens leaves no room for {} special tokens", truncation_->max_length, special);
    }
    truncate(first, second, *truncation_, truncation_->max_length - special);
  }
  post_processor_->trim_offsets(first, a);
  if (second) post_processor_->trim_offsets(*second, *b);
  return post_processor_->process(std::move(first), std::move(second), add_special_tokens);
}

Encoding Tokenizer::encode(std::string_view text, bool add_special_tokens) const {
  Encoding result = encode_unpadded(text, std::nullopt, add_special_tokens);
  if (padding_) pad({&result, 1}, *padding_);
  return result;
}

Encoding Tokenizer::encode_pair(std::string_view a, std::string_view b, bool add_special_tokens) const {
  Encoding result = encode_unpadded(a, b, add_special_tokens);
  if (padding_) pad({&result, 1}, *padding_);
  return result;
}

std::vector<Encoding> Tokenizer::encode_batch(std::span<const std::string> texts) const {
  std::vector<Encoding> batch;
  batch.reserve(texts.size());
  for (const std::string& text : texts) batch.push_back(encode_unpadded(text, std::nullopt, true));
  if (padding_) pad(batch, *padding_);
  return batch;
}

void Tokenizer::set_truncation(std::optional<Truncation> truncation) {
  const std::size_t special = post_processor_->added_tokens(false);
  if (truncation && truncation->max_length < special) {
    fail("tokenizer: truncation to {} tokens leaves no room for {} special tokens", truncation->max_length, special);
  }
  truncation_ = truncation;
}

void Tokenizer::set_padding(std::optional<Padding> padding) {
  if (padding) check(*padding);
  padding_ = std::move(padding);
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, bool skip_special_tokens) const {
  std::vector<std::string_view> tokens;
  for (const std::int32_t id : ids) {
    const AddedToken* added = added_tokens_->find(id);
    if (added && added->special && skip_special_tokens) continue;
    if (added) tokens.push_back(added->shown);
    else if (const auto token = model_->id_to_token(id)) tokens.push_back(*token);
  }
  return decoder_->decode(tokens);
}

std::optional<std::int32_t> Tokenizer::token_to_id(std::string_view token) const {
  if (const AddedToken* added = added_tokens_->find(token)) return added->id;
  return model_->token_to_id(token);
}

std::string_view Tokenizer::id_to_token(std::int32_t id) const {
  if (const AddedToken* added = added_tokens_->find(id)) return added->shown;
  if (const auto token = model_->id_to_token(id)) return *token;
  fail("tokenizer: no token has the id {} (there are {} tokens)", id, vocab_size());
}

std::size_t Tokenizer::vocab_size() const { return model_->vocab_size() + added_tokens_->new_tokens(); }

}  // namespace rlx
