#include "text/tokenizer/normalizer.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/base64.h"
#include "text/tokenizer/charsmap.h"
#include "text/tokenizer/growth.h"
#include "text/tokenizer/pattern.h"
#include "text/unicode/byte_chars.h"
#include "text/unicode/unicode.h"
#include "text/unicode/unicode_form.h"

namespace rlx {
namespace {

void lowercase(AlignedText& text) {
  const bool grows = std::any_of(text.begin(), text.end(), [](const AlignedChar& c) { return c.value == 0x130; });
  std::array<char32_t, 2> lower;
  if (!grows) {
    for (AlignedChar& c : text) {
      unicode::lowercase(c.value, lower);
      c.value = lower[0];
    }
    return;
  }
  AlignedText result;
  for (const AlignedChar& c : text) {
    const std::size_t count = unicode::lowercase(c.value, lower);
    for (std::size_t i = 0; i < count; ++i) result.push_back({lower[i], c.begin, c.end});
  }
  text = std::move(result);
}

void clean(AlignedText& text) {
  const auto dropped = [](char32_t c) { return c == 0 || c == 0xFFFD || (c != '\t' && c != '\n' && c != '\r' && unicode::is_control(c)); };
  std::erase_if(text, [&](const AlignedChar& c) { return dropped(c.value); });
  for (AlignedChar& c : text) {
    if (unicode::is_whitespace(c.value)) c.value = ' ';
  }
}

void space_chinese(AlignedText& text) {
  const auto chinese = [](const AlignedChar& c) { return unicode::is_chinese(c.value); };
  if (std::none_of(text.begin(), text.end(), chinese)) return;
  AlignedText result;
  result.reserve(text.size() * 2);
  for (const AlignedChar& c : text) {
    const AlignedChar space = {' ', c.begin, c.end};
    if (chinese(c)) result.insert(result.end(), {space, c, space});
    else result.push_back(c);
  }
  text = std::move(result);
}

class BertNormalizer : public Normalizer {
 public:
  BertNormalizer(bool lowercase, bool strip_accents) : clean_(true), chinese_(true), lowercase_(lowercase), strip_accents_(strip_accents) {}
  explicit BertNormalizer(const JsonField& field)
      : clean_(field.at("clean_text").as_bool()),
        chinese_(field.at("handle_chinese_chars").as_bool()),
        lowercase_(field.at("lowercase").as_bool()),
        strip_accents_(lowercase_) {
    if (const auto given = field.find("strip_accents")) strip_accents_ = given->as_bool();
  }

  void apply(AlignedText& text, std::size_t /*most*/) const override {
    if (clean_) clean(text);
    if (chinese_) space_chinese(text);
    if (strip_accents_) {
      to_unicode_form(text, UnicodeForm::nfd);
      std::erase_if(text, [](const AlignedChar& c) { return unicode::is_nonspacing_mark(c.value); });
    }
    if (lowercase_) lowercase(text);
  }

 private:
  bool clean_;
  bool chinese_;
  bool lowercase_;
  bool strip_accents_;
};

class Lowercase : public Normalizer {
 public:
  void apply(AlignedText& text, std::size_t /*most*/) const override { lowercase(text); }
};

class FormNormalizer : public Normalizer {
 public:
  explicit FormNormalizer(UnicodeForm form) : form_(form) {}
  void apply(AlignedText& text, std::size_t /*most*/) const override { to_unicode_form(text, form_); }

 private:
  UnicodeForm form_;
};

class StripAccents : public Normalizer {
 public:
  void apply(AlignedText& text, std::size_t /*most*/) const override {
    std::erase_if(text, [](const AlignedChar& c) { return unicode::is_mark(c.value); });
  }
};

class Strip : public Normalizer {
 public:
  explicit Strip(const JsonField& field) : left_(field.at("strip_left").as_bool()), right_(field.at("strip_right").as_bool()) {}

