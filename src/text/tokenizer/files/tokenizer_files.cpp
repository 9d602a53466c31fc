#include "text/tokenizer/files/tokenizer_files.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/base64.h"
#include "base/names.h"
#include "formats/json/json.h"
#include "rlx/error.h"
#include "text/tokenizer/files/gguf_patterns.h"
#include "text/tokenizer/files/gguf_tokenizer.h"
#include "text/tokenizer/files/gguf_tokens.h"
#include "text/tokenizer/files/sentencepiece.h"
#include "text/tokenizer/files/sentencepiece_writer.h"
#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/word_models/vocabulary.h"

namespace rlx {
namespace {

using Kind = GgufTokens::Kind;
constexpr std::string_view word_start = "\u2581";

json::Value added_token(const GgufTokens& tokens, std::size_t id) {
  return {{"id", id},
          {"content", tokens.token(id)},
          {"single_word", false},
          {"lstrip", false},
          {"rstrip", false},
          {"normalized", false},
          {"special", tokens.kind(id) != Kind::user_defined}};
}

json::Value added_tokens(const GgufTokens& tokens) {
  json::Value out = json::Value::array();
  for (std::size_t id = 0; id < tokens.size(); ++id)
    if (tokens.is_added(id)) out.push_back(added_token(tokens, id));
  return out;
}

/// The ids by the texts that `text_of` gives them; of several ids with one text the first.
template <class TextOf>
json::Value vocabulary_json(const GgufTokens& tokens, TextOf text_of) {
  json::Value::object_t vocabulary;  // whose own insertion would look for each text among all before
  vocabulary.reserve(tokens.size());
  std::unordered_set<std::string> texts;
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    std::string text = text_of(id);
    if (texts.insert(text).second) vocabulary.emplace_back(std::move(text), id);
  }
  return vocabulary;
}

/// Special tokens around a text, and between two.
struct Specials {
  std::optional<std::size_t> before = {}, after = {}, between = {};
  int second_type = 0;
};

json::Value template_of(const GgufTokens& tokens, const Specials& specials) {
  json::Value single = json::Value::array(), pair = json::Value::array(), names = json::Value::object();
  const auto text = [](json::Value& to, const char* which, int type) { to.push_back({{"Sequence", {{"id", which}, {"type_id", type}}}}); };
  const auto special = [&](json::Value& to, std::optional<std::size_t> id, int type) {
    if (!id) return;
    const std::string name(tokens.token(*id));
    to.push_back({{"SpecialToken", {{"id", name}, {"type_id", type}}}});
    names[name] = {{"id", name}, {"ids", json::Value::array({*id})}, {"tokens", json::Value::array({name})}};
  };
  special(single, specials.before, 0), text(single, "A", 0), special(single, specials.after, 0);
  pair = single;
  special(pair, specials.between, 0), text(pair, "B", specials.second_type), special(pair, specials.after, specials.second_type);
  return {{"type", "TemplateProcessing"}, {"single", single}, {"pair", pair}, {"special_tokens", names}};
}

json::Value bpe_json(const GgufTokens& tokens) {
  const GgufFile& file = tokens.file();
  const GgufValue* pre = file.find_value("tokenizer.ggml.pre");
  const GgufPattern& pattern = find_gguf_pattern(pre ? pre->string() : "default", file.name());
  if (pattern.alphabet != GgufAlphabet::bytes)
    fail("{}: tokenizer.ggml.pre: {} has no form in tokenizer.json here", file.name(), quote_name(pre->string()));
  json::Value merges = json::Value::array(), parts = json::Value::array();
  for (std::string_view merge : file.value("tokenizer.ggml.merges").strings()) merges.push_back(merge);
  for (std::string_view each : pattern.patterns)
    parts.push_back({{"type", "Split"}, {"pattern", {{"Regex", each}}}, {"behavior", "Isolated"}, {"invert", false}});
  parts.push_back({{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}});
  Specials specials;
  if (tokens.flag("add_bos_token", pattern.add_begin)) specials.before = tokens.id("bos");
  if (tokens.flag("add_eos_token", false)) specials.after = tokens.id("eos");
  if (tokens.flag("add_sep_token", pattern.add_separator)) (specials.after ? specials.between : specials.after) = tokens.id("seperator");
  return {{"version", "1.0"},
          {"added_tokens", added_tokens(tokens)},
          {"normalizer", nullptr},
          {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", parts}}},
          {"post_processor", template_of(tokens, specials)},
          {"decoder", {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}, {"use_regex", true}}},
          {"model",
           {{"type", "BPE"},
            {"ignore_merges", pattern.whole_words_first},
            {"vocab", vocabulary_json(tokens, [&](std::size_t id) { return std::string(tokens.token(id)); })},
            {"merges", merges}}}};
}

/// As tokenizer.json has it: pieces that do not begin a word are marked, not those that do.
std::string word_piece(const GgufTokens& tokens, std::size_t id) {
  std::string token(tokens.token(id));
  if (tokens.is_added(id)) return token;
  return token.starts_with(word_start) ? token.substr(word_start.size()) : "##" + token;
}

json::Value word_piece_json(const GgufTokens& tokens) {
  const auto unknown = tokens.id("unknown");
  if (!unknown) fail("{}: the key tokenizer.ggml.unknown_token_id is missing", tokens.file().name());
  const auto first = tokens.id("cls");
  const Specials specials{.before = first ? first : tokens.id("bos"), .after = tokens.id("seperator"), .second_type = 1};
  return {{"version", "1.0"},
          {"added_tokens", added_tokens(tokens)},
          {"normalizer",
           {{"type", "BertNormalizer"},
            {"clean_text", true},
            {"handle_chinese_chars", true},
            {"strip_accents", tokens.flag("normalizer.strip_accents", true)},
            {"lowercase", tokens.flag("normalizer.lowercase", true)}}},
          {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
          {"post_processor", template_of(tokens, specials)},
          {"decoder", {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}},
          {"model",
           {{"type", "WordPiece"},
            {"unk_token", tokens.token(*unknown)},
            {"continuing_subword_prefix", "##"},
            {"max_input_chars_per_word", 100},
            {"vocab", vocabulary_json(tokens, [&](std::size_t id) { return word_piece(tokens, id); })}}}};
}

json::Value unigram_normalizer(const GgufTokens& tokens) {
  json::Value rules = json::Value::array();
  if (const GgufValue* map = tokens.file().find_value("tokenizer.ggml.precompiled_charsmap")) {
    const std::string_view bytes(reinterpret_cast<const char*>(map->bytes().data()), map->bytes().size());
    rules.push_back({{"type", "Precompiled"}, {"precompiled_charsmap", encode_base64(bytes)}});
  }
  if (tokens.flag("remove_extra_whitespaces", true)) {
    rules.push_back({{"type", "Strip"}, {"strip_left", true}, {"strip_right", true}});
    rules.push_back({{"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", " "}});
  }
  if (tokens.flag("add_space_prefix", true)) rules.push_back({{"type", "Prepend"}, {"prepend", word_start}});
  rules.push_back({{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", word_start}});
  return {{"type", "Sequence"}, {"normalizers", rules}};
}

/// Sentencepiece's unigram model of an encoder, whose files say what stands around texts, which tokenizer.model cannot.
json::Value unigram_json(const GgufTokens& tokens) {
  const std::vector<double> scores = tokens.file().value("tokenizer.ggml.scores").numbers();
  json::Value vocabulary = json::Value::array();
  bool bytes = false;
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    vocabulary.push_back(json::Value::array({tokens.token(id), id < scores.size() ? scores[id] : 0}));
    bytes = bytes || tokens.kind(id) == Kind::byte;
  }
  const json::Value words{{"type", "Metaspace"}, {"replacement", word_start}, {"prepend_scheme", "never"}, {"split", true}};
  const json::Value spaces{{"type", "Metaspace"}, {"replacement", word_start}, {"prepend_scheme", "always"}, {"split", true}};
  Specials specials{.before = tokens.id("bos"), .after = tokens.id("eos")};
  if (tokens.flag("add_sep_token", false)) specials.between = tokens.id("seperator");
  const auto unknown = tokens.id("unknown");
  return {{"version", "1.0"},
          {"added_tokens", added_tokens(tokens)},
          {"normalizer", unigram_normalizer(tokens)},
          {"pre_tokenizer", words},
          {"post_processor", template_of(tokens, specials)},
          {"decoder", spaces},
          {"model",
           {{"type", "Unigram"},
            {"unk_id", unknown ? json::Value(*unknown) : json::Value()},
            {"vocab", vocabulary},
            {"byte_fallback", bytes}}}};
}

/// Two pieces that make a third, those of the best score first.
json::Value piece_merges(const GgufTokens& tokens) {
  struct Merge {
    double score;
    std::string_view left, right;
  };
  const std::vector<double> scores = tokens.file().value("tokenizer.ggml.scores").numbers();
  Vocabulary texts;
  for (std::size_t id = 0; id < tokens.size(); ++id) texts.add(tokens.token(id), static_cast<std::int32_t>(id));
  std::vector<Merge> merges;
  for (std::size_t id = 0; id < std::min(tokens.size(), scores.size()); ++id) {
    const std::string_view text = tokens.token(id);
    for (std::size_t cut = 1; cut < text.size() && tokens.kind(id) == Kind::normal; ++cut)
      if (texts.id(text.substr(0, cut)) && texts.id(text.substr(cut)))
        merges.push_back({scores[id], text.substr(0, cut), text.substr(cut)});
  }
  std::ranges::stable_sort(merges, std::greater(), &Merge::score);
  json::Value all = json::Value::array();
  for (const Merge& merge : merges) all.push_back(json::Value::array({merge.left, merge.right}));
  return all;
}

/// Sentencepiece's BPE, as transformers writes Llama's.
json::Value pieces_json(const GgufTokens& tokens) {
  const auto role = [&](std::string_view name, std::size_t usual) { return tokens.id(name).value_or(std::min(usual, tokens.size() - 1)); };
  json::Value rules = json::Value::array(), decoders = json::Value::array();
  const bool prefix = tokens.flag("add_space_prefix", true);
  if (prefix) rules.push_back({{"type", "Prepend"}, {"prepend", word_start}});
  rules.push_back({{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", word_start}});
  decoders.push_back({{"type", "Replace"}, {"pattern", {{"String", word_start}}}, {"content", " "}});
  for (const char* type : {"ByteFallback", "Fuse"}) decoders.push_back({{"type", type}});
  if (prefix) decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  Specials specials;
  if (tokens.flag("add_bos_token", true)) specials.before = role("bos", 1);
  if (tokens.flag("add_eos_token", false)) specials.after = role("eos", 2);
  return {{"version", "1.0"},
          {"added_tokens", added_tokens(tokens)},
          {"normalizer", {{"type", "Sequence"}, {"normalizers", rules}}},
          {"pre_tokenizer", nullptr},
          {"post_processor", template_of(tokens, specials)},
          {"decoder", {{"type", "Sequence"}, {"decoders", decoders}}},
          {"model",
           {{"type", "BPE"},
            {"unk_token", tokens.token(role("unknown", 0))},
            {"fuse_unk", true},
            {"byte_fallback", true},
            {"vocab", vocabulary_json(tokens, [&](std::size_t id) { return std::string(tokens.token(id)); })},
            {"merges", piece_merges(tokens)}}}};
}

/// Whether texts get a token on both sides, as of encoders.
bool is_framed(const GgufTokens& tokens) {
  return tokens.flag("add_bos_token", false) && tokens.flag("add_eos_token", false) && tokens.id("bos") && tokens.id("eos");
}

/// The text of the only chat template, or all of them by name; null for none.
json::Value chat_template_field(const GgufFile& file) {
  const std::map<std::string, std::string> templates = chat_templates_in(file);
  if (templates.empty()) return nullptr;
  if (templates.size() == 1 && templates.contains("default")) return templates.at("default");
  json::Value all = json::Value::array();
  for (const auto& [name, text] : templates) all.push_back({{"name", name}, {"template", text}});
  return all;
}

std::string config_json(const GgufTokens& tokens, std::string_view kind) {
  json::Value out = json::Value::object();
  constexpr std::pair<std::string_view, const char*> roles[] = {{"bos", "bos_token"},     {"eos", "eos_token"}, {"unknown", "unk_token"},
                                                                {"padding", "pad_token"}, {"cls", "cls_token"}, {"seperator", "sep_token"},
                                                                {"mask", "mask_token"}};
  for (const auto& [role, field] : roles)
    if (const auto id = tokens.id(role)) out[field] = tokens.token(*id);
  for (const char* flag : {"add_bos_token", "add_eos_token"})
    if (const GgufValue* value = tokens.file().find_value(fmt::format("tokenizer.ggml.{}", flag))) out[flag] = value->boolean();
  if (json::Value templates = chat_template_field(tokens.file()); !templates.is_null()) out["chat_template"] = std::move(templates);
  const bool pieces = kind == "t5" && !is_framed(tokens);
  out["tokenizer_class"] = kind == "llama" ? "LlamaTokenizer" : pieces ? "T5Tokenizer" : "PreTrainedTokenizerFast";
  return out.dump(2, ' ', false, json::Value::error_handler_t::replace) + "\n";
}

/// Letters of several scripts, digits, spaces, marks and what few tokenizers know.
constexpr std::string_view sample_texts[] = {"Hello, world!",
                                             "  two  spaces and\ttab\n\nlines ",
                                             "It's 12345.67%, isn't it?",
                                             "Grüße, café naïve",
                                             "日本語のテキスト 안녕하세요",
                                             "def f(x):\n    return x**2  # 🙂",
                                             ""};

void check_same(const Tokenizer& wanted, const Tokenizer& written, const GgufFile& file) {
  for (std::string_view text : sample_texts)
    if (wanted.encode_ids(text) != written.encode_ids(text))
      fail("{}: the tokenizer has no form in a folder's files here: the text {} would get other tokens", file.name(), quote_name(text));
}

}  // namespace

std::map<std::string, std::string> chat_templates_in(const GgufFile& file) {
  constexpr std::string_view key = "tokenizer.chat_template";
  std::map<std::string, std::string> templates;
  for (const GgufValue& value : file.metadata()) {
    if (value.key() == key) templates["default"] = value.string();
    else if (value.key().starts_with(key) && value.key()[key.size()] == '.')
      templates[std::string(value.key().substr(key.size() + 1))] = value.string();
  }
  return templates;
}

namespace {

/// Compared with the file's own tokenizer.
std::string json_text(const json::Value& tokenizer, const GgufFile& file) {
  const std::string text = tokenizer.dump(1, ' ', false, json::Value::error_handler_t::replace) + "\n";
  check_same(read_gguf_tokenizer(file), Tokenizer::parse(text, "tokenizer.json"), file);
  return text;
}

[[noreturn]] void refuse(const GgufFile& file, std::string_view kind) {
  fail("{}: tokenizer.ggml.model: {} has no form in a folder's files here (supported: gpt2, bert, llama, t5)", file.name(),
       quote_name(kind));
}

}  // namespace

std::string tokenizer_json(const GgufFile& file) {
  const GgufTokens tokens(file);
  const std::string_view kind = file.value("tokenizer.ggml.model").string();
  if (kind == "gpt2") return json_text(bpe_json(tokens), file);
  if (kind == "bert") return json_text(word_piece_json(tokens), file);
  if (kind == "t5") return json_text(unigram_json(tokens), file);
  if (kind == "llama") return json_text(pieces_json(tokens), file);
  refuse(file, kind);
}

std::map<std::string, std::string> tokenizer_files(const GgufFile& file) {
  if (!file.find_value("tokenizer.ggml.model") || !file.find_value("tokenizer.ggml.tokens")) return {};
  const GgufTokens tokens(file);
  const std::string_view kind = file.value("tokenizer.ggml.model").string();
  std::map<std::string, std::string> out{{"tokenizer_config.json", config_json(tokens, kind)}};
  if (kind == "gpt2" || kind == "bert" || (kind == "t5" && is_framed(tokens))) {
    out.emplace("tokenizer.json", tokenizer_json(file));
  } else if (kind == "llama" || kind == "t5") {
    const std::string model = sentencepiece_model(tokens, kind == "t5");
    const SentencePieces read = read_sentencepiece(std::as_bytes(std::span(model)), "tokenizer.model");
    check_same(read_gguf_tokenizer(file), sentencepiece_tokenizer(read, "tokenizer.model"), file);
    out.emplace("tokenizer.model", model);
  } else {
    refuse(file, kind);
  }
  return out;
}

}  // namespace rlx
