#include "text/regex/char_set.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "text/unicode/unicode.h"

namespace rlx {
namespace {

constexpr char32_t last_code_point = 0x10FFFF;

/// General categories in utf8proc's order, from 0.
constexpr std::string_view category_names[] = {"Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps",
                                               "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co"};

std::uint32_t categories_named(std::string_view name) {
  std::uint32_t mask = 0;
  for (std::uint32_t i = 0; i < std::size(category_names); ++i) {
    if (category_names[i] == name || (name.size() == 1 && category_names[i][0] == name[0])) mask |= 1u << i;
  }
  return mask;
}

struct Script {
  std::string_view name;
  std::vector<CharSet::Range> ranges;
};

/// Scripts that patterns of tokenizers ask for (Unicode 15).
const std::vector<Script>& scripts() {
  static const std::vector<Script> table = {
      {"Han", {{0x2E80, 0x2E99},   {0x2E9B, 0x2EF3},   {0x2F00, 0x2FD5},   {0x3005, 0x3005},   {0x3007, 0x3007},   {0x3021, 0x3029},
               {0x3038, 0x303B},   {0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFA6D},   {0xFA70, 0xFAD9},   {0x16FE2, 0x16FE3},
               {0x16FF0, 0x16FF1}, {0x20000, 0x2A6DF}, {0x2A700, 0x2B739}, {0x2B740, 0x2B81D}, {0x2B820, 0x2CEA1}, {0x2CEB0, 0x2EBE0},
               {0x2F800, 0x2FA1D}, {0x30000, 0x3134A}, {0x31350, 0x323AF}}},
      {"Hiragana", {{0x3041, 0x3096}, {0x309D, 0x309F}, {0x1B001, 0x1B11F}, {0x1B132, 0x1B132}, {0x1B150, 0x1B152}, {0x1F200, 0x1F200}}},
      {"Katakana",
       {{0x30A1, 0x30FA},
        {0x30FD, 0x30FF},
        {0x31F0, 0x31FF},
        {0x32D0, 0x32FE},
        {0x3300, 0x3357},
        {0xFF66, 0xFF6F},
        {0xFF71, 0xFF9D},
        {0x1AFF0, 0x1AFF3},
        {0x1AFF5, 0x1AFFB},
        {0x1AFFD, 0x1AFFE},
        {0x1B000, 0x1B000},
        {0x1B120, 0x1B122},
        {0x1B155, 0x1B155},
        {0x1B164, 0x1B167}}},
      {"Hangul",
       {{0x1100, 0x11FF},
        {0x302E, 0x302F},
        {0x3131, 0x318E},
        {0x3200, 0x321E},
        {0x3260, 0x327E},
        {0xA960, 0xA97C},
        {0xAC00, 0xD7A3},
        {0xD7B0, 0xD7C6},
        {0xD7CB, 0xD7FB},
        {0xFFA0, 0xFFBE},
        {0xFFC2, 0xFFC7},
        {0xFFCA, 0xFFCF},
        {0xFFD2, 0xFFD7},
        {0xFFDA, 0xFFDC}}},
  };
  return table;
}

/// The code points up to `last` that a test, which is not a union of categories, is true of.
CharSet code_points_where(bool (*test)(char32_t), char32_t last) {
  std::vector<CharSet::Range> ranges;
  for (char32_t c = 0; c <= last; ++c) {
    if (!test(c)) continue;
    if (!ranges.empty() && ranges.back().last + 1 == c) ranges.back().last = c;
    else ranges.push_back({c, c});
  }
  return CharSet(std::move(ranges));
}

}  // namespace

CharSet CharSet::of_categories(std::uint32_t categories) {
  CharSet set;
  const std::span<const unicode::CategoryRun> runs = unicode::category_runs();
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (((categories >> runs[i].category) & 1) == 0) continue;
    const char32_t last = i + 1 < runs.size() ? runs[i + 1].first - 1 : last_code_point;
    if (!set.ranges_.empty() && set.ranges_.back().last + 1 == runs[i].first) set.ranges_.back().last = last;
    else set.ranges_.push_back({runs[i].first, last});
  }
  return set;
}

bool CharSet::of_property(std::string_view name, CharSet& set) {
  if (const std::uint32_t mask = categories_named(name)) {
    set = of_categories(mask);
    return true;
  }
  for (const Script& script : scripts()) {
    if (script.name != name) continue;
    set = CharSet(script.ranges);
    return true;
  }
  return false;
}