  void apply(AlignedText& text, std::size_t /*most*/) const override {
    const auto solid = [](const AlignedChar& c) { return !unicode::is_whitespace(c.value); };
    if (right_) text.erase(std::find_if(text.rbegin(), text.rend(), solid).base(), text.end());
    if (left_) text.erase(text.begin(), std::find_if(text.begin(), text.end(), solid));
  }

 private:
  bool left_;
  bool right_;
};

class Replace : public Normalizer {
 public:
  explicit Replace(const JsonField& field) : pattern_(read_pattern(field.at("pattern"))), content_(field.at("content").as_string()) {
    const auto text = field.at("pattern").find("String");
    if (text && text->as_string().empty()) text->refuse("an empty pattern cannot be replaced");
  }
  Replace(std::string_view text, std::string_view by) : pattern_(string_pattern(std::string(text))), content_(by) {}

  /// What replaces a match has the origin of the last code point of the match.
  void apply(AlignedText& text, std::size_t most) const override {
    const std::string bytes = to_utf8(text);
    const std::u32string content = unicode::to_utf32(content_);
    AlignedText result;
    result.reserve(text.size());
    std::size_t next = 0;  // of `text`
    pattern_->cut(bytes, [&](bool matches, TextRange range) {
      const std::size_t first = next;
      for (std::size_t at = range.begin; at < range.end; ++at) next += unicode::starts_code_point(bytes[at]) ? 1 : 0;
      if (!matches)
        result.insert(result.end(), text.begin() + static_cast<std::ptrdiff_t>(first), text.begin() + static_cast<std::ptrdiff_t>(next));
      if (!matches || text.empty()) return;
      const AlignedChar& origin = text[next > 0 ? next - 1 : 0];
      check_growth(result.size() + content.size(), most);
      for (const char32_t c : content) result.push_back({c, origin.begin, origin.end});
    });
    text = std::move(result);
  }

 private:
  std::unique_ptr<TextPattern> pattern_;
  std::string content_;
};

/// sentencepiece's rules as `tokenizers` applies them: to grapheme clusters shorter than six bytes first, by the shortest rule that one
/// starts with, else to single code points.
class Precompiled : public Normalizer {
 public:
  explicit Precompiled(const JsonField& field)
      : rules_(decode_base64(field.at("precompiled_charsmap").as_string(), field.place()), field.place()) {}

  void apply(AlignedText& text, std::size_t most) const override {
    AlignedText result;
    result.reserve(text.size());
    for (std::size_t begin = 0; begin < text.size();) {
      std::size_t end = begin + 1;
      for (std::int32_t state = 0; end < text.size() && !cluster_ends(text[end - 1].value, text[end].value, state);) ++end;
      const std::span<const AlignedChar> cluster(text.data() + begin, end - begin);
      if (!rewrite(cluster, result)) {
        for (const AlignedChar& c : cluster) {
          if (!rewrite({&c, 1}, result)) result.push_back(c);
        }
      }
      check_growth(result.size(), most);
      begin = end;
    }
    text = std::move(result);
  }

 private:
  static bool cluster_ends(char32_t before, char32_t after, std::int32_t& state) {
    const bool ascii = before < 0x80 && after < 0x80;
    return ascii ? before != '\r' || after != '\n' : unicode::grapheme_ends(before, after, state);
  }

  /// The code points of the replacement take the origins of those that they replace, one by one.
  bool rewrite(std::span<const AlignedChar> part, AlignedText& result) const {
    const std::string bytes = to_utf8(part);
    if (part.size() > 1 && bytes.size() >= 6) return false;
    const auto match = rules_.shortest(bytes);
    if (!match) return false;
    std::size_t index = 0;
    for (const char32_t c : unicode::to_utf32(match->replacement)) {
      const AlignedChar& origin = part[std::min(index++, part.size() - 1)];
      result.push_back({c, origin.begin, origin.end});
    }
    return true;
  }

  Charsmap rules_;
};

/// Control characters out, and what counts as white space made a space.
class Nmt : public Normalizer {
 public:
  void apply(AlignedText& text, std::size_t /*most*/) const override {
    std::erase_if(text, [](const AlignedChar& c) { return is_dropped(c.value); });
    for (AlignedChar& c : text) c.value = is_space(c.value) ? U' ' : c.value;
  }

