#include "text/tokenizer/tokenizer.h"

#include <utility>

#include "formats/json/json_field.h"
#include "text/tokenizer/split_text.h"
#include "text/tokenizer/tokenizer_parts.h"
#include "text/unicode/byte_chars.h"

namespace rlx {
namespace {

void append_token(Encoding& encoding, std::int32_t id, std::string_view token, TextOrigin origin) {
  encoding.ids.push_back(id);
  encoding.type_ids.push_back(0);
  encoding.attention_mask.push_back(1);
  encoding.special_mask.push_back(0);
  encoding.offsets.emplace_back(origin.begin, origin.end);
  encoding.tokens.emplace_back(token);
}

}  // namespace

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
  const bool of_bytes = pre_tokenizer_ && takes_bytes(file.at("model")) && pre_tokenizer_->leave_bytes();
  model_ = read_word_model(file.at("model"), of_bytes);
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

Tokenizer::Tokenizer(Parts parts)
    : normalizer_(std::move(parts.normalizer)),
      pre_tokenizer_(std::move(parts.pre_tokenizer)),
      model_(std::move(parts.model)),
      added_tokens_(std::make_unique<AddedTokens>(std::move(parts.added_tokens))),
      post_processor_(std::make_unique<PostProcessor>(std::move(parts.post_processor))),
      decoder_(std::move(parts.decoder)) {}

Encoding Tokenizer::encode_words(std::string_view text) const {
  Encoding encoding;
  std::vector<WordToken> tokens;
  const TextSplitter splitter = {*added_tokens_, normalizer_.get(), pre_tokenizer_.get(), true};
  splitter.split(text, [&](const Word& word) {
    const auto& [piece, added] = word;
    if (added) return append_token(encoding, added->id, piece.bytes(), piece.text->origin(piece.range));
    tokens.clear();
    model_->tokenize(piece.bytes(), tokens);
    for (const WordToken& token : tokens) {
      const TextRange range = {piece.range.begin + token.begin, piece.range.begin + token.end};
      append_token(encoding, token.id, model_->shown(token, piece.bytes()), piece.text->origin(range));
    }
  });
  return encoding;
}

std::vector<std::int32_t> Tokenizer::encode_ids(std::string_view text, bool add_special_tokens) const {
  std::vector<std::int32_t> ids;
  if (add_special_tokens) post_processor_->append_before(ids);
  std::vector<WordToken> tokens;
  const TextSplitter splitter = {*added_tokens_, normalizer_.get(), pre_tokenizer_.get(), false};
  splitter.split(text, [&](const Word& word) {
    if (word.token) return ids.push_back(word.token->id);
    tokens.clear();
    model_->tokenize(word.piece.bytes(), tokens);
    for (const WordToken& token : tokens) ids.push_back(token.id);
  });
  if (add_special_tokens) post_processor_->append_after(ids);
  return ids;
}

Encoding Tokenizer::encode_texts(std::string_view a, std::optional<std::string_view> b, bool add_special_tokens) const {
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
  Encoding result = post_processor_->process(std::move(first), std::move(second), add_special_tokens);
  if (padding_) pad(result, *padding_);
  return result;
}

Encoding Tokenizer::encode(std::string_view text, bool add_special_tokens) const {
  return encode_texts(text, std::nullopt, add_special_tokens);
}

Encoding Tokenizer::encode_pair(std::string_view a, std::string_view b, bool add_special_tokens) const {
  return encode_texts(a, b, add_special_tokens);
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
  std::vector<std::string> tokens;
  for (const std::int32_t id : ids) {
    const AddedToken* added = added_tokens_->find(id);
    if (added && added->special && skip_special_tokens) continue;
    if (added) tokens.emplace_back(added->for_decoder());
    else if (const auto token = model_->id_to_token(id)) tokens.emplace_back(*token);
  }
  decoder_->apply(tokens);
  std::string text;
  for (const std::string& token : tokens) text += token;
  return text;
}

std::string Tokenizer::bytes_of(std::int32_t id) const {
  const AddedToken* added = added_tokens_->find(id);
  const auto token = added ? std::optional(added->for_decoder()) : model_->id_to_token(id);
  if (!token || (added && added->special)) return {};
  constexpr std::string_view before = "a", replacement = "\xEF\xBF\xBD";
  std::vector<std::string> tokens{std::string(before), std::string(*token)};
  decoder_->apply(tokens);
  std::string text;
  for (const std::string& each : tokens) text += each;
  text.erase(0, before.size());
  if (text.find(replacement) == std::string::npos) return text;
  if (const auto byte = fallback_byte(*token); byte && text == replacement) return std::string(1, *byte);
  const auto bytes = byte_chars::bytes(*token);
  return bytes && replace_invalid_utf8(*bytes) == text ? *bytes : text;
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
