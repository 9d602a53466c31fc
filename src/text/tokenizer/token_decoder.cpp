#include "text/tokenizer/token_decoder.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/names.h"
#include "text/tokenizer/pattern.h"
#include "text/tokenizer/word_models/space_words.h"
#include "text/unicode/byte_chars.h"
#include "text/unicode/unicode.h"

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

constexpr std::string_view replacement_char = "\xEF\xBF\xBD";

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) text.replace(at, from.size(), to);
}

void clean_up(std::string& text) {
  for (const auto& [from, to] : artifacts) replace_all(text, from, to);
}

/// Artifacts are taken out token by token: one that spans two tokens stays.
class WordPieceDecoder : public TokenDecoder {
 public:
  explicit WordPieceDecoder(const JsonField& field) : prefix_(field.at("prefix").as_string()), cleanup_(field.at("cleanup").as_bool()) {}

  void apply(std::vector<std::string>& tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (i > 0 && tokens[i].starts_with(prefix_)) tokens[i].erase(0, prefix_.size());
      else if (i > 0) tokens[i].insert(0, " ");
      if (cleanup_) clean_up(tokens[i]);
    }
  }

 private:
  std::string prefix_;
  bool cleanup_;
};

class SpacedDecoder : public TokenDecoder {
 public:
  void apply(std::vector<std::string>& tokens) const override {
    for (std::size_t i = 1; i < tokens.size(); ++i) tokens[i].insert(0, " ");
  }
};

std::string joined(const std::vector<std::string>& tokens) {
  std::string text;
  for (const std::string& token : tokens) text += token;
  return text;
}

class ByteLevelDecoder : public TokenDecoder {
 public:
  void apply(std::vector<std::string>& tokens) const override {
    std::string text;
    for (const std::string& token : tokens) {
      const auto bytes = byte_chars::bytes(token);
      text += bytes ? *bytes : token;
    }
    tokens = {replace_invalid_utf8(std::move(text))};
  }
};

class MetaspaceDecoder : public TokenDecoder {
 public:
  MetaspaceDecoder(std::string marker, bool drops_first) : marker_(std::move(marker)), drops_first_(drops_first) {}

  static std::unique_ptr<TokenDecoder> read(const JsonField& field) {
    bool prefixed = true;
    if (const auto scheme = field.find("prepend_scheme")) prefixed = scheme->as_one_of({"always", "first", "never"}) != 2;
    else if (const auto add = field.find("add_prefix_space")) prefixed = add->as_bool();
    const JsonField marker = field.at("replacement");
    if (marker.as_string().empty()) marker.refuse("an empty marker cannot be found");
    return std::make_unique<MetaspaceDecoder>(marker.as_string(), prefixed);
  }

  void apply(std::vector<std::string>& tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i) replace_all(tokens[i], marker_, i == 0 && drops_first_ ? "" : " ");
  }

 private:
  std::string marker_;
  bool drops_first_;
};

class BpeDecoder : public TokenDecoder {
 public:
  explicit BpeDecoder(const JsonField& field) : suffix_(field.at("suffix").as_string()) {}
  void apply(std::vector<std::string>& tokens) const override {
    for (std::size_t i = 0; i < tokens.size() && !suffix_.empty(); ++i) replace_all(tokens[i], suffix_, i + 1 == tokens.size() ? "" : " ");
  }

 private:
  std::string suffix_;
};

/// Connectionist temporal classification: a token that repeats the one before says nothing new.
class CtcDecoder : public TokenDecoder {
 public:
  explicit CtcDecoder(const JsonField& field)
      : pad_(field.at("pad_token").as_string()),
        delimiter_(field.at("word_delimiter_token").as_string()),
        cleanup_(field.at("cleanup").as_bool()) {}

  void apply(std::vector<std::string>& tokens) const override {
    tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
    for (std::string& token : tokens) {
      if (!pad_.empty()) replace_all(token, pad_, "");
      if (!cleanup_) continue;
      clean_up(token);
      if (!delimiter_.empty()) replace_all(token, delimiter_, " ");
    }
    std::erase_if(tokens, [](const std::string& token) { return token.empty(); });
  }

 private:
  std::string pad_, delimiter_;
  bool cleanup_;
};

/// Tokens <0x00>..<0xFF> in a row become the text that their bytes are, or one U+FFFD each.
class ByteFallbackDecoder : public TokenDecoder {
 public:
  void apply(std::vector<std::string>& tokens) const override {
    std::vector<std::string> result;
    std::string bytes;
    const auto close = [&] {
      if (is_utf8(bytes)) {
        if (!bytes.empty()) result.push_back(bytes);
      } else {
        result.insert(result.end(), bytes.size(), std::string(replacement_char));
      }
      bytes.clear();
    };
    for (std::string& token : tokens) {
      if (const auto byte = fallback_byte(token)) {
        bytes += *byte;
        continue;
      }
      close();
      result.push_back(std::move(token));
    }
    close();
    tokens = std::move(result);
  }
};

class FuseDecoder : public TokenDecoder {
 public:
  void apply(std::vector<std::string>& tokens) const override { tokens = {joined(tokens)}; }
};

class ReplaceDecoder : public TokenDecoder {
 public:
  ReplaceDecoder(std::unique_ptr<TextPattern> pattern, std::string content) : pattern_(std::move(pattern)), content_(std::move(content)) {}
  void apply(std::vector<std::string>& tokens) const override {
    constexpr std::size_t most_bytes = std::size_t{1} << 28;
    std::size_t total = 0;
    for (std::string& token : tokens) {
      token = replace_matches(*pattern_, token, content_, most_bytes - total);
      total += token.size();
    }
  }

