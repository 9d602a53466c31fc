#include <algorithm>
#include <utility>

#include "base/names.h"
#include "rlx/error.h"
#include "text/tokenizer/charsmap.h"
#include "text/tokenizer/files/sentencepiece.h"
#include "text/tokenizer/growth.h"
#include "text/tokenizer/tokenizer_parts.h"
#include "text/tokenizer/word_models/bpe.h"
#include "text/tokenizer/word_models/unigram.h"
#include "text/unicode/unicode.h"

namespace rlx {
namespace {

using Type = SentencePieces::Type;
constexpr char32_t space_mark = 0x2581;

/// The longest rules first; then spaces as the model asks, written as U+2581.
class SentencePieceNormalizer : public Normalizer {
 public:
  SentencePieceNormalizer(const SentencePieces& model, std::string_view what)
      : space_before_text_(model.space_before_text), merge_spaces_(model.merge_spaces) {
    if (!model.charsmap.empty()) rules_.emplace(model.charsmap, what);
  }

  void apply(AlignedText& text, std::size_t most) const override {
    if (rules_) apply_rules(text, most);
    if (text.empty()) return;
    const AlignedChar first = text.front();
    if (merge_spaces_) merge_spaces(text);
    if (space_before_text_ && !text.empty()) text.insert(text.begin(), {U' ', first.begin, first.end});
    for (AlignedChar& c : text) c.value = c.value == U' ' ? space_mark : c.value;
  }

 private:
  void apply_rules(AlignedText& text, std::size_t most) const {
    const std::string bytes = to_utf8(text);
    AlignedText result;
    result.reserve(text.size());
    std::size_t next = 0;  // of `text`
    for (std::size_t at = 0; at < bytes.size();) {
      const auto match = rules_->longest(std::string_view(bytes).substr(at));
      const std::size_t length = match ? match->length : unicode::decode_valid(bytes.data() + at).bytes;
      const AlignedChar& origin = text[next];
      if (!match) result.push_back(origin);
      else {
        for (const char32_t c : unicode::to_utf32(match->replacement)) result.push_back({c, origin.begin, origin.end});
      }
      check_growth(result.size(), most);
      for (const std::size_t end = at + length; at < end; ++at) next += unicode::starts_code_point(bytes[at]) ? 1 : 0;
    }
    text = std::move(result);
  }

  static void merge_spaces(AlignedText& text) {
    const auto both = [](const AlignedChar& a, const AlignedChar& b) { return a.value == U' ' && b.value == U' '; };
    text.erase(std::unique(text.begin(), text.end(), both), text.end());
    if (!text.empty() && text.back().value == U' ') text.pop_back();
    if (!text.empty() && text.front().value == U' ') text.erase(text.begin());
  }

  std::optional<Charsmap> rules_;
  bool space_before_text_;
  bool merge_spaces_;
};

/// Pieces that texts are cut into; user-defined ones are found before that.
bool in_texts(Type type) { return type == Type::normal || type == Type::unused || type == Type::user_defined; }

std::unique_ptr<WordModel> unigram_model(const SentencePieces& model) {
  std::vector<Unigram::Token> tokens;
  for (const SentencePieces::Piece& piece : model.pieces) {
    tokens.push_back({piece.text, piece.score, piece.type == Type::normal || piece.type == Type::user_defined});
  }
  return std::make_unique<Unigram>(tokens, model.unknown(), model.byte_fallback, model.single_precision);
}

std::unique_ptr<WordModel> bpe_model(const SentencePieces& model, std::string_view what) {
  Vocabulary vocabulary;
  std::vector<std::size_t> order;  // of the pieces, best first
  for (std::size_t id = 0; id < model.pieces.size(); ++id) {
    const std::string& text = model.pieces[id].text;
    if (!vocabulary.add(text, static_cast<std::int32_t>(id))) fail("{}: the piece {} is there twice", what, quote_name(text));
    if (in_texts(model.pieces[id].type)) order.push_back(id);
  }
  vocabulary.finish();
  std::ranges::sort(order, {}, [&](std::size_t id) { return std::pair(-model.pieces[id].score, id); });
  std::vector<std::uint32_t> ranks(model.pieces.size(), Bpe::never);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const bool equal = i > 0 && model.pieces[order[i]].score == model.pieces[order[i - 1]].score;
    ranks[order[i]] = equal ? ranks[order[i - 1]] : static_cast<std::uint32_t>(i);
  }
  Bpe::Options options;
  options.byte_fallback = model.byte_fallback;
  options.fuse_unknown = true;
  options.unknown = model.unknown();
  auto bpe = std::make_unique<Bpe>(std::move(vocabulary), std::move(options));
  bpe->add_all_merges(ranks);
  bpe->finish();
  return bpe;
}

AddedTokens special_pieces(const SentencePieces& model) {
  AddedTokens result;
  for (std::size_t id = 0; id < model.pieces.size(); ++id) {
    const auto& [text, score, type] = model.pieces[id];
    if (type != Type::control && type != Type::unknown && type != Type::user_defined) continue;
    result.add_plain(text, static_cast<std::int32_t>(id), type != Type::user_defined);
  }
  return result;
}

PostProcessor around_text(const SentencePieces& model, std::string_view what) {
  const auto token = [&](std::optional<std::int32_t> id) {
    std::vector<std::pair<std::int32_t, std::string>> tokens;
    if (!id) return tokens;
    if (*id < 0 || static_cast<std::size_t>(*id) >= model.pieces.size())
      fail("{}: the special token {} is not in the vocabulary of {} tokens", what, *id, model.pieces.size());
    tokens.emplace_back(*id, model.pieces[static_cast<std::size_t>(*id)].text);
    return tokens;
  };
  if (model.between) return PostProcessor::of_encoder(token(model.begin), token(model.end), token(model.between), 0);
  return PostProcessor::around(token(model.begin), token(model.end));
}

}  // namespace

Tokenizer sentencepiece_tokenizer(const SentencePieces& model, std::string_view what) {
  if (model.pieces.empty()) fail("{}: there are no pieces", what);
  Tokenizer::Parts parts;
  parts.normalizer = std::make_unique<SentencePieceNormalizer>(model, what);
  parts.model = model.unigram ? unigram_model(model) : bpe_model(model, what);
  parts.added_tokens = special_pieces(model);
  parts.post_processor = around_text(model, what);
  parts.decoder = sentencepiece_decoder(model.space_before_text);
  return Tokenizer(std::move(parts));
}

}  // namespace rlx
