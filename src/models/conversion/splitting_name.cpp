#include "models/conversion/splitting_name.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/names.h"
#include "text/tokenizer/files/gguf_patterns.h"
#include "text/tokenizer/pre_tokenizer.h"
#include "text/tokenizer/word_models/bpe.h"
#include "text/unicode/byte_chars.h"

namespace rlx {
namespace {

using Words = std::vector<std::string>;
using Ids = std::vector<std::int32_t>;

/// What the ways differ in: contractions, digits, capitals, scripts, marks, punctuation, spaces and ends of lines.
const std::string& text_of_many_kinds() {
  static const std::string text =
      "It's we'll I'VE THEY'RE don't 'S'll x'd 've\tcamelCase XMLFile \u01C5u \u02B0\u00AAn na\u00EFve e\u0301e\u0323 I\u0307 _a_b "
      "__init__ 1st"
      " 7 42 365 1234 12345 1234567 1234567890 v2x9 3.14 1,000,000 \u0663\u0664\u0665\u0666 \u00BD\u00B2\u2177 \uFF11\uFF12\uFF13\uFF14"
      " \u4F60\u597D\u4E16\u754C2024\u5E74\u3002\uFF01 \u30AB\u30BFa\u3072\u3089 \uD55C\uAD6D\uC5B4a \u3105\u3106 \u3400\u4DB5 \u2F00"
      " \u0E20\u0E32\u0E29\u0E32 \u0627\u0644\u0639\u064E\u0631\u0628\u06D4 \u0928\u092E\u0938\u094D\u0924\u0947\u0964 \u1780\u17C1 "
      "\u1019\u102F"
      " \u0416\u0430\u0439, \u10D0\u13A0\u1E9E\uA640\uFB01 \U00010400a \u2460\u20AC\u00A9 \U0001F642\U0001F468\u200D\U0001F469"
      " (!?) a!b !word #tag /path/x\\y http://a.b/?q=1&r=2 $5 + 3 <= 4 ^~| `code` \"q\" \u201Cq\u201D \u2018a\u2019 \u2026\u2026 --- ... "
      ":-) [x] {y} ~ @me"
      " <sentinel:12> IMGIMGABCDZ a/\nb./\n c.\r\n\r\n \n  indented\n\n\n\tcode();\n}\r\r x  12 o'said O'REST x\u00A0y \u3000z  two   "
      "three   "
      " four\n \n   \n" +
      std::string(9, ' ') + "nine" + std::string(600, ' ') + "end. \n \t ";
  return text;
}

std::string written(std::string_view bytes) {
  std::string characters;
  for (char byte : bytes) characters += byte_chars::character(static_cast<std::uint8_t>(byte));
  return characters;
}

std::string as_it_is(std::string_view word) { return std::string(word); }

/// The words of a text in UTF-8, as `write` has them.
Words words_of(const std::string& bytes, const PreTokenizer& cut, const std::function<std::string(std::string_view)>& write) {
  const TracedText text(bytes, 0);
  Pieces pieces{.made = {}, .pieces = {{&text, {0, text.bytes().size()}}}, .with_origins = false, .at_start = true};
  cut.split(pieces);
  Words words;
  for (const Piece& piece : pieces.pieces) words.push_back(write(piece.bytes()));
  return words;
}

/// A way that has a name, and what it does.
struct Splitting {
  const GgufPattern* pattern;
  std::unique_ptr<const PreTokenizer> cut;
  Words words;
};

const std::vector<Splitting>& splittings() {
  static const std::vector<Splitting> all = [] {
    std::vector<Splitting> made;
    for (const GgufPattern& pattern : gguf_patterns()) {
      if (pattern.alphabet != GgufAlphabet::bytes) continue;
      const std::vector<std::string> patterns(pattern.patterns.begin(), pattern.patterns.end());
      std::unique_ptr<const PreTokenizer> cut = pattern_pre_tokenizer(patterns, pattern.names.front());
      Words words = words_of(text_of_many_kinds(), *cut, written);
      made.push_back({&pattern, std::move(cut), std::move(words)});
    }
    return made;
  }();
  return all;
}

bool takes_whole_words(const JsonField& model) {
  const auto flag = model.find("ignore_merges");
  return flag && flag->as_bool();
}

/// The model of the file, or one that differs in `ignore_merges`.
std::unique_ptr<Bpe> read_model(const JsonField& model, bool whole_words_first) {
  json::Value changed = model.value();
  changed["ignore_merges"] = whole_words_first;
  return Bpe::read(JsonField(changed, "tokenizer.json", "model"), false);
}

Ids ids_of(const Bpe& model, const Words& words) {
  std::vector<WordToken> tokens;
  for (const std::string& word : words) model.tokenize(word, tokens);
  Ids ids;
  for (const WordToken& token : tokens) ids.push_back(token.id);
  return ids;
}

/// Whether no byte of the text is left out for want of a token, which would hide differences.
bool knows_all_bytes(const Bpe& model) {
  return std::ranges::all_of(text_of_many_kinds(), [&](char byte) {
    return model.token_to_id(byte_chars::character(static_cast<std::uint8_t>(byte))).has_value();
  });
}

const GgufPattern* find_by_words(const Words& words, bool whole_words_first) {
  for (const Splitting& each : splittings())
    if (each.pattern->whole_words_first == whole_words_first && each.words == words) return each.pattern;
  return nullptr;
}

/// Whether both cut the text of every token so that the same tokens come out: a cut that matters would go through one.
bool agree_on_all_tokens(const JsonField& model, const Bpe& own, const PreTokenizer& own_cut, const Bpe& named,
                         const PreTokenizer& named_cut) {
  return std::ranges::all_of(model.at("vocab").value().get_ref<const json::Value::object_t&>(), [&](const auto& entry) {
    const auto text = byte_chars::bytes(entry.first);
    return !text || !is_utf8(*text) ||
           ids_of(own, words_of(*text, own_cut, as_it_is)) == ids_of(named, words_of(*text, named_cut, written));
  });
}

const GgufPattern* find_by_tokens(const JsonField& model, const PreTokenizer& cut, const Words& words) {
  const std::unique_ptr<Bpe> models[] = {read_model(model, false), read_model(model, true)};
  if (!knows_all_bytes(*models[0])) return nullptr;
  const Bpe& own = *models[takes_whole_words(model) ? 1 : 0];
  const Ids ids = ids_of(own, words);
  for (const Splitting& each : splittings()) {
    const Bpe& named = *models[each.pattern->whole_words_first ? 1 : 0];
    if (ids_of(named, each.words) == ids && agree_on_all_tokens(model, own, cut, named, *each.cut)) return each.pattern;
  }
  return nullptr;
}

}  // namespace

std::string_view splitting_name(const JsonField& root) {
  const JsonField pre = root.at("pre_tokenizer"), model = root.at("model");
  const std::unique_ptr<PreTokenizer> cut = read_pre_tokenizer(pre);
  const Words words = words_of(text_of_many_kinds(), *cut, as_it_is);
  const GgufPattern* found = find_by_words(words, takes_whole_words(model));
  if (!found) found = find_by_tokens(model, *cut, words);
  if (!found) pre.refuse("is a way to split text that has no name in GGUF files here");
  return found->names.front();
}

}  // namespace rlx
