#include "models/tokenizer/pre_tokenizer.h"

#include <algorithm>

#include "models/tokenizer/unicode.h"

namespace rlx {
namespace {

using CharTest = bool (*)(char32_t);

/// What becomes of the code points that separate words (the values of `behavior`, in the order in which `read_behavior` names them).
enum class Delimiter { removed, isolated, merged_with_previous, merged_with_next, contiguous };

Delimiter read_behavior(const JsonField& field) {
  const auto given = field.find("behavior");
  if (!given) return Delimiter::isolated;
  return static_cast<Delimiter>(given->as_one_of({"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"}));
}

/// Cuts before and after each code point that is a delimiter, except where `behavior` says that it stays with its neighbour.
void split_at(const AlignedText& text, TextRange range, CharTest is_delimiter, Delimiter behavior, std::vector<TextRange>& words) {
  const auto cut_between = [behavior](bool before, bool after) {
    switch (behavior) {
      case Delimiter::merged_with_previous: return before;
      case Delimiter::merged_with_next: return after;
      case Delimiter::contiguous: return before != after;
      default: return before || after;
    }
  };
  std::size_t start = range.begin;
  for (std::size_t at = range.begin; at < range.end; ++at) {
    const bool delimiter = is_delimiter(text[at].value);
    const bool last = at + 1 == range.end;
    if (!last && !cut_between(delimiter, is_delimiter(text[at + 1].value))) continue;
    if (behavior != Delimiter::removed || !delimiter) words.push_back({start, at + 1});
    start = at + 1;
  }
}

class BertPreTokenizer : public PreTokenizer {
 public:
  void split(const AlignedText& text, TextRange range, std::vector<TextRange>& words) const override {
    std::size_t start = range.begin;
    const auto close = [&](std::size_t end) {
      if (start < end) words.push_back({start, end});
      start = end;
    };
    for (std::size_t at = range.begin; at < range.end; ++at) {
      if (unicode::is_whitespace(text[at].value)) {
        close(at);
        start = at + 1;
      } else if (unicode::is_punctuation(text[at].value)) {
        close(at);
        close(at + 1);
      }
    }
    close(range.end);
  }
};

/// The matches of \w+|[^\w\s]+.
class Whitespace : public PreTokenizer {
 public:
  void split(const AlignedText& text, TextRange range, std::vector<TextRange>& words) const override {
    for (std::size_t at = range.begin; at < range.end;) {
      const std::size_t start = at;
      const Class kind = classify(text[at].value);
      while (at < range.end && classify(text[at].value) == kind) ++at;
      if (kind != Class::space) words.push_back({start, at});
    }
  }

 private:
  enum class Class { space, word, other };
  static Class classify(char32_t c) {
    if (unicode::is_word(c)) return Class::word;
    return unicode::is_whitespace(c) ? Class::space : Class::other;
  }
};

class DelimiterSplit : public PreTokenizer {
 public:
  DelimiterSplit(CharTest is_delimiter, Delimiter behavior) : is_delimiter_(is_delimiter), behavior_(behavior) {}
  void split(const AlignedText& text, TextRange range, std::vector<TextRange>& words) const override {
    split_at(text, range, is_delimiter_, behavior_, words);
  }

 private:
  CharTest is_delimiter_;
  Delimiter behavior_;
};

class PreTokenizerSequence : public PreTokenizer {
 public:
  explicit PreTokenizerSequence(const JsonField& field) {
    for (const JsonField& step : field.at("pretokenizers").items()) steps_.push_back(read_pre_tokenizer(step));
  }

  void split(const AlignedText& text, TextRange range, std::vector<TextRange>& words) const override {
    std::vector<TextRange> pieces = {range};
    for (const auto& step : steps_) {
      std::vector<TextRange> next;
      for (const TextRange& piece : pieces) step->split(text, piece, next);
      pieces = std::move(next);
    }
    words.insert(words.end(), pieces.begin(), pieces.end());
  }

 private:
  std::vector<std::unique_ptr<PreTokenizer>> steps_;
};

}  // namespace

std::unique_ptr<PreTokenizer> read_pre_tokenizer(const JsonField& field) {
  const std::string kind = field.kind();
  if (kind == "BertPreTokenizer") return std::make_unique<BertPreTokenizer>();
  if (kind == "Whitespace") return std::make_unique<Whitespace>();
  if (kind == "WhitespaceSplit") return std::make_unique<DelimiterSplit>(unicode::is_whitespace, Delimiter::removed);
  if (kind == "Punctuation") return std::make_unique<DelimiterSplit>(unicode::is_punctuation, read_behavior(field));
  if (kind == "Digits") {
    const bool single = field.at("individual_digits").as_bool();
    return std::make_unique<DelimiterSplit>(unicode::is_numeric, single ? Delimiter::isolated : Delimiter::contiguous);
  }
  if (kind == "Sequence") return std::make_unique<PreTokenizerSequence>(field);
  field.refuse_kind("BertPreTokenizer, Whitespace, WhitespaceSplit, Punctuation, Digits, Sequence");
}

}  // namespace rlx
