#include "text/tokenizer/word_models/unigram.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include <fmt/core.h>

#include "base/names.h"
#include "text/tokenizer/word_models/space_words.h"
#include "text/unicode/unicode.h"

namespace rlx {
namespace {

constexpr double unknown_penalty = 10;
constexpr std::int32_t unknown_step = -1;

/// A score as `tokenizers` reads it: the digits as an integer, divided by a power of ten, which can be one unit in the last place away from
/// the nearest number. Which of two equal ways to cut a run of one character wins depends on that.
double read_score(const JsonField& field) {
  const double nearest = field.as_number();
  std::array<char, 40> text{};  // d.ddde-dd: the shortest digits, which are those of the file
  const char* const end = std::to_chars(text.data(), text.data() + text.size(), std::abs(nearest), std::chars_format::scientific).ptr;
  const char* const mark = std::find(static_cast<const char*>(text.data()), end, 'e');
  std::uint64_t digits = 0;
  int exponent = 1;
  for (const char* c = text.data(); c != mark; ++c) {
    if (*c == '.') continue;
    digits = digits * 10 + static_cast<std::uint64_t>(*c - '0');
    --exponent;
  }
  exponent += std::atoi(mark + 1);
  if (exponent >= 0 || exponent < -22) return nearest;  // an integer, or a power of ten that is not exact
  return std::copysign(static_cast<double>(digits) / std::pow(10.0, -exponent), nearest);
}

}  // namespace

std::unique_ptr<Unigram> Unigram::read(const JsonField& field) {
  std::vector<Token> tokens;
  for (const JsonField& item : field.at("vocab").items()) {
    const std::vector<JsonField> pair = item.items();
    if (pair.size() != 2) item.refuse("expected a token and its score, found {} values", pair.size());
    tokens.push_back({pair[0].as_string(), read_score(pair[1]), true});
  }
  std::optional<std::int32_t> unknown;
  if (const auto id = field.find("unk_id")) {
    if (tokens.empty()) id->refuse("there are no tokens");
    unknown = static_cast<std::int32_t>(id->as_integer(0, tokens.size() - 1));
  }
  const auto byte_fallback = field.find("byte_fallback");
  return std::make_unique<Unigram>(tokens, unknown, byte_fallback && byte_fallback->as_bool());
}

Unigram::Unigram(std::span<const Token> tokens, std::optional<std::int32_t> unknown, bool byte_fallback, bool single_precision)
    : unknown_(unknown), byte_fallback_(byte_fallback), single_precision_(single_precision) {
  double lowest = std::numeric_limits<double>::infinity();
  for (const Token& token : tokens) {
    const auto id = static_cast<std::int32_t>(names_.size());
    names_.push_back(token.text);
    scores_.push_back(token.score);
    vocabulary_.add(token.text, id);
    if (!token.in_texts) continue;
    trie_.add(token.text, id);
    lowest = std::min(lowest, token.score);
  }
  vocabulary_.finish();
  cut_at_spaces_ = !single_precision && tokens_start_at_spaces(vocabulary_);
  unknown_score_ = lowest - unknown_penalty;
  for (unsigned byte = 0; byte < 256; ++byte) byte_tokens_[byte] = vocabulary_.id(fmt::format("<0x{:02X}>", byte)).value_or(-1);
}

std::optional<std::string_view> Unigram::id_to_token(std::int32_t id) const {
  if (id < 0 || static_cast<std::size_t>(id) >= names_.size()) return std::nullopt;
  return names_[static_cast<std::size_t>(id)];
}

void Unigram::reach(Step& step, double score, std::size_t begin, std::int32_t id) const {
  if (single_precision_) score = static_cast<float>(score);
  if (step.begin == SIZE_MAX || score > step.score) step = {score, begin, id};
}

void Unigram::tokenize(std::string_view word, std::vector<WordToken>& tokens) const {
  if (!cut_at_spaces_) return tokenize_part(word, 0, tokens);
  for_each_space_word(word, [&](std::size_t begin, std::size_t end) { tokenize_part(word.substr(begin, end - begin), begin, tokens); });
}

void Unigram::tokenize_part(std::string_view word, std::size_t offset, std::vector<WordToken>& tokens) const {
  const std::uint64_t hash = hash_bytes(word);
  WordCache& cache = WordCache::of_thread();
  if (cache.find(cache_key_, word, hash, offset, tokens)) return;
  const std::size_t before = tokens.size();
  std::vector<Step> steps(word.size() + 1);
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t char_end = at + unicode::decode_valid(word.data() + at).bytes;
    const double here = steps[at].score;
    bool covered = false;
    trie_.prefixes(word.substr(at), [&](std::size_t length, std::int32_t id) {
      reach(steps[at + length], scores_[static_cast<std::size_t>(id)] + here, at, id);
      covered = covered || at + length == char_end;
    });
    if (!covered) reach(steps[char_end], unknown_score_ + here, at, unknown_step);
    at = char_end;
  }
  // Backwards along the best way, then in order: unknown steps side by side are one, the unknown token's own name among them.
  std::vector<std::pair<std::size_t, std::int32_t>> cuts;  // where a token starts, and which
  for (std::size_t end = word.size(); end > 0; end = steps[end].begin) {
    const auto is_unknown = [this](std::int32_t id) { return id == unknown_step || id == unknown_; };
    const bool joins = !cuts.empty() && is_unknown(cuts.back().second) && is_unknown(steps[end].id);
    if (joins) cuts.back() = {steps[end].begin, unknown_step};
    else cuts.emplace_back(steps[end].begin, steps[end].id);
  }
  for (std::size_t i = cuts.size(); i-- > 0;) {
    const std::size_t end = i == 0 ? word.size() : cuts[i - 1].first;
    append(word.substr(cuts[i].first, end - cuts[i].first), offset + cuts[i].first, cuts[i].second, tokens);
  }
  cache.keep(cache_key_, word, hash, offset, std::span(tokens).subspan(before));
}

void Unigram::append(std::string_view piece, std::size_t begin, std::int32_t id, std::vector<WordToken>& tokens) const {
  if (id != unknown_step) {
    tokens.push_back({id, begin, begin + piece.size()});
    return;
  }
  const auto token_of = [this](char byte) { return byte_tokens_[static_cast<unsigned char>(byte)]; };
  if (byte_fallback_ && std::all_of(piece.begin(), piece.end(), [&](char byte) { return token_of(byte) >= 0; })) {
    for (std::size_t i = 0; i < piece.size(); ++i) tokens.push_back({token_of(piece[i]), begin + i, begin + i + 1});
    return;
  }
  if (!unknown_) fail("tokenizer: {} is in no token, and there is no unknown token", quote_name(piece));
  tokens.push_back({*unknown_, begin, begin + piece.size()});
}

}  // namespace rlx
