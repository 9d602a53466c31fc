#include "text/tokenizer/added_tokens.h"

#include <algorithm>
#include <utility>

#include "base/names.h"
#include "text/tokenizer/growth.h"
#include "text/unicode/unicode.h"

namespace rlx {
namespace {

/// The code point that ends at `end`, which is not 0.
unicode::Decoded char_before(std::string_view text, std::size_t end) {
  return unicode::decode_valid(text.data() + unicode::code_point_before(text, end));
}

bool stands_alone(std::string_view text, TextRange match) {
  const bool word_before = match.begin > 0 && unicode::is_word(char_before(text, match.begin).value);
  const bool word_after = match.end < text.size() && unicode::is_word(unicode::decode_valid(text.data() + match.end).value);
  return !word_before && !word_after;
}

/// The match and the white space around it that its token asks for, but nothing before `first`.
TextRange widen(std::string_view text, TextRange match, const AddedToken& token, std::size_t first) {
  if (token.lstrip) match.begin = std::max(match.begin, first);
  while (token.lstrip && match.begin > first) {
    const unicode::Decoded before = char_before(text, match.begin);
    if (!unicode::is_whitespace(before.value)) break;
    match.begin -= before.bytes;
  }
  while (token.rstrip && match.end < text.size()) {
    const unicode::Decoded after = unicode::decode_valid(text.data() + match.end);
    if (!unicode::is_whitespace(after.value)) break;
    match.end += after.bytes;
  }
  return match;
}

}  // namespace

AddedTokens::AddedTokens(const std::optional<JsonField>& field, const WordModel& model, const Normalizer* normalizer) {
  if (!field) return;
  for (const JsonField& item : field->items()) read(item, model, normalizer);
}

void AddedTokens::read(const JsonField& field, const WordModel& model, const Normalizer* normalizer) {
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
  if (token.normalized && normalizer) normalizer->apply(pattern, most_after_rules(pattern.size()));
  token.shown = to_utf8(pattern);
  const std::string content = token.content;
  const std::string shown = token.shown;
  if (!add(std::move(token), !known)) {
    field.at("content").refuse("the token {} is looked for as {}, which is empty or stands for another token", quote_name(content),
                               quote_name(shown));
  }
}

bool AddedTokens::add(AddedToken token, bool is_new) {
  if (!(token.normalized ? normalized_ : raw_).add(token.shown, token.id)) return false;
  new_tokens_ += is_new ? 1 : 0;
  ids_.emplace(token.content, token.id);
  tokens_.emplace(token.id, std::move(token));
  return true;
}

void AddedTokens::add_plain(std::string_view content, std::int32_t id, bool special, bool is_new, std::string written) {
  add({std::string(content), std::string(content), id, special, false, false, false, false, std::move(written)}, is_new);
}

std::vector<TextSegment> AddedTokens::split(std::string_view text, bool normalized) const {
  std::vector<TextSegment> segments;
  std::size_t done = 0;  // what is before is in a segment
  const auto leave_to_model = [&](std::size_t end) {
    if (done < end) segments.push_back({{done, end}, nullptr});
  };
  const ByteTrie& trie = normalized ? normalized_ : raw_;
  for (std::size_t at = 0; at < text.size() && !trie.empty();) {
    std::int32_t id = ByteTrie::none;
    TextRange found = {at, at};
    trie.prefixes(text.substr(at), [&](std::size_t length, std::int32_t longest) {
      found.end = at + length;
      id = longest;
    });
    if (id == ByteTrie::none) {
      do ++at;
      while (at < text.size() && !trie.starts(text[at]));
      continue;
    }
    at = found.end;
    const AddedToken& token = tokens_.at(id);
    if (token.single_word && !stands_alone(text, found)) continue;
    found = widen(text, found, token, done);
    if (found.begin >= found.end) continue;  // all of it is white space of the token before
    leave_to_model(found.begin);
    segments.push_back({found, &token});
    done = found.end;  // `at` is before the white space behind the token, which may be a token, too
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
