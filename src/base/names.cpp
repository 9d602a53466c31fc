#include "base/names.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <utility>

#include <fmt/ranges.h>

#include "rlx/error.h"

namespace rlx {
namespace {

constexpr std::size_t longest_quoted = 120;
constexpr std::size_t longest_compared = 256;  // the distance costs length², and nobody mistypes a longer name

/// Length of the well-formed UTF-8 sequence at the front, 0 when there is none (Unicode 15, table 3-7).
std::size_t utf8_length(std::string_view text) {
  auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<std::uint8_t>(text[i]) : std::uint8_t{0}; };
  auto tail = [&](std::size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const std::uint8_t lead = byte(0), second = byte(1);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return tail(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const bool overlong = lead == 0xE0 && second < 0xA0, surrogate = lead == 0xED && second > 0x9F;
    return tail(1) && tail(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const bool overlong = lead == 0xF0 && second < 0x90, too_large = lead == 0xF4 && second > 0x8F;
    return tail(1) && tail(2) && tail(3) && !overlong && !too_large ? 4 : 0;
  }
  return 0;
}

bool is_control(std::string_view character) {
  const auto lead = static_cast<std::uint8_t>(character[0]);
  if (lead < 0x20 || lead == 0x7F) return true;
  return lead == 0xC2 && static_cast<std::uint8_t>(character[1]) < 0xA0;  // the C1 controls, U+0080..U+009F
}

/// Characters that are missing, added or others, and neighbours that changed places.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before.swap(last), last.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1), last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row.back();
}

/// 'model.encoder.weight' ends with the part 'encoder.weight'; 'softmax' does not end with the part 'max'.
bool ends_with_part(std::string_view whole, std::string_view part) {
  if (part.empty() || whole.size() <= part.size() || !whole.ends_with(part)) return false;
  const char before = whole[whole.size() - part.size() - 1];
  return before == '.' || before == '/';
}

/// How far `known` is from `name`; anything above the limit is not near.
std::size_t name_distance(std::string_view name, std::string_view known, std::size_t limit) {
  if (ends_with_part(known, name) || ends_with_part(name, known)) return 1;
  const std::size_t longer = std::max(name.size(), known.size()), shorter = std::min(name.size(), known.size());
  if (longer > longest_compared || longer - shorter > limit) return limit + 1;
  return edit_distance(name, known);
}

/// The length of the well-formed part at the front.
std::size_t utf8_part(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    std::uint64_t eight = 0;
    if (text.size() - at >= sizeof eight) {
      std::memcpy(&eight, text.data() + at, sizeof eight);
      if ((eight & 0x8080808080808080) == 0) {  // plain ASCII, eight at a time
        at += sizeof eight;
        continue;
      }
    }
    const std::size_t length = utf8_length(text.substr(at));
    if (length == 0) break;
    at += length;
  }
  return at;
}

}  // namespace

bool is_utf8(std::string_view text) { return utf8_part(text) == text.size(); }

void check_utf8(std::string_view text, std::string_view what) {
  if (const std::size_t at = utf8_part(text); at < text.size())
    fail("{}: is not UTF-8: byte \\x{:02x} at offset {}", what, static_cast<std::uint8_t>(text[at]), at);
}

std::string quote_name(std::string_view name) {
  std::string out = "'";
  while (!name.empty()) {
    if (out.size() > longest_quoted) return out + "...'";
    const std::size_t length = utf8_length(name);
    const std::string_view character = name.substr(0, std::max<std::size_t>(length, 1));
    if (length == 0 || is_control(character))
      for (char c : character) out += fmt::format("\\x{:02x}", static_cast<std::uint8_t>(c));
    else out += character;
    name.remove_prefix(character.size());
  }
  return out + "'";
}

std::string some_names(std::span<const std::string> names) {
  constexpr std::size_t shown = 5;
  std::string list;
  for (const std::string& name : names.first(std::min(shown, names.size()))) list += (list.empty() ? "" : ", ") + quote_name(name);
  return names.size() > shown ? fmt::format("{} and {} more", list, names.size() - shown) : list;
}

std::vector<std::string_view> near_names(std::string_view name, std::span<const std::string_view> known) {
  const std::size_t limit = std::max<std::size_t>(1, name.size() / 4);
  std::vector<std::pair<std::size_t, std::string_view>> near;
  for (std::string_view candidate : known)
    if (const std::size_t distance = name_distance(name, candidate, limit); distance <= limit) near.emplace_back(distance, candidate);
  std::sort(near.begin(), near.end());
  std::vector<std::string_view> out;
  for (std::size_t i = 0; i < std::min<std::size_t>(near.size(), 3); ++i) out.push_back(near[i].second);
  return out;
}

std::string near_hint(std::string_view name, std::span<const std::string_view> known) {
  std::string list;
  for (std::string_view near : near_names(name, known)) list += (list.empty() ? "" : ", ") + quote_name(near);
  return list.empty() ? list : fmt::format(" (near: {})", list);
}

std::string near_or_allowed(std::string_view name, std::span<const std::string_view> known) {
  std::string near;
  for (std::string_view each : near_names(name, known)) near += (near.empty() ? "near: " : ", ") + quote_name(each);
  return fmt::format(" ({}{}allowed: {})", near, near.empty() ? "" : "; ", fmt::join(known, ", "));
}

}  // namespace rlx