bool CharSet::of_posix_class(std::string_view name, CharSet& set) {
  const auto of = [](std::initializer_list<std::string_view> categories) {
    std::uint32_t mask = 0;
    for (const std::string_view category : categories) mask |= categories_named(category);
    return of_categories(mask);
  };
  if (name == "punct") set = of({"P", "S"});
  else if (name == "digit") set = digits();
  else if (name == "xdigit") set = CharSet({{'0', '9'}, {'A', 'F'}, {'a', 'f'}});
  else if (name == "cntrl") set = of({"Cc"});
  else if (name == "ascii") set = CharSet(0, 0x7F);
  else if (name == "space") set = spaces();
  else if (name == "word") set = code_points_where(unicode::is_word, last_code_point).intersection(CharSet(0x200C, 0x200D).complement());
  else if (name == "graph") set = of({"Cc", "Cn", "Cs"}).complement().intersection(spaces().complement());
  else if (name == "print") of_posix_class("graph", set), set.add(of({"Zs"}));
  else if (name == "blank") set = of({"Zs"}), set.add_range('\t', '\t');
  else return false;
  return true;
}

CharSet CharSet::digits() { return of_categories(categories_named("Nd")); }

CharSet CharSet::words() {
  static const CharSet set = [] {
    CharSet words;
    of_posix_class("word", words);
    words.add(CharSet({{0xB2, 0xB3}, {0xB9, 0xB9}, {0xBC, 0xBE}}));  // the numbers of Latin-1, but of no other block
    return words;
  }();
  return set;
}

CharSet CharSet::spaces() {
  static const CharSet set = code_points_where(unicode::is_whitespace, 0x3000);
  return set;
}

void CharSet::add(const CharSet& other) {
  std::vector<Range> all = ranges_;
  all.insert(all.end(), other.ranges_.begin(), other.ranges_.end());
  std::sort(all.begin(), all.end(), [](const Range& a, const Range& b) { return a.first < b.first; });
  ranges_.clear();
  for (const Range& range : all) {
    if (!ranges_.empty() && range.first <= ranges_.back().last + 1) ranges_.back().last = std::max(ranges_.back().last, range.last);
    else ranges_.push_back(range);
  }
}

CharSet CharSet::complement() const {
  CharSet result;
  char32_t next = 0;
  for (const Range& range : ranges_) {
    if (next < range.first) result.ranges_.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= last_code_point) result.ranges_.push_back({next, last_code_point});
  return result;
}

CharSet CharSet::intersection(const CharSet& other) const {
  CharSet neither = complement();
  neither.add(other.complement());
  return neither.complement();
}

bool CharSet::contains(char32_t value) const {
  const auto after =
      std::upper_bound(ranges_.begin(), ranges_.end(), value, [](char32_t c, const Range& range) { return c < range.first; });
  return after != ranges_.begin() && value <= std::prev(after)->last;
}

CharTable::CharTable(const CharSet& set) {
  for (char32_t c = 0; c < 128; ++c) ascii_[c] = set.contains(c);
  const CharSet high = set.intersection(CharSet(0x80, last_code_point));
  rest_ = high.ranges().size() == 1 && high.ranges()[0].first == 0x80 && high.ranges()[0].last == last_code_point;
  if (rest_ || high.empty()) return;
  std::vector<std::uint64_t> bits((last_code_point + 1) / 64);
  for (const CharSet::Range& range : set.ranges()) {
    for (std::size_t word = range.first / 64; word <= range.last / 64; ++word) {
      const std::uint64_t from = word == range.first / 64 ? ~std::uint64_t{0} << (range.first % 64) : ~std::uint64_t{0};
      const std::uint64_t to = word == range.last / 64 ? ~std::uint64_t{0} >> (63 - range.last % 64) : ~std::uint64_t{0};
      bits[word] |= from & to;
    }
  }
  std::map<std::array<std::uint64_t, 4>, std::uint16_t> known;
  for (std::size_t word = 0; word < bits.size(); word += 4) {
    const std::array<std::uint64_t, 4> page = {bits[word], bits[word + 1], bits[word + 2], bits[word + 3]};
    const auto [found, fresh] = known.emplace(page, static_cast<std::uint16_t>(known.size()));
    if (fresh) pages_.insert(pages_.end(), page.begin(), page.end());
    index_.push_back(found->second);
  }
}

}  // namespace rlx