 private:
  std::unique_ptr<TextPattern> pattern_;
  std::string content_;
};

/// Takes up to so many copies of a character from both ends of each token.
class StripDecoder : public TokenDecoder {
 public:
  StripDecoder(std::string content, std::size_t start, std::size_t stop) : content_(std::move(content)), start_(start), stop_(stop) {}
  static std::unique_ptr<TokenDecoder> read(const JsonField& field) {
    return std::make_unique<StripDecoder>(field.at("content").as_string(), field.at("start").as_integer(0, UINT32_MAX),
                                          field.at("stop").as_integer(0, UINT32_MAX));
  }

  void apply(std::vector<std::string>& tokens) const override {
    for (std::string& token : tokens) {
      std::string_view rest = token;
      for (std::size_t i = 0; i < start_ && !content_.empty() && rest.starts_with(content_); ++i) rest.remove_prefix(content_.size());
      for (std::size_t i = 0; i < stop_ && !content_.empty() && rest.ends_with(content_); ++i) rest.remove_suffix(content_.size());
      token = std::string(rest);
    }
  }

 private:
  std::string content_;
  std::size_t start_, stop_;
};

/// U+2581 before a token is a space, except before the first; other tokens continue the word.
class WordStartDecoder : public TokenDecoder {
 public:
  void apply(std::vector<std::string>& tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (tokens[i].starts_with(space_marker)) tokens[i].replace(0, space_marker.size(), i == 0 ? "" : " ");
      clean_up(tokens[i]);
    }
  }
};

class DecoderSequence : public TokenDecoder {
 public:
  explicit DecoderSequence(std::vector<std::unique_ptr<TokenDecoder>> steps) : steps_(std::move(steps)) {}
  static std::unique_ptr<TokenDecoder> read(const JsonField& field) {
    std::vector<std::unique_ptr<TokenDecoder>> steps;
    for (const JsonField& step : field.at("decoders").items()) steps.push_back(read_decoder(step));
    return std::make_unique<DecoderSequence>(std::move(steps));
  }
  void apply(std::vector<std::string>& tokens) const override {
    for (const auto& step : steps_) step->apply(tokens);
  }

 private:
  std::vector<std::unique_ptr<TokenDecoder>> steps_;
};

}  // namespace

std::optional<char> fallback_byte(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  int value = 0;
  for (const char c : token.substr(3, 2)) {
    const bool digit = c >= '0' && c <= '9';
    const char lower = static_cast<char>(c | 0x20);
    if (!digit && (lower < 'a' || lower > 'f')) return std::nullopt;
    value = value * 16 + (digit ? c - '0' : lower - 'a' + 10);
  }
  return static_cast<char>(value);
}

std::string replace_invalid_utf8(std::string bytes) {
  if (is_utf8(bytes)) return bytes;
  std::string result;
  for (std::size_t at = 0; at < bytes.size();) {
    const unicode::Decoded next = unicode::decode(std::string_view(bytes).substr(at));
    unicode::append_utf8(result, next.value);
    at += next.bytes;
  }
  return result;
}

std::unique_ptr<TokenDecoder> read_decoder(const JsonField& field) {
  const std::string kind = field.kind();
  if (kind == "ByteLevel") return byte_level_decoder();
  if (kind == "Metaspace") return MetaspaceDecoder::read(field);
  if (kind == "WordPiece") return std::make_unique<WordPieceDecoder>(field);
  if (kind == "BPEDecoder") return std::make_unique<BpeDecoder>(field);
  if (kind == "CTC") return std::make_unique<CtcDecoder>(field);
  if (kind == "ByteFallback") return std::make_unique<ByteFallbackDecoder>();
  if (kind == "Fuse") return std::make_unique<FuseDecoder>();
  if (kind == "Replace") return std::make_unique<ReplaceDecoder>(read_pattern(field.at("pattern")), field.at("content").as_string());
  if (kind == "Strip") return StripDecoder::read(field);
  if (kind == "Sequence") return DecoderSequence::read(field);
  field.refuse_kind("ByteLevel, Metaspace, WordPiece, BPEDecoder, CTC, ByteFallback, Fuse, Replace, Strip, Sequence");
}

std::unique_ptr<TokenDecoder> spaced_decoder() { return std::make_unique<SpacedDecoder>(); }

std::unique_ptr<TokenDecoder> byte_level_decoder() { return std::make_unique<ByteLevelDecoder>(); }

std::unique_ptr<TokenDecoder> word_start_decoder() { return std::make_unique<WordStartDecoder>(); }

std::unique_ptr<TokenDecoder> sentencepiece_decoder(bool strip_first_space) {
  std::vector<std::unique_ptr<TokenDecoder>> steps;
  steps.push_back(std::make_unique<ReplaceDecoder>(string_pattern(std::string(space_marker)), " "));
  steps.push_back(std::make_unique<ByteFallbackDecoder>());
  steps.push_back(std::make_unique<FuseDecoder>());
  if (strip_first_space) steps.push_back(std::make_unique<StripDecoder>(" ", 1, 0));
  return std::make_unique<DecoderSequence>(std::move(steps));
}

}  // namespace rlx
