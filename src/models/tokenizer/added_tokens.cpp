#include "models/tokenizer/added_tokens.h"

#include <algorithm>

#include "base/names.h"
#include "models/tokenizer/unicode.h"

namespace rlx {
namespace {

std::uint64_t edge(std::uint32_t node, char32_t value) { return (std::uint64_t{node} << 32) | value; }

bool stands_alone(const AlignedText& text, TextRange match) {
  const bool word_before = match.begin > 0 && unicode::is_word(text[match.begin - 1].value);
  const bool word_after = match.end < text.size() && unicode::is_word(text[match.end].value);
  return !word_before && !word_after;
}

/// The match and the white space around it that its token asks for, but nothing before `first`.
TextRange widen(const AlignedText& text, TextRange match, const AddedToken& token, std::size_t first) {
  while (token.lstrip && match.begin > first && unicode::is_whitespace(text[match.begin - 1].value)) --match.begin;
  while (token.rstrip && match.end < text.size() && unicode::is_whitespace(text[match.end].value)) ++match.end;
  return match;
}

}  // namespace

bool PatternTrie::add(const std::u32string& pattern, std::size_t value) {
  std::uint32_t node = 0;
  for (char32_t c : pattern) {
    const auto [found, fresh] = edges_.try_emplace(edge(node, c), static_cast<std::uint32_t>(values_.size()));
    if (fresh) values_.emplace_back();
    node = found->second;
  }
  if (node == 0 || values_[node]) return false;
  values_[node] = value;
  return true;
}

std::optional<PatternTrie::Match> PatternTrie::longest(const AlignedText& text, TextRange range) const {
  std::optional<Match> best;
  std::uint32_t node = 0;
  for (std::size_t at = range.begin; at < range.end; ++at) {
    const auto next = edges_.find(edge(node, text[at].value));
    if (next == edges_.end()) break;
    node = next->second;
    if (values_[node]) best = Match{*values_[node], at + 1};
  }
  return best;
}

AddedTokens::AddedTokens(const std::optional<JsonField>& field, const WordModel& model, const Normalizer* normalizer) {
  if (!field) return;
  for (const JsonField& item : field->items()) add(item, model, normalizer);
}

void AddedTokens::add(const JsonField& field, const WordModel& model, const Normalizer* normalizer) {
  AddedToken token = {
      .content = field.at("content").as_string(),
      .shown = {},
      .id = field.at("id").as_id(),
      .special = field.at("special").as_bool(),
      .single_word = field.at("single_word").as_bool(),
      .lstrip = field.at("lstrip").as_bool(),
      .rstrip = field.at("rstrip").as_bool(),
      .normalized = field.at("normalized").as_bool(),
  };
  const auto known = model.token_to_id(token.content);
  // A token that the model lacks is numbered after all others: that is how the ids in such a file came about.
  const auto last = tokens_.empty() ? -1 : tokens_.rbegin()->first;
  const auto expected = known ? *known : std::max(static_cast<std::int32_t>(model.vocab_size()), last + 1);
  if (token.id != expected) field.at("id").refuse("token {} has the id {}, found {}", quote_name(token.content), expected, token.id);
  if (ids_.contains(token.content)) field.at("content").refuse("the token {} is listed twice", quote_name(token.content));

  AlignedText pattern = align(token.content);
  if (token.normalized && normalizer) normalizer->apply(pattern);
  token.shown = to_utf8(pattern);
  PatternTrie& trie = token.normalized ? normalized_ : raw_;
  if (!trie.add(unicode::to_utf32(token.shown), static_cast<std::size_t>(token.id))) {
    field.at("content").refuse("the token {} is looked for as {}, which is empty or stands for another token", quote_name(token.content),
                               quote_name(token.shown));
  }
  new_tokens_ += known ? 0 : 1;
  ids_.emplace(token.content, token.id);
  tokens_.emplace(token.id, std::move(token));
}

std::vector<Segment> AddedTokens::split(const AlignedText& text, bool normalized) const {
  std::vector<Segment> segments;
  std::size_t done = 0;  // everything before is in a segment
  const auto leave_to_model = [&](std::size_t end) {
    if (done < end) segments.push_back({{done, end}, nullptr});
  };
  const PatternTrie& trie = normalized ? normalized_ : raw_;
  for (std::size_t at = 0; at < text.size() && !trie.empty();) {
    const auto match = trie.longest(text, {at, text.size()});
    if (!match) {
      ++at;
      continue;
    }
    TextRange found = {at, match->end};
    at = match->end;
    const AddedToken& token = tokens_.at(static_cast<std::int32_t>(match->value));
    if (token.single_word && !stands_alone(text, found)) continue;
    found = widen(text, found, token, done);
    leave_to_model(found.begin);
    segments.push_back({found, &token});
    at = done = found.end;
  }
  leave_to_model(text.size());
  return segments;
}

const AddedToken* AddedTokens::find(std::string_view content) const {
  const auto found = ids_.find(content);
  return found == ids_.end() ? nullptr : find(found->second);
}

const AddedToken* AddedTokens::find(std::int32_t id) const {
  const auto found = tokens_.find(id);
  return found == tokens_.end() ? nullptr : &found->second;
}

}  // namespace rlx