 private:
  static bool is_dropped(char32_t c) {
    return (c >= 1 && c <= 8) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F;
  }
  static bool is_space(char32_t c) {
    return c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 || (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 ||
           c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
  }
};

/// Each byte becomes the character by which byte-level vocabularies write it.
class ByteLevelNormalizer : public Normalizer {
 public:
  void apply(AlignedText& text, std::size_t /*most*/) const override {
    AlignedText result;
    for (const AlignedChar& c : text) {
      for (const char byte : to_utf8({&c, 1})) {
        result.push_back({unicode::to_utf32(byte_chars::character(static_cast<std::uint8_t>(byte)))[0], c.begin, c.end});
      }
    }
    text = std::move(result);
  }
};

class Prepend : public Normalizer {
 public:
  explicit Prepend(std::string_view prefix) : prefix_(unicode::to_utf32(prefix)) {}

  void apply(AlignedText& text, std::size_t most) const override {
    if (text.empty()) return;
    check_growth(text.size() + prefix_.size(), most);
    const AlignedChar first = text.front();
    AlignedText prefix;
    for (char32_t c : prefix_) prefix.push_back({c, first.begin, first.end});
    text.insert(text.begin(), prefix.begin(), prefix.end());
  }

 private:
  std::u32string prefix_;
};

class NormalizerSequence : public Normalizer {
 public:
  NormalizerSequence() = default;
  explicit NormalizerSequence(const JsonField& field) {
    for (const JsonField& step : field.at("normalizers").items()) steps_.push_back(read_normalizer(step));
  }
  void apply(AlignedText& text, std::size_t most) const override {
    for (const auto& step : steps_) {
      step->apply(text, most);
      check_growth(text.size(), most);
    }
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> steps_;
};

/// A file may name the rules and give none.
std::unique_ptr<Normalizer> read_precompiled(const JsonField& field) {
  if (field.find("precompiled_charsmap")) return std::make_unique<Precompiled>(field);
  return std::make_unique<NormalizerSequence>();
}

}  // namespace

std::unique_ptr<Normalizer> replace_normalizer(std::string_view text, std::string_view by) { return std::make_unique<Replace>(text, by); }

std::unique_ptr<Normalizer> lowercase_normalizer() { return std::make_unique<Lowercase>(); }

std::unique_ptr<Normalizer> bert_normalizer(bool lowercase, bool strip_accents) {
  return std::make_unique<BertNormalizer>(lowercase, strip_accents);
}

std::unique_ptr<Normalizer> read_normalizer(const JsonField& field) {
  const std::string kind = field.kind();
  if (kind == "BertNormalizer") return std::make_unique<BertNormalizer>(field);
  if (kind == "Lowercase") return lowercase_normalizer();
  if (kind == "NFC") return std::make_unique<FormNormalizer>(UnicodeForm::nfc);
  if (kind == "NFD") return std::make_unique<FormNormalizer>(UnicodeForm::nfd);
  if (kind == "NFKC") return std::make_unique<FormNormalizer>(UnicodeForm::nfkc);
  if (kind == "NFKD") return std::make_unique<FormNormalizer>(UnicodeForm::nfkd);
  if (kind == "StripAccents") return std::make_unique<StripAccents>();
  if (kind == "Strip") return std::make_unique<Strip>(field);
  if (kind == "Replace") return std::make_unique<Replace>(field);
  if (kind == "Prepend") return std::make_unique<Prepend>(field.at("prepend").as_string());
  if (kind == "Precompiled") return read_precompiled(field);
  if (kind == "Nmt") return std::make_unique<Nmt>();
  if (kind == "ByteLevel") return std::make_unique<ByteLevelNormalizer>();
  if (kind == "Sequence") return std::make_unique<NormalizerSequence>(field);
  field.refuse_kind(
      "BertNormalizer, Lowercase, NFC, NFD, NFKC, NFKD, StripAccents, Strip, Replace, Prepend, Precompiled, Nmt, ByteLevel, Sequence");
}

}  // namespace rlx
