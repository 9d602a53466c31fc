#include "models/tokenizer/normalizer.h"

#include <algorithm>

#include "models/tokenizer/unicode.h"
#include "models/tokenizer/unicode_form.h"

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
  explicit BertNormalizer(const JsonField& field)
      : clean_(field.at("clean_text").as_bool()),
        chinese_(field.at("handle_chinese_chars").as_bool()),
        lowercase_(field.at("lowercase").as_bool()),
        strip_accents_(lowercase_) {
    if (const auto given = field.find("strip_accents")) strip_accents_ = given->as_bool();
  }

  void apply(AlignedText& text) const override {
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
  void apply(AlignedText& text) const override { lowercase(text); }
};

class FormNormalizer : public Normalizer {
 public:
  explicit FormNormalizer(UnicodeForm form) : form_(form) {}
  void apply(AlignedText& text) const override { to_unicode_form(text, form_); }

 private:
  UnicodeForm form_;
};

class StripAccents : public Normalizer {
 public:
  void apply(AlignedText& text) const override {
    std::erase_if(text, [](const AlignedChar& c) { return unicode::is_mark(c.value); });
  }
};

class Strip : public Normalizer {
 public:
  explicit Strip(const JsonField& field) : left_(field.at("strip_left").as_bool()), right_(field.at("strip_right").as_bool()) {}

  void apply(AlignedText& text) const override {
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
  explicit Replace(const JsonField& field) : content_(unicode::to_utf32(field.at("content").as_string())) {
    const JsonField pattern = field.at("pattern");
    const auto text = pattern.find("String");
    if (!text) pattern.refuse("only {{\"String\": ...}} is supported");
    pattern_ = unicode::to_utf32(text->as_string());
    if (pattern_.empty()) text->refuse("an empty pattern cannot be replaced");
  }

  /// What replaces a match has the origin of the last code point of the match.
  void apply(AlignedText& text) const override {
    const auto same = [](const AlignedChar& c, char32_t wanted) { return c.value == wanted; };
    AlignedText result;
    for (auto at = text.begin(); at != text.end();) {
      const auto match = std::search(at, text.end(), pattern_.begin(), pattern_.end(), same);
      result.insert(result.end(), at, match);
      if (match == text.end()) break;
      at = match + static_cast<std::ptrdiff_t>(pattern_.size());
      for (char32_t c : content_) result.push_back({c, (at - 1)->begin, (at - 1)->end});
    }
    text = std::move(result);
  }

 private:
  std::u32string pattern_;
  std::u32string content_;
};

class Prepend : public Normalizer {
 public:
  explicit Prepend(const JsonField& field) : prefix_(unicode::to_utf32(field.at("prepend").as_string())) {}

  void apply(AlignedText& text) const override {
    if (text.empty()) return;
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
  explicit NormalizerSequence(const JsonField& field) {
    for (const JsonField& step : field.at("normalizers").items()) steps_.push_back(read_normalizer(step));
  }
  void apply(AlignedText& text) const override {
    for (const auto& step : steps_) step->apply(text);
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> steps_;
};

}  // namespace

std::unique_ptr<Normalizer> read_normalizer(const JsonField& field) {
  const std::string kind = field.kind();
  if (kind == "BertNormalizer") return std::make_unique<BertNormalizer>(field);
  if (kind == "Lowercase") return std::make_unique<Lowercase>();
  if (kind == "NFC") return std::make_unique<FormNormalizer>(UnicodeForm::nfc);
  if (kind == "NFD") return std::make_unique<FormNormalizer>(UnicodeForm::nfd);
  if (kind == "NFKC") return std::make_unique<FormNormalizer>(UnicodeForm::nfkc);
  if (kind == "NFKD") return std::make_unique<FormNormalizer>(UnicodeForm::nfkd);
  if (kind == "StripAccents") return std::make_unique<StripAccents>();
  if (kind == "Strip") return std::make_unique<Strip>(field);
  if (kind == "Replace") return std::make_unique<Replace>(field);
  if (kind == "Prepend") return std::make_unique<Prepend>(field);
  if (kind == "Sequence") return std::make_unique<NormalizerSequence>(field);
  field.refuse_kind("BertNormalizer, Lowercase, NFC, NFD, NFKC, NFKD, StripAccents, Strip, Replace, Prepend, Sequence");
}

}  // namespace rlx
