#include "models/conversion/gguf_vocabulary.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/base64.h"
#include "base/files/mapped_file.h"
#include "base/names.h"
#include "models/config/config_field.h"
#include "models/config/model_chat_template.h"
#include "models/config/model_folder.h"
#include "models/conversion/splitting_name.h"
#include "models/conversion/text_frame.h"
#include "text/tokenizer/files/open_tokenizer.h"
#include "text/tokenizer/files/sentencepiece.h"

namespace rlx {
namespace {

using VocabularyKind = SentencePieces::Type;  // as GGUF files number them

constexpr std::int64_t most_tokens = 1 << 24;

bool is_regular(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

class VocabularyReader {
 public:
  VocabularyReader(const std::filesystem::path& file, std::int64_t vocab_size, GgufMetadata& metadata)
      : folder_(file.parent_path()), file_(file), metadata_(metadata) {
    if (vocab_size > most_tokens) fail("{}: {} tokens (allowed: up to {})", folder_.string(), vocab_size, most_tokens);
    for (std::int64_t id = 0; id < vocab_size; ++id) tokens_.push_back(fmt::format("[PAD{}]", id));
    kinds_.resize(tokens_.size(), VocabularyKind::unused);
    scores_.resize(tokens_.size(), 0);
  }

  /// Returns what the keys cannot say.
  std::vector<std::string> describe() {
    if (file_.filename() == "tokenizer.model") describe_pieces(read_sentencepiece(MappedFile::open(file_).bytes(), file_.string()));
    else if (file_.filename() == "tokenizer.json") describe_json(ConfigFile::open(file_).root());
    else fail("{}: has no form in GGUF files here (tokenizer.json and tokenizer.model have)", file_.string());
    return std::move(losses_);
  }

 private:
  void describe_json(const JsonField& root) {
    const JsonField model = root.at("model");
    const auto type = model.find("type");
    const std::string kind = type ? type->as_string() : "BPE";  // old files do not say
    if (kind == "BPE") describe_bpe(root, model);
    else if (kind == "Unigram") describe_unigram(root, model);
    else if (kind == "WordPiece") describe_word_pieces(root, model);
    else model.refuse("type {} has no form in GGUF files here (supported: BPE, Unigram, WordPiece)", quote_name(kind));
    read_added(root);
    write_tokens();
    if (kind == "BPE") describe_ends();
    describe_specials();
    if (kind != "BPE" || (frame_.begin && frame_.end)) describe_frame();
    else if (frame_.begin) set_id("bos", *frame_.begin);
    else if (frame_.end) set_id("eos", *frame_.end);
  }

  void describe_pieces(const SentencePieces& model) {
    for (std::size_t id = 0; id < model.pieces.size(); ++id) {
      const SentencePieces::Piece& piece = model.pieces[id];
      set(static_cast<std::int64_t>(id), piece.text, piece.type);
      scores_[id] = piece.score;
    }
    has_scores_ = true;
    metadata_.set("tokenizer.ggml.model", model.unigram ? "t5" : "llama");
    metadata_.set("tokenizer.ggml.pre", "default");
    write_tokens();
    const std::vector<std::uint8_t> rules(model.charsmap.begin(), model.charsmap.end());
    if (!rules.empty()) metadata_.set_numbers<std::uint8_t>("tokenizer.ggml.precompiled_charsmap", rules);
    metadata_.set("tokenizer.ggml.remove_extra_whitespaces", model.merge_spaces);
    metadata_.set("tokenizer.ggml.add_space_prefix", model.space_before_text);
    if (const auto unknown = model.unknown()) set_id("unknown", *unknown);
    if (model.begin) set_id("bos", *model.begin);
    if (model.end) set_id("eos", *model.end);
    metadata_.set("tokenizer.ggml.add_bos_token", model.begin.has_value());
    metadata_.set("tokenizer.ggml.add_eos_token", model.end.has_value());
    describe_specials();
  }

  bool has_row(std::int64_t id) const { return std::cmp_less(id, tokens_.size()); }

  void set(std::int64_t id, std::string text, VocabularyKind kind) {
    if (!has_row(id))
      fail("{}: token {} has the id {} (allowed: 0..{}, the rows of the embeddings)", file_.string(), quote_name(text), id,
           tokens_.size() - 1);
    tokens_[static_cast<std::size_t>(id)] = std::move(text);
    kinds_[static_cast<std::size_t>(id)] = kind;
  }

  /// Whether a part of the pre-tokenizer has that type; the part, if so.
  static std::optional<JsonField> part_of(const JsonField& root, std::string_view type) {
    const auto pre = root.find("pre_tokenizer");
    if (!pre) return std::nullopt;
    const auto parts = pre->find("pretokenizers");
    for (const JsonField& part : parts ? parts->items() : std::vector<JsonField>{*pre})
      if (part.kind() == type) return part;
    return std::nullopt;
  }

  /// The tokens of an object with their ids.
  static std::map<std::string, std::int64_t> read_ids(const JsonField& model) {
    std::map<std::string, std::int64_t> ids;
    const JsonField vocab = model.at("vocab");
    if (!vocab.value().is_object()) vocab.refuse("is no object of tokens and ids");
    for (const auto& [text, id] : vocab.value().get_ref<const json::Value::object_t&>())
      ids.emplace(text, JsonField(id, "tokenizer.json", fmt::format("model.vocab.{}", quote_name(text))).as_id());
    return ids;
  }

  void describe_bpe(const JsonField& root, const JsonField& model) {
    const std::map<std::string, std::int64_t> ids = read_ids(model);
    for (const auto& [text, number] : ids)
      set(number, text, text.size() == 6 && text.starts_with("<0x") ? VocabularyKind::byte : VocabularyKind::normal);
    const std::vector<std::string> merges = read_merges(model);
    frame_ = read_text_frame(root, losses_);
    if (part_of(root, "ByteLevel")) {
      metadata_.set("tokenizer.ggml.model", "gpt2");
      metadata_.set("tokenizer.ggml.pre", pattern_name(root));
      merges_ = merges;
      return;
    }
    metadata_.set("tokenizer.ggml.model", "llama");
    metadata_.set("tokenizer.ggml.pre", "default");
    for (std::size_t rank = 0; rank < merges.size(); ++rank) {  // earlier merges have higher scores
      std::string joined = merges[rank];
      joined.erase(joined.find(' '), 1);
      if (const auto id = ids.find(joined); id != ids.end()) scores_[static_cast<std::size_t>(id->second)] = -static_cast<float>(rank);
    }
    has_scores_ = true;
    mark_unknown(model);
  }

  /// One name says that there is a token between two texts, and the splitting of gpt-2 with it.
  std::string_view pattern_name(const JsonField& root) const {
    const std::string_view name = splitting_name(root);
    if (frame_.between && name != "gpt-2")
      root.at("pre_tokenizer").refuse("has no name in GGUF files here beside a token between two texts");
    return frame_.between ? "roberta-bpe" : name;
  }

  static std::vector<std::string> read_merges(const JsonField& model) {
    std::vector<std::string> merges;
    for (const JsonField& merge : model.at("merges").items()) {
      if (merge.value().is_string()) {
        merges.push_back(merge.as_string());
      } else {
        const auto pair = merge.items();
        if (pair.size() != 2) merge.refuse("{} parts (allowed: 2)", pair.size());
        merges.push_back(fmt::format("{} {}", pair[0].as_string(), pair[1].as_string()));
      }
      if (merges.back().find(' ') == std::string::npos) merge.refuse("holds no two tokens");
    }
    return merges;
  }

  /// Pieces of words: those that begin one are marked, where tokenizer.json marks those that do not.
  void describe_word_pieces(const JsonField& root, const JsonField& model) {
    const auto prefix = model.find("continuing_subword_prefix");
    if (prefix && prefix->as_string() != "##") prefix->refuse("{} is not supported (allowed: ##)", quote_name(prefix->as_string()));
    for (const auto& [text, number] : read_ids(model))
      set(number, text.starts_with("##") ? text.substr(2) : "\u2581" + text, VocabularyKind::normal);
    const std::string unknown = model.at("unk_token").as_string();
    metadata_.set("tokenizer.ggml.model", "bert");
    metadata_.set("tokenizer.ggml.pre", "default");
    set_id("unknown", JsonField(model.at("vocab")).at(unknown).as_id());
    if (const auto normalizer = root.find("normalizer"); normalizer && normalizer->kind() == "BertNormalizer") {
      const bool lowercase = normalizer->at("lowercase").as_bool();
      const auto strip = normalizer->find("strip_accents");
      metadata_.set("tokenizer.ggml.normalizer.lowercase", lowercase);
      metadata_.set("tokenizer.ggml.normalizer.strip_accents", strip ? strip->as_bool() : lowercase);
    } else {
      root.refuse("the normalizer of a WordPiece model must be a BertNormalizer to have a form in GGUF files");
    }
    frame_ = read_text_frame(root, losses_);
  }

  void describe_frame() {
    metadata_.set("tokenizer.ggml.add_bos_token", frame_.begin.has_value());
    metadata_.set("tokenizer.ggml.add_eos_token", frame_.end.has_value());
    metadata_.set("tokenizer.ggml.add_sep_token", frame_.between.has_value());
    if (frame_.begin) set_id("bos", *frame_.begin), set_id("cls", *frame_.begin);
    if (frame_.end) set_id("eos", *frame_.end), set_id("seperator", *frame_.end);
  }

  /// Of BPE, whose files mean by a missing flag what the name of their pattern says. What tokenizer_config.json says counts more.
  void describe_ends() {
    metadata_.set("tokenizer.ggml.add_bos_token", frame_.begin.has_value());
    metadata_.set("tokenizer.ggml.add_eos_token", frame_.end.has_value());
  }

  /// The rules by which text is rewritten, and whether runs of spaces become one.
  void describe_normalizer(const JsonField& root) {
    const auto normalizer = root.find("normalizer");
    bool merges_spaces = false, prepends = false;
    const auto parts = normalizer ? normalizer->find("normalizers") : std::nullopt;
    for (const JsonField& part : parts ? parts->items() : normalizer ? std::vector{*normalizer} : std::vector<JsonField>()) {
      const std::string kind = part.kind();
      if (kind == "Replace" && part.at("pattern").find("Regex")) merges_spaces = true;
      if (kind == "Prepend") prepends = true;
      if (kind != "Precompiled") continue;
      const JsonField rules = part.at("precompiled_charsmap");
      const std::vector<std::uint8_t> bytes = decoded_rules(rules);
      metadata_.set_numbers<std::uint8_t>("tokenizer.ggml.precompiled_charsmap", bytes);
    }
    metadata_.set("tokenizer.ggml.remove_extra_whitespaces", merges_spaces);
    const auto metaspace = part_of(root, "Metaspace");
    const auto scheme = metaspace ? metaspace->find("prepend_scheme") : std::nullopt;
    prepends = prepends || (metaspace && (!scheme || scheme->as_string() != "never"));
    metadata_.set("tokenizer.ggml.add_space_prefix", prepends);
  }

  static std::vector<std::uint8_t> decoded_rules(const JsonField& rules) {
    const std::string bytes = decode_base64(rules.as_string(), rules.place());
    return {bytes.begin(), bytes.end()};
  }

  void describe_unigram(const JsonField& root, const JsonField& model) {
    std::int64_t id = 0;
    for (const JsonField& entry : model.at("vocab").items()) {
      const auto pair = entry.items();
      if (pair.size() != 2) entry.refuse("{} parts (allowed: 2, a token and its score)", pair.size());
      set(id, pair[0].as_string(), VocabularyKind::normal);
      scores_[static_cast<std::size_t>(id++)] = static_cast<float>(as_number(pair[1], -1e9, 1e9));
    }
    has_scores_ = true;
    metadata_.set("tokenizer.ggml.model", "t5");
    metadata_.set("tokenizer.ggml.pre", "default");
    if (const auto unknown = model.find("unk_id")) {
      set_id("unknown", unknown->as_id());
      if (has_row(unknown->as_id())) kinds_[static_cast<std::size_t>(unknown->as_id())] = VocabularyKind::unknown;
    }
    describe_normalizer(root);
    frame_ = read_text_frame(root, losses_);
  }

  void mark_unknown(const JsonField& model) {
    const auto unknown = model.find("unk_token");
    if (!unknown) return;
    const auto at = std::find(tokens_.begin(), tokens_.end(), unknown->as_string());
    if (at == tokens_.end()) unknown->refuse("is no token");
    kinds_[static_cast<std::size_t>(at - tokens_.begin())] = VocabularyKind::unknown;
    set_id("unknown", at - tokens_.begin());
  }

  static bool is_special(const JsonField& token) {
    const auto special = token.find("special");
    return special && special->as_bool();
  }

  /// Some folders have added tokens behind the embeddings' last, such as that of pictures beside a model of texts.
  void read_added(const JsonField& root) {
    const auto added = root.find("added_tokens");
    if (!added) return;
    for (const JsonField& token : added->items()) {
      const std::int64_t id = token.at("id").as_id();
      if (!has_row(id)) {
        left_out_.insert(token.at("content").as_string());
        losses_.push_back(fmt::format("{} (without a row of the embeddings)", token.at("content").as_string()));
        continue;
      }
      if (kinds_[static_cast<std::size_t>(id)] == VocabularyKind::unknown) continue;
      set(id, token.at("content").as_string(), is_special(token) ? VocabularyKind::control : VocabularyKind::user_defined);
      note_flags(token, root);
    }
  }

  void note_flags(const JsonField& token, const JsonField& root) {
    const auto normalizer = root.find("normalizer");
    std::vector<std::string_view> flags;
    for (const char* flag : {"lstrip", "rstrip", "single_word", "normalized"}) {
      const auto value = token.find(flag);
      const bool matters = flag != std::string_view("normalized") || (normalizer && !normalizer->value().is_null());
      if (value && value->as_bool() && matters) flags.push_back(flag);
    }
    if (!flags.empty()) losses_.push_back(fmt::format("{} ({})", token.at("content").as_string(), fmt::join(flags, ", ")));
  }

  void write_tokens() {
    metadata_.set_strings("tokenizer.ggml.tokens", std::span<const std::string>(tokens_));
    if (has_scores_) metadata_.set_numbers<float>("tokenizer.ggml.scores", scores_);
    std::vector<std::int32_t> kinds;
    for (VocabularyKind kind : kinds_) kinds.push_back(static_cast<std::int32_t>(kind));
    metadata_.set_numbers<std::int32_t>("tokenizer.ggml.token_type", kinds);
    if (merges_) metadata_.set_strings("tokenizer.ggml.merges", std::span<const std::string>(*merges_));
  }

  void set_id(std::string_view role, std::int64_t id) {
    metadata_.set(fmt::format("tokenizer.ggml.{}_token_id", role), static_cast<std::uint32_t>(id));
  }

  /// Tokens that tokenizer_config.json names by their text, else those that config.json names by their ids; and the chat templates.
  void describe_specials() {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 7> roles{{{"bos", "bos_token"},
                                                                                  {"eos", "eos_token"},
                                                                                  {"unknown", "unk_token"},
                                                                                  {"seperator", "sep_token"},
                                                                                  {"padding", "pad_token"},
                                                                                  {"cls", "cls_token"},
                                                                                  {"mask", "mask_token"}}};
    const ConfigFile config = ConfigFile::open(folder_ / "config.json");
    std::optional<ConfigFile> own;
    if (is_regular(folder_ / "tokenizer_config.json")) own = ConfigFile::open(folder_ / "tokenizer_config.json");
    for (const auto& [role, field] : roles) {
      const auto named = own ? own->root().find(field) : std::nullopt;
      const auto number = config.root().find(fmt::format("{}_id", field));
      if (named) set_named(role, named->value().is_object() ? named->at("content") : *named);
      else if (number) set_first_id(role, *number);
    }
    describe_templates();
    if (!own) return;
    for (const char* flag : {"add_bos_token", "add_eos_token"})
      if (const auto value = own->root().find(flag)) metadata_.set(fmt::format("tokenizer.ggml.{}", flag), value->as_bool());
  }

  /// Other readers look for the names of the templates beside the default one.
  void describe_templates() {
    std::vector<std::string> names;
    for (const auto& [name, text] : chat_templates_in(folder_)) {
      metadata_.set(name == "default" ? "tokenizer.chat_template" : "tokenizer.chat_template." + name, text);
      if (name != "default") names.push_back(name);
    }
    if (!names.empty()) metadata_.set_strings("tokenizer.chat_templates", names);
  }

  /// Some configs list several that end a text.
  void set_first_id(std::string_view role, const JsonField& field) {
    const auto ids = field.value().is_array() ? field.items() : std::vector{field};
    if (!ids.empty() && has_row(ids.front().as_id())) set_id(role, ids.front().as_id());
  }

  void set_named(std::string_view role, const JsonField& text) {
    if (left_out_.contains(text.as_string())) return;
    const auto at = std::find(tokens_.begin(), tokens_.end(), text.as_string());
    if (at == tokens_.end()) text.refuse("{} is no token", quote_name(text.as_string()));
    set_id(role, at - tokens_.begin());
  }

  std::filesystem::path folder_, file_;  // the tokenizer's
  GgufMetadata& metadata_;
  std::vector<std::string> tokens_;
  std::optional<std::vector<std::string>> merges_;  // of byte-level BPE, perhaps none
  std::vector<VocabularyKind> kinds_;
  std::vector<float> scores_;
  std::vector<std::string> losses_;
  std::set<std::string> left_out_;  // tokens
  bool has_scores_ = false;
  TextFrame frame_;
};

}  // namespace

std::vector<std::string> describe_tokenizer(const std::filesystem::path& folder, std::int64_t vocab_size, GgufMetadata& metadata) {
  for (const char* name : tokenizer_file_names)
    if (is_regular(folder / name)) return VocabularyReader(folder / name, vocab_size, metadata).describe();
  return {};
}

}  // namespace rlx
