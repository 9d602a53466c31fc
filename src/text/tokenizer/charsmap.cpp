#include "text/tokenizer/charsmap.h"

#include <algorithm>
#include <cstring>

#include "base/names.h"
#include "rlx/error.h"
#include "text/unicode/unicode.h"

namespace rlx {
namespace {

// A unit of the double array: bit 8 says that a key ends here (its value is the unit at the offset), bits 0-7 and 31 are the label, and
// the others the offset of the children, in steps of 256 where bit 9 is set.
bool has_value(std::uint32_t unit) { return ((unit >> 8) & 1) != 0; }
std::uint32_t label(std::uint32_t unit) { return unit & (0x80000000u | 0xFFu); }
std::uint32_t offset(std::uint32_t unit) { return (unit >> 10) << ((unit & 0x200u) >> 6); }
std::uint32_t value(std::uint32_t unit) { return unit & 0x7FFFFFFFu; }

}  // namespace

Charsmap::Charsmap(std::string_view bytes, std::string_view what) {
  std::uint32_t size = 0;
  if (bytes.size() < sizeof size) fail("{}: {} bytes of normalization rules (allowed: 4 or more)", what, bytes.size());
  std::memcpy(&size, bytes.data(), sizeof size);
  bytes.remove_prefix(sizeof size);
  if (size > bytes.size() || size % 4 != 0)
    fail("{}: the rules' array has {} bytes (allowed: multiples of 4 up to {})", what, size, bytes.size());
  units_.resize(size / 4);
  if (size > 0) std::memcpy(units_.data(), bytes.data(), size);
  replacements_ = bytes.substr(size);
  if (!is_utf8(replacements_)) fail("{}: the replacements of the normalization rules are not UTF-8", what);
}

std::optional<Charsmap::Match> Charsmap::match(std::string_view text, bool first) const {
  std::optional<Match> best;
  if (units_.empty()) return best;
  std::uint32_t node = offset(units_[0]);
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    node ^= byte;
    if (node >= units_.size() || label(units_[node]) != byte) break;
    const std::uint32_t unit = units_[node];
    node ^= offset(unit);
    if (!has_value(unit) || node >= units_.size()) continue;
    const std::size_t begin = value(units_[node]);
    if (begin > replacements_.size() || (begin < replacements_.size() && !unicode::starts_code_point(replacements_[begin]))) break;
    const std::size_t end = std::min(replacements_.find('\0', begin), replacements_.size());
    best = Match{at + 1, std::string_view(replacements_).substr(begin, end - begin)};
    if (first) break;
  }
  return best;
}

}  // namespace rlx
