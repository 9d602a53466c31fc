#include "text/tokenizer/pre_tokenizer.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

#include "text/tokenizer/pattern.h"
#include "text/unicode/byte_chars.h"
#include "text/unicode/unicode.h"

namespace rlx {
namespace {

/// What becomes of the matches of a pattern (the values of `behavior`, in the order in which `read_behavior` names them).
enum class Delimiter : std::uint8_t { removed, isolated, merged_with_previous, merged_with_next, contiguous };

Delimiter read_behavior(const JsonField& field) {
  const auto given = field.find("behavior");
  if (!given) return Delimiter::isolated;
  return static_cast<Delimiter>(given->as_one_of({"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"}));
}

/// The words that are left of the pieces, whose beginning may be gone.
void replace_all(Pieces& pieces, std::vector<Piece> words) {
  if (!words.empty() && words.front().range.begin != pieces.pieces.front().range.begin) pieces.at_start = false;
  pieces.pieces = std::move(words);
}

/// Replaces each piece by what `cut` appends for it.
template <class Cut>
void replace_each(Pieces& pieces, Cut cut) {
  std::vector<Piece> words;
  for (const Piece& piece : pieces.pieces) cut(piece, words);
  replace_all(pieces, std::move(words));
}

/// Cuts before and after each match, except where `behavior` says that it stays with its neighbour. `inverted`: matches are what
/// lies between the matches.
class PatternSplit : public PreTokenizer {
 public:
  PatternSplit(std::unique_ptr<TextPattern> pattern, Delimiter behavior, bool inverted = false)
      : pattern_(std::move(pattern)), behavior_(behavior), inverted_(inverted) {}

  void split(Pieces& pieces) const override {
    std::vector<Piece> words;
    words.reserve(pieces.pieces.size());
    for (const Piece& piece : pieces.pieces) {
      if (behavior_ == Delimiter::isolated || behavior_ == Delimiter::removed) cut(piece, words);
      else merge(piece, words);
    }
    std::erase_if(words, [](const Piece& word) { return word.range.empty(); });
    replace_all(pieces, std::move(words));
  }

 private:
  void cut(const Piece& piece, std::vector<Piece>& words) const {
    pattern_->cut(piece.bytes(), [&](bool matches, TextRange range) {
      if (behavior_ == Delimiter::removed && matches != inverted_) return;
      words.push_back({piece.text, {piece.range.begin + range.begin, piece.range.begin + range.end}});
    });
  }

  void merge(const Piece& piece, std::vector<Piece>& words) const {
    const std::size_t first = words.size();
    bool before = false;
    pattern_->cut(piece.bytes(), [&](bool matches, TextRange range) {
      const bool delimiter = matches != inverted_;
      const bool joins = words.size() > first && !cuts_between(before, delimiter);
      before = delimiter;
      if (joins) words.back().range.end = piece.range.begin + range.end;
      else words.push_back({piece.text, {piece.range.begin + range.begin, piece.range.begin + range.end}});
    });
  }

  bool cuts_between(bool before, bool after) const {
    switch (behavior_) {
      case Delimiter::merged_with_previous: return before || !after;
      case Delimiter::merged_with_next: return after || !before;
      default: return before != after;
    }
  }

  std::unique_ptr<TextPattern> pattern_;
  Delimiter behavior_;
  bool inverted_;
};

std::unique_ptr<PreTokenizer> split_at(std::function<bool(char32_t)> is_delimiter, Delimiter behavior) {
  return std::make_unique<PatternSplit>(char_pattern(std::move(is_delimiter)), behavior);
}

class BertPreTokenizer : public PreTokenizer {
 public:
  void split(Pieces& pieces) const override { replace_each(pieces, cut); }

 private:
  static void cut(const Piece& piece, std::vector<Piece>& words) {
    const std::string_view all = piece.text->bytes();
    std::size_t start = piece.range.begin;
    const auto close = [&](std::size_t end) {
      if (start < end) words.push_back({piece.text, {start, end}});
      start = end;
    };
    for (std::size_t at = piece.range.begin; at < piece.range.end;) {
      const unicode::Decoded next = unicode::decode_valid(all.data() + at);
      if (unicode::is_whitespace(next.value)) {
        close(at);
        start = at + next.bytes;
      } else if (unicode::is_punctuation(next.value)) {
        close(at);
        close(at + next.bytes);
      }
      at += next.bytes;
    }
    close(piece.range.end);
  }
};

/// The matches of \w+|[^\w\s]+, where \w is that of Unicode TR18.
class Whitespace : public PreTokenizer {
 public:
  void split(Pieces& pieces) const override { replace_each(pieces, cut); }

