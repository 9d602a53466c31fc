#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace rlx {

/// A set of code points, for building one: sorted ranges that do not touch.
class CharSet {
 public:
  struct Range {
    char32_t first, last;
  };

  CharSet() = default;
  CharSet(char32_t first, char32_t last) : ranges_{{first, last}} {}
  /// From ranges in order that do not touch.
  explicit CharSet(std::vector<Range> ranges) : ranges_(std::move(ranges)) {}
  /// The code points whose general category has its bit in `categories` (the numbers are those of unicode::CategoryRun).
  static CharSet of_categories(std::uint32_t categories);
  /// A general category ("L", "Lu", "N") or one of a few scripts ("Han", "Hiragana", "Katakana", "Hangul"). False for other names.
  static bool of_property(std::string_view name, CharSet& set);
  /// A class that Oniguruma writes as [:name:], such as "punct". False for other names, and for those of which Unicode keeps lists of
  /// their own ("alpha", "alnum", "lower", "upper").
  static bool of_posix_class(std::string_view name, CharSet& set);
  static CharSet digits();
  /// The class \w of Oniguruma.
  static CharSet words();
  static CharSet spaces();

  void add(const CharSet& other);
  void add_range(char32_t first, char32_t last) { add(CharSet(first, last)); }
  CharSet complement() const;
  CharSet intersection(const CharSet& other) const;
  bool contains(char32_t value) const;
  bool empty() const { return ranges_.empty(); }
  const std::vector<Range>& ranges() const { return ranges_; }

 private:
  std::vector<Range> ranges_;
};

/// A set of code points, for asking: one bit each, in pages of 256 of which equal ones are kept once.
class CharTable {
 public:
  explicit CharTable(const CharSet& set);

  bool contains(char32_t value) const {
    if (value < 0x80) return contains_ascii(static_cast<unsigned char>(value));
    if (pages_.empty()) return rest_;
    return ((pages_[index_[value >> 8] * std::size_t{4} + ((value >> 6) & 3)] >> (value & 63)) & 1) != 0;
  }
  bool contains_ascii(unsigned char value) const { return ascii_[value]; }

 private:
  std::array<bool, 128> ascii_{};
  bool rest_ = false;                 // of all code points from 0x80 on, where there are no pages
  std::vector<std::uint16_t> index_;  // the page of each 256 code points
  std::vector<std::uint64_t> pages_;
};

}  // namespace rlx
