#include "models/tokenizer/decoder.h"

#include <array>
#include <utility>

namespace rlx {
namespace {

/// Spaces that tokenizing English puts in and writing does not, in the order in which they are taken out.
constexpr std::array<std::pair<std::string_view, std::string_view>, 11> artifacts = {{
    {" .", "."},
    {" ?", "?"},
    {" !", "!"},
    {" ,", ","},
    {" ' ", "'"},
    {" n't", "n't"},
    {" 'm", "'m"},
    {" do not", " don't"},
    {" 's", "'s"},
    {" 've", "'ve"},
    {" 're", "'re"},
}};

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) text.replace(at, from.size(), to);
}

class WordPieceDecoder : public Decoder {
 public:
  explicit WordPieceDecoder(const JsonField& field) : prefix_(field.at("prefix").as_string()), cleanup_(field.at("cleanup").as_bool()) {}

  std::string decode(std::span<const std::string_view> tokens) const override {
    std::string text;
    for (std::size_t i = 0; i < tokens.size(); ++i) text += decode_one(tokens[i], i == 0);
    return text;
  }

 private:
  /// Artifacts are taken out token by token: one that spans two tokens stays.
  std::string decode_one(std::string_view token, bool first) const {
    std::string text;
    if (first) text = token;
    else if (token.starts_with(prefix_)) text = token.substr(prefix_.size());
    else text.append(" ").append(token);
    if (cleanup_) {
      for (const auto& [from, to] : artifacts) replace_all(text, from, to);
    }
    return text;
  }

  std::string prefix_;
  bool cleanup_;
};

class SpacedDecoder : public Decoder {
 public:
  std::string decode(std::span<const std::string_view> tokens) const override {
    std::string text;
    for (std::size_t i = 0; i < tokens.size(); ++i) text.append(i == 0 ? "" : " ").append(tokens[i]);
    return text;
  }
};

}  // namespace

std::unique_ptr<Decoder> read_decoder(const JsonField& field) {
  if (field.kind() == "WordPiece") return std::make_unique<WordPieceDecoder>(field);
  field.refuse_kind("WordPiece");
}

std::unique_ptr<Decoder> spaced_decoder() { return std::make_unique<SpacedDecoder>(); }

}  // namespace rlx