 private:
  enum class Class : std::uint8_t { space, word, other };
  static Class classify(char32_t c) {
    if (unicode::is_word(c)) return Class::word;
    return unicode::is_whitespace(c) ? Class::space : Class::other;
  }

  static void cut(const Piece& piece, std::vector<Piece>& words) {
    const std::string_view all = piece.text->bytes();
    Class before = Class::space;
    for (std::size_t at = piece.range.begin; at < piece.range.end;) {
      const unicode::Decoded next = unicode::decode_valid(all.data() + at);
      const Class kind = classify(next.value);
      if (kind != Class::space && kind == before) words.back().range.end = at + next.bytes;
      else if (kind != Class::space) words.push_back({piece.text, {at, at + next.bytes}});
      before = kind;
      at += next.bytes;
    }
  }
};

/// Words of so many code points.
class FixedLength : public PreTokenizer {
 public:
  explicit FixedLength(std::size_t length) : length_(length) {}

  void split(Pieces& pieces) const override {
    replace_each(pieces, [&](const Piece& piece, std::vector<Piece>& words) {
      std::size_t count = 0;
      const std::string_view all = piece.text->bytes();
      for (std::size_t at = piece.range.begin; at < piece.range.end;) {
        const std::size_t end = at + unicode::decode_valid(all.data() + at).bytes;
        if (count++ % length_ == 0) words.push_back({piece.text, {at, end}});
        else words.back().range.end = end;
        at = end;
      }
    });
  }

 private:
  std::size_t length_;
};

/// Gives every piece a text of its own making: `rewrite` appends what stands for the piece.
template <class Rewrite>
void rewrite_pieces(Pieces& pieces, Rewrite rewrite) {
  TracedText& made = pieces.made.emplace_back(pieces.with_origins);
  for (Piece& piece : pieces.pieces) {
    const std::size_t begin = made.bytes().size();
    rewrite(piece, made);
    piece = {&made, {begin, made.bytes().size()}};
  }
}

TextRange first_char(const Piece& piece) {
  return {piece.range.begin, piece.range.begin + unicode::decode_valid(piece.text->bytes().data() + piece.range.begin).bytes};
}

/// Before which pieces a space is put.
enum class SpacePrefix : std::uint8_t { always, first, never };

/// sentencepiece's words: spaces become a marker (U+2581, mostly), and words start at one.
class Metaspace : public PreTokenizer {
 public:
  Metaspace(std::string marker, SpacePrefix prefix, bool cut) : marker_(std::move(marker)), prefix_(prefix) {
    if (cut) cut_ = std::make_unique<PatternSplit>(string_pattern(marker_), Delimiter::merged_with_next);
  }

  static std::unique_ptr<PreTokenizer> read(const JsonField& field) {
    SpacePrefix prefix = SpacePrefix::always;
    if (const auto scheme = field.find("prepend_scheme")) {
      prefix = static_cast<SpacePrefix>(scheme->as_one_of({"always", "first", "never"}));
    } else if (const auto add = field.find("add_prefix_space")) {
      prefix = add->as_bool() ? SpacePrefix::always : SpacePrefix::never;
    }
    const auto cut = field.find("split");
    return std::make_unique<Metaspace>(field.at("replacement").as_string(), prefix, !cut || cut->as_bool());
  }

  void split(Pieces& pieces) const override {
    bool at_start = pieces.at_start;
    rewrite_pieces(pieces, [&](const Piece& piece, TracedText& out) {
      const bool wanted = prefix_ == SpacePrefix::always || (prefix_ == SpacePrefix::first && at_start);
      const std::string_view bytes = piece.bytes();
      if (wanted && !bytes.starts_with(' ') && !bytes.starts_with(marker_)) out.append(marker_, *piece.text, first_char(piece));
      write(piece, out);
      at_start = false;
    });
    if (cut_) cut_->split(pieces);
  }

 private:
  void write(const Piece& piece, TracedText& out) const {
    const std::string_view all = piece.text->bytes();
    for (std::size_t at = piece.range.begin; at < piece.range.end;) {
      const std::size_t space = std::min(all.find(' ', at), piece.range.end);
      if (at < space) out.copy(*piece.text, {at, space});
      if (space < piece.range.end) out.append(marker_, *piece.text, {space, space + 1});
      at = space + 1;
    }
  }

  std::string marker_;
  SpacePrefix prefix_;
  std::unique_ptr<PreTokenizer> cut_;
};

constexpr std::string_view gpt2_pattern = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

class ByteLevel : public PreTokenizer {
 public:
  explicit ByteLevel(const JsonField& field) : prefix_space_(field.at("add_prefix_space").as_bool()) {
    const auto use_regex = field.find("use_regex");
    if (!use_regex || use_regex->as_bool()) {
      cut_ = std::make_unique<PatternSplit>(regex_pattern(gpt2_pattern, "ByteLevel"), Delimiter::isolated);
    }
  }

