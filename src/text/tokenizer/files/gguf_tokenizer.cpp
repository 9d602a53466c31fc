#include "text/tokenizer/files/gguf_tokenizer.h"

#include <utility>

#include "base/names.h"
#include "rlx/error.h"
#include "text/tokenizer/files/gguf_patterns.h"
#include "text/tokenizer/files/sentencepiece.h"
#include "text/tokenizer/tokenizer_parts.h"
#include "text/tokenizer/word_models/bpe.h"
#include "text/tokenizer/word_models/space_words.h"
#include "text/tokenizer/word_models/word_piece.h"
#include "text/unicode/byte_chars.h"
#include "text/unicode/unicode.h"

namespace rlx {
namespace {

using Type = SentencePieces::Type;
using Tokens = std::vector<std::pair<std::int32_t, std::string>>;
constexpr std::int64_t most_tokens_of_gguf = 1 << 24;

/// What all kinds of vocabularies have.
class GgufVocabulary {
 public:
  explicit GgufVocabulary(const GgufFile& file) : file_(file), tokens_(file.value("tokenizer.ggml.tokens").strings()) {
    if (tokens_.empty() || tokens_.size() > most_tokens_of_gguf)
      fail("{}: tokenizer.ggml.tokens: {} tokens (allowed: 1..{})", file.name(), tokens_.size(), most_tokens_of_gguf);
    types_.assign(tokens_.size(), Type::normal);
    const GgufValue* types = file.find_value("tokenizer.ggml.token_type");
    if (!types) return;
    const std::vector<std::int64_t> given = types->integers(0, 6);  // 0: not said
    require_length("token_type", given.size());
    for (std::size_t id = 0; id < given.size(); ++id) types_[id] = given[id] == 0 ? Type::normal : static_cast<Type>(given[id]);
  }

  const std::string& name() const { return file_.name(); }
  std::size_t size() const { return tokens_.size(); }
  std::string_view token(std::size_t id) const { return tokens_[id]; }
  Type type(std::size_t id) const { return types_[id]; }
  bool is_added(std::size_t id) const {
    return types_[id] == Type::control || types_[id] == Type::unknown || types_[id] == Type::user_defined;
  }

  std::vector<double> scores() const {
    std::vector<double> result = file_.value("tokenizer.ggml.scores").numbers();
    require_length("scores", result.size());
    return result;
  }

  bool flag(std::string_view key, bool otherwise) const {
    const GgufValue* value = file_.find_value(fmt::format("tokenizer.ggml.{}", key));
    return value ? value->boolean() : otherwise;
  }

  /// A special token's id, which files without the key have at `otherwise`, if at all.
  std::optional<std::int32_t> id(std::string_view key, std::int64_t otherwise = -1) const {
    const GgufValue* value = file_.find_value(fmt::format("tokenizer.ggml.{}_token_id", key));
    if (value) return static_cast<std::int32_t>(value->integer(0, static_cast<std::int64_t>(size()) - 1));
    if (otherwise < 0 || otherwise >= static_cast<std::int64_t>(size())) return std::nullopt;
    return static_cast<std::int32_t>(otherwise);
  }

  /// The token of an id where it is wanted, which must be there then.
  Tokens special(bool wanted, std::optional<std::int32_t> id, std::string_view key) const {
    if (!wanted) return {};
    if (!id) fail("{}: texts are to get the token tokenizer.ggml.{}_token_id, which is missing", name(), key);
    return {{*id, std::string(tokens_[static_cast<std::size_t>(*id)])}};
  }

  /// All tokens by name. Two of one name are an Error.
  Vocabulary all() const {
    Vocabulary vocabulary;
    for (std::size_t id = 0; id < tokens_.size(); ++id) {
      if (!is_utf8(tokens_[id])) fail("{}: tokenizer.ggml.tokens: token {} is not UTF-8: {}", name(), id, quote_name(tokens_[id]));
      if (!vocabulary.add(tokens_[id], static_cast<std::int32_t>(id)))
        fail("{}: tokenizer.ggml.tokens: the token {} is there twice", name(), quote_name(tokens_[id]));
    }
    vocabulary.finish();
    return vocabulary;
  }

