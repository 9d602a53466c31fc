#include "text/tokenizer/post_processor.h"

#include <algorithm>

#include "base/names.h"
#include "text/unicode/unicode.h"

namespace rlx {
namespace {

Encoding special_encoding(std::vector<std::int32_t> ids, std::vector<std::string> tokens, std::int32_t type_id) {
  Encoding result;
  const std::size_t count = ids.size();
  result.type_ids.assign(count, type_id);
  result.attention_mask.assign(count, 1);
  result.special_mask.assign(count, 1);
  result.offsets.assign(count, {0, 0});
  result.ids = std::move(ids);
  result.tokens = std::move(tokens);
  return result;
}

/// What stands for `id` in the object `special_tokens`: its member `ids` and their texts, of equal number.
Encoding read_special(const JsonField& special_tokens, const JsonField& id, std::int32_t type_id) {
  const auto entry = special_tokens.find(id.as_string());
  if (!entry) id.refuse("{} is not among special_tokens", quote_name(id.as_string()));
  std::vector<std::int32_t> ids;
  for (const JsonField& item : entry->at("ids").items()) ids.push_back(item.as_id());
  std::vector<std::string> tokens;
  for (const JsonField& item : entry->at("tokens").items()) tokens.push_back(item.as_string());
  if (ids.size() != tokens.size()) entry->refuse("{} ids for {} tokens", ids.size(), tokens.size());
  return special_encoding(std::move(ids), std::move(tokens), type_id);
}

/// A space, or the code point by which byte-level vocabularies write one.
bool is_space_in_token(char32_t c) { return c == 0x120 || unicode::is_whitespace(c); }

}  // namespace

PostProcessor::PostProcessor() : single_{{Piece::Kind::first, 0, {}}}, pair_{{Piece::Kind::first, 0, {}}, {Piece::Kind::second, 1, {}}} {}

PostProcessor::PostProcessor(const JsonField& field) : PostProcessor() { read(field); }

void PostProcessor::read(const JsonField& field) {
  const std::string kind = field.kind();
  if (kind == "Sequence") {
    for (const JsonField& step : field.at("processors").items()) read(step);
    return;
  }
  if (kind == "ByteLevel") {
    trim_offsets_ = field.at("trim_offsets").as_bool();
    prefix_space_ = field.at("add_prefix_space").as_bool();
    return;
  }
  if (read_before_) field.refuse("{} comes after another post-processor that adds tokens (allowed: one)", quote_name(kind));
  read_before_ = true;
  if (kind == "TemplateProcessing") return read_template(field);
  if (kind == "BertProcessing") return read_bert(field, false);
  if (kind == "RobertaProcessing") return read_bert(field, true);
  field.refuse_kind("TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel, Sequence");
}

void PostProcessor::read_template(const JsonField& field) {
  const JsonField special_tokens = field.at("special_tokens");
  single_ = read_pieces(field.at("single"), special_tokens);
  pair_ = read_pieces(field.at("pair"), special_tokens);
  const bool needs_two = std::any_of(single_.begin(), single_.end(), [](const Piece& piece) { return piece.kind == Piece::Kind::second; });
  if (needs_two) field.at("single").refuse("the template for one text uses the second one, 'B'");
}

PostProcessor::Template PostProcessor::read_pieces(const JsonField& pieces, const JsonField& special_tokens) {
  Template result;
  for (const JsonField& item : pieces.items()) {
    if (const auto sequence = item.find("Sequence")) {
      const std::int32_t type_id = sequence->at("type_id").as_id();
      const bool first = sequence->at("id").as_one_of({"A", "B"}) == 0;
      result.push_back({first ? Piece::Kind::first : Piece::Kind::second, type_id, {}});
      continue;
    }
    const JsonField special = item.at("SpecialToken");
    const std::int32_t type_id = special.at("type_id").as_id();
    result.push_back({Piece::Kind::special, type_id, read_special(special_tokens, special.at("id"), type_id)});
  }
  return result;
}

PostProcessor::Piece PostProcessor::special_piece(const std::string& token, std::int32_t id, std::int32_t type_id) {
  return {Piece::Kind::special, type_id, special_encoding({id}, {token}, type_id)};
}

/// `[CLS] A [SEP]` and `[CLS] A [SEP] B [SEP]`; RoBERTa puts a second separator before B and gives everything the type 0.
void PostProcessor::read_bert(const JsonField& field, bool roberta) {
  const auto read_token = [&](std::string_view name, std::int32_t type_id) {
    const std::vector<JsonField> parts = field.at(name).items();
    if (parts.size() != 2) field.at(name).refuse("expected a token and its id, found {} values", parts.size());
    return special_piece(parts[0].as_string(), parts[1].as_id(), type_id);
  };
  const std::int32_t second_type = roberta ? 0 : 1;
  const Piece first = {Piece::Kind::first, 0, {}};
  const Piece second = {Piece::Kind::second, second_type, {}};
  single_ = {read_token("cls", 0), first, read_token("sep", 0)};
  pair_ = single_;
  if (roberta) pair_.push_back(read_token("sep", 0));
  pair_.push_back(second);
  pair_.push_back(read_token("sep", second_type));
  if (!roberta) return;
  trim_offsets_ = field.at("trim_offsets").as_bool();
  prefix_space_ = field.at("add_prefix_space").as_bool();
}

std::size_t PostProcessor::added_tokens(bool pair) const {
  std::size_t count = 0;
  for (const Piece& piece : pair ? pair_ : single_) count += piece.special.size();
  return count;
}

void PostProcessor::trim_offsets(Encoding& encoding, std::string_view text) const {
  if (!trim_offsets_) return;
  for (std::size_t i = 0; i < encoding.size(); ++i) {
    const std::u32string token = unicode::to_utf32(encoding.tokens[i]);
    auto leading = std::find_if_not(token.begin(), token.end(), is_space_in_token) - token.begin();
    auto trailing = std::find_if_not(token.rbegin(), token.rend(), is_space_in_token) - token.rbegin();
    auto& [begin, end] = encoding.offsets[i];
    if ((i == 0 || begin == 0) && prefix_space_ && leading == 1) leading = 0;
    for (; leading > 0 && begin < end; --leading) begin += unicode::decode(text.substr(begin)).bytes;
    for (; trailing > 0 && begin < end; --trailing) end = std::max(begin, unicode::code_point_before(text, end));
  }
}

void PostProcessor::append_before(std::vector<std::int32_t>& ids) const {
  for (const Piece& piece : single_) {
    if (piece.kind != Piece::Kind::special) return;
    ids.insert(ids.end(), piece.special.ids.begin(), piece.special.ids.end());
  }
}

void PostProcessor::append_after(std::vector<std::int32_t>& ids) const {
  bool after = false;
  for (const Piece& piece : single_) {
    if (piece.kind != Piece::Kind::special) after = true;
    else if (after) ids.insert(ids.end(), piece.special.ids.begin(), piece.special.ids.end());
  }
}

PostProcessor PostProcessor::around(const std::vector<std::pair<std::int32_t, std::string>>& before,
                                    const std::vector<std::pair<std::int32_t, std::string>>& after) {
  PostProcessor result;
  result.single_.clear();
  result.pair_.clear();
  for (const Piece::Kind text : {Piece::Kind::first, Piece::Kind::second}) {
    const std::int32_t type_id = text == Piece::Kind::first ? 0 : 1;
    for (const auto& [id, token] : before) result.pair_.push_back(special_piece(token, id, type_id));
    result.pair_.push_back({text, type_id, {}});
    for (const auto& [id, token] : after) result.pair_.push_back(special_piece(token, id, type_id));
    if (text == Piece::Kind::first) result.single_ = result.pair_;
  }
  return result;
}

PostProcessor PostProcessor::of_encoder(const SpecialTokens& before, const SpecialTokens& after, const SpecialTokens& between,
                                        std::int32_t second_type) {
  PostProcessor result;
  const auto add = [](Template& to, const SpecialTokens& tokens, std::int32_t type) {
    for (const auto& [id, token] : tokens) to.push_back(special_piece(token, id, type));
  };
  result.single_.clear();
  add(result.single_, before, 0);
  result.single_.push_back({Piece::Kind::first, 0, {}});
  add(result.single_, after, 0);
  result.pair_ = result.single_;
  add(result.pair_, between, 0);
  result.pair_.push_back({Piece::Kind::second, second_type, {}});
  add(result.pair_, after, second_type);
  return result;
}

Encoding PostProcessor::process(Encoding first, std::optional<Encoding> second, bool add_special_tokens) const {
  Encoding result;
  for (const Piece& piece : second ? pair_ : single_) {
    if (piece.kind == Piece::Kind::special) {
      if (add_special_tokens) result.append(piece.special);
      continue;
    }
    Encoding& text = piece.kind == Piece::Kind::first ? first : *second;
    text.type_ids.assign(text.size(), piece.type_id);
    result.append(text);
  }
  return result;
}

}  // namespace rlx