  bool leave_bytes() override {
    write_ = false;
    return true;
  }

  void split(Pieces& pieces) const override {
    if (prefix_space_) {
      rewrite_pieces(pieces, [](const Piece& piece, TracedText& out) {
        if (!piece.bytes().starts_with(' ')) out.append(" ", *piece.text, first_char(piece));
        out.copy(*piece.text, piece.range);
      });
    }
    if (cut_) cut_->split(pieces);
    if (write_) rewrite_pieces(pieces, write);
  }

 private:
  static void write(const Piece& piece, TracedText& out) {
    const std::string_view all = piece.text->bytes();
    for (std::size_t at = piece.range.begin; at < piece.range.end;) {
      const TextRange c = {at, at + unicode::decode_valid(all.data() + at).bytes};
      for (; at < c.end; ++at) out.append(byte_chars::character(static_cast<std::uint8_t>(all[at])), *piece.text, c);
    }
  }

  bool prefix_space_;
  bool write_ = true;
  std::unique_ptr<PreTokenizer> cut_;
};

class PreTokenizerSequence : public PreTokenizer {
 public:
  PreTokenizerSequence() = default;
  explicit PreTokenizerSequence(const JsonField& field) {
    for (const JsonField& step : field.at("pretokenizers").items()) steps_.push_back(read_pre_tokenizer(step));
  }
  void add(std::unique_ptr<PreTokenizer> step) { steps_.push_back(std::move(step)); }

  bool leave_bytes() override { return !steps_.empty() && steps_.back()->leave_bytes(); }
  void split(Pieces& pieces) const override {
    for (const auto& step : steps_) step->split(pieces);
  }

 private:
  std::vector<std::unique_ptr<PreTokenizer>> steps_;
};

std::unique_ptr<PreTokenizer> read_split(const JsonField& field) {
  const auto inverted = field.find("invert");
  return std::make_unique<PatternSplit>(read_pattern(field.at("pattern")), read_behavior(field), inverted && inverted->as_bool());
}

std::unique_ptr<PreTokenizer> read_char_delimiter(const JsonField& field) {
  const std::u32string delimiter = unicode::to_utf32(field.at("delimiter").as_string());
  if (delimiter.size() != 1) field.at("delimiter").refuse("expected one character, found {}", delimiter.size());
  return split_at([c = delimiter[0]](char32_t value) { return value == c; }, Delimiter::removed);
}

}  // namespace

std::unique_ptr<PreTokenizer> pattern_pre_tokenizer(const std::vector<std::string>& patterns, std::string_view what) {
  auto result = std::make_unique<PreTokenizerSequence>();
  for (const std::string& pattern : patterns) {
    result->add(std::make_unique<PatternSplit>(regex_pattern(pattern, what), Delimiter::isolated));
  }
  return result;
}

std::unique_ptr<PreTokenizer> space_pre_tokenizer() { return split_at(unicode::is_whitespace, Delimiter::removed); }

std::unique_ptr<PreTokenizer> bert_pre_tokenizer() { return std::make_unique<BertPreTokenizer>(); }

std::unique_ptr<PreTokenizer> read_pre_tokenizer(const JsonField& field) {
  const std::string kind = field.kind();
  if (kind == "ByteLevel") return std::make_unique<ByteLevel>(field);
  if (kind == "Split") return read_split(field);
  if (kind == "Metaspace") return Metaspace::read(field);
  if (kind == "BertPreTokenizer") return std::make_unique<BertPreTokenizer>();
  if (kind == "Whitespace") return std::make_unique<Whitespace>();
  if (kind == "WhitespaceSplit") return space_pre_tokenizer();
  if (kind == "Punctuation") return split_at(unicode::is_punctuation, read_behavior(field));
  if (kind == "Digits") {
    const bool single = field.at("individual_digits").as_bool();
    return split_at(unicode::is_numeric, single ? Delimiter::isolated : Delimiter::contiguous);
  }
  if (kind == "CharDelimiterSplit") return read_char_delimiter(field);
  if (kind == "FixedLength") return std::make_unique<FixedLength>(field.at("length").as_integer(1, UINT32_MAX));
  if (kind == "Sequence") return std::make_unique<PreTokenizerSequence>(field);
  field.refuse_kind(
      "ByteLevel, Split, Metaspace, BertPreTokenizer, Whitespace, WhitespaceSplit, Punctuation, Digits, CharDelimiterSplit, FixedLength, "
      "Sequence");
}

}  // namespace rlx