  /// Those of a vocabulary whose other tokens are written in characters that stand for bytes are text all the same.
  AddedTokens added_tokens(bool of_bytes) const {
    AddedTokens result;
    for (std::size_t id = 0; id < tokens_.size(); ++id) {
      if (!is_added(id)) continue;
      result.add_plain(tokens_[id], static_cast<std::int32_t>(id), types_[id] != Type::user_defined, false,
                       of_bytes ? byte_chars::text_for(tokens_[id]) : "");
    }
    return result;
  }

 private:
  void require_length(std::string_view key, std::size_t length) const {
    if (length != tokens_.size()) fail("{}: tokenizer.ggml.{}: {} values for {} tokens", name(), key, length, tokens_.size());
  }

  const GgufFile& file_;
  std::vector<std::string_view> tokens_;
  std::vector<Type> types_;
};

/// Merges are written "left right"; a token may start with a space where tokens are not bytes.
void add_merges(const GgufFile& file, Bpe& model) {
  const GgufValue* merges = file.find_value("tokenizer.ggml.merges");
  if (!merges) fail("{}: the key tokenizer.ggml.merges is missing", file.name());
  std::uint32_t rank = 0;
  for (const std::string_view merge : merges->strings()) {
    const std::size_t space = merge.find(' ', 1);
    const bool known = space != std::string_view::npos && model.add_merge(merge.substr(0, space), merge.substr(space + 1), rank);
    if (!known) fail("{}: tokenizer.ggml.merges: {} are not two tokens that make a third", file.name(), quote_name(merge));
    ++rank;
  }
}

/// What comes before the tokens of a text, and after.
void add_text_parts(const GgufPattern& pattern, const GgufVocabulary& vocabulary, Tokenizer::Parts& parts) {
  if (pattern.alphabet == GgufAlphabet::words) {
    if (vocabulary.flag("normalizer.lowercase", false)) parts.normalizer = lowercase_normalizer();
    parts.pre_tokenizer = space_pre_tokenizer();
    parts.decoder = spaced_decoder();
    return;
  }
  const bool of_bytes = pattern.alphabet == GgufAlphabet::bytes;
  if (!of_bytes) parts.normalizer = replace_normalizer(" ", space_marker);
  const std::vector<std::string> patterns(pattern.patterns.begin(), pattern.patterns.end());
  parts.pre_tokenizer = pattern_pre_tokenizer(patterns, vocabulary.name());
  parts.decoder = of_bytes ? byte_level_decoder() : sentencepiece_decoder(false);
}

Tokenizer read_bpe(const GgufFile& file, const GgufVocabulary& vocabulary, std::string_view pre) {
  const GgufPattern& pattern = find_gguf_pattern(pre, file.name());
  Bpe::Options options;
  options.of_bytes = pattern.alphabet == GgufAlphabet::bytes;
  options.byte_fallback = pattern.alphabet == GgufAlphabet::text;
  options.whole_words_first = pattern.whole_words_first;
  auto model = std::make_unique<Bpe>(vocabulary.all(), std::move(options));
  if (pre == "kimi-k2" && !file.find_value("tokenizer.ggml.merges")) {
    std::vector<std::uint32_t> ranks(vocabulary.size());
    for (std::size_t id = 0; id < ranks.size(); ++id) ranks[id] = vocabulary.is_added(id) ? Bpe::never : static_cast<std::uint32_t>(id);
    model->add_all_merges(ranks);
  } else {
    add_merges(file, *model);
  }
  model->finish();

  Tokenizer::Parts parts;
  add_text_parts(pattern, vocabulary, parts);
  parts.model = std::move(model);
  parts.added_tokens = vocabulary.added_tokens(pattern.alphabet == GgufAlphabet::bytes);
  const Tokens begin = vocabulary.special(vocabulary.flag("add_bos_token", pattern.add_begin), vocabulary.id("bos", 11), "bos");
  const Tokens end = vocabulary.special(vocabulary.flag("add_eos_token", false), vocabulary.id("eos", 11), "eos");
  const Tokens separator =
      vocabulary.special(vocabulary.flag("add_sep_token", pattern.add_separator), vocabulary.id("seperator"), "seperator");
  if (begin.empty() || end.empty()) {
    parts.post_processor = PostProcessor::around(begin, end.empty() ? separator : end);
  } else {  // of an encoder, whose separator stands between two texts
    parts.post_processor = PostProcessor::of_encoder(begin, end, separator, 0);
  }
  return Tokenizer(std::move(parts));
}

Tokenizer read_pieces(const GgufFile& file, const GgufVocabulary& vocabulary, bool unigram) {
  SentencePieces model;
  const std::vector<double> scores = vocabulary.scores();
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    model.pieces.push_back({std::string(vocabulary.token(id)), static_cast<float>(scores[id]), vocabulary.type(id)});
    if (!is_utf8(model.pieces.back().text)) fail("{}: tokenizer.ggml.tokens: token {} is not UTF-8", file.name(), id);
    model.byte_fallback = model.byte_fallback || vocabulary.type(id) == Type::byte;
  }
  model.unigram = unigram;
  model.single_precision = false;
  model.space_before_text = vocabulary.flag("add_space_prefix", true);
  model.merge_spaces = vocabulary.flag("remove_extra_whitespaces", unigram);
  if (vocabulary.flag("add_bos_token", !unigram)) model.begin = vocabulary.id("bos", unigram ? -1 : 1);
  if (vocabulary.flag("add_eos_token", unigram)) model.end = vocabulary.id("eos", unigram ? 1 : 2);
  if (const GgufValue* rules = file.find_value("tokenizer.ggml.precompiled_charsmap"))
    model.charsmap.assign(reinterpret_cast<const char*>(rules->bytes().data()), rules->bytes().size());
  if (vocabulary.flag("add_sep_token", false)) model.between = vocabulary.id("seperator");
  return sentencepiece_tokenizer(model, file.name());
}

Tokenizer read_word_pieces(const GgufVocabulary& vocabulary) {
  const auto unknown = vocabulary.id("unknown", 100);
  if (!unknown) fail("{}: the key tokenizer.ggml.unknown_token_id is missing", vocabulary.name());
  Tokenizer::Parts parts;
  const auto in_texts = [&vocabulary](std::int32_t id) { return !vocabulary.is_added(static_cast<std::size_t>(id)); };
  parts.model = std::make_unique<WordPiece>(vocabulary.all(), space_marker, *unknown, in_texts);
  parts.normalizer = bert_normalizer(vocabulary.flag("normalizer.lowercase", true), vocabulary.flag("normalizer.strip_accents", true));
  parts.pre_tokenizer = bert_pre_tokenizer();
  parts.added_tokens = vocabulary.added_tokens(false);
  const auto begin = vocabulary.id("cls", vocabulary.id("bos", 101).value_or(-1));
  const auto separator = vocabulary.id("seperator", 102);
  parts.post_processor =
      PostProcessor::of_encoder(vocabulary.special(true, begin, "cls"), vocabulary.special(true, separator, "seperator"), {}, 1);
  parts.decoder = word_start_decoder();
  return Tokenizer(std::move(parts));
}

}  // namespace

Tokenizer read_gguf_tokenizer(const GgufFile& file) {
  const std::string_view model = file.value("tokenizer.ggml.model").string();
  const GgufVocabulary vocabulary(file);
  const GgufValue* pre = file.find_value("tokenizer.ggml.pre");
  if (model == "gpt2") return read_bpe(file, vocabulary, pre ? pre->string() : "default");
  if (model == "gemma4" || model == "whitespace") return read_bpe(file, vocabulary, model);
  if (model == "llama") return read_pieces(file, vocabulary, false);
  if (model == "t5") return read_pieces(file, vocabulary, true);
  if (model == "bert") return read_word_pieces(vocabulary);
  fail("{}: tokenizer.ggml.model: {} is not supported (supported: gpt2, gemma4, whitespace, llama, t5, bert)", file.name(),
       quote_name(model));
}

}  // namespace rlx
