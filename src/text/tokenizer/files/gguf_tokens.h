#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "formats/gguf/gguf.h"
#include "text/tokenizer/files/sentencepiece.h"

namespace rlx {

/// Tokens, kinds and flags of the vocabulary in the metadata of a GGUF file, which must outlive it.
class GgufTokens {
 public:
  using Kind = SentencePieces::Type;

  explicit GgufTokens(const GgufFile& file) : file_(file), tokens_(file.value("tokenizer.ggml.tokens").strings()) {
    kinds_.assign(tokens_.size(), Kind::normal);
    const GgufValue* types = file.find_value("tokenizer.ggml.token_type");
    const std::vector<std::int64_t> given = types ? types->integers(0, 6) : std::vector<std::int64_t>();
    for (std::size_t id = 0; id < given.size() && id < kinds_.size(); ++id)
      if (given[id] != 0) kinds_[id] = static_cast<Kind>(given[id]);
  }

  const GgufFile& file() const { return file_; }
  std::size_t size() const { return tokens_.size(); }
  std::string_view token(std::size_t id) const { return tokens_[id]; }
  Kind kind(std::size_t id) const { return kinds_[id]; }
  bool is_added(std::size_t id) const {
    return kinds_[id] == Kind::control || kinds_[id] == Kind::user_defined || kinds_[id] == Kind::unknown;
  }
  bool flag(std::string_view key, bool otherwise) const {
    const GgufValue* value = file_.find_value(fmt::format("tokenizer.ggml.{}", key));
    return value ? value->boolean() : otherwise;
  }
  /// The id of a role such as bos.
  std::optional<std::size_t> id(std::string_view role) const {
    const GgufValue* value = file_.find_value(fmt::format("tokenizer.ggml.{}_token_id", role));
    if (!value) return std::nullopt;
    return static_cast<std::size_t>(value->integer(0, static_cast<std::int64_t>(size()) - 1));
  }

 private:
  const GgufFile& file_;
  std::vector<std::string_view> tokens_;
  std::vector<Kind> kinds_;
};

}  // namespace rlx
