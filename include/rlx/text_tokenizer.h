#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rlx {

class Tokenizer;

/// The tokenizer of a model, without the model. Copies share it; any number of threads may use it.
class TextTokenizer {
 public:
  /// A file tokenizer.json, tokenizer.model, tekken.json or *.gguf, or a folder with one of them. Throws Error naming the file and what is
  /// wrong.
  static TextTokenizer open(const std::filesystem::path& path);

  /// The ids of a text, with the special tokens that belong around it. What is not UTF-8 counts as U+FFFD.
  std::vector<std::int32_t> encode(std::string_view text, bool add_special_tokens = true) const;
  /// The text of ids; those that no token has are left out.
  std::string decode(std::span<const std::int32_t> ids, bool skip_special_tokens = true) const;
  /// A token's id by its name, as the vocabulary spells it.
  std::optional<std::int32_t> id_of(std::string_view token) const;
  /// A token as the vocabulary spells it. Throws Error if no token has this id.
  std::string_view token_of(std::int32_t id) const;
  /// What a token adds to a text that has begun: its space too, and perhaps a part of a code point. Empty for special tokens.
  std::string bytes_of(std::int32_t id) const;
  std::int64_t vocab_size() const;

 private:
  explicit TextTokenizer(std::shared_ptr<const Tokenizer> tokenizer) : tokenizer_(std::move(tokenizer)) {}

  std::shared_ptr<const Tokenizer> tokenizer_;
};

}  // namespace rlx
